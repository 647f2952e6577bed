"""What programs that follow the daemon are told, made on the scheduler's thread between two steps.

After a cycle it is noted what came, changed and went. Between two steps rows are made of that, for as long as
there is processor time for it (:class:`headway.inquiry.spare_time.SpareTime`); the rest comes later. What
nobody tells of, such as why a job waits, is looked at in turn, and told where it changed. Without followers
nothing of this is done.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import cast

import msgspec
from msgspec.structs import replace

from headway.adapter import Outcome
from headway.decisions import Decision
from headway.events import Event
from headway.inquiry.cycles import TOLD, Cycle, cycle_report, decision_report
from headway.inquiry.inquiry import Inquiry
from headway.inquiry.jobs import job_facts, job_report, reason_told
from headway.inquiry.nodes import node_report
from headway.inquiry.spare_time import SpareTime
from headway.model import JobDescription
from headway.scheduler import Scheduler
from headway.service.answers import Answers
from headway.service.booking_changes import BookingChanges
from headway.service.changes import (
    Begun,
    Change,
    Cycled,
    Decided,
    Domains,
    Happened,
    JobRow,
    JobRows,
    NodeRows,
    Order,
    Whole,
    Words,
    encoded,
    write_change,
)
from headway.service.node_changes import NodeChanges
from headway.service.outbox import Outbox
from headway.service.protocol import Report
from headway.service.queue_changes import difference
from headway.state import Domain, Job, Status
from headway.state import State as ClusterState
from headway.state.records import ON_NODES
from headway.view.owed import Check, Enough

#: Programs that follow at a time.
MOST = 4
#: Share of all time, and seconds at once, of the scheduler's thread for all of them.
SHARE, AT_ONCE = 0.03, 0.02
#: Rows of a line.
_ROWS = 64
#: Events of a cycle that are told one by one, and cycles that wait until a follower is given up.
_EVENTS, _CYCLES = 1000, 1000
#: Where users see only their own jobs, so many decisions of a cycle are looked at.
_LOOKED_AT = 4 * TOLD


class Feed:
    """All that follow."""

    def __init__(self, spare: SpareTime | None = None) -> None:
        """``spare``: processor time of the scheduler's thread for what is told."""
        self._spare = spare if spare is not None else SpareTime(SHARE, AT_ONCE)
        self._lock = threading.Lock()
        self._followers: list[Follower] = []

    # ------------------------------------------------------------------ the socket's thread

    def join(self, begun: Begun) -> Outbox | None:
        """One more follows, and gets all from now on; None: too many do."""
        with self._lock:
            self._followers = [one for one in self._followers if not one.outbox.over]
            if len(self._followers) >= MOST:
                return None
            follower = Follower(begun)
            self._followers.append(follower)
        return follower.outbox

    @property
    def is_due(self) -> bool:
        """Whether there is something to tell for which there was no time yet."""
        return any(one.is_due for one in self._followers)

    def give_up(self, why: str) -> None:
        """None of them gets any more. May be called from any thread."""
        with self._lock:
            followers, self._followers = self._followers, []
        for follower in followers:
            follower.outbox.end(why)

    # ------------------------------------------------------------------ the scheduler's thread

    def note(self, number: int, cycle: Cycle) -> None:
        """The cycle of this number is over."""
        for follower in self._followers:
            follower.note(number, cycle)

    def tell(self, scheduler: Scheduler, answers: Answers, report: Callable[[], Report]) -> bool:
        """Between two steps: tell what there is time for. Returns whether anything was.
        ``report``: how the daemon is."""
        if not self._followers:
            return False
        with self._lock:
            # Each is the first in its turn.
            self._followers = [
                one for one in (*self._followers[1:], *self._followers[:1]) if not one.outbox.over
            ]
            followers = list(self._followers)
        check = self._spare.check()
        told = False
        for follower in followers:
            if follower.is_due and not follower.outbox.is_full:
                told = True
                with suppress(Enough):
                    follower.tell(Telling(scheduler, answers, report, check))
        with suppress(Enough):
            # What was done last counts as well.
            check()
        return told


class Telling:
    """What rows are made of between two steps."""

    def __init__(
        self, scheduler: Scheduler, answers: Answers, report: Callable[[], Report], check: Check
    ) -> None:
        self.scheduler = scheduler
        self.answers = answers
        self.report = report
        self.check = check
        self.inquiry = answers.inquiry(scheduler, None)
        self._of_users: dict[str, Inquiry] = {}

    def of_user(self, user: str) -> Inquiry | None:
        """What the user of a job is told from; None: the user is told the same as everybody."""
        if not self.answers.private:
            return None
        found = self._of_users.get(user)
        if found is None:
            found = self._of_users[user] = self.answers.inquiry(self.scheduler, user)
            found.suspended = self.inquiry.suspended
        return found

    def row(self, job: Job, *, reason: bool) -> JobRow:
        """A job's row, with or without why it waits."""
        waits = job.status not in ON_NODES
        own: Words | None = None
        if not waits or not reason:
            report = job_facts(job)
        else:
            report = replace(job_report(self.inquiry, job, 0), queue_length=None)
            inquiry = self.of_user(job.user)
            if inquiry is not None:
                said = reason_told(inquiry, job)
                if (said.why, said.jobs) != (report.why, report.waits_for):
                    own = Words(said.why, said.jobs)
        return JobRow(report, job.description.submit_time, job.seq, own)


