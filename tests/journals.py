"""Journals for tests: what is recorded in them, and where they are."""

from __future__ import annotations

import itertools
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from headway.adapter import Outcome
from headway.decisions import Start
from headway.events import JobEnded, JobSubmitted
from headway.journal import Journal, RunInfo
from headway.model import ClusterDescription, JobDescription, Request

DAY = 86400.0
_NUMBERS = itertools.count()


def begin(journal: Journal, started_at: float, mode: str = "drive") -> int:
    return journal.begin_run(
        RunInfo(
            mode, started_at, "0.1.0", "policy: easy\n", 42, ClusterDescription.flat(16), {"share": [1.5]}
        )
    )


def cycles(journal: Journal, at: float, count: int = 3) -> None:
    """Cycles of one job each, from this time on: it comes, is started, and is over."""
    for seq in range(count):
        now, job = at + seq, f"job\udc80{seq}"
        submitted = JobSubmitted(now, JobDescription(job, now, Request(4, 3600.0)))
        journal.record_events(seq, now, [submitted, JobEnded(now, f"earlier{seq}")])
        journal.record_decisions(seq, [Start(job, (("n1", 4),), "first in the queue")])
        journal.record_outcomes(seq, [Outcome(seq % 2 == 0, "")])
    journal.checkpoint(count - 1, {"share": {"anna": float("inf")}, "Zähler": [count]})


def fill(place: str | Path, now: float) -> list[int]:
    """Runs that ended 200 and 100 days ago, one that was killed 95 days ago, and one that ended yesterday."""
    found = []
    for days, killed in ((200, False), (100, False), (95, True), (2, False)):
        with Journal.open(place) as journal:
            found.append(begin(journal, now - days * DAY))
            cycles(journal, now - days * DAY)
            if not killed:
                journal.end_run("stopped", ended_at=now - days * DAY + 60.0)
    return found


@contextmanager
def schema_of(url: str) -> Iterator[str]:
    """The URL of a new empty schema of a PostgreSQL database; it is gone at the end."""
    import psycopg

    schema = f"headway_test_{os.getpid()}_{next(_NUMBERS)}"
    with psycopg.connect(url, autocommit=True) as server:
        server.execute(f"create schema {schema}")
        try:
            yield f"{url}{'&' if '?' in url else '?'}options=-csearch_path%3D{schema}"
        finally:
            server.execute(f"drop schema {schema} cascade")


#: A daemon's writing and nothing else: a cycle after the other until its input ends.
_WRITER = """
import sys, threading
from headway.decisions import Start
from headway.adapter import Outcome
from headway.events import NodeDown
from headway.journal import Journal, RunInfo
from headway.model import ClusterDescription

over = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
with Journal.open(sys.argv[1]) as journal:
    journal.begin_run(RunInfo("drive", float(sys.argv[2]), "test", "", 0, ClusterDescription.flat(1)))
    seq = 0
    while not over.wait(0.002):
        journal.record_events(seq, float(seq), [NodeDown(float(seq), "n1", "broken")] * 3)
        journal.record_decisions(seq, [Start(str(seq))])
        journal.record_outcomes(seq, [Outcome(True)])
        seq += 1
        if seq == 10:
            print("writes", flush=True)
    journal.end_run("stopped")
print(seq, flush=True)
"""


@dataclass
class Writer:
    """Another process that writes to a journal."""

    #: Known when it has ended.
    cycles: int = 0


@contextmanager
def written_to(place: str | Path, started_at: float) -> Iterator[Writer]:
    """Another process writes to the journal. It must end well; then it is known how much it wrote."""
    command = [sys.executable, "-c", _WRITER, str(place), str(started_at)]
    found = Writer()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdin is not None and writer.stdout is not None
        assert writer.stdout.readline() == "writes\n"
        try:
            yield found
        finally:
            writer.stdin.close()
            said = writer.stdout.read()
    assert writer.returncode == 0
    found.cycles = int(said)


def execute(path: Path, *statements: str) -> None:
    """Change a journal's file behind headway's back."""
    database = sqlite3.connect(path)
    with database:
        for statement in statements:
            database.execute(statement)
    database.close()
