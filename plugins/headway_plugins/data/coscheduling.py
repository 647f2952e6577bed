"""Sites, order and data planned together: jobs that may move go where they and their data end early.

T. Phan, K. Ranganathan, R. Sion: Evolving Toward the Perfect Schedule: Co-scheduling Job Assignments and Data
Replication in Wide-Area Systems Using a Genetic Algorithm. JSSPP 2005. ``data-ga`` plans by the genetic
algorithm, ``data-greedy`` sends each job where it can begin first. Both copy data as ``staging`` does, in the
order of the plan. They are no policies: a policy beside them (such as ``easy``) starts the jobs, in the order
that the plan gives its queue, so reservations, limits and jobs that are not planned are its own business.
Decisions:

- Planned are jobs that may be sent to another cluster (attribute ``movable``), of one processor, that could
  start but for their data: the first ``window`` of all queues together. All other jobs go as the policy says;
  the plan reckons with those before the last planned job, and with those that can start now.
- A *snapshot* is planned every ``interval`` seconds, and when half of the jobs of the last one have started
  while others wait. Running jobs and copies on their way are fixed. A job that comes between two snapshots is
  planned at once, without the genetic algorithm.
- The genetic algorithm compares so many plans in a cycle (``cycle_evaluations``) and goes on in the next one,
  which follows at once: other queues and users' requests do not wait for it. Meanwhile the last plan stands,
  and jobs that have no plan wait. At the end the plan is compared for the jobs and slots of that moment.
- In their queue planned jobs take each other's places alone. ``max_overtakes`` bounds the order, not jobs
  that overtake because their data are there.
- Before a job is planned, nothing is copied for it.
- A job that its cluster has refused to send on three times stays there.
- Five copies in a row that take more than twice or less than half of what was expected: ``data-ga`` plans
  as ``data-greedy`` until a copy takes what was expected.
- Random numbers follow from the run's seed and the number of the plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from headway.decisions import Copy, Decision, Drop, Route, Start
from headway.events import DecisionFailed, Event, JobReleased, JobRequeued, JobRouted, PoolChanged
from headway.hookspecs import hookimpl
from headway.model.sites import DATA, MOVABLE
from headway.plugins import Again, Study, Traits
from headway.report.quantities import duration
from headway.state import Barrier, Job, PoolState, State, Status
from headway_plugins.data.site_planner import (
    NEVER,
    Planning,
    Search,
    SitePlan,
    Snapshot,
    Waiting,
    best_of,
)
from headway_plugins.data.site_slots import pool_for, pools_of, slots_of, travel
from headway_plugins.data.staging import Staging
from headway_plugins.data.stores import why_never
from headway_plugins.data.supply import OBSERVED, waits_for_data
from headway_plugins.data.supply_options import GeneticOptions, GreedyOptions, SupplyOptions
from headway_plugins.draws import Draws

_INF = float("inf")
_PAPER = (
    "T. Phan, K. Ranganathan, R. Sion: Evolving Toward the Perfect Schedule: Co-scheduling Job Assignments "
    "and Data Replication in Wide-Area Systems Using a Genetic Algorithm, JSSPP 2005"
)
#: Copies in a row whose expectation was wrong, after which no plan is believed.
WRONG = 5
#: Times that a cluster may refuse to send a job on.
TRIES = 3
#: Jobs that are not planned with which a plan reckons, for each planned job.
_OTHERS = 4
#: What bars jobs without a plan while a plan is looked for.
_UNPLANNED = ("plan",)
#: Jobs of a plan by which evaluations are counted (``cycle_evaluations``).
_JOBS = 100


@dataclass
class _Planned:
    """What is counted of plans."""

    snapshots: int = 0
    evaluations: int = 0
    routes: int = 0
    fallbacks: int = 0
    #: When the last job was to end, by the first and by the last snapshot (absolute seconds).
    first_end: float = 0.0
    last_end: float = 0.0


class DataGreedy(Staging):
    """Send movable jobs where they can begin first with their data, and copy the data there."""

    Options: type[SupplyOptions] = GreedyOptions
    _NAME = "data-greedy"
    traits = Traits(
        needs=(Copy, Route), uses=(Drop,), words=frozenset({DATA, MOVABLE}),
        observes=(*OBSERVED, PoolChanged), ask_again=Again.DOMAIN,
        study=Study(backfills=True, estimates=True), paper=_PAPER,
    )  # fmt: skip

    def __init__(self, options: SupplyOptions | None = None) -> None:
        super().__init__(options)
        #: Jobs that may be planned.
        self._movable: set[str] = set()
        #: How often each could not be sent on, and how many jobs have overtaken each.
        self._refusals: dict[str, int] = {}
        self._overtaken: dict[str, int] = {}
        self._plan = SitePlan()
        #: A plan that is looked for, and how; None: none is.
        self._search: tuple[Search, Planning] | None = None
        self._rank: dict[str, int] = {}
        #: Jobs of the last snapshot, how many snapshots there were, and when the next one is due.
        self._size = 0
        self._number = 0
        self._next = -_INF
        #: There may be jobs to plan; and something happened since the last snapshot.
        self._news = self._stale = True
        self.planned = _Planned()

    @hookimpl
    def checkpoint(self) -> dict[str, Any]:
        order, site = list(self._plan.order), dict(self._plan.site)
        plan = {"order": order, "site": site, "overtaken": dict(self._overtaken)}
        return {**self.supply.kept(), "plan": plan}

    @hookimpl
    def restore(self, saved: Mapping[str, Any]) -> None:
        self.supply.take_up(saved)
        plan = saved["plan"]
        self._overtaken = dict(plan["overtaken"])
        self._take(SitePlan(list(plan["order"]), dict(plan["site"])))

    # ------------------------------------------------------------------ jobs

    @hookimpl
    def observe(self, event: Event, state: State) -> None:
        self._stale = True
        if isinstance(event, DecisionFailed | JobReleased | JobRequeued | JobRouted | PoolChanged):
            self._news = True
        decision = event.decision if isinstance(event, DecisionFailed) else None
        if isinstance(decision, Route) and decision.job_id in self._movable:
            self._refusals[decision.job_id] = self._refusals.get(decision.job_id, 0) + 1
            self.supply.changed = True
            self._forget(decision.job_id)
        self.supply.note(event, state)
        name = getattr(event, "job_id", "")
        if name in self._movable and name not in state.jobs:
            self._movable.discard(name)
            self._refusals.pop(name, None)
            self._overtaken.pop(name, None)
            self._forget(name)

    def _forget(self, job: str) -> None:
        """The plan says nothing of the job any more."""
        self._plan.site.pop(job, None)
        self._rank.pop(job, None)

    @hookimpl
    def admit_job(self, job: Job) -> str | None:
        self._stale = True
        if _may_be_planned(job, self.options.movable == "all"):
            self._movable.add(job.id)
            self._news = True
        else:
            self._movable.discard(job.id)
        return self.supply.admitted(job)

    def roams(self, job: Job) -> bool:
        return job.id in self._movable

    def _at(self, job: Job) -> str:
        """Its site, or that to which it is on its way."""
        return self.supply.catalogue.site_of(job.bound_for or job.pool.name)

    def _plannable(self, job: Job) -> bool:
        """Whether nothing but its data, its way to another pool, or its closed pool keeps the job out."""
        if self._refusals.get(job.id, 0) >= TRIES:
            return False
        if job.status is Status.PENDING:
            return True
        if job.status is not Status.WAITING or job.held or job.refusal:
            return False
        return (
            bool(job.bound_for)
            or _would_start(job)
            or not (job.pool.open or job.failures or job.description.begin_time is not None)
        )

    # ------------------------------------------------------------------ plans

    @hookimpl
    def bar_job(self, job: Job, state: State) -> Barrier | None:
        unplanned = job.id in self._movable and job.id not in self._plan.site
        if self._search is not None and unplanned and self._refusals.get(job.id, 0) < TRIES:
            return Barrier("its plan is being made", _UNPLANNED)
        return self.supply.barrier(job, state)

    @hookimpl
    def react(self, state: State) -> Iterable[Decision] | None:
        self.supply.let_in(state)
        if self._search is not None:
            return self._go_on(*self._search, state)
        if not (self._news or (self._stale and state.now >= self._next)):
            return None
        self._news = False
        return self._look(state)

    def _look(self, state: State) -> Iterator[Decision]:
        """Plan where that is due, and send jobs on."""
        pools = pools_of(state)
        front = self._front(pools, state)
        if not front:
            self._next = -_INF
            return
        known = sum(job.id in self._plan.site for job in front)
        due = state.now >= self._next or not known or (known < len(front) and 2 * known <= self._size)
        if not due and known == len(front):
            return
        snapshot = self._snapshot(front, pools, state)
        if not snapshot.slots:
            return
        planning = self.planning(state) if due else Planning(evaluations=0)
        draws = Draws(np.random.default_rng([state.seed, self._number]))
        self._number += 1
        search = Search(snapshot, planning, draws, self._plan)
        if search.advance(planning.turns):
            found = best_of(snapshot, planning, self._plan, search.best())
            yield from self._decide(found, front, pools, state, whole=due)
            return
        self._search = search, planning
        for pool in state.pools.values():
            state.bar_queued(pool)
        _ask_again(state)

    def _go_on(self, search: Search, planning: Planning, state: State) -> Iterator[Decision]:
        """Compare further plans; at the end, take the best one for the jobs that wait then."""
        if not search.advance(planning.turns):
            _ask_again(state)
            return
        self._search = None
        state.lifted(_UNPLANNED)
        pools = pools_of(state)
        front = self._front(pools, state)
        if front and (snapshot := self._snapshot(front, pools, state)).slots:
            found = best_of(snapshot, planning, self._plan, search.best())
            yield from self._decide(found, front, pools, state, whole=True)

    def _decide(
        self, found: SitePlan, front: Mapping[Job, frozenset[str]], pools: Mapping[str, list[PoolState]],
        state: State, *, whole: bool,
    ) -> Iterator[Route]:  # fmt: skip
        """Take a plan, and send on the jobs whose site is another one; ``whole``: it is one of everything,
        else jobs that came are only added to the last one."""
        self._take(found)
        self.supply.changed = True
        self.planned.evaluations += found.evaluations
        if whole:
            self._size, self._stale = len(found.order), False
            self._next = state.now + self.options.interval
            self.planned.last_end = state.now + found.makespan
            if not self.planned.snapshots:
                self.planned.first_end = self.planned.last_end
            self.planned.snapshots += 1
            state.wake_at(self._next, next(iter(front)).pool)
        for job in front:
            job.domain.touch()
        yield from self._routes(front, pools, state)

    def _front(self, pools: Mapping[str, list[PoolState]], state: State) -> dict[Job, frozenset[str]]:
        """The jobs to plan, in the order of the queues, and for each the sites to which it cannot go."""
        jobs = (state.jobs[name] for name in self._movable if name in state.jobs)
        found: dict[Job, frozenset[str]] = {}
        for job in sorted((job for job in jobs if self._plannable(job)), key=lambda job: job.order):
            if len(found) == self.options.window:
                break
            needs = self.supply.needs.get(job.id, ())
            if job.bound_for:
                never = frozenset(site for site in pools if site != self._at(job))
            else:
                never = frozenset(site for site in pools if why_never(self.supply.catalogue, needs, site))
            if len(never) < len(pools):
                found[job] = never
        return found

    def _take(self, plan: SitePlan) -> None:
        self._plan = plan
        self._rank = {name: at for at, name in enumerate(plan.order)}

    def planning(self, state: State) -> Planning:
        """How the next snapshot is planned."""
        return Planning(evaluations=0, max_overtakes=self.options.max_overtakes)

    def _snapshot(
        self, front: Mapping[Job, frozenset[str]], pools: Mapping[str, list[PoolState]], state: State
    ) -> Snapshot:
        planned = {job.id for job in front}
        last = max(job.order for job in front)
        others = [
            (job, job.order < last)
            for job in state.jobs.values()
            if job.id not in planned and (job.status is Status.PENDING or _would_start(job))
        ]
        others.sort(key=lambda other: other[0].order)
        now = state.now

        def ready(job: Job) -> float:
            site = self._at(job)
            times = (self._arrival(name, site, now) for name in self.supply.needs.get(job.id, ()))
            return max(times, default=0.0)

        slots = slots_of(state, pools, others[: _OTHERS * len(front)], ready, len(front))
        jobs = [
            Waiting(
                job.id, self._at(job), self.supply.needs.get(job.id, ()), job.expected_runtime,
                self._overtaken.get(job.id, 0), never,
            )
            for job, never in front.items()
        ]  # fmt: skip
        return Snapshot(
            jobs,
            slots,
            lambda dataset, site: self._arrival(dataset, site, now),
            partial(travel, self.supply.catalogue),
        )

    def _arrival(self, dataset: str, site: str, now: float) -> float:
        """Seconds until the site has the dataset, if its copy begins now; :data:`NEVER`: it cannot."""
        if why_never(self.supply.catalogue, (dataset,), site):
            return NEVER
        return min(NEVER, self.supply.copies.arrival(dataset, site, now))

    def _routes(
        self, front: Mapping[Job, frozenset[str]], pools: Mapping[str, list[PoolState]], state: State
    ) -> Iterator[Route]:
        """Send the jobs on whose site is another one."""
        for job in sorted(front, key=lambda job: self._rank[job.id]):
            site = self._plan.site[job.id]
            if site == self._at(job) or site in front[job] or job.bound_for:
                continue
            needs = self.supply.needs.get(job.id, ())
            wait = max((self._arrival(name, site, state.now) for name in needs), default=0.0)
            if wait < NEVER:
                there = f"its data can be there in {duration(wait)}" if wait else "nothing is to be copied"
                self.planned.routes += 1
                yield Route(job.id, pool_for(job, pools[site]).name, f"planned at {site}: {there}")

    # ------------------------------------------------------------------ order

    def _exchanged(self, jobs: list[Job]) -> list[Job]:
        """Planned jobs take each other's places, in the order of the plan."""
        places = [at for at, job in enumerate(jobs) if job.id in self._rank]
        planned = sorted((jobs[at] for at in places), key=lambda job: self._rank[job.id])
        found = list(jobs)
        for at, job in zip(places, planned, strict=True):
            found[at] = job
        return found

    @hookimpl
    def order_queue(self, jobs: Sequence[Job]) -> Sequence[Job] | None:
        found = self._exchanged(list(jobs)) if self._rank else jobs
        return None if found == jobs else found

    def in_turn(self, jobs: list[Job]) -> Sequence[Job]:
        there = [
            job
            for job in jobs
            if job.id not in self._movable
            or self._refusals.get(job.id, 0) >= TRIES
            or self._plan.site.get(job.id) == self._at(job)
        ]
        return self._exchanged(list(super().in_turn(there)))

    @hookimpl
    def decided(self, decisions: Sequence[Decision], state: State) -> None:
        """Planned jobs that start leave the plan, and jobs that start overtake the jobs before them."""
        started = [decision.job_id for decision in decisions if isinstance(decision, Start)]
        if not started or not self._rank:
            return
        self._stale = True
        self._news = self._news or any(name in self._rank for name in started)
        if self.options.max_overtakes is None:
            return
        jobs = [job for name in self._rank if (job := state.jobs.get(name)) and job.start_time is None]
        for name in started:
            job = state.jobs.get(name)
            for other in jobs:
                if job is not None and other.order < job.order:
                    self._overtaken[other.id] = self._overtaken.get(other.id, 0) + 1

    # ------------------------------------------------------------------ figures

    @hookimpl
    def register_metrics(self) -> dict[str, Any]:
        return {"staging": self.told, "plans": lambda result: dict(vars(self.planned))}


