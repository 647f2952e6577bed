"""``scontrol -o show reservation`` -> reservations."""

from __future__ import annotations

from headway.errors import Failure
from headway.model import Reservation
from headway_adapters.slurm import values
from headway_adapters.slurm.reader.documents import node_names, records, timestamp
from headway_adapters.slurm.reader.licences import licences

#: Our reservations' names in Slurm.
RESERVATION_PREFIX = "headway_"


def read_reservations(text: str, notes: set[str], unread: set[str] | None = None) -> dict[str, Reservation]:
    """``scontrol -o show reservation``, by our id: the name, without the prefix if headway made it.

    A reservation of some cores of a node is taken as one of the whole node; one of neither nodes nor licences
    takes nothing from us and is left out. ``unread`` takes the ids of reservations that cannot be read.
    """
    found: dict[str, Reservation] = {}
    for record in records(text, "ReservationName"):
        name = record["ReservationName"]
        begin, end = timestamp(record.get("StartTime", "")), timestamp(record.get("EndTime", ""))
        ours = name.startswith(RESERVATION_PREFIX)
        key = name[len(RESERVATION_PREFIX) :] if ours else name
        try:
            nodes = node_names(record.get("Nodes", ""))
        except Failure as error:
            notes.add(f"reservation {name} stays as it was: {error}")
            if unread is not None:
                unread.add(key)
            continue
        wanted = values.text(record.get("Licenses", ""))
        kept = licences(wanted)
        if kept is None:
            notes.add(f"reservation {name}: its licences {wanted!r} cannot be read and are left out")
        if begin is None or end is None or not (nodes or kept):
            notes.add(f"reservation {name} names no nodes and no licences, or no time, and is left out")
            continue
        found[key] = Reservation(
            id=key,
            start=begin,
            end=end,
            pool=values.text(record.get("PartitionName", "")),
            nodes=nodes,
            licences=kept or (),
            users=tuple(n for n in values.names(record.get("Users")) if not n.startswith("-")),
            accounts=tuple(n for n in values.names(record.get("Accounts")) if not n.startswith("-")),
            ours=ours,
            reason="" if ours else values.text(record.get("Flags", "")),
        )
    return found
