"""PBS's values: sizes, durations, points in time, however they are written."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway_adapters.pbs import values

JUNK = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.lists(st.text()),
    st.dictionaries(st.text(), st.integers()),
)  # fmt: skip
DIGITS = st.integers(1, 5000).map(lambda count: "9" * count)
#: Numbers as only somebody writes them who wants to see what happens: in a resource of his job's select.
HOSTILE = st.one_of(
    DIGITS,
    st.integers(1, 4000).map(lambda count: 10**count),
    st.text("0123456789.eE+-: kmgtpebw", max_size=30),
    st.tuples(DIGITS, st.sampled_from([".5", ".5gb", "gb", "ew", ":00", ":00:00", ":1:1:1"])).map("".join),
    st.sampled_from(["1e999", "inf", "nan", "\u0663", "\u00b2", 1e300, float("inf"), float("nan")]),
)


@pytest.mark.parametrize(
    ("written", "size"),
    [
        ("4gb", 4 << 30), ("4692kb", 4692 << 10), ("100", 100), (100, 100), ("1mw", 8 << 20), ("2b", 2),
        ("1.5gb", 3 << 29), ("4GB", 4 << 30), ("7k", 7 << 10), ("gb", None), ("-1", None), (-1, None),
        ("4 gb", None), ("", None), (None, None), ("True", None),
    ],
)  # fmt: skip
def test_sizes_are_bytes(written: Any, size: int | None) -> None:
    assert values.size(written) == size


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("00:05:00", 300), ("100:00:00", 360000), ("05:00", 300), ("90", 90), (90, 90), (1.5, 1.5),
        ("1:00:00:00", 86400), ("", None), ("1:", None), ("-1", None), ("1:x:00", None), (None, None),
        (float("nan"), None), (float("inf"), None),
    ],
)  # fmt: skip
def test_durations_are_seconds(written: Any, seconds: float | None) -> None:
    assert values.duration(written) == seconds


@pytest.mark.parametrize(
    ("written", "at"),
    [
        ("Sat Nov 21 06:32:28 2026", 1795242748), ("Sat Nov  1 00:00:00 2025", 1761955200),
        ("Sat Nov 21 06:32:28 CET 2026", 1795242748), (1795242748, 1795242748), ("1795242748", 1795242748),
        ("Sat Foo 21 06:32:28 2026", None), ("yesterday", None), ("", None), (0, None), (None, None),
        ("Sat Nov 21 06:32:28 99999999999", None), ("²", None),
    ],
)  # fmt: skip
def test_points_in_time_are_read_as_utc(written: Any, at: float | None) -> None:
    assert values.when(written) == at


@given(st.integers(1, 4_000_000_000))
def test_a_point_in_time_is_read_as_it_was_written(at: int) -> None:
    assert values.when(time.asctime(time.gmtime(at))) == at


@given(st.integers(0, 10**8))
def test_a_duration_is_read_as_it_was_written(seconds: int) -> None:
    assert values.duration(values.hms(seconds)) == seconds


def test_seconds_are_rounded_up() -> None:
    assert values.hms(59.2) == "00:01:00"
    assert values.hms(3600) == "01:00:00"


def test_what_looks_like_a_number_is_one_in_json() -> None:
    assert values.text(7) == "7"
    assert values.text(1795242845539840.0) == "1795242845539840"
    assert values.text({"a": 1}) == ""


def test_blanks_around_a_number_are_no_part_of_it() -> None:
    assert values.integer("7\x1f") == 7
    assert values.integer(" 7 ") == 7


@given(JUNK | HOSTILE)
def test_nothing_makes_an_accessor_fail(value: Any) -> None:
    assert isinstance(values.text(value), str)
    assert abs(values.integer(value)) <= values.LARGEST
    assert isinstance(values.truth(value), bool)
    for found in (values.size(value), values.duration(value), values.when(value)):
        assert found is None or 0 <= found <= values.LARGEST
