"""Plain jobs come and go: what their events amount to where nothing is asked about them.

A plain job asks for processors of a flat pool alone, as soon as there are some, and no plugin orders, admits,
bars or counts jobs. Then :func:`.lifecycle.submitted` and :func:`.lifecycle.ended` come to these few steps.
Jobs come in order of submission, so each is the last of its queue.
"""

from __future__ import annotations

from bisect import bisect_left

from headway.model import JobDescription
from headway.state.expectations import predict
from headway.state.facts import Facts
from headway.state.records import Job, PoolState, Status

_PENDING, _ENDED = Status.PENDING, Status.ENDED


def come(state: Facts, description: JobDescription, pool: PoolState) -> Job:
    """A plain job arrived in its pool: it is queued."""
    state.seq = seq = state.seq + 1
    request, submit = description.request, description.submit_time
    processors, walltime = request.processors, request.walltime
    job = Job(
        description.id, description, pool, seq, submit, processors, walltime, walltime,
        (-pool.tier, submit, seq), unconditional=True,
    )  # fmt: skip
    state.jobs[description.id] = job
    if state.predict is not None:
        predict(state, job)
    domain = pool.domain
    job.status = _PENDING
    domain.queue.append(job)
    if processors < domain.least:
        domain.least = processors
    if domain.by_size is not None:
        domain.by_size.add(job)
    if domain.news.came(job, last=True) and (
        processors <= domain.free
        or state.ask_always
        or (domain.running and domain.running[0][0] <= state.now)
    ):
        domain.news.due = True
    return job


def go(state: Facts, job: Job) -> None:
    """A running plain job ended: its processors are free."""
    del state.jobs[job.id]
    assert job.entries is not None
    domain, entry = job.entries[0]
    job.entries, job.status = None, _ENDED
    running = domain.running
    del running[bisect_left(running, entry)]
    domain.free += entry[2]
    domain.news.everything()
