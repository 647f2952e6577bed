"""Journals of mode monitor, made of an emulated run or event by event."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headway.emulation import emulate
from headway.events import Event, JobEnded, JobStarted, JobSubmitted
from headway.journal import Journal, RunInfo
from headway.model import (
    ClusterDescription,
    Dependency,
    JobDescription,
    NodeDescription,
    PoolDescription,
    Request,
)
from headway.plugins import Catalogue, PluginConfig
from headway.shadow.foretold import Plan
from headway.shadow.record import Record, read_record
from headway.workload.jobs import TraceJob

#: 2023-11-14 22:00:00 UTC.
EPOCH = 1_699_999_200.0
CONFIG = "mode: monitor\ncluster: {adapter: emulated}\nplugins: [easy, first-fit]\n"


def cluster(nodes: int = 4, processors: int = 8) -> ClusterDescription:
    described = tuple(NodeDescription(f"n{at}", processors, pools=("batch",)) for at in range(1, nodes + 1))
    return ClusterDescription("tc", (PoolDescription("batch"),), described)


def info(
    mode: str = "monitor", started: float = EPOCH, described: ClusterDescription | None = None
) -> RunInfo:
    return RunInfo(mode, started, "0.2.0", CONFIG, 0, described or cluster(), {})


def job(name: str, submit: float, processors: int = 8, limit: float = 3600.0, **more: Any) -> JobDescription:
    return JobDescription(name, submit, Request(processors, limit), pool="batch", **more)


class Watching:
    """Writes what an emulation does into a journal as a run that only watched."""

    enabled = True

    def __init__(self, journal: Journal, about: RunInfo) -> None:
        self._journal, self._about = journal, about
        self._now = about.started_at

    def begin_run(self, about: RunInfo) -> int:
        return self._journal.begin_run(self._about)

    def end_run(self, reason: str, *, ended_at: float | None = None) -> None:
        self._journal.end_run(reason, ended_at=self._now + 1.0)

    def record_events(self, seq: int, now: float, events: Sequence[Event]) -> None:
        self._now = now
        self._journal.record_events(seq, now, events)

    def record_decisions(self, seq: int, decisions: Sequence[Any]) -> None:
        self._journal.record_decisions(seq, ())

    def record_outcomes(self, seq: int, outcomes: Sequence[Any]) -> None:
        self._journal.record_outcomes(seq, ())

    def checkpoint(self, *arguments: Any, **more: Any) -> None:
        """Nothing is kept."""


def watched_run(
    place: Path, jobs: Sequence[TraceJob], policy: str, described: ClusterDescription | None = None,
    happens: Sequence[Event] = (), start: float | None = None,
) -> None:  # fmt: skip
    """A journal in which a batch system was watched that schedules as ``policy`` does."""
    described = described or cluster()
    with Journal.open(place) as journal:
        emulate(
            described, jobs, [PluginConfig(policy), PluginConfig("first-fit")], Catalogue(), label=policy,
            journal=Watching(journal, info(described=described)), happens=happens, start=start,
        )  # fmt: skip


def told(
    place: Path,
    *cycles: tuple[float, Sequence[Event]],
    ended: float | None = None,
    about: RunInfo | None = None,
) -> None:
    """One run more: each cycle's time and events. ``ended``: None: the run was killed."""
    with Journal.open(place) as journal:
        journal.begin_run(about or info(started=cycles[0][0] if cycles else EPOCH))
        for seq, (now, events) in enumerate(cycles):
            journal.record_events(seq, now, list(events))
            journal.record_decisions(seq, [])
            journal.record_outcomes(seq, [])
        if ended is not None:
            journal.end_run("stopped", ended_at=ended)


def came(name: str, submit: float, **more: Any) -> JobSubmitted:
    return JobSubmitted(submit, job(name, submit, **more))


def began(name: str, at: float, node: str = "n1") -> JobStarted:
    return JobStarted(at, name, ((node, 8),))


def over(name: str, at: float, outcome: str = "completed") -> JobEnded:
    return JobEnded(at, name, outcome)


def plan(policy: str) -> Plan:
    return Plan([PluginConfig(policy), PluginConfig("first-fit")], Catalogue(), policy)


def record(place: Path, since: float = float("-inf"), until: float = float("inf")) -> Record:
    with Journal.open(place, create=False, read_only=True) as journal:
        return read_record(journal, since, until)


def drawn(seed: int, count: int = 80, gap: float = 200.0) -> list[TraceJob]:
    """A busy queue; some jobs depend on others, are held, end at their limit or fail."""
    draw, at, jobs = random.Random(seed), EPOCH, list[TraceJob]()
    for number in range(1, count + 1):
        at += draw.expovariate(1 / gap)
        more: dict[str, Any] = {}
        if number % 9 == 0:
            more["dependencies"] = (Dependency("completed", str(number - 4)),)
        description = job(
            str(number), at, draw.choice([1, 2, 4, 8, 16]), draw.choice([900.0, 3600.0]), **more
        )
        outcome = "failed" if number % 31 == 0 else "completed"
        jobs.append(TraceJob(description, draw.uniform(5, 1000), outcome))
    return jobs
