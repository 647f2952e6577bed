"""Which nodes may wake under the caps of their pools."""

from __future__ import annotations

from headway.decisions import PowerUp
from headway.state import State
from headway_plugins.energy.meter import PowerMeter
from headway_plugins.energy.pool_caps import PoolCaps


def affordable(decision: PowerUp, caps: PoolCaps, meter: PowerMeter, state: State) -> PowerUp | None:
    """The nodes of these that may wake under the cap; None: none."""
    assert state.energy is not None
    model, kept = state.energy, []
    drawn = dict(meter.watts)
    for name in decision.nodes:
        node = state.nodes.descriptions.get(name)
        if node is None:
            continue
        power = state.nodes.power.get(name, "on")
        # It wakes, and is on after that.
        waking = max(model.node_power(node, "waking"), model.idle_node(node))
        more = waking - model.node_power(node, power)
        if caps.fits(dict.fromkeys(node.pools, more), drawn, state):
            kept.append(name)
            for pool in node.pools:
                if pool in drawn:
                    drawn[pool] += more
    if not kept:
        return _one_by_one(decision, caps, meter, state)
    if len(kept) == len(decision.nodes):
        return decision
    said = f"{decision.reason}; the power cap allows {len(kept)} of {len(decision.nodes)}"
    return PowerUp(tuple(kept), said)


def _one_by_one(decision: PowerUp, caps: PoolCaps, meter: PowerMeter, state: State) -> PowerUp | None:
    """A node that fits under the cap once it is on, where nothing but its waking is in its way."""
    assert state.energy is not None
    model = state.energy
    for name in decision.nodes:
        node = state.nodes.descriptions.get(name)
        if node is None:
            continue
        pools = [state.pools[pool] for pool in node.pools if pool in state.pools]
        if any(state.running_in(pool) for pool in pools) or any(
            power == "waking" and not set(node.pools).isdisjoint(state.nodes.descriptions[other].pools)
            for other, power in state.nodes.power.items()
        ):
            continue
        more = model.idle_node(node) - model.node_power(node, "asleep")
        if caps.fits(dict.fromkeys(node.pools, more), meter.watts, state):
            return PowerUp((name,), f"{decision.reason}; one after the other, because of the power cap")
    return None
