"""The paper's equations and intervals, its tables against themselves, and the waits that follow from them."""

import numpy as np
import pytest

from headway_plugins.pipelines.metrics import fcfs_waits, figures, normal_interval
from headway_plugins.pipelines.published import (
    ARRIVALS,
    RUN_TIMES,
    STRATEGIES,
    TABLES,
    misprints,
    missing_mean,
)
from headway_plugins.pipelines.tamandua import arrival_times, node_sizes
from headway_plugins.reproductions.anthillsched import run_queue

# ---------------------------------------------------------------------- 3: figures and intervals


def test_3_three_jobs():
    arrival, run = np.array([0.0, 2.0, 30.0]), np.array([10.0, 5.0, 1.0])
    waits = fcfs_waits(arrival, run)
    assert waits.tolist() == [0, 8, 0]
    found = figures(arrival, waits, run)
    assert (found.execution, found.idle) == (16, 15)
    assert (found.wait, found.response) == (pytest.approx(8 / 3), 8.0)
    assert found.slowdown == pytest.approx(1.53333, abs=1e-5)


def test_there_are_no_figures_of_nothing():
    with pytest.raises(ValueError, match="expected at least 1 job"):
        figures(np.array([]), np.array([]), np.array([]))


@pytest.mark.parametrize(
    ("mean", "deviation", "ends"),
    [(9.61, 1.49, (8.69, 10.53)), (107.82, 2.63, (106.19, 109.45)), (168.28, 1.36, (167.44, 169.12))],
)
def test_3_intervals(mean, deviation, ends):
    assert normal_interval(mean, deviation, 10) == pytest.approx(ends, abs=0.006)


def test_3_two_rows_of_the_tables_contradict_themselves():
    found = {(m.load, m.metric, m.strategy, m.end, m.printed): m.computed for m in misprints()}
    assert found == {
        ("light", "response", "OAS", "low", 106.45): 106.19,
        ("light", "response", "OAS", "high", 109.19): 109.45,
        ("light", "response", "NOAS", "high", 169.44): 169.12,
    }


def test_3_the_missing_mean():
    assert missing_mean("medium", "execution", "AS") == 179681.76
    assert missing_mean("light", "execution", "AS") is None


@pytest.mark.parametrize("load", ["light", "medium"])
@pytest.mark.parametrize("name", STRATEGIES)
def test_response_less_wait_is_the_run_time_at_both_loads(load, name):
    table = TABLES[load]
    assert table["response"][name].mean - table["wait"][name].mean == pytest.approx(RUN_TIMES[name], abs=0.02)


# ---------------------------------------------------------------------- 6: the workload's draws


def test_6_the_draws_have_the_published_parameters():
    rng = np.random.default_rng(1)
    gaps = np.diff(arrival_times(rng, 100_001, ARRIVALS["published"]))
    assert gaps.mean() == pytest.approx(6513.8, rel=0.01)
    sizes = node_sizes(rng, 100_000)
    assert np.mean(sizes > 1) == pytest.approx(0.0117, abs=0.001)
    assert np.median(sizes) == pytest.approx(0.0023, abs=0.0001)
    assert sizes.min() >= 0.00075019 and sizes.max() <= 100


# ---------------------------------------------------------------------- 7, 8, 9: waits from a queue


def waits(arrivals, count=200):
    rows = run_queue(arrivals, count, 1000)
    return {name: np.mean([r.values["wait"] for r in rows if r.variant == name]) for name in STRATEGIES}


@pytest.mark.parametrize(("load", "within"), [("light", 0.05), ("medium", 0.03)])
def test_7_calibrated_arrivals_give_the_published_waits(load, within):
    found = waits(load)
    for name in STRATEGIES:
        assert found[name] == pytest.approx(TABLES[load]["wait"][name].mean, rel=within), name


def test_8_the_published_arrivals_do_not():
    found = waits("published")
    for name, near in zip(STRATEGIES, (2.83, 2.31, 2.42, 1.47), strict=True):
        assert found[name] == pytest.approx(near, rel=0.06), name
        assert found[name] < 0.4 * TABLES["light"]["wait"][name].mean


def test_9_heavy_load_waits_for_half_of_all_others():
    for name, wait in waits("heavy").items():
        assert wait == pytest.approx(499.5 * RUN_TIMES[name], rel=0.01), name
