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
of it. Looks are taken on a thread of their own, so that a hanging command delays neither the
deadline nor a wake.
"""

from __future__ import annotations

import math
import os
import select
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, cast

import msgspec
import structlog
from pydantic import ValidationError

from headway import decisions as d
from headway import events as ev
from headway.adapter import Check, ClusterAdapter, Outcome
from headway.errors import Failure, UserError
from headway.model import ClusterDescription, NodeDescription, Placement, PoolDescription
from headway_adapters import differ
from headway_adapters.slurm import checks, marker, reader, writer
from headway_adapters.slurm.client import SlurmClient, Unanswered, is_silence
from headway_adapters.slurm.options import SlurmOptions
from headway_adapters.snapshot import Snapshot, SnapshotJob
from headway_adapters.transport import Result, Transport

_LONGEST_BACKOFF = 30.0
#: How long a deadline that has passed waits for a look that is under way.
_PATIENCE = 1.0
#: Jobs that one look's housekeeping touches at most; the rest comes at the next look.
_TEND_AT_ONCE = 500

CAPABILITIES: frozenset[type[d.Decision]] = frozenset(
    {
        d.Start, d.Hold, d.Release, d.Kill, d.Cancel, d.Requeue, d.Suspend, d.Resume, d.SetTimeLimit,
        d.Resize, d.Reserve, d.Unreserve,
    }
)  # fmt: skip


@dataclass
class _Flight:
    """A start that was asked for and is not confirmed."""

    decision: d.Start
    pin: marker.Pin
    marked: bool
    #: On the monotonic clock.
    deadline: float


@dataclass(frozen=True)
class _Look:
    """One look at the whole cluster."""

    snapshot: Snapshot
    details: Mapping[str, reader.Detail]
    notes: frozenset[str]


@dataclass
class _World:
    """What is learned about the cluster once."""

    name: str
    site: reader.Site
    #: Partitions that share nodes with the managed ones, and these.
    partitions: frozenset[str]
    nodes_as_json: Sequence[str] | None
    accounting: bool
    config: Mapping[str, str] = field(default_factory=dict)


class SlurmAdapter(ClusterAdapter):
    """A Slurm cluster. See the module's text for how it is driven."""

    Options = SlurmOptions

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
        if not isinstance(options, SlurmOptions):
            options = _validated(options)
        self.options = options
        self.read_only = read_only
        self.capabilities = CAPABILITIES | ({d.PowerDown, d.PowerUp} if options.power else set())
        self._log = log if log is not None else structlog.get_logger("headway.slurm")
        self._client = SlurmClient(options, read_only=read_only, transport=transport)
        self._clock = clock
        self._world: _World | None = None
        self._last: _Look | None = None
        #: Nodes and reservations as :meth:`describe` gave them, until the first look after it.
        self._described: Snapshot | None = None
        self._flights: dict[str, _Flight] = {}
        self._told: list[ev.Event] = []
        self._noted: set[str] = set()
        self._taken: set[str] = set()
        self._looker = ThreadPoolExecutor(1, thread_name_prefix="slurm-look")
        self._looking: Future[_Look] | None = None
        #: Counts what we changed: a look that began before a change is thrown away.
        self._changes = 0
        self._looking_since_change = 0
        self._next_look = 0.0
        self._look_began = 0.0
        self._confirm_pause = options.confirm_interval
        self._down_since: float | None = None
        self._backoff = 0.0
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)
        self._woken = False
        self._closed = False

    # ------------------------------------------------------------------ describe

    def describe(self) -> ClusterDescription:
        world = self._learn()
        look = self._look(None)
        self._described = look.snapshot
        self._note(look.notes)
        return ClusterDescription(
            name=world.name,
            pools=tuple(look.snapshot.pools.values()),
            nodes=tuple(look.snapshot.nodes.values()),
            reservations=tuple(look.snapshot.reservations.values()),
        )

    def _learn(self) -> _World:
        """What does not change while we run. Raises :class:`Failure` when Slurm does not answer."""
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
            config=config,
        )
        return self._world

    # ------------------------------------------------------------------ looking

    def _look(self, before: Snapshot | None) -> _Look:
        """Look at everything. Runs on the looking thread. Raises :class:`Failure`."""
        world = self._world or self._learn()
        notes: set[str] = set()
        now = self._clock()
        nodes_argv = world.nodes_as_json or ("scontrol", "-o", "show", "nodes", "-a")
        queue, partitions_out, reservations_out, nodes_out = self._client.run_many(
            [
                ("squeue", "--json", "-a", "-t", "all"),
                ("scontrol", "-o", "show", "partition", "-a"),
                ("scontrol", "-o", "show", "reservation"),
                nodes_argv,
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
        snapshot = Snapshot(
            time=now, jobs=jobs, nodes=mine, pools=pools, reservations=reservations,
            power={name: power for name, power in nodes.power.items() if name in mine},
        )  # fmt: skip
        return _Look(snapshot=snapshot, details=found.details, notes=frozenset(notes))

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

    def _note(self, notes: Iterable[str]) -> None:
        for note in sorted(set(notes) - self._noted):
            self._noted.add(note)
            self._log.warning("odd in slurm's output", what=note)

    # ------------------------------------------------------------------ wait

    def wait(self, deadline: float | None) -> tuple[float, Sequence[ev.Event]] | None:
        if self._closed:
            return None
        while True:
            if self._told:
                return self._tell([])
            now = self._clock()
            if self._looking is None and now >= self._next_look:
                self._begin_look()
            if self._looking is not None and self._looking.done():
                events = self._finish_look()
                if events is not None:
                    return self._tell(events)
                continue
            if self._woken:
                self._woken = False
                return now, []
            if deadline is not None and now >= deadline and not self._may_answer_soon():
                return now, []
            until = math.inf if self._looking is not None else self._next_look
            if deadline is not None:
                # A passed deadline waits a little for a look that is under way.
                until = min(until, deadline if now < deadline else self._look_began + _PATIENCE)
            self._sleep(max(0.0, until - now))

    def _may_answer_soon(self) -> bool:
        """A look is under way, and Slurm was in order until now."""
        patient = self._clock() < self._look_began + _PATIENCE
        return self._looking is not None and self._down_since is None and patient

    def _begin_look(self) -> None:
        before = self._last.snapshot if self._last is not None else None
        self._looking_since_change = self._changes
        self._look_began = self._clock()
        looking = self._looker.submit(self._look, before)
        self._looking = looking
        looking.add_done_callback(lambda _: self._poke(b"l"))

    def _finish_look(self) -> Sequence[ev.Event] | None:
        """Take in a look that is done; None when it brought nothing to tell."""
        assert self._looking is not None
        looking, self._looking = self._looking, None
        try:
            look = looking.result()
        except Failure as error:
            self._outage(error)
            return None
        if self._looking_since_change != self._changes:
            # Something was changed since it began: it may show the time before.
            self._next_look = 0.0
            return None
        self._answered()
        self._note(look.notes)
        first = self._last is None
        old = self._last.snapshot if self._last is not None else None
        self._last = look
        events = list(differ.diff_jobs(old, look.snapshot))
        since = old if old is not None else self._described
        self._described = None
        if since is not None:
            events += differ.diff_nodes(since, look.snapshot)
            events += differ.diff_reservations(since, look.snapshot)
        if not self.read_only:
            if first:
                self._adopt(look)
            self._tend(look, self._confirm(look))
        self._schedule_look()
        if not events and not first and not self._told:
            return None
        return ev.in_order(events)

    def _tell(self, events: Sequence[ev.Event]) -> tuple[float, Sequence[ev.Event]]:
        told, self._told = self._told, []
        now = max(self._clock(), max((event.time for event in events), default=0.0))
        if told:
            events = ev.in_order([*events, *told])
        return now, events

    def _schedule_look(self) -> None:
        pause = self.options.poll_interval
        if self._flights:
            pause = min(pause, self._confirm_pause)
            self._confirm_pause = min(self._confirm_pause * 2, pause * 2, self.options.poll_interval)
        self._next_look = self._clock() + pause

    def _outage(self, error: Failure) -> None:
        now = self._clock()
        if self._down_since is None:
            self._down_since = now
            self._backoff = min(1.0, self.options.poll_interval)
            self._log.error("slurm does not answer; waiting for it", error=str(error))
        self._next_look = now + self._backoff
        self._backoff = min(self._backoff * 2, _LONGEST_BACKOFF)

    def _answered(self) -> None:
        if self._down_since is not None:
            self._log.info("slurm answers again", seconds=round(self._clock() - self._down_since, 1))
            self._down_since = None
            # The time without an answer is nobody's fault: starts may take their time anew.
            for flight in self._flights.values():
                flight.deadline = time.monotonic() + self.options.start_timeout

    def _sleep(self, seconds: float) -> None:
        ready, _, _ = select.select([self._wake_read], [], [], min(seconds, 86400.0))
        if ready:
            try:
                said = os.read(self._wake_read, 4096)
            except BlockingIOError:
                return
            if b"w" in said:
                self._woken = True

    def _poke(self, what: bytes) -> None:
        try:
            os.write(self._wake_write, what)
        except OSError:
            # A full pipe wakes as well; a closed one has nobody to wake.
            return

    def wake(self) -> None:
        self._poke(b"w")

    # ------------------------------------------------------------------ housekeeping

    def _adopt(self, look: _Look) -> None:
        """Starts that somebody before us asked for and that are on their way."""
        for key, job in look.snapshot.jobs.items():
            detail = look.details.get(key)
            if job.releasing and detail is not None and detail.pin is not None:
                start = d.Start(job_id=key, placement=job.pinned, reason="asked for before this run began")
                self._flights[key] = _Flight(
                    start, detail.pin, True, time.monotonic() + self.options.start_timeout
                )
                self._log.info("a start is on its way from before", job=key)

    def _confirm(self, look: _Look) -> set[str]:
        """See which starts happened, and take those back that do not; the jobs that were in flight."""
        seen = set(self._flights)
        for key, flight in list(self._flights.items()):
            job = look.snapshot.jobs.get(key)
            if job is None or job.state == "ended":
                del self._flights[key]
                continue
            if job.state != "pending":
                del self._flights[key]
                wanted = {node for node, _ in flight.decision.placement}
                if job.restarts == flight.pin.restarts and {node for node, _ in job.placement} != wanted:
                    got = sorted(node for node, _ in job.placement)
                    said = "a job runs on other nodes than it was sent to"
                    self._log.warning(said, job=key, wanted=sorted(wanted), got=got)
                continue
            detail = look.details.get(key)
            if detail is not None and detail.held:
                self._take_back(key, flight, f"it was held before it started ({job.reason})", hold=False)
            elif job.restarts != flight.pin.restarts:
                # It ran, and is back in the queue.
                del self._flights[key]
            elif time.monotonic() >= flight.deadline:
                seconds = self.options.start_timeout
                why = f" ({job.reason})" if job.reason and job.reason != "None" else ""
                self._take_back(key, flight, f"it did not start within {seconds:g} s{why}", hold=True)
        return seen

    def _take_back(self, key: str, flight: _Flight, why: str, *, hold: bool) -> None:
        """Hold a job again and give it its user's node list back."""
        if hold:
            held = self._change([writer.hold(key)])[0]
            if held is None or not held.ok:
                # It stays in flight and is tried again at the next look.
                self._log.error("a start that does not happen could not be held again", job=key,
                                error="not tried" if held is None else held.complaint())  # fmt: skip
                return
        del self._flights[key]
        given = self._change([writer.restore(key, flight.pin, mark=flight.marked)])[0]
        if given is None or not given.ok:
            self._log.warning("a node list could not be given back", job=key,
                              error="not tried" if given is None else given.complaint())  # fmt: skip
        self._log.warning("a start did not happen", job=key, why=why)
        self._told.append(ev.DecisionFailed(time=self._clock(), decision=flight.decision, message=why))

    def _tend(self, look: _Look, in_flight: set[str]) -> None:
        """Take over what is not held, make the filter's holds ours, clear pins of the past.

        Not for jobs that were ``in_flight`` in this look: what it shows of them is over.
        """
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
                self._note([f"job {key} cannot be taken over: {error}"])
            if len(takes) + len(clears) >= _TEND_AT_ONCE:
                break
        if not takes and not clears:
            return
        work = [*takes.items(), *clears.items()]
        done = self._change([argv for _, argv in work])
        for (key, _), result in zip(work, done, strict=True):
            if result is not None and result.ok:
                if key in takes and key not in self._taken:
                    self._taken.add(key)
                    self._log.info("took a job over: it is held for headway", job=key)
            elif result is not None and not is_silence(result):
                self._note([f"job {key} could not be taken over: {result.complaint()}"])

    def _change(self, argvs: Sequence[Sequence[str]]) -> list[Result | None]:
        self._changes += 1
        try:
            return self._client.change_all(argvs)
        except Failure as error:
            self._log.error("a command could not be run", error=str(error))
            return [None] * len(argvs)

    # ------------------------------------------------------------------ apply

    def apply(self, now: float, decisions: Sequence[d.Decision]) -> Sequence[Outcome]:
        outcomes: list[Outcome] = []
        at = 0
        while at < len(decisions):
            stop = at
            while stop < len(decisions) and isinstance(decisions[stop], d.Start):
                stop += 1
            if stop > at:
                starts = [x for x in decisions[at:stop] if isinstance(x, d.Start)]
                outcomes += self._start_all(starts)
                at = stop
            else:
                outcomes.append(self._carry_out(decisions[at], now))
                at += 1
        for decision, outcome in zip(decisions, outcomes, strict=True):
            if not outcome.accepted:
                wish = cast(d.AnyDecision, decision)
                self._log.warning("slurm refused", decision=type(decision).__name__,
                                  job=getattr(decision, "job_id", None), error=outcome.message)  # fmt: skip
                self._told.append(ev.DecisionFailed(time=now, decision=wish, message=outcome.message))
        self._confirm_pause = self.options.confirm_interval
        self._next_look = min(self._next_look, self._clock() + self.options.confirm_interval)
        if self._down_since is not None:
            self._next_look = max(self._next_look, self._clock() + self.options.confirm_interval)
        return outcomes

    def _start_all(self, starts: Sequence[d.Start]) -> list[Outcome]:
        """Pin all, then release those that were pinned."""
        outcomes: dict[int, Outcome] = {}
        plans: dict[int, writer.Plan] = {}
        first: dict[str, int] = {}
        repeated: dict[int, int] = {}
        for index, start in enumerate(starts):
            earlier = first.setdefault(start.job_id, index)
            if earlier != index:
                if starts[earlier].placement == start.placement:
                    repeated[index] = earlier
                else:
                    outcomes[index] = Outcome(False, f"job {start.job_id} is started twice at once")
                continue
            if start.job_id in self._flights:
                outcomes[index] = Outcome(True, "its start is on its way already")
                continue
            try:
                plans[index] = self._plan_start(start)
            except writer.Unfit as error:
                outcomes[index] = Outcome(False, str(error))
        order = list(plans)
        pinned = self._change([plans[index].steps[0] for index in order]) if order else []
        again = [
            index for index, result in zip(order, pinned, strict=True)
            if result is not None and not result.ok and "update not available right now" in result.stderr
        ]  # fmt: skip
        marked = set(order)
        released = []
        results: dict[int, Result | None] = dict(zip(order, pinned, strict=True))
        if again:
            # With accounting, comments of a job that was submitted just now cannot be written yet.
            bare = [_without_comment(plans[index].steps[0]) for index in again]
            results.update(zip(again, self._change(bare), strict=True))
            marked.difference_update(again)
        for index in order:
            result = results[index]
            if result is not None and result.ok:
                released.append(index)
            else:
                outcomes[index] = _refused(result)
        done = self._change([plans[index].steps[1] for index in released]) if released else []
        for index, result in zip(released, done, strict=True):
            start, plan = starts[index], plans[index]
            assert plan.pin is not None
            detail = self._detail(start.job_id)
            flight = _Flight(
                start, plan.pin, index in marked and detail is not None and detail.comment_free,
                time.monotonic() + self.options.start_timeout,
            )  # fmt: skip
            if result is not None and (result.ok or is_silence(result)):
                # Unanswered is not refused: the next look tells.
                self._flights[start.job_id] = flight
                outcomes[index] = Outcome(True, "" if result.ok else "no answer; the next look will tell")
            else:
                self._change([writer.restore(start.job_id, plan.pin, mark=flight.marked)])
                outcomes[index] = _refused(result)
        outcomes.update((index, outcomes[earlier]) for index, earlier in repeated.items())
        return [outcomes[index] for index in range(len(starts))]

    def _plan_start(self, start: d.Start) -> writer.Plan:
        if start.tier != "foreground" or start.frequency is not None:
            raise writer.Unfit(f"job {start.job_id}: Slurm offers no tiers and no frequency at a start")
        detail = self._detail(start.job_id)
        if detail is None or self._last is None:
            raise writer.Unfit(f"job {start.job_id} is not pending in the last listing")
        if not detail.managed:
            raise writer.Unfit(f"job {start.job_id} is not headway's to start")
        job = self._last.snapshot.jobs[start.job_id]
        if job.job.held:
            raise writer.Unfit(f"job {start.job_id} is not startable: {job.reason}")
        return writer.start(start, detail, job.job.pool)

    def _detail(self, job_id: str) -> reader.Detail | None:
        if self._last is None or job_id not in self._last.snapshot.jobs:
            return None
        return self._last.details.get(job_id)

    def _carry_out(self, decision: d.Decision, now: float) -> Outcome:
        if type(decision) not in self.capabilities:
            return Outcome(False, f"{type(decision).__name__} cannot be carried out on this Slurm")
        job_id = getattr(decision, "job_id", "")
        jobs = self._last.snapshot.jobs if self._last is not None else {}
        known = jobs.get(job_id)
        detail = self._detail(job_id)
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
        for number, argv in enumerate(plan.steps):
            result = self._change([argv])[0]
            if result is None or not result.ok:
                if result is not None and any(word in result.stderr for word in writer.ALREADY):
                    return Outcome(True, result.complaint())
                if number < plan.essential:
                    return _refused(result)
                self._log.warning("a follow-up command failed", command=" ".join(argv[:3]),
                                  error="not tried" if result is None else result.complaint())  # fmt: skip
        return Outcome(True)

    # ------------------------------------------------------------------ the rest

    def check(self) -> list[Check]:
        return checks.run(self._client, self.options, self._clock)

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._client.close()
        self._looker.shutdown(wait=True, cancel_futures=True)
        os.close(self._wake_read)
        os.close(self._wake_write)


def _validated(options: Mapping[str, Any]) -> SlurmOptions:
    try:
        return SlurmOptions.model_validate(dict(options))
    except ValidationError as error:
        lines = []
        for problem in error.errors():
            key = ".".join(str(part) for part in problem["loc"])
            lines.append(f"cluster.options.{key}: {problem['msg']} (found {problem.get('input')!r})")
        raise UserError("\n".join(lines)) from error


def _refused(result: Result | None) -> Outcome:
    if result is None:
        return Outcome(False, "not tried: Slurm does not answer")
    return Outcome(False, result.complaint())


def _without_comment(argv: Sequence[str]) -> tuple[str, ...]:
    return tuple(word for word in argv if not word.startswith("AdminComment="))


def _nodes_of(placement: Placement) -> tuple[str, ...]:
    return tuple(node for node, _ in placement)


def _closed(partition: reader.Partition) -> PoolDescription:
    return replace(partition, open=False).pool()
