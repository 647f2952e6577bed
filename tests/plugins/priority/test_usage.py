"""Usage is the integral of what runs, whenever it is looked at and however late the news comes."""

from __future__ import annotations

import json
import zoneinfo
from datetime import UTC, datetime

import numpy as np
import pytest
from building import described
from hypothesis import given, settings
from hypothesis import strategies as st

from headway import events as ev
from headway.model import ClusterDescription
from headway.plugins import Plugins
from headway.scheduler import Scheduler
from headway_plugins.accounts.calendar import next_period, period_begin
from headway_plugins.accounts.usage import Decaying, Windowed
from headway_plugins.policies.easy import Easy
from headway_plugins.priority.fair_tree import FairTree, FairTreeOptions

#: (whose, rate, begin, length)
RUNS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(1, 9), st.integers(0, 900), st.integers(1, 400)), max_size=8
)


def by_the_second(runs, now, weight):
    """The sum over all whole seconds, each with its weight."""
    used = [0.0, 0.0, 0.0]
    for whose, rate, begin, length in runs:
        for second in range(begin, min(begin + length, now)):
            used[whose] += rate * weight(second)
    return used


def told(ledger, runs, now, order):
    """The ledger after news about all runs, those that end after now still running, in some order."""
    for at in order:
        whose, rate, begin, length = runs[at]
        if begin <= now:
            ledger.begin(str(at), whose, float(rate), float(begin))
            if begin + length <= now:
                ledger.end(str(at), float(begin + length))
    return ledger.at(float(now), 3)


@settings(max_examples=40)
@given(RUNS, st.integers(0, 1500), st.randoms(use_true_random=False))
def test_usage_decays_second_by_second(runs, now, random):
    order = list(range(len(runs)))
    random.shuffle(order)
    # The middle of a second stands for it: an error of (ln 2 / 200)^2 / 24 of a second.
    expected = by_the_second(runs, now, lambda second: 2 ** (-(now - second - 0.5) / 200))
    assert told(Decaying(200.0), runs, now, order) == pytest.approx(expected, rel=1e-5, abs=1e-6)


@settings(max_examples=40)
@given(RUNS, st.integers(0, 1500), st.randoms(use_true_random=False))
def test_without_a_half_life_usage_is_exact(runs, now, random):
    order = list(range(len(runs)))
    random.shuffle(order)
    assert told(Decaying(None), runs, now, order).tolist() == by_the_second(runs, now, lambda _: 1)


@settings(max_examples=40)
@given(RUNS, st.integers(0, 1500))
def test_windows_count_for_less_the_older_they_are(runs, now):
    def weight(second):
        age = now // 100 - second // 100
        return 0.5**age if age < 4 else 0

    found = told(Windowed(100.0, 4, 0.5), runs, now, range(len(runs)))
    assert found == pytest.approx(by_the_second(runs, now, weight))


def test_usage_of_long_ago_is_worth_nothing_and_breaks_nothing():
    ledger = Decaying(10.0)
    ledger.begin("a", 0, 1.0, 0.0)
    ledger.end("a", 100.0)
    ledger.begin("b", 1, 1.0, 1e6)
    ledger.end("b", 1e6 + 10)
    used = ledger.at(1e6 + 10, 2)
    assert used[0] == 0.0
    assert used[1] == pytest.approx(10 / np.log(2) / 2)


@pytest.mark.parametrize("ledger", [Decaying(50.0), Windowed(100.0, 4, 0.5)])
def test_a_reset_forgets_what_was_before_also_of_running_jobs(ledger):
    ledger.begin("over", 0, 1.0, 0.0)
    ledger.end("over", 90.0)
    ledger.begin("runs", 1, 1.0, 0.0)
    ledger.reset(100.0)
    assert ledger.at(100.0, 2).tolist() == [0.0, 0.0]
    assert ledger.at(110.0, 2)[1] > 9
    # News that comes late changes nothing about it.
    ledger.begin("late", 0, 1.0, 10.0)
    ledger.end("late", 60.0)
    assert ledger.at(110.0, 2)[0] == 0.0


@pytest.mark.parametrize(
    ("period", "begin", "following"),
    [
        ("daily", "2026-03-29", "2026-03-30"),
        ("weekly", "2026-03-29", "2026-04-05"),
        ("monthly", "2026-03-01", "2026-04-01"),
        ("quarterly", "2026-01-01", "2026-04-01"),
        ("yearly", "2026-01-01", "2027-01-01"),
    ],
)
def test_periods_begin_at_midnight_of_the_zone_also_when_clocks_change(period, begin, following):
    zone = zoneinfo.ZoneInfo("Europe/Berlin")
    now = datetime(2026, 3, 29, 18, tzinfo=UTC).timestamp()
    assert period_begin(now, period, zone) == datetime.fromisoformat(begin).replace(tzinfo=zone).timestamp()
    following = datetime.fromisoformat(following).replace(tzinfo=zone)
    assert next_period(now, period, zone) == following.timestamp()


# ------------------------------------------------------------------ the plugin


def scheduler(saved=None, **options):
    plugins = Plugins()
    plugin = FairTree(FairTreeOptions(**options))
    plugins.add("easy", Easy())
    plugins.add("fair-tree", plugin)
    return Scheduler(ClusterDescription.flat(8), plugins, saved=saved), plugin


def used(plugin, now, account, user):
    return plugin.standing(now).usage[plugin.tree.association(account, user)]


def submitted(name, processors=1, **more):
    return ev.JobSubmitted(0, described(name, processors, 1000, **more))


