"""What fitted workload models share: their options, and columns of sizes and times as jobs with a load."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from headway.model import JobDescription, Request
from headway.workload import TraceJob, Workload
from headway_plugins.estimates.f_model import estimates
from headway_plugins.workloads.lublin import scaled_to_load

Floats = NDArray[np.float64]


class FittedOptions(BaseModel):
    """The options of a model of sizes and runtimes with the f-model's estimates."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    jobs: int = Field(10000, ge=2, le=5_000_000, description="number of jobs")
    processors: int = Field(320, ge=1, le=100_000, description="size of the machine")
    load: float = Field(
        0.7, gt=0, le=3, description="offered load: submitted work over the machine's capacity"
    )
    f: float = Field(
        4.0,
        ge=0,
        le=1000,
        description="estimates are drawn uniformly between the runtime and f + 1 times the runtime",
    )
    pool: str = Field("pool", min_length=1, description="pool to which the jobs are sent")


def fitted_workload(
    rng: np.random.Generator, options: FittedOptions, submit: Floats, size: Floats, runtime: Floats
) -> Workload:
    """These jobs, in order of submission (seconds, processors), stretched to the load, with estimates."""
    submit, note = stretched_to_load(submit, size, runtime, options.processors, options.load)
    wanted = estimates(rng, runtime, options.f)
    jobs = estimated_jobs(submit, size, runtime, wanted, options.pool)
    return Workload(jobs, processors=options.processors, notes=(note,))


def stretched_to_load(
    submit: Floats, size: Floats, runtime: Floats, processors: int, load: float
) -> tuple[Floats, str]:
    """Whole-second times from 0 on with the wanted load, and a note that says how it was reached."""
    times, factor = scaled_to_load(submit, float(size @ runtime), processors, load)
    return times - times[0], f"load {load:g}: times between submissions multiplied by {factor:.4g}"


def estimated_jobs(
    submit: Floats, size: Floats, runtime: Floats, estimate: Floats, pool: str
) -> list[TraceJob]:
    """Jobs "1", "2", ... of these columns, in order of submission (seconds, processors)."""
    return [
        TraceJob(JobDescription(str(number), at, Request(int(width), wanted), pool=pool), seconds)
        for number, (at, width, seconds, wanted) in enumerate(
            zip(submit.tolist(), size.tolist(), runtime.tolist(), estimate.tolist(), strict=True), start=1
        )
    ]
