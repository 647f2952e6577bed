"""What a policy sees of a plain count of processors: answers come from the availability profile."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from headway.decisions import Start
from headway.model import Placement
from headway.resources.profile import Profile, next_after
from headway.state import Job
from headway.view.ahead import Ahead, coarsened, rounded_up
from headway.view.booking import Booking
from headway.view.interface import View
from headway.view.turns import Turns, released, shadow

_INF = float("inf")


class FlatView(View):
    """A view of a plain count of processors."""

    __slots__ = ()

    def serve(self, jobs: Sequence[Job], reason: str = "", depth: int | None = None) -> None:
        domain = self.domain
        turns: Turns | None = self._turns
        # A booking of no length takes nothing from a profile, and all from what is told by its start alone.
        # Where jobs may be barred, each start is asked about.
        # Turns know processors only.
        turns_alone = self._state.bars is None and self._state.licences is None
        if self.queue is domain.queue and turns_alone and not self.started and not self._by_size().instant:
            most = _INF if depth is None else depth
            if turns is not None:
                if self._served == self._cycle - 1 and len(jobs) == self.fresh and turns.depth == most:
                    self._served = self._cycle
                    turns.go_on(jobs, reason)
                    return
            elif (
                len(jobs) == len(domain.queue)
                and self._ahead is None
                and not (self._bookings or self._state.reservations)
            ):
                self._turns, self._served = Turns(self, jobs, most, self._begin), self._cycle
                self._turns.serve(reason)
                return
        self._leave_turns()
        super().serve(jobs, reason, depth)

    def start(self, job: Job, reason: str = "") -> Start | None:
        processors = job.processors
        # A barred job is to leave the queue, large or small: it may be in other jobs' way.
        if (self._state.bars is not None and self._state.is_barred(job)) or processors > self.domain.free:
            return None
        if self._state.licences is not None and not self._may_have_licences(job):
            return None
        if self._turns is not None:
            self._leave_turns()
        bookings = self._bookings
        if self._ahead is None and len(bookings) < 2 and not self.prepared and not self.domain.reservations:
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
        elif len(bookings) == 1:
            start = self._begin(job, reason)
            self._count_anew()
            return start
        return self._begin(job, reason)

    def _count_anew(self) -> None:
        """Say what the only booking leaves at its start, where the profile tells that."""
        booking = self._bookings[0]
        if booking.start != _INF:
            booking.extra = self._full_profile().free_at(booking.start)

    def _begin(self, job: Job, reason: str) -> Start:
        """Start a job that may."""
        self._state.begin(job, (), "foreground", None, allowed=True)
        self.started.append(job)
        start = Start(job.id, (), reason)
        self.made.append(start)
        return start

    def _fits_profile(self, job: Job) -> bool:
        now, end = self.now, self.now + job.expected_runtime
        own = self._state.confining(job)
        if own is not None:
            if not own.start <= now < own.end or job.processors > self._state.kept(self.domain, own):
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

    def _full_profile(self) -> Ahead:
        if self._ahead is None:
            now, domain = self._state.now, self.domain
            if domain.reservations:
                profile = self._state.profile(domain)
                ahead: Ahead
                if self.resolution:
                    ahead = coarsened(profile, self.resolution)
                else:
                    ahead = Ahead.of(profile.times, profile.free)
            else:
                ahead = released(now, domain.free, domain.running, self.resolution)
            for booking in self._bookings:
                self._book_in(ahead, booking)
            self._ahead = ahead
        return self._ahead

    def _opening_alone(self, job: Job) -> tuple[float, Placement]:
        profile = self._for(job, self._state.profile(self.domain))
        return self._earliest(profile, job, self._state.now, False), ()

    def _place_without(
        self,
        job: Job,
        gone: Collection[Job],
        over: Callable[[Job], bool] | None,
        lent: Collection[Job],
        mine: Job,
    ) -> Placement | None:
        domain, state = self.domain, self._state
        now = state.now
        leave = [entry for other in (*gone, *lent) for where, entry in other.entries or () if where is domain]
        room = domain.free + sum(entry[2] for entry in leave)
        own = state.reservations.get(job.description.reservation)
        if job.processors > room or not self._licences_without(job, gone, over, mine):
            return None
        if own is not None:
            freed = sum(entry[2] for entry in leave if state.inside(entry[3]) == own.id)
            fits = own.start <= now and now + job.expected_runtime <= own.end
            return () if fits and job.processors <= state.kept(domain, own) + freed else None
        kept = [b for b in self.bookings if b.job is not mine and not (over is not None and over(b.job))]
        if not kept and not domain.reservations:
            # What is free only becomes more.
            return ()
        profile = self._for(job, state.profile(domain))
        for booking in kept:
            self._book_in(profile, booking)
        for end, _, processors, other in leave:
            if not state.inside(other):
                profile.release(now, max(end, next_after(now)), processors)
        return () if profile.minimum(now, now + job.expected_runtime) >= job.processors else None

    def _book(self, job: Job, after: float | None, over: Collection[str], latest: float) -> Booking | None:
        if self._turns is not None:
            self._leave_turns()
        domain, now = self.domain, self.now
        licensed = self._state.licences is not None and bool(job.request.licences)
        if licensed:
            pass
        elif after is None and not self._bookings and self._ahead is None and not domain.reservations:
            start, extra = shadow(job.processors, now, domain.free, domain.running, self.resolution)
            if start > latest:
                return None
            return self._made(Booking(job, start, extra if start != _INF else domain.total, self._clock))
        known = self.booked(job)
        if known is not None:
            return known
        profile = self._full_profile()
        runtime = job.expected_runtime
        booking = Booking(job, _INF, domain.total, self._clock)
        if not over and not licensed and self._kept_for(job) is None:
            booking.start, left = profile.book(job.processors, runtime, now, after, latest)
            if booking.start > latest:
                return None
            if booking.start != _INF:
                booking.extra = left
        else:
            open_to_it = self._for(job, profile, over)
            begin = now if after is None else max(now, after)
            booking.start = self._earliest(open_to_it, job, begin, licensed)
            if booking.start > latest:
                return None
            if booking.start != _INF:
                self._book_in(profile, booking)
                booking.extra = profile.free_at(booking.start)
        if licensed and booking.start != _INF:
            self._licences().take(job, booking.start, booking.start + runtime)
        return self._made(booking)

    def _earliest(self, profile: Profile, job: Job, begin: float, licensed: bool) -> float:
        """When the job can have its processors, and its licences, at the same time."""
        while True:
            start = profile.earliest(job.processors, job.expected_runtime, begin)
            if not licensed or start == _INF:
                return start
            begin = self._licences().earliest(job, start)
            if begin in (start, _INF):
                return begin

    def _may_run_on(self, job: Job, before: float, after: float) -> bool:
        processors = job.processors
        if self._ahead is None and len(self._bookings) < 2 and not self.prepared and not self.reservations:
            for booking in self._bookings:
                if before <= booking.start < after:
                    if processors > booking.extra:
                        return False
                    booking.extra -= processors
            return True
        if self._state.confining(job) is not None:
            # It stays inside of its own (see `stretch`), so it takes nothing more from any job.
            self._ahead = None
            return True
        profile = self._full_profile()
        if self.resolution:
            before = rounded_up(before, self.resolution)
        if after > before and profile.minimum(before, after) < processors:
            return False
        profile.reserve(before, after, processors)
        if len(self._bookings) == 1:
            self._count_anew()
        return True
