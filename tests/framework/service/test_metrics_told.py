"""Metrics and health over the socket: of a daemon that runs, that waits, and that hangs."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from building import described, plugged
from waiting import HANG, until

from headway.adapter import Check, ClusterAdapter, CommandCount, Oddity, Outage, Outcome
from headway.decisions import Decision, Start
from headway.engine import Engine
from headway.events import Event, JobStarted, JobSubmitted
from headway.inquiry.reports import HealthReport
from headway.measured.measures import Measures
from headway.measured.report import Measured
from headway.model import ClusterDescription
from headway.model.modes import Mode
from headway.scheduler import Scheduler
from headway.service import Inbox, Peer, Server
from headway.service import protocol as p
from headway.service.answers import Answers
from headway.service.client import ask
from headway.service.figures import Figures
from headway.service.journal_room import JournalRoom
from headway.service.plans_over_time import PlansOverTime
from headway_plugins.policies.easy import Easy

ROOT, ANN = Peer("root", True), Peer("ann", False)


class Cluster(ClusterAdapter):
    """A cluster of four processors whose time is the clock's."""

    capabilities = frozenset({Start})

    def __init__(self, *events: Event) -> None:
        self.news = list(events)
        self.woken = threading.Event()
        self.waits = 0
        #: Not set: it hangs when it is to wait.
        self.goes_on = threading.Event()
        self.goes_on.set()

    def describe(self) -> ClusterDescription:
        return ClusterDescription.flat(4)

    def wait(self, deadline: float | None) -> tuple[float, Sequence[Event]] | None:
        self.waits += 1
        assert self.goes_on.wait(HANG)
        if not self.news:
            self.woken.wait()
        self.woken.clear()
        news, self.news = self.news, []
        return time.time(), news

    def apply(self, now: float, decisions: Sequence[Decision]) -> Sequence[Outcome]:
        self.news += [JobStarted(now, one.job_id) for one in decisions if isinstance(one, Start)]
        return [Outcome(True)] * len(decisions)

    def wake(self) -> None:
        self.woken.set()

    def outages(self) -> Sequence[Outage]:
        return (Outage("c", 5.0, "it is asleep"),)

    def oddities(self) -> Sequence[Oddity]:
        return (Oddity("c", "odd", 3, 6.0, "job 7 of ann"),)

    def commands_run(self) -> Sequence[CommandCount]:
        return (CommandCount("c", "scontrol", "done", 4, 0.25),)

    def vital_signs(self) -> Sequence[Check]:
        return (Check("heartbeat", False, "300 s old", "look at the disk"),)


class Daemon:
    def __init__(self, place: Path, *events: Event, **more: Any) -> None:
        self.path = place / "s.sock"
        self.cluster = Cluster(*events)
        measures = Measures()
        answers = Answers(
            outages=self.cluster.outages, vital_signs=self.cluster.vital_signs,
            plans_over_time=PlansOverTime(measures.plan_met),
        )  # fmt: skip
        report = p.Report("drive", "c", 2, 5.0)
        self.inbox = Inbox(
            self.cluster.wake, report, clock=time.time, answers=answers,
            figures=Figures(measures, commands=self.cluster.commands_run, **more),
            outages=self.cluster.outages, oddities=self.cluster.oddities,
            watts=lambda: {"n1": 100.0, "n2": 50.5},
        )  # fmt: skip
        self.server = Server(self.path, self.inbox)
        self.scheduler = Scheduler(self.cluster.describe(), plugged(Easy()))
        self.engine = Engine(self.cluster, self.scheduler, mode=Mode.DRIVE, requests=self.inbox)
        self.thread = threading.Thread(target=self.engine.run)

    def __enter__(self) -> Daemon:
        self.thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.cluster.goes_on.set()
        self.engine.stop()
        self.thread.join(HANG)
        self.server.close()

    def metrics(self) -> Measured:
        found = ask(self.path, p.Metrics(), timeout=HANG).metrics
        assert found is not None
        return found

    def health(self) -> HealthReport:
        found = ask(self.path, p.Health(), timeout=HANG).found
        assert isinstance(found, HealthReport)
        return found


