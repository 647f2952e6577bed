"""What ``headway serve`` costs a daemon beside 50,000 pending jobs on 10,000 nodes, and how long reading
takes.

A process keeps the picture and serves it over HTTP on a Unix socket, with streams that are read in it.
Another asks. Cycles alone, while both processes stand still, and beside all of that are taken in short turns,
and compared by processor time.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean
from typing import Any

import msgspec
import pytest
from busy_daemon import NODES, PENDING, POLICIES, Daemon, told_seconds, waiting
from followed import Followed, Sparing

from headway.events import JobEnded
from headway.serve.reading import Readable, Reader
from headway.serve.source import Caller
from headway.service import outbox
from headway.service import protocol as p
from headway.service.feed import Follower

pytestmark = pytest.mark.benchmark

STREAMS, A_SECOND, CONNECTIONS = 200, 500, 20
#: Turns, and cycles of each: a follower that reads nothing for ten seconds is dropped.
ROUNDS, CYCLES = 16, 6
#: Keeps a picture and serves it; says when it is whole, and at the end how much memory and time it took.
SERVE = """
import asyncio, json, re, sys, time
from pathlib import Path
import structlog, uvicorn
from headway.serve.app import make_app
from headway.serve.pictured import PictureSource
from headway.serve.source import Caller, DaemonSource

structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
source = PictureSource(DaemonSource(Path(sys.argv[1])))
items = 0
def known(user):
    return Caller(user, frozenset({"read", "operator"}), itself=user == "itself")
class Ways:
    async def caller(self, request):
        return known(request.headers["test-user"])
async def read(user):
    global items
    async for item in source.stream(known(user)):
        items += 1
async def main():
    server = uvicorn.Server(uvicorn.Config(make_app(source, Ways()), uds=sys.argv[2], log_level="error"))
    async with source.running():
        serving = asyncio.create_task(server.serve())
        began = time.perf_counter()
        while not (source.is_current and server.started):
            await asyncio.sleep(0.01)
        names = [f"uid:{20000 + n % 100}" if n % 4 else "itself" for n in range(int(sys.argv[3]))]
        readers = [asyncio.create_task(read(name)) for name in names]
        print(time.perf_counter() - began, flush=True)
        started, wall = time.process_time(), time.perf_counter()
        await asyncio.to_thread(sys.stdin.readline)
        used = (time.process_time() - started) / (time.perf_counter() - wall)
        for reader in readers:
            reader.cancel()
        server.should_exit = True
        await serving
    # What getrusage tells is at least what the process had that forked this one.
    memory = int(re.search("VmHWM:[^0-9]*([0-9]+)", Path("/proc/self/status").read_text())[1]) // 1024
    print(json.dumps([memory, used, items]))
asyncio.run(main())
"""
#: Asks so many times a second over some connections, from one line of its input to the next; prints how long
#: each answer took, by what was asked.
ASK = """
import asyncio, json, sys, time
path, a_second, connections = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
WHAT = ["jobs", "jobs?mine=true", "jobs?first=25000", "jobs?status=running&count=500", "nodes?count=500",
        "jobs?qos=none", "bookings", "pools", "cycle", "status"]
took = {what: [] for what in WHAT}
wrong = []
async def ask(number, going):
    due, turn = time.perf_counter() + number / a_second, number
    while True:
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        if not turn // connections or not going.is_set():
            # Connections that are quiet for some seconds are ended.
            await going.wait()
            reader, writer = await asyncio.open_unix_connection(path)
        what, user = WHAT[turn % len(WHAT)], f"uid:{20000 + turn % 100}" if turn % 3 else "itself"
        began = time.perf_counter()
        words = [f"GET /v1/{what} HTTP/1.1", "host: localhost", f"test-user: {user}", "", ""]
        writer.write("\\r\\n".join(words).encode())
        head = await reader.readuntil(b"\\r\\n\\r\\n")
        length = next(line for line in head.split(b"\\r\\n") if line.lower().startswith(b"content-length"))
        await reader.readexactly(int(length.split(b":")[1]))
        took[what].append(time.perf_counter() - began)
        if b" 200 " not in head.split(b"\\r\\n")[0]:
            wrong.append(head.decode())
        # Late ones are not made up for.
        due, turn = max(due + connections / a_second, time.perf_counter() - 0.1), turn + connections + 1
