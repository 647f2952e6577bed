"""The scheduler: events in, decisions out, and nothing else.

:meth:`Scheduler.step` is a deterministic function of the scheduler's state, the time and the
events: no clock, no socket, no file, no global random generator. (The habit is that of h2's
protocol core and of distributed's worker state machine.) One instant is one step: the events are
folded into the state, each pool that something happened to is scheduled by the policy, and the
decisions go through the control, revise and veto hooks.

Starts are carried into the state when the policy makes them (:meth:`headway.view.View.start`), so
later candidates of the same cycle see what is left; a start that a later hook takes away is undone.
:meth:`headway.state.State.begin` is the guard that every start passes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import Any

import msgspec
import numpy as np

from headway.decisions import (
    Decision,
    Kill,
    Migrate,
    PowerDown,
    Requeue,
    Resume,
    Signal,
    Start,
    SubmitSubjob,
    Suspend,
    SwapTiers,
)
from headway.errors import StateError
from headway.events import Event, JobEnded, JobStarted, in_order
from headway.hookspecs import NO_MORE
from headway.model import ClusterDescription, Placement
from headway.nodes import Offer
from headway.observers import Observers
from headway.plugins import HookCaller, Plugins, Problem
from headway.requests import Answer
from headway.state import Barrier, Domain, Foreseeable, Job, State, Status
from headway.state.choices import face_domain, face_home, face_start, name_pools
from headway.state.moves import StaysForNow
from headway.view import FlatView, NodeView, View

_INF = float("inf")

#: A plugin's ``bar_jobs`` (:mod:`headway.hookspecs`), and the types of its answers.
Many = Callable[[Sequence[Job], State], Sequence[Barrier | None]]
_BARRIER_OR_NONE = {Barrier, type(None)}

#: Where a checkpoint has the scheduler's own part; no plugin can be called so.
OWN_STATE = ""


def _sortable(hook: HookCaller, state: State, job: Job) -> tuple[Any, ...]:
    """The first answer to ``queue_key``, so that answered and unanswered jobs can be compared."""
    for name, function in hook.implementations:
        began = perf_counter()
        try:
            answer = function(job, state)
        except Exception as error:
            hook.failed(name, error)
            answer = None
        else:
            hook.answered.add(name)
        hook.seconds[name] += perf_counter() - began
        if isinstance(answer, tuple):
            return (0, *answer)
        if answer is not None:
            hook.failed(name, TypeError(f"expected a tuple, found {answer!r}"))
    return (1,)


def _seconds(hook: HookCaller, state: State, job: Job) -> float | None:
    """The first answer to ``predict_runtime`` that is a time; the job keeps whose it is."""
    job.predicted_by = ""
    spent = hook.seconds
    for name, function in hook.implementations:
        began = perf_counter()
        try:
            answer = function(job, state)
        except Exception as error:
            hook.failed(name, error)
            continue
        else:
            hook.answered.add(name)
        finally:
            spent[name] += perf_counter() - began
        if answer is None:
            continue
        if type(answer) is float and 0 <= answer < _INF:
            job.predicted_by = name
            return answer
        try:
            seconds = float(answer)
            if not 0 <= seconds < _INF:
                raise ValueError("not a time")
        except (TypeError, ValueError):
            hook.failed(name, TypeError(f"expected seconds, found {answer!r}"))
        else:
            job.predicted_by = name
            return seconds
    return None


def _barrier(hook: HookCaller, state: State, job: Job) -> Barrier | None:
    """The first answer to ``bar_job`` that is a barrier."""
    spent, began = hook.seconds, perf_counter()
    for name, function in hook.implementations:
        try:
            answer = function(job, state)
        except Exception as error:
            hook.failed(name, error)
            answer = None
        else:
            hook.answered.add(name)
        # One's end is the next one's beginning.
        ended = perf_counter()
        spent[name] += ended - began
        began = ended
        if answer is None:
            continue
        if isinstance(answer, Barrier):
            return answer
        hook.failed(name, TypeError(f"expected a Barrier, found {answer!r}"))
    return None


def _barriers(hook: HookCaller, many: Many, state: State, jobs: Sequence[Job]) -> Sequence[Barrier | None]:
    """The same of each of several jobs, where one plugin alone bars and answers about many at once."""
    name = hook.implementations[0][0]
    began = perf_counter()
    try:
        found = many(jobs, state)
        if len(found) == len(jobs) and set(map(type, found)) <= _BARRIER_OR_NONE:
            hook.answered.add(name)
            return found
    except Exception as error:
        hook.failed(name, error)
    else:
        hook.failed(name, TypeError(f"expected a Barrier or None of each of {len(jobs)} jobs"))
    finally:
        hook.seconds[name] += perf_counter() - began
    return [_barrier(hook, state, job) for job in jobs]


def _kind(hook: HookCaller, kind_of: Callable[[Job], Hashable], job: Job) -> Hashable:
    """The same plugin's ``bar_kind``; None, so that the job is asked about by itself, if that fails."""
    name = hook.implementations[0][0]
    try:
        kind = kind_of(job)
        hash(kind)
    except Exception as error:
        hook.failed(name, error)
        return None
    return kind


