"""Why a job waits, what it waits for, and when it is expected to start."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from headway.decisions import Decision, Migrate, Start, SwapTiers
from headway.events import (
    DecisionFailed,
    Event,
    JobEnded,
    JobReleasing,
    JobRequeued,
    JobStarted,
    JobSubmitted,
    JobSuspended,
)
from headway.journal import HistoryEntry
from headway.model import Placement
from headway.scheduler import Scheduler, plain_clock
from headway.state import Job, PoolState, Status
from headway.state.choices import facing_each, pools_of, ways
from headway.state.occupation import BACKGROUND, FOREGROUND
from headway.state.reasons import why_not_in
from headway.state.records import ON_NODES
from headway.view import Booking, View

_INF = float("inf")

#: Sentences about a job in the queue of the pool that it faces.
_InQueue = Callable[[Scheduler, Job, Callable[[float], str]], list[str]]

#: Spans of an array's numbers that are shown of a group of elements.
_SPANS = 10
#: Parts of a job that are shown.
_PARTS = 8

#: What a run tells of a job when it begins: with the time at which it happened, or with its own.
_STATED = (JobSubmitted, JobStarted, JobEnded)
_FOUND = (*_STATED, JobReleasing, JobSuspended)


def told_once(history: Iterable[HistoryEntry]) -> Iterator[HistoryEntry]:
    """A job's history without what a later run only found as it was: each begins with all jobs there are."""
    told: set[tuple[type, float]] = set()
    shown: type | None = None
    run = None
    for entry in history:
        if isinstance(entry.what, Event):
            kind = type(entry.what)
            stated = (kind, entry.time)
            found = run is not None and entry.run_id != run
            if found and kind in _FOUND and (stated in told or kind is shown):
                continue
            if isinstance(entry.what, _STATED):
                told.add(stated)
            shown = kind
        if run is None:
            run = entry.run_id
        yield entry


def last_failure(history: Sequence[HistoryEntry]) -> str:
    """Why a job's last start failed, from its history; "" if nothing became of it since that says otherwise.

    What the daemon learned from it (nodes that the batch system will not have for this job, a pause) a fresh
    look at the cluster does not show.
    """
    for entry in reversed(history):
        what = entry.what
        if isinstance(what, DecisionFailed) and isinstance(what.decision, Start):
            return what.message
        if isinstance(what, Start | JobStarted | JobEnded | JobRequeued):
            return ""
    return ""


def find_job(scheduler: Scheduler, job_id: str) -> Job | None:
    """The job of this id; of ``7+1``, a component, the heterogeneous job 7 that it belongs to."""
    jobs = scheduler.state.jobs
    whole, plus, offset = job_id.partition("+")
    job = jobs.get(job_id)
    if job is None and plus and offset.isdecimal() and whole in jobs and jobs[whole].request.parts:
        return jobs[whole]
    return job


def _array(
    scheduler: Scheduler, array_id: str, clock: Callable[[float], str], wished: Sequence[Decision]
) -> list[str]:
    """Sentences about the elements of a job array that are not over; [] if there are none."""
    elements = [job for job in scheduler.state.jobs.values() if job.description.array_id == array_id]
    if not elements:
        return []
    elements.sort(key=lambda job: (job.description.array_index or 0, job.seq))
    starting = {decision.job_id for decision in wished if isinstance(decision, Start)}
    count = f"{len(elements)} element{'s' if len(elements) > 1 else ''}"
    lines = [f"Job array {array_id} of {elements[0].user or 'an unknown user'}: {count} not over."]
    groups: dict[str, list[Job]] = {}
    for job in elements:
        if job.id in starting:
            what = "Would be started now"
        elif job.status in ON_NODES:
            what = "On nodes"
        elif reason := scheduler.state.why_waiting(job, clock):
            what = f"Cannot start: {reason}"
        else:
            what = "In the queue"
        groups.setdefault(what, []).append(job)
    for what, jobs in sorted(groups.items(), key=lambda group: group[1][0].description.array_index or 0):
        lines.append(f"{what}: {_numbers(jobs)}.")
    queued = [job for job in groups.get("In the queue", ()) if job in job.domain.queue]
    if queued:
        first = min(queued, key=lambda job: job.domain.queue.index(job))
        told = " ".join(_in_queues(scheduler, first, clock, partial(_in_queue, wished=wished)))
        lines.append(f"The first of these is {first.id}. {told}")
    return lines


def _pools(pools: Sequence[PoolState]) -> str:
    *names, last = [repr(pool.name) for pool in pools]
    return f"pools {', '.join(names)} and {last}" if names else f"pool {last}"


