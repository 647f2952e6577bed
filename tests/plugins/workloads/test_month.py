"""The generated month."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from headway.workload import Trace, TraceJob, Workload, WorkloadModel, offered_load, to_records
from headway_plugins.workloads.month import HOUR, ROUND_ESTIMATES, Month, MonthOptions, generate_month

DAY = 24 * HOUR


def month(seed: int = 1, **options: Any) -> list[TraceJob]:
    return generate_month(np.random.default_rng(seed), **options)


@pytest.fixture(scope="module")
def jobs() -> list[TraceJob]:
    return month()


@pytest.fixture(scope="module")
def records(jobs: list[TraceJob]) -> np.ndarray:
    return to_records(jobs)


def test_is_the_same_for_the_same_seed_only() -> None:
    assert month(3, days=5) == month(3, days=5)
    assert month(3, days=5) != month(4, days=5)


@pytest.mark.parametrize("seed", range(10))
def test_has_the_wanted_load_and_some_thousand_jobs(seed: int) -> None:
    records = to_records(month(seed))
    load = float(records[:, 7] @ records[:, 3]) / (320 * 30 * DAY)
    executed = float(records[:, 7] @ np.minimum(records[:, 3], records[:, 8])) / (320 * 30 * DAY)
    assert load == pytest.approx(0.85, rel=0.001)
    assert executed == pytest.approx(0.85, rel=0.02)
    assert offered_load(Trace("month", records=records), 320) == pytest.approx(0.85, rel=0.02)
    assert 2000 < len(records) < 6000


@pytest.mark.parametrize(
    "options",
    [
        {"processors": 1},
        {"processors": 7, "days": 2, "load": 0.3},
        {"processors": 4096, "load": 1.5, "days": 10},
        {"users": 1},
        {"max_runtime": 300.0, "days": 1},
        {"max_runtime": 5000.5, "days": 1},
        {"days": 0.01},
    ],
)
def test_other_machines_get_their_load_too(options: dict[str, Any]) -> None:
    jobs = month(5, **options)
    chosen = MonthOptions(**options)
    records = to_records(jobs)
    work = chosen.processors * chosen.days * DAY * chosen.load
    assert float(records[:, 7] @ records[:, 3]) == pytest.approx(work, rel=0.02)
    assert records[:, 7].min() >= 1
    assert records[:, 7].max() <= chosen.processors
    assert records[:, 3].max() <= np.ceil(chosen.max_runtime)
    assert records[:, 8].max() <= chosen.max_runtime
    assert records[:, 1].min() >= 0
    assert records[:, 1].max() < chosen.days * DAY


def test_is_in_order_of_submission_with_ids_from_one(jobs: list[TraceJob], records: np.ndarray) -> None:
    assert [job.job.id for job in jobs] == [str(number) for number in range(1, len(jobs) + 1)]
    assert (np.diff(records[:, 1]) >= 0).all()


def test_follows_day_and_week(records: np.ndarray) -> None:
    hour = records[:, 1] // HOUR % 24
    assert np.count_nonzero((hour >= 9) & (hour < 17)) > 3 * np.count_nonzero(hour < 8)
    weekday = records[:, 1] // DAY % 7
    assert np.count_nonzero(weekday < 5) / 5 > 1.5 * np.count_nonzero(weekday >= 5) / 2


def test_leans_to_powers_of_two(records: np.ndarray) -> None:
    size = records[:, 7].astype(int)
    assert 0.7 < np.mean((size & (size - 1)) == 0) < 0.99
    assert 0.15 < np.mean(size == 1) < 0.4
    assert size.max() > 160


def test_has_a_heavy_tail_of_runtimes(records: np.ndarray) -> None:
    runtime = np.sort(records[:, 3])
    assert runtime.mean() > 2 * np.median(runtime)
    assert runtime[-len(runtime) // 10 :].sum() > 0.4 * runtime.sum()


def test_has_few_busy_users(records: np.ndarray) -> None:
    counts = np.sort(np.bincount(records[:, 11].astype(int)))[::-1]
    assert 0.1 < counts[0] / len(records) < 0.35
    assert counts[:6].sum() > 0.4 * len(records)


def test_has_round_estimates_mostly_long_enough(records: np.ndarray) -> None:
    assert set(records[:, 8]) <= set(ROUND_ESTIMATES)
    short = records[:, 3] > records[:, 8]
    assert np.mean(short) == pytest.approx(0.03, abs=0.002)
    assert (records[short, 3] <= records[short, 8] * 4 / 3).all()
    assert not (to_records(month(too_short=0.0))[:, 3] > to_records(month(too_short=0.0))[:, 8]).any()


@pytest.mark.parametrize(
    "options",
    [{"processors": 0}, {"days": -1}, {"load": 0}, {"too_short": 2}, {"users": 0}, {"max_runtime": 1}],
)
def test_refuses_what_is_out_of_range(options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        month(**options)


def test_refuses_an_unknown_option() -> None:
    with pytest.raises(ValidationError, match="extra"):
        MonthOptions(procesors=3)  # type: ignore[call-arg]


def test_is_a_workload_model() -> None:
    model: WorkloadModel = Month().register_workloads()["month"]
    options = model.Options(days=3)
    expected = Workload(month(2, days=3), processors=320)
    assert model.generate(np.random.default_rng(2), options) == expected
