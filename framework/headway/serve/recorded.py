"""A journal's entries as reports, in which the asking user is told of no other user's job."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

from headway.decisions import Decision
from headway.events import (
    Event,
    JobChanged,
    JobEnded,
    JobMigrated,
    JobRequeued,
    JobStarted,
    JobSubmitted,
)
from headway.inquiry.inquiry import jobs_named, without_jobs
from headway.inquiry.past_reports import JobHistory, PastDecision, PastEvent, PastJob
from headway.inquiry.reports import finite
from headway.journal.job_history import last_failure, told_once
from headway.journal.past import Entry, Past, Place
from headway.model import JobDescription, NodeDescription, Placement, Request

#: Elements of an array that are named.
_ELEMENTS = 1000
#: What a job asks for whose description was not recorded.
_NOT_KNOWN = Request(0, math.inf)


@dataclass
class Course:
    """What becomes of one job, event by event."""

    id: str
    job: JobDescription | None = None
    started: float | None = None
    placement: Placement = ()
    pool: str = ""
    #: It was told of an end, or of a part that was over.
    over: bool = False

    def follow(self, entries: Iterable[Entry]) -> Iterator[PastJob]:
        """The job from each start to its end, in order; without a start, once."""
        for entry in entries:
            match entry.what:
                case JobSubmitted(job=job):
                    if self.job is not None and self.job.user != job.user:
                        # The id was given again.
                        yield from self._left()
                        self.over = False
                    self.job = job
                case JobChanged(job=job):
                    self.job = job
                case JobStarted(time=time, placement=placement, pool=pool):
                    if self.started is not None and self.started != time:
                        yield self._part()
                    self.started, self.placement, self.pool = time, placement, pool
                case JobMigrated(time=time, placement=placement):
                    yield self._part(time, "moved", number=str(entry.place))
                    self.started, self.placement = time, placement or self.placement
                case JobRequeued(time=time, reason=reason):
                    yield self._part(time, "requeued", reason, number=str(entry.place))
                    self.started = None
                case JobEnded(time=time, outcome=outcome, reason=reason, exit_code=code):
                    yield self._part(time, outcome, reason, code, str(entry.place))
                    self.started = None
        yield from self._left()

    def _left(self) -> Iterator[PastJob]:
        """What no end was told of."""
        if self.started is not None or (self.job is not None and not self.over):
            yield self._part()
        self.started = None

    def _part(
        self, ended: float | None = None, outcome: str = "", reason: str = "", code: int | None = None,
        number: str = "",
    ) -> PastJob:  # fmt: skip
        self.over = True
        job = self.job if self.job is not None else JobDescription(self.id, math.nan, _NOT_KNOWN)
        has = self.placement if self.started is not None else ()
        pool = self.pool if self.started is not None else ""
        return PastJob(
            job.id, pool or job.pool, sum(count for _, count in has) or job.request.processors,
            finite(job.request.walltime), None if math.isnan(job.submit_time) else job.submit_time,
            job.user, job.account, job.qos, job.name, job.request.nodes,
            job.pools if job.further_pools else (), job.array_id, self.started, ended, has, outcome, reason,
            code, number,
        )  # fmt: skip


@dataclass
class Recorded:
    """What a user is told of the entries of one journal."""

    past: Past
    #: The user that may know of the own jobs alone; None: of all.
    user: str | None
    #: Run and what may be a job's id -> the users of that job; empty: no job of the run has this id.
    _users: dict[tuple[int, str], set[str]] = field(default_factory=dict, init=False)

    def decisions(self, entries: Sequence[Entry]) -> tuple[PastDecision, ...]:
        self._learn(entries)
        return tuple([self._decision(entry) for entry in entries])

    def events(self, entries: Sequence[Entry]) -> tuple[PastEvent, ...]:
        self._learn(entries)
        return tuple([self._event(entry) for entry in entries])

    def work(self, ends: Sequence[Entry], led: dict[Place, list[Entry]]) -> Iterator[PastJob]:
        """The jobs that ran, by their ends."""
        self._learn(ends)
        for end in ends:
            number = str(end.place)
            course = Course(_job_of(end.what)).follow(led[end.place])
            last = next(one for one in course if one.number == number)
            if last.started is not None:
                yield self._told(end.place.run, last)

    def job(self, job_id: str, most: int) -> JobHistory | None:
        """What is recorded of a job, or of an array; None: nothing that the user may know of."""
        found = self.past.of_job(job_id, most)
        # What is about an own job beside this one does not say so.
        kept = [
            one for one in found
            if self.user is None or (one.user == self.user and _job_of(one.what) == job_id)
        ]  # fmt: skip
        if not kept:
            described = self.past.described_elements(job_id)
            ids = [one.id for one in described if self.user is None or one.user == self.user]
            elements = tuple(list(dict.fromkeys(ids))[:_ELEMENTS])
            return JobHistory(job_id, elements=elements, more=len(ids) > _ELEMENTS) if elements else None
        entries = list(told_once(kept))
        self._learn(entries)
        course = Course(job_id).follow(entries)
        jobs = [self._told(self._run_of(one, entries), one) for one in course]
        told = [
            self._decision(one) if isinstance(one.what, Decision) else self._event(one) for one in entries
        ]
        failure = self._said(entries[-1].place.run, last_failure(entries))
        return JobHistory(job_id, tuple(reversed(jobs)), tuple(told), failure, more=len(found) >= most)

    @staticmethod
    def _run_of(job: PastJob, entries: Sequence[Entry]) -> int:
        return Place.of(job.number).run if job.number else entries[-1].place.run

    # ------------------------------------------------------------------ one entry

    def _decision(self, entry: Entry) -> PastDecision:
        what, outcome, run = entry.what, entry.outcome, entry.place.run
        return PastDecision(
            str(entry.place),
            _time(entry.at),
            type(what).__name__,
            _job_of(what),
            entry.user or "",
            self._other(run, what),
            self._said(run, getattr(what, "reason", "")),
            None if outcome is None else outcome.accepted,
            "" if outcome is None else self._said(run, outcome.message),
            getattr(what, "placement", ()),
        )

    def _event(self, entry: Entry) -> PastEvent:
        what, run = entry.what, entry.place.run
        assert isinstance(what, Event)
        node = getattr(what, "node", "")
        return PastEvent(
            str(entry.place),
            type(what).__name__,
            _time(what.time),
            _time(entry.at),
            _job_of(what),
            entry.user or "",
            self._other(run, what),
            node.name if isinstance(node, NodeDescription) else node,
            self._said(run, ": ".join(_details(what))),
            getattr(what, "placement", ()),
        )

    def _told(self, run: int, job: PastJob) -> PastJob:
        return msgspec.structs.replace(job, reason=self._said(run, job.reason)) if job.reason else job

    def _other(self, run: int, what: Event | Decision) -> str:
        other = getattr(what, "other_job_id", "")
        return other if other and (self.user is None or self._users_of(run, other) == {self.user}) else ""

    # ------------------------------------------------------------------ names of other users' jobs

    def _learn(self, entries: Sequence[Entry]) -> None:
        """Ask at once about all that these entries name."""
        if self.user is None:
            return
        named: dict[int, set[str]] = {}
        for entry in entries:
            names = named.setdefault(entry.place.run, set())
            outcome = entry.outcome.message if entry.outcome is not None else ""
            for text in (*_details(entry.what), outcome):
                names.update(jobs_named(text))
            if other := getattr(entry.what, "other_job_id", ""):
                names.add(other)
        for run, names in named.items():
            self._ask(run, names)

    def _ask(self, run: int, names: Iterable[str]) -> None:
        wanted = [name for name in names if (run, name) not in self._users]
        users = self.past.users(run, wanted) if wanted else {}
        self._users.update({(run, name): users.get(name, set()) for name in wanted})

    def _users_of(self, run: int, name: str) -> set[str]:
        self._ask(run, [name])
        return self._users[run, name]

    def _said(self, run: int, text: str) -> str:
        if self.user is None or not text:
            return text
        # What is no job of this run is a word.
        return without_jobs(text, lambda name: self._users_of(run, name) <= {self.user})


def _details(what: Event | Decision) -> list[str]:
    """What an entry says in words."""
    said = (getattr(what, name, "") for name in ("outcome", "reason", "message"))
    return [one for one in said if one]


def _job_of(what: Event | Decision) -> str:
    if isinstance(what, JobSubmitted | JobChanged):
        return what.job.id
    about = getattr(what, "decision", what)
    return str(getattr(about, "job_id", None) or getattr(about, "parent_id", ""))


def _time(seconds: float) -> float | None:
    return None if math.isnan(seconds) or math.isinf(seconds) else seconds
