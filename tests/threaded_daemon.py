"""A daemon of which a test says what happens: an engine on a thread, its journal and its socket."""

from __future__ import annotations

import os
import pwd
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from building import alike, node_cluster, plugged
from waiting import HANG, until

from headway.adapter import ClusterAdapter, Outcome
from headway.decisions import Decision, Start
from headway.engine import Engine
from headway.events import Event, JobStarted
from headway.journal import Journal, RunInfo
from headway.model import ClusterDescription
from headway.model.modes import Mode
from headway.scheduler import Scheduler
from headway.service import Inbox, Server
from headway.service import protocol as p
from headway.service.answers import Answers
from headway.service.client import ask
from headway.service.limits import Allowance, Limits

REPORT = p.Report("drive", "cluster", 0, 5.0)
MANY = Limits(Allowance(10**6, 1e6), Allowance(10**6, 1e6))


class Cluster(ClusterAdapter):
    """A cluster that waits in real time for what a test lets happen, and counts how often it is asked."""

    capabilities = frozenset({Start})

    def __init__(self, *events: Event) -> None:
        self.news = list(events)
        self.woken = threading.Event()
        self.waits = 0
        self.now = 0.0

    def describe(self) -> ClusterDescription:
        return node_cluster(*alike(2, 2))

    def wait(self, deadline: float | None) -> tuple[float, Sequence[Event]] | None:
        self.waits += 1
        if not self.news:
            self.woken.wait()
        self.woken.clear()
        self.now += 1.0
        news, self.news = self.news, []
        return self.now, news

    def apply(self, now: float, decisions: Sequence[Decision]) -> Sequence[Outcome]:
        self.news += [JobStarted(now, one.job_id, one.placement) for one in decisions if type(one) is Start]
        return [Outcome(True)] * len(decisions)

    def happens(self, *events: Event) -> None:
        self.news += events
        self.wake()

    def wake(self) -> None:
        self.woken.set()


class Daemon:
    """An engine on a thread, its journal and its socket."""

    def __init__(
        self,
        place: Path,
        *events: Event,
        plugins: Sequence[Any],
        monitor: bool = False,
        serving: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> None:
        """``serving``: more for the :class:`Server`; ``more``: for the :class:`Answers`."""
        self.path, self.uid = place / "s.sock", os.geteuid()
        self.cluster = Cluster(*events)
        description = self.cluster.describe()
        self.scheduler = Scheduler(description, plugged(*plugins), monitor=monitor)
        self.inbox = Inbox(
            self.cluster.wake, REPORT, watching=monitor, clock=time.time, answers=Answers(**more)
        )
        self.server = Server(
            self.path, self.inbox, limits=MANY, credentials=lambda _: self.uid, **(serving or {})
        )
        self.journal = Journal.open(place / "j.db")
        self.journal.begin_run(RunInfo("drive", 0.0, "1", "", 0, description, {}))
        mode = Mode.MONITOR if monitor else Mode.DRIVE
        self.engine = Engine(
            self.cluster, self.scheduler, self.journal, mode=mode, requests=self.inbox, log=Silent()
        )
        self.thread = threading.Thread(target=self.engine.run)
        self.thread.start()

    def ask(self, question: p.AnyRequest, uid: int | None = None) -> p.Reply:
        self.uid = os.geteuid() if uid is None else uid
        return ask(self.path, question, timeout=HANG)

    def found(self, question: p.AnyRequest, uid: int | None = None) -> Any:
        reply = self.ask(question, uid)
        assert reply.outcome == "accepted", reply
        return reply.found

    def cycles(self) -> int:
        return self.scheduler.cycles

    def settled(self) -> None:
        """Until nothing happens any more."""
        until(lambda: self.cycles() >= 2 and not self.cluster.news, "the first cycles are over")

    def close(self) -> None:
        self.engine.stop()
        self.thread.join(HANG)
        self.server.close()
        self.journal.close()


def name_users(monkeypatch: pytest.MonkeyPatch, names: Mapping[int, str]) -> None:
    """Let there be users with these ids, beside those of this machine."""
    known = pwd.getpwuid

    def named(uid: int) -> Any:
        return pwd.struct_passwd((names[uid], "x", uid, uid, "", "/", "")) if uid in names else known(uid)

    monkeypatch.setattr(pwd, "getpwuid", named)


class Silent:
    def info(self, *_: Any, **more: Any) -> None: ...

    error = warning = info
