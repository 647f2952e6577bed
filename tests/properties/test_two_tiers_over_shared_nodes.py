"""Two tiers where pools share nodes: no job leaves its pool, and what a head is kept is of its pool."""

from __future__ import annotations

from typing import Any

import pytest
from building import InItsPool, Run, emulate, traced
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pools_reference import CROWDED, SOME, Asked, Case, Placed, Reference, Taken, cases, cluster_of

from headway.view import View
from headway.workload.sharing import Sharing, with_cpu_use
from headway_plugins.consolidation.manager import Consolidation, ConsolidationOptions
from headway_plugins.consolidation.slots import Slots

VARIANTS = ("keasy", "reasy", "measy")
_INF = float("inf")


def run(
    case: Case, variant: str, uses: list[float], *more: Any, processors: int = 1, kind: Any = Consolidation
) -> Run:
    """``uses``: of a processor, one after the other for each job."""
    sharing = Sharing(0.0, 1.0, 2.0)
    jobs = [
        traced(
            str(at), job.size * processors - at % processors, job.limit, job.comes, runtime=job.runtime,
            pool=f"p{job.pools[0]}", further_pools=tuple(f"p{pool}" for pool in job.pools[1:]),
            attributes={"cpu": uses[at % len(uses)]},
        )
        for at, job in enumerate(case.jobs)
    ]  # fmt: skip
    plugin = kind(ConsolidationOptions(variant=variant, loss=0, efficiency=1, migration_cost=2))
    found = emulate(
        cluster_of(case, processors), with_cpu_use(jobs, sharing, 0), plugin, *more, sharing=sharing
    )
    assert found.problems == []
    return found


class FrontOnly(Consolidation):
    """Starts no job in the background."""

    def _background(self, view: View, slots: Slots) -> None: ...


shares = st.lists(st.sampled_from([0.3, 0.5, 0.97, 1.0]), min_size=1, max_size=5)


@pytest.mark.parametrize("variant", VARIANTS)
@given(case=cases(), uses=shares, processors=st.sampled_from([1, 2, 3]))
@settings(max_examples=40, deadline=None)
def test_each_job_runs_in_a_pool_of_its_own_in_either_tier(variant, case, uses, processors):
    found = run(case, variant, uses, InItsPool(), processors=processors)
    could = {str(at) for at, ways in enumerate(Reference(case, "fcfs").ways) if ways}
    assert could <= {name for name, state in found.states.items() if state == "completed"}


@pytest.mark.parametrize("variant", VARIANTS)
@given(case=cases(), uses=shares, processors=st.sampled_from([1, 2]))
@settings(max_examples=40, deadline=None)
def test_pools_of_the_same_nodes_are_one_pool(variant, case, uses, processors):
    count = len(case.tiers)
    assume(count > 1)
    flat = case._replace(tiers=(0,) * count, nodes=(frozenset(range(count)),) * len(case.nodes))
    single = Case(
        (frozenset({0}),) * len(case.nodes), (0,), tuple(job._replace(pools=(0,)) for job in case.jobs)
    )
    several, one = (run(each, variant, uses, processors=processors) for each in (flat, single))
    assert [(r.start_time, r.end_time, r.placement) for r in several.results.values()] == [
        (r.start_time, r.end_time, r.placement) for r in one.results.values()
    ]


