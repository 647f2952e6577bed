"""What a policy sees of one pool, and what it can do there: start and book.

A policy that a paper describes over a plain count of processors runs unchanged on a cluster of
nodes, because both kinds of view answer the same two questions:

* :meth:`View.start`: can this job start now, without delaying what is booked and without
  breaking a reservation? If so it is started.
* :meth:`View.book`: when is the earliest that this job can start, given what runs, what is
  reserved and what was booked before? That capacity is then kept for it.

On a flat pool (:class:`FlatView`) the answers come from counts; with a single booking and no
reservations they are EASY's shadow time and extra processors. On a node pool (:class:`NodeView`)
they come from placements.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from headway.decisions import Start
from headway.errors import StateError
from headway.model import Placement, Request, Reservation
from headway.nodes import Bools, Free, Offer, memory_on_node
from headway.profile import Profile, next_after
from headway.sizes import JobsBySize
from headway.state import Status

if TYPE_CHECKING:
    from headway.state import Job, PoolState, RunningEntry, State

_INF = float("inf")
_order = attrgetter("order")


class Booking(msgspec.Struct, eq=False):
    """Capacity kept for a job that cannot start yet."""

    job: Job
    #: The job's earliest start (for a queue's head: the shadow time); infinity if it has none.
    start: float
    #: Processors that jobs running past ``start`` may use together without delaying it; an
    #: upper bound where placements decide.
    extra: int
    _clock: Callable[[float], str]
    #: On node pools: its nodes then, and what all nodes have left at that time.
    placement: Placement = ()
    room: Free | None = None
    #: The cycle of its view in which it was made, and how many jobs had been started in that by then.
    cycle: int = 0
    behind: int = 0
    _when: str = ""

    @property
    def when(self) -> str:
        """``start`` for a person."""
        if not self._when:
            self._when = self._clock(self.start)
        return self._when

    def __repr__(self) -> str:
        return f"Booking({self.job.id!r} at {self.start:g}, {self.extra} extra)"


class View:
    """The base of both kinds of view; lives as long as its pool.

    While nothing but arrivals at the queue's tail happened since the last cycle, ``fresh`` says
    how many arrived and the bookings of that cycle still stand. Otherwise ``fresh`` is -1, and
    the bookings are gone. A policy may use this to look at the new jobs only, or ignore it and
    look at the whole queue each time: unless it starts from a cleared slate
    (:meth:`forget`) it then finds its old bookings again through :meth:`book`.

    ``arrivals`` are the jobs that came into the queue since the last cycle, wherever in it an order
    put them, if nothing else happened; otherwise it is None.
    """

    __slots__ = (
        "_ahead", "_clock", "_cycle", "_state", "arrivals", "bookings", "fresh", "made", "now", "pool",
        "prepared", "queue", "rng", "started",
    )  # fmt: skip

    def __init__(
        self, pool: PoolState, state: State, clock: Callable[[float], str], rng: np.random.Generator
    ) -> None:
        self.pool = pool
        self._state = state
        self._clock = clock
        #: For policies that draw random numbers; seeded by the run.
        self.rng = rng
        self._cycle = 0
        self.now: float = 0.0
        #: Startable jobs in service order; not to be changed. Jobs started in this cycle are still in it.
        self.queue: Sequence[Job] = ()
        self.fresh: int = -1
        #: In queue order. What could not start before they came cannot start now.
        self.arrivals: list[Job] | None = None
        #: Bookings that stand, in the order in which they were made.
        self.bookings: list[Booking] = []
        #: How many of them, from the first on, plugins made before the policy was asked.
        self.prepared: int = 0
        #: Jobs started in this cycle.
        self.started: list[Job] = []
        #: The decisions that :meth:`start` made of them: what a policy returns.
        self.made: list[Start] = []
        #: What is free in the future (a Profile or a _Timeline), bookings taken out; made when it is needed.
        self._ahead: Any = None

    @property
    def free(self) -> int:
        """Processors free now."""
        return self.pool.free

    @property
    def total(self) -> int:
        """Usable processors."""
        return self.pool.total

    @property
    def running(self) -> Sequence[RunningEntry]:
        """``(expected end, seq, processors, job)`` by expected end, starts of this cycle included."""
        return self.pool.running

    @property
    def reservations(self) -> Sequence[Reservation]:
        return self.pool.reservations

    @property
    def profile(self) -> Profile:
        """Free processors over time, all bookings and reservations taken out; a copy."""
        profile = self._state.profile(self.pool)
        for booking in self.bookings:
            self._book_in(profile, booking)
        return profile

    def _book_in(self, profile: Profile, booking: Booking) -> None:
        if booking.start != _INF:
            job = booking.job
            start, end = booking.start, booking.start + job.expected_runtime
            profile.reserve(start, end, job.processors)
            kept = self._kept_for(job)
            if kept is not None:
                # What is reserved for it is what is booked for it: not to be counted twice.
                both = min(job.processors, self._state.size(self.pool, kept))
                profile.release(max(start, kept.start), min(end, kept.end), both)

    def _kept_for(self, job: Job) -> Reservation | None:
        """The reservation that headway keeps for the job alone, as far as it takes from this pool."""
        kept = self._state.kept_for(job) if self.pool.reservations else None
        return kept if kept in self.pool.reservations else None

    def _for(self, job: Job, profile: Profile, over: Collection[str] = ()) -> Profile:
        """The profile as the job may use it: with what is reserved for it alone, and what yields to it."""
        kept = self._kept_for(job)
        if kept is None and not over:
            return profile
        profile = profile.copy()
        for other in self.pool.reservations:
            if (other is kept or other.id in over) and other.end > self.now:
                profile.release(max(other.start, self.now), other.end, self._state.size(self.pool, other))
        return profile

    def clock(self, time: float) -> str:
        """A time for a person, for reasons."""
        return self._clock(time)

    def open(self, now: float, queue: Sequence[Job]) -> None:
        """Begin a cycle."""
        self._cycle += 1
        self.now = now
        self.queue = queue
        self.started = []
        self.made = []
        pool = self.pool
        if queue is pool.queue:
            self.fresh = fresh = pool.fresh
            self.arrivals = arrivals = pool.arrivals
            if arrivals and len(arrivals) > 1:
                arrivals.sort(key=_order)
        else:
            self.fresh = fresh = -1
            self.arrivals = None
        if fresh < 0:
            self.bookings = []
            self.prepared = 0
            self._ahead = None

    def forget(self) -> None:
        """Drop the policy's bookings; those that were prepared for it stay."""
        del self.bookings[self.prepared :]
        self._ahead = None

    def _unbook(self, booking: Booking) -> None:
        """A booked job starts: its booking is over."""
        at = self.bookings.index(booking)
        del self.bookings[at]
        if at < self.prepared:
            self.prepared -= 1

    def booked(self, job: Job) -> Booking | None:
        """The job's booking, if it has one."""
        for booking in self.bookings:
            if booking.job is job:
                return booking
        return None

    def fitting(self) -> Iterator[Job]:
        """The waiting jobs, in queue order, that need no more processors than are free when they come up.

        Start what it yields before asking for the next. Its cost grows with the number of different
        sizes and with what it yields, not with the length of the queue.
        """
        pool, pending = self.pool, Status.PENDING
        if self.queue is not pool.queue:
            # Some plugin's own order, of which there is no index.
            yield from (job for job in self.queue if job.processors <= pool.free and job.status is pending)
            return
        if pool.by_size is None:
            pool.by_size = JobsBySize(pool.queue)
        yield from (job for job in pool.by_size.fitting(pool) if job.status is pending)

    def start(self, job: Job, reason: str = "") -> Start | None:
        """Start ``job`` now if it fits and delays nothing that is booked or reserved.

        Returns the decision, or None (and nothing is changed) if it cannot start. A job that is
        itself booked can start once its time has come.
        """
        raise NotImplementedError

    def book(self, job: Job, after: float | None = None, over: Collection[str] = ()) -> Booking:
        """Keep the earliest possible capacity for ``job``, from ``after`` (absolute seconds) on if given.

        A job that has a booking keeps it. ``over`` names reservations that yield to the booking:
        whoever keeps them will move them. The job does not start before that.
        """
        raise NotImplementedError

    def stretch(self, job: Job, runtime: float, *, push: bool = False) -> bool:
        """Let a job that was started at this instant run for ``runtime`` seconds instead of its expected
        runtime (because of a lower frequency, say), if that delays nothing that is booked or reserved.

        ``push``: what this cycle booked after the job had been started, so behind it, gives way, and is
        booked anew in the next cycle. For a job that could not start otherwise.

        Returns whether it may; then it is expected to.
        """
        now = self._state.now
        if job.entries is None or job.start_time != now:
            return False
        before, after = now + job.expected_runtime, now + runtime
        own = self._state.reservations.get(job.description.reservation)
        if after > before:
            if own is not None and after > own.end:
                return False
            if not self._may_run_on(job, before, after) and not (push and self._may_push(job, before, after)):
                return False
        self._state.expect(job, runtime)
        return True

    def _may_push(self, job: Job, before: float, after: float) -> bool:
        """As :meth:`_may_run_on`, at the cost of what was booked behind the job."""
        if job not in self.started:
            return False  # not the policy's start
        bookings, ahead, at = self.bookings, self._ahead, self.started.index(job)
        kept = [b for b in bookings if b.cycle != self._cycle or b.behind <= at]
        if len(kept) == len(bookings):
            return False
        self.bookings, self._ahead = kept, None
        if not self._may_run_on(job, before, after):
            self.bookings, self._ahead = bookings, ahead
            return False
        # Nobody may conclude from it that older jobs have their bookings.
        self.pool.fresh, self.pool.arrivals = -1, None
        return True

    def _made(self, booking: Booking) -> Booking:
        """Note a booking."""
        booking.cycle, booking.behind = self._cycle, len(self.started)
        self.bookings.append(booking)
        return booking

    def _may_run_on(self, job: Job, before: float, after: float) -> bool:
        """Whether a job that was to end at ``before`` may end at ``after``; if so that is counted with."""
        raise NotImplementedError


