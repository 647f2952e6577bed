"""Which nodes of a cluster changed between two moments: what they have free, compared as arrays, and whether
they can be used."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from headway.model import NodeDescription
from headway.resources.node_sets import Bools
from headway.state import State


class NodeChanges:
    """The nodes as they were when this was asked last."""

    def __init__(self) -> None:
        self._told = -1
        self._descriptions: dict[str, NodeDescription] = {}
        self._arrays: dict[str, np.ndarray[Any, Any]] = {}
        self._power: dict[str, str] = {}
        self._reserved: dict[int, tuple[str, ...]] = {}

    def since(self, state: State) -> tuple[list[str], list[str]]:
        """The names of nodes that came or changed since this was asked last, in the cluster's order, and of
        nodes that are gone."""
        table = state.nodes
        changed, gone = set[str](), list[str]()
        if table.told != self._told:
            self._told, before = table.told, self._descriptions
            self._descriptions = dict(table.descriptions)
            changed.update(name for name, node in self._descriptions.items() if before.get(name) is not node)
            gone = [name for name in before if name not in self._descriptions]
        arrays = {"": table.free.processors, "memory": table.free.memory, "available": table.available}
        arrays |= {f"gres {name}": amount for name, amount in table.free.gres.items()}
        for what, now in arrays.items():
            # The arrays have room for more nodes.
            other = self._other(what, now[: len(table.names)])
            changed.update(self._named(state, np.flatnonzero(other).tolist()))
        reserved = {at: tuple([one.id for one in here]) for at, here in table.reservations.items() if here}
        if reserved != self._reserved:
            both = self._reserved.keys() | reserved.keys()
            changed.update(
                self._named(state, [at for at in both if self._reserved.get(at) != reserved.get(at)])
            )
            self._reserved = reserved
        if table.power != self._power:
            both_named = self._power.keys() | table.power.keys()
            changed.update(name for name in both_named if self._power.get(name) != table.power.get(name))
            self._power = dict(table.power)
        index = table.index
        return sorted((name for name in changed if name in self._descriptions), key=index.__getitem__), gone

    def _other(self, what: str, now: np.ndarray[Any, Any]) -> Bools:
        before, self._arrays[what] = self._arrays.get(what), now.copy()
        if before is None or len(before) != len(now):
            return np.ones(len(now), np.bool_)
        return np.asarray(before != now)

    def _named(self, state: State, places: Iterable[int]) -> list[str]:
        names = state.nodes.names
        return [names[at] for at in places]