def _numbers(jobs: Sequence[Job]) -> str:
    """``3, 5-9 (6 elements)`` for the elements of an array, in order of their numbers."""
    spans: list[list[int]] = []
    for number in (job.description.array_index or 0 for job in jobs):
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    shown = [str(first) if first == last else f"{first}-{last}" for first, last in spans[:_SPANS]]
    more = ", ..." if len(spans) > _SPANS else ""
    return f"{', '.join(shown)}{more}{f' ({len(jobs)} elements)' if len(jobs) > 1 else ''}"


def explain(
    scheduler: Scheduler,
    job_id: str,
    clock: Callable[[float], str],
    wished: Sequence[Decision] = (),
) -> list[str]:
    """Sentences about a job, or the elements of an array, as the scheduler knows them after its last step;
    [] if it knows none.

    ``wished`` are that step's decisions, where they are not carried out.
    """
    job = find_job(scheduler, job_id)
    if job is None:
        return _array(scheduler, job_id, clock, wished)
    request = job.request
    asks = f"{job.processors} processors"
    if request.nodes:
        asks += f" on {request.nodes} nodes"
    if request.parts:
        sizes = " and ".join(str(part.processors) for part in request.parts[:_PARTS])
        more = f" and {len(request.parts) - _PARTS} more parts" if len(request.parts) > _PARTS else ""
        apart = "together"
        if request.parts_apart:
            apart += f" and each on {request.parts_apart} of its own"
        asks += f" ({sizes}{more}, {apart})"
    asks += f" for {job.estimate:.0f} s"
    where = _pools([job.pool] if job.status in ON_NODES else pools_of(job))
    first = f"Job {job.id} of {job.user or 'an unknown user'} asks for {asks} in {where}"
    lines = [f"{first}; it was submitted at {clock(job.submit_time)}."]
    if scheduler.state.predict is not None:
        lines.extend(_not_predicted(scheduler, job))
        lines.append(_predicted(scheduler, job))
    for decision in wished:
        if isinstance(decision, Start) and decision.job_id == job.id:
            place = _where(decision.placement, decision.tier)
            place += f" in pool {decision.pool!r}" if decision.pool else ""
            lines.append(f"It would be started now{place}: {decision.reason or 'it fits'}.")
            return lines
    if job.status in (Status.RUNNING, Status.SUSPENDED, Status.STARTING):
        verb = {"running": "runs", "suspended": "is suspended", "starting": "is being started"}[
            job.status.value
        ]
        # A move that would be decided now counts from then on; it has not been carried out.
        placement, tier, _ = scheduler.state.before_move.get(job.id, (job.placement, job.tier, None))
        place = _where(placement, tier)
        return [
            *lines,
            f"It {verb}{place}, {_expected(job, clock)}.",
            *_suspended(scheduler, job, clock),
            *_moved(job, wished),
        ]
    lines.extend(_waits(scheduler, job, clock, partial(_in_queue, wished=wished)))
    return lines


def why_not_started(scheduler: Scheduler, job: Job, clock: Callable[[float], str]) -> str:
    """Why a job waits, without its place in the queue, in the sentences of :func:`explain`."""
    return " ".join(_waits(scheduler, job, clock, _why_in_queue))


def _waits(scheduler: Scheduler, job: Job, clock: Callable[[float], str], in_queue: _InQueue) -> list[str]:
    """Why a job that is on no nodes is on none."""
    reason = scheduler.state.why_waiting(job, clock)
    if reason:
        return [f"It cannot start: {reason}."]
    return _in_queues(scheduler, job, clock, in_queue)


def _expected(job: Job, clock: Callable[[float], str]) -> str:
    """When a job on nodes is expected to end."""
    if math.isinf(job.expected_end):
        return "and nobody knows when it will end"
    return f"expected to end by {clock(job.expected_end)}"


def _suspended(scheduler: Scheduler, job: Job, clock: Callable[[float], str]) -> Iterator[str]:
    """For which job this job is suspended, and when it runs again."""
    if job.status is not Status.SUSPENDED:
        return
    for _, said in _said(scheduler, job, "suspension", clock):
        yield f"{said}."


def _said(
    scheduler: Scheduler, job: Job, question: str, clock: Callable[[float], str] = plain_clock
) -> Iterator[tuple[str, str]]:
    """What plugins answer to a question about a job (hook ``explain``), each with its name."""
    view = job.domain.view
    for name, answer in scheduler.plugins.implementations("explain"):
        if said := answer(job, question, view, clock):
            yield name, str(said)


