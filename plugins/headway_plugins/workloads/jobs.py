"""What workload models share: columns of sizes and times as jobs with a load."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headway.model import JobDescription, Request
from headway.workload import TraceJob
from headway_plugins.workloads.lublin import scaled_to_load

Floats = NDArray[np.float64]


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