class Follower:
    """One program that follows: what it was told, and what it is to be told."""

    def __init__(self, begun: Begun) -> None:
        self.outbox = Outbox()
        self.outbox.put(write_change(begun))
        #: Something is to be told.
        self.is_due = True
        self._cycles: deque[tuple[int, Cycle]] = deque()
        #: Job id -> hash of its row as it was told.
        self._jobs: dict[str, int] = {}
        self._users: dict[str, str] = {}
        #: Ids of jobs that may have changed, in the order in which that happened.
        self._changed: dict[str, None] = {}
        #: Whether that is to be looked at: a cycle was made.
        self._lists_are_due = True
        self._queues: dict[str, list[Job]] = {}
        self._domains: tuple[tuple[str, tuple[str, ...]], ...] = ()
        self._nodes = NodeChanges()
        self._nodes_due: deque[str] = deque()
        self._bookings = BookingChanges()
        #: The jobs that are still to be looked at in this round, which in the first are told without why they
        #: wait.
        self._round: deque[Job] | None = None
        #: A cycle was made since the round began.
        self._again = True
        self._whole = False
        self._told_cycle = False

    def note(self, number: int, cycle: Cycle) -> None:
        self.is_due = True
        self._cycles.append((number, cycle))
        if len(self._cycles) > _CYCLES:
            self.outbox.end("it reads too slowly")

    def tell(self, telling: Telling) -> None:
        """Raises :class:`Enough` where more is to be told than there is time for."""
        if not self._told_cycle:
            self._told_cycle = True
            if not self._cycles and (last := telling.answers.last_cycle) is not None:
                self._cycles.append((telling.scheduler.cycles, last))
        while self._cycles:
            self._say(self._cycled(telling, *self._cycles.popleft()))
            self._lists_are_due = self._again = True
        self._tell_changed(telling)
        if self._lists_are_due:
            self._lists_are_due = False
            self._tell_lists(telling)
        self._tell_nodes(telling)
        for change in self._bookings.told(telling, self._changed):
            self._say(change)
        self.outbox.put_state(telling.report())
        self._tell_changed(telling)
        self._tell_rounds(telling)
        self.is_due = self._bookings.are_owed

    def _say(self, change: Change) -> None:
        self.outbox.put(write_change(change))

    # ------------------------------------------------------------------ a cycle

    def _cycled(self, telling: Telling, number: int, cycle: Cycle) -> Cycled:
        """A cycle; the jobs that it was about may have changed."""
        happened = [self._happened(telling, event) for event in cycle.events]
        self._changed.update((one.job, None) for one in happened if one.job)
        ids = (getattr(decision, "job_id", None) for decision in cycle.decisions)
        self._changed.update((job_id, None) for job_id in ids if job_id)
        report = replace(cycle_report(telling.inquiry, cycle, _nobody), number=number)
        decided = map(partial(_decided, telling), cycle.decisions, cycle.outcomes)
        return Cycled(report, tuple(islice(decided, _LOOKED_AT)), tuple(happened[:_EVENTS]))

    def _happened(self, telling: Telling, event: Event) -> Happened:
        """An event; its job may be gone, or have been gone before it was told."""
        kind, described = type(event).__name__, getattr(event, "job", None)
        if isinstance(described, JobDescription):
            self._users[described.id] = described.user
            return Happened(kind, event.time, described.id, described.user)
        if job_id := getattr(event, "job_id", ""):
            job = telling.scheduler.state.jobs.get(job_id)
            user = job.user if job is not None else self._users.get(job_id, "")
            return Happened(kind, event.time, job_id, user)
        node = getattr(event, "node", "")
        return Happened(kind, event.time, node=node if isinstance(node, str) else node.name)

    # ------------------------------------------------------------------ jobs

    def _tell_changed(self, telling: Telling) -> None:
        """The jobs that may have changed, and those that are gone."""
        jobs, changed = telling.scheduler.state.jobs, self._changed
        gone: list[str] = []

        def still_there() -> Iterator[Job]:
            while changed:
                telling.check()
                job_id = next(iter(changed))
                del changed[job_id]
                if (job := jobs.get(job_id)) is not None:
                    yield job
                else:
                    self._users.pop(job_id, None)
                    if self._jobs.pop(job_id, None) is not None:
                        gone.append(job_id)

        self._tell_rows(telling, still_there(), gone)

    def _tell_rows(
        self, telling: Telling, jobs: Iterator[Job], gone: list[str], *, reason: bool = True
    ) -> None:
        """Tell what is new of some jobs, all of it, also where time is over (:class:`Enough`)."""
        rows: list[msgspec.Raw] = []
        try:
            for job in jobs:
                raw = encoded(telling.row(job, reason=reason))
                known = hash(raw)
                if self._jobs.get(job.id) != known:
                    self._jobs[job.id], self._users[job.id] = known, job.user
                    rows.append(msgspec.Raw(raw))
                if len(rows) >= _ROWS:
                    self._say_rows(rows, [])
                    rows = []
        finally:
            if rows or gone:
                self._say_rows(rows, gone)

    def _say_rows(self, rows: list[msgspec.Raw], gone: list[str]) -> None:
        # They are encoded already.
        self._say(JobRows(cast("tuple[JobRow, ...]", tuple(rows)), tuple(gone)))

    def _tell_rounds(self, telling: Telling) -> None:
        """Look at all jobs in turn, until nothing has happened since a round began."""
        while self._round is not None or self._again:
            if self._round is None:
                self._again, self._round = False, deque(_all_jobs(telling.scheduler.state))
            self._tell_rows(telling, self._going_round(telling, self._round), [], reason=self._whole)
            self._round = None
            self._changed.update(dict.fromkeys(self._jobs.keys() - telling.scheduler.state.jobs.keys()))
            self._tell_changed(telling)
            if not self._whole:
                self._whole = self._again = True
                self._say(Whole())

    def _going_round(self, telling: Telling, left: deque[Job]) -> Iterator[Job]:
        jobs = telling.scheduler.state.jobs
        while left:
            if self.outbox.is_full:
                raise Enough
            telling.check()
            job = left.popleft()
            # It may be gone; and in the first round it may have been told already, with why it waits.
            if jobs.get(job.id) is job and (self._whole or job.id not in self._jobs):
                yield job

    # ------------------------------------------------------------------ queues and nodes

    def _tell_lists(self, telling: Telling) -> None:
        """What became of the queues and of the nodes."""
        state = telling.scheduler.state
        domains = tuple([(one.name, tuple(one.pool_names)) for one in state.domains.values()])
        if domains != self._domains:
            self._domains = domains
            self._queues.clear()
            self._say(Domains(domains))
        for domain in state.domains.values():
            now, before = list(telling.inquiry.queue(domain)), self._queues.get(domain.name)
            if now != before:
                self._queues[domain.name] = now
                self._say(_order(domain, before, now))
        names, gone = self._nodes.since(state)
        self._nodes_due.extend(names)
        if gone:
            self._say(_node_rows(telling, (), gone))

    def _tell_nodes(self, telling: Telling) -> None:
        due, known = self._nodes_due, telling.scheduler.state.nodes.descriptions
        while due:
            telling.check()
            names = [name for name in (due.popleft() for _ in range(min(_ROWS, len(due)))) if name in known]
            self._say(_node_rows(telling, names, ()))


