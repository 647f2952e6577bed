"""The experiments on data co-scheduling in small: each claim is there, and rows are taken up again."""

import numpy as np
import pytest

from headway.errors import UserError
from headway.experiment.reproduction import Context
from headway_plugins.data.generate import Recipe
from headway_plugins.data.genetic import Genetics, evolve
from headway_plugins.reproductions import data_coscheduling, data_coscheduling_runs
from headway_plugins.reproductions.data_coscheduling import (
    ALGORITHMS,
    GA,
    GA_NONE,
    GREEDY,
    LL,
    LL_NONE,
    MAKESPAN,
    RANDOM,
    RANDOM_NONE,
    DataCoscheduling,
)
from headway_plugins.reproductions.data_coscheduling_runs import Point, run_point, tables_of


def context(out, keep=False):
    return Context(
        out=out, seeds=(1, 2), workers=1, traces=None, on_plan=lambda name, count: None,
        on_done=lambda count: None, rows=[], keep=keep,
    )  # fmt: skip


@pytest.mark.long
def test_every_claim_is_judged_and_rows_are_kept(tmp_path, monkeypatch):
    few = Genetics(parents=2, children=4, generations=2)
    monkeypatch.setattr(
        data_coscheduling_runs, "evolve", lambda tables, draws, _, mode: evolve(tables, draws, few, mode=mode)
    )
    paper = DataCoscheduling(runs=1, population_runs=1, parents=(2, 3), ratios=(2, 3))
    claims = paper.run(context(tmp_path))
    where = list(dict.fromkeys(claim.where.split(",")[0] for claim in claims))
    assert where == [
        "Q1", "Q2", "Q3", "Q11", "Q4", "Q5", "Q6", "Q7", "Q8", "Q9", "Q10", "time", "the table", "figure 6",
        "without replicas", "mutation", "prefetch", "lower bound", "readings",
    ]  # fmt: skip
    assert {claim.holds for claim in claims} <= {"yes", "no", "in part", "not run"}
    printed = next(claim for claim in claims if claim.where == "figure 6")
    assert printed.holds == "no" and "as printed 1, by events 1" in printed.measured
    assert all((tmp_path / f"figure-{number}.png").is_file() for number in range(7, 13))
    monkeypatch.setattr(data_coscheduling, "run_point", None)
    assert paper.run(context(tmp_path, keep=True)) == claims


def test_a_row_has_the_mean_of_its_runs():
    small = Recipe(jobs=10, nodes=3, stores=2, remotes=2, objects=5)
    point = Point("event", 3.0, small, genetics={GA: Genetics(2, 4, 2)}, others=GREEDY)
    once, twice = (run_point(point, 1, runs) for runs in (1, 2))
    assert [row.variant for row in once] == [GA, *GREEDY]
    assert once[3].values[MAKESPAN] != twice[3].values[MAKESPAN]
    assert once[2].values[MAKESPAN] == twice[2].values[MAKESPAN]
    assert once[0].values[MAKESPAN] == run_point(point, 1, 1)[0].values[MAKESPAN]


def test_kilobytes_are_eight_times_as_fast():
    bits, bytes_ = (tables_of(Point("", 0.0, bytes=flag), 1) for flag in (False, True))
    assert np.allclose(np.array(bits.transfer) / np.array(bytes_.transfer), 8)
    assert np.allclose(np.array(bits.hop) / np.array(bytes_.hop), 8)
    assert bits.compute == bytes_.compute and bits.jobs == bytes_.jobs


@pytest.mark.parametrize(
    ("settings", "least"),
    [
        ({"runs": 0}, 1),
        ({"population_runs": 0}, 1),
        ({"population_sets": 1}, 2),
        ({"parents": (10,)}, 2),
        ({"ratios": (5,)}, 2),
    ],
)
def test_settings_that_cannot_be(settings, least):
    with pytest.raises(UserError, match=f"expected at least {least}, found {least - 1}"):
        DataCoscheduling(**settings)


def mean_of(point, sets):
    """The mean makespan of each algorithm over so many sets, a run each."""
    rows = [row for seed in range(1, sets + 1) for row in run_point(point, seed, 1)]
    return {
        name: float(np.mean([row.values[MAKESPAN] for row in rows if row.variant == name]))
        for name in point.names
    }


def lead(found):
    return 100 * (1 - found[GA] / found[LL])


def test_q1_on_two_sets_the_genetic_algorithm_is_best():
    found = mean_of(Point("event", 20.0, others=GREEDY), 2)
    assert min(found, key=found.__getitem__) == GA


@pytest.mark.slow
def test_q1_to_q4_the_order_of_the_six_algorithms_and_the_lead_over_the_best_greedy_one():
    genetics = {GA: Genetics(), GA_NONE: Genetics()}
    found = mean_of(Point("event", 20.0, genetics=genetics, others=GREEDY), 10)
    assert sorted(ALGORITHMS, key=found.__getitem__) == [
        GA, LL, RANDOM, LL_NONE, GA_NONE, RANDOM_NONE,
    ]  # fmt: skip
    assert lead(found) >= 10


@pytest.mark.slow
def test_q4_as_printed_replicas_make_it_worse():
    found = mean_of(Point("printed", 20.0, mode="printed", others=(LL, LL_NONE)), 10)
    assert found[LL] > found[LL_NONE] and found[GA] > found[LL]


@pytest.mark.slow
def test_q6_the_lead_shrinks_as_jobs_become_more():
    leads = [lead(mean_of(Point("jobs", float(jobs), Recipe(jobs=jobs)), 10)) for jobs in (40, 160)]
    assert leads[0] > leads[1] > 0


@pytest.mark.slow
def test_q7_the_lead_shrinks_as_the_computing_coefficient_grows():
    leads = [lead(mean_of(Point("computing", k, Recipe(k=k)), 10)) for k in (30, 300, 3000)]
    assert leads[0] > leads[1] > leads[2]


@pytest.mark.slow
def test_mutation_makes_the_lead_larger():
    mutated = Point("event", 20.0, genetics={GA: Genetics(mutation=0.8)})
    assert lead(mean_of(mutated, 10)) >= 30