def _where(placement: Placement, tier: str) -> str:
    """Where a job runs or would run, after its verb."""
    nodes = ", ".join(name for name, _ in placement)
    behind = " in the background" if tier == BACKGROUND else ""
    return f"{behind} on {nodes}" if nodes else behind


def _moved(job: Job, wished: Sequence[Decision]) -> list[str]:
    """What would become now of a job that has its processors already."""
    lines = []
    for decision in wished:
        if isinstance(decision, SwapTiers) and job.id in (decision.job_id, decision.other_job_id):
            tier = FOREGROUND if job.id == decision.job_id else BACKGROUND
            what = f"moved to the {tier} of its own processors"
        elif isinstance(decision, Migrate) and job.id == decision.job_id:
            what = "begun again" if decision.restart else "moved, to go on"
            what += _where(decision.placement or job.placement, decision.tier or job.tier)
        else:
            continue
        lines.append(f"It would be {what} now: {decision.reason or 'the policy has it so'}.")
    return lines


def _not_predicted(scheduler: Scheduler, job: Job) -> Iterator[str]:
    """Which plugins could have predicted how long it runs, and why they do not."""
    for name, said in _said(scheduler, job, "no prediction"):
        if name != job.predicted_by:
            yield f"Plugin {name!r} does not predict it: {said}."


def _predicted(scheduler: Scheduler, job: Job) -> str:
    """The job's predicted runtime, the plugin that predicts it, and the plugin's reason."""
    name = job.predicted_by
    if not name:
        return f"No plugin predicts how long it runs: it is planned with {job.expected_runtime:.0f} s."
    why = dict(_said(scheduler, job, "prediction")).get(name)
    because = f": {why}" if why else ""
    return (
        f"Plugin {name!r} predicts that it runs for {job.expected_runtime:.0f} s{because}. "
        f"It is planned with that, and may run for {job.estimate:.0f} s."
    )


def _in_queues(
    scheduler: Scheduler, job: Job, clock: Callable[[float], str], in_queue: _InQueue
) -> list[str]:
    """Of each pool of a job that waits why it waits there."""
    if not job.choices:
        return in_queue(scheduler, job, clock)
    lines, told = [], set[str]()
    for choice in facing_each(job):
        domain = job.domain
        if why := why_not_in(choice):
            lines.append(f"In pool {choice.pool.name!r}: {why}.")
        elif job.id in domain.shared and domain.name not in told:
            told.add(domain.name)
            first, *rest = in_queue(scheduler, job, clock)
            lines += [f"In {_pools(ways(job, domain))} {first[0].lower()}{first[1:]}", *rest]
    return lines


def _in_queue(
    scheduler: Scheduler, job: Job, clock: Callable[[float], str], *, wished: Sequence[Decision] = ()
) -> list[str]:
    """Its place in the queue, and why it waits there; ``wished``: what would be started now."""
    pool, domain = job.pool, job.domain
    shared = f" of {_pools(domain.pools)}, which share nodes" if len(domain.pools) > 1 else ""
    given = _given_now(scheduler, pool, wished)
    more = f", of which jobs that start now get {given}" if given else ""
    return [
        f"It is number {domain.queue.index(job) + 1} of {len(domain.queue)} in the queue{shared}; "
        f"{scheduler.state.free_in(pool) + given} of {pool.total} processors are free{more}.",
        *_why_in_queue(scheduler, job, clock),
    ]


def _why_in_queue(scheduler: Scheduler, job: Job, clock: Callable[[float], str]) -> list[str]:
    """Why it waits in the queue."""
    pool, domain, free = job.pool, job.domain, scheduler.state.free_in(job.pool)
    view = scheduler.views[domain.name]
    lines = []
    if job.processors > pool.total:
        lines.append(f"It needs more processors than the {pool.total} that are usable now (nodes are down).")
        return lines
    due = scheduler.next_cycle
    if due is not None and domain.news.due:
        lines.append(f"Something happened since the queue was examined; it is examined next at {clock(due)}.")
        return lines
    booking = view.booked(job)
    if job.veto:
        lines.append(f"The policy would start it, but a plugin vetoes that: {job.veto}.")
    elif booking is not None:
        lines.append(_booked(view, booking, clock))
        lines.extend(filter(None, [_lacking(scheduler, job), _unplaced(scheduler, job)]))
    elif why := _policys_reason(scheduler, job):
        lines.append(f"{why}.")
    elif lacking := _lacking(scheduler, job):
        lines.append(lacking)
    elif job.processors > free:
        lines.append(f"It waits for {job.processors - free} more processors.")
    elif unplaced := _unplaced(scheduler, job):
        lines.append(unplaced)
    elif view.bookings:
        head = view.bookings[0]
        if pool.flat:
            lines.append(
                f"It would fit now, but would delay {_other(head.job, job)}, for which processors are kept "
                f"from {clock(head.start)} on."
            )
        else:
            lines.append(
                "Enough processors are free, but no nodes fit its request without delaying "
                f"{_other(head.job, job)}, for which nodes are kept from {clock(head.start)} on."
            )
    elif job is not domain.queue[0] and pool.flat and domain.queue[0].processors <= free:
        first = domain.queue[0].id
        lines.append(
            f"Enough processors are free for it, and for job {first}, the first of the queue: the policy "
            "starts neither."
        )
    elif job is not domain.queue[0]:
        lines.append(f"The policy serves {_other(domain.queue[0], job)} first.")
    elif not pool.flat:
        lines.append("Enough processors are free, but not on nodes that fit its request.")
    else:
        lines.append("Enough processors are free, and the policy does not start it.")
    if (booking is None or booking.start == _INF) and (kept := _kept_by_suspended(scheduler, job)):
        lines.append(kept)
    return lines


