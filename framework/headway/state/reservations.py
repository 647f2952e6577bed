"""Reservations: what they keep of each pool, for which jobs, and what that leaves free over time."""

from __future__ import annotations

from bisect import insort
from collections.abc import Collection, Sequence

from headway import events as ev
from headway.model import Reservation
from headway.resources.profile import Profile, next_after
from headway.state.belonging import inside
from headway.state.facts import Facts
from headway.state.pool_share import entries_in, free_in
from headway.state.queues import leave_queue
from headway.state.records import Domain, PoolState, RunningEntry, Status
from headway.state.waiting import queue_or_wait
from headway.state.wakeups import wake_at

_PENDING = Status.PENDING
_WAITING = Status.WAITING


def profile(state: Facts, domain: Domain, *, without: Collection[str] = ()) -> Profile:
    """Free processors of ``domain`` over time: now, the expected ends, the reservations.

    ``without`` names reservations that are left out (for jobs that may use them).
    """
    return _profile(state, domain, domain.free, domain.running, domain.pool_names, without)


def pool_profile(state: Facts, pool: PoolState, *, without: Collection[str] = ()) -> Profile:
    """As :func:`profile`, of the processors of one pool."""
    free, entries = free_in(state, pool), entries_in(state, pool)
    return _profile(state, pool.domain, free, entries, (pool.name,), without)


def _profile(
    state: Facts,
    domain: Domain,
    free: int,
    running: Sequence[RunningEntry],
    pools: Collection[str],
    without: Collection[str],
) -> Profile:
    """What these pools of the domain have free, of which ``running`` have the rest."""
    now = state.now
    soonest = next_after(now)
    profile = Profile.of_releases(now, free, ((e[0], e[2]) for e in running))
    kept = [r for r in domain.reservations if r.end > now and r.id not in without]
    if not kept:
        return profile
    spans: list[tuple[float, float, int]] = []
    begin_end: dict[str, tuple[float, float]] = {}
    for reservation in kept:
        begin_end[reservation.id] = start, end = max(reservation.start, now), reservation.end
        spans.append((start, end, _size(state, domain, reservation, pools)))
    for until, _, processors, job in running:
        span = begin_end.get(inside(state, job))
        if span is not None:
            # It runs on what is reserved, and what it leaves is kept again.
            spans.append((span[0], min(max(until, soonest), span[1]), -processors))
    profile.reserve_all(spans)
    return profile


def kept(state: Facts, domain: Domain, reservation: Reservation) -> int:
    """Processors of ``domain`` that a reservation still keeps from other jobs."""
    used = sum(e[2] for e in domain.running if inside(state, e[3]) == reservation.id)
    return max(size(state, domain, reservation) - used, 0)


def size(state: Facts, domain: Domain, reservation: Reservation) -> int:
    """Processors of ``domain`` that a reservation is made of."""
    return _size(state, domain, reservation, domain.pool_names)


def _size(state: Facts, domain: Domain, reservation: Reservation, pools: Collection[str]) -> int:
    if domain.flat:
        return reservation.processors
    return sum(
        state.nodes.descriptions[name].processors
        for name in reservation.nodes
        if state.nodes.any_in(pools, (name,))
    )


def put_reservation(state: Facts, reservation: Reservation) -> None:
    """A reservation exists from now on: domains and nodes keep it, and jobs that wait for it are
    looked at."""
    state.reservations[reservation.id] = reservation
    for domain in state.domains.values():
        keep_from(state, domain, reservation)
    if reservation.nodes:
        state.nodes.set_reservations(state.reservations.values())
    for job in state.jobs.values():
        if job.description.reservation == reservation.id and job.status is _WAITING:
            queue_or_wait(state, job)


def keep_from(state: Facts, domain: Domain, reservation: Reservation) -> None:
    """Take a reservation from a domain if it is made of something there."""
    mine = (
        reservation.pool == domain.name or (not reservation.pool and len(state.pools) == 1)
        if domain.flat
        else state.nodes.any_in(domain.pool_names, reservation.nodes)
    )
    if mine:
        insort(domain.reservations, reservation, key=lambda r: (r.start, r.id))
    if mine or reservation.licences:
        # Its licences are no pool's: jobs elsewhere may have to wait for them, or get them back.
        domain.touch()
        for time in (reservation.start, reservation.end):
            if time > state.now:
                wake_at(state, time, domain.pools[0])


def drop_reservation(state: Facts, reservation_id: str) -> None:
    """A reservation is gone; jobs that asked for it wait."""
    gone = state.reservations.pop(reservation_id, None)
    if gone is None:
        return
    for domain in state.domains.values():
        if gone.licences:
            domain.touch()
        if gone in domain.reservations:
            domain.reservations.remove(gone)
            domain.touch()
    for job in state.jobs.values():
        waits = job.status is _PENDING or (job.status is _WAITING and job.obstacle is not None)
        if waits and job.description.reservation == reservation_id:
            leave_queue(state, job)
            queue_or_wait(state, job)
    if gone.nodes:
        state.nodes.set_reservations(state.reservations.values())


def reservation_made(state: Facts, event: ev.ReservationMade) -> None:
    """A reservation exists or changed, whatever was foreseen about it."""
    state.foreseen.pop(event.reservation.id, None)
    drop_reservation(state, event.reservation.id)
    put_reservation(state, event.reservation)


def reservation_started(state: Facts, event: ev.ReservationStarted) -> None:
    """Its time began: its domains are looked at."""
    if event.reservation_id not in state.reservations:
        state.anomalies.append(f"reservation {event.reservation_id} began but is not known; ignored")
    for domain in state.domains.values():
        if any(r.id == event.reservation_id for r in domain.reservations):
            domain.touch()


def reservation_ended(state: Facts, event: ev.ReservationEnded) -> None:
    """It is over or was removed."""
    if event.reservation_id not in state.reservations:
        state.anomalies.append(f"reservation {event.reservation_id} ended but is not known; ignored")
    state.foreseen.pop(event.reservation_id, None)
    drop_reservation(state, event.reservation_id)
