"""Heterogeneous jobs (``sbatch -n1 : -n2``): their components as one job of several parts.

Slurm lists each component as a job, of which the first, the leader, has the number of the whole, and starts
them together: its backfill scheduler looks for nodes for all of them, on nodes of their own, and starts all
or none. So headway sees one job, with the leader's number.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import msgspec

from headway.adapter.migration import ON_NODES
from headway.model import Placement
from headway.model.parts import together
from headway_adapters.polling.snapshot import SnapshotJob
from headway_adapters.slurm.reader.detail import Detail


@dataclass(frozen=True)
class Component:
    """One component, read as if it were a job of its own."""

    #: Its own number in Slurm.
    record: str
    offset: int
    job: SnapshotJob
    #: None unless it waits.
    detail: Detail | None


def combined(
    leader: str, components: Sequence[Component], *, expected: int, never: str
) -> tuple[SnapshotJob, Detail | None]:
    """The job of all ``components`` that are listed, and its detail if it waits.

    ``expected``: how many components it has, 0 if Slurm does not say. ``never``: why this Slurm starts no
    such jobs, "" if it does.
    """
    parts = sorted(components, key=lambda part: part.offset)
    first = parts[0].job
    on_nodes = [part for part in parts if part.job.state in ON_NODES]
    if on_nodes:
        return _running(leader, parts, on_nodes), None
    pending = [part for part in parts if part.job.state == "pending"]
    if not pending:
        request = together([part.job.job.request for part in parts])
        ends = [part.job.end_time for part in parts if part.job.end_time is not None]
        ended = msgspec.structs.replace(
            first,
            job=msgspec.structs.replace(first.job, id=leader, request=request),
            placement=_joined(part.job.placement for part in parts),
            end_time=max(ends, default=None),
        )
        return ended, None
    return _pending(leader, parts, pending, expected, never)


def _running(leader: str, parts: Sequence[Component], on_nodes: Sequence[Component]) -> SnapshotJob:
    """What is on nodes counts, and where a component is sent to that is not there yet."""
    states = {part.job.state for part in on_nodes}
    state = next(state for state in ON_NODES if state in states)
    coming = [part for part in parts if part in on_nodes or part.job.releasing]
    first = on_nodes[0].job
    return msgspec.structs.replace(
        first,
        job=msgspec.structs.replace(
            first.job, id=leader, request=together([part.job.job.request for part in coming])
        ),
        state=state,
        placement=_joined(part.job.placement or part.job.pinned for part in coming),
        restarts=parts[0].job.restarts,
    )


def _pending(
    leader: str, parts: Sequence[Component], pending: Sequence[Component], expected: int, never: str
) -> tuple[SnapshotJob, Detail]:
    jobs = [part.job for part in pending]
    details = [part.detail for part in pending if part.detail is not None]
    first = jobs[0]
    blocked, held_by = "", first.held_by
    for part in pending:
        if part.job.job.held:
            blocked, held_by = part.job.reason, part.job.held_by
            if part.offset:
                blocked = f"its component {part.offset}: {blocked}"
            break
    else:
        blocked = never or _unfit(parts, pending, expected)
        held_by = "system" if blocked else held_by
    begins = [job.job.begin_time for job in jobs if job.job.begin_time is not None]
    description = msgspec.structs.replace(
        first.job,
        id=leader,
        request=together([job.job.request for job in jobs]),
        held=bool(blocked),
        begin_time=max(begins, default=None),
        dependencies=tuple(dict.fromkeys(each for job in jobs for each in job.job.dependencies)),
        any_dependency=any(job.job.any_dependency for job in jobs),
    )
    combined_job = msgspec.structs.replace(
        first,
        job=description,
        held_by=held_by,
        pinned=_joined(job.pinned for job in jobs),
        releasing=all(job.releasing for job in jobs),
        reason=blocked or first.reason,
    )
    lead = details[0]
    return combined_job, replace(
        lead,
        held=all(detail.held for detail in details),
        from_filter=any(detail.from_filter for detail in details),
        comment_free=all(detail.comment_free for detail in details),
        ours=any(detail.ours for detail in details),
        unmarked=any(detail.unmarked for detail in details),
        refused=any(detail.refused for detail in details),
        dependency=",".join(filter(None, (detail.dependency for detail in details))),
        unmet=any(detail.unmet for detail in details),
        pin=next((detail.pin for detail in details if detail.pin is not None), None),
        listed=next((detail.listed for detail in details if detail.listed), ()),
        record=leader,
        managed=all(detail.managed for detail in details),
        parts=tuple((part.record, detail) for part, detail in zip(pending, details, strict=True)),
    )


def _unfit(parts: Sequence[Component], pending: Sequence[Component], expected: int) -> str:
    """Why headway cannot start them together, "" if it can."""
    if len(pending) < max(expected, len(parts)) or pending[0].offset:
        return "a heterogeneous job of which Slurm lists only some components as waiting"
    pools = sorted({part.job.job.pool for part in pending})
    if len(pools) > 1:
        return (
            f"a heterogeneous job in several partitions ({', '.join(pools)}): headway starts such a job in "
            "a single partition"
        )
    if any(part.detail is not None and part.detail.listed for part in pending):
        return (
            "a heterogeneous job that names several partitions for a component: headway starts such a job "
            "in a single partition"
        )
    if len({part.job.job.reservation for part in pending}) > 1:
        return "a heterogeneous job whose components name different reservations"
    return ""


def _joined(placements: Iterable[Placement]) -> Placement:
    return tuple(pair for placement in placements for pair in placement)


def how_many(numbers: str) -> int:
    """``7-9,12`` -> 4; 0 for what is no such list."""
    total = 0
    for span in numbers.split(","):
        first, dash, last = span.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            return 0
        total += int(last) - int(first) + 1 if dash else 1
    return total
