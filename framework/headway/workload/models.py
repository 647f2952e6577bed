"""What a workload model offers, so that the command line can generate from any of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from headway.workload.jobs import TraceJob

if TYPE_CHECKING:
    import pydantic


class WorkloadModel(Protocol):
    """A model of a workload, as a plugin registers it by name."""

    @property
    def Options(self) -> type[pydantic.BaseModel]:
        """The class of the options of :meth:`generate`; an attribute of the model's class will do."""
        ...

    def generate(self, rng: np.random.Generator, options: Any) -> list[TraceJob]:
        """Jobs in order of submission, drawn from ``rng`` alone; ``options`` is one of :attr:`Options`."""
        ...
