"""Advance reservations for dedicated jobs: the batch system itself keeps what headway has booked.

A booking keeps nodes from the jobs that headway starts. An advance reservation keeps them from all
other jobs: of partitions that headway does not schedule, of administrators, and while headway is down. So
each dedicated job that starts within the ``lead`` has a reservation of its own, ``job_ID``, for its
user, on the nodes of its booking, from its start for its walltime:

- it is made again when the batch system lost it or it was changed by hand, and follows when the booking
  moves (a node went down, a running job ends late, the user asked for another start or time);
- the job starts inside it, and while the job runs the reservation ends when the job must end, so an
  extension or a reduction moves both;
- it is removed when the job has ended, was cancelled, held, or is no longer dedicated.

Decisions, since the paper knows no nodes and no other schedulers:

- ``reserve: auto`` makes reservations on node pools, for jobs that fill their nodes, where the cluster
  has reservations and a start can put a job into one (Slurm, and the emulated cluster). A reservation
  takes whole nodes, so for a smaller job it would keep more than the job needs, and two dedicated jobs
  could not share a node any more: their bookings protect them as before. ``yes`` makes a reservation for
  every dedicated job, on whole nodes, or of its processors on a flat pool.
- Batch systems start a job a moment after it was asked for, and let no job run into a reservation. So
  a job that is to end when a dedicated job begins would not be started at all. Therefore a
  reservation begins ``margin`` seconds after its job, which may start before it (on Slurm it is flexible).
- Reservations follow the bookings, never the other way round: an earlier dedicated job's booking moves
  the reservations of later dedicated jobs that are in its way, and the job starts once they have moved.
- Batch systems refuse a reservation on nodes where a job may run past its start by its *limit*; a
  booking reckons with *expected* ends. Such a reservation is not asked for; the log says why, and it
  is made as soon as that job is gone. Running jobs are never ended for it, nor ignored.
- A refused reservation is reported, and tried again after 15 s, 30 s, ... up to ten minutes. The
  booking protects the job meanwhile.
- A late job's reservation moves only if it would be wrong by more than a minute. A reservation that has
  begun is removed and made anew, since batch systems do not move its start.
- While the job runs its reservation is not made again, and stays as it is where other reservations are in the
  way of a change: the nodes are the job's own.
- Nothing is remembered over a restart: headway recognises reservations by their names, and a reservation
  that was lost meanwhile is not there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal

import msgspec
import pydantic

from headway.decisions import Decision, Reserve, Start, Unreserve
from headway.events import DecisionFailed, Event, JobRequeued, ReservationEnded, ReservationMade
from headway.model import FOR_JOB, Reservation
from headway.state import Job, State, Status
from headway.view import Booking

_INF = float("inf")
_SHORTEST_PAUSE, _LONGEST_PAUSE = 15.0, 600.0
#: How long a job that did not start, or that was requeued, may need to leave its reservation, seconds.
_LEAVE = 5.0
#: How long an answer to what was asked for is waited for, seconds.
_PATIENCE = 600.0
#: By how much a reservation may differ from what it should be, seconds: batch systems know whole
#: seconds; and for jobs that are late or run, whose times drift.
_NEAR, _ROUGHLY = 1.0, 60.0
_WAITS = (Status.WAITING, Status.PENDING)


class ReservingOptions(pydantic.BaseModel):
    """Options of the reservations for dedicated jobs."""

    model_config = pydantic.ConfigDict(extra="forbid")

    reserve: Literal["auto", "yes", "no"] = pydantic.Field(
        default="auto",
        description="advance reservations for dedicated jobs; auto: in pools of nodes, for the jobs that "
        "fill their nodes",
    )
    lead: float = pydantic.Field(
        default=86400.0,
        gt=0,
        description="seconds before its start from which a dedicated job has a reservation",
    )
    margin: float = pydantic.Field(
        default=10.0,
        ge=0,
        description="seconds after the job's start at which its reservation begins",
    )

    @pydantic.field_validator("reserve", mode="before")
    @classmethod
    def _yes_or_no(cls, value: Any) -> Any:
        """YAML reads a plain yes or no as true or false."""
        return {True: "yes", False: "no"}.get(value, value) if isinstance(value, bool) else value


class _Effort(msgspec.Struct):
    """What is known about the reservation of a job."""

    #: As it was asked for last.
    asked: Reservation | None = None
    #: When something was asked for that is not answered yet.
    since: float | None = None
    #: It existed, and headway did not remove it.
    made: bool = False
    #: After a refusal: not to be made, or removed, before; and how long the last pause was.
    make_from: float = 0.0
    remove_from: float = 0.0
    pause: float = 0.0
    #: What was said about it last.
    reported: str = ""
    #: When to look at it because its lead begins.
    woken: float = 0.0


#: The events that tell what became of reservations.
OBSERVED: tuple[type[Event], ...] = (ReservationMade, ReservationEnded, JobRequeued, DecisionFailed)


class DedicatedReservations:
    """Keeps one reservation for each dedicated job that has a booking."""

    def __init__(self, options: ReservingOptions) -> None:
        self.options = options
        self._able = False
        self._efforts: dict[str, _Effort] = {}

    def startup(self, state: State, capabilities: frozenset[type]) -> None:
        """``capabilities`` are the decision types that the cluster carries out."""
        self._able = {Reserve, Unreserve} <= capabilities and state.cluster.enters_reservations

    def observe(self, event: Event, state: State) -> None:
        """Take note of what became of reservations."""
        if isinstance(event, ReservationMade):
            effort = self._efforts.get(event.reservation.job_id)
            if effort is not None:
                effort.since, effort.made, effort.pause = None, True, 0.0
        elif isinstance(event, ReservationEnded):
            effort = self._efforts.get(event.reservation_id.removeprefix(FOR_JOB))
            if effort is not None:
                effort.since = None
                if effort.asked is not None and effort.asked.end <= event.time:
                    effort.made = False
        elif isinstance(event, JobRequeued):
            self._leaving(event.job_id, event.time, state)
        elif isinstance(event, DecisionFailed) and isinstance(event.decision, Start):
            self._leaving(event.decision.job_id, event.time, state)
        elif isinstance(event, DecisionFailed):
            self._failed(event, state)

    def _leaving(self, job_id: str, now: float, state: State) -> None:
        """The job goes back to the queue: let it leave its reservation before that is touched."""
        effort = self._efforts.get(job_id)
        if effort is not None:
            left = now + _LEAVE
            effort.make_from = max(effort.make_from, left)
            effort.remove_from = max(effort.remove_from, left)
            self._wake(left, state)

    @staticmethod
    def _wake(time: float, state: State) -> None:
        for pool in state.pools.values():
            state.wake_at(time, pool)

    def _failed(self, event: DecisionFailed, state: State) -> None:
        decision = event.decision
        if isinstance(decision, Reserve):
            name, what = decision.reservation.id, "made"
        elif isinstance(decision, Unreserve):
            name, what = decision.reservation_id, "removed"
        else:
            return
        effort = self._efforts.get(name.removeprefix(FOR_JOB)) if name.startswith(FOR_JOB) else None
        if effort is None or effort.since is None:
            return
        effort.since, effort.asked = None, state.reservations.get(name)
        effort.pause = min(max(2 * effort.pause, _SHORTEST_PAUSE), _LONGEST_PAUSE)
        again = event.time + effort.pause
        if isinstance(decision, Reserve):
            effort.make_from = again
        else:
            effort.remove_from = again
        state.anomalies.append(
            f"reservation {name} could not be {what}: {event.message}; it is tried again in "
            f"{effort.pause:.0f} s, headway's own booking stays"
        )
        self._wake(again, state)

    # ------------------------------------------------------------------ decisions

    def decide(self, state: State, bookings: Iterable[Booking]) -> Iterator[Decision]:
        """Make, move and remove. ``bookings``: of all dedicated jobs that are kept for now."""
        if not self._able:
            return
        booked = {b.job.id: b for b in bookings if b.job.status in _WAITS}
        wishes = {
            name: wish for name, booking in booked.items() if (wish := self._wish(booking, state)) is not None
        }
        for reservation in list(state.reservations.values()):
            name = reservation.job_id
            if not name:
                continue
            if why := self._needless(reservation, booked.get(name), wishes.get(name), state):
                yield from self._remove(reservation, why, state)
            elif name not in wishes and (wish := self._of_running(reservation, state)) is not None:
                yield from self._make(state.jobs[name], reservation, wish, _ROUGHLY, state)
        for name, wish in wishes.items():
            job, found = booked[name].job, state.reservations.get(wish.id)
            if found is not None and (not found.ours or _stuck(found, wish, state.now)):
                continue
            late = booked[name].start > requested(job) + _NEAR
            if found is not None and found.start <= state.now:
                wish = msgspec.structs.replace(wish, start=found.start)
            yield from self._make(job, found, wish, _ROUGHLY if late else _NEAR, state)
        for name in [
            n for n in self._efforts if n not in state.jobs and FOR_JOB + n not in state.reservations
        ]:
            del self._efforts[name]

    def _wish(self, booking: Booking, state: State) -> Reservation | None:
        """The reservation that a waiting job should have now; None if it should have none."""
        job, start = booking.job, booking.start
        if self.options.reserve == "no" or start == _INF or job.barred:
            return None
        if job.description.reservation or not self._suits(job, booking, state):
            return None
        begin = start - self.options.lead
        if begin > state.now:
            effort = self._efforts.setdefault(job.id, _Effort())
            if effort.woken != begin:
                effort.woken = begin
                state.wake_at(begin, job.pool)
            return None
        start = max(start, state.now)
        return Reservation(
            id=FOR_JOB + job.id,
            start=start + self._lag(job),
            end=start + job.estimate,
            pool=job.pool.name if job.pool.flat else "",
            processors=job.processors if job.pool.flat else 0,
            nodes=tuple(name for name, _ in booking.placement),
            users=(job.user,) if job.user else (),
            ours=True,
            reason=f"for dedicated job {job.id}",
        )

    def _lag(self, job: Job) -> float:
        """How long after the job's start its reservation begins."""
        return min(self.options.margin, job.estimate / 2)

    def _suits(self, job: Job, booking: Booking, state: State) -> bool:
        """Whether reservations are made for jobs of this kind."""
        if self.options.reserve == "yes":
            return True
        return not job.pool.flat and all(
            count == state.nodes.descriptions[name].processors for name, count in booking.placement
        )

    def _of_running(self, found: Reservation, state: State) -> Reservation | None:
        """The reservation of a job that runs as it should be; None if it may stay as it is."""
        job = state.jobs.get(found.job_id)
        if job is None or job.status is not Status.RUNNING or job.start_time is None:
            return None
        if job.leaving:
            # Its nodes come free of it one by one, and it may go back to the queue.
            return None
        end = job.start_time + job.paused + job.estimate
        if end <= state.now:
            return None
        # It may have begun before its reservation, and end before that.
        start = found.start if found.start < end else max(job.start_time + self._lag(job), state.now)
        return msgspec.structs.replace(
            found,
            start=start,
            end=end,
            processors=job.processors if job.pool.flat else 0,
            nodes=tuple(name for name, _ in job.placement),
        )

    def _needless(
        self, found: Reservation, booking: Booking | None, wish: Reservation | None, state: State
    ) -> str:
        """Why a reservation that exists is to be removed; "" if it is not."""
        job = state.jobs.get(found.job_id)
        if job is None:
            return f"job {found.job_id} is over"
        if job.attribute("requested_start") is None:
            return f"job {job.id} is not dedicated any more"
        if self.options.reserve == "no":
            return "dedicated jobs have no reservations here (reserve: no)"
        if job.status not in _WAITS:
            return ""
        if job.obstacle is not None and job.obstacle.passing:
            # Nodes that are down may come back, and then it is there.
            return ""
        if job.barred:
            return f"job {job.id} may not start: {state.why_waiting(job)}"
        if booking is None:
            return f"no processors are reserved for job {job.id} now"
        if booking.start == _INF:
            # Nodes that are down may come back, and then it is there.
            return ""
        if wish is None:
            return f"job {job.id} does not start before {booking.when}, or does not fill its nodes"
        if _stuck(found, wish, state.now):
            return f"job {job.id} cannot start before {booking.when}, and this has begun"
        return ""

    def _remove(self, found: Reservation, why: str, state: State) -> Iterator[Decision]:
        effort = self._efforts.setdefault(found.job_id, _Effort())
        if effort.remove_from > state.now or self._asked(effort, state.now):
            return
        effort.since, effort.made, effort.asked = state.now, False, None
        yield Unreserve(found.id, why)

    def _make(
        self, job: Job, found: Reservation | None, wish: Reservation, slack: float, state: State
    ) -> Iterator[Decision]:
        """Make the reservation, or make it as it should be."""
        effort = self._efforts.setdefault(job.id, _Effort())
        if found is not None and self._alike(found, wish, slack, state.now):
            effort.made, effort.since, effort.reported = True, None, ""
            effort.asked = effort.asked or found
            return
        if effort.make_from > state.now or self._asked(effort, state.now):
            return
        obstacle, passing = _obstacle(wish, state)
        # Of a domain that is to be looked at again bookings are made anew; a job that runs needs none.
        if passing or (obstacle and (job.domain.news.due or job.status not in _WAITS)):
            return
        if obstacle:
            text = f"dedicated job {job.id} cannot have its reservation yet: {obstacle}"
            if text != effort.reported:
                effort.reported = text
                state.anomalies.append(f"{text}; headway's own booking stays")
            return
        reason = self._reason(job, found, effort, slack, state.now)
        effort.asked, effort.since = wish, state.now
        yield Reserve(wish, reason)

    def _alike(self, found: Reservation, wish: Reservation, slack: float, now: float) -> bool:
        """Whether a reservation is as it should be. It may begin up to the margin earlier: with its job."""
        early, late = wish.start - self.options.margin - _NEAR, wish.start + _NEAR
        return (
            set(found.nodes) == set(wish.nodes)
            and found.processors == wish.processors
            and set(found.users) == set(wish.users)
            and abs(found.end - wish.end) <= slack
            and (wish.start <= now or early <= found.start <= late)
        )

    def _reason(self, job: Job, found: Reservation | None, effort: _Effort, slack: float, now: float) -> str:
        """Why a reservation is made or changed, for a person."""
        if found is None and effort.made:
            return f"the batch system lost the reservation of dedicated job {job.id}: made again"
        if found is None:
            return f"dedicated job {job.id} starts then"
        if effort.asked is not None and not self._alike(found, effort.asked, slack, now):
            return f"another program or user changed the reservation of dedicated job {job.id}: corrected"
        if job.status is Status.RUNNING:
            return f"dedicated job {job.id} runs on these nodes, and until then"
        return f"dedicated job {job.id} starts elsewhere or at another time"

    @staticmethod
    def _asked(effort: _Effort, now: float) -> bool:
        """Something is under way that may still be answered."""
        return effort.since is not None and effort.since + _PATIENCE > now


