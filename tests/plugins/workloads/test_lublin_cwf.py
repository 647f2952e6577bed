"""The generator of Kumar, Shae and Jamjoom: shares, means and load, for fixed seeds."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from headway.workload import (
    Trace,
    Workload,
    WorkloadModel,
    offered_load,
    to_cloud_records,
    to_records,
)
from headway.workload.trace import Records
from headway_plugins.workloads.lublin_cwf import PAPER_ARRIVALS, LublinCwf, LublinCwfModel, LublinCwfOptions

MANY = 40_000


def draw(seed: int = 1, **options: Any) -> Workload:
    return LublinCwfModel().generate(np.random.default_rng(seed), LublinCwfOptions(**options))


def records_of(seed: int = 1, **options: Any) -> Records:
    return to_records(draw(seed, **options).jobs)


def test_is_a_workload_model() -> None:
    model: WorkloadModel = LublinCwf().register_workloads()["lublin-cwf"]
    workload = model.generate(np.random.default_rng(1), model.Options())
    assert workload == draw()
    assert (len(workload.jobs), workload.processors) == (500, 320)


def test_is_the_same_for_the_same_seed_only() -> None:
    assert draw(3, load=0.8, p_dedicated=0.5) == draw(3, load=0.8, p_dedicated=0.5)
    assert draw(3) != draw(4)


# ------------------------------------------------------------------------------------- sizes


@pytest.mark.parametrize(("p_small", "mean"), [(0.2, 192), (0.5, 144), (0.8, 96)])
def test_sizes_are_multiples_of_32_with_the_text_s_mean(p_small: float, mean: float) -> None:
    size = records_of(jobs=MANY, p_small=p_small)[:, 7]
    units, count = np.unique(size / 32, return_counts=True)
    share = dict(zip(units.tolist(), (count / MANY).tolist(), strict=True))
    assert set(share) == set(range(1, 11))
    assert sum(share[unit] for unit in (1, 2, 3)) == pytest.approx(p_small, abs=0.01)
    assert share[1] == pytest.approx(p_small / 4, abs=0.01), "the end values have half the weight"
    assert share[2] == pytest.approx(p_small / 2, abs=0.01)
    assert share[10] == pytest.approx((1 - p_small) / 12, abs=0.01)
    assert share[7] == pytest.approx((1 - p_small) / 6, abs=0.01)
    assert size.mean() == pytest.approx(mean, abs=1.5)


@pytest.mark.parametrize(("p_small", "paper"), [(0.5, 139.35), (0.8, 89.72)])
def test_the_paper_s_mean_sizes_are_samples_of_500_jobs_like_ours(p_small: float, paper: float) -> None:
    means = np.array([records_of(seed, p_small=p_small)[:, 7].mean() for seed in range(200)])
    assert abs(paper - means.mean()) < 2.2 * means.std()
    assert means.min() < paper


def test_a_second_stage_from_3_explains_all_three_mean_sizes() -> None:
    for p_small, paper in ((0.2, 177.7), (0.5, 139.35), (0.8, 89.72)):
        size = records_of(jobs=MANY, p_small=p_small, large=(3, 10))[:, 7]
        assert abs(paper - size.mean()) < 1.2 * size.std() / np.sqrt(500)


# ---------------------------------------------------------------------------------- runtimes


@pytest.mark.parametrize(
    ("p_small", "processors", "units"),
    [(0.2, 12_200, 3_930), (0.5, 10_600, 3_830), (0.8, 9_000, 3_730)],
)
def test_mean_runtimes_of_both_readings(p_small: float, processors: float, units: float) -> None:
    runtime = records_of(jobs=MANY, p_small=p_small)[:, 3]
    assert runtime.mean() == pytest.approx(processors, rel=0.03)
    assert runtime.max() <= np.exp(12) + 1
    runtime = records_of(jobs=MANY, p_small=p_small, size_in="units")[:, 3]
    assert runtime.mean() == pytest.approx(units, rel=0.06)


def test_large_jobs_run_longer() -> None:
    records = records_of(jobs=MANY)
    median = [np.median(records[records[:, 7] == 32 * units, 3]) for units in (1, 3, 5, 10)]
    assert median[0] < median[1] < median[2]
    # From 145 processors on there is only the second gamma, around e^9.36.
    assert np.log(median[2:]) == pytest.approx(9.35, abs=0.05)


# ------------------------------------------------------------------------------ arrivals and load


def test_arrivals_follow_the_hours_of_the_day() -> None:
    day = PAPER_ARRIVALS.day()
    assert (len(day), int(np.argmax(day))) == (24, 13)
    submit = records_of(jobs=MANY, beta_arr=0.45)[:, 1]
    counted = np.bincount((submit % 86400 // 3600).astype(int), minlength=24) / MANY * 24
    assert np.abs(counted - day).max() < 0.15


@pytest.mark.parametrize("p_small", [0.2, 0.5, 0.8])
@pytest.mark.parametrize("size_in", ["processors", "units"])
@pytest.mark.parametrize("load", [0.5, 0.9, 1.0])
def test_reaches_the_load_within_a_hundredth(p_small: float, size_in: str, load: float) -> None:
    for seed in range(4):
        workload = draw(seed, p_small=p_small, size_in=size_in, load=load)
        found = offered_load(Trace("x", records=to_records(workload.jobs)), 320)
        assert found == pytest.approx(load, rel=0.01)
        assert workload.notes[0].startswith(f"load {load:g}: beta_arr 0.")


def test_says_whether_the_load_was_reached_within_the_paper_s_range() -> None:
    (note,) = draw(1, load=0.9).notes
    found = re.fullmatch(r"load 0\.9: beta_arr (0\.\d+)", note)
    assert found and 0.4101 < float(found[1]) < 0.6101
    (note,) = draw(1, load=2.9, p_small=1.0, size_in="units").notes
    assert re.fullmatch(
        r"load 2\.9: beta_arr 0\.410100 gives \d\.\d+; times between submissions multiplied by 0\.\d+", note
    )
    (note,) = draw(1, load=0.01).notes
    assert re.fullmatch(r"load 0\.01: beta_arr 0\.610100 gives .* multiplied by \d+\.?\d*", note)
    (note,) = draw(1, beta_arr=0.5).notes
    assert re.fullmatch(r"beta_arr 0\.5: load \d\.\d+", note)


@pytest.mark.parametrize("jobs", [2, 3, 10])
@pytest.mark.parametrize("load", [0.01, 0.9, 3])
def test_few_jobs_reach_their_load_too(jobs: int, load: float) -> None:
    workload = draw(1, jobs=jobs, load=load)
    assert offered_load(Trace("x", records=to_records(workload.jobs)), 320) == pytest.approx(load, rel=0.01)


def test_the_load_changes_the_arrivals_only() -> None:
    low, high = draw(7, load=0.5, p_dedicated=0.5), draw(7, load=1.0, p_dedicated=0.5)
    assert [(j.job.request, j.runtime) for j in low.jobs] == [(j.job.request, j.runtime) for j in high.jobs]
    assert sorted((c.job_id, c.command, c.amount) for c in low.commands) == sorted(
        (c.job_id, c.command, c.amount) for c in high.commands
    )
    assert low.jobs[-1].job.submit_time > 1.5 * high.jobs[-1].job.submit_time


# -------------------------------------------------------------------- dedicated jobs and commands


@pytest.mark.parametrize("p_dedicated", [0.0, 0.5, 0.9, 1.0])
def test_dedicated_jobs_have_their_share_and_an_exponential_lead(p_dedicated: float) -> None:
    workload = draw(jobs=MANY, p_dedicated=p_dedicated)
    records, start, _ = to_cloud_records(workload.jobs)
    dedicated = start >= 0
    assert np.mean(dedicated) == pytest.approx(p_dedicated, abs=0.01)
    if p_dedicated:
        lead = (start - records[:, 1])[dedicated]
        assert lead.min() >= 0
        assert lead.mean() == pytest.approx(3600, rel=0.03)
        assert lead.std() == pytest.approx(3600, rel=0.05)
    shorter = draw(jobs=MANY, p_dedicated=1, lead_time=60)
    assert np.mean(
        [j.job.attributes["requested_start"] - j.job.submit_time for j in shorter.jobs if j.job.attributes]
    ) == pytest.approx(60, rel=0.03)


def test_commands_have_their_shares_and_exponential_amounts() -> None:
    workload = draw(jobs=MANY)
    runtime = {job.job.id: job.runtime for job in workload.jobs}
    for command, share in (("ET", 0.2), ("RT", 0.1)):
        given = [one for one in workload.commands if one.command == command]
        assert len(given) / MANY == pytest.approx(share, abs=0.006)
        assert len({one.job_id for one in given}) == len(given)
        ratio = np.array([one.amount / runtime[one.job_id] for one in given if runtime[one.job_id] > 1000])
        assert ratio.mean() == pytest.approx(0.25, rel=0.05)
        assert ratio.std() == pytest.approx(0.25, rel=0.07)
    assert {one.command for one in workload.commands} == {"ET", "RT"}
    assert min(one.amount for one in workload.commands) >= 1
    assert all(one.amount.is_integer() and one.time.is_integer() for one in workload.commands)


def test_commands_are_in_order_and_come_while_the_job_is_there() -> None:
    workload = draw(jobs=2000, p_dedicated=0.5, p_extend=1, p_reduce=1)
    assert len(workload.commands) == 4000
    times = [one.time for one in workload.commands]
    assert times == sorted(times)
    jobs = {job.job.id: job for job in workload.jobs}
    for one in workload.commands:
        job = jobs[one.job_id]
        submit = job.job.submit_time
        start = (job.job.attributes or {}).get("requested_start", submit)
        assert submit < one.time
        assert one.time < start + job.runtime or start + job.runtime - submit <= 1


def test_a_batch_workload_has_neither() -> None:
    workload = draw(p_extend=0, p_reduce=0)
    assert workload.commands == []
    assert all(job.job.attributes is None for job in workload.jobs)


# ------------------------------------------------------------------------------------ options


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"p_small": 1.1}, "p_small"),
        ({"jobs": 1}, "jobs"),
        ({"load": 0}, "load"),
        ({"beta_arr": 1}, "beta_arr"),
        ({"large": (10, 4)}, "large to hold two sizes from 1 on, the smaller first"),
        (
            {"processors": 256},
            "large jobs of up to 10 units of 32 within the machine's 256 processors",
        ),
        ({"small": (0, 4)}, "small to hold two sizes from 1 on"),
        ({"ps": 0.5}, "ps"),
    ],
)
def test_refuses_what_is_out_of_range(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        LublinCwfOptions(**options)


def test_another_machine_with_another_unit() -> None:
    size = records_of(processors=64, unit=1, small=(1, 8), large=(9, 64))[:, 7]
    assert (size.min(), size.max()) == (1, 64)