class FlatView(View):
    """A view of a plain count of processors."""

    __slots__ = ()

    def start(self, job: Job, reason: str = "") -> Start | None:
        processors = job.processors
        if processors > self.pool.free:
            return None
        bookings = self.bookings
        if self._ahead is None and len(bookings) < 2 and not self.prepared and not self.pool.reservations:
            if bookings:
                booking = bookings[0]
                if booking.job is job:
                    if booking.start > self.now:
                        return None
                    self._unbook(booking)
                elif self.now + job.expected_runtime > booking.start:
                    if processors > booking.extra:
                        return None
                    booking.extra -= processors
        elif not self._fits_profile(job):
            return None
        self._state.begin(job, (), "foreground", None)
        self.started.append(job)
        start = Start(job.id, (), reason)
        self.made.append(start)
        return start

    def _fits_profile(self, job: Job) -> bool:
        now, end = self.now, self.now + job.expected_runtime
        own = self._state.reservations.get(job.description.reservation)
        if own is not None:
            if not own.start <= now < own.end or job.processors > self._state.kept(self.pool, own):
                return False
            if end > own.end and self._full_profile().minimum(own.end, end) < job.processors:
                return False
            self._ahead = None
            return True
        profile = self._full_profile()
        booking = self.booked(job)
        if booking is not None:
            if booking.start > now:
                return False
            # Its capacity is in the profile already, and stays there as the running job's.
            self._unbook(booking)
            return True
        if self._for(job, profile).minimum(now, end) < job.processors:
            return False
        if self._kept_for(job) is not None:
            # It takes what is reserved for it first.
            self._ahead = None
            return True
        profile.reserve(now, end, job.processors)
        return True

    def _full_profile(self) -> Profile:
        if self._ahead is None:
            self._ahead = self.profile
        return self._ahead

    def book(self, job: Job, after: float | None = None, over: Collection[str] = ()) -> Booking:
        pool, now = self.pool, self.now
        if after is None and not self.bookings and self._ahead is None and not pool.reservations:
            need = job.processors - pool.free
            start = now
            if need > 0:
                releases = iter(pool.running)
                for end, _, processors, _ in releases:
                    need -= processors
                    if need <= 0:
                        # Overdue: whoever holds them will leave any moment.
                        start = end if end > now else next_after(now)
                        break
                else:
                    start = _INF
                for end, _, processors, _ in releases:
                    if end > start:
                        break
                    need -= processors
            extra = -need if start != _INF else pool.total
            booking = Booking(job, start, extra, self._clock)
        else:
            known = self.booked(job)
            if known is not None:
                return known
            profile = self._full_profile()
            runtime = job.expected_runtime
            open_to_it = self._for(job, profile, over)
            start = open_to_it.earliest(job.processors, runtime, now if after is None else max(now, after))
            booking = Booking(job, start, pool.total, self._clock)
            if start != _INF:
                self._book_in(profile, booking)
                booking.extra = profile.free_at(start)
        return self._made(booking)

    def _may_run_on(self, job: Job, before: float, after: float) -> bool:
        processors = job.processors
        if self._ahead is None and len(self.bookings) < 2 and not self.prepared and not self.reservations:
            for booking in self.bookings:
                if before <= booking.start < after:
                    if processors > booking.extra:
                        return False
                    booking.extra -= processors
            return True
        profile = self._full_profile()
        if profile.minimum(before, after) < processors:
            return False
        profile.reserve(before, after, processors)
        return True