def requested(job: Job) -> float:
    """A dedicated job's requested start; minus infinity for any other job."""
    value = job.attribute("requested_start")
    return float(value) if value is not None else -_INF


def _stuck(found: Reservation, wish: Reservation, now: float) -> bool:
    """It has begun, and should begin later: batch systems do not move that."""
    return found.start <= now and wish.start > now + _ROUGHLY


def _obstacle(wish: Reservation, state: State) -> tuple[str, bool]:
    """Why a batch system would refuse the reservation; and whether that will pass by itself at once,
    because what is in the way is another dedicated job's reservation, which moves."""
    nodes = set(wish.nodes)
    for other in state.reservations.values():
        both = nodes.intersection(other.nodes)
        if both and other.id != wish.id and other.start < wish.end and wish.start < other.end:
            owner = state.jobs.get(other.job_id)
            moves = owner is not None and owner.status in _WAITS
            return f"reservation {other.id} has {min(both)} at that time", moves
    start = max(wish.start, state.now)
    for job in state.running_jobs():
        both = nodes.intersection(name for name, _ in job.placement)
        limit = (job.start_time if job.start_time is not None else state.now) + job.paused + job.estimate
        if both and FOR_JOB + job.id != wish.id and (limit > start or start <= state.now):
            return f"job {job.id} may run on {min(both)} until {limit:.0f}", False
    return "", False
