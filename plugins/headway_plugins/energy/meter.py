"""The power of each pool, followed from event to event."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from headway import events as ev
from headway.decisions import PowerDown, PowerUp, SetFrequency
from headway.energy.model import EnergyModel
from headway.model import NodeClass, Placement
from headway.state import Job, PoolState, State


class _Draw(msgspec.Struct, gc=False):
    """What a job adds."""

    placement: Placement
    #: Its processors by class and by the pools of their nodes.
    shares: list[tuple[NodeClass, tuple[str, ...], int]]
    #: Watts by pool.
    added: dict[str, float]


class PowerMeter:
    """Watts of each pool, kept in proportion to what changes.

    Give it every event that the state has folded in (:meth:`observe`), and every start and change of
    frequency as soon as it is decided (:meth:`begin`, :meth:`order`). A pool's figure holds all nodes
    that are in it, with all jobs on them; a suspended job draws nothing beside its idle processors.
    """

    def __init__(self, model: EnergyModel, state: State) -> None:
        self.model = model
        self.watts: dict[str, float] = {}
        #: Of ``watts``, what is drawn without any job: nodes and idle processors.
        self.base: dict[str, float] = {}
        self._state = state
        self._jobs: dict[str, _Draw] = {}
        #: Frequencies that were ordered for running jobs and are neither confirmed nor refused.
        self._ordered: dict[str, float] = {}
        #: Node -> what it draws beside its jobs, in which pools, and its power state.
        self._nodes: dict[str, tuple[float, tuple[str, ...], str]] = {}
        #: What a flat pool draws without jobs.
        self._flat: dict[str, float] = {}
        #: Watts that a busy processor of a class adds at a frequency.
        self._processor: dict[tuple[str, float | None], float] = {}
        for pool in state.pools.values():
            self._set_pool(pool)
        for name in state.nodes.descriptions:
            self._set_node(name, state.nodes.power.get(name, "on"))

    def _set_pool(self, pool: PoolState) -> None:
        name = pool.name
        if name not in self.watts:
            # Nodes and jobs may have been in it before it was told of.
            self.base[name] = sum(watts for watts, pools, _ in self._nodes.values() if name in pools)
            jobs = sum(draw.added.get(name, 0.0) for draw in self._jobs.values())
            self.watts[name] = self.base[name] + jobs
        if pool.flat:
            now = pool.description.processors * self.model.class_of_pool(name).idle_power
            self._add((name,), now - self._flat.get(name, 0.0))
            self._flat[name] = now

    def _set_node(self, name: str, power: str) -> None:
        node = self._state.nodes.descriptions.get(name)
        if node is None:
            return
        before, pools, _ = self._nodes.get(name, (0.0, (), "on"))
        now = self.model.node_power(node, power)
        self._nodes[name] = (now, node.pools, power)
        if pools == node.pools:
            if now != before:
                self._add(pools, now - before)
        else:
            self._add(pools, -before)
            self._add(node.pools, now)

    def _add(self, pools: Iterable[str], watts: float) -> None:
        for pool in pools:
            if pool in self.watts:
                self.watts[pool] += watts
                self.base[pool] += watts

    def expect_power(self, names: Iterable[str], power: str) -> None:
        """Nodes were ordered into a power state: count it from now on."""
        for name in names:
            self._set_node(name, power)

    # ------------------------------------------------------------------ jobs

    def added(self, job: Job, placement: Placement, frequency: float | None) -> dict[str, float]:
        """What running ``job`` there adds, watts by pool."""
        return self._added(self._shares(job, placement), frequency)

    def _shares(self, job: Job, placement: Placement) -> list[tuple[NodeClass, tuple[str, ...], int]]:
        known = self._jobs.get(job.id)
        if known is not None and placement and known.placement == placement:
            return known.shares
        if not placement:
            return [(self.model.class_of_pool(job.pool.name), (job.pool.name,), job.processors)]
        counts: dict[tuple[str, tuple[str, ...]], int] = {}
        nodes, model = self._state.nodes.descriptions, self.model
        for node, count in placement:
            key = (model.class_of(node).name, nodes[node].pools if node in nodes else ())
            counts[key] = counts.get(key, 0) + count
        return [(model.classes[name], pools, count) for (name, pools), count in counts.items()]

    def _added(
        self, shares: list[tuple[NodeClass, tuple[str, ...], int]], frequency: float | None
    ) -> dict[str, float]:
        added: dict[str, float] = {}
        for kind, pools, count in shares:
            key = (kind.name, frequency)
            watts = self._processor.get(key)
            if watts is None:
                watts = self._processor[key] = self.model.busy_power(kind, frequency) - kind.idle_power
            for pool in pools:
                added[pool] = added.get(pool, 0.0) + count * watts
        return added

    def begin(self, job: Job, placement: Placement, frequency: float | None) -> None:
        """The job runs there from now on, or at another frequency than before."""
        shares = self._shares(job, placement)
        added = self._added(shares, frequency)
        self.end(job.id)
        self._jobs[job.id] = _Draw(placement, shares, added)
        for pool, watts in added.items():
            if pool in self.watts:
                self.watts[pool] += watts

    def order(self, job: Job, frequency: float) -> None:
        """A running job was ordered to another frequency."""
        self.begin(job, job.placement, frequency)
        self._ordered[job.id] = frequency

    def frequency(self, job: Job) -> float | None:
        """The frequency that a job has, or will have once its order is carried out."""
        return self._ordered.get(job.id, job.frequency)

    def end(self, job_id: str) -> None:
        """The job draws nothing any more."""
        gone = self._jobs.pop(job_id, None)
        if gone is not None:
            for pool, watts in gone.added.items():
                if pool in self.watts:
                    self.watts[pool] -= watts

    def of(self, job_id: str) -> dict[str, float]:
        """What a job adds now, watts by pool."""
        known = self._jobs.get(job_id)
        return known.added if known is not None else {}

    # ------------------------------------------------------------------ events

    def observe(self, event: ev.Event) -> None:
        """Follow an event."""
        kind = type(event)
        if self._ordered:
            self._settle(event)
        if kind is ev.JobStarted:
            job = self._state.jobs.get(event.job_id)  # type: ignore[attr-defined]
            if job is not None:
                self.begin(job, job.placement, job.frequency)
        elif kind is ev.JobEnded or kind is ev.JobRequeued or kind is ev.JobSuspended:
            self.end(event.job_id)  # type: ignore[attr-defined]
        elif isinstance(event, ev.NodePowerChanged):
            self._set_node(event.node, event.power)
        elif isinstance(event, ev.NodeUp):
            self._set_node(event.node.name, self._nodes.get(event.node.name, (0.0, (), "on"))[2])
        elif isinstance(event, ev.PoolChanged):
            self._set_pool(self._state.pools[event.pool.name])
        elif isinstance(event, _CHANGES):
            self._follow(event.job.id if isinstance(event, ev.JobChanged) else event.job_id)
        elif isinstance(event, ev.DecisionFailed):
            if isinstance(event.decision, PowerDown | PowerUp):
                for name in event.decision.nodes:
                    self._set_node(name, self._state.nodes.power.get(name, "on"))
            self._follow(getattr(event.decision, "job_id", ""))

    def _settle(self, event: ev.Event) -> None:
        """Forget an order that was carried out or refused, or whose job is gone."""
        if isinstance(event, ev.JobFrequencyChanged | ev.JobEnded | ev.JobRequeued | ev.JobStarted):
            self._ordered.pop(event.job_id, None)
        elif isinstance(event, ev.DecisionFailed) and isinstance(event.decision, SetFrequency):
            self._ordered.pop(event.decision.job_id, None)

    def _follow(self, job_id: str) -> None:
        """Something about a job changed: count what it is now."""
        job = self._state.jobs.get(job_id)
        if job is None or job.entries is None or job.suspended_since is not None:
            self.end(job_id)
        else:
            self.begin(job, job.placement, self.frequency(job))


_CHANGES = (ev.JobReleasing, ev.JobResumed, ev.JobMigrated, ev.JobChanged, ev.JobFrequencyChanged)
