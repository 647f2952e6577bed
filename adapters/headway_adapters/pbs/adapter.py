"""The PBS adapter: looks, tells what happened, starts jobs on chosen vnodes, confirms the starts.

The control protocol: the administrator switches the server's own scheduling off (``qmgr -c "set server
scheduling = False"``), so PBS starts nothing by itself. A start is ``qrun -H '(vnode:ncpus=4)+...' JOB``;
the next looks confirm by the job's state and ``exec_vnode`` that it runs. Looking, waiting and
confirming are every adapter's (:mod:`headway_adapters.polling`).

``qrun`` asks nobody: it starts a held job, and puts a job on a vnode that is full, without a word. So
the adapter checks once more itself, against its last look: the job is queued, nobody holds it, the
vnodes are usable and have that many processors and that much memory left, all that is on its way
counted.

Nothing needs to be taken over or held, and so nothing has to be undone when a start does not happen.
The jobs' ends come from PBS's history (``job_history_enable``); a job that is gone without a word there
has vanished.

An outage (server down, hanging, or talking nonsense) is not news about jobs: no event comes of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from headway import decisions as d
from headway.adapter import Check, Outcome
from headway.errors import Failure, UserError
from headway.model import ClusterDescription, NodeDescription, Placement, Reservation
from headway.nodes import memory_on_node
from headway_adapters.client import Unanswered
from headway_adapters.pbs import checks, documents, reader, values, writer
from headway_adapters.pbs.client import PbsClient, is_silence
from headway_adapters.pbs.options import PbsOptions
from headway_adapters.polling import Launch, Look, PollingAdapter, validated
from headway_adapters.snapshot import Snapshot, SnapshotJob
from headway_adapters.transport import Result, Transport

CAPABILITIES: frozenset[type[d.Decision]] = frozenset(
    {
        d.Start, d.Hold, d.Release, d.Kill, d.Cancel, d.Requeue, d.Suspend, d.Resume, d.SetTimeLimit,
        d.Resize,
    }
)  # fmt: skip
#: Jobs that are asked about in one command.
_ASKED_AT_ONCE = 100
#: How long the text form is read after a listing's JSON could not be used, seconds.
_TEXT_FOR = 300.0


@dataclass(frozen=True)
class PbsLook(Look[reader.Detail]):
    """What the commands need besides the snapshot."""

    #: Vnode -> host, and host -> vnodes.
    hosts: Mapping[str, str] = field(default_factory=dict)
    vnodes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    #: Our reservations' ids -> PBS's.
    reservations: Mapping[str, str] = field(default_factory=dict)
    #: Jobs with a place, also those whose queue is not ours: job id -> request and placement.
    placed: Mapping[str, SnapshotJob] = field(default_factory=dict)


@dataclass(frozen=True)
class _World:
    """What is learned about the cluster once."""

    name: str
    site: reader.Site
    torque: bool
    #: Ended jobs can be asked for.
    history: bool


class PbsAdapter(PollingAdapter[reader.Detail, tuple[str, ...]]):
    """A PBS cluster. See the module's text for how it is driven."""

    system = "pbs"
    title = "PBS"
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
        clock: Callable[[], float] = time.time,
    ) -> None:
        """``read_only``: monitor mode; no command that changes anything is ever run.

        Raises :class:`UserError` for options that are wrong.
        """
        self.options = validated(PbsOptions, options)
        client = PbsClient(self.options, read_only=read_only, transport=transport)
        super().__init__(
            client, self.options, actuators=self.options.actuators, read_only=read_only, log=log, clock=clock
        )
        self.capabilities = _adjusted(self.capabilities, self.options)
        self._world: _World | None = None
        #: Listing -> the time until which its text form is read.
        self._as_text: dict[str, float] = {}

    @classmethod
    def capable_of(
        cls, cluster: ClusterDescription, options: Mapping[str, Any] | None = None
    ) -> frozenset[type[d.Decision]]:
        able = super().capable_of(cluster, options)
        return _adjusted(able, validated(PbsOptions, options)) if options else able

    # ------------------------------------------------------------------ learning

    def learn(self) -> str:
        return self._learn().name

    def _learn(self) -> _World:
        (version,) = self._client.run_many([("qstat", "--version")])
        torque = checks.flavour_of(version, self.options) == "torque"
        form: tuple[str, ...] = () if torque else ("-F", "json")
        server_out, queues_out = self._client.look(
            [("qstat", "-B", "-f", *form), ("qstat", "-Q", "-f", *form)]
        )
        servers = self._objects(server_out, "Server", set())
        if not servers:
            raise Unanswered("qstat -B: lists no server")
        name, server = next(iter(servers.items()))
        queues = reader.read_queues(self._objects(queues_out, "Queue", set()))
        for queue in self.options.queues:
            if queue not in queues:
                known = ", ".join(sorted(queues)) or "none"
                raise UserError(
                    f"cluster.options.queues: PBS has no execution queue {queue!r}. Known: {known}."
                )
        self._world = _World(
            name=name,
            site=reader.Site(
                managed=self.options.queues,
                array_limit=self.options.array_limit,
                unlimited_walltime=self.options.unlimited_walltime,
                zone=0.0 if torque else self._zone(),
                beside_scheduler=self.options.reservations,
            ),
            torque=torque,
            history=not torque and values.truth(server.get("job_history_enable")),
        )
        return self._world

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
        json: tuple[str, ...] = () if world.torque else ("-F", "json")
        listings: list[tuple[str, ...]] = [
            self._form("jobs", world, now),
            self._form("nodes", world, now),
            ("qstat", "-Q", "-f", *json),
            ("qstat", "-B", "-f", *json),
        ]
        if not world.torque:
            listings.append(("pbs_rstat", "-F"))
        jobs_out, nodes_out, queues_out, server_out, *reserved_out = self._client.run_many(listings)
        for result in (queues_out, server_out):
            if not result.ok:
                raise Unanswered(f"{' '.join(result.argv[:3])}: {result.complaint()}")
        queues = reader.read_queues(self._objects(queues_out, "Queue", notes))
        if not queues:
            raise Unanswered("qstat -Q: lists no execution queue")
        self._own_scheduler(server_out, queues, notes)
        node_records = self._records("nodes", nodes_out, world, now, notes)
        if not node_records:
            raise Unanswered("pbsnodes: lists none")
        nodes = reader.read_nodes(node_records, queues, notes)
        records = self._records("jobs", jobs_out, world, now, notes)
        found = reader.read_jobs(records, now, world.site, queues, nodes, notes)
        pools = reader.pools(queues, nodes, world.site)
        mine = {
            name: msgspec.structs.replace(node, pools=tuple(pool for pool in node.pools if pool in pools))
            for name, node in nodes.nodes.items()
            if any(pool in pools for pool in node.pools)
        }
        placed = {key: job for key, job in found.jobs.items() if job.placement and job.state != "ended"}
        jobs = {
            key: job
            for key, job in found.jobs.items()
            # Whatever queue it came from: what runs on our vnodes is load.
            if job.job.pool in pools or (key in placed and any(name in mine for name, _ in job.placement))
        }
        if before is not None:
            self._fill_in(before, jobs, world, queues, nodes, notes)
        self._place_ended(jobs)
        kept, ids = self._reservations(reserved_out, world, mine, notes)
        snapshot = Snapshot(
            time=now, jobs=jobs, nodes=mine, pools=pools, reservations=kept,
            power={name: power for name, power in nodes.power.items() if name in mine},
        )  # fmt: skip
        return PbsLook(
            snapshot=snapshot, details=found.details, notes=frozenset(notes), hosts=nodes.hosts,
            vnodes=nodes.vnodes, reservations=ids, placed=placed,
        )  # fmt: skip

    def _form(self, what: str, world: _World, now: float) -> tuple[str, ...]:
        """The command that lists jobs or vnodes, in the best form that can be read now."""
        plain = now < self._as_text.get(what, 0.0)
        if what == "jobs":
            if world.torque:
                return ("qstat", "-t", "-f") if plain else ("qstat", "-t", "-x")
            return ("qstat", "-t", "-f") if plain else ("qstat", "-t", "-f", "-F", "json")
        if world.torque:
            return ("pbsnodes", "-a") if plain else ("pbsnodes", "-x")
        return ("pbsnodes", "-av") if plain else ("pbsnodes", "-av", "-F", "json")

    def _records(self, what: str, result: Result, world: _World, now: float, notes: set[str]) -> Any:
        """A listing's records; the text form is asked for when the other cannot be understood.

        Raises :class:`Unanswered` when neither can.
        """
        if not result.ok:
            raise Unanswered(f"{' '.join(result.argv[:3])}: {result.complaint()}")
        if now >= self._as_text.get(what, 0.0):
            try:
                return _structured(what, result.stdout, world.torque)
            except documents.Malformed as error:
                form = "XML" if world.torque else "JSON"
                notes.add(f"the {what} are read from the text form, their {form} could not be used: {error}")
                self._as_text[what] = now + _TEXT_FOR
                result = self._client.look([self._form(what, world, now)])[0]
        try:
            return (documents.jobs_text if what == "jobs" else documents.nodes_text)(result.stdout)
        except documents.Malformed as error:
            # Perhaps only this answer was cut: the better form is tried again.
            self._as_text.pop(what, None)
            raise Unanswered(str(error)) from error

    def _objects(self, result: Result, kind: str, notes: set[str]) -> dict[str, dict[str, Any]]:
        """Queues or the server."""
        try:
            if "json" in result.argv:
                return documents.objects_json(result.stdout, kind)
        except documents.Malformed as error:
            notes.add(f"the {kind.lower()}s are read from the text form: {error}")
            result = self._client.look([result.argv[: result.argv.index("-F")]])[0]
        return documents.objects_text(result.text, kind)

    def _own_scheduler(self, server_out: Result, queues: Mapping[str, reader.Queue], notes: set[str]) -> None:
        """Note it when PBS's scheduler starts jobs of the managed queues."""
        servers = self._objects(server_out, "Server", notes)
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
        self, results: Sequence[Result], world: _World, mine: Mapping[str, NodeDescription], notes: set[str]
    ) -> tuple[dict[str, Reservation], dict[str, str]]:
        kept: dict[str, Reservation] = {}
        ids: dict[str, str] = {}
        for result in results:
            if is_silence(result):
                raise Unanswered(f"pbs_rstat: {result.complaint()}")
            if not result.ok:
                notes.add(f"reservations cannot be read: {result.complaint()}")
                continue
            for key, (name, reservation) in reader.read_reservations(result.text, world.site, notes).items():
                nodes = tuple(node for node in reservation.nodes if node in mine)
                if nodes:
                    kept[key] = msgspec.structs.replace(reservation, nodes=nodes)
                    ids[key] = name
        return kept, ids

    def _fill_in(
        self,
        before: Snapshot,
        jobs: dict[str, SnapshotJob],
        world: _World,
        queues: Mapping[str, reader.Queue],
        nodes: reader.Nodes,
        notes: set[str],
    ) -> None:
        """Ask about each job that the listing dropped without having shown its end."""
        missing = [key for key, job in before.jobs.items() if job.state != "ended" and key not in jobs]
        if not missing:
            return
        records = self._asked(missing, world)
        asked = {key: records[key] for key in missing if key in records}
        site = replace(world.site, array_limit=len(asked))
        found = reader.read_jobs(asked, self._clock(), site, queues, nodes, notes)
        for key in missing:
            ending = found.jobs.get(key)
            if ending is None:
                continue
            known = before.jobs[key]
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

    def _asked(self, job_ids: Sequence[str], world: _World) -> dict[str, documents.JobRecord]:
        """What PBS and its history know of these jobs; those that it does not know are left out.

        Raises :class:`Unanswered` when that cannot be asked now.
        """
        found: dict[str, documents.JobRecord] = {}
        asked = [job_id for job_id in job_ids if _is_id(job_id)]
        if world.torque:
            head: tuple[str, ...] = ("qstat", "-t", "-x")
        else:
            head = ("qstat", *(("-x",) if world.history else ()), "-t", "-f", "-F", "json")
        parts = [asked[at : at + _ASKED_AT_ONCE] for at in range(0, len(asked), _ASKED_AT_ONCE)]
        for part, result in zip(parts, self._client.run_many([(*head, *p) for p in parts]), strict=True):
            found.update(self._answer(part, result, world))
        return found

    def _answer(
        self, part: Sequence[str], result: Result, world: _World
    ) -> Mapping[str, documents.JobRecord]:
        if not result.ok and not _only_unknown(result):
            raise Unanswered(f"{' '.join(result.argv[:3])}: {result.complaint()}")
        if not result.ok and not result.stdout.strip():
            return {}
        try:
            return _structured("jobs", result.stdout, world.torque)
        except documents.Malformed:
            flags = ("-x",) if world.history else ()
            again = self._client.run(("qstat", *flags, "-t", "-f", *part))
            if not again.ok and not _only_unknown(again):
                raise Unanswered(f"qstat -f: {again.complaint()}") from None
            try:
                return documents.jobs_text(again.stdout)
            except documents.Malformed as error:
                raise Unanswered(str(error)) from error

    # ------------------------------------------------------------------ apply

    def given_up(self, job: SnapshotJob, detail: reader.Detail | None) -> str:
        if job.held_by in ("user", "administrator"):
            return f"it was held before it started ({job.reason})"
        return ""

    def start_all(self, starts: Sequence[d.Start]) -> list[Launch[tuple[str, ...]]]:
        """Run them all; the payload is the command, where it is to be run once more."""
        launches: dict[int, Launch[tuple[str, ...]]] = {}
        argvs: dict[int, tuple[str, ...]] = {}
        room = _Room(self._last, [flight.decision for flight in self._flights.values()])
        for index, start in enumerate(starts):
            try:
                argvs[index] = self._plan_start(start, room)
            except Failure as error:
                launches[index] = Launch(Outcome(False, str(error)))
        done = self.change(list(argvs.values())) if argvs else []
        for index, result in zip(argvs, done, strict=True):
            if result is not None and (result.ok or is_silence(result)):
                # Unanswered is not refused: the next look tells.
                said = "" if result.ok else "no answer; the next look will tell"
                launches[index] = Launch(Outcome(True, said), ())
            elif result is not None and writer.NOT_WAITING in result.stderr:
                launches[index] = Launch(Outcome(True, result.complaint()), ())
            elif result is not None and self._is_early(starts[index].job_id, result):
                # The server looks at its clock now and then: as soon as it has, the job starts.
                launches[index] = Launch(Outcome(True, "its begin time is now"), argvs[index])
            else:
                launches[index] = Launch(self.refused(result))
        return [launches[index] for index in range(len(starts))]

    def _is_early(self, job_id: str, result: Result) -> bool:
        """Whether a start was refused because PBS has not yet seen that its begin time is reached."""
        detail = self.detail(job_id)
        return detail is not None and detail.letter == "W" and writer.NOT_NOW in result.stderr

    def tend(self, look: Look[reader.Detail], in_flight: set[str]) -> None:
        """Start the jobs again whose begin time PBS had not seen."""
        for key, flight in self._flights.items():
            detail = look.details.get(key)
            if flight.payload and detail is not None and detail.letter == "Q":
                (result,) = self.change([flight.payload])
                if result is not None and result.ok:
                    flight.payload = ()

    def _plan_start(self, start: d.Start, room: _Room) -> tuple[str, ...]:
        if start.tier != "foreground":
            raise writer.Unfit(f"job {start.job_id}: PBS offers no tiers")
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
        argv = writer.start(start, detail, torque=self._torque)
        room.take(start.job_id, job, start.placement, detail)
        return argv

    @property
    def _torque(self) -> bool:
        return self._world is not None and self._world.torque

    def carry_out(self, decision: d.Decision, now: float) -> Outcome:
        known = self.known(getattr(decision, "job_id", ""))
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
                running_on=tuple(name for name, _ in known.placement) if known is not None else (),
                hosts=look.hosts,
                processors={name: node.processors for name, node in look.snapshot.nodes.items()},
                reservation=reservation,
            )
        except writer.Unfit as error:
            return Outcome(False, str(error))
        return self.run_steps(plan.steps, already=plan.already)

    def drain(self, node: str, reason: str) -> tuple[str, ...]:
        return writer.offline(node, reason, torque=self._torque)

    def undrain(self, node: str) -> tuple[str, ...]:
        return writer.online(node, torque=self._torque)

    def check(self) -> list[Check]:
        return checks.run(self._client, self.options, self._clock)