def plain_clock(time: float) -> str:
    """Seconds as they are, for runs in relative time."""
    return str(int(time)) if time != _INF else "never"


def _multiple(cycle: float, now: float) -> float:
    """The first multiple of ``cycle`` that is not before ``now``."""
    count = round(now / cycle)
    return count * cycle if count * cycle >= now else (count + 1) * cycle


def _elsewhere(one: Start, other: Start) -> bool:
    """Whether two starts of a job take different processors, or in different tiers."""
    return one.placement != other.placement or one.tier != other.tier


def _chance(answer: Any, state: State) -> float | None:
    """An answer to ``arrival_chance``, if it is one."""
    if answer is None or (isinstance(answer, int | float) and 0.0 <= answer <= 1.0):
        return answer
    state.anomalies.append(f"arrival_chance: expected a chance from 0 to 1, found {answer!r}")
    return None


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
        monitor: bool = False,
        cycle: float | None = None,
        epoch: float = 0.0,
        wait_for_down_nodes: bool = False,
        tiers: Mapping[str, int] | None = None,
    ) -> None:
        """``saved`` is what :meth:`checkpoint` of an earlier run returned; ``epoch`` seconds since 1970 at
        time 0 of the cluster's clock.

        ``cycle``: batch mode. The policies are asked only at multiples of so many seconds, about all
        that happened since; None: whenever something happened.

        ``wait_for_down_nodes``: a job that fits only with nodes that are down keeps its place in the queue,
        so that others wait for it as the policy says; else it is left out until they come back.

        ``tiers``: of pools by name, instead of what the cluster says of them: where pools share nodes, jobs
        of a higher tier come first.

        ``monitor``: nobody carries the decisions out, so each step takes its starts back at its
        end, and a start that was wished for before is not repeated.
        """
        self.plugins = plugins
        self.state = State(cluster, tiers)
        self.state.epoch = epoch
        self.state.seed = seed
        self.state.wait_for_down_nodes = wait_for_down_nodes
        #: Plugins that raised, and orders that the guard refused; drained by the engine.
        self.problems: list[Problem] = []
        #: What the log should say and is nobody's failure; drained by the engine.
        self.notices = self.state.notices
        #: Seconds spent in each plugin.
        self.seconds: dict[str, float] = {}
        #: By hook, the plugins that answered at least once.
        self.answered: dict[str, set[str]] = {}
        self.cycles = 0
        self.rng = np.random.default_rng(seed)
        self._monitor = monitor
        self._cycle_seconds = cycle
        #: In batch mode: when the policies are asked next; None: nothing waits for that.
        self._due: float | None = None
        #: In monitor mode: jobs whose start was wished for and that are still pending.
        self._wished: set[str] = set()

        def caller(hook: str) -> HookCaller:
            return HookCaller(
                plugins, hook, self.problems, self.seconds, self.answered.setdefault(hook, set())
            )

        self._observers = Observers(caller("observe"), plugins.by_name)
        self._order_queue = caller("order_queue")
        self._react = caller("react")
        self._prepare = caller("prepare")
        self._schedule = caller("schedule")
        self._policies = self._schedule.implementations
        self._place = caller("place")
        self._control = caller("control")
        self._revise = caller("revise")
        self._veto = caller("veto")
        self._decided = caller("decided")
        self._has_observers = bool(self._observers)
        self._has_reactors = bool(self._react)
        self._has_order = bool(self._order_queue)
        self._has_preparers = bool(self._prepare)
        self._has_finishers = monitor or any((self._control, self._revise, self._veto, self._decided))
        self._answer = caller("answer")
        self._checkpoint = caller("checkpoint")
        #: Of each plugin that promises: how often that had changed when it was asked last.
        self._promised: dict[str, int] = {
            name: plugin.promised
            for name, plugin in plugins.by_name.items()
            if getattr(plugin, "promises", False)
        }
        self._shutdown = caller("shutdown")
        predict, key, admit = caller("predict_runtime"), caller("queue_key"), caller("admit_job")
        bars = caller("bar_job")
        state = self.state
        #: The plugins that start and book, in configured order.
        self.policies = policies = [plugins.by_name[name] for name, _ in self._policies]
        #: Whether a policy passes over whom limits refuse.
        self._passes_over = {
            name: bool(getattr(plugins.by_name[name], "passes_over", False)) for name, _ in self._policies
        }
        # Plugins whose answers may change with any event: nothing of an earlier cycle stands.
        self._anew = any(
            getattr(plugins.by_name[name], "ask_always", False)
            for hook in (self._order_queue, self._prepare, self._place)
            for name, _ in hook.implementations
            if plugins.by_name[name] not in policies
        )
        self._alert = self._anew or self._has_order
        state.ask_always = self._alert or any(getattr(policy, "ask_always", False) for policy in policies)
        state.by_booking = (
            all(getattr(policy, "by_booking", False) for policy in policies)
            and not self._has_preparers
            and not state.ask_always
        )
        state.sleeps = cluster.wiring is None and any(
            PowerDown in getattr(plugin, "needs", ()) or getattr(plugin, "wakes", False)
            for plugin in plugins.by_name.values()
        )
        if predict:
            state.predict = partial(_seconds, predict, state)
        if key:
            state.queue_key = partial(_sortable, key, state)
            state.one_key = len(key.implementations) == 1
        if admit:

            def admit_job(job: Job) -> None:
                job.refusal = admit.first(job, state) or ""

            state.admit = admit_job
        if bars:
            state.bars = partial(_barrier, bars, state)
            only = plugins.by_name[bars.implementations[0][0]] if len(bars.implementations) == 1 else None
            if (many := getattr(only, "bar_jobs", None)) is not None:
                state.bars_many = partial(_barriers, bars, many, state)
                if (kind_of := getattr(only, "bar_kind", None)) is not None:
                    state.bar_kind = partial(_kind, bars, kind_of)
        kinds = [
            function
            for name, _ in self._place.implementations
            if (function := getattr(plugins.by_name[name], "placement_kind", None)) is not None
        ]
        kind = (lambda job: tuple(function(job) for function in kinds)) if kinds else None
        changing = [
            function
            for name, _ in self._place.implementations
            if (function := getattr(plugins.by_name[name], "placement_changes", None)) is not None
        ]
        changes = (lambda job: [t for function in changing for t in function(job)]) if changing else None
        #: Of each domain, by its name.
        self.views: dict[str, View] = {}
        self._domains: list[tuple[Domain, View]] = []

        def look_at(domain: Domain) -> View:
            if domain.flat:
                return FlatView(domain, state, clock, self.rng)
            return NodeView(
                domain,
                state,
                clock,
                self.rng,
                place=self._find_place,
                kind=kind,
                changes=changes,
                by_room=self._places_by_room,
            )

        def look_at_all() -> None:
            known = dict(self._domains)
            self._domains = []
            for domain in state.domains.values():
                domain.view = view = known.get(domain) or look_at(domain)
                self._domains.append((domain, view))
            self.views = {domain.name: view for domain, view in self._domains}

        look_at_all()
        state.domains_made = look_at_all
        #: When a step is due even if no event comes; None: never.
        self.next_wakeup = state.next_wakeup if cycle is None else self._next_wakeup
        self._handlers = state.handlers
        if saved and OWN_STATE in saved:
            state.remember_frequencies(saved[OWN_STATE]["frequencies"])
        if arrivals := caller("arrival_chance"):
            state.arrival_chance = lambda pool, seconds: _chance(arrivals.first(pool, seconds, state), state)
        for _, factors in reversed(caller("register_factors").all()):
            state.factors.update(factors)
        caller("startup").all(state, capabilities)
        for name, function in caller("restore").implementations:
            if saved and name in saved:
                HookCaller(plugins, "restore", self.problems, self.seconds).call(name, function, saved[name])

    def step(self, now: float, events: Sequence[Event]) -> list[Decision]:
        """One instant: fold the events in, decide.

        ``events`` may be in any order; they are applied by time, at equal times completions
        before changes before arrivals.
        """
        state = self.state
        events = self._fold(now, events)
        if self._has_observers and events:
            self._observers.tell(events, state)
        if state.wakeups and state.wakeups[0][0] <= now:
            state.advance(now)
        if state.predict is not None:
            state.look_at_outlived()
        if self._alert and any(type(event) is not JobStarted for event in events):
            # An order may follow what happens in other pools, and time has passed in any case.
            for domain, _ in self._domains:
                domain.changed = domain.changed or bool(domain.queue)
        if state.licences is not None and len(self._domains) > 1:
            self._look_together()
        self.cycles += 1
        decisions: list[Decision] = []
        if self._has_reactors:
            self._call_reactors(decisions)
        looking = self._cycle_seconds is None or self._looks(now, self._cycle_seconds)
        self._look_at_domains(looking, decisions)
        if state.in_several:
            self._look_at_shared(looking, decisions)
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
        """One instant that somebody else decided about: the events are folded in and shown to the plugins
        that observe, and no plugin is asked for a decision.

        ``by``: these plugins alone are shown them, and are asked to ``react``; what they answer is nobody's.
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
        if state.described or state.newly_barred or state.depending:
            state.settle()
        return events

    def _looks(self, now: float, cycle: float) -> bool:
        """In batch mode: whether the policies are asked now.

        The time is set when there is something to ask about, so that nothing happens in idle cycles. A
        batch system's clock is never exactly on a multiple: the first step that is not before it counts.
        """
        for domain, _ in self._domains:
            if domain.changed and domain.queue:
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

    def _next_wakeup(self) -> float | None:
        due, wakeup = self._due, self.state.next_wakeup()
        if due is None or wakeup is None:
            return wakeup if due is None else due
        return min(due, wakeup)

    def _look_together(self) -> None:
        """Pools whose jobs wait for the cluster's licences are looked at together, with bookings made anew:
        what one of them books or gives back is the others' business."""
        licences = self.state.licences
        assert licences is not None
        sharing = [
            (domain, view)
            for domain, view in self._domains
            if any(job.request.licences for job in domain.queue)
            or any(booking.job.request.licences for booking in view.bookings)
        ]
        if licences.changed or any(domain.changed for domain, _ in sharing):
            for _, view in sharing:
                view.clear()
        licences.changed = False

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
            # One's end is the next one's beginning.
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
                    if isinstance(decision, SwapTiers | Migrate):
                        if not self._move_extra(name, decision, "react"):
                            continue
                    elif isinstance(decision, SubmitSubjob):
                        if not self._may_submit(name, decision, "react"):
                            continue
                    elif isinstance(decision, Resume):
                        if not self._resume_extra(name, decision, "react"):
                            continue
                    elif isinstance(decision, Foreseeable):
                        self.state.foresee(decision)
                    if type(decision) is not Start or self._begin_extra(name, decision, "react"):
                        decisions.append(decision)
            except Exception as error:
                self._react.failed(name, error)
            began = perf_counter()

    def _finish(self, decisions: list[Decision]) -> list[Decision]:
        """The hooks that look at the whole step."""
        state = self.state
        if self._wished:
            jobs, waiting = state.jobs, (Status.PENDING, Status.STARTING)
            self._wished = {name for name in self._wished if name in jobs and jobs[name].status in waiting}
        for name, more in self._control.all(state) if self._control.implementations else ():
            for decision in self._checked(self._control, name, more):
                if isinstance(decision, SwapTiers | Migrate):
                    if self._move_extra(name, decision):
                        decisions.append(decision)
                elif isinstance(decision, SubmitSubjob):
                    if self._may_submit(name, decision):
                        decisions.append(decision)
                elif isinstance(decision, Resume):
                    if self._resume_extra(name, decision):
                        decisions.append(decision)
                elif isinstance(decision, Requeue | Kill | Signal | Suspend):
                    state.foresee(decision)
                    decisions.append(decision)
                elif type(decision) is not Start or self._begin_extra(name, decision):
                    decisions.append(decision)
        if not decisions:
            return decisions
        if self._revise or self._veto:
            wished, decisions = decisions, self._filter(decisions)
            kept = set(map(id, decisions))
            for decision in wished:
                if (
                    id(decision) not in kept
                    and isinstance(decision, Foreseeable)
                    and decision not in decisions
                ):
                    state.take_back(decision)
        if self._monitor:
            decisions = self._retract(decisions)
        if decisions:
            self._decided.all(decisions, state)
        return decisions

    def answer(self, request: str) -> Answer | None:
        """What became of a user's request; None if no plugin served it."""
        found = self._answer.first(request)
        return found if isinstance(found, Answer) else None

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
        known, by_name = self._promised, self.plugins.by_name
        changed = [name for name, count in known.items() if by_name[name].promised != count]
        for name in changed:
            known[name] = by_name[name].promised
        return changed

    def shutdown(self) -> None:
        """Tell the plugins that the run ends."""
        self._shutdown.all(self.state)

    # ------------------------------------------------------------------ each domain

    def _look_at_domains(self, looking: bool, decisions: list[Decision]) -> None:
        """Have the policies look at the domains that something happened to."""
        beside_bars = self.state.bars is not None
        for domain, view in self._domains:
            if domain.changed and (looking or not domain.queue):
                shared = list(domain.shared.values()) if domain.shared else ()
                if shared:
                    face_domain(shared, domain)
                if beside_bars:
                    self._look_beside_bars(domain, view, decisions)
                else:
                    self._look(domain, view, decisions)
                if shared:
                    face_home(shared)

    def _look_at_shared(self, looking: bool, decisions: list[Decision]) -> None:
        """Look again at domains that a job left because it starts in another, where what was kept for it is
        free; and where a limit bars a job in one of its pools, and another could start it."""
        made, several = decisions, self.state.in_several
        while any(isinstance(decision, Start) and decision.job_id in several for decision in made) or (
            looking and any(domain.changed and domain.shared for domain, _ in self._domains)
        ):
            made = []
            self._look_at_domains(looking, made)
            decisions += made

    # ------------------------------------------------------------------ one domain

    def _look_beside_bars(self, domain: Domain, view: View, decisions: list[Decision]) -> None:
        """As :meth:`_look`, where plugins may bar jobs."""
        if domain.fresh >= 0 and len(self._domains) > 1:
            # Starts in other pools may have barred who is booked, or holds up others.
            self._bar_booked(view)
        state = self.state
        begun: list[Job] = []
        refused: list[Job] = []
        while True:
            before = len(decisions)
            self._look(domain, view, decisions)
            # Whoever turned out to be barred in a pass leaves the queue, and it is repeated without them.
            while state.refusals or self._bar_booked(view):
                if state.refusals:
                    begun += view.started
                    refused += [job for job, _ in state.refusals.values()]
                    self._undo(view)
                    state.bar_refused()
                self._look(domain, view, decisions)
            # A policy that weighs sets may not have begun those again beside whom others were refused.
            if not begun or all(job.status is Status.STARTING for job in begun):
                return
            more = any(isinstance(decision, Start) for decision in decisions[before:])
            if not state.ask_again(refused) or not more:
                return
            begun, refused = [], []

    def _bar_booked(self, view: View) -> bool:
        """Take whom a start has barred but who is booked, or holds up others, out of the queue; whether there
        was one."""
        state = self.state
        assert state.bars is not None
        found = False
        jobs = [booking.job for booking in view.bookings]
        if view.stopped_at is not None:
            jobs.append(view.stopped_at)
        for job in jobs:
            # What plugins book places for on their own is in no queue.
            waits = job.status is Status.PENDING and state.jobs.get(job.id) is job
            if waits and (barrier := state.bars(job)) is not None:
                state.bar(job, barrier)
                found = True
        return found

    def _look(self, domain: Domain, view: View, decisions: list[Decision]) -> None:
        domain.changed = False
        queue: Sequence[Job] = domain.queue
        now = self.state.now
        if not queue and not self._has_preparers and not domain.background:
            domain.fresh = 0
            domain.arrivals = []
            view.forget()
            return
        if domain.running and domain.running[0][0] <= now:
            self.state.overdue(domain)
            domain.changed = False
        if not queue and not domain.background:
            # Plugins know jobs that are in no queue yet.
            domain.fresh, domain.arrivals = -1, None
            view.open(now, queue)
            # The next arrival is not the only news.
            domain.fresh, domain.arrivals = -1, None
            self._prepare.all(view)
            return
        if self._has_order:
            queue = self._ordered(domain.queue)
        if self._anew:
            domain.fresh, domain.arrivals = -1, None
        view.open(now, queue)
        if self._has_preparers and view.fresh < 0:
            self._prepare.all(view)
            view.prepared = len(view.bookings)
        state = self.state
        for name, policy in self._policies:
            began = perf_counter()
            if state.bars is not None:
                # Who was refused beside starts of another policy that are taken back may not be so any more.
                state.passes_over = self._passes_over[name] and not state.refusals
            try:
                answer = policy(view)
                if answer is None:
                    self._schedule.answered.add(name)
                    self._undo(view)
                    continue
                made = answer if type(answer) is list else list(answer)
                if made is not view.made and made != view.made:
                    made = self._match(name, made, view)
                self._schedule.answered.add(name)
            except Exception as error:
                self._schedule.failed(name, error)
                self._undo(view)
                state.refusals.clear()
                return
            finally:
                self.seconds[name] += perf_counter() - began
            if state.refusals and not state.passes_over:
                return
            if made:
                decisions.extend(made)
            if view.started:
                state.sweep(domain, view.started)
            if state.refusals:
                state.bar_refused()
            return

    def _undo(self, view: View) -> None:
        for decision in reversed(view.made):
            if isinstance(decision, SwapTiers | Migrate):
                self.state.moved_back(decision)
        for job in view.started:
            self.state.undo(job)
        view.started, view.made, view.stopped_at = [], [], None
        view.forget()
        # Without its bookings nobody may conclude from `fresh` that older jobs cannot start.
        view.fresh = view.domain.fresh = -1
        view.arrivals = view.domain.arrivals = None

    def _ordered(self, queue: list[Job]) -> Sequence[Job]:
        """The queue as the first plugin wants it that names jobs of the queue, each once."""
        for name, function in self._order_queue.implementations:
            answer = self._order_queue.call(name, function, list(queue), self.state)
            if answer is None:
                continue
            try:
                ordered = list(answer)
                if len(set(ordered)) < len(ordered) or not set(ordered) <= set(queue):
                    raise ValueError("expected jobs of the queue, each at most once")
            except Exception as error:
                self._order_queue.failed(name, error)
            else:
                return ordered
        return queue

    def _match(self, plugin: str, made: list[Decision], view: View) -> list[Decision]:
        """Bring a policy's answer and what it began into line, so that no start passes the guard by.

        A start that it returned without asking ``view.start`` is tried now, and left out if it is
        impossible; a job that it began but did not return is not started.
        """
        begun = {job.id: job for job in view.started}
        kept: list[Decision] = []
        named: set[str] = set()
        for decision in made:
            if not isinstance(decision, Decision):
                raise TypeError(f"expected decisions, found {decision!r}")
            if isinstance(decision, SwapTiers | Migrate):
                if decision in view.made or self._move_extra(plugin, decision, "schedule"):
                    kept.append(decision)
                continue
            if not isinstance(decision, Start):
                kept.append(decision)
                continue
            job = begun.get(decision.job_id)
            start: Start | None = decision
            if decision.job_id in named:
                self._refused(plugin, "schedule", f"job {decision.job_id} is started already; not again")
                continue
            if job is None:
                start = self._begin_plain(plugin, decision, view)
            elif decision.placement != job.placement or decision.tier != job.tier:
                self.state.undo(job)
                view.started.remove(job)
                start = self._begin_plain(plugin, decision, view)
            else:
                job.frequency = decision.frequency
            if start is not None:
                kept.append(start)
                named.add(start.job_id)
        for job in view.started:
            if job.id not in named:
                self.state.undo(job)
        view.started = [job for job in view.started if job.id in named]
        for decision in reversed(view.made):
            if isinstance(decision, SwapTiers | Migrate) and decision not in kept:
                self.state.moved_back(decision)
        return kept

    def _begin_plain(self, plugin: str, decision: Start, view: View) -> Start | None:
        job = self.state.jobs.get(decision.job_id)
        if job is None or job.status is not Status.PENDING or job.domain is not view.domain:
            what = "is not known" if job is None else f"is {job.status.value} in pool {job.pool.name!r}"
            self._refused(plugin, "schedule", f"job {decision.job_id} {what}; not started")
            return None
        if not decision.placement and decision.tier == "foreground":
            start = view.start(job, decision.reason)
            if start is None:
                return None
            job.frequency = decision.frequency
            return msgspec.structs.replace(start, frequency=decision.frequency)
        try:
            self.state.begin(job, decision.placement, decision.tier, decision.frequency)
        except StateError as error:
            self._refused(plugin, "schedule", f"{error}; not started")
            return None
        # What is booked did not reckon with it.
        view.domain.fresh = -1
        view.domain.arrivals = None
        view.started.append(job)
        return decision

    def _refused(self, plugin: str, hook: str, message: str) -> None:
        self.problems.append(Problem(plugin, hook, message, ""))

    def _places_by_room(self) -> bool:
        """Whether a job that finds no place finds one only once something was taken or given back."""
        by_name = self.plugins.by_name
        return all(
            [getattr(by_name[name], "places_by_room", False) for name, _ in self._place.implementations]
        )

    def _find_place(self, job: Job, offer: Offer, view: View) -> Placement | None:
        if not self._place:
            return offer.take(offer.feasible)
        # An empty answer is one: nowhere.
        return self._place.first(job, offer, view) or None

    # ------------------------------------------------------------------ all domains

    def _filter(self, decisions: list[Decision]) -> list[Decision]:
        """The revise pipeline, then the vetoes; starts that did not survive are undone."""
        before = {d.job_id: d for d in decisions if isinstance(d, Start)}
        wished = decisions
        for name, function in self._revise.implementations:
            answer = self._revise.call(name, function, decisions, self.state)
            if answer is not None:
                decisions = self._checked(self._revise, name, answer, decisions)
        if self._veto:
            decisions = self._without_vetoed(wished, decisions)
        return self._settle(before, decisions)

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

    def _settle(self, before: dict[str, Start], decisions: Sequence[Decision]) -> list[Decision]:
        """Carry what became of the starts into the state; leave out what the guard refuses."""
        after: dict[str, Start] = {}
        settled: list[Decision] = []
        for decision in decisions:
            if isinstance(decision, Start):
                if decision.job_id in after:
                    self._refused("revise", "revise", f"job {decision.job_id} is started already; not again")
                    continue
                after[decision.job_id] = decision
            settled.append(decision)
        # All that moves makes room first: two jobs may have changed places.
        for job_id, start in before.items():
            final = after.get(job_id)
            if final is start:
                continue
            job = self.state.jobs[job_id]
            if final is None or _elsewhere(final, start):
                self.state.undo(job)
            else:
                job.frequency = final.frequency
        impossible = {
            job_id
            for job_id, start in after.items()
            if (job_id not in before or _elsewhere(before[job_id], start))
            and not self._begin_extra("revise", start, "revise")
        }
        return [d for d in settled if not (isinstance(d, Start) and d.job_id in impossible)]

    def _checked(
        self, hook: HookCaller, plugin: str, answer: Any, instead: Sequence[Decision] = ()
    ) -> list[Decision]:
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

    def _begin_extra(self, plugin: str, start: Start, hook: str = "control") -> bool:
        """Carry a start that no policy made into the state; False, and a problem, if it is impossible."""
        job = self.state.jobs.get(start.job_id)
        try:
            if job is None:
                raise StateError(f"job {start.job_id} is not known")
            if job.choices:
                face_start(self.state, job, start.placement, start.pool)
            self.state.begin(job, start.placement, start.tier, start.frequency)
        except StateError as error:
            self._refused(plugin, hook, f"{error}; not started")
            return False
        self.state.sweep(job.domain, [job])
        # What the policy booked in this pool did not reckon with it.
        job.domain.touch()
        return True

    def _move_extra(self, plugin: str, move: SwapTiers | Migrate, hook: str = "control") -> bool:
        """Carry a move that no view made into the state; False, and a problem, if it is impossible."""
        try:
            self.state.carry(move)
        except StaysForNow:
            # Its refusal was told.
            return False
        except StateError as error:
            self._refused(plugin, hook, f"{error}; not moved")
            return False
        self.state.jobs[move.job_id].domain.touch()
        return True

    def _resume_extra(self, plugin: str, resume: Resume, hook: str = "control") -> bool:
        """Let a suspended job have its processors again; False, and a problem, if that is impossible."""
        return self._allowed(plugin, hook, partial(self.state.foresee, resume), "not resumed")

    def _may_submit(self, plugin: str, decision: SubmitSubjob, hook: str = "control") -> bool:
        """Whether a subjob may be submitted; a problem if not."""
        return self._allowed(plugin, hook, partial(self.state.guard_subjob, decision), "not submitted")

    def _allowed(self, plugin: str, hook: str, ask: Callable[[], object], otherwise: str) -> bool:
        """Whether the state has nothing against it; a problem, which says what was not done, if it has."""
        try:
            ask()
        except StateError as error:
            self._refused(plugin, hook, f"{error}; {otherwise}")
            return False
        return True

    def _vetoed(self, decision: Decision) -> bool:
        reason = self._veto.first(decision, self.state)
        if isinstance(decision, Start) and decision.job_id in self.state.jobs:
            self.state.jobs[decision.job_id].veto = reason or ""
        return reason is not None

    def _retract(self, decisions: list[Decision]) -> list[Decision]:
        """Undo the starts, which nobody will carry out; leave out those that were said before."""
        jobs = self.state.jobs
        # In batch mode some may wait to be looked at.
        waiting = [domain for domain, _ in self._domains if domain.changed] if self._due is not None else []
        news: list[Decision] = []
        for decision in decisions:
            if isinstance(decision, Start):
                self.state.undo(jobs[decision.job_id])
                if decision.job_id in self._wished:
                    continue
                self._wished.add(decision.job_id)
            elif isinstance(decision, Foreseeable):
                self.state.take_back(decision)
            news.append(decision)
        for domain, _ in self._domains:
            domain.changed = False
        for domain in waiting:
            domain.changed = True
        return news
