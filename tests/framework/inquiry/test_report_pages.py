"""A page is bounded by the number of its reports, the time that it takes and the nodes that it names."""

from __future__ import annotations

from collections.abc import Iterator
from time import thread_time

import pytest

from headway.inquiry.pages import MOST, NODES, page


def work(seconds: float) -> None:
    """Take so much processor time."""
    end = thread_time() + seconds
    while thread_time() < end:
        pass


def same(item: int) -> int:
    return item


@pytest.mark.parametrize(
    ("first", "count", "made", "then"),
    [
        (0, 3, (0, 1, 2), 3), (3, 3, (3, 4, 5), 6), (8, 3, (8, 9), None), (7, 3, (7, 8, 9), None),
        (10, 3, (), None), (0, 10, tuple(range(10)), None),
    ],
)  # fmt: skip
def test_pages_follow_one_another(first: int, count: int, made: tuple[int, ...], then: int | None) -> None:
    assert page(iter(range(10)), same, first, count, seconds=60) == (made, then)


def test_no_page_has_more_reports_than_there_may_be() -> None:
    made, then = page(iter(range(10 * MOST)), same, 0, 5 * MOST, seconds=60)
    assert (len(made), then) == (MOST, MOST)


def test_a_page_that_takes_long_ends_early_and_the_next_goes_on() -> None:
    def slow(item: int) -> int:
        work(0.002)
        return item

    made, then = page(iter(range(1000)), slow, 0, 500, seconds=0.02)
    assert 1 <= len(made) <= 11 and then == len(made)


def test_there_is_a_report_on_a_page_however_long_it_takes_to_find_the_first() -> None:
    def found() -> Iterator[int]:
        work(0.05)
        yield from (1, 2)

    assert page(found(), same, 0, 1, seconds=0.0) == ((1,), 1)
    assert page(found(), same, 0, 9, seconds=0.0) == ((1,), 1)


def test_a_page_of_large_jobs_ends_early() -> None:
    made, then = page(iter(range(10)), same, 0, 10, nodes=lambda _: NODES // 2, seconds=60)
    assert (len(made), then) == (3, 3)
