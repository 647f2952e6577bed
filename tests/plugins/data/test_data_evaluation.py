"""When a plan ends: the small batch in every mode, and what holds of random batches."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from data_batches import SMALL, cms, random_plans, random_tables
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import UserError
from headway_plugins.data.evaluation import MODES, evaluate, micro
from headway_plugins.data.model import Batch, Replica, Tables, lower_bound
from headway_plugins.data.population import MANY, Fitness

SEEDS = st.integers(0, 10**9)
#: Order, node, store, and the end by mode: printed, queue, event, prefetch, rep-none.
ROWS = [
    ((0, 1, 2, 3, 4), (0, 1, 0, 1, 0), (0, 1, 1), (4095, 2745, 2745, 2385, 3690.555556)),
    ((4, 3, 2, 1, 0), (0, 1, 0, 1, 0), (0, 1, 1), (4095, 3295, 2825, 2370, 3690.555556)),
    ((2, 0, 4, 1, 3), (0, 1, 0, 1, 0), (0, 1, 1), (4095, 3665, 2745, 2495, 3690.555556)),
    ((1, 0, 2, 3, 4), (0, 0, 1, 1, 0), (1, 0, 1), (4125, 2355, 2355, 2125, 3720.555556)),
]


def test_the_seconds_of_the_small_batch():
    tables = SMALL.tables()
    assert [row[0] for row in tables.compute] == [30, 90, 60, 15, 45]
    assert tables.transfer == [[800, 1000], [1600, 2000], [800, 400]]
    assert tables.hop[0] == [[80, 100], [100, 80]] and tables.hop[2] == [[40, 50], [50, 40]]
    assert np.allclose(tables.direct, [[888.889, 800], [1777.778, 1600], [400, 444.444]], atol=1e-3)


@pytest.mark.parametrize(("order", "node", "store", "ends"), ROWS)
def test_the_small_batch_in_every_mode(order, node, store, ends):
    modes = ("printed", "queue", "event", "prefetch", "rep-none")
    found = [evaluate(SMALL.tables(), mode, order, node, store)[0] for mode in modes]
    assert found == pytest.approx(ends)


def test_a_job_waits_for_the_copy_that_another_one_started():
    _, turns = evaluate(SMALL.tables(), "event", (4, 3, 2, 1, 0), (0, 1, 0, 1, 0), (0, 1, 1))
    assert [tuple(turn) for turn in turns] == [
        (4, 0, 0, 880, 925), (3, 1, 0, 440, 455), (1, 1, 455, 2615, 2705), (2, 0, 925, 2655, 2715),
        (0, 0, 2715, 2795, 2825),
    ]  # fmt: skip
    _, turns = evaluate(SMALL.tables(), "queue", (4, 3, 2, 1, 0), (0, 1, 0, 1, 0), (0, 1, 1))
    assert tuple(turns[2]) == (2, 0, 925, 3125, 3185)


OPTIMA = {
    "printed": (3195, 120), "queue": (1860, 108), "event": (1860, 150), "prefetch": (1860, 720),
    "rep-none": (2949.444444, None),
}  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
def test_all_plans_of_the_small_batch(mode):
    """Optimum, and how many plans have it; the printed function does not see the order."""
    stores = itertools.product(range(2), repeat=3) if mode != "rep-none" else [()]
    nodes = itertools.product(range(2), repeat=5)
    plans = np.array(
        [
            [*order, *node, *store]
            for order, node, store in itertools.product(itertools.permutations(range(5)), nodes, stores)
        ]
    )
    ends = Fitness(SMALL.tables(), mode).of(plans)
    optimum, count = OPTIMA[mode]
    assert ends.min() == pytest.approx(optimum)
    best = plans[np.floor(ends * 1e6 + 0.5) == micro(ends.min())]
    if count is not None:
        assert len(best) == count
    if mode == "printed":
        assert len({tuple(plan[5:]) for plan in best}) == 1


def test_the_printed_function_does_not_depend_on_the_order():
    rng = np.random.default_rng(1)
    tables = cms(1)
    node, store = rng.integers(20, size=100).tolist(), rng.integers(20, size=50).tolist()
    ends = {
        micro(evaluate(tables, "printed", rng.permutation(100).tolist(), node, store)[0]) for _ in range(200)
    }
    assert len(ends) == 1


@given(
    seed=SEEDS, mode=st.sampled_from(MODES), direct=st.booleans(), whole=st.booleans(), alone=st.booleans()
)
def test_both_evaluations_give_the_same_bits(seed, mode, direct, whole, alone):
    tables = replace(random_tables(seed, whole=whole), jobs_alone=alone)
    fitness = Fitness(tables, mode, direct=direct)
    plans = random_plans(tables, seed, 7, replicas=mode != "rep-none")
    assert fitness.at_once(plans).tolist() == fitness.one_by_one(plans).tolist()


@pytest.mark.parametrize("mode", MODES)
def test_both_evaluations_give_the_same_bits_on_the_workload_of_the_paper(mode):
    tables = cms(3)
    fitness = Fitness(tables, mode)
    plans = random_plans(tables, 3, 40, replicas=mode != "rep-none")
    ends = fitness.one_by_one(plans)
    assert fitness.at_once(plans).tolist() == ends.tolist() == fitness.of(plans).tolist()
    assert fitness.of(plans[: MANY - 1]).tolist() == ends[: MANY - 1].tolist()


def test_a_large_population_is_taken_apart(monkeypatch):
    tables = cms(4, jobs=10, nodes=3, stores=2, objects=5)
    plans = random_plans(tables, 4, 30)
    expected = Fitness(tables, "event").at_once(plans)
    monkeypatch.setattr("headway_plugins.data.population._BLOCK", 700)
    assert Fitness(tables, "event").at_once(plans).tolist() == expected.tolist()


@given(seed=SEEDS)
def test_the_earlier_replicas_are_begun_the_earlier_a_plan_ends(seed):
    tables = random_tables(seed, state=False)
    plans = random_plans(tables, seed, 5)
    ends = [Fitness(tables, mode).of(plans) for mode in ("prefetch", "event", "queue", "printed")]
    assert all((a <= b + 1e-9).all() for a, b in itertools.pairwise(ends))
    assert (Fitness(tables, "event", direct=True).of(plans) <= ends[1].max()).any()


@given(seed=SEEDS, mode=st.sampled_from(["event", "queue", "prefetch", "rep-none"]))
def test_no_plan_ends_before_the_bound(seed, mode):
    tables = random_tables(seed, state=False)
    bound = lower_bound(tables, replicas=mode != "rep-none")
    plans = random_plans(tables, seed, 5, replicas=mode != "rep-none")
    assert Fitness(tables, mode).of(plans).min() >= bound - 1e-9


@given(seed=SEEDS, mode=st.sampled_from(MODES), whole=st.booleans())
def test_each_node_serves_its_jobs_one_after_the_other(seed, mode, whole):
    tables = random_tables(seed, whole=whole)
    jobs = len(tables.jobs)
    plan = random_plans(tables, seed, 1)[0].tolist()
    order, node, store = plan[:jobs], plan[jobs : 2 * jobs], plan[2 * jobs :]
    _, turns = evaluate(tables, mode, order, node, store)
    assert sorted(turn.job for turn in turns) == list(range(jobs))
    for at in range(tables.nodes):
        mine = [turn for turn in turns if turn.node == at]
        assert [turn.job for turn in mine] == [job for job in order if node[job] == at]
        assert [turn.turn for turn in mine] == [tables.begin[at], *(turn.ends for turn in mine)][: len(mine)]
    if mode == "event":
        place = {job: at for at, job in enumerate(order)}
        keys = [turn.turn for turn in turns]
        assert keys == sorted(keys)
        for a, b in itertools.pairwise(turns):
            assert a.turn < b.turn or a.ends == a.turn or place[a.job] < place[b.job] or a.node == b.node


def test_the_bound_of_the_small_batch():
    assert lower_bound(SMALL.tables()) == 1850
    assert lower_bound(SMALL.tables(), replicas=False) == pytest.approx(2720)
    assert lower_bound(SMALL.tables(free=[0, 1])) is None
    assert lower_bound(SMALL.tables(replicas={0: Replica(0)})) is None


def test_a_replica_that_exists_stands_in_place_of_the_store_of_the_plan():
    tables = SMALL.tables(replicas={0: Replica(store=1)})
    _, turns = evaluate(tables, "event", [0, 1, 2, 3, 4], [0] * 5, [0, 0, 0])
    assert turns[0].begins == 100
    # A copy of its own is there after 1,000 seconds, and then takes another 100.
    late = SMALL.tables(replicas={0: Replica(store=1, at=5000)})
    assert evaluate(late, "event", [0, 1, 2, 3, 4], [0] * 5, [0, 0, 0])[1][0].begins == 1100


def test_a_job_without_objects_runs_at_its_turn():
    tables = Tables([[]], [[5]], [[[1]]], [[7]], free=[3])
    assert [evaluate(tables, mode, [0], [0], [0])[1][0][2:] for mode in ("event", "printed")] == [
        (3, 3, 10)
    ] * 2


def test_no_jobs_end_when_the_last_node_is_free():
    tables = Tables([], [[5]], [[[1, 1]]], [], free=[3, 8])
    assert evaluate(tables, "event", [], [], [0]) == (8, [])
    assert Fitness(tables, "event").at_once(np.zeros((2, 1), dtype=int)).tolist() == [8, 8]


@pytest.mark.parametrize("mode", MODES)
def test_a_busy_node_without_jobs_counts_unless_jobs_count_alone(mode):
    tables = Tables([[0]], [[5]], [[[1, 1]]], [[7, 7]], direct=[[6, 6]], free=[0, 90])
    for alone in (False, True):
        some = replace(tables, jobs_alone=alone)
        own = evaluate(some, mode, [0], [0], [0])[1][0].ends
        assert own == 13
        expected = 13 if alone or mode == "printed" else 90
        plan = [[0, 0]] if mode == "rep-none" else [[0, 0, 0]]
        assert evaluate(some, mode, [0], [0], [0])[0] == expected
        assert Fitness(some, mode).at_once(np.array(plan)).tolist() == [expected]


def test_tables_that_cannot_be():
    with pytest.raises(UserError, match="expected objects from 0 to 0, found 1"):
        Tables([[1]], [[5]], [[[1]]], [[7]])
    with pytest.raises(UserError, match="expected at least one node"):
        Tables([], [], [], [])
    with pytest.raises(UserError, match="expected times from remote stores to nodes, found none"):
        evaluate(Tables([[0]], [[5]], [[[1]]], [[7]]), "rep-none", [0], [0])


def test_rates_are_bits_and_sizes_bytes():
    batch = Batch([125], [0], [[1000]], [[1000]], [[1000]], [[0]], k=8)
    assert batch.tables().transfer == [[1000]] and batch.tables().compute == [[1]]
