"""One pass of the policies over each domain that something happened to."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from functools import partial
from time import perf_counter

import msgspec
import numpy as np

from headway.decisions import Decision, Start
from headway.errors import StateError
from headway.plugins import Again, HookCaller, Plugins, traits_of
from headway.scheduler.gate import Gate
from headway.scheduler.placing import Placing
from headway.state import Domain, Job, State, Status
from headway.state.choices import face_domain, face_home
from headway.state.queues import by_tier
from headway.view import FlatView, NodeView, View


class Passes:
    """The domains, what the policies see of them, and the hooks that a pass asks."""

    def __init__(
        self,
        state: State,
        plugins: Plugins,
        caller: Callable[[str], HookCaller],
        gate: Gate,
        clock: Callable[[float], str],
        rng: np.random.Generator,
    ) -> None:
        """``caller`` makes what calls a hook; ``clock`` turns a time into words; ``rng`` is the policies'."""
        self._state = state
        self._gate = gate
        self._clock = clock
        self._rng = rng
        self._order_queue = caller("order_queue")
        self._prepare = caller("prepare")
        self._schedule = caller("schedule")
        self._policies = self._schedule.implementations
        place = caller("place")
        self._placing = Placing(place, plugins)
        self.reorders = bool(self._order_queue)
        self._has_preparers = bool(self._prepare)
        #: The plugins that start and book, in configured order.
        self.policies = policies = [plugins.by_name[name] for name, _ in self._policies]
        any_event = {
            name for name, plugin in plugins.by_name.items() if traits_of(plugin).ask_again is Again.ANY_EVENT
        }
        # Plugins whose answers may change with any event: nothing of an earlier cycle stands.
        self._anew = any(
            name in any_event and plugins.by_name[name] not in policies
            for hook in (self._order_queue, self._prepare, place)
            for name, _ in hook.implementations
        )
        #: Every domain with a queue is looked at at each event, not only the domains that it concerns.
        self.alert = self._anew or self.reorders
        state.ask_always = self.alert or any(name in any_event for name, _ in self._policies)
        #: Of each domain, by its name.
        self.views: Mapping[str, View] = {}
        self.domains: list[tuple[Domain, View]] = []
        self._meet_domains()
        state.domains_made = self._meet_domains

    def _meet_domains(self) -> None:
        """Domains are new or have changed: each is given its view."""
        known = dict(self.domains)
        self.domains = []
        for domain in self._state.domains.values():
            domain.view = view = known.get(domain) or self._view_of(domain)
            self.domains.append((domain, view))
        self.views = {domain.name: view for domain, view in self.domains}

    def _view_of(self, domain: Domain) -> View:
        if domain.flat:
            return FlatView(domain, self._state, self._clock, self._rng)
        placing = self._placing
        return NodeView(
            domain, self._state, self._clock, self._rng,
            place=placing.find, kind=placing.kind, changes=placing.changes, by_room=placing.by_room,
            by_offer=placing.by_offer,
        )  # fmt: skip

    # ------------------------------------------------------------------ which domains

    def ask_everywhere(self) -> None:
        """An order may follow what happens elsewhere, and time has passed in any case."""
        for domain, _ in self.domains:
            domain.news.due = domain.news.due or bool(domain.queue)

    def share_licences(self) -> None:
        """Domains whose jobs wait for the cluster's licences are asked about together, with bookings made
        anew: what a domain books or gives back concerns the other domains. What a domain has booked stands
        until its own turn, so that a domain whose turn comes first takes nothing of that."""
        licences = self._state.licences
        assert licences is not None
        if len(self.domains) < 2:
            return
        sharing = [
            domain
            for domain, view in self.domains
            if any(job.request.licences for job in domain.queue)
            or any(booking.job.request.licences for booking in view.bookings)
        ]
        if licences.changed or any(domain.news.due for domain in sharing):
            for domain in sharing:
                domain.touch()
        licences.changed = False

    def ask(self, asking: bool, decisions: list[Decision]) -> None:
        """Ask the policies about the domains that something happened to; ``asking``: also about the domains
        where jobs wait. What they decide is added to ``decisions``, and counts."""
        beside_bars = self._state.bars is not None
        for domain, view in self.domains:
            if domain.news.due and (asking or not domain.queue):
                shared = list(domain.shared.values()) if domain.shared else ()
                if shared:
                    face_domain(shared, domain)
                if beside_bars:
                    self._pass_beside_bars(domain, view, decisions)
                else:
                    self._pass(domain, view, decisions)
                if shared:
                    face_home(shared)

    def ask_about_shared(self, asking: bool, decisions: list[Decision]) -> None:
        """Ask again about domains that a job left because it starts in another, where what was kept for it is
        free; and where a limit bars a job in one of its pools, and another could start it."""
        made, several = decisions, self._state.in_several
        while any(isinstance(decision, Start) and decision.job_id in several for decision in made) or (
            asking and any(domain.news.due and domain.shared for domain, _ in self.domains)
        ):
            made = []
            self.ask(asking, made)
            decisions += made

    # ------------------------------------------------------------------ one domain

    def _pass_beside_bars(self, domain: Domain, view: View, decisions: list[Decision]) -> None:
        """As :meth:`_pass`, where plugins may bar jobs."""
        if domain.news.fresh >= 0 and len(self.domains) > 1:
            # Starts in other domains may have barred jobs that are booked, or that hold up other jobs.
            self._bar_booked(view)
        state = self._state
        begun: list[Job] = []
        barred: list[Job] = []
        while True:
            before = len(decisions)
            self._pass(domain, view, decisions)
            # A job that turned out to be barred in a pass leaves the queue, and it is repeated without it.
            while state.newly_barred or self._bar_booked(view):
                if state.newly_barred:
                    begun += view.started
                    barred += [job for job, _ in state.newly_barred.values()]
                    self._undo(view)
                    state.bar_found()
                self._pass(domain, view, decisions)
            # A policy that weighs sets may not have begun jobs again beside which other jobs were barred.
            if not begun or all(job.status is Status.STARTING for job in begun):
                return
            more = any(isinstance(decision, Start) for decision in decisions[before:])
            if not state.ask_again(barred) or not more:
                return
            begun, barred = [], []

    def _bar_booked(self, view: View) -> bool:
        """Take jobs that a start has barred, but that are booked or hold up other jobs, out of the queue;
        whether there was such a job."""
        state = self._state
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

    def _pass(self, domain: Domain, view: View, decisions: list[Decision]) -> None:
        """One pass, unless nothing can come of it."""
        domain.news.due = False
        queue: Sequence[Job] = domain.queue
        now = self._state.now
        if not queue and not self._has_preparers and not domain.background:
            domain.news.tell()
            view.forget()
            return
        if domain.running and domain.running[0][0] <= now:
            self._state.overdue(domain)
            domain.news.due = False
        if not queue and not domain.background:
            # Plugins know jobs that are in no queue yet.
            domain.news.nothing_stands()
            view.open(now, queue)
            # The next arrival is not the only news.
            domain.news.nothing_stands()
            self._prepare.all(view)
            return
        if self.reorders:
            queue = self._ordered(domain.queue)
        if self._anew:
            domain.news.nothing_stands()
        view.open(now, queue)
        if self._has_preparers and view.fresh < 0:
            self._prepare.all(view)
            view.prepared = len(view.bookings)
        self._ask(domain, view, decisions)

    def _ask(self, domain: Domain, view: View, decisions: list[Decision]) -> None:
        """Ask the policies until a policy answers, and take what it decided."""
        state, seconds, answered = self._state, self._schedule.seconds, self._schedule.answered
        for name, policy in self._policies:
            began = perf_counter()
            try:
                answer = policy(view)
                if answer is None:
                    if view.started:
                        jobs = f"{len(view.started)} job{'s' if len(view.started) > 1 else ''}"
                        self._leave_out(name, f"{jobs} started, and None returned: expected a list of starts")
                    answered.add(name)
                    self._undo(view)
                    continue
                made = answer if type(answer) is list else list(answer)
                if not view.made_all(made):
                    made = self._match(name, made, view)
                answered.add(name)
            except Exception as error:
                self._schedule.failed(name, error)
                self._undo(view)
                state.newly_barred.clear()
                return
            finally:
                seconds[name] += perf_counter() - began
            if state.newly_barred:
                return
            if made:
                decisions.extend(made)
                self._note(name, made, view)
            if view.started:
                state.sweep(domain, view.started)
            return

    def _undo(self, view: View) -> None:
        """Nothing of this pass counts."""
        for _, undo in reversed(view.carried):
            undo()
        for job in view.started:
            self._state.undo(job)
        view.started, view.made, view.carried, view.stopped_at = [], [], [], None
        view.forget()
        # Without its bookings it must not be concluded from `fresh` that older jobs cannot start.
        view.domain.news.nothing_stands()
        view.fresh, view.arrivals = -1, None

    def _note(self, plugin: str, made: Sequence[Decision], view: View) -> None:
        """What a policy decided counts already, and is to leave the scheduler."""
        if self._gate.final:
            return
        undos = {id(decision): undo for decision, undo in view.carried}
        jobs = self._state.jobs
        for decision in made:
            undo = undos.get(id(decision))
            if undo is None and isinstance(decision, Start):
                undo = partial(self._state.undo, jobs[decision.job_id])
            assert undo is not None
            self._gate.note(plugin, "schedule", decision, undo)

    def _ordered(self, queue: list[Job]) -> Sequence[Job]:
        """The queue as the first plugin wants it that names jobs of the queue, each once; higher tiers come
        first in any case."""
        for name, function in self._order_queue.implementations:
            answer = self._order_queue.call(name, function, list(queue), self._state)
            if answer is None:
                continue
            try:
                ordered = list(answer)
                if len(set(ordered)) < len(ordered) or not set(ordered) <= set(queue):
                    raise ValueError("expected jobs of the queue, each at most once")
            except Exception as error:
                self._order_queue.failed(name, error)
            else:
                return by_tier(ordered)
        return queue

    # ------------------------------------------------------------------ what a policy answered

    def _match(self, plugin: str, made: list[Decision], view: View) -> list[Decision]:
        """Bring a policy's answer and what it began into line, so that no decision passes the gate by.

        A start that it returned without asking ``view.start`` is tried now, and left out if it is
        impossible; a job that it began but did not return is not started.
        """
        begun = {job.id: job for job in view.started}
        kept: list[Decision] = []
        named: set[str] = set()
        for decision in made:
            if not isinstance(decision, Decision):
                raise TypeError(f"expected decisions, found {decision!r}")
            if not isinstance(decision, Start):
                if self._carried(plugin, decision, view):
                    kept.append(decision)
                continue
            if decision.job_id in named:
                self._leave_out(
                    plugin, f"job {decision.job_id} is started already; the second start is dropped"
                )
                continue
            start = self._matched(plugin, decision, begun.get(decision.job_id), view)
            if start is not None:
                kept.append(start)
                named.add(start.job_id)
        self._undo_unreturned(view, kept, named)
        return kept

    def _matched(self, plugin: str, decision: Start, begun: Job | None, view: View) -> Start | None:
        """A start that the policy returned, as the state has it; ``begun``: its job, if the view began it."""
        if begun is None:
            return self._begin(plugin, decision, view)
        if decision.placement != begun.placement or decision.tier != begun.tier:
            self._state.undo(begun)
            view.started.remove(begun)
            return self._begin(plugin, decision, view)
        begun.frequency = decision.frequency
        return decision

    def _undo_unreturned(self, view: View, kept: Sequence[Decision], named: Container[str]) -> None:
        """Undo what the policy began or carried out and did not return; ``named``: jobs of its starts."""
        for job in view.started:
            if job.id not in named:
                self._state.undo(job)
        view.started = [job for job in view.started if job.id in named]
        for decision, undo in reversed(view.carried):
            if decision not in kept:
                undo()
        view.carried = [one for one in view.carried if one[0] in kept]

    def _carried(self, plugin: str, decision: Decision, view: View) -> bool:
        """Whether a decision other than a start counts: it does already, or does from now on."""
        if any(decision == one for one, _ in view.carried):
            return True
        undo = self._gate.carry(plugin, "schedule", decision)
        if undo is not None:
            view.carried.append((decision, undo))
        return undo is not None

    def _begin(self, plugin: str, decision: Start, view: View) -> Start | None:
        """Carry a start that the view did not make into the state; None, and a problem, if it cannot be."""
        job = self._state.jobs.get(decision.job_id)
        if job is None or job.status is not Status.PENDING or job.domain is not view.domain:
            what = "is not known" if job is None else f"is {job.status.value} in pool {job.pool.name!r}"
            self._leave_out(plugin, f"job {decision.job_id} {what}; not started")
            return None
        if not decision.placement and decision.tier == "foreground":
            start = view.start(job, decision.reason)
            if start is None:
                return None
            job.frequency = decision.frequency
            return msgspec.structs.replace(start, frequency=decision.frequency)
        try:
            self._state.begin(job, decision.placement, decision.tier, decision.frequency)
        except StateError as error:
            self._leave_out(plugin, f"{error}; not started")
            return None
        # What is booked did not reckon with it.
        view.domain.news.nothing_stands()
        view.started.append(job)
        return decision

    def _leave_out(self, plugin: str, message: str) -> None:
        self._gate.leave_out(plugin, "schedule", message)
