"""PBS's queues and vnodes -> pools and nodes. Pure.

* A vnode is a node of ours. One without processors (the natural vnode of a host that has others) is
  left out; so is a vnode of which PBS does not know the size yet.
* A pool is an execution queue with the vnodes that its jobs may run on: the vnodes with the attribute
  ``queue`` of its name if there are any, else the vnodes without the attribute that have what the queue's
  ``default_chunk`` asks for (``Qlist``). Queues that share vnodes with a managed one are closed pools: the
  queues of reservations (``R157``), too, on the vnodes that say that they belong to the reservation.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from headway.model import NodeDescription, PoolDescription
from headway_adapters.pbs import values
from headway_adapters.pbs.documents import JobRecord, NodeRecord
from headway_adapters.polling.snapshot import SnapshotJob

#: States of a vnode that leave it usable; which jobs are on it is counted from the jobs.
_USABLE = frozenset({"free", "job-busy", "job-exclusive", "job-sharing", "excl", "share"})
#: States of a vnode that takes no new jobs, with the reason that we give.
_UNUSABLE: dict[str, str] = {
    "offline": "offline",
    "down": "down",
    "state-unknown": "not responding",
    "unknown": "not responding",
    "unresolvable": "not responding",
    "stale": "no longer reported by its host",
    "busy": "overloaded",
    "reserve": "reserved",
    "resv-exclusive": "reserved",
    "maintenance": "in maintenance: a job was suspended by an administrator",
    "initializing": "starting up",
    "provisioning": "being provisioned",
    "wait-provisioning": "being provisioned",
    "sleep": "asleep",
}
#: Resources of a vnode that have fields of their own, or are its names.
_NOT_COUNTED = frozenset({"ncpus", "mem", "host", "vnode"})
#: The queues that PBS makes for reservations; they come and go.
_OF_RESERVATION = re.compile(r"[RSM][0-9]+")


@dataclass(frozen=True)
class Queue:
    """An execution queue, as far as we need it."""

    name: str
    #: Seconds; 0: no limit.
    max_walltime: float = 0.0
    default_walltime: float | None = None
    #: PBS's own scheduler starts jobs of it.
    open: bool = True
    #: Features that its default chunk asks for.
    features: tuple[str, ...] = ()
    #: Where PBS's scheduler goes queue by queue (``by_queue``, its default), a higher one comes first.
    priority: int = 0

    @property
    def of_reservation(self) -> bool:
        """PBS made it for a reservation."""
        return _OF_RESERVATION.fullmatch(self.name) is not None


@dataclass(frozen=True)
class Site:
    """What the reader must know about the cluster's configuration and ours."""

    managed: tuple[str, ...]
    array_limit: int = 1000
    unlimited_walltime: float = 365 * 86400.0
    #: Seconds by which times in listings are ahead of UTC.
    zone: float = 0.0
    #: PBS's own scheduler runs: the managed queues are stopped to keep them from it, and not closed.
    beside_scheduler: bool = False
    #: What is counted for the whole server (:mod:`headway_adapters.pbs.licences`).
    licences: frozenset[str] = frozenset()
    #: The resources by whose values vnodes are grouped (:mod:`headway_adapters.pbs.placement_sets`).
    group_keys: tuple[str, ...] = ()
    #: Attributes of jobs that the configuration names, and that users can say in the variable HEADWAY.
    words: frozenset[str] = frozenset()


@dataclass
class Nodes:
    """All vnodes of a listing that have processors."""

    nodes: dict[str, NodeDescription] = field(default_factory=dict)
    power: dict[str, str] = field(default_factory=dict)
    #: Vnode -> its host.
    hosts: dict[str, str] = field(default_factory=dict)
    #: Host -> its vnodes.
    vnodes: dict[str, list[str]] = field(default_factory=dict)
    #: Vnodes that a job gets whole unless it asks to share, and vnodes that every job gets whole.
    default_whole: set[str] = field(default_factory=set)
    always_whole: set[str] = field(default_factory=set)
    #: Reservation -> the vnodes that say that they belong to it.
    reserved: dict[str, set[str]] = field(default_factory=dict)
    #: Resources that some vnode offers an amount of.
    counted: set[str] = field(default_factory=set)

    def at_host(self, host: str) -> list[str]:
        """A host's vnodes; PBS takes its short name as well."""
        found = self.vnodes.get(host)
        if found is None:
            found = next((v for name, v in self.vnodes.items() if name.partition(".")[0] == host), [])
        return found


# ---------------------------------------------------------------------- queues


def read_queues(objects: Mapping[str, Mapping[str, Any]]) -> dict[str, Queue]:
    """Execution queues of ``qstat -Q -f``."""
    found: dict[str, Queue] = {}
    for name, record in objects.items():
        if not values.text(record.get("queue_type")).startswith(("E", "e")):
            continue
        longest = mapping(record.get("resources_max")).get("walltime")
        default = mapping(record.get("resources_default")).get("walltime")
        chunk = mapping(record.get("default_chunk"))
        features = tuple(
            feature(key, values.text(value))
            for key, value in sorted(chunk.items())
            if key not in _NOT_COUNTED and values.size(value) is None
        )
        found[name] = Queue(
            name=name,
            max_walltime=values.duration(longest) or 0.0,
            default_walltime=values.duration(default) if default is not None else None,
            open=values.truth(record.get("started"), True),
            features=features,
            priority=values.integer(record.get("Priority")),
        )
    return found


