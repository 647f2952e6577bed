"""Copies of datasets: which can begin now, which failed, and which replicas make room for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from headway.decisions import Copy, Decision, Drop
from headway.events import CopyFailed, DatasetCopied, DatasetLost
from headway.report.quantities import duration
from headway.state import State
from headway.state.catalogue import Catalogue
from headway_plugins.data.measured import Measured
from headway_plugins.data.stores import Filling, droppable
from headway_plugins.data.supply_options import SupplyOptions

_INF = float("inf")
Place = tuple[str, str]


@dataclass
class _Failures:
    """Copies of a dataset to a site that failed, one after the other."""

    count: int = 0
    #: When the next one may begin (absolute seconds).
    until: float = 0.0
    #: Sites from which it failed.
    sources: set[str] = field(default_factory=set)
    reason: str = ""


class Copies:
    """The copies that were ordered, by dataset and site."""

    def __init__(self, catalogue: Catalogue, options: SupplyOptions, *, drops: bool) -> None:
        """``drops``: the cluster can remove replicas."""
        self.catalogue = catalogue
        self.measured = Measured(learning=options.learning)
        self._options = options
        self._drops = drops
        #: Copies that failed, replicas that are to be dropped, and why a copy has not begun.
        self._failures: dict[Place, _Failures] = {}
        self._dropping: set[Place] = set()
        self.delays: dict[Place, str] = {}
        #: What is counted.
        self.copies = self.bytes_copied = self.failed_copies = self.drops = 0

    # ------------------------------------------------------------------ what happens

    def note(self, event: DatasetCopied | CopyFailed | DatasetLost, state: State) -> None:
        """A copy is over, or a replica is gone."""
        place = event.dataset, event.site
        if isinstance(event, DatasetCopied):
            self.measured.took(self.catalogue, event)
            self._failures.pop(place, None)
            if event.source:
                self.copies += 1
                self.bytes_copied += self.catalogue.datasets[event.dataset].size
        elif isinstance(event, CopyFailed):
            self.failed(event.dataset, event.site, event.source, event.reason, state)
        else:
            self.drops += place in self._dropping
            self._dropping.discard(place)

    def failed(self, dataset: str, site: str, source: str, reason: str, state: State) -> None:
        """A copy broke off, or did not begin: it is tried again later."""
        self.failed_copies += 1
        self.measured.breaks(dataset, site)
        failures = self._failures.setdefault((dataset, site), _Failures())
        wait = min(self._options.longest_retry, self._options.retry * 2.0 ** min(failures.count, 60))
        failures.count += 1
        failures.until, failures.reason = state.now + wait, reason
        failures.sources.add(source)
        for pool in state.pools.values():
            if self.catalogue.site_of(pool.name) == site:
                state.wake_at(failures.until, pool)
                break

    def not_dropped(self, dataset: str, site: str) -> None:
        """The cluster has refused to drop a replica."""
        self._dropping.discard((dataset, site))

    # ------------------------------------------------------------------ what is expected

    def retry_at(self, now: float) -> float:
        """When a copy that failed may be tried again (absolute seconds); infinity: none failed."""
        return min((failed.until for failed in self._failures.values() if failed.until > now), default=_INF)

    def left(self, dataset: str, site: str, now: float) -> float:
        """Seconds until a copy on its way is expected to arrive."""
        copy, size = self.catalogue.copies[dataset, site], self.catalogue.datasets[dataset].size
        seconds = self.measured.seconds(self.catalogue, dataset, copy.source, site)
        # A copy may have begun long before it was first told.
        of_rest = seconds * (1.0 - copy.done / size) if size else 0.0
        return max(0.0, min(copy.since + seconds - now, of_rest))

    def arrival(self, dataset: str, site: str, now: float) -> float:
        """Seconds until the site has the dataset, if a copy that is not on its way begins as soon as it may;
        infinite if none can."""
        if self.catalogue.has(dataset, site):
            return 0.0
        if (dataset, site) in self.catalogue.copies:
            return self.left(dataset, site, now)
        source = self.measured.nearest(self.catalogue, dataset, site)
        if source is None:
            return _INF
        failed = self._failures.get((dataset, site))
        wait = max(0.0, failed.until - now) if failed is not None else 0.0
        return wait + self.measured.seconds(self.catalogue, dataset, source, site)

    def said(self, dataset: str, site: str, now: float) -> str:
        """A dataset that is missing, and when it is expected."""
        copy = self.catalogue.copies.get((dataset, site))
        if copy is None:
            return f"{dataset} ({self.delays.get((dataset, site), 'its copy has not begun')})"
        size = self.catalogue.datasets[dataset].size
        share = copy.done / size if size else 1.0
        left = self.left(dataset, site, now)
        when = "at any moment" if left <= 0 else f"in {duration(left)}"
        arrived = f"{100 * share:.0f} % of it has arrived from {copy.source}"
        return f"{dataset} ({arrived}, the rest is expected {when})"

    # ------------------------------------------------------------------ what is ordered

    def orders(
        self, filling: Filling, needs: Mapping[str, tuple[str, ...]], used: Mapping[Place, float], now: float
    ) -> Iterator[Decision]:
        """The copies that can begin, and replicas that make room for them.

        ``needs``: job -> what it reads; ``used``: when a dataset was read at a site last.
        """
        catalogue, options = self.catalogue, self._options
        self.delays = {}
        to: dict[str, int] = {}
        for copy in catalogue.copies.values():
            to[copy.site] = to.get(copy.site, 0) + 1
        total = len(catalogue.copies)
        room: dict[str, float] = {}
        for (dataset, site), job in filling.wanted.items():
            store = catalogue.store(site)
            most = store.most_copies if store is not None else 0
            free = room.setdefault(site, catalogue.room(site))
            if why := self._not_yet(dataset, site, now):
                self.delays[dataset, site] = why
            elif total >= options.parallel or (most and to.get(site, 0) >= most):
                self.delays[dataset, site] = "its copy waits for other copies to end"
            elif (source := self._source(dataset, site)) is None:
                self.delays[dataset, site] = "no site from which it could come has it"
            elif (size := catalogue.datasets[dataset].size) > free:
                self.delays[dataset, site] = f"room is made for it at {site}"
                room[site] = free - size
                yield from self._make_room(size - max(0.0, free), site, filling, dataset, used)
            else:
                room[site] = free - size
                total += 1
                to[site] = to.get(site, 0) + 1
                self.measured.begins(catalogue, dataset, source, site)
                yield Copy(dataset, site, source, f"job {job} waits for it")
        for site, job in filling.full.items():
            for name in needs.get(job, ()):
                self.delays.setdefault(
                    (name, site), f"the store of {site} is full of datasets of the jobs before it"
                )

    def _not_yet(self, dataset: str, site: str, now: float) -> str:
        """Why a copy that failed is not tried now; "" if it may be."""
        failed = self._failures.get((dataset, site))
        if failed is None or failed.until <= now:
            return ""
        times = "once" if failed.count == 1 else f"{failed.count} times"
        again = duration(failed.until - now)
        return f"its copy failed {times}: {failed.reason}; it is tried again in {again}"

    def _source(self, dataset: str, site: str) -> str | None:
        """Where a copy comes from: a site from which it has not failed, if there is one."""
        failed = self._failures.get((dataset, site))
        without = failed.sources if failed is not None else set()
        found = self.measured.nearest(self.catalogue, dataset, site, without)
        if found is None and failed is not None:
            failed.sources.clear()
            found = self.measured.nearest(self.catalogue, dataset, site)
        return found

    def _make_room(
        self, size: float, site: str, filling: Filling, for_: str, used: Mapping[Place, float]
    ) -> Iterator[Drop]:
        """Drop replicas until so many bytes more are free."""
        if not self._drops:
            self.delays[for_, site] = f"the store of {site} is full, and this cluster removes no datasets"
            return
        sizes = self.catalogue.datasets
        for name in droppable(self.catalogue, site, filling.kept.get(site, set()), used):
            if size <= 0:
                return
            size -= sizes[name].size
            if (name, site) not in self._dropping:
                self._dropping.add((name, site))
                yield Drop(name, site, f"room for dataset {for_}; not read for the longest time")
