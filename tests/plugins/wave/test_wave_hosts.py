"""Calendars: the next change, hours left, work by loads, and time zones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import UserError
from headway_plugins.wave.discovery import longest_idle
from headway_plugins.wave.hosts import Hosts, hours_to_change

NIGHTS = [True] * 6 + [False] * 18


def test_a_calendar_by_local_hours_is_turned_by_the_zone():
    hosts = Hosts([0, 8], [NIGHTS, NIGHTS])
    assert [hour for hour in range(24) if hosts.idle(1, hour)] == [8, 9, 10, 11, 12, 13]
    assert hosts.change(0, 0) == 6 and hosts.change(0, 6) == 24
    assert hosts.change(1, 7) == 8 and hosts.change(1, 32) == 38
    assert hosts.idle_left(1, 10) == 4 and hosts.idle_left(1, 14) == 0
    assert hosts.night(1, 8) and not hosts.night(1, 14)


def test_a_night_over_midnight_is_one_stretch():
    hosts = Hosts([20], [NIGHTS])
    assert hosts.idle_left(0, 22) == 4
    assert hosts.change(0, 20) == 26


def test_hosts_that_never_change():
    hosts = Hosts([0, 0], [[True] * 24, [False] * 24])
    assert hosts.change(0, 5) is None and hosts.change(1, 5) is None
    assert hosts.idle_left(0, 5) == float("inf") and hosts.idle_left(1, 5) == 0
    assert hosts.completion(0, 3.5, 100.0, None) == 103.5


def whole_days(days):
    return st.lists(st.booleans(), min_size=24 * days, max_size=24 * days)


@given(st.integers(1, 3).flatmap(whole_days))
def test_the_next_change_is_the_first_hour_that_differs(calendar):
    period = len(calendar)
    found = hours_to_change(np.array([calendar]))[0]
    for hour in range(period):
        ahead = [h for h in range(1, period + 1) if calendar[(hour + h) % period] != calendar[hour]]
        assert found[hour] == (min(ahead) if ahead else 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0], [[True] * 23]), "expected a multiple of 24 hours, found 23"),
        (([24], [NIGHTS]), "zone 24: expected 0 to 23"),
    ],
)
def test_calendars_that_cannot_be(arguments, message):
    with pytest.raises(UserError, match=message):
        Hosts(*arguments)


@pytest.mark.parametrize("loads", [[[1.0] * 24], [[0.0] * 23], [[-0.1] * 24]])
def test_loads_that_cannot_be(loads):
    with pytest.raises(UserError, match="loads: expected 1 rows of 24 shares below 1"):
        Hosts([0], [NIGHTS], loads=loads)


# ---------------------------------------------------------------------- work


def test_work_ends_at_the_loss_also_where_rounding_puts_it_behind():
    hosts = Hosts([0], [NIGHTS])
    assert hosts.completion(0, 1.0, 5.0, 6) == 6
    assert hosts.completion(0, 1.0, 5.0 + 1e-12, 6) == 6
    assert hosts.completion(0, 1.0, 5.1, 6) is None
    assert hosts.work(0, 1.5, 6) == 4.5


def test_owners_loads_slow_a_job_down_hour_by_hour():
    loads = [0.0, 0.5, 0.0, 0.0, 0.0, 0.0] + [0.0] * 18
    hosts = Hosts([2], [NIGHTS], loads=[loads])
    # Local hour 1 is 3 GMT: half of it is lost.
    assert hosts.work(0, 2.5, 5) == pytest.approx(2.0)
    assert hosts.completion(0, 2.5, 1.0, 8) == pytest.approx(4.0)
    assert hosts.completion(0, 2.5, 0.75, 8) == pytest.approx(3.5)
    assert hosts.completion(0, 2.0, 5.5, 8) == pytest.approx(8)
    assert hosts.completion(0, 2.0, 5.6, 8) is None


def test_loads_count_over_many_days_on_a_host_that_is_always_idle():
    hosts = Hosts([0], [[True] * 24], loads=[[0.25] * 24])
    assert hosts.completion(0, 23.5, 36.0, None) == pytest.approx(71.5)
    assert hosts.work(0, 23.5, 71.5) == pytest.approx(36.0)


# ---------------------------------------------------------------------- the longest idle time


def test_hosts_that_stay_idle_longest_come_first_then_busy_hosts_that_are_idle_soon():
    hosts = Hosts([0, 3, 5, 8, 5], [NIGHTS] * 5)
    # At 5 host 0 stays idle for 1 h, host 1 for 4 h, hosts 2 and 4 for 6 h; host 3 is idle from 8 on.
    assert longest_idle(hosts, range(5), 5) == [2, 4, 1, 0, 3]
    assert longest_idle(hosts, [3, 0], 7) == [3, 0]
    assert longest_idle(hosts, [], 7) == []
