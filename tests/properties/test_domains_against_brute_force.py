"""Random pools over shared nodes against schedules that are worked out by trying everything.

Nodes have one processor each, and a job takes the first free ones of the pool that it runs in. Plans are
made anew at each instant; what is free is found node by node.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest
from building import emulate, traced
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.hookspecs import hookimpl
from headway.model import ClusterDescription, NodeDescription, PoolDescription
from headway.state import State
from headway_plugins.placement.first_fit import FirstFit
from headway_plugins.policies.conservative import Conservative
from headway_plugins.policies.easy import Easy, EasyOptions
from headway_plugins.policies.fcfs import Fcfs
from headway_plugins.policies.k_reserved import KReserved, KReservedOptions
from headway_plugins.policies.los import Los, PackingOptions

#: From when to when which nodes are somebody's.
Taken = tuple[float, float, list[int]]


class Asked(NamedTuple):
    """One job: how many nodes, its limit and its runtime, when it comes, and its pools."""

    size: int
    limit: float
    runtime: float
    comes: float
    pools: tuple[int, ...]


class Case(NamedTuple):
    #: For each node the pools that it is in.
    nodes: tuple[frozenset[int], ...]
    tiers: tuple[int, ...]
    jobs: tuple[Asked, ...]


@st.composite
def cases(draw: st.DrawFn) -> Case:
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


class Reference:
    """The same, slowly."""

    def __init__(self, case: Case, policy: str) -> None:
        self.case, self.policy = case, policy
        sizes = [sum(pool in node for node in case.nodes) for pool in range(len(case.tiers))]
        #: Of each job its pools that could hold it.
        self.ways = [tuple(pool for pool in job.pools if job.size <= sizes[pool]) for job in case.jobs]
        tier = [max((case.tiers[pool] for pool in ways), default=0) for ways in self.ways]
        self.order = sorted(range(len(case.jobs)), key=lambda at: (-tier[at], case.jobs[at].comes, at))
        #: Job -> its start and nodes.
        self.started: dict[int, tuple[float, list[int]]] = {}

    def run(self) -> dict[int, float]:
        moments = {job.comes for job in self.case.jobs}
        while moments:
            now = min(moments)
            moments.discard(now)
            before = set(self.started)
            for domain in self.domains():
                waiting = [
                    at for at in self.order if self.waits(at, now) and domain.issuperset(self.ways[at])
                ]
                getattr(self, self.policy)(now, waiting)
            moments |= {now + self.case.jobs[at].runtime for at in set(self.started) - before}
        return {at: start for at, (start, _) in self.started.items()}

    def waits(self, at: int, now: float) -> bool:
        return at not in self.started and self.case.jobs[at].comes <= now and bool(self.ways[at])

    def domains(self) -> list[set[int]]:
        found: list[set[int]] = [{pool} for pool in range(len(self.case.tiers))]
        for links in self.case.nodes:
            touched = [group for group in found if group & links]
            found = [group for group in found if not group & links] + [set().union(*touched)]
        return sorted(found, key=min)

    def busy(self, now: float) -> list[Taken]:
        """Who is on which nodes until when, as far as is expected."""
        jobs = self.case.jobs
        return [
            (start, start + jobs[at].limit, nodes)
            for at, (start, nodes) in self.started.items() if start + jobs[at].runtime > now
        ]  # fmt: skip

    def place(self, at: int, start: float, taken: list[Taken], pool: int) -> list[int]:
        """The first nodes that are free for the job throughout; [] if they are too few."""
        end = start + self.case.jobs[at].limit
        gone = {node for begin, until, nodes in taken if begin < end and start < until for node in nodes}
        free = [node for node, pools in enumerate(self.case.nodes) if pool in pools and node not in gone]
        size = self.case.jobs[at].size
        return free[:size] if len(free) >= size else []

    def earliest(self, at: int, now: float, taken: list[Taken]) -> tuple[float, list[int], int]:
        """When, where and in which pool the job can be first."""
        for moment in sorted({now, *(until for _, until, _ in taken if until > now)}):
            for pool in self.ways[at]:
                if nodes := self.place(at, moment, taken, pool):
                    return moment, nodes, pool
        raise AssertionError("each could run on an empty machine")

    def fcfs(self, now: float, waiting: list[int]) -> None:
        for at in waiting:
            start, nodes, _ = self.earliest(at, now, self.busy(now))
            if start > now:
                return
            self.started[at] = now, nodes

    def easy(self, now: float, waiting: list[int]) -> None:
        self.serve(now, waiting, 1)

    def easy_per_pool(self, now: float, waiting: list[int]) -> None:
        self.serve(now, waiting, 1, per_pool=True)

    def conservative(self, now: float, waiting: list[int]) -> None:
        self.serve(now, waiting, len(waiting))

    def serve(self, now: float, waiting: list[int], most: int, *, per_pool: bool = False) -> None:
        """Each starts if it can, else it is booked until so many are, or if it is the first of its pool."""
        booked: list[Taken] = []
        pools: set[int] = set()
        for at in waiting:
            start, nodes, pool = self.earliest(at, now, [*self.busy(now), *booked])
            if start == now:
                self.started[at] = now, nodes
            elif len(booked) < most or (per_pool and self.ways[at][0] not in pools):
                booked.append((start, start + self.case.jobs[at].limit, nodes))
                pools.add(pool)


def cluster_of(case: Case, processors: int = 1) -> ClusterDescription:
    """``processors``: of each node."""
    return ClusterDescription(
        "overlapping",
        tuple(PoolDescription(f"p{at}", priority_tier=tier) for at, tier in enumerate(case.tiers)),
        tuple(
            NodeDescription(f"n{at}", processors, pools=tuple(f"p{pool}" for pool in sorted(pools)))
            for at, pools in enumerate(case.nodes)
        ),
    )  # fmt: skip


def starts(case: Case, *plugins: object) -> dict[int, float]:
    jobs = [
        traced(
            str(at), job.size, job.limit, job.comes, runtime=job.runtime, pool=f"p{job.pools[0]}",
            further_pools=tuple(f"p{pool}" for pool in job.pools[1:]),
        )
        for at, job in enumerate(case.jobs)
    ]  # fmt: skip
    run = emulate(cluster_of(case), jobs, *plugins, FirstFit())
    assert run.problems == []
    return {int(name): r.start_time for name, r in run.results.items() if r.start_time is not None}


def one_domain_a_job(case: Case) -> bool:
    """Whether each job's pools are all of one domain."""
    reference = Reference(case, "fcfs")
    return all(any(group.issuperset(ways) for group in reference.domains()) for ways in reference.ways)


