"""One look at an LSF cluster: its commands run and read, and what the listing dropped asked for."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from headway.adapter.migration import ON_NODES
from headway.errors import Failure, UserError
from headway.model import PoolDescription, Reservation
from headway_adapters.lsf import cluster_listing, hosts, reader
from headway_adapters.lsf.arrays import ARRAYS, read_limits
from headway_adapters.lsf.client import LsfClient, is_silence
from headway_adapters.lsf.cluster_listing import HostState, Queue
from headway_adapters.lsf.detail import Detail
from headway_adapters.lsf.flavour import Flavour
from headway_adapters.lsf.jobs import JobsListing, known_fields
from headway_adapters.lsf.options import LsfOptions
from headway_adapters.lsf.power import PowerSaving
from headway_adapters.lsf.remembered import Remembered
from headway_adapters.lsf.requeues import Requeues
from headway_adapters.lsf.resreq import Host
from headway_adapters.lsf.shared import DYNAMIC, NONE, NOTHING, STATIC, Shared, shared
from headway_adapters.lsf.values import Calendar
from headway_adapters.polling import Look
from headway_adapters.polling.client import Unanswered
from headway_adapters.polling.licences import asked_for, for_ours
from headway_adapters.polling.snapshot import Snapshot, SnapshotJob
from headway_adapters.transport import Result

#: The host groups, and what is said where there is none.
_GROUPS = ("bmgroup", "-r", "-w")
_NO_GROUPS = re.compile("No (?:user/)?host group", re.IGNORECASE)
#: For ``bhosts -o ... -json``; the comment is why an administrator closed a host.
_HOST_FIELDS = ("host_name status max njobs comments", "host_name status max njobs")


@dataclass
class World:
    """What is learned about the cluster once."""

    name: str
    flavour: Flavour
    jobs: JobsListing
    #: Fields for ``bhosts -o ... -json``; "": hosts are read from text.
    host_fields: str
    static: dict[str, Host] = field(default_factory=dict)
    #: The host groups as LSF told them last: an administrator changes them while we run.
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class LsfLook(Look[Detail]):
    """The snapshot, and what the guard needs besides."""

    #: Slots that LSF counts as used on a host beyond the slots of the listed jobs.
    hidden: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class _Answers:
    """What LSF said at one look besides its jobs."""

    hosts: dict[str, HostState]
    queues: dict[str, Queue]
    shared: Shared
    #: Advance reservations; None where there are none.
    reservations: Result | None
    #: How many elements of arrays may run.
    limits: dict[str, int]


class Looking:
    """Looks at an LSF cluster. On the looking thread."""

    def __init__(
        self, client: LsfClient, options: LsfOptions, flavour: Callable[[], tuple[Flavour, str]],
        requeues: Requeues, saving: PowerSaving, *, words: Callable[[], frozenset[str]], log: Any,
        clock: Callable[[], float],
    ) -> None:  # fmt: skip
        """``flavour``: asks which LSF this is, and how the cluster is called. ``words``: attributes of jobs
        that users can say. ``clock``: absolute seconds."""
        self._client = client
        self._options = options
        self._ask_flavour = flavour
        self._requeues = requeues
        self._saving = saving
        self._words = words
        self._log = log
        self._clock = clock
        self.world: World | None = None
        self._remembered = Remembered()
        #: The shared resources as LSF told them last.
        self._shared = NOTHING

    # ------------------------------------------------------------------ learning

    def learn(self) -> World:
        """What does not change while we run. Raises :class:`Failure` when LSF does not answer."""
        flavour, cluster = self._ask_flavour()
        queues = self._queues()
        missing = [name for name in self._options.queues if name not in queues]
        if missing:
            known = ", ".join(sorted(queues)) or "none"
            raise UserError(f"cluster.options.queues: LSF has no queue {missing[0]!r}. Known: {known}.")
        sleeps = self._options.actuators is not None and self._options.actuators.power_down is not None
        if sleeps and not flavour.ibm:
            raise UserError(
                f"cluster.options.actuators.power_down: {flavour.title} closes a host without a comment, so "
                "headway could not distinguish a sleeping host from a broken host; power_down needs IBM "
                "Spectrum LSF"
            )
        jobs = JobsListing(self._client, known_fields(self._client, flavour))
        world = World(cluster, flavour, jobs, self._host_fields())
        self._learn_hosts(world)
        self.world = world
        return world

    def _queues(self) -> dict[str, Queue]:
        result = self._client.look([("bqueues", "-l")])[0]
        queues = cluster_listing.read_queues(result.text)
        if not queues:
            said = result.text.strip().splitlines()
            found = repr(said[0][:80]) if said else "nothing"
            raise Unanswered(f"bqueues -l: expected LSF's listing, found {found}")
        return queues

    def _host_fields(self) -> str:
        """The fields that ``bhosts -o ... -json`` knows here; "" where there is no such listing."""
        for fields in _HOST_FIELDS:
            result = self._client.run(("bhosts", "-o", fields, "-json"))
            if is_silence(result):
                raise Unanswered(f"bhosts: {result.complaint()}")
            if not result.ok:
                continue
            try:
                if cluster_listing.read_hosts_json(result.stdout):
                    return fields
            except Failure:
                continue
        return ""

    def _learn_hosts(self, world: World) -> None:
        """Types, CPUs and memory of the hosts."""
        world.static = hosts.static_hosts(self._client.look([("lshosts", "-w")])[0].text)

    # ------------------------------------------------------------------ looking

    def look(self, before: Snapshot | None) -> LsfLook:
        """As :meth:`headway_adapters.polling.system.BatchSystem.look`."""
        world = self.world or self.learn()
        notes: set[str] = set()
        now = self._clock()
        times = Calendar(now)
        listed = world.jobs.read(times, notes)
        rows, facts = listed.rows, listed.facts
        self._requeues.sort_out(
            rows, facts, before, now, lambda keys: self._client.endings(list(keys), times), notes
        )
        # After the jobs: a host that looks fuller than they make it is fuller.
        said = self._ask(world, with_arrays=any(row.array and row.stat == "PEND" for row in rows.values()),
                         notes=notes)  # fmt: skip
        nodes = self._nodes(said, world, notes)
        site = reader.Site(
            self._options.queues, self._options.unlimited_walltime, fills=not world.flavour.ibm,
            words=self._words(),
        )  # fmt: skip
        found = reader.read_jobs(
            rows, facts, now, site, said.queues, nodes, world.static, world.groups, notes, before,
            said.shared, said.limits, self._remembered,
        )  # fmt: skip
        pools = self._pools(said.queues, nodes)
        mine = {name: node for name, node in nodes.nodes.items() if not pools.keys().isdisjoint(node.pools)}
        jobs = {key: job for key, job in found.jobs.items() if job.job.pool in pools}
        unread = {
            key for key in (before.jobs if before is not None else ())
            if key in found.unread or key.partition("[")[0] in listed.unread
        }  # fmt: skip
        if before is not None:
            self._fill_in(before, jobs, now, unread)
        self._own_dispatch(said.queues, notes)
        total = {name: one.amount + found.given_back[name] for name, one in said.shared.licences.items()}
        total = asked_for(total, jobs, before.licences if before is not None else ())
        snapshot = Snapshot(
            time=now, jobs=jobs, nodes=mine, pools=pools,
            reservations=_reservations(said.reservations, mine, now, notes),
            licences=for_ours(total, found.jobs, pools, first=before is None, notes=notes),
            power={name: power for name, power in nodes.power.items() if name in mine},
        )  # fmt: skip
        return LsfLook(
            snapshot=snapshot, details=found.details, notes=frozenset(notes), unread=frozenset(unread),
            hidden=_hidden(jobs, nodes.used),
        )  # fmt: skip

    def _ask(self, world: World, *, with_arrays: bool, notes: set[str]) -> _Answers:
        """Everything but the jobs; ``with_arrays``: elements of arrays wait."""
        argvs: list[tuple[str, ...]] = [
            ("bhosts", "-o", world.host_fields, "-json") if world.host_fields else ("bhosts", "-w"),
            ("bqueues", "-l"),
            STATIC,
            DYNAMIC,
            _GROUPS,
        ]
        if world.flavour.ibm:
            argvs.append(("brsvs", "-w"))
        if with_arrays:
            argvs.append(ARRAYS)
        hosts_out, queues_out, static, dynamic, groups, *more = self._client.run_many(argvs)
        hosts = _hosts(hosts_out, as_json=bool(world.host_fields))
        queues = cluster_listing.read_queues(queues_out.text) if queues_out.ok else {}
        if not queues:
            raise Unanswered(f"bqueues -l: {queues_out.complaint()}")
        world.groups = _host_groups(groups, world.groups, notes)
        self._shared = _shared(static, dynamic, self._shared, notes)
        limits = _array_limits(more[-1], notes) if with_arrays else {}
        return _Answers(hosts, queues, self._shared, more[0] if world.flavour.ibm else None, limits)

    def _nodes(self, said: _Answers, world: World, notes: set[str]) -> hosts.Nodes:
        if set(said.hosts) - set(world.static):
            self._learn_hosts(world)
        nodes = hosts.read_nodes(
            said.hosts, said.queues, world.static, world.groups, notes, power=self._options.power,
            shared=said.shared,
        )  # fmt: skip
        states = {name: host.status for name, host in said.hosts.items()}
        for name in self._saving.show(states, nodes.nodes, nodes.power):
            self._log.error(
                "a host does not wake and counts as down", node=name, seconds=self._options.wake_timeout
            )
        return nodes

    def _pools(self, queues: Mapping[str, Queue], nodes: hosts.Nodes) -> dict[str, PoolDescription]:
        """The managed queues, and the queues that share hosts with them."""
        managed = {node for name in self._options.queues for node in nodes.members.get(name, ())}
        return {
            name: hosts.pool(queue, managed=name in self._options.queues)
            for name, queue in queues.items()
            if name in self._options.queues or managed.intersection(nodes.members[name])
        }

    def _own_dispatch(self, queues: Mapping[str, Queue], notes: set[str]) -> None:
        """Note it when a managed queue is gone, or LSF starts its jobs."""
        for name in self._options.queues:
            if name not in queues:
                notes.add(
                    f"queue {name} is gone: LSF moves the queue's jobs to lost_and_found (lsb.queues, "
                    "bswitch)"
                )
            elif not self._client.read_only and not queues[name].inactive:
                notes.add(
                    f"queue {name} is active: LSF starts the queue's jobs by itself (badmin qinact {name})"
                )

    def _fill_in(
        self, before: Snapshot, jobs: dict[str, SnapshotJob], now: float, unread: Collection[str]
    ) -> None:
        """Ask about each job that the listing dropped without having shown its end."""
        missing = before.dropped(jobs, unread)
        if not missing:
            return
        times = Calendar(now)
        rows = self._client.rows(missing, times)
        endings = self._client.endings([key for key in missing if key not in rows], times)
        for key in missing:
            ending = endings.get(key)
            if key in rows and reader.JOB_STATES.get(rows[key].stat) != "ended":
                # LSF still has it: the listing was incomplete, or it went to a queue that we do not see.
                if rows[key].queue == before.jobs[key].job.pool:
                    jobs[key] = before.jobs[key]
            elif ending is not None and ending.state == "requeued":
                jobs[key] = before.jobs[key]
            elif ending is not None and ending.state == "ended":
                jobs[key] = reader.ended_job(before.jobs[key], ending, now)


def _reservations(
    told: Result | None, mine: Mapping[str, Any], now: float, notes: set[str]
) -> dict[str, Reservation]:
    if told is None:
        return {}
    if is_silence(told):
        raise Unanswered(f"brsvs: {told.complaint()}")
    booked = cluster_listing.read_reservations(told.text, Calendar(now), notes) if told.ok else {}
    return hosts.read_reservations(booked, mine)


def _hosts(result: Result, *, as_json: bool) -> dict[str, HostState]:
    if not result.ok:
        raise Unanswered(f"bhosts: {result.complaint()}")
    hosts = (
        cluster_listing.read_hosts_json(result.stdout) if as_json else cluster_listing.read_hosts(result.text)
    )
    if not hosts:
        raise Unanswered("bhosts: lists no host")
    return hosts


def _array_limits(result: Result, notes: set[str]) -> dict[str, int]:
    if is_silence(result):
        raise Unanswered(f"{' '.join(result.argv)}: {result.complaint()}")
    return read_limits(result.text, notes) if result.ok else {}


def _host_groups(
    result: Result, before: Mapping[str, tuple[str, ...]], notes: set[str]
) -> Mapping[str, tuple[str, ...]]:
    """The host groups; as they were where LSF does not say."""
    if is_silence(result):
        raise Unanswered(f"{' '.join(result.argv)}: {result.complaint()}")
    if result.ok:
        return cluster_listing.read_groups(result.text)
    if _NO_GROUPS.search(result.text + result.stderr) is not None:
        return {}
    notes.add(f"host groups stay as they were: {' '.join(result.argv)}: {result.complaint()}")
    return before


def _shared(static: Result, dynamic: Result, before: Shared, notes: set[str]) -> Shared:
    """The shared resources; as they were where LSF does not say."""
    for result in (static, dynamic):
        if is_silence(result):
            raise Unanswered(f"{' '.join(result.argv)}: {result.complaint()}")
        if not result.ok and NONE not in result.text + result.stderr:
            notes.add(f"shared resources stay as they were: {' '.join(result.argv)}: {result.complaint()}")
            return before
    return shared(static.text if static.ok else "", dynamic.text if dynamic.ok else "", before)


def _hidden(jobs: Mapping[str, SnapshotJob], used: Mapping[str, int]) -> dict[str, int]:
    """Slots that LSF counts as used beyond the slots of the visible jobs, by host."""
    left = dict(used)
    for job in jobs.values():
        if job.state in ON_NODES:
            for name, count in job.placement:
                left[name] = left.get(name, 0) - count
    return {name: count for name, count in left.items() if count > 0}
