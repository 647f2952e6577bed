"""LOS and Delayed-LOS: start the set of waiting jobs that fills the machine best.

E. Shmueli and D. Feitelson: Backfilling with lookahead to optimize the packing of parallel jobs.
JPDC 65(9), 2005 (LOS). R. Kumar, Z. Shae, H. Jamjoom: Scheduling Batch and Heterogeneous Jobs with
Runtime Elasticity in a Parallel Processing Environment. 2012, Algorithm 1 (Delayed-LOS).

Symbols of the paper: m free processors, t now, W_b the queue, w_1 its head, num and dur a job's
processors and estimate, scount how often the job was skipped as the head, C_s the maximum skip count
(option ``max_skips``), fret the freeze end time (here the booking's start), frec the freeze end
capacity (the booking's extra processors).

In an instant, until nothing more starts:

1. the head fits and was skipped C_s times or more: it starts;
2. it fits and was skipped less often: Basic_DP over the queue, the head included; if the head is
   not in the chosen set its skip count rises, once an instant; the set starts;
3. it does not fit: it is booked at its earliest start, and Reservation_DP chooses among the jobs
   behind it. The chosen jobs that run past that time must fit in the extra processors together.

With C_s = 0 this is LOS: the plugin ``los``.

Decisions on what the papers leave open:

- A job that is expected to end exactly at the freeze end time counts as ended, as in EASY; with
  ``strict`` the paper's comparison (its line 16: before, not at) is used.
- The freeze end capacity counts every expected end up to the freeze end time, not only the first
  ends that make room for the head.
- The skip count belongs to the job; a new head begins with its own.
- ``lookahead`` counts the jobs that are given to the packing: with the head in case 2, without it
  in case 3.
- Sizes are counted in units of ``granularity`` processors (BlueGene/P: 32), a job's rounded up,
  the free and the extra processors rounded down. Where sizes are not multiples of the unit, a booking
  may turn out to be too early.
- Whatever plugins keep for others (:mod:`headway_plugins.policies.dedicated`) is a freeze of its own
  in the packing; a head that fits but would break one is booked as in case 3. Booked jobs whose time
  has come start first.
- On nodes, a job that was chosen but finds no nodes is left out for the rest of the instant, and the
  packing is asked again; a head that finds no nodes does not fit: it is booked before another job starts,
  and not skipped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

import pydantic

from headway.decisions import Decision
from headway.hookspecs import hookimpl
from headway.plugins import Again, Study, Traits
from headway.state import Job, Status
from headway.view import View
from headway_plugins.policies.packing import basic, pack

_INF = float("inf")


class PackingOptions(pydantic.BaseModel):
    """What LOS and its descendants share."""

    model_config = pydantic.ConfigDict(extra="forbid")

    lookahead: int = pydantic.Field(
        default=50, ge=1, le=100_000, description="number of waiting jobs that the packing looks at"
    )
    granularity: int = pydantic.Field(
        default=1, ge=1, description="processors in the smallest unit that is allocated (BlueGene/P: 32)"
    )
    strict: bool = pydantic.Field(
        default=False,
        description="a job must end before the freeze end time, as the paper writes; false: "
        "it may end at that time",
    )


class DelayedLosOptions(PackingOptions):
    """Options of Delayed-LOS."""

    max_skips: int = pydantic.Field(
        default=7,
        ge=0,
        le=1_000_000,
        description="C_s: how often the head of the queue may be skipped before it must start",
    )


class Skips:
    """How often each waiting job was skipped as the head; at most once an instant."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self._last: tuple[str, float] | None = None

    def of(self, job: Job) -> int:
        return self.counts.get(job.id, 0)

    def skipped(self, job: Job, now: float) -> None:
        if self._last != (job.id, now):
            self._last = (job.id, now)
            self.counts[job.id] = self.counts.get(job.id, 0) + 1

    def forget_others(self, queue: Sequence[Job]) -> None:
        """Drop the counts of jobs that are not in ``queue`` any more, now and then."""
        if len(self.counts) > 2 * len(queue) + 64:
            waiting = {job.id for job in queue}
            self.counts = {job: count for job, count in self.counts.items() if job in waiting}


