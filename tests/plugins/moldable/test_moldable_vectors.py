"""The paper's Table 1, and batches worked out by hand and by computing: sizes, guesses, whole schedules."""

import pytest

from headway_plugins.moldable import dual as guesses
from headway_plugins.moldable.algorithms import (
    largest_first,
    least_idle,
    least_idle_always,
    plain_ltf,
    with_width,
)
from headway_plugins.moldable.dual import attempt, dual
from headway_plugins.moldable.schedules import Placed
from headway_plugins.moldable.tasks import Task, level, lower_bound, spread, superstep_time

BATCHES = {
    "B1": (4, ((4, 3), (2, 5), (3, 2), (1, 4))),
    "B2": (4, ((7, 1),)),
    "B3": (4, ((4, 2), (4, 2), (1, 1), (1, 1))),
    "B4": (8, ((8, 4), (5, 3), (3, 6), (2, 7), (6, 2), (1, 9))),
    "B5": (4, ((3, 4), (3, 4))),
    "B6": (2, ((1, 10), (1, 6), (1, 4))),
    "B7": (8, ((16, 3), (1, 2))),
    "B8": (
        16,
        (
            (10, 43), (6, 21), (1, 53), (14, 10), (2, 35), (5, 24), (15, 58), (6, 42), (6, 23), (8, 47),
            (10, 18), (15, 34), (15, 31), (8, 55), (8, 49), (2, 38), (16, 25), (13, 27), (10, 20), (4, 43),
            (9, 40), (10, 56), (15, 47), (5, 45), (7, 34),
        ),
    ),
}  # fmt: skip


def batch(name):
    processors, tasks = BATCHES[name]
    return tuple(Task(*task) for task in tasks), processors


def shown(schedule):
    """``{task: (start, end, size)}``"""
    return {e.task: (e.start, e.end, e.size) for e in schedule.entries}


# ---------------------------------------------------------------------- 1: tasks


def test_1_table_1():
    task = Task(7, 1)
    sizes = (7, 6, 5, 4, 3, 2, 1)
    assert [task.time_on(size) for size in sizes] == [1, 2, 2, 2, 3, 4, 7]
    assert [size * task.time_on(size) for size in sizes] == [7, 12, 10, 8, 9, 8, 7]


@pytest.mark.parametrize(
    ("processes", "sizes"),
    [
        (7, (1, 2, 3, 4, 7)),
        (32, (1, 2, 3, 4, 5, 6, 7, 8, 11, 16, 32)),
        (33, (1, 2, 3, 4, 5, 6, 7, 9, 11, 17, 33)),
    ],
)
def test_1_interesting_allocations(processes, sizes):
    assert Task(processes, 1).sizes(1000) == sizes


def test_1_how_many_there_are():
    assert [len(Task(processes, 1).sizes(1000)) for processes in (16, 64, 100, 128)] == [7, 15, 19, 22]


def test_no_size_is_above_the_machine():
    assert Task(16, 1).sizes(8) == (1, 2, 3, 4, 6, 8)


def test_a_rigid_task_has_one_size():
    assert Task(16, 1, least=16).sizes(64) == (16,)
    assert Task(16, 1, least=16).sizes(8) == ()


def test_a_least_size_bounds_the_processes_of_a_processor():
    assert Task(16, 1, least=5).sizes(64) == (5, 6, 8, 16)


def test_a_stretch_counts_only_where_a_processor_has_several_processes():
    task = Task(4, 10, stretch=1.5)
    assert [task.time_on(size) for size in (4, 2, 1)] == [10, 30, 60]
    assert task.work(4) == 40


@pytest.mark.parametrize(
    ("guess", "size"),
    [(0.5, 7), (0.9, 7), (1, 4), (1.4, 4), (1.5, 3), (1.9, 3), (2, 2), (3.4, 2), (3.5, 1)],
)
def test_1_the_size_for_a_guess(guess, size):
    assert attempt([Task(7, 1)], 8, guess).sizes == (size,)


def test_1_supersteps():
    assert superstep_time([(4, 2), (3, 3)], [(1, 2), (0, 4)], 0.5, 1) == 12