class Tiers(Reference):
    """As the manager if nothing is in the background: EASY that counts processors of its head's pool."""

    def consolidated(self, now: float, waiting: list[int]) -> None:
        busy = self.busy(now)
        while waiting and (found := self.now(waiting[0], now, busy)):
            self.started[waiting.pop(0)] = found
            busy = self.busy(now)
        if not waiting:
            return
        head, *others = waiting
        shadow, extra, nodes = self.shadow(head, now, busy)
        for at in others:
            past = now + self.case.jobs[at].limit > shadow
            if found := self.now(at, now, self.busy(now), nodes if past else set(), extra):
                self.started[at] = found
                extra -= len(nodes.intersection(found.nodes)) if past else 0

    def shadow(self, head: int, now: float, busy: list[Taken]) -> tuple[float, int, set[int]]:
        """When the first of the head's pools has enough for it, what it leaves then, and its nodes."""
        found: tuple[float, int, set[int]] = (_INF, 0, set())
        for pool in self.ways[head]:
            nodes = {node for node, pools in enumerate(self.case.nodes) if pool in pools}
            for moment in sorted({now, *(until for _, until, _ in busy)}):
                taken = {node for _, until, theirs in busy if until > moment for node in theirs}
                left = len(nodes - taken) - self.case.jobs[head].size
                if left >= 0 and moment < found[0]:
                    found = moment, left, nodes
        return found

    def now(
        self, at: int, now: float, busy: list[Taken], spared: set[int] | None = None, most: int = 0
    ) -> Placed | None:
        """On nodes of the first pool where the job has some now, at most so many of those that are spared."""
        size, spared = self.case.jobs[at].size, spared or set()
        for pool in self.ways[at]:
            free = self.free(busy, pool)
            for order in (free, sorted(free, key=lambda node: (node in spared, node))):
                chosen = order[:size]
                if len(chosen) == size and len(spared.intersection(chosen)) <= most:
                    return Placed(now, pool, chosen)
        return None

    def free(self, busy: list[Taken], pool: int) -> list[int]:
        taken = {node for _, _, nodes in busy for node in nodes}
        return [node for node, pools in enumerate(self.case.nodes) if pool in pools and node not in taken]


@pytest.mark.parametrize("variant", VARIANTS)
@given(case=st.one_of(SOME, CROWDED))
@settings(max_examples=120, deadline=None)
def test_where_no_job_is_behind_each_start_is_that_of_the_reference(variant, case):
    found = run(case, variant, [1.0], kind=FrontOnly)
    started = {int(name): start for name, start in found.starts.items() if start is not None}
    assert started == {at: job.start for at, job in Tiers(case, "consolidated").run().items()}


def asked(size: int, limit: float, comes: float, *pools: int) -> Asked:
    return Asked(size, limit, limit, comes, pools)


#: Nodes of pool 0 alone, of both, and of pool 1 alone.
NODES = (frozenset({0}), frozenset({0, 1}), frozenset({1}))


def table(*jobs: Asked, nodes: tuple[frozenset[int], ...] = NODES) -> dict[str, float | None]:
    return run(Case(nodes, (0, 0), jobs), "reasy", [1.0], kind=FrontOnly).starts


def test_nodes_of_another_pool_do_not_help_the_head():
    # Job 1 needs both nodes of pool 0, one of which ends at 10, and not the one of pool 1 that ends at 4.
    starts = table(asked(1, 10, 0, 0), asked(1, 4, 0, 1), asked(2, 5, 1, 0), asked(1, 8, 1, 1))
    assert starts == {"0": 0, "1": 0, "2": 10, "3": 1}


def test_a_job_of_another_pool_passes_the_head_beside_its_nodes_for_as_long_as_it_likes():
    # Of pool 1 two nodes are idle; job 2 gets the one that the head cannot have.
    jobs = (asked(1, 10, 0, 0), asked(2, 5, 1, 0), asked(1, 100, 1, 1))
    found = run(Case(NODES, (0, 0), jobs), "reasy", [1.0], kind=FrontOnly)
    assert [(r.start_time, r.placement) for r in found.results.values()] == [
        (0, (("n0", 1),)), (10, (("n0", 1), ("n1", 1))), (1, (("n2", 1),)),
    ]  # fmt: skip


def test_and_waits_where_it_would_need_them():
    starts = table(asked(1, 10, 0, 0), asked(2, 5, 1, 0), asked(2, 100, 1, 1))
    assert starts == {"0": 0, "1": 10, "2": 15}


def test_a_head_of_several_pools_is_kept_the_one_where_it_can_be_first():
    # Pool 0 has two nodes at 10, pool 1 at 4; what ends by then may have pool 0's.
    jobs = (
        asked(1, 10, 0, 0), asked(2, 4, 0, 1), asked(2, 5, 1, 0, 1), asked(1, 50, 2, 1),
    )  # fmt: skip
    starts = table(*jobs)
    assert (starts["2"], starts["3"]) == (4, 9)
