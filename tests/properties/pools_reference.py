"""Random pools over shared nodes, and their schedules worked out by trying everything.

Nodes have one processor each, and a job takes the first free ones of the pool that it runs in. Plans are
made anew at each instant; what is free is found node by node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from random import Random
from typing import Any, NamedTuple

from building import Run, emulate, traced
from hypothesis import strategies as st

from headway.model import ClusterDescription, NodeDescription, PoolBounds, PoolDescription
from headway_plugins.placement.first_fit import FirstFit

#: From when to when which nodes are a job's.
Taken = tuple[float, float, list[int]]


class Asked(NamedTuple):
    """One job: how many nodes, its limit and its runtime, when it comes, and its pools."""

    size: int
    limit: float
    runtime: float
    comes: float
    pools: tuple[int, ...]


class Limits(NamedTuple):
    """What no job of a pool may exceed; 0: no limit."""

    time: int
    nodes: int

    def admit(self, job: Asked) -> bool:
        return not 0 < self.time < job.limit and not 0 < self.nodes < job.size


class Case(NamedTuple):
    #: For each node the pools that it is in.
    nodes: tuple[frozenset[int], ...]
    tiers: tuple[int, ...]
    jobs: tuple[Asked, ...]
    #: Of each pool; (): no pool has any.
    limits: tuple[Limits, ...] = ()

    def admits(self, pool: int, job: Asked) -> bool:
        return not self.limits or self.limits[pool].admit(job)


class Placed(NamedTuple):
    """Where a job started, and when."""

    start: float
    pool: int
    nodes: list[int]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Anything; most jobs find nodes when they come."""
    count = draw(st.integers(1, 4))
    pools = st.integers(0, count - 1)
    nodes = draw(st.lists(st.frozensets(pools, min_size=1), min_size=2, max_size=6))
    tiers = draw(st.one_of(st.just([0] * count), st.lists(st.integers(0, 2), min_size=count, max_size=count)))
    jobs = []
    for _ in range(draw(st.integers(1, 12))):
        limit = draw(st.integers(1, 12))
        jobs.append(
            Asked(
                draw(st.integers(1, 4)), limit, draw(st.integers(1, limit)), draw(st.integers(0, 15)),
                tuple(draw(st.lists(pools, min_size=1, max_size=3, unique=True))),
            )
        )  # fmt: skip
    return Case(tuple(nodes), tuple(tiers), tuple(sorted(jobs, key=lambda job: job.comes)))


#: Where each draw stands for itself, policies differ far more often than where hypothesis likes some better.
RANDOM = st.integers(0, 2**32 - 1).map(Random)


