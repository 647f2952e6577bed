"""The workload model "login-logout": what is drawn has the rates, the presets their figures; bad options."""

from __future__ import annotations

import numpy as np
import pydantic
import pytest

from headway.errors import UserError
from headway.workload import to_records
from headway.workload.trace import Column
from headway_plugins.grid.arrivals import DailyCycle, Submitter, spread_rates
from headway_plugins.grid.login_logout import LoginLogoutModel, LoginLogoutOptions, queue_numbers
from headway_plugins.grid.lpc import GROUPS
from headway_plugins.grid.rates import Rates

DAY = 86400.0
W8 = Rates(0.001, 0.002, 0.05)


def drawn(seed=1, **options):
    return LoginLogoutModel().generate(np.random.default_rng(seed), LoginLogoutOptions(**options))


def columns(workload):
    records = to_records(workload.jobs)
    return records[:, Column.SUBMIT], records[:, Column.RUNTIME], records[:, Column.GROUP]


# ---------------------------------------------------------------------- arrivals


def test_acceptance_4_w26_a_simulated_user_has_his_rate_variation_and_silences():
    times = Submitter(np.random.default_rng(1), W8).until(5e6)
    gaps = np.diff(times)
    assert len(times) / 5e6 == pytest.approx(0.016667, rel=0.05)
    assert gaps.std() / gaps.mean() == pytest.approx(4.82, rel=0.05)
    filled = len(np.unique(times // 300))
    assert 1 - filled / (5e6 // 300) == pytest.approx(0.519, abs=0.02)


@pytest.mark.parametrize(
    ("rates", "window"),
    [
        (W8, 300.0),
        (Rates(1 / 36000, 1 / 600, 1 / 5), 3600.0),
        (Rates(1.0, 1.0, 1.0), 1.0),
        (Rates(2.0, 0.0, 3.0), 1.0),
        (Rates(0.01, 0.5, 2.0), 10.0),
    ],
)
def test_acceptance_4_simulations_agree_with_the_chances(rates, window):
    # 40 runs, so that the standard error is that of independent means.
    runs, length = 40, 4000 * window
    counts, means, ratios = [], [], []
    for seed in range(runs):
        times = Submitter(np.random.default_rng(seed), rates).until(length)
        per_window = np.bincount((times // window).astype(np.int64), minlength=4000)
        counts.append([(per_window == n).mean() for n in range(4)])
        means.append(len(times) / length)
        gaps = np.diff(times)
        ratios.append((gaps**2).mean())

    def apart(found, wanted):
        found = np.array(found)
        return np.abs(found.mean(axis=0) - wanted) / (found.std(axis=0, ddof=1) / runs**0.5)

    assert (apart(counts, rates.counts(window, 3)[:4]) < 4).all()
    assert apart(means, rates.job_rate) < 4
    assert apart(ratios, rates.mean_gap**2 * (rates.variation**2 + 1)) < 4


def test_a_stretch_goes_on_where_the_last_one_ended():
    # Logged on at the end of the first stretch: the second begins with his jobs, and the other way round.
    busy = Rates(1e-9, 1e-9, 1.0)
    inside = 0
    for seed in range(20):
        one = Submitter(np.random.default_rng(seed), busy)
        first, second = one.until(50.0), one.until(100.0)
        assert (len(first) > 0) == (len(second) > 0)
        assert not len(second) or (second.min() >= 50 and second.max() <= 100)
        inside += len(first) > 0
    assert 0 < inside < 20


def test_days_cycles_move_jobs_to_their_hours():
    noon = DailyCycle(((-1.0, 0.0),))  # nothing at midnight, twice the mean at noon
    for cycles in ({"logon": noon}, {"submit": noon}, {"logon": noon, "submit": noon}):
        times = Submitter(np.random.default_rng(1), Rates(1e-3, 1e-3, 0.02), **cycles).until(40 * DAY)
        hour = times % DAY // 3600
        assert (hour == 12).sum() > 8 * max((hour == 0).sum(), 1)
    plain = Submitter(np.random.default_rng(1), Rates(1e-3, 1e-3, 0.02)).until(400 * DAY)
    waved = Submitter(np.random.default_rng(1), Rates(1e-3, 1e-3, 0.02), submit=noon).until(400 * DAY)
    assert len(waved) == pytest.approx(len(plain), rel=0.02)


def test_users_of_a_group_lie_on_a_line_and_are_together_the_group():
    users = spread_rates(W8, 10, 0.5)
    rates = np.array([user.job_rate for user in users])
    assert rates.sum() == pytest.approx(W8.job_rate)
    assert np.diff(np.log(rates)) == pytest.approx(-0.5)


# ---------------------------------------------------------------------- presets


def test_acceptance_8_280_days_have_the_printed_numbers_of_jobs_and_runtimes():
    submit, runtime, group = columns(drawn(days=280))
    for number, preset in enumerate(GROUPS.values(), start=1):
        own = group == number
        # Of a renewal process: the variance of the number of jobs is about CV^2 times the mean.
        deviation = preset.rates.variation * preset.jobs**0.5
        assert abs(own.sum() - 280 * DAY / preset.mean_gap) < 4 * deviation, preset.name
        # The printed numbers are those of each group's own time, which of Dzero is 77 days.
        days = preset.jobs * preset.mean_gap / DAY
        mine = own & (submit < days * DAY)
        assert days < 281 and abs(mine.sum() - preset.jobs) < 4 * deviation, preset.name
        if preset.name in ("Biomed", "Dteam"):
            # Standard error of the mean of so many runtimes: 1.3 and 5.4 %.
            error = preset.run_deviation / own.sum() ** 0.5
            assert runtime[own].mean() == pytest.approx(
                preset.mean_run, abs=max(0.05 * preset.mean_run, 3 * error)
            )
    assert submit[0] >= 0 and submit[-1] <= 280 * DAY and (np.diff(submit) >= 0).all()


def test_many_runtimes_of_biomed_and_dteam_have_the_printed_mean():
    rng = np.random.default_rng(1)
    for name in ("lpc-biomed", "lpc-dteam"):
        group = GROUPS[name]
        assert group.runtimes.draw(rng, 1_000_000).mean() == pytest.approx(group.mean_run, rel=0.05)


# ---------------------------------------------------------------------- workloads


def test_jobs_are_serial_and_in_the_smallest_queue_that_lets_them_end():
    workload = drawn(days=20)
    assert workload.processors == 140
    for job in workload.jobs:
        assert job.job.request.processors == 1
        assert job.runtime <= job.job.request.walltime
    assert queue_numbers(np.array([1, 300, 301, 1200, 28800, 86400, 86401, 259200])).tolist() == [
        1, 1, 2, 2, 3, 4, 5, 5,
    ]  # fmt: skip
    assert {job.job.qos for job in workload.jobs} == {"1", "2", "3", "4", "5"}
    assert "group 1: Biomed, 1 user" in workload.notes


def test_so_many_jobs_as_are_wanted_at_the_wanted_load():
    for arrivals in ("login-logout", "poisson"):
        workload = drawn(jobs=3000, load=0.6, arrivals=arrivals)
        submit, runtime, _ = columns(workload)
        assert len(submit) == 3000
        assert runtime.sum() / (140 * (submit[-1] - submit[0])) == pytest.approx(0.6, rel=1e-3)


def test_poisson_arrivals_have_the_same_rate_and_no_bursts():
    group = {"name": "A", "mean_gap": 60, "cv": 5, "burst": 50}
    bursts, flat = (
        columns(drawn(groups=[group], days=200, arrivals=arrivals))[0]
        for arrivals in ("login-logout", "poisson")
    )
    assert len(flat) == pytest.approx(200 * DAY / 60, rel=0.02)
    assert np.diff(flat).std() / np.diff(flat).mean() == pytest.approx(1, abs=0.03)
    assert np.diff(bursts).std() / np.diff(bursts).mean() == pytest.approx(5, rel=0.1)


def test_a_group_of_users_with_rates_and_runtimes_of_its_own():
    group = {
        "name": "A", "lambda": 0.001, "delta": 0.002, "mu": 0.05, "users": 3, "spread": 1.0,
        "runtimes": {"knots": [10, 20], "masses": [1.0]},
    }  # fmt: skip
    workload = drawn(groups=[group, "lpc-dzero"], days=20)
    own = [job for job in workload.jobs if job.job.group == "1"]
    users = [sum(job.job.user == str(number) for job in own) for number in (1, 2, 3)]
    assert users == sorted(users, reverse=True) and users[0] > 1.8 * users[1]
    assert {10 <= job.runtime <= 20 for job in own} == {True}
    assert {job.job.user for job in workload.jobs if job.job.group == "2"} <= {"4"}


def test_monitors_submit_on_the_hour():
    workload = drawn(groups=["lpc-dzero"], days=2, monitors=2, monitor_runtime=30)
    own = [job for job in workload.jobs if job.job.group == "2"]
    assert len(own) == 96
    assert {job.job.submit_time % 3600 for job in own} == {0}
    assert {job.runtime for job in own} == {30}


def test_the_same_seed_gives_the_same_jobs():
    assert drawn(3, days=3).jobs == drawn(3, days=3).jobs
    assert drawn(3, days=3).jobs != drawn(4, days=3).jobs


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"groups": ["lpc-biomet"]}, "lpc-biomed"),
        ({"groups": []}, "at least one group"),
        ({"groups": [{"name": "A", "mu": 1.0}]}, "either lambda, delta and mu, or mean_gap"),
        ({"groups": [{"name": "A", "lambda": 0, "delta": 0, "mu": 1.0}]}, "found both 0"),
        ({"groups": [{"name": "A", "mean_gap": 223.6, "cv": 23.22, "burst": 200}]}, "b must be at least 269"),
        ({"groups": [{"name": "A", "lambda": 1, "delta": 1, "mu": 1, "cv": 3}]}, "either lambda"),
        ({"groups": [{"name": "A", "lambda": -1, "delta": 1, "mu": 1}]}, "greater than or equal to 0"),
        (
            {"groups": [{"name": "A", "lambda": 1, "delta": 1, "mu": 1,
                         "runtimes": {"knots": [1, 10], "masses": [1.2]}}]},
            "1 together, found 1.2",
        ),
        ({"daily_submit": [[1e300, 0]]}, "at most 100"),
        ({"file": "nowhere.yaml"}, "nowhere.yaml: cannot be read"),
        ({"file": "nowhere.yaml", "groups": ["lpc-dteam"]}, "found both"),
        ({"days": 0}, "greater than 0"),
    ],
)  # fmt: skip
def test_refuses_options_that_cannot_be(options, what):
    with pytest.raises(pydantic.ValidationError, match=what):
        LoginLogoutOptions(**options)


def test_refuses_workloads_that_nobody_could_hold_or_wait_for():
    busy = {"name": "A", "lambda": 1, "delta": 1, "mu": 1000}
    with pytest.raises(UserError, match="at most 5,000,000 jobs, found that 1,296,000,000 would come"):
        drawn(groups=[busy], days=30)
    with pytest.raises(UserError, match="found rates of 0"):
        drawn(groups=[{"name": "A", "lambda": 0, "delta": 1, "mu": 1}], jobs=10)
