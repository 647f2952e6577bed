"""Daemons to look at: one of a real scheduler's answers, and one that says what a test wants, by a socket."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any

from building import alike, described, node_cluster, plugged

from headway.adapter import Outcome
from headway.cli.top.asking import Pace
from headway.cli.top.board import Board, driven
from headway.cli.top.view import Room
from headway.decisions import Start
from headway.errors import Failure
from headway.events import Event, JobStarted, JobSubmitted
from headway.inquiry.cycles import Cycle
from headway.inquiry.pools import pool_report
from headway.inquiry.reports import JobPage, JobReport
from headway.scheduler import Scheduler
from headway.service import Inbox, Peer
from headway.service import protocol as p
from headway.service.answers import Answers
from headway.service.limits import Allowance
from headway_plugins.placement.first_fit import FirstFit
from headway_plugins.policies.conservative import Conservative

ROOM = Room(80, 24)
#: The time of the last cycle, absolute seconds.
NOW = 1.7e9


def described_daemon(**more: Any) -> p.Report:
    """A daemon's status."""
    pool = p.PoolReport("batch", 64, 8, 3, 2)
    given: dict[str, Any] = {"cycles": 7, "last_cycle": NOW, "jobs": 5, "pools": (pool,), **more}
    return p.Report("drive", "tc", 1, NOW - 3600.0, **given)


class Scheduled:
    """The answers of a scheduler after some steps, to a user."""

    def __init__(self, *jobs: Any, nodes: int = 4, user: str = "ann", private: bool = False) -> None:
        self.scheduler = Scheduler(node_cluster(*alike(nodes, 4)), plugged(Conservative(), FirstFit()))
        self.answers, self.peer = Answers(private=private), Peer(user)
        self.decided = self.step(NOW, *(JobSubmitted(NOW, job) for job in jobs))

    def step(self, now: float, *events: Event) -> list[Any]:
        """A cycle, after which the jobs have started that it starts."""
        decided = list(self.scheduler.step(now, list(events)))
        self.answers.note(Cycle(now, list(events), decided, [Outcome(True)] * len(decided)), self.scheduler)
        starts = [one for one in decided if isinstance(one, Start)]
        if starts:
            self.scheduler.step(now, [JobStarted(now, one.job_id, one.placement) for one in starts])
        return decided

    def __call__(self, request: p.AnyRequest) -> p.Reply | Failure:
        state = self.scheduler.state
        if isinstance(request, p.Status):
            pools = tuple(pool_report(state, pool) for pool in state.pools.values())
            return p.Reply("accepted", status=described_daemon(pools=pools, jobs=len(state.jobs)))
        return self.answers.reply(request, self.peer, self.scheduler)  # type: ignore[arg-type]


class Said:
    """Answers of a test, and what was asked."""

    def __init__(self, jobs: Iterable[JobReport] = (), **found: Any) -> None:
        """``found``: type of a request, in small letters -> its answer."""
        self.jobs, self.found = list(jobs), found
        self.asked: list[p.AnyRequest] = []
        self.status = described_daemon()
        #: What is said in the place of an answer.
        self.instead: p.Reply | Failure | None = None

    def __call__(self, request: p.AnyRequest) -> p.Reply | Failure:
        self.asked.append(request)
        if self.instead is not None:
            return self.instead
        if isinstance(request, p.Status):
            return p.Reply("accepted", status=self.status)
        name = type(request).__name__.lower()
        if isinstance(request, p.Jobs) and "jobs" not in self.found:
            kept = [job for job in self.jobs if request.status in ("", job.status)]
            kept = [job for job in kept if request.user in ("", job.user)]
            last = request.first + request.count
            page = JobPage(tuple(kept[request.first : last]), last if last < len(kept) else None)
            return p.Reply("accepted", found=page, as_of=NOW)
        if name not in self.found:
            return p.Reply("unknown", f"nothing is known of {name}", as_of=NOW)
        return p.Reply("accepted", found=self.found[name], as_of=NOW)


class ByTheSocket(Inbox):
    """The same behind a socket."""

    def __init__(self, said: Callable[[p.AnyRequest], p.Reply | Failure]) -> None:
        super().__init__(lambda: None, described_daemon(), clock=time.time)
        self.said = said

    def ask(self, request: p.AnyRequest, peer: Peer) -> Future[p.Reply]:
        future: Future[p.Reply] = Future()
        reply = self.said(request)
        assert isinstance(reply, p.Reply)
        future.set_result(reply)
        return future


def waiting(number: int, **more: Any) -> JobReport:
    """A job that waits."""
    given: dict[str, Any] = {
        "user": "ann", "name": f"run{number}", "position": number, "queue_length": 100,
        "planned_start": NOW + 600, "waits_because": "order", "why": f"It waits behind job {number - 1}.",
        **more,
    }  # fmt: skip
    return JobReport(
        str(number), "batch", given.pop("status", "pending"), 4, 3600.0, 3600.0, NOW - 60, **given
    )


def running(number: int, node: str, seconds: float = 3600.0, **more: Any) -> JobReport:
    """A job that runs on a node."""
    given: dict[str, Any] = {
        "user": "ben", "started": NOW - 60, "expected_end": NOW + seconds, "placement": ((node, 4),), **more,
    }  # fmt: skip
    return JobReport(str(number), "batch", "running", 4, 3600.0, 3600.0, NOW - 120, **given)


def board_of(ask: Callable[[p.AnyRequest], p.Reply | Failure], view: str = "queue", **more: Any) -> Board:
    """A board that has looked once."""
    board = Board("s.sock", more.pop("pace", Pace(Allowance(10**6, 1e6))), clock=lambda: NOW + 2.0, **more)
    board.show(view)
    driven(board.look(ROOM), ask)
    return board


def screen(board: Board, room: Room = ROOM) -> list[str]:
    """The lines of the picture."""
    return ["".join(piece.text for piece in line) for line in board.draw(room)]


def job(job_id: str, processors: int, seconds: float = 3600.0, **more: Any) -> Any:
    return described(job_id, processors, seconds, NOW, **{"user": "ann", **more})