class Round:
    """An instant of a packing policy: the queue as jobs are started from it."""

    def __init__(self, view: View, options: PackingOptions) -> None:
        self.view = view
        self.options = options
        self.starts: list[Decision] = []
        #: Jobs that wait, in order.
        self.waiting: list[Job] = list(view.queue)
        #: Jobs that fit by count but found no nodes.
        self._placeless: set[str] = set()

    @property
    def free(self) -> int:
        """Free processors in whole units, of which each running job has some for itself."""
        unit, domain = self.options.granularity, self.view.domain
        if unit == 1:
            return domain.free
        used = sum(-(-processors // unit) for _, _, processors, _ in domain.running)
        return max(min(domain.free // unit, domain.total // unit - used), 0)

    def fits(self, job: Job) -> bool:
        return self.units(job) <= self.free and job.id not in self._placeless

    def finds_nodes(self, job: Job) -> bool:
        """Whether a job that fits by count finds nodes; if not, it does not fit for the rest of this instant.

        Flat pools have no nodes to find.
        """
        view = self.view
        if not view.domain.flat and self.fits(job) and view.place_without(job, ()) is None:
            self._placeless.add(job.id)
        return self.fits(job)

    def start_booked(self) -> None:
        """Start the jobs that were booked for now before the policy was asked."""
        view = self.view
        due = [b.job for b in view.bookings[: view.prepared] if b.start <= view.now]
        self.start([job for job in due if job.status is Status.PENDING], "a dedicated job, due")

    def start(self, jobs: Iterable[Job], reason: str) -> bool:
        """Start the jobs that can start; whether anything changed (a start, or a job less to consider)."""
        changed = False
        begun: set[str] = set()
        for job in jobs:
            start = self.view.start(job, reason)
            changed = True
            if start is None:
                self._placeless.add(job.id)
            else:
                self.starts.append(start)
                begun.add(job.id)
        if begun:
            self.waiting = [job for job in self.waiting if job.id not in begun]
        return changed

    def candidates(self, after: int) -> list[Job]:
        """The jobs that the packing looks at, from position ``after`` of the queue on, that fit.

        A job that is booked for later is not among them.
        """
        seen = islice(self.waiting, after, after + self.options.lookahead)
        out = self._placeless.union(booking.job.id for booking in self.view.bookings)
        free = self.free
        return [job for job in seen if self.units(job) <= free and job.id not in out]

    def units(self, job: Job) -> int:
        """A job's size in units of the granularity, rounded up."""
        return -(-job.processors // self.options.granularity)

    def ends_by(self, job: Job, time: float) -> bool:
        end = self.view.now + job.expected_runtime
        return end < time if self.options.strict else end <= time

    def freezes(self) -> list[tuple[float, int]]:
        """For each time at which something is booked, by time: the processors that may run past it."""
        view = self.view
        kept = [booking for booking in view.bookings if booking.start != _INF]
        if view.domain.flat and (view.prepared or len(kept) > 1):
            profile = view.profile
            return [(time, profile.free_at(time)) for time in sorted({booking.start for booking in kept})]
        rooms: dict[float, int] = {}
        for booking in kept:
            rooms[booking.start] = min(booking.extra, rooms.get(booking.start, booking.extra))
        return sorted(rooms.items())

    def best(self, jobs: Sequence[Job]) -> list[Job]:
        """The subset of ``jobs`` that fills the machine best and respects what is booked."""
        if not jobs:
            return []
        sizes = [self.units(job) for job in jobs]
        freezes = self.freezes() if self.view.bookings else []
        # Only what some job runs past, and what does not have room for all, is a constraint.
        latest = max(job.expected_runtime for job in jobs) + self.view.now
        unit, free = self.options.granularity, self.free
        freezes = [(time, room // unit) for time, room in freezes if time <= latest and room // unit < free]
        if not freezes:
            return [jobs[at] for at in basic(sizes, free)]
        crossed = [sum(not self.ends_by(job, time) for time, _ in freezes) for job in jobs]
        return [jobs[at] for at in pack(sizes, crossed, free, [room for _, room in freezes])]

    def reservation_branch(self) -> bool:
        """Case 3: book the head, pack behind it; whether anything was started."""
        head = self.waiting[0]
        booking = self.view.book(head)
        chosen = self.best(self.candidates(1))
        return bool(chosen) and self.start(
            chosen, f"packed behind job {head.id}, which is to start at {booking.when}"
        )


class DelayedLos:
    """Delayed-LOS: start the best-filling set of the first jobs; the head is skipped at most C_s times."""

    #: What ``headway tune`` varies.
    traits = Traits(
        ask_again=Again.DOMAIN,
        study=Study(backfills=True, tunable=("max_skips", range(21))),
        paper=(
            "R. Kumar, Z. Shae, H. Jamjoom: Scheduling Batch and Heterogeneous Jobs with Runtime "
            "Elasticity in a Parallel Processing Environment, 2012"
        ),
    )
    Options: type[pydantic.BaseModel] = DelayedLosOptions

    def __init__(self, options: Any) -> None:
        self.options = options
        self.max_skips: int = options.max_skips
        self._skips = Skips()

    @hookimpl
    def schedule(self, view: View) -> list[Decision]:
        if not view.domain.free:
            return []
        view.forget()
        round_ = Round(view, self.options)
        if view.prepared:
            round_.start_booked()
        # What was booked in a round stands in the next round: no start may delay it.
        while round_.waiting and round_.free and self._step(round_):
            pass
        self._skips.forget_others(view.queue)
        return round_.starts

    def _step(self, round_: Round) -> bool:
        """One round of the instant; whether there may be another."""
        head = round_.waiting[0]
        if not round_.fits(head):
            return round_.reservation_branch()
        if self._skips.of(head) >= self.max_skips:
            return round_.start([head], "first in the queue")
        if not round_.finds_nodes(head):
            return round_.reservation_branch()
        chosen = round_.best(round_.candidates(0))
        if head not in chosen:
            self._skips.skipped(head, round_.view.now)
            skips = f"skipped {self._skips.of(head)} of {self.max_skips}"
            reason = f"fills the machine better than job {head.id}, {skips}"
        else:
            reason = "in the set of jobs that fills the machine best"
        return bool(chosen) and round_.start(chosen, reason)

    @hookimpl
    def checkpoint(self) -> dict[str, int] | None:
        return self._skips.counts or None

    @hookimpl
    def restore(self, saved: dict[str, int]) -> None:
        self._skips.counts = dict(saved)


class Los(DelayedLos):
    """LOS: the head starts whenever it fits; else the best-filling set behind it that does not delay it."""

    Options = PackingOptions
    traits = Traits(
        ask_again=Again.DOMAIN,
        study=Study(backfills=True),
        paper=(
            "E. Shmueli, D. Feitelson: Backfilling with lookahead to optimize the packing of parallel "
            "jobs, JPDC 65(9), 2005"
        ),
    )

    def __init__(self, options: Any) -> None:
        self.options = options
        self.max_skips = 0
        self._skips = Skips()
