"""What the times of jobs say of their user: estimators of R_0, both methods, the archive's users."""

from __future__ import annotations

import math

import numpy as np
import pytest

from headway.errors import UserError
from headway.workload import Column, Trace, read_trace
from headway_plugins.grid.arrivals import Submitter
from headway_plugins.grid.estimation import (
    exact_silence,
    fit_user,
    fitted_shape,
    silence_of,
    tumbling_silence,
)
from headway_plugins.grid.fitted_log import fit_log
from headway_plugins.grid.rates import Rates

W8 = Rates(0.001, 0.002, 0.05)
W11 = Rates(1 / 36000, 1 / 600, 1 / 5)


def simulated(rates, jobs, seed=1):
    """Whole seconds, as logs have them."""
    return np.floor(Submitter(np.random.default_rng(seed), rates).until(jobs / rates.job_rate))


def test_w25_both_estimators():
    times, t = np.array([5.0, 6.0, 25.0]), np.array([10.0])
    assert tumbling_silence(times, 0.0, 40.0, t) == pytest.approx([0.5])
    assert exact_silence(times, 0.0, 40.0, t) == pytest.approx([14 / 30])


def test_w4_ten_jobs_and_silence():
    times = np.concatenate([3600.0 * hour + 60.0 * np.arange(10) for hour in range(1000)])
    gaps = np.diff(np.append(times, 3_600_000.0))
    assert (gaps.mean(), gaps.std() / gaps.mean()) == pytest.approx((360, 2.5))
    assert fit_user(times).variation == pytest.approx(2.5, abs=0.01)


def test_no_window_is_longer_than_what_is_looked_at():
    assert np.isnan(exact_silence(np.array([1.0, 2.0]), 0.0, 3.0, np.array([3.0, 5.0]))).all()
    assert np.isnan(tumbling_silence(np.array([1.0, 2.0]), 0.0, 3.0, np.array([5.0]))).all()
    # Windows side by side leave out the last one, which is not whole.
    assert tumbling_silence(np.array([1.0, 28.0]), 0.0, 29.0, np.array([10.0])) == pytest.approx([0.5])


@pytest.mark.parametrize("estimator", ["exact", "tumbling"])
def test_silences_of_a_log_are_those_of_the_rates(estimator):
    t = np.geomspace(1, 3600, 30)
    found = silence_of(simulated(W8, 100_000), 0.0, 100_000 / W8.job_rate, t, estimator)
    assert np.abs(found - W8.silence()(t)).max() < 0.02


@pytest.mark.parametrize(
    ("method", "estimator"), [("silences", "exact"), ("silences", "tumbling"), ("counts", "exact")]
)
@pytest.mark.parametrize("rates", [W8, W11])
def test_acceptance_5_rates_of_simulated_users_are_found_again(rates, method, estimator):
    found = fit_user(simulated(rates, 100_000), method=method, estimator=estimator)
    assert not found.poisson
    ours = (found.rates.logon, found.rates.logout, found.rates.submit)
    assert ours == pytest.approx((rates.logon, rates.logout, rates.submit), rel=0.15)
    # The rate of jobs is the log's.
    assert found.rates.job_rate == pytest.approx(found.job_rate, rel=1e-6)
    assert (found.distance is None) == (method == "silences")


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_acceptance_5_a_poisson_user_is_poisson_like(seed):
    for rate, jobs in ((0.01, 20_000), (0.001, 300)):
        found = fit_user(simulated(Rates(1.0, 0.0, rate), jobs, seed))
        assert found.poisson
        assert found.rates.logout == 0
        assert found.rates.job_rate == pytest.approx(found.job_rate)


def test_jobs_within_a_second_are_not_lost():
    # Each submission is an array of 5 jobs.
    times = np.repeat(simulated(W8, 20_000), 5)
    found = fit_user(times)
    assert found.batch >= 5
    assert found.rates.job_rate == pytest.approx(len(times) / found.duration)
    assert Rates.of_silence(found.shape.two).job_rate < 0.4 * found.job_rate


