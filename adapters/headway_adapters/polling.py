"""What every adapter of a real batch system shares: looking, waiting, starting, confirming.

A batch system is looked at from time to time; two looks make events (:mod:`headway_adapters.differ`).
:class:`PollingAdapter` does all of that but the system's own words. A subclass states ``system`` (the
word in the log), ``title`` (the name for people) and ``Options``, gives the constructor its client and
overrides:

===================  ==========================================================================
:meth:`learn`        what is learned about the cluster once; answers the cluster's name
:meth:`look`         one look at everything. Runs on a thread of its own
:meth:`start_all`    ask for starts (each job once, none that is on its way); a
                     :class:`Launch` each
:meth:`carry_out`    any other decision; :meth:`run_steps` runs its commands
:meth:`check`        the lines of ``headway check``
===================  ==========================================================================

and, where the system needs it:

===================  ==========================================================================
:meth:`drain`        takes a node out of service; with ``drains = True`` nodes can then sleep through
                     the site's own commands (:mod:`headway_adapters.actuators`)
:meth:`undrain`      puts it back
:meth:`adopt`        starts that an earlier run asked for and that are on their way
:meth:`given_up`     why a start that is on its way cannot happen any more
:meth:`take_back`    undo a start that did not happen, so that it never happens later
:meth:`tend`         housekeeping after a look (take jobs over, clear what is left behind)
===================  ==========================================================================

:meth:`learn`, :meth:`look` and :meth:`describe` raise :class:`headway.errors.Failure` (best
:class:`headway_adapters.client.Unanswered`) when the system does not answer or talks nonsense; that
is an outage: no event comes of it, and looks are tried again with growing pauses. So is any other
exception of a look (output that no reader foresaw), which is logged with its traceback. Looks are taken on
a thread of their own, so that a hanging command delays neither the deadline nor a wake. Everything
else runs on the thread that calls :meth:`wait` and :meth:`apply`.

A start that was accepted is a :class:`Flight` until a look shows that the job runs (or ended, or is
gone). One that stays pending for ``start_timeout`` seconds is taken back and told as a
:class:`headway.events.DecisionFailed`: nothing ever starts later than it was decided. A look that
began before something was changed is thrown away, since it may show the time before.
"""

from __future__ import annotations

import abc
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic, Protocol, TypeVar, cast

import msgspec
import structlog
from pydantic import BaseModel, ValidationError

from headway import decisions as d
from headway import events as ev
from headway.adapter import ClusterAdapter, Outage, Outcome
from headway.errors import Failure, HeadwayError, UserError
from headway.model import ClusterDescription
from headway.plugins import explain_validation
from headway_adapters import differ
from headway_adapters.actuators import ActuatorOptions, Actuators, capabilities
from headway_adapters.bell import Bell
from headway_adapters.client import CommandClient
from headway_adapters.snapshot import Snapshot, SnapshotJob
from headway_adapters.transport import Result

_LONGEST_BACKOFF = 30.0
#: How long a deadline that has passed waits for a look that is under way.
_PATIENCE = 1.0
#: Characters of one note that are logged, and how many notes are remembered as logged.
_LONGEST_NOTE = 300
_MOST_NOTES = 10_000

#: What an adapter knows about a job besides its :class:`headway_adapters.snapshot.SnapshotJob`.
DetailT = TypeVar("DetailT")
#: What an adapter must remember of a start to take it back.
PayloadT = TypeVar("PayloadT")
OptionsT = TypeVar("OptionsT", bound=BaseModel)


class Pace(Protocol):
    """The options that the loop itself needs, all seconds."""

    @property
    def poll_interval(self) -> float:
        """Between two looks when nothing was done."""

    @property
    def confirm_interval(self) -> float:
        """From a start to the look that should confirm it."""

    @property
    def start_timeout(self) -> float:
        """How long a started job may stay pending; then the start is taken back."""


