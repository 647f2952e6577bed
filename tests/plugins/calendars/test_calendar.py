"""The calendar: when windows are, what is kept free for them, and what a trace's time has to do with it."""

from __future__ import annotations

import datetime
import re
import zoneinfo
from typing import Any

import pytest
from building import alike, described, node_cluster, plugged

from headway.decisions import Reserve, Start, Unreserve
from headway.errors import UserError
from headway.events import DecisionFailed, JobEnded, JobSubmitted, ReservationMade
from headway.inquiry import explain
from headway.model import ClusterDescription
from headway.plugins import Catalogue, PluginConfig, Plugins
from headway.scheduler import Scheduler
from headway_plugins.calendars.plugin import Calendar, CalendarOptions
from headway_plugins.calendars.windows import Window
from headway_plugins.placement.first_fit import FirstFit
from headway_plugins.policies.conservative import Conservative

HOUR, DAY = 3600.0, 86400.0
BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")
FLAT = ClusterDescription.flat(10)
NODES = node_cluster(*alike(4, 2))
ALL = frozenset({Start, Reserve, Unreserve})


def at(text: str, zone: Any = BERLIN) -> float:
    """A local time in seconds since the epoch."""
    return datetime.datetime.fromisoformat(text).replace(tzinfo=zone).timestamp()


def begins(since: str, until: str, zone: Any = BERLIN, holidays: Any = None, **window: Any) -> list[str]:
    found = Window(**window).occurrences(at(since, zone), at(until, zone), zone, holidays or {})
    return [f"{datetime.datetime.fromtimestamp(b, zone):%m-%d %H:%M}+{(e - b) / HOUR:g}h" for b, e in found]


# ---------------------------------------------------------------------- when


def test_days_of_the_week_and_of_the_month() -> None:
    week = {"since": "2026-11-23", "until": "2026-12-14"}
    assert begins(**week, days=["tue"], begin="08:00", end="17:00") == [
        "11-24 08:00+9h", "12-01 08:00+9h", "12-08 08:00+9h",
    ]  # fmt: skip
    assert begins(**week, days=["tue"], nth=[1], begin="08:00", end="17:00") == ["12-01 08:00+9h"]
    assert begins("2026-11-23", "2026-11-25", begin="18:00", end="06:00") == [
        "11-22 18:00+12h", "11-23 18:00+12h", "11-24 18:00+12h",
    ]  # fmt: skip


def test_holidays_by_name_and_days_that_are_left_out() -> None:
    days = {"christmas": [datetime.date(2026, 12, 25), datetime.date(2026, 12, 26)]}
    span = {"since": "2026-12-24", "until": "2026-12-29", "holidays": days}
    assert begins(**span, days=["christmas"], length="1d") == ["12-25 00:00+24h", "12-26 00:00+24h"]
    assert begins(**span, days=["holidays"], length="1d") == ["12-25 00:00+24h", "12-26 00:00+24h"]
    nights = begins(**span, begin="20:00", end="22:00", **{"except": ["christmas", "mon"]})
    assert nights == ["12-24 20:00+2h", "12-27 20:00+2h"]
    assert begins(**span, days=["2026-12-28"], begin="08:00", end="09:00") == ["12-28 08:00+1h"]


@pytest.mark.parametrize(
    ("day", "window", "found"),
    [
        # The clock goes from 2:00 to 3:00 on 29 March, and from 3:00 to 2:00 on 25 October.
        ("2026-03-28", {"begin": "22:00", "end": "06:00"}, "03-28 22:00+7h"),
        ("2026-10-24", {"begin": "22:00", "end": "06:00"}, "10-24 22:00+9h"),
        ("2026-03-29", {"begin": "02:30", "end": "06:00"}, "03-29 03:30+2.5h"),
        ("2026-03-29", {"begin": "01:00", "end": "02:30"}, "03-29 01:00+1.5h"),
        ("2026-03-29", {"begin": "02:30", "end": "03:15"}, "03-29 03:00+0.25h"),
        ("2026-10-25", {"begin": "02:30", "end": "04:00"}, "10-25 02:30+2.5h"),
        ("2026-10-25", {"begin": "01:00", "end": "02:30"}, "10-25 01:00+2.5h"),
        ("2026-10-24", {"begin": "22:00", "length": "8h"}, "10-24 22:00+8h"),
    ],
)
def test_a_clock_that_is_put_on_or_back(day: str, window: dict[str, Any], found: str) -> None:
    after = (datetime.date.fromisoformat(day) + datetime.timedelta(days=2)).isoformat()
    assert begins(day, after, days=[day], **window) == [found]


# ---------------------------------------------------------------------- what is kept


def site(cluster: ClusterDescription = FLAT, epoch: float = 0.0, **options: Any) -> Scheduler:
    """With windows in UTC, beginning on Thursday, 1 January 1970."""
    calendar = Calendar(CalendarOptions(**options))
    return Scheduler(cluster, plugged(calendar, Conservative(), FirstFit()), capabilities=ALL, epoch=epoch)


def starts(decisions: Any) -> list[str]:
    return [decision.job_id for decision in decisions if isinstance(decision, Start)]


MAINTENANCE = {"windows": {"patch": {"days": ["thu"], "from": "10:00", "to": "12:00"}}}


