"""Several emulated clusters as one, with one virtual clock.

Each cluster is an emulated cluster of its own, with its own pools, nodes, faults and guard. This adapter lets
time go on to the next moment at which something happens in any of them, and hands decisions to the cluster
that they are about, as the federation of real clusters does. All names are the federation's.

What lies between the clusters happens here: pending jobs that go from one to another, copies of datasets
(:mod:`.transfers`), and the calendars that say when sites start jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from headway import decisions as d
from headway import events as ev
from headway.adapter import Check, ClusterAdapter, Outcome
from headway.emulation.delays import Delays
from headway.errors import UserError
from headway.model import ClusterDescription
from headway.model.bundles import Oversubscription
from headway.model.sites import Site
from headway.results import Activity, CapacityChange, JobResult, NodePower, PartitionStep
from headway.workload.jobs import Begun, Follows, TraceCommand, TraceJob
from headway.workload.sharing import Sharing
from headway_adapters.emulated import EmulatedAdapter
from headway_adapters.emulated import faults as _faults
from headway_adapters.emulated.execution import Execution
from headway_adapters.emulated.physics import Physics
from headway_adapters.federation.composition import Composition, failure_of, together
from headway_adapters.federation.emulated_between import Between
from headway_adapters.federation.handlers import Inward, for_cluster
from headway_adapters.federation.names import Elsewhere, Names

_INF = float("inf")
_COPIES: frozenset[type[d.Decision]] = frozenset({d.Copy, d.Drop})
_ACCEPTED = Outcome(accepted=True)
_Start = d.Start
#: Seconds in which nothing ran nor came, after which jobs count as waiting for ever.
_PATIENCE = 400 * 86400.0


class _Member:
    """One emulated cluster."""

    joined, ended = True, False

    def __init__(self, name: str, adapter: EmulatedAdapter) -> None:
        self.name = name
        self.adapter = adapter


class EmulatedFederation(ClusterAdapter):
    """Several emulated clusters as one adapter."""

    Faults = _faults.Faults
    capabilities = EmulatedAdapter.capabilities | _COPIES
    suspended_lend = True

    @classmethod
    def capable_of(
        cls, cluster: ClusterDescription, options: Mapping[str, Any] | None = None
    ) -> frozenset[type[d.Decision]]:
        """As one emulated cluster, and copies where a site has a store."""
        stores = cluster.sites is not None and any(site.store is not None for site in cluster.sites.sites)
        able = EmulatedAdapter.capable_of(cluster)
        return able | _COPIES if stores else able

    def __init__(
        self, cluster: ClusterDescription, jobs: Sequence[TraceJob], *,
        commands: Sequence[TraceCommand] = (), chains: Mapping[str, Follows] | None = None,
        physics: Sequence[Physics] = (), faults: _faults.Faults | None = None,
        rng: np.random.Generator | None = None, start: float | None = None, running: Sequence[Begun] = (),
        power: Mapping[str, str] | None = None, delays: Delays | None = None,
        sharing: Sharing | None = None, sharing_seed: int = 0,
        oversubscription: Oversubscription | None = None, epoch: float = 0.0, fair_links: bool = False,
    ) -> None:  # fmt: skip
        """As :class:`headway_adapters.emulated.EmulatedAdapter`, of a cluster with sites.

        ``epoch``: the second since the epoch that is time 0, for the calendars. ``fair_links``: copies on one
        link share its bandwidth. Raises :class:`UserError` for what several clusters cannot have together.
        """
        assert cluster.sites is not None
        if delays is not None:
            raise UserError(
                "emulation.latency: expected none with several clusters, found measured latencies"
            )
        faults = faults or _faults.Faults()
        rng = rng if rng is not None else np.random.default_rng(0)
        self.capabilities = self.capable_of(cluster)
        self._cluster = cluster
        self._names = Names()
        self._order = {one.job.id: at for at, one in enumerate(jobs)}
        site_of = {pool: site.name for site in cluster.sites.sites for pool in site.pools}
        begins = start if start is not None else (jobs[0].job.submit_time if jobs else 0.0)
        by_site = _by_site(cluster.sites.sites, site_of, jobs)
        if chains:
            _refuse_links(chains, by_site)
        self._members: dict[str, _Member] = {}
        for site, draws in zip(cluster.sites.sites, rng.spawn(len(cluster.sites.sites)), strict=True):
            own = {one.job.id for one in by_site[site.name]} if commands or chains or running else ()
            adapter = EmulatedAdapter(
                _part(cluster, site), by_site[site.name],
                commands=[one for one in commands if one.job_id in own],
                chains={job: link for job, link in (chains or {}).items() if job in own} or None,
                physics=physics, faults=faults, rng=draws, start=begins,
                running=[one for one in running if one.job_id in own],
                power={name: said for name, said in (power or {}).items() if _site_of(name) == site.name},
                sharing=sharing, sharing_seed=sharing_seed, oversubscription=oversubscription,
            )  # fmt: skip
            self._members[site.name] = _Member(site.name, adapter)
        self._adapters = [member.adapter for member in self._members.values()]
        self._moments = [one.moments for one in self._adapters]
        self._place = {name: at for at, name in enumerate(self._members)}
        #: When something happens next in each cluster.
        self._times = [one.next_time for one in self._moments]
        #: Clusters that have something to tell since they were told to do something.
        self._asked: set[int] = set()
        self._composition = Composition(self._members, self._names)
        self.suspended_lend = all(one.suspended_lend for one in self._adapters)
        self._now = self._alive_at = begins
        self._between = Between(
            cluster, {name: member.adapter for name, member in self._members.items()}, self._names,
            site_of=site_of, faults=faults, rng=rng, now=begins, epoch=epoch, fair=fair_links, jobs=jobs,
        )  # fmt: skip
        #: What the federation carries out itself.
        self._own: dict[type[d.Decision], Callable[[Any], str]] = self._between.actions()

    def use_handlers(self, handlers: Iterable[Any], gives: frozenset[type[d.Decision]]) -> None:
        """Each cluster has its own, as in a federation of real clusters."""
        handlers = tuple(handlers)
        for name, member in self._members.items():
            member.adapter.use_handlers([Inward(for_cluster(one, name)) for one in handlers], gives)
        self.capabilities = self.capabilities.union(*(one.capabilities for one in self._adapters))

    # ------------------------------------------------------------------ what is told

    def describe(self) -> ClusterDescription:
        return msgspec.structs.replace(
            self._cluster, suspended_lend=self.suspended_lend, pools=self._between.pools()
        )

    def check(self) -> list[Check]:
        return [
            msgspec.structs.replace(check, subject=f"{member.name}: {check.subject}")
            for member in self._members.values()
            for check in member.adapter.check()
        ]

    def wait(self, deadline: float | None) -> tuple[float, Sequence[ev.Event]] | None:
        first = self._news_first()
        if first is not None:
            return self._now, ev.in_order(first)
        between, times = self._between, self._times
        now = min(min(times), between.next_time)
        if not self._alive() and self._over(deadline):
            last = [moment for one in self._moments if (moment := one.last_news()) is not None]
            return (self._now, ev.in_order([one for _, told in last for one in told])) if last else None
        if deadline is not None and deadline < now:
            now = deadline
        if now == _INF:
            return None
        self._now = now = max(now, self._now)
        events: list[ev.Event] = []
        if self._asked:
            for at in self._asked:
                events += self._moments[at].take_news()
            self._asked.clear()
        for at, time in enumerate(times):
            if time <= now:
                one = self._moments[at]
                events += one.at(now)[1]
                times[at] = one.next_time
        if between.next_time <= now:
            events += between.at(now)
            self._reached(between.touched)
        return now, ev.in_order(events)

    def _news_first(self) -> list[ev.Event] | None:
        """What is told before time goes on; None: nothing has to be."""
        found: list[ev.Event] | None = None
        if self._between.news:
            found, self._between.news = self._between.news, []
        for at in self._asked:
            news = self._moments[at].news_first()
            if news is not None:
                found = [*(found or []), *news]
        return found

    def _alive(self) -> bool:
        """Whether a job runs or comes somewhere, or something is on its way between the clusters."""
        if not self._between.busy and not any(one.alive for one in self._moments):
            return False
        self._alive_at = self._now
        return True

    def _over(self, deadline: float | None) -> bool:
        """Whether no job that waits can start any more, although nothing runs or comes."""
        if self._between.may_open and self._now - self._alive_at <= _PATIENCE:
            return not any(one.waits for one in self._moments)
        return all(one.over(deadline) for one in self._moments)

    # ------------------------------------------------------------------ what is done

    def apply(self, now: float, decisions: Sequence[d.Decision]) -> Sequence[Outcome]:
        self._now = self._between.now = now
        if len(decisions) == 1 and type(decisions[0]) is _Start and not self._between.restricts:
            name = self._names.cluster_of_job(decisions[0].job_id)
            if name in self._members:
                return self._told_to(name, decisions)
        outcomes: list[list[Outcome]] = [[] for _ in decisions]
        shares: dict[str, tuple[list[int], list[d.Decision]]] = {}
        for at, decision in enumerate(decisions):
            try:
                if type(decision) in self._own:
                    self._hand_over(shares, outcomes)
                    outcomes[at].append(self._carry_out(decision))
                    continue
                self._between.check(decision)
                for name, part in self._parts(decision):
                    places, share = shares.setdefault(name, ([], []))
                    places.append(at)
                    share.append(part)
                    if type(part) is d.Reserve:
                        # Its name says no cluster.
                        self._names.reservation_inward(name, part.reservation.id)
            except Elsewhere as error:
                outcomes[at].append(self._refuse(decision, str(error)))
        self._hand_over(shares, outcomes)
        return [together(answers) for answers in outcomes]

    def _parts(self, decision: d.Decision) -> list[tuple[str, d.Decision]]:
        if (
            type(decision) is _Start
            and (name := self._names.cluster_of_job(decision.job_id)) in self._members
        ):
            return [(name, decision)]
        return self._composition.parts(decision)

    def _hand_over(
        self, shares: dict[str, tuple[list[int], list[d.Decision]]], outcomes: list[list[Outcome]]
    ) -> None:
        """Have the clusters do what is theirs."""
        for name, (places, share) in shares.items():
            for at, outcome in zip(places, self._told_to(name, share), strict=True):
                outcomes[at].append(outcome)
        shares.clear()

    def _told_to(self, name: str, decisions: Sequence[d.Decision]) -> Sequence[Outcome]:
        """A cluster does what it is told now."""
        at = self._place[name]
        moments = self._moments[at]
        moments.reach(self._now)
        outcomes = self._adapters[at].apply(self._now, decisions)
        self._times[at] = moments.next_time
        if moments.has_news:
            self._asked.add(at)
        return outcomes

    def _carry_out(self, decision: d.Decision) -> Outcome:
        refusal = self._own[type(decision)](decision)
        self._reached(self._between.touched)
        return self._refuse(decision, refusal) if refusal else _ACCEPTED

    def _reached(self, touched: set[str]) -> None:
        """Something happened to these clusters from outside."""
        for name in touched:
            at = self._place[name]
            self._asked.add(at)
            self._times[at] = self._moments[at].next_time
        touched.clear()

    def _refuse(self, decision: d.Decision, message: str) -> Outcome:
        self._between.news.append(ev.DecisionFailed(self._now, failure_of(decision), message))
        return Outcome(accepted=False, message=message)

    def submit(self, job: TraceJob) -> None:
        """A further job, which was unknown when the emulation began; as with one emulated cluster."""
        site = self._between.site_of[job.job.pool]
        self._order[job.job.id] = len(self._order)
        self._members[site].adapter.submit(job)
        self._times[self._place[site]] = self._members[site].adapter.moments.next_time

    # ------------------------------------------------------------------ what comes out

    @property
    def now(self) -> float:
        """Seconds of the run's clock."""
        return self._now

    @property
    def running(self) -> Mapping[str, Execution]:
        """What runs, by job id."""
        return {job: execution for one in self._adapters for job, execution in one.running.items()}

    @property
    def capacity(self) -> list[CapacityChange]:
        """Changes of the usable processors so far."""
        return sorted((c for one in self._adapters for c in one.capacity), key=lambda change: change.time)

    @property
    def activities(self) -> list[Activity]:
        """What jobs did before they changed, where there is an energy profile."""
        return [activity for one in self._adapters for activity in one.activities]

    @property
    def power(self) -> list[NodePower]:
        """Changes of nodes' power states so far."""
        return sorted((p for one in self._adapters for p in one.power), key=lambda change: change.time)

    @property
    def partitions(self) -> list[PartitionStep]:
        """None: several clusters have no partitions that are booted."""
        return []

    @property
    def unsubmitted(self) -> Mapping[str, Follows]:
        """Jobs that have not come because the jobs that they follow have not ended."""
        return {job: link for one in self._adapters for job, link in one.unsubmitted.items()}

    def results(self) -> list[JobResult]:
        """One record for each job submitted so far, in the order of the workload."""
        self._between.settle()
        found = [record for one in self._adapters for record in one.results()]
        return sorted(found, key=lambda record: self._order[record.job.id])


