"""The packing problems: exact against exhaustive search and against a solver, ties, bounds."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from headway_plugins.policies.packing import basic, pack


def exhaustive(sizes, crossed, free, freezes):
    """The best subset by looking at all of them: greatest sum, then the earliest positions."""
    best, total = [], 0
    for count in range(1, len(sizes) + 1):
        for chosen in combinations(range(len(sizes)), count):
            found = sum(sizes[at] for at in chosen)
            if found > free or not respected(chosen, sizes, crossed, freezes):
                continue
            if found > total or (found == total and list(chosen) < best):
                best, total = list(chosen), found
    return best


def respected(chosen, sizes, crossed, freezes):
    return all(sum(sizes[at] for at in chosen if crossed[at] > k) <= room for k, room in enumerate(freezes))


def instance(rng, freezes, jobs=9, largest=12):
    count = int(rng.integers(0, jobs + 1))
    sizes = rng.integers(1, largest + 1, count).tolist()
    crossed = rng.integers(0, freezes + 1, count).tolist()
    free = int(rng.integers(0, 3 * largest))
    rooms = rng.integers(0, 2 * largest, freezes).tolist()
    return sizes, crossed, free, rooms


@pytest.mark.parametrize("freezes", [0, 1, 2, 3])
def test_it_finds_what_exhaustive_search_finds_and_of_equal_sums_the_earliest_jobs(freezes):
    rng = np.random.default_rng(freezes)
    for _ in range(1500):
        sizes, crossed, free, rooms = instance(rng, freezes)
        assert pack(sizes, crossed, free, rooms) == exhaustive(sizes, crossed, free, rooms), (
            sizes, crossed, free, rooms,
        )  # fmt: skip


def test_small_sizes_make_many_ties():
    rng = np.random.default_rng(7)
    for _ in range(1000):
        sizes, crossed, free, rooms = instance(rng, int(rng.integers(0, 4)), jobs=10, largest=3)
        assert pack(sizes, crossed, free, rooms) == exhaustive(sizes, crossed, free, rooms)


@pytest.mark.parametrize("freezes", [0, 1, 2])
def test_the_sum_is_the_one_that_a_solver_finds_for_fifty_jobs(freezes):
    cp_model = pytest.importorskip(
        "ortools.sat.python.cp_model", reason="needs OR-tools (pip install ortools)"
    )
    rng = np.random.default_rng(freezes)
    for _ in range(15):
        sizes = rng.integers(1, 300, 50).tolist()
        crossed = rng.integers(0, freezes + 1, 50).tolist()
        free = int(rng.integers(100, 3000))
        rooms = rng.integers(0, 1500, freezes).tolist()
        model = cp_model.CpModel()
        taken = [model.new_bool_var(str(at)) for at in range(50)]
        total = sum(size * job for size, job in zip(sizes, taken, strict=True))
        model.add(total <= free)
        for k, room in enumerate(rooms):
            model.add(sum(sizes[at] * taken[at] for at in range(50) if crossed[at] > k) <= room)
        model.maximize(total)
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        assert solver.solve(model) == cp_model.OPTIMAL
        chosen = pack(sizes, crossed, free, rooms)
        assert sum(sizes[at] for at in chosen) == solver.objective_value
        assert respected(chosen, sizes, crossed, rooms)


def test_basic_is_the_problem_without_freezes():
    assert basic([7, 4, 6], 10) == [1, 2]
    assert basic([7, 4, 6], 9) == [0]
    assert basic([], 10) == basic([5], 0) == basic([11], 10) == []


def test_of_equal_sums_the_first_job_wins_even_if_it_fills_more_of_the_freeze():
    assert basic([5, 2, 3, 5], 5) == [0]
    assert basic([2, 5, 3], 5) == [0, 2]
    assert pack([3, 3], [1, 0], 3, [3]) == [0]


def test_a_job_past_a_freeze_needs_room_there_and_one_that_ends_before_does_not():
    assert pack([4, 3, 1], [1, 0, 1], 4, [2]) == [1, 2]
    assert pack([4, 3, 1, 2], [1, 0, 1, 0], 4, [0]) == [1]
    assert pack([4], [1], 10, [-3]) == []


def test_a_job_past_a_later_freeze_counts_in_the_earlier_ones():
    assert pack([2, 2], [2, 1], 4, [3, 4]) == [0]
    assert pack([2, 2], [2, 1], 4, [4, 1]) == [1]
