"""What users' questions cost beside 50,000 pending jobs on 10,000 nodes of 8 processors, over the socket.

A job ends and another comes every half second, so that each cycle looks at everything. A hundred users, in
another process, ask one question a second each, with the default limits. Cycles with and without questions
are taken in turns, and compared by processor time.
"""

from __future__ import annotations

import json
import os
import random
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

import pytest
from building import described
from busy_daemon import NODES, PENDING, POLICIES, USERS, Daemon, told_seconds, waiting

from headway.adapter import Outcome
from headway.decisions import Start
from headway.events import Event, JobEnded, JobStarted, JobSubmitted
from headway.inquiry.cycles import Cycle
from headway.inquiry.planned import PlannedStarts
from headway.inquiry.reports import TrialReport
from headway.measured.exposition import exposition
from headway.measured.measures import EVERY, Measures
from headway.measured.waiting import count_waiting
from headway.service import Peer
from headway.service import protocol as p
from headway.service.answers import Answers
from headway.service.client import ask

pytestmark = pytest.mark.benchmark

THREADS = 10
#: Rounds of cycles without and with questions.
ROUNDS = 3
#: Asks so many questions a second, of three kinds in turn, until it is told that it is enough; prints how
#: long each took. Its threads are not the daemon's.
CLIENT = """
import json, sys, threading, time
from pathlib import Path
from headway.service.client import ask
from headway.service.protocol import Explain, Holes, Jobs

path, jobs, users, threads = Path(sys.argv[1]), sys.argv[2].split(","), int(sys.argv[3]), int(sys.argv[4])
took = {"jobs": [], "explain": [], "holes": []}
refused, enough = [], threading.Event()
def client(number):
    due, turn = time.perf_counter() + number / users, number
    while not enough.wait(max(0.0, due - time.perf_counter())):
        due += threads / users
        turn += 1
        kind = ("jobs", "explain", "holes")[turn % 3]
        questions = {"jobs": Jobs(mine=True), "explain": Explain(jobs[turn % len(jobs)]), "holes": Holes()}
        question = questions[kind]
        began = time.perf_counter()
        reply = ask(path, question)
        took[kind].append(time.perf_counter() - began)
        if reply.outcome != "accepted":
            refused.append(reply.reason)
workers = [threading.Thread(target=client, args=(number,)) for number in range(threads)]
for worker in workers:
    worker.start()
sys.stdin.readline()
enough.set()
for worker in workers:
    worker.join()
print(json.dumps([took, refused[:3], len(refused)]))
"""


@pytest.fixture(params=POLICIES)
def daemon(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Daemon]:
    made = Daemon(tmp_path, POLICIES[request.param]())
    print(f"\n{request.param}: {PENDING} pending jobs, {NODES} nodes")
    yield made
    made.close()


