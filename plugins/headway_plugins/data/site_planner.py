"""A plan for the front of the queues of several sites: where each job runs, and in which order jobs go.

:mod:`.planner` has the model of the paper, in which a file has a replica in a single store and takes one more
hop to any node. Sites of a federation have a store each, next to their nodes: a job runs where all its
datasets are, so a site that runs jobs with a dataset gets a copy of it. A plan is therefore the order of the
jobs and the slot of each (mode ``staged`` of :mod:`.evaluation`); the copies follow from it. All copies begin
now, so a plan does not know of limits of copies, nor of stores that are full.

A batch system starts the first job of its queue whose data are there, and keeps no slot free for a job whose
data are on their way. So the end of a plan is that of its *dispatch*: at each site, each slot that is free
takes the first job, in the order of the plan, that has its data. Four plans are compared by it, and of plans
that end at the same microsecond, by the sum of the ends of their jobs:

- the last plan, jobs that have come since behind it;
- each job where it is, in the order of the queue;
- greedy: each job, in the order of the queue, to the slot where it can begin first;
- the best plan that the genetic algorithm finds from these.

An earlier one of this list is taken unless a later one is better, so that jobs do not move without a gain.
The function is pure: the caller knows the time, and when a snapshot is due.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import factorial

import numpy as np

from headway_plugins.data.evaluation import evaluate, micro
from headway_plugins.data.genetic import Evolution, Genetics
from headway_plugins.data.model import Ints, Tables
from headway_plugins.data.planner import overtaken_at_most
from headway_plugins.draws import Draws

#: In place of an infinite time, in seconds: thirty years.
NEVER = 1e9


@dataclass(frozen=True)
class Waiting:
    """A job of one processor that waits."""

    id: str
    #: Where it is now.
    site: str
    datasets: tuple[str, ...]
    #: Predicted, seconds.
    runtime: float
    #: Jobs from behind it in the queue that have started before it.
    overtaken: int = 0
    #: Sites to which it cannot go.
    never: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Slot:
    """One processor of a site."""

    site: str
    #: Seconds from now until it is free.
    free: float = 0.0


@dataclass(frozen=True)
class Snapshot:
    """All that a plan is made from."""

    #: As they are queued, the first one first.
    jobs: Sequence[Waiting]
    #: At least one.
    slots: Sequence[Slot]
    #: Seconds from now until a site has a dataset, if a copy that is not on its way yet begins now.
    arrival: Callable[[str, str], float]
    #: Seconds that a job takes from one site to another.
    travel: Callable[[str, str], float] = lambda source, target: 0.0


@dataclass(frozen=True)
class Planning:
    """How plans are made."""

    #: Plans that are compared; 0: no genetic algorithm.
    evaluations: int = 5_000
    mutation: float = 0.8
    parents: int = 10
    children: int = 50
    #: Jobs from behind it in the queue that may have their turns before a job; None: any number.
    max_overtakes: int | None = None
    #: Turns of jobs in the plans that are compared before the search is interrupted; None: in all plans.
    turns: int | None = None


@dataclass(frozen=True)
class SitePlan:
    """Where jobs go, and in which order."""

    #: Jobs in the order in which they go.
    order: list[str] = field(default_factory=list)
    #: Job -> site.
    site: dict[str, str] = field(default_factory=dict)
    #: When the last job ends, seconds from the snapshot.
    makespan: float = 0.0
    #: Plans that were compared.
    evaluations: int = 0


@dataclass(frozen=True)
class _Candidate:
    """A plan by numbers: jobs in their order, and the slot of each job."""

    order: list[int]
    slot: list[int]

    def row(self) -> Ints:
        return np.array([*self.order, *self.slot])


class _Numbered:
    """A snapshot by numbers."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.jobs, self.slots = snapshot.jobs, snapshot.slots
        # What a job waits for: datasets, and to be there, where it can go.
        needs: list[tuple[Hashable, ...]] = [(*job.datasets, (job.site, job.never)) for job in self.jobs]
        names = list(dict.fromkeys(name for names in needs for name in names))
        number = {name: at for at, name in enumerate(names)}
        sites = dict.fromkeys(slot.site for slot in self.slots)
        times = {(name, site): _comes(snapshot, name, site) for name in names for site in sites}
        #: By site and job: when it and its data are there.
        self.ready = {site: [max(times[name, site] for name in names) for names in needs] for site in sites}
        self._free = np.array([slot.free for slot in self.slots])
        self._at = {site: np.array([slot.site == site for slot in self.slots]) for site in sites}
        self._arrivals = np.array([self.ready[slot.site] for slot in self.slots]).T
        self.tables = Tables(
            jobs=[tuple(number[name] for name in names) for names in needs],
            transfer=[[0.0]] * len(names),
            hop=[],
            compute=[[job.runtime] * len(self.slots) for job in self.jobs],
            direct=[[times[name, slot.site] for slot in self.slots] for name in names],
            free=[slot.free for slot in self.slots],
            stores=1,
            jobs_alone=True,
        )

    def assigned(self, order: Sequence[int], sites: Mapping[int, str]) -> _Candidate:
        """Each job in turn to the slot where it can begin first, of its site if ``sites`` names it."""
        free, found = self._free.copy(), [0] * len(self.jobs)
        for job in order:
            begins = np.maximum(free, self._arrivals[job])
            ranks = np.floor(begins * 1e6 + 0.5)
            if (only := self._at.get(sites.get(job, ""))) is not None:
                ranks = np.where(only, ranks, np.inf)
            found[job] = at = int(ranks.argmin())
            free[at] = begins[at] + self.jobs[job].runtime
        return _Candidate(list(order), found)

    def dispatched(self, plan: _Candidate) -> tuple[float, float]:
        """When the last job of a plan ends, and the sum of the ends of its jobs."""
        last = total = 0.0
        at_sites: dict[str, list[int]] = {}
        for job in plan.order:
            at_sites.setdefault(self.slots[plan.slot[job]].site, []).append(job)
        for site, jobs in at_sites.items():
            free = [slot.free for slot in self.slots if slot.site == site]
            runtimes = [self.jobs[job].runtime for job in jobs]
            for end in dispatch(free, [self.ready[site][job] for job in jobs], runtimes):
                last, total = max(last, end), total + end
        return last, total


