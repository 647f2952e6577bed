"""Serving a queue in turn on a flat pool, each job a start or a booking, with no more bookings than matter.

Conservative backfilling books every job, and books all jobs anew whenever a job ended early. Of thousands of
bookings few decide what starts now. So bookings are owed until they are asked for
(:meth:`Turns.make_owed`), and only bookings that may be in the way of a start are made at once:

* A *candidate* is a waiting job that could start now if none of the bookings that are owed were made. They
  can only take from it; so without a candidate nothing starts.
* A job is *in the way* of a later job if its booking is owed and it could run at some moment of the time for
  which the later job is to run. Bookings that are made meanwhile only take from it; so if it is not in the
  way now it will not be.
* If no job is in the way of a job, the job may be served before its turn: a candidate starts, any other job
  is booked. If a job is in the way, it is booked first, in the same manner.

So the starts are the same as when jobs are served in turn, and so are the bookings once they are asked for.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, chain, islice
from operator import attrgetter
from typing import Any, ClassVar

import msgspec

from headway.model import Placement
from headway.resources.profile import Profile, next_after
from headway.state import Job, RunningEntry, Status
from headway.state.by_size import JobsBySize
from headway.view.ahead import Ahead, Coarse, rounded_up
from headway.view.booking import Booking
from headway.view.interface import View
from headway.view.owed import Check, all_of_them

_INF = float("inf")
_PENDING = Status.PENDING
_order = attrgetter("order")
#: So many short jobs are looked at singly before a size's jobs are walked along in service order.
_FEW = 12
#: So many waiting jobs are walked along in service order; of more jobs, the fitting jobs are found by size.
_SHORT = 24
#: Seconds by which sums of times may be wrong.
_ROUNDING = 1e-3


class Planned(msgspec.Struct, eq=False, gc=False):
    """A booking before it is asked for."""

    job: Job
    #: What it was booked with.
    processors: int
    runtime: float
    start: float


class Turns:
    """The jobs that are served in turn from a clean slate on."""

    #: A booking is made in a short time, whatever it is.
    is_quick: ClassVar[bool] = True

    __slots__ = (
        "_ahead",
        "_at",
        "_begin",
        "_begun",
        "_early",
        "_extra",
        "_handed",
        "_jobs",
        "_plan",
        "_since",
        "_slate",
        "_told",
        "_view",
        "depth",
    )  # fmt: skip

    def __init__(
        self, view: View, jobs: Sequence[Job], depth: float, begin: Callable[[Job, str], object]
    ) -> None:
        """``begin(job, reason)`` starts a job that may."""
        self._view = view
        self._begin = begin
        #: How many jobs are booked at most; the jobs behind them may only start.
        self.depth = depth
        self._jobs = list(jobs)
        #: The place of the job whose turn it is: the jobs before it are started or booked.
        self._at = 0
        #: The bookings that are made, in turn.
        self._plan: list[Planned] = []
        #: The jobs that were booked before their turn.
        self._early: dict[Job, Planned] = {}
        #: The jobs that were started: in which cycle, when, until when, on how many processors.
        self._begun: dict[Job, tuple[int, float, float, int]] = {}
        #: What is free beside all bookings, once two or more jobs are booked; before that, what the only
        #: booking leaves at its start.
        self._ahead: Ahead | None = None
        self._extra = 0
        #: How many bookings and starts there were when the bookings were handed out last.
        self._told = 0, 0
        #: What was free then beside them, and the places, starts of this cycle and bookings that they are of.
        self._handed: tuple[Ahead, int, int, int] | None = None
        #: The first job of this cycle.
        self._since = 0
        #: Time, free processors and running jobs when the slate was clean; and to what ends are rounded up.
        domain = view.domain
        self._slate = view.now, domain.free, domain.running.copy(), view.resolution

    @property
    def owes(self) -> bool:
        """Whether bookings are still to be made."""
        return self._at < len(self._jobs) and len(self._plan) < self.depth

    @property
    def owed(self) -> int:
        """How many, at most."""
        return int(min(len(self._jobs) - self._at, self.depth - len(self._plan)))

    @property
    def booked(self) -> int:
        """How many bookings are made."""
        return len(self._plan) + len(self._early)

    def starts(self) -> Iterator[tuple[Job, float]]:
        """The jobs whose bookings are made, and their starts."""
        return ((one.job, one.start) for one in chain(self._plan, self._early.values()))

    # ------------------------------------------------------------------ what a cycle does

    def go_on(self, jobs: Sequence[Job], reason: str) -> None:
        """Serve jobs that came behind all that were served before, when nothing else has happened."""
        self._since = len(self._jobs)
        self._handed = None
        self._jobs.extend(jobs)
        free = self._view.domain.free
        if any(job.processors <= free for job in jobs):
            self.serve(reason)

    def serve(self, reason: str) -> None:
        """Start what may, and make the bookings that are needed to tell."""
        if self._ahead is not None or self._serve_in_turn(reason):
            self._serve_out_of_turn(reason)

    def _start(self, job: Job, reason: str) -> None:
        view = self._view
        self._begin(job, reason)
        end = view.now + job.expected_runtime
        self._begun[job] = view._cycle, view.now, end, job.processors

    # ------------------------------------------------------------------ while at most one job is booked

    def _serve_in_turn(self, reason: str) -> bool:
        """Serve while no profile is needed; whether there is a candidate that needs a profile."""
        if not self._plan:
            if not self._start_up_to_the_head(reason):
                return False
            if not self.depth:
                return True
            self._book_the_head()
        return self._backfill(reason)

    def _start_up_to_the_head(self, reason: str) -> bool:
        """Start jobs in their order up to the head, which does not fit; whether a job behind it fits."""
        jobs, domain = self._jobs, self._view.domain
        count = len(jobs)
        while self._at < count and jobs[self._at].processors <= domain.free:
            self._start(jobs[self._at], reason)
            self._at += 1
        if self._at == count or not domain.free:
            return False
        return bool(self._view._by_size().sizes(domain.free))

    def _book_the_head(self) -> None:
        """Book the first job that does not fit, at its shadow time."""
        view, head = self._view, self._jobs[self._at]
        domain = view.domain
        start, self._extra = shadow(head.processors, view.now, domain.free, domain.running, view.resolution)
        if start == _INF:
            self._extra = domain.total
        self._plan.append(Planned(head, head.processors, head.expected_runtime, start))
        self._at += 1

    def _backfill(self, reason: str) -> bool:
        """Start what the only booking lets start, as long as each is the next in turn; whether a job is a
        candidate that is not."""
        view, jobs = self._view, self._jobs
        domain, now = view.domain, view.now
        count, by_size = len(jobs), view._by_size()
        start = self._plan[0].start
        short = count - self._at <= _SHORT
        while self._at < count:
            candidate = None
            if short:
                free, extra = domain.free, self._extra
                for job in islice(jobs, self._at, None):
                    size = job.processors
                    if size <= free and (size <= extra or now + job.expected_runtime <= start):
                        candidate = job
                        break
            else:
                for size in by_size.sizes(domain.free):
                    candidate = _first(by_size, size, now, _INF if size <= self._extra else start, candidate)
            if candidate is None:
                return False
            if candidate is not jobs[self._at]:
                return True
            if now + candidate.expected_runtime > start:
                self._extra -= candidate.processors
            self._start(candidate, reason)
            self._at += 1
        return False

    # ------------------------------------------------------------------ with a profile

    def _serve_out_of_turn(self, reason: str) -> None:
        if self._ahead is None:
            self._ahead = self.profile()
        ahead, now = self._ahead, self._view.now
        if len(self._jobs) - self._at <= _SHORT and self.depth == _INF:
            self._serve_few(ahead, reason)
            return
        while (candidate := self._candidate(ahead)) is not None:
            last = self._last_booked()
            # Each of these jobs is in the way of the job before it.
            chain = [candidate]
            while chain:
                job = chain[-1]
                processors, runtime = job.processors, job.expected_runtime
                start = ahead.earliest(processors, runtime, now)
                if job is candidate and start > now:
                    break
                other = self._in_the_way(ahead, job, start, start + runtime, last)
                if other is job:
                    # Some were booked, which may have been in its way.
                    continue
                if other is not None:
                    chain.append(other)
                    continue
                chain.pop()
                ahead.reserve(start, start + runtime, processors)
                if job is candidate:
                    self._start(job, reason)
                else:
                    self._early[job] = Planned(job, processors, runtime, start)

    def _serve_few(self, ahead: Ahead, reason: str) -> None:
        """As :meth:`_serve_out_of_turn` where few jobs are left: each job before a candidate is booked."""
        view, jobs, early = self._view, self._jobs, self._early
        domain, now = view.domain, view.now
        minimum = ahead.minimum
        for at in range(self._at, len(jobs)):
            job = jobs[at]
            size = job.processors
            if size > domain.free or job.status is not _PENDING or job in early:
                continue
            end = now + job.expected_runtime
            if minimum(now, end) < size:
                continue
            if self._at < at:
                self._book_upto(ahead, at)
                if minimum(now, end) < size:
                    continue
            ahead.reserve(now, end, size)
            self._start(job, reason)

    def _last_booked(self) -> int:
        """The place in the queue behind the last job that is booked, as things are now."""
        jobs, left = self._jobs, self.depth - len(self._plan)
        if left == _INF:
            return len(jobs)
        for at in range(self._at, len(jobs)):
            if left <= 0:
                return at
            left -= jobs[at] not in self._begun
        return len(jobs)

    def _candidate(self, ahead: Ahead) -> Job | None:
        """The first job in service order that could start now."""
        view = self._view
        now, by_size = view.now, view._by_size()
        times, free = ahead.times, ahead.free
        count = len(times)
        step = bisect_right(times, now) - 1
        found = None
        for size in reversed(by_size.sizes(view.domain.free)):
            # What ends sooner for a larger size ends no sooner for a smaller one.
            while step < count and free[step] >= size:
                step += 1
            found = _first(by_size, size, now, times[step] if step < count else _INF, found)
        return found

    def _in_the_way(self, ahead: Ahead, job: Job | None, start: float, end: float, last: int) -> Job | None:
        """The first job that is in the way of ``job``, which is to run in [start, end); None: of a job that
        comes behind all jobs.

        Only jobs before the place ``last`` are booked. Where few bookings are owed before ``job``, they are
        made instead, and the caller is to look again: then the answer is ``job``.
        """
        jobs = self._jobs
        if job is not None:
            last = bisect_left(jobs, job.order, self._at, last, key=_order)
        owed = last - self._at
        if owed <= 0:
            return None
        by_size = self._view._by_size()
        if owed <= by_size.count:
            self._book_upto(ahead, last)
            return job
        spans = ahead.spans(self._view.now, start, end, by_size.longest)
        if not spans:
            return None
        # Jobs that came since the policy was asked are not booked; they may stand behind all these.
        bound = jobs[last].order if last < len(jobs) else (*jobs[-1].order, _INF)
        return self._first_within(spans, bound if job is None else min(bound, job.order))

    def _first_within(self, spans: Sequence[tuple[int, float]], bound: tuple[Any, ...]) -> Job | None:
        """The first job whose order is before ``bound`` that could run in one of these stretches (see
        :meth:`Ahead.spans`)."""
        by_size = self._view._by_size()
        begin = self._jobs[self._at].order
        found, early, at = None, self._early, 0
        for size in by_size.sizes(spans[-1][0]):
            while spans[at][0] < size:
                at += 1
            longest = spans[at][1] + _ROUNDING
            shortest = by_size.shortest(size)
            if longest < shortest[0][0]:
                continue
            upto = bisect_right(shortest, (longest,))
            if upto <= _FEW:
                for _, order, other in shortest[:upto]:
                    if begin <= order < bound and other.status is _PENDING and other not in early:
                        found, bound = other, order
                continue
            members = by_size.members(size)
            for place in range(bisect_left(members, begin, key=_order), len(members)):
                other = members[place]
                if other.order >= bound:
                    break
                if other.expected_runtime <= longest and other.status is _PENDING and other not in early:
                    found, bound = other, other.order
                    break
        return found

    def _book_upto(self, ahead: Ahead, last: int) -> None:
        """Book the jobs before the place ``last`` that are not started or booked already."""
        now, plan, begun, early = self._view.now, self._plan, self._begun, self._early
        for job in self._jobs[self._at : last]:
            if job in begun:
                continue
            planned = early.pop(job, None) if early else None
            if planned is None:
                processors, runtime = job.processors, job.expected_runtime
                planned = Planned(job, processors, runtime, ahead.book(processors, runtime, now)[0])
            plan.append(planned)
        self._at = last

    # ------------------------------------------------------------------ what callers see

    def profile(self) -> Ahead:
        """What is free beside what runs and the bookings that are made."""
        if self._ahead is not None:
            return self._ahead
        view = self._view
        ahead = released(view.now, view.domain.free, view.domain.running, view.resolution)
        for planned in self._plan:
            if planned.start != _INF:
                ahead.reserve(planned.start, planned.start + planned.runtime, planned.processors)
        return ahead

    def clear(self, end: float, check: Check) -> None:
        """Make the bookings that are owed to jobs that could run at any moment from now to ``end``, so that
        :meth:`profile` is right until then. ``check`` is called before each; what it raises passes through,
        and what was made by then stays."""
        if not self.owes:
            return
        if self._ahead is None:
            self._ahead = self._as_it_was()
        ahead, now = self._ahead, self._view.now
        last = self._last_booked()
        # Each of these jobs is in the way of the job before it; None: of the job that would come last.
        chain: list[Job | None] = [None]
        while chain:
            check()
            job, start, until = chain[-1], now, end
            if job is not None:
                start = ahead.earliest(job.processors, job.expected_runtime, now)
                until = start + job.expected_runtime
            other = self._in_the_way(ahead, job, start, until, last)
            if other is not None and other is not job:
                chain.append(other)
            elif other is None:
                chain.pop()
                if job is not None:
                    ahead.reserve(start, until, job.processors)
                    self._early[job] = Planned(job, job.processors, job.expected_runtime, start)

    def planned(self, job: Job, check: Check) -> tuple[float, Placement] | None:
        """When the job is to start, by its booking, which is made with those before it if it is owed; None:
        it gets none. ``check`` is as for :meth:`clear`."""
        while job not in self._early and self.owes and self._jobs[self._at].order <= job.order:
            check()
            if self._ahead is None:
                self._ahead = self._as_it_was()
            self._book_upto(self._ahead, self._at + 1)
        made = self._early.get(job)
        if made is None:
            # In turn is in order.
            at = bisect_left(self._plan, job.order, key=lambda one: one.job.order)
            made = self._plan[at] if at < len(self._plan) and self._plan[at].job is job else None
        return None if made is None else (made.start, ())

    def make_owed(self, check: Check = all_of_them) -> None:
        """Make the bookings that are owed, and hand all of them out. ``check`` is as for :meth:`clear`.

        What a booking leaves at its start is told as if all jobs were served in turn.
        """
        if self.owes:
            check()
            if self._ahead is None:
                self._ahead = self._as_it_was()
            while self.owes:
                check()
                self._book_upto(self._ahead, self._at + 1)
        told = len(self._plan), len(self._begun)
        if told != self._told:
            self._told = told
            self._hand_out()

    def _hand_out(self) -> None:
        """Give the view all bookings, each with what it leaves at its start."""
        view, plan = self._view, self._plan
        bookings = view._bookings
        ahead, first, behind, made = self._handed or (released(*self._slate), 0, 0, 0)
        for at, job in enumerate(self._jobs[first : self._at], first):
            if job in self._begun:
                cycle, begin, end, processors = self._begun[job]
                ahead.reserve(begin, end, processors)
                behind += cycle == view._cycle
                if made == 1 and end > bookings[0].start:
                    # While it is alone it tells what may still run past it.
                    bookings[0].extra -= processors
                continue
            start = plan[made].start
            extra = view.domain.total
            if start != _INF:
                ahead.reserve(start, start + plan[made].runtime, plan[made].processors)
                extra = ahead.free_at(start)
            if made == len(bookings):
                booking = Booking(job, start, extra, view._clock)
                if at >= self._since:
                    booking.cycle, booking.behind = view._cycle, behind
                bookings.append(booking)
            elif not made:
                bookings[0].extra = extra
            made += 1
        # What the first booking leaves is settled once there are two.
        self._handed = (ahead, self._at, behind, made) if made > 1 else None
        if made == 1 and self._at < len(self._jobs):
            # Behind the last job that is booked some may have started too.
            behind_it = self._jobs[self._at].order
            for job, (_, _, end, processors) in self._begun.items():
                if job.order >= behind_it and end > bookings[0].start:
                    bookings[0].extra -= processors
        view._ahead = self._ahead if made > 1 else None

    def _as_it_was(self) -> Ahead:
        """What was free in the last cycle beside what ran and was booked; since then anything may be."""
        ahead = released(*self._slate)
        for _, begin, end, processors in self._begun.values():
            ahead.reserve(begin, end, processors)
        for planned in self._plan:
            if planned.start != _INF:
                ahead.reserve(planned.start, planned.start + planned.runtime, planned.processors)
        return ahead


def shadow(
    processors: int, now: float, free: int, running: Sequence[RunningEntry], grid: float = 0.0
) -> tuple[float, int]:
    """When so many processors are free by the expected ends of the running jobs, and how many more are then.

    ``grid``: ends are rounded up to multiples of so many seconds.

    (infinity, 0) if they never are.
    """
    need = processors - free
    if need <= 0:
        return now, -need
    start = _INF
    releases = iter(running)
    for end, _, count, _ in releases:
        need -= count
        if need <= 0:
            # Overdue: the job that holds them will leave any moment.
            start = end if end > now else next_after(now)
            if grid:
                start = rounded_up(start, grid)
            break
    else:
        return _INF, 0
    for end, _, count, _ in releases:
        if end > start:
            break
        need -= count
    return start, -need


def released(now: float, free: int, running: Sequence[RunningEntry], grid: float = 0.0) -> Ahead:
    """What will be free by the expected ends of the running jobs; ``grid`` as for :func:`shadow`."""
    if grid:
        soonest = next_after(now)
        coarse = {now: free}
        for end, _, processors, _ in running:
            free += processors
            coarse[rounded_up(max(end, soonest), grid)] = free
        return Coarse.of_steps(list(coarse), list(coarse.values()), grid)
    if running and running[0][0] <= next_after(now):
        profile = Profile.of_releases(now, free, ((entry[0], entry[2]) for entry in running))
        return Ahead.of(profile.times, profile.free)
    levels = accumulate([entry[2] for entry in running], initial=free)
    # Of several ends at one time the last end says what is free then.
    steps = dict(zip([now, *[entry[0] for entry in running]], levels, strict=True))
    return Ahead.of(list(steps), list(steps.values()))


def _first(by_size: JobsBySize[Job], size: int, now: float, until: float, found: Job | None) -> Job | None:
    """The earlier in order of ``found`` and the first job of a size that ends by ``until`` if it starts."""
    shortest = by_size.shortest(size)
    if now + shortest[0][0] > until:
        return found
    upto = bisect_right(shortest, (until - now + _ROUNDING,)) if until != _INF else len(shortest)
    if upto <= _FEW:
        for runtime, order, job in shortest[:upto]:
            if (found is None or order < found.order) and now + runtime <= until and job.status is _PENDING:
                found = job
        return found
    for job in by_size.members(size):
        if found is not None and job.order > found.order:
            break
        if now + job.expected_runtime <= until and job.status is _PENDING:
            return job
    return found
