"""Plans over sites with a store each."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from data_batches import random_plans, random_tables
from hypothesis import given, settings
from hypothesis import strategies as st

from headway_plugins.data.evaluation import evaluate
from headway_plugins.data.population import Fitness
from headway_plugins.data.site_planner import (
    NEVER,
    Planning,
    SitePlan,
    Slot,
    Snapshot,
    Waiting,
    dispatch,
    plan_sites,
)
from headway_plugins.draws import Draws

SEEDS = st.integers(0, 10**9)
QUICK = Planning(evaluations=400, children=20, parents=5)
GREEDY = Planning(evaluations=0)
TWO = Slot("a"), Slot("b")


def draws(seed=1):
    return Draws(np.random.default_rng(seed))


def job(name, site="a", datasets="", runtime=10.0, **more):
    return Waiting(name, site, tuple(datasets), runtime, **more)


def snapshot(*jobs, slots=TWO, there=None, travel=0.0):
    """``there``: (dataset, site) -> when; 100 s otherwise."""
    known = there or {}
    return Snapshot(jobs, slots, lambda name, site: known.get((name, site), 100.0), lambda one, two: travel)


# ---------------------------------------------------------------------- the mode of the evaluation


def test_an_object_comes_to_the_site_of_a_node_whatever_the_turns_are():
    tables = replace(
        random_tables(1, state=False),
        jobs=[(0,), (0, 1), ()], compute=[[10.0, 10.0]] * 3, direct=[[0.0, 50.0], [30.0, 5.0]],
        transfer=[[0.0]] * 2, hop=[], free=[20.0, 0.0],
    )  # fmt: skip
    end, turns = evaluate(tables, "staged", [0, 1, 2], [0, 0, 1])
    assert [(turn.turn, turn.begins, turn.ends) for turn in turns] == [(20, 20, 30), (30, 30, 40), (0, 0, 10)]
    assert end == 40
    assert evaluate(tables, "staged", [1, 2, 0], [1, 1, 1])[0] == 80


@given(seed=SEEDS, whole=st.booleans(), alone=st.booleans())
def test_the_evaluation_over_arrays_gives_the_same_bits(seed, whole, alone):
    tables = replace(random_tables(seed, whole=whole), jobs_alone=alone)
    plans = random_plans(tables, seed, 12, replicas=False)
    fitness = Fitness(tables, "staged")
    assert fitness.at_once(plans).tolist() == fitness.one_by_one(plans).tolist()


# ---------------------------------------------------------------------- dispatch


def plainly(free, ready, runtimes):
    """The same, second by second, of whole seconds."""
    free, ends, left, now = list(free), [0.0] * len(ready), list(range(len(ready))), 0
    while left:
        for slot in range(len(free)):
            able = [one for one in left if ready[one] <= now]
            if free[slot] <= now and able:
                left.remove(able[0])
                ends[able[0]] = free[slot] = now + runtimes[able[0]]
        now += 1
    return ends


ROWS = st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9)), min_size=1, max_size=8)


@given(rows=ROWS, free=st.lists(st.integers(0, 9), min_size=1, max_size=3))
def test_each_slot_takes_the_first_job_that_is_ready(rows, free):
    ready, runtimes = [row[0] for row in rows], [row[1] for row in rows]
    assert dispatch(free, ready, runtimes) == plainly(free, ready, runtimes)


# ---------------------------------------------------------------------- plans


def test_nothing_waits():
    assert plan_sites(snapshot(), QUICK, draws()) == SitePlan()


def test_a_job_goes_to_its_data_or_its_data_to_it():
    there = {("d", "b"): 0.0}
    assert plan_sites(snapshot(job("1", "a", "d"), there=there), GREEDY, draws()).site == {"1": "b"}
    busy = (Slot("a"), Slot("b", 500.0))
    found = plan_sites(snapshot(job("1", "a", "d"), slots=busy, there=there), GREEDY, draws())
    assert found.site == {"1": "a"} and found.makespan == 110.0


def test_a_job_stays_where_it_is_as_good():
    jobs = [job(str(at), "ab"[at % 2]) for at in range(4)]
    for planning in (GREEDY, QUICK):
        assert plan_sites(snapshot(*jobs), planning, draws()).site == {one.id: one.site for one in jobs}


def test_a_job_does_not_go_where_it_cannot():
    busy = (Slot("a", 500.0), Slot("b"))
    for planning in (GREEDY, QUICK):
        found = plan_sites(snapshot(job("1", never=frozenset("b")), slots=busy), planning, draws())
        assert found.site == {"1": "a"} and found.makespan == 510.0 < NEVER


def test_the_way_of_a_job_counts():
    busy = (Slot("a", 50.0), Slot("b"))
    assert plan_sites(snapshot(job("1"), slots=busy, travel=60), GREEDY, draws()).site == {"1": "a"}
    assert plan_sites(snapshot(job("1"), slots=busy, travel=40), GREEDY, draws()).makespan == 50.0


def random_snapshot(seed, count=7):
    rng = np.random.default_rng(seed)
    there = {(name, site): float(rng.choice([0, 5, 60, 300])) for name in "def" for site in "abc"}
    jobs = [
        job(str(at), "abc"[int(rng.integers(3))], "".join(x for x in "def" if rng.random() < 0.4),
            float(rng.integers(1, 200)), overtaken=int(rng.integers(3)))
        for at in range(count)
    ]  # fmt: skip
    slots = [Slot("aabbc"[at], float(rng.integers(0, 100))) for at in range(5)]
    return snapshot(*jobs, slots=slots, there=there, travel=2.0)


@given(seed=SEEDS)
@settings(max_examples=20, deadline=None)
def test_a_plan_is_never_worse_than_the_last_one_nor_than_greedy(seed):
    given_ = random_snapshot(seed)
    greedy = plan_sites(given_, GREEDY, draws(seed))
    found = plan_sites(given_, QUICK, draws(seed))
    again = plan_sites(given_, GREEDY, draws(seed + 1), found)
    assert again.makespan <= found.makespan + 1e-6 <= greedy.makespan + 2e-6
    assert again.site == found.site
    assert sorted(found.order) == sorted(one.id for one in given_.jobs)
    assert found == plan_sites(given_, QUICK, draws(seed))


def test_a_small_batch_is_planned_as_well_as_it_can_be():
    """Among all orders and sites of four jobs."""
    for seed in range(3):
        given_ = random_snapshot(seed, count=4)
        found = plan_sites(given_, replace(QUICK, evaluations=3000), draws(seed))
        best = float("inf")
        for code in range(3**4):
            sites = ["abc"[code // 3**at % 3] for at in range(4)]
            for order in permutations(range(4)):
                end = 0.0
                for site in "abc":
                    here = [one for one in order if sites[one] == site]
                    jobs = [given_.jobs[one] for one in here]
                    ready = [
                        max(2.0 * (one.site != site), *(given_.arrival(x, site) for x in one.datasets), 0.0)
                        for one in jobs
                    ]  # fmt: skip
                    free = [slot.free for slot in given_.slots if slot.site == site]
                    end = max([end, *dispatch(free, ready, [one.runtime for one in jobs])])
                best = min(best, end)
        assert found.makespan == pytest.approx(best)


def test_new_jobs_are_behind_those_of_the_last_plan():
    jobs = [job(str(at), "a", "d", 100) for at in range(4)]
    last = SitePlan(["3", "1", "gone", "0"], {"3": "b", "1": "a", "gone": "a", "0": "b"}, 0.0)
    there = {("d", "a"): 0.0, ("d", "b"): 0.0}
    found = plan_sites(snapshot(*jobs, there=there), GREEDY, draws(), last)
    assert found.order == ["3", "1", "0", "2"]
    assert found.site == {"3": "b", "1": "a", "0": "b", "2": "a"}


@given(seed=SEEDS)
@settings(max_examples=20, deadline=None)
def test_without_overtakes_jobs_go_in_the_order_of_the_queue(seed):
    given_ = random_snapshot(seed)
    found = plan_sites(given_, replace(QUICK, max_overtakes=0), draws(seed))
    assert found.order == [one.id for one in given_.jobs]
