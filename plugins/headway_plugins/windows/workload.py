"""The workload model "two-phase-jobs": tasks of jobs of stages, for the policy ``two-phase``.

The synthetic workloads and the nights of :mod:`.nights`; each task is a job of one processor, submitted at
once, with an exact estimate, that says with the attribute ``window`` of which job and stage it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from headway.hookspecs import Plugin, hookimpl
from headway.model import JobDescription, Request
from headway.workload import TraceJob, Workload, WorkloadModel
from headway_plugins.windows.nights import FARM, PROCESSORS, UNIT, night, synthetic
from headway_plugins.windows.staged import Staged


class StagedOptions(BaseModel):
    """The options of :class:`StagedModel`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["synthetic", "night"] = Field(
        "synthetic",
        description="twice the work that 100 processors can do in 13 hours, or a night of a render farm",
    )
    pool: str = Field("pool", min_length=1, description="pool to which the tasks are sent")


class StagedModel:
    """The jobs as :class:`headway.workload.WorkloadModel`."""

    Options = StagedOptions

    def generate(self, rng: np.random.Generator, options: StagedOptions) -> Workload:
        """Tasks with ids such as "3.1.2": the second task of stage 1 of job 3."""
        if options.kind == "synthetic":
            return Workload(tasks_of(synthetic(rng), options.pool, UNIT), processors=PROCESSORS)
        return Workload(tasks_of(night(rng).jobs, options.pool), processors=FARM)


def tasks_of(jobs: Sequence[Staged], pool: str, unit: float = 1.0) -> list[TraceJob]:
    """The tasks of these jobs, which have their lengths in units of so many seconds."""
    found = []
    for job in jobs:
        for stage, lengths in enumerate(job.stages, start=1):
            mark = {"job": job.name, "stage": stage, "reward": job.worth, "priority": job.priority}
            for number, length in enumerate(lengths, start=1):
                description = JobDescription(
                    f"{job.name}.{stage}.{number}", 0.0, Request(1, length * unit), pool,
                    name=job.name, attributes={"window": mark},
                )  # fmt: skip
                found.append(TraceJob(description, length * unit))
    return found


class StagedJobs(Plugin):
    """The workload model "two-phase-jobs": jobs of stages for a window with a deadline."""

    @hookimpl
    def register_workloads(self) -> dict[str, WorkloadModel]:
        return {"two-phase-jobs": StagedModel()}
