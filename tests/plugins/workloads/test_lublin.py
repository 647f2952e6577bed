"""The model of Lublin and Feitelson: its distributions, for fixed seeds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from headway.workload import Trace, Workload, WorkloadModel, offered_load, to_records
from headway.workload.trace import Records
from headway_plugins.workloads.lublin import (
    BATCH,
    INTERACTIVE,
    WHOLE_SAMPLE,
    Arrivals,
    Lublin,
    LublinModel,
    LublinOptions,
    Runtimes,
)

DAY = 86400.0


def draw(seed: int = 1, **options: Any) -> Workload:
    return LublinModel().generate(np.random.default_rng(seed), LublinOptions(**options))


def records_of(**options: Any) -> Records:
    return to_records(draw(**options).jobs)


@pytest.fixture(scope="module")
def records() -> Records:
    return records_of(jobs=40_000)


def test_is_a_workload_model_without_commands() -> None:
    model: WorkloadModel = Lublin().register_workloads()["lublin"]
    workload = model.generate(np.random.default_rng(1), model.Options(jobs=20))
    assert workload == draw(jobs=20)
    assert (len(workload.jobs), workload.commands, workload.processors) == (20, [], 128)


def test_is_the_same_for_the_same_seed_only() -> None:
    assert draw(3, jobs=50) == draw(3, jobs=50)
    assert draw(3, jobs=50) != draw(4, jobs=50)


def test_has_ids_in_order_of_submission_and_whole_seconds(records: Records) -> None:
    assert records[:, 0].tolist() == list(range(1, 40_001))
    assert (np.diff(records[:, 1]) >= 0).all()
    assert (records == np.rint(records)).all()
    assert records[:, 3].min() >= 1
    assert (records[:, 3] == records[:, 8]).all(), "the model has no estimates of its own"


def test_sizes_have_the_published_shares(records: Records) -> None:
    size = records[:, 7].astype(int)
    power = (size & (size - 1)) == 0
    assert np.mean(size == 1) == pytest.approx(0.244, abs=0.01)
    # The other parallel jobs come to a power of two now and then, too.
    assert 0.244 + 0.576 < np.mean(power) < 0.244 + 0.576 + 0.07
    assert size.max() == 128
    # The second stage, from 4.5 on.
    assert np.mean(size[size > 1] > 2**4.5) == pytest.approx(0.14, abs=0.015)


def test_runtimes_are_hyper_gamma_and_grow_with_size(records: Records) -> None:
    size, log_runtime = records[:, 7], np.log(records[:, 3])
    assert log_runtime.max() <= 12
    # The second gamma is narrow around 312 x 0.03.
    assert np.mean(np.abs(log_runtime[size == 128] - 9.36) < 1.1) > 0.85
    serial = log_runtime[size == 1]
    assert serial.mean() == pytest.approx(0.7746 * 4.2 * 0.94 + 0.2254 * 9.36, rel=0.03)
    assert np.corrcoef(np.log(size), log_runtime)[0, 1] > 0.1


def test_runtimes_above_the_limit_are_drawn_again() -> None:
    long = Runtimes(100, 0.12, 1, 1, 0, 1)
    drawn = np.log(long.draw(np.random.default_rng(1), np.ones(2000)))
    assert drawn.max() <= 12
    # Half of that gamma is above 12; drawing again keeps the shape of the rest.
    expected = np.random.default_rng(2).gamma(100, 0.12, 100_000)
    assert drawn.mean() == pytest.approx(expected[expected <= 12].mean(), abs=0.05)


@pytest.mark.parametrize("constants", [WHOLE_SAMPLE, BATCH, INTERACTIVE])
def test_arrivals_have_the_published_time_between_them(constants: Any) -> None:
    arrivals: Arrivals = constants.arrivals
    rng = np.random.default_rng(5)
    times = arrivals.times(rng.random(60_000))
    expected = rng.gamma(arrivals.shape * arrivals.ratio, arrivals.scale, 400_000)
    gap = np.exp(expected[expected <= 13])
    assert np.diff(times).mean() == pytest.approx(gap.mean(), rel=0.06)


def test_arrivals_follow_the_day() -> None:
    day = WHOLE_SAMPLE.arrivals.day()
    assert day.mean() == pytest.approx(1)
    assert np.argmax(day) in (27, 28), "early in the afternoon"
    assert np.argmin(day) == 10, "before the day begins at 5:00"
    times = WHOLE_SAMPLE.arrivals.times(np.random.default_rng(1).random(100_000))
    counted = np.bincount((times % DAY // 1800).astype(int), minlength=48) / len(times) * 48
    assert np.abs(counted - day).max() < 0.2


def test_an_even_day_leaves_the_gaps_as_they_are() -> None:
    # A gamma this wide is flat over the day.
    even = Arrivals(6.0, 0.5, 1.0, 1.0001, 1e9)
    assert even.day() == pytest.approx(1, abs=1e-3)
    uniform = np.array([0.5, 0.5, 0.5])
    gaps = np.diff(even.times(uniform), prepend=0)
    # The median of the gamma with shape 6 is 5.670.
    assert gaps == pytest.approx(np.exp(5.6702 * 0.5), rel=1e-3)


def test_two_types_have_a_queue_each() -> None:
    records = records_of(jobs=20_000, types="both")
    interactive = records[:, 14] == 0
    # As many as arrive: one batch job in 3407 s, one interactive in 592 s.
    assert np.mean(interactive) == pytest.approx(0.857, abs=0.02)
    assert records[interactive, 7].max() <= 45
    assert records[~interactive, 7].max() == 128
    assert np.mean(records[interactive, 7] == 1) == pytest.approx(0.1541, abs=0.015)
    assert np.mean(records[~interactive, 7] == 1) == pytest.approx(0.2927, abs=0.03)
    assert np.median(records[interactive, 3]) < np.median(records[~interactive, 3])
    assert (records_of(jobs=50, types="batch")[:, 14] == 1).all()


@pytest.mark.parametrize("processors", [1, 2, 3, 100, 1024])
@pytest.mark.parametrize("types", ["all", "both"])
def test_fits_other_machines(processors: int, types: str) -> None:
    size = records_of(jobs=2000, processors=processors, types=types)[:, 7]
    assert size.min() == 1
    assert size.max() <= processors
    assert size.max() > processors / 3


@pytest.mark.parametrize("load", [0.1, 0.7, 1.3])
def test_reaches_a_load(load: float) -> None:
    workload = draw(2, jobs=3000, load=load)
    trace = Trace("lublin", records=to_records(workload.jobs))
    assert offered_load(trace, 128) == pytest.approx(load, rel=0.001)
    assert workload.notes[0].startswith(f"load {load:g}: times between submissions multiplied by ")


@pytest.mark.parametrize("options", [{"jobs": 1}, {"processors": 0}, {"types": "some"}, {"load": 0}])
def test_refuses_what_is_out_of_range(options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        LublinOptions(**options)
