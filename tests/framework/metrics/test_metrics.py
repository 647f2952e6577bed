"""Metrics on schedules that can be computed by hand, and their invariants."""

from __future__ import annotations

import math

import numpy as np
import pytest
from building import described
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.energy.profiles import load_profile, with_energy
from headway.metrics import job_columns, summarise, system_curves, system_metrics
from headway.metrics.system import compact
from headway.model import ClusterDescription
from headway.model.classes import CLASSES, ClassBounds
from headway.results import CapacityChange, JobResult, Refused, RunResult


def ran(job_id, size, submit, start, end, *, state="completed", estimate=100.0):
    job = described(job_id, size, estimate, submit)
    runtime = 0.0 if start is None else (0.0 if end is None else end - start)
    return JobResult(job, start, end, state, runtime, (), "pool", -1, 0 if start is None else 1)


def result(*jobs, processors=10, **more):
    return RunResult("test", ClusterDescription.flat(processors), list(jobs), **more)


#: 10 processors. a holds 6 during [0, 50). b (8) waits from 10 until 50 and runs until 60. c (2) runs
#: during [20, 40) in the hole.
THREE = result(
    ran("a", 6, 0, 0, 50),
    ran("b", 8, 10, 50, 60),
    ran("c", 2, 20, 20, 40),
)


def test_per_job_metrics():
    columns = job_columns(THREE)
    assert columns.wait.tolist() == [0, 40, 0]
    assert columns.turnaround.tolist() == [50, 50, 20]
    assert columns.runtime.tolist() == [50, 10, 20]
    assert columns.slowdown.tolist() == [1, 5, 1]
    assert columns.bounded_slowdown.tolist() == [1, 5, 1]
    assert columns.accuracy.tolist() == [0.5, 0.1, 0.2]


def test_the_bounded_slowdown_takes_ten_seconds_for_shorter_runtimes_and_is_at_least_one():
    columns = job_columns(result(ran("a", 1, 0, 38, 40), ran("b", 1, 0, 0, 1), ran("c", 1, 0, 5, 5)))
    assert columns.bounded_slowdown.tolist() == [4, 1, 1]
    assert columns.slowdown[:2].tolist() == [20, 1]
    assert math.isnan(columns.slowdown[2])


def test_system_metrics():
    found = system_metrics(THREE)
    assert (found.begin, found.end, found.makespan) == (0, 60, 60)
    assert found.capacity == 600
    assert found.work == 6 * 50 + 8 * 10 + 2 * 20
    assert found.utilisation == pytest.approx(420 / 600)
    # Free: 4 in [0,10), nobody waits; then b waits (8 > 4): 4 in [10,20), 2 in [20,40), 4 in [40,50);
    # at last 2 in [50,60).
    assert found.fragmentation == pytest.approx((40 + 40 + 40) / 600)
    assert found.lost_capacity == pytest.approx((40 + 40 + 40) / 600)
    assert found.held_back == 0
    assert found.no_demand == pytest.approx((40 + 20) / 600)
    assert found.mean_queue_length == pytest.approx(40 / 60)
    assert found.max_queue_length == 1
    assert found.max_queued_processors == 8
    assert found.throughput == pytest.approx(3 / 60 * 3600)


def test_a_job_that_would_fit_and_waits_is_held_back():
    found = system_metrics(result(ran("a", 4, 0, 0, 10), ran("b", 2, 0, 10, 20)))
    # 6 free while b (2) waits: it would fit; lost is only what it asks for.
    assert found.held_back == pytest.approx(60 / 200)
    assert found.lost_capacity == pytest.approx(20 / 200)
    assert found.fragmentation == 0


def test_capacity_follows_failures_and_repairs():
    run = result(
        ran("a", 5, 0, 0, 10),
        capacity=[CapacityChange(2.0, "pool", 5), CapacityChange(8.0, "pool", 10)],
    )
    found = system_metrics(run)
    assert found.capacity == 2 * 10 + 6 * 5 + 2 * 10
    assert found.utilisation == pytest.approx(50 / 70)


def test_jobs_that_never_start_count_but_have_no_metrics():
    run = result(
        ran("a", 1, 0, 0, 10),
        ran("b", 20, 0, None, None, state="pending"),
        refused=[Refused("c", "large", 3)],
    )
    summary = summarise(run)
    assert summary["counts"]["never_started"] == 1
    assert summary["counts"]["by_state"] == {"completed": 1, "pending": 1}
    assert summary["counts"]["refused_by_reason"] == {"large": 1}
    assert summary["jobs"]["wait"]["count"] == 1


def test_a_run_without_jobs_has_no_figures_and_no_error():
    summary = summarise(result())
    assert summary["counts"]["jobs"] == 0
    wait = summary["jobs"]["wait"]
    assert wait.pop("count") == 0
    assert set(wait.values()) == {None}


def test_contributed_metrics_and_their_failures():
    run = result(ran("a", 1, 0, 0, 10), contributed={"own": lambda r: len(r.jobs)})
    extra = summarise(run, {"bad": lambda r: 1 / 0, "nan": lambda r: np.float64("nan")})["extra"]
    assert extra == {"own": 1, "bad": {"error": "ZeroDivisionError: division by zero"}, "nan": None}


