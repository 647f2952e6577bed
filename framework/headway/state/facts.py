"""What the state consists of: the facts that every part of it reads and changes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any

from headway.energy import EnergyModel
from headway.model import ClusterDescription, JobDescription, Placement, Reservation, SitePolicy
from headway.resources import NodeTable
from headway.state.barred import Barred
from headway.state.catalogue import Catalogue
from headway.state.factors import Factor
from headway.state.licence_use import Licences
from headway.state.records import (
    ON_NODES,
    Array,
    Barrier,
    Domain,
    Job,
    Pace,
    Past,
    PoolState,
    Watcher,
)
from headway.state.tenants import Tenants


def nobody_answers(pool: str, seconds: float) -> float | None:
    """No plugin says how likely arrivals are."""
    return None


class Facts:
    """The data of :class:`headway.state.State`, without what happens to it."""

    def __init__(self, cluster: ClusterDescription, tiers: Mapping[str, int] | None = None) -> None:
        """``tiers``: of pools by name, instead of what the cluster says of them."""
        self.cluster = cluster
        self.tiers: Mapping[str, int] = tiers or {}
        #: What nodes draw and how fast they are; None: not stated.
        self.energy = EnergyModel(cluster) if cluster.energy is not None else None
        self.now: float = float("-inf")
        #: Seconds from the epoch to time 0 of this clock: what makes ``now`` an hour of the day.
        self.epoch: float = 0.0
        #: The run's: of everything that plugins draw at random.
        self.seed = 0
        self.pools: dict[str, PoolState] = {
            p.name: PoolState(p, self.tiers.get(p.name)) for p in cluster.pools
        }
        #: Pools that share nodes, as one (:mod:`headway.state.domains`), by name.
        self.domains: dict[str, Domain] = {pool.name: pool.domain for pool in self.pools.values()}
        self.jobs: dict[str, Job] = {}
        self.reservations: dict[str, Reservation] = {}
        self.nodes = NodeTable()
        #: What is counted for the whole cluster; None: nothing (:mod:`headway.state.licences`).
        self.licences: Licences | None = None
        #: Which site of a federation has which dataset; None: no sites are configured.
        self.catalogue = Catalogue(cluster.sites) if cluster.sites is not None else None
        #: What the batch system said last of its site's policy; None: nothing.
        self.site_policy: SitePolicy | None = None
        #: Clusters that do not answer, by name (of a single one ""), and since when
        #: (:mod:`headway.state.silence`).
        self.silent: dict[str, float] = {}
        #: Things in events that made no sense, for the log; drained by the scheduler.
        self.anomalies: list[str] = []
        #: Called for each job that arrives, before it is queued; not for a job that ends in the same step.
        self.admit: Callable[[Job], None] | None = None
        self.passing: set[str] = set()
        #: Why a job that could start may not, where a plugin bars jobs (:mod:`headway.state.barriers`).
        self.bars: Callable[[Job], Barrier | None] | None = None
        #: The same for each of several jobs; no answer depends on whether the other jobs wait.
        self.bars_many: Callable[[Sequence[Job]], Sequence[Barrier | None]] | None = None
        #: What that follows from beside a job's size, where the plugin says (:mod:`headway.state.kinds`).
        self.bar_kind: Callable[[Job], Hashable] | None = None
        #: Key of a barrier -> the jobs that it keeps out of their queues.
        self.barred: dict[Hashable, Barred] = {}
        #: Jobs that were barred in the policy's pass that goes on.
        self.newly_barred: dict[str, tuple[Job, Barrier]] = {}
        #: The watchers of what jobs take and give back (:mod:`headway.state.watchers`).
        self.watchers: list[Watcher] = []
        #: Called where domains have appeared.
        self.domains_made: Callable[[], None] | None = None
        #: Nodes changed their pools in this step: which pools share nodes is worked out anew.
        self.regrouped = False
        #: Gives a job's place in the queue, where a plugin defines one.
        self.queue_key: Callable[[Job], tuple[Any, ...]] | None = None
        #: A single plugin defines it.
        self.one_key = False
        #: Counts how often the keys of all jobs in no queue became outdated.
        self.edition = 0
        #: Properties of jobs that plugins registered, by name (hook ``register_factors``).
        self.factors: dict[str, Factor] = {}
        #: The chance of an arrival in a pool within so many seconds, where a plugin answers (hook
        #: ``arrival_chance``).
        self.arrival_chance: Callable[[str, float], float | None] = nobody_answers
        #: Expected runtime of a job in seconds, where a predictor answers.
        self.predict: Callable[[Job], float | None] | None = None
        #: Schedule a pool at every arrival, even if the new job needs more than is free.
        self.ask_always = False
        #: Plugins put nodes to sleep, and wake them, by what is booked.
        self.sleeps = False
        #: Keep jobs in the queue that fit only with nodes that are down.
        self.wait_for_down_nodes = False
        #: Names of pools that were described anew in this step: their jobs are looked at again.
        self.described: set[str] = set()
        #: Jobs whose pool cannot hold them, since it was told last.
        self.new_obstacles: list[Job] = []
        #: News for the log that are no problems; drained by the scheduler.
        self.notices: list[str] = []
        #: Counts arrivals and wake-ups: what breaks their ties.
        self.seq = 0
        #: Jobs that wait for other jobs: id of a job or array -> jobs to look at when it ends or starts.
        self.dependants: dict[str, list[Job]] = {}
        #: Jobs that depend on other jobs and came or changed in this step: these other jobs may come later.
        self.depending: list[Job] = []
        #: Arrays of which something is not over, by id (:mod:`headway.state.arrays`).
        self.arrays: dict[str, Array] = {}
        #: What became of jobs and arrays that are over and that a job depends on.
        self.past: dict[str, Past] = {}
        #: A heap of (time, seq, what): when to look again at a pool or a job.
        self.wakeups: list[tuple[float, int, PoolState | Job]] = []
        #: Reservations that were decided and that the cluster has not confirmed -> what was there before.
        self.foreseen: dict[str, Reservation | None] = {}
        #: Which reservations pending jobs named before they were bound to another, which is foreseen.
        self.before_binding: dict[str, str] = {}
        #: Where running jobs were whose growth is foreseen.
        self.before_growth: dict[str, Placement] = {}
        #: Where running jobs were, and in which tier, before a move that is foreseen.
        self.before_move: dict[str, tuple[Placement, str, Pace | None]] = {}
        #: Suspended jobs that lent their processors and are to run again.
        self.returning: set[str] = set()
        #: Nodes that are not described yet -> ids of jobs that were told to be on them.
        self.on_unknown: dict[str, set[str]] = {}
        #: Which jobs are on which node; None until it is needed
        #: (:func:`headway.state.background.watch_tenants`).
        self.tenants: Tenants | None = None
        #: Jobs that may run in several pools, by id.
        self.in_several: set[str] = set()
        #: Jobs of which there were subjobs (:mod:`headway.model.bundles`): their moves are about these.
        self.bundles: set[str] = set()
        #: Starts and frequencies of jobs that ran when an earlier run ended.
        self.remembered: dict[str, tuple[float, float | None]] = {}

    def pool_of(self, description: JobDescription) -> PoolState | None:
        """The pool that a job was sent to; of several the first that exists; the cluster's only pool if the
        job names none."""
        if description.further_pools:
            return next((self.pools[name] for name in description.pools if name in self.pools), None)
        if description.pool:
            return self.pools.get(description.pool)
        return next(iter(self.pools.values())) if len(self.pools) == 1 else None

    def running_jobs(self) -> Iterator[Job]:
        """Jobs that take processors now (starting, running, suspended)."""
        return (job for job in self.jobs.values() if job.status in ON_NODES)

    def known(self, job_id: str, what: str) -> Job | None:
        """The job that news is about; None, and an anomaly, if it is not known."""
        job = self.jobs.get(job_id)
        if job is None:
            self.anomalies.append(f"job {job_id} was {what} but is not known; ignored")
        return job