def test_jobs_are_billed_from_start_to_end_for_what_they_have():
    s, plugin = scheduler(half_life=None, billing={"processors": 2, "gpu": 10}, qos={"high": 3})
    s.step(0, [
        submitted("a", 2, user="ann", account="x"),
        submitted("b", 1, user="ann", account="y", nodes=1, gres_per_node=(("gpu", 2),)),
        submitted("c", 1, user="bob", account="x", qos="high"),
    ])  # fmt: skip
    s.step(1, [ev.JobStarted(1, "a"), ev.JobStarted(1, "b"), ev.JobStarted(1, "c")])
    s.step(11, [ev.JobEnded(11, "a"), ev.JobSuspended(6, "b"), ev.JobRequeued(11, "c")])
    assert used(plugin, 21, "x", "ann") == 2 * 2 * 10
    assert used(plugin, 21, "y", "ann") == (2 + 2 * 10) * 5
    assert used(plugin, 21, "x", "bob") == 3 * 2 * 10
    assert s.problems == []


def test_news_about_a_running_job_changes_its_bill_only_if_that_is_another_one():
    s, plugin = scheduler(half_life=None, qos={"low": 0.5})
    s.step(0, [submitted("a", 2, user="ann"), submitted("b", 2, user="bob")])
    s.step(1, [ev.JobStarted(1, "a"), ev.JobStarted(1, "b")])
    # Looked at at 12.7, and over at a second that the batch system calls 12.
    for name, user, qos in (("a", "ann", ""), ("b", "bob", "low")):
        changed = described(name, 2, 1000, user=user, qos=qos, name="another name")
        s.step(5 if qos else 12.7, [ev.JobChanged(5 if qos else 12.7, changed)])
    s.step(13.2, [ev.JobEnded(12, "a"), ev.JobEnded(13, "b")])
    assert used(plugin, 20, "root", "ann") == 2 * 11
    assert used(plugin, 20, "root", "bob") == 2 * 4 + 8


def test_usage_survives_a_restart_to_the_last_bit():
    s, plugin = scheduler(half_life=333)
    s.step(0, [submitted("a", 3, user="ann", account="x"), submitted("b", 2, user="bob", account="x")])
    s.step(1, [ev.JobStarted(1, "a"), ev.JobStarted(1, "b")])
    s.step(77.7, [ev.JobEnded(77.7, "a")])
    saved = json.loads(json.dumps(s.checkpoint()))
    # The next run's tree knows others first, and its cluster tells again what runs.
    accounts = {"z": {"users": ["zoe"]}, "x": {"users": ["bob"]}}
    again, other = scheduler(saved, half_life=333, accounts=accounts)
    again.step(90, [
        submitted("b", 2, user="bob", account="x"), ev.JobStarted(1, "b"),
    ])  # fmt: skip
    for now in (90, 500.5):
        for user in ("ann", "bob"):
            assert used(other, now, "x", user) == used(plugin, now, "x", user)


def test_a_job_that_is_gone_after_a_restart_has_run_until_it_was_seen_last():
    s, _ = scheduler(half_life=None)
    s.step(0, [submitted("a", 2, user="ann")])
    s.step(1, [ev.JobStarted(1, "a")])
    s.step(50, [ev.JobSubmitted(50, described("b", 9, user="bob"))])
    s.step(60, [ev.JobHeld(60, "b"), ev.JobStarted(60, "b")])
    again, other = scheduler(s.checkpoint(), half_life=None)
    again.step(90, [])
    assert used(other, 200, "root", "ann") == 2 * 59


def test_jobs_that_were_over_are_not_counted_again_when_they_are_told_again():
    s, _ = scheduler(half_life=None)
    s.step(0, [submitted("a", 2, user="ann"), submitted("b", 1, user="ann")])
    s.step(10, [ev.JobStarted(1, "a"), ev.JobEnded(6, "a"), ev.JobStarted(7, "b")])
    again, other = scheduler(s.checkpoint(), half_life=None)
    # What ended a moment ago is still shown, and b came to its end meanwhile; c is new.
    again.step(30, [
        submitted("a", 2, user="ann"), ev.JobStarted(1, "a"), ev.JobEnded(6, "a"),
        submitted("b", 1, user="ann"), ev.JobStarted(7, "b"), ev.JobEnded(20, "b"),
        submitted("c", 3, user="ann"), ev.JobStarted(21, "c"), ev.JobEnded(22, "c"),
    ])  # fmt: skip
    assert used(other, 40, "root", "ann") == 2 * 5 + 13 + 3


def test_usage_is_forgotten_when_a_period_begins():
    s, plugin = scheduler(half_life=None, reset="daily")
    s.step(0, [submitted("a", 1, user="ann")])
    s.step(86000, [ev.JobStarted(86000, "a")])
    assert used(plugin, 86300, "root", "ann") == 300
    assert used(plugin, 86500, "root", "ann") == 100
    s.step(86600, [ev.JobEnded(86600, "a")])
    assert used(plugin, 86700, "root", "ann") == 200


def test_who_is_not_listed_is_told_once_and_counted():
    s, plugin = scheduler(accounts={"x": {"users": ["ann"]}}, unknown_shares=0)
    s.step(0, [submitted("a", user="bob", account="x"), submitted("b", user="ann", account="lost")])
    s.step(1, [ev.JobStarted(1, "a"), ev.JobStarted(1, "b")])
    assert [notice.split(" (")[0] for notice in s.notices] == [
        "user 'bob' in account 'x' is not in the tree of accounts",
        "account 'lost' is not in the tree of accounts",
    ]
    assert used(plugin, 2, "lost", "ann") == pytest.approx(1)
