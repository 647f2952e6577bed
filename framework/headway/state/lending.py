"""Suspended jobs that lend their processors: other jobs may have them until the job runs again.

A job lends only when a plugin asks for it that will resume the job itself (:func:`lend`). Any other suspended
job keeps its processors: a user or administrator may let it run again at any moment, and a batch system that
is told to resume a job does not look whether there is room. So only :func:`take_again` lets a lending job
back, and it passes the same guard as a start. The job keeps its memory, generic resources and licences all
the time.
"""

from __future__ import annotations

from headway.errors import StateError
from headway.model import Placement
from headway.resources import layout_is_open
from headway.state.belonging import inside
from headway.state.facts import Facts
from headway.state.occupation import expected_end, leave_running, move, occupy, set_expected_end
from headway.state.records import Job, Status
from headway.state.reservations import profile

_INF = float("inf")


def lend(state: Facts, job: Job) -> bool:
    """Other jobs may have a suspended job's processors from now on; False, and nothing is changed, if it has
    none to lend. No watcher is told that it gave anything back: it goes on counting against limits."""
    if job.status is not Status.SUSPENDED or not job.entries or not state.cluster.suspended_lend:
        return False
    leave_running(job.entries)
    if state.tenants is not None:
        state.tenants.leave(job)
    if job.taken is not None:
        for name, (_, usable) in state.nodes.lend(job.taken, job.placement).items():
            if name in state.domains:
                state.domains[name].free += usable
    job.entries, job.lends = (), True
    job.expected_end = _INF
    return True


def move_on(state: Facts, job: Job, placement: Placement) -> None:
    """A job is on other nodes, or has a new size; a job that lends its processors lends on."""
    lends = job.lends
    move(state, job, placement)
    if lends:
        lend(state, job)


def remaining(state: Facts, job: Job) -> float:
    """Seconds that a suspended job is expected to run on once it is resumed."""
    return max(0.0, job.expected_runtime - job.done(state.now))


def why_not_resumed(state: Facts, job: Job) -> str:
    """Why a suspended job cannot run again now, as a sentence without its full stop; "" if it can."""
    if job.status is not Status.SUSPENDED:
        return f"job {job.id} is {job.status.value}, not suspended"
    if not job.lends:
        return ""
    domain = job.domain
    end = state.now + remaining(state, job)
    if domain.flat:
        if job.processors > domain.free:
            return f"job {job.id} had {job.processors} processors, {domain.free} are free"
        allowed = inside(state, job)
        met = [r for r in domain.reservations if r.start < end and r.end > state.now and r.id != allowed]
        if met and profile(state, domain, without=(allowed,)).minimum(state.now, end) < job.processors:
            return f"job {job.id} would break reservation {', '.join(r.id for r in met)}"
        return ""
    try:
        state.nodes.guard_return(job.taken or job.request, job.placement, job.pool.name)
    except StateError as error:
        return f"job {job.id}: {error}"
    if state.cluster.shares_out and (other := _open_start(state, job)):
        return f"job {other} is being started on its nodes, and its share of them is not known yet"
    broken = state.nodes.broken(job.placement, state.now, end, inside(state, job))
    return f"job {job.id} would break reservation {broken.id} on its nodes" if broken is not None else ""


def _open_start(state: Facts, job: Job) -> str:
    """A start on its way to the job's nodes whose processors the batch system shares out itself; "": none."""
    nodes = {name for name, _ in job.placement}
    for *_, other in job.domain.running:
        starting = other.status is Status.STARTING and layout_is_open(other.request, other.placement)
        if starting and any(name in nodes for name, _ in other.placement):
            return other.id
    return ""


def take_again(state: Facts, job_id: str) -> None:
    """It was decided that a suspended job runs again: what it lends is its own from now on.

    Raises :class:`StateError`, and changes nothing, if it is not suspended, if other jobs have its
    processors, if a reservation would be broken, or if a node of it cannot be used."""
    job = state.jobs.get(job_id)
    if job is None:
        raise StateError(f"job {job_id} is not known")
    if why := why_not_resumed(state, job):
        raise StateError(why)
    if job.lends:
        left = remaining(state, job)
        come_back(state, job)
        set_expected_end(state, job, state.now + left)
        state.returning.add(job_id)


def come_back(state: Facts, job: Job) -> None:
    """What a job lends is its own again, also where a borrower has it."""
    start, placement = job.start_time if job.start_time is not None else state.now, job.placement
    if job.taken is not None:
        # Its memory with the rest.
        state.nodes.end_lending(job.taken, placement)
        job.taken, job.placement = None, ()
    job.lends, job.entries = False, None
    watchers, state.watchers = state.watchers, []
    try:
        occupy(state, job, placement, start)
    finally:
        state.watchers = watchers


def not_resumed(state: Facts, job_id: str) -> None:
    """It does not run again after all: it lends as before."""
    if job_id in state.returning:
        state.returning.discard(job_id)
        job = state.jobs.get(job_id)
        if job is not None:
            lend(state, job)


def resumed_as_decided(state: Facts, job: Job) -> None:
    """It runs again, and its pause is counted."""
    state.returning.discard(job.id)
    if job.start_time is not None:
        set_expected_end(state, job, expected_end(job, job.start_time))