@dataclass(frozen=True)
class Look(Generic[DetailT]):
    """One look at the whole cluster."""

    snapshot: Snapshot
    #: By job id.
    details: Mapping[str, DetailT] = field(default_factory=dict)
    #: What was odd; each is logged once.
    notes: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Launch(Generic[PayloadT]):
    """What became of one start when it was asked for."""

    outcome: Outcome
    #: Kept in the :class:`Flight`; needed only if the start was accepted.
    payload: PayloadT | None = None


@dataclass
class Flight(Generic[PayloadT]):
    """A start that was asked for and is not confirmed."""

    decision: d.Start
    payload: PayloadT
    #: How often the job had gone back to the queue when it was asked for.
    restarts: int
    #: On the monotonic clock.
    deadline: float


class PollingAdapter(ClusterAdapter, Generic[DetailT, PayloadT]):
    """A batch system that is looked at through its commands. See the module's text for the contract."""

    #: The word for the system in the log.
    system: ClassVar[str]
    #: Its name for people.
    title: ClassVar[str]
    Options: ClassVar[type[BaseModel]]
    #: Whether :meth:`drain` and :meth:`undrain` are there.
    drains: ClassVar[bool] = False
    #: A start puts a job into the reservation that headway keeps for it.
    enters_reservations: ClassVar[bool] = False

    def __init__(
        self,
        client: CommandClient,
        pace: Pace,
        *,
        actuators: ActuatorOptions | None = None,
        read_only: bool = False,
        log: Any = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """``actuators``: the site's commands for frequencies and power. ``read_only``: monitor mode; nothing
        is adopted, confirmed or tended. ``clock`` tells the time in absolute seconds.
        """
        if actuators is not None and actuators.power_down is not None and not self.drains:
            raise UserError(
                f"cluster.options.actuators.power_down: on {self.title} headway cannot take a node out of "
                "service, so it cannot put one to sleep either"
            )
        self.read_only = read_only
        self._client = client
        self._pace = pace
        self._log = log if log is not None else structlog.get_logger(f"headway.{self.system}")
        self._clock = clock
        self.capabilities = self.capabilities | capabilities(actuators, drains=self.drains)
        self._actuators = Actuators(actuators or ActuatorOptions(), self, log=self._log, clock=clock)
        self._last: Look[DetailT] | None = None
        #: The last look as the batch system gave it: without what only the actuators know.
        self._raw: Snapshot | None = None
        #: Nodes and reservations as :meth:`describe` gave them, until the first look after it.
        self._described: Snapshot | None = None
        self._flights: dict[str, Flight[PayloadT]] = {}
        self._told: list[ev.Event] = []
        #: Why the last commands could not be run at all.
        self._not_run = ""
        self._noted: set[str] = set()
        self._looker = ThreadPoolExecutor(1, thread_name_prefix=f"{self.system}-look")
        self._looking: Future[Look[DetailT]] | None = None
        #: Counts what we changed: a look that began before a change is thrown away.
        self._changes = 0
        self._looking_since_change = 0
        self._next_look = 0.0
        self._look_began = 0.0
        self._confirm_pause = pace.confirm_interval
        self._down_since: float | None = None
        self._down: Outage | None = None
        self._backoff = 0.0
        self._bell = Bell()
        self._closed = False

    @classmethod
    def capable_of(
        cls, cluster: ClusterDescription, options: Mapping[str, Any] | None = None
    ) -> frozenset[type[d.Decision]]:
        able = cls.capabilities
        if options:
            read = validated(cls.Options, options)
            able = able | capabilities(getattr(read, "actuators", None), drains=cls.drains)
            if getattr(read, "power", False):
                able = able | {d.PowerDown, d.PowerUp}
        return able

    # ------------------------------------------------------------------ the system's own part

    @abc.abstractmethod
    def learn(self) -> str:
        """What does not change while we run; the cluster's name.

        Raises :class:`Failure` when the system does not answer, :class:`UserError` for options
        that do not fit it.
        """

    @abc.abstractmethod
    def look(self, before: Snapshot | None) -> Look[DetailT]:
        """Look at everything. Runs on the looking thread, or on the caller's before the first.

        ``before``: what the look before showed; a job of it that is missing now is worth a
        question about its end. Raises :class:`Failure`.
        """

    @abc.abstractmethod
    def start_all(self, starts: Sequence[d.Start]) -> Sequence[Launch[PayloadT]]:
        """Ask for starts, a launch each, in order. Each job is named once and is not on its way.

        A start of which nobody knows whether it was heard is accepted: the next looks tell.
        """

    @abc.abstractmethod
    def carry_out(self, decision: d.Decision, now: float) -> Outcome:
        """Any decision of :attr:`capabilities` but a start."""

    def adopt(self, look: Look[DetailT]) -> Iterable[tuple[d.Start, PayloadT, int]]:
        """Starts that somebody before us asked for: the start, its payload, the job's restarts then."""
        return ()

    def given_up(self, job: SnapshotJob, detail: DetailT | None) -> str:
        """Why a pending job's start cannot happen any more, "" while it can."""
        return ""

    def take_back(self, flight: Flight[PayloadT], *, late: bool) -> bool:
        """Undo a start that did not happen. ``late``: only its time is over, it could still happen.

        False: it could not be undone; it is tried again at the next look.
        """
        return True

    def tend(self, look: Look[DetailT], in_flight: set[str]) -> None:
        """Housekeeping after a look; not for the jobs that were ``in_flight`` in it."""

    def drain(self, node: str, reason: str) -> tuple[str, ...]:
        """The command that takes a node out of service; for a drained one: with another reason."""
        raise NotImplementedError

    def undrain(self, node: str) -> tuple[str, ...]:
        """The command that puts a node back into service."""
        raise NotImplementedError

    # ------------------------------------------------------------------ describe

    def describe(self) -> ClusterDescription:
        name = self.learn()
        look = self.look(None)
        self._actuators.adopt(look.snapshot)
        shown = self._actuators.show(look.snapshot)
        # A description knows no power states: the first look tells of those that are not on.
        self._described = replace(shown, power={})
        self.note(look.notes)
        return ClusterDescription(
            name=name,
            pools=tuple(shown.pools.values()),
            nodes=tuple(shown.nodes.values()),
            reservations=tuple(shown.reservations.values()),
            enters_reservations=self.enters_reservations,
        )

    def note(self, notes: Iterable[str]) -> None:
        """Log what is odd, each once. Users write parts of it: so it is shortened, and not all is kept."""
        short = {note if len(note) <= _LONGEST_NOTE else f"{note[: _LONGEST_NOTE - 3]}..." for note in notes}
        if len(self._noted) > _MOST_NOTES:
            self._noted &= short
        for note in sorted(short - self._noted):
            self._noted.add(note)
            self._log.warning(f"odd in {self.system}'s output", what=note)

    # ------------------------------------------------------------------ wait

    def wait(self, deadline: float | None) -> tuple[float, Sequence[ev.Event]] | None:
        if self._closed:
            return None
        while True:
            self._advance()
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
            if self._bell.woken:
                self._bell.woken = False
                return now, []
            if deadline is not None and now >= deadline and not self._may_answer_soon():
                return now, []
            until = math.inf if self._looking is not None else self._next_look
            if (due := self._actuators.due) is not None:
                until = min(until, now + due)
            if deadline is not None:
                # A passed deadline waits a little for a look that is under way.
                until = min(until, deadline if now < deadline else self._look_began + _PATIENCE)
            self._bell.sleep(until - now)

    def _may_answer_soon(self) -> bool:
        """A look is under way, and the system was in order until now."""
        patient = self._clock() < self._look_began + _PATIENCE
        return self._looking is not None and self._down_since is None and patient

    def _begin_look(self) -> None:
        before = self._last.snapshot if self._last is not None else None
        self._looking_since_change = self._changes
        self._look_began = self._clock()
        looking = self._looker.submit(self.look, before)
        self._looking = looking
        looking.add_done_callback(lambda _: self._bell.stir())

    def _finish_look(self) -> Sequence[ev.Event] | None:
        """Take in a look that is done; None when it brought nothing to tell."""
        assert self._looking is not None
        looking, self._looking = self._looking, None
        try:
            look = looking.result()
        except Failure as error:
            self._outage(error)
            return None
        except HeadwayError:
            raise
        except Exception as error:
            # Output that no reader foresaw is no news about jobs, and no reason to end.
            found = f"{type(error).__name__}: {error}"
            if self._down_since is None:
                unforeseen = "a look could not be read, which is a mistake of headway's"
                self._log.error(unforeseen, error=found, exc_info=error)
            self._outage(Failure(f"what it said could not be read ({found})"))
            return None
        if self._looking_since_change != self._changes:
            # Something was changed since it began: it may show the time before.
            self._next_look = 0.0
            return None
        self._answered()
        self.note(look.notes)
        first = self._last is None
        old = self._last.snapshot if self._last is not None else None
        self._raw = look.snapshot
        if not self.read_only:
            self._actuators.looked(look.snapshot)
        look = self._last = replace(look, snapshot=self._actuators.show(look.snapshot))
        events = list(differ.diff_jobs(old, look.snapshot))
        since = old if old is not None else self._described
        self._described = None
        if since is not None:
            events += differ.diff_nodes(since, look.snapshot)
            events += differ.diff_reservations(since, look.snapshot)
        if not self.read_only:
            if first:
                self._adopt(look)
                self._actuators.go_on_waking()
            self.tend(look, self._confirm(look))
            for event in events:
                if isinstance(event, ev.JobEnded | ev.JobRequeued):
                    self._actuators.job_ended(event.job_id)
        self._schedule_look()
        if not events and not first and not self._told:
            return None
        return ev.in_order(events)

    def _advance(self) -> None:
        """Let the actuators go on, and tell what became of their work."""
        changes = self._actuators.advance()
        self._told += changes.events
        if changes.acted:
            self._changes += 1
            self._next_look = min(self._next_look, self._clock() + self._pace.confirm_interval)
        if changes.moved and self._raw is not None and self._last is not None:
            now = replace(self._raw, time=self._clock())
            shown = self._actuators.show(now)
            self._told += differ.diff_nodes(self._last.snapshot, shown)
            self._last = replace(self._last, snapshot=replace(shown, time=self._last.snapshot.time))

    def _tell(self, events: Sequence[ev.Event]) -> tuple[float, Sequence[ev.Event]]:
        told, self._told = self._told, []
        now = max(self._clock(), max((event.time for event in events), default=0.0))
        if told:
            events = ev.in_order([*events, *told])
        return now, events

    def _schedule_look(self) -> None:
        pause = self._pace.poll_interval
        if self._flights:
            pause = min(pause, self._confirm_pause)
            self._confirm_pause = min(self._confirm_pause * 2, pause * 2, self._pace.poll_interval)
        self._next_look = self._clock() + pause

    def _outage(self, error: Failure) -> None:
        now = self._clock()
        if self._down_since is None:
            self._down_since = now
            self._backoff = min(1.0, self._pace.poll_interval)
            self._down = Outage(self.system, now, str(error))
            self._log.error(f"{self.system} does not answer; waiting for it", error=str(error))
        self._next_look = now + self._backoff
        self._backoff = min(self._backoff * 2, _LONGEST_BACKOFF)

    def _answered(self) -> None:
        if self._down_since is not None:
            seconds = round(self._clock() - self._down_since, 1)
            self._log.info(f"{self.system} answers again", seconds=seconds)
            self._down_since = self._down = None
            # The time without an answer is nobody's fault: starts may take their time anew.
            for flight in self._flights.values():
                flight.deadline = time.monotonic() + self._pace.start_timeout

    def outages(self) -> Sequence[Outage]:
        down = self._down
        return () if down is None else (down,)

    def wake(self) -> None:
        self._bell.wake()

    # ------------------------------------------------------------------ starts on their way

    def _adopt(self, look: Look[DetailT]) -> None:
        for start, payload, restarts in self.adopt(look):
            self._fly(start, payload, restarts)
            self._log.info("a start is on its way from before", job=start.job_id)

    def _fly(self, start: d.Start, payload: PayloadT, restarts: int) -> None:
        deadline = time.monotonic() + self._pace.start_timeout
        self._flights[start.job_id] = Flight(start, payload, restarts, deadline)

    def _confirm(self, look: Look[DetailT]) -> set[str]:
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
                if job.restarts == flight.restarts and {node for node, _ in job.placement} != wanted:
                    got = sorted(node for node, _ in job.placement)
                    said = "a job runs on other nodes than it was sent to"
                    self._log.warning(said, job=key, wanted=sorted(wanted), got=got)
                if flight.decision.frequency is not None and job.restarts == flight.restarts:
                    wish = d.SetFrequency(key, flight.decision.frequency, flight.decision.reason)
                    if problem := self._actuators.set_frequency(wish, job.placement):
                        self._refuse(wish, problem, self._clock())
                continue
            why = self.given_up(job, look.details.get(key))
            if why:
                self._end_flight(key, flight, why, late=False)
            elif job.restarts != flight.restarts:
                # No look saw it run, so nobody was told that it did.
                self._failed(key, flight, "it started and went back to the queue at once")
            elif time.monotonic() >= flight.deadline:
                seconds = self._pace.start_timeout
                why = f" ({job.reason})" if job.reason and job.reason != "None" else ""
                self._end_flight(key, flight, f"it did not start within {seconds:g} s{why}", late=True)
        return seen

    def _end_flight(self, key: str, flight: Flight[PayloadT], why: str, *, late: bool) -> None:
        if self.take_back(flight, late=late):
            self._failed(key, flight, why)

    def _failed(self, key: str, flight: Flight[PayloadT], why: str) -> None:
        del self._flights[key]
        self._log.warning("a start did not happen", job=key, why=why)
        self._told.append(ev.DecisionFailed(time=self._clock(), decision=flight.decision, message=why))

    def change(self, argvs: Sequence[Sequence[str]]) -> list[Result | None]:
        """Run commands that change something; None for those that were not tried."""
        self._changes += 1
        self._not_run = ""
        try:
            return self._client.change_all(argvs)
        except Failure as error:
            self._not_run = str(error)
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
                self._refuse(cast(d.AnyDecision, decision), outcome.message, now)
        self._confirm_pause = self._pace.confirm_interval
        self._next_look = min(self._next_look, self._clock() + self._pace.confirm_interval)
        if self._down_since is not None:
            self._next_look = max(self._next_look, self._clock() + self._pace.confirm_interval)
        return outcomes

    def _refuse(self, decision: d.AnyDecision, message: str, now: float) -> None:
        self._log.warning(f"{self.system} refused", decision=type(decision).__name__,
                          job=getattr(decision, "job_id", None), error=message)  # fmt: skip
        self._told.append(ev.DecisionFailed(time=now, decision=decision, message=message))

    def _start_all(self, starts: Sequence[d.Start]) -> list[Outcome]:
        outcomes: dict[int, Outcome] = {}
        first: dict[str, int] = {}
        repeated: dict[int, int] = {}
        fresh: list[int] = []
        for index, start in enumerate(starts):
            earlier = first.setdefault(start.job_id, index)
            if earlier != index:
                if starts[earlier].placement == start.placement:
                    repeated[index] = earlier
                else:
                    outcomes[index] = Outcome(False, f"job {start.job_id} is started twice at once")
            elif start.job_id in self._flights:
                outcomes[index] = Outcome(True, "its start is on its way already")
            else:
                fresh.append(index)
        launches = self.start_all([starts[index] for index in fresh]) if fresh else []
        for index, launch in zip(fresh, launches, strict=True):
            outcomes[index] = launch.outcome
            if launch.outcome.accepted:
                known = self.known(starts[index].job_id)
                restarts = known.restarts if known is not None else 0
                self._fly(starts[index], cast(PayloadT, launch.payload), restarts)
        outcomes.update((index, outcomes[earlier]) for index, earlier in repeated.items())
        return [outcomes[index] for index in range(len(starts))]

    def _carry_out(self, decision: d.Decision, now: float) -> Outcome:
        if type(decision) not in self.capabilities:
            return Outcome(False, f"{type(decision).__name__} cannot be carried out on this {self.title}")
        if isinstance(decision, d.PowerDown):
            occupants = self._occupants()
            for node in decision.nodes:
                if node in occupants:
                    return Outcome(False, f"node {node} is not idle: job {occupants[node]} has it")
        problem: str | None = None
        if isinstance(decision, d.SetFrequency):
            problem = self._set_frequency(decision)
        elif isinstance(decision, d.PowerDown) and self._actuators.options.power_down is not None:
            problem = self._actuators.power_down(decision)
        elif isinstance(decision, d.PowerUp) and self._actuators.options.power_up is not None:
            problem = self._actuators.power_up(decision)
        if problem is None:
            return self.carry_out(decision, now)
        return Outcome(not problem, problem)

    def _set_frequency(self, decision: d.SetFrequency) -> str:
        flight = self._flights.get(decision.job_id)
        if flight is not None:
            # Done once it is seen to run.
            flight.decision = msgspec.structs.replace(flight.decision, frequency=decision.frequency)
            return ""
        job = self.known(decision.job_id)
        if job is None or job.state not in ("starting", "running", "suspended"):
            return f"job {decision.job_id} does not run"
        return self._actuators.set_frequency(decision, job.placement)

    def _occupants(self) -> dict[str, str]:
        """Node -> a job that runs there or is on its way there."""
        found = {node: key for key, f in self._flights.items() for node, _ in f.decision.placement}
        for key, job in self._last.snapshot.jobs.items() if self._last is not None else ():
            if job.state in ("starting", "running", "suspended"):
                found.update((node, key) for node, _ in job.placement)
        return found

    # ------------------------------------------------------------------ what the actuators need

    def act(self, argv: Sequence[str], timeout: float) -> Result:
        """Run one command that changes something. On any thread."""
        return self._client.act(argv, timeout)

    def usable(self, node: str) -> bool:
        """Whether the batch system, at the last look, could start jobs on a node."""
        described = self._raw.nodes.get(node) if self._raw is not None else None
        return described is not None and described.available

    def poke(self) -> None:
        """Make :meth:`wait` look around. On any thread."""
        self._bell.stir()

    def known(self, job_id: str) -> SnapshotJob | None:
        """A job as the last look showed it."""
        return self._last.snapshot.jobs.get(job_id) if self._last is not None else None

    def detail(self, job_id: str) -> DetailT | None:
        """What the last look showed of a job besides; None for one that it did not show."""
        if self._last is None or job_id not in self._last.snapshot.jobs:
            return None
        return self._last.details.get(job_id)

    def run_steps(
        self, steps: Sequence[Sequence[str]], *, essential: int = 100, already: Iterable[str] = ()
    ) -> Outcome:
        """Run commands one after another until one fails.

        Steps from ``essential`` on may fail without making the decision fail. ``already``: parts of
        error messages that mean that what was asked for is already so.
        """
        for number, argv in enumerate(steps):
            result = self.change([argv])[0]
            if result is None or not result.ok:
                if result is not None and any(word in result.stderr for word in already):
                    return Outcome(True, result.complaint())
                if number < essential:
                    return self.refused(result)
                self._log.warning("a follow-up command failed", command=" ".join(argv[:3]),
                                  error="not tried" if result is None else result.complaint())  # fmt: skip
        return Outcome(True)

    def refused(self, result: Result | None) -> Outcome:
        """The outcome of a command that failed, or was not tried."""
        if result is None:
            return Outcome(False, f"not tried: {self._not_run or f'{self.title} does not answer'}")
        return Outcome(False, result.complaint())

    # ------------------------------------------------------------------ the rest

    def measured_watts(self) -> Mapping[str, float]:
        return self._last.snapshot.watts if self._last is not None else {}

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._client.close()
        self._actuators.close()
        self._looker.shutdown(wait=True, cancel_futures=True)
        self._bell.close()


def validated(kind: type[OptionsT], options: OptionsT | Mapping[str, Any]) -> OptionsT:
    """The options as a validated model. Raises :class:`UserError` naming each key that is wrong."""
    if isinstance(options, kind):
        return options
    try:
        return kind.model_validate(dict(cast(Mapping[str, Any], options)))
    except ValidationError as error:
        raise UserError(explain_validation(error, "cluster.options", kind)) from error
