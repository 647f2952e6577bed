"""Answers to questions: what the scheduler knows, as far as the asking user may see it.

Made on the scheduler's thread between two steps, from what is in memory. No cycle is needed, nothing is
written down, and no command is given to a batch system.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from headway.adapter import Check, Outage, StartsWait
from headway.decisions import Start
from headway.errors import Failure, UserError
from headway.inquiry import Inquiry, find_job
from headway.inquiry.arrays import array_lines, elements_of
from headway.inquiry.before import before
from headway.inquiry.bookings import booking_page
from headway.inquiry.cycles import Cycle, cycle_report
from headway.inquiry.datasets import dataset_list
from headway.inquiry.health import state_checks
from headway.inquiry.holes import HolesWanted, hole_list
from headway.inquiry.inquiry import Sees, everything, seen_by
from headway.inquiry.jobs import Wanted, job_page, job_report
from headway.inquiry.nodes import node_page
from headway.inquiry.outlook import accuracy_line, history_lines
from headway.inquiry.pools import pool_list
from headway.inquiry.reports import BookingPage, DatasetList, HealthCheck, HealthReport, HoleList
from headway.inquiry.reservations import reservation_page
from headway.inquiry.sentences import job_lines
from headway.inquiry.sooner import sooner
from headway.inquiry.spare_time import SpareTime
from headway.journal.latency_summary import LatencySummary
from headway.journal.planned import LivePlans
from headway.model import Request
from headway.model.questions import Question
from headway.scheduler import Scheduler, plain_clock
from headway.service import protocol
from headway.service.jobs_of_users import JobsOfUsers
from headway.service.peer import Peer
from headway.service.plans_over_time import PlansOverTime
from headway.service.protocol import Explained, Found, OutageReport, Reply
from headway.state import Status

#: The questions that headway itself answers.
_OwnQuestion = (
    protocol.Explain
    | protocol.Jobs
    | protocol.Nodes
    | protocol.Bookings
    | protocol.Reservations
    | protocol.Pools
    | protocol.Datasets
    | protocol.Cycle
    | protocol.Starts
    | protocol.Holes
)
#: The questions that are answered from memory.
Answered = _OwnQuestion | protocol.Health | protocol.PluginQuestion
#: Bytes of a reply beside a plugin's answer, at most.
_ENVELOPE = 1024
#: Answers about holes that are kept until the next cycle.
_KEPT = 256


class Unknown(Exception):
    """Nothing of that name is there for the asking user; the message says what was asked for."""


@dataclass
class Answers:
    """What answers to questions are made of, beside the scheduler."""

    #: Users see their own jobs only; operators see all.
    private: bool = False
    #: Writes a time for a person.
    tell_time: Callable[[float], str] = plain_clock
    #: Completes the id of a job that a user names.
    full_job_id: Callable[[str], str] = str
    outages: Callable[[], Sequence[Outage]] = tuple
    starts_waiting: Callable[[], Sequence[StartsWait]] = tuple
    #: How long the cluster takes.
    latencies: Callable[[], Mapping[str, LatencySummary]] = dict
    #: How good plans were; None: nobody counts.
    plans: LivePlans | None = None
    #: What was planned over time; an earlier run's, where this run follows it.
    plans_over_time: PlansOverTime = field(default_factory=PlansOverTime)
    #: How the adapter is, and how much room the journal has.
    vital_signs: Callable[[], Sequence[Check]] = tuple
    journal: Callable[[], HealthCheck | None] = lambda: None
    #: Absolute seconds.
    clock: Callable[[], float] = time.time
    #: Of batch mode, seconds.
    batch: float | None = None
    _cycle: Cycle | None = field(default=None, init=False)
    #: In monitor mode: the starts that were wished for, by job.
    _wished: dict[str, Start] = field(default_factory=dict, init=False)
    #: Processor time for bookings that are owed.
    _booking: SpareTime = field(default_factory=SpareTime, init=False)
    _jobs: JobsOfUsers = field(default_factory=JobsOfUsers, init=False)
    #: What was added up of the queues after a cycle (:attr:`Inquiry.sums`), and its number.
    _sums: tuple[int, dict[str, list[int]]] = field(default_factory=lambda: (-1, {}), init=False)
    #: The holes that were asked for after a cycle, and its number.
    _holes: tuple[int, dict[protocol.Holes, HoleList]] = field(default_factory=lambda: (-1, {}), init=False)

    def note(self, cycle: Cycle, scheduler: Scheduler) -> None:
        """A cycle is over."""
        self._cycle = cycle
        if self.plans is not None:
            self.plans.cycle(cycle.now, cycle.events, cycle.decisions, cycle.outcomes)
        self.plans_over_time.happened(cycle.events, scheduler.state)
        self._jobs.note(cycle.events, scheduler.state)
        if scheduler.wished or self._wished:
            starts = {one.job_id: one for one in cycle.decisions if isinstance(one, Start)}
            known = {**self._wished, **starts}
            self._wished = {job_id: start for job_id, start in known.items() if job_id in scheduler.wished}

    def reply(self, question: Answered, peer: Peer, scheduler: Scheduler) -> Reply:
        """The answer to a question, after the scheduler's last step."""
        inquiry = self.inquiry(scheduler, None if self.tells_all(peer) else peer.user)
        as_of = scheduler.state.now
        try:
            if isinstance(question, protocol.PluginQuestion):
                found: Found = self._told(question, peer, scheduler)
            elif isinstance(question, protocol.Health):
                found = self._health(inquiry)
            else:
                found = self._find(question, inquiry, peer)
        except Unknown as error:
            return Reply("unknown", str(error), as_of=as_of)
        except Failure as error:
            return Reply("failed", str(error), as_of=as_of)
        hidden = isinstance(
            question, protocol.Jobs | protocol.Bookings | protocol.Cycle | protocol.PluginQuestion
        )
        hidden = hidden and not (isinstance(question, protocol.Jobs) and question.mine)
        only_own = self.private and not peer.operator and hidden
        remarks = [
            "only your own jobs are shown" if only_own else "",
            found.missing if isinstance(found, BookingPage) else "",
        ]
        return Reply("accepted", "; ".join(filter(None, remarks)), found=found, as_of=as_of)

    def inquiry(self, scheduler: Scheduler, user: str | None) -> Inquiry:
        """What reports for a user are made of that knows of the own jobs only; None: that knows of all."""
        seen = None if user is None else self._jobs.of(scheduler.state, user)
        if self._sums[0] != scheduler.cycles:
            self._sums = scheduler.cycles, {}
        wished = tuple(self._wished.values())
        return Inquiry(
            scheduler, self.tell_time, wished, seen_by(user), seen, self._booking.check(), sums=self._sums[1]
        )

    @property
    def last_cycle(self) -> Cycle | None:
        return self._cycle

    def _told(self, asked: protocol.PluginQuestion, peer: Peer, scheduler: Scheduler) -> protocol.Told:
        """What a plugin answers. Raises :class:`Unknown` with what the plugin says is wrong, and
        :class:`headway.errors.Failure` if it failed."""
        sees_all = self.tells_all(peer)
        failures = len(scheduler.problems)
        try:
            question = Question(asked.name, asked.text, peer.user, sees_all, self.full_job_id)
            answer = scheduler.inform.first(question, scheduler.state)
        except UserError as error:
            raise Unknown(str(error)) from error
        if answer is None and len(scheduler.problems) > failures:
            raise Failure(f"plugin {scheduler.problems[-1].plugin} failed at the question {asked.name!r}")
        if answer is None:
            raise Unknown(f"no enabled plugin answers the question {asked.name!r} (see `headway plugins`)")
        raw = msgspec.Raw(msgspec.json.encode(answer))
        if len(bytes(raw)) > protocol.MAX_REPLY - _ENVELOPE:
            raise Failure(f"the answer has more than {protocol.MAX_REPLY} bytes")
        return protocol.Told(raw)

    def tells_all(self, peer: Peer) -> bool:
        """Whether a user may know of other users' jobs."""
        return peer.operator or not self.private

    def _find(self, question: _OwnQuestion, inquiry: Inquiry, peer: Peer) -> Found:
        sees = inquiry.sees
        match question:
            case protocol.Explain(job_id):
                return self._explained(inquiry, self.full_job_id(job_id), sees)
            case protocol.Jobs(pool, user, status, first, count, account, qos, name, mine):
                _known(inquiry, pool)
                whose = peer.user if mine else user
                wanted = Wanted(pool, whose, status, account, qos, name)
                only = whose or (peer.user if sees is not everything else "")
                among = self._jobs.of(inquiry.state, only) if only else None
                return job_page(inquiry, wanted, first, count, sees, among)
            case protocol.Nodes(pool, first, count):
                _known(inquiry, pool)
                return node_page(inquiry, pool, first, count, sees)
            case protocol.Bookings(pool, first, count):
                _known(inquiry, pool)
                return booking_page(inquiry, pool, first, count, sees)
            case protocol.Reservations(first, count):
                return reservation_page(inquiry, first, count)
            case protocol.Pools():
                return pool_list(inquiry)
            case protocol.Datasets():
                return _datasets(inquiry)
            case protocol.Starts():
                if self.plans is None:
                    raise Unknown("nobody counts planned starts here")
                return self.plans.report(self.latencies())
            case protocol.Holes():
                _known(inquiry, question.pool)
                return self._holes_of(inquiry, question)
            case protocol.Cycle():
                assert self._cycle is not None
                return cycle_report(inquiry, self._cycle, sees)

    def _health(self, inquiry: Inquiry) -> HealthReport:
        """What holds of the state, the cluster, the adapter and the journal."""
        silent = [f"{one.cluster} has not since {inquiry.clock(one.since)}" for one in self.outages()]
        clusters = HealthCheck("clusters answer", not silent, "; ".join(silent) or "all of them")
        if silent:
            clusters = msgspec.structs.replace(clusters, remedy="mend it; headway waits for it, and goes on")
        signs = [
            HealthCheck(one.subject, one.ok, one.detail, "" if one.ok else one.remedy)
            for one in self.vital_signs()
        ]
        journal = self.journal()
        checks = [clusters, *signs, *([journal] if journal is not None else [])]
        return HealthReport((*checks, *state_checks(inquiry, self.clock(), self.batch)))

    def _holes_of(self, inquiry: Inquiry, wanted: protocol.Holes) -> HoleList:
        """They are the same for every user until the next cycle."""
        cycle, known = self._holes
        if cycle != inquiry.scheduler.cycles:
            known = {}
            self._holes = inquiry.scheduler.cycles, known
        if wanted not in known:
            if len(known) >= _KEPT:
                known.clear()
            known[wanted] = hole_list(inquiry, _holes_wanted(wanted))
        return known[wanted]

    def _explained(self, inquiry: Inquiry, job_id: str, sees: Sees) -> Explained:
        """Raises :class:`Unknown` of a job that the user may not see as of one that is not there."""
        job = find_job(inquiry.scheduler, job_id)
        seen = elements_of(inquiry, job_id) if job is None else [job]
        if not seen or not all(map(sees, seen)):
            whose = " of yours" if sees is not everything else ""
            raise Unknown(f"no job{whose} with the id {job_id!r} is in the cluster's queue")
        outages = tuple([OutageReport(one.cluster, one.since, one.message) for one in self.outages()])
        if job is None:
            return Explained(job_id, tuple(array_lines(inquiry, job_id)), outages=outages)
        report = job_report(inquiry, job)
        starts = () if job.status in (Status.RUNNING, Status.SUSPENDED) else tuple(self.starts_waiting())
        # Bookings that this question made are on record too.
        self.plans_over_time.planned(inquiry.scheduler)
        if report.planned_start is not None:
            self.plans_over_time.note(job.id, report.planned_start, inquiry.state.now)
        planned = report.planned_start is not None or job.id in inquiry.unfinished
        history = self.plans_over_time.of(job.id) if planned else None
        accuracy = self.plans_over_time.kept_in(job.pool.name) if planned else None
        helps = sooner(inquiry, job)
        remembered = [
            *(history_lines(history, inquiry.clock) if history is not None else ()),
            *([accuracy_line(accuracy)] if accuracy is not None else ()),
        ]
        ahead = before(inquiry, job)
        told = tuple(job_lines(inquiry, job, helps, ahead))
        return Explained(
            job_id, told, report, starts, outages, ahead, history, accuracy, tuple(remembered),
            tuple(helps),
        )  # fmt: skip


def _holes_wanted(asked: protocol.Holes) -> HolesWanted:
    each = Request(
        1, asked.seconds, processors_per_node=asked.processors_per_node,
        memory_per_node=asked.memory_per_node, memory_per_processor=asked.memory_per_processor,
        gres_per_node=asked.gres_per_node, features=asked.features, licences=asked.licences,
        exclusive=asked.exclusive,
    )  # fmt: skip
    return HolesWanted(each, asked.pool, asked.nodes, asked.processors, asked.seconds)


def _datasets(inquiry: Inquiry) -> DatasetList:
    """Raises :class:`Unknown` without sites."""
    if (catalogue := inquiry.state.catalogue) is None:
        raise Unknown("no sites are configured")
    return dataset_list(catalogue)


def _known(inquiry: Inquiry, pool: str) -> None:
    """Raises :class:`Unknown` for a name of a pool that is none; "" names no pool."""
    pools = inquiry.state.pools
    if pool and pool not in pools:
        raise Unknown(f"expected one of the pools {', '.join(pools)}; found {pool!r}")
