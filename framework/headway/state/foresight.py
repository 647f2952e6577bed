"""Changes that were decided and that the cluster has not confirmed yet: limits, sizes, reservations, moves,
and jobs that were told to go.

They count at once. If the cluster does not carry out a change, what it said last is true again
(:func:`take_back`). If a plugin vetoes a decision, the decision does not leave the scheduler, and what was
decided before it stands: each function that carries a change into the state returns what undoes that change
alone (:data:`headway.state.moves.Undo`). Of several changes of the same thing the last is undone first
(:mod:`headway.scheduler.gate`).
"""

from __future__ import annotations

from headway.decisions import (
    Bind,
    Copy,
    Kill,
    Migrate,
    Requeue,
    Reserve,
    Resize,
    Resume,
    Route,
    SetTimeLimit,
    Signal,
    Suspend,
    SwapTiers,
)
from headway.state.binding import not_bound
from headway.state.choices import domains_of
from headway.state.copies import copy_not_begun
from headway.state.expectations import go_on, leave, set_expectation
from headway.state.facts import Facts
from headway.state.lending import move_on, not_resumed, take_again
from headway.state.moves import Undo, moved_back, nothing
from headway.state.occupation import set_expected_end
from headway.state.records import Job
from headway.state.reservations import drop_reservation, put_reservation
from headway.state.routes import stays
from headway.state.waiting import judge_again

#: What counts from its decision on, until the cluster confirms it or says that it failed.
Foreseeable = (
    SetTimeLimit
    | Resize
    | Reserve
    | SwapTiers
    | Migrate
    | Requeue
    | Kill
    | Signal
    | Suspend
    | Resume
    | Route
    | Bind
    | Copy
)


def resume(state: Facts, decision: Resume) -> Undo:
    """The suspended job has its processors again.

    Raises :class:`headway.errors.StateError`, and changes nothing, if it cannot run again
    (:func:`lending.take_again`).
    """
    job = state.jobs.get(decision.job_id)
    lends = job is not None and job.lends
    take_again(state, decision.job_id)
    return (lambda: not_resumed(state, decision.job_id)) if lends else nothing


def reserve(state: Facts, decision: Reserve) -> Undo:
    """The reservation exists, or has changed."""
    name = decision.reservation.id
    before, first = state.reservations.get(name), name not in state.foreseen
    state.foreseen.setdefault(name, before)
    drop_reservation(state, name)
    put_reservation(state, decision.reservation)

    def undo() -> None:
        if first:
            state.foreseen.pop(name, None)
        drop_reservation(state, name)
        if before is not None:
            put_reservation(state, before)

    return undo


def go(state: Facts, decision: Kill | Requeue | Signal | Suspend) -> Undo:
    """The job goes, for good or for a while, at once or within its grace."""
    job = state.jobs.get(decision.job_id)
    aside, grace = isinstance(decision, Suspend), 0.0
    if isinstance(decision, Signal):
        if decision.grace is None:
            # It may not go.
            return nothing
        grace = decision.grace
    if job is None or (aside and not state.cluster.suspended_lend):
        return nothing
    before = job.gone_by, job.aside
    leave(state, job, grace, aside=aside)
    job.domain.touch()

    def undo() -> None:
        if before[0] is None:
            go_on(state, job)
        else:
            job.gone_by, job.aside = before
            set_expected_end(state, job, before[0])
            job.domain.touch()

    return undo


def limit(state: Facts, decision: SetTimeLimit) -> Undo:
    """The job has a new walltime."""
    job = state.jobs.get(decision.job_id)
    if job is None:
        return nothing
    before = job.estimate

    def expect(walltime: float) -> None:
        job.estimate = walltime
        set_expectation(state, job)
        job.domain.touch()

    expect(decision.walltime)
    return lambda: expect(before)


def resize(state: Facts, decision: Resize) -> Undo:
    """The job has a new size. What a running job gives back is free when the cluster says so."""
    job = state.jobs.get(decision.job_id)
    if job is None:
        return nothing
    if job.entries is None:
        waiting, before = job, job.processors
        _ask_for(state, waiting, decision.processors)
        return lambda: _ask_for(state, waiting, before)
    grows = decision.processors > job.processors
    undo = _grow(state, job, decision) if grows else nothing
    job.domain.touch()
    return undo


def _ask_for(state: Facts, job: Job, processors: int) -> None:
    """A job that waits needs so many processors."""
    job.processors = processors
    for domain in domains_of(job):
        domain.by_size, domain.least = None, 0
    judge_again(state, job)
    job.domain.touch()


def _grow(state: Facts, job: Job, decision: Resize) -> Undo:
    """A job on nodes has more of them."""
    before, first = (job.processors, job.placement), job.id not in state.before_growth
    state.before_growth.setdefault(job.id, job.placement)
    job.processors = decision.processors
    move_on(state, job, decision.placement)

    def undo() -> None:
        if first:
            state.before_growth.pop(job.id, None)
        job.processors = before[0]
        move_on(state, job, before[1])
        job.domain.touch()

    return undo


def take_back(state: Facts, decision: Foreseeable) -> None:
    """The cluster did not make a change that was foreseen: the state is what the cluster said last."""
    if isinstance(decision, SwapTiers | Migrate):
        moved_back(state, decision)
        return
    if isinstance(decision, Signal) and decision.grace is None:
        return
    if isinstance(decision, Resume):
        not_resumed(state, decision.job_id)
        return
    if isinstance(decision, Requeue | Kill | Signal | Suspend):
        go_on(state, state.jobs.get(decision.job_id))
        return
    if isinstance(decision, Route):
        stays(state, state.jobs.get(decision.job_id))
        return
    if isinstance(decision, Bind):
        not_bound(state, decision)
        return
    if isinstance(decision, Copy):
        copy_not_begun(state, decision)
        return
    if not isinstance(decision, Reserve):
        as_described(state, state.jobs.get(decision.job_id))
        return
    name = decision.reservation.id
    if name in state.foreseen:
        before = state.foreseen.pop(name)
        drop_reservation(state, name)
        if before is not None:
            put_reservation(state, before)


def as_described(state: Facts, job: Job | None) -> None:
    """A change that was foreseen did not happen: the job is what its description says."""
    if job is not None:
        job.estimate = job.request.walltime
        job.processors = job.request.processors
        for domain in domains_of(job):
            domain.by_size, domain.least = None, 0
        if job.id in state.before_growth and job.entries is not None:
            move_on(state, job, state.before_growth.pop(job.id))
        set_expectation(state, job)
        judge_again(state, job)
        job.domain.touch()