@st.composite
def schedules(draw):
    """Any jobs, one after the other on the machine, so that it is never oversubscribed."""
    jobs, free_at = [], 0.0
    for number in range(draw(st.integers(1, 12))):
        submit = draw(st.integers(0, 50))
        start = max(free_at, submit) + draw(st.integers(0, 5))
        end = start + draw(st.integers(0, 30))
        jobs.append(ran(str(number), draw(st.integers(1, 10)), float(submit), float(start), float(end)))
        free_at = end
    return result(*jobs)


@settings(deadline=None)
@given(schedules())
def test_capacity_is_divided_without_remainder(run):
    found = system_metrics(run)
    curves = system_curves(run)
    assert curves.busy.integral() == pytest.approx(
        sum(j.runtime * j.job.request.processors for j in run.jobs)
    )
    if found.capacity:
        shares = found.utilisation, found.fragmentation, found.held_back, found.no_demand
        assert all(0 <= share <= 1 for share in shares)
        assert sum(shares) == pytest.approx(1)
        assert found.lost_capacity <= found.fragmentation + found.held_back + 1e-9


# ------------------------------------------------------------------------------- classes of jobs

#: One of each class, each waits for 10 s; then one that never started and one that still runs.
FOUR = (
    ran("sn", 1, 0, 10, 3610, estimate=9000.0),
    ran("ln", 1, 0, 10, 3611, estimate=9000.0),
    ran("sw", 2, 0, 10, 30, estimate=9000.0),
    ran("lw", 2, 0, 10, 7210, estimate=9000.0),
    ran("waits", 2, 0, None, None),
    ran("runs", 2, 0, 10, None),
)


def test_each_job_that_ended_is_in_one_class():
    classes = summarise(result(*FOUR))["classes"]
    assert {name: found["jobs"] for name, found in classes.items()} == {
        "all": 4, "SN": 1, "LN": 1, "SW": 1, "LW": 1,
    }  # fmt: skip
    assert classes["SN"]["runtime"]["mean"] == 3600, "an hour is short"
    assert classes["LN"]["runtime"]["mean"] == 3601
    assert classes["SW"]["turnaround"]["mean"] == 30
    assert classes["SW"]["slowdown"]["mean"] == 1.5
    assert classes["LW"]["wait"]["count"] == 1


def test_the_slowdown_ratio_is_that_of_the_means():
    jobs = (ran("a", 1, 0, 90, 100), ran("b", 1, 0, 10, 40))
    found = summarise(result(*jobs))["classes"]
    # Mean turnaround 70, mean runtime 20; the mean of the slowdowns is another figure.
    assert found["all"]["slowdown_ratio"] == 3.5
    assert found["SN"]["slowdown_ratio"] == 3.5
    assert found["SN"]["slowdown"]["mean"] == pytest.approx((10 + 4 / 3) / 2)
    assert found["LW"]["slowdown_ratio"] is None
    assert found["LW"]["wait"]["count"] == 0
    assert found["LW"]["wait"]["mean"] is None


def test_what_is_narrow_and_short_can_be_said():
    summary = summarise(result(*FOUR, class_bounds=ClassBounds(narrow=2, short=20)))
    assert summary["class_bounds"] == {"narrow": 2, "short": 20}
    assert {name: found["jobs"] for name, found in summary["classes"].items()} == {
        "all": 4, "SN": 1, "LN": 3, "SW": 0, "LW": 0,
    }  # fmt: skip


def test_classes_of_unknown_sizes_and_runtimes():
    which = ClassBounds().of(np.array([1, 0, -1, 5, 1]), np.array([0.0, 1.0, 1.0, np.nan, -1.0]))
    assert which.tolist() == [0, -1, -1, -1, -1]


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 50), st.integers(0, 9000)), max_size=30))
@settings(max_examples=60, deadline=None)
def test_the_classes_make_up_the_whole(drawn):
    jobs = [ran(str(n), size, 0, wait, wait + long) for n, (size, wait, long) in enumerate(drawn)]
    summary = summarise(result(*jobs))
    whole, parts = summary["classes"]["all"], [summary["classes"][name] for name in CLASSES]
    assert sum(part["jobs"] for part in parts) == whole["jobs"] == len(jobs)
    for metric in ("wait", "turnaround", "runtime"):
        total = sum(part[metric]["count"] * (part[metric]["mean"] or 0) for part in parts)
        assert total == pytest.approx(len(jobs) * (whole[metric]["mean"] or 0))
        assert whole[metric] == summary["jobs"][metric]


def test_with_an_energy_profile_the_classes_have_their_energy():
    cluster = with_energy(ClusterDescription.flat(10), load_profile("present-day"))
    summary = summarise(RunResult("test", cluster, list(FOUR[:4])))
    energy = {name: summary["classes"][name]["energy"] for name in CLASSES}
    total = sum(one["count"] * one["mean"] for one in energy.values())
    assert total == pytest.approx(summary["energy"]["busy"])
    # Twice the processors for twice the time, but for a second.
    assert energy["LW"]["mean"] == pytest.approx(4 * energy["SN"]["mean"], rel=0.001)
    assert summary["classes"]["all"]["energy"] == summary["energy"]["per_job"]
    assert "energy" not in summary["jobs"]
    assert "energy" not in summarise(result(*FOUR))["classes"]["all"]


def test_curves_take_few_bytes_and_are_exact() -> None:
    demand = np.array([0.0, 2.0**15 - 1]), np.array([0.0, 2.0**15]), np.array([2.0**31, 2.0**40 + 1])
    found = [compact(counts) for counts in demand]
    assert [counts.dtype for counts in found] == [np.int16, np.int32, np.float64]
    assert all((a == b).all() for a, b in zip(found, demand, strict=True))
