"""Which sites of a federation are closed by their calendars, and the pools that are closed for that."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from headway import events as ev
from headway.model import PoolDescription
from headway.model.site_hours import opens_and_closes
from headway.model.sites import Site

_INF = float("inf")


class Hours:
    """The calendars of all sites at a moment that goes on."""

    def __init__(self, sites: Iterable[Site], now: float, epoch: float = 0.0) -> None:
        """``now`` in seconds of the run's clock; ``epoch``: the second since the epoch that is its time 0."""
        self._epoch = epoch
        self._sites = {site.name: site for site in sites if site.calendar}
        self._borders: dict[str, float] = {}
        #: Pools as their clusters describe them.
        self._pools: dict[str, tuple[str, PoolDescription]] = {}
        #: Sites that are closed now.
        self.closed: set[str] = set()
        for name in self._sites:
            self._look(name, now)

    @property
    def next_time(self) -> float:
        """When a site opens or closes next; infinity: none does."""
        return min(self._borders.values(), default=_INF)

    def of(self, site: str, pool: PoolDescription) -> PoolDescription:
        """A pool of a site, as its cluster describes it from now on; closed while its site is."""
        if site in self._sites:
            self._pools[pool.name] = site, pool
        return msgspec.structs.replace(pool, open=False) if site in self.closed else pool

    def reach(self, now: float) -> list[ev.Event]:
        """The pools that have opened or closed by now."""
        events: list[ev.Event] = []
        for name in [name for name, border in self._borders.items() if border <= now]:
            if self._look(name, now):
                pools = [pool for site, pool in self._pools.values() if site == name]
                events += [ev.PoolChanged(now, self.of(name, pool)) for pool in pools]
        return events

    def _look(self, name: str, now: float) -> bool:
        """Look at a site's calendar; whether it is otherwise than before."""
        is_open, until = opens_and_closes(self._sites[name], self._epoch + now)
        self._borders[name] = until - self._epoch
        before = name in self.closed
        (self.closed.discard if is_open else self.closed.add)(name)
        return before == is_open