class DataGa(DataGreedy):
    """Plan sites, order and copies for movable jobs together by a genetic algorithm."""

    Options: type[SupplyOptions] = GeneticOptions
    _NAME = "data-ga"

    def __init__(self, options: SupplyOptions | None = None) -> None:
        super().__init__(options)
        self._believes = True

    def planning(self, state: State) -> Planning:
        believes = self.supply.copies.measured.wrong < WRONG
        if believes != self._believes:
            self._believes = believes
            state.notices.append(
                "data-ga: copies take what is expected again; plans are made by the genetic algorithm"
                if believes
                else f"data-ga: {WRONG} copies in a row took more than twice or less than half of what was "
                "expected; plans are made as by data-greedy until a copy takes what is expected"
            )
        options = self.options
        if not believes:
            self.planned.fallbacks += 1
            return super().planning(state)
        plans = options.cycle_evaluations
        return Planning(
            options.evaluations, options.mutation, options.parents, options.children, options.max_overtakes,
            turns=None if plans is None else plans * _JOBS,
        )  # fmt: skip


def _would_start(job: Job) -> bool:
    """Whether its data or its plan alone keep a waiting job out of its queue."""
    return waits_for_data(job) or (job.barrier is not None and job.barrier.key == _UNPLANNED)


def _ask_again(state: State) -> None:
    """Have a further step follow at once."""
    state.wake_at(state.now, next(iter(state.pools.values())))


def _may_be_planned(job: Job, all_may: bool) -> bool:
    """Whether a job may be sent to another cluster, and is of one processor and of no further conditions."""
    description = job.description
    return (
        str(job.attribute(MOVABLE, "yes" if all_may else "no")) != "no"
        and job.processors == 1
        and not description.further_pools
        and not description.dependencies
        and not description.reservation
    )