def test_few_jobs_say_no_more_than_their_rate():
    found = fit_user(np.array([0.0, 1.0, 2.0, 1000.0]))
    assert found.poisson and found.shape is None
    assert found.rates.job_rate == pytest.approx(4 / 1000)
    assert math.isnan(fit_user(np.array([0.0, 10.0])).variation)


@pytest.mark.parametrize(
    ("times", "what"),
    [
        ([], "found none"),
        ([5.0], "over some time"),
        ([5.0, 5.0, 5.0], "over some time"),
        ([5.0, 4.0], "that rise"),
        ([0.0, math.nan], "that rise"),
        ([0.0, math.inf], "that rise"),
    ],
)
def test_refuses_times_that_say_nothing(times, what):
    with pytest.raises(UserError, match=what):
        fit_user(np.array(times))


def log(users, runtime=60.0):
    """A trace of users with these times; the group of each is 10 times his number."""
    times = np.concatenate(list(users.values()))
    who = np.repeat(list(users), [len(own) for own in users.values()])
    order = np.argsort(times, kind="stable")
    records = np.full((len(times), len(Column)), -1.0)
    records[:, Column.SUBMIT], records[:, Column.USER] = times[order], who[order]
    records[:, Column.GROUP], records[:, Column.RUNTIME] = 10 * who[order], runtime
    return Trace("log", records=records)


def test_a_log_of_several_users():
    bursty, even = simulated(W8, 5000), simulated(Rates(1.0, 0.0, 0.01), 3000)
    found = fit_log(log({1: bursty, 2: even, 3: np.array([7.0])}))
    assert list(found.fits) == [(1, 10), (2, 20)]
    assert [one.poisson for one in found.fits.values()] == [False, True]
    assert found.left_out == 1
    assert list(found.group_runtimes) == [10, 20]
    whole = fit_log(log({1: bursty, 2: even, 3: np.array([7.0])}), whole_log=True)
    assert len(whole.fits) == 3 and whole.left_out == 0
    by_group = fit_log(log({1: bursty, 2: even}), by="group")
    assert list(by_group.fits) == [(10, 10), (20, 20)]


def test_rates_on_a_line_are_found_on_it():
    users = {n: np.linspace(0.0, 1e6, round(2000 * 0.7**n)) for n in range(1, 9)}
    found = fit_log(log(users))
    assert found.slope == pytest.approx(0.7, rel=0.01)
    assert found.r2 > 0.999


def test_refuses_a_log_without_jobs_or_time():
    with pytest.raises(UserError, match="log: expected jobs, found none"):
        fit_log(Trace("log"))
    with pytest.raises(UserError, match="log: expected jobs over some time"):
        fit_log(log({1: np.array([5.0, 5.0])}))


@pytest.mark.traces
@pytest.mark.parametrize(
    ("name", "user", "jobs", "wanted"),
    [
        ("KTH-SP2-1996-2.1-cln", 91, 2375, (0.9905, 0.9334, 0.8607, 0.6096)),
        pytest.param(
            "SDSC-BLUE-2000-4.1-cln", 35, 17_687, (0.9636, 0.8152, 0.7403, 0.6664), marks=pytest.mark.long
        ),
        pytest.param(
            "HPC2N-2002-2.1-cln", 17, 39_220, (0.9681, 0.8461, 0.7822, 0.5742), marks=pytest.mark.long
        ),
    ],
)
def test_acceptance_7_the_most_active_users_of_the_archive(trace_dir, name, user, jobs, wanted):
    records = read_trace(trace_dir / f"{name}.swf.gz").records
    submit = records[:, Column.SUBMIT]
    own = submit[records[:, Column.USER] == user]
    assert len(own) == jobs
    found = exact_silence(own, submit[0], submit[-1], np.array([300.0, 3600.0, 10_000.0, 86_400.0]))
    assert found == pytest.approx(wanted, abs=5e-4)
    t = np.geomspace(1.0, 1e5, 60)
    shape = fitted_shape(t, exact_silence(own, submit[0], submit[-1], t))
    assert shape.two_error < 0.03
    assert shape.one_error > 4 * shape.two_error
