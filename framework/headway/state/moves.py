"""The background, and moves of running jobs between tiers and nodes.

A start in the background, a swap of tiers and a migration pass the same guard as every other start: one
process in front and one in the background on each processor. They count from the decision on; if a move
fails, the job is again where it was, and stays there for a while: a move that keeps failing (an agent that
does not answer, no room for an image) must not be asked for in every cycle.
"""

from __future__ import annotations

from collections.abc import Callable

from headway.decisions import Migrate, SwapTiers
from headway.errors import StateError
from headway.model import Placement
from headway.state.belonging import inside
from headway.state.bundles import guard_bundle
from headway.state.choices import guard_choice
from headway.state.facts import Facts
from headway.state.lending import lend
from headway.state.licences import guard_licences
from headway.state.news import Unnoticed
from headway.state.occupation import BACKGROUND, FOREGROUND, occupy, release
from headway.state.records import Job, Pace, Status
from headway.state.still_there import guard_still_there, settled
from headway.state.tenants import Tenants
from headway.state.wakeups import wake_at

#: Takes back what a decision changed, and nothing else.
Undo = Callable[[], None]

#: Seconds that a job stays where it is after a failed move: at first, and at most; twice as long each time.
_STAYS = 15.0, 600.0


def nothing() -> None:
    """Undoes a decision that changed nothing."""


class StaysForNow(StateError):
    """A job's last move failed not long ago."""


def watch_tenants(state: Facts) -> Tenants:
    """Which jobs are on which node: kept from now on."""
    if state.tenants is None:
        state.tenants = Tenants(state.nodes, state.jobs.values())
    return state.tenants


def begin_behind(state: Facts, job: Job, placement: Placement, tier: str, frequency: float | None) -> None:
    """A start in the background was decided. Raises :class:`StateError`, and changes nothing, if the job is
    not pending, if a processor would have two processes there, or if a reservation would be broken."""
    if job.status is not Status.PENDING:
        raise StateError(f"job {job.id} is {job.status.value}, not pending")
    if job.choices:
        guard_choice(job)
    if state.bars is not None and (barrier := state.bars(job)) is not None:
        raise StateError(f"job {job.id} may not start: {barrier}")
    guard_licences(state, job)
    _guard(state, job, placement, tier)
    domain = job.domain
    job.tier, job.frequency = tier, frequency
    job.status = Status.STARTING
    with Unnoticed((domain,)):
        occupy(state, job, placement, state.now)


def _guard(state: Facts, job: Job, placement: Placement, tier: str) -> None:
    """Raise :class:`StateError` if the job cannot have these processors in this tier."""
    domain = job.domain
    front = tier == FOREGROUND
    if tier not in (FOREGROUND, BACKGROUND):
        raise StateError(f"job {job.id}: expected the tier {FOREGROUND} or {BACKGROUND}, found {tier!r}")
    if domain.flat:
        free = domain.free if front else domain.free_behind
        if job.processors > free:
            where = "free" if front else "free in the background"
            raise StateError(f"job {job.id} needs {job.processors} processors, {free} are {where}")
        return
    guard = state.nodes.guard if front else state.nodes.guard_behind
    guard(job.request, placement, job.pool.name)
    if state.before_move:
        guard_still_there(state, job, placement, tier)
    end = state.now + job.expected_runtime
    broken = state.nodes.broken(placement, state.now, end, inside(state, job))
    if broken is not None:
        raise StateError(f"job {job.id} would break reservation {broken.id} on its nodes")


def carry(state: Facts, decision: SwapTiers | Migrate) -> Undo:
    """A move was decided: the jobs are where it sends them from now on. Returns what takes that back.

    Raises :class:`StateError`, and changes nothing, if a job is not running, is not in the tier that the
    decision takes it for, or cannot have its processors there.
    """
    if isinstance(decision, SwapTiers):
        return _swap(state, decision)
    if decision.job_id in state.bundles:
        # Its members stay where they are.
        guard_bundle(state, decision)
        return nothing
    job = _running(state, decision.job_id)
    undo = _relocate(state, [(job, decision.placement or job.placement, decision.tier or job.tier)])
    if decision.restart:
        job.pace = Pace(state.now, 0.0, 1.0)
        _expect(state, job)
    return undo


def _swap(state: Facts, decision: SwapTiers) -> Undo:
    job = _running(state, decision.job_id)
    if not job.behind:
        raise StateError(f"job {job.id} is in the {job.tier}, not in the background")
    moves = [(job, job.placement, FOREGROUND)]
    if decision.other_job_id:
        other = _running(state, decision.other_job_id)
        if other.behind:
            raise StateError(f"job {other.id} is in the {other.tier}, not in the foreground")
        moves.append((other, other.placement, BACKGROUND))
    return _relocate(state, moves)


