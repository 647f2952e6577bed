"""How much power a cluster draws, and how fast a job runs at which frequency.

The power of a busy processor is A*C*v^2*f plus its static power (the usual model of dynamic power
in CMOS). The classes of a job's nodes may differ: its processors then run in step with the slowest.

Sensitivity. A fraction ``s`` of a job's time follows the frequency and the rest does not (memory,
network), so at the fraction ``r`` of the full frequency it takes ``s/r + 1 - s`` times as long. The
default, 1, is the proportional model; a job's own value is its attribute ``frequency_sensitivity``.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

import msgspec

from headway.model import (
    ClusterDescription,
    EnergyProfile,
    FrequencyLevel,
    JobDescription,
    NodeClass,
    NodeDescription,
    Placement,
)

#: The attribute of a job (:attr:`headway.model.JobDescription.attributes`): 0 to 1.
SENSITIVITY = "frequency_sensitivity"


class EnergyModel:
    """The energy profile of one cluster, ready to be asked."""

    def __init__(self, cluster: ClusterDescription) -> None:
        """Raises :class:`ValueError` if the cluster has no profile."""
        if cluster.energy is None:
            raise ValueError(f"cluster {cluster.name!r} has no energy profile")
        self.profile: EnergyProfile = cluster.energy
        self.classes = {kind.name: kind for kind in self.profile.classes}
        #: The class of all nodes and pools, if there is only one.
        self._alone = self.profile.classes[0] if len(self.classes) == 1 else None
        self._of_node: dict[str, NodeClass] = {n.name: self._class_of_node(n) for n in cluster.nodes}
        self._of_pool: dict[str, NodeClass] = {
            p.name: self.classes.get(p.node_class, self.profile.classes[0]) for p in cluster.pools if p.flat
        }

    def _class_of_node(self, node: NodeDescription) -> NodeClass:
        if node.node_class in self.classes:
            return self.classes[node.node_class]
        for pattern, kind in self.profile.assign:
            if fnmatchcase(node.name, pattern):
                return self.classes[kind]
        return self.profile.classes[0]

    # ------------------------------------------------------------------ classes

    def class_of(self, node: str) -> NodeClass:
        """The class of a node by its name; a node that came later is judged by its name."""
        kind = self._of_node.get(node)
        if kind is None:
            kind = self._of_node[node] = self._class_of_node(NodeDescription(node, 1))
        return kind

    def learned(self, node: NodeDescription) -> NodeDescription:
        """A node that came or changed: with its class, and the time that it takes to wake."""
        kind = self._of_node[node.name] = self._class_of_node(node)
        wake = node.wake_time or (kind.sleep.leave_time if kind.sleep is not None else 0.0)
        return msgspec.structs.replace(node, node_class=kind.name, wake_time=wake)

    def class_of_pool(self, pool: str) -> NodeClass:
        """The class of a flat pool's processors."""
        return self._of_pool.get(pool, self.profile.classes[0])

    def shares(self, placement: Placement, pool: str, processors: int) -> dict[str, int]:
        """Processors of a job by class, from its placement; on a flat pool all have the pool's class."""
        if not placement:
            return {self.class_of_pool(pool).name: processors}
        found: dict[str, int] = {}
        for node, count in placement:
            name = self.class_of(node).name
            found[name] = found.get(name, 0) + count
        return found

    # ------------------------------------------------------------------ power, watts

    def busy_power(self, kind: NodeClass, frequency: float | None = None) -> float:
        """Of one busy processor, at the level that ``frequency`` (hertz; None: the fastest) means."""
        level = level_of(kind, frequency)
        return kind.capacitance * level.voltage**2 * level.frequency + kind.static_power

    def job_power(
        self, placement: Placement, pool: str, processors: int, frequency: float | None = None
    ) -> float:
        """Of all processors of a job, without its nodes' own."""
        return sum(
            count * self.busy_power(self.classes[name], frequency)
            for name, count in self.shares(placement, pool, processors).items()
        )

    def added_power(
        self, placement: Placement, pool: str, processors: int, frequency: float | None = None
    ) -> float:
        """What a job's start adds: its processors were idle before."""
        return sum(
            count * (self.busy_power(self.classes[name], frequency) - self.classes[name].idle_power)
            for name, count in self.shares(placement, pool, processors).items()
        )

    def idle_node(self, node: NodeDescription) -> float:
        """Of a node that is on with nothing on it."""
        kind = self.class_of(node.name)
        return kind.node_power + node.processors * kind.idle_power

    def node_power(self, node: NodeDescription, power: str) -> float:
        """Of a node with nothing on it in a power state ("on", "asleep", "falling asleep", "waking")."""
        kind = self.class_of(node.name)
        sleep = kind.sleep
        if sleep is None or power == "on":
            return self.idle_node(node)
        if power == "asleep":
            return sleep.power
        time, energy = (
            (sleep.leave_time, sleep.leave_energy)
            if power == "waking"
            else (sleep.enter_time, sleep.enter_energy)
        )
        return energy / time if time > 0 else sleep.power

    # ------------------------------------------------------------------ speed

    def sensitivity(self, job: JobDescription) -> float:
        """The share of the job's time that follows the frequency."""
        own = (job.attributes or {}).get(SENSITIVITY)
        if isinstance(own, int | float) and 0 <= own <= 1:
            return float(own)
        return self.profile.sensitivity

    def stretch(self, kind: NodeClass, frequency: float | None, sensitivity: float = 1.0) -> float:
        """How many times as long a job takes at ``frequency`` as at the fastest level of the class."""
        full = kind.levels[0].frequency
        share = level_of(kind, frequency).frequency / full
        # Exactly 1 at full speed.
        return 1.0 + sensitivity * (1.0 / share - 1.0)

    def rate(self, kind: NodeClass, frequency: float | None, sensitivity: float = 1.0) -> float:
        """Work done per second, in the workload's seconds of work."""
        return kind.speed / self.stretch(kind, frequency, sensitivity)

    def job_rate(
        self, job: JobDescription, placement: Placement, pool: str, frequency: float | None
    ) -> float:
        """The rate of a job: that of its slowest class."""
        sensitivity = self.sensitivity(job)
        if self._alone is not None:
            return self.rate(self._alone, frequency, sensitivity)
        if not placement:
            return self.rate(self.class_of_pool(pool), frequency, sensitivity)
        kinds = {self.class_of(node).name for node, _ in placement}
        return min(self.rate(self.classes[name], frequency, sensitivity) for name in kinds)

    @property
    def uniform(self) -> bool:
        """All classes do one second of work a second at their fastest level."""
        return all(kind.speed == 1.0 for kind in self.profile.classes)


def level_of(kind: NodeClass, frequency: float | None) -> FrequencyLevel:
    """The fastest level not above ``frequency`` (hertz), else the slowest; None: the fastest of all."""
    if frequency is None:
        return kind.levels[0]
    for level in kind.levels:
        # A fraction of a level's frequency, computed twice, must not fall to the level below.
        if level.frequency <= frequency * (1 + 1e-9):
            return level
    return kind.levels[-1]
