"""A daemon in this process beside 50,000 pending jobs on 10,000 nodes, for benchmarks: a job ends and another
comes every half second, so that each cycle looks at everything."""

from __future__ import annotations

import itertools
import os
import random
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from building import alike, described, node_cluster, plugged
from waiting import until

from headway.adapter import ClusterAdapter, Outcome
from headway.decisions import Decision, Start
from headway.engine import Engine
from headway.events import Event, JobEnded, JobStarted, JobSubmitted
from headway.model import ClusterDescription
from headway.model.modes import Mode
from headway.scheduler import Scheduler
from headway.service import Inbox, Server
from headway.service import protocol as p
from headway.service.answers import Answers
from headway.service.snapshots import Snapshots
from headway_plugins.placement.first_fit import FirstFit
from headway_plugins.policies.conservative import Conservative
from headway_plugins.policies.easy import Easy

NODES, PROCESSORS, PENDING = 10_000, 8, 50_000
#: Seconds between two cycles at which a job ends.
PAUSE = 0.5
USERS = 100
#: Cycles that are measured at a time.
CYCLES = 12
POLICIES: dict[str, Callable[[], Any]] = {"easy": Easy, "conservative": Conservative}


class Busy(ClusterAdapter):
    """A cluster on which a job ends and another comes again and again."""

    capabilities = frozenset({Start})

    def __init__(self) -> None:
        self.draw = random.Random(1)
        self.count = 0
        self.running: list[str] = []
        self.news: list[Event] = [self.arrival(0.0) for _ in range(PENDING + 1700)]
        self.woken = threading.Event()
        #: When the next news comes.
        self.next = 0.0

    def arrival(self, now: float) -> JobSubmitted:
        self.count += 1
        size, limit = self.draw.choice([1, 2, 4, 8, 16, 64, 256]), self.draw.randrange(600, 86400)
        user = f"uid:{20000 + self.count % USERS}"
        return JobSubmitted(now, described(str(self.count), size, limit, now, user=user))

    def describe(self) -> ClusterDescription:
        return node_cluster(*alike(NODES, PROCESSORS))

    def wait(self, deadline: float | None) -> tuple[float, Sequence[Event]] | None:
        now = time.monotonic()
        if not self.news:
            self.woken.wait(max(0.0, self.next - now))
            self.woken.clear()
            now = time.monotonic()
            if now >= self.next:
                self.next = now + PAUSE
                over = self.running.pop(self.draw.randrange(len(self.running)))
                self.news += [JobEnded(now, over), self.arrival(now)]
        news, self.news = self.news, []
        return now, news

    def apply(self, now: float, decisions: Sequence[Decision]) -> Sequence[Outcome]:
        starts = [one for one in decisions if type(one) is Start]
        self.running += [one.job_id for one in starts]
        self.news += [JobStarted(now, one.job_id, one.placement) for one in starts]
        return [Outcome(True)] * len(decisions)

    def wake(self) -> None:
        self.woken.set()


class Timed(Scheduler):
    """Keeps the processor time of each step at which a job ended."""

    steps: list[float]

    def step(self, now: float, events: Sequence[Event]) -> list[Decision]:
        began = time.thread_time()
        made = super().step(now, events)
        if any(isinstance(event, JobEnded) for event in events):
            self.steps.append(time.thread_time() - began)
        return made


class Counted(Inbox):
    """Keeps the processor time that the scheduler's thread spent on answers, and on telling followers."""

    spent = told = 0.0

    def _tell_followers(self, scheduler: Scheduler) -> None:
        began = time.thread_time()
        super()._tell_followers(scheduler)
        self.told += time.thread_time() - began

    def answer_questions(self, scheduler: Scheduler) -> None:
        began = time.thread_time()
        super().answer_questions(scheduler)
        self.spent += time.thread_time() - began


class Daemon:
    def __init__(self, place: Path, policy: Any, *, itself: bool = False) -> None:
        """``itself``: all that ask are the daemon's own user, else a hundred others."""
        self.path = place / "s"
        adapter = Busy()
        self.scheduler = Timed(adapter.describe(), plugged(policy, FirstFit()))
        self.scheduler.steps = []
        self.snapshots = Snapshots()
        report = p.Report("drive", "c", 0, 0.0)
        self.inbox = Counted(
            adapter.wake, report, clock=time.time, answers=Answers(private=True), snapshots=self.snapshots
        )
        users = itertools.cycle(range(20000, 20000 + USERS))

        def credentials(_: Any) -> int:
            return os.geteuid() if itself else next(users)

        self.server = Server(self.path, self.inbox, credentials=credentials)
        self.engine = Engine(adapter, self.scheduler, mode=Mode.DRY_RUN, requests=self.inbox)
        self.thread = threading.Thread(target=self.engine.run)
        self.thread.start()
        until(lambda: len(self.scheduler.steps) > 2, "the first steps are over", seconds=600)

    def cycles(self, count: int = CYCLES) -> list[float]:
        """The processor time of so many steps from now on, or a few more."""
        self.scheduler.steps.clear()
        until(lambda: len(self.scheduler.steps) >= count, "steps are made", seconds=600)
        return list(self.scheduler.steps)

    def close(self) -> None:
        self.engine.stop()
        self.thread.join()
        self.server.close()


def told_seconds(seconds: Sequence[float]) -> str:
    """Median and 99th percentile in milliseconds."""
    ordered = sorted(seconds)
    return f"{1e3 * median(ordered):.2f} ms (99 % {1e3 * ordered[int(0.99 * len(ordered))]:.1f} ms)"


def waiting(policy: str, draw: random.Random, limits: Sequence[int]) -> tuple[Scheduler, list[Start]]:
    """A full machine with a long queue, and what runs."""
    scheduler = Scheduler(node_cluster(*alike(NODES, PROCESSORS)), plugged(POLICIES[policy](), FirstFit()))
    jobs = [
        described(str(number), draw.choice([1, 2, 4, 8, 16, 64, 256]), draw.choice(limits),
                  user=f"u{number % USERS}")
        for number in range(PENDING + 3750)
    ]  # fmt: skip
    made = scheduler.step(0.0, [JobSubmitted(0.0, job) for job in jobs])
    started = [one for one in made if isinstance(one, Start)]
    scheduler.step(1.0, [JobStarted(1.0, one.job_id, one.placement) for one in started])
    return scheduler, started
