"""Plans that evolve, the simple ones that they are compared with, and the workload."""

import math
from itertools import pairwise

import numpy as np
import pytest
from data_batches import SMALL, cms, random_plans, random_tables
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import UserError
from headway_plugins.data.evaluation import MODES, evaluate
from headway_plugins.data.generate import Recipe, generate
from headway_plugins.data.genetic import Genetics, cross_order, cross_string, evolve, reverse, select
from headway_plugins.data.greedy import greedy, least_loaded
from headway_plugins.data.population import Fitness
from headway_plugins.draws import Draws

SEEDS = st.integers(0, 10**9)


def draws(seed):
    return Draws(np.random.default_rng(seed))


class Listed:
    """Numbers of a list in turn."""

    def __init__(self, *numbers):
        self._numbers = iter(numbers)

    def random(self):
        return next(self._numbers)


def digits(text):
    return np.array([int(one) for one in text])


@pytest.mark.parametrize(
    ("one", "other", "section", "child"),
    [
        ("01234567", "76543210", (2, 4), "76234510"),
        ("31405276", "67250413", (0, 2), "31467250"),
        ("31405276", "67250413", (5, 7), "50413276"),
        ("0123", "3210", (1, 1), "3120"),
        ("0123", "3210", (0, 3), "0123"),
    ],
)
def test_orders_are_crossed(one, other, section, child):
    assert cross_order(digits(one), digits(other), *section).tolist() == digits(child).tolist()


def test_strings_are_crossed_and_orders_reversed():
    assert cross_string(digits("00000000"), digits("12301230"), 3, 5).tolist() == digits("12300030").tolist()
    assert reverse(digits("31405276"), 2, 5).tolist() == digits("31250476").tolist()


@given(seed=SEEDS, n=st.integers(1, 20))
def test_a_crossed_order_has_each_job_once_and_keeps_its_section(seed, n):
    rng = np.random.default_rng(seed)
    one, other = rng.permutation(n), rng.permutation(n)
    first, last = draws(seed).section(n)
    child = cross_order(one, other, first, last)
    assert sorted(child.tolist()) == list(range(n))
    assert child[first : last + 1].tolist() == one[first : last + 1].tolist()
    rest = [job for job in child.tolist() if job not in one[first : last + 1]]
    assert rest == [job for job in other.tolist() if job in rest]


def test_the_best_are_selected_and_of_equal_ones_the_earlier():
    assert select(2, [5, 3, 9, 3, 7]) == [1, 3]
    # They differ by less than a microsecond.
    assert select(1, [0.3, 0.1 + 0.2]) == select(1, [0.1 + 0.2, 0.3]) == [0]


def test_numbers_are_used_in_this_order():
    found = Draws(Listed(0.5, 0.0, 0.9, 0.4, 0.99))
    assert found.permutation(3) == [2, 0, 1]
    assert found.section(10) == (4, 9)
    assert found.below(0) == 0 and found.count == 5
    assert Draws(Listed()).permutation(1) == [0]


def test_the_sizes_of_the_search():
    assert math.factorial(20) == 2432902008176640000
    assert pytest.approx(1.607e60, rel=1e-3) == 4**100
    assert [round(math.log10(math.factorial(n)), 2) for n in (40, 160)] == [47.91, 284.67]


# ---------------------------------------------------------------------- greedy


def test_the_least_loaded_node():
    tables = SMALL.tables()
    found = greedy(tables, Draws(Listed(0.1, 0.9, 0.6)))
    assert (found.node, found.store, found.makespan) == ([0, 1, 0, 1, 0], [0, 1, 1], 2745)
    found = greedy(tables, Draws(Listed()), rep="none")
    assert (found.node, found.store) == ([0, 1, 0, 1, 1], None)
    assert found.makespan == pytest.approx(2994.444444)


