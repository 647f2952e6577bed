"""Licences and whatever else is counted for the whole cluster and belongs to no node.

Each licence has a total, which may change at any time, and running jobs have some of it. Reservations may
keep some for their jobs. A job needs all that it asks for from its start until its end. The views decide
where it may start and what is kept for waiting jobs (:mod:`headway.view.licences`); the guard sees to it that
nothing is given twice.
"""

from __future__ import annotations

from collections.abc import Iterator

from headway import events as ev
from headway.errors import StateError
from headway.model import Reservation
from headway.resources.profile import Profile, next_after
from headway.state.belonging import inside
from headway.state.facts import Facts
from headway.state.licence_use import Licences
from headway.state.records import Job


def begin_counting(state: Facts) -> Licences:
    """The licences, counted from now on."""
    if state.licences is None:
        state.licences = Licences(dict(state.cluster.licences))
        state.watchers.append(state.licences)
        for job in state.running_jobs():
            state.licences.took(job)
    return state.licences


def keeping(state: Facts, name: str) -> Iterator[tuple[Reservation, int]]:
    """The reservations that are not over and keep some of it, with how much."""
    for reservation in state.reservations.values():
        if reservation.licences and reservation.end > state.now:
            amount = sum(n for licence, n in reservation.licences if licence == name)
            if amount:
                yield reservation, amount


def licence_profile(state: Facts, name: str, within: str = "") -> Profile:
    """How much of it is free over time, for a job in the reservation ``within`` ("": in none).

    Less than nothing where more is in use than there is.
    """
    counted, now = state.licences, state.now
    holders = counted.holders.get(name, {}) if counted is not None else {}
    total = counted.total.get(name, 0) if counted is not None else 0
    running = sorted((job.expected_end, job.seq, amount, job) for job, amount in holders.items())
    free = total - sum(holders.values())
    profile = Profile.of_releases(now, free, ((end, amount) for end, _, amount, _ in running))
    spans: list[tuple[float, float, int]] = []
    soonest = next_after(now)
    for reservation, amount in keeping(state, name):
        if reservation.id == within:
            continue
        start = max(reservation.start, now)
        spans.append((start, reservation.end, amount))
        left = amount
        for until, _, has, job in running:
            if inside(state, job) == reservation.id:
                # It has what is reserved, and what it leaves is kept again.
                taken = min(has, left)
                left -= taken
                spans.append((start, min(max(until, soonest), reservation.end), -taken))
    if spans:
        profile.reserve_all(spans)
    return profile


def lacking(state: Facts, job: Job) -> str:
    """Which licences a job cannot have from now until its expected end, as a sentence; "" if it can."""
    end, within = state.now + job.expected_runtime, inside(state, job)
    for name, amount in job.request.licences:
        free = max(licence_profile(state, name, within).minimum(state.now, end), 0)
        if free < amount:
            return f"job {job.id} needs {amount} of licence {name!r}, {free} are free"
    return ""


def guard_licences(state: Facts, job: Job) -> None:
    """Raise :class:`StateError` if the job cannot have its licences now."""
    if state.licences is not None and job.request.licences and (why := lacking(state, job)):
        raise StateError(why)


def licences_changed(state: Facts, event: ev.LicencesChanged) -> None:
    """There is more or less of something than before, or something new."""
    name, total = event.licence, event.total
    if total < 0:
        state.anomalies.append(f"licence {name!r}: expected an amount of at least 0, found {total}; ignored")
        return
    counted = begin_counting(state)
    if counted.total.get(name) == total:
        return
    counted.total[name] = total
    counted.changed = True
    if (used := counted.used(name)) > total:
        state.notices.append(
            f"licence {name!r}: {used} are in use and there are only {total}; no job starts with this "
            "licence until enough are free again"
        )
    for pool in state.pools.values():
        state.described.add(pool.name)
        pool.domain.touch()
