"""The life of a job, event by event: it arrives, is held and released, starts, goes back, changes, ends."""

from __future__ import annotations

import msgspec

from headway import events as ev
from headway.decisions import Migrate, Start, SwapTiers
from headway.model import JobDescription
from headway.model.numbering import number
from headway.state.arrays import element_came, went
from headway.state.bundles import whole
from headway.state.choices import choose, face_start
from headway.state.expectations import expect_again, predict
from headway.state.facts import Facts
from headway.state.foresight import Foreseeable, take_back
from headway.state.kinds import give_kind
from headway.state.moves import move_failed
from headway.state.occupation import expected_end, move, occupy, release, set_expected_end
from headway.state.queues import enqueue, give_order, leave_queue
from headway.state.reasons import is_plain
from headway.state.records import ON_NODES, Job, Status, unconditional
from headway.state.still_there import settled
from headway.state.waiting import queue_or_wait, tell_dependants

_INF = float("inf")
_PENDING = Status.PENDING
_WAITING = Status.WAITING
_STARTING = Status.STARTING
_RUNNING = Status.RUNNING
_ENDED = Status.ENDED


def submitted(state: Facts, event: ev.JobSubmitted) -> None:
    """A job arrived: it is predicted, keyed and admitted, and queued or waits."""
    description = event.job
    job_id = description.id
    if job_id in state.jobs:
        state.anomalies.append(
            f"job {job_id} was submitted twice; the second submission is taken as a change"
        )
        job_changed(state, ev.JobChanged(time=event.time, job=description))
        return
    pool = state.pool_of(description)
    if pool is None:
        state.anomalies.append(f"job {job_id} is in pool {description.pool!r}, which does not exist; ignored")
        return
    state.seq += 1
    job = Job.arrived(description, pool, number(job_id) if state.cluster.numbered else state.seq)
    job.hold_reason = event.reason
    state.jobs[job_id] = job
    if description.array_id:
        element_came(state, job)
    if description.dependencies:
        state.depending.append(job)
    if description.further_pools:
        choose(state, job)
    if description.attributes is not None and (parent := whole(state, description)):
        state.bundles.add(parent)
    if state.predict is not None:
        predict(state, job)
    if state.queue_key is not None:
        give_order(state, job)
    if state.admit is not None and job_id not in state.passing:
        state.admit(job)
    if state.bar_kind is not None:
        give_kind(state, job)
    if state.bars is None and is_plain(job, state.now):
        enqueue(state, job)
    else:
        queue_or_wait(state, job)


def releasing(state: Facts, event: ev.JobReleasing) -> None:
    """A predecessor of this run decided a start that is on its way."""
    job = state.known(event.job_id, "on its way")
    if job is not None and job.status in (_PENDING, _WAITING):
        leave_queue(state, job)
        if job.choices:
            face_start(state, job, event.placement, event.pool)
        occupy(state, job, event.placement, event.time)
        job.status = _STARTING
        job.frequency = event.frequency


def started(state: Facts, event: ev.JobStarted) -> None:
    """A job runs: by our start, whose time and nodes this corrects, or by a start from outside headway."""
    job = state.jobs.get(event.job_id)
    if job is None:
        state.anomalies.append(f"job {event.job_id} started but was never submitted; ignored")
        return
    if event.tier != job.tier:
        # The cluster knows: it takes its processors in the tier that it says.
        placement = event.placement or job.placement
        if job.entries is not None:
            release(state, job)
            job.tier = event.tier
            occupy(state, job, placement, event.time)
        job.tier = event.tier
    if job.status is _STARTING:
        _confirm_start(state, job, event)
    elif job.status in (_PENDING, _WAITING):
        # Started outside headway, or seen for the first time.
        leave_queue(state, job)
        if job.choices:
            face_start(state, job, event.placement, event.pool)
        occupy(state, job, event.placement, event.time)
    else:
        state.anomalies.append(
            f"job {event.job_id} started again while {job.status.value}; the new start is kept"
        )
        release(state, job)
        occupy(state, job, event.placement, event.time)
    job.status = _RUNNING
    if event.frequency != job.frequency:
        job.frequency = event.frequency
    if state.remembered:
        start, frequency = state.remembered.pop(event.job_id, (_INF, None))
        if event.frequency is None and abs(start - event.time) < 1.0:
            job.frequency = frequency
    if job.failures:
        job.failures = 0
    if state.dependants:
        tell_dependants(state, job)


def _confirm_start(state: Facts, job: Job, event: ev.JobStarted) -> None:
    """Our start was carried out: its time, and where the job is, are the cluster's."""
    if state.cluster.shares_out:
        # What was kept off its nodes until its layout is known may be looked at.
        for domain, _ in job.entries or ():
            domain.touch()
    if job.start_time != event.time:
        job.start_time = event.time
        set_expected_end(state, job, expected_end(job, event.time))
    elsewhere = bool(job.choices and event.pool) and event.pool != job.pool.name
    if elsewhere or (event.placement != job.placement and event.placement):
        release(state, job)
        if job.choices:
            face_start(state, job, event.placement, event.pool)
        occupy(state, job, event.placement, event.time)


