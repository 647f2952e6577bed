"""Where the socket's thread leaves requests and the scheduler's thread takes them.

The only object that both threads touch. Requests become events of the next cycle; their answers
come from the hook ``answer`` and from what the cluster said to the decision, right after the cycle.
Questions (:data:`headway.service.protocol.Question`) need no cycle: they are answered between two steps.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections import Counter, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from time import perf_counter

import msgspec

from headway.adapter import Oddity, Outage, Outcome, StartsWait
from headway.decisions import Answer, Decision
from headway.errors import Failure
from headway.events import (
    ElasticCommandReceived,
    Event,
    PluginAsked,
    ReservationRequested,
    ReservationReturned,
)
from headway.inquiry.cycles import Cycle
from headway.inquiry.pools import pool_report
from headway.journal.latency_summary import LatencySummary
from headway.plugins import Problem
from headway.plugins.calls import problem_of
from headway.scheduler import Scheduler
from headway.service import protocol
from headway.service.answers import Answered, Answers
from headway.service.changes import FORMAT, Begun
from headway.service.feed import Feed
from headway.service.figures import Figures
from headway.service.outbox import Outbox
from headway.service.peer import Peer
from headway.service.protocol import Leadership, LetterCounts, OddityReport, OutageReport, Reply, Report
from headway.service.snapshots import Snapshots
from headway.service.what_if import WhatIfs

#: Requests that wait, at most.
MAX_WAITING = 1000
#: Seconds for which questions are answered between two steps; the others come after the next look at what
#: happened.
ANSWERING = 0.05
_PROBLEMS = 20
#: The daemon itself, which may know everything.
_EVERYBODY = Peer("", operator=True)
#: Users that a status report names for asking too often.
_MOST_LIMITED = 20


class Inbox:
    """Requests on their way to the scheduler: a :class:`headway.engine.RequestSource`."""

    def __init__(
        self,
        wake: Callable[[], None],
        report: Report,
        *,
        watching: bool = False,
        clock: Callable[[], float],
        outages: Callable[[], Sequence[Outage]] = tuple,
        oddities: Callable[[], Sequence[Oddity]] = tuple,
        starts_waiting: Callable[[], Sequence[StartsWait]] = tuple,
        watts: Callable[[], Mapping[str, float]] = dict,
        latencies: Callable[[], Mapping[str, LatencySummary]] = dict,
        letters: Callable[[], LetterCounts] = LetterCounts,
        leadership: Callable[[], Leadership] = Leadership,
        full_job_id: Callable[[str], str] = str,
        answers: Answers | None = None,
        snapshots: Snapshots | None = None,
        what_ifs: WhatIfs | None = None,
        feed: Feed | None = None,
        figures: Figures | None = None,
    ) -> None:
        """``wake`` makes the adapter's wait return. ``watching``: monitor mode, where nothing is changed.
        ``report`` says what stays the same during the run; ``outages`` what does not answer now,
        ``oddities`` what else an operator should know, ``starts_waiting`` which starts wait for the batch
        system rather than for processors, ``watts`` what nodes were measured to draw, ``letters`` what became
        of letters to users, ``latencies`` how long the cluster takes, asked on the scheduler's thread;
        ``leadership`` which of two daemons it is; ``full_job_id`` completes an id that a user names;
        ``answers`` makes the answers to questions, ``snapshots`` those to questions about jobs that are not
        submitted, ``what_ifs`` those to questions about other policies; ``feed`` tells programs that follow
        the daemon; ``figures`` makes metrics."""
        self._answers = answers if answers is not None else Answers()
        self._snapshots = snapshots or Snapshots(clock, tell_time=self._answers.tell_time)
        self._what_ifs = what_ifs or WhatIfs(clock=clock)
        self._feed = feed if feed is not None else Feed()
        #: There is news for a program that follows.
        self.has_news: Callable[[], None] = _nobody_waits
        self._full_job_id = full_job_id
        self._wake = wake
        self._report = report
        self._watching = watching
        self._clock = clock
        self._outages = outages
        self._oddities = oddities
        self._starts_waiting = starts_waiting
        self._watts = watts
        self._latencies = latencies
        self._letters, self._leadership = letters, leadership
        self._figures = figures if figures is not None else Figures(clock=clock)
        self._lock = threading.Lock()
        self._waiting: deque[tuple[protocol.AnyRequest, Peer, Future[Reply]]] = deque()
        self._questions: deque[tuple[protocol.Question, Peer, Future[Reply]]] = deque()
        #: The adapter's wait was ended for a question, and for nothing else.
        self._woken_to_answer = False
        self._taken: dict[str, Future[Reply]] = {}
        self._problems: deque[tuple[float, str]] = deque(maxlen=_PROBLEMS)
        self._problem_count = 0
        #: User -> requests that were refused because the user asked too often.
        self._limited: Counter[str] = Counter()
        # A later run's requests must not be taken for the requests that its plugins remember.
        self._names = (f"{os.getpid()}-{report.started:.3f}-{number}" for number in itertools.count(1))

    # ------------------------------------------------------------------ the socket's thread

    def ask(self, request: protocol.AnyRequest, peer: Peer) -> Future[Reply]:
        """Leave a request; its reply comes with the cycle that serves it.

        A reply that is not waited for any more can be cancelled as long as no cycle has taken it.
        """
        future: Future[Reply] = Future()
        if isinstance(request, protocol.Status):
            future.set_result(Reply("accepted", status=self._status(peer)))
            return future
        if isinstance(request, protocol.Metrics):
            with self._lock:
                limited = self._limited.total()
            tells_all = self._answers.tells_all(peer)
            found = self._figures.told(self._status(peer), limited, users=tells_all)
            future.set_result(Reply("accepted", metrics=found))
            return future
        if self._watching and not isinstance(request, protocol.Question):
            future.set_result(Reply("refused", "headway only watches here (mode monitor)"))
            return future
        with self._lock:
            full = len(self._waiting) + len(self._questions) >= MAX_WAITING
            if not full and isinstance(request, protocol.Question):
                self._questions.append((request, peer, future))
                self._woken_to_answer = True
            elif not full:
                self._waiting.append((request, peer, future))
        if full:
            future.set_result(Reply("failed", f"{MAX_WAITING} requests are waiting; try again later"))
        else:
            self._wake()
        return future

    def _status(self, peer: Peer) -> Report:
        """How the daemon is, without what names other users or their jobs where the asking user may not know
        of these."""
        with self._lock:
            report = self._report
            problems, count = tuple(self._problems), self._problem_count
            limited = dict(self._limited.most_common(_MOST_LIMITED))
            mine = self._limited[peer.user]
        tells_all = self._answers.tells_all(peer)
        if not tells_all:
            problems, limited = (), {peer.user: mine} if mine else {}
        outages = tuple(OutageReport(one.cluster, one.since, one.message) for one in self._outages())
        oddities = tuple(
            OddityReport(odd.cluster, odd.what, odd.count, odd.last, odd.detail if tells_all else "")
            for odd in self._oddities()
        )
        return msgspec.structs.replace(
            report, problems=problems, problems_in_all=count, limited=limited, outages=outages,
            oddities=oddities, watts=dict(self._watts()), starts_waiting=tuple(self._starts_waiting()),
            letters=self._letters(), leadership=self._leadership(),
        )  # fmt: skip

    def follow(self, operators: Collection[str], *, operator: bool) -> Outbox:
        """What a program gets from now on that follows the daemon; :class:`Failure`: too many do.
        ``operator``: whether the program's own user is one."""
        begun = Begun(FORMAT, self._answers.private, tuple(sorted(operators)), operator)
        outbox = self._feed.join(begun)
        if outbox is None:
            raise Failure("too many programs follow the daemon")
        self.go_on_telling()
        return outbox

    @property
    def has_more_to_tell(self) -> bool:
        """Whether programs that follow are still to be told something (:meth:`go_on_telling`)."""
        return self._feed.is_due

    def go_on_telling(self) -> None:
        """Have programs that follow told what there is time for, between two steps."""
        with self._lock:
            self._woken_to_answer = True
        self._wake()

    def whole_status(self) -> Report:
        """How the daemon is, with everything that only some may know."""
        return self._status(_EVERYBODY)

    def line(self) -> str:
        """How the daemon is, in a line. On any thread."""
        with self._lock:
            report = self._report
        tell = self._answers.tell_time
        last = "no cycle yet" if report.last_cycle is None else f"last cycle {tell(report.last_cycle)}"
        silent = [f"{one.cluster} has not answered since {tell(one.since)}" for one in self._outages()]
        return "; ".join([f"{report.mode}: {report.jobs} jobs, {last}", *silent])

    def pulse(self) -> bool:
        """Have the loop go on once, for no other reason than to show that it does. False: there was no cycle
        yet, before which the loop is left alone. On any thread."""
        with self._lock:
            if self._report.last_cycle is None:
                return False
        self.go_on_telling()
        return True

    def limited(self, user: str) -> None:
        """A request was refused because this user asks too often."""
        with self._lock:
            self._limited[user] += 1

    # ------------------------------------------------------------------ the scheduler's thread

    def began(self, run: int) -> None:
        """The number of the run in the journal is known."""
        with self._lock:
            self._report = msgspec.structs.replace(self._report, run=run)

    def answer_questions(self, scheduler: Scheduler) -> None:
        """Between two steps: answer the questions that wait, for :data:`ANSWERING` seconds at most."""
        self._figures.turned()
        if not scheduler.cycles:
            # Before the first cycle nothing is known.
            return
        self._answers.plans_over_time.planned(scheduler)
        self._tell_followers(scheduler)
        if not self._questions:
            return
        end = perf_counter() + ANSWERING
        while perf_counter() < end:
            with self._lock:
                if not self._questions:
                    return
                question, peer, future = self._questions.popleft()
            if isinstance(question, protocol.WhatIf):
                # Its asker may give it up while it is being worked out.
                self._what_ifs.ask(question, peer, scheduler, future)
                continue
            if not future.set_running_or_notify_cancel():
                continue
            if isinstance(question, protocol.When):
                self._snapshots.ask(question, peer, scheduler, future, self._answers.tells_all(peer))
            else:
                future.set_result(self._answered(question, peer, scheduler))
        with self._lock:
            self._woken_to_answer = True
        self._wake()

    def _tell_followers(self, scheduler: Scheduler) -> None:
        try:
            if self._feed.tell(scheduler, self._answers, self.whole_status):
                self.has_news()
        except Exception as error:
            # What is told costs its followers, not the run.
            self._feed.give_up(f"what changed could not be told: {error}")
            scheduler.problems.append(problem_of("headway", "follow", error))

    def _answered(self, question: Answered, peer: Peer, scheduler: Scheduler) -> Reply:
        try:
            return self._answers.reply(question, peer, scheduler)
        except Exception as error:
            # A question must not cost the run.
            scheduler.problems.append(problem_of("headway", type(question).__name__.lower(), error))
            return Reply("failed", f"the answer could not be made, which is a mistake of headway's: {error}")

    def was_woken_to_answer(self) -> bool:
        """Whether the adapter's wait was ended for questions, since this was asked last, and no request waits
        for a cycle."""
        with self._lock:
            woken, self._woken_to_answer = self._woken_to_answer, False
            return woken and not self._waiting

    def take(self, now: float) -> Sequence[Event]:
        events: list[Event] = []
        while True:
            with self._lock:
                if not self._waiting:
                    return events
                request, peer, future = self._waiting.popleft()
            if not future.set_running_or_notify_cancel():
                continue
            name = next(self._names)
            self._taken[name] = future
            if isinstance(request, protocol.Elastic):
                request = msgspec.structs.replace(request, job=self._full_job_id(request.job))
            events.append(_event(request, peer, name, now))

    def served(self, cycle: Cycle, scheduler: Scheduler) -> None:
        taken, self._taken = self._taken, {}
        for name, future in taken.items():
            future.set_result(_reply(scheduler.answer(name), cycle.decisions, cycle.outcomes))
        self._answers.note(cycle, scheduler)
        self._feed.note(scheduler.cycles, cycle)
        self._figures.cycle(cycle, scheduler)
        self._snapshots.cycle()
        state = scheduler.state
        pools = tuple(pool_report(state, pool) for pool in state.pools.values())
        report = msgspec.structs.replace(
            self._report, cycles=scheduler.cycles, last_cycle=cycle.now, jobs=len(state.jobs), pools=pools,
            reservations=len(state.reservations), power=dict(Counter(state.nodes.power.values())),
            latencies=dict(self._latencies()),
        )  # fmt: skip
        with self._lock:
            self._report = report

    def failed(self, problem: Problem) -> None:
        with self._lock:
            self._problem_count += 1
            self._problems.append((self._clock(), f"{problem.plugin}: {problem.hook}: {problem.message}"))

    def close(self) -> None:
        """Requests are not served any more: answer the requests that are left."""
        with self._lock:
            left = [future for _, _, future in (*self._waiting, *self._questions)]
            self._waiting.clear()
            self._questions.clear()
        for future in left:
            if future.set_running_or_notify_cancel():
                future.set_result(Reply("failed", "the daemon ended before it served the request"))
        for future in self._taken.values():
            future.set_result(Reply("failed", "the daemon ended while it served the request"))
        self._taken.clear()
        self._snapshots.close()
        self._what_ifs.close()
        self._feed.give_up("the daemon ends")