def test_what_was_counted_comes_over_the_socket(tmp_path: Path) -> None:
    now = time.time()
    with Daemon(tmp_path, JobSubmitted(now, described("1", 4, submit=now - 30, qos="q"))) as daemon:
        until(lambda: bool(daemon.metrics().waits), "the start was counted")
        found = daemon.metrics()
    assert (found.mode, found.cluster, found.run) == ("drive", "c", 2)
    assert [(one.command, one.count) for one in found.commands] == [("scontrol", 4)]
    assert [(one.what, one.count) for one in found.oddities] == [("odd", 3)]
    assert [(one.cluster, one.since) for one in found.outages] == [("c", 5.0)]
    assert (found.watts, found.watts_nodes) == (150.5, 2)
    (wait,) = found.waits
    assert wait.qos == "q"
    assert 30 <= wait.seconds.sum < 30 + HANG
    assert "ann" not in str(msgspec.to_builtins(found))


def test_metrics_need_no_turn_of_the_loop(tmp_path: Path) -> None:
    with Daemon(tmp_path, JobSubmitted(time.time(), described("1"))) as daemon:
        until(lambda: daemon.metrics().last_cycle is not None, "there was a cycle")
        daemon.cluster.goes_on.clear()
        daemon.inbox.pulse()
        waits = daemon.cluster.waits
        until(lambda: daemon.cluster.waits > waits, "the loop hangs")
        assert daemon.metrics().jobs == 1


def test_a_pulse_makes_the_loop_turn_and_no_cycle(tmp_path: Path) -> None:
    turns: list[float] = []
    job = JobSubmitted(time.time(), described("1"))
    with Daemon(tmp_path, job, on_turn=lambda: turns.append(time.time())) as daemon:
        until(lambda: daemon.scheduler.cycles == 2 and not daemon.cluster.news, "the job has started")
        until(lambda: daemon.inbox.pulse(), "the last cycle is on record")
        before, turned = len(turns), daemon.metrics().last_turn
        assert daemon.inbox.pulse()
        until(lambda: len(turns) > before, "the loop turned")
        until(lambda: daemon.metrics().last_turn != turned, "metrics show it")
        assert daemon.scheduler.cycles == 2


def test_there_is_no_pulse_before_the_first_cycle(tmp_path: Path) -> None:
    inbox = Inbox(lambda: None, p.Report("drive", "c", 1, 0.0), clock=time.time)
    assert not inbox.pulse()
    assert not inbox.was_woken_to_answer()


def test_users_are_told_apart_to_operators_where_that_is_asked_for(tmp_path: Path) -> None:
    def told(peer: Peer, **more: Any) -> set[str]:
        report = p.Report("drive", "c", 1, 0.0)
        figures = Figures(**more)
        inbox = Inbox(lambda: None, report, clock=time.time, answers=Answers(private=True), figures=figures)
        scheduler = Scheduler(ClusterDescription.flat(4), plugged(Easy()))
        engine = Engine(Once(JobSubmitted(0.0, described("1", 4, user="ann", held=True))), scheduler,
                        mode=Mode.DRIVE, requests=inbox)  # fmt: skip
        engine.run()
        found = inbox.ask(p.Metrics(), peer).result().metrics
        assert found is not None
        return {one.user for one in found.users}

    assert told(ROOT, users=True) == {"ann"}
    assert told(ANN, users=True) == set()
    assert told(ROOT) == set()


class Once(Cluster):
    """Tells its news and ends."""

    def wait(self, deadline: float | None) -> tuple[float, Sequence[Event]] | None:
        news, self.news = self.news, []
        return (0.0, news) if news else None


def test_health_is_of_the_state_the_cluster_and_the_adapter(tmp_path: Path) -> None:
    with Daemon(tmp_path, JobSubmitted(time.time(), described("1"))) as daemon:
        until(lambda: daemon.metrics().last_cycle is not None, "there was a cycle")
        found = {one.name: one for one in daemon.health().checks}
    assert {name for name, one in found.items() if not one.ok} == {"clusters answer", "heartbeat"}
    assert found["heartbeat"].remedy == "look at the disk"
    assert set(found) >= {"nodes given once", "jobs known", "plans ahead", "last cycle"}


def test_the_room_of_a_journal(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    path.write_bytes(b"x" * 1000)
    (tmp_path / "j.db-wal").write_bytes(b"x" * 24)
    room = JournalRoom(str(path))
    size, free = room.sizes()
    assert size == 1024
    assert free is not None
    assert room.check() is not None
    assert JournalRoom("postgresql://h/d").sizes() == (None, None)
    assert JournalRoom("postgresql://h/d").check() is None
    gone = JournalRoom(str(tmp_path / "gone" / "j.db")).check()
    assert gone is not None
    assert not gone.ok
