"""What every node has left, from time to time: what the profile is to a count of processors.

A row of arrays a step, so its memory is steps times nodes; only policies that book several jobs
(conservative backfilling) need it. Beside the rows there are, for each step, the processors that are free in
all, and which nodes are free as a whole (one bit a node): most moments at which a job cannot start are ruled
out by these, without a look at the rows.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from headway.model import Request
from headway.model.parts import divided
from headway.resources import Bools, Free, Ints, bits, gres_on_nodes, memory_on_nodes, takes_processors_alone
from headway.resources.located import Located
from headway.view.ahead import rounded_up
from headway.view.booking import Booking
from headway.view.releases import Releases

_INF = float("inf")
#: To pick out a node's level takes as long as to go along so many.
_FEW = 8


class Timeline:
    """What is left on nodes while bookings are made."""

    def __init__(self, now: float, releases: Releases, free: Free, total: Ints, grid: float = 0.0) -> None:
        """``grid``: ends are rounded up to multiples of so many seconds, as the ends of ``releases`` are; 0:
        they are exact."""
        self._grid = grid
        self.times = [now, *releases.times]
        count, nodes = len(self.times), len(total)
        room = 2 * count + 64
        #: The row of each step.
        self._rows = list(range(count))
        self._used = count
        self._processors = np.empty((room, nodes), np.int64)
        self._memory = np.empty((room, nodes), np.int64)
        self._gres = {name: np.empty((room, nodes), np.int64) for name in free.gres}
        for step, level in enumerate(releases.levels(free)):
            self._processors[step] = level.processors
            self._memory[step] = level.memory
            for name, amounts in level.gres.items():
                self._gres[name][step] = amounts
        known = self._processors[:count]
        #: Free processors of all nodes, and the nodes of which all are free, in each step.
        self._sums: list[int] = np.maximum(known, 0).sum(axis=1).tolist()
        self._whole = [bits(row == total) for row in known]

    def most(self, start: float, end: float) -> int:
        """The most processors that are free on all nodes together at any moment of [start, end)."""
        first, last = self._steps(start, end)
        return max(self._sums[first:last])

    def first_with(self, processors: int, start: float) -> float:
        """The first time from ``start`` on at which all nodes together have so many free; infinity if there
        is none."""
        first, _ = self._steps(start, start)
        steps = zip(self.times[first:], self._sums[first:], strict=True)
        return next((max(time, start) for time, free in steps if free >= processors), _INF)

    def levels_from(self, start: float) -> list[tuple[float, Free]]:
        """What nodes have from ``start`` on, and at each later step; not copied, so of no use once something
        is taken."""
        first, _ = self._steps(start, start)
        rows = enumerate(self._rows[first:], first)
        return [
            (
                max(self.times[step], start),
                Free(self._processors[row], self._memory[row], {k: v[row] for k, v in self._gres.items()}),
            )
            for step, row in rows
        ]

    def window(self, start: float, end: float) -> Free:
        """The least that each node with a free processor at ``start`` has at any moment of [start, end), and
        what the other nodes have at ``start``; a new object."""
        rows, nodes = self._usable(start, end)
        at = self._few(rows, nodes)
        return self._window(rows, nodes, at, self._least(self._processors, rows, nodes, at))

    def room_for(self, start: float, end: float, processors: int, eligible: Bools) -> Free | None:
        """As :meth:`window`, if eligible nodes have so many processors in all that are free throughout."""
        rows, nodes = self._usable(start, end)
        ours = eligible[nodes]
        if int(self._processors[rows[0]][nodes][ours].sum()) < processors:
            return None
        at = self._few(rows, nodes)
        least = self._least(self._processors, rows, nodes, at)
        if int(np.maximum(least[ours], 0).sum()) < processors:
            return None
        return self._window(rows, nodes, at, least)

    def begin_after(self, start: float, end: float, processors: int, eligible: Bools) -> float:
        """Where eligible nodes do not have so many processors throughout [start, end): a time before which a
        window of that length need not begin.

        Each such window that begins later holds the same last part of this window; the shortest last part in
        which they are too few decides.
        """
        first, last = self._steps(start, end)
        rows = self._rows[first:last]
        nodes = ((self._processors[rows[-1]] > 0) & eligible).nonzero()[0]
        least = np.minimum.accumulate(self._processors.reshape(-1).take(self._at(rows[::-1], nodes)))
        short = np.maximum(least, 0).sum(axis=1) < processors
        step = last - 1 - int(short.argmax())
        return self.times[step + 1] if step + 1 < len(self.times) else _INF

    def _usable(self, start: float, end: float) -> tuple[list[int], NDArray[np.intp]]:
        """The rows of [start, end), and the nodes that have a free processor at ``start``."""
        first, last = self._steps(start, end)
        rows = self._rows[first:last]
        return rows, (self._processors[rows[0]] > 0).nonzero()[0]

    def _few(self, rows: list[int], nodes: NDArray[np.intp]) -> NDArray[np.intp] | None:
        """Where these nodes are in these rows (:meth:`_at`), if it is faster to look there alone."""
        # Few nodes are free at any one time where many jobs are booked.
        if len(rows) == 1 or _FEW * len(nodes) >= self._processors.shape[1]:
            return None
        return self._at(rows, nodes)

    def _window(
        self, rows: list[int], nodes: NDArray[np.intp], at: NDArray[np.intp] | None, processors: Ints
    ) -> Free:
        def all_nodes(levels: Ints, least: Ints) -> Ints:
            found: Ints = levels[rows[0]].copy()
            found[nodes] = least
            return found

        return Free(
            all_nodes(self._processors, processors),
            all_nodes(self._memory, self._least(self._memory, rows, nodes, at)),
            {k: all_nodes(v, self._least(v, rows, nodes, at)) for k, v in self._gres.items()},
        )

    def _least(
        self, levels: Ints, rows: list[int], nodes: NDArray[np.intp], at: NDArray[np.intp] | None
    ) -> Ints:
        """The least level of each of these nodes, which are ``at`` these places, in any of the rows."""
        if at is not None:
            few: Ints = np.minimum.reduce(levels.reshape(-1).take(at))
            return few
        if len(rows) == 1:
            return levels[rows[0]][nodes]
        least: Ints = np.minimum(levels[rows[0]], levels[rows[1]])
        for row in rows[2:]:
            np.minimum(least, levels[row], out=least)
        return least[nodes]

    def _at(self, rows: Sequence[int], nodes: NDArray[np.intp]) -> NDArray[np.intp]:
        """Where these nodes are in these rows, in arrays that are laid out row by row."""
        return np.asarray(rows)[:, None] * self._processors.shape[1] + nodes

    def fitless(self, start: float, end: float, processors: int, whole: int, nodes: int) -> float:
        """If it is certain that nothing fits during [start, end): a time before which a window of that
        length need not begin. Else ``start``.

        ``processors`` are needed in all, and of ``nodes`` (bits) so many as a whole.
        """
        first, last = self._steps(start, end)
        sums = self._sums
        if min(sums[first:last]) < processors:
            step = last - 1
            while sums[step] >= processors:
                step -= 1
            return self.times[step + 1] if step + 1 < len(self.times) else _INF
        if whole:
            free_ones = self._whole
            for step in range(last - 1, first - 1, -1):
                nodes &= free_ones[step]
                if nodes.bit_count() < whole:
                    return self.times[step + 1] if step + 1 < len(self.times) else _INF
        return start

    def reserve(self, start: float, end: float, request: Request, place: Located) -> None:
        """Take what ``request`` uses at a place during [start, end)."""
        if self._grid:
            end = rounded_up(end, self._grid)
        first, last = self._cut(start), self._cut(end)
        if first >= last or not place.known:
            return
        if not request.parts:
            self._take(first, last, request, *place.as_arrays())
            return
        for part, nodes, counts in divided(request, place.nodes, place.counts):
            if nodes:
                self._take(first, last, part, np.array(nodes), np.array(counts))

    def _take(self, first: int, last: int, request: Request, nodes: Ints, counts: Ints) -> None:
        """Take it in these steps."""
        at = self._at(self._rows[first:last], nodes)
        processors = self._processors.reshape(-1)
        before = processors.take(at)
        after = before - counts
        processors[at] = after
        taken = (np.maximum(before, 0) - np.maximum(after, 0)).sum(axis=1).tolist()
        if not takes_processors_alone(request):
            self._take_resources(at, request, counts)
        mask = np.zeros(self._processors.shape[1], np.bool_)
        mask[nodes[counts != 0]] = True
        others = ~bits(mask)
        sums, whole = self._sums, self._whole
        for step in range(first, last):
            sums[step] -= taken[step - first]
            whole[step] &= others

    def _take_resources(self, at: NDArray[np.intp], request: Request, counts: Ints) -> None:
        """Take the memory and the generic resources of ``counts`` processors a node, ``at`` these places."""
        self._memory.reshape(-1)[at] -= memory_on_nodes(request, counts)
        for name, amount in gres_on_nodes(request, counts):
            if name in self._gres:
                self._gres[name].reshape(-1)[at] -= amount

    def book(self, booking: Booking, place: Located) -> None:
        """Take out what a booking keeps, at its place."""
        self.reserve(booking.start, booking.start + booking.job.expected_runtime, booking.job.request, place)

    def _steps(self, start: float, end: float) -> tuple[int, int]:
        """The steps of [start, end): the first step, and the step after the last."""
        first = bisect_right(self.times, start) - 1
        if first < 0:
            first = 0
        return first, bisect_left(self.times, end, first + 1)

    def _cut(self, time: float) -> int:
        """The step that begins at ``time``, made if there is none."""
        step = bisect_right(self.times, time) - 1
        if step < 0:
            return 0
        if self.times[step] != time:
            row = self._rows[step]
            step += 1
            self.times.insert(step, time)
            self._rows.insert(step, self._another(row))
            self._sums.insert(step, self._sums[step - 1])
            self._whole.insert(step, self._whole[step - 1])
        return step

    def _another(self, row: int) -> int:
        """A copy of a row."""
        new = self._used
        self._used += 1
        if new == len(self._processors):
            self._processors = _longer(self._processors)
            self._memory = _longer(self._memory)
            self._gres = {name: _longer(levels) for name, levels in self._gres.items()}
        for levels in (self._processors, self._memory, *self._gres.values()):
            levels[new] = levels[row]
        return new


def _longer(levels: Ints) -> Ints:
    longer = np.empty((2 * len(levels), levels.shape[1]), levels.dtype)
    longer[: len(levels)] = levels
    return longer