def _by_site(
    sites: Iterable[Site], site_of: Mapping[str, str], jobs: Sequence[TraceJob]
) -> dict[str, list[TraceJob]]:
    """A workload's jobs by the site to which each is sent."""
    found: dict[str, list[TraceJob]] = {site.name: [] for site in sites}
    for one in jobs:
        job = one.job
        name = site_of.get(job.pool)
        if name is None or (job.further_pools and {name} != {site_of.get(pool) for pool in job.pools}):
            pools = ", ".join(job.pools) or "none"
            raise UserError(f"job {job.id}: expected pools of one site, found {pools}")
        found[name].append(one)
    return found


def _refuse_links(chains: Mapping[str, Follows], by_site: Mapping[str, list[TraceJob]]) -> None:
    """Raise :class:`UserError` for a job that follows a job of another site."""
    where = {one.job.id: name for name, several in by_site.items() for one in several}
    for job, link in chains.items():
        if job in where and where.get(link.job_id) != where[job]:
            raise UserError(
                f"job {job} follows job {link.job_id} of another site; chains of jobs over several sites "
                "cannot be emulated"
            )


def _part(cluster: ClusterDescription, site: Site) -> ClusterDescription:
    """One site's cluster."""
    pools = frozenset(site.pools)
    nodes = tuple(node for node in cluster.nodes if not pools.isdisjoint(node.pools))
    names = {node.name for node in nodes}
    return msgspec.structs.replace(
        cluster,
        name=site.name,
        pools=tuple(pool for pool in cluster.pools if pool.name in pools),
        nodes=nodes,
        reservations=tuple(
            one for one in cluster.reservations if one.pool in pools or not names.isdisjoint(one.nodes)
        ),
        licences=tuple(pair for pair in cluster.licences if _site_of(pair[0]) == site.name),
        switches=tuple(one for one in cluster.switches if _site_of(one.name) == site.name),
        sites=None,
    )


def _site_of(name: str) -> str:
    return name.partition(":")[0]
