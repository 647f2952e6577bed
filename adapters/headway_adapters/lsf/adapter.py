"""The LSF adapter: looks, tells what happened, carries decisions out, confirms starts.

The control protocol: the administrator inactivates the managed queues (``badmin qinact QUEUE``). Jobs are
still accepted and stay pending, and LSF starts none of them by itself. ``brun`` starts one on the hosts
that headway chose; the next looks confirm that it runs.

``brun`` obeys. It starts held jobs, jobs whose dependency is not met or whose begin time lies ahead, puts
any number of jobs on a full host, and starts a job again that has ended meanwhile. So each start is
checked here once more: hold, dependency, begin time, free slots and the hosts' states against the
last look, and by one ``bjobs`` right before the ``brun`` that the jobs are still pending. What does not
pass is refused. A job that its user cancels between the two is started by OpenLava's and volclava's
``brun`` all the same: its history, which is asked after each ``brun`` that was answered, tells so, and it is
ended again. A job in the background is started like any other, on slots that others have; with agents on
the hosts each tier has room of its own (:mod:`headway_adapters.lsf.room`).

A start that does not happen within ``start_timeout`` is taken back by ``bstop`` and ``bresume``: the job
is pending again, held for a moment between the two. A job may stay forced in LSF's eyes after that
(its manuals do not say); should it start late nevertheless, that is told as any start.

Who holds a job. LSF knows one hold (PSUSP), whoever made it: it keeps headway away from the job until
``bresume``. Nobody needs another word for that.

An outage (mbatchd down, hanging, or talking nonsense) is not news about jobs: no event comes of it.
Looking, waiting and confirming are every adapter's (:mod:`headway_adapters.polling`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from headway import decisions as d
from headway.adapter import Check, Outcome
from headway.adapter.migration import ON_NODES
from headway.errors import Failure, UserError
from headway.model import ClusterDescription
from headway_adapters.lsf import checks, listing, reader, writer
from headway_adapters.lsf.arrays import ARRAYS, read_limits
from headway_adapters.lsf.client import LsfClient, is_silence
from headway_adapters.lsf.flavour import POSSIBLE, Flavour, expected
from headway_adapters.lsf.jobs import JobsListing, known_fields
from headway_adapters.lsf.listing import HostState, Queue
from headway_adapters.lsf.options import LsfOptions
from headway_adapters.lsf.power import PowerSaving
from headway_adapters.lsf.requeues import Requeues
from headway_adapters.lsf.resreq import Host
from headway_adapters.lsf.room import Room
from headway_adapters.lsf.shared import DYNAMIC, NONE, NOTHING, STATIC, Shared, shared
from headway_adapters.lsf.values import Calendar
from headway_adapters.polling import Flight, Launch, Look, PollingAdapter, validated
from headway_adapters.polling.agents import BACKGROUND, FOREGROUND
from headway_adapters.polling.client import Unanswered
from headway_adapters.polling.licences import asked_for, for_ours
from headway_adapters.polling.snapshot import Snapshot, SnapshotJob
from headway_adapters.polling.words import Argv
from headway_adapters.transport import Result, Transport

#: The host groups, and what is said where there is none.
_GROUPS = ("bmgroup", "-r", "-w")
_NO_GROUPS = re.compile("No (?:user/)?host group", re.IGNORECASE)
#: For ``bhosts -o ... -json``; the comment is why an administrator closed a host.
_HOST_FIELDS = ("host_name status max njobs comments", "host_name status max njobs")


@dataclass
class _World:
    """What is learned about the cluster once."""

    name: str
    flavour: Flavour
    jobs: JobsListing
    #: Fields for ``bhosts -o ... -json``; "": hosts are read from text.
    host_fields: str
    static: dict[str, Host] = field(default_factory=dict)
    #: The host groups as LSF told them last: an administrator changes them while we run.
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


class LsfAdapter(PollingAdapter[reader.Detail, Argv]):
    """An LSF cluster. See the module's text for how it is driven."""

    system = "lsf"
    title = "LSF"
    drains = True
    # Its hosts' CPUs decide how brun splits a job over them, and not what is free there: the split is known
    # beforehand (writer.fills), so that other starts need not wait for it (shares_out).
    Options = LsfOptions

    _client: LsfClient

    #: Of the most able flavour; an instance has those of the LSF that it finds.
    capabilities = POSSIBLE

    def __init__(
        self,
        options: LsfOptions | Mapping[str, Any],
        *,
        read_only: bool = False,
        log: Any = None,
        transport: Transport | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        """``read_only``: monitor mode; no command that changes anything is ever run.

        Asks which LSF this is, since its capabilities depend on it; one that does not answer yet is
        thought to be able to do everything. Raises :class:`UserError` for options that are wrong.
        """
        self.options = validated(LsfOptions, options)
        client = LsfClient(self.options, read_only=read_only, transport=transport)
        super().__init__(
            client, self.options, actuators=self.options.actuators, agents=self.options.agents,
            read_only=read_only, log=log, clock=clock,
        )  # fmt: skip
        self._world: _World | None = None
        #: Slots that LSF counts as used on a host beyond those of the listed jobs.
        self._hidden: dict[str, int] = {}
        #: The same, as it was when no start was on its way to the host.
        self._settled: dict[str, int] = {}
        self._requeues = Requeues()
        #: The shared resources as LSF told them last.
        self._shared = NOTHING
        self._power_saving = PowerSaving(self.options.wake_timeout)
        self._flavour = expected(self.options)
        try:
            self._take(checks.flavour(client, self.options)[0])
        except Failure:
            # Told by describe() and check(), which need the answer.
            self._take(self._flavour)

    @classmethod
    def capable_of(
        cls, cluster: ClusterDescription, options: Mapping[str, Any] | None = None
    ) -> frozenset[type[d.Decision]]:
        if not options:
            return cls.capabilities
        read = validated(LsfOptions, options)
        return expected(read).capabilities(read)

    def _take(self, flavour: Flavour) -> None:
        self._flavour = flavour
        self.capabilities = flavour.capabilities(self.options) | self._given

    # ------------------------------------------------------------------ learning

    def learn(self) -> str:
        return self._learn().name

    def _learn(self) -> _World:
        """What does not change while we run. Raises :class:`Failure` when LSF does not answer."""
        flavour, cluster = checks.flavour(self._client, self.options)
        self._take(flavour)
        queues = self._queues()
        missing = [name for name in self.options.queues if name not in queues]
        if missing:
            known = ", ".join(sorted(queues)) or "none"
            raise UserError(f"cluster.options.queues: LSF has no queue {missing[0]!r}. Known: {known}.")
        sleeps = self.options.actuators is not None and self.options.actuators.power_down is not None
        if sleeps and not flavour.ibm:
            raise UserError(
                f"cluster.options.actuators.power_down: {flavour.title} closes a host without a comment, so "
                "a sleeping host could not be told from a broken one; it needs IBM Spectrum LSF"
            )
        jobs = JobsListing(self._client, known_fields(self._client, flavour))
        world = _World(cluster, flavour, jobs, self._host_fields())
        self._learn_hosts(world)
        self._world = world
        return world

    def _queues(self) -> dict[str, Queue]:
        result = self._client.look([("bqueues", "-l")])[0]
        queues = listing.read_queues(result.text)
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
                if listing.read_hosts_json(result.stdout):
                    return fields
            except Failure:
                continue
        return ""

    def _learn_hosts(self, world: _World) -> None:
        """Types, CPUs and memory of the hosts."""
        world.static = reader.static_hosts(self._client.look([("lshosts", "-w")])[0].text)

    # ------------------------------------------------------------------ looking

    def look(self, before: Snapshot | None) -> Look[reader.Detail]:
        world = self._world or self._learn()
        notes: set[str] = set()
        now = self._clock()
        times = Calendar(now)
        listed = world.jobs.read(times, notes)
        rows, facts = listed.rows, listed.facts
        self._requeues.sort_out(
            rows, facts, before, now, lambda keys: self._client.endings(list(keys), times), notes
        )
        # After the jobs: a host that looks fuller than they make it is fuller.
        always: list[tuple[str, ...]] = [
            ("bhosts", "-o", world.host_fields, "-json") if world.host_fields else ("bhosts", "-w"),
            ("bqueues", "-l"),
            STATIC,
            DYNAMIC,
            _GROUPS,
        ]
        argvs = [*always, ("brsvs", "-w")] if world.flavour.ibm else always.copy()
        with_arrays = any(row.array and row.stat == "PEND" for row in rows.values())
        if with_arrays:
            argvs.append(ARRAYS)
        results = self._client.run_many(argvs)
        hosts = _hosts(results[0], as_json=bool(world.host_fields))
        queues = listing.read_queues(results[1].text) if results[1].ok else {}
        if not queues:
            raise Unanswered(f"bqueues -l: {results[1].complaint()}")
        if set(hosts) - set(world.static):
            self._learn_hosts(world)
        world.groups = _host_groups(results[4], world.groups, notes)
        there = self._shared = _shared(results[2], results[3], self._shared, notes)
        nodes = reader.read_nodes(
            hosts, queues, world.static, world.groups, notes, power=self.options.power, shared=there
        )
        states = {name: host.status for name, host in hosts.items()}
        for name in self._power_saving.show(states, nodes.nodes, nodes.power):
            self._log.error(
                "a host does not wake; it counts as down", node=name, seconds=self.options.wake_timeout
            )
        site = reader.Site(
            self.options.queues, self.options.unlimited_walltime, fills=not world.flavour.ibm,
            words=self.words,
        )  # fmt: skip
        found = reader.read_jobs(
            rows, facts, now, site, queues, nodes, world.static, world.groups, notes, before, there,
            _array_limits(results[-1], notes) if with_arrays else {},
        )  # fmt: skip
        managed = {node for name in self.options.queues for node in nodes.members.get(name, ())}
        pools = {
            name: reader.pool(queue, managed=name in self.options.queues)
            for name, queue in queues.items()
            if name in self.options.queues or managed.intersection(nodes.members[name])
        }
        mine = {name: node for name, node in nodes.nodes.items() if not pools.keys().isdisjoint(node.pools)}
        jobs = {key: job for key, job in found.jobs.items() if job.job.pool in pools}
        unread = {
            key for key in (before.jobs if before is not None else ())
            if key in found.unread or key.partition("[")[0] in listed.unread
        }  # fmt: skip
        if before is not None:
            self._fill_in(before, jobs, now, unread)
        reservations = {}
        if world.flavour.ibm:
            told = results[len(always)]
            if is_silence(told):
                raise Unanswered(f"brsvs: {told.complaint()}")
            booked = listing.read_reservations(told.text, Calendar(now), notes) if told.ok else {}
            reservations = reader.read_reservations(booked, mine)
        for name in self.options.queues:
            if name not in queues:
                notes.add(f"queue {name} is gone: LSF moves its jobs to lost_and_found (lsb.queues, bswitch)")
            elif not self.read_only and not queues[name].inactive:
                notes.add(f"queue {name} is active: LSF starts its jobs by itself (badmin qinact {name})")
        self._hidden = _hidden(jobs, nodes.used)
        total = {name: one.amount + found.given_back[name] for name, one in there.licences.items()}
        total = asked_for(total, jobs, before.licences if before is not None else ())
        snapshot = Snapshot(
            time=now, jobs=jobs, nodes=mine, pools=pools, reservations=reservations,
            licences=for_ours(total, found.jobs, pools, first=before is None, notes=notes),
            power={name: power for name, power in nodes.power.items() if name in mine},
        )  # fmt: skip
        return Look(
            snapshot=snapshot, details=found.details, notes=frozenset(notes), unread=frozenset(unread)
        )

    def _fill_in(
        self, before: Snapshot, jobs: dict[str, SnapshotJob], now: float, unread: Collection[str]
    ) -> None:
        """Ask about each job that the listing dropped without having shown its end."""
        missing = [
            key for key, job in before.jobs.items()
            if job.state != "ended" and key not in jobs and key not in unread
        ]  # fmt: skip
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

    # ------------------------------------------------------------------ starts on their way

    def given_up(self, job: SnapshotJob, detail: reader.Detail | None) -> str:
        if detail is not None and detail.held:
            return f"it was held before it started ({job.reason})"
        return ""

    def take_back(self, flight: Flight[Argv], *, late: bool) -> bool:
        """Stop a job that was forced to run and did not start, and let it be pending again, as it was."""
        key = flight.decision.job_id
        if late and not self._pending_again(key):
            return False
        self._unsettle(key, flight.payload)
        return True

    def _pending_again(self, key: str) -> bool:
        held = self.change([writer.hold(key)])[0]
        if held is None or not held.ok:
            if held is not None and any(word in held.stderr for word in writer.ALREADY):
                return True
            self._log.error("a start that does not happen could not be held again", job=key,
                            error="not tried" if held is None else held.complaint())  # fmt: skip
            return False
        freed = self.change([writer.release(key)])[0]
        if freed is None or not freed.ok:
            self._log.warning("a job stays held after its start was taken back", job=key,
                              error="not tried" if freed is None else freed.complaint())  # fmt: skip
        return True

    def _unsettle(self, key: str, argv: Argv) -> None:
        """Give a job the numbers of slots back that its user said; nothing where ``argv`` is empty."""
        if not argv:
            return
        given = self.change([argv])[0]
        if given is None or not given.ok:
            self._log.warning("a job keeps the number of slots of a start that did not happen", job=key,
                              error="not tried" if given is None else given.complaint())  # fmt: skip

    def tend(self, look: Look[reader.Detail], in_flight: set[str]) -> None:
        flown_to = {name for flight in self._flights.values() for name, _ in flight.decision.placement}
        kept = {name: count for name, count in self._settled.items() if name in flown_to}
        self._settled = {
            **{name: count for name, count in self._hidden.items() if name not in flown_to},
            **kept,
        }

    # ------------------------------------------------------------------ apply

    def start_all(self, starts: Sequence[d.Start]) -> list[Launch[Argv]]:
        """Check all, look whether they are still pending, then force them to run."""
        launches: dict[int, Launch[Argv]] = {}
        plans: dict[int, writer.Launching] = {}
        room = self._room()
        for index, start in enumerate(starts):
            try:
                plans[index] = self._plan_start(start, room)
            except writer.Unfit as error:
                launches[index] = Launch(Outcome(False, str(error)))
        self._settle(plans, launches)
        self._still_pending(starts, plans, launches)
        results = self.change([plan.brun for plan in plans.values()]) if plans else []
        for (index, plan), result in zip(plans.items(), results, strict=True):
            outcome = self._launched(result)
            launches[index] = Launch(outcome, plan.unsettle)
            if not outcome.accepted:
                self._unsettle(starts[index].job_id, plan.unsettle)
        if not self._flavour.ibm:
            self._end_again(starts, [at for at in plans if launches[at].outcome == Outcome(True)], launches)
        return [launches[index] for index in range(len(starts))]

    def _settle(self, plans: dict[int, writer.Launching], launches: dict[int, Launch[Argv]]) -> None:
        """Give jobs of LEAST to MOST slots the number that they start with; take out what LSF refuses."""
        asked = [(index, plan.settle) for index, plan in plans.items() if plan.settle]
        results = self.change([argv for _, argv in asked]) if asked else []
        for (index, _), result in zip(asked, results, strict=True):
            if result is None or not result.ok:
                launches[index] = Launch(self.refused(result))
                del plans[index]

    def _end_again(
        self, starts: Sequence[d.Start], begun: Sequence[int], launches: dict[int, Launch[Argv]]
    ) -> None:
        """End those whose end came between the question whether they are pending and their ``brun``."""
        try:
            again = self._client.started_again([starts[index].job_id for index in begun])
        except Failure as error:
            self._log.warning("whether cancelled jobs were started is not known", error=str(error))
            return
        for index in begun:
            key = starts[index].job_id
            if key not in again:
                continue
            ended = self.change([writer.kill(key)])[0]
            if ended is not None and ended.ok:
                said = (
                    f"job {key} was cancelled just before its start, which LSF carried out; it is ended again"
                )
                launches[index] = Launch(Outcome(False, said))
            else:
                self._log.error("a job that was cancelled before its start cannot be ended again", job=key,
                                error="not tried" if ended is None else ended.complaint())  # fmt: skip

    def _launched(self, result: Result | None) -> Outcome:
        if result is not None and result.ok:
            return Outcome(True)
        if result is not None and is_silence(result):
            # Unanswered is not refused: the next look tells.
            return Outcome(True, "no answer; the next look will tell")
        if result is not None and "already started" in result.stderr:
            return Outcome(True, result.complaint())
        return self.refused(result)

    def _still_pending(
        self, starts: Sequence[d.Start], plans: dict[int, writer.Launching], launches: dict[int, Launch[Argv]]
    ) -> None:
        """Take out what is no longer pending: ``brun`` would start even an ended job again."""
        if not plans:
            return
        try:
            rows = self._client.rows([starts[index].job_id for index in plans], Calendar(self._clock()))
        except Failure as error:
            for index in list(plans):
                self._unsettle(starts[index].job_id, plans.pop(index).unsettle)
                launches[index] = Launch(Outcome(False, f"not tried: {error}"))
            return
        for index in list(plans):
            row = rows.get(starts[index].job_id)
            if row is None or row.stat != "PEND":
                self._unsettle(starts[index].job_id, plans.pop(index).unsettle)
                now = "gone" if row is None else row.stat
                said = f"job {starts[index].job_id} is no longer pending, it is {now}"
                launches[index] = Launch(Outcome(False, said))

    def _room(self) -> Room:
        """Free slots of each usable host by the last look, less what is on its way."""
        if self._as_it_is is None:
            return Room({})
        snapshot = self._as_it_is.snapshot
        room = Room({name: node.processors for name, node in snapshot.nodes.items() if node.available})
        for job in snapshot.jobs.values():
            if job.state in ON_NODES:
                room.occupy(job.placement, job.tier, whole=job.job.request.exclusive)
        flying: dict[str, int] = {}
        for key, flight in self._flights.items():
            pending = snapshot.jobs.get(key)
            if pending is not None and pending.state == "pending":
                start = flight.decision
                room.occupy(start.placement, start.tier, whole=pending.job.request.exclusive)
                for name, count in start.placement:
                    flying[name] = flying.get(name, 0) + count
        for name, count in self._hidden.items():
            # A start that happened after the jobs were listed and before the hosts were counts once.
            others = max(count - flying.get(name, 0), min(count, self._settled.get(name, 0)))
            room.occupy(((name, others),), FOREGROUND, whole=False)
        return room

    def _plan_start(self, start: d.Start, room: Room) -> writer.Launching:
        job_id = start.job_id
        if why := self.no_tier(start):
            raise writer.Unfit(why)
        detail = self.detail(job_id)
        known = self.known(job_id)
        if detail is None or known is None or self._last is None or self._world is None:
            raise writer.Unfit(f"job {job_id} is not pending in the last listing")
        if not detail.managed:
            raise writer.Unfit(f"job {job_id} is not headway's to start")
        if known.job.held:
            raise writer.Unfit(f"job {job_id} is not startable: {known.reason}")
        if detail.waits:
            raise writer.Unfit(f"job {job_id} is not startable: {detail.waits}")
        # By the clock and not by the last look: at the very second it is due.
        if known.job.begin_time is not None and known.job.begin_time > self._clock():
            raise writer.Unfit(f"job {job_id} is not startable: its begin time lies ahead")
        nodes = self._last.snapshot.nodes
        whole = known.job.request.exclusive
        for name, count in start.placement:
            node = nodes.get(name)
            if node is None or known.job.pool not in node.pools:
                raise writer.Unfit(f"job {job_id}: host {name} is not one of queue {known.job.pool}'s")
            if not node.available:
                raise writer.Unfit(f"job {job_id}: host {name} takes no jobs: {node.reason}")
            if (state := self._last.snapshot.power.get(name, "on")) != "on":
                raise writer.Unfit(f"job {job_id}: host {name} is {state}")
            free = room.free(name, start.tier)
            if free < (node.processors if whole else count):
                where = " in the background" if start.tier == BACKGROUND else ""
                raise writer.Unfit(
                    f"job {job_id}: host {name} has {free} of {node.processors} slots free{where}; "
                    "LSF would overload it"
                )
            if whole and (start.tier == BACKGROUND or room.free(name, BACKGROUND) < node.processors):
                raise writer.Unfit(f"job {job_id}: host {name} would be shared, the job asks for it whole")
        if start.frequency is not None and d.SetFrequency not in self.capabilities:
            raise writer.Unfit(f"job {job_id}: {self._flavour.lacks(d.SetFrequency)}")
        cpus = {name: host.processors for name, host in self._world.static.items()}
        plan = writer.start(start, detail, cpus, ibm=self._flavour.ibm)
        room.occupy(start.placement, start.tier, whole=whole)
        return plan

    def _carry_out(self, decision: d.Decision, now: float) -> Outcome:
        if type(decision) not in self.capabilities:
            return Outcome(False, self._flavour.lacks(type(decision)))
        return super()._carry_out(decision, now)

    def signalling(self, job_id: str, name: str) -> tuple[str, ...]:
        return writer.signal(job_id, name)

    def drain(self, node: str, reason: str) -> tuple[str, ...]:
        return writer.drain(node, reason)

    def undrain(self, node: str) -> tuple[str, ...]:
        return writer.undrain(node)

    def carry_out(self, decision: d.Decision, now: float) -> Outcome:
        job_id = getattr(decision, "job_id", "")
        known, detail = self.known(job_id), self.detail(job_id)
        snapshot = self._last.snapshot if self._last is not None else None
        existing = None
        if isinstance(decision, d.Reserve) and snapshot is not None:
            existing = snapshot.reservations.get(decision.reservation.id)
        slots = {name: node.processors for name, node in snapshot.nodes.items()} if snapshot else {}
        try:
            plan = writer.plan(
                decision,
                now=now,
                slots=slots,
                reservation_exists=existing is not None and existing.ours,
                placement=known.placement if known is not None else (),
                pending=known is not None and known.state == "pending",
                ibm=self._flavour.ibm,
                description=self.as_written(job_id, detail.description if detail is not None else ""),
            )
        except writer.Unfit as error:
            return Outcome(False, str(error))
        if isinstance(decision, (d.PowerDown, d.PowerUp)) and self._actuators.options.dry:
            for argv in plan.steps:
                self._actuators.say_dry(argv)
            return Outcome(True, "dry: only logged")
        outcome = self.remember(plan.noted, job_id, self.run_steps(plan.steps, already=writer.ALREADY))
        if isinstance(decision, d.Requeue) and outcome.accepted:
            self._requeues.ordered(decision.job_id)
        if isinstance(decision, d.PowerUp) and outcome.accepted:
            self._power_saving.resumed(decision.nodes, snapshot.power if snapshot is not None else {})
        elif isinstance(decision, d.PowerDown) and outcome.accepted:
            self._power_saving.suspended(decision.nodes)
        return outcome

    # ------------------------------------------------------------------ the rest

    def check(self) -> list[Check]:
        return [*checks.run(self._client, self.options, self._clock), *self.check_agents()]


def _hosts(result: Result, *, as_json: bool) -> dict[str, HostState]:
    if not result.ok:
        raise Unanswered(f"bhosts: {result.complaint()}")
    hosts = listing.read_hosts_json(result.stdout) if as_json else listing.read_hosts(result.text)
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
        return listing.read_groups(result.text)
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
    """Slots that LSF counts as used beyond those of the jobs that we see, by host."""
    left = dict(used)
    for job in jobs.values():
        if job.state in ON_NODES:
            for name, count in job.placement:
                left[name] = left.get(name, 0) - count
    return {name: count for name, count in left.items() if count > 0}
