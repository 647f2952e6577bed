"""One look at a PBS cluster: its commands run and read, and what the listing dropped asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import msgspec

from headway.model import NodeDescription, Reservation
from headway_adapters.pbs import checks, cluster, reader, reservations, values
from headway_adapters.pbs.client import PbsClient, is_silence
from headway_adapters.pbs.look import PbsLook
from headway_adapters.pbs.options import PbsOptions
from headway_adapters.pbs.world import World
from headway_adapters.polling.client import Unanswered
from headway_adapters.polling.flights import Flights
from headway_adapters.polling.licences import for_ours
from headway_adapters.polling.snapshot import Snapshot, SnapshotJob


class Looking:
    """Looks at a PBS cluster. On the looking thread."""

    def __init__(
        self, client: PbsClient, options: PbsOptions, flights: Flights[Any], learn: Callable[[], World], *,
        clock: Callable[[], float],
    ) -> None:  # fmt: skip
        """``learn``: asks for the world, if it is unknown at the first look. ``clock``: absolute seconds."""
        self._client = client
        self._options = options
        self._flights = flights
        self._learn = learn
        self._clock = clock
        self._remembered = reader.Remembered()
        self.world: World | None = None

    def look(self, before: Snapshot | None) -> PbsLook:
        """As :meth:`headway_adapters.polling.system.BatchSystem.look`."""
        world = self.world = self.world or self._learn()
        notes: set[str] = set()
        now = self._clock()
        listings, asked = world.listings, world.settings
        commands = [listings.all_jobs_command(now), listings.nodes_command(now)]
        jobs_out, nodes_out, *settings_out = self._client.run_many([*commands, *asked.due()])
        node_records = listings.nodes(nodes_out, now, notes)
        if not node_records:
            raise Unanswered("pbsnodes: lists none")
        records, unprintable = listings.jobs(jobs_out, now, notes)
        settings = asked.read(settings_out, named=cluster.queues_named(records, node_records))
        notes |= settings.notes
        queues, servers = settings.queues, settings.servers
        self._own_scheduler(servers, queues, notes)
        nodes = cluster.read_nodes(node_records, queues, notes)
        unread = {
            key for key in (before.jobs if before is not None else ())
            if key in unprintable or reader.array_of(key) in unprintable
        }  # fmt: skip
        site = replace(world.site, licences=frozenset(settings.licences))
        found = reader.read_jobs(records, now, site, queues, nodes, notes, self._remembered)
        pools = cluster.pools(queues, nodes, world.site)
        mine = _in_pools(nodes.nodes, pools)
        placed = _placed(found.jobs, before, unread)
        jobs = {
            key: job
            for key, job in found.jobs.items()
            # Whatever queue it came from: what runs on our vnodes is load.
            if job.job.pool in pools or (key in placed and any(name in mine for name, _ in job.placement))
        }
        pools |= cluster.pools_of(jobs.values(), beside=pools)
        if before is not None:
            self._fill_in(world, before, jobs, unread, site, queues, nodes, notes)
        self._place_ended(jobs)
        owners = {self._client.user, *checks.names(servers, "managers")}
        kept, ids = self._reservations(nodes.reserved, owners, world, mine, notes)
        jobs = reservations.named(jobs, ids)
        snapshot = Snapshot(
            time=now, jobs=jobs, nodes=mine, pools=pools, reservations=kept,
            licences=for_ours(settings.licences, found.jobs, pools, first=before is None, notes=notes),
            power={name: power for name, power in nodes.power.items() if name in mine},
        )  # fmt: skip
        return PbsLook(
            snapshot=snapshot, details=found.details, notes=frozenset(notes), hosts=nodes.hosts,
            vnodes=nodes.vnodes, reservations=ids, placed=placed, unread=frozenset(unread),
        )  # fmt: skip

    def _own_scheduler(
        self, servers: Mapping[str, Mapping[str, Any]], queues: Mapping[str, cluster.Queue], notes: set[str]
    ) -> None:
        """Note it when PBS's scheduler starts jobs of the managed queues."""
        scheduling = next((server.get("scheduling") for server in servers.values()), None)
        loose = [name for name in self._options.queues if name in queues and queues[name].open]
        if self._client.read_only or not values.truth(scheduling) or not loose:
            return
        remedy = f"set queue {loose[0]} started = False"
        if not self._options.reservations:
            remedy = "set server scheduling = False"
        notes.add(
            "the server's own scheduling is on: PBS starts jobs that headway did not decide "
            f'(qmgr -c "{remedy}")'
        )

    def _reservations(
        self,
        reserved: Mapping[str, set[str]],
        owners: set[str],
        world: World,
        mine: Mapping[str, NodeDescription],
        notes: set[str],
    ) -> tuple[dict[str, Reservation], dict[str, str]]:
        """The reservations that vnodes belong to; there is no need to ask when there are none."""
        kept: dict[str, Reservation] = {}
        ids: dict[str, str] = {}
        if world.torque or not reserved:
            return kept, ids
        result = self._client.run(("pbs_rstat", "-F"))
        if is_silence(result):
            raise Unanswered(f"pbs_rstat: {result.complaint()}")
        if not result.ok:
            notes.add(f"reservations cannot be read: {result.complaint()}")
            return kept, ids
        records, twice = reservations.records(result.text)
        again = sorted(name for name in twice if name in reserved)
        for name, alone in zip(
            again, self._client.run_many([("pbs_rstat", "-F", n) for n in again]), strict=True
        ):
            notes.add(f"the text of another reservation names {name}")
            records[name] = reservations.first(alone.text) if alone.ok else {}
        found = reservations.read(records, world.site.zone, reserved, notes, owners=owners)
        for key, (name, reservation) in found.items():
            nodes = tuple(node for node in reservation.nodes if node in mine)
            if nodes:
                kept[key] = msgspec.structs.replace(reservation, nodes=nodes)
                ids[key] = name
        return kept, ids

    def _fill_in(
        self,
        world: World,
        before: Snapshot,
        jobs: dict[str, SnapshotJob],
        unread: set[str],
        site: cluster.Site,
        queues: Mapping[str, cluster.Queue],
        nodes: cluster.Nodes,
        notes: set[str],
    ) -> None:
        """Ask about each job that the listing dropped without having shown its end."""
        missing = before.dropped(jobs, unread)
        if not missing:
            return
        records, unclear = world.listings.asked(missing, world.history, notes)
        asked = {key: records[key] for key in missing if key in records}
        site = replace(site, array_limit=len(asked))
        found = reader.read_jobs(asked, self._clock(), site, queues, nodes, notes)
        for key in missing:
            ending = found.jobs.get(key)
            known = before.jobs[key]
            if ending is None:
                if key in unclear:
                    jobs[key] = known
                continue
            if ending.state != "ended":
                # PBS still has it: the listing was incomplete, or it is beyond the array's limit.
                jobs[key] = known
                continue
            jobs[key] = msgspec.structs.replace(
                ending, job=known.job, placement=ending.placement or known.placement,
                start_time=ending.start_time or known.start_time,
                restarts=max(ending.restarts, known.restarts),
            )  # fmt: skip

    def _place_ended(self, jobs: dict[str, SnapshotJob]) -> None:
        """Say where a job ran that ended before any look saw it run.

        Of an ended element of an array PBS tells when it ran, but not where.
        """
        for key, flight in list(self._flights.items()):
            job = jobs.get(key)
            if job is not None and job.state == "ended" and not job.placement and job.start_time is not None:
                jobs[key] = msgspec.structs.replace(job, placement=flight.decision.placement)


def _in_pools(nodes: Mapping[str, NodeDescription], pools: Mapping[str, Any]) -> dict[str, NodeDescription]:
    """The vnodes of the pools that are told, with these pools alone."""
    return {
        name: msgspec.structs.replace(node, pools=tuple(pool for pool in node.pools if pool in pools))
        for name, node in nodes.items()
        if any(pool in pools for pool in node.pools)
    }


def _placed(
    jobs: Mapping[str, SnapshotJob], before: Snapshot | None, unread: set[str]
) -> dict[str, SnapshotJob]:
    """The jobs that have vnodes; jobs that could not be read have them as before."""
    placed = {key: job for key, job in jobs.items() if job.placement and job.state != "ended"}
    if before is not None:
        placed |= {key: job for key in unread if (job := before.jobs[key]).placement}
    return placed
