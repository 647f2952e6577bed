"""What would let a job start now, by the plan of the last cycle: less of something, or another place.

Each is tried: the job as it would be then is placed beside what runs, is booked and is reserved, as the
scheduler places jobs (:meth:`headway.view.View.place_without`). So what is told would delay no job that has a
planned start. Whether the policy looks at the job at all is not tried. Nothing is changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from time import thread_time
from typing import TypeVar

import msgspec

from headway.inquiry.bookings import all_are_made
from headway.inquiry.inquiry import Inquiry
from headway.inquiry.reports import SoonerReport
from headway.inquiry.waiting import view_of, why_in_queue, why_outside
from headway.model import JobDescription, Request
from headway.plugins import traits_of
from headway.state import Job, PoolState, Status
from headway.state.choices import pools_of
from headway.state.obstacles import find_obstacle
from headway.view import View

#: Seconds of processor time after which no further trial is begun.
SECONDS = 0.02
#: On a pool that is a plain count, beside so many bookings no trial is made: each is reckoned with anew.
_BOOKINGS = 500
#: Seconds: the shortest limit that is told.
_MINUTE = 60.0
#: Other pools, features and resources that are tried, each.
_OTHERS = 4
Tried = TypeVar("Tried")

#: Why a job may wait that would start if it were smaller, shorter or elsewhere.
_HELPED = ("booking", "processors", "placement", "would delay", "order", "not started")


def sooner(inquiry: Inquiry, job: Job) -> list[SoonerReport]:
    """What would let the job start now; [] if nothing is known to."""
    if job.status is not Status.PENDING or why_outside(inquiry, job) is not None or job.request.parts:
        return []
    # In monitor mode what was wished for is not taken, so more looks free than the plan leaves.
    if inquiry.scheduler.wished or why_in_queue(inquiry, job).kind not in _HELPED:
        return []
    view = view_of(inquiry, job)
    # No booking is in the way of the first of the queue before some are made.
    if not all_are_made(inquiry, job.domain):
        return []
    if inquiry.queue(job.domain)[0] is not job and not _backfills(inquiry, view):
        return []
    rng = view.rng.bit_generator
    drawn = rng.state
    trials = _Trials(inquiry, job)
    try:
        return [report for way in _WAYS for report in way(trials)]
    finally:
        # A plugin that places jobs may draw: the next cycle's draws are as if nobody had asked.
        rng.state = drawn


def _backfills(inquiry: Inquiry, view: View) -> bool:
    """Whether the policy starts jobs before jobs that were before them, as far as no booking is delayed, and
    anything is booked."""
    if not any(traits_of(policy).study.backfills for policy in inquiry.scheduler.policies):
        return False
    count = len(view.bookings)
    return view.stopped_at is None and count > 0 and (not view.domain.flat or count <= _BOOKINGS)


class _Trials:
    """A job, as it is and as it could be."""

    def __init__(self, inquiry: Inquiry, job: Job) -> None:
        self.inquiry, self.job = inquiry, job
        self._end = thread_time() + SECONDS

    def fits(
        self, runtime: float | None = None, request: Request | None = None, pool: PoolState | None = None
    ) -> bool:
        """Whether the job could start now with another limit, another request, in another pool; no, once the
        time for trials is over."""
        if thread_time() >= self._end:
            return False
        job, state = self.job, self.inquiry.state
        pool = pool if pool is not None else job.pool
        expected = job.expected_runtime if runtime is None else runtime
        limit = job.estimate if runtime is None else runtime
        asked = msgspec.structs.replace(request if request is not None else job.request, walltime=limit)
        description = msgspec.structs.replace(
            job.description, request=asked, pool=pool.name, further_pools=(), dependencies=()
        )
        trial = self._trial(description, pool, limit, expected)
        if trial.processors > pool.domain.free or find_obstacle(state, trial) is not None:
            return False
        if not all_are_made(self.inquiry, pool.domain):
            return False
        view = self.inquiry.scheduler.views[pool.domain.name]
        return view.place_without(trial, (), instead_of=job) is not None

    def _trial(self, description: JobDescription, pool: PoolState, limit: float, expected: float) -> Job:
        trial = Job.arrived(description, pool, self.job.seq)
        trial.status = Status.PENDING
        trial.estimate, trial.expected_runtime = limit, min(limit, expected)
        return trial


def _shorter(trials: _Trials) -> Iterator[SoonerReport]:
    """The longest limit with which it would start."""
    job, inquiry = trials.job, trials.inquiry
    if job.expected_runtime <= _MINUTE or not trials.fits(_MINUTE):
        return
    view, now = view_of(inquiry, job), inquiry.state.now
    # A longer run meets more bookings and reservations, and nothing changes between their starts.
    moments = {b.start - now for b in view.bookings if b.job is not job}
    moments |= {one.start - now for one in view.reservations}
    spans = sorted(span // _MINUTE * _MINUTE for span in moments if _MINUTE < span < job.expected_runtime)
    longest = _last(spans, trials.fits)
    yield SoonerReport("limit", limit=_MINUTE if longest is None else longest)


def _smaller(trials: _Trials) -> Iterator[SoonerReport]:
    """The most nodes, or processors, with which it would start."""
    request = trials.job.request
    if request.required_nodes:
        return
    nodes, processors = request.nodes, request.processors
    if nodes > 1:
        if processors % nodes:
            return
        each = processors // nodes

        def of_nodes(count: int) -> Request:
            return msgspec.structs.replace(request, nodes=count, processors=count * each)

        most = _last(range(1, nodes), lambda count: trials.fits(request=of_nodes(count)))
        if most is not None:
            yield SoonerReport("size", nodes=most, processors=most * each)
        return
    unit = request.processors_per_node or request.processors_per_chunk or 1
    sizes = range(unit, processors, unit)
    fewer = _last(sizes, lambda size: trials.fits(request=msgspec.structs.replace(request, processors=size)))
    if fewer is not None:
        yield SoonerReport("size", processors=fewer)


def _without_feature(trials: _Trials) -> Iterator[SoonerReport]:
    """The features of nodes that it would start without."""
    request = trials.job.request
    for feature in request.features[:_OTHERS]:
        left = tuple(name for name in request.features if name != feature)
        if trials.fits(request=msgspec.structs.replace(request, features=left)):
            yield SoonerReport("feature", feature=feature)


def _other_resource(trials: _Trials) -> Iterator[SoonerReport]:
    """Generic resources of another type, such as ``gpu:l40`` for ``gpu:a100``."""
    request = trials.job.request
    for at, (name, amount) in enumerate(request.gres_per_node[:_OTHERS]):
        kind = name.partition(":")[0]
        others = (one for one in trials.inquiry.state.nodes.free.gres if one != name)
        alike = sorted(one for one in others if one.partition(":")[0] == kind)
        for other in alike[:_OTHERS]:
            asked = (*request.gres_per_node[:at], (other, amount), *request.gres_per_node[at + 1 :])
            if trials.fits(request=msgspec.structs.replace(request, gres_per_node=asked)):
                yield SoonerReport("resource", resource=other)


def _other_pool(trials: _Trials) -> Iterator[SoonerReport]:
    """Open pools in which it would start."""
    own = pools_of(trials.job)
    others = [pool for pool in trials.inquiry.state.pools.values() if pool.open and pool not in own]
    for pool in others[:_OTHERS]:
        if trials.fits(pool=pool):
            yield SoonerReport("pool", pool=pool.name)


def _last(among: Sequence[Tried], holds: Callable[[Tried], bool]) -> Tried | None:
    """The last for which it holds, where it holds up to some place; None: it holds for none."""
    found: Tried | None = None
    low, high = 0, len(among)
    while low < high:
        middle = (low + high) // 2
        if holds(among[middle]):
            found, low = among[middle], middle + 1
        else:
            high = middle
    return found


_WAYS: tuple[Callable[[_Trials], Iterator[SoonerReport]], ...] = (
    _shorter,
    _smaller,
    _without_feature,
    _other_resource,
    _other_pool,
)
