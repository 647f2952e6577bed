"""A written list of cables, held against what a torus needs: every line a closed ring."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import product

from headway.errors import UserError
from headway.partitions.torus import Shape, name_of

#: A midplane's place.
Position = tuple[int, ...]
#: Two neighbours -> the links that join them: dimension and place of the first of both. Two midplanes of a
#: line of two have both links of the line.
Links = dict[frozenset[str], list[tuple[int, Position]]]


def capacity_of_cables(shape: Shape, cables: Sequence[tuple[str, str]], where: str) -> Shape:
    """How many cables each link has, by dimension.

    Raises :class:`UserError` when a cable joins midplanes that are no neighbours, when a line does not close,
    or when the links of one dimension do not all have as many cables.
    """
    links = _links(shape)
    count = _counted(shape, links, cables, where)
    capacity = [1, 1, 1]
    for d, whole in enumerate(shape):
        if whole > 1:
            capacity[d] = _along(d, shape, links, count, where)
    return capacity[0], capacity[1], capacity[2]


def _links(shape: Shape) -> Links:
    links: Links = {}
    for d, whole in enumerate(shape):
        if whole == 1:
            continue
        for position in product(*map(range, shape)):
            following = name_of(_next(position, d, shape))
            links.setdefault(frozenset((name_of(position), following)), []).append((d, position))
    return links


def _next(position: Position, d: int, shape: Shape) -> Position:
    """The neighbour along dimension ``d``, around the torus."""
    return *position[:d], (position[d] + 1) % shape[d], *position[d + 1 :]


def _counted(
    shape: Shape, links: Links, cables: Sequence[tuple[str, str]], where: str
) -> Counter[frozenset[str]]:
    """How many cables each pair of neighbours has; :class:`UserError` for a cable between others."""
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
    return count


def _along(d: int, shape: Shape, links: Links, count: Counter[frozenset[str]], where: str) -> int:
    """How many cables each link along dimension ``d`` has; :class:`UserError` if not all have as many."""
    # Lines of two midplanes: both links join the same two.
    found = {
        position: count[pair] / len(joins)
        for pair, joins in links.items()
        for dimension, position in joins
        if dimension == d
    }
    for position, cables_there in sorted(found.items()):
        if cables_there < 1:
            raise UserError(
                f"{where}: the line along {'xyz'[d]} through {name_of(position)} does not close: "
                f"no cable from {name_of(position)} to {name_of(_next(position, d, shape))}"
            )
    amounts = set(found.values())
    if len(amounts) > 1 or not next(iter(amounts)).is_integer():
        raise UserError(
            f"{where}: expected as many cables on each link along {'xyz'[d]}, found "
            + " and ".join(f"{n:g}" for n in sorted(amounts))
        )
    return int(next(iter(amounts)))


def _by(shape: Shape) -> str:
    return "x".join(map(str, shape))
