"""What is free now, and for how long, for a job that comes behind all that wait: Maui's backfill windows.

A hole is what such a job could have from now on without delaying a booking, as
:meth:`headway.view.View.start` looks at it: the least that is left at any moment until the job's end, of what
running jobs, bookings and reservations leave. The longer the time, the smaller is the hole; of holes of one
size the longest is told.

Bookings that are owed (:mod:`headway.view.turns`, :mod:`headway.view.node_turns`) are made first as far as
they can be in the way, in the order of the ends that they could be in the way of. The caller says when it is
enough: then the holes are right up to a time, and nothing is said of what is behind it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from headway.model import Placement, Request
from headway.resources import Free
from headway.resources.profile import Profile, next_after
from headway.state import Job, PoolState
from headway.view.ahead import coarsened
from headway.view.flat import FlatView
from headway.view.interface import View
from headway.view.nodes import NodeView
from headway.view.owed import Check, Enough, none_more
from headway.view.turns import shadow

_INF = float("inf")
#: Seconds from now on: up to each, the bookings are made that can be in the way, then up to the next.
_AHEAD = (300.0, 1800.0, 7200.0, 21600.0, 86400.0, 4 * 86400.0, 14 * 86400.0, _INF)


class Hole(NamedTuple):
    """What can be had from now on."""

    processors: int
    #: Nodes that have what is asked for on each; of a flat pool 0.
    nodes: int
    #: Absolute seconds; infinity: without limit.
    until: float


class Holes(NamedTuple):
    """The holes of a pool, the largest first."""

    holes: tuple[Hole, ...]
    #: Longer holes are not known, because bookings are owed that may be in the way; infinity: all are known.
    known_until: float


class _Turns(Protocol):
    """Jobs that are served in turn, and whose bookings may be owed."""

    @property
    def owes(self) -> bool: ...
    @property
    def booked(self) -> int: ...
    @property
    def is_quick(self) -> bool: ...
    def clear(self, end: float, check: Check) -> None: ...
    def planned(self, job: Job, check: Check) -> tuple[float, Placement] | None: ...
    def starts(self) -> Iterable[tuple[Job, float]]: ...


def holes(view: View, pool: PoolState, wanted: Request, check: Check, booking: Check) -> Holes:
    """The holes of a pool of the view's domain. ``wanted``: what each node must have: processors
    (``processors_per_node``; 0: all of its own), memory, generic resources, features. ``check`` raises
    :class:`Enough` once the answer is to come, ``booking`` once no more bookings that are owed are to be
    made. Nothing that is decided later changes."""
    now = view._state.now
    if view.domain.free <= 0 or not pool.open:
        return Holes((), _INF)
    known = _cleared(view, now, booking)
    if isinstance(view, FlatView):
        return Holes(tuple(_of_processors(view, now, known)), known)
    assert isinstance(view, NodeView)
    return _of_nodes(view, pool, wanted, now, known, check)


def planned(view: View, job: Job, check: Check) -> tuple[float, Placement] | None:
    """When and where a job of the view's queue is to start, by its booking; None: it has none. Of bookings
    that are owed, those of the job and of jobs before it are made. ``check`` is as for :func:`holes`."""
    turns = cast("_Turns | None", view._turns)
    if turns is not None:
        return turns.planned(job, check)
    booking = view.booked(job)
    return None if booking is None else (booking.start, booking.placement)


def starts_made(view: View) -> Iterable[tuple[Job, float]]:
    """The jobs whose bookings are made, and their starts (absolute seconds), in any order; none is made."""
    turns = cast("_Turns | None", view._turns)
    return turns.starts() if turns is not None else [(one.job, one.start) for one in view._bookings]


def is_made(view: View, job: Job) -> bool:
    """Whether the job's booking is made; none is made for the answer."""
    try:
        return planned(view, job, none_more) is not None
    except Enough:
        return False


def _cleared(view: View, now: float, check: Check) -> float:
    """Make bookings that are owed; up to which time no further booking is in any hole's way."""
    # Nothing becomes free before the first expected end, so no waiting job starts before.
    first = max(view.running[0][0], next_after(now)) if view.running else _INF
    if view.domain.news.due:
        # Batch mode: the policy has not looked at what happened.
        return first
    turns = cast("_Turns | None", view._turns)
    if turns is None:
        return max(first, _before_new(view, now, len(view._bookings)))
    if turns.owes and not turns.is_quick:
        return first
    known = first
    try:
        for seconds in _AHEAD:
            if now + seconds > first:
                turns.clear(now + seconds, check)
                known = now + seconds
    except Enough:
        pass
    return min(known, max(first, _before_new(view, now, _INF if turns.owes else turns.booked)))


