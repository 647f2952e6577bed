"""What every adapter of a real batch system shares: looking, waiting, starting, confirming.

A batch system is looked at from time to time; two looks make events (:mod:`headway_adapters.polling.differ`).
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
                     the site's own commands (:mod:`headway_adapters.polling.actuators`)
:meth:`undrain`      puts it back
:meth:`adopt`        starts that an earlier run asked for and that are on their way
:meth:`given_up`     why a start that is on its way cannot happen any more
:meth:`take_back`    undo a start that did not happen, so that it never happens later
:meth:`tend`         housekeeping after a look (take jobs over, clear what is left behind)
:meth:`news`         what a look tells besides jobs, nodes and reservations
:meth:`patience`     how long a start may take, if not ``start_timeout``
:meth:`rules`        in which pools a start that is not headway's is worth a word
:meth:`signalling`   the command that sends a job's processes a signal, for migration handlers
===================  ==========================================================================

:meth:`learn`, :meth:`look` and :meth:`describe` raise :class:`headway.errors.Failure` (best
:class:`headway_adapters.polling.client.Unanswered`) when the system does not answer or talks nonsense; that
is an outage: no event comes of it, and looks are tried again with growing pauses. So is any other
exception of a look (output that no reader foresaw), which is logged with its traceback. Looks are taken on
a thread of their own, so that a hanging command delays neither the deadline nor a wake. An answer about
one job that is not understood costs that job a look (:attr:`Look.unread`), never the others. Everything
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
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic, Protocol, TypeVar, cast

import msgspec
import structlog
from pydantic import BaseModel, ValidationError

from headway import decisions as d
from headway import events as ev
from headway.adapter import Check, ClusterAdapter, Oddity, Outage, Outcome, WishedFrequency
from headway.adapter.migration import ON_NODES, MigrationHandler
from headway.daemon.clock import RunClock
from headway.errors import Failure, HeadwayError, UserError
from headway.inputs.validation import explain_validation
from headway.model import ClusterDescription, NodeDescription, SwitchDescription
from headway_adapters.polling import differ, submissions
from headway_adapters.polling.actuators import ActuatorOptions, Actuators, capabilities
from headway_adapters.polling.agents import BACKGROUND, FOREGROUND, AgentOptions, Agents
from headway_adapters.polling.bell import Bell
from headway_adapters.polling.client import CommandClient
from headway_adapters.polling.licences import other_amounts
from headway_adapters.polling.moves import Moves
from headway_adapters.polling.oddities import Oddities
from headway_adapters.polling.snapshot import Snapshot, SnapshotJob
from headway_adapters.polling.words import Unfit
from headway_adapters.transport import Result

_LONGEST_BACKOFF = 30.0
#: How long a deadline that has passed waits for a look that is under way.
_PATIENCE = 1.0
#: After so many looks in a row that were vain, because something was changed meanwhile, nothing is told, and
#: so nothing is decided, until the next one is done.
_VAIN = 2
#: Characters of one note that are logged, and how many notes are remembered as logged.
_LONGEST_NOTE = 300
_MOST_NOTES = 10_000

#: What is said of a job that somebody else started.
STARTED_WITHOUT_US = "a job started that headway did not start"

#: What a job that is being moved is not told by others.
_NOT_WHILE_MOVED = (d.Suspend, d.Resume, d.Resize, d.Signal)

#: What an adapter knows about a job besides its :class:`headway_adapters.polling.snapshot.SnapshotJob`.
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
    #: Jobs and reservations that are there, but of which nothing could be read: they stay as they were.
    unread: frozenset[str] = frozenset()

    def kept_from(self, before: Snapshot | None) -> Look[DetailT]:
        """This look, with what was :attr:`unread` as ``before`` had it."""
        if before is None or not self.unread:
            return self
        jobs, reservations = dict(self.snapshot.jobs), dict(self.snapshot.reservations)
        for key in self.unread:
            if key in before.jobs:
                jobs.setdefault(key, before.jobs[key])
            if key in before.reservations:
                reservations.setdefault(key, before.reservations[key])
        return replace(self, snapshot=replace(self.snapshot, jobs=jobs, reservations=reservations))


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
    #: The system decides how many processors a start gets on each of its nodes, where its request does not.
    shares_out: ClassVar[bool] = False
    moves = True
    #: :attr:`headway_adapters.polling.snapshot.SnapshotJob.restarts` counts every execution but the first.
    counts_restarts: ClassVar[bool] = False

    def __init__(
        self,
        client: CommandClient,
        pace: Pace,
        *,
        actuators: ActuatorOptions | None = None,
        agents: AgentOptions | None = None,
        read_only: bool = False,
        log: Any = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        """``actuators``: the site's commands for frequencies and power. ``agents``: how the agents on the
        nodes are reached; with them there are two tiers. ``read_only``: monitor mode; nothing
        is adopted, confirmed or tended. ``clock`` tells the time in absolute seconds and never goes back; by
        default a :class:`headway.daemon.clock.RunClock`. Pauses and time-outs do not go by it.
        """
        if actuators is not None and actuators.power_down is not None and not self.drains:
            raise UserError(
                f"cluster.options.actuators.power_down: on {self.title} headway cannot take a node out of "
                "service, so it cannot put one to sleep either"
            )
        self.read_only = read_only
        #: Attributes of jobs that the configuration names, and that users can say.
        self.words: frozenset[str] = frozenset()
        self._client = client
        self._pace = pace
        self._log = log if log is not None else structlog.get_logger(f"headway.{self.system}")
        self._clock = clock if clock is not None else RunClock(log=self._log)
        #: What migration handlers carry out.
        self._given: frozenset[type[d.Decision]] = frozenset()
        self.capabilities = self.capabilities | capabilities(actuators, drains=self.drains)
        self._actuators = Actuators(actuators or ActuatorOptions(), self, log=self._log, clock=self._clock)
        self._agent_options = agents
        # Who only looks on needs no key, and may not read it.
        asked = None if read_only else agents
        self._agents = Agents(asked, poke=self.poke, log=self._log, clock=self._clock)
        if agents is not None:
            self.capabilities = self.capabilities | {d.SwapTiers}
        self._moves = Moves(self, log=self._log, clock=self._clock)
        #: The last look as it is shown: with what only the actuators know, and jobs that move as they were.
        self._last: Look[DetailT] | None = None
        #: The last look as the batch system gave it.
        self._raw: Snapshot | None = None
        #: When the last look but one, and the last one, began.
        self._looks: tuple[float, float] | None = None
        #: The last look, with what only the actuators know.
        self._as_it_is: Look[DetailT] | None = None
        #: Looks in a row that show the time before a change.
        self._vain = 0
        #: Nodes and reservations as :meth:`describe` gave them, until the first look after it.
        self._described: Snapshot | None = None
        self._flights: dict[str, Flight[PayloadT]] = {}
        #: Job -> when an earlier run decided its start.
        self._asked_before: dict[str, float] = {}
        #: When jobs were submitted, as earlier runs know it.
        self._submitted_before: submissions.Known = submissions.nobody_knows
        #: Job -> the frequency that an earlier run wanted.
        self._wished_before: dict[str, WishedFrequency] = {}
        #: Jobs whose start was told with a frequency that is being set.
        self._promised: set[str] = set()
        self._told: list[ev.Event] = []
        #: How much of each licence there was when the engine was told last.
        self._told_licences: Mapping[str, int] = {}
        #: Why the last commands could not be run at all.
        self._not_run = ""
        self._noted: set[str] = set()
        #: What the notes of jobs are in that were written since the last look.
        self._written: dict[str, str] = {}
        self._looker = ThreadPoolExecutor(1, thread_name_prefix=f"{self.system}-look")
        self._looking: Future[Look[DetailT]] | None = None
        #: Counts what we changed: a look that began before a change is thrown away.
        self._changes = 0
        self._looking_since_change = 0
        #: The time that was told last.
        self._now = -math.inf
        #: These three on the monotonic clock.
        self._next_look = 0.0
        self._look_began = 0.0
        self._down_since: float | None = None
        self._confirm_pause = pace.confirm_interval
        self._down: Outage | None = None
        self._odd = Oddities(self.system, self._clock)
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
            if getattr(read, "agents", None) is not None:
                able = able | {d.SwapTiers}
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

    def news(self, look: Look[DetailT]) -> Iterable[ev.Event]:
        """What a look tells besides jobs, nodes and reservations; events of its time."""
        return ()

    def _licence_news(self, shown: Snapshot) -> Iterator[ev.Event]:
        """Other amounts of licences than were told before."""
        for name, total in other_amounts(self._told_licences, shown.licences).items():
            yield ev.LicencesChanged(shown.time, name, total)
        self._told_licences = shown.licences

    def tend(self, look: Look[DetailT], in_flight: set[str]) -> None:
        """Housekeeping after a look; not for the jobs that were ``in_flight`` in it."""

    def patience(self, start: d.Start) -> float:
        """How long a job that is started may stay pending, seconds; then the start is taken back."""
        return self._pace.start_timeout

    def rules(self, pool: str) -> bool:
        """Whether only headway starts jobs of this pool: a start by somebody else is counted and told."""
        return False

    def drain(self, node: str, reason: str) -> tuple[str, ...]:
        """The command that takes a node out of service; for a drained one: with another reason."""
        raise NotImplementedError

    def undrain(self, node: str) -> tuple[str, ...]:
        """The command that puts a node back into service."""
        raise NotImplementedError

    def signalling(self, job_id: str, name: str) -> tuple[str, ...]:
        """The command that sends all processes of a job a signal, such as "USR1"."""
        raise NotImplementedError

    def use_handlers(self, handlers: Iterable[MigrationHandler], gives: frozenset[type[d.Decision]]) -> None:
        self._moves.use(handlers)
        self._given = gives
        self.capabilities = self.capabilities | gives

    def tell_words(self, words: Iterable[str]) -> None:
        self.words = frozenset(words)

    def tiers_before(self, tiers: Mapping[str, str]) -> None:
        self._agents.adopt(tiers)

    def no_tier(self, start: d.Start) -> str:
        """Why a job cannot start in its tier on a batch system that oversubscribes when told to; "" if it
        can."""
        if start.tier == FOREGROUND or (start.tier == BACKGROUND and self._agent_options is not None):
            return ""
        if start.tier != BACKGROUND:
            return f"job {start.job_id}: there is no tier {start.tier!r}"
        return f"job {start.job_id}: only with cluster.options.agents is there a background"

    def check_agents(self) -> list[Check]:
        """Whether the nodes' agents answer; nothing for a site without agents."""
        if self._agent_options is None:
            return []
        try:
            agents = Agents(self._agent_options, poke=self.poke, log=self._log, clock=self._clock)
        except UserError as error:
            return [Check("node agents", False, str(error), "run as the service's user; chmod 600")]
        try:
            return agents.check(self.look(None).snapshot.nodes)
        finally:
            agents.close()

    def moving_before(self, decisions: Mapping[str, d.Decision]) -> None:
        self._moves.adopt(decisions)

    def asked_before(self, starts: Mapping[str, float]) -> None:
        self._asked_before = dict(starts)

    def submitted_before(self, known: submissions.Known) -> None:
        self._submitted_before = known

    def wished_before(self, wishes: Mapping[str, WishedFrequency]) -> None:
        self._wished_before = dict(wishes) if d.SetFrequency in self.capabilities else {}

    # ------------------------------------------------------------------ describe

    def describe(self) -> ClusterDescription:
        name = self.learn()
        look = self.look(None)
        if self.read_only:
            # Nothing is done meanwhile, so this is the first look as well: one at a large cluster takes time.
            looked: Future[Look[DetailT]] = Future()
            looked.set_result(look)
            self._looking, self._looking_since_change = looked, self._changes
        self._actuators.adopt(look.snapshot)
        shown = self._actuators.show(look.snapshot)
        # A description knows no power states: the first look tells of those that are not on.
        self._described = replace(shown, power={})
        self._told_licences = shown.licences
        self.note(look.notes)
        return ClusterDescription(
            name=name,
            pools=tuple(shown.pools.values()),
            nodes=tuple(shown.nodes.values()),
            reservations=tuple(shown.reservations.values()),
            licences=tuple(shown.licences.items()),
            switches=self.switches(shown.nodes),
            enters_reservations=self.enters_reservations,
            shares_out=self.shares_out,
            moves_take_time=True,
            suspended_lend=self.suspended_lend,
            numbered=True,
        )

    def switches(self, nodes: Mapping[str, NodeDescription]) -> tuple[SwitchDescription, ...]:
        """How the ``nodes`` are connected, as far as the batch system says it; asked after :meth:`learn`."""
        return ()

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
            moment = time.monotonic()
            # A look comes before what is told already: who asks again and again for what is refused would
            # otherwise never see that the cluster has changed.
            if self._looking is None and moment >= self._next_look:
                self._begin_look()
            if self._looking is not None and self._looking.done():
                events = self._finish_look()
                if events is not None:
                    return self._tell(events)
                if not self._told:
                    continue
            # The clock may be stepped while we sleep: each look, which does not depend on it, asks it anew.
            left = math.inf if deadline is None else deadline - self._clock()
            if self._looking is not None and self._vain >= _VAIN:
                left = math.inf
            elif self._told:
                return self._tell([])
            elif self._bell.woken:
                self._bell.woken = False
                return self._tell([])
            elif left <= 0 and not self._may_answer_soon():
                return self._tell([])
            pause = math.inf if self._looking is not None else self._next_look - moment
            for due in (self._actuators.due, self._moves.due, self._agents.due):
                if due is not None:
                    pause = min(pause, due)
            # A passed deadline waits a little for a look that is under way.
            pause = min(pause, left if left > 0 else self._look_began + _PATIENCE - moment)
            self._bell.sleep(pause)

    def _may_answer_soon(self) -> bool:
        """A look is under way, and the system was in order until now."""
        patient = time.monotonic() < self._look_began + _PATIENCE
        return self._looking is not None and self._down_since is None and patient

    def _begin_look(self) -> None:
        before = self._raw
        self._looking_since_change = self._changes
        self._look_began = time.monotonic()
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
            self._vain += 1
            return None
        self._vain = 0
        self._answered()
        self.note(look.notes)
        first = self._last is None
        old = self._last.snapshot if self._last is not None else None
        self._looks = (old.time, look.snapshot.time) if old is not None else None
        look = look.kept_from(self._raw)
        kept = submissions.first_submitted(look.snapshot, self._raw, self._submitted_before)
        look = as_it_is = replace(look, snapshot=kept)
        self._raw = look.snapshot
        flying = set(self._flights)
        if not self.read_only:
            self._actuators.looked(look.snapshot)
        self._as_it_is = self._placed(look)
        self._written.clear()
        self._last = self._shown(as_it_is)
        if not self.read_only:
            with self._unforeseen("the moves that are under way"):
                old = self._moves.looked(self._as_it_is.snapshot, old)
        look = self._last = self._shown(as_it_is)
        events = [*self._moves.told(), *differ.diff_jobs(old, look.snapshot)]
        since = old if old is not None else self._described
        self._described = None
        if since is not None:
            self._tell_gone(since, look.snapshot)
            events += differ.diff_pools(since, look.snapshot)
            events += differ.diff_nodes(since, look.snapshot)
            events += differ.diff_reservations(since, look.snapshot)
        events += self._licence_news(look.snapshot)
        events += self.news(as_it_is)
        if not self.read_only:
            if first:
                self._adopt(as_it_is)
                flying = set(self._flights)
                events = [self._with_frequency(event, look) for event in events]
                self._go_on_with_frequencies(look)
                self._actuators.go_on_waking()
            else:
                late = {event.job_id for event in events if isinstance(event, ev.JobReleasing)} - flying
                if late:
                    # Somebody else's, seen with the job itself: it happens, or is taken back.
                    self._adopt(as_it_is, late)
                    flying |= late & set(self._flights)
                events = [self._with_frequency(event, look) for event in events]
                self._count_strangers(events, look)
            # What was asked for since the look began is not in it.
            in_flight = self._confirm(as_it_is, flying) | set(self._flights)
            with self._unforeseen("the housekeeping after a look"):
                self.tend(as_it_is, in_flight)
            self._agents.looked(self._as_it_is.snapshot, self._flights)
            for event in events:
                if isinstance(event, ev.JobEnded | ev.JobRequeued):
                    self._actuators.job_ended(event.job_id)
                    self._promised.discard(event.job_id)
        self._schedule_look()
        if not events and not first and not self._told:
            return None
        return ev.in_order(events)

    def _tell_gone(self, old: Snapshot, new: Snapshot) -> None:
        """Say which of headway's pools were deleted: a next start would refuse the configuration."""
        for name, known in old.pools.items():
            if name not in new.pools and (known.open or self.rules(name)):
                self._log.warning(
                    "a pool is gone", pool=name, remedy="take it out of cluster.options before the next start"
                )

    def _shown(self, look: Look[DetailT]) -> Look[DetailT]:
        """A look as it is told: sleepers are in order, jobs that move are where they were."""
        placed = self._placed(look)
        return replace(placed, snapshot=self._moves.show(placed.snapshot))

    def _placed(self, look: Look[DetailT]) -> Look[DetailT]:
        """A look, with what only the actuators and the agents know."""
        return replace(look, snapshot=self._agents.show(self._actuators.show(look.snapshot)))

    def _count_strangers(self, events: Iterable[ev.Event], look: Look[DetailT]) -> None:
        """Tell of starts that were not headway's."""
        for event in events:
            if not isinstance(event, ev.JobStarted) or event.job_id in self._flights:
                continue
            job = look.snapshot.jobs.get(event.job_id)
            if job is not None and self.rules(job.job.pool):
                where = ", ".join(node for node, _ in event.placement[:3])
                self._odd.saw(STARTED_WITHOUT_US, f"job {event.job_id} of {job.job.user} on {where}")
                self._log.warning(STARTED_WITHOUT_US, job=event.job_id, user=job.job.user, nodes=where)

    def _advance(self) -> None:
        """Let the actuators go on, and tell what became of their work."""
        with self._unforeseen("the moves that are under way"):
            self._told += self._moves.advance()
        if not self.read_only:
            told, swapped = self._agents.advance()
            self._told += told
            if swapped:
                # The look that follows tells it.
                self._next_look = 0.0
        changes = self._actuators.advance()
        for event in changes.events:
            if isinstance(event, ev.JobFrequencyChanged):
                self._promised.discard(event.job_id)
            elif isinstance(event, ev.DecisionFailed) and isinstance(event.decision, d.SetFrequency):
                self._not_kept(event.decision.job_id)
            self._told.append(event)
        if changes.acted:
            self._changes += 1
            self._next_look = min(self._next_look, time.monotonic() + self._pace.confirm_interval)
        if changes.moved and self._raw is not None and self._last is not None:
            now = replace(self._raw, time=self._clock())
            shown = self._actuators.show(now)
            self._told += differ.diff_nodes(self._last.snapshot, shown)
            self._last = replace(self._last, snapshot=replace(shown, time=self._last.snapshot.time))

    def _tell(self, events: Sequence[ev.Event]) -> tuple[float, Sequence[ev.Event]]:
        told, self._told = self._told, []
        if told:
            events = ev.in_order([*events, *told])
        self._now = max(self._now, self._clock(), max((event.time for event in events), default=-math.inf))
        return self._now, events

    def _schedule_look(self) -> None:
        pause = self._pace.poll_interval
        if self._flights:
            pause = min(pause, self._confirm_pause)
            self._confirm_pause = min(self._confirm_pause * 2, pause * 2, self._pace.poll_interval)
        self._next_look = time.monotonic() + pause

    def _outage(self, error: Failure) -> None:
        now = time.monotonic()
        self._vain = 0
        if self._down_since is None:
            self._down_since = now
            self._backoff = min(1.0, self._pace.poll_interval)
            self._down = Outage(self.system, self._clock(), str(error))
            self._log.error(f"{self.system} does not answer; waiting for it", error=str(error))
        self._next_look = now + self._backoff
        self._backoff = min(self._backoff * 2, _LONGEST_BACKOFF)

    def _answered(self) -> None:
        if self._down_since is not None:
            seconds = round(time.monotonic() - self._down_since, 1)
            self._log.info(f"{self.system} answers again", seconds=seconds)
            self._down_since = self._down = None
            # The time without an answer is nobody's fault: starts may take their time anew.
            for flight in self._flights.values():
                flight.deadline = time.monotonic() + self.patience(flight.decision)

    def looked(self, job_id: str) -> tuple[float, float] | None:
        return self._looks

    def outages(self) -> Sequence[Outage]:
        down = self._down
        return () if down is None else (down,)

    def oddities(self) -> Sequence[Oddity]:
        return (*self._odd.shown(), *self._agents.oddities(self.system))

    def wake(self) -> None:
        self._bell.wake()

    # ------------------------------------------------------------------ starts on their way

    def _adopt(self, look: Look[DetailT], only: Collection[str] | None = None) -> None:
        for start, payload, restarts in self.adopt(look):
            if only is not None and start.job_id not in only:
                continue
            wish = self._wished_before.get(start.job_id)
            if wish is not None and wish.asked is not None and wish.started is None:
                start = msgspec.structs.replace(start, frequency=wish.hertz)
            self._fly(start, payload, restarts, self._asked_before.get(start.job_id))
            self._agents.start(start)
            self._log.info("a start is on its way from before", job=start.job_id)

    def _with_frequency(self, event: ev.Event, look: Look[DetailT]) -> ev.Event:
        """A start with the frequency that was asked for with it and is set now.

        Told without, the job would count as running at the nodes' own, and be slowed a second time."""
        if not isinstance(event, ev.JobReleasing | ev.JobStarted) or self._actuators.options.dry:
            return event
        key, job = event.job_id, look.snapshot.jobs.get(event.job_id)
        flight, wish = self._flights.get(key), self._wished_before.get(key)
        wanted = None
        if flight is not None:
            if job is not None and job.restarts == flight.restarts:
                wanted = flight.decision.frequency
        elif wish is not None and job is not None and self._same_execution(job, wish):
            wanted = wish.hertz
        if wanted is None:
            return event
        if isinstance(event, ev.JobStarted):
            self._promised.add(key)
        return msgspec.structs.replace(event, frequency=wanted)

    def _go_on_with_frequencies(self, look: Look[DetailT]) -> None:
        """Set what an earlier run wanted for jobs that run, and did not come to; tell what it set."""
        for key, wish in self._wished_before.items():
            job = look.snapshot.jobs.get(key)
            if job is None:
                continue
            if job.state not in ON_NODES:
                if key in self._flights:
                    self._lengthen(job, wish)
                continue
            if not self._same_execution(job, wish):
                continue
            self._lengthen(job, wish)
            if wish.is_set:
                self._actuators.remember_frequency(key, job.placement)
                self._promised.discard(key)
                self._told.append(ev.JobFrequencyChanged(self._clock(), key, wish.hertz))
                continue
            order = d.SetFrequency(key, wish.hertz, "asked for before this run began")
            self._log.info("a frequency was asked for before and not set", job=key, hertz=round(wish.hertz))
            self._set_at_start(order, job)
        self._wished_before.clear()

    def _lengthen(self, job: SnapshotJob, wish: WishedFrequency) -> None:
        """Give a job the limit that was to go with its frequency, if it has a shorter one."""
        if wish.walltime is None or job.job.request.walltime >= wish.walltime:
            return
        order = d.SetTimeLimit(job.job.id, wish.walltime, "asked for before this run began")
        self._log.info("a limit was asked for with a frequency", job=job.job.id, seconds=round(wish.walltime))
        outcome = self._carry_out(order, self._clock())
        if not outcome.accepted:
            self._refuse([(order, outcome.message)], self._clock())

    def _set_at_start(self, wish: d.SetFrequency, job: SnapshotJob) -> None:
        """Set what a job's start was told with."""
        if problem := self._actuators.set_frequency(wish, job.placement):
            self._not_kept(wish.job_id)
            self._refuse([(wish, problem)], self._clock())

    def _not_kept(self, job_id: str) -> None:
        """The frequency that a job's start was told with could not be set."""
        if job_id in self._promised:
            self._promised.discard(job_id)
            self._told.append(ev.JobFrequencyChanged(self._clock(), job_id, None))

    def _same_execution(self, job: SnapshotJob, wish: WishedFrequency) -> bool:
        """Whether a job that runs is the execution that the wish was for; one begun anew is not."""
        at = job.start_time
        if wish.started is not None:
            return at is not None and abs(at - wish.started) < 1.0
        if wish.asked is None:
            return False
        if self.counts_restarts and job.restarts == 0:
            return True
        # Nothing starts later than its time-out allows, so a later start is another one.
        return at is not None and abs(at - wish.asked) <= self._pace.start_timeout

    def _fly(self, start: d.Start, payload: PayloadT, restarts: int, asked: float | None = None) -> None:
        """``asked``: when, if that was before this run."""
        left = self.patience(start)
        if asked is not None:
            # By the clock, which may have been set since: never more than the whole time.
            left = min(left, left - (self._clock() - asked))
        deadline = time.monotonic() + left
        self._flights[start.job_id] = Flight(start, payload, restarts, deadline)

    def _confirm(self, look: Look[DetailT], seen: set[str]) -> set[str]:
        """See which of the starts ``seen`` happened, and take those back that do not; the jobs that were in
        flight."""
        for key, flight in list(self._flights.items()):
            if key not in seen:
                continue
            with self._unforeseen("whether a start happened", job=key):
                self._confirm_one(key, flight, look)
        return seen

    def _confirm_one(self, key: str, flight: Flight[PayloadT], look: Look[DetailT]) -> None:
        job = look.snapshot.jobs.get(key)
        if job is None or job.state == "ended":
            del self._flights[key]
            return
        if job.state != "pending":
            del self._flights[key]
            wanted = {node for node, _ in flight.decision.placement}
            if job.restarts == flight.restarts and {node for node, _ in job.placement} != wanted:
                got = sorted(node for node, _ in job.placement)
                said = "a job runs on other nodes than it was sent to"
                self._log.warning(said, job=key, wanted=sorted(wanted), got=got)
            if flight.decision.frequency is not None and job.restarts == flight.restarts:
                wish = d.SetFrequency(key, flight.decision.frequency, flight.decision.reason)
                self._set_at_start(wish, job)
            return
        why = self.given_up(job, look.details.get(key))
        if why:
            self._end_flight(key, flight, why, late=False)
        elif job.restarts != flight.restarts:
            # No look saw it run, so nobody was told that it did.
            self._failed(key, flight, "it started and went back to the queue at once")
        elif time.monotonic() >= flight.deadline:
            seconds = self.patience(flight.decision)
            why = f" ({job.reason})" if job.reason and job.reason != "None" else ""
            self._end_flight(key, flight, f"it did not start within {seconds:g} s{why}", late=True)

    @contextmanager
    def _unforeseen(self, what: str, **about: str) -> Iterator[None]:
        """What goes wrong in here is logged, each mistake once, and concerns nobody else."""
        try:
            yield
        except UserError:
            raise
        except Exception as error:
            said = f"{what}: {type(error).__name__}: {error}"[:_LONGEST_NOTE]
            if (key := f"{sorted(about.items())} {said}") not in self._noted:
                self._noted.add(key)
                self._log.error(
                    "this could not be done, the rest goes on", what=said, **about, exc_info=error
                )

    def _end_flight(self, key: str, flight: Flight[PayloadT], why: str, *, late: bool) -> None:
        if self.take_back(flight, late=late):
            self._failed(key, flight, why)

    def _failed(self, key: str, flight: Flight[PayloadT], why: str) -> None:
        del self._flights[key]
        self._log.warning("a start did not happen", job=key, why=why)
        if self._moves.answered(flight.decision, False, why):
            return
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
        refused = [
            (cast(d.AnyDecision, decision), outcome.message)
            for decision, outcome in zip(decisions, outcomes, strict=True)
            if not outcome.accepted
        ]
        self._refuse(refused, now)
        self._confirm_pause = self._pace.confirm_interval
        self._next_look = min(self._next_look, time.monotonic() + self._pace.confirm_interval)
        if self._down_since is not None:
            self._next_look = max(self._next_look, time.monotonic() + self._pace.confirm_interval)
        return outcomes

    def _refuse(self, refused: Sequence[tuple[d.AnyDecision, str]], now: float) -> None:
        """Tell what the batch system refused and why; of elements of one array (somebody cancelled it, say)
        the log tells in one line."""
        lines: dict[tuple[str, str, str], list[tuple[str | None, str]]] = {}
        for number, (decision, message) in enumerate(refused):
            self._told.append(ev.DecisionFailed(time=now, decision=decision, message=message))
            job_id: str | None = getattr(decision, "job_id", None)
            job = self.known(job_id) if job_id else None
            array = job.job.array_id if job is not None else ""
            alike = (array, message.replace(job_id, "")) if job_id and array else ("", str(number))
            lines.setdefault((type(decision).__name__, *alike), []).append((job_id, message))
        for (name, _, _), told in lines.items():
            job_id, message = told[0]
            more = {"elements": len(told)} if len(told) > 1 else {}
            self._log.warning(f"{self.system} refused", decision=name, job=job_id, error=message, **more)

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
                self._agents.start(starts[index])
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
        if isinstance(decision, d.Migrate | d.Checkpoint):
            known = self.known(decision.job_id)
            if known is not None and known.job.request.parts:
                return Outcome(False, f"job {decision.job_id} has several parts, which are not moved")
            return self._moves.begin(decision, known, self._agents.tier_of(decision.job_id))
        if isinstance(decision, d.SwapTiers):
            if moving := [k for k in (decision.job_id, decision.other_job_id) if k in self._moves]:
                return Outcome(False, f"job {moving[0]} is being moved")
            return self._agents.swap(decision)
        if isinstance(decision, _NOT_WHILE_MOVED) and decision.job_id in self._moves:
            return Outcome(False, f"job {decision.job_id} is being moved")
        if isinstance(decision, d.Signal):
            return self._signal_running(decision)
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
        if job is None or job.state not in ON_NODES:
            return f"job {decision.job_id} does not run"
        return self._actuators.set_frequency(decision, job.placement)

    def _signal_running(self, decision: d.Signal) -> Outcome:
        """A job that waits gets none: some batch systems would end it in its queue for that."""
        job = self.known(decision.job_id)
        if job is None or job.state not in ("starting", "running"):
            return Outcome(False, f"job {decision.job_id} does not run")
        return self.signal(decision.job_id, decision.signal)

    def _occupants(self) -> dict[str, str]:
        """Node -> a job that runs there or is on its way there."""
        found = {node: key for key, f in self._flights.items() for node, _ in f.decision.placement}
        for key, job in self._last.snapshot.jobs.items() if self._last is not None else ():
            if job.state in ON_NODES:
                found.update((node, key) for node, _ in job.placement)
        return found

    # ------------------------------------------------------------------ what the moves need

    def order(self, decision: d.Decision) -> Outcome:
        """Carry out what a move needs. A start that is refused, now or later, is told to its move alone."""
        self._confirm_pause = self._pace.confirm_interval
        self._next_look = min(self._next_look, time.monotonic() + self._pace.confirm_interval)
        if isinstance(decision, d.Start):
            return self._start_all([decision])[0]
        if type(decision) not in self.capabilities:
            return Outcome(False, f"{type(decision).__name__} cannot be carried out on this {self.title}")
        return self.carry_out(decision, self._clock())

    def signal(self, job_id: str, name: str) -> Outcome:
        """Send all processes of a running job a signal."""
        try:
            argv = self.signalling(job_id, name)
        except Unfit as error:
            return Outcome(False, str(error))
        return self.run_steps([argv])

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
        """A job as the batch system showed it at the last look."""
        return self._raw.jobs.get(job_id) if self._raw is not None else None

    def detail(self, job_id: str) -> DetailT | None:
        """What the last look showed of a job besides; None for one that it did not show."""
        if self._last is None or job_id not in self._last.snapshot.jobs:
            return None
        return self._last.details.get(job_id)

    def run_steps(self, steps: Sequence[Sequence[str]], *, already: Iterable[str] = ()) -> Outcome:
        """Run commands one after another until one fails.

        ``already``: parts of error messages that mean that what was asked for is already so.
        """
        for argv in steps:
            result = self.change([argv])[0]
            if result is None or not result.ok:
                if result is not None and any(word in result.stderr for word in already):
                    return Outcome(True, result.complaint())
                return self.refused(result)
        return Outcome(True)

    def as_written(self, job_id: str, seen: str) -> str:
        """What a job's notes are in, of which the last look has ``seen``."""
        return self._written.get(job_id, seen)

    def remember(self, noted: str, job_id: str, outcome: Outcome) -> Outcome:
        """``outcome``, after which a job's notes are in ``noted`` if it says anything."""
        if noted and outcome.accepted:
            self._written[job_id] = noted
        return outcome

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
        self._moves.close()
        self._agents.close()
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
