"""Rates of users that log on, submit and log off: the vectors of Medernach 2005, and what always holds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import expm

from headway.errors import UserError
from headway_plugins.grid.rates import Rates, TwoExponentials

W5 = Rates(1.0, 1.0, 1.0)
W8 = Rates(0.001, 0.002, 0.05)


def approx(value, rel=1e-8):
    return pytest.approx(value, rel=rel)


def printed(value, digits):
    return pytest.approx(value, abs=0.5001 * 10**-digits)


def test_w5_all_rates_1():
    gap, silence = W5.gap(), W5.silence()
    assert (gap.fast, gap.slow) == (printed(2.6180339887, 10), printed(0.3819660113, 10))
    assert (gap.share, silence.share) == (printed(0.2763932023, 10), printed(0.0527864045, 10))
    assert (W5.mean_gap, W5.variation**2, W5.share_in, W5.burst) == approx((2, 1.5, 0.5, 1))


def test_w6_numbers_of_jobs_in_a_second():
    counts = W5.counts(1.0, 3)
    assert counts[0] == printed(0.6503411305, 10)
    assert counts[1:4] == printed(np.array([0.23599368, 0.08442855, 0.02307968]), 8)
    assert W5.gap()(1.0) == printed(0.5140366616, 10)


def test_w7_silences_and_gaps():
    assert W5.silence()([0.5, 2.0]) == printed(np.array([0.7967941561, 0.4415224942]), 10)
    assert W5.gap()([0.5, 2.0]) == printed(np.array([0.6724550904, 0.3385493224]), 10)


def test_w8_a_bursty_user():
    gap, silence = W8.gap(), W8.silence()
    assert (gap.fast, gap.slow) == (printed(0.0520391856, 10), printed(0.0009608144, 10))
    assert (gap.share, silence.share) == (printed(0.9600773178, 10), printed(0.3074853777, 10))
    assert (W8.mean_gap, W8.burst) == approx((60, 25))
    assert W8.variation**2 == printed(23.2222222, 7)


def test_w9_w10_his_numbers_of_jobs_and_silences():
    counts = W8.counts(300.0, 3)
    assert counts[0] == printed(0.5190940730, 10)
    assert counts[1:4] == printed(np.array([0.02472351, 0.02421195, 0.02369585]), 8)
    assert W8.gap()(300.0) == printed(0.0299253406, 10)
    assert W8.silence()([60.0, 3600.0]) == printed(np.array([0.6672666889, 0.0217888296]), 10)


def test_w11_a_user_who_is_seldom_there():
    rates = Rates(1 / 36000, 1 / 600, 1 / 5)
    assert (rates.mean_gap, rates.share_in, rates.burst) == approx((305, 1 / 61, 120))
    assert rates.variation**2 == printed(233.1956463, 7)
    assert rates.silence()([300.0, 3600.0]) == printed(np.array([0.9757787652, 0.8909843817]), 10)


def test_w12_who_never_leaves_is_a_poisson_process():
    rates = Rates(2.0, 0.0, 3.0)
    assert rates.silence()(1.0) == printed(0.0497870684, 10)
    assert rates.counts(1.0, 1)[1] == printed(0.14936121, 8)
    assert rates.variation == 1.0
    assert rates.burst == math.inf


def test_w13_rates_from_the_gaps():
    rates = Rates.of_gap(TwoExponentials(0.3, 0.1, 0.001))
    assert rates.submit == approx(0.0307)
    assert (rates.logon, rates.logout) == (printed(0.003257328990, 12), printed(0.067042671010, 12))
    assert rates.mean_gap == approx(703)


def test_w14_rates_from_the_silences():
    rates = Rates.of_silence(TwoExponentials(0.2, 0.05, 0.0001))
    assert rates.job_rate == approx(0.01008)
    assert rates.submit == printed(0.049603968254, 12)
    assert (rates.logon, rates.logout) == (approx(1.00798387e-4), approx(3.95233359e-4))
    assert rates.burst == printed(125.50552, 5)


def test_w15_jobs_of_a_login():
    rates = Rates(1.0, 0.002, 0.05)
    assert (rates.login_jobs(0), rates.login_jobs(1)) == (
        printed(0.0384615385, 10),
        printed(0.0369822485, 10),
    )
    assert rates.burst == approx(25)


def test_w16_rates_from_mean_variation_and_burst():
    variation = 5194.5 / 223.6
    burst = 1.25 * (variation**2 - 1) / 2
    rates = Rates.of_moments(223.6, variation, burst)
    assert burst == printed(336.681, 3)
    assert (rates.share_in, rates.submit) == (printed(0.105573, 6), printed(0.042362, 6))
    assert (rates.logout, rates.logon) == (printed(1.25822e-4, 9), printed(1.48513e-5, 10))
    assert (rates.mean_gap, rates.variation) == approx((223.6, variation))


def test_w17_bursts_that_are_too_small_for_the_variation():
    with pytest.raises(UserError, match=r"b must be at least 269\.34 .*, found 200"):
        Rates.of_moments(223.6, 5194.5 / 223.6, 200)


def test_a_user_who_never_submits_or_never_comes():
    assert Rates(1.0, 1.0, 0.0).silence()([0.0, 1e9]) == approx([1.0, 1.0])
    assert Rates(0.0, 1.0, 1.0).silence()([0.0, 1e9]) == approx([1.0, 1.0])
    assert Rates(1.0, 0.0, 1.0).silence()(2.0) == approx(math.exp(-2))


@pytest.mark.parametrize(
    "rates", [(-1.0, 1.0, 1.0), (1.0, math.nan, 1.0), (1.0, 1.0, math.inf), (0.0, 0.0, 1.0)]
)
def test_refuses_rates_that_are_none(rates):
    with pytest.raises(UserError, match="rates: expected"):
        Rates(*rates)


def test_refuses_what_no_rates_have():
    for wrong in (
        TwoExponentials(1.5, 1.0, 0.1),
        TwoExponentials(0.5, 0.1, 1.0),
        TwoExponentials(0.0, 1.0, 0.0),
    ):
        with pytest.raises(UserError, match="rates: expected"):
            Rates.of_silence(wrong)
    with pytest.raises(UserError, match="coefficient of variation above 1"):
        Rates.of_moments(10.0, 0.9, 50.0)
    with pytest.raises(UserError, match="windows of at most"):
        W8.counts(1e12, 3)


def test_what_a_user_who_was_there_just_now_does_next():
    # Right after a job it is A; when long nothing came, the slow exponential alone.
    assert W8.no_arrival(100.0, 0.0) == approx(W8.gap()(100.0))
    assert W8.no_arrival(100.0) == approx(W8.silence()(100.0))
    assert W8.no_arrival(100.0, 1e7) == approx(math.exp(-100.0 * W8.gap().slow))
    assert W8.no_arrival(100.0, 30.0) == approx(W8.gap()(130.0) / W8.gap()(30.0))


# ---------------------------------------------------------------------- what holds for all rates

a_rate = st.floats(-6.0, 0.0).map(lambda exponent: 10.0**exponent)
some_rates = st.builds(Rates, a_rate, a_rate, a_rate)


@given(some_rates, st.floats(-2.0, 3.0))
def test_acceptance_3_chances_are_chances(rates, exponent):
    t = 10.0**exponent / rates.submit if rates.submit * 10.0**exponent < 1e4 else 1.0
    counts = rates.counts(t, 40)
    assert counts.sum() == pytest.approx(1.0, abs=1e-12)
    silence = rates.silence()
    assert counts[0] == pytest.approx(float(silence(t)), abs=1e-12)
    assert silence(0.0) == pytest.approx(1.0)
    assert 0.0 <= silence.share <= 1.0 and 0.0 <= rates.gap().share <= 1.0
    times = np.linspace(0.0, 5.0 / rates.job_rate, 200)
    found = silence(times)
    assert (np.diff(found) < 0).all()
    assert (np.diff(found, 2) > -1e-12).all()


@given(some_rates)
def test_acceptance_3_gaps_are_the_slope_of_silences(rates):
    silence, gap = rates.silence(), rates.gap()
    times = np.geomspace(0.01, 10.0, 30) / rates.job_rate
    slope = -silence.share * silence.fast * np.exp(-silence.fast * times)
    slope -= (1 - silence.share) * silence.slow * np.exp(-silence.slow * times)
    assert gap(times) == pytest.approx(-slope / rates.job_rate, rel=1e-7, abs=1e-12)


@given(some_rates)
def test_acceptance_3_rates_come_back(rates):
    wanted = pytest.approx((rates.logon, rates.logout, rates.submit), rel=1e-9)
    for found in (Rates.of_gap(rates.gap()), Rates.of_silence(rates.silence())):
        assert (found.logon, found.logout, found.submit) == wanted


@pytest.mark.parametrize(("rates", "t"), [(W5, 1.0), (W8, 300.0), (Rates(0.3, 0.3, 0.3), 7.0)])
def test_numbers_of_jobs_are_those_of_the_equations(rates, t):
    # (7)-(9) as one exponential: blocks of the two states for n = 0, 1, ...
    most = 20
    move = np.array([[-rates.logon, rates.logout], [rates.logon, -(rates.submit + rates.logout)]])
    whole = np.kron(np.eye(most + 1), move) + np.kron(np.eye(most + 1, k=-1), [[0, 0], [0, rates.submit]])
    start = np.zeros(2 * (most + 1))
    start[:2] = 1 - rates.share_in, rates.share_in
    wanted = (expm(whole * t) @ start).reshape(-1, 2).sum(axis=1)
    assert rates.counts(t, most)[:-1] == pytest.approx(wanted, abs=1e-13)
