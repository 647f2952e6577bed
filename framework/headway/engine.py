"""The loop: wait, journal, step, journal, apply, journal. The only place with I/O.

Every event is in the journal before the scheduler sees it, and every decision before it is acted
upon. When the journal cannot be written the loop ends before anything is applied: a start that is
not written down is not made.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, Protocol

from headway.adapter import ClusterAdapter, Outcome
from headway.decisions import OF_THE_ENGINE, Copy, Decision, Drop, Start, Tell
from headway.events import Event
from headway.inputs.log import logger
from headway.inputs.trail import Trail, following
from headway.inquiry.cycles import Cycle
from headway.inquiry.planned import PlannedStarts
from headway.journal import JournalWriter, NullJournal
from headway.journal.latencies import SAVED_AS, LatencyMeter
from headway.model.modes import Mode
from headway.plugins import Problem
from headway.plugins.failures import Failures, Told
from headway.scheduler import Scheduler

#: Between checkpoints of the plugins' states in the journal.
CHECKPOINT_CYCLES = 500

#: Characters of a letter's user and subject that the log is told.
_SHOWN = 200

#: What became of a letter where none are sent.
_NOT_SENT = "the letter would have been sent"

#: A daemon tells the log at least so often, in seconds, of a problem that goes on.
REMIND = 3600.0


class Stopped(enum.StrEnum):
    """Why :meth:`Engine.run` returned."""

    FINISHED = "finished"
    STOPPED = "stopped"
    RELOAD = "reload"
    #: The wall clock was set back so far that a run must begin anew with its time.
    CLOCK = "clock set back"


class RequestSource(Protocol):
    """Where an engine gets users' requests from. Called by the engine's thread only."""

    def take(self, now: float) -> Sequence[Event]:
        """The requests since the last call, as events of ``now`` (absolute seconds)."""

    def served(self, cycle: Cycle, scheduler: Scheduler) -> None:
        """A cycle is over: what was taken can be answered."""

    def answer_questions(self, scheduler: Scheduler) -> None:
        """Between two steps: what needs no cycle can be answered, for a short time."""

    def was_woken_to_answer(self) -> bool:
        """Whether the adapter's wait was ended, since this was asked last, for what needs no cycle and for
        nothing else."""

    def failed(self, problem: Problem) -> None:
        """A plugin failed, or something made no sense; the log has it already."""


class LetterCarrier(Protocol):
    """What has letters to users delivered. Called by the engine's thread only."""

    def send(self, tell: Tell) -> Outcome:
        """Take a letter: returns at once, whatever becomes of the letter, and raises nothing."""


