"""What running jobs give back to the nodes, and when."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from headway.model import Placement, Request
from headway.model.parts import placements_of
from headway.resources import Free, Ints, NodeTable, gres_on_nodes, memory_on_nodes, takes_processors_alone
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
        places: list[tuple[Ints, Ints]] = []
        entries = 0
        #: Of the entries up to the last that gives any back; the entries after it give none.
        memory: list[Ints] = []
        remembered = 0
        #: By resource: entries, ascending, and what each of them gives back.
        gres: dict[str, list[tuple[Ints, Ints]]] = {}
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
                nodes, counts = place.as_arrays()
                if not takes_processors_alone(request):
                    memory.append(np.zeros(entries - remembered, np.int64))
                    memory.append(np.broadcast_to(memory_on_nodes(request, counts), nodes.shape))
                    remembered = entries + place.known
                    at = np.arange(entries, remembered)
                    for resource, amount in gres_on_nodes(request, counts):
                        gres.setdefault(resource, []).append((at, np.broadcast_to(amount, nodes.shape)))
                places.append((nodes, counts))
                entries += place.known
                released += place.processors
            if self.times and self.times[-1] == end:
                self._upto[-1] = entries
                self._released[-1] = released
            else:
                self.times.append(end)
                self._upto.append(entries)
                self._released.append(released)
        self._nodes = _joined([nodes for nodes, _ in places])
        self._counts = _joined([counts for _, counts in places])
        self._memory = _joined(memory)
        self._gres = {
            resource: (_joined([at for at, _ in shares]), _joined([amounts for _, amounts in shares]))
            for resource, shares in gres.items()
        }

    def levels(self, free: Free) -> Iterator[Free]:
        """What nodes have now, and at each of ``times``; the same object each time, to be copied."""
        later = free.copy()
        yield later
        begin = 0
        for upto in self._upto:
            self._give_back(later, begin, upto)
            begin = upto
            yield later

    def _give_back(self, later: Free, begin: int, upto: int) -> None:
        """Add what these entries give back."""
        np.add.at(later.processors, self._nodes[begin:upto], self._counts[begin:upto])
        memory = self._memory[begin:upto]
        if len(memory):
            np.add.at(later.memory, self._nodes[begin : begin + len(memory)], memory)
        for resource, (entries, amounts) in self._gres.items():
            if resource in later.gres:
                first, last = np.searchsorted(entries, (begin, upto))
                np.add.at(later.gres[resource], self._nodes[entries[first:last]], amounts[first:last])

    def first_with(self, processors: int, free: Free) -> int:
        """The first step (:meth:`free_at`) at which all nodes together can have so many processors left; the
        number of steps plus one if there is no such step."""
        lacking = processors - int(np.add.reduce(np.maximum(free.processors, 0)))
        return bisect_left(self._released, lacking) + 1 if lacking > 0 else 0

    def free_at(self, step: int, free: Free) -> Free:
        """What nodes have at step 0 (now) or at ``times[step - 1]``; a new object."""
        later = free.copy()
        if step:
            self._give_back(later, 0, self._upto[step - 1])
        return later


def _shares(request: Request, placement: Placement) -> Iterable[tuple[Request, Placement]]:
    if not request.parts:
        return ((request, placement),)
    return zip(request.parts, placements_of(request, placement), strict=True)


def _joined(arrays: Sequence[Ints]) -> Ints:
    return np.concatenate(arrays) if arrays else np.zeros(0, np.int64)
