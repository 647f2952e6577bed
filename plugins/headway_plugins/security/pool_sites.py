"""What was promised on each pool, where pools may share nodes.

A job that is promised processors of a pool may come to have processors that the pool shares with another
pool. So a promise counts in each pool of its domain: with what the job has there once it runs, and until then
with as many processors as it can have there at most. Where jobs wait for what they were promised in a pool,
other jobs are promised nothing that could take it from them, wherever each finds its nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from headway.state import PoolState, State
from headway_plugins.security.grid import Site

_INF = float("inf")


class Promised(Protocol):
    """Processors of a pool from ``start`` to ``end``, absolute seconds."""

    pool: str
    processors: int
    start: float
    end: float
    running: bool
    #: What the job has of each pool; empty: that is not known, or there is a single pool.
    held: dict[str, int]


class PoolSites:
    """The pools as sites, made when they are asked for."""

    def __init__(self, state: State, promises: Callable[[], Iterable[Promised]]) -> None:
        """``promises``: all that stand."""
        self._state = state
        self._promises = promises
        self._sites: dict[str, Site] = {}

    def clear(self) -> None:
        """Pools are described anew."""
        self._sites.clear()

    def find(self, pool: PoolState, processors: int, without: Promised | None = None) -> Site:
        """The pool as a site for a job of so many processors: when it might take what jobs of other pools
        wait for (but not the job of the promise ``without``, its own) nothing is free. Not to be changed."""
        own = self._site(pool)
        if len(pool.domain.pools) == 1:
            return own
        site = Site(own.processors, self._state.now)
        site.profile = own.profile.copy()
        for other in pool.domain.pools:
            share = self._state.most_of(other, pool, processors) if other is not pool else 0
            if share:
                for start, end in self._short_of(share, other, without):
                    site.profile.reserve(start, end, own.processors)
        return site

    def _short_of(
        self, share: int, pool: PoolState, without: Promised | None
    ) -> Iterator[tuple[float, float]]:
        """When jobs of the pool wait for what they were promised and it has no such share beside that."""
        now, profile = self._state.now, self._site(pool).profile
        spans = list(zip(profile.times, [*profile.times[1:], _INF], profile.free, strict=True))
        short = [(max(start, now), end) for start, end, left in spans if left < share and end > now]
        until = now
        for start, end in sorted(
            (max(promise.start, now), promise.end) for promise in self._promises()
            if promise.pool == pool.name and not promise.running and promise is not without
        ):  # fmt: skip
            start = max(start, until)
            for begin, over in short:
                if begin < end and start < over:
                    yield max(begin, start), min(over, end)
            until = max(until, end)

    def reserve(self, promise: Promised) -> None:
        """A promise is made, from now on at the earliest."""
        for site, share in self._shares(promise):
            site.profile.reserve(max(promise.start, self._state.now), promise.end, share)

    def release(self, promise: Promised) -> None:
        """A promise stands no longer."""
        for site, share in self._shares(promise):
            site.profile.release(max(promise.start, self._state.now), promise.end, share)

    def _shares(self, promise: Promised) -> list[tuple[Site, int]]:
        """The sites that it counts on, with its processors there; of a site that was not asked for yet it is
        taken when that is made."""
        pool = self._state.pools.get(promise.pool)
        if pool is None:
            return []
        counts = ((other, self._share_of(promise, pool, other)) for other in pool.domain.pools)
        return [
            (self._sites[other.name], share) for other, share in counts if share and other.name in self._sites
        ]

    def _share_of(self, promise: Promised, pool: PoolState, other: PoolState) -> int:
        """How many processors of the pool ``other`` a promise of the pool counts for."""
        if promise.held:
            return promise.held.get(other.name, 0)
        return self._state.most_of(other, pool, promise.processors)

    def _site(self, pool: PoolState) -> Site:
        now, site = self._state.now, self._sites.get(pool.name)
        if site is None or site.processors != pool.total:
            site = self._sites[pool.name] = Site(pool.total, now)
            for promise in self._promises():
                theirs = self._state.pools.get(promise.pool)
                if promise.end > now and theirs is not None and theirs.domain is pool.domain:
                    share = self._share_of(promise, theirs, pool)
                    site.profile.reserve(max(promise.start, now), promise.end, share)
        site.profile.forget_before(now)
        return site
