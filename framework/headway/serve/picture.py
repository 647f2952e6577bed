"""The cluster as a daemon tells it to a program that follows: a fold of :mod:`headway.service.changes`."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from functools import singledispatchmethod
from typing import Any, TypeVar

from headway.inquiry.reports import BookingReport, NodeReport
from headway.serve.source import Caller
from headway.service import changes as c
from headway.service.protocol import Report

T = TypeVar("T")

#: Lists that are kept until the next change.
_KEPT = 128
PENDING, WAITING = "pending", "waiting"


class Picture:
    """What is known of a cluster and its daemon."""

    def __init__(self) -> None:
        #: How often anything changed.
        self.changes = 0
        self.begun = c.Begun(c.FORMAT)
        #: All that was there at the beginning is known.
        self.whole = False
        self.jobs: dict[str, c.JobRow] = {}
        #: User -> ids of the user's jobs.
        self.of_users: dict[str, dict[str, None]] = {}
        #: Ids of jobs outside of the queues, and of jobs on nodes.
        self.outside: dict[str, None] = {}
        self.on_nodes: dict[str, None] = {}
        #: Domain -> the names of its pools, in the daemon's order; pool -> its domain.
        self.domains: dict[str, tuple[str, ...]] = {}
        self.domain_of: dict[str, str] = {}
        self.queues: dict[str, list[str]] = {}
        self.nodes: dict[str, NodeReport] = {}
        #: Node -> ids of the jobs on it.
        self.jobs_on: dict[str, dict[str, None]] = {}
        #: Domain -> its bookings, and how many are still to be made.
        self.bookings: dict[str, tuple[list[BookingReport], int]] = {}
        self.cycle: c.Cycled | None = None
        self.report: Report | None = None
        #: Lists that were made since the last change.
        self._made: dict[Hashable, Any] = {}

    # ------------------------------------------------------------------ what is asked of it

    def sees_all(self, caller: Caller) -> bool:
        """Whether the user that asks may know of all jobs."""
        begun = self.begun
        if not begun.private or (caller.itself and begun.operator):
            return True
        return not caller.itself and caller.user in begun.operators and "operator" in caller.scopes

    @property
    def pools(self) -> tuple[str, ...]:
        return tuple([pool.name for pool in self.report.pools]) if self.report is not None else ()

    def kept(self, key: Hashable, make: Callable[[], T]) -> T:
        """What ``make`` makes, once until the next change."""
        if key not in self._made:
            if len(self._made) >= _KEPT:
                del self._made[next(iter(self._made))]
            self._made[key] = make()
        found: T = self._made[key]
        return found

    def places(self, domain: str) -> dict[str, int]:
        """Job id -> its place in the queue of a domain, 1 the first."""
        queue = self.queues.get(domain, ())
        return self.kept(("places", domain), lambda: {job_id: at for at, job_id in enumerate(queue, 1)})

    # ------------------------------------------------------------------ what changes it

    def fold(self, change: c.Change) -> None:
        self._fold(change)
        self.changes += 1
        self._made.clear()

    @singledispatchmethod
    def _fold(self, change: c.Change) -> None:
        raise AssertionError(f"no change that is known: {change}")

    @_fold.register
    def _(self, change: c.Begun) -> None:
        self.begun = change

    @_fold.register
    def _(self, change: c.JobRows) -> None:
        for row in change.rows:
            self._forget(row.report.id)
            self._put(row)
        for job_id in change.gone:
            self._forget(job_id)

    @_fold.register
    def _(self, change: c.Domains) -> None:
        self.domains = dict(change.domains)
        self.domain_of = {pool: name for name, pools in change.domains for pool in pools}
        self.queues = {name: [] for name in self.domains}
        self.bookings = {name: self.bookings.get(name, ([], 0)) for name in self.domains}

    @_fold.register
    def _(self, change: c.Order) -> None:
        if change.anew is not None:
            self.queues[change.domain] = list(change.anew)
            return
        queue = self.queues[change.domain]
        for at in reversed(change.out):
            del queue[at]
        for at, job_id in change.put:
            queue.insert(at, job_id)

    @_fold.register
    def _(self, change: c.NodeRows) -> None:
        for row in change.rows:
            self.nodes[row.name] = row
        for name in change.gone:
            self.nodes.pop(name, None)

    @_fold.register
    def _(self, change: c.Booked) -> None:
        known, _ = self.bookings.get(change.domain, ([], 0))
        self.bookings[change.domain] = [*known[: change.keep], *change.rows], change.owed

    @_fold.register
    def _(self, change: c.Cycled) -> None:
        self.cycle = change

    @_fold.register
    def _(self, change: c.State) -> None:
        self.report = change.report

    @_fold.register
    def _(self, change: c.Whole) -> None:
        self.whole = True

    def _put(self, row: c.JobRow) -> None:
        report = row.report
        self.jobs[report.id] = row
        self.of_users.setdefault(report.user, {})[report.id] = None
        if report.status == WAITING:
            self.outside[report.id] = None
        elif report.status != PENDING:
            self.on_nodes[report.id] = None
        for node, _ in report.placement:
            self.jobs_on.setdefault(node, {})[report.id] = None

    def _forget(self, job_id: str) -> None:
        row = self.jobs.pop(job_id, None)
        if row is None:
            return
        user = row.report.user
        mine = self.of_users[user]
        del mine[job_id]
        if not mine:
            del self.of_users[user]
        self.outside.pop(job_id, None)
        self.on_nodes.pop(job_id, None)
        for node, _ in row.report.placement:
            self.jobs_on[node].pop(job_id, None)

    def queued(self, domain: str) -> Iterator[str]:
        """The ids of the jobs of a queue, of those that stand in several queues only where they are told."""
        jobs, domain_of = self.jobs, self.domain_of
        for job_id in self.queues.get(domain, ()):
            row = jobs.get(job_id)
            if row is not None and row.report.status == PENDING and domain_of.get(row.report.pool) == domain:
                yield job_id
