"""Nodes of several machines at the same time, by asking each machine for as many as it has.

K. Yoshimoto, P. Kovatch, P. Andrews: Co-scheduling with User-Settable Reservations. Job Scheduling Strategies
for Parallel Processing, 2005, section 7: "The ability to request any number of nodes up to a maximum makes it
much easier to explore the node distribution space throughout the grid."

Ours (option ``grant_up_to``). Each machine is asked for its max or fewer nodes at one start time:

- A later start is the next start to try.
- Fewer than min: an exact request for min tells the next start.
- Enough nodes in all: the surplus is given back, from the last machine backwards. A machine that gives back
  is cancelled and set anew; that pass is a round of its own.
- Too few in all: at each machine below its max an exact request for a node more tells when it has more. The
  least of these times is the next start.

A machine with min 0 that has no node at the start time has no part in the round. The start found is the
earliest over all ways to divide the nodes, if no competitor interferes.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from headway_plugins.coscheduling.calls import Denied, Granted
from headway_plugins.coscheduling.multiple import Refused
from headway_plugins.coscheduling.rounds import Part, Rounds, Steps

#: How often a start time is tried again after a competitor took nodes in between.
_SAME_START = 3


class Granting:
    """The search of ``grant_up_to``."""

    def __init__(self, rounds: Rounds, order: Sequence[str], slide: dict[str, float]) -> None:
        self._rounds, self._slide = rounds, slide
        self._bounds = rounds.metajob.machines
        self._order = [name for name in order if self._bounds[name].max > 0]

    def run(self) -> Steps[float]:
        """The start that was found; raises :class:`.multiple.Refused`."""
        metajob = self._rounds.metajob
        start, again = metajob.earliest, 0
        while start + metajob.duration <= metajob.latest and again <= _SAME_START:
            later = yield from self._at(start)
            if later is None:
                return start
            again = again + 1 if later <= start else 0
            start = max(start, later)
        raise Refused("no distribution")

    def _at(self, start: float) -> Steps[float | None]:
        """None: all parts are there at ``start``; else the next start (infinite: none), nothing is left."""
        rounds = self._rounds
        rounds.round += 1
        granted: dict[str, int] = {}
        offered = inf
        for name in self._order:
            answer = yield from rounds.set(self._part(name, self._bounds[name].max), start, exact=False)
            later = self._later(name, answer, start)
            if later > start:
                offered = min(offered, later)
                if self._bounds[name].min == 0:
                    if isinstance(answer, Granted):
                        yield from rounds.cancel(rounds.made[-1])
                    continue
                yield from rounds.roll_back()
                return later
            assert isinstance(answer, Granted)
            if answer.nodes < self._bounds[name].min:
                return (yield from self._when_min(name, start))
            granted[name] = answer.nodes
        if sum(granted.values()) >= rounds.metajob.total:
            return (yield from self._trim(granted, start))
        return (yield from self._when_more(granted, start, offered))

    def _when_min(self, name: str, start: float) -> Steps[float]:
        """When the machine has its least nodes; nothing is left of the round."""
        rounds = self._rounds
        yield from rounds.cancel(rounds.made[-1])
        rounds.round += 1
        answer = yield from rounds.set(self._part(name, self._bounds[name].min), start)
        yield from rounds.roll_back()
        return self._later(name, answer, start)

    def _when_more(self, granted: dict[str, int], start: float, offered: float) -> Steps[float]:
        """When a machine has a node more; nothing is left of the round."""
        rounds = self._rounds
        yield from rounds.roll_back()
        rounds.round += 1
        for name, nodes in granted.items():
            if nodes < self._bounds[name].max:
                answer = yield from rounds.set(self._part(name, nodes + 1), start)
                offered = min(offered, self._later(name, answer, start))
                yield from rounds.roll_back()
        return offered

    def _trim(self, granted: dict[str, int], start: float) -> Steps[float | None]:
        """Give the surplus back."""
        rounds = self._rounds
        kept = dict(granted)
        surplus = sum(kept.values()) - rounds.metajob.total
        for name in reversed(kept):
            back = min(surplus, kept[name] - self._bounds[name].min)
            kept[name] -= back
            surplus -= back
        if kept == granted:
            return None
        rounds.round += 1
        at = {made.site: made for made in rounds.made}
        for name, nodes in kept.items():
            if nodes == granted[name]:
                continue
            yield from rounds.cancel(at[name])
            if not nodes:
                continue
            answer = yield from rounds.set(self._part(name, nodes), start)
            later = self._later(name, answer, start)
            if isinstance(answer, Denied) or later > start:
                yield from rounds.roll_back()
                return start if later == inf else later
        # In the order of the machines, whenever they were made.
        rounds.made.sort(key=lambda made: self._order.index(made.site))
        return None

    def _part(self, name: str, nodes: int) -> Part:
        return Part(name, nodes, self._rounds.metajob.duration)

    def _later(self, name: str, answer: Granted | Denied, start: float) -> float:
        """The start that the answer offers; infinite: none."""
        if isinstance(answer, Granted):
            return answer.start
        if answer.reason == "place" and name in self._slide:
            return start + self._slide[name]
        return inf
