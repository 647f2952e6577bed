"""LSF's times, limits, sizes and lists of hosts."""

from __future__ import annotations

import calendar
import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway_adapters.lsf import values
from headway_adapters.lsf.values import Calendar

MIB = 1 << 20


def at(year: int, month: int, day: int, hour: int = 0, minute: int = 0, second: int = 0) -> float:
    return float(calendar.timegm((year, month, day, hour, minute, second)))


NOW = at(2026, 11, 21, 6, 40)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("Nov 21 06:38", at(2026, 11, 21, 6, 38)),
        ("Sat Nov 21 06:38:58", at(2026, 11, 21, 6, 38, 58)),
        ("Sat Nov 21 06:38:58 2026", at(2026, 11, 21, 6, 38, 58)),
        ("Nov 21 06:38:58 2020", at(2020, 11, 21, 6, 38, 58)),
        ("11/21-06:38:58", at(2026, 11, 21, 6, 38, 58)),
        ("2025/11/21-06:38:58", at(2025, 11, 21, 6, 38, 58)),
        ("Nov  1 06:38", at(2026, 11, 1, 6, 38)),
        ("Nov 21 06:38 L", at(2026, 11, 21, 6, 38)),
        ("Dec 31 23:59", at(2025, 12, 31, 23, 59)),
        # A clock that goes ahead of ours, or another zone, is no year.
        ("Nov 21 20:00", at(2026, 11, 21, 20, 0)),
        ("Feb 29 12:00", at(2024, 2, 29, 12, 0)),
    ],
)
def test_facts_lie_in_the_last_year_that_fits(text: str, moment: float) -> None:
    assert Calendar(NOW).fact(text) == moment


@pytest.mark.parametrize(
    "text", ["", "-", "Nov 31 06:38", "Foo 21 06:38", "Nov 21 25:00", "13/41-06:38:58", "x" * 999]
)
def test_what_is_no_time_is_none(text: str) -> None:
    assert Calendar(NOW).fact(text) is None


def test_the_year_rolls_over_between_a_job_and_its_listing() -> None:
    after = Calendar(at(2027, 1, 1, 0, 0, 30))
    assert after.fact("Dec 31 23:59") == at(2026, 12, 31, 23, 59)
    assert after.fact("Jan  1 00:00") == at(2027, 1, 1)
    before = Calendar(at(2026, 12, 31, 23, 59, 30))
    assert before.wish("Fri Jan  1 08:00:00") == at(2027, 1, 1, 8)
    assert before.wish("Jan 1 08:00") == at(2027, 1, 1, 8)
    assert after.wish("Thu Dec 31 20:00:00") == at(2026, 12, 31, 20)


def test_the_day_of_the_week_tells_the_year() -> None:
    # The 2nd of January 2026 was a Friday; of 2027, a Saturday.
    assert Calendar(at(2026, 7, 2)).wish("Sat Jan  2 08:00:00") == at(2027, 1, 2, 8)
    assert Calendar(at(2026, 7, 2)).wish("Fri Jan  2 08:00:00") == at(2026, 1, 2, 8)
    assert Calendar(at(2027, 1, 3)).fact("Fri Jan  2 08:00:00") == at(2026, 1, 2, 8)


@given(
    st.datetimes(datetime.datetime(2020, 1, 1), datetime.datetime(2035, 12, 31)),
    st.floats(0, 363 * 86400),
)
def test_any_time_of_the_last_year_is_found_again(when: datetime.datetime, later: float) -> None:
    moment = float(calendar.timegm(when.timetuple()))
    times = Calendar(moment + later)
    if (when.month, when.day) != (2, 29):
        assert times.fact(when.strftime("%b %d %H:%M:%S")) == moment
    assert times.fact(when.strftime("%a %b %d %H:%M:%S")) == moment
    assert times.fact(when.strftime("%b %d %H:%M:%S %Y")) == moment


@given(st.text(max_size=60))
def test_no_text_breaks_the_calendar(text: str) -> None:
    times = Calendar(NOW)
    for found in (times.fact(text), times.wish(text)):
        assert found is None or isinstance(found, float)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("10.0 min", 600.0), ("10.0 min of hostA", 600.0), ("3.0/hostA", 180.0), ("65.0", 3900.0),
        ("1:30", 5400.0), ("00:03:00", 180.0), ("", None), ("-", None), ("unlimited", None),
    ],
)  # fmt: skip
def test_run_limits(text: str, seconds: float | None) -> None:
    assert values.run_limit(text) == seconds


@pytest.mark.parametrize(
    ("text", "bytes_"),
    [
        ("24105M", 24105 * MIB), ("1.5G", 1536 * MIB), ("512", 512 * MIB), ("512K", 512 << 10),
        ("2T", 2 << 40), ("10.00", 10 * MIB), ("100MB", 100 * MIB), ("-", 0), ("", 0), ("many", 0),
        # What a user writes into rusage[mem=...]: more than any host has.
        ("1e999", values.LARGEST), ("9" * 5000, values.LARGEST), ("9999999E", values.LARGEST),
    ],
)  # fmt: skip
def test_sizes(text: str, bytes_: int) -> None:
    assert values.size(text) == bytes_


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("", ()), ("-", ()), ("h1", (("h1", 1),)), ("h1:h1:h2", (("h1", 2), ("h2", 1))),
        ("2*h1:h2", (("h1", 2), ("h2", 1))), ("16*h1", (("h1", 16),)), ("h2:h1:h2", (("h2", 2), ("h1", 1))),
    ],
)  # fmt: skip
def test_lists_of_hosts(text: str, hosts: tuple[tuple[str, int], ...]) -> None:
    assert values.hosts(text) == hosts


@given(st.dictionaries(st.from_regex(r"[a-z][a-z0-9-]{0,8}", fullmatch=True), st.integers(1, 64), max_size=6))
def test_lists_of_hosts_in_both_forms_are_the_same(counts: dict[str, int]) -> None:
    whole = tuple(counts.items())
    assert values.hosts(":".join(f"{count}*{name}" for name, count in whole)) == whole
    assert values.hosts(":".join(name for name, count in whole for _ in range(count))) == whole


DIGITS = st.integers(1, 5000).map(lambda count: "9" * count)
#: Numbers as only somebody writes them who wants to see what happens.
HOSTILE = st.one_of(
    DIGITS,
    st.text("0123456789.eE+-:*[]/ MGTkb", max_size=30),
    st.tuples(DIGITS, st.sampled_from(["*h", ":00", ":00:00", "M", "e999", " min of h", ".5", "/h"])).map(
        "".join
    ),
    st.sampled_from(["1e999", "-1e999", "inf", "nan", "-inf", "1.2.3", "\u0663", "\u00b2"]),
)


@given(HOSTILE)
def test_no_number_that_a_user_writes_makes_the_reader_fail(text: str) -> None:
    assert 0 <= values.size(text) <= values.LARGEST
    assert abs(values.integer(text)) <= values.LARGEST
    limit = values.run_limit(text)
    assert limit is None or 0 <= limit < float("inf")
    assert all(count <= values.LARGEST for _, count in values.hosts(text))
    calendar_ = Calendar(NOW)
    calendar_.fact(text)
    calendar_.wish(text)
