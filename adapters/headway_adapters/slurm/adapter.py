"""The Slurm adapter: looks, tells what happened, carries decisions out, confirms starts.

The control protocol: every job of a managed partition is held as administrator, so Slurm starts
nothing by itself. A start pins the job to its nodes and releases it; the next looks confirm that
it runs. One that stays pending is held again and its node list is given back, so that nothing
ever starts later than it was decided.

Who holds a job. An administrator's hold (``JobHeldAdmin``) is headway's unless its AdminComment
begins with the hold marker (option ``hold_marker``, "hold"): an operator who wants headway to
leave a job alone writes ``scontrol update JobId=J AdminComment="hold: why"``, and ends that with
``AdminComment=``. A user's hold (``JobHeldUser``: ``sbatch --hold``, ``scontrol hold``) is
respected until the user releases the job; then headway takes it over by holding it itself.
The submit filter's hold looks like a user's and is told apart by its AdminComment.

An outage (slurmctld down, hanging, or talking nonsense) is not news about jobs: no event comes
of it. Looking, waiting and confirming are every adapter's (:mod:`headway_adapters.polling`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from headway import decisions as d
from headway.adapter import Check, Outcome
from headway.errors import Failure, UserError
from headway.model import NodeDescription, Placement, PoolDescription
from headway_adapters.actuators import OURS
from headway_adapters.client import Unanswered
from headway_adapters.polling import Flight, Launch, Look, PollingAdapter, validated
from headway_adapters.slurm import checks, marker, reader, writer
from headway_adapters.slurm.client import SlurmClient, is_silence
from headway_adapters.slurm.options import SlurmOptions
from headway_adapters.slurm.power import PowerSaving
from headway_adapters.snapshot import Snapshot, SnapshotJob
from headway_adapters.transport import Result, Transport

#: Jobs that one look's housekeeping touches at most; the rest comes at the next look.
_TEND_AT_ONCE = 500

#: Looks after a job's end in which its energy is asked for.
_ENERGY_TRIES = 5

CAPABILITIES: frozenset[type[d.Decision]] = frozenset(
    {
        d.Start, d.Hold, d.Release, d.Kill, d.Cancel, d.Requeue, d.Suspend, d.Resume, d.SetTimeLimit,
        d.Resize, d.Reserve, d.Unreserve,
    }
)  # fmt: skip


@dataclass(frozen=True)
class _Pinned:
    """What is to be restored when a start does not happen."""

    pin: marker.Pin
    #: The pin is in the job's AdminComment.
    marked: bool


_Look = Look[reader.Detail]


@dataclass
class _World:
    """What is learned about the cluster once."""

    name: str
    site: reader.Site
    #: Partitions that share nodes with the managed ones, and these.
    partitions: frozenset[str]
    nodes_as_json: Sequence[str] | None
    accounting: bool
    #: Slurm measures what nodes draw.
    measures: bool
    config: Mapping[str, str] = field(default_factory=dict)


class SlurmAdapter(PollingAdapter[reader.Detail, _Pinned]):
    """A Slurm cluster. See the module's text for how it is driven."""

    system = "slurm"
    title = "Slurm"
    drains = True
    enters_reservations = True
    Options = SlurmOptions

    _client: SlurmClient

    #: Those of every configuration; an instance may have more.
    capabilities = CAPABILITIES

    def __init__(
        self,
        options: SlurmOptions | Mapping[str, Any],
        *,
        read_only: bool = False,
        log: Any = None,
        transport: Transport | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """``read_only``: monitor mode; no command that changes anything is ever run.

        Raises :class:`UserError` for options that are wrong.
        """
        self.options = validated(SlurmOptions, options)
        client = SlurmClient(self.options, read_only=read_only, transport=transport)
        super().__init__(
            client, self.options, actuators=self.options.actuators, read_only=read_only, log=log, clock=clock
        )
        if self.options.power:
            self.capabilities = self.capabilities | {d.PowerDown, d.PowerUp}
        self._power_saving = PowerSaving()
        #: Jobs that ended, and how many more looks ask for what they used.
        self._unmeasured: dict[str, int] = {}
        self._world: _World | None = None
        self._taken: set[str] = set()

    def learn(self) -> str:
        return self._learn().name

    def _learn(self) -> _World:
        version, shown, listed = self._client.look(
            [("squeue", "--version"), ("scontrol", "show", "config"), ("scontrol", "-o", "show", "partition")]
        )
        config = reader.config(shown.text)
        partitions = reader.read_partitions(listed.text)
        if not config or not partitions:
            silent = shown if not config else listed
            said = silent.text.strip().splitlines()
            found = repr(said[0][:80]) if said else "nothing"
            raise Unanswered(f"{' '.join(silent.argv[:4])}: expected Slurm's listing, found {found}")
        missing = [name for name in self.options.partitions if name not in partitions]
        if missing:
            known = ", ".join(sorted(partitions)) or "none"
            raise UserError(
                f"cluster.options.partitions: Slurm has no partition {missing[0]!r}. Known: {known}."
            )
        select_type = config.get("SelectType", "")
        parameters = config.get("SelectTypeParameters", "").upper()
        site = reader.Site(
            managed=self.options.partitions,
            hold_marker=self.options.hold_marker,
            array_limit=self.options.array_limit,
            unlimited_walltime=self.options.unlimited_walltime,
            memory_managed="MEMORY" in parameters,
            whole_nodes=select_type == "select/linear",
            whole_cores="CR_CPU" not in parameters,
            power=self.options.power,
        )
        nodes = {node for name in self.options.partitions for node in partitions[name].nodes}
        sharing = frozenset(p.name for p in partitions.values() if nodes & set(p.nodes))
        storage = config.get("AccountingStorageType", "")
        accounting = self.options.accounting == "yes" or (
            self.options.accounting == "auto" and storage.endswith("slurmdbd")
        )
        as_json: Sequence[str] | None = ("sinfo", "--json", "-a")
        if checks.version_of(version.text) >= (23, 2):
            # From here on sinfo's JSON groups nodes instead of listing them.
            as_json = ("scontrol", "show", "nodes", "--json", "-a")
        self._world = _World(
            name=config.get("ClusterName", "slurm"),
            site=site,
            partitions=sharing | set(self.options.partitions),
            nodes_as_json=as_json,
            accounting=accounting,
            measures=config.get("AcctGatherEnergyType", "").rpartition("/")[2] not in ("", "none", "(null)"),
            config=config,
        )
        return self._world

    # ------------------------------------------------------------------ looking

    def look(self, before: Snapshot | None) -> _Look:
        world = self._world or self._learn()
        notes: set[str] = set()
        now = self._clock()
        nodes_as_text = ("scontrol", "-o", "show", "nodes", "-a")
        queue, partitions_out, reservations_out, nodes_out, *measured = self._client.run_many(
            [
                ("squeue", "--json", "-a", "-t", "all"),
                ("scontrol", "-o", "show", "partition", "-a"),
                ("scontrol", "-o", "show", "reservation"),
                world.nodes_as_json or nodes_as_text,
                # Not every Slurm writes watts into its JSON.
                *([nodes_as_text] if world.measures else []),
            ]
        )
        for result in (queue, partitions_out, reservations_out):
            if not result.ok:
                raise Unanswered(f"{' '.join(result.argv[:3])}: {result.complaint()}")
        partitions = reader.read_partitions(partitions_out.text)
        if not partitions:
            raise Unanswered("scontrol show partition: lists none")
        nodes = self._nodes(nodes_out, world, notes)
        found = reader.read_jobs(queue.stdout, now, world.site, partitions, nodes, notes)
        pools = {
            name: partition.pool() if name in world.site.managed else _closed(partition)
            for name, partition in partitions.items()
            if name in world.partitions
        }
        mine: dict[str, NodeDescription] = {
            name: node for name, node in nodes.nodes.items() if world.partitions.intersection(node.pools)
        }
        reservations = {}
        for key, reservation in reader.read_reservations(reservations_out.text, notes).items():
            kept = tuple(node for node in reservation.nodes if node in mine)
            if kept:
                pool = reservation.pool if reservation.pool in pools else ""
                reservations[key] = msgspec.structs.replace(reservation, nodes=kept, pool=pool)
        jobs = {key: job for key, job in found.jobs.items() if job.job.pool in pools}
        if before is not None:
            self._fill_in(before, jobs, world, now)
        watts = reader.read_watts(measured[0].text) if measured and measured[0].ok else {}
        if world.measures and world.accounting and before is not None:
            self._ask_energies(before, jobs)
        snapshot = Snapshot(
            time=now, jobs=jobs, nodes=mine, pools=pools, reservations=reservations,
            power={name: power for name, power in nodes.power.items() if name in mine},
            watts={name: value for name, value in watts.items() if name in mine},
        )  # fmt: skip
        return Look(snapshot=snapshot, details=found.details, notes=frozenset(notes))

    def _nodes(self, result: Result, world: _World, notes: set[str]) -> reader.Nodes:
        if world.nodes_as_json is not None:
            if is_silence(result):
                raise Unanswered(f"{' '.join(result.argv[:3])}: {result.complaint()}")
            try:
                if not result.ok:
                    raise Failure(result.complaint())
                return reader.read_nodes(result.stdout, world.site, notes)
            except Failure as error:
                text = self._client.look([("scontrol", "-o", "show", "nodes", "-a")])[0].text
                found = reader.read_nodes_text(text, world.site, notes)
                if not found.nodes:
                    raise Unanswered(f"listing of nodes: {error}") from error
                notes.add(f"nodes are read from text, their JSON could not be used: {error}")
                world.nodes_as_json = None
                return found
        if not result.ok:
            raise Unanswered(f"{' '.join(result.argv[:3])}: {result.complaint()}")
        found = reader.read_nodes_text(result.text, world.site, notes)
        if not found.nodes:
            raise Unanswered("scontrol show nodes: lists none")
        return found

    def _fill_in(self, before: Snapshot, jobs: dict[str, SnapshotJob], world: _World, now: float) -> None:
        """Ask about each job that the listing dropped without having shown its end."""
        missing = [key for key, job in before.jobs.items() if job.state != "ended" and key not in jobs]
        if not missing:
            return
        endings = self._client.endings(missing, accounting=world.accounting)
        for key in missing:
            ending = endings.get(key)
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

    # ------------------------------------------------------------------ housekeeping

    def adopt(self, look: _Look) -> Iterable[tuple[d.Start, _Pinned, int]]:
        for key, job in look.snapshot.jobs.items():
            detail = look.details.get(key)
            if job.releasing and detail is not None and detail.pin is not None:
                start = d.Start(job_id=key, placement=job.pinned, reason="asked for before this run began")
                yield start, _Pinned(detail.pin, True), detail.pin.restarts

    def given_up(self, job: SnapshotJob, detail: reader.Detail | None) -> str:
        if detail is not None and detail.held:
            return f"it was held before it started ({job.reason})"
        return ""

    def take_back(self, flight: Flight[_Pinned], *, late: bool) -> bool:
        """Hold a job again and give it its user's node list back."""
        key, pinned = flight.decision.job_id, flight.payload
        if late:
            held = self.change([writer.hold(key)])[0]
            if held is None or not held.ok:
                self._log.error("a start that does not happen could not be held again", job=key,
                                error="not tried" if held is None else held.complaint())  # fmt: skip
                return False
        given = self.change([writer.restore(key, pinned.pin, mark=pinned.marked)])[0]
        if given is None or not given.ok:
            self._log.warning("a node list could not be given back", job=key,
                              error="not tried" if given is None else given.complaint())  # fmt: skip
        return True

    def tend(self, look: _Look, in_flight: set[str]) -> None:
        """Take over what is not held, make the filter's holds ours, clear pins of the past.

        Not for jobs that were ``in_flight`` in this look: what it shows of them is over.
        """
        if self.options.power:
            self._tend_power(look.snapshot)
        takes: dict[str, tuple[str, ...]] = {}
        clears: dict[str, tuple[str, ...]] = {}
        for key, detail in look.details.items():
            job = look.snapshot.jobs.get(key)
            if job is None or not detail.managed or key in in_flight:
                continue
            try:
                if detail.from_filter or not detail.held:
                    takes.setdefault(detail.record, writer.take(detail.record, mark=detail.comment_free
                                                                and detail.pin is None))  # fmt: skip
                elif detail.pin is not None and job.held_by == "headway":
                    clears[key] = writer.restore(key, detail.pin, mark=True)
            except writer.Unfit as error:
                self.note([f"job {key} cannot be taken over: {error}"])
            if len(takes) + len(clears) >= _TEND_AT_ONCE:
                break
        if not takes and not clears:
            return
        work = [*takes.items(), *clears.items()]
        done = self.change([argv for _, argv in work])
        for (key, _), result in zip(work, done, strict=True):
            if result is not None and result.ok:
                if key in takes and key not in self._taken:
                    self._taken.add(key)
                    self._log.info("took a job over: it is held for headway", job=key)
            elif result is not None and not is_silence(result):
                self.note([f"job {key} could not be taken over: {result.complaint()}"])

    def _tend_power(self, snapshot: Snapshot) -> None:
        """Wake those that are to wake since they fell asleep, and drain those that did not wake."""
        wake, failed = self._power_saving.looked(snapshot)
        if wake:
            self._ask_power(writer.power(wake, "POWER_UP"))
        for node in failed:
            reason = snapshot.nodes[node].reason
            self._log.error("a node does not wake; it is drained", node=node, error=reason)
            self._ask_power(writer.drain(node, f"{OURS}did not wake in time"))

    def _ask_power(self, argv: tuple[str, ...]) -> Outcome:
        if self._actuators.options.dry:
            self._actuators.say_dry(argv)
            return Outcome(True, "dry: only logged")
        outcome = self.run_steps([argv])
        if not outcome.accepted:
            self._log.warning(
                "a node's power could not be changed", command=" ".join(argv), error=outcome.message
            )
        return outcome

    def drain(self, node: str, reason: str) -> tuple[str, ...]:
        return writer.drain(node, reason)

    def undrain(self, node: str) -> tuple[str, ...]:
        return writer.undrain(node)

    # ------------------------------------------------------------------ apply

    def start_all(self, starts: Sequence[d.Start]) -> list[Launch[_Pinned]]:
        """Pin all, then release those that were pinned."""
        launches: dict[int, Launch[_Pinned]] = {}
        plans: dict[int, writer.Plan] = {}
        for index, start in enumerate(starts):
            try:
                plans[index] = self._plan_start(start)
            except writer.Unfit as error:
                launches[index] = Launch(Outcome(False, str(error)))
        order = list(plans)
        updated = self.change([plans[index].steps[0] for index in order]) if order else []
        again = [
            index for index, result in zip(order, updated, strict=True)
            if result is not None and not result.ok and "update not available right now" in result.stderr
        ]  # fmt: skip
        marked = set(order)
        released = []
        results: dict[int, Result | None] = dict(zip(order, updated, strict=True))
        if again:
            # With accounting, comments of a job that was submitted just now cannot be written yet.
            bare = [_without(plans[index].steps[0], "AdminComment=") for index in again]
            results.update(zip(again, self.change(bare), strict=True))
            marked.difference_update(again)
        outside = [index for index in order if _refuses_reservation(plans[index], results[index])]
        if outside:
            # Better on time beside its reservation, which may be gone, than late.
            for index in outside:
                self._log.warning("a job could not enter its reservation", job=starts[index].job_id,
                                  error=self.refused(results[index]).message)  # fmt: skip
            bare = [_without(plans[index].steps[0], "ReservationName=") for index in outside]
            results.update(zip(outside, self.change(bare), strict=True))
        for index in order:
            result = results[index]
            if result is not None and result.ok:
                released.append(index)
            else:
                launches[index] = Launch(self.refused(result))
        done = self.change([plans[index].steps[1] for index in released]) if released else []
        for index, result in zip(released, done, strict=True):
            start, plan = starts[index], plans[index]
            assert plan.pin is not None
            detail = self.detail(start.job_id)
            pinned = _Pinned(plan.pin, index in marked and detail is not None and detail.comment_free)
            if result is not None and (result.ok or is_silence(result)):
                # Unanswered is not refused: the next look tells.
                said = "" if result.ok else "no answer; the next look will tell"
                launches[index] = Launch(Outcome(True, said), pinned)
            else:
                self.change([writer.restore(start.job_id, plan.pin, mark=pinned.marked)])
                launches[index] = Launch(self.refused(result))
        return [launches[index] for index in range(len(starts))]

    def _plan_start(self, start: d.Start) -> writer.Plan:
        if start.tier != "foreground":
            raise writer.Unfit(f"job {start.job_id}: Slurm offers no tiers")
        if start.frequency is not None and d.SetFrequency not in self.capabilities:
            raise writer.Unfit(f"job {start.job_id}: its frequency cannot be set without an actuator")
        detail = self.detail(start.job_id)
        if detail is None or self._last is None:
            raise writer.Unfit(f"job {start.job_id} is not pending in the last listing")
        if not detail.managed:
            raise writer.Unfit(f"job {start.job_id} is not headway's to start")
        job = self._last.snapshot.jobs[start.job_id]
        if job.job.held:
            raise writer.Unfit(f"job {start.job_id} is not startable: {job.reason}")
        reserved = any(r.job_id == start.job_id for r in self._last.snapshot.reservations.values())
        return writer.start(start, detail, job.job.pool, reserved=reserved)

    def carry_out(self, decision: d.Decision, now: float) -> Outcome:
        if isinstance(decision, d.PowerDown | d.PowerUp):
            return self._change_power(decision)
        job_id = getattr(decision, "job_id", "")
        known, detail = self.known(job_id), self.detail(job_id)
        existing = None
        if isinstance(decision, d.Reserve) and self._last is not None:
            existing = self._last.snapshot.reservations.get(decision.reservation.id)
        try:
            plan = writer.plan(
                decision,
                now=now,
                hold_marker=self.options.hold_marker,
                reservation_user=self.options.reservation_user,
                reservation_exists=existing is not None and existing.ours,
                running_nodes=_nodes_of(known.placement) if known is not None else (),
                comment_free=detail is None or detail.comment_free or isinstance(decision, d.Release),
            )
        except writer.Unfit as error:
            return Outcome(False, str(error))
        gone = (writer.NO_RESERVATION,) if isinstance(decision, d.Unreserve) else ()
        already = (*writer.ALREADY, *gone)
        return self.run_steps(plan.steps, essential=plan.essential, already=already)

    def _change_power(self, decision: d.PowerDown | d.PowerUp) -> Outcome:
        falls = isinstance(decision, d.PowerDown)
        word = "POWER_DOWN" if falls else "POWER_UP"
        try:
            argv = writer.power(decision.nodes, word)
        except writer.Unfit as error:
            return Outcome(False, str(error))
        if self._actuators.options.dry:
            return self._ask_power(argv)
        saving, last = self._power_saving, self._last.snapshot if self._last is not None else None
        nodes = saving.down(decision.nodes, last) if falls else saving.up(decision.nodes, last)
        if not nodes:
            return Outcome(True)
        outcome = self._ask_power(writer.power(nodes, word))
        if falls and outcome.accepted:
            saving.went(nodes)
        return outcome

    # ------------------------------------------------------------------ the rest

    def check(self) -> list[Check]:
        return checks.run(self._client, self.options, self._clock)


def _without(argv: Sequence[str], key: str) -> tuple[str, ...]:
    return tuple(word for word in argv if not word.startswith(key))


def _refuses_reservation(plan: writer.Plan, result: Result | None) -> bool:
    """Whether a pin may have failed because of the job's reservation."""
    reserved = plan.pin is not None and plan.pin.reserved
    return reserved and result is not None and not result.ok and not is_silence(result)


def _nodes_of(placement: Placement) -> tuple[str, ...]:
    return tuple(node for node, _ in placement)


def _closed(partition: reader.Partition) -> PoolDescription:
    return replace(partition, open=False).pool()