def _nobody_waits() -> None:
    """No program follows that would be told."""


def _event(request: protocol.AnyRequest, peer: Peer, name: str, now: float) -> Event:
    if isinstance(request, protocol.Elastic):
        return ElasticCommandReceived(
            now, request.job, request.command, request.amount, peer.user, peer.operator, name
        )
    if isinstance(request, protocol.Reserve):
        return ReservationRequested(
            now, name, request.start, request.duration, request.nodes, request.processors, request.pool,
            peer.user, peer.operator, request.user, request.account,
        )  # fmt: skip
    if isinstance(request, protocol.Plugin):
        return PluginAsked(now, name, request.plugin, request.verb, request.text, peer.user, peer.operator)
    assert isinstance(request, protocol.Unreserve)
    return ReservationReturned(now, name, request.reservation, peer.user, peer.operator)


def _reply(answer: Answer | None, decisions: Sequence[Decision], outcomes: Sequence[Outcome]) -> Reply:
    """The plugin's answer, and what the cluster made of it."""
    if answer is None:
        text = (
            "no enabled plugin serves such requests (see `headway plugins`: elastic, reservations, metajobs)"
        )
        return Reply("refused", text)
    for wanted in answer.decisions:
        outcome = next((o for d, o in zip(decisions, outcomes, strict=True) if d == wanted), None)
        if outcome is None:
            return Reply("refused", "another plugin forbids it")
        if not outcome.accepted:
            return Reply("refused", f"by the cluster: {outcome.message or 'without a reason'}")
    return Reply(answer.outcome, answer.reason)
