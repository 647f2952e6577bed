"""Numbered items: a reader goes on where it was, or is told that something is missing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from waiting import HANG

from headway.serve.stream import NAMED, Item, Stream, jobs_item


async def some(
    stream: Stream, count: int, after: int | None, user: str = "ann", all_: bool = True
) -> list[Item]:
    found = []
    async with asyncio.timeout(HANG):
        async for item in stream.read(user, lambda: all_, after):
            found.append(item)
            if len(found) == count:
                break
    return found


def data(items: list[Item]) -> list[Any]:
    return [msgspec.json.decode(one.data) for one in items]


def filled(count: int, kept: int = 10, clock: Callable[[], float] = lambda: 1e9) -> Stream:
    stream = Stream(clock, kept)
    for at in range(count):
        stream.put("event", at)
    return stream


def test_a_reader_goes_on_behind_the_last_that_it_has_seen() -> None:
    stream = filled(5)
    first = stream.last - 5
    items = asyncio.run(some(stream, 5, first))
    assert data(items) == [0, 1, 2, 3, 4]
    assert [one.number for one in items] == list(range(first + 1, first + 6))
    assert data(asyncio.run(some(stream, 2, items[2].number))) == [3, 4]


@pytest.mark.parametrize("number", [-11, -(10**14), 1])
def test_a_reader_for_which_items_are_missing_is_told_to_start_anew(number: int) -> None:
    stream = filled(25)
    assert len(asyncio.run(some(stream, 10, stream.last - 10))) == 10

    async def run() -> list[Item]:
        reading = asyncio.create_task(some(stream, 2, stream.last + number))
        await asyncio.sleep(0)
        stream.put("event", "next")
        stream.tell()
        return await reading

    items = asyncio.run(run())
    assert [one.kind for one in items] == ["anew", "event"] and data(items) == [None, "next"]


def test_numbers_of_an_earlier_process_are_known_as_such_and_fit_in_a_scripts_number() -> None:
    before, now = filled(1000, clock=lambda: 1e9), filled(1, clock=lambda: 1e9 + 1)
    items = asyncio.run(some(now, 1, before.last))
    assert items[0].kind == "anew" and now.last > before.last
    assert filled(1, clock=lambda: 5e9).last < 10**15 < 2**53


def test_each_user_gets_the_own_part_and_what_is_for_all() -> None:
    stream = Stream()
    after = stream.last
    stream.put("decision", "secret", {"ann": "hers"})
    stream.put("event", "hidden", {})
    stream.put("cycle", "all")
    assert data(asyncio.run(some(stream, 2, after, all_=False))) == ["hers", "all"]
    assert data(asyncio.run(some(stream, 1, after, "ben", all_=False))) == ["all"]
    assert data(asyncio.run(some(stream, 3, after))) == ["secret", "hidden", "all"]


def test_many_readers_wait_at_once_for_what_comes() -> None:
    stream = Stream()

    async def run() -> list[list[Item]]:
        reading = [asyncio.create_task(some(stream, 2, None)) for _ in range(50)]
        await asyncio.sleep(0)
        for at in range(2):
            stream.put("event", at)
            stream.tell()
            await asyncio.sleep(0)
        return await asyncio.gather(*reading)

    assert [data(items) for items in asyncio.run(run())] == [[0, 1]] * 50


def test_of_very_many_jobs_not_all_are_named() -> None:
    ids = [str(at) for at in range(NAMED + 1)]
    assert jobs_item(ids, []) == jobs_item([*ids[:NAMED], "x"], []) and jobs_item(ids, []).more
    assert not jobs_item(ids[:NAMED], ids[:NAMED]).more and jobs_item([], ids).more
