"""What lies between emulated clusters: jobs and data on their way, stores, and calendars."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np

from headway import decisions as d
from headway import events as ev
from headway.model import ClusterDescription, PoolDescription
from headway.model.sites import datasets_of
from headway.state.catalogue import Catalogue
from headway.workload.jobs import TraceJob
from headway_adapters.emulated import EmulatedAdapter, Faults
from headway_adapters.emulated.routes import Traveller
from headway_adapters.federation.hours import Hours
from headway_adapters.federation.names import Elsewhere, Names
from headway_adapters.federation.transfers import Transfer, Transfers

_INF = float("inf")
#: A copy tells how far it is each time that another of so many equal parts has arrived.
_PARTS = 4


class Between:
    """Routes, copies and calendars of a federation of emulated clusters."""

    def __init__(
        self, cluster: ClusterDescription, adapters: Mapping[str, EmulatedAdapter], names: Names, *,
        site_of: Mapping[str, str], faults: Faults, rng: np.random.Generator, now: float, epoch: float,
        fair: bool, jobs: Sequence[TraceJob],
    ) -> None:  # fmt: skip
        assert cluster.sites is not None
        self.site_of = site_of
        self.now = now
        #: When something happens next between the clusters; infinity: nothing does.
        self.next_time = _INF
        #: What is to be told before time goes on.
        self.news: list[ev.Event] = []
        #: Clusters to which something happened.
        self.touched: set[str] = set()
        self._adapters = adapters
        self._names = names
        self._faults = faults
        self._rng = rng
        self._pools = cluster.pools
        self._hours = Hours(cluster.sites.sites, now, epoch)
        #: What the stores have, as it is.
        self._catalogue = Catalogue(cluster.sites)
        self._transfers = Transfers(fair=fair)
        self._travelling: dict[str, tuple[Traveller, str]] = {}
        #: The datasets of each job that has some.
        self._needs = {one.job.id: need for one in jobs if (need := datasets_of(one.job.attributes))}
        self._heap: list[tuple[float, int, Callable[[Any], None], Any]] = []
        self._number = count()
        self._look_ahead()
        for replica in cluster.sites.replicas:
            link = self._catalogue.links.get((replica.source, replica.site))
            if replica.source and link is not None and link.bandwidth > 0:
                size = self._catalogue.datasets[replica.dataset].size
                done = float(min(replica.done, size))
                self._set_out(
                    Transfer(replica.dataset, replica.site, replica.source, size, now, link, done=done)
                )

    def actions(self) -> dict[type[d.Decision], Callable[[Any], str]]:
        """What carries out a decision; it returns why not, or ""."""
        return {d.Route: self._route, d.Copy: self._copy, d.Drop: self._drop}

    # ------------------------------------------------------------------ time

    @property
    def busy(self) -> bool:
        """Whether something is on its way."""
        return bool(self._travelling or self._transfers or self.news)

    def at(self, now: float) -> list[ev.Event]:
        """What happens by now."""
        self.now = now
        for transfer in self._transfers.over(now):
            self._copy_over(transfer)
        while self._heap and self._heap[0][0] <= now:
            _, _, happens, about = heapq.heappop(self._heap)
            happens(about)
        self.news += self._hours.reach(now)
        self._look_ahead()
        events, self.news = self.news, []
        return events

    def _look_ahead(self) -> None:
        planned = self._heap[0][0] if self._heap else _INF
        self.next_time = min(planned, self._transfers.next_time, self._hours.next_time)

    def _plan(self, time: float, happens: Callable[[Any], None], about: Any) -> None:
        heapq.heappush(self._heap, (time, next(self._number), happens, about))
        self._look_ahead()

    # ------------------------------------------------------------------ calendars

    def pools(self) -> tuple[PoolDescription, ...]:
        """All pools as they are now."""
        return tuple(self._hours.of(self.site_of[pool.name], pool) for pool in self._pools)

    @property
    def may_open(self) -> bool:
        """Whether a site is closed now that opens some day."""
        return bool(self._hours.closed)

    # ------------------------------------------------------------------ jobs

    @property
    def restricts(self) -> bool:
        """Whether starts of some jobs may be forbidden."""
        return bool(self._hours.closed or self._needs or self._travelling)

    def check(self, decision: d.Decision) -> None:
        """Raise :class:`Elsewhere` if what lies between the clusters forbids the decision."""
        job = getattr(decision, "job_id", "")
        if job in self._travelling:
            raise Elsewhere(f"job {job} is on its way to {self._travelling[job][1]}")
        if isinstance(decision, d.Start) and (self._hours.closed or self._needs):
            site = self._names.cluster_of_job(job)
            if site in self._hours.closed:
                raise Elsewhere(f"site {site} is closed by its calendar")
            missing = self._catalogue.missing(self._needs.get(job, ()), site)
            if missing:
                raise Elsewhere(f"job {job} reads {', '.join(missing)}, which {site} does not have")

    def _route(self, decision: d.Route) -> str:
        job, target = decision.job_id, self.site_of.get(decision.pool)
        home = self._names.cluster_of_job(job)
        if job in self._travelling:
            return f"job {job} is on its way to {self._travelling[job][1]} already"
        if target is None or home not in self._adapters:
            return f"there is no {'pool ' + repr(decision.pool) if target is None else 'job ' + job}"
        if self._rng.random() < self._faults.failure_rate:
            return "injected failure: the command was refused"
        source = self._adapters[home]
        source.moments.reach(self.now)
        self.touched.add(home)
        if target == home:
            return source.routes.route(decision)
        link = self._catalogue.links.get((home, target))
        if why := source.routes.why_not_out(job):
            return why
        if why := self._adapters[target].routes.too_large(source.routes.waiting(job), decision.pool):
            return why
        self._travelling[job] = source.routes.leave(job), decision.pool
        self._plan(self.now + (link.latency if link is not None else 0.0), self._arrive, job)
        return ""

    def _arrive(self, job: str) -> None:
        traveller, pool = self._travelling.pop(job)
        site = self.site_of[pool]
        self._adapters[site].moments.reach(self.now)
        self._adapters[site].routes.arrive(traveller, pool)
        self._names.job_at(job, site)
        self.touched.add(site)
        self.news.append(ev.JobRouted(self.now, job, pool))

    def settle(self) -> None:
        """Nothing comes any more: what is on its way counts as arrived."""
        for job in list(self._travelling):
            self._arrive(job)

    # ------------------------------------------------------------------ data

    def _copy(self, decision: d.Copy) -> str:
        catalogue, store = self._catalogue, self._catalogue.store(decision.site)
        if why := catalogue.why_no_copy(decision.dataset, decision.source, decision.site):
            return why
        if store is not None and store.most_copies and self._transfers.to(decision.site) >= store.most_copies:
            return f"{store.most_copies} copies are on their way to {decision.site}, as many as may be"
        size = catalogue.datasets[decision.dataset].size
        breaks = self._rng.random() < self._faults.copy_failure_rate
        transfer = Transfer(
            decision.dataset, decision.site, decision.source, size, self.now,
            catalogue.links[decision.source, decision.site],
            breaks_at=int(self._rng.random() * size) if breaks else None,
        )  # fmt: skip
        self._set_out(transfer)
        return ""

    def _set_out(self, transfer: Transfer) -> None:
        self._catalogue.begins(transfer.dataset, transfer.site, transfer.source, self.now)
        self._transfers.begin(transfer)
        self._tell_progress(transfer)

    def _tell_progress(self, transfer: Transfer) -> None:
        """Tell how far a copy is, and plan when to tell it again."""
        if transfer.over:
            return
        done = transfer.arrived(self.now)
        self.news.append(ev.DatasetCopying(self.now, transfer.dataset, transfer.site, transfer.source, done))
        seconds = transfer.link.latency + transfer.size / transfer.link.bandwidth
        self._plan(self.now + seconds / _PARTS, self._tell_progress, transfer)

    def _copy_over(self, transfer: Transfer) -> None:
        dataset, site, source = transfer.dataset, transfer.site, transfer.source
        if transfer.breaks_at is None:
            self._catalogue.arrives(dataset, site, self.now)
            seconds = self.now - transfer.since
            self.news.append(ev.DatasetCopied(self.now, dataset, site, source, seconds))
        else:
            self._catalogue.breaks_off(dataset, site)
            why = "injected failure: the connection broke"
            self.news.append(ev.CopyFailed(self.now, dataset, site, source, transfer.breaks_at, why))

    def _drop(self, decision: d.Drop) -> str:
        catalogue, dataset, site = self._catalogue, decision.dataset, decision.site
        if why := catalogue.why_no_drop(dataset, site):
            return why
        if any((one.dataset, one.source) == (dataset, site) for one in catalogue.copies.values()):
            return f"dataset {dataset} is being copied from {site}"
        readers = (job for job in self._adapters[site].running if dataset in self._needs.get(job, ()))
        if (reader := next(readers, None)) is not None:
            return f"job {reader} reads dataset {dataset} at {site}"
        catalogue.loses(dataset, site)
        self.news.append(ev.DatasetLost(self.now, dataset, site, decision.reason))
        return ""
