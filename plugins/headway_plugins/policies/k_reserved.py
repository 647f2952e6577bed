"""K-reserved: EASY backfilling in which a waiting job is overtaken at most K times.

A. Chandio, K. Bilal, N. Tziritas, Z. Yu, Q. Jiang, S. Khan, C. Xu: A comparative study on resource
allocation and energy efficient job scheduling strategies in large-scale parallel computing systems.
Cluster Computing, 2014, section 5:
K-reserved, also Max_Pri, with K = 5.

As in :mod:`headway_plugins.policies.easy` the head of the queue is booked, and the jobs behind it start
if they do not delay it. Beyond that each waiting job counts how often a job behind it started first.
When the count reaches K (option ``limit``) the job is *exhausted*, and no job behind it may start
until it has started itself: the first exhausted job closes the queue behind it. It and the jobs before
it may still be backfilled.

Decisions on what the paper leaves open:

- It says both that a job "is overtaken" and that it "is considered to backfill" only K times. The former.
- Behind means behind in the queue, in whatever order that is.
- A job that another plugin has booked for now, such as a dedicated job, starts behind an exhausted job too:
  what was booked for it delays no other job. Such a start is not counted.
- A start counts when it is decided: a start that a veto takes away does not count, a failed start
  does. The counts survive a restart.
- With K = 0 no job overtakes; with a K that is never reached this is EASY.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import pydantic

from headway.decisions import Decision, Start
from headway.hookspecs import hookimpl
from headway.plugins import Again, Study, Traits
from headway.state import Job, State, Status
from headway.view import Booking, View
from headway_plugins.policies.easy import may_backfill, why_backfilled


class KReservedOptions(pydantic.BaseModel):
    """Options of K-reserved."""

    model_config = pydantic.ConfigDict(extra="forbid")

    limit: int = pydantic.Field(
        default=5,
        ge=0,
        le=1_000_000,
        description="K: how often a waiting job may be overtaken before it holds up the queue",
    )


class KReserved:
    """K-reserved: EASY backfilling in which a waiting job is overtaken at most K times."""

    #: What ``headway tune`` varies.
    traits = Traits(
        ask_again=Again.DOMAIN,
        study=Study(backfills=True, tunable=("limit", range(21))),
        paper=(
            "A. Chandio and others: A comparative study on resource allocation and energy efficient "
            "job scheduling strategies in large-scale parallel computing systems, Cluster Computing, "
            "2014"
        ),
    )
    Options = KReservedOptions

    def __init__(self, options: KReservedOptions) -> None:
        self.options = options
        #: How often each waiting job was overtaken, by its id.
        self._counts: dict[str, int] = {}
        #: By domain, for each start of its last cycle: the ids of the jobs that it overtook.
        self._overtaken: dict[str, dict[str, list[str]]] = {}

    @hookimpl
    def schedule(self, view: View) -> list[Decision]:
        self._serve(view)
        for booking in view.bookings[: view.prepared]:
            if booking.start <= view.now and booking.job.status is Status.PENDING:
                view.start(booking.job, "its time has come")
        return view.made

    def _serve(self, view: View) -> None:
        queue, domain = view.queue, view.domain
        self._overtaken[domain.name] = {}
        own = view.bookings[view.prepared :] if view.fresh >= 0 else []
        if own and own[0].job is queue[0]:
            self._backfill(view, own[0], 0, len(queue) - view.fresh)
            return
        first = 0
        for job in queue:
            if view.start(job, "first in the queue") is None:
                break
            first += 1
        if first < len(queue) and domain.free and not self._exhausted(queue[first]):
            self._backfill(view, view.book(queue[first]), first, first + 1)

    def _backfill(self, view: View, booking: Booking, head: int, candidates: int) -> None:
        """Try the jobs from position ``candidates`` on; the first that waits is at position ``head``."""
        queue, domain, now, limit, known = view.queue, view.domain, view.now, self.options.limit, self._counts
        overtaken = self._overtaken[domain.name]
        #: As they will be if all starts of this cycle come about.
        counts: dict[str, int] = {}
        closing: Job | None = None
        for at in range(candidates, len(queue)):
            if closing is not None or not domain.free:
                break
            job = queue[at]
            if (
                job.processors <= domain.free
                and may_backfill(booking, job, view)
                and view.start(job, why_backfilled(booking, job, now)) is not None
            ):
                passed = [other for other in islice(queue, head, at) if other.status is Status.PENDING]
                overtaken[job.id] = [other.id for other in passed]
                for other in passed:
                    counts[other.id] = count = counts.get(other.id, known.get(other.id, 0)) + 1
                    if closing is None and count >= limit:
                        closing = other
            elif self._exhausted(job):
                # Nothing behind it was tried yet in this cycle, so that is still its count.
                closing = job
        if closing is not None:
            # It cannot start; but if a limit refuses it by now, the queue is not closed, and this tells.
            view.start(closing, "first in the queue")
            # No arrival may be tried under this booking.
            view.forget()

    def _exhausted(self, job: Job) -> bool:
        return self._counts.get(job.id, 0) >= self.options.limit

    @hookimpl
    def decided(self, decisions: Sequence[Decision], state: State) -> None:
        counts = self._counts
        for decision in decisions:
            if type(decision) is Start:
                for overtaken in self._overtaken.values():
                    for job_id in overtaken.pop(decision.job_id, ()):
                        counts[job_id] = counts.get(job_id, 0) + 1
        if len(counts) > 2 * len(state.jobs) + 64:
            self._counts = {job_id: count for job_id, count in counts.items() if job_id in state.jobs}

    @hookimpl
    def checkpoint(self) -> dict[str, int] | None:
        return self._counts or None

    @hookimpl
    def restore(self, saved: dict[str, int]) -> None:
        self._counts = dict(saved)
