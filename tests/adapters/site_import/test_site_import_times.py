"""`headway import`: PBS's dedicated and prime time, Maui's standing reservations."""

from __future__ import annotations

import datetime
import itertools
import zoneinfo
from pathlib import Path

import pytest
from click.testing import CliRunner

from headway.cli import cli
from headway.plugins import Catalogue
from headway_adapters.site_import.command import imported
from headway_adapters.site_import.found import Imported, Line
from headway_plugins.calendars.windows import Window

BERLIN = "Europe/Berlin"
QUEUES = "".join(f"create queue {name}\nset queue {name} queue_type = Execution\n" for name in
                 ("workq", "p_day", "np_night", "dedicated"))  # fmt: skip
HOLIDAYS = (
    "YEAR 2026\n  weekday 0600 1730\n  saturday none all\n  sunday none all\n"
    "  1  Jan 1  New Year's Day\n 359 Dec 25 Christmas Day\n"
)


def made(system: str, zone: str | None = BERLIN, **texts: str) -> Imported:
    """What is made of files with these texts."""
    files = [
        [Line(name, at, line) for at, line in enumerate(text.split("\n"), 1)] for name, text in texts.items()
    ]
    return imported(system, files, Catalogue(), zone)


def said(found: Imported) -> list[str]:
    return [str(remark) for remark in found.ordered()]


def reservation(words: str) -> tuple[dict, list[str]]:
    """Windows and remarks of a standing reservation."""
    found = made("maui", cfg=f"CLASSCFG[batch] PRIORITY=0\nSRCFG[night] {words}")
    windows = found.plugins.get("calendar", {}).get("windows", {})
    return windows.get("night", {}), [line for line in said(found) if "SRCFG" in line]


# ---------------------------------------------------------------------- PBS: dedicated time


def test_dedicated_time_is_a_window_of_the_calendar() -> None:
    found = made("pbs", dedicated="04/15/2026 12:00 04/15/2026 15:30\n\n4/15/2026 16:00 4/16/26 16:40\n")
    assert found.plugins["calendar"] == {
        "zone": BERLIN,
        "windows": {
            "dedicated-2026-04-15": {"days": ["2026-04-15"], "from": "12:00", "for": 12600},
            "dedicated-2026-04-15-2": {"days": ["2026-04-15"], "from": "16:00", "for": 88800},
        },
    }
    assert not any("carried over" in line for line in said(found))


def test_dedicated_time_over_a_change_of_clocks_ends_by_the_clock() -> None:
    found = made("pbs", dedicated="03/29/2026 00:00 03/29/2026 12:00")
    assert found.plugins["calendar"]["windows"]["dedicated-2026-03-29"]["for"] == 11 * 3600


def test_dedicated_time_that_ends_at_an_hour_that_is_there_twice_ends_with_the_second() -> None:
    found = made("pbs", dedicated="10/24/2026 22:00 10/25/2026 02:30")
    assert found.plugins["calendar"]["windows"]["dedicated-2026-10-24"]["for"] == 19800


@pytest.mark.parametrize(
    "line",
    [
        "03/29/2026 02:00 03/29/2026 03:00", "03/29/2026 02:30 03/29/2026 03:00",
        "09/01/2026 00:00 10/31/2026 00:00",
    ],
)  # fmt: skip
def test_one_that_a_change_of_clocks_makes_empty_or_too_long_leaves_the_others(line: str) -> None:
    found = made("pbs", dedicated=f"{line}\n05/01/2026 08:00 05/01/2026 09:00")
    assert list(found.plugins["calendar"]["windows"]) == ["dedicated-2026-05-01"]
    assert any(text.startswith(f"dedicated:1: {line} is not carried over") for text in said(found))


def test_dedicated_time_that_cannot_be_is_named() -> None:
    text = (
        "04/15/2026 12:00 04/15/2026 15:30\n04/15/2026 12:00 04/15/2026 11:00\n02/30/2026 12:00 03/01/2026 "
        "11:00\n01/01/2026 12:00 06/01/2026 11:00\nnoon to three\n"
    )
    found = made("pbs", dedicated=text)
    lines = said(found)
    for part in (
        "dedicated:2: expected an end after the beginning", "dedicated:3: expected MM/DD/YYYY",
        "dedicated:4: 01/01/2026 12:00 06/01/2026 11:00 is not carried over: a window has at most 60 days",
        "dedicated:5: expected MM/DD/YYYY",
    ):  # fmt: skip
        assert any(line.startswith(part) for line in lines), (part, lines)
    assert list(found.plugins["calendar"]["windows"]) == ["dedicated-2026-04-15"]


def test_queues_for_dedicated_time_are_left_to_pbs() -> None:
    found = made("pbs", qmgr=QUEUES, dedicated="04/15/2026 12:00 04/15/2026 15:30")
    assert found.options["queues"] == ["workq", "p_day", "np_night"]
    assert any("queue dedicated is left out" in line for line in said(found))
    found = made("pbs", qmgr=QUEUES, sched_config="dedicated_prefix: p_\nround_robin: false all\n")
    assert found.options["queues"] == ["workq", "np_night", "dedicated"]