def queues_named(jobs: Mapping[str, JobRecord], nodes: Mapping[str, NodeRecord]) -> set[str]:
    """The queues that jobs are in and that vnodes are bound to."""
    named = {values.text(record.queue) for records in (jobs, nodes) for record in records.values()}
    reservations = (one for record in nodes.values() for one in values.text(record.resv).split(","))
    return (named | {one.strip().partition(".")[0] for one in reservations}) - {""}


def mapping(value: Any) -> Mapping[str, Any]:
    """A map, or an empty one for what is none."""
    return value if isinstance(value, Mapping) else {}


def feature(name: str, value: str) -> str:
    """What a vnode has, as a feature of a node."""
    return f"{name}={value}" if value else name


# ---------------------------------------------------------------------- vnodes


def read_nodes(records: Mapping[str, NodeRecord], queues: Mapping[str, Queue], notes: set[str]) -> Nodes:
    """``pbsnodes``: all vnodes with processors, each with the queues that it serves."""
    found = Nodes()
    bound = {values.text(record.queue) for record in records.values()} - {""}
    general = [queue for name, queue in queues.items() if name not in bound and not queue.of_reservation]
    for name, record in records.items():
        available = mapping(record.resources_available)
        status = _status(record.status)
        processors = values.integer(available.get("ncpus"), values.integer(record.np))
        if processors < 1:
            continue
        memory = values.size(available.get("mem", status.get("physmem", 0))) or 0
        gres, features = _offers(record, available, found)
        features += [one for one in values.text(record.properties).split(",") if one]
        own = values.text(record.queue)
        serves = [q.name for q in general if set(q.features) <= set(features)]
        if own:
            serves = [own] if own in queues else []
        reserved = [full for one in values.text(record.resv).split(",") if (full := one.strip())]
        serves += [queue for full in reserved if (queue := full.partition(".")[0]) in queues]
        usable, reason = _usable(name, record, notes)
        found.nodes[name] = NodeDescription(
            name=name,
            processors=processors,
            memory=memory,
            gres=tuple(gres),
            features=tuple(features),
            pools=tuple(serves),
            available=usable,
            reason=reason,
        )
        host = values.text(available.get("host")) or values.text(record.Mom) or name
        found.hosts[name] = host
        found.vnodes.setdefault(host, []).append(name)
        for reservation in reserved:
            found.reserved.setdefault(reservation, set()).add(name)
        states = values.text(record.state)
        if "sleep" in states:
            found.power[name] = "asleep"
        sharing = values.text(record.sharing)
        if sharing.startswith("force_excl"):
            found.always_whole.add(name)
        elif sharing.startswith("default_excl"):
            found.default_whole.add(name)
    for host, vnodes in found.vnodes.items():
        if len(vnodes) > 1:
            for name in vnodes:
                found.nodes[name] = msgspec.structs.replace(found.nodes[name], host=host)
    return found


def _status(value: Any) -> Mapping[str, str]:
    """Torque's status: ``rectime=1,physmem=4kb,...``."""
    return dict(item.partition("=")[::2] for item in values.text(value).split(",") if "=" in item)


def _offers(
    record: NodeRecord, available: Mapping[str, Any], found: Nodes
) -> tuple[list[tuple[str, int]], list[str]]:
    """What a vnode gives out by amount, and what it has."""
    gres: list[tuple[str, int]] = []
    features: list[str] = []
    for resource, value in sorted(available.items()):
        if resource in _NOT_COUNTED:
            continue
        amount = values.size(value)
        if amount is None:
            features += [feature(resource, one) for one in values.text(value).split(",") if one]
        elif amount:
            gres.append((resource, amount))
    if values.integer(record.gpus):
        gres.append(("gpus", values.integer(record.gpus)))
    found.counted.update(resource for resource, _ in gres)
    return gres, features


def _usable(name: str, record: NodeRecord, notes: set[str]) -> tuple[bool, str]:
    reasons = []
    for word in values.text(record.state).replace("<various>", "").split(","):
        word = word.strip()
        if not word or word in _USABLE:
            continue
        if word not in _UNUSABLE:
            notes.add(f"vnode state {word!r} is not known; such vnodes are not used")
        reasons.append(_UNUSABLE.get(word, word))
    if not values.text(record.state).strip():
        return False, "PBS does not say its state"
    assigned = mapping(record.resources_assigned)
    whole = "job-exclusive" in values.text(record.state) and record.resources_available is not None
    if whole and not values.integer(assigned.get("ncpus")):
        reasons.append("a job on another vnode has the whole host")
    comment = values.text(record.comment) or values.text(record.note)
    if reasons and comment:
        reasons.append(comment)
    return not reasons, "; ".join(reasons)


# ---------------------------------------------------------------------- pools


def pools(queues: Mapping[str, Queue], nodes: Nodes, site: Site) -> dict[str, PoolDescription]:
    """The managed queues and, closed, the queues that share vnodes with them."""
    managed = site.managed
    shared = {pool for node in nodes.nodes.values() if set(node.pools) & set(managed) for pool in node.pools}
    return {
        name: PoolDescription(
            name=name, max_walltime=queue.max_walltime,
            open=name in managed and (queue.open or site.beside_scheduler),
            priority_tier=queue.priority,
        )
        for name, queue in queues.items()
        if name in shared or name in managed
    }  # fmt: skip


def pools_of(jobs: Iterable[SnapshotJob], beside: Container[str]) -> dict[str, PoolDescription]:
    """Closed pools of jobs whose queue is not ``beside``: they are on our vnodes, wherever they came from."""
    return {
        job.job.pool: PoolDescription(name=job.job.pool, open=False)
        for job in jobs
        if job.job.pool not in beside
    }
