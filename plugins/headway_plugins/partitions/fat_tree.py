"""The blocks of a fat tree: all nodes below a switch, the halves of what is below it, and so on.

Decided here: where a switch has several switches below it, these are halved in their order, and no leaf
switch is cut before it is a block of its own; the nodes of a leaf switch are halved like a row. What nothing
connects is never a block. Without any switches described all nodes are a row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from headway.model import SwitchDescription
from headway_plugins.partitions.blocks import row_tree
from headway_plugins.placement.topology.switches import SwitchTree

Block = tuple[str, ...]


class _Part(msgspec.Struct, frozen=True):
    """A switch, or a node on no switch: what is below it."""

    nodes: Block
    below: tuple[_Part, ...] = ()


def switch_blocks(nodes: Sequence[str], switches: Sequence[SwitchDescription], unit: int = 1) -> list[Block]:
    """The blocks of these nodes, smallest first, blocks of equal size in the order of the machine; down to
    ``unit`` nodes or fewer."""
    tree = SwitchTree(switches, nodes)
    roots = _roots(tree, nodes) if switches else [_Part(tuple(nodes))]
    found = dict.fromkeys(block for root in roots for block in _blocks((root,), unit) if block)
    return sorted(found, key=len)


def _roots(tree: SwitchTree, nodes: Sequence[str]) -> list[_Part]:
    """The parts that nothing connects, each with what is below it."""
    hung: list[list[str]] = [[] for _ in tree.leaves]
    for node in nodes:
        if node in tree.leaf_of:
            hung[tree.leaf_of[node]].append(node)
    #: By the leaf switches that they have: what has not been found below a higher switch yet.
    top: dict[frozenset[int], _Part] = {
        frozenset((at,)): _Part(tuple(its_nodes)) for at, its_nodes in enumerate(hung)
    }
    for group in tree.groups:
        leaves = frozenset(group.leaves.tolist())
        below = [part for has, part in top.items() if has <= leaves]
        top = {has: part for has, part in top.items() if not has <= leaves}
        top[leaves] = _Part(tuple(node for part in below for node in part.nodes), tuple(below))
    lone = [_Part((node,)) for node in nodes if node not in tree.leaf_of]
    return [*top.values(), *lone]


def _blocks(parts: Sequence[_Part], unit: int) -> Iterator[Block]:
    """All of them, and what that is halved into."""
    if len(parts) > 1:
        yield tuple(node for part in parts for node in part.nodes)
        half = (len(parts) + 1) // 2
        yield from _blocks(parts[:half], unit)
        yield from _blocks(parts[half:], unit)
    elif parts[0].below:
        yield from _blocks(parts[0].below, unit)
    else:
        for level in row_tree(parts[0].nodes, unit):
            yield from level
