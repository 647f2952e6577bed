"""The interface of both kinds of view, and what they share: cycles, bookings, the jobs that fit."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from headway.decisions import Decision, Migrate, Start, SwapTiers
from headway.errors import StateError
from headway.model import Placement, Reservation
from headway.resources.profile import Profile
from headway.state import Status
from headway.state.by_size import JobsBySize
from headway.state.choices import facing_pool, in_any_way
from headway.view.booking import Booking
from headway.view.licences import LicencesAhead
from headway.view.owed import Check, all_of_them

if TYPE_CHECKING:
    from headway.resources import NodeTable
    from headway.state import Domain, Job, PoolState, RunningEntry, State, Tenants
    from headway.state.moves import Undo

_INF = float("inf")
_order = attrgetter("order")


class View:
    """The base of both kinds of view; lives as long as its domain.

    While nothing but arrivals at the queue's tail happened since the last cycle, ``fresh`` says
    how many arrived and the bookings of that cycle still stand. Otherwise ``fresh`` is negative, and
    the bookings are gone: :data:`~headway.state.ENDS_MOVED` where expected ends have moved and
    nothing else happened, else -1. A policy may use this to look at the new jobs only, or ignore it and
    look at the whole queue each time: unless it starts from a cleared slate
    (:meth:`forget`) it then finds its old bookings again through :meth:`book`.

    ``arrivals`` are the jobs that came into the queue since the last cycle, wherever in it an order
    put them, if nothing else happened; otherwise it is None.
    """

    __slots__ = (
        "_ahead", "_booking_of", "_bookings", "_clock", "_cycle", "_licensed", "_looked", "_served", "_state",
        "_turns", "arrivals", "carried", "domain", "fresh", "made", "now", "prepared", "queue",
        "resolution", "rng", "started", "stopped_at",
    )  # fmt: skip

    def __init__(
        self, domain: Domain, state: State, clock: Callable[[float], str], rng: np.random.Generator
    ) -> None:
        self.domain = domain
        self._state = state
        self._clock = clock
        #: For policies that draw random numbers; seeded by the run.
        self.rng = rng
        self._cycle = 0
        self.now: float = 0.0
        #: Expected ends are rounded up to multiples of so many seconds: see :meth:`coarsen`. 0: exact.
        self.resolution: float = 0.0
        #: Startable jobs in service order; not to be changed. Jobs started in this cycle are still in it.
        self.queue: Sequence[Job] = ()
        self.fresh: int = -1
        #: In queue order. What could not start before they came cannot start now.
        self.arrivals: list[Job] | None = None
        #: The bookings that stand and are made: see :attr:`bookings`.
        self._bookings: list[Booking] = []
        #: By job the bookings that :meth:`booked` has seen; and their list, their number, the last booking.
        self._booking_of: dict[Job, Booking] = {}
        self._looked: tuple[list[Booking], int, Booking | None] = (self._bookings, 0, None)
        #: How many of them, from the first on, plugins made before the policy was asked.
        self.prepared: int = 0
        #: Jobs started in this cycle.
        self.started: list[Job] = []
        #: The decisions that :meth:`start` and the moves made: what a policy returns.
        self.made: list[Decision] = []
        #: The decisions of this pass that count already and are no starts, each with what undoes it.
        self.carried: list[tuple[Decision, Undo]] = []
        #: The job at which a policy without bookings stopped: it holds up the jobs behind it. A job that a
        #: limit refuses beside the starts before it may not do so: the policy is asked again without it.
        self.stopped_at: Job | None = None
        #: What is free in the future (a Profile or a Timeline), bookings taken out; made when it is needed.
        self._ahead: Any = None
        #: What is left of the cluster's licences in the future, bookings taken out; made when it is needed.
        self._licensed: LicencesAhead | None = None
        #: The jobs that were served in turn since the slate was clean, if nothing else was started or booked.
        self._turns: Any = None
        #: The cycle in which jobs were served last.
        self._served = 0

    @property
    def free(self) -> int:
        """Processors free now."""
        return self.domain.free

    @property
    def total(self) -> int:
        """Usable processors."""
        return self.domain.total

    @property
    def running(self) -> Sequence[RunningEntry]:
        """``(expected end, seq, processors, job)`` by expected end, starts of this cycle included."""
        return self.domain.running

    @property
    def reservations(self) -> Sequence[Reservation]:
        return self.domain.reservations

    @property
    def bookings(self) -> list[Booking]:
        """Bookings that stand, in the order in which they were made."""
        self.make_owed()
        return self._bookings

    @property
    def made_bookings(self) -> list[Booking]:
        """Those of :attr:`bookings` that are made; the list is another one once they are gone."""
        return self._bookings

    @property
    def owed(self) -> int:
        """How many bookings are still to be made, at most: :attr:`bookings` makes them."""
        return 0 if self._turns is None else self._turns.owed

    @property
    def profile(self) -> Profile:
        """Free processors over time, all bookings and reservations taken out; a copy."""
        profile = self._state.profile(self.domain)
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
                both = min(job.processors, self._state.size(self.domain, kept))
                profile.release(max(start, kept.start), min(end, kept.end), both)

    def _kept_for(self, job: Job) -> Reservation | None:
        """The reservation that headway keeps for the job alone, as far as it takes from this domain."""
        kept = self._state.kept_for(job) if self.domain.reservations else None
        return kept if kept in self.domain.reservations else None

    def _for(self, job: Job, profile: Profile, over: Collection[str] = ()) -> Profile:
        """The profile as the job may use it: with what is reserved for it alone, and what yields to it."""
        kept = self._kept_for(job)
        if kept is None and not over:
            return profile
        profile = profile.copy()
        for other in self.domain.reservations:
            if (other is kept or other.id in over) and other.end > self.now:
                profile.release(max(other.start, self.now), other.end, self._state.size(self.domain, other))
        return profile

    def coarsen(self, seconds: float) -> None:
        """Reckon from now on with expected ends of running jobs and of bookings that are rounded up to
        multiples of so many seconds; 0: with the exact ends, as at first.

        What is booked then starts at such a time or now, perhaps later than it could, and far fewer times are
        looked at. Reservations begin when they begin."""
        if seconds != self.resolution:
            self._leave_turns()
            self.resolution = seconds
            self._ahead = self._licensed = None

    def clock(self, time: float) -> str:
        """A time for a person, for reasons."""
        return self._clock(time)

    def open(self, now: float, queue: Sequence[Job]) -> None:
        """Begin a cycle: the view now tells what happened to the domain; what comes belongs to the next
        cycle."""
        self._cycle += 1
        self.now = now
        self.queue = queue
        self.started = []
        self.made = []
        self.carried = []
        self._licensed = None
        domain = self.domain
        if queue is domain.queue:
            self.fresh, self.arrivals = fresh, arrivals = domain.news.tell()
            if arrivals and len(arrivals) > 1:
                arrivals.sort(key=_order)
        else:
            # What is booked now follows this order, and the next cycle's may be the queue's own.
            domain.news.nothing_stands()
            self.fresh = fresh = -1
            self.arrivals = None
        if fresh < 0:
            self.stopped_at = None
            self._bookings = []
            self.prepared = 0
            self._ahead = None
            self._clean_slate()

    def _clean_slate(self) -> None:
        """A cycle begins that looks at everything."""
        self._turns = None

    def make_owed(self, check: Check = all_of_them) -> None:
        """Make the bookings that are owed. ``check`` is called before each; what it raises passes through,
        and what was made by then stays."""
        if self._turns is not None:
            self._turns.make_owed(check)

    def _leave_turns(self) -> None:
        """The same, for good: what is started, booked or stretched now was not served in turn."""
        if self._turns is not None:
            self._turns.make_owed()
            self._turns = None

    def forget(self) -> None:
        """Drop the policy's bookings; bookings that were prepared for it stay."""
        self._clean_slate()
        del self._bookings[self.prepared :]
        self._ahead = self._licensed = None

    # ------------------------------------------------------------------ licences

    def _licences(self) -> LicencesAhead:
        """What is left of the licences beside all bookings, including other domains' bookings."""
        if self._licensed is None:
            self._licensed = LicencesAhead(self._state, self._licensed_bookings(), self.resolution)
        return self._licensed

    def _licensed_bookings(self, without: Job | None = None) -> Iterator[Booking]:
        for domain in self._state.domains.values():
            for booking in self._bookings if domain.view is self else getattr(domain.view, "bookings", ()):
                job = booking.job
                if job.request.licences and job is not without and job.status is Status.PENDING:
                    yield booking

    def _may_have_licences(self, job: Job) -> bool:
        """Whether a job that is to be started can have its licences from now until its expected end."""
        if not job.request.licences:
            return True
        ahead = self._licences()
        if self.booked(job) is not None:
            ahead = LicencesAhead(self._state, self._licensed_bookings(job), self.resolution)
        if not ahead.fits(job, self.now, self.now + job.expected_runtime):
            return False
        # If it is started it has them, and its booking is gone.
        self._licensed = None
        return True

    def _licences_without(
        self, job: Job, gone: Collection[Job], over: Callable[[Job], bool] | None, mine: Job
    ) -> bool:
        """As :meth:`place_without`, for the licences."""
        state = self._state
        if state.licences is None or not job.request.licences:
            return True
        booked = (b for b in self._licensed_bookings(mine) if over is None or not over(b.job))
        ahead = LicencesAhead(state, booked, self.resolution)
        for other in gone:
            ahead.give_back(other)
        return ahead.fits(job, state.now, state.now + job.expected_runtime)

    def _unbook(self, booking: Booking) -> None:
        """A booked job starts: its booking is over."""
        at = self._bookings.index(booking)
        del self._bookings[at]
        if at < self.prepared:
            self.prepared -= 1

    def booked(self, job: Job) -> Booking | None:
        """The job's booking, if it has one."""
        self.make_owed()
        bookings = self._bookings
        if not bookings:
            return None
        if bookings[0].job is job:
            return bookings[0]
        of, count, last = self._looked
        if of is not bookings or count > len(bookings) or (count and bookings[count - 1] is not last):
            # Not what was looked at last with some more behind it.
            count = 0
            self._booking_of = {}
        if count < len(bookings):
            self._booking_of.update((booking.job, booking) for booking in bookings[count:])
            self._looked = bookings, len(bookings), bookings[-1]
        return self._booking_of.get(job)

    def fitting(self) -> Iterator[Job]:
        """The waiting jobs, in queue order, that need no more processors than are free when they come up.

        Start what it yields before asking for the next. Its cost grows with the number of different
        sizes and with what it yields, not with the length of the queue.
        """
        domain, pending = self.domain, Status.PENDING
        if self.queue is not domain.queue:
            # Some plugin's own order, of which there is no index.
            yield from (job for job in self.queue if job.processors <= domain.free and job.status is pending)
            return
        yield from (job for job in self._by_size().fitting(domain) if job.status is pending)

    def shortest(self, room: Callable[[], int]) -> Iterator[Job]:
        """The waiting jobs, shortest expected runtime first, that need at most ``room()`` processors when
        they come up. Start what it yields before asking for the next; its cost is that of :meth:`fitting`."""
        pending = Status.PENDING
        yield from (job for job in self._by_size().soonest(room) if job.status is pending)

    def _by_size(self) -> JobsBySize[Job]:
        """The queue by size."""
        domain = self.domain
        if domain.by_size is None:
            domain.by_size = JobsBySize(domain.queue)
        return domain.by_size

    def serve(self, jobs: Sequence[Job], reason: str = "", depth: int | None = None) -> None:
        """Serve jobs in turn: each starts if it can (:meth:`start`), and is booked (:meth:`book`) if not.

        ``depth``: how many jobs of the queue are booked at most. Standing bookings of earlier cycles and
        bookings of other plugins count. The jobs behind them may only start.
        """
        pending = Status.PENDING
        most, made = _INF, 0
        if depth is not None:
            most = depth
            if self._bookings:
                asked = set(jobs)
                made = sum(b.job.status is pending and b.job not in asked for b in self._bookings)
        domain = self.domain
        for job in jobs:
            if made < most:
                if job.status is pending and self.start(job, reason) is None:
                    self.book(job)
                    made += 1
            elif job.processors <= domain.free and job.status is pending:
                self.start(job, reason)

    def start(self, job: Job, reason: str = "") -> Start | None:
        """Start ``job`` now if it fits and delays nothing that is booked or reserved.

        Returns the decision, or None (and nothing is changed) if it cannot start. A job that is
        itself booked can start once its time has come.
        """
        raise NotImplementedError

    def place_without(
        self,
        job: Job,
        gone: Collection[Job],
        over: Callable[[Job], bool] | None = None,
        lent: Collection[Job] = (),
        pool: PoolState | None = None,
        instead_of: Job | None = None,
    ) -> Placement | None:
        """Where ``job`` could start now if these jobs had given back what they have in front (a job in
        ``lent`` its processors alone); None: not even then. ``()`` on a flat pool.

        ``instead_of``: the job of the queue in whose place ``job`` is, which then has no booking.

        ``pool``: there alone, of several that the job was sent to; None: in the first of them where it could.
        The job faces the pool that is asked about while ``over`` is called.

        As :meth:`start` it delays no reservation and no booking, except bookings of the jobs for which
        ``over`` is true. Before the domain's cycle the bookings of the last cycle count. Nothing is changed.
        """
        with facing_pool(job, pool or job.pool):
            mine = instead_of or job
            if pool is not None:
                return self._place_without(job, gone, over, lent, mine)
            return in_any_way(job, self.domain, lambda: self._place_without(job, gone, over, lent, mine))

    def opening(self, job: Job) -> tuple[float, Placement] | None:
        """When the first job of the queue, which has no booking, could start at the earliest beside what runs
        and is reserved (absolute seconds, infinity: never), and where; None where that is not known without
        booking: beside bookings that were not made in turn, and of jobs that take licences. What is booked in
        turn is booked behind it. Nothing is kept for it."""
        if job.request.licences or job.choices or (self._bookings and self._turns is None):
            return None
        return self._opening_alone(job)

    def _opening_alone(self, job: Job) -> tuple[float, Placement]:
        """As :meth:`opening`, where nothing is booked."""
        raise NotImplementedError

    def _place_without(
        self,
        job: Job,
        gone: Collection[Job],
        over: Callable[[Job], bool] | None,
        lent: Collection[Job],
        mine: Job,
    ) -> Placement | None:
        """As :meth:`place_without`, in the pool that the job faces, whatever is booked for ``mine``."""
        raise NotImplementedError

    # ------------------------------------------------------------------ two tiers

    @property
    def background(self) -> Mapping[str, Job]:
        """Jobs that run, or are to start, in the background of this domain, by id, in the order of their
        starts."""
        return self.domain.background

    @property
    def tenants(self) -> Tenants:
        """Which jobs are on which node in which tier, kept from the first question on."""
        return self._state.watch_tenants()

    @property
    def nodes(self) -> NodeTable:
        """The cluster's nodes: what each has free in front (``free``) and behind (``free_behind()``)."""
        return self._state.nodes

    def start_on(
        self, job: Job, placement: Placement, tier: str = "foreground", reason: str = ""
    ) -> Start | None:
        """Start ``job`` on these very nodes (none named on a flat pool), in this tier.

        For policies that keep what they promise themselves: bookings are not looked at. Returns None, and
        nothing is changed, if the guard refuses it: a processor would have two processes of a tier, a node is
        not usable, or a reservation would be broken.
        """
        self._leave_turns()
        try:
            self._state.begin(job, placement, tier, None)
        except StateError:
            if job.status is not Status.PENDING:
                raise
            return None
        self._ahead = None
        self.started.append(job)
        start = Start(job.id, placement, reason, tier)
        self.made.append(start)
        return start

    def promote(self, job: Job, reason: str = "") -> SwapTiers | None:
        """Bring a running job of the background to the foreground of its own processors; None, and nothing
        is changed, if they are not idle there (see :meth:`start_on`)."""
        swap = SwapTiers(job.id, reason=reason)
        return swap if self._moved(swap) else None

    def move(
        self, job: Job, placement: Placement, tier: str = "", *, restart: bool = False, reason: str = ""
    ) -> Migrate | None:
        """Move a running job to these nodes and this tier ("": its own); ``restart``: it begins again there
        and what it has done is lost. None, and nothing is changed, if that cannot be (see
        :meth:`start_on`)."""
        move = Migrate(job.id, placement, reason, tier, restart)
        return move if self._moved(move) else None

    def _moved(self, decision: SwapTiers | Migrate) -> bool:
        self._leave_turns()
        try:
            undo = self._state.carry(decision)
        except StateError:
            return False
        self._ahead = None
        self.made.append(decision)
        self.carried.append((decision, undo))
        return True

    def made_all(self, decisions: Sequence[Decision]) -> bool:
        """Whether these are what this pass of the view has made, and nothing else."""
        if len(self.made) != len(self.started) + len(self.carried):
            return False
        return decisions is self.made or decisions == self.made

    def book(self, job: Job, after: float | None = None, over: Collection[str] = ()) -> Booking:
        """Keep the earliest possible capacity for ``job``, from ``after`` (absolute seconds) on if given.

        A job that has a booking keeps it. ``over`` names reservations that yield to the booking:
        the plugin that keeps them will move them. The job does not start before that.
        """
        booking = self._book(job, after, over, _INF)
        assert booking is not None
        return booking

    def book_by(self, job: Job, latest: float) -> Booking | None:
        """As :meth:`book`, but only if the job can start by ``latest`` (absolute seconds); else nothing is
        kept for it, and the answer is None. A job that has a booking keeps it."""
        return self._book(job, None, (), latest)

    def _book(self, job: Job, after: float | None, over: Collection[str], latest: float) -> Booking | None:
        """As :meth:`book`, if the job can start by ``latest`` (absolute seconds); else None."""
        raise NotImplementedError

    def stretch(self, job: Job, runtime: float, *, push: bool = False) -> bool:
        """Let a job that was started at this instant run for ``runtime`` seconds instead of its expected
        runtime (because of a lower frequency, say), if that delays nothing that is booked or reserved.

        ``push``: what this cycle booked after the job had been started, so behind it, gives way, and is
        booked anew in the next cycle. For a job that could not start otherwise.

        Returns whether it may; then it is expected to.
        """
        self._leave_turns()
        now = self._state.now
        if job.entries is None or job.start_time != now:
            return False
        before, after = now + job.expected_runtime, now + runtime
        own = self._state.confining(job)
        if after > before:
            if own is not None and after > own.end:
                return False
            if job.request.licences and not self._licences().fits(job, before, after):
                return False
            if not self._may_run_on(job, before, after) and not (push and self._may_push(job, before, after)):
                return False
        self._state.expect(job, runtime)
        self._licensed = None
        return True

    def _may_push(self, job: Job, before: float, after: float) -> bool:
        """As :meth:`_may_run_on`, at the cost of what was booked behind the job."""
        if job not in self.started:
            return False  # not the policy's start
        bookings, ahead, at = self._bookings, self._ahead, self.started.index(job)
        kept = [b for b in bookings if b.cycle != self._cycle or b.behind <= at]
        if len(kept) == len(bookings):
            return False
        self._bookings, self._ahead = kept, None
        if not self._may_run_on(job, before, after):
            self._bookings, self._ahead = bookings, ahead
            return False
        # It must not be concluded from it that older jobs have their bookings.
        self.domain.news.nothing_stands()
        return True

    def _made(self, booking: Booking) -> Booking:
        """Note a booking."""
        booking.cycle, booking.behind = self._cycle, len(self.started)
        self._bookings.append(booking)
        return booking

    def _may_run_on(self, job: Job, before: float, after: float) -> bool:
        """Whether a job that was to end at ``before`` may end at ``after``; if so that is counted with."""
        raise NotImplementedError
