"""A job that went back to the queue keeps the moment at which it was submitted.

Slurm states a new one then, by which the job would lose its place: at once, or at the next start of headway.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

import msgspec

from headway_adapters.polling.snapshot import Snapshot, SnapshotJob

#: Ids of jobs -> when they were submitted (absolute seconds), of the jobs of which that is known.
Known = Callable[[Collection[str]], Mapping[str, float]]


def nobody_knows(jobs: Collection[str]) -> Mapping[str, float]:
    """There was no earlier run."""
    return {}


def first_submitted(new: Snapshot, old: Snapshot | None, known: Known) -> Snapshot:
    """The snapshot with requeued jobs as of their first submission: as it was in ``old``, or where there is
    none as an earlier run knew it."""
    again = {job_id: job for job_id, job in new.jobs.items() if job.restarts and job.state != "ended"}
    if not again:
        return new
    if old is None:
        before = known(again)
    else:
        before = {job_id: old.jobs[job_id].job.submit_time for job_id in again if job_id in old.jobs}
    earlier = {
        job_id: _submitted_at(again[job_id], moment)
        for job_id, moment in before.items()
        if moment < again[job_id].job.submit_time
    }
    return replace(new, jobs={**new.jobs, **earlier}) if earlier else new


def _submitted_at(job: SnapshotJob, moment: float) -> SnapshotJob:
    return msgspec.structs.replace(job, job=msgspec.structs.replace(job.job, submit_time=moment))
