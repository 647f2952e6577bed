"""Fair start times on cases that were worked out by two independent programs, and on random workloads.

The definition (one run a job) and the drains (one pass) are two ways to the same; both are held to the
cases, and to each other.
"""

from __future__ import annotations

import os
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from building import traced
from hypothesis import given, settings
from hypothesis import strategies as st
from plugins_fairness import (
    ALL,
    BENIGN,
    CATALOGUE,
    DELAYED,
    HELPED,
    NINE,
    NINE_JOBS,
    ORDERS,
    STARVED,
    jobs_of,
    run,
)  # fmt: skip

from headway.emulation import emulate
from headway.errors import UserError
from headway.model import ClusterDescription
from headway.plugins import PluginConfig
from headway.results import RunResult
from headway_plugins.fairness.figures import missed
from headway_plugins.fairness.starts import by_definition, by_drains, fair_starts


def found(result: RunResult) -> tuple[list[float], list[float], list[float]]:
    """Start, strict and relaxed fair start; both ways must give the same."""
    quick, exact = by_drains(result), by_definition(result)
    assert quick.strict.tolist() == exact.strict.tolist()
    assert quick.relaxed.tolist() == exact.relaxed.tolist()
    assert (quick.way, exact.way) == ("drains", "definition")
    return [job.start_time or 0.0 for job in result.jobs], exact.strict.tolist(), exact.relaxed.tolist()


def check(
    result: RunResult,
    start: list[int],
    strict: list[int],
    relaxed: list[int],
    sums: tuple[int, int] | None = None,
) -> None:
    """``sums``: seconds of strict and relaxed misses, over all jobs."""
    assert found(result) == (start, strict, relaxed)
    if sums is not None:
        late = [missed(np.array(start) - np.array(fair))["mean"] for fair in (strict, relaxed)]
        assert late == pytest.approx([float(Fraction(total, len(start))) for total in sums])


@pytest.mark.parametrize(("policy", "order"), [*NINE, *(("keep", order) for order in ORDERS)])
def test_4_1_a_benign_backfill_harms_nobody(policy, order):
    check(run(10, BENIGN, policy, order), [0, 100, 20], [0, 100, 20], [0, 100, 150])


def test_4_1_without_backfilling_all_is_fair():
    check(run(10, BENIGN, "strict"), [0, 100, 150], [0, 100, 150], [0, 100, 150])


@pytest.mark.parametrize("policy", ["none", "easy", "cons", "keep"])
def test_4_2_bad_estimates_delay_the_head(policy):
    result = run(10, DELAYED, policy)
    check(result, [0, 0, 92, 2], [0, 0, 20, 2], [0, 0, 20, 70], (72, 72))


def test_4_3_a_later_job_helps():
    result = run(4, HELPED, "easy")
    check(result, [0, 9, 6, 3], [0, 6, 10, 3], [0, 6, 10, 10], (3, 3))
    late = np.array([job.start_time for job in result.jobs]) - by_drains(result).strict
    assert missed(late)["share_preferred"] == 0.25


def test_4_4_a_relaxed_fair_start_may_be_before_the_strict_one():
    lxf = [(1, 2, 6, 6), (1, 3, 5, 5), (3, 1, 8, 8), (4, 2, 1, 1), (5, 1, 1, 9)]
    check(run(3, lxf, "easy", "lxf"), [1, 13, 5, 7, 18], [1, 7, 12, 7, 18], [1, 7, 12, 12, 13], (6, 11))
    sjf = [(2, 1, 7, 15), (2, 1, 4, 4), (3, 2, 5, 7), (4, 1, 2, 8), (5, 3, 1, 3)]
    check(run(3, sjf, "easy", "sjf"), [2, 2, 7, 5, 12], [2, 2, 6, 9, 12], [2, 2, 6, 9, 11], (1, 2))


def test_4_5_a_wide_job_starves_without_reservations():
    check(run(10, STARVED, "none"), [0, 24, 2, 10, 14], [0, 10, 2, 10, 14], [0, 10, 15, 17, 25], (14, 14))
    for policy in ("easy", "cons", "keep"):
        same = [0, 10, 15, 15, 25]
        check(run(10, STARVED, policy), same, same, same)


