"""PBS's placement sets as switches: vnodes that have the same value of a resource. Pure.

The server's ``node_group_key`` names the resources (``switch`` or ``switch,rack``), where
``node_group_enable`` is true. Sets are no tree in PBS; here the sets of the resource with the most values are
the leaf switches, and a set is below another of the next resource if that has all its vnodes. Of a vnode
with several values of one resource the first counts. Queues' own keys are not looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headway.model import NodeDescription, SwitchDescription
from headway_adapters.pbs import values


def group_keys(server: Mapping[str, Any]) -> tuple[str, ...]:
    """The resources of ``qstat -B -f`` by whose values vnodes are grouped; none if they are not."""
    if not values.truth(server.get("node_group_enable")):
        return ()
    names = values.text(server.get("node_group_key")).replace('"', "").split(",")
    return tuple(dict.fromkeys(name.strip() for name in names if name.strip()))


def leaf_key(keys: tuple[str, ...], nodes: Mapping[str, NodeDescription]) -> str:
    """The resource whose sets are the leaf switches; "" where there are none."""
    return next(iter(_levels(keys, nodes)), "")


def _levels(keys: tuple[str, ...], nodes: Mapping[str, NodeDescription]) -> dict[str, dict[str, list[str]]]:
    """Resource -> ``resource=value`` -> its vnodes, the resource with the most values first."""
    sets: dict[str, dict[str, list[str]]] = {}
    for key in keys:
        for name, node in nodes.items():
            value = next((word for word in node.features if word.startswith(f"{key}=")), None)
            if value is not None:
                sets.setdefault(key, {}).setdefault(value, []).append(name)
    return dict(sorted(sets.items(), key=lambda item: len(item[1]), reverse=True))


def placement_sets(
    keys: tuple[str, ...], nodes: Mapping[str, NodeDescription]
) -> tuple[SwitchDescription, ...]:
    """The sets as switches, called ``resource=value``."""
    levels = _levels(keys, nodes).values()
    found: list[SwitchDescription] = []
    hung: set[str] = set()
    #: Sets that are below none yet, with their vnodes.
    tops: dict[str, set[str]] = {}
    for level in levels:
        for value, members in level.items():
            below = [name for name, inside in tops.items() if inside <= set(members)]
            own = tuple(name for name in members if name not in hung)
            hung.update(own)
            found.append(SwitchDescription(value, own, tuple(below)))
            for name in below:
                del tops[name]
            tops[value] = set(members)
    return tuple(found)
