"""The cluster as a daemon tells it to a program that follows: a fold of :mod:`headway.service.changes`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from functools import singledispatchmethod
from typing import Any, TypeVar

from msgspec.structs import replace

from headway.inquiry.reports import BookingReport, JobReport, NodeReport
from headway.model import Placement
from headway.serve.sorting import moves
from headway.serve.source import Caller
from headway.service import changes as c
from headway.service.protocol import Report

T = TypeVar("T")

#: Words, and what jobs have of a node, that are kept because many rows have them: so many of each.
_SAME = 50_000
#: Lists that are kept until the next change.
_KEPT = 128
PENDING, WAITING = "pending", "waiting"


class Picture:
    """What is known of a cluster and its daemon."""

    def __init__(self) -> None:
        self.begun = c.Begun(c.FORMAT)
        #: All that was there at the beginning is known.
        self.whole = False
        self.jobs: dict[str, c.JobRow] = {}
        #: User -> ids of the user's jobs.
        self.of_users: dict[str, dict[str, None]] = {}
        #: Ids of jobs in queues, outside of them, and on nodes; and of jobs that were sent to several pools.
        self.pending: dict[str, None] = {}
        self.outside: dict[str, None] = {}
        self.on_nodes: dict[str, None] = {}
        self.in_several: dict[str, None] = {}
        #: Domain -> the names of its pools, in the daemon's order; pool -> its domain.
        self.domains: dict[str, tuple[str, ...]] = {}
        self.domain_of: dict[str, str] = {}
        self.queues: dict[str, list[str]] = {}
        self.nodes: dict[str, NodeReport] = {}
        #: Ids of reservations that are told to those alone who may know of all jobs.
        self.hidden: frozenset[str] = frozenset()
        #: Node -> ids of the jobs on it.
        self.jobs_on: dict[str, dict[str, None]] = {}
        #: Domain -> its bookings, and how many are still to be made.
        self.bookings: dict[str, tuple[list[BookingReport], int]] = {}
        self.cycle: c.Cycled | None = None
        self.report: Report | None = None
        #: How often each kind of change was folded, and how often one was that sorted lists alone go by.
        self.changes: Counter[type] = Counter()
        self.resorted = 0
        #: Lists that were made since something changed that they go by, and of which version.
        self._made: dict[Hashable, tuple[Hashable, Any]] = {}
        self._same: dict[str, str] = {}
        self._pairs: dict[tuple[str, int], tuple[str, int]] = {}

    # ------------------------------------------------------------------ what is asked of it

    def sees_all(self, caller: Caller) -> bool:
        """Whether the user that asks may know of all jobs."""
        return sees_all(self.begun, caller)

    @property
    def pools(self) -> tuple[str, ...]:
        return tuple([pool.name for pool in self.report.pools]) if self.report is not None else ()

    def kept(self, key: Hashable, make: Callable[[], T], version: Hashable = None) -> T:
        """What ``make`` makes, once until a job or a node comes or goes or changes so that it would stand
        elsewhere in some list, or until ``version`` is another one."""
        if key not in self._made or self._made[key][0] != version:
            if len(self._made) >= _KEPT:
                del self._made[next(iter(self._made))]
            self._made[key] = version, make()
        found: T = self._made[key][1]
        return found

    def places(self, domain: str) -> dict[str, int]:
        """Job id -> its place in the queue of a domain, 1 the first."""
        queue = self.queues.get(domain, ())
        return self.kept(("places", domain), lambda: {job_id: at for at, job_id in enumerate(queue, 1)})

    # ------------------------------------------------------------------ what changes it

    def fold(self, change: c.Change) -> None:
        """One change becomes part of it."""
        self.changes[type(change)] += 1
        self._fold(change)

    @singledispatchmethod
    def _fold(self, change: c.Change) -> None:
        raise AssertionError(f"no change that is known: {change}")

    @_fold.register
    def _(self, change: c.Begun) -> None:
        self.begun = change

    @_fold.register
    def _(self, change: c.JobRows) -> None:
        for told in change.rows:
            row = replace(told, report=self._thinner(told.report))
            known = self.jobs.get(row.report.id)
            if known is not None and _stands_as(known, row):
                self.resorted += moves(known.report, row.report)
                self._lies_on(row, known)
                continue
            self._forget(row.report.id)
            self._put(row)
            self._made.clear()
        for job_id in change.gone:
            self._forget(job_id)
            self._made.clear()

    @_fold.register
    def _(self, change: c.Domains) -> None:
        self._made.clear()
        self.domains = dict(change.domains)
        self.domain_of = {pool: name for name, pools in change.domains for pool in pools}
        self.queues = {name: [] for name in self.domains}
        self.bookings = {name: self.bookings.get(name, ([], 0)) for name in self.domains}

    @_fold.register
    def _(self, change: c.Order) -> None:
        self._made.clear()
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
        self.hidden = frozenset(change.hidden)
        for row in change.rows:
            known = self.nodes.get(row.name)
            if known is None or known.pools != row.pools:
                self._made.clear()
            self.nodes[row.name] = row
        for name in change.gone:
            self.nodes.pop(name, None)
            self._made.clear()

    @_fold.register
    def _(self, change: c.Booked) -> None:
        known, _ = self.bookings.get(change.domain, ([], 0))
        del known[change.keep :]
        known += (replace(row, placement=self._shared(row.placement)) for row in change.rows)
        self.bookings[change.domain] = known, change.owed

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
        self.of_users.setdefault(report.user, {})[report.id] = None
        self._group(report)[report.id] = None
        if report.pools:
            self.in_several[report.id] = None
        self._lies_on(row, None)

    def _thinner(self, report: JobReport) -> JobReport:
        """The same with what is alike in many rows in memory once: words, and what jobs have of a node."""
        same = self._same.setdefault
        if len(self._same) > _SAME:
            self._same.clear()
        return replace(
            report,
            pool=same(report.pool, report.pool),
            user=same(report.user, report.user),
            account=same(report.account, report.account),
            qos=same(report.qos, report.qos),
            why=same(report.why, report.why),
            placement=self._shared(report.placement),
            planned_placement=self._shared(report.planned_placement),
        )

    def _shared(self, placement: Placement) -> Placement:
        if len(self._pairs) > _SAME:
            self._pairs.clear()
        pairs = self._pairs.setdefault
        return tuple([pairs(pair, pair) for pair in placement])

    def _group(self, report: JobReport) -> dict[str, None]:
        groups = {PENDING: self.pending, WAITING: self.outside}
        return groups.get(report.status, self.on_nodes)

    def _lies_on(self, row: c.JobRow, known: c.JobRow | None) -> None:
        """The row takes the place of the one that is known."""
        report = row.report
        self.jobs[report.id] = row
        if known is not None and known.report.placement == report.placement:
            return
        for node, _ in known.report.placement if known is not None else ():
            self.jobs_on[node].pop(report.id, None)
        for node, _ in report.placement:
            self.jobs_on.setdefault(node, {})[report.id] = None

    def _forget(self, job_id: str) -> None:
        row = self.jobs.pop(job_id, None)
        if row is None:
            return
        report = row.report
        mine = self.of_users[report.user]
        del mine[job_id]
        if not mine:
            del self.of_users[report.user]
        del self._group(report)[job_id]
        self.in_several.pop(job_id, None)
        for node, _ in report.placement:
            self.jobs_on[node].pop(job_id, None)

    def queued(self, domain: str) -> list[str]:
        """The ids of the jobs of a queue, of those that stand in several queues only where they are told."""
        pending, several = self.pending, self.in_several
        found = [job_id for job_id in self.queues.get(domain, ()) if job_id in pending]
        if not several:
            return found
        here = self.domains.get(domain, ())
        jobs = self.jobs
        return [one for one in found if one not in several or jobs[one].report.pool in here]


def sees_all(begun: c.Begun, caller: Caller) -> bool:
    """Whether the user that asks may know of all jobs, where this is the daemon's word about rights."""
    if not begun.private or (caller.itself and begun.operator):
        return True
    return not caller.itself and caller.user in begun.operators and "operator" in caller.scopes


def _stands_as(known: c.JobRow, row: c.JobRow) -> bool:
    """Whether two rows of a job have the same place in each list."""
    old, new = known.report, row.report
    return (known.submitted, known.seq, old.status, old.user, old.pool, old.pools, old.account, old.qos) == (
        row.submitted, row.seq, new.status, new.user, new.pool, new.pools, new.account, new.qos
    ) and old.name == new.name  # fmt: skip