def test_without_a_zone_the_remark_asks_for_it() -> None:
    found = made("pbs", zone=None, dedicated="04/15/2026 12:00 04/15/2026 15:30")
    assert found.plugins["calendar"]["zone"] == "UTC"
    assert any("the files name no time zone: UTC is written" in line for line in said(found))


# ---------------------------------------------------------------------- PBS: prime time


def test_prime_time_is_the_hours_of_its_queues() -> None:
    found = made("pbs", qmgr=QUEUES, holidays=HOLIDAYS)
    assert found.plugins["pool-hours"] == {
        "zone": BERLIN,
        "holidays": {"new-year-s-day": "2026-01-01", "christmas-day": "2026-12-25"},
        "windows": {
            "prime": {
                "from": "06:00", "to": "17:30", "days": ["mon", "tue", "wed", "thu", "fri"],
                "except": ["holidays"],
            }
        },
        "open": {"p_day": ["prime"]},
        "closed": {"np_night": ["prime"]},
    }  # fmt: skip
    assert any("the holidays are of 2026 only" in line for line in said(found))


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("monday 0600 1730", [("06:00", "17:30")]),
        ("monday all none", [("00:00", "00:00")]),
        ("monday none none", [("00:00", "00:00")]),
        ("monday 1800 0600", [("18:00", "00:00"), ("00:00", "06:00")]),
        ("monday 0800 none", [("00:00", "00:00")]),
        ("monday 0000 1200", [("00:00", "12:00")]),
    ],
)
def test_prime_time_of_a_day_is_as_openpbs_reads_it(line: str, parts: list[tuple[str, str]]) -> None:
    rest = "".join(
        f"{day} none all\n" for day in ("tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
    )
    found = made("pbs", qmgr=QUEUES, holidays=f"YEAR 2026\n{line}\n{rest}")
    windows = found.plugins["pool-hours"]["windows"].values()
    assert [(window["from"], window["to"]) for window in windows] == parts
    assert all(window["days"] == ["mon"] for window in windows)


def test_a_holiday_called_holidays_does_not_stand_for_the_others() -> None:
    found = made("pbs", qmgr=QUEUES, holidays=f"{HOLIDAYS}360 Dec 26 Holidays\n")
    options = found.plugins["pool-hours"]
    assert "holidays" not in options["holidays"] and len(options["holidays"]) == 3
    assert options["windows"]["prime"]["except"] == ["holidays"]


def test_a_day_of_which_nothing_is_said_is_prime_time() -> None:
    found = made("pbs", qmgr=QUEUES, holidays="YEAR 2026\nweekday none all\nsunday none all\n")
    windows = found.plugins["pool-hours"]["windows"]
    assert windows == {"prime": {"from": "00:00", "to": "00:00", "days": ["sat"]}}


def test_prime_time_that_nobody_goes_by_is_named_line_by_line() -> None:
    lines = said(made("pbs", holidays=HOLIDAYS))
    assert any(
        line.startswith("holidays:2: weekday 0600 1730 is not carried over: no queue") for line in lines
    )
    lines = said(made("pbs", qmgr=QUEUES, holidays=HOLIDAYS.replace("YEAR 2026\n", "")))
    assert any("queue p_day has no hours: no line YEAR" in line for line in lines)
    assert any("Jan 1 New Year's Day is not carried over" in line.replace("  ", " ") for line in lines)


@pytest.mark.parametrize(
    "line", ["weekday 0660 1700", "weekday 6am 5pm", "weekday 0600", "YEAR now", "400 Dec 25 X"]
)
def test_a_line_of_holidays_that_cannot_be_read_is_named(line: str) -> None:
    found = made("pbs", qmgr=QUEUES, holidays=f"YEAR 2026\n{line}\n")
    assert any(str(remark).startswith("holidays:2:") and remark.broken for remark in found.remarks)


# ---------------------------------------------------------------------- Maui


@pytest.mark.parametrize(
    ("words", "window"),
    [
        (
            "STARTTIME=18:00:00 ENDTIME=23:00:00 DAYS=Mon,Tue PERIOD=DAY HOSTLIST=n1,n2 TASKCOUNT=2",
            {"days": ["mon", "tue"], "from": "18:00", "to": "23:00", "nodes": ["n1", "n2"]},
        ),
        ("HOSTLIST=ALL", {"from": "00:00", "to": "00:00"}),
        ("PERIOD=WEEK STARTTIME=1:08:00:00 ENDTIME=1:17:00:00 HOSTLIST=n1", {
            "days": ["mon"], "from": "08:00", "to": "17:00", "nodes": ["n1"]}),
        ("PERIOD=WEEK STARTTIME=6:00:00:00 HOSTLIST=ALL", {"days": ["sat"], "from": "00:00", "to": "00:00"}),
        ("PERIOD=WEEK HOSTLIST=ALL", {
            "days": ["sun", "mon", "tue", "wed", "thu", "fri", "sat"], "from": "00:00", "to": "00:00"}),
    ],
)  # fmt: skip
def test_a_standing_reservation_is_a_window(words: str, window: dict) -> None:
    assert reservation(words) == (window, [])


def test_a_standing_reservation_over_several_days_is_one_window_a_time_of_day() -> None:
    """So that it ends by the clock in the week in which the clock changes."""
    found = made(
        "maui",
        cfg="CLASSCFG[batch] PRIORITY=0\n"
        "SRCFG[long] PERIOD=WEEK STARTTIME=1:08:00:00 ENDTIME=5:17:00:00 HOSTLIST=n1\n"
        "SRCFG[end] PERIOD=WEEK STARTTIME=5:18:00:00 ENDTIME=7:00:00:00 HOSTLIST=ALL",
    )
    assert found.plugins["calendar"]["windows"] == {
        "long": {"days": ["mon"], "from": "08:00", "to": "00:00", "nodes": ["n1"]},
        "long-2": {"days": ["tue", "wed", "thu"], "from": "00:00", "to": "00:00", "nodes": ["n1"]},
        "long-3": {"days": ["fri"], "from": "00:00", "to": "17:00", "nodes": ["n1"]},
        "end": {"days": ["fri"], "from": "18:00", "to": "00:00"},
        "end-2": {"days": ["sat"], "from": "00:00", "to": "00:00"},
    }


@pytest.mark.parametrize("change", [datetime.date(2026, 3, 29), datetime.date(2026, 10, 25)])
def test_a_standing_reservation_of_the_whole_week_has_no_gap_when_the_clock_changes(
    change: datetime.date,
) -> None:
    found = made("maui", cfg="CLASSCFG[batch] PRIORITY=0\nSRCFG[all] PERIOD=WEEK HOSTLIST=ALL")
    windows = [Window.model_validate(one) for one in found.plugins["calendar"]["windows"].values()]
    zone = zoneinfo.ZoneInfo(BERLIN)
    since = datetime.datetime.combine(change, datetime.time(), zone).timestamp() - 86400
    times = sorted(
        one for window in windows for one in window.occurrences(since, since + 14 * 86400, zone, {})
    )
    assert all(end == begin for (_, end), (begin, _) in itertools.pairwise(times))


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("HOSTLIST=n1 USERLIST=ann", "it is for certain users (USERLIST)"),
        ("HOSTLIST=n1 CLASSLIST=batch MAXTIME=60", "it is for certain users (CLASSLIST, MAXTIME)"),
        ("TASKCOUNT=64", "it names no hosts"),
        ("HOSTLIST=n[1-4]$", "patterns are not carried over"),
        ("HOSTLIST=n1,n2 TASKCOUNT=1", "TASKCOUNT=1: all of the hosts"),
        ("HOSTLIST=n1 RESOURCES=PROCS:2", "headway keeps whole nodes"),
        ("HOSTLIST=n1 PERIOD=INFINITY", "it never ends"),
        ("HOSTLIST=n1 PERIOD=MONTH", "expected DAY, WEEK or INFINITY"),
        ("HOSTLIST=n1 STARTTIME=6pm", "STARTTIME: expected [[DD:]HH:]MM:SS within a day"),
        ("HOSTLIST=n1 STARTTIME=18:00:00 ENDTIME=06:00:00", "expected an ENDTIME after the STARTTIME"),
        ("HOSTLIST=n1 DAYS=Mo", "DAYS: expected days"),
    ],
)
def test_a_standing_reservation_that_is_no_window_is_named(words: str, why: str) -> None:
    window, lines = reservation(words)
    assert window == {} and len(lines) == 1 and why in lines[0], lines


@pytest.mark.parametrize("word", ["DEPTH=6", "FLAGS=SPACEFLEX", "ACCESS=SHARED", "STARTTIME=08:00:30"])
def test_what_a_window_does_not_keep_of_a_standing_reservation_is_named(word: str) -> None:
    window, lines = reservation(f"HOSTLIST=n1 {word}")
    assert window and len(lines) == 1 and "SRCFG[night]" in lines[0]


# ---------------------------------------------------------------------- the command


def test_the_command_takes_the_zone(tmp_path: Path) -> None:
    (tmp_path / "dedicated_time").write_text("# FROM TO\n04/15/2026 12:00 04/15/2026 15:30\n")
    words = ["import", "pbs", str(tmp_path / "dedicated_time"), "--zone"]
    ran = CliRunner().invoke(cli, [*words, BERLIN])
    assert ran.exit_code == 0 and f"zone: {BERLIN}" in ran.output
    ran = CliRunner().invoke(cli, [*words, "Mars/Olympus"])
    assert "--zone: expected a time zone such as Europe/Berlin, found 'Mars/Olympus'" in str(ran.exception)
