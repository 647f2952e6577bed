"""Hours of pools: who starts when, what stands behind it, what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from headway.emulation import emulate
from headway.errors import UserError
from headway.model import ClusterDescription, JobDescription, PoolDescription, Request
from headway.plugins import Catalogue, PluginConfig, Plugins
from headway.workload.jobs import TraceJob

HOUR, DAY = 3600.0, 86400.0
#: The run begins on Thursday, 1 January 1970, at midnight.
OPTIONS: dict[str, Any] = {
    "holidays": {"feast": "1970-01-02"},
    "windows": {
        "prime": {
            "days": ["mon", "tue", "wed", "thu", "fri"],
            "except": ["holidays"],
            "from": "06:00",
            "to": "18:00",
        }
    },
    "open": {"day": ["prime"]},
    "closed": {"night": ["prime"]},
}
CLUSTER = ClusterDescription(
    "test", pools=tuple(PoolDescription(name=name, processors=4) for name in ("day", "night", "any"))
)


def job(name: str, pool: str, submit: float, hours: float = 1) -> TraceJob:
    request = Request(processors=4, walltime=HOUR * hours)
    return TraceJob(JobDescription(id=name, submit_time=submit, request=request, pool=pool), HOUR * hours)


def starts(*jobs: TraceJob, **options: Any) -> dict[str, float]:
    plugins = [PluginConfig("easy", {}, "test"), PluginConfig("pool-hours", {**OPTIONS, **options}, "test")]
    jobs_ = sorted(jobs, key=lambda one: one.job.submit_time)
    result = emulate(CLUSTER, jobs_, plugins, Catalogue(), label="x")
    return {one.job.id: one.start_time / HOUR for one in result.jobs if one.start_time is not None}


def test_jobs_of_a_pool_start_in_its_windows_and_others_at_any_time() -> None:
    assert starts(job("d", "day", 0), job("n", "night", 0), job("a", "any", 0)) == {"d": 6, "n": 0, "a": 0}


def test_outside_of_a_closed_pools_windows_its_jobs_start() -> None:
    assert starts(job("n", "night", 7 * HOUR), job("d", "day", 7 * HOUR)) == {"n": 18, "d": 7}


def test_who_waits_when_the_pool_closes_waits_for_the_next_window_and_who_runs_runs_on() -> None:
    """Thursday's window closes at 18 o'clock, Friday is a feast, Saturday and Sunday have none."""
    found = starts(job("long", "day", 17 * HOUR, 4), job("next", "day", 17 * HOUR + 1))
    assert found == {"long": 17, "next": 4 * 24 + 6}


def test_windows_that_follow_each_other_are_one() -> None:
    windows = {"am": {"from": "00:00", "to": "12:00"}, "pm": {"from": "12:00", "to": "00:00"}}
    options = {"windows": windows, "open": {"day": ["am", "pm"]}, "closed": {}}
    assert starts(job("a", "day", 0, 12), job("b", "day", 1, 20), job("c", "day", 2), **options) == {
        "a": 0, "b": 12, "c": 32,
    }  # fmt: skip


def test_a_pool_that_is_closed_day_after_day_starts_nobody_and_the_run_ends():
    windows = {"always": {"from": "00:00", "to": "00:00"}}
    options = {"windows": windows, "open": {}, "closed": {"day": ["always"]}}
    assert starts(job("d", "day", 0), job("a", "any", 0), **options) == {"a": 0}


def test_a_pool_whose_windows_are_over_starts_nobody() -> None:
    windows = {"once": {"days": ["1969-12-31"], "from": "10:00", "to": "11:00"}}
    assert starts(job("d", "day", 0), windows=windows, open={"day": ["once"]}, closed={}) == {}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"open": {"day": ["prim"]}}, "open: day: expected names of windows, found 'prim'. Did you mean"),
        ({"closed": {"day": ["prime"]}}, "day: expected it under open or under closed, found both"),
        ({"open": {}, "closed": {}}, "open or closed: expected at least one pool"),
        ({"windows": {"prime": {"from": "06:00", "to": "18:00", "nodes": ["n1"]}}}, "expected no nodes"),
    ],
)
def test_options_that_cannot_be_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        Plugins.load([PluginConfig("pool-hours", {**OPTIONS, **options}, "test")], Catalogue(), None)


def test_a_pool_that_is_not_there_is_refused_with_the_nearest() -> None:
    with pytest.raises(UserError, match="pool-hours: open: expected pools of the cluster, found 'dai'"):
        starts(job("d", "day", 0), open={"dai": ["prime"]})


def test_a_run_ends_whose_calendar_goes_on_for_ever_and_whose_job_never_starts() -> None:
    """The calendar wakes the scheduler twice a day. Who waits for the year's last window still starts, and
    who wished to begin later than that."""
    windows = {
        "once": {"days": ["1969-12-31"], "from": "06:00", "to": "18:00"},
        "late": {"days": ["1970-12-24"], "from": "06:00", "to": "18:00"},
    }
    nightly = {"windows": {"nightly": {"from": "02:00", "to": "03:00", "pool": "any"}}}
    hours = {"windows": windows, "open": {"day": ["once"], "night": ["late"]}}
    plugins = [
        PluginConfig(name, options, "test")
        for name, options in {"easy": {}, "calendar": nightly, "pool-hours": hours}.items()
    ]
    late = job("l", "any", 0)
    late = replace(late, job=replace(late.job, begin_time=500 * DAY))
    jobs = [job("d", "day", 0), job("n", "night", 0), late]
    result = emulate(CLUSTER, jobs, plugins, Catalogue(), label="x")
    assert [one.start_time for one in result.jobs] == [None, 357 * DAY + 6 * HOUR, 500 * DAY]