def test_random_nodes_are_drawn_before_stores():
    found = greedy(SMALL.tables(), Draws(Listed(0, 0.5, 0, 0.5, 0, 0.9, 0.1, 0.9)), jobs="rand")
    assert (found.node, found.store) == ([0, 1, 0, 1, 0], [1, 0, 1])


@given(seed=SEEDS, direct=st.booleans())
def test_in_the_order_of_time_or_of_the_queue_it_is_the_same(seed, direct):
    tables = random_tables(seed)
    store = random_plans(tables, seed, 1)[0][2 * len(tables.jobs) :].tolist()
    plans = [
        (least_loaded(tables, mode, store, direct=direct), range(len(tables.jobs)))
        for mode in ("event", "queue")
    ]
    assert plans[0] == plans[1]
    node, order = plans[0]
    ends = [evaluate(tables, mode, order, node, store, direct=direct)[0] for mode in ("event", "queue")]
    assert ends[0] == ends[1]


@given(seed=SEEDS, mode=st.sampled_from(MODES))
def test_each_job_goes_to_the_node_that_is_free_first(seed, mode):
    tables = random_tables(seed, whole=True)
    store = [0] * tables.objects
    node = least_loaded(tables, mode, store)
    order = range(len(tables.jobs))
    for count in order:
        free = list(tables.begin)
        for turn in evaluate(tables, mode if mode != "event" else "queue", order[:count], node, store)[1]:
            free[turn.node] = turn.ends
        assert node[count] == free.index(min(free))


# ---------------------------------------------------------------------- evolving


def test_a_run_can_be_repeated_from_its_seed():
    tables = SMALL.tables()
    genetics = Genetics(parents=2, children=2, generations=1)
    first = evolve(tables, draws(5), genetics)
    again = evolve(tables, draws(5), genetics)
    assert first == again and first.evaluations == 4 and len(first.history) == 2
    assert first.makespan == evaluate(tables, "event", *first.strings)[0]


@given(seed=SEEDS, mode=st.sampled_from(MODES), mutation=st.sampled_from([0.0, 0.8]), direct=st.booleans())
def test_the_best_plan_never_gets_worse(seed, mode, mutation, direct):
    tables = random_tables(seed)
    genetics = Genetics(3, 8, 5, mutation)
    found = evolve(tables, draws(seed), genetics, mode=mode, direct=direct)
    assert all(b <= a + 1e-6 for a, b in pairwise(found.history))
    assert sorted(found.order) == list(range(len(tables.jobs)))
    assert (found.store is None) == (mode == "rep-none")
    ends, _ = evaluate(tables, mode, found.order, found.node, found.store or (), direct=direct)
    assert ends == found.makespan == found.history[-1]
    assert found.evaluations == 8 * 6


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("mutation", [0.0, 0.8])
def test_both_evaluations_lead_to_the_same_plan(mode, mutation, monkeypatch):
    tables = cms(1, jobs=30, nodes=5, stores=5, objects=15)
    found = evolve(tables, draws(1), Genetics(5, 20, 10, mutation), mode=mode)
    monkeypatch.setattr(Fitness, "of", Fitness.one_by_one)
    assert evolve(tables, draws(1), Genetics(5, 20, 10, mutation), mode=mode) == found


@given(seed=SEEDS, mode=st.sampled_from(MODES))
def test_with_a_greedy_plan_the_result_is_never_worse_than_that(seed, mode):
    tables = random_tables(seed)
    found = evolve(tables, draws(seed), Genetics(2, 3, 2, seed_greedy=True), mode=mode)
    used = draws(seed)
    used.permutation(len(tables.jobs))
    used.several(len(tables.jobs), tables.nodes)
    store = used.several(tables.objects, tables.local_stores) if mode != "rep-none" else []
    node = least_loaded(tables, mode, store)
    assert found.history[0] <= evaluate(tables, mode, range(len(tables.jobs)), node, store)[0] + 1e-6


def test_a_greedy_plan_costs_no_random_number():
    used = [draws(1), draws(1)]
    for one, seeded in zip(used, (False, True), strict=True):
        evolve(SMALL.tables(), one, Genetics(2, 4, 1, seed_greedy=seeded))
    assert used[0].count == used[1].count


