"""What holds of selections, dispatching, transformations and generated workloads, whatever the jobs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway_plugins.windows.dispatch import ORDERS, dispatch
from headway_plugins.windows.nights import (
    DEADLINE,
    FARM,
    NIGHT,
    PROCESSORS,
    night,
    synthetic,
    with_paths,
    with_stages,
)
from headway_plugins.windows.selection import by_dominance, by_profits, select, subset_sum
from headway_plugins.windows.staged import Staged, fill, fitting, longest_path, room

# ---------------------------------------------------------------------- selection


def brute(works, rewards, capacity):
    """Most reward, then least work, then without later jobs: all sets are tried."""
    count = len(works)
    sets = np.arange(2**count)
    has = sets[:, None] >> np.arange(count) & 1
    work, reward = has @ np.array(works), has @ np.array(rewards)
    fits = np.flatnonzero(work <= capacity)
    # A set's number says which later jobs it has.
    best = fits[np.lexsort((sets[fits], work[fits], -reward[fits]))[0]]
    return tuple(np.flatnonzero(has[best]).tolist())


def test_2_a_thousand_instances_as_by_trying_all_sets():
    rng = np.random.default_rng(2)
    for nth in range(1000):
        # Small numbers, so that there are ties.
        count = 15 if nth % 100 == 0 else int(rng.integers(1, 9))
        works = rng.integers(1, 12, count).tolist()
        rewards = rng.integers(1, 12, count).tolist()
        capacity = int(rng.integers(0, sum(works) + 2))
        chosen = brute(works, rewards, capacity)
        assert by_profits(works, rewards, capacity).chosen == chosen
        assert by_dominance(works, rewards, capacity).chosen == chosen
        assert select(works, rewards, capacity).chosen == chosen
        same = brute(works, works, capacity)
        assert subset_sum(works, capacity).chosen == same
        assert by_profits(works, works, capacity).chosen == same


@pytest.mark.parametrize("rewards", ["few", "many", "alike"])
def test_2_larger_ones_agree(rewards):
    rng = np.random.default_rng(3)
    for _ in range(3):
        works = rng.integers(1, 1000, 60)
        gains = {"few": rng.choice([1, 2, 5, 10], 60), "many": rng.integers(1, 1000, 60), "alike": works + 50}
        capacity = int(works.sum() // 2)
        one, other = (way(works, gains[rewards], capacity) for way in (by_profits, by_dominance))
        assert one == other


def test_works_and_rewards_of_any_kind():
    rng = np.random.default_rng(4)
    works, rewards = rng.random(100), rng.random(100)
    found = by_dominance(works, rewards, 20.0)
    assert found.gap == 0
    assert found.work <= 20.0
    whole = by_profits(works, np.rint(rewards * 1e3) + 1, 20.0)
    assert abs(whole.reward / 1e3 - found.reward) < 0.1


def test_what_giving_pairs_up_can_cost_is_said():
    rng = np.random.default_rng(5)
    works = rng.integers(10_000, 20_000, 100)
    rewards = works + 1000
    exact = by_profits(works, rewards, 500_000)
    rough = by_dominance(works, rewards, 500_000, pairs=0)
    assert exact.reward <= rough.reward + rough.gap
    assert rough.gap > 0
    assert rough.work <= 500_000


def test_windows_that_are_filled_to_the_last_second():
    rng = np.random.default_rng(6)
    works = np.rint(rng.lognormal(13, 1, 3000))
    capacity = float(works.sum() // 2)
    found = select(works, works, capacity)
    assert (found.work, found.gap) == (capacity, 0)
    some = select(works + 0.25, works + 0.25, capacity)
    assert capacity - some.gap <= some.work <= capacity


@pytest.mark.parametrize(
    ("works", "rewards", "said"),
    [
        ([1, 0], [1, 1], "job 1: expected a work above 0, found 0"),
        ([1, 1], [-1, 1], "job 0: expected a reward above 0, found -1"),
        ([1, float("nan")], [1, 1], "job 1: expected a work above 0, found nan"),
        ([1], [1, 1], "found 1 works and 2 rewards"),
    ],
)
def test_jobs_that_cannot_be(works, rewards, said):
    with pytest.raises(ValueError, match=said):
        select(works, rewards, 5)


def test_nothing_fits():
    assert select([5, 6], [1, 2], 4).chosen == select([5, 6], [5, 6], 4).chosen == ()
    assert select([], [], 4).chosen == ()


# ---------------------------------------------------------------------- dispatching

stages = st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=5).map(tuple), min_size=1, max_size=4)
batches = st.lists(stages.map(tuple), min_size=1, max_size=6).map(
    lambda found: [Staged(str(at), one, priority=at % 3) for at, one in enumerate(found)]
)
orders = st.sampled_from(sorted(ORDERS))


@given(batches, st.integers(1, 5), orders, st.integers(0, 9))
def test_3_no_processor_idles_and_stages_keep_their_order(jobs, processors, order, seed):
    deadline = sum(job.work for job in jobs)
    run = dispatch(jobs, processors, deadline, ORDERS[order], rng=np.random.default_rng(seed), record=True)
    began = run.began
    assert len(began) == sum(job.tasks for job in jobs)
    opened = {}
    for number, job in enumerate(jobs):
        end = 0.0
        for stage, lengths in enumerate(job.stages):
            mine = [one for one in began if (one.job, one.stage) == (number, stage)]
            assert [one.end - one.start for one in sorted(mine, key=lambda one: one.task)] == list(lengths)
            assert min(one.start for one in mine) >= end
            opened[number, stage] = end
            end = max(one.end for one in mine)
        assert run.ends[number] == end
    for time in sorted({one.start for one in began} | {one.end for one in began}):
        running = sum(one.start <= time < one.end for one in began)
        assert running <= processors
        waits = any(opened[one.job, one.stage] <= time < one.start for one in began)
        assert running == processors or not waits
    assert run.busy == sum(job.work for job in jobs)
    assert run.idle == processors * deadline - run.busy


@given(batches, st.integers(1, 5), orders, st.integers(1, 40), st.booleans())
def test_what_is_earned_by_the_deadline(jobs, processors, order, deadline, drop):
    run = dispatch(
        jobs, processors, deadline, ORDERS[order], rng=np.random.default_rng(1), drop_hopeless=drop,
        record=True,
    )  # fmt: skip
    in_time = [job for job, end in zip(jobs, run.ends, strict=True) if end <= deadline]
    assert run.reward == sum(job.work for job in in_time)
    assert run.completed == len(in_time)
    spent = sum(min(one.end, deadline) - one.start for one in run.began)
    assert run.busy == spent
    assert run.wasted == spent - sum(job.work for job in in_time)
    assert run.busy + run.idle == processors * deadline


@given(batches, st.integers(1, 5), st.integers(1, 60), orders, st.integers(0, 9))
def test_4_filled_by_the_theorem_every_selected_job_ends_in_time(jobs, processors, deadline, order, seed):
    jobs = [jobs[at] for at in fitting(jobs, deadline)]
    works = [job.work for job in jobs]
    capacity = room(fill(processors, deadline, longest_path(jobs), 1), processors, deadline)
    chosen = [jobs[at] for at in select(works, works, capacity).chosen]
    run = dispatch(chosen, processors, deadline, ORDERS[order], rng=np.random.default_rng(seed))
    assert run.completed == len(chosen)


def test_random_draws_tasks_and_not_jobs():
    many, one = Staged("many", ((1,) * 9,)), Staged("one", ((1,),))
    first = [
        dispatch([many, one], 1, 1, None, rng=np.random.default_rng(seed), record=True).began[0].job
        for seed in range(400)
    ]
    assert 20 < sum(first) < 60


def test_by_the_remaining_path_another_job_goes_first():
    # After its first stage the long job has less left than the other one.
    long, other = Staged("long", ((5,), (1,))), Staged("other", ((2,), (2,)))
    usual, remaining = (
        dispatch([long, other], 1, 99, ORDERS["LCPF"], remaining=left).ends for left in (False, True)
    )
    assert usual == (6, 10)
    assert remaining == (10, 9)


def test_dropped_when_there_is_no_hope():
    first, late = Staged("first", ((4,),)), Staged("late", ((2,), (1,)))
    assert dispatch([first, late], 1, 6, ORDERS["LCPF"]).wasted == 2
    dropped = dispatch([first, late], 1, 6, ORDERS["LCPF"], drop_hopeless=True)
    assert (dropped.wasted, dropped.reward, dropped.idle) == (0, 4, 2)


@pytest.mark.parametrize(
    ("stages", "reward", "said"),
    [
        ((), None, "job x: expected at least one stage, found none"),
        (((1,), ()), None, "job x, stage 2: expected at least one task, found none"),
        (((1,), (0,)), None, "job x, stage 2: expected a task of more than 0 seconds, found 0"),
        (((1,),), 0, "job x: expected a reward above 0, found 0"),
        (((1,),), -2, "job x: expected a reward above 0, found -2"),
    ],
)
def test_jobs_of_stages_that_cannot_be(stages, reward, said):
    with pytest.raises(ValueError, match=said):
        Staged("x", stages, reward)


# ---------------------------------------------------------------------- workloads


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (11, ((6, 2), (5,))),
        (8, ((3, 3, 2), (5,))),
        (6, ((3, 3, 2), (2.5, 2.5))),
        (5, ((1.5, 1.5, 1.5, 1.5, 2), (2.5, 2.5))),
    ],
)
def test_1_tasks_are_split_until_the_path_is_short_enough(path, found):
    (job,) = with_paths([Staged("x", ((6, 2), (5,)))], path)
    assert tuple(tuple(sorted(stage)) for stage in job.stages) == tuple(
        tuple(sorted(stage)) for stage in found
    )
    assert (job.work, job.reward) == (13, 13)


@given(batches, st.integers(1, 5), st.integers(0, 9))
def test_1_fewer_stages_leave_the_rest_as_it_is(jobs, count, seed):
    changed = with_stages(np.random.default_rng(seed), jobs, count)
    for before, after in zip(jobs, changed, strict=True):
        assert len(after.stages) == min(count, len(before.stages))
        tasks = sorted(task for stage in before.stages for task in stage)
        assert sorted(task for stage in after.stages for task in stage) == tasks
        assert (after.name, after.work, after.reward) == (before.name, before.work, before.reward)


def test_5_synthetic_workloads():
    found = [synthetic(np.random.default_rng((1, seed))) for seed in range(20)]
    for jobs in found:
        work = sum(job.work for job in jobs)
        assert 2 * PROCESSORS * DEADLINE < work <= 2 * PROCESSORS * DEADLINE + jobs[-1].work
        assert all(job.path <= DEADLINE and 5 <= len(job.stages) <= 10 for job in jobs)
    assert np.mean([len(jobs) for jobs in found]) == pytest.approx(82, abs=3)


def test_nights_have_the_published_statistics():
    nights = [night(np.random.default_rng((1, seed))) for seed in range(60)]
    jobs = [job for one in nights for job in one.jobs]
    tasks = np.array([job.tasks for job in jobs])
    lengths = np.array([length for job in jobs for stage in job.stages for length in stage])
    assert np.mean([len(one.jobs) for one in nights]) == pytest.approx(43, abs=4)
    assert tasks.min() >= 3 and tasks.max() <= 1328
    assert np.median(tasks) == pytest.approx(84, rel=0.1)
    assert np.median(lengths) == pytest.approx(5356, rel=0.05)
    assert lengths.max() <= 85686
    first = np.mean([job.priority < 100 for job in jobs])
    assert first == pytest.approx(0.552, abs=0.04)
    assert {job.reward for job in jobs if job.priority < 100} == {10}
    believed = np.log([b / job.work for one in nights for b, job in zip(one.work, one.jobs, strict=True)])
    assert np.std(believed) == pytest.approx(0.6, abs=0.05)
    # There are nights on which more is asked for than the farm can do, and others.
    over = [sum(job.work for job in one.jobs) > FARM * NIGHT for one in nights]
    assert 5 < sum(over) < 55
