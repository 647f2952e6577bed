"""On how many nodes a job lies that asks for generic resources in all and leaves its nodes open: on the
fewest of which each has an even share of them, among the nodes that it can have.

As Slurm 22.05 and 24.11 do it, seen on both: a job of more nodes than tasks gets a task more for each node,
unless its tasks have several processors or GPUs of their own; no task is divided."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from headway.model import NodeDescription

#: Generic resources and processors of a node.
_Kind = tuple[tuple[tuple[str, int], ...], int]


class Choice(NamedTuple):
    """Which nodes a job can have."""

    pool: str
    features: tuple[str, ...]
    #: All of them are among its nodes.
    required: tuple[str, ...]
    excluded: tuple[str, ...]


class Wish(NamedTuple):
    """What a job asks for in all."""

    gres: tuple[tuple[str, int], ...]
    processors: int
    #: Processors of a task, which lie together.
    per_task: int = 1
    #: At most so many processors on a node; 0: any number.
    most: int = 0
    #: Tasks among which the generic resources are divided; 0: they belong to no task.
    tasks: int = 0
    #: The least and most nodes that its user stated; 0: not stated.
    nodes: tuple[int, int] = (0, 0)
    #: Its user stated the number of tasks, which 24.11 then leaves as it is.
    exact: bool = False

    @property
    def grows(self) -> bool:
        """Whether Slurm adds tasks until each node has one."""
        return self.per_task == 1 and not self.tasks and not self.exact


class _Kinds(NamedTuple):
    """How many nodes there are of each kind: nodes that the job requires, and others."""

    required: Counter[_Kind]
    others: Counter[_Kind]


class _Able(NamedTuple):
    """Nodes of one kind, and on how many nodes a job has to be at least for its share to fit on each."""

    least: int
    processors: int
    number: int


class Spread:
    """Answers for one listing, in which many jobs ask for the same: what was found out is kept."""

    def __init__(self, nodes: Mapping[str, NodeDescription]) -> None:
        self._nodes = nodes
        self._kinds: dict[tuple[Choice, bool], _Kinds | None] = {}
        self._found: dict[tuple[Choice, Wish], int] = {}

    def fewest(self, choice: Choice, wish: Wish) -> int:
        """The fewest nodes for what a job asks for; 0 where no even shares fit.

        Nodes that take no jobs count only where the others cannot do.
        """
        key = (choice, wish)
        if (known := self._found.get(key)) is not None:
            return known
        found = 0
        for down in (False, True):
            kinds = self._kinds_of(choice, down)
            if kinds is not None and (found := _fewest(kinds, wish)):
                break
        self._found[key] = found
        return found

    def _kinds_of(self, choice: Choice, down: bool) -> _Kinds | None:
        """The kinds with generic resources; None if a node that the job requires is missing."""
        key = (choice, down)
        if key not in self._kinds:
            required, excluded, features = set(choice.required), set(choice.excluded), set(choice.features)
            kinds = _Kinds(Counter(), Counter())
            for name, node in self._nodes.items():
                if (
                    node.gres
                    and choice.pool in node.pools
                    and (down or node.available)
                    and name not in excluded
                    and features.issubset(node.features)
                ):
                    of = kinds.required if name in required else kinds.others
                    of[node.gres, node.processors] += 1
            self._kinds[key] = kinds if kinds.required.total() == len(required) else None
        return self._kinds[key]


def _fewest(kinds: _Kinds, wish: Wish) -> int:
    required = _able(kinds.required, wish)
    others = _able(kinds.others, wish)
    named = sum(able.number for able in required)
    if named < kinds.required.total() or not (required or others):
        return 0
    there = named + sum(able.number for able in others)
    leasts = sorted({able.least for able in (*required, *others)})
    stated, limit = wish.nodes
    # Each required node has to have a share.
    nodes = max(named, stated, max((able.least for able in required), default=leasts[0]))
    most = min(there, limit or there)
    if not wish.grows:
        most = min(most, wish.tasks or wish.processors // wish.per_task)
    while nodes <= most:
        chosen = _largest(required, others, nodes)
        if chosen is None:
            # Too few have a share of that size: more do only from the next size on.
            nodes = next((least for least in leasts if least > nodes), there + 1)
        elif _room(chosen, nodes, max(wish.processors, nodes), wish.per_task):
            return nodes
        else:
            nodes += 1
    return 0


def _able(kinds: Counter[_Kind], wish: Wish) -> list[_Able]:
    """Kinds of nodes that have all that is wanted, the kinds with most processors first."""
    found = []
    for (gres, processors), number in kinds.items():
        has = dict(gres)
        # A task's own lie together.
        sizes = {name: count // wish.tasks if wish.tasks else 1 for name, count in wish.gres}
        usable = {name: has.get(name, 0) // (size or 1) * (size or 1) for name, size in sizes.items()}
        if all(usable.values()):
            least = max(-(-count // usable[name]) for name, count in wish.gres)
            found.append(_Able(max(least, 1), min(processors, wish.most or processors), number))
    return sorted(found, key=lambda able: -able.processors)


def _largest(required: list[_Able], others: list[_Able], nodes: int) -> list[tuple[int, int]] | None:
    """Processors and number of so many of the largest that have a share; None: they are too few."""
    chosen = [(able.processors, able.number) for able in required]
    rest = nodes - sum(number for _, number in chosen)
    for able in others:
        if rest and able.least <= nodes:
            chosen.append((able.processors, min(able.number, rest)))
            rest -= chosen[-1][1]
    return None if rest else chosen


def _room(chosen: list[tuple[int, int]], nodes: int, cpus: int, per_task: int) -> bool:
    """Whether they have the processors: an even share each where that divides no task, else enough in all."""
    if cpus % (nodes * per_task) == 0:
        return min(processors for processors, _ in chosen) * nodes >= cpus
    return sum(processors // per_task * per_task * number for processors, number in chosen) >= cpus
