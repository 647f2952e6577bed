"""A written list of cables, held against what a torus needs: every line a closed ring."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import product

from headway.errors import UserError
from headway.partitions.torus import Shape, name_of


def capacity_of_cables(shape: Shape, cables: Sequence[tuple[str, str]], where: str) -> Shape:
    """How many cables each link has, by dimension.

    Raises :class:`UserError` when a cable joins midplanes that are no neighbours, when a line does not close,
    or when the links of one dimension do not all have as many cables.
    """
    links: dict[frozenset[str], list[tuple[int, tuple[int, ...]]]] = {}
    for d, whole in enumerate(shape):
        if whole == 1:
            continue
        for position in product(*map(range, shape)):
            following = (*position[:d], (position[d] + 1) % whole, *position[d + 1 :])
            links.setdefault(frozenset((name_of(position), name_of(following))), []).append((d, position))
    names = {name_of(position) for position in product(*map(range, shape))}
    count: Counter[frozenset[str]] = Counter()
    for at, ends in enumerate(cables):
        for end in ends:
            if end not in names:
                raise UserError(
                    f"{where}[{at}]: expected a midplane of the {_by(shape)} machine (m0-0-0 to "
                    f"{name_of([n - 1 for n in shape])}), found {end!r}"
                )
        if frozenset(ends) not in links:
            raise UserError(
                f"{where}[{at}]: expected a cable between neighbours along one dimension, found "
                f"{ends[0]} to {ends[1]}"
            )
        count[frozenset(ends)] += 1
    capacity = [1, 1, 1]
    for d, whole in enumerate(shape):
        found = {}
        for pair, joins in links.items():
            for dimension, position in joins:
                if dimension == d:
                    # Lines of two midplanes: both links join the same two.
                    found[position] = (count[pair] / len(joins), pair)
        if not found:
            continue
        for position, (cables_there, _) in sorted(found.items()):
            if cables_there < 1:
                raise UserError(
                    f"{where}: the line along {'xyz'[d]} through {name_of(position)} does not close: "
                    "no cable "
                    f"from {name_of(position)} to "
                    f"{name_of((*position[:d], (position[d] + 1) % whole, *position[d + 1 :]))}"
                )
        amounts = {cables_there for cables_there, _ in found.values()}
        if len(amounts) > 1 or not next(iter(amounts)).is_integer():
            raise UserError(
                f"{where}: expected as many cables on each link along {'xyz'[d]}, found "
                + " and ".join(f"{n:g}" for n in sorted(amounts))
            )
        capacity[d] = int(next(iter(amounts)))
    return capacity[0], capacity[1], capacity[2]


def _by(shape: Shape) -> str:
    return "x".join(map(str, shape))