def _comes(snapshot: Snapshot, what: Hashable, site: str) -> float:
    """Seconds until a dataset, or a job from ``(site, sites to which it cannot go)``, is at a site."""
    if isinstance(what, str):
        return min(NEVER, snapshot.arrival(what, site))
    assert isinstance(what, tuple)
    home, never = what
    return NEVER if site in never else 0.0 if site == home else snapshot.travel(home, site)


def dispatch(free: Iterable[float], ready: Sequence[float], runtimes: Sequence[float]) -> list[float]:
    """When each job ends, if each slot that is free takes the first job that is ready.

    ``free``: when each slot is; ``ready`` and ``runtimes`` by job, in the order of the queue.
    """
    heap = sorted(free)
    coming = sorted(range(len(ready)), key=lambda job: ready[job], reverse=True)
    here: list[int] = []
    ends = [0.0] * len(ready)
    now = 0.0
    for _ in ready:
        now = max(now, heap[0])
        if not here:
            now = max(now, ready[coming[-1]])
        while coming and ready[coming[-1]] <= now:
            heapq.heappush(here, coming.pop())
        job = heapq.heappop(here)
        ends[job] = now + runtimes[job]
        heapq.heapreplace(heap, ends[job])
    return ends


class Search:
    """A plan that is looked for by the genetic algorithm, some generations at a time."""

    def __init__(
        self, snapshot: Snapshot, planning: Planning, draws: Draws, last: SitePlan | None = None
    ) -> None:
        """The first plans; nothing is looked for among less than two jobs, or without a budget."""
        self._numbered = _Numbered(snapshot)
        self._evolution: Evolution | None = None
        if planning.evaluations and len(snapshot.jobs) > 1:
            seeds = _plain(self._numbered, last)
            self._evolution = _evolution(self._numbered, planning, draws, seeds)

    def advance(self, turns: int | None = None) -> bool:
        """Breed generations until plans with so many turns of jobs were compared, at least one; None: all
        that the budget allows. Whether the search is over."""
        evolution = self._evolution
        if evolution is None:
            return True
        most = None if turns is None else evolution.evaluations + turns // len(self._numbered.jobs)
        while evolution.goes_on():
            evolution.generation()
            if most is not None and evolution.evaluations >= most:
                break
        return not evolution.goes_on()

    def best(self) -> SitePlan | None:
        """The best plan so far: jobs in the order in which they begin; None: none was looked for."""
        if self._evolution is None:
            return None
        found = self._evolution.best()
        tables = self._numbered.tables
        turns = evaluate(tables, "staged", found.order, found.node)[1]
        place = {job: at for at, job in enumerate(found.order)}
        turns.sort(key=lambda turn: (turn.begins, place[turn.job]))
        return _named(self._numbered, _Candidate([turn.job for turn in turns], found.node), found.makespan,
                      found.evaluations)  # fmt: skip


