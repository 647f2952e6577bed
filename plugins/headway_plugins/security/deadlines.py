"""The workload model "deadlines": jobs with deadlines and data to protect.

Arrivals, run times and processors come from a trace, or from the generated month; deadlines, amounts of
data and ranges of security levels are drawn as in the experiments on SAREG (``workload.py``), for one site.
As there, users know how long their jobs run: a job's limit is its run time. The levels come from the tables
of 2005.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from headway.errors import UserError
from headway.model import JobDescription, Request
from headway.workload import TraceJob, Workload, read_trace, trace_jobs
from headway_plugins.security.levels import SERVICES, profile_2005
from headway_plugins.security.workload import Ranges, Settings, draw
from headway_plugins.workloads.month import generate_month


class DeadlinesOptions(BaseModel):
    """The options of the model."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    trace: Path | None = Field(None, description="trace whose jobs are used; null: the generated month")
    jobs: int = Field(
        6400, ge=1, le=10_000_000, description="number of jobs: the first jobs with a runtime above 0"
    )
    processors: int = Field(184, ge=1, le=10_000_000, description="size of the machine")
    laxity: float = Field(200.0, ge=0, le=1e9, description="seconds between the latest end and the deadline")
    protected: float = Field(
        1.0, gt=0, le=1e6, description="factor on the amounts of data that are protected"
    )
    ranges: Ranges = Field("pair", description="distribution of the ranges of levels")
    pool: str = Field("pool", min_length=1, description="pool to which the jobs are sent")


class DeadlinesModel:
    """The model as :class:`headway.workload.WorkloadModel`."""

    Options = DeadlinesOptions

    def generate(self, rng: np.random.Generator, options: DeadlinesOptions) -> Workload:
        """Raises :class:`UserError` if the trace cannot be read or has no job that ran."""
        first, second = rng.spawn(2)
        if options.trace is None:
            found = generate_month(first, processors=options.processors)
        else:
            found, _ = trace_jobs(read_trace(options.trace), None)
        jobs = [job for job in found if job.runtime > 0][: options.jobs]
        if not jobs:
            raise UserError(f"{options.trace}: expected jobs with a positive run time, found none")
        settings = Settings(
            1, options.processors, 1.0, options.laxity, ranges=options.ranges, protected=options.protected
        )
        _, drawn = draw(
            second,
            settings,
            profile_2005(),
            names=[job.job.id for job in jobs],
            submit=np.array([job.job.submit_time for job in jobs], np.float64),
            runtime=np.array([job.runtime for job in jobs], np.float64),
            processors=np.array([job.job.request.processors for job in jobs], np.int64),
        )
        made = []
        for job, one in zip(jobs, drawn, strict=True):
            security: dict[str, object] = {"bytes": one.need.volume}
            for service, ladder in zip(SERVICES, one.need.ladders, strict=True):
                security[service] = [ladder[0].level, ladder[-1].level]
            described = JobDescription(
                one.name,
                one.arrival,
                Request(one.processors, one.execution),
                options.pool,
                user=job.job.user,
                group=job.job.group,
                account=job.job.account,
                attributes={"deadline": one.deadline, "security": security},
            )
            made.append(TraceJob(described, job.runtime, job.outcome))
        return Workload(made, processors=options.processors)
