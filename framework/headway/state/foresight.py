"""Changes that were decided and that the cluster has not confirmed yet: limits, sizes, reservations, moves,
and jobs that were told to go.

They count at once; if the cluster refuses them, what it said last is true again.
"""

from __future__ import annotations

from headway.decisions import (
    Kill,
    Migrate,
    Requeue,
    Reserve,
    Resize,
    Resume,
    SetTimeLimit,
    Signal,
    Suspend,
    SwapTiers,
)
from headway.state.choices import domains_of
from headway.state.expectations import go_on, leave, set_expectation
from headway.state.facts import Facts
from headway.state.lending import move_on, not_resumed, take_again
from headway.state.moves import carry, moved_back
from headway.state.records import Job
from headway.state.reservations import drop_reservation, put_reservation
from headway.state.waiting import look_again

#: What counts from its decision on, until the cluster confirms or refuses it.
Foreseeable = (
    SetTimeLimit | Resize | Reserve | SwapTiers | Migrate | Requeue | Kill | Signal | Suspend | Resume
)


def foresee(state: Facts, decision: Foreseeable) -> None:
    """A change was decided: count with it until the cluster says what became of it.

    Raises :class:`headway.errors.StateError` for a move that is impossible (:func:`moves.carry`), and for a
    job that cannot run again (:func:`lending.take_again`).
    """
    if isinstance(decision, Resume):
        take_again(state, decision.job_id)
        return
    if isinstance(decision, SwapTiers | Migrate):
        carry(state, decision)
        return
    if isinstance(decision, Reserve):
        name = decision.reservation.id
        state.foreseen.setdefault(name, state.reservations.get(name))
        drop_reservation(state, decision.reservation.id)
        put_reservation(state, decision.reservation)
        return
    job = state.jobs.get(decision.job_id)
    if job is None:
        return
    if isinstance(decision, Requeue | Kill):
        leave(state, job)
    elif isinstance(decision, Suspend):
        if not state.cluster.suspended_lend:
            return
        leave(state, job, aside=True)
    elif isinstance(decision, Signal):
        if decision.grace is None:
            return
        leave(state, job, decision.grace)
    elif isinstance(decision, SetTimeLimit):
        job.estimate = decision.walltime
        set_expectation(state, job)
    elif job.entries is None:
        job.processors = decision.processors
        for domain in domains_of(job):
            domain.by_size, domain.least = None, 0
        look_again(state, job)
    elif decision.processors > job.processors:
        # What it gives back, in turn, is free when the cluster says so.
        state.before_growth.setdefault(job.id, job.placement)
        job.processors = decision.processors
        move_on(state, job, decision.placement)
    job.domain.touch()


def take_back(state: Facts, decision: Foreseeable) -> None:
    """What was foreseen does not come: the state is what the cluster said last."""
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
        look_again(state, job)
        job.domain.touch()
