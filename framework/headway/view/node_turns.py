"""Serving a queue in turn on nodes, each job a start or a booking, with no more bookings than matter.

As on flat pools (:mod:`headway.view.turns`), bookings are owed until they are asked for
(:meth:`NodeTurns.make_owed`), and only bookings that may be in the way of a start are made at once:

* A job is *in the way* of what is planned for a later job if its booking is owed and it could start before
  the later job's end. Bookings that are made meanwhile only take nodes from it; so if it is not in the way
  now it will not be.
* Where a job is put depends only on what nodes have left while it is to run. So where no job is in the way,
  the job may be served before its turn: it starts now if it finds its nodes, or is booked.
* If a job is in the way, it is booked first, in the same manner.

So the starts are the same as when jobs are served in turn, on the same nodes, and so are the bookings once
they are asked for.

A job of several parts may find its nodes although less is left: which part chooses first is a matter of what
is left. So all jobs before it are booked before it is looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from headway.model import Placement
from headway.resources import Bools, Ints
from headway.state import Job, Status
from headway.state.queues import place_of
from headway.view.ahead import rounded_up
from headway.view.booking import Booking
from headway.view.node_plans import NodePlans, Opening
from headway.view.owed import Check, TooLarge, all_of_them
from headway.view.releases import Releases
from headway.view.timeline import Timeline

_INF = float("inf")
_PENDING = Status.PENDING
#: The timeline of a machine on which a booking is made in a short time has no more amounts: steps times
#: nodes. One search takes 20 ms for 10**7.
_AMOUNTS = 2_000_000
#: At least so many jobs are written into the arrays at a time.
_CHUNK = 256


class _Goal(msgspec.Struct, eq=False, gc=False):
    """No job before the place ``last`` is to be owed that could start before ``end``."""

    last: int
    end: float
    #: What for: the opening of the job at that place, and how many bookings there were when it was found.
    opening: Opening | None = None
    known: int = -1


class NodeTurns:
    """The jobs that are served in turn from a clean slate on."""

    __slots__ = (
        "_begun", "_booked", "_bound", "_cycles", "_jobs", "_last", "_making", "_owed", "_shapes", "_size",
        "_slate",
        "_told", "_view", "depth",
    )  # fmt: skip

    def __init__(self, view: NodePlans, depth: float) -> None:
        self._view = view
        #: How many jobs are booked at most; the jobs behind them may only start.
        self.depth = depth
        self._jobs: list[Job] = []
        #: The cycles in which jobs were served: the cycle's number, and the place of its first job.
        self._cycles: list[tuple[int, int]] = []
        self._begun: set[Job] = set()
        self._booked: dict[Job, Booking] = {}
        #: The place behind the last job that is booked, once it is known.
        self._last: int | None = None
        #: Of the first jobs, as many as were asked about: processors, a time before which the job starts in
        #: no case (absolute seconds), and whether its booking is owed.
        self._size: Ints = np.zeros(0, np.int64)
        self._bound: NDArray[np.float64] = np.zeros(0)
        self._owed: Bools = np.zeros(0, np.bool_)
        #: By place: what else than its length decides where a job fits.
        self._shapes: dict[int, tuple[Any, ...]] = {}
        #: Makes the timeline of what nodes had left when the first job could not start.
        self._slate: Callable[[], Timeline] | None = None
        #: How many bookings there were when they were handed out last.
        self._told = 0
        #: Jobs are being served: a caller that asks for bookings meanwhile has those that are made.
        self._making = False

    # ------------------------------------------------------------------ what a cycle does

    def go_on(self, jobs: Sequence[Job], reason: str) -> None:
        """Serve jobs that came behind all that were served before, when nothing else has happened."""
        view = self._view
        first, domain = len(self._jobs), view.domain
        self._cycles.append((view._cycle, first))
        self._jobs.extend(jobs)
        self._making = True
        try:
            for at, job in enumerate(jobs, first):
                if job.processors <= domain.free and job.status is _PENDING and self._starts(at, job, reason):
                    continue
                if self._slate is None:
                    self._slate = self._clean_slate()
                if not domain.free:
                    break
        finally:
            self._making = False

    def _starts(self, at: int, job: Job, reason: str) -> bool:
        """Start the job at this place if it can; whether it could."""
        view = self._view
        if len(self._booked) < self._waiting(at):
            if job.request.parts:
                self._clear(at, _INF)
            elif view._found_now(job) is None:
                # With more bookings it would not find its nodes either.
                return False
            else:
                self._clear(at, self._end_of(job, view.now))
        placement = view._found_now(job)
        if placement is None or view._begin(job, placement, reason) is None:
            return False
        self._begun.add(job)
        if at < len(self._owed):
            self._owed[at] = False
        return True

    def _waiting(self, at: int) -> int:
        """How many jobs before this place are booked, or are to be."""
        return int(min(at - len(self._begun), self.depth))

    def _clean_slate(self) -> Callable[[], Timeline]:
        view = self._view
        table, grid = view.nodes, view.resolution
        releases = Releases(view.domain.running, table, view.now, grid)
        return partial(Timeline, view.now, releases, table.free.copy(), table.total.copy(), grid)

    def _timeline(self) -> Timeline:
        """What nodes have left beside what was begun and booked."""
        view = self._view
        if view._ahead is None:
            assert self._slate is not None
            view._ahead, view._reach = self._slate(), {}
        timeline: Timeline = view._ahead
        return timeline

    # ------------------------------------------------------------------ what is in the way

    def _clear(self, last: int, end: float, check: Check = all_of_them) -> None:
        """Book jobs before the place ``last`` until no job there is owed that could start before ``end``.
        ``check`` is called before each of the longer steps, and may raise what ends this."""
        view = self._view
        # Each of these jobs is in the way of the one before it.
        goals = [_Goal(last, end)]
        while True:
            goal = goals[-1]
            check()
            other = self._in_the_way(goal.last, goal.end, check)
            if other is not None:
                goals.append(other)
                continue
            if len(goals) == 1:
                return
            job = self._jobs[goal.last]
            if goal.opening is None or goal.known != len(self._booked):
                # Some were booked, which may have been in its way.
                goal.opening, goal.known = view._opening(job, view.now, (), _INF), len(self._booked)
                end = self._end_of(job, goal.opening[0])
                if end > goal.end:
                    goal.end = end
                    continue
            self._book(goal.last, goal.opening)
            goals.pop()

    def _in_the_way(self, last: int, end: float, check: Check) -> _Goal | None:
        """The first job before the place ``last`` that is owed and could start before ``end``."""
        view = self._view
        if end <= view.now:
            return None
        most = self._timeline().most(view.now, end)
        last = self._booked_before(last)
        self._learn(last)
        could = self._owed[:last] & (self._bound[:last] < end) & (self._size[:last] <= most)
        for at in could.nonzero()[0].tolist():
            job = self._jobs[at]
            if job.request.parts:
                return _Goal(at, _INF)
            self._bound[at] = self._known_bound(at, job)
            if self._bound[at] >= end:
                continue
            check()
            opening = view._opening(job, view.now, (), end)
            if opening[0] < end:
                return _Goal(at, self._end_of(job, opening[0]), opening, len(self._booked))
            self._bound[at] = self._known_bound(at, job)
        return None

    def _known_bound(self, at: int, job: Job) -> float:
        """A time before which the job does not start: no job of the same shape that runs no longer does."""
        shape = self._shapes.get(at)
        if shape is None:
            shape = self._shapes[at] = self._view._shape_of(job)
        runtime, bound = job.expected_runtime, self._view.now
        for lasted, start in self._view._reach.get(shape, ()):
            if lasted <= runtime and start > bound:
                bound = start
        return bound

    def _booked_before(self, at: int) -> int:
        """The place behind the last job before this place that is booked, or is to be."""
        if self._last is None and at - len(self._begun) > self.depth:
            left = self.depth
            for place, job in enumerate(self._jobs):
                left -= job not in self._begun
                if not left:
                    self._last = place + 1
                    break
        return at if self._last is None else min(at, self._last)

    def _learn(self, count: int) -> None:
        """Write so many of the jobs into the arrays."""
        known = len(self._size)
        if known >= count:
            return
        jobs = self._jobs[known : max(count, 2 * known, _CHUNK)]
        # What is known of a job of several parts rules out nothing.
        several = [bool(job.request.parts) for job in jobs]
        size = [0 if parts else job.processors for job, parts in zip(jobs, several, strict=True)]
        bound = [-_INF if parts else self._view.now for parts in several]
        owed = [job not in self._begun and job not in self._booked for job in jobs]
        self._size = np.concatenate([self._size, np.array(size, np.int64)])
        self._bound = np.concatenate([self._bound, np.array(bound, np.float64)])
        self._owed = np.concatenate([self._owed, np.array(owed, np.bool_)])

    def _end_of(self, job: Job, start: float) -> float:
        """Until when nothing may happen beside the job, if it starts then, for it to be put where it would
        be in turn."""
        if job.request.parts:
            return _INF
        if start == _INF:
            return -_INF
        end = start + job.expected_runtime
        return rounded_up(end, self._view.resolution) if self._view.resolution else end

    def _book(self, at: int, opening: Opening) -> None:
        job = self._jobs[at]
        self._booked[job] = self._view._keep(job, opening)
        if at < len(self._owed):
            self._owed[at] = False

    # ------------------------------------------------------------------ what callers see

    @property
    def owed(self) -> int:
        """How many bookings are still to be made."""
        return max(0, self._waiting(len(self._jobs)) - len(self._booked))

    @property
    def owes(self) -> bool:
        """Whether bookings are still to be made."""
        return self.owed > 0

    @property
    def is_quick(self) -> bool:
        """Whether a booking is made in a short time, whatever it is."""
        view = self._view
        steps = len(view.running if view._ahead is None else view._ahead.times)
        return steps * len(view.nodes.names) <= _AMOUNTS

    @property
    def booked(self) -> int:
        """How many bookings are made."""
        return len(self._booked)

    def starts(self) -> Iterator[tuple[Job, float]]:
        """The jobs whose bookings are made, and their starts."""
        return ((job, booking.start) for job, booking in self._booked.items())

    def clear(self, end: float, check: Check) -> None:
        """Make the bookings that are owed to jobs that could start before ``end``, so that what nodes have
        left is known until then. ``check`` is called before each; what it raises passes through, and what was
        made by then stays."""
        if self._making or not self.owes:
            return
        self._making = True
        try:
            self._clear(self._booked_before(len(self._jobs)), end, check)
        finally:
            self._making = False

    def planned(self, job: Job, check: Check) -> tuple[float, Placement] | None:
        """When and where the job is to start, by its booking, which is made with those before it if it is
        owed; None: it gets none. ``check`` is as for :meth:`clear`."""
        if self.owes and not self._making and job not in self._booked:
            try:
                place = place_of(self._jobs, job)
            except ValueError:
                # It came since.
                return None
            self._make(self._booked_before(place + 1), check)
        made = self._booked.get(job)
        return None if made is None else (made.start, made.placement)

    def _make(self, last: int, check: Check) -> None:
        """Make the bookings that are owed to jobs before the place ``last``."""
        if check is not all_of_them and not self.is_quick:
            raise TooLarge
        view = self._view
        self._making = True
        try:
            check()
            self._timeline()
            for at in range(last):
                job = self._jobs[at]
                if job not in self._begun and job not in self._booked:
                    check()
                    self._book(at, view._opening(job, view.now, (), _INF))
        finally:
            self._making = False

    def make_owed(self, check: Check = all_of_them) -> None:
        """Make the bookings that are owed, and hand all of them out. ``check`` is as for :meth:`clear`."""
        if self._making:
            return
        last = self._booked_before(len(self._jobs))
        if self.owes:
            self._make(last, check)
        if self._told != len(self._booked):
            self._told = len(self._booked)
            self._hand_out(last)

    def _hand_out(self, last: int) -> None:
        """Put the view's bookings in the order in which they are made in turn, each with its cycle."""
        cycles = dict((first, cycle) for cycle, first in self._cycles)
        bookings = []
        cycle = behind = 0
        for at, job in enumerate(self._jobs[:last]):
            if at in cycles:
                cycle, behind = cycles[at], 0
            if job in self._begun:
                behind += 1
                continue
            booking = self._booked.get(job)
            if booking is None:
                continue
            booking.cycle, booking.behind = cycle, behind
            bookings.append(booking)
            if len(bookings) == len(self._booked):
                break
        self._view._bookings[:] = bookings
