"""A tree of switches, made of their description, and the choice of few leaf switches in it.

Descriptions are taken as far as they make sense, and what does not is said (:attr:`SwitchTree.problems`):

- A node that no switch has is a leaf of its own, connected with nothing.
- A node or a switch that is named below two switches is below the first; what would close a circle is left
  out.
- Unknown nodes, switches that are not described and switches without any node are left out.
- Where several switches are above all others, nothing connects what is below one of them with the rest.

The choice: fewest leaf switches; then the lowest common switch; then the common switch with the least room in
all. Among the leaves below it the largest first, and last the smallest that has room for the rest. Slurm's
topology/tree fills leaves in the same way (best fit), but looks for the lowest switch first, below which a
job may need more leaves than elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from headway.model import SwitchDescription

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

_INF = float("inf")
#: So many names are told where something is wrong with many.
_TOLD = 5


class Group(msgspec.Struct, frozen=True, eq=False):
    """A switch with switches below it."""

    name: str
    #: Leaf switches are 0; a switch is one more than the highest below it.
    height: int
    #: The leaf switches below it, as indices, ascending.
    leaves: Ints


class SwitchTree:
    """The switches of a cluster whose nodes are known."""

    def __init__(self, switches: Iterable[SwitchDescription], nodes: Iterable[str]) -> None:
        """``nodes``: the names of the cluster's nodes."""
        known = dict.fromkeys(nodes)
        #: What is wrong with the descriptions, sentences without a full stop.
        self.problems: list[str] = []
        described = self._each_once(switches)
        parents = self._parents(described)
        #: Names of the leaf switches.
        self.leaves: list[str] = []
        #: Node -> index of its leaf switch.
        self.leaf_of: dict[str, int] = {}
        self._hang_nodes(described, known)
        below: dict[str, list[int]] = {}
        height: dict[str, int] = {}
        for at, leaf in enumerate(self.leaves):
            name, level = leaf, 0
            while True:
                below.setdefault(name, []).append(at)
                height[name] = max(height.get(name, 0), level)
                if name not in parents:
                    break
                name, level = parents[name], level + 1
        empty = [name for name in described if name not in below]
        self._tell(
            empty, "", "switch {} has no node and is left out", "switches {} have no node and are left out"
        )
        lost = [name for name in known if name not in self.leaf_of]
        if described:
            self._tell(lost, "", "node {} is on no switch", "nodes {} are on no switch")
        several = {name for name, leaves in below.items() if len(leaves) > 1}
        #: Switches with several leaf switches below, the lowest first.
        self.groups = sorted(
            (Group(name, height[name], np.asarray(below[name])) for name in described if name in several),
            key=lambda group: group.height,
        )
        self._above: dict[str, list[Group]] = {name: [] for name in self.leaves}
        for group in self.groups:
            for at in group.leaves.tolist():
                self._above[self.leaves[at]].append(group)

    # ------------------------------------------------------------------ what was described

    def _each_once(self, switches: Iterable[SwitchDescription]) -> dict[str, SwitchDescription]:
        found: dict[str, SwitchDescription] = {}
        for switch in switches:
            if switch.name in found:
                self.problems.append(
                    f"switch {switch.name!r} is described twice: the first description counts"
                )
            else:
                found[switch.name] = switch
        return found

    def _parents(self, described: Mapping[str, SwitchDescription]) -> dict[str, str]:
        """Switch -> the switch above it, without circles."""
        parents: dict[str, str] = {}
        for name, switch in described.items():
            for child in dict.fromkeys(switch.switches):
                if child not in described:
                    self.problems.append(f"switch {name!r}: switch {child!r} below it is not described")
                elif child in parents:
                    first = parents[child]
                    self.problems.append(
                        f"switch {name!r}: switch {child!r} is below switch {first!r} already and stays there"
                    )
                else:
                    chain = [name]
                    while chain[-1] in parents:
                        chain.append(parents[chain[-1]])
                    if child in chain:
                        circle = [child, *chain[: chain.index(child) + 1]]
                        self.problems.append(
                            f"switch {name!r}: switch {child!r} below it closes a circle "
                            f"({' below '.join(map(repr, circle))}); the second place is left out"
                        )
                    else:
                        parents[child] = name
        return parents

    def _hang_nodes(self, described: Mapping[str, SwitchDescription], known: Mapping[str, Any]) -> None:
        for name, switch in described.items():
            unknown: list[str] = []
            for node in switch.nodes:
                if node not in known:
                    unknown.append(node)
                elif node in self.leaf_of:
                    if (first := self.leaves[self.leaf_of[node]]) != name:
                        self.problems.append(
                            f"switch {name!r}: node {node!r} is on switch {first!r} already and stays there"
                        )
                else:
                    if not self.leaves or self.leaves[-1] != name:
                        self.leaves.append(name)
                    self.leaf_of[node] = len(self.leaves) - 1
            what = f"switch {name!r}"
            self._tell(unknown, what, "{1}: there is no node {0}", "{1}: there are no nodes {0}")

    def _tell(self, names: Sequence[str], what: str, one: str, several: str) -> None:
        if names:
            listed = ", ".join(map(repr, names[:_TOLD]))
            if len(names) > _TOLD:
                listed += f" and {len(names) - _TOLD} more"
            self.problems.append((one if len(names) == 1 else several).format(listed, what))

    # ------------------------------------------------------------------ the choice

    def places(self, nodes: Sequence[str]) -> Ints:
        """The leaf switch of each node; nodes on no switch have numbers of their own, behind all switches."""
        count = len(self.leaves)
        return np.array([self.leaf_of.get(name, count + at) for at, name in enumerate(nodes)], np.int64)

    def choose(
        self,
        room: Ints,
        need: int,
        base: Sequence[int] = (),
        last: Bools | None = None,
        *,
        connected: bool = False,
    ) -> Ints | None:
        """The fewest leaves that together have ``need``, the last of them perhaps not in full; None if there
        are none.

        ``room``: what each leaf has, nodes on no switch included (:meth:`places`). ``base``: leaves that are
        taken in any case, first. ``last``: of which leaves the rest is preferably taken. ``connected``:
        leaves that nothing connects are not taken together.
        """
        taken = np.asarray(base, np.int64)
        if len(taken):
            need -= int(room[taken].sum())
            room = room.copy()
            room[taken] = 0
            if need <= 0:
                return taken if len(taken) == 1 or not connected or self._common(taken) else None
        elif (room >= need).any():
            return _fill(room, need, last)
        everywhere = _fill(room, need, last)
        if everywhere is None:
            return None
        least = len(everywhere)
        best, key = (None, (_INF, _INF, 0)) if connected else (everywhere, (least, _INF, 0))
        for group in self._common(taken):
            if key[0] == least and group.height > key[1]:
                break
            inside = room[group.leaves]
            total = int(inside.sum())
            if total < need:
                continue
            found = _fill(inside, need, None if last is None else last[group.leaves])
            if found is not None and (len(found), group.height, total) < key:
                best, key = group.leaves[found], (len(found), group.height, total)
        return best if best is None or not len(taken) else np.concatenate([taken, best])

    def _common(self, leaves: Ints) -> Sequence[Group]:
        """The switches that have all these leaves below them, the lowest first."""
        if not len(leaves):
            return self.groups
        if (leaves >= len(self.leaves)).any():
            return ()
        return [g for g in self._above[self.leaves[leaves[0]]] if np.isin(leaves, g.leaves).all()]


def _fill(room: Ints, need: int, last: Bools | None = None) -> Ints | None:
    """Fewest places with ``need`` in all: the largest first, and then the smallest that has the rest, one
    that ``last`` names if there is any. None if all together have less."""
    order = np.argsort(-room, kind="stable")
    reach = np.cumsum(room[order])
    if not len(reach) or reach[-1] < need:
        return None
    full = int(np.searchsorted(reach, need))
    rest = need - (int(reach[full - 1]) if full else 0)
    others = order[full:]
    others = others[room[others] >= rest]
    if last is not None and last[others].any():
        others = others[last[others]]
    smallest = others[room[others] == room[others[-1]]][0]
    chosen: Ints = np.append(order[:full], smallest)
    return chosen


def fewest(room: Ints, need: int) -> Ints:
    """The fewest places that have ``need``, in order, with the least left over in the last; all of them, the
    largest first, if they have less in all."""
    found = _fill(room, need)
    return np.argsort(-room, kind="stable") if found is None else found