class Engine:
    """Runs one scheduler on one cluster until told to stop or until the cluster has no more to say."""

    def __init__(
        self,
        adapter: ClusterAdapter,
        scheduler: Scheduler,
        journal: JournalWriter | None = None,
        *,
        mode: Mode = Mode.DRY_RUN,
        on_cycle: Callable[[float], None] | None = None,
        on_decisions: Callable[[float, Sequence[Decision], Sequence[Outcome]], None] | None = None,
        requests: RequestSource | None = None,
        latencies: LatencyMeter | None = None,
        letters: LetterCarrier | None = None,
        succeeds: Callable[[Stopped], bool] | None = None,
        may_act: Callable[[], None] | None = None,
        run: int = 0,
        tells_events: bool = False,
        log: Any = None,
    ) -> None:
        """``on_cycle(now)`` is called after each cycle (progress bars); ``on_decisions(now, decisions,
        outcomes)`` after decisions were applied, or only journalled in monitor mode. ``requests`` are
        users' wishes, which become events of the next cycle; each wish wakes the adapter. ``latencies``
        measures how long the cluster takes. ``letters`` has letters to users delivered; None, or another mode
        than drive: it is only said that they would be.

        ``succeeds(why)`` is asked after the cycle in which the run was told to end for another (a reload, the
        clock), whether that engine is ready; if not, this engine goes on. It may be asked again before the
        end, when it is told so again meanwhile. None: the run ends at once.

        ``may_act()`` is called right before anything is done to the cluster, and raises what ends the run if
        this engine may not: another leads. ``run``: its number in the journal, with which the ids of cycles
        and decisions begin in the log. ``tells_events``: the log has each event, too."""
        self.adapter = adapter
        self.scheduler = scheduler
        self.journal: JournalWriter = journal if journal is not None else NullJournal()
        self.mode = mode
        self.wall_seconds = 0.0
        #: What plugins and others did wrong in this run.
        self.failures = Failures(None if mode is Mode.DRY_RUN else REMIND)
        self._on_cycle = on_cycle
        self._succeeds = succeeds
        self._may_act = may_act
        self._on_decisions = on_decisions
        self._requests = requests
        self._latencies = latencies
        self._letters = letters if mode is Mode.DRIVE else None
        self._log = log if log is not None else logger("headway.engine")
        self._stop: Stopped | None = None
        self._seq = 0
        self._run = run
        self._tells_events = tells_events
        self._planned = PlannedStarts()
        #: Whether the run has a checkpoint of all plugins, in which some may be renewed.
        self._checkpointed = False

    def stop(self) -> None:
        """End after the current cycle. Safe to call from a signal handler."""
        self._stop = Stopped.STOPPED
        self.adapter.wake()

    @property
    def reload_is_due(self) -> bool:
        """Whether a reload was asked for that has not been acted upon, such as one that came at the end."""
        return self._stop is Stopped.RELOAD

    def reload(self) -> None:
        """End after the current cycle so that the caller can start again with a new configuration."""
        if self._stop in (None, Stopped.CLOCK):
            self._stop = Stopped.RELOAD
            self.adapter.wake()

    def begin_anew(self) -> None:
        """End after the current cycle so that the caller can start again with the clock's new time. May be
        called from any thread."""
        if self._stop is None:
            self._stop = Stopped.CLOCK
            self.adapter.wake()

    def run(self) -> Stopped:
        """The loop. Returns why it ended; a :class:`headway.errors.Failure` of the journal passes through."""
        began = perf_counter()
        try:
            reason = self._loop()
        finally:
            self.wall_seconds += perf_counter() - began
        # What shutdown gives up must be remembered before.
        states = self._states() if self.journal.enabled else {}
        self.scheduler.shutdown()
        self.report()
        for told in self.failures.untold():
            self._tell_problem(told)
        if self.journal.enabled:
            self.journal.checkpoint(self._seq, states)
        return reason

    def remember(self) -> None:
        """Write down what the plugins know, for a run that is to follow. Raises what the journal raises."""
        if self.journal.enabled:
            self._checkpoint()

    def _end(self) -> Stopped | None:
        """Why the run ends now; None while it goes on."""
        while self._succeeds is not None and self._stop in (Stopped.RELOAD, Stopped.CLOCK):
            # From here on an order is a new one: it is about what is read from now on.
            why, self._stop = self._stop, None
            if self._succeeds(why) and self._stop is None:
                return why
        return self._stop

    def _loop(self) -> Stopped:
        adapter, scheduler = self.adapter, self.scheduler
        wait, next_wakeup, step, apply = adapter.wait, scheduler.next_wakeup, scheduler.step, self._apply
        problems, notices = scheduler.problems, scheduler.notices
        on_cycle, on_decisions = self._on_cycle, self._on_decisions
        shows_starts = adapter.shows_starts and self.mode is Mode.DRIVE
        plain = not self.journal.enabled and self.mode is not Mode.MONITOR and self._requests is None
        while (ends := self._end()) is None:
            if self._requests is not None:
                self._requests.answer_questions(scheduler)
            moment = wait(next_wakeup())
            if moment is None:
                return Stopped.FINISHED
            now, events = moment
            if self._only_asked(now, events):
                continue
            if plain:
                decisions = step(now, events)
                if decisions:
                    outcomes = apply(now, decisions)
                    if on_decisions is not None:
                        on_decisions(now, decisions, outcomes)
            else:
                self._journalled(now, events)
            if problems or notices:
                self.report()
            if shows_starts:
                self._check()
                adapter.show_starts(self._planned.after_cycle(scheduler).items())
            if on_cycle is not None:
                on_cycle(now)
        return ends

    def _only_asked(self, now: float, events: Sequence[Event]) -> bool:
        """Whether the wait ended for a question alone: a step would find nothing to do."""
        if self._requests is None or not self._requests.was_woken_to_answer() or events:
            return False
        due = self.scheduler.next_wakeup()
        return self.scheduler.cycles > 0 and (due is None or now < due)

    def _journalled(self, now: float, events: Sequence[Event]) -> None:
        """One cycle with everything written down before it has an effect."""
        journal, began = self.journal, perf_counter()
        self._seq += 1
        asked = self._requests.take(now) if self._requests is not None else ()
        if asked:
            events = [*events, *asked]
        journal.record_events(self._seq, now, events)
        if self._tells_events:
            self._tell_events(events)
        stepping = perf_counter()
        decisions = self.scheduler.step(now, events)
        stepped = perf_counter() - stepping
        outcomes: Sequence[Outcome] = ()
        if decisions:
            journal.record_decisions(self._seq, decisions)
        if journal.enabled:
            self._keep_word(asked=bool(asked))
        if decisions:
            ids = [f"{self._cycle}-{at}" for at in range(len(decisions))]
            if self.mode is not Mode.DRY_RUN:
                self._tell(decisions, ids)
            if self.mode is Mode.MONITOR:
                outcomes = _not_applied(decisions)
            else:
                self._check()
                with following(self._trail(decisions, ids)):
                    outcomes = self._apply(now, decisions)
            journal.record_outcomes(self._seq, outcomes)
            if self._on_decisions is not None:
                self._on_decisions(now, decisions, outcomes)
        if self._latencies is not None:
            self._latencies.cycle(now, events, decisions, self.adapter.looked)
        if self._requests is not None:
            took = perf_counter() - began
            self._requests.served(Cycle(now, events, decisions, outcomes, took, stepped), self.scheduler)
        if self._seq % CHECKPOINT_CYCLES == 0:
            self._checkpoint()

    def _check(self) -> None:
        if self._may_act is not None:
            self._may_act()

    def _apply(self, now: float, decisions: Sequence[Decision]) -> Sequence[Outcome]:
        """Hand decisions to the cluster, and letters to the carrier; one outcome each."""
        orders = [decision for decision in decisions if type(decision) not in OF_THE_ENGINE]
        outcomes = self.adapter.apply(now, orders) if orders else ()
        if len(orders) == len(decisions):
            return outcomes
        of_orders = iter(outcomes)
        return [
            self._send(decision) if isinstance(decision, Tell) else next(of_orders) for decision in decisions
        ]

    def _send(self, tell: Tell) -> Outcome:
        return self._letters.send(tell) if self._letters is not None else Outcome(True, _NOT_SENT)

    def _keep_word(self, *, asked: bool) -> None:
        """What users were told (if any ``asked``), and jobs were promised, must survive a crash."""
        promised = self.scheduler.newly_promised()
        if asked or (promised and not self._checkpointed):
            self._checkpoint()
        elif promised:
            self.journal.checkpoint(self._seq, self.scheduler.checkpoint(promised), of=promised)

    def _checkpoint(self) -> None:
        self.journal.checkpoint(self._seq, self._states())
        self._checkpointed = True

    def _states(self) -> dict[str, Any]:
        """What is remembered over a restart, by plugin; the latencies as well."""
        states = self.scheduler.checkpoint()
        if self._latencies is not None and (measured := self._latencies.saved()):
            states[SAVED_AS] = measured
        return states

    @property
    def _cycle(self) -> str:
        """The id of the present cycle."""
        return f"{self._run}-{self._seq}"

    def _trail(self, decisions: Sequence[Decision], ids: Sequence[str]) -> Trail:
        """What an adapter is told of the decisions that it gets."""
        pairs = zip(decisions, ids, strict=True)
        return Trail(self._cycle, tuple([name for one, name in pairs if type(one) not in OF_THE_ENGINE]))

    def _tell_events(self, events: Sequence[Event]) -> None:
        for event in events:
            job = getattr(event, "job", None)
            self._log.debug(
                "happened",
                kind=type(event).__name__,
                job=getattr(event, "job_id", None) or getattr(job, "id", None),
                cycle=self._cycle,
            )

    def _tell(self, decisions: Sequence[Decision], ids: Sequence[str]) -> None:
        for decision, name in zip(decisions, ids, strict=True):
            self._log.info(
                "decided" if self.mode is not Mode.MONITOR else "would do",
                decision=type(decision).__name__,
                job=getattr(decision, "job_id", None),
                reason=getattr(decision, "reason", ""),
                id=name,
                **_more(decision),
            )

    def report(self) -> None:
        """Tell the log what went wrong since this was called last."""
        problems: list[Problem] = self.scheduler.problems
        now = self.scheduler.state.now
        for problem in problems:
            if (told := self.failures.note(problem, now)) is not None:
                self._tell_problem(told)
            if self._requests is not None:
                self._requests.failed(problem)
        problems.clear()
        for notice in self.scheduler.notices:
            self._log.info("notice", message=notice)
        self.scheduler.notices.clear()

    def _tell_problem(self, told: Told) -> None:
        problem = told.problem
        self._log.error(
            "plugin failed" if problem.traceback else "inconsistent",
            plugin=problem.plugin,
            hook=problem.hook,
            message=problem.message,
            **({"traceback": problem.traceback or None} if told.new else {"times": told.times}),
        )


def _more(decision: Decision) -> dict[str, str]:
    """What the log says of a decision beside its job and its reason."""
    if isinstance(decision, Copy | Drop):
        return {"dataset": decision.dataset, "site": decision.site}
    if isinstance(decision, Tell):
        return {"user": str(decision.user)[:_SHOWN], "subject": str(decision.subject)[:_SHOWN]}
    return {"pool": decision.pool} if isinstance(decision, Start) and decision.pool else {}


def _not_applied(decisions: Sequence[Decision]) -> list[Outcome]:
    return [
        Outcome(False, f"monitor mode: {_NOT_SENT if isinstance(decision, Tell) else 'not applied'}")
        for decision in decisions
    ]