def test_a_run_stops_when_all_parents_are_equal():
    tables = SMALL.tables()
    found = evolve(tables, draws(4), Genetics(4, 10, 400, stop_when_equal=True))
    longer = evolve(tables, draws(4), Genetics(4, 10, 400))
    assert len(found.history) < 100 and len(longer.history) == 401
    assert found.strings == longer.strings
    assert len(evolve(tables, draws(4), Genetics(1, 10, 400, stop_when_equal=True)).history) == 1


def test_a_budget_of_evaluations_is_not_exceeded():
    found = evolve(SMALL.tables(), draws(1), Genetics(2, 10, 100, evaluations=39))
    assert found.evaluations == 30 and len(found.history) == 3
    # The first plans are always compared.
    assert evolve(SMALL.tables(), draws(1), Genetics(2, 10, 100, evaluations=1)).evaluations == 10


def test_given_plans_take_part():
    tables = SMALL.tables()
    best = np.array([2, 4, 0, 3, 1, 0, 0, 1, 0, 0, 0, 0, 0])
    found = evolve(tables, draws(1), Genetics(2, 4, 0), seeds=[best])
    assert found.makespan == 1860 and found.order == [2, 4, 0, 3, 1]


def test_a_plan_is_evaluated_once(monkeypatch):
    """Once all parents are the same, all children are copies of these."""
    counted = []
    plain = Fitness.of
    monkeypatch.setattr(Fitness, "of", lambda self, plans: counted.append(len(plans)) or plain(self, plans))
    found = evolve(SMALL.tables(), draws(4), Genetics(4, 10, 100))
    assert sum(counted) == 31 and found.evaluations == 1010


@pytest.mark.parametrize(("parents", "children"), [(3, 2), (0, 2)])
def test_more_parents_than_children_are_refused(parents, children):
    with pytest.raises(UserError, match=f"expected 1 to {children} parents.*, found {parents}"):
        Genetics(parents, children)


def test_strings_of_one_place_and_none():
    tables = generate(draws(1), Recipe(jobs=1, nodes=1, stores=1, remotes=1, objects=1)).tables()
    used = draws(2)
    evolve(tables, used, Genetics(1, 2, 1, mutation=1.0))
    # 2 plans of 2 numbers; of each child 2 for each string, then 1 each, and 2 for each mutation.
    assert used.count == 4 + 2 * (6 + 3 + 6)


# ---------------------------------------------------------------------- the workload


def test_the_workload_is_that_of_the_table():
    batch = generate(draws(1), Recipe())
    assert (len(batch.jobs), len(batch.sizes), len(batch.remote_store), len(batch.store_node)) == (
        100, 50, 20, 20,
    )  # fmt: skip
    assert all(50 <= size <= 1500 for size in batch.sizes) and {*batch.sources} <= {*range(20)}
    assert all(
        700 <= rate <= 1300
        for rows in (batch.remote_store, batch.remote_node)
        for row in rows
        for rate in row
    )
    assert all(7000 <= rate <= 13000 for row in batch.store_node for rate in row)
    assert {len(objects) for objects in batch.jobs} == {1, 2, 3, 4, 5}
    assert all(len({*objects}) == len(objects) for objects in batch.jobs)


def test_popular_objects_are_chosen_by_zipf_s_law():
    batch = generate(draws(1), Recipe(jobs=20_000, nodes=1, stores=1, remotes=1, objects=10, high=1))
    counts = np.bincount([objects[0] for objects in batch.jobs]) / 20_000
    expected = 1 / np.arange(1, 11)
    assert np.allclose(counts, expected / expected.sum(), atol=0.012)


def test_a_job_needs_no_more_objects_than_there_are():
    batch = generate(draws(1), Recipe(objects=2))
    assert max(len(objects) for objects in batch.jobs) == 2