def plan_sites(
    snapshot: Snapshot, planning: Planning, draws: Draws, last: SitePlan | None = None
) -> SitePlan:
    """The best plan that was found within the budget."""
    search = Search(snapshot, planning, draws, last)
    search.advance()
    return best_of(snapshot, planning, last, search.best())


def best_of(
    snapshot: Snapshot, planning: Planning, last: SitePlan | None = None, found: SitePlan | None = None
) -> SitePlan:
    """The best of the plans that cost little, and of a plan that a search has ``found`` for these jobs, or
    for most of them."""
    if not snapshot.jobs:
        return SitePlan()
    numbered = _Numbered(snapshot)
    candidates = _plain(numbered, last)
    evaluated = len(candidates)
    if found is not None and found.order:
        candidates.append(_continued(numbered, found))
        evaluated = found.evaluations
    if planning.max_overtakes is not None:
        candidates = [_without_overtakes(numbered, one, planning.max_overtakes) for one in candidates]
    best, makespan = _best(numbered, candidates)
    return _named(numbered, best, makespan, evaluated)


def _named(numbered: _Numbered, plan: _Candidate, makespan: float, evaluations: int) -> SitePlan:
    jobs, slots = numbered.jobs, numbered.slots
    return SitePlan(
        order=[jobs[job].id for job in plan.order],
        site={one.id: slots[at].site for one, at in zip(jobs, plan.slot, strict=True)},
        makespan=makespan,
        evaluations=evaluations,
    )


def _plain(numbered: _Numbered, last: SitePlan | None) -> list[_Candidate]:
    """The last plan, each job where it is, and greedy."""
    jobs = numbered.jobs
    home = {at: job.site for at, job in enumerate(jobs) if job.site not in job.never}
    plans = [numbered.assigned(range(len(jobs)), home), numbered.assigned(range(len(jobs)), {})]
    return [_continued(numbered, last), *plans] if last is not None and last.order else plans


def _continued(numbered: _Numbered, last: SitePlan) -> _Candidate:
    """The last plan for the jobs that still wait, and new jobs behind these."""
    number = {job.id: at for at, job in enumerate(numbered.jobs)}
    kept = [number[name] for name in last.order if name in number and name in last.site]
    known = set(kept)
    new = [job for job in range(len(numbered.jobs)) if job not in known]
    return numbered.assigned([*kept, *new], {job: last.site[numbered.jobs[job].id] for job in kept})


def _evolution(
    numbered: _Numbered, planning: Planning, draws: Draws, seeds: Sequence[_Candidate]
) -> Evolution:
    count, tables = len(numbered.jobs), numbered.tables
    # More than all plans need not be compared.
    budget = planning.evaluations
    if count < 10:
        budget = min(budget, factorial(count) * tables.nodes**count)
    genetics = Genetics(
        planning.parents, planning.children, mutation=planning.mutation,
        generations=max(0, budget // planning.children - 1), stop_when_equal=planning.mutation == 0,
    )  # fmt: skip
    rows = [seed.row() for seed in seeds][: planning.children]
    return Evolution(tables, draws, genetics, mode="staged", seeds=rows)


def _without_overtakes(numbered: _Numbered, plan: _Candidate, most: int) -> _Candidate:
    left = [most - job.overtaken for job in numbered.jobs]
    return _Candidate(*overtaken_at_most(numbered.tables, "staged", plan.order, plan.slot, [], left))


def _best(numbered: _Numbered, candidates: Sequence[_Candidate]) -> tuple[_Candidate, float]:
    """The plan whose dispatch ends first, and when."""
    ends = [numbered.dispatched(one) for one in candidates]
    at = min(range(len(ends)), key=lambda one: (micro(ends[one][0]), micro(ends[one][1])))
    return candidates[at], ends[at][0]