def decision_failed(state: Facts, event: ev.DecisionFailed) -> None:
    """A decision failed: what was foreseen is forgotten, and a start is tried again later."""
    if isinstance(event.decision, Foreseeable):
        take_back(state, event.decision)
    if isinstance(event.decision, SwapTiers | Migrate):
        move_failed(state, event.decision.job_id)
    if not isinstance(event.decision, Start):
        return
    job = state.jobs.get(event.decision.job_id)
    if job is None or job.status is not _STARTING:
        return
    release(state, job)
    expect_again(state, job)
    job.failures += 1
    job.hold_reason = event.message
    # A start that keeps failing must not be asked for at every poll.
    job.not_before = event.time + min(15.0 * 2 ** min(job.failures - 1, 10), 600.0)
    queue_or_wait(state, job)
    if state.dependants:
        # Namesakes that came before it need not wait for it any more.
        tell_dependants(state, job)


def requeued(state: Facts, event: ev.JobRequeued) -> None:
    """A job that was on nodes goes back to the queue, or waits."""
    job = state.known(event.job_id, "requeued")
    if job is None:
        return
    if job.status in ON_NODES:
        release(state, job)
        expect_again(state, job)
        job.paused, job.suspended_since = 0.0, None
        settled(state, job)
        state.returning.discard(job.id)
        queue_or_wait(state, job)
        if state.dependants:
            tell_dependants(state, job)


def ended(state: Facts, event: ev.JobEnded) -> None:
    """A job left for good: its processors are free, and the jobs that depend on it are looked at."""
    job = state.jobs.pop(event.job_id, None)
    if job is None:
        state.anomalies.append(f"job {event.job_id} ended but is not known; ignored")
        return
    if job.entries is not None:
        release(state, job)
    else:
        leave_queue(state, job)
    job.status = _ENDED
    if state.before_growth:
        state.before_growth.pop(job.id, None)
    if state.before_binding:
        state.before_binding.pop(job.id, None)
    if state.before_move:
        settled(state, job)
    if state.returning:
        state.returning.discard(job.id)
    if job.choices:
        state.in_several.discard(job.id)
    if state.bundles:
        state.bundles.discard(job.id)
    if state.dependants or state.arrays:
        went(state, job, event.outcome, event.time)
    if state.dependants:
        tell_dependants(state, job)


def held(state: Facts, event: ev.JobHeld) -> None:
    """A job was held outside headway: it leaves the queue."""
    job = state.known(event.job_id, "held")
    if job is not None:
        job.held, job.hold_reason = True, event.reason
        if job.status is _PENDING:
            leave_queue(state, job)
            queue_or_wait(state, job)


def released(state: Facts, event: ev.JobReleased) -> None:
    """That hold is gone: the job may be started if nothing else keeps it."""
    job = state.known(event.job_id, "released")
    if job is not None:
        job.held, job.hold_reason = False, ""
        if job.status is _WAITING:
            queue_or_wait(state, job)


def job_changed(state: Facts, event: ev.JobChanged) -> None:
    """A job has a new description: it is predicted, keyed and admitted again, and may change its pool."""
    job = state.known(event.job.id, "changed")
    if job is None:
        return
    was = job.user, job.name
    _describe(state, job, event.job)
    if state.dependants and (job.user, job.name) != was:
        # Its namesakes wait for it no more.
        tell_dependants(state, job)


def routed(state: Facts, event: ev.JobRouted) -> None:
    """A pending job has arrived in another pool."""
    job = state.known(event.job_id, "routed")
    if job is not None:
        job.settle()
        _describe(state, job, msgspec.structs.replace(job.description, pool=event.pool, further_pools=()))


def _describe(state: Facts, job: Job, new: JobDescription) -> None:
    """As :func:`job_changed`, of a job that is known."""
    pool = state.pool_of(new)
    if pool is None:
        state.anomalies.append(f"job {job.id} moved to pool {new.pool!r}, which does not exist")
        pool = job.pool
    on_nodes = job.status in ON_NODES
    if on_nodes and new.further_pools and job.pool.name in new.pools:
        pool = job.pool
    if not on_nodes:
        leave_queue(state, job)
        if new.request != job.request:
            # What failed was an earlier request.
            job.failures, job.not_before = min(job.failures, 1), 0.0
    other_licences = new.request.licences != job.request.licences
    job.description = new
    state.before_binding.pop(job.id, None)
    if new.dependencies:
        state.depending.append(job)
    job.unconditional = unconditional(new) and not job.bound_for
    job.processors = new.request.processors
    job.estimate = job.expected_runtime = new.request.walltime
    job.held = new.held
    if job.behind and pool.domain is not job.domain:
        job.domain.background.pop(job.id, None)
        pool.domain.background[job.id] = job
    job.pool = pool
    if new.further_pools or job.choices:
        choose(state, job)
    if state.predict is not None:
        predict(state, job)
    # It may come back to its queue.
    give_kind(state, job)
    if on_nodes:
        _occupy_as_described(state, job, other_licences=other_licences)
    else:
        _queue_as_described(state, job)


def _occupy_as_described(state: Facts, job: Job, *, other_licences: bool) -> None:
    """A job on nodes has what its new description says, until the end that it says."""
    start = job.start_time if job.start_time is not None else state.now
    if job.pool.flat:
        state.before_growth.pop(job.id, None)
        if job.entries and job.entries[0][1][2] != job.processors:
            move(state, job, ())
    if other_licences and state.licences is not None:
        # A batch system may tell what a running job has of something only when that is known there.
        state.licences.took_others(job)
        job.domain.touch()
    set_expected_end(state, job, expected_end(job, start))


def _queue_as_described(state: Facts, job: Job) -> None:
    """A job that is on no nodes is ranked and admitted anew."""
    pool = job.pool
    job.edition = None
    give_order(state, job)
    if state.admit is not None:
        job.refusal = ""
        state.admit(job)
    pool.domain.touch()
    queue_or_wait(state, job)
