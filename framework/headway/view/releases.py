"""What running jobs give back to the nodes, and when."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from headway.model import Placement, Request
from headway.model.parts import placements_of
from headway.resources import Free, NodeTable, gres_on_node, memory_on_node, takes_processors_alone
from headway.resources.profile import next_after
from headway.view.ahead import rounded_up

if TYPE_CHECKING:
    from headway.state import RunningEntry


class Releases:
    """What the running jobs give back, and when, as flat arrays."""

    def __init__(
        self, running: Sequence[RunningEntry], table: NodeTable, now: float, grid: float = 0.0
    ) -> None:
        """``grid``: ends are rounded up to multiples of so many seconds; 0: they are exact."""
        locate = table.locate
        nodes: list[int] = []
        counts: list[int] = []
        #: Of the entries up to the last that gives any back; the entries after it give none.
        memory: list[int] = []
        gres: dict[str, list[tuple[int, int, int]]] = {}
        self.times: list[float] = []
        #: For each of ``times``, how many of the array entries are released by then.
        self._upto: list[int] = []
        #: For each of ``times``, how many processors are released by then, including processors of unknown
        #: nodes.
        self._released: list[int] = []
        released = 0
        overdue = next_after(now)
        for end, _, _, job in running:
            if end <= now:
                end = overdue
            if grid:
                end = rounded_up(end, grid)
            elif self.times and end < self.times[-1]:
                end = self.times[-1]
            taken = job.taken if job.taken is not None else job.request
            for request, placement in _shares(taken, job.placement):
                place = locate(placement, passing=placement is not job.placement)
                if not takes_processors_alone(request):
                    memory += [0] * (len(nodes) - len(memory))
                    memory += [memory_on_node(request, count) for count in place.counts]
                    for at, (node, count) in enumerate(
                        zip(place.nodes, place.counts, strict=True), len(nodes)
                    ):
                        for resource, amount in gres_on_node(request, count):
                            gres.setdefault(resource, []).append((at, node, amount))
                nodes += place.nodes
                counts += place.counts
                released += place.processors
            if self.times and self.times[-1] == end:
                self._upto[-1] = len(nodes)
                self._released[-1] = released
            else:
                self.times.append(end)
                self._upto.append(len(nodes))
                self._released.append(released)
        self._nodes = np.asarray(nodes, np.intp)
        self._counts = np.asarray(counts, np.int64)
        self._memory = np.asarray(memory, np.int64)
        self._gres = gres

    def levels(self, free: Free) -> Iterator[Free]:
        """What nodes have now, and at each of ``times``; the same object each time, to be copied."""
        later = free.copy()
        yield later
        begin = 0
        for upto in self._upto:
            part = slice(begin, upto)
            np.add.at(later.processors, self._nodes[part], self._counts[part])
            memory = self._memory[part]
            np.add.at(later.memory, self._nodes[begin : begin + len(memory)], memory)
            for resource, entries in self._gres.items():
                if resource in later.gres:
                    first = bisect_left(entries, (begin,))
                    for position, node, amount in entries[first:]:
                        if position >= upto:
                            break
                        later.gres[resource][node] += amount
            begin = upto
            yield later

    def first_with(self, processors: int, free: Free) -> int:
        """The first step (:meth:`free_at`) at which all nodes together can have so many processors left; the
        number of steps plus one if there is no such step."""
        lacking = processors - int(np.add.reduce(np.maximum(free.processors, 0)))
        return bisect_left(self._released, lacking) + 1 if lacking > 0 else 0

    def free_at(self, step: int, free: Free) -> Free:
        """What nodes have at step 0 (now) or at ``times[step - 1]``; a new object."""
        later = free.copy()
        if step:
            upto = self._upto[step - 1]
            nodes = self._nodes[:upto]
            np.add.at(later.processors, nodes, self._counts[:upto])
            memory = self._memory[:upto]
            if len(memory):
                np.add.at(later.memory, nodes[: len(memory)], memory)
            for resource, entries in self._gres.items():
                if resource in later.gres:
                    for position, node, amount in entries:
                        if position < upto:
                            later.gres[resource][node] += amount
        return later


def _shares(request: Request, placement: Placement) -> Iterable[tuple[Request, Placement]]:
    if not request.parts:
        return ((request, placement),)
    return zip(request.parts, placements_of(request, placement), strict=True)
