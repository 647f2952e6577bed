"""What operators tune in backfilling, whatever the policy: how far a cycle looks, and how exactly.

The options have counterparts in Slurm (``SchedulerParameters``) and Maui: ``queue_depth`` is
``bf_max_job_test``, ``queue_depth_per_user`` ``bf_max_job_user``, ``window`` ``bf_window``, ``resolution``
``bf_resolution``; how many jobs are booked, an option of the policy, is Maui's ``RESERVATIONDEPTH``.

Decisions on what they mean where something is examined only when something happened:

- A depth counts the jobs that stay waiting. A job that starts makes room for the next job, else processors
  could stand idle with no job looked at until something else happens. So the queue alone says which jobs are
  looked at.
- A job that is left out because of its user's depth takes no place of ``queue_depth``.
- A job that could start only after the window is not booked, and takes none of the bookings that the policy
  makes; the next job may. As time passes it comes into the window, so with a window each look begins anew.
- A resolution puts off what becomes free, never what is taken: no booking starts before there is room.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pydantic

from headway.inputs.durations import WholeSeconds
from headway.state import Job, Status
from headway.state.choices import ways
from headway.view import View

_INF = float("inf")


class Tuning(pydantic.BaseModel):
    """Options that bound what a cycle looks at."""

    model_config = pydantic.ConfigDict(extra="forbid")

    queue_depth: int | None = pydantic.Field(
        default=None,
        ge=1,
        description="number of waiting jobs that are looked at, from the head of the queue; jobs that start "
        "do not count (default: all)",
    )
    queue_depth_per_user: int | None = pydantic.Field(
        default=None, ge=1, description="number of waiting jobs of a user that are looked at (default: all)"
    )
    window: WholeSeconds | None = pydantic.Field(
        default=None,
        description="longest time ahead for which a start is booked; a time below the runtimes of jobs lets "
        "large jobs starve (default: any time)",
    )
    resolution: WholeSeconds | None = pydantic.Field(
        default=None,
        description="round expected ends up to multiples of this time (default: exact)",
    )

    @property
    def in_part(self) -> bool:
        """Whether not all waiting jobs are served as they would be without these options."""
        return any(bound is not None for bound in (self.queue_depth, self.queue_depth_per_user, self.window))


class Depth:
    """The jobs of a queue that are looked at, in order."""

    def __init__(self, options: Tuning) -> None:
        self._left = options.queue_depth if options.queue_depth is not None else _INF
        self._most = options.queue_depth_per_user
        self._of: dict[str, int] = {}

    @property
    def reached(self) -> bool:
        """Whether no job is looked at any more."""
        return self._left <= 0

    def leaves_out(self, job: Job) -> bool:
        """Whether the job's user has so many waiting jobs before it."""
        return self._most is not None and self._of.get(job.user, 0) >= self._most

    def count(self, job: Job) -> None:
        """The job was looked at and waits."""
        self._left -= 1
        if self._most is not None:
            self._of[job.user] = self._of.get(job.user, 0) + 1


def looked_at(view: View, options: Tuning) -> Iterator[tuple[Job, bool]]:
    """The waiting jobs that are looked at, in queue order, and whether each is new since the last cycle.

    A job that is not started when the next job is asked for counts as waiting.
    """
    depth, pending = Depth(options), Status.PENDING
    first = 0 if view.fresh < 0 else len(view.queue) - view.fresh
    for at, job in enumerate(view.queue):
        if depth.reached:
            return
        if job.status is not pending or depth.leaves_out(job):
            continue
        yield job, at >= first
        if job.status is pending:
            depth.count(job)


def serve(
    view: View,
    options: Tuning,
    bookings: float,
    why: Callable[[Job], str],
    *,
    shortest: bool = False,
    per_pool: bool = False,
) -> None:
    """Serve the jobs that are looked at in queue order: each starts if it can, and is booked if not until
    ``bookings`` of them are.

    ``per_pool``: the first job of each pool is booked beside these. A job of several pools counts for the
    first of them that could start it. ``shortest``: of the jobs behind the last booked job, the job with the
    shortest expected runtime is tried first.
    """
    if options.window is not None:
        view.forget()
        view.fresh = -1
    latest = view.now + options.window if options.window is not None else _INF
    domain, pending = view.domain, Status.PENDING
    made, pools = 0, set[str]()
    if view.fresh >= 0:
        new = set(view.queue[len(view.queue) - view.fresh :])
        stands = [b.job for b in view.bookings if b.job.status is pending and b.job not in new]
        made, pools = len(stands), {_stands_for(job, view) for job in stands}
    behind: list[Job] = []
    for job, is_new in looked_at(view, options):
        if made >= bookings and not domain.free and not per_pool:
            break
        if not is_new:
            continue
        if made < bookings or (per_pool and _stands_for(job, view) not in pools):
            if view.start(job, why(job)) is None and view.book_by(job, latest) is not None:
                made += 1
                pools.add(_stands_for(job, view))
        elif job.processors <= domain.free:
            if shortest:
                behind.append(job)
            else:
                view.start(job, why(job))
    if behind:
        _serve_shortest(view, options, behind, why)


def _stands_for(job: Job, view: View) -> str:
    """The pool for which its booking counts, wherever it can be first."""
    return (ways(job, view.domain) or (job.pool,))[0].name


def _serve_shortest(view: View, options: Tuning, jobs: list[Job], why: Callable[[Job], str]) -> None:
    """Start the jobs that may start, shortest first; then the jobs that these starts bring into the depth."""
    tried: set[Job] = set()
    while jobs:
        started = False
        for job in sorted(jobs, key=_runtime):
            if job.processors <= view.free:
                started = view.start(job, why(job)) is not None or started
        tried.update(jobs)
        if not started or not options.in_part:
            return
        jobs = [job for job, new in looked_at(view, options) if new and job not in tried]
        jobs = [job for job in jobs if view.booked(job) is None]


def _runtime(job: Job) -> float:
    return job.expected_runtime


def why_not(job: Job, view: View, options: Tuning, bookings: float) -> str:
    """Why these options keep a waiting job without a booking from being looked at or booked, as a sentence
    without its full stop; "" if they do not."""
    if not options.in_part:
        return ""
    depth = Depth(options)
    for other in view.queue:
        if other.status is not Status.PENDING:
            continue
        if depth.reached:
            return f"Only the first {options.queue_depth} waiting jobs are looked at (queue_depth)"
        if depth.leaves_out(other):
            if other is job:
                return (
                    f"Only the first {options.queue_depth_per_user} waiting jobs of user {job.user} are "
                    "looked at (queue_depth_per_user)"
                )
            continue
        if other is job:
            break
        depth.count(other)
    if options.window is not None and len(view.bookings) < bookings:
        return f"It cannot start within {options.window} s, so nothing is booked for it yet (window)"
    return ""
