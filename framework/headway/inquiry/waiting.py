"""Why a job waits that is on no nodes: outside of its queue, or in it.

Outside of the queue the state's table decides (:mod:`headway.state.reasons`). In the queue the first row of
:data:`CAUSES` that has something to say does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from headway.inquiry.bookings import Planned, booking_of, first_booked
from headway.inquiry.inquiry import HIDDEN, Inquiry
from headway.state import Job, PoolState
from headway.state.dependencies import is_met
from headway.state.reasons import reason_of
from headway.view import View

_INF = float("inf")

#: Jobs that are named as what a job waits for, at most.
_NAMED = 5


@dataclass(frozen=True)
class Waiting:
    """Why a job waits."""

    #: The name of a row of :data:`CAUSES`, or of a :class:`headway.state.reasons.Reason`.
    kind: str
    #: For a person.
    sentences: tuple[str, ...]
    #: Ids of the jobs that it waits for, as far as the sentences name them.
    jobs: tuple[str, ...] = ()


class Said(NamedTuple):
    """What a row of the table says of a job."""

    sentence: str
    jobs: tuple[str, ...] = ()


# ---------------------------------------------------------------------- outside of the queue


def why_outside(inquiry: Inquiry, job: Job) -> Waiting | None:
    """Why a job that is on no nodes is in no queue; None if it is in a queue."""
    state = inquiry.state
    reason = reason_of(state, job)
    if reason is None:
        return None
    sentence = f"It cannot start: {reason.sentence(state, job, inquiry.clock)}."
    if reason.name == "dependency":
        # Its user has named these jobs.
        return Waiting(reason.name, (sentence,), _depends_on(inquiry, job))
    return Waiting(reason.name, (inquiry.told(sentence),))


def _depends_on(inquiry: Inquiry, job: Job) -> tuple[str, ...]:
    """The jobs and arrays that a job depends on and that are named."""
    unmet = (one for one in job.description.dependencies if not is_met(inquiry.state, job, one))
    return tuple([one.job_id for one in unmet if one.kind != "singleton"])


# ---------------------------------------------------------------------- in the queue


def why_in_queue(inquiry: Inquiry, job: Job) -> Waiting:
    """Why a job waits in the queue of the pool that it faces."""
    for cause in CAUSES:
        said = cause.says(inquiry, job)
        if said is not None:
            break
    else:
        raise AssertionError("the last cause always has something to say")
    sentences = [said.sentence]
    if cause.kind == "booking":
        sentences += filter(None, [_lacking(inquiry, job), _unplaced(inquiry, job)])
    if cause.beside_suspended and (kept := _kept_by_suspended(inquiry, job)) and _has_no_start(inquiry, job):
        sentences.append(kept)
    return Waiting(cause.kind, tuple(sentences), said.jobs)


def view_of(inquiry: Inquiry, job: Job) -> View:
    """What the policy sees of the domain that the job faces."""
    return inquiry.scheduler.views[job.domain.name]


def _has_no_start(inquiry: Inquiry, job: Job) -> bool:
    booking = booking_of(inquiry, job)
    return booking is None or booking.start == _INF


def _nodes_down(inquiry: Inquiry, job: Job) -> Said | None:
    total = job.pool.total
    if job.processors <= total:
        return None
    return Said(f"It needs more processors than the {total} that are usable now (nodes are down).")


def _not_examined(inquiry: Inquiry, job: Job) -> Said | None:
    due = inquiry.scheduler.next_cycle
    if due is None or not job.domain.news.due:
        return None
    at = inquiry.clock(due)
    return Said(f"Something happened since the queue was examined; it is examined next at {at}.")


def _vetoed(inquiry: Inquiry, job: Job) -> Said | None:
    if not job.veto:
        return None
    return Said(f"The policy would start it, but a plugin vetoes that: {inquiry.told(job.veto)}.")


def _booked(inquiry: Inquiry, job: Job) -> Said | None:
    view = view_of(inquiry, job)
    booking = booking_of(inquiry, job)
    if booking is None:
        return None
    if booking.start == _INF:
        none = "No running job's end will make room for it: it waits for nodes or for a reservation to go."
        return Said(none)
    clock = inquiry.clock
    until = [entry for entry in view.running if entry[0] <= booking.start]
    last = [entry for entry in until if inquiry.sees(entry[3])][-_NAMED:]
    names = ", ".join(f"{entry[3].id} (by {clock(entry[0])})" for entry in last)
    more = f" and {len(until) - len(last)} more" if len(until) > len(last) else ""
    waits = f" It waits for the end of job {names}{more}." if until else ""
    if until and not last:
        others = HIDDEN if len(until) == 1 else f"{len(until)} jobs of other users"
        waits = f" It waits for the end of {others}."
    start = f"Processors are kept for it from {clock(booking.start)} on."
    return Said(f"{start}{waits}{_reserved(inquiry, view, booking)}", tuple([entry[3].id for entry in last]))


def _reserved(inquiry: Inquiry, view: View, booking: Planned) -> str:
    """The first reservation that it would run into if it started now, as a sentence; "" if there is none."""
    clock, end = inquiry.clock, view.now + booking.job.expected_runtime
    for kept in view.reservations:
        if kept.start < end and kept.end > view.now and kept.reason and kept.job_id != booking.job.id:
            what = "nodes" if kept.nodes else f"{kept.processors} processors"
            # What a user's reservation is for is that user's.
            why = f" ({inquiry.told(kept.reason)})" if inquiry.sees_all or not kept.users else ""
            return f" From {clock(kept.start)} to {clock(kept.end)} {what} are reserved{why}."
    return ""


def _left_by_policy(inquiry: Inquiry, job: Job) -> Said | None:
    return next((Said(f"{said}.") for _, said in inquiry.said(job, "waiting")), None)


def _lacks_licences(inquiry: Inquiry, job: Job) -> Said | None:
    lacking = _lacking(inquiry, job)
    return Said(lacking) if lacking else None


def _lacking(inquiry: Inquiry, job: Job) -> str:
    """Which of its licences are not free now, as a sentence; "" if all are."""
    licences = inquiry.state.licences
    if licences is None:
        return ""
    for name, amount in job.request.licences:
        total, used = licences.total.get(name, 0), licences.used(name)
        if amount > total - used:
            return f"It needs {amount} of licence {name!r}, of which {used} of {total} are in use."
    return ""


def _short_of_processors(inquiry: Inquiry, job: Job) -> Said | None:
    lacking = job.processors - inquiry.state.free_in(job.pool)
    return Said(f"It waits for {lacking} more processors.") if lacking > 0 else None


def _not_placed(inquiry: Inquiry, job: Job) -> Said | None:
    unplaced = _unplaced(inquiry, job)
    return Said(unplaced) if unplaced else None


def _unplaced(inquiry: Inquiry, job: Job) -> str:
    """Why a plugin places it nowhere although nodes are free, as a sentence; "" if none says so."""
    return next((f"{said}." for _, said in inquiry.said(job, "placement")), "")


def _would_delay(inquiry: Inquiry, job: Job) -> Said | None:
    head, clock = first_booked(inquiry, job.domain), inquiry.clock
    if head is None:
        return None
    other, at = _other(inquiry, head.job, job), clock(head.start)
    if job.pool.flat:
        said = f"It would fit now, but would delay {other}, for which processors are kept from {at} on."
    else:
        said = (
            f"Enough processors are free, but no nodes fit its request without delaying {other}, for which "
            f"nodes are kept from {at} on."
        )
    return Said(said, inquiry.ids([head.job]))


def _behind_another(inquiry: Inquiry, job: Job) -> Said | None:
    first, pool = job.domain.queue[0], job.pool
    if first is job:
        return None
    if pool.flat and first.processors <= inquiry.state.free_in(pool):
        said = (
            f"Enough processors are free for it, and for {inquiry.called(first)}, the first of the queue: "
            "the policy starts neither."
        )
    else:
        said = f"The policy serves {_other(inquiry, first, job)} first."
    return Said(said, inquiry.ids([first]))


def _left_alone(inquiry: Inquiry, job: Job) -> Said:
    if not job.pool.flat:
        return Said("Enough processors are free, but not on nodes that fit its request.")
    return Said("Enough processors are free, and the policy does not start it.")


def _other(inquiry: Inquiry, other: Job, job: Job) -> str:
    """The other job, which ``job`` waits behind."""
    return inquiry.called(other) + (f" of pool {other.pool.name!r}" if other.pool is not job.pool else "")


@dataclass(frozen=True)
class Cause:
    """Why a job may wait in its queue."""

    kind: str
    #: What is to be said of the job; None: this is not why it waits.
    says: Callable[[Inquiry, Job], Said | None]
    #: What suspended jobs keep is told, too.
    beside_suspended: bool = True


#: The first that says something decides; the last always does.
CAUSES: tuple[Cause, ...] = (
    Cause("nodes down", _nodes_down, beside_suspended=False),
    Cause("next cycle", _not_examined, beside_suspended=False),
    Cause("veto", _vetoed),
    Cause("booking", _booked),
    Cause("policy", _left_by_policy),
    Cause("licences", _lacks_licences),
    Cause("processors", _short_of_processors),
    Cause("placement", _not_placed),
    Cause("would delay", _would_delay),
    Cause("order", _behind_another),
    Cause("not started", _left_alone),
)


# ---------------------------------------------------------------------- what suspended jobs keep


def _kept_by_suspended(inquiry: Inquiry, job: Job) -> str:
    """What suspended jobs of its pool keep of what it asks for, as a sentence; "" if they keep nothing."""
    wanted = _beside_processors(job)
    if not wanted:
        return ""
    keepers, kept = [], set()
    for other in inquiry.suspended:
        if other.domain is job.domain:
            common = _beside_processors(other) & wanted
            if common:
                keepers.append(other)
                kept |= common
    if not keepers:
        return ""
    ids = inquiry.ids(keepers)
    one = f"Suspended job {ids[0]} keeps" if ids else "A suspended job of another user keeps"
    who = one if len(keepers) == 1 else "Suspended jobs keep"
    named = ", ".join(ids[:_NAMED]) + (", ..." if len(keepers) > len(ids[:_NAMED]) else "")
    more = "" if len(keepers) == 1 or not ids else f" ({named})"
    return f"{who} what this job also asks for: {', '.join(sorted(kept))}{more}."


def _beside_processors(job: Job) -> set[str]:
    """What a job asks for that it keeps while it is suspended."""
    request = job.request
    found = {f"licence {name!r}" for name, _ in request.licences}
    for part in request.parts or (request,):
        found |= {name for name, _ in (*part.gres_per_node, *part.gres_per_chunk)}
        if part.memory_per_node or part.memory_per_processor or part.memory_per_chunk:
            found.add("memory")
    return found


def in_words(pools: Sequence[PoolState]) -> str:
    """``pools 'a', 'b' and 'c'``."""
    *names, last = [repr(pool.name) for pool in pools]
    return f"pools {', '.join(names)} and {last}" if names else f"pool {last}"
