"""What bundling did to a run: fragmentation, subjobs, migrations (the paper's section 4.1)."""

from __future__ import annotations

from typing import Any

import numpy as np

from headway.metrics import system_curves
from headway.results import RunResult


def fragmentation(result: RunResult, begin: float | None = None, end: float | None = None) -> float:
    """Processors that are idle while a job waits: mean over that time, from ``begin`` to ``end`` (absolute
    seconds; default: the whole run). A job whose application runs does not wait. 0 if no job ever waits."""
    curves = system_curves(result)
    times = np.append(curves.busy.times, curves.busy.end)
    first = curves.busy.begin if begin is None else begin
    seconds = np.diff(np.clip(times, first, curves.busy.end if end is None else end))
    seconds = np.where(curves.queue_length.values > 0, seconds, 0.0)
    waited = float(seconds.sum())
    idle = curves.capacity.values.astype(np.float64) - curves.busy.values
    return float(idle @ seconds) / waited if waited > 0 else 0.0


def bundling_figures(result: RunResult) -> dict[str, Any]:
    """The fragmentation, in processors; how many jobs ran as bundles, of how many subjobs, with how many
    migrations; and what they used beyond one processor for each process, a share of what they needed."""
    bundled = [job for job in result.jobs if job.members]
    return {
        "fragmentation": fragmentation(result),
        "bundled": len(bundled),
        "subjobs": sum(len(job.members) for job in bundled),
        "migrations": sum(job.migrations for job in bundled),
        "restarts": sum(job.restarts for job in bundled),
    }