def _node_rows(telling: Telling, names: Iterable[str], gone: Iterable[str]) -> NodeRows:
    rows = tuple([node_report(telling.inquiry, name, ()) for name in names])
    kept = telling.scheduler.state.reservations.values()
    return NodeRows(rows, tuple(gone), tuple([one.id for one in kept if one.job_id]))


def _nobody(_: Job) -> bool:
    """No job may be seen."""
    return False


def _decided(telling: Telling, decision: Decision, outcome: Outcome) -> Decided:
    job = telling.scheduler.state.jobs.get(getattr(decision, "job_id", None) or "")
    told = decision_report(telling.inquiry, decision, outcome)
    if job is None or (inquiry := telling.of_user(job.user)) is None:
        return Decided(told, job.user if job is not None else "")
    own = decision_report(inquiry, decision, outcome)
    return Decided(told, job.user, None if own == told else own)


def _all_jobs(state: ClusterState) -> list[Job]:
    """First those that wait in queues, in the order of these."""
    pending = Status.PENDING
    queued = [job for domain in state.domains.values() for job in domain.queue if job.pool.domain is domain]
    return queued + [job for job in state.jobs.values() if job.status is not pending]


def _order(domain: Domain, before: list[Job] | None, now: list[Job]) -> Order:
    def left(job: Job) -> bool:
        return job.status is not Status.PENDING or (not job.choices and job.domain is not domain)

    found = difference(before, now, left) if before is not None else None
    if found is None:
        return Order(domain.name, anew=tuple([job.id for job in now]))
    return Order(domain.name, tuple(found[0]), tuple([(at, job.id) for at, job in found[1]]))