def a_crowded_case(random: Random) -> Case:
    """Many jobs in a short time, some of them about as large as their pool: policies differ."""
    count = random.choice((2, 3, 4))
    pools = range(count)
    tiers = [0] * count if random.random() < 0.5 else [random.randrange(3) for _ in pools]
    nodes, shared = [], random.choice((0.1, 0.6, 0.6))
    for _ in range(random.choice((6, 7, 8))):
        its = frozenset(pool for pool in pools if random.random() < shared)
        nodes.append(its or frozenset({random.randrange(count)}))
    jobs, comes = [], 0
    for _ in range(16):
        comes += random.choice((0, 0, 0, 1))
        named = tuple(random.sample(pools, random.randint(1, min(count, 3))))
        most = max(sum(pool in node for node in nodes) for pool in named)
        size = random.choice((1, 1, 2, most // 2, most // 2 + 1, most - 1, most))
        limit = random.choice((3, 4, 5, 9, 10, 11, 12))
        runtime = random.choice((limit, limit, limit - 1, limit // 2))
        jobs.append(Asked(max(size, 1), limit, runtime, comes, named))
    return Case(tuple(nodes), tuple(tiers), tuple(jobs))


def a_limited_case(random: Random) -> Case:
    """The same with limits of some pools."""
    case = a_crowded_case(random)
    limits = [Limits(random.choice((0, 0, 0, 9, 10)), random.choice((0, 0, 0, 3, 5))) for _ in case.tiers]
    return case._replace(limits=tuple(limits))


def one_domain_a_job(case: Case) -> bool:
    """Whether each job's pools are all of one domain."""
    reference = Reference(case, "fcfs")
    return all(any(group.issuperset(ways) for group in reference.domains()) for ways in reference.ways)


#: Jobs may be of several domains.
ANY = st.one_of(cases(), RANDOM.map(a_crowded_case), RANDOM.map(a_limited_case))
#: One domain a job.
SOME = cases().filter(one_domain_a_job)
CROWDED = RANDOM.map(a_crowded_case).filter(one_domain_a_job)
LIMITED = RANDOM.map(a_limited_case).filter(one_domain_a_job)


class Packing(NamedTuple):
    """How LOS filled free nodes in one instant, behind a head that is booked."""

    #: Nodes that the started jobs have together.
    filled: int
    #: Nodes that the best set of jobs would have.
    most: int
    #: Jobs that were chosen and found no nodes.
    left_out: list[int]
    #: Jobs that could still start without delaying the head.
    idle: list[int]


class Reference:
    """The same, slowly."""

    def __init__(self, case: Case, policy: str, *given: Any) -> None:
        """``given``: to the method of that name, beside the time and the jobs that wait."""
        self.case, self.policy, self.given = case, policy, given
        sizes = [sum(pool in node for node in case.nodes) for pool in range(len(case.tiers))]
        #: Of each job its pools that could hold it and admit it: higher tiers first, then as named.
        self.ways = [
            tuple(
                sorted(
                    (pool for pool in job.pools if job.size <= sizes[pool] and case.admits(pool, job)),
                    key=lambda pool: -case.tiers[pool],
                )
            )
            for job in case.jobs
        ]
        tier = [max((case.tiers[pool] for pool in ways), default=0) for ways in self.ways]
        self.order = sorted(range(len(case.jobs)), key=lambda at: (-tier[at], case.jobs[at].comes, at))
        self.started: dict[int, Placed] = {}
        #: How often a job behind it started first.
        self.overtaken: Counter[int] = Counter()
        self.packings: list[Packing] = []

    def run(self) -> dict[int, Placed]:
        moments = {job.comes for job in self.case.jobs}
        while moments:
            now = min(moments)
            moments.discard(now)
            before = set(self.started)
            for domain in self.domains():
                waiting = [
                    at for at in self.order if self.waits(at, now) and domain.issuperset(self.ways[at])
                ]
                getattr(self, self.policy)(now, waiting, *self.given)
            moments |= {now + self.case.jobs[at].runtime for at in set(self.started) - before}
        return self.started

    def waits(self, at: int, now: float) -> bool:
        return at not in self.started and self.case.jobs[at].comes <= now and bool(self.ways[at])

    def domains(self) -> list[set[int]]:
        found: list[set[int]] = [{pool} for pool in range(len(self.case.tiers))]
        for links in self.case.nodes:
            touched = [group for group in found if group & links]
            found = [group for group in found if not group & links] + [set().union(*touched)]
        return sorted(found, key=min)

    def busy(self, now: float) -> list[Taken]:
        """Which nodes are taken until when, as far as is expected."""
        jobs = self.case.jobs
        return [
            (placed.start, placed.start + jobs[at].limit, placed.nodes)
            for at, placed in self.started.items() if placed.start + jobs[at].runtime > now
        ]  # fmt: skip

    def place(self, at: int, start: float, taken: list[Taken], pool: int) -> list[int]:
        """The first nodes that are free for the job throughout; [] if they are too few."""
        end = start + self.case.jobs[at].limit
        gone = {node for begin, until, nodes in taken if begin < end and start < until for node in nodes}
        free = [node for node, pools in enumerate(self.case.nodes) if pool in pools and node not in gone]
        size = self.case.jobs[at].size
        return free[:size] if len(free) >= size else []

    def earliest(self, at: int, now: float, taken: list[Taken]) -> Placed:
        """When, where and in which pool the job can be first."""
        for moment in sorted({now, *(until for _, until, _ in taken if until > now)}):
            for pool in self.ways[at]:
                if nodes := self.place(at, moment, taken, pool):
                    return Placed(moment, pool, nodes)
        raise AssertionError("each could run on an empty machine")

    def taken_by(self, at: int, placed: Placed) -> Taken:
        return placed.start, placed.start + self.case.jobs[at].limit, placed.nodes

    # ------------------------------------------------------------------ the policies

    def fcfs(self, now: float, waiting: list[int]) -> None:
        for at in waiting:
            placed = self.earliest(at, now, self.busy(now))
            if placed.start > now:
                return
            self.started[at] = placed

    def conservative(self, now: float, waiting: list[int]) -> None:
        self.easy(now, waiting, len(waiting))

    def easy_per_pool(self, now: float, waiting: list[int]) -> None:
        self.easy(now, waiting, per_pool=True)

    def easy(self, now: float, waiting: list[int], most: int = 1, *, per_pool: bool = False) -> None:
        """Each starts if it can, else it is booked until so many are, or if it is the first of its pool.

        That is the first of several.
        """
        booked: list[Taken] = []
        pools: set[int] = set()
        for at in waiting:
            placed = self.earliest(at, now, [*self.busy(now), *booked])
            if placed.start == now:
                self.started[at] = placed
            elif len(booked) < most or (per_pool and self.ways[at][0] not in pools):
                booked.append(self.taken_by(at, placed))
                pools.add(self.ways[at][0])

    def k_reserved(self, now: float, waiting: list[int], limit: int) -> None:
        """The head is booked; no job may start behind a job that was overtaken so often."""
        booked: list[Taken] = []
        behind: list[int] = []
        for at in waiting:
            placed = self.earliest(at, now, [*self.busy(now), *booked])
            if placed.start == now:
                self.started[at] = placed
                self.overtaken.update(behind)
            else:
                behind.append(at)
                booked = booked or [self.taken_by(at, placed)]
            if any(self.overtaken[other] >= limit for other in behind):
                return

    def los(self, now: float, waiting: list[int]) -> None:
        """The set that fills most is chosen by counts of nodes; a job of it that finds none is left out."""
        while waiting and (placed := self.earliest(waiting[0], now, self.busy(now))).start == now:
            self.started[waiting[0]] = placed
            waiting = waiting[1:]
        if not waiting:
            return
        head, *others = waiting
        kept = self.taken_by(head, placed)
        ours = {node for node, pools in enumerate(self.case.nodes) if pools & self.domain_of(head)}
        most = self.most_filled(now, others, [*self.busy(now), kept])
        begun: list[int] = []
        left_out: list[int] = []
        while chosen := self.best_by_count(now, [at for at in others if at not in left_out], kept, ours):
            for at in chosen:
                if found := self.place_now(at, now, [*self.busy(now), kept]):
                    self.started[at] = found
                    begun.append(at)
                else:
                    left_out.append(at)
            others = [at for at in others if at not in begun]
        idle = [at for at in others if self.place_now(at, now, [*self.busy(now), kept])]
        self.packings.append(Packing(self.size_of(begun), most, left_out, idle))

    def domain_of(self, at: int) -> set[int]:
        return next(domain for domain in self.domains() if domain.issuperset(self.ways[at]))

    def size_of(self, jobs: Iterable[int]) -> int:
        return sum(self.case.jobs[at].size for at in jobs)

    def place_now(self, at: int, now: float, taken: list[Taken]) -> Placed | None:
        for pool in self.ways[at]:
            if nodes := self.place(at, now, taken, pool):
                return Placed(now, pool, nodes)
        return None

    def best_by_count(self, now: float, jobs: list[int], kept: Taken, ours: set[int]) -> list[int]:
        """The largest set for which all nodes of the domain together are enough, now and when the head is to
        start; of equally large ones that with the earliest jobs."""
        begin = kept[0]
        free = len(ours) - sum(len(ours.intersection(nodes)) for _, _, nodes in self.busy(now))
        later = [nodes for _, until, nodes in self.busy(now) if until > begin] + [kept[2]]
        extra = len(ours) - sum(len(ours.intersection(nodes)) for nodes in later)
        jobs = [at for at in jobs if self.case.jobs[at].size <= free]
        for chosen in self.by_size(jobs, free):
            if self.size_of(at for at in chosen if now + self.case.jobs[at].limit > begin) <= extra:
                return chosen
        return []

    def most_filled(self, now: float, jobs: list[int], taken: list[Taken]) -> int:
        """Nodes of the largest set of jobs that find nodes of their pools one after the other."""
        jobs = [at for at in jobs if self.place_now(at, now, taken)]
        for chosen in self.by_size(jobs, len(self.case.nodes)):
            beside = taken
            for at in chosen:
                if not (found := self.place_now(at, now, beside)):
                    break
                beside = [*beside, self.taken_by(at, found)]
            else:
                return self.size_of(chosen)
        return 0

    def by_size(self, jobs: list[int], most: int) -> list[list[int]]:
        """All sets of jobs that have at most so many nodes, the largest first, then those with the earliest
        jobs."""
        sets: list[tuple[int, ...]] = [()]
        for place in range(len(jobs)):
            sets += [
                (*chosen, place) for chosen in sets
                if self.size_of(jobs[at] for at in (*chosen, place)) <= most
            ]  # fmt: skip
        sets.sort(key=lambda chosen: (-self.size_of(jobs[at] for at in chosen), chosen))
        return [[jobs[at] for at in chosen] for chosen in sets]


# ---------------------------------------------------------------------- the same in headway


def cluster_of(case: Case, processors: int = 1) -> ClusterDescription:
    """``processors``: of each node."""
    bounds = [PoolBounds(max_walltime=limits.time, max_nodes=limits.nodes) for limits in case.limits]
    return ClusterDescription(
        "overlapping",
        tuple(
            PoolDescription(f"p{at}", priority_tier=tier, bounds=bounds[at] if bounds else None)
            for at, tier in enumerate(case.tiers)
        ),
        tuple(
            NodeDescription(f"n{at}", processors, pools=tuple(f"p{pool}" for pool in sorted(pools)))
            for at, pools in enumerate(case.nodes)
        ),
    )  # fmt: skip


def emulated(case: Case, *plugins: object) -> Run:
    jobs = [
        traced(
            str(at), job.size, job.limit, job.comes, runtime=job.runtime, pool=f"p{job.pools[0]}",
            further_pools=tuple(f"p{pool}" for pool in job.pools[1:]),
        )
        for at, job in enumerate(case.jobs)
    ]  # fmt: skip
    run = emulate(cluster_of(case), jobs, *plugins, FirstFit(), max_rounds=1000)
    assert run.problems == []
    return run


def placed(case: Case, *plugins: object) -> dict[int, Placed]:
    """Where headway starts each job, and when."""
    found = {}
    for name, result in emulated(case, *plugins).results.items():
        if result.start_time is not None:
            pool, nodes = result.pool or result.job.pool, [int(node[1:]) for node, _ in result.placement]
            found[int(name)] = Placed(result.start_time, int(pool[1:]), sorted(nodes))
    return found