POLICIES = {
    "fcfs": Fcfs,
    "easy": Easy,
    "easy_per_pool": lambda: Easy(EasyOptions(bookings_per_pool=True)),
    "conservative": Conservative,
}


@pytest.mark.parametrize("policy", POLICIES)
@given(case=cases().filter(one_domain_a_job))
@settings(max_examples=60, deadline=None)
def test_each_start_is_that_of_the_reference(policy, case):
    assert starts(case, POLICIES[policy]()) == Reference(case, policy).run()


class Promises:
    """Notes the first start that is kept for each job."""

    def __init__(self) -> None:
        self.first: dict[str, float] = {}

    @hookimpl
    def control(self, state: State) -> None:
        for domain in state.domains.values():
            for booking in domain.view.bookings if domain.view is not None else ():
                self.first.setdefault(booking.job.id, booking.start)


#: With a booking for each pool, a job before it in the queue may still put off the first of another pool; and
#: delayed-los lets a head be skipped.
PROMISING = {
    "easy": Easy,
    "conservative": Conservative,
    "k-reserved": lambda: KReserved(KReservedOptions()),
    "los": lambda: Los(PackingOptions()),
}


@pytest.mark.parametrize("policy", PROMISING)
@given(case=cases().filter(one_domain_a_job))
@settings(max_examples=40, deadline=None)
def test_where_estimates_hold_no_later_job_of_any_pool_breaks_a_promise(policy, case):
    exact = case._replace(
        tiers=(0,) * len(case.tiers), jobs=tuple(job._replace(runtime=job.limit) for job in case.jobs)
    )
    promises = Promises()
    started = starts(exact, PROMISING[policy](), promises)
    assert {name: started[int(name)] <= first for name, first in promises.first.items()} == dict.fromkeys(
        promises.first, True
    )
