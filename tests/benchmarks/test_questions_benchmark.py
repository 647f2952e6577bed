"""What questions to the daemon cost beside 10,000 and 50,000 pending jobs on 1,000 nodes of 8 processors.

How long after a job's arrival its step is over, alone and while a client asks 100 times a second; and the
processor time of each question.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from building import alike, described, node_cluster, plugged
from waiting import until

from headway.adapter import ClusterAdapter, Outcome
from headway.decisions import Decision, Start
from headway.engine import Engine
from headway.events import Event, JobStarted, JobSubmitted
from headway.model import ClusterDescription
from headway.model.modes import Mode
from headway.scheduler import Scheduler
from headway.service import Inbox, Peer, Server
from headway.service import protocol as p
from headway.service.answers import Answers
from headway.service.limits import Allowance, Limits
from headway_plugins.placement.first_fit import FirstFit
from headway_plugins.policies.easy import Easy

pytestmark = pytest.mark.benchmark

NODES, PROCESSORS = 1000, 8
#: Steps that are timed, each with an arrival; and seconds between them.
STEPS, PAUSE = 60, 0.05
ROOT = Peer("root", True)
#: Questions a second, and the client that asks them: a process that is ready once it has had an answer, and
#: prints how long each took once it is told that it is enough.
RATE = 100
CLIENT = """
import json, select, sys, time
from pathlib import Path
from headway.service.client import ask
from headway.service.protocol import Explain

path, question, pause = Path(sys.argv[1]), Explain(sys.argv[2]), 1 / float(sys.argv[3])
ask(path, question)
print("ready", flush=True)
took, due = [], time.perf_counter()
while not select.select([sys.stdin], [], [], max(0.0, due - time.perf_counter()))[0]:
    due += pause
    began = time.perf_counter()
    assert ask(path, question).outcome == "accepted"
    took.append(time.perf_counter() - began)
print(json.dumps(took))
"""


def arrival(number: int, draw: random.Random) -> JobSubmitted:
    size, limit = draw.choice([1, 2, 4, 8, 16, 64, 256]), draw.choice([600, 3600, 86400])
    memory = {"memory_per_processor": 2**30}
    return JobSubmitted(0.0, described(str(number), size, limit, user=f"u{number % 200}", **memory))


class Busy(ClusterAdapter):
    """A cluster to which a job comes every 50 ms."""

    capabilities = frozenset({Start})

    def __init__(self, pending: int) -> None:
        self.draw = random.Random(1)
        self.news: list[Event] = [arrival(number, self.draw) for number in range(pending + 2000)]
        self.count = len(self.news)
        self.woken = threading.Event()
        #: When the next job comes, and when the last did.
        self.next = self.came = 0.0

    def describe(self) -> ClusterDescription:
        return node_cluster(*alike(NODES, PROCESSORS, memory=2**36))

    def wait(self, deadline: float | None) -> tuple[float, Sequence[Event]] | None:
        if not self.news:
            self.woken.wait(max(0.0, self.next - time.monotonic()))
            self.woken.clear()
            if time.monotonic() >= self.next:
                self.came = self.next or time.monotonic()
                self.next = time.monotonic() + PAUSE
                self.count += 1
                self.news.append(arrival(self.count, self.draw))
        news, self.news = self.news, []
        return time.monotonic(), news

    def apply(self, now: float, decisions: Sequence[Decision]) -> Sequence[Outcome]:
        self.news += [JobStarted(now, one.job_id, one.placement) for one in decisions if type(one) is Start]
        return [Outcome(True)] * len(decisions)

    def wake(self) -> None:
        self.woken.set()


class Timed(Scheduler):
    """Keeps until when each step was over, since its job came (seconds of wall time)."""

    def __init__(self, adapter: Busy, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.adapter = adapter
        self.steps: list[float] = []

    def step(self, now: float, events: Sequence[Event]) -> list[Decision]:
        made = super().step(now, events)
        self.steps.append(time.monotonic() - self.adapter.came)
        return made


@pytest.mark.parametrize("pending", [10_000, 50_000])
def test_questions_beside_pending_jobs(pending: int, tmp_path: Path) -> None:
    """Prints what was measured, which depends on the machine."""
    adapter = Busy(pending)
    scheduler = Timed(adapter, adapter.describe(), plugged(Easy(), FirstFit()))
    answers = Answers()
    inbox = Inbox(adapter.wake, p.Report("drive", "c", 0, 0.0), clock=time.time, answers=answers)
    engine = Engine(adapter, scheduler, mode=Mode.DRY_RUN, requests=inbox)
    thread = threading.Thread(target=engine.run)
    limits = Limits(Allowance(10**9, 1e9), Allowance(10**9, 1e9))
    try:
        with Server(tmp_path / "s", inbox, limits=limits):
            thread.start()
            until(lambda: len(scheduler.steps) > 3, "the first steps are over", seconds=600)

            def steps() -> list[float]:
                scheduler.steps.clear()
                until(lambda: len(scheduler.steps) >= STEPS, "steps are made", seconds=600)
                return sorted(scheduler.steps)

            alone = steps()
            words = [sys.executable, "-c", CLIENT, str(tmp_path / "s"), str(pending + 1999), str(RATE)]
            with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as client:
                assert client.stdout is not None
                client.stdout.readline()
                beside = steps()
                took = sorted(json.loads(client.communicate("enough\n")[0]))
    finally:
        engine.stop()
        thread.join()
    costs = {}
    queue = next(iter(scheduler.state.domains.values())).queue
    for question in (
        p.Explain(queue[len(queue) // 2].id), p.Jobs(), p.Jobs(first=len(queue) - 200), p.Jobs(user="u3"),
        p.Nodes(), p.Nodes(count=500), p.Bookings(), p.Pools(), p.Cycle(),
    ):  # fmt: skip
        spent = []
        for _ in range(10):
            began = time.thread_time()
            assert answers.reply(question, ROOT, scheduler).outcome == "accepted"
            spent.append(time.thread_time() - began)
        costs[repr(question)] = median(spent)
    print(f"\n{pending} pending, from an arrival to the end of its step: {_told(alone)}")
    print(f"  with {RATE} questions a second: {_told(beside)}")
    print(f"  {len(took)} answers to explain: {_told(took)} of wall time")
    for asked, seconds in costs.items():
        print(f"  {1e3 * seconds:6.2f} ms of processor time: {asked}")


def _told(seconds: list[float]) -> str:
    """``seconds``: sorted."""
    return f"{1e3 * median(seconds):.2f} ms (99 % {1e3 * seconds[int(0.99 * len(seconds))]:.1f} ms)"