def _given_now(scheduler: Scheduler, pool: PoolState, wished: Sequence[Decision]) -> int:
    """Processors of a pool that the wished starts take: these jobs are not started yet."""
    nodes = scheduler.state.nodes.descriptions
    given = 0
    for start in wished:
        if not isinstance(start, Start) or start.tier != FOREGROUND:
            continue
        if start.placement:
            given += sum(count for name, count in start.placement if pool.name in nodes[name].pools)
        elif (job := scheduler.state.jobs.get(start.job_id)) is not None and job.pool is pool:
            given += job.processors
    return given


def _other(other: Job, job: Job) -> str:
    """The other job, which ``job`` waits behind."""
    return f"job {other.id}" + (f" of pool {other.pool.name!r}" if other.pool is not job.pool else "")


def _kept_by_suspended(scheduler: Scheduler, job: Job) -> str:
    """What suspended jobs of its pool keep of what it asks for, as a sentence; "" if they keep nothing."""
    keepers, kept = [], set()
    for other in scheduler.state.jobs.values():
        if other.status is Status.SUSPENDED and other.domain is job.domain:
            common = _beside_processors(other) & _beside_processors(job)
            if common:
                keepers.append(other.id)
                kept |= common
    if not keepers:
        return ""
    who = f"Suspended job {keepers[0]} keeps" if len(keepers) == 1 else "Suspended jobs keep"
    more = "" if len(keepers) == 1 else f" ({', '.join(keepers[:5])}{', ...' if len(keepers) > 5 else ''})"
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


def _lacking(scheduler: Scheduler, job: Job) -> str:
    """Which of its licences are not free now, as a sentence; "" if all are."""
    licences = scheduler.state.licences
    if licences is None:
        return ""
    for name, amount in job.request.licences:
        total, used = licences.total.get(name, 0), licences.used(name)
        if amount > total - used:
            return f"It needs {amount} of licence {name!r}, of which {used} of {total} are in use."
    return ""


def _unplaced(scheduler: Scheduler, job: Job) -> str:
    """Why a plugin places it nowhere although nodes are free, as a sentence; "" if none says so."""
    return next((f"{said}." for _, said in _said(scheduler, job, "placement")), "")


def _policys_reason(scheduler: Scheduler, job: Job) -> str:
    """What the policy says about a waiting job that is not booked; "" if it says nothing."""
    return next((said for _, said in _said(scheduler, job, "waiting")), "")


def _booked(view: View, booking: Booking, clock: Callable[[float], str]) -> str:
    if booking.start == _INF:
        return "No running job's end will make room for it: it waits for nodes or for a reservation to go."
    until = [entry for entry in view.running if entry[0] <= booking.start]
    names = ", ".join(f"{e[3].id} (by {clock(e[0])})" for e in until[-5:])
    more = f" and {len(until) - 5} more" if len(until) > 5 else ""
    waits = f" It waits for the end of job {names}{more}." if until else ""
    return (
        f"Processors are kept for it from {clock(booking.start)} on.{waits}{_reserved(view, booking, clock)}"
    )


def _reserved(view: View, booking: Booking, clock: Callable[[float], str]) -> str:
    """The first reservation that it would run into if it started now, as a sentence; "" if there is none."""
    end = view.now + booking.job.expected_runtime
    for kept in view.reservations:
        if kept.start < end and kept.end > view.now and kept.reason and kept.job_id != booking.job.id:
            what = "nodes" if kept.nodes else f"{kept.processors} processors"
            return f" From {clock(kept.start)} to {clock(kept.end)} {what} are reserved ({kept.reason})."
    return ""
