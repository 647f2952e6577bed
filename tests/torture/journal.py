"""What headway's journal says after a torture run."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, field
from pathlib import Path

from headway import events as ev
from headway.daemon.replay import replay
from headway.decisions import Start
from headway.journal import Journal
from headway.plugins import Catalogue
from torture.history import History


@dataclass
class Read:
    """Of all runs of the daemon together."""

    runs: int = 0
    cycles: int = 0
    events: int = 0
    decisions: int = 0
    #: Runs that were killed before the last cycle's decisions were written.
    cut_short: int = 0
    #: When each start was decided, by the jobs' keys.
    decided: dict[str, list[float]] = field(default_factory=dict)
    starts: int = 0
    failed_starts: list[str] = field(default_factory=list)
    #: Differences of the replay, and what the database itself says.
    faults: list[str] = field(default_factory=list)


def read(path: Path, history: History) -> Read:
    """Read the journal and repeat every run of it."""
    found = Read()
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
        [[said]] = database.execute("PRAGMA integrity_check").fetchall()[:1]
    if said != "ok":
        found.faults.append(f"the database says {said}")
    with Journal.open(path, create=False, read_only=True) as journal:
        for run in journal.runs():
            result = replay(journal, Catalogue(()), run.id)
            found.runs += 1
            found.cycles += result.cycles
            found.events += result.events
            found.decisions += result.decisions
            found.cut_short += result.cut_short
            for difference in result.differences:
                found.faults.append(
                    f"run {run.id}, cycle {difference.seq}: recorded {difference.recorded}, "
                    f"repeated {difference.repeated}"
                )
            for _, at, start in journal.starts(run.id):
                found.starts += 1
                found.decided.setdefault(_key(history, start.job_id, at), []).append(at)
            for cycle in journal.cycles(run.id):
                for event in cycle.events:
                    if isinstance(event, ev.DecisionFailed) and isinstance(event.decision, Start):
                        key = _key(history, event.decision.job_id, event.time)
                        found.failed_starts.append(f"{key}: {event.message}")
    return found


def _key(history: History, job_id: str, at: float) -> str:
    """The key of a job that headway names as its system does: ``12``, ``12_3``, ``12[3]``, ``12[3].host``."""
    for opened, closed, whole in (("_", "", "{}"), ("[", "]", "{}[]"), ("[", "]", "{}")):
        base, found, rest = job_id.partition(opened)
        if not found:
            continue
        element, _, tail = rest.partition(closed) if closed else (rest, "", "")
        job = history.job_of(whole.format(base) + tail, at)
        if job is not None:
            return job.key(int(element))
    job = history.job_of(job_id, at)
    return job.name if job is not None else f"?{job_id}"