def test_4_5b_a_later_arrival_of_the_same_second_counts_as_later():
    jobs = [(0, 4, 10, 10), (5, 4, 9, 9), (5, 4, 2, 2)]
    check(run(4, jobs, "easy", "sjf"), [0, 12, 10], [0, 10, 10], [0, 10, 19], (2, 2))


#: Policy, order, start, strict, relaxed, sums of misses.
TABLE = [
    ("none", "fcfs", "2,14,18,22,33,26,39,14,18",
     "2,14,18,18,29,22,35,14,18", "2,14,18,18,29,35,35,44,48", 16, 12),
    ("none", "sjf", "2,29,14,14,33,25,39,18,18",
     "2,14,14,14,29,18,35,22,18", "2,14,18,22,29,35,35,44,49", 30, 23),
    ("none", "lxf", "2,30,14,14,34,18,40,22,22",
     "2,14,14,14,29,18,35,22,22", "2,14,18,22,29,35,35,44,49", 26, 26),
    ("easy", "fcfs", "2,14,18,22,33,39,43,14,18",
     "2,14,18,18,29,35,39,14,18", "2,14,18,18,29,35,39,48,52", 16, 16),
    ("easy", "sjf", "2,18,14,41,26,49,32,14,41",
     "2,14,14,22,22,28,28,14,41", "2,14,18,22,33,28,39,41,45", 52, 44),
    ("easy", "lxf", "2,18,14,32,26,52,43,14,32",
     "2,14,14,22,22,28,39,14,32", "2,14,18,22,33,28,39,48,52", 46, 42),
    ("cons", "fcfs", "2,14,18,18,29,35,43,52,35",
     "2,14,18,18,29,35,39,48,35", "2,14,18,18,29,35,39,48,48", 8, 8),
    ("cons", "sjf", "2,18,14,37,22,45,28,48,37",
     "2,14,14,22,22,28,28,41,37", "2,14,18,22,33,28,39,41,41", 43, 43),
    ("cons", "lxf", "2,18,14,28,22,48,39,48,28",
     "2,14,14,22,22,28,39,48,28", "2,14,18,22,33,28,39,48,48", 30, 30),
    ("keep", "fcfs", "2,14,18,18,29,35,43,52,35",
     "2,14,18,18,29,35,39,48,35", "2,14,18,18,29,35,39,48,48", 8, 8),
    ("keep", "sjf", "2,14,18,18,29,35,47,35,35",
     "2,14,18,18,29,35,39,35,35", "2,14,18,18,29,35,39,48,56", 8, 8),
    ("keep", "lxf", "2,14,18,18,29,35,47,35,35",
     "2,14,18,18,29,35,39,35,35", "2,14,18,18,29,35,39,48,56", 8, 8),
    ("strict", "fcfs", "2,14,18,18,29,35,39,48,48",
     "2,14,18,18,29,35,39,48,48", "2,14,18,18,29,35,39,48,48", 0, 0),
]  # fmt: skip


@pytest.mark.parametrize(("policy", "order", "start", "strict", "relaxed", "late", "later"), TABLE)
def test_4_6_nine_jobs_under_every_policy(policy, order, start, strict, relaxed, late, later):
    result = run(8, NINE_JOBS, policy, order)
    expected = tuple([float(time) for time in text.split(",")] for text in (start, strict, relaxed))
    assert found(result) == expected
    starts, stricts, relaxeds = map(np.array, expected)
    assert missed(starts - stricts)["mean"] == pytest.approx(float(Fraction(late, 9)))
    assert missed(starts - relaxeds)["mean"] == pytest.approx(float(Fraction(later, 9)))


@given(jobs=jobs_of, which=st.sampled_from(ALL))
@settings(max_examples=12)
def test_drains_are_the_definition(jobs, which):
    they_are_the_same(jobs, *which)


@pytest.mark.campaign
@pytest.mark.parametrize(("policy", "order"), ALL)
@given(jobs=jobs_of)
@settings(max_examples=300)
def test_drains_are_the_definition_on_many_workloads(policy, order, jobs):
    they_are_the_same(jobs, policy, order)


