"""What `bjobs -A -w` tells of how many elements of an array may run at a time."""

from __future__ import annotations

from collections import Counter

from headway_adapters.lsf.arrays import ArraySlots, read_limits

HEAD = "JOBID    ARRAY_SPEC  OWNER   NJOBS PEND DONE  RUN EXIT SSUSP USUSP PSUSP\n"
#: As a volclava 2.2 writes it.
RECORDED = f"{HEAD}137      q[1-4]%2 alice       4    4    0    0    0     0     0     0\n"


def row(number: int, spec: str) -> str:
    return f"{number:<8} {spec} alice       4    4    0    0    0     0     0     0\n"


def test_a_recorded_listing() -> None:
    assert read_limits(RECORDED, set()) == {"137": 2}


def test_arrays_without_a_limit_have_none_whatever_their_names_are() -> None:
    specs = ("a[1-4]", "a]%3[1-4]", "two words [1]%3 [1-4]", "a[1-4]%0")
    text = HEAD + "".join(row(at, spec) for at, spec in enumerate(specs))
    assert read_limits(text, set()) == {}


def test_a_name_may_hold_anything() -> None:
    assert read_limits(HEAD + row(5, "a b[1]%9 c[1,3-8:2]%12"), set()) == {"5": 12}


def test_a_name_that_imitates_a_row_imposes_no_limit() -> None:
    notes: set[str] = set()
    assert read_limits(HEAD + row(5, "a[1-4]") + row(5, "a[1-4]%1") + row(6, "b[1-4]%3"), notes) == {"6": 3}
    assert notes == {"array 5 is listed twice; a limit of its elements is not kept"}


def test_what_is_no_table_says_nothing() -> None:
    assert read_limits("No unfinished job found\n\nx y z\n", set()) == {}


def test_elements_that_have_hosts_and_elements_that_may_start_count() -> None:
    slots = ArraySlots({"5": 2}, Counter({"5": 1}))
    assert [slots.barred("5") for _ in range(2)] == ["", "its array runs at most 2 elements at a time"]
    assert slots.barred("6") == slots.barred("") == ""
