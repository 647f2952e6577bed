"""Starts and bookings on nodes, one by one: answers come from placements.

A job may have the nodes of its pool. A job that was sent to several pools of the domain is tried in each
pool. It starts or is booked in the pool where it can start first; of equal pools, in the pool that its user
named first.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np

from headway.decisions import Migrate, Start, SwapTiers
from headway.errors import StateError
from headway.model import Placement
from headway.resources import Free
from headway.state import Status
from headway.state.choices import in_any_way, ways
from headway.view.ahead import rounded_up
from headway.view.booking import Booking
from headway.view.node_fits import NodeFits
from headway.view.releases import Releases
from headway.view.timeline import Timeline

if TYPE_CHECKING:
    from headway.state import Job

_INF = float("inf")
#: When a job can start, where, and what all nodes have then. The start is infinity if it never can.
Opening = tuple[float, Placement, Free | None]
#: For so many kinds of requests it is kept from one cycle to the next which nodes they may use.
_KEPT = 256


class NodePlans(NodeFits):
    """A view of a domain of nodes that serves one job after the other."""

    __slots__ = ()

    def open(self, now: float, queue: Sequence[Job]) -> None:
        if self.domain.news.fresh >= 0 and self._state.nodes.power and self._overslept(now):
            self.domain.news.nothing_stands()
        super().open(now, queue)
        self._settled = self._settled_nodes()
        self._failed = {}
        table = self._state.nodes
        if self._known != table.told or len(self._eligible) > _KEPT:
            self._known = table.told
            self._eligible = {}
            self._bits = {}
            self._largest = int(table.total.max()) if len(table.total) else 0
            ours = table.pool_mask(*self.domain.pool_names)
            self._usable = (ours & table.available).astype(np.int64)

    def forget(self) -> None:
        super().forget()
        self._failed = {}

    def _moved(self, decision: SwapTiers | Migrate) -> bool:
        moved = super()._moved(decision)
        if moved and self._state.cluster.moves_take_time:
            self._settled = self._settled_nodes()
        return moved

    def start(self, job: Job, reason: str = "") -> Start | None:
        self._leave_turns()
        if not job.choices:
            return self._start(job, reason)
        return in_any_way(job, self.domain, lambda: self._start(job, reason))

    def _start(self, job: Job, reason: str) -> Start | None:
        """As :meth:`start`, in the pool that the job faces."""
        # A barred job is to leave the queue, large or small: it may be in other jobs' way.
        if self._state.is_barred(job) or job.processors > self.domain.free:
            return None
        if self._state.licences is not None and not self._may_have_licences(job):
            return None
        mine = self.booked(job)
        bookings = self._bookings
        if mine is not None:
            if mine.start > self.now:
                return None
            self._bookings = [booking for booking in bookings if booking is not mine]
            # What is left at the start of a booking that was made after it lacks what it keeps itself.
            self._ahead = self._timeline() if self._bookings else None
            self._failed = {}
        placement = self._found_now(job, anew=mine is not None)
        start = None if placement is None else self._begin(job, placement, reason)
        if start is None:
            if mine is not None:
                self._bookings, self._ahead = bookings, None
            return None
        if mine is not None and bookings.index(mine) < self.prepared:
            self.prepared -= 1
        return start

    def _found_now(self, job: Job, *, anew: bool = False) -> Placement | None:
        """Where the job can start now; None: nowhere. ``anew``: whatever was found out in this cycle."""
        shape, runtime = self._shape_of(job), job.expected_runtime
        if not anew and (runtime >= self._failed.get(shape, _INF) or self._is_nowhere(shape)):
            return None
        placement = self._place_now(job, self.now + runtime)
        if placement is None:
            self._failed[shape] = runtime
            alone = not anew and not self._bookings and self._ahead is None and self._settled is None
            if alone and self._by_room():
                self._note_nowhere(shape)
        return placement

    def _begin(self, job: Job, placement: Placement, reason: str) -> Start | None:
        """Start the job there; None, and an anomaly, if the job cannot have the placement."""
        try:
            self._state.begin(job, placement, "foreground", None)
        except StateError as error:
            if job.status is not Status.PENDING:
                raise
            self._state.anomalies.append(f"an impossible placement: {error}; not started")
            return None
        self.started.append(job)
        if self._bookings or self._ahead is not None:
            self._take_ahead(job, placement, self.now + job.expected_runtime)
        start = Start(job.id, placement, reason)
        self.made.append(start)
        return start

    def _take_ahead(self, job: Job, placement: Placement, end: float) -> None:
        """The job that starts now has its processors until ``end`` of what is left for bookings."""
        place = self._state.nodes.locate(placement)
        for booking in self._bookings:
            if booking.room is not None and end > booking.start:
                booking.room.take_at(job.request, place)
                booking.extra -= place.processors
        if self._ahead is not None:
            self._ahead.reserve(self.now, end, job.request, place)

    def _place_now(self, job: Job, end: float) -> Placement | None:
        free = self._state.nodes.free
        if self._ahead is not None:
            whole, nodes = self._whole_nodes(job.request), self._eligible_bits(job)
            if self._ahead.fitless(self.now, end, job.request.processors, whole, nodes) > self.now:
                return None
            # What was started in this cycle for no time at all is there for no moment of what is ahead.
            free = free.at_most(self._ahead.window(self.now, end))
        else:
            for booking in self._bookings:
                if booking.room is not None and end > booking.start:
                    free = free.at_most(booking.room)
        return self._try(job, free, self.now, end, among=self._settled)

    def _opening_alone(self, job: Job) -> tuple[float, Placement]:
        start, placement, _ = self._first_opening(job, (), _INF)
        return start, placement

    def _place_without(
        self,
        job: Job,
        gone: Collection[Job],
        over: Callable[[Job], bool] | None,
        lent: Collection[Job],
        mine: Job,
    ) -> Placement | None:
        if not self._licences_without(job, gone, over, mine):
            return None
        now = self._state.now
        end = now + job.expected_runtime
        if mine is not job and self._ahead is not None and over is None and not (gone or lent):
            free = self._state.nodes.free.at_most(self._ahead_beside(self.booked(mine), now, end))
        else:
            free = self._free_without(mine, end, gone, over, lent)
        return self._try(job, free, now, end, among=self._settled)

    def _free_without(
        self,
        mine: Job,
        end: float,
        gone: Collection[Job],
        over: Callable[[Job], bool] | None,
        lent: Collection[Job],
    ) -> Free:
        """What each node would have left until ``end``, bookings taken out: see :meth:`place_without`."""
        free = self._state.nodes.free.copy()
        for other in gone:
            self._give_back(other, free)
        for other in lent:
            self._lend(other, free)
        own: Booking | None = None
        for booking in self.bookings:
            if booking.job is mine:
                own = booking
                continue
            yields = over is not None and over(booking.job)
            if not yields and booking.room is not None and end > booking.start:
                room = booking.room.copy()
                if own is not None and own.start <= booking.start < own.start + mine.expected_runtime:
                    # It was made after the job's own, so it lacks what that keeps.
                    room.take_at(mine.request, self._state.nodes.locate(own.placement, passing=True), -1)
                for other in gone:
                    if other.expected_end > booking.start:
                        self._give_back(other, room)
                for other in lent:
                    if other.expected_end > booking.start:
                        self._lend(other, room)
                free = free.at_most(room)
        return free

    def _ahead_beside(self, own: Booking | None, start: float, end: float) -> Free:
        """What each node has left at any moment of [start, end), as if this booking had not been made."""
        timeline: Timeline = self._ahead
        if own is None or own.room is None or not own.start < end:
            return timeline.window(start, end)
        over = own.start + own.job.expected_runtime
        over = rounded_up(over, self.resolution) if self.resolution else over
        begins = max(start, own.start)
        free = timeline.window(begins, min(over, end))
        free.take_at(own.job.request, self._state.nodes.locate(own.placement, passing=True), -1)
        if start < begins:
            free = free.at_most(timeline.window(start, begins))
        return free.at_most(timeline.window(over, end)) if over < end else free

    def _book(self, job: Job, after: float | None, over: Collection[str], latest: float) -> Booking | None:
        self._leave_turns()
        known = self.booked(job)
        if known is not None:
            return known
        opening = self._opening_in_any(job, after, over, latest)
        return None if opening[0] > latest else self._keep(job, opening)

    def _keep(self, job: Job, opening: Opening) -> Booking:
        """Book the job at its opening."""
        start, placement, room = opening
        if self._state.licences is not None and job.request.licences and start != _INF:
            self._licences().take(job, start, start + job.expected_runtime)
        table = self._state.nodes
        booking = Booking(job, start, self.domain.total, self._clock)
        if room is not None:
            booking.placement = placement
            place = table.locate(placement, passing=True)
            if self._ahead is not None:
                self._ahead.book(booking, place)
            room.take_at(job.request, place)
            booking.room = room
            booking.extra = int(room.processors @ self._usable)
        # What failed so far failed without this booking; it fails with it as well, so the memo stands.
        return self._made(booking)

    def _opening_in_any(self, job: Job, after: float | None, over: Collection[str], latest: float) -> Opening:
        """The earliest opening by ``latest`` in any of the job's pools; the job faces that pool then."""
        if not job.choices:
            return self._opening(job, after, over, latest)
        found: Opening = (_INF, (), None)
        first = job.pool
        for pool in ways(job, self.domain):
            job.pool = pool
            opening = self._opening(job, after, over, min(latest, found[0]))
            if opening[0] < found[0]:
                found, first = opening, pool
        job.pool = first
        return found

    def _opening(self, job: Job, after: float | None, over: Collection[str], latest: float) -> Opening:
        """The earliest opening by ``latest`` in the pool that the job faces: when, where, and what all nodes
        have then. The start is infinity if there is none."""
        licensed = self._state.licences is not None and bool(job.request.licences)
        if not self._bookings and after is None and not licensed:
            return self._first_opening(job, over, latest)
        begin = self.now if after is None else max(self.now, after)
        return self._next_opening(job, begin, over, latest)

    def _first_opening(self, job: Job, over: Collection[str], latest: float) -> Opening:
        """The earliest time by ``latest`` at which the job finds nodes, and what all nodes have then.

        Reservations can only make it later than the first time at which it fits beside what runs, so the
        search goes on from there.
        """
        table = self._state.nodes
        releases = Releases(self.domain.running, table, self.now, self.resolution)
        free_now = table.free
        steps = [self.now, *releases.times]

        def free_at(moment: float) -> Free:
            return releases.free_at(bisect_right(steps, moment) - 1, free_now)

        enough = releases.first_with(job.processors, free_now)
        least = steps[enough] if enough < len(steps) else _INF
        times, found = self._first_fit(job, steps, least, free_at)
        if found is None:
            return _INF, (), None
        at, where, room = found
        first = times[at]
        if table.unbound:
            # No node is reserved or asleep: the job fits there in any case.
            return (first, where, room) if first <= latest else (_INF, (), None)
        moments = times[at:] + [r.end for r in self.domain.reservations if r.end > first]
        moments += [t for t in table.on_times(self.now) if t > first]
        own = self._state.reservations.get(job.description.reservation)
        if own is not None and own.start > first:
            moments.append(own.start)
        for moment in sorted(set(moments)):
            if moment > latest:
                break
            free = free_at(moment)
            placement = self._try(job, free, moment, moment + job.expected_runtime, over)
            if placement is not None:
                return moment, placement, free
        return _INF, (), None

    def _first_fit(
        self, job: Job, steps: list[float], least: float, free_at: Callable[[float], Free]
    ) -> tuple[list[float], tuple[int, Placement, Free] | None]:
        """The moments at which what is free changes (``steps``) or placements do, and the first of them from
        ``least`` on at which the job fits beside what runs: its place in the list, where, and what is free.

        Nodes only become freer with each expected end, so between two moments at which placements change the
        first end at which it fits is found by steps that double, from the first at which all nodes together
        have enough, and then by bisection.
        """
        changes = self._changing(job)
        times = sorted({*steps, *changes}) if changes else steps
        #: The earliest that was found.
        found: tuple[int, Placement, Free] | None = None

        def fits(at: int) -> bool:
            nonlocal found
            free = free_at(times[at])
            placement = self._on(job, self._eligible_nodes(job), free, None, times[at])
            if placement is None:
                return False
            found = at, placement, free
            return True

        low = bisect_left(times, least)
        # What is open at a moment may be shut from the next change on.
        for end in sorted({bisect_left(times, change) for change in changes} | {len(times)}):
            high, step = low, 1
            while high < end and not fits(high):
                low = high + 1
                high = end if low == end else min(high + step, end - 1)
                step *= 2
            if found is not None:
                break
        if found is None:
            return times, None
        while low < high:
            middle = (low + high) // 2
            if fits(middle):
                high = middle
            else:
                low = middle + 1
        return times, found

    def _next_opening(self, job: Job, after: float, over: Collection[str], latest: float) -> Opening:
        """As :meth:`_first_opening` when other jobs are booked already: node by node over time."""
        table = self._state.nodes
        if self._ahead is None:
            self._ahead = self._timeline()
        timeline = self._ahead
        runtime = job.expected_runtime
        further = [r.end for r in self.domain.reservations]
        further += table.on_times(self.now)
        further += self._changing(job)
        own = self._state.reservations.get(job.description.reservation)
        if own is not None:
            further.append(own.start)
        licences = None
        if self._state.licences is not None and job.request.licences:
            licences = self._licences()
            further += licences.times(job)
        shape = self._shape_of(job)
        plain = licences is None and not over and after == self.now and self._state.inside(job) == ""
        known = self._reach.setdefault(shape, []) if plain else []
        # A job of the same shape that runs no longer found nothing before.
        least = max((start for lasted, start in known if lasted <= runtime), default=after)
        processors, whole = job.request.processors, self._whole_nodes(job.request)
        eligible, nodes = self._eligible_nodes(job), self._eligible_bits(job)
        found: Opening = (_INF, (), None)
        moments: Sequence[float] = [least, *timeline.times[bisect_right(timeline.times, least) :]]
        if further:
            moments = sorted({*moments, *(moment for moment in further if moment > least)})
        at = 0
        while (at := bisect_left(moments, least, at)) < len(moments) and (moment := moments[at]) != _INF:
            at += 1
            if moment > latest:
                # Where it would start later is not known.
                _note(known, runtime, moment)
                return found
            if licences is not None and not licences.fits(job, moment, moment + runtime):
                continue
            least = timeline.fitless(moment, moment + runtime, processors, whole, nodes)
            if least > moment:
                continue
            free = timeline.room_for(moment, moment + runtime, processors, eligible)
            if free is None:
                least = timeline.begin_after(moment, moment + runtime, processors, eligible)
                continue
            placement = self._try(job, free, moment, moment + runtime, over)
            if placement is not None:
                found = moment, placement, free
                break
        _note(known, runtime, found[0])
        return found

    def _may_run_on(self, job: Job, before: float, after: float) -> bool:
        table = self._state.nodes
        if table.broken(job.placement, before, after, self._state.inside(job)) is not None:
            return False
        place = table.locate(job.placement)
        if self.resolution:
            before = rounded_up(before, self.resolution)
            if after <= before:
                return True
        if self._ahead is not None:
            if not self._ahead.window(before, after).has(job.request, place.nodes, place.counts):
                return False
            self._ahead.reserve(before, after, job.request, place)
        met = [b for b in self._bookings if b.room is not None and before <= b.start < after]
        if not all(b.room.has(job.request, place.nodes, place.counts) for b in met if b.room is not None):
            return False
        for booking in met:
            if booking.room is not None:
                booking.room.take_at(job.request, place)
                booking.extra -= place.processors
        return True


def _note(known: list[tuple[float, float]], runtime: float, start: float) -> None:
    """Remember that a job of this length starts no sooner, in place of what that makes superfluous."""
    known[:] = [one for one in known if one[0] < runtime or one[1] > start]
    known.append((runtime, start))
