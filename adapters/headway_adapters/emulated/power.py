"""Power and frequency in the emulated cluster: which nodes sleep, and what ran how until when.

What a run used is computed from these logs afterwards (:mod:`headway.metrics.energy`), so a job that
runs undisturbed costs nothing here.
"""

from __future__ import annotations

from headway.energy import EnergyModel
from headway.model import ClusterDescription
from headway.results import Activity, NodePower
from headway_adapters.emulated.execution import Execution


class Power:
    """The energy side of an emulated cluster."""

    def __init__(self, cluster: ClusterDescription) -> None:
        self.model = EnergyModel(cluster)
        #: Some class is not of speed 1, so that every start has a rate of its own.
        self.uneven = any(kind.speed != 1.0 for kind in self.model.profile.classes)
        #: Nodes that are not on.
        self.states: dict[str, str] = {}
        self.log: list[NodePower] = []
        #: Nodes that are to be woken as soon as they have fallen asleep.
        self.recalled: set[str] = set()

    def set(self, now: float, node: str, power: str) -> None:
        """A node is in another power state."""
        self.log.append(NodePower(now, node, power))
        if power == "on":
            self.states.pop(node, None)
        else:
            self.states[node] = power

    def rate(self, execution: Execution, pool: str) -> float:
        """A factor on a job's rate: the speed of its slowest node class at its frequency."""
        return self.model.job_rate(execution.job, execution.placement, pool, execution.frequency)


def activity(execution: Execution, now: float, pool: str) -> Activity | None:
    """What a job did since the last change, as one of its changes ends it; None if that is nothing."""
    since = execution.active_since if execution.active_since is not None else execution.start
    if execution.suspended or now <= since:
        return None
    job = execution.job
    return Activity(
        job.id, since, now, pool, job.request.processors, execution.placement, execution.frequency
    )
