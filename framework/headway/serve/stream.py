"""What happens, as numbered items that are kept for a while: a reader that was away goes on where it was.

Numbers grow, also from one process to the next, as the first is the time of the beginning: a reader with a
number of an earlier process is told to start anew.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice

import msgspec

#: Items that are kept.
KEPT = 20_000
#: Items that a reader gets before it is looked again whether it is too slow.
_AT_ONCE = 256
#: Ids that an item names, at most.
NAMED = 500


class Item(msgspec.Struct, frozen=True):
    """Something that happened.

    ``kind`` and ``data``: "cycle" (a :class:`headway.inquiry.reports.CycleReport` without its decisions),
    "decision" (a :class:`headway.inquiry.reports.DecisionReport`), "event" (:class:`EventItem`), "jobs"
    (:class:`JobsItem`), "daemon" (:class:`DaemonItem`), "anew" (null: items are missing before this one, so
    what was read is to be read again).
    """

    #: Larger than that of each item before.
    number: int
    kind: str
    data: msgspec.Raw


class EventItem(msgspec.Struct, frozen=True, omit_defaults=True):
    """An event: its type, its time (absolute seconds), its job or its node."""

    kind: str
    at: float
    job: str = ""
    node: str = ""


class JobsItem(msgspec.Struct, frozen=True, omit_defaults=True):
    """Jobs of which something is told that is new, and jobs that are gone."""

    ids: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    #: There are more than these: what is shown is to be read again.
    more: bool = False


class DaemonItem(msgspec.Struct, frozen=True):
    """The daemon answers again, or does not; since when (absolute seconds)."""

    answers: bool
    since: float


@dataclass(frozen=True)
class Kept:
    """An item as it is kept."""

    number: int
    kind: str
    #: For all who may know of all jobs.
    whole: bytes
    #: Other users: what each of these gets; None: all get the same as everybody.
    own: Mapping[str, bytes] | None = None


@dataclass
class Stream:
    """The items, and those who wait for more. Used in one event loop."""

    clock: Callable[[], float] = time.time
    kept: int = KEPT
    _items: deque[Kept] = field(init=False)
    _next: int = field(init=False)
    _news: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    def __post_init__(self) -> None:
        self._items = deque(maxlen=self.kept)
        # In 15 digits: below 2**53, and with room for 100,000 items a second until the next process begins.
        self._next = int(self.clock() * 10) * 10_000

    # ------------------------------------------------------------------ what is put in

    def put(self, kind: str, whole: object, own: Mapping[str, object] | None = None) -> None:
        """An item; ``own``: what those users get of it who may know of their own jobs only, else all the
        same."""
        of_users = None if own is None else {user: msgspec.json.encode(data) for user, data in own.items()}
        self._items.append(Kept(self._next, kind, msgspec.json.encode(whole), of_users))
        self._next += 1

    def tell(self) -> None:
        """Readers that wait go on with what was put in."""
        news, self._news = self._news, asyncio.Event()
        news.set()

    # ------------------------------------------------------------------ what is read

    @property
    def last(self) -> int:
        """The number of the last item, or of one before the first."""
        return self._next - 1

    async def read(
        self, user: str, sees_all: Callable[[], bool], after: int | None = None
    ) -> AsyncIterator[Item]:
        """The items behind the one with the number ``after`` (None: from now on) as far as the user may know
        of them, without an end. A reader for which items are missing gets an item "anew" first."""
        at = self.last if after is None else after
        while True:
            if not self._follows(at):
                at = self.last
                yield Item(at, "anew", msgspec.Raw(b"null"))
            news, there = self._news, self._behind(at)
            for item in seen(there, user, sees_all()):
                yield item
            if there:
                at = there[-1].number
            else:
                await news.wait()

    def _follows(self, number: int) -> bool:
        """Whether all items behind this number are kept."""
        first = self._items[0].number if self._items else self._next
        return first - 1 <= number <= self.last

    def _behind(self, number: int) -> list[Kept]:
        first = self._items[0].number if self._items else self._next
        return list(islice(self._items, number + 1 - first, number + 1 - first + _AT_ONCE))

    def __iter__(self) -> Iterator[Kept]:
        return iter(self._items)


def seen(kept: Iterable[Kept], user: str, sees_all: bool) -> list[Item]:
    """Those that the user may know of, as the user is told."""
    found = []
    for one in kept:
        data = one.whole if sees_all or one.own is None else one.own.get(user)
        if data is not None:
            found.append(Item(one.number, one.kind, msgspec.Raw(data)))
    return found


def jobs_item(ids: Iterable[str], gone: Iterable[str]) -> JobsItem:
    """What became of jobs; of very many not all are named."""
    named, left = list(islice(ids, NAMED + 1)), list(islice(gone, NAMED + 1))
    more = len(named) > NAMED or len(left) > NAMED
    return JobsItem(tuple(named[:NAMED]), tuple(left[:NAMED]), more)