class NodeView(View):
    """A view of a pool of nodes."""

    __slots__ = ("_eligible", "_failed", "_kind", "_place")

    def __init__(
        self,
        *args: Any,
        place: Callable[[Job, Offer, View], Placement | None],
        kind: Callable[[Job], Any] | None = None,
    ) -> None:
        """``kind``: what of a job beside its shape decides where ``place`` puts it."""
        super().__init__(*args)
        self._place = place
        self._kind = kind
        self._eligible: dict[tuple[Any, ...], np.ndarray] = {}
        #: Shape of a request that found no place in this cycle -> the shortest runtime that failed.
        #: Unless bookings are dropped, free nodes only become fewer in a cycle, and a longer run meets
        #: more bookings and reservations, so what is as long or longer fails as well.
        self._failed: dict[tuple[Any, ...], float] = {}

    def open(self, now: float, queue: Sequence[Job]) -> None:
        super().open(now, queue)
        self._eligible = {}
        self._failed = {}

    def forget(self) -> None:
        super().forget()
        self._failed = {}

    def start(self, job: Job, reason: str = "") -> Start | None:
        if job.processors > self.pool.free:
            return None
        mine = self.booked(job)
        bookings = self.bookings
        if mine is not None:
            if mine.start > self.now:
                return None
            self.bookings = [booking for booking in bookings if booking is not mine]
            # What is left at the start of a booking that was made after it lacks what it keeps itself.
            self._ahead = self._timeline() if self.bookings else None
            self._failed = {}
        request = job.request
        shape = _shape(request, job.description.reservation)
        if self._kind is not None:
            shape = (*shape, self._kind(job))
        runtime = job.expected_runtime
        if mine is None and runtime >= self._failed.get(shape, _INF):
            return None
        placement = self._place_now(job, self.now + runtime)
        if placement is None:
            self._failed[shape] = runtime
            if mine is not None:
                self.bookings, self._ahead = bookings, None
            return None
        try:
            self._state.begin(job, placement, "foreground", None)
        except StateError as error:
            if job.status is not Status.PENDING:
                raise
            self._state.anomalies.append(f"a placement that cannot be had: {error}; not started")
            if mine is not None:
                self.bookings, self._ahead = bookings, None
            return None
        self.started.append(job)
        if mine is not None and bookings.index(mine) < self.prepared:
            self.prepared -= 1
        table = self._state.nodes
        nodes = [table.index[name] for name, _ in placement]
        counts = [count for _, count in placement]
        for booking in self.bookings:
            if booking.room is not None and self.now + runtime > booking.start:
                booking.room.take(request, nodes, counts)
                booking.extra -= sum(counts)
        if self._ahead is not None:
            self._ahead.reserve(self.now, self.now + runtime, request, nodes, counts)
        start = Start(job.id, placement, reason)
        self.made.append(start)
        return start

    def _place_now(self, job: Job, end: float) -> Placement | None:
        free = self._state.nodes.free
        if self._ahead is not None:
            free = self._ahead.window(self.now, end)
        else:
            for booking in self.bookings:
                if booking.room is not None and end > booking.start:
                    free = free.at_most(booking.room)
        return self._try(job, free, self.now, end)

    def _try(
        self, job: Job, free: Free, start: float, end: float, over: Collection[str] = ()
    ) -> Placement | None:
        """Where the job could run during [start, end) if nodes have ``free`` left."""
        table = self._state.nodes
        request = job.request
        key = (request.features, request.excluded_nodes)
        eligible = self._eligible.get(key)
        if eligible is None:
            eligible = self._eligible[key] = table.eligible(request, self.pool.name)
        on = table.on_by(start, self.now)
        if on is not None:
            eligible = eligible & on
        named, inside = job.description.reservation, self._state.inside(job)
        if inside != named:
            # Its own nodes first, so that what is reserved for it stays where it is.
            own = self._on(job, eligible, free, table.unreserved(start, end, inside))
            if own is not None:
                return own
        found = self._on(job, eligible, free, table.unreserved(start, end, inside, confined=bool(named)))
        if found is None and over:
            yielding = table.unreserved(start, end, inside, confined=bool(named), over=over)
            found = self._on(job, eligible, free, yielding)
        return found

    def _on(self, job: Job, eligible: Bools, free: Free, unreserved: Bools | None) -> Placement | None:
        """Where the job could run among ``eligible`` nodes that are ``unreserved``."""
        table = self._state.nodes
        request = job.request
        if unreserved is not None:
            eligible = eligible & unreserved
        slots = table.slots(request, eligible, free)
        if int(slots.sum()) < request.processors:
            return None
        placement = self._place(job, Offer(table, request, slots, free), self)
        if placement is not None and not self._offered(placement, free):
            # The placement plugin's mistake, not the policy's: other jobs may have a place.
            self._state.anomalies.append(f"job {job.id} was placed on {placement}, which was not offered")
            return None
        return placement

    def _offered(self, placement: Placement, free: Free) -> bool:
        index = self._state.nodes.index
        nodes = [index.get(name, -1) for name, _ in placement]
        return len(set(nodes)) == len(nodes) and all(
            node >= 0 and 0 < count <= free.processors[node]
            for node, (_, count) in zip(nodes, placement, strict=True)
        )

    def book(self, job: Job, after: float | None = None, over: Collection[str] = ()) -> Booking:
        known = self.booked(job)
        if known is not None:
            return known
        if not self.bookings and after is None:
            start, placement, room = self._first_opening(job, over)
        else:
            begin = self.now if after is None else max(self.now, after)
            start, placement, room = self._next_opening(job, begin, over)
        table = self._state.nodes
        booking = Booking(job, start, self.pool.total, self._clock)
        if room is not None:
            booking.placement = placement
            room.take(
                job.request,
                [table.index[name] for name, _ in placement],
                [count for _, count in placement],
            )
            booking.room = room
            booking.extra = int(room.processors[table.pool_mask(self.pool.name) & table.available].sum())
        # What failed so far failed without this booking; it fails with it as well, so the memo stands.
        return self._made(booking)

    def _first_opening(self, job: Job, over: Collection[str]) -> tuple[float, Placement, Free | None]:
        """The earliest time at which the job finds nodes, and what all nodes have then.

        Nodes only become freer with each expected end, so the first end at which it fits is found
        by bisection; reservations can only make it later, so the search goes on from there.
        """
        releases = _Releases(self.pool.running, self._state.nodes.index, self.now)
        free_now = self._state.nodes.free
        times = [self.now, *releases.times]
        runtime = job.expected_runtime

        def fits_empty(at: int) -> bool:
            """Whether it fits at times[at] if there were no reservations."""
            free = releases.free_at(at, free_now)
            table = self._state.nodes
            slots = table.slots(job.request, table.eligible(job.request, self.pool.name), free)
            offer = Offer(table, job.request, slots, free)
            return int(slots.sum()) >= job.processors and self._place(job, offer, self) is not None

        low, high = 0, len(times) - 1
        if not fits_empty(high):
            return _INF, (), None
        while low < high:
            middle = (low + high) // 2
            if fits_empty(middle):
                high = middle
            else:
                low = middle + 1
        moments = times[low:] + [r.end for r in self.pool.reservations if r.end > times[low]]
        moments += [t for t in self._state.nodes.on_times(self.now) if t > times[low]]
        own = self._state.reservations.get(job.description.reservation)
        if own is not None and own.start > times[low]:
            moments.append(own.start)
        for moment in sorted(set(moments)):
            free = releases.free_at(bisect_right(times, moment) - 1, free_now)
            placement = self._try(job, free, moment, moment + runtime, over)
            if placement is not None:
                return moment, placement, free
        return _INF, (), None

    def _next_opening(
        self, job: Job, after: float, over: Collection[str]
    ) -> tuple[float, Placement, Free | None]:
        """As :meth:`_first_opening` when other jobs are booked already: node by node over time."""
        table = self._state.nodes
        if self._ahead is None:
            self._ahead = self._timeline()
        timeline = self._ahead
        runtime = job.expected_runtime
        moments = {t for t in timeline.times if t > after} | {after}
        moments.update(r.end for r in self.pool.reservations if r.end > after)
        moments.update(t for t in table.on_times(self.now) if t > after)
        own = self._state.reservations.get(job.description.reservation)
        if own is not None and own.start > after:
            moments.add(own.start)
        for moment in sorted(moments):
            free = timeline.window(moment, moment + runtime)
            placement = self._try(job, free, moment, moment + runtime, over)
            if placement is not None:
                free = free.copy()
                nodes = [table.index[name] for name, _ in placement]
                timeline.reserve(
                    moment, moment + runtime, job.request, nodes, [count for _, count in placement]
                )
                return moment, placement, free
        return _INF, (), None

    def _timeline(self) -> _Timeline:
        """What every node has left over time, all bookings taken out."""
        index = self._state.nodes.index
        timeline = _Timeline(self.now, _Releases(self.pool.running, index, self.now), self._state.nodes.free)
        for booking in self.bookings:
            if booking.room is not None:
                timeline.book(booking, index)
        return timeline

    def _may_run_on(self, job: Job, before: float, after: float) -> bool:
        table = self._state.nodes
        if table.broken(job.placement, before, after, self._state.inside(job)) is not None:
            return False
        nodes = [table.index[name] for name, _ in job.placement]
        counts = [count for _, count in job.placement]
        if self._ahead is not None:
            if not self._ahead.window(before, after).has(job.request, nodes, counts):
                return False
            self._ahead.reserve(before, after, job.request, nodes, counts)
        met = [b for b in self.bookings if b.room is not None and before <= b.start < after]
        if not all(b.room.has(job.request, nodes, counts) for b in met if b.room is not None):
            return False
        for booking in met:
            if booking.room is not None:
                booking.room.take(job.request, nodes, counts)
                booking.extra -= sum(counts)
        return True


