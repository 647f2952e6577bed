"""A covering set of prepared blocks: the halving tree of a torus, and that of a row of nodes (a fat tree).

The whole machine, its halves, quarters, ... down to the unit. A torus is split along its longest dimension
(the lowest on ties), a row of nodes in the middle. Blocks are numbered level by level, left to right; of the
blocks that would do a lower number is preferred.
"""

from __future__ import annotations

from collections.abc import Sequence

from headway.partitions.torus import Box, Shape


def torus_tree(shape: Shape, connection: str) -> list[list[Box]]:
    """The blocks of a machine of this shape, level by level; each halves its lengths, which may be odd."""
    levels = [[Box((0, 0, 0), shape, connection)]]
    while any(box.size > 1 for box in levels[-1]):
        following: list[Box] = []
        for box in levels[-1]:
            if box.size == 1:
                continue
            d = box.shape.index(max(box.shape))
            half = (box.shape[d] + 1) // 2
            for start, extent in ((0, half), (half, box.shape[d] - half)):
                origin, size = list(box.origin), list(box.shape)
                origin[d] += start
                size[d] = extent
                following.append(
                    Box((origin[0], origin[1], origin[2]), (size[0], size[1], size[2]), connection)
                )
        levels.append(following)
    return levels


def row_tree(nodes: Sequence[str], leaf: int) -> list[list[tuple[str, ...]]]:
    """The blocks of nodes that stand in a row (nodes of the same leaf switch beside each other), level by
    level, down to ``leaf`` nodes or fewer."""
    levels = [[tuple(nodes)]]
    while any(len(block) > leaf for block in levels[-1]):
        following = []
        for block in levels[-1]:
            if len(block) > leaf:
                # At a multiple of the leaf, so that no leaf is cut.
                half = -(-len(block) // (2 * leaf)) * leaf
                following += [block[:half], block[half:]]
        levels.append(following)
    return levels
