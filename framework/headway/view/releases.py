"""What running jobs give back to the nodes, and when."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from headway.model import Placement, Request
from headway.nodes import Free, memory_on_node
from headway.parts import placements_of
from headway.profile import next_after
from headway.view.ahead import rounded_up

if TYPE_CHECKING:
    from headway.state import RunningEntry


class Releases:
    """What the running jobs give back, and when, as flat arrays."""

    def __init__(
        self, running: Sequence[RunningEntry], index: dict[str, int], now: float, grid: float = 0.0
    ) -> None:
        """``grid``: ends are rounded up to multiples of so many seconds; 0: they are exact."""
        nodes: list[int] = []
        counts: list[int] = []
        memory: list[int] = []
        gres: dict[str, list[tuple[int, int, int]]] = {}
        self.times: list[float] = []
        #: For each of ``times``, how many of the array entries are released by then.
        self._upto: list[int] = []
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
                for name, count in placement:
                    node = index.get(name)
                    if node is None:
                        continue
                    for resource, amount in request.gres_per_node:
                        gres.setdefault(resource, []).append((len(nodes), node, amount))
                    nodes.append(node)
                    counts.append(count)
                    memory.append(memory_on_node(request, count))
            if self.times and self.times[-1] == end:
                self._upto[-1] = len(nodes)
            else:
                self.times.append(end)
                self._upto.append(len(nodes))
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
            np.add.at(later.memory, self._nodes[part], self._memory[part])
            for resource, entries in self._gres.items():
                if resource in later.gres:
                    first = bisect_left(entries, (begin,))
                    for position, node, amount in entries[first:]:
                        if position >= upto:
                            break
                        later.gres[resource][node] += amount
            begin = upto
            yield later

    def free_at(self, step: int, free: Free) -> Free:
        """What nodes have at step 0 (now) or at ``times[step - 1]``; a new object."""
        later = free.copy()
        if step:
            upto = self._upto[step - 1]
            nodes = self._nodes[:upto]
            np.add.at(later.processors, nodes, self._counts[:upto])
            np.add.at(later.memory, nodes, self._memory[:upto])
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