def _running(state: Facts, job_id: str) -> Job:
    job = state.jobs.get(job_id)
    if job is None:
        raise StateError(f"job {job_id} is not known")
    if job.status is not Status.RUNNING or job.start_time is None:
        raise StateError(f"job {job_id} is {job.status.value}, not running")
    if state.now < job.stays_until:
        raise StaysForNow(f"job {job_id} stays where it is until {job.stays_until:.0f}: its last move failed")
    return job


def move_failed(state: Facts, job_id: str) -> None:
    """The cluster did not move a job: it is tried again after 15, 30, 60, ... 600 s."""
    job = state.jobs.get(job_id)
    if job is not None and job_id not in state.bundles:
        first, most = _STAYS
        job.stays_until = state.now + min(first * 2**job.failed_moves, most)
        job.failed_moves += 1
        wake_at(state, job.stays_until, job.pool)


def _relocate(state: Facts, moves: list[tuple[Job, Placement, str]]) -> Undo:
    """All these jobs leave what they have, and then each takes what it is sent to; or none does. Returns what
    brings them back."""
    before = [(job, job.placement, job.tier, job.pace) for job, _, _ in moves]
    with Unnoticed({job.domain for job, _, _ in moves}):
        _exchange(state, moves, before)
    first = [job.id for job, _, _ in moves if job.id not in state.before_move]
    for job, placement, tier, pace in before:
        state.before_move.setdefault(job.id, (placement, tier, pace))

    def undo() -> None:
        for name in first:
            state.before_move.pop(name, None)
        _put_back(state, before)

    return undo


def _exchange(
    state: Facts,
    moves: list[tuple[Job, Placement, str]],
    before: list[tuple[Job, Placement, str, Pace | None]],
) -> None:
    """As :func:`_relocate`; ``before``: where the jobs are."""
    starts = [job.start_time if job.start_time is not None else state.now for job, _, _ in moves]
    for job, _, _ in moves:
        release(state, job)
    done: list[int] = []
    try:
        for at, (job, placement, tier) in enumerate(moves):
            _guard(state, job, placement, tier)
            job.tier, job.pace = tier, Pace(state.now, job.done(state.now), 1.0)
            occupy(state, job, placement, starts[at])
            done.append(at)
    except StateError:
        for at in done:
            release(state, moves[at][0])
        for (job, placement, tier, pace), start in zip(before, starts, strict=True):
            job.tier, job.pace = tier, pace
            occupy(state, job, placement, start)
        raise


def _put_back(state: Facts, jobs: list[tuple[Job, Placement, str, Pace | None]]) -> None:
    """These jobs are again where they were."""
    jobs = [one for one in jobs if one[0].entries is not None]
    lent = [job for job, _, _, _ in jobs if job.lends]
    for job, _, _, _ in jobs:
        release(state, job)
    for job, placement, tier, pace in jobs:
        job.tier, job.pace = tier, pace
        occupy(state, job, placement, job.start_time if job.start_time is not None else state.now)
        job.domain.touch()
    for job in lent:
        lend(state, job)


def _expect(state: Facts, job: Job) -> None:
    """The job's expected end follows from its pace; its domain need not be looked at for that."""
    placement, start = job.placement, job.start_time if job.start_time is not None else state.now
    with Unnoticed((job.domain,)):
        release(state, job)
        occupy(state, job, placement, start)


def moved_back(state: Facts, decision: SwapTiers | Migrate) -> None:
    """A move does not come: its jobs are where the cluster said last, whatever was decided since."""
    names = [decision.job_id]
    if isinstance(decision, SwapTiers) and decision.other_job_id:
        names.append(decision.other_job_id)
    jobs = [state.jobs[name] for name in names if name in state.before_move and name in state.jobs]
    there = [job for job in jobs if job.entries is not None]
    _put_back(state, [(job, *state.before_move.pop(job.id)) for job in there])


def relocated(state: Facts, job: Job, placement: Placement, tier: str) -> None:
    """The cluster says where a job is. Nothing happens if that is known."""
    settled(state, job)
    job.failed_moves, job.stays_until = 0, 0.0
    if tier == job.tier and (not placement or placement == job.placement):
        return
    placement = placement or job.placement
    start = job.start_time if job.start_time is not None else state.now
    release(state, job)
    job.tier = tier
    occupy(state, job, placement, start)
    job.domain.touch()