def _adjusted(able: frozenset[type[d.Decision]], options: PbsOptions) -> frozenset[type[d.Decision]]:
    """Capabilities as the options add to them and take from them."""
    if options.flavour == "torque":
        return able - {d.Resize}
    return able | {d.Reserve, d.Unreserve} if options.reservations else able


class _Room:
    """What the vnodes have left, by the last look and all that is on its way."""

    def __init__(self, look: Look[reader.Detail] | None, flights: Sequence[d.Start]) -> None:
        self._nodes = look.snapshot.nodes if look is not None else {}
        self._power = look.snapshot.power if look is not None else {}
        self._hosts = look.hosts if isinstance(look, PbsLook) else {}
        self._vnodes = look.vnodes if isinstance(look, PbsLook) else {}
        self._used: dict[str, int] = {}
        self._memory: dict[str, int] = {}
        placed = look.placed if isinstance(look, PbsLook) else {}
        for job in placed.values():
            self._add(job, job.placement)
        for start in flights:
            known = look.snapshot.jobs.get(start.job_id) if look is not None else None
            if known is not None and known.state == "pending":
                self._add(known, start.placement)

    def _add(self, job: SnapshotJob, placement: Placement) -> None:
        for name, count in placement:
            self._used[name] = self._used.get(name, 0) + count
            memory = memory_on_node(job.job.request, count)
            self._memory[name] = self._memory.get(name, 0) + memory

    def take(self, job_id: str, job: SnapshotJob, placement: Placement, detail: reader.Detail) -> None:
        """Count a start. Raises :class:`writer.Unfit` if a vnode has not enough left, or is not usable."""
        for name, count in placement:
            node = self._nodes.get(name)
            if node is None:
                raise writer.Unfit(f"job {job_id}: {name!r} is not a vnode of the managed queues")
            if not node.available:
                raise writer.Unfit(f"job {job_id}: vnode {name} is not usable ({node.reason})")
            if self._power.get(name, "on") != "on":
                raise writer.Unfit(f"job {job_id}: vnode {name} is {self._power[name]}")
            if job.job.pool not in node.pools:
                raise writer.Unfit(f"job {job_id}: vnode {name} does not serve queue {job.job.pool}")
            left = node.processors - self._used.get(name, 0)
            if count > left or (detail.whole and left < node.processors):
                raise writer.Unfit(
                    f"job {job_id}: vnode {name} has {max(left, 0)} processors free, not {count}"
                )
            memory = memory_on_node(job.job.request, count)
            if node.memory and memory > node.memory - self._memory.get(name, 0):
                raise writer.Unfit(f"job {job_id}: vnode {name} has too little memory free")
            if detail.whole_hosts:
                for other in self._vnodes.get(self._hosts.get(name, name), ()):
                    if self._used.get(other, 0):
                        raise writer.Unfit(f"job {job_id}: its host is to be had whole, {other} is in use")
        self._add(job, placement)


def _structured(what: str, data: bytes, torque: bool) -> Any:
    if what == "jobs":
        return (documents.jobs_xml if torque else documents.jobs_json)(data)
    return (documents.nodes_xml if torque else documents.nodes_json)(data)


def _is_id(job_id: str) -> bool:
    try:
        writer.job(job_id)
    except writer.Unfit:
        return False
    return True


def _only_unknown(result: Result) -> bool:
    """Whether a command failed for nothing but jobs that PBS does not know."""
    if result.unanswered or result.too_long:
        return False
    lines = [line for line in result.stderr.splitlines() if line.strip()]
    return bool(lines) and all("Unknown Job" in line or "has finished" in line for line in lines)
