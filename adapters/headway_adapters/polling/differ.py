"""Two snapshots -> the events between them. Pure; shared by all adapters.

What happened between two looks is told as it must have happened: a job that appears as ended
was submitted, started and ended; one whose start time moved was requeued in between. Times are
the times that the batch system states, never later than the snapshot. A job that is missing without
a word about its end has "vanished": success is never assumed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec

from headway import events as ev
from headway.adapter.migration import ON_NODES
from headway.model import JobDescription
from headway.model.numbering import number
from headway_adapters.polling.snapshot import Snapshot, SnapshotJob


def diff(old: Snapshot | None, new: Snapshot) -> Sequence[ev.Event]:
    """The events from ``old`` to ``new``, in the order of :func:`headway.events.in_order`.

    ``old`` is None for the first look: then every job is reported and every node that is not on, while
    pools, nodes and reservations are not (``describe`` gives them, but knows no power states).
    """
    events = diff_jobs(old, new)
    if old is not None:
        events += diff_pools(old, new)
        events += diff_nodes(old, new)
        events += diff_reservations(old, new)
    else:
        events += diff_nodes(replace(new, power={}), new)
    return ev.in_order(events)


def diff_jobs(old: Snapshot | None, new: Snapshot) -> list[ev.Event]:
    """What happened to jobs (not yet in order), in the order of their numbers: what happens at one moment is
    told in that order, however the batch system lists its jobs."""
    events: list[ev.Event] = []
    before = {} if old is None else old.jobs
    touched = [job_id for job_id, job in new.jobs.items() if before.get(job_id) is not job]
    for job_id in sorted(touched, key=number):
        job, known = new.jobs[job_id], before.get(job_id)
        if known is None:
            _appeared(job, new.time, events)
        elif known.state != "ended":
            _changed(known, job, new.time, events)
        elif job.state != "ended":
            # It was over and is not: requeued after its end, or the batch system reused its number.
            _appeared(job, new.time, events)
    gone = [job_id for job_id, known in before.items() if known.state != "ended" and job_id not in new.jobs]
    for job_id in sorted(gone, key=number):
        events.append(
            ev.JobEnded(
                time=new.time,
                job_id=job_id,
                outcome="vanished",
                reason="the batch system no longer lists the job and does not say how it ended",
            )
        )
    return events


def _appeared(job: SnapshotJob, now: float, events: list[ev.Event]) -> None:
    description = job.job
    why = job.reason if description.held and job.state == "pending" else ""
    events.append(ev.JobSubmitted(time=min(description.submit_time, now), job=description, reason=why))
    if job.state == "pending":
        if job.releasing:
            events.append(
                ev.JobReleasing(time=now, job_id=description.id, placement=job.pinned, pool=job.pool)
            )
        return
    if job.state in ON_NODES or job.placement:
        _start(job, now, events)
    if job.state != "ended" and job.paused and job.start_time is not None:
        # As long as it was, at once after its start: the moment is unknown.
        events.append(ev.JobSuspended(time=job.start_time, job_id=description.id))
        events.append(ev.JobResumed(time=min(job.start_time + job.paused, now), job_id=description.id))
    if job.state == "suspended":
        _suspended(job, now, events)
    elif job.state == "ended":
        _end(job, now, events)
    if job.leaving:
        events.append(ev.JobLeaving(time=now, job_id=description.id))


def _changed(old: SnapshotJob, new: SnapshotJob, now: float, events: list[ev.Event]) -> None:
    job_id = new.job.id
    ran, runs = old.state in ON_NODES, new.state in ON_NODES
    again = new.restarts > old.restarts or (old.leaving and runs) or _moved(old, new)
    if new.leaving:
        # It was sent back to the queue, where it will be once its nodes are free of it.
        again = False
    if ran and (new.state == "pending" or (again and (runs or new.placement))):
        at = now if new.state == "pending" or new.start_time is None else min(new.start_time, now)
        events.append(ev.JobRequeued(time=at, job_id=job_id, reason=new.reason))
        ran = False
    _description_changed(old, new, ran, now, events)
    if runs and not ran:
        _start(new, now, events)
        if new.state == "suspended":
            _suspended(new, now, events)
    elif runs:
        _went_on(old, new, now, events)
    elif new.state == "ended":
        if not ran and new.placement:
            _start(new, now, events)
        _end(new, now, events)
    if new.leaving and not old.leaving:
        events.append(ev.JobLeaving(time=now, job_id=job_id))


def _went_on(old: SnapshotJob, new: SnapshotJob, now: float, events: list[ev.Event]) -> None:
    """The tier, the nodes and the suspension of a job whose execution goes on."""
    job_id = new.job.id
    if new.tier != old.tier:
        events.append(ev.JobTierChanged(time=now, job_id=job_id, tier=new.tier))
    if new.placement != old.placement and new.placement:
        events.append(ev.JobMigrated(time=now, job_id=job_id, placement=new.placement))
    if new.state == "suspended" and old.state == "suspended" and _again(old, new):
        # Between two looks it ran.
        events.append(ev.JobResumed(time=min(new.suspended_since or now, now), job_id=job_id))
        _suspended(new, now, events)
    elif new.state == "suspended" and old.state != "suspended":
        _suspended(new, now, events)
    elif old.state == "suspended" and new.state != "suspended":
        events.append(ev.JobResumed(time=now, job_id=job_id))


def _again(old: SnapshotJob, new: SnapshotJob) -> bool:
    """Whether a job is suspended since another moment than before."""
    return (
        None not in (old.suspended_since, new.suspended_since) and old.suspended_since != new.suspended_since
    )


def _suspended(job: SnapshotJob, now: float, events: list[ev.Event]) -> None:
    at = now if job.suspended_since is None else min(job.suspended_since, now)
    events.append(ev.JobSuspended(time=at, job_id=job.job.id))


def _moved(old: SnapshotJob, new: SnapshotJob) -> bool:
    """Whether a running job is another execution than before.

    A job that was still starting may get its true start time once its nodes are ready; that is
    the same execution.
    """
    if old.state not in ("running", "suspended") or old.start_time is None or new.start_time is None:
        return False
    return new.state != "pending" and abs(new.start_time - old.start_time) >= 1.0


def _description_changed(
    old: SnapshotJob, new: SnapshotJob, ran: bool, now: float, events: list[ev.Event]
) -> None:
    """Holds, and a changed description.

    When a job starts, batch systems show what it got in the place of what it asked for, and when it leaves,
    the nodes that are not free of it yet; that is no change of the request, so only the rest (such as the
    limit) is compared then.
    """
    before, after = old.job, new.job
    if new.state == "ended":
        # What it said before it ended, and nothing else of what the batch system shows of it now.
        said = _noted(before, after)
        if said != before.attributes:
            # Before its end, which comes first of what happens at one moment.
            end = now if new.end_time is None else min(new.end_time, now)
            at = math.nextafter(end, -math.inf)
            events.append(ev.JobChanged(time=at, job=msgspec.structs.replace(before, attributes=said)))
        return
    if new.state == "pending" and old.state == "pending" and before.held != after.held:
        if after.held:
            events.append(ev.JobHeld(time=now, job_id=after.id, reason=new.reason))
        else:
            events.append(ev.JobReleased(time=now, job_id=after.id))
    elif new.state == "pending" and after.held and (old.held_by, old.reason) != (new.held_by, new.reason):
        events.append(ev.JobHeld(time=now, job_id=after.id, reason=new.reason))
    keep = {
        "held": before.held if new.state == "pending" and old.state == "pending" else after.held,
        "submit_time": min(before.submit_time, after.submit_time),
        "begin_time": after.begin_time,
    }
    if new.state != "pending" and (new.leaving or not ran):
        request = msgspec.structs.replace(before.request, walltime=after.request.walltime)
        after = msgspec.structs.replace(
            after, request=request, held=before.held, dependencies=before.dependencies,
            any_dependency=before.any_dependency, submit_time=keep["submit_time"], begin_time=None,
            reservation=after.reservation, attributes=_noted(before, after),
        )  # fmt: skip
        if _essence(before, now, None) != _essence(after, now, None):
            events.append(ev.JobChanged(time=now, job=after))
        return
    if _essence(before, now, after.held) != _essence(after, now, after.held):
        after = msgspec.structs.replace(after, submit_time=keep["submit_time"])
        events.append(ev.JobChanged(time=now, job=after))


def _noted(before: JobDescription, after: JobDescription) -> dict[str, Any] | None:
    """The attributes that a job had, with the notes that it has now."""
    notes = (after.attributes or {}).get("notes")
    return before.attributes if notes is None else {**(before.attributes or {}), "notes": notes}


def alike(one: JobDescription, other: JobDescription, now: float) -> bool:
    """Whether two descriptions of a waiting job differ in nothing but what changes by itself."""
    return _essence(one, now, None) == _essence(other, now, None)


def _essence(job: JobDescription, now: float, held: bool | None) -> JobDescription:
    """A description without what changes by itself: times that passed, holds (events of their own)."""
    begin = job.begin_time if job.begin_time is not None and job.begin_time > now else None
    return msgspec.structs.replace(job, submit_time=0.0, begin_time=begin, held=bool(held))


def _start(job: SnapshotJob, now: float, events: list[ev.Event]) -> None:
    at = now if job.start_time is None else min(job.start_time, now)
    events.append(ev.JobStarted(time=at, job_id=job.job.id, placement=job.placement, tier=job.tier))


def _end(job: SnapshotJob, now: float, events: list[ev.Event]) -> None:
    events.append(
        ev.JobEnded(
            time=now if job.end_time is None else min(job.end_time, now),
            job_id=job.job.id,
            outcome=job.outcome or "vanished",
            reason=job.reason,
            exit_code=job.exit_code,
        )
    )


def diff_pools(old: Snapshot, new: Snapshot) -> list[ev.Event]:
    """What happened to pools (not yet in order). One that is gone is closed: it may come back."""
    events: list[ev.Event] = []
    for name, pool in new.pools.items():
        if old.pools.get(name) != pool:
            events.append(ev.PoolChanged(time=new.time, pool=pool))
    for name, known in old.pools.items():
        if name not in new.pools and known.open:
            closed = msgspec.structs.replace(known, open=False)
            events.append(ev.PoolChanged(time=new.time, pool=closed))
    return events


def diff_nodes(old: Snapshot, new: Snapshot) -> list[ev.Event]:
    """What happened to nodes (not yet in order)."""
    events: list[ev.Event] = []
    for name, node in new.nodes.items():
        known = old.nodes.get(name)
        if known == node:
            continue
        if known is not None and known.available and not node.available:
            events.append(ev.NodeDown(time=new.time, node=name, reason=node.reason))
            known = msgspec.structs.replace(known, available=False)
        if known is None or msgspec.structs.replace(known, reason=node.reason) != node:
            events.append(ev.NodeUp(time=new.time, node=node))
    for name in old.nodes:
        if name not in new.nodes:
            events.append(ev.NodeDown(time=new.time, node=name, reason="no longer listed"))
    for name, power in new.power.items():
        if old.power.get(name, "on") != power:
            events.append(ev.NodePowerChanged(time=new.time, node=name, power=power))
    for name in old.power:
        if name not in new.power and old.power[name] != "on" and name in new.nodes:
            events.append(ev.NodePowerChanged(time=new.time, node=name, power="on"))
    return events


def diff_reservations(old: Snapshot, new: Snapshot) -> list[ev.Event]:
    """What happened to reservations (not yet in order)."""
    events: list[ev.Event] = []
    for name, reservation in new.reservations.items():
        known = old.reservations.get(name)
        if known != reservation:
            events.append(ev.ReservationMade(time=new.time, reservation=reservation))
        begun = known is not None and known.start <= old.time
        if reservation.start <= new.time and not begun:
            # Told with the making when it was made and began between two looks: after it, then.
            at = reservation.start if known is not None else new.time
            events.append(ev.ReservationStarted(time=min(at, new.time), reservation_id=name))
    for name, known in old.reservations.items():
        if name not in new.reservations:
            at = known.end if old.time < known.end <= new.time else new.time
            events.append(ev.ReservationEnded(time=at, reservation_id=name))
    return events
