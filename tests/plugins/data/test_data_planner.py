"""Plans for the front of a queue, made again and again."""

from dataclasses import replace

import numpy as np
import pytest
from data_batches import random_plans, random_tables
from hypothesis import example, given
from hypothesis import strategies as st

from headway.errors import UserError
from headway_plugins.data.evaluation import MODES, evaluate
from headway_plugins.data.planner import (
    Copy,
    File,
    Plan,
    Planning,
    Slot,
    Snapshot,
    Waiting,
    Wish,
    overtaken_at_most,
    plan,
)
from headway_plugins.draws import Draws

#: Bytes a second.
RATES = {("far", "s1"): 10.0, ("far", "s2"): 20.0}
FILES = {"a": File(1000, "far"), "b": File(4000, "far"), "c": File(200, "far")}
TWO = Slot("n1"), Slot("n2")
QUICK = Planning(evaluations=400, children=20, parents=5)
SEEDS = st.integers(0, 10**9)


def rate(start, end):
    return RATES.get((start, end), 100.0)


def snapshot(*jobs, slots=TWO, copies=None, stores=("s1", "s2")):
    return Snapshot(jobs, slots, FILES, stores, copies or {}, rate)


def draws(seed=1):
    return Draws(np.random.default_rng(seed))


def job(name, files="", runtime=10.0, overtaken=0):
    return Waiting(name, tuple(files), runtime, overtaken)


def test_a_replica_goes_to_the_store_that_it_reaches_first():
    found = plan(snapshot(job("1", "a")), QUICK, draws())
    assert found.wishes == [Wish("a", "s2", "1", 0.0)]
    # 1,000 bytes at 20 and then at 100 a second, and 10 seconds of computing.
    assert found.makespan == 70 and found.order == ["1"] and found.store == {"a": "s2"}


def test_what_runs_and_what_is_under_way_is_fixed():
    copies = {"a": [Copy("gone", 0), Copy("s1", 30), Copy("s2", 25)]}
    found = plan(
        snapshot(job("1", "ac"), slots=(Slot("n1", 90), Slot("n2", 28)), copies=copies), QUICK, draws()
    )
    # The earlier copy of "a" counts, and only "c" is still wished for.
    assert [(wish.file, wish.needed) for wish in found.wishes] == [("c", 28)]
    assert found.node == {"1": "n2"} and found.makespan == 28 + 10 + 10
    assert found.store["a"] == "s2"


def test_wishes_come_in_the_order_in_which_jobs_need_them():
    jobs = [job(str(at), "abc"[at % 3], 100) for at in range(6)]
    found = plan(snapshot(*jobs), QUICK, draws())
    assert {wish.file for wish in found.wishes} == {"a", "b", "c"}
    needed = [wish.needed for wish in found.wishes]
    assert needed == sorted(needed) and len({wish.job for wish in found.wishes}) == 3


def test_only_the_front_of_the_queue_is_planned():
    found = plan(snapshot(*(job(str(at)) for at in range(9))), replace(QUICK, window=4), draws())
    assert sorted(found.order) == ["0", "1", "2", "3"] == sorted(found.node)


def test_the_same_numbers_give_the_same_plan_and_the_budget_holds():
    jobs = [job(str(at), "abc"[at % 3], 10 * at) for at in range(8)]
    found = [plan(snapshot(*jobs), QUICK, draws(3)) for _ in range(2)]
    assert found[0] == found[1] and found[0].evaluations == 400


def test_nothing_waits():
    assert plan(snapshot(slots=[Slot("n1", 7)]), QUICK, draws()) == Plan([], {}, {}, [], {}, 0.0)


def random_snapshot(seed, count=8):
    rng = np.random.default_rng(seed)
    jobs = [
        job(str(at), "".join(name for name in "abc" if rng.random() < 0.4), float(rng.integers(1, 200)),
            int(rng.integers(3)))
        for at in range(count)
    ]  # fmt: skip
    slots = [Slot(f"n{at}", float(rng.integers(0, 100))) for at in range(3)]
    return snapshot(*jobs, slots=slots)


ONE = Planning(evaluations=4, children=4, parents=2)


