"""The guard that every start passes, and how a start is taken back."""

from __future__ import annotations

from bisect import insort

from headway.errors import StateError
from headway.model import Placement
from headway.state.belonging import confining, inside
from headway.state.choices import guard_choice
from headway.state.expectations import expect_again
from headway.state.facts import Facts
from headway.state.licences import guard_licences
from headway.state.moves import begin_behind
from headway.state.news import Unnoticed
from headway.state.occupation import FOREGROUND, note_predicted, occupy, release
from headway.state.queues import enqueue
from headway.state.reasons import why_not_in
from headway.state.records import Domain, Job, Status
from headway.state.reservations import kept, profile
from headway.state.still_there import guard_still_there
from headway.state.watchers import tell_took

_PENDING = Status.PENDING
_STARTING = Status.STARTING


def begin(
    state: Facts,
    job: Job,
    placement: Placement,
    tier: str,
    frequency: float | None,
    *,
    allowed: bool = False,
) -> None:
    """A start was decided: the job takes its processors from now on.

    This is the guard that nothing switches off: raises :class:`StateError`, and changes
    nothing, if the job is not pending, if a processor would be given twice, or if a
    reservation would be broken. The queue is cleaned by :meth:`sweep`, once a cycle.

    ``allowed``: :func:`.barriers.is_barred` has just said that nothing bars it.
    """
    if tier != FOREGROUND:
        begin_behind(state, job, placement, tier, frequency)
        return
    if job.status is not _PENDING:
        raise StateError(f"job {job.id} is {job.status.value}, not pending")
    if job.choices:
        guard_choice(job)
    if state.bars is not None and not allowed and (barrier := state.bars(job)) is not None:
        raise StateError(f"job {job.id} may not start: {barrier}")
    if state.licences is not None:
        guard_licences(state, job)
    domain = job.pool.domain
    if job.processors > domain.free:
        raise StateError(f"job {job.id} needs {job.processors} processors, {domain.free} are free")
    if domain.flat:
        _take(state, job, domain, frequency)
        return
    state.nodes.guard(job.request, placement, job.pool.name)
    if state.before_move:
        guard_still_there(state, job, placement, tier)
    end = state.now + job.expected_runtime
    broken = state.nodes.broken(placement, state.now, end, inside(state, job))
    if broken is not None:
        raise StateError(f"job {job.id} would break reservation {broken.id} on its nodes")
    job.frequency = frequency
    job.status = _STARTING
    # The domain is being looked at.
    with Unnoticed((domain,)):
        occupy(state, job, placement, state.now)


def _take(state: Facts, job: Job, domain: Domain, frequency: float | None) -> None:
    """The job takes its processors of a flat pool, if no reservation is broken by that."""
    if domain.reservations:
        guard_reservations(state, job, domain)
    if frequency is not None:
        job.frequency = frequency
    job.status = _STARTING
    job.start_time = now = state.now
    job.expected_end = end = now + job.expected_runtime
    processors = job.processors
    domain.free -= processors
    entry = (end, job.seq, processors, job)
    insort(domain.running, entry)
    job.entries = ((domain, entry),)
    if state.predict is not None:
        note_predicted(domain, entry)
    if state.watchers:
        tell_took(state, job)


def guard_reservations(state: Facts, job: Job, domain: Domain) -> None:
    """Raise :class:`StateError` if the job would break a reservation of its flat pool."""
    own = confining(state, job)
    end = state.now + job.expected_runtime
    if own is not None:
        if not own.start <= state.now < own.end:
            raise StateError(f"job {job.id} would run outside the time of reservation {own.id}")
        if job.processors > kept(state, domain, own):
            raise StateError(f"job {job.id} does not fit in what reservation {own.id} has left")
        if end > own.end and profile(state, domain).minimum(own.end, end) < job.processors:
            raise StateError(f"job {job.id} would run on after reservation {own.id} into another one")
        return
    allowed = inside(state, job)
    # What is reserved for other times takes nothing from it.
    met = [r for r in domain.reservations if r.start <= end and r.end > state.now and r.id != allowed]
    if met and profile(state, domain, without=(allowed,)).minimum(state.now, end) < job.processors:
        names = ", ".join(r.id for r in domain.reservations if r.start < end and r.end > state.now)
        raise StateError(f"job {job.id} would break reservation {names}")


def undo(state: Facts, job: Job) -> None:
    """Take back a :meth:`begin`; the job is in its queue again."""
    release(state, job)
    expect_again(state, job)
    job.domain.touch()
    if job.choices:
        _wait_in_each_again(state, job)
    elif job in job.domain.queue:
        job.status = _PENDING
    else:
        enqueue(state, job)


def _wait_in_each_again(state: Facts, job: Job) -> None:
    """A job of several pools does not start in the pool it faces: it waits in all its pools as before."""
    job.status = _PENDING
    faced = job.pool
    for choice in job.choices:
        job.pool = choice.pool
        if job.id not in job.domain.shared and not why_not_in(choice):
            enqueue(state, job)
    job.pool = faced