async def main():
    going = asyncio.Event()
    asking = [asyncio.create_task(ask(number, going)) for number in range(connections)]
    while line := await asyncio.to_thread(sys.stdin.readline):
        if line == "enough\\n":
            break
        (going.clear if going.is_set() else going.set)()
    print(json.dumps([took, wrong[:2]]))
asyncio.run(main())
"""


@contextmanager
def running(*words: str) -> Iterator[subprocess.Popen[str]]:
    pipe = subprocess.PIPE
    made = subprocess.Popen([sys.executable, "-c", *words], stdin=pipe, stdout=pipe, text=True)
    try:
        yield made
    finally:
        made.kill()
        made.wait()


def ended(process: subprocess.Popen[str]) -> Any:
    return json.loads(process.communicate("enough\n")[0].splitlines()[-1])


def toggle(asking: subprocess.Popen[str]) -> None:
    """Let it ask, or be quiet."""
    assert asking.stdin is not None
    asking.stdin.write("\n")
    asking.stdin.flush()


QUESTIONS: list[Readable] = [
    p.Jobs(), p.Jobs(first=25_000), p.Jobs(user="u3"), p.Jobs(account="x"), p.Jobs(count=500),
    p.Nodes(count=500), p.Bookings(), p.Pools(), p.Cycle(), p.Status(),
]  # fmt: skip


@pytest.mark.parametrize("policy", POLICIES)
def test_what_is_told_after_a_cycle_and_what_each_answer_costs(
    policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Prints what was measured, which depends on the machine: processor time, without other threads."""
    monkeypatch.setattr(outbox, "FULL", 1 << 40)
    monkeypatch.setattr(outbox, "OVERFULL", 1 << 40)
    scheduler, started = waiting(policy, random.Random(1), range(600, 86400))
    followed = Followed(scheduler)
    followed.now = 2.0
    followed.cycle()
    began = time.thread_time()
    followed.feed.tell(scheduler, followed.answers, followed.inbox.whole_status)
    print(f"\n{policy}: all is told in {1e3 * (time.thread_time() - began):.0f} ms")
    began = time.thread_time()
    followed.tell()
    print(f"  and folded in {1e3 * (time.thread_time() - began):.0f} ms")
    told = list[float]()
    # All jobs in turn are looked at later.
    monkeypatch.setattr(Follower, "_tell_rounds", lambda *_: None)
    for _ in range(40):
        events = [JobEnded(followed.now, started.pop().job_id)]
        made = followed.cycle(*events)
        began = time.thread_time()
        followed.feed.tell(scheduler, followed.answers, followed.inbox.whole_status)
        told.append(time.thread_time() - began)
        followed.tell()
        followed.cycle(*followed.started(made))
    print(f"  what a cycle changed is told in {told_seconds(told)}")
    for user in ("root", "u3"):
        reader = Reader(followed.picture, Caller(user, frozenset({"operator"})))
        for question in QUESTIONS:
            followed.picture._made.clear()
            spent = []
            for _ in range(2):
                began = time.thread_time()
                reply = reader.answer(question)
                msgspec.json.encode(reply)
                spent.append(1e3 * (time.thread_time() - began))
            print(f"  {spent[0]:6.2f} ms, again {spent[1]:.2f} ms: {user}, {question}")


