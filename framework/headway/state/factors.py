"""Properties of jobs that plugins register and other plugins weigh (hook ``register_factors``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numpy.typing import ArrayLike

from headway.state.records import Job

#: ``factor(jobs, state)``: a value between 0 and 1 for each of the jobs.
Factor = Callable[[Sequence[Job], Any], ArrayLike]