def test_a_hundred_users_ask_a_question_a_second(daemon: Daemon) -> None:
    """Prints what was measured, which depends on the machine."""
    queue = next(iter(daemon.scheduler.state.domains.values())).queue
    names = ",".join(job.id for job in queue[:: len(queue) // 500])
    words = [sys.executable, "-c", CLIENT, str(daemon.path), names, str(USERS), str(THREADS)]
    alone: list[float] = []
    beside: list[float] = []
    took: dict[str, list[float]] = {"jobs": [], "explain": [], "holes": []}
    spent = seconds = 0.0
    for _ in range(ROUNDS):
        alone += daemon.cycles()
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as client:
            time.sleep(1.0)
            before, began = daemon.inbox.spent, time.perf_counter()
            beside += daemon.cycles()
            spent += daemon.inbox.spent - before
            seconds += time.perf_counter() - began
            more, reasons, refused = json.loads(client.communicate("enough\n")[0])
        for kind, times in more.items():
            took[kind] += times
        assert {"no job of yours" in reason for reason in reasons} <= {True}, (reasons, refused)
    print(f"  processor time of a cycle: {told_seconds(alone)}, beside questions {told_seconds(beside)}")
    print(f"  answers take {100 * spent / seconds:.2f} % of the scheduler's thread")
    for kind, times in took.items():
        print(f"  {len(times)} answers to {kind}: {told_seconds(times)} of wall time")
    print(f"  load {os.getloadavg()[0]:.1f}")


@pytest.mark.parametrize("limits", [(600, 3600, 86400), range(600, 86400)], ids=["three", "any"])
@pytest.mark.parametrize("policy", POLICIES)
def test_what_planned_starts_cost_after_a_cycle(policy: str, limits: Sequence[int]) -> None:
    """Prints what was measured, which depends on the machine: a job ends in each of the cycles."""
    draw = random.Random(1)
    scheduler, started = waiting(policy, draw, limits)
    plans, cycles, spent, known = PlannedStarts(), [], [], 0
    for number in range(20):
        now = 2.0 + number / 10
        began = time.thread_time()
        scheduler.step(now, [JobEnded(now, started.pop(draw.randrange(len(started))).job_id)])
        stepped = time.thread_time()
        known = len(plans.after_cycle(scheduler))
        spent.append(time.thread_time() - stepped)
        cycles.append(stepped - began)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"\n{policy}, {len(limits)} limits: processor time of a cycle {told_seconds(cycles)}")
    print(f"  of planned starts after it {told_seconds(spent)}; {known} jobs at last; {memory} MB at most")


@pytest.mark.parametrize("policy", POLICIES)
def test_what_metrics_cost(policy: str) -> None:
    """Prints what was measured, which depends on the machine: a job ends and another comes in each cycle, and
    starts; at last the waiting jobs are counted, which takes a bounded share of all time."""
    draw = random.Random(1)
    scheduler, started = waiting(policy, draw, (600, 3600, 86400))
    measures, cycles, spent = Measures(), [], []
    for number in range(40):
        now = 2.0 + number / 10
        over = started.pop(draw.randrange(len(started))).job_id
        events: list[Event] = [JobEnded(now, over), JobSubmitted(now, described(f"new{number}", 1, 600))]
        began = time.thread_time()
        made = scheduler.step(now, events)
        cycles.append(time.thread_time() - began)
        events += [JobStarted(now, one.job_id) for one in made if isinstance(one, Start)]
        cycle = Cycle(now, events, made, [Outcome(True)] * len(made), 0.1, 0.1)
        # The first of them counts the waiting jobs, and the others come too soon for that.
        began = time.thread_time()
        measures.cycle(cycle, scheduler)
        spent.append(time.thread_time() - began)
    began = time.thread_time()
    waits, _ = count_waiting(scheduler.state)
    counted = time.thread_time() - began
    began = time.thread_time()
    exposition(measures.told())
    told = time.thread_time() - began
    share = 100 * median(spent[1:]) / median(cycles)
    print(f"\n{policy}: processor time of a cycle {told_seconds(cycles)}")
    print(f"  of counting after it {1e6 * median(spent[1:]):.0f} us, {share:.3f} %")
    print(f"  {waits.total()} waiting jobs are counted in {1e3 * counted:.1f} ms, once in {EVERY:.0f} s")
    print(f"  the text of metrics takes {1e3 * told:.1f} ms of its reader; load {os.getloadavg()[0]:.1f}")


@pytest.mark.parametrize("policy", POLICIES)
def test_what_each_answer_costs(policy: str) -> None:
    """Prints what was measured, which depends on the machine: of the first answer after a cycle. There are
    three time limits, so that bookings are made."""
    scheduler, started = waiting(policy, random.Random(1), (600, 3600, 86400))
    queue = next(iter(scheduler.state.domains.values())).queue
    answers, root = Answers(), Peer("root", True)
    answers.reply(p.Jobs(user="u3"), root, scheduler)
    print(f"\n{policy}: {len(queue)} pending jobs, {NODES} nodes, processor time of an answer")
    for question in (
        p.Holes(), p.Jobs(first=20_000), p.Jobs(user="u3"), p.Explain(queue[25_000].id), p.Bookings(),
    ):  # fmt: skip
        spent = []
        for number in range(5):
            now = 2.0 + number / 10
            events = [JobEnded(now, started.pop().job_id)]
            scheduler.step(now, events)
            answers.note(Cycle(now, events, (), ()), scheduler)
            began = time.thread_time()
            assert answers.reply(question, root, scheduler).outcome == "accepted"
            spent.append(time.thread_time() - began)
        print(f"  {1e3 * median(spent):7.2f} ms: {type(question).__name__}")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"  {memory} MB of memory at most; load {os.getloadavg()[0]:.1f}")


def test_when_takes_the_time_of_two_cycles_or_two_seconds(daemon: Daemon) -> None:
    """Prints what was measured, which depends on the machine."""
    cycles = daemon.cycles()
    took, outcomes = [], list[str]()
    for number in range(8):
        wanted = p.When(nodes=1 + number, seconds=7200.0)
        began = time.perf_counter()
        reply = ask(daemon.path, wanted)
        took.append(time.perf_counter() - began)
        assert isinstance(reply.found, TrialReport), reply
        outcomes.append(reply.found.outcome)
    known = daemon.snapshots._snapshot
    assert known is not None
    print(f"  processor time of a cycle: {told_seconds(cycles)}")
    print(f"  when: {told_seconds(took)} of wall time, {outcomes}; load {os.getloadavg()[0]:.1f}")
    print(f"  a fork keeps the scheduler's thread for {1e3 * known.took:.1f} ms")