def they_are_the_same(jobs, policy, order):
    result = run(6, jobs, policy, order)
    if policy in ("cons", "keep") and any(estimate == 0 for *_, estimate in jobs):
        with pytest.raises(UserError, match="has a limit of no length"):
            by_drains(result)
        jobs = [(arrival, size, runtime, max(estimate, 1)) for arrival, size, runtime, estimate in jobs]
        result = run(6, jobs, policy, order)
    start, strict, relaxed = found(result)
    for at, (arrival, *_) in enumerate(jobs):
        assert strict[at] >= arrival and relaxed[at] >= arrival
        if start[at] == arrival:
            assert strict[at] >= start[at], "who started at once was not delayed"


@given(jobs=jobs_of)
@settings(max_examples=4)
def test_first_come_first_served_without_backfilling_is_fair(jobs):
    start, strict, relaxed = found(run(6, jobs, "strict"))
    assert start == strict == relaxed


@pytest.mark.parametrize("policy", ["cons", "keep"])
@given(jobs=jobs_of)
@settings(max_examples=4)
def test_conservative_backfilling_with_exact_estimates_delays_nobody(policy, jobs):
    start, strict, _ = found(run(6, [(a, n, r + 1, r + 1) for a, n, r, _ in jobs], policy))
    assert all(real <= fair for real, fair in zip(start, strict, strict=True))


@given(jobs=jobs_of)
@settings(max_examples=4)
def test_all_times_tenfold_give_all_fair_starts_tenfold(jobs):
    once = found(run(6, [(a, n, r + 1, e + 1) for a, n, r, e in jobs], "easy", "lxf"))
    tenfold = found(run(6, [(10 * a, n, 10 * r + 10, 10 * e + 10) for a, n, r, e in jobs], "easy", "lxf"))
    assert [[10 * time for time in times] for times in once] == [list(times) for times in tenfold]


def test_a_run_of_a_scheduler_that_drains_do_not_know_goes_by_definition():
    result = run(8, NINE_JOBS, "easy", cycle=5.0)
    with pytest.raises(UserError, match="started otherwise"):
        by_drains(result)
    assert fair_starts(result, up_to=9).way == "definition"
    with pytest.raises(UserError, match="started otherwise"):
        fair_starts(result, up_to=8)


def test_a_run_with_faults_has_no_fair_starts():
    result = run(8, NINE_JOBS, "easy", faults={"failure_rate": 0.1})
    with pytest.raises(UserError, match="faults"):
        fair_starts(result, up_to=100)


def test_guarantees_want_a_flat_pool_and_no_depth():
    with pytest.raises(UserError, match="no depth with guarantees"):
        emulate(
            ClusterDescription.flat(4, name="pool"), [traced("a")],
            [PluginConfig("conservative", {"guarantees": "keep", "depth": 3})], CATALOGUE, label="x",
        )  # fmt: skip


@pytest.mark.campaign
def test_compiled_the_fair_starts_are_the_same(tmp_path):
    """In a process of its own, in which the drains are compiled."""
    pytest.importorskip("numba")
    programme = (
        "import numpy as np\n"
        "from headway_plugins.fairness import drains\n"
        "from headway_plugins.fairness.compiled import is_compiled\n"
        "rng = np.random.default_rng(7)\n"
        "submit = np.cumsum(rng.integers(0, 9, 60)).astype(float)\n"
        "size, estimate = rng.integers(1, 9, 60), rng.integers(1, 50, 60).astype(float)\n"
        "runtime = np.maximum(np.rint(estimate * rng.random(60)), 1)\n"
        "for depth in (drains.GREEDY, drains.EASY, drains.KEPT, drains.REBUILT):\n"
        "    for order in (drains.SUBMISSION, drains.SHORTEST, drains.XFACTOR):\n"
        "        jobs = submit, size, runtime, estimate\n"
        "        for found in drains.run_with_drains(8, *jobs, depth, order, True):\n"
        "            print(found.tolist())\n"
    )
    told = [
        subprocess.run(
            [sys.executable, "-c", programme], env={**os.environ, "NUMBA_DISABLE_JIT": disabled},
            capture_output=True, text=True, check=True,
        ).stdout
        for disabled in ("0", "1")
    ]  # fmt: skip
    assert told[0] == told[1] != ""