def _before_new(view: View, now: float, booked: float) -> float:
    """Until when no booking can begin of the jobs that came since the policy was asked, because none of them
    could start (:meth:`headway.state.news.News.came`); infinity if they will not be booked.

    ``booked``: so many jobs are. Where a job waits without a booking, and is owed none, no job behind it gets
    one.
    """
    domain = view.domain
    count = domain.news.fresh
    if count <= 0 or booked < len(domain.queue) - count:
        return _INF
    new = domain.queue[-count:]
    processors = min([job.processors for job in new])
    if isinstance(view, FlatView):
        return _beside_bookings(view).earliest(processors, min([job.expected_runtime for job in new]), now)
    if view._ahead is not None:
        return view._ahead.first_with(processors, now)
    return shadow(processors, now, domain.free, domain.running, view.resolution)[0]


# ---------------------------------------------------------------------- a count of processors


def _of_processors(view: FlatView, now: float, known: float) -> Iterator[Hole]:
    ahead = _beside_bookings(view)
    left = min(ahead.free_at(now), view.domain.free)
    for time, later in zip(ahead.times, ahead.free, strict=True):
        if time >= known or left <= 0:
            break
        if time > now and later < left:
            yield Hole(left, 0, time)
            left = later
    if left > 0:
        yield Hole(left, 0, known)


def _beside_bookings(view: FlatView) -> Profile:
    """What is free beside what runs, is reserved and is booked."""
    if view._turns is not None:
        known: Profile = view._turns.profile()
        return known
    if view._ahead is not None:
        ahead: Profile = view._ahead
        return ahead
    return coarsened(view.profile, view.resolution) if view.resolution else view.profile


# ---------------------------------------------------------------------- nodes


def _of_nodes(
    view: NodeView, pool: PoolState, wanted: Request, now: float, known: float, check: Check
) -> Holes:
    found = list[Hole]()
    fits = _Fits(view, pool, wanted, now)
    free, left, at = view.nodes.free, (0, 0), now
    for time, changes in groupby(_changes(view, fits.reserved, now, known), itemgetter(0)):
        if time > now:
            if at > now and not _goes_on(check):
                known = at
                break
            here = fits.count(free, time)
            if at > now and here != left:
                found.append(Hole(*left, at))
            left, at = here, time
            if not left[0]:
                break
        for _, later in changes:
            free = free if later is None else free.at_most(later)
    if left[0]:
        found.append(Hole(*left, at))
    return Holes(tuple(found), known)


def _goes_on(check: Check) -> bool:
    try:
        check()
    except Enough:
        return False
    return True


class _Fits:
    """Counts the nodes of a pool that have what is wanted."""

    def __init__(self, view: NodeView, pool: PoolState, wanted: Request, now: float) -> None:
        self._table = table = view.nodes
        self._wanted = wanted
        self._usable = table.eligible(wanted, pool.name)
        for mask in (table.on_by(now, now), view._settled):
            if mask is not None:
                self._usable = self._usable & mask
        #: Of each node, from when on it is reserved; infinity: it is not.
        self.reserved = np.full(len(table.total), _INF)
        for node, kept in table.reservations.items():
            self.reserved[node] = min([max(one.start, now) for one in kept if one.end > now], default=_INF)
        self._each = wanted.processors_per_node
        beside = wanted.gres_per_node or wanted.memory_per_node
        self._least = self._each or (1 if beside else table.total)

    def count(self, free: Free, until: float) -> tuple[int, int]:
        """Of what is left until a time: processors, and nodes that have what is wanted."""
        slots = self._table.slots(self._wanted, self._usable & (self.reserved >= until), free)
        if self._each:
            slots = np.where(slots >= self._each, slots, 0)
        return int(slots.sum()), int(((slots >= self._least) & (slots > 0)).sum())


def _changes(
    view: NodeView, reserved: NDArray[np.float64], now: float, known: float
) -> Iterable[tuple[float, Free | None]]:
    """When nodes have less than before, or reservations begin, and what nodes have then; ``known`` is the
    last of these times."""
    found: list[tuple[float, Free | None]] = [
        (time, None) for time in set(reserved[reserved < _INF].tolist())
    ]
    if view._ahead is not None:
        found += view._ahead.levels_from(now)
    else:
        found += [(booking.start, booking.room) for booking in view._bookings if booking.room is not None]
    return sorted([*((time, free) for time, free in found if time < known), (known, None)], key=itemgetter(0))
