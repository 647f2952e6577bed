"""What a pool may draw, and what it draws at the least: watts, from the energy profile."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import accumulate

import msgspec

from headway.model import NodeClass, Placement
from headway.state import Job, PoolState, State
from headway_plugins.energy.cap_over_time import CapOverTime

_INF = float("inf")
#: Rounding of sums of watts, as a share of the cap.
ROUNDING = 1e-9


def not_before(moment: float, epoch: float) -> float:
    """An epoch second on a clock that began at ``epoch``, without being early by rounding."""
    time = moment - epoch
    while time + epoch < moment:
        time = math.nextafter(time, _INF)
    return time


class _Floor(msgspec.Struct):
    """What a pool draws at the least, watts."""

    #: All nodes, asleep if they can be.
    asleep: float
    #: More for any 0, 1, 2, ... nodes that are on and idle instead.
    awake: list[float]
    #: Processors of the largest node; 0: the pool has no nodes.
    largest: int
    #: A busy processor adds at the least.
    processor: float


class PoolCaps:
    """The caps of pools, now and within the week."""

    def __init__(self, standing: Mapping[str, float], others: float | None, over_time: CapOverTime) -> None:
        """``standing``: pool -> its cap at all times; ``others``: the cap of other pools at all times."""
        self._standing_caps = standing
        self._others = _INF if others is None else others
        self.over_time = over_time
        #: Whether starts can be given a frequency; set when the run begins.
        self.can_slow = False
        self._floor: dict[str, _Floor] = {}

    def forget(self) -> None:
        """Nodes have changed: what pools draw at the least is worked out anew."""
        self._floor.clear()

    def of(self, pool: str, state: State, at: float | None = None) -> float:
        """Watts that the pool may draw at ``at`` (default: now)."""
        moment = (state.now if at is None else at) + state.epoch
        return min(self._standing_cap(pool), self.over_time.at(moment))

    def highest(self, pool: str, state: State) -> float:
        """Watts that the pool may draw at the most within the week."""
        return min(self._standing_cap(pool), self.over_time.highest(state.now + state.epoch))

    def _standing_cap(self, pool: str) -> float:
        """The cap that is left when no window is open and the price is low."""
        return self._standing_caps.get(pool, self._others)

    def at_least(self, job: Job, state: State) -> float:
        """What a job's pool draws at the least while it runs: asleep all nodes that it does not need."""
        found = self._floor.get(job.pool.name)
        if found is None:
            found = self._floor[job.pool.name] = self._floor_of(job.pool, state)
        request, nodes = job.request, 0
        if found.largest:
            each = min(request.processors_per_node or found.largest, found.largest)
            nodes = min(request.nodes or -(-job.processors // each), len(found.awake) - 1)
        return found.asleep + found.awake[nodes] + job.processors * found.processor

    def _floor_of(self, pool: PoolState, state: State) -> _Floor:
        model = state.energy
        assert model is not None

        def added(kind: NodeClass) -> float:
            # Other plugins may start it at a lower frequency even if this plugin does not.
            frequency = kind.levels[-1].frequency if self.can_slow else None
            return model.busy_power(kind, frequency) - kind.idle_power

        if pool.flat:
            kind = model.class_of_pool(pool.name)
            return _Floor(pool.description.processors * kind.idle_power, [0.0], 0, added(kind))
        nodes = [node for node in state.nodes.descriptions.values() if pool.name in node.pools]
        kinds = {model.class_of(node.name).name: model.class_of(node.name) for node in nodes}
        idle = [model.idle_node(node) for node in nodes]
        asleep = [min(on, model.node_power(node, "asleep")) for node, on in zip(nodes, idle, strict=True)]
        more = sorted(on - off for on, off in zip(idle, asleep, strict=True))
        return _Floor(
            sum(asleep),
            [0.0, *accumulate(more)],
            max((node.processors for node in nodes), default=0),
            min((added(kind) for kind in kinds.values()), default=0.0),
        )

    def fits(self, added: dict[str, float], drawn: dict[str, float], state: State) -> bool:
        return all(
            drawn[pool] + watts <= self.of(pool, state) * (1 + ROUNDING)
            for pool, watts in added.items()
            if pool in drawn and watts > 0
        )


def kind_of(placement: Placement, job: Job, state: State) -> NodeClass:
    """The class whose levels count: that of the job's first node."""
    assert state.energy is not None
    return state.energy.class_of(placement[0][0]) if placement else state.energy.class_of_pool(job.pool.name)


def factor_of(
    job: Job, placement: Placement, before: float | None, after: float | None, state: State
) -> float:
    """How many times as long the job takes there at one frequency as at another frequency."""
    model, pool = state.energy, job.pool.name
    assert model is not None
    rate = model.job_rate(job.description, placement, pool, before)
    return rate / model.job_rate(job.description, placement, pool, after)