def test_processes_are_spread_evenly():
    assert spread(7, 3) == (3, 2, 2)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((0, 1), "at least 1 process, found 0"),
        ((2, 0), "a time above 0 seconds, found 0"),
        ((2, float("inf")), "a time above 0 seconds, found inf"),
        ((2, float("nan")), "a time above 0 seconds, found nan"),
        ((2, 1, 3), "a least size of 1 to 2, found 3"),
        ((2, 1, 1, 0), "a stretch above 0, found 0"),
    ],
)
def test_what_is_no_task(arguments, said):
    with pytest.raises(ValueError, match=said):
        Task(*arguments)


@pytest.mark.parametrize("algorithm", [largest_first, least_idle, least_idle_always, dual, plain_ltf])
def test_a_rigid_task_above_the_machine_is_refused(algorithm):
    with pytest.raises(ValueError, match="task 1: expected a least size of at most 4 processors, found 5"):
        algorithm([Task(1, 1), Task(5, 1, least=5)], 4, None)


# ---------------------------------------------------------------------- 2: guesses


@pytest.mark.parametrize(
    ("processors", "tasks", "guess", "failure"),
    [
        (4, ((2, 9),), 4, guesses.NO_SIZE),
        (4, ((4, 4), (4, 4)), 2, guesses.TOO_WIDE),
        (4, ((4, 4), (1, 1)), 2, guesses.NONE_LEFT),
        (2, ((1, 4),) * 3, 3, guesses.TOO_LATE),
        (2, ((1, 2),) * 3 + ((1, 4),), 2.5, guesses.TOO_LATE),
    ],
)
def test_2_why_a_guess_fails(processors, tasks, guess, failure):
    assert attempt([Task(*task) for task in tasks], processors, guess).failure == failure


def test_2_a_guess_that_succeeds():
    found = attempt([Task(1, 4)] * 3, 2, 4)
    assert max(entry.end for entry in found.entries) == 8


# ---------------------------------------------------------------------- 3: whole batches


@pytest.mark.parametrize(
    ("name", "work", "bound"),
    [
        ("B1", 32, 8), ("B2", 7, 2), ("B3", 18, 4.5), ("B4", 100, 12.5), ("B5", 24, 6), ("B6", 20, 10),
        ("B7", 50, 6.25), ("B8", 7849, 490.5625),
    ],
)  # fmt: skip
def test_3_work_and_lower_bound(name, work, bound):
    tasks, processors = batch(name)
    assert sum(task.work(processors) for task in tasks) == work
    assert lower_bound(tasks, processors) == bound


@pytest.mark.parametrize(
    ("name", "width", "makespans"),
    [
        ("B1", 2, (12, 10, 13, 10)),
        ("B2", 4, (7, 4, 3, 2)),
        ("B3", 2, (8, 5, 8, 5)),
        ("B4", 5, (32, 18, 16, 19, 15, 19, 19, 16)),
        ("B5", 2, (12, 8, 8, 8)),
        ("B6", 1, (10,)),
        ("B7", 8, (48, 24, 18, 12, 12, 9, 9, 8)),
    ],
)
def test_3_a1_and_each_of_its_widths(name, width, makespans):
    tasks, processors = batch(name)
    each = [with_width(tasks, processors, limit).makespan for limit in range(1, processors + 1)]
    assert each[: len(makespans)] == list(makespans)
    best = largest_first(tasks, processors)
    assert (best.width, best.makespan) == (width, min(makespans))
    assert best.entries == with_width(tasks, processors, width).entries


@pytest.mark.parametrize(
    ("name", "algorithm", "entries"),
    [
        ("B1", largest_first, {0: (0, 6, 2), 1: (0, 5, 2), 2: (5, 9, 2), 3: (6, 10, 1)}),
        ("B1", least_idle, {0: (0, 3, 4), 1: (3, 8, 2), 2: (3, 7, 2), 3: (7, 11, 1)}),
        ("B1", least_idle_always, {0: (0, 3, 4), 2: (3, 5, 3), 3: (3, 7, 1), 1: (5, 10, 2)}),
        (
            "B4", least_idle,
            {0: (0, 4, 8), 2: (4, 10, 3), 1: (4, 10, 3), 4: (4, 10, 2), 3: (10, 17, 2), 5: (10, 19, 1)},
        ),
        (
            "B4", least_idle_always,
            {0: (0, 4, 8), 4: (4, 6, 6), 1: (6, 9, 5), 3: (4, 11, 2), 2: (9, 15, 3), 5: (6, 15, 1)},
        ),
        ("B6", least_idle_always, {2: (0, 4, 1), 1: (0, 6, 1), 0: (4, 14, 1)}),
    ],
)  # fmt: skip
def test_3_who_runs_where_and_when(name, algorithm, entries):
    tasks, processors = batch(name)
    assert shown(algorithm(tasks, processors)) == entries


