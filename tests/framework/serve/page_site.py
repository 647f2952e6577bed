"""A cluster of any size behind the page: a source that answers from lists, and a server on loopback."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec
import uvicorn
from starlette.datastructures import MutableHeaders
from starlette.requests import Request

from headway.errors import Failure
from headway.inquiry import past_reports as h
from headway.inquiry import reports as r
from headway.serve import past
from headway.serve.answers import Answer
from headway.serve.app import make_app
from headway.serve.history import History, NotThere
from headway.serve.source import Caller
from headway.service import protocol as p

HOSTILE = "</script><script>window.hit=1</script>\u2028<img src=x onerror=window.hit=2>"
POLICY = "default-src 'self'; frame-ancestors 'none'"
CPUS = 64


def pages(items: list[Any], request: Any) -> tuple[tuple[Any, ...], int | None]:
    last = request.first + request.count
    return tuple(items[request.first : last]), last if last < len(items) else None


def is_wanted(job: r.JobReport, request: p.Jobs) -> bool:
    return all(
        getattr(request, name) in ("", getattr(job, name)) for name in ("pool", "user", "status", "name")
    )


@dataclass
class Site:
    """``running`` jobs on nodes and ``waiting`` jobs in the queue of one pool; one of each is hostile."""

    nodes: int = 4
    running: int = 3
    waiting: int = 3
    remark: str = ""
    #: Whether the daemon answers.
    away: bool = False
    cycle: int = 7
    asked: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.now = time.time()
        self.past = PastOfSite(self)
        self.node_names = [f"n{number:05}" for number in range(self.nodes)]
        self.jobs = [self._pending(number) for number in range(self.waiting)]
        self.jobs += [self._running(number) for number in range(self.running)]

    def _pending(self, number: int) -> r.JobReport:
        hostile, booked = number == 1, number < 100
        return r.JobReport(
            str(100_000 + number), "main", "pending", 8 * (1 + number % 4), 3600.0, 1800.0,
            self.now - 60 * number,
            user=HOSTILE if hostile else f"user{number % 17}", account="physics", qos="normal",
            name=HOSTILE if hostile else f"job{number}", position=number + 1, queue_length=self.waiting,
            planned_start=self.now + 600 + number if booked else None,
            planned_placement=((self.node_names[number % self.nodes], 8),) if booked else (),
            waits_because="booking",
            why=HOSTILE if hostile else "It waits for the end of job 1 (by 2026-11-28 23:31:35 UTC).",
            waits_for=() if hostile else ("1",),
        )  # fmt: skip

    def _running(self, number: int) -> r.JobReport:
        node, place = number % self.nodes, number // self.nodes
        start = self.now - 3000 + number % 900
        return r.JobReport(
            str(number), "main", "running", 16, 7200.0, 7200.0, start - 60 * (number % 50),
            user=f"user{number % 17}", name=f"run{number}", started=start,
            expected_end=start + 7200 + 60 * (place % 9),
            placement=((self.node_names[node], 16),),
        )  # fmt: skip

    async def ask(self, request: Any, caller: Caller) -> p.Reply:
        self.asked.append(request)
        if self.away:
            raise Failure("no daemon answers at /run/headway.sock: Connection refused")
        if isinstance(request, p.Status):
            return p.Reply("accepted", self.remark, status=self.report())
        found = self.found(request)
        if found is None:
            return p.Reply("unknown", f"nothing of that name is there: {getattr(request, 'name', '')}")
        return p.Reply("accepted", self.remark, found=found, as_of=self.now)

    def report(self) -> p.Report:
        total = self.nodes * CPUS
        pool = r.PoolReport("main", total, max(0, total - 16 * self.running), self.waiting, self.running)
        return p.Report(
            "drive", "site", 1, self.now - 9000, ("easy",), self.cycle, self.now, len(self.jobs),
            pools=(pool,), watts={name: 310.0 for name in self.node_names[:50]},
        )  # fmt: skip

    def found(self, request: Any) -> Any:
        match request:
            case p.Jobs():
                found = [job for job in self.jobs if is_wanted(job, request)]
                if by := getattr(request, "sort", ""):
                    found.sort(key=lambda job: getattr(job, by.lstrip("-")), reverse=by.startswith("-"))
                return r.JobPage(*pages(found, request))
            case p.Explain(job=name):
                return next((self.explained(job) for job in self.jobs if job.id == name), None)
            case p.Nodes():
                nodes, more = pages(list(enumerate(self.node_names)), request)
                return r.NodePage(tuple(self.node(name, at) for at, name in nodes), more)
            case p.Bookings():
                booked = [
                    r.BookingReport(
                        job.id, "main", job.processors, job.planned_start, job.planned_start + 1800, job.user,
                        job.planned_placement,
                    )
                    for job in self.jobs[:100] if job.planned_start
                ]  # fmt: skip
                return r.BookingPage(*pages(booked, request))
            case p.Reservations():
                kept = r.ReservationReport(
                    HOSTILE, self.now + 60, self.now + 9000, "main", 0, tuple(self.node_names[:2]), ("ann",)
                )
                return r.ReservationPage((kept,))
            case p.Cycle():
                decided = (
                    r.DecisionReport("Start", "1", "fits before all bookings"),
                    r.DecisionReport("Hold", "100001", HOSTILE, False, HOSTILE),
                )
                return r.CycleReport(self.cycle, self.now, 0.03, 0.01, {"JobEnded": 2}, {"Start": 1}, decided)
            case p.PluginQuestion(name="shares"):
                return p.Told(msgspec.Raw(msgspec.json.encode(SHARES)))
            case p.PluginQuestion(name="limits"):
                return p.Told(msgspec.Raw(msgspec.json.encode(LIMITS)))
            case p.When():
                smaller = r.SmallerRequest(1, 8, 900.0, self.now + 60)
                return r.TrialReport(
                    "main", "planned", self.now + 600, None, (("n00000", 8),), 4, 4, "booking",
                    "Processors are kept for it.", ("1",), "physics", "normal", (smaller,),
                )  # fmt: skip
            case p.WhatIf():
                return self.what_if(request.policy)
        return None

    def what_if(self, policy: str) -> r.WhatIfReport:
        waiting = [job for job in self.jobs if job.status == "pending"]
        jobs = tuple([
            r.ForeseenJob(
                job.id, "main", job.user, job.processors, job.submitted, self.now + 600 + 60 * at,
                None if at == 2 else self.now + 600 if at % 2 else self.now + 900,
            )
            for at, job in enumerate(waiting)
        ])  # fmt: skip
        times = tuple([self.now + 30 * at for at in range(120)])
        return r.WhatIfReport(
            policy, self.now, r.CourseReport(("fcfs", "first-fit"), 3, None, "", 7200.0, 3600.0, 0.71),
            r.CourseReport((HOSTILE, "first-fit"), 2, self.now + 900, HOSTILE, 60.0, 60.0, 0.83),
            len(jobs), 1, 1, 0, 1, self.now + 900,
            r.UseOverTime(times, (0.71,) * 120, tuple([0.9 - 0.001 * at for at in range(120)])), jobs, 7,
        )  # fmt: skip

    def explained(self, job: r.JobReport) -> p.Explained:
        change = r.PlanChange(self.now - 300, self.now + 600)
        return p.Explained(
            job.id, (f"Job {job.id} of {job.user} asks for {job.processors} processors.", job.why), job,
            before=r.BeforeReport(1, 8, ("1",)), remembered=("Its planned start has stood.",),
            plan_history=r.PlanHistory(self.now - 900, self.now + 60, 1, (change,)),
            sooner=(r.SoonerReport("limit", limit=900.0),),
        )  # fmt: skip

    def node(self, name: str, at: int) -> r.NodeReport:
        busy = [job.id for job in self.jobs[self.waiting + at :: self.nodes] if job.placement]
        down = at % 29 == 5 or at == 2
        return r.NodeReport(
            name, CPUS, max(0, CPUS - 16 * len(busy)), ("main",), not down, HOSTILE if down else "",
            "asleep" if at % 31 == 7 else "on", memory=1 << 38, memory_free=1 << 37,
            gres=(("gpu:a100", 4, at % 5),) if at % 3 == 0 else (), jobs=tuple(busy),
        )  # fmt: skip


def share(account: str, user: str, depth: int, used: float) -> dict[str, Any]:
    """A row as plugins tell it."""
    return {
        "account": account, "user": user, "depth": depth, "shares": 10.0, "norm_shares": 0.5, "usage": 1e6,
        "norm_usage": used, "effective_usage": used, "fair_share": 0.4 if user else None,
        "level_fair_share": 0.5 / used, "minutes_limit": "", "minutes_running": {},
    }  # fmt: skip


SHARES = {
    "rows": [share("root", "", 0, 1.0), share("physics", "", 1, 0.7), share("physics", HOSTILE, 2, 0.6)]
}


LIMITS = {
    "rows": [
        {"of": f"user {HOSTILE!r}", "measure": "jobs", "unit": "running jobs", "limit": 10.0, "used": 4.0},
        {"of": "all jobs together", "measure": "nodes", "unit": "nodes", "limit": 512.0},
    ]
}


class PastOfSite(History):
    """A journal in which a job of each of the last ten hours is over; one is hostile."""

    def __init__(self, site: Site) -> None:
        super().__init__(None, lambda _: True)
        self.site = site
        #: What was asked; and why there is no answer.
        self.asked: list[Any] = []
        self.trouble = ""

    def _answer(self, question: Any, user: str | None) -> Answer:
        self.asked.append(question)
        if self.trouble:
            raise Failure(self.trouble)
        found = self._told(question)
        if found is None:
            raise NotThere(f"the journal tells of no job with the id {question.job!r}")
        return Answer(self.site.now, msgspec.Raw(msgspec.json.encode(found)), self.site.remark)

    def _told(self, question: Any) -> Any:
        if isinstance(question, past.JobsPast):
            hour = next((hour for hour in range(10) if f"past{hour}" == question.job), None)
            if hour is None:
                return None
            return h.JobHistory(question.job, (self._job(hour),), (self._event(hour), self._decision(hour)))
        until = min(question.until or 1e12, self.site.now)
        last = int(question.after.split(".")[1]) if question.after else -1
        hours = [
            hour for hour in range(10)
            if (question.since or 0) <= self._ended(hour) < until and hour > last
        ]  # fmt: skip
        told, then = hours[: question.count], hours[question.count :]
        number = f"1.{told[-1]}.0" if then else None
        if isinstance(question, past.Work):
            return h.WorkHistory(tuple(map(self._job, told)), number)
        if isinstance(question, past.Events):
            return h.EventHistory(tuple(map(self._event, told)), number)
        return h.DecisionHistory(tuple(map(self._decision, told)), number)

    def _ended(self, hour: int) -> float:
        return self.site.now - 3600 * (hour + 1)

    def _job(self, hour: int) -> h.PastJob:
        ended, name = self._ended(hour), HOSTILE if hour == 1 else "done"
        return h.PastJob(
            f"past{hour}", "main", 16, 7200.0, ended - 4000, "ann", name=name, started=ended - 1800,
            ended=ended, placement=((self.site.node_names[0], 16),), outcome="failed", reason=name,
            number=f"1.{hour}.0",
        )  # fmt: skip

    def _event(self, hour: int) -> h.PastEvent:
        at = self._ended(hour)
        return h.PastEvent(f"1.{hour}.0", "JobEnded", at, at, f"past{hour}", "ann", detail="failed")

    def _decision(self, hour: int) -> h.PastDecision:
        reason = HOSTILE if hour == 1 else "first in the queue"
        at = self._ended(hour) - 1800
        return h.PastDecision(
            f"1.{hour}.0", at, "Start", f"past{hour}", "ann", reason=reason, accepted=hour != 2
        )


class OneUser:
    async def caller(self, request: Request) -> Caller | None:
        return Caller("alice")


def with_policy(app: Any) -> Any:
    """The strictest policy under which the page is to work."""

    async def wrapped(scope: Any, receive: Any, send: Any) -> None:
        async def told(message: Any) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["content-security-policy"] = POLICY
            await send(message)

        await app(scope, receive, told)

    return wrapped


@contextmanager
def served(site: Site, app: Any = None) -> Iterator[str]:
    """The page's address, as long as it is served."""
    listening = socket.create_server(("127.0.0.1", 0))
    made = with_policy(app or make_app(site, OneUser(), history=site.past))
    server = uvicorn.Server(uvicorn.Config(made, log_level="error", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
    finally:
        server.should_exit = server.force_exit = True
        thread.join()
        listening.close()
