"""A genetic algorithm over queue order, nodes and stores together.

T. Phan, K. Ranganathan, R. Sion: Evolving Toward the Perfect Schedule. JSSPP 2005, section 4. A plan
(*chromosome*) is three strings: the jobs as they are queued, the node of each job, the store of each object.
Each generation makes ``children`` children of the ``parents`` best plans. The next parents are the best of
the children and of the best plan so far.

Decisions on what the paper leaves open:

- The first parents are the best of ``children`` random plans.
- A child has two different parents, all pairs alike; each string is crossed on its own.
- Crossing orders: a section of the first parent keeps its place; the other jobs fill the free places from
  left to right as the second parent has them. Other strings: a section of the first parent, the rest of the
  second.
- Mutation, which the paper describes and did not use: with probability ``mutation`` a string's mutation, a
  section that is reversed for orders, a place with a random value for other strings.
- Plans are compared by whole microseconds; a child that is as good as the best plan so far goes before it.
- ``seed_greedy``: the first random plan becomes first in, first out on the least loaded nodes, with its own
  random stores. The result is then never worse than that.
- ``stop_when_equal``: the run ends after a selection of parents that are all the same, for crossing copies.
- Random numbers: see :mod:`.draws`. Of a plan: order, nodes, stores. Of a child: its parents (none of a
  single parent), two cut points for each string, then for each string whether it is mutated, and how.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from headway.errors import UserError
from headway_plugins.data.evaluation import Mode
from headway_plugins.data.greedy import least_loaded
from headway_plugins.data.model import Floats, Ints, Tables
from headway_plugins.data.population import Fitness
from headway_plugins.draws import Draws


@dataclass(frozen=True)
class Genetics:
    """How plans evolve. Raises :class:`UserError` for more parents than children."""

    #: mu and lambda.
    parents: int = 10
    children: int = 50
    generations: int = 100
    #: Probability for each string of a child.
    mutation: float = 0.0
    seed_greedy: bool = False
    stop_when_equal: bool = False
    #: No generation is begun that would evaluate more plans than so many, remembered ones included.
    evaluations: int | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.parents <= self.children:
            raise UserError(
                f"genetic algorithm: expected 1 to {self.children} parents, as there are {self.children} "
                f"children, found {self.parents}"
            )


@dataclass(frozen=True)
class Evolved:
    """The best plan that was found."""

    order: list[int]
    node: list[int]
    #: None: without replicas.
    store: list[int] | None
    #: Seconds from now.
    makespan: float
    #: The best makespan at first and after each generation.
    history: list[float]
    #: Plans that were compared, those with a remembered makespan included.
    evaluations: int

    @property
    def strings(self) -> tuple[list[int], ...]:
        """Order, nodes, and stores where there are replicas."""
        return (self.order, self.node) if self.store is None else (self.order, self.node, self.store)


def cross_order(one: Ints, other: Ints, first: int, last: int) -> Ints:
    """The places from ``first`` to ``last`` of one order, the rest in the sequence of the other."""
    kept = one[first : last + 1]
    free = np.ones(len(one), dtype=bool)
    free[kept] = False
    rest = other[free[other]]
    return np.concatenate((rest[:first], kept, rest[first:]))


def cross_string(one: Ints, other: Ints, first: int, last: int) -> Ints:
    """The places from ``first`` to ``last`` of one string, all others of the other."""
    child = other.copy()
    child[first : last + 1] = one[first : last + 1]
    return child


def reverse(order: Ints, first: int, last: int) -> Ints:
    """The order with this section backwards."""
    child = order.copy()
    child[first : last + 1] = order[first : last + 1][::-1]
    return child


def select(count: int, fitness: Sequence[float] | Floats) -> list[int]:
    """The places of the best ones, best first; of equal ones the earlier."""
    micros = np.floor(np.asarray(fitness) * 1e6 + 0.5)
    found: list[int] = np.argsort(micros, kind="stable")[:count].tolist()
    return found


class Evolution:
    """Plans that evolve, so many generations at a time."""

    def __init__(
        self, tables: Tables, draws: Draws, genetics: Genetics, *, mode: Mode = "event", direct: bool = False,
        seeds: Sequence[Ints] = (),
    ) -> None:  # fmt: skip
        """The first plans. ``seeds``: plans that take the places of the last random ones (rows as in
        :mod:`.population`)."""
        self._genetics = genetics
        self._fitness = Fitness(tables, mode, direct=direct)
        self._breed = _Breed(tables, self._fitness, draws, genetics.mutation)
        population = np.array([self._breed.random_plan() for _ in range(genetics.children)])
        if genetics.seed_greedy:
            self._breed.make_greedy(population[0], tables, mode, direct)
        for at, plan in enumerate(seeds, start=1):
            population[-at] = plan
        makespans = self._fitness.of(population)
        #: Plans that were compared, those with a remembered makespan included.
        self.evaluations = len(population)
        chosen = select(genetics.parents, makespans)
        self._parents, self._ends = population[chosen], makespans[chosen]
        self._history = [float(self._ends[0])]
        self._left = genetics.generations

    def goes_on(self) -> bool:
        """Whether there is a further generation."""
        genetics, parents = self._genetics, self._parents
        if not self._left or (genetics.stop_when_equal and bool((parents == parents[0]).all())):
            return False
        budget = genetics.evaluations
        return budget is None or self.evaluations + genetics.children <= budget

    def generation(self) -> None:
        """Make children of the best plans, and choose the best of them."""
        genetics = self._genetics
        self._left -= 1
        self.evaluations += genetics.children
        children = np.array([self._breed.child(self._parents) for _ in range(genetics.children)])
        # The best plan so far is in the pool, behind the children.
        pool = np.concatenate((children, self._parents[:1]))
        known = dict(zip((plan.tobytes() for plan in self._parents), self._ends.tolist(), strict=True))
        makespans = np.append(_remembered(self._fitness, children, known), self._ends[0])
        chosen = select(genetics.parents, makespans)
        self._parents, self._ends = pool[chosen], makespans[chosen]
        self._history.append(float(self._ends[0]))

    def best(self) -> Evolved:
        """The best plan so far."""
        order, node, store = self._fitness.strings(self._parents[0])
        replicas = self._fitness.replicas
        return Evolved(
            order, node, store if replicas else None, float(self._ends[0]), list(self._history),
            self.evaluations,
        )  # fmt: skip


def evolve(
    tables: Tables, draws: Draws, genetics: Genetics, *, mode: Mode = "event", direct: bool = False,
    seeds: Sequence[Ints] = (),
) -> Evolved:  # fmt: skip
    """The best plan after all generations; ``seeds`` as :class:`Evolution`."""
    evolution = Evolution(tables, draws, genetics, mode=mode, direct=direct, seeds=seeds)
    while evolution.goes_on():
        evolution.generation()
    return evolution.best()


def _remembered(fitness: Fitness, plans: Ints, known: dict[bytes, float]) -> Floats:
    """The makespan of each plan; of copies of each other, and of known plans, it is computed once."""
    keys = [plan.tobytes() for plan in plans]
    unknown = {key: at for at, key in enumerate(keys) if key not in known}
    found = fitness.of(plans[list(unknown.values())]) if unknown else np.zeros(0)
    known |= zip(unknown, found.tolist(), strict=True)
    return np.array([known[key] for key in keys])


class _Breed:
    """Random plans, and children of plans."""

    def __init__(self, tables: Tables, fitness: Fitness, draws: Draws, mutation: float) -> None:
        self._draws, self._mutation = draws, mutation
        self._jobs, self._nodes, self._stores = fitness.jobs, tables.nodes, tables.local_stores
        #: Values of the strings behind the order, and where each string is.
        kinds = [(self._jobs, self._nodes)]
        if fitness.replicas:
            kinds.append((tables.objects, self._stores))
        self._kinds = kinds
        bounds = np.cumsum([0, self._jobs, *(length for length, _ in kinds)]).tolist()
        self._strings = [slice(a, b) for a, b in pairwise(bounds)]

    def random_plan(self) -> Ints:
        draws = self._draws
        strings = [draws.permutation(self._jobs), *(draws.several(*kind) for kind in self._kinds)]
        return np.array([value for string in strings for value in string], dtype=np.int64)

    def make_greedy(self, plan: Ints, tables: Tables, mode: Mode, direct: bool) -> None:
        """Jobs by number to the least loaded nodes, the stores as they are."""
        plan[: self._jobs] = np.arange(self._jobs)
        store = plan[2 * self._jobs :].tolist()
        plan[self._strings[1]] = least_loaded(tables, mode, store, direct=direct)

    def child(self, parents: Ints) -> Ints:
        draws = self._draws
        a = b = 0
        if len(parents) > 1:
            a, b = draws.below(len(parents)), draws.below(len(parents) - 1)
            b += b >= a
        strings = []
        for at, where in enumerate(self._strings):
            one, other = parents[a, where], parents[b, where]
            section = draws.section(len(one))
            strings.append((cross_string if at else cross_order)(one, other, *section))
        if self._mutation > 0:
            strings = [self._mutated(at, string) for at, string in enumerate(strings)]
        return np.concatenate(strings)

    def _mutated(self, at: int, string: Ints) -> Ints:
        draws = self._draws
        if not draws.unit() < self._mutation:
            return string
        if at == 0:
            return reverse(string, *draws.section(len(string)))
        place, value = draws.below(len(string)), draws.below(self._kinds[at - 1][1])
        string[place : place + 1] = value
        return string
