"""Vectors: selections and both phases worked out by hand, formulas of r, transformations."""

import math

import pytest

from headway_plugins.windows.dispatch import ORDERS, dispatch
from headway_plugins.windows.selection import by_dominance, by_profits, select, subset_sum
from headway_plugins.windows.staged import Staged, fill, room, surely

A = Staged("A", ((3,), (2, 2), (1,)))
B = Staged("B", ((2, 4), (3,)))
C = Staged("C", ((5,), (1,)))
D4 = Staged("D4", ((2, 2, 2, 2),))
JOBS = (A, B, C, D4)


def ended(jobs, processors, deadline, order):
    """Names and completion times of those that end in time, in order of their ends; and the reward."""
    run = dispatch(jobs, processors, deadline, ORDERS[order])
    found = sorted((end, job.name) for job, end in zip(jobs, run.ends, strict=True) if end <= deadline)
    return {name: end for end, name in found}, run.reward


def test_1_work_and_critical_path():
    assert [job.work for job in JOBS] == [8, 9, 6, 8]
    assert [job.path for job in JOBS] == [6, 7, 6, 2]


@pytest.mark.parametrize(
    ("order", "deadline", "ends", "reward"),
    [
        ("LCPF", 8, {"B": 7}, 9),
        ("LCPF", 10, {"B": 7, "A": 10}, 17),
        ("LCPF", 13, {"B": 7, "A": 10, "C": 13}, 23),
        ("LCPF", 20, {"B": 7, "A": 10, "C": 13, "D4": 16}, 31),
        ("STCPU", 8, {"C": 6, "A": 8}, 14),
        ("STCPU", 10, {"C": 6, "A": 8}, 14),
        ("STCPU", 13, {"C": 6, "A": 8, "D4": 12}, 22),
        ("STCPU", 20, {"C": 6, "A": 8, "D4": 12, "B": 19}, 31),
    ],
)
def test_1_two_processors_all_selected(order, deadline, ends, reward):
    assert ended(JOBS, 2, deadline, order) == (ends, reward)


WAYS = {"select": select, "by_profits": by_profits, "by_dominance": by_dominance}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("share", "chosen", "reward"),
    [(1.0, (0, 1), 17), (0.9, (0, 1), 17), (0.8, (0, 3), 16), (0.7, (0, 2), 14), (0.5, (1,), 9)],
)
def test_1_selection_where_rewards_are_works(way, share, chosen, reward):
    capacity = room(share, 2, 10)
    found = WAYS[way]((8, 9, 6, 8), (8, 9, 6, 8), capacity)
    assert (found.chosen, found.reward) == (chosen, reward)
    assert subset_sum((8, 9, 6, 8), capacity) == found


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("capacity", "chosen", "reward"),
    [(5, (2, 3), 80), (7, (1, 3), 90), (9, (1, 2, 3), 120), (14, (0, 1, 2, 3), 130)],
)
def test_1_selection_with_rewards_of_their_own(way, capacity, chosen, reward):
    found = WAYS[way]((5, 4, 3, 2), (10, 40, 30, 50), capacity)
    assert (found.chosen, found.reward, found.gap) == (chosen, reward, 0)


@pytest.mark.parametrize(
    ("share", "order", "ends", "ratio"),
    [
        (1.0, "LCPF", {"B": 7, "A": 10}, 1),
        (0.9, "LCPF", {"B": 7, "A": 10}, 1),
        (1.0, "STCPU", {"A": 8, "B": 9}, 1),
        (0.9, "STCPU", {"A": 8, "B": 9}, 1),
        (0.8, "LCPF", {"A": 7, "D4": 9}, 0.941176),
        (0.8, "STCPU", {"A": 7, "D4": 9}, 0.941176),
    ],
)
def test_1_both_phases(share, order, ends, ratio):
    works = [job.work for job in JOBS]
    chosen = [JOBS[at] for at in select(works, works, room(share, 2, 10)).chosen]
    upper = select(works, works, room(1, 2, 10)).reward
    found, reward = ended(chosen, 2, 10, order)
    assert found == ends
    assert reward / upper == pytest.approx(ratio, abs=1e-6)


@pytest.mark.parametrize(("order", "count"), [("LCPF", 11), ("STCPU", 10)])
def test_1_ten_short_jobs_and_a_long_one(order, count):
    jobs = [Staged(str(n), ((1,),), 1) for n in range(10)] + [Staged("long", ((10,),), 1)]
    found, reward = ended(jobs, 2, 10, order)
    assert len(found) == reward == count
    assert ("long" in found) is (order == "LCPF")


@pytest.mark.parametrize(
    ("processors", "deadline", "path", "sure", "usual"),
    [
        (100, 4680, 4540, 0.039615, 0.807923),
        (100, 4680, 2340, 0.505, 0.901),
        (1, 4680, 4680, 1, 1),
        (2, 10, 5, 0.75, 0.95),
        (1000, 46800, 12240, 0.738723, 0.947745),
    ],
)
def test_1_r(processors, deadline, path, sure, usual):
    assert fill(processors, deadline, path, 1) == pytest.approx(sure, abs=5e-7)
    assert fill(processors, deadline, path) == pytest.approx(usual, abs=5e-7)
    assert fill(processors, deadline, path, 0) == 1


def test_1_the_theorems_bound():
    assert surely(100, 4680, 2340, 100) == pytest.approx(49.5)
    # Half of the optimum is only guaranteed from OPT = 200 on: the theorem takes one job off.
    assert surely(100, 4680, 2340, 199) < 199 / 2 <= surely(100, 4680, 2340, 200)


def test_1_the_capacity_is_the_floor_of_the_exact_product():
    assert room(0.29, 10, 10) == 29
    assert room(0.7, 2, 10) == 14
    assert room(0.87, 100, 4680) == 407160


def test_what_runs_already_and_what_others_have():
    jobs = [Staged("short", ((1.0, 5.0), (2.0,))), Staged("long", ((4.0,), (4.0,)))]
    # Of three processors one is somebody else's until 2, and short's task of 1 s runs.
    found = dispatch(jobs, 3, 20.0, ORDERS["LCPF"], record=True, started=[1, 0], free_at=[2.0])
    began = [(one.job, one.stage, one.task, one.start) for one in found.began]
    assert began == [(0, 0, 0, 0.0), (1, 0, 0, 0.0), (0, 0, 1, 1.0), (1, 1, 0, 4.0), (0, 1, 0, 6.0)]
    assert found.ends == (8.0, 8.0)
    # Drained nodes: more is taken than there is.
    assert dispatch(jobs, 1, 3.0, ORDERS["LCPF"], started=[2, 0], free_at=[9.0]).ends == (math.inf, math.inf)
