"""Jobs that are asked about together: a plugin's answer about a job holds for all jobs of its kind and size.

A limit keeps many jobs out that are alike to it. They come into their queue together when there is room for
one job, and all but that job leave it again when it starts. So a plugin may say what its answers follow from
beside a job's size (trait ``same_answer``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter

from headway.state.facts import Facts
from headway.state.records import Barrier, Job

_kind_and_size = attrgetter("bar_kind", "processors")


def give_kind(state: Facts, job: Job) -> None:
    """Ask what bars the job by; it came, or changed."""
    if state.bar_kind is not None:
        # The answer about a job of several pools differs from pool to pool.
        kind = state.bar_kind(job) if not job.choices else None
        # A job of no kind is a kind of its own.
        job.bar_kind = kind if kind is not None else object()


def outdate_kinds(state: Facts) -> None:
    """What the plugin's kinds follow from has changed: they are asked for anew."""
    for job in state.jobs.values():
        # Jobs on nodes may come back to their queues.
        give_kind(state, job)


def barriers_of(state: Facts, jobs: Sequence[Job]) -> Iterable[Barrier | None]:
    """Why each of these jobs may not start now although it could."""
    many = state.bars_many
    if many is None:
        bars = state.bars
        return [None if bars is None else bars(job) for job in jobs]
    if state.bar_kind is None or len(jobs) < 2:
        return many(jobs)
    kinds = list(map(_kind_and_size, jobs))
    one = dict(zip(kinds, jobs, strict=True))
    answers = dict(zip(one, many(list(one.values())), strict=True))
    return map(answers.__getitem__, kinds)