@pytest.mark.parametrize(
    ("name", "a2", "a3"),
    [
        ("B1", 11, 10), ("B2", 2, 2), ("B3", 5, 5), ("B4", 19, 15), ("B5", 8, 8), ("B6", 10, 14),
        ("B7", 8, 8), ("B8", 518, 516),
    ],
)  # fmt: skip
def test_3_least_idle_time(name, a2, a3):
    tasks, processors = batch(name)
    assert least_idle(tasks, processors).makespan == a2
    assert least_idle_always(tasks, processors).makespan == a3


@pytest.mark.parametrize(
    ("name", "makespan", "guess", "sizes"),
    [
        ("B1", 10, 5, (2, 1, 1, 1)),
        ("B2", 2, 1, (4,)),
        ("B3", 8, 4, (1, 1, 1, 1)),
        ("B4", 16, 8, (2, 1, 2, 1, 1, 1)),
        ("B5", 8, 4, (2, 2)),
        ("B6", 10, 5, (1, 1, 1)),
        ("B7", 9, 4.5, (6, 1)),
    ],
)
def test_3_dual_approximation(name, makespan, guess, sizes):
    tasks, processors = batch(name)
    found = dual(tasks, processors)
    assert found.makespan == makespan
    assert found.sizes == sizes
    assert found.guess == pytest.approx(guess, rel=1e-4)


@pytest.mark.parametrize(("guess", "makespan"), [(7.5, None), (8, 16), (10, 18), (12.5, 18)])
def test_3_guesses_about_b4(guess, makespan):
    tasks, processors = batch("B4")
    found = attempt(tasks, processors, guess)
    assert (None if found.failure else max(entry.end for entry in found.entries)) == makespan


def test_3_b8():
    tasks, processors = batch("B8")
    a1, a4 = largest_first(tasks, processors), dual(tasks, processors)
    assert (a1.makespan, a1.width) == (531, 16)
    assert plain_ltf(tasks, processors).makespan == 531
    assert a4.makespan == 560
    assert a4.sizes.count(1) == 23
    assert a4.guess == pytest.approx(280, abs=1)


# ---------------------------------------------------------------------- our frontier


def test_work_fills_processors_from_when_they_are_free():
    import numpy as np

    assert level(12, np.zeros(4)) == 3
    # 2 s of one processor, then both: 2 + (10 - 2) / 2.
    assert level(10, np.array([2.0, 0.0])) == 6
    assert level(2, np.array([5.0, 0.0])) == 2


@pytest.mark.parametrize("algorithm", [largest_first, least_idle, least_idle_always, dual, plain_ltf])
def test_nothing_starts_on_processors_that_are_taken(algorithm):
    found = algorithm([Task(2, 3)], 2, [0, 10])
    assert found.entries in ((Placed(0, 0, 6, 1),), (Placed(0, 10, 13, 2),))
    if algorithm in (largest_first, dual):
        assert found.makespan == 6


@pytest.mark.parametrize("algorithm", [largest_first, least_idle, least_idle_always, dual, plain_ltf])
def test_rigid_tasks_run_one_after_another_where_they_do_not_fit_together(algorithm):
    found = algorithm([Task(3, 2, least=3)] * 3, 4, None)
    assert found.makespan == 6
    assert found.sizes == (3, 3, 3)


@pytest.mark.parametrize("algorithm", [largest_first, least_idle, least_idle_always, dual, plain_ltf])
def test_an_empty_batch(algorithm):
    assert algorithm([], 4, None).entries == ()
    assert lower_bound([], 4) == 0