@pytest.mark.parametrize("cluster", [FLAT, NODES])
def test_it_drains_in_time_and_bookings_go_around(cluster: ClusterDescription) -> None:
    s = site(cluster, **MAINTENANCE)
    news = [
        JobSubmitted(8 * HOUR, described("long", 8, 3 * HOUR)),
        JobSubmitted(8 * HOUR, described("short", 2, HOUR)),
    ]
    assert starts(s.step(8 * HOUR, news)) == ["short"]
    said = " ".join(explain(s, "long", "{:.0f}".format))
    assert "Processors are kept for it from 43200" in said
    assert "(patch of the calendar)" in said
    assert s.problems == [] and s.state.anomalies == []
    # When it is over the machine is free, though nothing else happens.
    assert s.next_wakeup() is not None and s.next_wakeup() <= 12 * HOUR
    s.step(9 * HOUR, [JobEnded(9 * HOUR, "short", "completed")])
    due = [s.step(now, []) for now in (10 * HOUR, 12 * HOUR)]
    assert [starts(decisions) for decisions in due] == [[], ["long"]]
    assert not [name for name in s.state.reservations if "01-01" in name]


def test_part_of_a_machine() -> None:
    s = site(windows={"half": {"from": "10:00", "to": "12:00", "processors": 6}})
    news = [JobSubmitted(0, described(str(size), size, DAY)) for size in (5, 4)]
    assert starts(s.step(0, news)) == ["4"]
    s = site(NODES, windows={"two": {"from": "10:00", "to": "12:00", "nodes": ["n1", "n2"]}})
    news = [JobSubmitted(0, described(str(size), size, DAY)) for size in (6, 4)]
    assert starts(s.step(0, news)) == ["4"]


def test_time_is_that_of_the_trace() -> None:
    epoch = at("2026-11-23T00:00:00")
    s = site(
        epoch=epoch,
        zone="Europe/Berlin",
        windows={"patch": {"days": ["mon"], "from": "10:00", "to": "12:00"}},
    )
    s.step(0, [])
    spans = sorted((kept.start, kept.end) for kept in s.state.reservations.values())
    assert spans[:2] == [(10 * HOUR, 12 * HOUR), (10 * HOUR + 7 * DAY, 12 * HOUR + 7 * DAY)]


def test_a_standing_reservation_is_made_under_its_name_and_the_later_ones_kept() -> None:
    s = site(
        windows={"course": {"from": "10:00", "to": "12:00", "processors": 4, "users": ["ann"]}},
        horizon=3 * DAY,
    )
    (made,) = (one for one in s.step(0, []) if isinstance(one, Reserve))
    assert (made.reservation.id, made.reservation.start, made.reservation.users) == (
        "course",
        10 * HOUR,
        ("ann",),
    )
    assert sorted(kept.start / HOUR for kept in s.state.reservations.values()) == [10, 34, 58]
    s.step(1, [ReservationMade(1, made.reservation)])
    # The next day's takes its place.
    (again,) = (one for one in s.step(12 * HOUR, []) if isinstance(one, Reserve))
    assert (again.reservation.id, again.reservation.start) == ("course", 34 * HOUR)


def test_a_refused_reservation_is_kept_and_asked_for_again() -> None:
    s = site(windows={"course": {"from": "10:00", "to": "12:00", "users": ["ann"]}}, horizon=DAY)
    (made,) = (one for one in s.step(0, []) if isinstance(one, Reserve))
    assert not any(isinstance(one, Reserve) for one in s.step(10, [DecisionFailed(10, made, "no")]))
    assert starts(s.step(20, [JobSubmitted(20, described("long", 8, DAY))])) == []
    assert any(isinstance(one, Reserve) for one in s.step(311, []))


# ---------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("window", "why"),
    [
        ({"from": 1050, "to": "18:00"}, 'a time of day in quotes, such as "17:30", found the number 1050'),
        ({"from": "25:00", "to": "18:00"}, "a time of day such as '08:00', found '25:00'"),
        ({"from": "08:00"}, "either to or for, found neither"),
        ({"to": "08:00", "for": "1h"}, "either to or for, found both"),
        (
            {"to": "08:00", "days": ["tuesday"]},
            "a day of the week, a date or the name of a holiday, found 'tuesday'",
        ),
        ({"for": "90d"}, "at most 60d"),
        ({"to": "08:00", "pool": "nowhere"}, "pool: expected a pool of the cluster, found 'nowhere'"),
        ({"to": "08:00", "nodes": ["n9"]}, "nodes: expected nodes of the cluster, found 'n9'"),
        (
            {"to": "08:00", "processors": 11},
            "processors: expected at most the processors of the pool, found 11",
        ),
    ],
)
def test_what_is_wrong_is_named(window: dict[str, Any], why: str) -> None:
    with pytest.raises(UserError, match=re.escape(why)) as found:
        plugins = Plugins.load([PluginConfig("calendar", {"windows": {"w": window}})], Catalogue(), None)
        plugins.add("policy", Conservative())
        Scheduler(FLAT, plugins, capabilities=ALL)
    assert "w" in str(found.value)


def test_an_adapter_without_reservations_is_told_of() -> None:
    calendar = Calendar(CalendarOptions(windows={"w": {"to": "08:00", "users": ["ann"]}}))
    with pytest.raises(UserError, match="users and accounts need reservations"):
        Scheduler(FLAT, plugged(calendar, Conservative()), capabilities=frozenset({Start}))
