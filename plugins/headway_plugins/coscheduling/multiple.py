"""Nodes of several machines at the same time: the paper's search.

K. Yoshimoto, P. Kovatch, P. Andrews: Co-scheduling with User-Settable Reservations. Job Scheduling Strategies
for Parallel Processing, 2005, section 5. A trial reservation at each machine tells its delay; the machines
with little delay get the most nodes; the start slides within the window; a way to divide the nodes that
finds no place is followed by the next. The first solution is taken.

Decisions on what the paper leaves open:

- The trial asks for an equal share, ``ceil(total / k)`` within min and max. Where it is denied, min is tried
  (1 node if min is 0): granted, the delay is infinite; denied, the metajob is not possible if min is above 0.
- A machine with max 0 is not asked; a way to divide the nodes that gives a machine none leaves it out.
- Ways to divide the nodes are the outer loop and start times the inner loop; with ``window_first`` it is the
  reverse, and the next start is the least late start that any way to divide was offered.
- At a site with fixed starts "no place" means the next start time, any other denial the next way to divide.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from math import inf

from headway_plugins.coscheduling.calls import Denied
from headway_plugins.coscheduling.distributions import distributions
from headway_plugins.coscheduling.metajob import Metajob
from headway_plugins.coscheduling.options import SearchOptions
from headway_plugins.coscheduling.rounds import Part, Rounds, Steps


class Refused(Exception):
    """There is no place; the message says why."""


class GaveUp(Refused):
    """Not all ways to divide the nodes were tried."""


def size_of_trial(metajob: Metajob, machine: str, probe: str) -> int:
    """Nodes of the first trial reservation at a machine."""
    bounds = metajob.machines[machine]
    if probe == "share":
        share = -(-metajob.total // len(metajob.machines))
        return max(min(max(share, bounds.min), bounds.max), 1)
    return max(bounds.min if probe == "min" else bounds.max, 1)


def trial(rounds: Rounds, machine: str, nodes: int, slide: dict[str, float]) -> Steps[float | None]:
    """The start of a trial reservation, which is cancelled at once; None: denied."""
    metajob = rounds.metajob
    part = Part(machine, nodes, metajob.duration)
    at = metajob.earliest
    start = None
    while at + metajob.duration <= metajob.latest:
        answer = yield from rounds.ask(part, at)
        if not isinstance(answer, Denied):
            start = answer.start
            yield from rounds.cancel(rounds.made[-1], logged=False)
            break
        if answer.reason != "place" or machine not in slide:
            break
        at += slide[machine]
    rounds.log.append(["P", machine, nodes, start])
    return start


def delays(
    rounds: Rounds, probe: str, slide: dict[str, float], found: dict[str, float]
) -> Steps[dict[str, float]]:
    """``found``, filled with the delay of each machine in seconds; raises :class:`Refused`."""
    metajob = rounds.metajob
    for machine in metajob.preferred:
        bounds = metajob.machines[machine]
        found[machine] = inf
        if bounds.max == 0:
            continue
        nodes, least = size_of_trial(metajob, machine, probe), max(bounds.min, 1)
        start = yield from trial(rounds, machine, nodes, slide)
        if start is not None:
            found[machine] = start - metajob.earliest
            continue
        if nodes > least:
            start = yield from trial(rounds, machine, least, slide)
        if start is None and bounds.min > 0:
            raise Refused(f"not possible at {machine}")
    return found


def by_delay(metajob: Metajob, delay: dict[str, float]) -> list[str]:
    """The machines in the order in which they get nodes."""
    names = metajob.preferred
    return sorted(names, key=delay.__getitem__) if metajob.reorder else names


class Vectors:
    """The loops over start times and over ways to divide the nodes."""

    def __init__(
        self, rounds: Rounds, order: Sequence[str], options: SearchOptions, slide: dict[str, float]
    ) -> None:
        self._rounds, self._slide = rounds, slide
        self._limit = options.max_distributions
        metajob = rounds.metajob
        bounds = [(metajob.machines[name].min, metajob.machines[name].max) for name in order]
        self._vectors = distributions(bounds, metajob.total, options.node_step)
        self._order = order
        #: Ways to divide the nodes that were tried.
        self.tried = 0

    def vector_first(self) -> Steps[float]:
        """The start that was found; raises :class:`Refused`."""
        for vector in islice(self._vectors, self._limit):
            self.tried += 1
            start: float | None = self._rounds.metajob.earliest
            while start is not None and self._in_window(start):
                reached = yield from self._rounds.play(self._parts(vector), start, self._slide)
                if reached == start:
                    return start
                start = reached
        raise self._failure()

    def window_first(self) -> Steps[float]:
        """As :meth:`vector_first`, the earliest start over all ways to divide the nodes."""
        left = list(islice(self._vectors, self._limit))
        start = self._rounds.metajob.earliest
        seen: set[tuple[int, ...]] = set()
        while left and self._in_window(start):
            later: dict[tuple[int, ...], float] = {}
            for vector in left:
                seen.add(vector)
                self.tried = len(seen)
                reached = yield from self._rounds.play(self._parts(vector), start, self._slide)
                if reached == start:
                    return start
                if reached is not None:
                    later[vector] = reached
            left = list(later)
            start = min(later.values(), default=inf)
        raise self._failure()

    def _in_window(self, start: float) -> bool:
        return start + self._rounds.metajob.duration <= self._rounds.metajob.latest

    def _parts(self, vector: Sequence[int]) -> list[Part]:
        duration = self._rounds.metajob.duration
        return [Part(name, nodes, duration) for name, nodes in zip(self._order, vector, strict=True) if nodes]

    def _failure(self) -> Refused:
        if next(self._vectors, None) is not None:
            return GaveUp(f"gave up after {self.tried} distributions")
        return Refused("no distribution")
