"""One look at a Slurm cluster: its commands run and read, and what the listing dropped asked for."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from headway.errors import Failure
from headway.model import NodeDescription, PoolDescription, Reservation, SitePolicy
from headway_adapters.polling import Look
from headway_adapters.polling.client import Unanswered
from headway_adapters.polling.licences import left_here, less, licences_elsewhere, too_few
from headway_adapters.polling.snapshot import Snapshot, SnapshotJob
from headway_adapters.slurm import reader
from headway_adapters.slurm.client import SlurmClient, is_silence
from headway_adapters.slurm.policy import Policy
from headway_adapters.slurm.refusals import Refusals
from headway_adapters.slurm.unmet import Unmet
from headway_adapters.slurm.world import World
from headway_adapters.transport import Result

#: How long a job that is no longer listed counts as it was while what is said of its end is not understood,
#: seconds; then it has vanished.
_DOUBT = 120.0

#: Looks after a job's end in which its energy is asked for.
_ENERGY_TRIES = 5

_NODES_AS_TEXT = ("scontrol", "-o", "show", "nodes", "-a")


@dataclass(frozen=True)
class SlurmLook(Look[reader.Detail]):
    """The snapshot, and what housekeeping and plugins need besides."""

    #: Jobs on nodes that are not held.
    loose: frozenset[str] = frozenset()
    #: Accounts, QOS and weights, where plugins go by them.
    policy: SitePolicy | None = None


@dataclass(frozen=True)
class _Answers:
    """What Slurm said at one look."""

    queue: Result
    partitions: Result
    reservations: Result
    licences: Result
    nodes: Result
    #: Watts, and on how few switches jobs want to be; None where that is not asked.
    measured: Result | None
    bounds: Result | None


class Looking:
    """Looks at a Slurm cluster. On the looking thread."""

    def __init__(
        self, client: SlurmClient, learn: Callable[[], World], policy: Policy, refusals: Refusals,
        unmet: Unmet, *, log: Any, clock: Callable[[], float],
    ) -> None:  # fmt: skip
        """``learn``: asks for the world, if it is unknown at the first look. ``clock``: absolute seconds."""
        self._client = client
        self._learn = learn
        self._policy = policy
        self._refusals = refusals
        self._unmet = unmet
        self._log = log
        self._clock = clock
        self.world: World | None = None
        self._remembered = reader.Remembered()
        #: Jobs that ended, and how many more looks ask for what they used.
        self._unmeasured: dict[str, int] = {}
        #: Jobs of which it is unknown how they ended, and since when (on the monotonic clock).
        self._unclear: dict[str, float] = {}

    def look(self, before: Snapshot | None) -> SlurmLook:
        """As :meth:`headway_adapters.polling.system.BatchSystem.look`."""
        world = self.world = self.world or self._learn()
        notes: set[str] = set()
        now = self._clock()
        said = self._ask(world)
        partitions = reader.read_partitions(said.partitions.text)
        if not partitions:
            raise Unanswered("scontrol show partition: lists none")
        nodes = self._nodes(said.nodes, world, notes)
        bounds = reader.read_bounds(said.bounds.text) if said.bounds is not None and said.bounds.ok else {}
        found = reader.read_jobs(
            said.queue.stdout, now, world.site, partitions, nodes, notes, bounds, self._remembered
        )
        pools = _pools(partitions, world)
        mine = _told_nodes(nodes, partitions, world)
        elsewhere = licences_elsewhere(found.jobs, pools)
        unread: set[str] = set()
        reservations = _reservations(said.reservations.text, mine, pools, elsewhere, notes, unread)
        jobs = {key: job for key, job in found.jobs.items() if job.job.pool in pools}
        if before is not None:
            for key, job in before.jobs.items():
                if job.job.array_id in found.unread and key not in jobs:
                    jobs[key] = job
            unread |= found.unread
            missing = _missing(before, jobs, unread, found, world, now)
            self._fill_in(before, jobs, missing, world, notes, now)
        self._refusals.show(jobs, mine)
        self._unmet.show(jobs, found.details)
        measured = said.measured
        watts = reader.read_watts(measured.text) if measured is not None and measured.ok else {}
        if world.measures and world.accounting and before is not None:
            self._ask_energies(before, jobs)
        snapshot = Snapshot(
            time=now, jobs=jobs, nodes=mine, pools=pools, reservations=reservations,
            licences=_licences(said.licences, elsewhere, before, notes),
            power={name: power for name, power in nodes.power.items() if name in mine},
            watts={name: value for name, value in watts.items() if name in mine},
        )  # fmt: skip
        policy = self._policy.ask(world, said.partitions.text, notes)
        return SlurmLook(
            snapshot, found.details, frozenset(notes), unread=frozenset(unread), policy=policy,
            loose=frozenset(found.loose),
        )  # fmt: skip

    def _ask(self, world: World) -> _Answers:
        queue, partitions, reservations, licences, nodes, *more = self._client.run_many(
            [
                ("squeue", "--json", "-a", "-t", "all"),
                ("scontrol", "-o", "show", "partition", "-a"),
                ("scontrol", "-o", "show", "reservation"),
                ("scontrol", "-o", "show", "licenses"),
                world.nodes_as_json or _NODES_AS_TEXT,
                # Not every Slurm writes watts into its JSON.
                *([_NODES_AS_TEXT] if world.measures else []),
                *([reader.BOUNDS] if world.lists_bounds else []),
            ]
        )
        for result in (queue, partitions, reservations):
            if not result.ok:
                raise Unanswered(f"{' '.join(result.argv[:3])}: {result.complaint()}")
        measured = more[0] if world.measures else None
        bounds = more[-1] if world.lists_bounds else None
        return _Answers(queue, partitions, reservations, licences, nodes, measured, bounds)

    def _nodes(self, result: Result, world: World, notes: set[str]) -> reader.Nodes:
        if world.nodes_as_json is not None:
            if is_silence(result):
                raise Unanswered(f"{' '.join(result.argv[:3])}: {result.complaint()}")
            try:
                if not result.ok:
                    raise Failure(result.complaint())
                return reader.read_nodes(result.stdout, world.site, notes)
            except Failure as error:
                text = self._client.look([_NODES_AS_TEXT])[0].text
                found = reader.read_nodes_text(text, world.site, notes)
                if not found.nodes:
                    raise Unanswered(f"listing of nodes: {error}") from error
                notes.add(f"nodes are read from text, because their JSON could not be used: {error}")
                world.nodes_as_json = None
                return found
        if not result.ok:
            raise Unanswered(f"{' '.join(result.argv[:3])}: {result.complaint()}")
        found = reader.read_nodes_text(result.text, world.site, notes)
        if not found.nodes:
            raise Unanswered("scontrol show nodes: lists none")
        return found

    def _fill_in(
        self, before: Snapshot, jobs: dict[str, SnapshotJob], missing: Sequence[str], world: World,
        notes: set[str], now: float,
    ) -> None:  # fmt: skip
        """Ask about each job that the listing dropped without having shown its end."""
        if not missing:
            self._unclear = {}
            return
        endings = self._client.endings(missing, accounting=world.accounting)
        since = {key: self._unclear.get(key, time.monotonic()) for key in endings.unclear}
        self._unclear = since
        for key in missing:
            if key in since and time.monotonic() < since[key] + _DOUBT:
                notes.add(
                    f"job {key} stays as it was, because its end is not known yet: {endings.unclear[key]}"
                )
                jobs[key] = before.jobs[key]
                continue
            ending = endings.found.get(key)
            if ending is None:
                continue
            known = before.jobs[key]
            if ending.state != "ended":
                # Slurm still has it: the listing was incomplete.
                jobs[key] = known
                continue
            placement = known.placement or tuple((node, 0) for node in ending.nodes)
            if placement and not known.placement:
                share = max(1, known.job.request.processors // len(placement))
                placement = tuple((node, share) for node, _ in placement)
            jobs[key] = SnapshotJob(
                job=known.job, state="ended", placement=placement if ending.start_time else (),
                start_time=ending.start_time, end_time=ending.end_time or now, outcome=ending.outcome,
                exit_code=ending.exit_code, restarts=known.restarts,
            )  # fmt: skip

    def _ask_energies(self, before: Snapshot, jobs: Mapping[str, SnapshotJob]) -> None:
        """Log what the jobs used that ended; the accounting knows it a little later than the end."""
        for key, job in jobs.items():
            known = before.jobs.get(key)
            if job.state == "ended" and job.placement and known is not None and known.state != "ended":
                self._unmeasured[key] = _ENERGY_TRIES
        if not self._unmeasured:
            return
        found = self._client.energies(list(self._unmeasured))
        for key in list(self._unmeasured):
            self._unmeasured[key] -= 1
            if key in found:
                self._log.info("what a job used", job=key, joules=round(found[key]))
            if key in found or not self._unmeasured[key]:
                del self._unmeasured[key]


def _pools(partitions: Mapping[str, reader.Partition], world: World) -> dict[str, PoolDescription]:
    """The partitions that are told: the managed partitions, and as closed the partitions that share nodes
    with them."""
    ours = reader.told(partitions, world.site.managed)
    return {
        name: partition.pool(world.lifted) if name in world.site.managed else _closed(partition)
        for name, partition in partitions.items()
        if name in ours and name not in world.site.behind
    }


def _told_nodes(
    nodes: reader.Nodes, partitions: Mapping[str, reader.Partition], world: World
) -> dict[str, NodeDescription]:
    ours = reader.told(partitions, world.site.managed)
    return {
        name: _without_pools(node, world.site.behind)
        for name, node in nodes.nodes.items()
        if ours.intersection(node.pools)
    }


def _reservations(
    text: str, mine: Mapping[str, NodeDescription], pools: Mapping[str, PoolDescription],
    elsewhere: Mapping[str, Counter[str]], notes: set[str], unread: set[str],
) -> dict[str, Reservation]:  # fmt: skip
    """The reservations that keep nodes of ours, or licences."""
    found = {}
    for key, reservation in reader.read_reservations(text, notes, unread).items():
        kept = tuple(node for node in reservation.nodes if node in mine)
        rest = less(reservation.licences, elsewhere.get(key, {}))
        if kept or rest:
            pool = reservation.pool if reservation.pool in pools else ""
            found[key] = msgspec.structs.replace(reservation, nodes=kept, pool=pool, licences=rest)
    return found


def _missing(
    before: Snapshot, jobs: dict[str, SnapshotJob], unread: set[str], found: reader.Jobs,
    world: World, now: float,
) -> list[str]:  # fmt: skip
    """The jobs that the listing dropped without having shown their end, but elements of an array that
    are gone from it while they waited: these were cancelled, which Slurm records nowhere."""
    missing = []
    for key, job in before.jobs.items():
        if job.state == "ended" or key in jobs or key in unread:
            continue
        array = job.job.array_id
        if job.state == "pending" and array in found.arrays and now - before.time < world.remembers:
            rest = found.arrays[array]
            jobs[key] = SnapshotJob(
                job=job.job, state="ended", outcome="cancelled", restarts=job.restarts,
                end_time=rest.end_time if rest is not None else now, reason="its array no longer has this "
                                                                            "element",
            )  # fmt: skip
        else:
            missing.append(key)
    return missing


def _without_pools(node: NodeDescription, pools: Mapping[str, str]) -> NodeDescription:
    if not pools or not set(pools) & set(node.pools):
        return node
    return msgspec.structs.replace(node, pools=tuple(name for name in node.pools if name not in pools))


def _closed(partition: reader.Partition) -> PoolDescription:
    return replace(partition, open=False).pool()


def _licences(
    shown: Result, elsewhere: Mapping[str, Counter[str]], before: Snapshot | None, notes: set[str]
) -> Mapping[str, int]:
    """How much of each licence is there for our jobs; as it was where Slurm does not say."""
    if not shown.ok:
        notes.add(f"licences stay as they were: {' '.join(shown.argv[:4])}: {shown.complaint()}")
        return before.licences if before is not None else {}
    total, used = reader.read_licences(shown.text)
    if before is None:
        notes.update(too_few(total, used))
    return left_here(total, elsewhere)
