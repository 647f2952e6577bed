"""Why a job that is on no nodes is not in its queue either: one ordered table.

The first reason that holds decides. The state goes through :data:`REASONS` when a job arrives or changes, and
when something wakes it (:func:`find_out`). It writes what it finds into the job's record, and the same table
says from the record why the job waits (:func:`why_waiting`). Where no reason holds, the job is in its queue,
and its policy decides.

Most jobs ask for nothing but processors: :func:`is_plain` sees at a glance that only a barrier can keep such
a job out.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from headway.model import Reservation
from headway.state.barred import Barred
from headway.state.dependencies import due_by_clock, unmet_dependencies
from headway.state.facts import Facts
from headway.state.obstacles import find_obstacle
from headway.state.records import Barrier, Choice, Job, Obstacle, PoolState
from headway.state.wakeups import wake_at

_INF = float("inf")

#: Writes a time for a person.
Clock = Callable[[float], str]


class _Place(Protocol):
    """A job and the pool that it faces, or a choice of the job."""

    @property
    def pool(self) -> PoolState: ...
    @property
    def refusal(self) -> str: ...
    @property
    def obstacle(self) -> Obstacle | None: ...
    @property
    def barrier(self) -> Barrier | None: ...


class _OfPool(NamedTuple):
    """What keeps a job out of one pool: the pool that the job faces, or the pool of a choice."""

    #: Whether the record says so.
    holds: Callable[[_Place], bool]
    #: For a person, without its full stop.
    sentence: Callable[[_Place], str]


@dataclass(frozen=True, slots=True)
class Reason:
    """A reason for which a job waits outside of its queue."""

    name: str
    #: Whether the job's record says so.
    holds: Callable[[Facts, Job], bool]
    #: What wakes the job, beside a change of the job itself.
    wakes: str
    #: The reason for a person, without its full stop.
    sentence: Callable[[Facts, Job, Clock], str]
    #: Finds out what the record has to say; where that is work, it is done only if no reason before it holds.
    ask: Callable[[Facts, Job], None] | None = None
    #: Notes the job where its waker will find it; a job that events wake is found without.
    note: Callable[[Facts, Job], None] | None = None
    #: It keeps the job out of one pool. A job that was sent to several pools may be in another pool's queue.
    of_pool: _OfPool | None = None

    @classmethod
    def in_pool(
        cls,
        name: str,
        of_pool: _OfPool,
        wakes: str,
        sentence: Callable[[Facts, Job, Clock], str] | None = None,
        ask: Callable[[Facts, Job], None] | None = None,
        note: Callable[[Facts, Job], None] | None = None,
    ) -> Reason:
        """A reason of one pool, of which a job says what a choice says; ``sentence``: a job says this."""
        holds, said = of_pool
        return cls(
            name,
            holds=lambda state, job: holds(job),
            wakes=wakes,
            sentence=sentence or (lambda state, job, clock: said(job)),
            ask=ask,
            note=note,
            of_pool=of_pool,
        )


# ---------------------------------------------------------------------- of a single pool


def why_not_in(choice: Choice) -> str:
    """Why that pool could not start the job, as far as the pool is the reason; "" if it is not."""
    return next((sentence(choice) for holds, sentence in _OF_POOL if holds(choice)), "")


def in_each(choices: Iterable[Choice]) -> str:
    """For each pool why it could not start the job, for a person."""
    return "; ".join(f"in pool {choice.pool.name!r}: {why_not_in(choice)}" for choice in choices)


# ---------------------------------------------------------------------- what is found out


def _ask_for_obstacle(state: Facts, job: Job) -> None:
    job.obstacle = find_obstacle(state, job)


def _ask_for_barrier(state: Facts, job: Job) -> None:
    job.barrier = None if state.bars is None else state.bars(job)


def note_dependencies(state: Facts, job: Job) -> None:
    """Note whether the job waits for other jobs, and since when it does so no more."""
    dependencies = job.description.dependencies
    if job.held and dependencies and all(one.kind == "singleton" for one in dependencies):
        # There may be very many held namesakes, of which each would be looked at at each end.
        return
    if dependencies and unmet_dependencies(state, job):
        job.independent = _INF
    elif job.independent == _INF:
        job.independent = state.now


# ---------------------------------------------------------------------- times and reservations


def _named(state: Facts, job: Job) -> Reservation | None:
    """The reservation that the job names, if the job may use it."""
    named = state.reservations.get(job.description.reservation)
    return named if named is not None and named.job_id in ("", job.id) else None


def _begin_time(job: Job) -> float:
    begin = job.description.begin_time
    return -_INF if begin is None else begin


def _reserved_from(state: Facts, job: Job) -> float:
    named = _named(state, job) if job.description.reservation else None
    return -_INF if named is None else named.start


def _wake_in_time(state: Facts, job: Job) -> None:
    """Once all times that the job waits for have come."""
    wake_at(state, max(_begin_time(job), job.not_before, _reserved_from(state, job)), job)


def _wake_after_delay(state: Facts, job: Job) -> None:
    if (due := due_by_clock(state, job)) != _INF:
        wake_at(state, due, job)


# ---------------------------------------------------------------------- sentences and notes


def _held(state: Facts, job: Job, clock: Clock) -> str:
    return "held" + (f" ({job.hold_reason})" if job.hold_reason else " by its user or an administrator")


def _cannot_run(state: Facts, job: Job, clock: Clock) -> str:
    return f"{job.obstacle}{f'; its last start failed ({job.hold_reason})' if job.failures else ''}"


def _not_its_reservation(state: Facts, job: Job, clock: Clock) -> str:
    name = job.description.reservation
    if name not in state.reservations:
        return f"it asks for reservation {name!r}, which does not exist"
    return f"reservation {name!r} is kept for job {state.reservations[name].job_id} alone"


def _tried_again(state: Facts, job: Job, clock: Clock) -> str:
    why = f"its last start failed ({job.hold_reason})" if job.failures else job.hold_reason
    return f"{why}; it is tried again at {clock(job.not_before)}"


def _note_obstacle(state: Facts, job: Job) -> None:
    state.new_obstacles.append(job)


def note_barrier(state: Facts, job: Job) -> None:
    """The job waits until its barrier is lifted."""
    if job.barrier is not None and job.barrier.key is not None:
        barred_by(state, job.barrier.key).put(job)


def barred_by(state: Facts, key: Hashable) -> Barred:
    """The jobs that barriers of that key keep out of their queues."""
    barred = state.barred.get(key)
    if barred is None:
        barred = state.barred[key] = Barred()
    return barred


# ---------------------------------------------------------------------- the table

_BARRIER = Reason.in_pool(
    "barrier",
    _OfPool(lambda place: place.barrier is not None, lambda place: str(place.barrier)),
    wakes="the plugin says that there may be room (`State.lifted`)",
    ask=_ask_for_barrier,
    note=note_barrier,
)

REASONS: tuple[Reason, ...] = (
    Reason.in_pool(
        "refusal",
        _OfPool(lambda place: bool(place.refusal), lambda place: f"refused: {place.refusal}"),
        wakes="nothing",
    ),
    Reason(
        "hold",
        holds=lambda state, job: job.held,
        wakes="the job is released",
        sentence=_held,
    ),
    Reason(
        "route",
        holds=lambda state, job: bool(job.bound_for),
        wakes="it arrives there, or the batch system refuses it",
        sentence=lambda state, job, clock: f"it is on its way to pool {job.bound_for!r}",
    ),
    Reason.in_pool(
        "closed pool",
        _OfPool(lambda place: not place.pool.open, lambda place: f"pool {place.pool.name!r} is closed"),
        wakes="the pool opens",
    ),
    Reason.in_pool(
        "obstacle",
        _OfPool(lambda place: place.obstacle is not None, lambda place: str(place.obstacle)),
        wakes="the pool, its nodes, the reservation or the licences are described anew",
        sentence=_cannot_run,
        ask=_ask_for_obstacle,
        note=_note_obstacle,
    ),
    Reason(
        "no such reservation",
        holds=lambda state, job: bool(job.description.reservation) and _named(state, job) is None,
        wakes="the reservation is made",
        sentence=_not_its_reservation,
    ),
    Reason(
        "begin time",
        holds=lambda state, job: _begin_time(job) > state.now,
        wakes="the clock",
        sentence=lambda state, job, clock: f"its begin time {clock(_begin_time(job))} has not come",
        note=_wake_in_time,
    ),
    Reason(
        "failed start or set aside",
        holds=lambda state, job: job.not_before > state.now,
        wakes="the clock",
        sentence=_tried_again,
        note=_wake_in_time,
    ),
    Reason(
        "reservation",
        holds=lambda state, job: _reserved_from(state, job) > state.now,
        wakes="the clock",
        sentence=lambda state, job, clock: (
            f"its reservation {job.description.reservation!r} begins at {clock(_reserved_from(state, job))}"
        ),
        note=_wake_in_time,
    ),
    Reason(
        "dependency",
        holds=lambda state, job: job.independent == _INF,
        wakes=(
            "a job that it waits for starts, ends, goes back or changes; the clock, where there is a delay"
        ),
        sentence=lambda state, job, clock: unmet_dependencies(state, job),
        note=_wake_after_delay,
    ),
    _BARRIER,
)

#: What may keep a job out of one pool, in this order.
_OF_POOL = tuple(reason.of_pool for reason in REASONS if reason.of_pool is not None)

#: The rows that can hold for a plain job.
_OF_PLAIN_JOBS = (_BARRIER,)

#: Of a job of several pools none of which could start it: each has its own reason.
_IN_NO_POOL = Reason(
    "in no pool",
    holds=lambda state, job: all(map(why_not_in, job.choices)),
    wakes="whatever one of the reasons says",
    sentence=lambda state, job, clock: in_each(job.choices),
)
_REFUSED_OR_HELD, _OTHERS = REASONS[:3], REASONS[3:]
#: The rows of a job of several pools.
_OF_SEVERAL_POOLS = (
    *_REFUSED_OR_HELD,
    _IN_NO_POOL,
    *(reason for reason in _OTHERS if reason.of_pool is None),
)


def is_plain(job: Job, now: float) -> bool:
    """Whether nothing but a barrier can keep the job out of its queue, as is plain at a glance. False: the
    table knows."""
    pool = job.pool
    return (
        job.unconditional
        and pool.open
        and pool.flat
        and pool.bounds is None
        and not job.choices
        and not job.held
        and not job.refusal
        and job.processors <= pool.total
        and job.not_before <= now
    )


def find_out(state: Facts, job: Job) -> Reason | None:
    """Ask anew why the job cannot be in the queue of the pool that it faces; None if it can."""
    job.obstacle = None
    for reason in _OF_PLAIN_JOBS if is_plain(job, state.now) else REASONS:
        if reason.ask is not None:
            reason.ask(state, job)
        if reason.holds(state, job):
            return reason
    return None


def reason_of(state: Facts, job: Job) -> Reason | None:
    """Why the job, which is on no nodes, is in no queue, as its record says; None if it is in a queue."""
    rows = _OF_SEVERAL_POOLS if job.choices else REASONS
    return next((reason for reason in rows if reason.holds(state, job)), None)


def why_waiting(state: Facts, job: Job, clock: Clock = "{:.0f}".format) -> str:
    """Why a job that is not in a queue cannot be started; "" if it can. ``clock`` writes times."""
    reason = reason_of(state, job)
    return "" if reason is None else reason.sentence(state, job, clock)
