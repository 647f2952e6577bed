"""The power of each pool, followed from event to event."""

from __future__ import annotations

from headway import events as ev
from headway.energy.model import EnergyModel
from headway.model import Placement
from headway.state import Job, State


class PowerMeter:
    """Watts of each pool, kept in proportion to what changes.

    Give it every event that the state has folded in (:meth:`observe`), and every start as soon as it
    is decided (:meth:`begin`). A pool's figure holds all nodes that are in it, with all jobs on them;
    a suspended job draws nothing beside its idle processors.
    """

    def __init__(self, model: EnergyModel, state: State) -> None:
        self.model = model
        self.watts: dict[str, float] = {}
        self._state = state
        #: Job -> what it adds to which pools.
        self._jobs: dict[str, dict[str, float]] = {}
        #: Node -> what it draws beside its jobs, and its power state.
        self._nodes: dict[str, tuple[float, str]] = {}
        for pool in state.pools.values():
            self.watts[pool.name] = (
                pool.total * model.class_of_pool(pool.name).idle_power if pool.flat else 0.0
            )
        for name in state.nodes.descriptions:
            self._set_node(name, "on")

    def _set_node(self, name: str, power: str) -> None:
        node = self._state.nodes.descriptions.get(name)
        if node is None:
            return
        now = self.model.node_power(node, power)
        change = now - self._nodes.get(name, (0.0, ""))[0]
        self._nodes[name] = (now, power)
        for pool in node.pools if change else ():
            if pool in self.watts:
                self.watts[pool] += change

    def added(self, job: Job, placement: Placement, frequency: float | None) -> dict[str, float]:
        """What running ``job`` there adds, watts by pool."""
        model = self.model
        if not placement:
            return {job.pool.name: model.added_power((), job.pool.name, job.processors, frequency)}
        added: dict[str, float] = {}
        nodes = self._state.nodes.descriptions
        for node, count in placement:
            kind = model.class_of(node)
            watts = count * (model.busy_power(kind, frequency) - kind.idle_power)
            for pool in nodes[node].pools if node in nodes else ():
                added[pool] = added.get(pool, 0.0) + watts
        return added

    def begin(self, job: Job, placement: Placement, frequency: float | None) -> None:
        """The job runs there from now on, or at another frequency than before."""
        self.end(job.id)
        self._jobs[job.id] = added = self.added(job, placement, frequency)
        for pool, watts in added.items():
            if pool in self.watts:
                self.watts[pool] += watts

    def end(self, job_id: str) -> None:
        """The job draws nothing any more."""
        for pool, watts in self._jobs.pop(job_id, {}).items():
            if pool in self.watts:
                self.watts[pool] -= watts

    def of(self, job_id: str) -> dict[str, float]:
        """What a job adds now, watts by pool."""
        return self._jobs.get(job_id, {})

    def observe(self, event: ev.Event) -> None:
        """Follow one event."""
        kind = type(event)
        if kind is ev.JobStarted:
            job = self._state.jobs.get(event.job_id)  # type: ignore[attr-defined]
            if job is not None:
                self.begin(job, job.placement, job.frequency)
        elif kind is ev.JobEnded or kind is ev.JobRequeued or kind is ev.JobSuspended:
            self.end(event.job_id)  # type: ignore[attr-defined]
        elif isinstance(event, ev.NodePowerChanged):
            self._set_node(event.node, event.power)
        elif isinstance(event, ev.NodeUp):
            self._set_node(event.node.name, self._nodes.get(event.node.name, (0.0, "on"))[1])
        elif isinstance(event, _CHANGES):
            self._follow(event.job.id if isinstance(event, ev.JobChanged) else event.job_id)
        elif isinstance(event, ev.DecisionFailed):
            self._follow(getattr(event.decision, "job_id", ""))

    def _follow(self, job_id: str) -> None:
        """Something about a job changed: count what it is now."""
        job = self._state.jobs.get(job_id)
        if job is None or job.entries is None or job.suspended_since is not None:
            self.end(job_id)
        else:
            self.begin(job, job.placement, job.frequency)


_CHANGES = (ev.JobReleasing, ev.JobResumed, ev.JobMigrated, ev.JobChanged, ev.JobFrequencyChanged)
