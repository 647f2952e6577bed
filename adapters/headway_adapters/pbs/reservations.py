"""``pbs_rstat -F``: PBS's reservations. Pure.

The listing has only the text form, and users write into it: line breaks of an account are printed as they
are, so one reservation's text can hold a whole record of another's. So a reservation has the vnodes
only that name it themselves (``resv`` of ``pbsnodes``); of a record what stands first counts; and an id that
occurs more than once is asked about alone, where its own record comes first.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

import msgspec

from headway.model import Reservation
from headway_adapters.pbs import select, values
from headway_adapters.polling.snapshot import SnapshotJob

#: Our reservations' names in PBS.
PREFIX = "headway_"
_HEAD = re.compile(r"Resv ID: (\S+)")
#: States in which a reservation has its vnodes: degraded when one of them is down, altered until PBS's
#: scheduler has said whether it may have other times.
_CONFIRMED = frozenset(
    {
        "RESV_CONFIRMED", "RESV_TIME_TO_RUN", "RESV_RUNNING", "RESV_DEGRADED", "RESV_IN_CONFLICT",
        "RESV_BEING_ALTERED",
    }
)  # fmt: skip

Records = dict[str, dict[str, str]]


def records(text: str) -> tuple[Records, frozenset[str]]:
    """Reservation -> its attributes; and the reservations that more than one record is about."""
    found: Records = {}
    twice: set[str] = set()
    record: dict[str, str] = {}
    for line in text.replace("\n\t", "").split("\n"):
        head = _HEAD.fullmatch(line.rstrip())
        if head is not None:
            record = {}
            if head.group(1) in found:
                twice.add(head.group(1))
            found.setdefault(head.group(1), record)
            continue
        key, equals, value = line.partition(" = ")
        if equals:
            record.setdefault(key.strip(), value.strip())
    return found, frozenset(twice)


def first(text: str) -> dict[str, str]:
    """The attributes of the first reservation, where one was asked for."""
    found, _ = records(text)
    return next(iter(found.values()), {})


def read(
    found: Records,
    zone: float,
    reserved: Mapping[str, Collection[str]],
    notes: set[str],
    *,
    owners: Collection[str],
) -> dict[str, tuple[str, Reservation]]:
    """Our id -> PBS's id and the reservation. Confirmed ones only: others have no vnodes.

    ``zone``: seconds by which times are ahead of UTC. ``reserved``: reservation -> vnodes that name it.
    ``owners``: the users that may have made headway's reservations; another user's reservation of such a name
    is not ours. A reservation of some processors of a vnode is taken as a reservation of the whole vnode.
    """
    made: dict[str, tuple[str, Reservation]] = {}
    for name, record in found.items():
        begin, end = values.when(record.get("reserve_start")), values.when(record.get("reserve_end"))
        if begin is None or end is None or not record.get("resv_nodes"):
            continue
        if record.get("reserve_state", "") not in _CONFIRMED:
            notes.add(f"reservation {name} is {record.get('reserve_state', '')} and is ignored")
            continue
        try:
            listed = [vnode for vnode, _ in select.parse_exec_vnode(record["resv_nodes"])]
        except ValueError as error:
            notes.add(f"reservation {name} is left out: {error}")
            continue
        vnodes = tuple(vnode for vnode in listed if vnode in reserved.get(name, ()))
        if not vnodes:
            notes.add(f"reservation {name} is left out: no vnode belongs to it")
            continue
        called = record.get("Reserve_Name", "")
        by = record.get("Reserve_Owner", "").partition("@")[0]
        ours = called.startswith(PREFIX) and by in owners
        key = called[len(PREFIX) :] if ours else name
        users = tuple(one.partition("@")[0] for one in record.get("Authorized_Users", "").split(",") if one)
        made[key] = (
            name,
            Reservation(
                id=key,
                start=begin - zone,
                end=end - zone,
                nodes=vnodes,
                users=tuple(one for one in users if not one.startswith("-")),
                ours=ours,
            ),
        )
    return made


def named(jobs: Mapping[str, SnapshotJob], ids: Mapping[str, str]) -> dict[str, SnapshotJob]:
    """The jobs, of which a job in the queue of a reservation names the reservation. ``ids``: as of
    :func:`read`."""
    of_queue = {name.partition(".")[0]: key for key, name in ids.items()}
    if not of_queue:
        return dict(jobs)
    return {
        name: job
        if job.job.pool not in of_queue
        else msgspec.structs.replace(
            job, job=msgspec.structs.replace(job.job, reservation=of_queue[job.job.pool])
        )
        for name, job in jobs.items()
    }
