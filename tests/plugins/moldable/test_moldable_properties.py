"""What holds of every batch: no processor twice, never below the bound, A4 within twice of it, A1 no worse
than LTF."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway_plugins.moldable.algorithms import ALGORITHMS, largest_first, plain_ltf, with_width
from headway_plugins.moldable.dual import attempt, dual
from headway_plugins.moldable.tasks import Candidates, Task, lower_bound


@st.composite
def tasks(draw, rigid=False):
    processes = draw(st.integers(1, 40))
    least = draw(st.integers(1, min(processes, 12))) if rigid else 1
    return Task(
        processes, draw(st.integers(1, 60)), least, draw(st.sampled_from((1.0, 1.25))) if rigid else 1.0
    )


frontiers = st.lists(st.sampled_from((0, 0, 3, 7.5, 40)), min_size=12, max_size=12)


def check(schedule, batch, processors, free_at):
    """Each task once, at a size that it may have, for as long as it takes there; never more than is free."""
    assert sorted(entry.task for entry in schedule.entries) == list(range(len(batch)))
    for entry in schedule.entries:
        task = batch[entry.task]
        assert task.least <= entry.size <= min(task.processes, processors)
        assert entry.end == pytest.approx(entry.start + task.time_on(entry.size))
    # Who is placed first has its processors first: sizes alone decide where only counts matter.
    moments = [entry.start for entry in schedule.entries]
    for now in moments:
        used = sum(entry.size for entry in schedule.entries if entry.start <= now < entry.end)
        assert used + sum(at > now for at in free_at) <= processors


@given(st.lists(tasks(rigid=True), min_size=1, max_size=12), frontiers)
def test_4_every_schedule_is_possible_and_not_below_the_bound(batch, free_at):
    bound = lower_bound(batch, 12, free_at)
    for algorithm in ALGORITHMS.values():
        schedule = algorithm(batch, 12, free_at)
        check(schedule, batch, 12, free_at)
        assert schedule.makespan >= bound * (1 - 1e-9)


@given(st.lists(tasks(), min_size=1, max_size=30), st.integers(1, 16))
def test_4_the_guarantee_of_a4(batch, processors):
    found = dual(batch, processors)
    check(found, batch, processors, [0] * processors)
    bound = lower_bound(batch, processors)
    assert bound <= found.makespan * (1 + 1e-12)
    assert found.makespan <= 2 * bound * (1 + 1e-5)
    assert found.makespan <= 2 * found.guess * (1 + 1e-12)


@given(st.lists(tasks(), min_size=1, max_size=30), st.integers(1, 16), st.floats(1.0, 4.0))
def test_5_guesses_from_half_the_bound_on_succeed(batch, processors, factor):
    work = sum(task.work(processors) for task in batch) / processors
    longest = max(task.time_on(task.largest(processors)) for task in batch) / 2
    found = attempt(batch, processors, max(work, longest) * factor * (1 + 1e-12))
    assert not found.failure


def test_5_the_lemma_on_100_000_tasks():
    """A size above 1 at a guess w means at least size x w work."""
    rng = np.random.default_rng(1)
    for _ in range(100):
        processes, time = rng.integers(1, 129, 1000), rng.integers(1, 100, 1000)
        batch = [Task(int(p), float(t)) for p, t in zip(processes, time, strict=True)]
        candidates = Candidates(batch, 128)
        guess = rng.uniform(0.5, 1.0) * time.max()
        fast = candidates.time <= 2 * guess
        size = np.minimum.reduceat(np.where(fast, candidates.size, 1 << 30), candidates.first)
        large = (size > 1) & (size < 1 << 30)
        assert (processes * time >= size * guess)[large].all()
        assert np.array_equal(candidates.work, processes * time)


@given(st.lists(tasks(rigid=True), min_size=1, max_size=10), st.integers(12, 20), frontiers)
def test_6_a1_is_the_best_of_its_widths(batch, processors, free_at):
    """And giving up a width early changes nothing, not the tie either."""
    free_at = free_at + [0] * (processors - 12)
    every = [with_width(batch, processors, width, free_at) for width in range(1, processors + 1)]
    least = min(schedule.makespan for schedule in every)
    found = largest_first(batch, processors, free_at)
    assert found.makespan == least
    assert found.width == next(s.width for s in every if s.makespan == least)
    assert every[-1].entries == plain_ltf(batch, processors, free_at).entries


def optimum(batch, processors):
    """The least makespan over all sizes and all orders of lists; some list is optimal for given sizes."""
    best = float("inf")
    for sizes in itertools.product(*(task.sizes(processors) for task in batch)):
        for order in itertools.permutations(range(len(batch))):
            free = [0.0] * processors
            end = 0.0
            for task in order:
                free.sort()
                until = free[sizes[task] - 1] + batch[task].time_on(sizes[task])
                free[: sizes[task]] = [until] * sizes[task]
                end = max(end, until)
            best = min(best, end)
    return best


def test_8_a4_is_at_most_twice_the_optimum():
    rng = np.random.default_rng(2)
    worst = 0.0
    for _ in range(200):
        processors = int(rng.integers(1, 5))
        batch = [Task(int(rng.integers(1, 7)), float(rng.integers(1, 9))) for _ in range(rng.integers(1, 5))]
        worst = max(worst, dual(batch, processors).makespan / optimum(batch, processors))
    assert 1.0 < worst <= 2.0