def _shape(request: Request, reservation: str) -> tuple[Any, ...]:
    """All of a request that decides where it fits, without its walltime."""
    return (
        request.processors, request.nodes, request.processors_per_node, request.memory_per_node,
        request.memory_per_processor, request.gres_per_node, request.features, request.required_nodes,
        request.excluded_nodes, request.exclusive, request.processors_per_chunk, reservation,
    )  # fmt: skip


class _Releases:
    """What the running jobs give back, and when, as flat arrays."""

    def __init__(self, running: Sequence[RunningEntry], index: dict[str, int], now: float) -> None:
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
            elif self.times and end < self.times[-1]:
                end = self.times[-1]
            request = job.taken if job.taken is not None else job.request
            for name, count in job.placement:
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


class _Timeline:
    """What every node has left, from time to time: the profile of a node pool.

    One :class:`~headway.nodes.Free` a step, so its memory is steps times nodes; only policies that
    book several jobs (conservative backfilling) need it.
    """

    def __init__(self, now: float, releases: _Releases, free: Free) -> None:
        self.times = [now, *releases.times]
        self.levels = [releases.free_at(step, free) for step in range(len(self.times))]

    def window(self, start: float, end: float) -> Free:
        """The least that each node has at any moment of [start, end)."""
        first = max(bisect_right(self.times, start) - 1, 0)
        level = self.levels[first]
        for step in range(first + 1, len(self.times)):
            if self.times[step] >= end:
                break
            level = level.at_most(self.levels[step])
        return level

    def reserve(
        self, start: float, end: float, request: Request, nodes: Sequence[int], counts: Sequence[int]
    ) -> None:
        first, last = self._cut(start), self._cut(end)
        for step in range(first, last):
            self.levels[step].take(request, nodes, counts)

    def book(self, booking: Booking, index: dict[str, int]) -> None:
        """Take out what an earlier booking keeps."""
        job = booking.job
        self.reserve(
            booking.start,
            booking.start + job.expected_runtime,
            job.request,
            [index[name] for name, _ in booking.placement],
            [count for _, count in booking.placement],
        )

    def _cut(self, time: float) -> int:
        step = bisect_right(self.times, time) - 1
        if step < 0:
            return 0
        if self.times[step] != time:
            step += 1
            self.times.insert(step, time)
            self.levels.insert(step, self.levels[step - 1].copy())
        return step
