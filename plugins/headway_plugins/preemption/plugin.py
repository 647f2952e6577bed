"""Preemption: a waiting job takes the places of running jobs that have to give way to it.

After Slurm's page "Preemption" (slurm.schedmd.com/preempt.html: PreemptType, PreemptMode, PreemptExemptTime)
and the Maui administrator's guide, chapter "Preemption". Which job gives way to which is in
``rules.py`` and ``judging.py``, where a job could start then in ``places.py``, what is under way in
``claims.py``.

After the policies have started the jobs that they could, the plugin looks at the first ``depth`` jobs of each
queue in turn. The job may take the places of running jobs if it could start at once without them. The victims
are the jobs that lose least by going (``victims.py``). No job goes for a job that then could not start.

Decisions on what is left open:

- What a job loses by going is processors x seconds of what it has done.
- A priority is that of the plugin ``multifactor`` if the run has it, else the batch system's own.
  ``multifactor`` rates running jobs as if they still waited, so a waiting job does not gain on a running job
  by waiting longer.
- The plugin leaves alone the jobs that are starting, suspended or in the background, and the jobs with the
  attribute ``preemptible: false``.
- What becomes free is booked for the job that it is for. That job starts as soon as all of it is free, before
  the policies are asked.
- Reservations stand. So do the bookings of jobs whose places the job could not take either.
- Every job waits for ``patience`` seconds first. A job that would start by itself within ``soon`` seconds
  waits for that.
- A victim that has not left after ``timeout``, or that the cluster does not stop, is reported and left alone
  from then on. The plugin then looks again at the job that the victim was to make room for.
- A victim with a grace time gets its signal at once, and goes when the longest grace time is over. Its
  expected end becomes that time, which keeps the room for the waiting job. A job that saves itself within its
  grace time (attribute ``saves``: seconds) and is requeued loses what it does from the signal on.
- A job that goes back to the queue has the place there that the order gives it, as before.
- In a step, a single job of each domain takes places; the plugin looks at the next job in the step after it.
- In a domain of several pools a job takes the places of jobs that have nodes of its own pool, or licences
  that it needs, whatever their pools are. The plugin looks at a job of several pools in each of its pools, by
  the rules that hold for it there. The job takes the places where they cost least.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Literal

import pydantic

from headway.decisions import Decision, Kill, Requeue, Resume, Signal, Start, Suspend
from headway.errors import UserError
from headway.events import (
    DecisionFailed,
    Event,
    JobEnded,
    JobRequeued,
    JobResumed,
    JobStarted,
    JobSuspended,
)
from headway.hookspecs import Plugin, hookimpl
from headway.plugins import Again, Traits
from headway.report.quantities import duration
from headway.state import Domain, Job, PoolState, State, Status
from headway.state.choices import domains_of, facing_pool, ways
from headway.view import View
from headway_plugins.preemption.claims import ORDERS, Claim, Victim, still_there
from headway_plugins.preemption.judging import Judge, seconds_lost
from headway_plugins.preemption.places import Places, may_help, start_in
from headway_plugins.preemption.rules import Rule, Seconds, check_rules
from headway_plugins.preemption.suspended import Held, Suspended
from headway_plugins.preemption.victims import Candidate, cheapest, in_turn

_INF = float("inf")

#: Seconds after which a job is looked at again whose victims were not told to go after all.
_AGAIN = 600.0


class PreemptionOptions(pydantic.BaseModel):
    """Options of preemption."""

    model_config = pydantic.ConfigDict(extra="forbid")

    rules: list[Rule] = pydantic.Field(
        min_length=1, description="which waiting jobs may take the places of which running jobs"
    )
    victims: Literal["least-lost", "youngest", "lowest-priority", "fewest"] = pydantic.Field(
        default="least-lost", description="choice between several sets of victims"
    )
    depth: int = pydantic.Field(
        default=10, ge=1, le=100_000, description="number of jobs at the head of a queue that are looked at"
    )
    patience: Seconds = pydantic.Field(
        default=0.0, description="seconds that a job waits before it takes places"
    )
    soon: Seconds = pydantic.Field(
        default=60.0,
        description="a job that could start without victims within this many seconds waits for that start",
    )
    timeout: Seconds = pydantic.Field(
        default=120.0,
        gt=0,
        description="seconds after which a victim that has not left is logged and not chosen again",
    )

    @pydantic.model_validator(mode="after")
    def _no_circle(self) -> PreemptionOptions:
        check_rules(self.rules)
        return self


class Preemption(Plugin):
    """Running jobs make room for waiting ones that may take their places."""

    Options = PreemptionOptions
    #: A job that is suspended is to run again.
    traits = Traits(
        observes=(JobStarted, JobEnded, JobRequeued, JobSuspended, JobResumed, DecisionFailed),
        ask_again=Again.DOMAIN, checkpoint="promises",
    )  # fmt: skip

    def __init__(self, options: PreemptionOptions) -> None:
        super().__init__(options)
        self._rules = options.rules
        #: By the id of the job that room is made for.
        self._claims: dict[str, Claim] = {}
        #: Jobs that are not looked at before (absolute seconds).
        self._not_before: dict[str, float] = {}
        #: Domain -> the jobs that were looked at last.
        self._seen: dict[str, list[Job]] = {}
        #: When each domain is looked at again because of time alone.
        self._woken: dict[str, float] = {}
        self._suspended = Suspended()
        self._suspends = any(rule.how == "suspend" for rule in options.rules)
        self._judge = Judge(options.rules, options.victims, self._suspended)
        self._places = Places(self._judge, self._suspended, self._claims, suspends=self._suspends)
        if self._suspends:
            self.traits = replace(self.traits, requires=frozenset({"lending"}))
        self._figures: dict[str, float] = {
            "preemptions": 0, "requeued": 0, "cancelled": 0, "given up": 0, "lost processor-seconds": 0.0,
        }  # fmt: skip
        if self._suspends:
            self._figures |= {"suspended": 0, "resumed": 0, "suspended processor-seconds": 0.0}

    @hookimpl
    def promised(self) -> int:
        return self._suspended.changes

    @hookimpl
    def startup(self, state: State, capabilities: frozenset[type]) -> None:
        self._state = state
        self._judge.begin(state)
        self._places.begin(state)
        for at, rule in enumerate(self._rules):
            if ORDERS[rule.how] not in capabilities:
                raise UserError(
                    f"preemption: rules.{at}: how: {rule.how}: the cluster cannot carry this out (it lacks "
                    f"{ORDERS[rule.how].__name__})"
                )
            if rule.how == "suspend" and not (state.cluster.suspended_lend and Resume in capabilities):
                raise UserError(
                    f"preemption: rules.{at}: how: suspend: expected a cluster where others may have the "
                    "processors of a suspended job (Slurm), found one that keeps them for it; requeue and "
                    "cancel make room here"
                )
            if rule.grace and Signal not in capabilities:
                raise UserError(
                    f"preemption: rules.{at}: grace: the cluster cannot send signals (it lacks Signal)"
                )

    @hookimpl
    def restore(self, saved: Any) -> None:
        self._suspended.restore(saved)

    @hookimpl
    def checkpoint(self) -> Any:
        return self._suspended.saved() if self._suspends or self._suspended.changes else None

    @hookimpl
    def observe(self, event: Event, state: State) -> None:
        if self._suspends or self._suspended.changes:
            self._observe_suspended(event, state)
        if not self._claims:
            return
        if isinstance(event, DecisionFailed) and isinstance(
            event.decision, Requeue | Kill | Signal | Suspend
        ):
            name = event.decision.job_id
            for claim in [claim for claim in self._claims.values() if name in claim.victims]:
                self._give_up(claim, [name], f"the cluster refused it: {event.message}", state)
        elif isinstance(event, JobStarted) and event.job_id in self._claims:
            claim = self._claims[event.job_id]
            # It may have found other room in the grace time.
            self._drop(claim, state)
            self._figures["preemptions"] += len(still_there(claim, state)) < len(claim.victims)
        elif isinstance(event, JobRequeued):
            self._went(event.job_id, Requeue, "requeued")
        elif isinstance(event, JobEnded) and event.outcome != "completed":
            self._went(event.job_id, Kill, "cancelled")

    def _observe_suspended(self, event: Event, state: State) -> None:
        """What becomes of the suspended jobs."""
        known = self._suspended
        if isinstance(event, JobSuspended | JobResumed):
            job = state.jobs.get(event.job_id)
            held = known.get(event.job_id)
            if job is None or held is None:
                return
            if isinstance(event, JobSuspended):
                self._figures["suspended"] += held.since is None
                said = known.stands(job, event.time, state)
            else:
                since, own = held.since, held.resumed is not None
                said = known.runs(job, event.time)
                if own and since is not None:
                    self._figures["resumed"] += 1
                    self._figures["suspended processor-seconds"] += job.processors * (event.time - since)
                else:
                    self._judge.stays[job.id] = job.start_time
            if said:
                state.notices.append(said)
        elif isinstance(event, JobEnded | JobRequeued):
            known.forget(event.job_id)
        elif isinstance(event, DecisionFailed):
            if isinstance(event.decision, Resume):
                known.not_resumed(event.decision.job_id)
            elif isinstance(event.decision, Suspend):
                known.forget(event.decision.job_id)

    def _went(self, name: str, order: type[Decision], figure: str) -> None:
        """A job left its place, perhaps because it was told to."""
        for claim in self._claims.values():
            victim = claim.victims.get(name)
            if victim is not None and isinstance(victim.order, order):
                self._figures[figure] += 1
                self._figures["lost processor-seconds"] += victim.lost

    @hookimpl
    def prepare(self, view: View) -> None:
        for claim in self._claims.values():
            if claim.pool.domain is view.domain and claim.job.status is Status.PENDING:
                view.book(claim.job)
        self._suspended.keep_places(view, self._state)

    @hookimpl
    def react(self, state: State) -> Iterator[Decision]:
        state.notices += self._suspended.look_after(state)
        for claim in list(self._claims.values()):
            yield from self._look_after(claim, state)

    @hookimpl
    def control(self, state: State) -> Iterator[Decision]:
        # Where a job makes room or takes it, no suspended job resumes in the same step.
        domains = {claim.pool.domain.name for claim in self._claims.values()}
        nodes = {name for claim in self._claims.values() for name in claim.nodes}
        for claim in self._claims.values():
            # What was booked around its victims was in its way until the domain was looked at.
            if claim.job.status is Status.PENDING and not still_there(claim, state):
                start = self._start(claim)
                if start is not None:
                    yield start
        for decision in self._make_room(state):
            yield decision
            named = decision.pool if isinstance(decision, Start) else ""
            pool = state.pools[named] if named else state.jobs[decision.job_id].pool
            domains.add(pool.domain.name)
            if isinstance(decision, Start):
                nodes.update(name for name, _ in decision.placement)
        yield from self._suspended.resume(state, domains, nodes)
        # A job that runs again from now on needs no operator.
        state.notices += self._suspended.too_long(state)

    def _make_room(self, state: State) -> Iterator[Start | Signal | Requeue | Kill | Suspend]:
        begun: set[str] = set()
        for domain in state.domains.values():
            view = domain.view
            if not domain.queue or not isinstance(view, View):
                continue
            queued = (job for job in domain.queue if job.status is Status.PENDING)
            heads = [
                job for job in islice(queued, self.options.depth)
                if job.id not in begun and self._judge.has_rule(job, domain)
            ]  # fmt: skip
            # Nothing else gives a place to a job without one: it was looked at, or other jobs are first.
            if heads and (view.now == state.now or heads != self._seen.get(domain.name)):
                self._seen[domain.name] = heads
                for decision in self._first_of(heads, domain, view, state):
                    begun.add(decision.job_id)
                    yield decision

    @hookimpl
    def explain(self, job: Job, question: str, clock: Callable[[float], str]) -> str | None:
        """For which job it was suspended, and when it runs again."""
        return self._suspended.why(job, self._state, clock) if question == "suspension" else None

    @hookimpl
    def register_metrics(self) -> dict[str, Any]:
        return {"preemption": lambda result: dict(self._figures)}

    # ------------------------------------------------------------------ whose turn it is

    def _first_of(
        self, jobs: Sequence[Job], domain: Domain, view: View, state: State
    ) -> Iterator[Start | Signal | Requeue | Kill | Suspend]:
        """The first of these jobs for which running jobs can make room."""
        if self._judge.by_priority:
            self._judge.judge([*jobs, *(other for *_, other in view.running)])
        for job in jobs:
            if job.id in self._claims or not self._may(job, view, state):
                continue
            start = self._places.before_suspended(job, view)
            if start is not None:
                yield start
                return
            claim = self._claim(job, view, state)
            if claim is not None:
                self._claims[job.id] = claim
                state.wake_at(claim.deadline if claim.until is None else claim.until, domain)
                yield from [self._tell(claim, name, state) for name in claim.victims]
                return

    def _tell(
        self, claim: Claim, name: str, state: State, *, now: bool = False
    ) -> Signal | Requeue | Kill | Suspend:
        """What a victim is told: to go ``now``, or first what it is told before."""
        victim = claim.victims[name]
        if victim.told is not None and not now:
            return victim.told
        if isinstance(victim.order, Suspend):
            held = Held(victim.started, claim.job.id, state.now, victim.rule.longest)
            self._suspended.told(state.jobs[name], held)
        return victim.order

    def _may(self, job: Job, view: View, state: State) -> bool:
        """Whether this job may take any place at all now."""
        ripe = max(job.submit_time + self.options.patience, self._not_before.get(job.id, 0.0))
        if state.now < ripe:
            self._wake(ripe, view.domain, state)
            return False
        self._not_before.pop(job.id, None)
        until = state.now + self.options.soon
        if any(self._places.starts_by(until, job, domain) for domain in domains_of(job)):
            self._wake(until, view.domain, state)
            return False
        return True

    def _claim(self, job: Job, view: View, state: State) -> Claim | None:
        """Room for the job in that of its pools where it costs least, if there is any to be made."""
        claims = []
        for pool in ways(job, view.domain):
            with facing_pool(job, pool):
                claims.append(self._claim_in(pool, job, view, state))
        return min((claim for claim in claims if claim is not None), key=lambda c: c.cost, default=None)

    def _claim_in(self, pool: PoolState, job: Job, view: View, state: State) -> Claim | None:
        """As :meth:`_claim`, in the pool that it faces."""
        by_rule: dict[str, Rule] = {}
        candidates: list[Candidate] = []
        ripe = _INF
        for _, _, _, other in view.running:
            rule = self._judge.rule(job, other) if may_help(job, other, pool, state) else None
            if rule is None:
                continue
            old = self._judge.ripe(other, rule)
            if state.now < old:
                ripe = min(ripe, old)
            else:
                by_rule[other.id] = rule
                candidates.append((self._judge.cost(other, rule, state), other))
        if ripe < _INF:
            self._wake(ripe, view.domain, state)
        if not candidates:
            return None
        in_sum = self.options.victims in ("least-lost", "fewest")
        search = cheapest if in_sum else in_turn
        gone = search(candidates, lambda jobs: self._places.place(job, jobs, pool) is not None)
        if not gone:
            # It cannot be done; or it could start as it is, and the policy knows why it does not.
            return None
        place = self._places.place(job, gone, pool) or ()
        nodes = frozenset(name for name, _ in place)
        grace = max(by_rule[other.id].grace for other in gone)
        costs = [cost for cost, other in candidates if other in gone]
        cost = sum(costs) if in_sum else max(costs)
        claim = Claim(job, pool, cost, nodes, state.now + grace + self.options.timeout)
        if grace:
            claim.until = state.now + grace
        for other in gone:
            rule = by_rule[other.id]
            lost = seconds_lost(other, rule, state.now)
            reason = f"makes room for job {job.id} ({rule})"
            reason += (
                ", and waits" if rule.how == "suspend" else f", which costs {duration(lost)} of its work"
            )
            order = ORDERS[rule.how](other.id, reason)
            told = Signal(other.id, rule.signal, grace, reason) if rule.grace else None
            claim.victims[other.id] = Victim(other.start_time, order, lost * other.processors, told, rule)
        return claim

    def _wake(self, time: float, domain: Domain, state: State) -> None:
        """Look at a domain again at ``time``, if nothing happens before."""
        planned = self._woken.get(domain.name, _INF)
        if not state.now < planned <= time:
            self._woken[domain.name] = time
            state.wake_at(time, domain)

    # ------------------------------------------------------------------ what becomes of it

    def _look_after(self, claim: Claim, state: State) -> Iterator[Decision]:
        job = claim.job
        if job.status is Status.STARTING:
            return
        waits = state.jobs.get(job.id) is job and job.status is Status.PENDING
        if not waits or claim.pool not in ways(job, claim.pool.domain):
            # The job does not want to start any more, or cannot; a victim that was told to go goes.
            self._drop(claim, state)
            return
        left = still_there(claim, state)
        if left and not all(victim.leaving for victim in left):
            # The victims were not told, as when headway only watches.
            self._drop(claim, state)
            self._not_before[job.id] = state.now + _AGAIN
            self._wake(state.now + _AGAIN, claim.pool.domain, state)
        elif left and claim.until is not None:
            if state.now >= claim.until:
                yield from self._send_away(claim, left, state)
        elif left:
            if state.now >= claim.deadline:
                why = f"the victims have not left after {self.options.timeout:g} s"
                self._give_up(claim, [victim.id for victim in left], why, state)
        else:
            start = self._start(claim)
            if start is not None:
                yield start
            elif state.now >= claim.deadline:
                self._give_up(claim, [], "the room that the victims left is not enough any more", state)

    def _send_away(self, claim: Claim, left: Sequence[Job], state: State) -> Iterator[Decision]:
        """The grace time is over: the victims that are still there go, if the job can start then."""
        if self._places.place(claim.job, left, claim.pool) is None:
            self._give_up(claim, [], "the room that the victims would leave is not enough any more", state)
            return
        claim.until = None
        state.wake_at(claim.deadline, claim.pool)
        yield from [
            self._tell(claim, victim.id, state, now=True) for victim in left if claim.victims[victim.id].told
        ]

    def _start(self, claim: Claim) -> Start | None:
        """Start it where room was made."""
        placement = self._places.place(claim.job, (), claim.pool)
        if placement is None:
            return None
        victims = " and ".join(f"job {name}" for name in claim.victims)
        return start_in(claim.pool, claim.job, placement, f"in the place of {victims}")

    def _give_up(self, claim: Claim, stay: Sequence[str], why: str, state: State) -> None:
        """Room is not made: the jobs that stay are left alone, and the waiting job is looked at anew."""
        self._figures["given up"] += 1
        self._judge.stays = {name: since for name, since in self._judge.stays.items() if name in state.jobs}
        self._judge.stays.update((name, claim.victims[name].started) for name in stay)
        self._drop(claim, state, stay)
        victims = ", ".join(f"job {name}" for name in stay or claim.victims)
        state.notices.append(f"{victims} does not make room for job {claim.job.id}: {why}")
        claim.pool.domain.touch()

    def _drop(self, claim: Claim, state: State, stay: Sequence[str] = ()) -> None:
        """Drop the claim: the jobs ``stay`` stay, as do the victims that have only been signalled so far."""
        self._claims.pop(claim.job.id, None)
        for name, victim in claim.victims.items():
            job = state.jobs.get(name)
            only_signalled = claim.until is not None and victim.told is not None
            if (name in stay or only_signalled) and job is not None and job.leaving:
                state.take_back(victim.order)
            if name not in stay and (job is None or (job.status is Status.RUNNING and not job.leaving)):
                self._suspended.forget(name)
