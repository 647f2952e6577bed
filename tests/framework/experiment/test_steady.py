"""Vectors 4.1 to 4.6, 4.8, 4.9 of the rule book: warm-up, batches, rises, saturation, burstiness, skew,
flurries."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.emulation import emulate
from headway.experiment.measured import measure
from headway.experiment.statistics import batch_interval, batch_means, paired, skew
from headway.experiment.steady import (
    automatic_cool_down,
    automatic_warm_up,
    mser5,
    mser5_statistics,
    rise,
    saturation,
)
from headway.model import ClusterDescription, JobDescription, Request
from headway.plugins import Catalogue, PluginConfig
from headway.workload import TraceJob
from headway.workload.dispersion import (
    dispersion,
    estimate_concentration,
    exact_share,
    gap_variation,
    largest_flurry,
)

WAITS = np.array(
    [0] * 5 + [2, 1, 3, 2, 2] + [9, 11, 10, 8, 12] + [10, 9, 11, 10, 10] + [11, 10, 9, 10, 10]
    + [9, 10, 12, 9, 10] + [10, 11, 9, 10, 10] + [10, 9, 10, 11, 10], float,
)  # fmt: skip


def test_4_1_the_warm_up_rule():
    assert mser5_statistics(WAITS) == pytest.approx([1.929688, 1.119534, 0, 0, 0], abs=1e-6)
    assert mser5(WAITS).jobs == 10 and not mser5(WAITS).half
    assert (WAITS.mean(), WAITS[10:].mean()) == (7.75, 10)


def test_4_1_a_rise_without_end_has_no_steady_state():
    found = mser5(np.arange(40.0))
    assert (found.jobs, found.half) == (20, True)


def test_4_1_equal_waits_have_no_warm_up():
    assert mser5(np.full(40, 5.0)).jobs == 0
    assert automatic_warm_up(np.full(40, 5.0)).jobs == 2


@given(st.lists(st.floats(0, 1e6), min_size=10, max_size=200))
def test_the_warm_up_rule_is_that_of_its_definition(waits):
    means = np.array(waits[: len(waits) // 5 * 5]).reshape(-1, 5).mean(axis=1)
    defined = [
        ((means[d:] - means[d:].mean()) ** 2).sum() / (len(means) - d) ** 2
        for d in range(len(means) // 2 + 1)
    ]
    assert mser5_statistics(np.array(waits)) == pytest.approx(
        defined, rel=1e-6, abs=1e-9 * (1 + max(waits)) ** 2
    )


def test_4_2_batch_means_that_are_not_independent_give_no_interval():
    found = batch_interval(batch_means([37 * i % 101 for i in range(3000)]))
    assert found.interval.mean == pytest.approx(50.006667, abs=1e-6)
    assert found.interval.half == pytest.approx(0.110506, abs=1e-6)
    assert found.correlation == pytest.approx(-0.36862, abs=1e-5) and not found.valid
    rising = batch_interval(batch_means([i // 100 for i in range(3000)]))
    assert (rising.interval.mean, rising.interval.half) == pytest.approx((14.5, 3.287247), abs=1e-6)
    assert rising.correlation == pytest.approx(0.9) and not rising.valid


@pytest.mark.parametrize(
    ("means", "tau", "p"),
    [
        ([0.3, 0, 0.2, 0.8, 0.1, 1.1, 0.5, 0.4, 2, 5.1], 0.5556, 0.014305),
        (list(range(10)), 1, 2.7557e-7),
        ([1.3, 1.3, 2.3, 1, 2.1, 4.8, 2.1, 1.5, 0.6, 1.2], -0.1591, 0.7360),
    ],
)
def test_4_3_a_rise_is_kendalls(means, tau, p):
    found = rise(np.repeat(np.array(means, float), 7))
    assert found.tau == pytest.approx(tau, abs=1e-4)
    assert found.p == pytest.approx(p, rel=1e-4)


@pytest.mark.parametrize(
    ("runtime", "offered", "achieved", "deficit", "mean_wait", "judged"),
    [
        (9, 0.90909, 0.9, 0, 0, "ok"),
        (11, 1.11111, 1.0, 0.1, 49.5, "saturated"),
        (12, 1.21212, 1.0, 0.20606, 99, "saturated"),
    ],
)
def test_4_4_what_waits_when_submissions_end(runtime, offered, achieved, deficit, mean_wait, judged):
    jobs = [TraceJob(JobDescription(str(i), 10.0 * i, Request(1, runtime)), runtime) for i in range(100)]
    cluster = ClusterDescription.flat(1)
    found = measure(emulate(cluster, jobs, [PluginConfig("fcfs")], Catalogue(), label="fcfs"))
    assert found["offered load"] == pytest.approx(offered, abs=1e-5)
    assert found["achieved load"] == pytest.approx(achieved, abs=1e-5)
    assert found["queued deficit"] == pytest.approx(deficit, abs=1e-5)
    assert found["mean wait"] == pytest.approx(mean_wait)
    assert saturation(found["queued deficit"], found["wait rise p"]) == judged


@pytest.mark.parametrize(
    ("deficit", "p", "judged"),
    [
        (0.0328, 0.014, "suspect"), (0.0400, 0.014, "suspect"), (0.0672, 0.008, "saturated"),
        (0.0068, 0.146, "ok"),
        (0.0137, 0.758, "suspect"), (0.0367, 0.300, "suspect"), (0.0300, 0.008, "saturated"),
        (0.0100, float("nan"), "suspect"), (0.0, 1e-9, "ok"),
    ],
)  # fmt: skip
def test_saturation_goes_by_the_deficit_and_the_rise(deficit, p, judged):
    assert saturation(deficit, p) == judged


def test_the_cool_down_leaves_out_what_had_not_ended():
    # One job a second, each of one second; number 100 never ends, and the last one ends after the last
    # submission.
    ends = np.arange(200.0) + 1
    ends[100] = np.nan
    assert automatic_cool_down(ends, 0, 199.0) == 200  # 198 of 200
    assert automatic_cool_down(ends, 50, 199.0) == 199  # 148 of 149, and of 150 too few
    assert automatic_cool_down(np.full(10, np.nan), 4, 9.0) == 4


def test_4_5_bursts():
    submit = np.array([7200.0 * burst + 60 * job for burst in range(12) for job in range(20)])
    assert gap_variation(submit) == pytest.approx(3.747949, abs=1e-6)
    assert dispersion(submit, 3600.0) == pytest.approx(10.476190, abs=1e-6)


def test_4_6_a_mean_of_one_job():
    found = skew([1] * 90 + [2] * 9 + [1000])
    assert (found.mean, found.median) == pytest.approx((11.08, 1))
    assert (found.geometric, found.top) == pytest.approx((1.140493, 0.902527), abs=1e-6)


def test_4_7_pairs_decide_what_means_do_not():
    change = paired([100, 200, 300, 400], [110, 212, 330, 436])
    assert (change.mean, change.half) == pytest.approx((-8.0248, 2.5850), abs=1e-4)


@pytest.mark.parametrize(("jobs", "flagged"), [(350, True), (299, False)])
def test_4_8_a_flurry_is_three_median_weeks_of_one_user(jobs, flagged):
    submit, users = [], []
    for week, count in enumerate((100, 100, 100, 450)):
        for job in range(count):
            submit.append(week * 7 * 86400.0 + 600.0 * job)
            users.append("busy" if week == 3 and job < jobs else f"user{job % 40}")
    found = largest_flurry(np.array(submit), users)
    assert found is not None and (found.user, found.week, found.jobs) == ("busy", 3, jobs)
    assert (found.ratio > 3) is flagged


def test_4_9_a_multiple_of_the_runtime():
    runtime = np.random.default_rng(1).integers(1, 90_000, 500).astype(float)
    assert exact_share(runtime, 2 * runtime) == 0
    assert estimate_concentration(runtime, 2 * runtime) == 1
