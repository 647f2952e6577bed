"""LSF's hosts, queues and reservations -> nodes, pools and reservations. Pure; tested on recorded output.

A pool is a queue with the hosts that its HOSTS line names; a node is a host, a processor a slot.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from headway.model import NodeDescription, PoolDescription, Reservation
from headway_adapters.lsf import values
from headway_adapters.lsf.cluster_listing import Booking, HostState, Queue
from headway_adapters.lsf.documents import table
from headway_adapters.lsf.resreq import Host
from headway_adapters.lsf.shared import NOTHING, Shared

_USABLE_HOSTS = frozenset({"ok", "closed_Full", "closed_Excl"})
#: Host states in which new jobs are not started, and why.
_BAD_HOSTS: dict[str, str] = {
    "closed": "closed",
    "closed_Adm": "closed by the administrator",
    "closed_Busy": "over its load threshold",
    "closed_LIM": "its load is not known",
    "closed_Lock": "locked",
    "closed_Wind": "outside its dispatch window",
    "closed_EGO": "not given to LSF",
    "closed_RC": "given back by the resource connector",
    "closed_Power": "in power saving",
    "closed_cu_Excl": "in an exclusive compute unit",
    "unavail": "its daemons do not run",
    "unreach": "not reachable",
    "unlicensed": "not licensed",
}
_POWER: dict[str, str] = {"closed_Power": "asleep"}
#: Our reservations' names in LSF.
RESERVATION_PREFIX = "headway_"


@dataclass
class Nodes:
    """All hosts of a listing."""

    nodes: dict[str, NodeDescription] = field(default_factory=dict)
    power: dict[str, str] = field(default_factory=dict)
    #: Slots in use by LSF's own count.
    used: dict[str, int] = field(default_factory=dict)
    #: Queue -> its hosts.
    members: dict[str, tuple[str, ...]] = field(default_factory=dict)


def static_hosts(text: str) -> dict[str, Host]:
    """``lshosts -w``: what does not change of each host."""
    found = {}
    for row in table(text):
        name = row.get("HOST_NAME", "")
        named = row.get("RESOURCES", "").strip("()").split()
        known = {key: "" if value == "-" else value for key, value in row.items()}
        found[name] = Host(
            name=name,
            kind=known.get("type", ""),
            model=known.get("model", ""),
            processors=values.integer(known.get("ncpus", "")),
            memory=values.size(known.get("maxmem", "")),
            swap=values.size(known.get("maxswp", "")),
            resources=frozenset(named),
        )
    return found


def members(queue: Queue, hosts: Iterable[str], groups: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """The hosts of a queue. ``others`` and preferences (``host+2``) count like plain names."""
    every = tuple(hosts)
    chosen: list[str] = []
    removed: set[str] = set()
    for word in queue.hosts:
        name = word.partition("+")[0].rstrip("!/")
        if name.startswith("~"):
            name = name[1:].rstrip("/")
            removed.update(groups.get(name, (name,)))
        elif name in ("all", "others", "allremote"):
            chosen.extend(every if name != "allremote" else ())
        elif name != "none":
            chosen.extend(groups.get(name, (name,)))
    for name in tuple(chosen):
        if name in groups:
            chosen.extend(groups[name])
    if any(name == "all" for name in chosen):
        chosen = [*chosen, *every]
    known = frozenset(every)
    return tuple(dict.fromkeys(name for name in chosen if name in known and name not in removed))


def pool(queue: Queue, *, managed: bool) -> PoolDescription:
    """A queue as a pool; open while headway may start its jobs."""
    return PoolDescription(
        name=queue.name,
        max_walltime=queue.limit or 0.0,
        open=managed and not queue.window_closed,
        priority_tier=queue.priority,
    )


def read_nodes(
    hosts: Mapping[str, HostState],
    queues: Mapping[str, Queue],
    static: Mapping[str, Host],
    groups: Mapping[str, tuple[str, ...]],
    notes: set[str],
    *,
    power: bool = False,
    shared: Shared = NOTHING,
) -> Nodes:
    """Hosts as nodes, each with the queues that it belongs to.

    ``power``: headway may wake hosts, so one that sleeps is in order; else it is as good as down.
    """
    found = Nodes()
    belongs: dict[str, list[str]] = {}
    for queue in queues.values():
        found.members[queue.name] = members(queue, hosts, groups)
        for name in found.members[queue.name]:
            belongs.setdefault(name, []).append(queue.name)
    for name, host in hosts.items():
        known = static.get(name, Host(name))
        usable = host.status in _USABLE_HOSTS or (power and host.status in _POWER)
        reason = "" if usable else _BAD_HOSTS.get(host.status, "")
        if not usable and not reason:
            notes.add(f"unknown host state {host.status!r}; such a host gets no jobs")
            reason = host.status
        if reason and host.comment:
            reason = f"{reason}: {host.comment}"
        if host.status in _POWER:
            found.power[name] = _POWER[host.status]
        found.used[name] = host.used
        found.nodes[name] = NodeDescription(
            name=name,
            processors=host.slots or known.processors,
            memory=known.memory,
            gres=shared.at(name),
            features=tuple(sorted(known.resources)),
            pools=tuple(belongs.get(name, ())),
            available=usable,
            reason=reason,
        )
    return found


def read_reservations(
    bookings: Mapping[str, Booking], nodes: Mapping[str, NodeDescription]
) -> dict[str, Reservation]:
    """Advance reservations by our id: the name, without the prefix if headway made it.

    A reservation of some slots of a host is taken as one of the whole host.
    """
    found = {}
    for name, booking in bookings.items():
        kept = tuple(host for host in booking.hosts if host in nodes)
        if not kept:
            continue
        ours = name.startswith(RESERVATION_PREFIX)
        key = name[len(RESERVATION_PREFIX) :] if ours else name
        system = booking.kind == "sys" or booking.owner in ("-", "sys")
        found[key] = Reservation(
            id=key,
            start=booking.start,
            end=booking.end,
            nodes=kept,
            users=() if system or booking.kind == "group" else (booking.owner,),
            accounts=(booking.owner,) if booking.kind == "group" else (),
            ours=ours,
            reason="" if ours else booking.kind,
        )
    return found