@pytest.mark.parametrize("policy", POLICIES)
def test_the_steps_of_a_scheduler_that_is_followed_and_of_one_that_is_not(policy: str) -> None:
    """Prints what was measured, which depends on the machine: processor time of steps at which the same
    happens to both. How much a step has to do depends on the queue, so that only such steps can be
    compared."""
    spare, times = Sparing(), list[tuple[float, float]]()
    both = [waiting(policy, random.Random(1), range(600, 86400)) for _ in range(2)]
    followed, alone = Followed(both[0][0], spare=spare), Followed(both[1][0])
    alone.outbox.end("nobody follows this one")
    # Two steps each half second: so many rows take 3 % of the time.
    spare.pieces = 200
    told = list[float]()
    for number in range(60):
        spent = {}
        # Each is the first in its turn.
        pairs = [(followed, both[0][1]), (alone, both[1][1])]
        for one, started in pairs if number % 2 else pairs[::-1]:
            one.now = 2.0 + number
            event = JobEnded(one.now, started.pop(number % len(started)).job_id)
            began = time.thread_time()
            made = one.cycle(event)
            spent[one is followed] = time.thread_time() - began
            one.cycle(*one.started(made))
            began = time.thread_time()
            one.tell()
            if one is followed:
                told.append(time.thread_time() - began)
        times.append((spent[False], spent[True]))
    parts = sorted([beside / alone for alone, beside in times])
    print(f"\n{policy}: a step alone {told_seconds([one for one, _ in times])}")
    print(f"  followed {told_seconds([one for _, one in times])}; telling {told_seconds(told)}")
    low, middle, high = (parts[number * len(parts) // 4] for number in (1, 2, 3))
    print(f"  followed to alone: {middle:.3f}, quartiles {low:.3f} and {high:.3f}")


@pytest.mark.parametrize("policy", POLICIES)
def test_what_serving_costs_the_daemon_and_how_long_reading_takes(policy: str, tmp_path: Path) -> None:
    """Prints what was measured, which depends on the machine."""
    daemon = Daemon(tmp_path, POLICIES[policy](), itself=True)
    web = str(tmp_path / "web")
    alone, beside, told, seconds = list[float](), list[float](), 0.0, 0.0
    print(f"\n{policy}: {PENDING} pending jobs, {NODES} nodes")
    try:
        with running(SERVE, str(daemon.path), web, str(STREAMS)) as serve:
            assert serve.stdout is not None
            whole = float(serve.stdout.readline())
            spent = 1e3 * daemon.inbox.told
            print(f"  the picture is whole after {whole:.1f} s, {spent:.0f} ms of the daemon's")
            with running(ASK, web, str(A_SECOND), str(CONNECTIONS)) as ask:
                for _ in range(ROUNDS):
                    serve.send_signal(signal.SIGSTOP)
                    alone += daemon.cycles(CYCLES)
                    serve.send_signal(signal.SIGCONT)
                    toggle(ask)
                    time.sleep(0.5)
                    before, began = daemon.inbox.told, time.perf_counter()
                    beside += daemon.cycles(CYCLES)
                    told += daemon.inbox.told - before
                    seconds += time.perf_counter() - began
                    toggle(ask)
                    # What was asked is answered, before the process that answers stands still again.
                    time.sleep(0.5)
                all_took, wrong = ended(ask)
            assert not wrong, wrong
            memory, used, items = ended(serve)
    finally:
        daemon.close()
    each, part = 1e3 * told / len(beside), 100 * told / seconds
    answers = sum(map(len, all_took.values()))
    print(f"  telling takes {each:.1f} ms a cycle, {part:.1f} % of the time")
    print(f"  serve: {memory} MB, {100 * used:.0f} % of a core, {items} items to {STREAMS} streams")
    print(f"  {answers / (seconds + ROUNDS * 0.5):.0f} answers a second")
    print(f"  processor time of a cycle: {told_seconds(alone)}, beside all of that {told_seconds(beside)}")
    print(f"  mean: {1e3 * fmean(alone):.2f} ms, beside all of that {1e3 * fmean(beside):.2f} ms")
    for what, times in all_took.items():
        print(f"  {len(times)} answers to {what}: {told_seconds(times)} by the clock")
    print(f"  load {os.getloadavg()[0]:.1f}")
