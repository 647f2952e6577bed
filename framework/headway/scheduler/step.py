"""The scheduler: events in, decisions out, and nothing else.

:meth:`Scheduler.step` is a deterministic function of the scheduler's state, the time and the
events: no clock, no socket, no file, no global random generator. (The habit is that of h2's
protocol core and of distributed's worker state machine.) One instant is one step: the events are
folded into the state, each domain that something happened to is scheduled by the policy
(:mod:`headway.scheduler.passes`), and the decisions go through the control, revise and veto hooks.

Decisions count in the state when they are made, so later candidates of the same cycle see what is left; what
a later hook takes away is undone (:mod:`headway.scheduler.gate`). :meth:`headway.state.State.begin` is the
guard that every start passes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from time import perf_counter
from typing import Any

import numpy as np

from headway.decisions import Answer, Decision, Start
from headway.events import Event, JobEnded, JobStarted, JobSubmitted, in_order
from headway.hookspecs import NO_MORE
from headway.model import ClusterDescription
from headway.plugins import HookCaller, Plugins, Problem
from headway.plugins.observers import Observers
from headway.scheduler.gate import Gate
from headway.scheduler.passes import Passes
from headway.scheduler.wiring import ask_plugins
from headway.scheduler.wishes import Wishes
from headway.state import Job, State
from headway.state.choices import name_pools
from headway.view import View

_INF = float("inf")

#: Where a checkpoint has the scheduler's own part; no plugin can be called so.
OWN_STATE = ""


def plain_clock(time: float) -> str:
    """Seconds as they are, for runs in relative time."""
    return str(int(time)) if time != _INF else "never"


def _multiple(cycle: float, now: float) -> float:
    """The first multiple of ``cycle`` that is not before ``now``."""
    count = round(now / cycle)
    return count * cycle if count * cycle >= now else (count + 1) * cycle


def _checked(hook: HookCaller, plugin: str, answer: Any, instead: Sequence[Decision] = ()) -> list[Decision]:
    """A plugin's answer as a list of decisions; ``instead``, and a problem, if it is none."""
    try:
        found = list(answer)
        for item in found:
            if not isinstance(item, Decision):
                raise TypeError(f"expected decisions, found {item!r}")
    except Exception as error:
        hook.failed(plugin, error)
        return list(instead)
    return found