@given(seed=SEEDS, most=st.sampled_from([None, 0, 2]), mode=st.sampled_from(["event", "prefetch"]))
@example(seed=2, most=2, mode="prefetch")
@example(seed=7, most=2, mode="prefetch")
def test_a_plan_is_never_worse_than_first_in_first_out(seed, most, mode):
    """With a budget of the first population alone; no overtakes are first in, first out."""
    given = random_snapshot(seed)
    found = plan(given, replace(ONE, mode=mode, max_overtakes=most), draws(seed))
    fixed = replace(given, jobs=[replace(one, overtaken=0) for one in given.jobs])
    plain = plan(fixed, replace(ONE, mode=mode, max_overtakes=0), draws(seed + 1))
    if most != 0:
        assert found.makespan <= plain.makespan + 1e-6
    assert plain.order == [one.id for one in fixed.jobs]


@given(seed=SEEDS)
def test_the_last_plan_is_continued(seed):
    """Without a budget to find a better plan, it is at least as good as the last one."""
    before = plan(random_snapshot(seed), replace(QUICK, evaluations=200), draws(seed))
    again = plan(random_snapshot(seed), ONE, draws(seed + 1), before)
    assert again.makespan <= before.makespan + 1e-6


def test_jobs_that_started_are_left_out_and_new_jobs_are_behind():
    jobs = [job(str(at), "abc"[at % 3], 100) for at in range(6)]
    before = plan(snapshot(*jobs), QUICK, draws())
    rest = [one for one in jobs if one.id != before.order[0]]
    again = plan(snapshot(*rest, job("new", "b")), ONE, draws(5), before)
    assert sorted(again.order) == sorted([*(one.id for one in rest), "new"])
    # A node that is gone, and stores.
    gone = replace(before, store=dict.fromkeys("abc", "s1"))
    assert set(plan(snapshot(*rest, stores=["s2"]), ONE, draws(5), gone).store.values()) == {"s2"}
    other = plan(snapshot(*rest, slots=[Slot("n2")], stores=["s2"]), ONE, draws(5), before)
    assert set(other.node.values()) == {"n2"} and set(other.store.values()) == {"s2"}


@given(seed=SEEDS, most=st.integers(0, 4), mode=st.sampled_from(MODES))
def test_no_job_is_overtaken_too_often(seed, most, mode):
    tables = random_tables(seed)
    jobs = len(tables.jobs)
    row = random_plans(tables, seed, 1)[0].tolist()
    order, node, store = row[:jobs], row[jobs : 2 * jobs], row[2 * jobs :]
    left = [max(0, most - int(had)) for had in np.random.default_rng(seed).integers(0, 3, jobs)]
    found, nodes = overtaken_at_most(tables, mode, order, node, store, left)
    assert sorted(found) == list(range(jobs))
    for place, one in enumerate(found):
        assert sum(other > one for other in found[:place]) <= left[one]
    # These are the turns by time as well.
    if mode in ("event", "queue", "prefetch", "rep-none"):
        turns = [turn.turn for turn in evaluate(tables, mode, found, nodes, store)[1]]
        assert turns == sorted(turns)


@given(seed=SEEDS)
def test_a_plan_in_which_no_job_is_due_stays_as_it_is(seed):
    tables = random_tables(seed)
    jobs = len(tables.jobs)
    row = random_plans(tables, seed, 1)[0].tolist()
    order, node, store = row[:jobs], row[jobs : 2 * jobs], row[2 * jobs :]
    found, nodes = overtaken_at_most(tables, "event", order, node, store, [jobs] * jobs)
    assert nodes == node
    ends = [evaluate(tables, "event", some, node, store)[0] for some in (order, found)]
    assert ends[0] == ends[1]


def test_a_job_that_was_overtaken_often_enough_is_next():
    jobs = [job("long", "b", 1000, overtaken=5), *(job(str(at), "a", 1) for at in range(6))]
    assert (
        plan(snapshot(*jobs, slots=[Slot("n1")]), replace(QUICK, max_overtakes=5), draws()).order[0] == "long"
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (snapshot(job("1", "x")), "expected the size and place of the file 'x', found none"),
        (snapshot(job("1", "a"), stores=()), "expected at least one local store, found none"),
        (snapshot(job("1", "a"), slots=()), "expected at least one node, found none"),
    ],
)
def test_snapshots_that_cannot_be_planned(given, said):
    with pytest.raises(UserError, match=said):
        plan(given, QUICK, draws())
