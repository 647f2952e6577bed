"""The PBS adapter: looks, tells what happened, starts jobs on chosen vnodes, confirms the starts.

The control protocol: the administrator switches the server's own scheduling off (``qmgr -c "set server
scheduling = False"``), so PBS starts nothing by itself. A start is ``qrun -H '(vnode:ncpus=4)+...' JOB``;
the next looks confirm by the job's state and ``exec_vnode`` that it runs. Looking, waiting and
confirming are every adapter's (:mod:`headway_adapters.polling`).

``qrun`` asks nobody: it starts a held job, and puts a job on a vnode that is full, without a word. So
the adapter checks once more itself, against its last look: the job is queued, nobody holds it, the
vnodes are usable and have that many processors and that much memory left, all that is on its way
counted. For the same reason a job in the background is started like any other, on vnodes that others have;
with agents on the nodes each tier has room of its own (:mod:`headway_adapters.pbs.room`).

Each command takes a privileged port for a minute, so a look takes two of them, and starts beyond a budget
(:mod:`headway_adapters.pbs.budget`) have their turn after a later look.

Nothing needs to be taken over or held, and so nothing has to be undone when a start does not happen.
The jobs' ends come from PBS's history (``job_history_enable``); a job that is gone without a word there
has vanished.

An outage (server down, hanging, or talking nonsense) is not news about jobs: no event comes of it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import msgspec

from headway import decisions as d
from headway.adapter import Check, Outcome, StartsWait
from headway.errors import Failure, UserError
from headway.model import ClusterDescription, NodeDescription, Reservation, SwitchDescription
from headway_adapters.pbs import checks, cluster, documents, reader, reservations, values, writer
from headway_adapters.pbs.client import PbsClient, is_silence
from headway_adapters.pbs.joined import apart, join
from headway_adapters.pbs.listings import Listings
from headway_adapters.pbs.look import PbsLook
from headway_adapters.pbs.options import PbsOptions
from headway_adapters.pbs.placement_sets import group_keys, placement_sets
from headway_adapters.pbs.room import Room
from headway_adapters.pbs.settings import Settings
from headway_adapters.pbs.turns import Turns
from headway_adapters.polling import Flight, Launch, Look, PollingAdapter, validated
from headway_adapters.polling.client import Unanswered
from headway_adapters.polling.licences import for_ours
from headway_adapters.polling.snapshot import Snapshot, SnapshotJob
from headway_adapters.polling.words import Argv
from headway_adapters.transport import Result, Transport

CAPABILITIES: frozenset[type[d.Decision]] = frozenset(
    {
        d.Start, d.Hold, d.Release, d.Kill, d.Cancel, d.Requeue, d.Suspend, d.Resume, d.SetTimeLimit,
        d.Resize, d.Signal,
    }
)  # fmt: skip


#: A job's number, with that of an element or the brackets of an array, without the server's name.
_NUMBER = re.compile(r"[0-9]+(?:\[[0-9]*\])?")

#: What the starts of one call are known by.
_Key = TypeVar("_Key", int, str)


@dataclass(frozen=True)
class Later:
    """A start that was accepted and whose command is still to be run."""

    argv: Argv
    #: Until PBS sees that the job's begin time is reached; otherwise until it is its turn.
    early: bool = False


@dataclass(frozen=True)
class _World:
    """What is learned about the cluster once."""

    name: str
    site: cluster.Site
    torque: bool
    listings: Listings
    #: Ended jobs can be asked for.
    history: bool
    #: Resources by whose values vnodes are grouped.
    group_keys: tuple[str, ...] = ()


class PbsAdapter(PollingAdapter[reader.Detail, Later | None]):
    """A PBS cluster. See the module's text for how it is driven."""

    system = "pbs"
    title = "PBS"
    counts_restarts = True
    drains = True
    Options = PbsOptions

    _client: PbsClient

    #: Those of every configuration; an instance may have more or, with Torque, fewer.
    capabilities = CAPABILITIES

    def __init__(
        self,
        options: PbsOptions | Mapping[str, Any],
        *,
        read_only: bool = False,
        log: Any = None,
        transport: Transport | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        """``read_only``: monitor mode; no command that changes anything is ever run.

        Raises :class:`UserError` for options that are wrong.
        """
        self.options = validated(PbsOptions, options)
        client = PbsClient(self.options, read_only=read_only, transport=transport)
        super().__init__(
            client, self.options, actuators=self.options.actuators, agents=self.options.agents,
            read_only=read_only, log=log, clock=clock,
        )  # fmt: skip
        self.capabilities = _adjusted(self.capabilities, self.options)
        self._turns = Turns(self.system, self.options.commands_per_minute, log=self._log)
        self._world: _World | None = None
        #: Made with it.
        self._settings: Settings | None = None

    @classmethod
    def capable_of(
        cls, cluster: ClusterDescription, options: Mapping[str, Any] | None = None
    ) -> frozenset[type[d.Decision]]:
        able = super().capable_of(cluster, options)
        return _adjusted(able, validated(PbsOptions, options)) if options else able

    @classmethod
    def full_job_id(cls, given: str, cluster: str) -> str:
        return f"{given}.{cluster}" if _NUMBER.fullmatch(given) and cluster else given

    # ------------------------------------------------------------------ learning

    def learn(self) -> str:
        return self._learn().name

    def _learn(self) -> _World:
        (version,) = self._client.run_many([("qstat", "--version")])
        is_torque = checks.flavour_of(version, self.options) == "torque"
        listings = Listings(self._client, torque=is_torque)
        server_out, queues_out = self._client.look(
            [("qstat", "-B", "-f", *listings.form), ("qstat", "-Q", "-f", *listings.form)]
        )
        servers = listings.objects(server_out, "Server", set())
        if not servers:
            raise Unanswered("qstat -B: lists no server")
        name, server = next(iter(servers.items()))
        queues = cluster.read_queues(listings.objects(queues_out, "Queue", set()))
        ours = sorted(name for name, queue in queues.items() if not queue.of_reservation)
        for queue in self.options.queues:
            if queue not in ours:
                known = ", ".join(ours) or "none"
                raise UserError(
                    f"cluster.options.queues: PBS has no execution queue {queue!r}. Known: {known}."
                )
        self._settings = Settings(
            self._client, listings, poll_interval=self.options.poll_interval, licences=not is_torque
        )
        self._world = _World(
            name=name,
            site=cluster.Site(
                words=self.words,
                managed=self.options.queues,
                array_limit=self.options.array_limit,
                unlimited_walltime=self.options.unlimited_walltime,
                zone=0.0 if is_torque else self._zone(),
                beside_scheduler=self.options.reservations,
                group_keys=group_keys(server),
            ),
            torque=is_torque,
            listings=listings,
            group_keys=group_keys(server),
            history=not is_torque and values.truth(server.get("job_history_enable")),
        )
        return self._world

    def switches(self, nodes: Mapping[str, NodeDescription]) -> tuple[SwitchDescription, ...]:
        return placement_sets(self._world.group_keys, nodes) if self._world is not None else ()

    def _zone(self) -> float:
        """Seconds by which the times that PBS writes are ahead of UTC.

        Its commands run with TZ=UTC and write in their own zone; where something between us and them
        does not pass that on, a vnode's last change, which JSON states in seconds and the text form
        in words, tells.
        """
        as_json, as_text = self._client.run_many([("pbsnodes", "-av", "-F", "json"), ("pbsnodes", "-av")])
        try:
            if as_json.ok and as_text.ok:
                texts = documents.nodes_text(as_text.stdout)
                for name, record in documents.nodes_json(as_json.stdout).items():
                    exact = record.last_state_change_time
                    known = texts.get(name)
                    written = values.when(known.last_state_change_time) if known else None
                    if isinstance(exact, (int, float)) and written and abs(written - exact) < 86400:
                        return round((written - exact) / 900) * 900.0
        except documents.Malformed:
            return 0.0
        return 0.0

    # ------------------------------------------------------------------ looking

    def look(self, before: Snapshot | None) -> PbsLook:
        if self._world is None:
            self._learn()
        world = self._world
        assert world is not None
        notes: set[str] = set()
        now = self._clock()
        listings = world.listings
        asked = self._settings
        assert asked is not None
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
        found = reader.read_jobs(records, now, site, queues, nodes, notes)
        pools = cluster.pools(queues, nodes, world.site)
        mine = {
            name: msgspec.structs.replace(node, pools=tuple(pool for pool in node.pools if pool in pools))
            for name, node in nodes.nodes.items()
            if any(pool in pools for pool in node.pools)
        }
        placed = {key: job for key, job in found.jobs.items() if job.placement and job.state != "ended"}
        if before is not None:
            placed |= {key: job for key in unread if (job := before.jobs[key]).placement}
        jobs = {
            key: job
            for key, job in found.jobs.items()
            # Whatever queue it came from: what runs on our vnodes is load.
            if job.job.pool in pools or (key in placed and any(name in mine for name, _ in job.placement))
        }
        pools |= cluster.pools_of(jobs.values(), beside=pools)
        if before is not None:
            self._fill_in(before, jobs, unread, site, queues, nodes, notes)
        self._place_ended(jobs)
        owners = {self._client.user, *checks.names(servers, "managers")}
        kept, ids = self._reservations(nodes.reserved, owners, world, mine, notes)
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
        loose = [name for name in self.options.queues if name in queues and queues[name].open]
        if self.read_only or not values.truth(scheduling) or not loose:
            return
        remedy = f"set queue {loose[0]} started = False"
        if not self.options.reservations:
            remedy = "set server scheduling = False"
        notes.add(
            "the server's own scheduling is on: PBS starts jobs that headway did not decide "
            f'(qmgr -c "{remedy}")'
        )

    def _reservations(
        self,
        reserved: Mapping[str, set[str]],
        owners: set[str],
        world: _World,
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
            notes.add(f"another reservation's text tells of {name}")
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
        before: Snapshot,
        jobs: dict[str, SnapshotJob],
        unread: set[str],
        site: cluster.Site,
        queues: Mapping[str, cluster.Queue],
        nodes: cluster.Nodes,
        notes: set[str],
    ) -> None:
        """Ask about each job that the listing dropped without having shown its end."""
        missing = [
            key for key, job in before.jobs.items()
            if job.state != "ended" and key not in jobs and key not in unread
        ]  # fmt: skip
        world = self._world
        if not missing or world is None:
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

    # ------------------------------------------------------------------ apply

    def given_up(self, job: SnapshotJob, detail: reader.Detail | None) -> str:
        if job.held_by in ("user", "administrator"):
            return f"it was held before it started ({job.reason})"
        return ""

    def start_all(self, starts: Sequence[d.Start]) -> list[Launch[Later | None]]:
        """Run as many as PBS's connections allow now; the others have their turn after a later look."""
        launches: dict[int, Launch[Later | None]] = {}
        argvs: dict[int, tuple[str, ...]] = {}
        room = Room(self._as_it_is, [flight.decision for flight in self._flights.values()])
        for index, start in enumerate(starts):
            try:
                argvs[index] = self._plan_start(start, room)
            except Failure as error:
                launches[index] = Launch(Outcome(False, str(error)))
        before = sum(map(_waits_its_turn, self._flights.values()))
        left = 0 if before else self._client.budget.starts_left()
        now = [index for one in join(list(argvs.items()))[:left] for index in one.starts]
        launches |= self._run_starts({index: (starts[index].job_id, argvs[index]) for index in now})
        waiting = argvs.keys() - launches.keys()
        self._turns.wait(before + len(waiting))
        for index in waiting:
            launches[index] = Launch(Outcome(True, f"it waits for {self._turns.what}"), Later(argvs[index]))
        return [launches[index] for index in range(len(starts))]

    def _run_starts(self, planned: Mapping[_Key, tuple[str, Argv]]) -> dict[_Key, Launch[Later | None]]:
        """Run the commands of some starts, those on the same vnodes in one. ``planned``: a job's id and its
        command, for each key."""
        launches: dict[_Key, Launch[Later | None]] = {}
        ready: dict[_Key, Argv] = {}
        for key, (job_id, argv) in planned.items():
            if why := self._given_walltime(job_id):
                launches[key] = Launch(Outcome(False, why))
            else:
                ready[key] = argv
        commands = join(list(ready.items()))
        done = self.change([one.argv for one in commands]) if commands else []
        for one, result in zip(commands, done, strict=True):
            ids = [planned[key][0] for key in one.starts]
            each = apart(result, ids) if result is not None else [None] * len(ids)
            for key, job_id, its in zip(one.starts, ids, each, strict=True):
                launches[key] = self._launched(job_id, ready[key], its)
        return launches

    def _launched(self, job_id: str, argv: tuple[str, ...], result: Result | None) -> Launch[Later | None]:
        """What became of one start whose command was run (None: it was not tried)."""
        if result is not None and (result.ok or is_silence(result)):
            # Unanswered is not refused: the next look tells.
            return Launch(Outcome(True, "" if result.ok else "no answer; the next look will tell"))
        if result is not None and writer.NOT_WAITING in result.stderr:
            return Launch(Outcome(True, result.complaint()))
        if result is not None and self._is_early(job_id, result):
            # The server looks at its clock now and then: as soon as it has, the job starts.
            return Launch(Outcome(True, "its begin time is now"), Later(argv, early=True))
        return Launch(self.refused(result))

    def _is_early(self, job_id: str, result: Result) -> bool:
        """Whether a start was refused because PBS has not yet seen that its begin time is reached."""
        detail = self.detail(job_id)
        return detail is not None and detail.letter == "W" and writer.NOT_NOW in result.stderr

    def tend(self, look: Look[reader.Detail], in_flight: set[str]) -> None:
        """Run the starts whose turn it is, and those of jobs whose begin time PBS had not seen."""
        for key, flight in self._flights.items():
            detail = look.details.get(key)
            if flight.payload and flight.payload.early and detail is not None and detail.letter == "Q":
                (result,) = self.change([flight.payload.argv])
                if result is not None and result.ok:
                    flight.payload = None
        self._next_turn()

    def _next_turn(self) -> None:
        """Run the starts that wait for PBS's connections, as many as there are now, and look anew whether
        they are possible."""
        waiting = {key: flight for key, flight in self._flights.items() if _waits_its_turn(flight)}
        commands = join([(key, flight.payload.argv) for key, flight in waiting.items() if flight.payload])
        turn = [key for one in commands[: self._client.budget.starts_left()] for key in one.starts]
        others = [flight.decision for key, flight in self._flights.items() if key not in set(turn)]
        room = Room(self._as_it_is, others) if turn else None
        planned: dict[str, tuple[str, Argv]] = {}
        for key in turn:
            assert room is not None
            try:
                planned[key] = key, self._plan_start(waiting[key].decision, room)
            except Failure as error:
                self._failed(key, waiting[key], str(error))
        for key, launch in self._run_starts(planned).items():
            self._flights[key].payload = launch.payload
            if not launch.outcome.accepted:
                self._failed(key, self._flights[key], launch.outcome.message)
        # The time to start begins with the command.
        for key in waiting:
            if key in self._flights:
                self._flights[key].deadline = time.monotonic() + self._pace.start_timeout
        self._turns.wait(sum(map(_waits_its_turn, self._flights.values())))
        if planned:
            self._confirm_pause = self._pace.confirm_interval

    def _plan_start(self, start: d.Start, room: Room) -> tuple[str, ...]:
        if why := self.no_tier(start):
            raise writer.Unfit(why)
        if start.frequency is not None and d.SetFrequency not in self.capabilities:
            raise writer.Unfit(f"job {start.job_id}: its frequency cannot be set without an actuator")
        detail, job = self.detail(start.job_id), self.known(start.job_id)
        if detail is None or job is None:
            raise writer.Unfit(f"job {start.job_id} is not pending in the last listing")
        if not detail.managed:
            raise writer.Unfit(f"job {start.job_id} is not headway's to start")
        waits = job.job.begin_time is not None and job.job.begin_time > self._clock()
        if job.job.held or detail.letter not in ("Q", "W") or waits:
            raise writer.Unfit(f"job {start.job_id} is not startable: {job.reason or 'it is not queued'}")
        hosts = self._last.hosts if isinstance(self._last, PbsLook) else {}
        argv = writer.start(start, detail, hosts=hosts, torque=self._torque)
        room.take(start, job, detail)
        return argv

    def _given_walltime(self, job_id: str) -> str:
        """Give a shrink-to-fit job its walltime before it starts; why that cannot be done, "" if it is.

        PBS's own scheduler does it; without one the job would run for ever."""
        detail = self.detail(job_id)
        if detail is None or not detail.shrinks_from:
            return ""
        (given,) = self.change([writer.limit(job_id, detail.shrinks_from)])
        if given is not None and given.ok:
            return ""
        said = given.complaint() if given is not None else "PBS does not answer"
        return f"job {job_id}: it cannot be given a walltime: {said}"

    @property
    def _torque(self) -> bool:
        return self._world is not None and self._world.torque

    def carry_out(self, decision: d.Decision, now: float) -> Outcome:
        job_id = getattr(decision, "job_id", "")
        known, detail = self.known(job_id), self.detail(job_id)
        if isinstance(decision, d.Suspend) and known is not None and known.state == "suspended":
            return Outcome(True, "it is suspended already")
        if isinstance(decision, d.Resume) and known is not None and known.state == "running":
            return Outcome(True, "it runs already")
        look = self._last if isinstance(self._last, PbsLook) else PbsLook(Snapshot(now))
        reservation = ""
        if isinstance(decision, d.Reserve):
            reservation = look.reservations.get(decision.reservation.id, "")
        elif isinstance(decision, d.Unreserve):
            reservation = look.reservations.get(decision.reservation_id, "")
        try:
            plan = writer.plan(
                decision,
                now=now,
                torque=self._torque,
                running_on=known.placement if known is not None else (),
                hosts=look.hosts,
                processors={name: node.processors for name, node in look.snapshot.nodes.items()},
                reservation=reservation,
                notes=self.as_written(job_id, detail.notes if detail is not None else ""),
                pending=detail,
            )
        except writer.Unfit as error:
            return Outcome(False, str(error))
        return self.remember(plan.noted, job_id, self.run_steps(plan.steps, already=plan.already))

    def signalling(self, job_id: str, name: str) -> tuple[str, ...]:
        return writer.signal(job_id, name)

    def drain(self, node: str, reason: str) -> tuple[str, ...]:
        return writer.offline(node, reason, torque=self._torque)

    def undrain(self, node: str) -> tuple[str, ...]:
        return writer.online(node, torque=self._torque)

    def starts_waiting(self) -> Sequence[StartsWait]:
        return self._turns.waiting()

    def check(self) -> list[Check]:
        return [*checks.run(self._client, self.options, self._clock), *self.check_agents()]


def _waits_its_turn(flight: Flight[Later | None]) -> bool:
    return flight.payload is not None and not flight.payload.early


def _adjusted(able: frozenset[type[d.Decision]], options: PbsOptions) -> frozenset[type[d.Decision]]:
    """Capabilities as the options add to them and take from them."""
    if options.flavour == "torque":
        return able - {d.Resize}
    able = able | {d.Annotate} if options.notes else able
    return able | {d.Reserve, d.Unreserve} if options.reservations else able
