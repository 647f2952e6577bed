"""Clock frequencies of running jobs, and how they are remembered over a restart.

Batch systems do not tell at which frequency a job runs, so the state keeps it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headway import events as ev
from headway.state.facts import Facts

_INF = float("inf")


def frequency_changed(state: Facts, event: ev.JobFrequencyChanged) -> None:
    """The job's processors have a new clock."""
    job = state.known(event.job_id, "set to another frequency")
    if job is not None:
        job.frequency = event.frequency


def frequencies(state: Facts) -> dict[str, tuple[float, float]]:
    """Job -> start and frequency of its run, where that is not the nodes' own.

    Batch systems do not tell it, so it must be remembered over a restart."""
    return {
        job.id: (job.start_time, job.frequency)
        for job in state.jobs.values()
        if job.frequency is not None and job.start_time is not None and job.entries is not None
    }


def remember_frequencies(state: Facts, known: Mapping[str, Sequence[float]]) -> None:
    """Take up what :meth:`frequencies` of an earlier run said, for jobs that still run."""
    state.remembered = {job: (start, frequency) for job, (start, frequency) in known.items()}
