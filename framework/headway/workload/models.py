"""What a workload model offers, so that the command line can generate from any of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from headway.workload.jobs import Follows, TraceCommand, TraceJob

if TYPE_CHECKING:
    import pydantic


@dataclass(frozen=True)
class Workload:
    """What a model draws: jobs, what their users ask for later, and what a reader should know of it."""

    #: In order of submission. A dedicated job has the attribute ``requested_start`` (seconds).
    jobs: list[TraceJob]
    #: Elastic commands, in order of time.
    commands: list[TraceCommand] = field(default_factory=list)
    #: Size of the machine that the workload was made for; None: of none in particular.
    processors: int | None = None
    #: What was done to meet the options, such as how a load was reached; a line each.
    notes: tuple[str, ...] = ()
    #: The job that each job follows, by id (:mod:`headway.workload.chains`).
    chains: Mapping[str, Follows] = field(default_factory=dict)


class WorkloadModel(Protocol):
    """A model of a workload, as a plugin registers it by name."""

    @property
    def Options(self) -> type[pydantic.BaseModel]:
        """The class of the options of :meth:`generate`; an attribute of the model's class will do."""
        ...

    def generate(self, rng: np.random.Generator, options: Any) -> Workload:
        """A workload that is drawn from ``rng`` alone; ``options`` is one of :attr:`Options`."""
        ...
