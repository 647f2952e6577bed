"""Which site has which dataset, which copies are on their way, and how long a copy takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from headway.model.sites import Dataset, Link, Site, Sites, Store

_INF = float("inf")


class Copying(msgspec.Struct):
    """A copy of a dataset that is on its way."""

    dataset: str
    #: The site that is to have it.
    site: str
    source: str
    #: When it was decided, or first told (absolute seconds).
    since: float
    #: Bytes that are there already.
    done: int = 0


class Catalogue:
    """The sites of a federation and what their stores have."""

    def __init__(self, described: Sites) -> None:
        self.sites: Mapping[str, Site] = {site.name: site for site in described.sites}
        self.datasets: Mapping[str, Dataset] = {one.name: one for one in described.datasets}
        self.links: Mapping[tuple[str, str], Link] = {
            (link.source, link.target): link for link in described.links
        }
        #: The site of each pool.
        self._site_of = {pool: site.name for site in described.sites for pool in site.pools}
        #: Dataset -> site that has it -> since when (absolute seconds).
        self.replicas: dict[str, dict[str, float]] = {
            one.name: dict.fromkeys(one.at, -_INF) for one in described.datasets
        }
        #: The plugin that orders the copies of this run: only one can; "": none does.
        self.supplier = ""
        #: Copies on their way, by dataset and site.
        self.copies: dict[tuple[str, str], Copying] = {}
        self._used: dict[str, int] = {}
        for one in described.datasets:
            for name in one.at:
                self._used[name] = self._used.get(name, 0) + one.size
        for replica in described.replicas:
            # The cluster tells of what is on its way.
            if not replica.source:
                self.replicas[replica.dataset][replica.site] = replica.since
                size = self.datasets[replica.dataset].size
                self._used[replica.site] = self._used.get(replica.site, 0) + size
        #: Changes whenever a store gets, is to get, or loses something.
        self.version = 0

    def site_of(self, pool: str) -> str:
        """The site of a pool; of a pool that came later, the site that its name begins with."""
        return self._site_of.get(pool) or pool.partition(":")[0]

    def store(self, site: str) -> Store | None:
        """The site's store; None if it has none, or if there is no such site."""
        known = self.sites.get(site)
        return None if known is None else known.store

    def has(self, dataset: str, site: str) -> bool:
        """Whether the site has the whole dataset."""
        return site in self.replicas.get(dataset, ())

    def missing(self, datasets: Iterable[str], site: str) -> tuple[str, ...]:
        """Which of them the site does not have."""
        return tuple(name for name in datasets if not self.has(name, site))

    def original(self, dataset: str, site: str) -> bool:
        """Whether the site's copy was there from the beginning, and is never dropped."""
        return site in self.datasets[dataset].at

    def used(self, site: str) -> int:
        """Bytes of the site's store that are taken, or will be by copies on their way."""
        return self._used.get(site, 0)

    def room(self, site: str) -> float:
        """Bytes that the site's store can still take; infinite if it is not bounded."""
        store = self.store(site)
        if store is None:
            return 0.0
        return _INF if store.capacity == 0 else store.capacity - self.used(site)

    def seconds(self, dataset: str, source: str, site: str) -> float:
        """How long a copy takes at the full rate of its link; infinite if nothing passes there."""
        link = self.links.get((source, site))
        if link is None or link.bandwidth <= 0:
            return _INF
        return link.latency + self.datasets[dataset].size / link.bandwidth

    def nearest(self, dataset: str, site: str) -> str | None:
        """The site from which a copy comes soonest, the first in the configuration's order of several; None:
        from nowhere."""
        found = [
            (self.seconds(dataset, source, site), at, source)
            for at, source in enumerate(self.sites)
            if source != site and self.has(dataset, source)
        ]
        best = min(found, default=(_INF, 0, ""))
        return best[2] if best[0] < _INF else None

    def why_no_copy(self, dataset: str, source: str, site: str) -> str:
        """Why there can be no copy of a dataset from one site to another now; "" if there can."""
        if dataset not in self.datasets:
            return f"there is no dataset {dataset!r}"
        if self.store(site) is None:
            return f"there is no store at {site!r}"
        if self.has(dataset, site):
            return f"{site} has dataset {dataset} already"
        if (dataset, site) in self.copies:
            return f"dataset {dataset} is on its way to {site} already"
        if not self.has(dataset, source):
            return f"{source} does not have dataset {dataset}"
        if self.seconds(dataset, source, site) == _INF:
            return f"there is no link from {source} to {site}"
        size, room = self.datasets[dataset].size, self.room(site)
        if size > room:
            return f"the store of {site} has room for {room:.0f} bytes, and dataset {dataset} has {size}"
        return ""

    def why_no_drop(self, dataset: str, site: str) -> str:
        """Why the site has no copy of the dataset that may be removed; "" if it has."""
        if not self.has(dataset, site):
            return f"{site} does not have dataset {dataset}"
        if self.original(dataset, site):
            return f"dataset {dataset} was at {site} from the beginning and stays there"
        return ""

    # ------------------------------------------------------------------ what happens

    def begins(self, dataset: str, site: str, source: str, now: float) -> Copying:
        """A copy is on its way; returns what is known of it."""
        known = self.copies.get((dataset, site))
        if known is None:
            known = self.copies[dataset, site] = Copying(dataset, site, source, now)
            self._account(site, dataset, 1)
        return known

    def arrives(self, dataset: str, site: str, now: float) -> None:
        """A site has a dataset."""
        on_its_way = self.copies.pop((dataset, site), None) is not None
        if site not in self.replicas[dataset]:
            self.replicas[dataset][site] = now
            self._account(site, dataset, 0 if on_its_way else 1)
        elif on_its_way:
            self._account(site, dataset, -1)

    def breaks_off(self, dataset: str, site: str) -> None:
        """There is no copy on its way any more."""
        if self.copies.pop((dataset, site), None) is not None:
            self._account(site, dataset, -1)

    def loses(self, dataset: str, site: str) -> None:
        """A site has a dataset no more."""
        if self.replicas[dataset].pop(site, None) is not None:
            self._account(site, dataset, -1)

    def _account(self, site: str, dataset: str, sign: int) -> None:
        self._used[site] = self._used.get(site, 0) + sign * self.datasets[dataset].size
        self.version += 1