class Scheduler:
    """Plugins and state, one cycle at a time."""

    def __init__(
        self,
        cluster: ClusterDescription,
        plugins: Plugins,
        *,
        seed: int = 0,
        capabilities: frozenset[type[Decision]] = frozenset(),
        clock: Callable[[float], str] = plain_clock,
        saved: dict[str, Any] | None = None,
        counting_on: bool = False,
        monitor: bool = False,
        cycle: float | None = None,
        epoch: float = 0.0,
        wait_for_down_nodes: bool = False,
        tiers: Mapping[str, int] | None = None,
    ) -> None:
        """``saved`` is what :meth:`checkpoint` of an earlier run returned (``counting_on``: see the hook
        ``restore``); ``epoch`` seconds since 1970 at
        time 0 of the cluster's clock.

        ``cycle``: batch mode. The policies are asked only at multiples of so many seconds, about all
        that happened since; None: whenever something happened.

        ``wait_for_down_nodes``: a job that fits only with nodes that are down keeps its place in the queue,
        so that other jobs wait for it as the policy says; else it is left out until they come back.

        ``tiers``: of pools by name, instead of what the cluster says of them: where pools share nodes, jobs
        of a higher tier come first.

        ``monitor``: the decisions are not carried out, so each step takes them back at its end, and what
        was wished for before is not repeated (:mod:`headway.scheduler.wishes`).
        """
        self.plugins = plugins
        self.state = state = State(cluster, tiers)
        state.epoch = epoch
        state.seed = seed
        state.wait_for_down_nodes = wait_for_down_nodes
        #: What the log should say and is no failure; drained by the engine.
        self.notices = state.notices
        self.cycles = 0
        self.rng = np.random.default_rng(seed)
        #: Its decisions are not carried out.
        self.monitors = monitor
        self._cycle_seconds = cycle
        #: In batch mode: when the policies are asked next; None: nothing waits for that.
        self._due: float | None = None
        #: In monitor mode: what was decided before and may still come about.
        self._wishes = Wishes()
        #: When a step is due even if no event comes; None: never. It may be told a time: what is due then or
        #: later may be left out.
        self.next_wakeup = state.next_wakeup if cycle is None else self._next_wakeup
        self._handlers = state.handlers
        self._meet_plugins(clock)
        self._begin(capabilities, saved or {}, counting_on)

    def _meet_plugins(self, clock: Callable[[float], str]) -> None:
        """Find out which plugins answer which hook."""
        state, plugins = self.state, self.plugins
        #: Plugins that raised, and orders that the guard refused; drained by the engine.
        self.problems: list[Problem] = []
        #: Seconds spent in each plugin.
        self.seconds: dict[str, float] = {}
        #: By hook, the plugins that answered at least once.
        self.answered: dict[str, set[str]] = {}
        self._observers = Observers(self._caller("observe"), plugins.by_name)
        self._react = self._caller("react")
        self._control = self._caller("control")
        self._revise = self._caller("revise")
        self._veto = self._caller("veto")
        self._decided = self._caller("decided")
        self._has_observers = bool(self._observers)
        self._has_reactors = bool(self._react)
        self._has_finishers = self.monitors or any((self._control, self._revise, self._veto, self._decided))
        self._answer = self._caller("answer")
        self._explain = self._caller("explain")
        #: The plugins' answers to users' questions; a :class:`headway.errors.UserError` is one.
        self.inform = self._caller("inform")
        self._checkpoint = self._caller("checkpoint")
        self._promised = self._caller("promised")
        #: Of each plugin that promises: how often that had changed when it was asked last.
        self._promises = dict(self._promised.each())
        self._shutdown = self._caller("shutdown")
        final = not (self.monitors or self._revise or self._veto)
        self._gate = Gate(state, self.problems, final=final)
        self._passes = Passes(state, plugins, self._caller, self._gate, clock, self.rng)
        #: Whether a plugin orders the queues anew in each cycle (hook ``order_queue``).
        self.reorders = self._passes.reorders
        shown = self._observers.shows(JobSubmitted, JobStarted, JobEnded)
        #: Whether submissions, starts and ends themselves matter to :meth:`decide`, or only what they have
        #: made of the state.
        self.looks_at_jobs_events = shown or self._passes.alert
        #: The plugins that start and book, in configured order.
        self.policies = self._passes.policies
        ask_plugins(state, plugins, self._caller)

    def _caller(self, hook: str) -> HookCaller:
        answered = self.answered.setdefault(hook, set())
        return HookCaller(self.plugins, hook, self.problems, self.seconds, answered)

    def _begin(
        self, capabilities: frozenset[type[Decision]], saved: Mapping[str, Any], counting_on: bool
    ) -> None:
        """Tell the plugins that the run begins, and give them what they kept of an earlier run."""
        if OWN_STATE in saved:
            self.state.remember_frequencies(saved[OWN_STATE]["frequencies"])
        self._caller("startup").all(self.state, capabilities)
        for name, function in self._caller("restore").implementations:
            if name in saved:
                HookCaller(self.plugins, "restore", self.problems, self.seconds).call(
                    name, function, saved[name], counting_on
                )

    @property
    def views(self) -> Mapping[str, View]:
        """What the policies see of each domain, by its name."""
        return self._passes.views

    def step(self, now: float, events: Sequence[Event]) -> list[Decision]:
        """One instant: fold the events in, decide.

        ``events`` may be in any order; they are applied by time, at equal times completions
        before changes before arrivals.
        """
        return self.decide(now, self._fold(now, events))

    def decide(self, now: float, events: Sequence[Event]) -> list[Decision]:
        """What follows from events that are part of the state already, in the order in which they were
        applied; :attr:`looks_at_jobs_events` says whether anything looks at them."""
        state = self.state
        if self._has_observers and events:
            self._observers.tell(events, state)
        if state.wakeups and state.wakeups[0][0] <= now:
            state.advance(now)
        if state.predict is not None:
            state.note_outlived()
        if self._passes.alert and any(type(event) is not JobStarted for event in events):
            self._passes.ask_everywhere()
        if state.licences is not None:
            self._passes.share_licences()
        self.cycles += 1
        self._gate.open()
        decisions: list[Decision] = []
        if self._has_reactors:
            self._call_reactors(decisions)
        asking = self._cycle_seconds is None or self._is_time_to_ask(now, self._cycle_seconds)
        self._passes.ask(asking, decisions)
        if state.in_several:
            self._passes.ask_about_shared(asking, decisions)
            decisions = name_pools(state, decisions)
        if self._has_finishers:
            decisions = self._finish(decisions)
        if state.in_several:
            decisions = name_pools(state, decisions)
        if state.anomalies:
            self.problems.extend(Problem("state", "apply", text, "") for text in state.anomalies)
            state.anomalies.clear()
        return decisions

    def follow(self, now: float, events: Sequence[Event], by: Collection[str] | None = None) -> None:
        """One instant that was decided elsewhere: the events are folded in and shown to the plugins
        that observe, and no plugin is asked for a decision.

        ``by``: these plugins alone are shown them, and are asked to ``react``; their answers are dropped.
        """
        events = self._fold(now, events)
        if by is None:
            self._observers.tell(events, self.state)
        else:
            self._observers.tell_some(events, self.state, by)
            for name, function in self._react.implementations:
                if name in by:
                    self._react.call(name, function, self.state)

    def remind(self, events: Sequence[Event], of: Collection[str]) -> None:
        """Show these plugins what the state has taken in already."""
        self._observers.tell_some(events, self.state, of)

    def _fold(self, now: float, events: Sequence[Event]) -> Sequence[Event]:
        """The events of one instant become part of the state; as they were applied, in order."""
        state = self.state
        state.now = now
        if len(events) > 1:
            events = in_order(events)
        if state.admit is not None:
            state.passing = {event.job_id for event in events if type(event) is JobEnded}
        handlers = self._handlers
        for event in events:
            handlers[type(event)](state, event)
        if state.described or state.new_obstacles or state.depending:
            state.conclude()
        return events

    def _is_time_to_ask(self, now: float, cycle: float) -> bool:
        """In batch mode: whether the policies are asked now.

        The time is set when there is something to ask about, so that nothing happens in idle cycles. A
        batch system's clock is never exactly on a multiple: the first step that is not before it counts.
        """
        for domain, _ in self._passes.domains:
            if domain.news.due and domain.queue:
                break
        else:
            self._due = None
            return False
        if self._due is None:
            self._due = _multiple(cycle, now)
        if now < self._due:
            return False
        self._due = None
        return True

    @property
    def next_cycle(self) -> float | None:
        """In batch mode: when the policies are asked next, if something waits for that."""
        return self._due

    def _next_wakeup(self, before: float = _INF) -> float | None:
        due, wakeup = self._due, self.state.next_wakeup(before)
        if due is None or wakeup is None:
            return wakeup if due is None else due
        return min(due, wakeup)

    def _call_reactors(self, decisions: list[Decision]) -> None:
        """Decisions that come before the policies, which must see what they will change."""
        state, seconds = self.state, self.seconds
        began = perf_counter()
        for name, function in self._react.implementations:
            try:
                made = function(state)
            except Exception as error:
                self._react.failed(name, error)
                made = None
            else:
                self._react.answered.add(name)
            # One plugin's end is the next plugin's beginning.
            ended = perf_counter()
            seconds[name] += ended - began
            began = ended
            if made is None:
                continue
            if made is NO_MORE:
                self._react.leave_out(name)
                self._has_reactors = bool(self._react)
                continue
            try:
                # One by one: a generator sees what its decisions have changed.
                for decision in made:
                    if not isinstance(decision, Decision):
                        raise TypeError(f"expected decisions, found {decision!r}")
                    if self._gate.let_through(name, "react", decision):
                        decisions.append(decision)
            except Exception as error:
                self._react.failed(name, error)
            began = perf_counter()

    def _finish(self, decisions: list[Decision]) -> list[Decision]:
        """The hooks that look at the whole step."""
        state = self.state
        if self._wishes:
            self._wishes.forget(state)
        for name, more in self._control.all(state) if self._control.implementations else ():
            for decision in _checked(self._control, name, more):
                if self._gate.let_through(name, "control", decision):
                    decisions.append(decision)
        if not decisions:
            return decisions
        if self._revise or self._veto:
            decisions = self._filter(decisions)
        if self.monitors:
            decisions = self._retract(decisions)
        if decisions:
            self._decided.all(decisions, state)
        return decisions

    def answer(self, request: str) -> Answer | None:
        """What became of a user's request; None if no plugin served it."""
        found = self._answer.first(request)
        return found if isinstance(found, Answer) else None

    def explanations(
        self, job: Job, question: str, clock: Callable[[float], str]
    ) -> Iterator[tuple[str, Any]]:
        """What plugins say to a question about a job, each with its name: see the hook ``explain``."""
        return self._explain.each(job, question, job.domain.view, clock)

    @property
    def wished(self) -> Collection[str]:
        """In monitor mode: the jobs whose start was wished for and that had not started by the last step."""
        return self._wishes.starts

    def checkpoint(self, of: Collection[str] | None = None) -> dict[str, Any]:
        """What plugins want to keep over a restart, by name, and what only the state knows; ``of``: of these
        plugins alone."""
        if of is not None:
            asked = [(name, function) for name, function in self._checkpoint.implementations if name in of]
            answers = ((name, self._checkpoint.call(name, function)) for name, function in asked)
            return {name: answer for name, answer in answers if answer is not None}
        states = dict(self._checkpoint.all())
        if frequencies := self.state.frequencies():
            states[OWN_STATE] = {"frequencies": frequencies}
        return states

    def newly_promised(self) -> list[str]:
        """The plugins whose promises to jobs have changed since this was asked last."""
        known = self._promises
        counts = dict(self._promised.each()) if known else known
        self._promises = {**known, **counts}
        return [name for name, count in counts.items() if known.get(name) != count]

    def shutdown(self) -> None:
        """Tell the plugins that the run ends."""
        self._shutdown.all(self.state)

    def _filter(self, wished: list[Decision]) -> list[Decision]:
        """The revise pipeline, then the vetoes; what did not survive is undone."""
        decisions = wished
        for name, function in self._revise.implementations:
            answer = self._revise.call(name, function, decisions, self.state)
            if answer is not None:
                decisions = _checked(self._revise, name, answer, decisions)
        if self._veto:
            decisions = self._without_vetoed(wished, decisions)
        return self._gate.adopt(decisions)

    def _without_vetoed(self, wished: Sequence[Decision], decisions: list[Decision]) -> list[Decision]:
        """Without what is vetoed, and without what was added to a start that is."""
        kept: list[Decision] = []
        gone: set[str] = set()
        for decision in decisions:
            if not self._vetoed(decision):
                kept.append(decision)
            elif isinstance(decision, Start):
                gone.add(decision.job_id)
        if not gone:
            return kept
        before = set(map(id, wished))
        return [
            decision
            for decision in kept
            if id(decision) in before or getattr(decision, "job_id", None) not in gone
        ]

    def _vetoed(self, decision: Decision) -> bool:
        reason = self._veto.first(decision, self.state)
        if isinstance(decision, Start) and decision.job_id in self.state.jobs:
            self.state.jobs[decision.job_id].veto = reason or ""
        return reason is not None

    def _retract(self, decisions: list[Decision]) -> list[Decision]:
        """Undo the decisions, which are not carried out; leave out what was said before."""
        # In batch mode some may wait to be looked at.
        domains = [domain for domain, _ in self._passes.domains]
        waiting = [domain for domain in domains if domain.news.due] if self._due is not None else []
        self._gate.undo_all()
        news = [decision for decision in decisions if self._wishes.is_news(decision)]
        for domain in domains:
            domain.news.due = False
        for domain in waiting:
            domain.news.due = True
        return news
