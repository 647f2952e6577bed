"""Copies of datasets that are on their way between emulated stores: when each arrives.

A copy takes the latency of its link and then its bytes at the link's bandwidth. Either each copy has the
whole bandwidth (``full``, what published models assume), or the copies on one link share it equally
(``fair``).
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from itertools import count

from headway.model.sites import Link

_INF = float("inf")


@dataclass(eq=False)
class Transfer:
    """A copy on its way."""

    dataset: str
    site: str
    source: str
    size: int
    since: float
    link: Link
    #: It breaks after so many bytes; None: it arrives.
    breaks_at: int | None = None
    #: When its bytes began to flow, or flow (seconds): after the latency.
    flows_from: float = 0.0
    #: Bytes that had arrived at :attr:`counted_at`, and bytes a second since then.
    done: float = 0.0
    counted_at: float = 0.0
    rate: float = 0.0
    over: bool = False
    version: int = 0

    @property
    def goal(self) -> int:
        """Bytes after which it is over, well or badly."""
        return self.size if self.breaks_at is None else self.breaks_at

    def arrived(self, now: float) -> int:
        """Bytes that have arrived by now."""
        return min(self.goal, int(self.done + self.rate * max(0.0, now - self.counted_at)))


class Transfers:
    """All copies on their way."""

    def __init__(self, *, fair: bool = False) -> None:
        """``fair``: copies on one link share its bandwidth."""
        self._fair = fair
        self._all: set[Transfer] = set()
        #: What flows on each link.
        self._on: dict[tuple[str, str], list[Transfer]] = {}
        #: ``(time, number, transfer, version)``: when one begins to flow, or is over.
        self._heap: list[tuple[float, int, Transfer, int]] = []
        self._number = count()

    def __len__(self) -> int:
        return len(self._all)

    def to(self, site: str) -> int:
        """How many copies are on their way to a site."""
        return sum(one.site == site for one in self._all)

    def begin(self, transfer: Transfer) -> None:
        """A copy sets out at :attr:`Transfer.since`."""
        transfer.flows_from = transfer.counted_at = transfer.since + transfer.link.latency
        self._all.add(transfer)
        self._on.setdefault((transfer.source, transfer.site), [])
        self._plan(transfer, transfer.flows_from)

    @property
    def next_time(self) -> float:
        """When one of them begins to flow or is over; infinity: none does."""
        while self._heap and self._heap[0][3] != self._heap[0][2].version:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else _INF

    def over(self, now: float) -> list[Transfer]:
        """The copies that are over by now, in order."""
        found: list[Transfer] = []
        while self.next_time <= now:
            at, _, transfer, _ = heapq.heappop(self._heap)
            on = self._on[transfer.source, transfer.site]
            if transfer not in on:
                on.append(transfer)
            else:
                on.remove(transfer)
                self._all.discard(transfer)
                transfer.over = True
                found.append(transfer)
            self._share(on, at)
            if transfer in on and not self._fair:
                self._flow(transfer, at, transfer.link.bandwidth)
        return found

    def _share(self, on: list[Transfer], now: float) -> None:
        """The copies on a link have become more or fewer."""
        if self._fair:
            for one in on:
                self._flow(one, now, one.link.bandwidth / len(on))

    def _flow(self, transfer: Transfer, now: float, rate: float) -> None:
        """A copy goes on at this rate, bytes a second."""
        transfer.done += transfer.rate * (now - transfer.counted_at)
        transfer.counted_at, transfer.rate = now, rate
        self._plan(transfer, now + max(0.0, transfer.goal - transfer.done) / rate)

    def _plan(self, transfer: Transfer, time: float) -> None:
        transfer.version += 1
        heapq.heappush(self._heap, (time, next(self._number), transfer, transfer.version))
