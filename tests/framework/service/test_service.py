"""The daemon's socket: who may ask, what is answered, and what a bad client cannot do."""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import socket
import stat
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from building import described, plugged
from structlog.testing import capture_logs
from waiting import HANG, bound, until

from headway.adapter import ClusterAdapter, Outcome
from headway.decisions import Answer, Decision, SetTimeLimit, Start
from headway.engine import Engine
from headway.errors import Failure, UserError
from headway.events import DecisionFailed, ElasticCommandReceived, Event, JobStarted, JobSubmitted
from headway.hookspecs import hookimpl
from headway.inquiry.cycles import Cycle
from headway.journal import Journal, RunInfo
from headway.model import ClusterDescription
from headway.model.modes import Mode
from headway.plugins import Problem
from headway.scheduler import Scheduler
from headway.service import Inbox, Peer, Server
from headway.service import protocol as p
from headway.service.client import ask
from headway.service.limits import Allowance, Limits
from headway_plugins.elasticity.commands import Elastic, ElasticOptions
from headway_plugins.policies.easy import Easy

REPORT = p.Report("drive", "cluster", 0, 5.0)
ME, OTHER = os.geteuid(), 12345


class Waiting(ClusterAdapter):
    """A cluster that waits in real time, as a batch system's adapter does; it refuses what it is told to."""

    capabilities = frozenset({Start, SetTimeLimit})

    def __init__(self, *events: Event, refuse: Sequence[type[Decision]] = ()) -> None:
        self.news = list(events)
        self.refuse = tuple(refuse)
        self.woken = threading.Event()
        self.now = 0.0
        self.applied: list[Decision] = []

    def describe(self) -> ClusterDescription:
        return ClusterDescription.flat(10)

    def wait(self, deadline: float | None) -> tuple[float, Sequence[Event]] | None:
        if not self.news:
            self.woken.wait()
        self.woken.clear()
        self.now += 1.0
        news, self.news = self.news, []
        return self.now, news

    def apply(self, now: float, decisions: Sequence[Decision]) -> Sequence[Outcome]:
        outcomes = []
        for decision in decisions:
            if isinstance(decision, self.refuse):
                outcomes.append(Outcome(False, "not on a Sunday"))
                self.news.append(DecisionFailed(now, decision, "not on a Sunday"))
            else:
                self.applied.append(decision)
                outcomes.append(Outcome(True))
                if isinstance(decision, Start):
                    self.news.append(JobStarted(now, decision.job_id))
        return outcomes

    def wake(self) -> None:
        self.woken.set()


class Daemon:
    """An engine on a thread and its socket, asked by whomever ``uid`` says."""

    def __init__(
        self, path: Path, adapter: Waiting, *plugins: Any, watching: bool = False, **more: Any
    ) -> None:
        self.path = path
        self.uid = ME
        self.adapter = adapter
        self.scheduler = Scheduler(adapter.describe(), plugged(*plugins), capabilities=adapter.capabilities)
        self.inbox = Inbox(adapter.wake, REPORT, watching=watching, clock=time.time)
        self.inbox.began(7)
        self.server = Server(path, self.inbox, credentials=lambda _: self.uid, **more)
        self.engine = Engine(adapter, self.scheduler, mode=Mode.DRIVE, requests=self.inbox)
        self.thread = threading.Thread(target=self.engine.run)
        self.thread.start()

    def ask(self, request: p.AnyRequest | p.OnBehalf, uid: int = ME) -> p.Reply:
        self.uid = uid
        return ask(self.path, request, timeout=HANG)

    def close(self) -> None:
        self.engine.stop()
        self.thread.join(HANG)
        self.server.close()


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Callable[..., Daemon]]:
    running: list[Daemon] = []

    def start(*events: Event, plugins: Sequence[Any] | None = None, **more: Any) -> Daemon:
        adapter = Waiting(*events, refuse=more.pop("refuse", ()))
        enabled = [Elastic(ElasticOptions()), Easy()] if plugins is None else plugins
        running.append(Daemon(tmp_path / "s.sock", adapter, *enabled, **more))
        return running[-1]

    yield start
    for one in running:
        one.close()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Callable[..., tuple[Path, Inbox]]]:
    """A socket without an engine: requests stay in the inbox."""
    servers: list[Server] = []

    def start(**more: Any) -> tuple[Path, Inbox]:
        path = tmp_path / "alone.sock"
        inbox = Inbox(lambda: None, REPORT, clock=time.time)
        servers.append(Server(path, inbox, **more))
        return path, inbox

    yield start
    for server in servers:
        server.close()


def submitted(job_id: str = "a", **more: Any) -> JobSubmitted:
    return JobSubmitted(0.0, described(job_id, 4, 100, **{"user": "root", **more}))


def raw(path: Path, *lines: bytes) -> dict[str, Any]:
    """What a client gets that says these bytes."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as one:
        one.settimeout(10)
        one.connect(str(path))
        for line in lines:
            one.sendall(line)
        said = b""
        while not said.endswith(b"\n"):
            more = one.recv(65536)
            assert more, said
            said += more
    return json.loads(said)


# ---------------------------------------------------------------------- requests and answers


def test_an_extension_changes_the_job_and_the_answer_comes_at_once(daemon: Callable[..., Daemon]) -> None:
    ours = daemon(submitted())
    began = time.monotonic()
    reply = ours.ask(p.Elastic("a", "ET", 50))
    assert (reply.outcome, "150 s" in reply.reason) == ("accepted", True)
    assert time.monotonic() - began < bound(2)
    (limit,) = [d for d in ours.adapter.applied if isinstance(d, SetTimeLimit)]
    assert (limit.job_id, limit.walltime) == ("a", 150)


def test_what_the_cluster_refuses_is_told_with_its_reason(daemon: Callable[..., Daemon]) -> None:
    ours = daemon(submitted(), refuse=[SetTimeLimit])
    reply = ours.ask(p.Elastic("a", "ET", 50))
    assert (reply.outcome, reply.reason) == ("refused", "by the cluster: not on a Sunday")


def test_somebody_elses_job_is_refused_and_an_operator_is_not(daemon: Callable[..., Daemon]) -> None:
    ours = daemon(submitted(user="alice"), operators=["uid:777"])
    reply = ours.ask(p.Elastic("a", "ET", 50), uid=OTHER)
    assert reply.outcome == "refused" and "a" in reply.reason
    assert not any(isinstance(d, SetTimeLimit) for d in ours.adapter.applied)
    assert ours.ask(p.Elastic("a", "ET", 50), uid=777).outcome == "accepted"


def test_a_speaker_asks_on_behalf_of_others_and_nobody_else_does(daemon: Callable[..., Daemon]) -> None:
    ours = daemon(submitted(user="alice"), speakers=["uid:777"], operators=["bob"])
    for user, outcome in (
        ("mallory", "refused"),
        ("root", "refused"),
        ("alice", "accepted"),
        ("bob", "accepted"),
    ):
        said = ours.ask(p.OnBehalf(user, p.Elastic("a", "ET", 50)), uid=777)
        assert said.outcome == outcome, (user, said)
    refused = ours.ask(p.OnBehalf("alice", p.Elastic("a", "ET", 50)), uid=OTHER)
    assert (refused.outcome, "service.speakers" in refused.reason) == ("refused", True)


def test_each_user_may_ask_for_itself_and_leave_an_operators_rights_out(
    daemon: Callable[..., Daemon],
) -> None:
    """As a token of an operator does that has not the scope."""
    ours = daemon(submitted(user="alice"), speakers=["uid:777"], operators=["uid:12345", "bob"])
    request = p.Elastic("a", "ET", 50)
    assert ours.ask(p.OnBehalf("bob", request, operator=False), uid=777).outcome == "refused"
    assert ours.ask(p.OnBehalf("uid:12345", request, operator=False), uid=OTHER).outcome == "refused"
    assert ours.ask(p.OnBehalf("uid:12345", request), uid=OTHER).outcome == "accepted"
    assert ours.ask(p.OnBehalf("root", p.Status()), uid=OTHER).outcome == "refused"


def test_a_user_that_asks_for_itself_has_no_more_requests(daemon: Callable[..., Daemon]) -> None:
    ours = daemon(submitted(), limits=Limits(Allowance(2, 0.001), Allowance(2, 0.001)))
    itself = p.OnBehalf(f"uid:{OTHER}", p.Status())
    asked = [ours.ask(one, uid=OTHER).outcome for one in (p.Status(), itself, itself)]
    assert asked == ["accepted", "accepted", "failed"]


def test_what_a_speaker_asks_counts_for_the_user(daemon: Callable[..., Daemon]) -> None:
    ours = daemon(submitted(), speakers=["uid:777"], limits=Limits(Allowance(2, 0.001), Allowance(2, 0.001)))
    asked = [
        ours.ask(p.OnBehalf(user, p.Status()), uid=777).outcome for user in ("alice", "alice", "alice", "bob")
    ]
    assert asked == ["accepted", "accepted", "failed", "accepted"]


def test_a_request_that_no_plugin_serves_is_refused(daemon: Callable[..., Daemon]) -> None:
    ours = daemon(submitted(), plugins=[Easy()])
    for request in (
        p.Elastic("a", "ET", 50),
        p.Reserve(100, 10, nodes=1),
        p.Unreserve("r1"),
        p.Plugin("x", "y"),
    ):
        reply = ours.ask(request)
        assert reply.outcome == "refused" and "no enabled plugin" in reply.reason


def test_a_decision_that_a_plugin_forbids_is_refused(daemon: Callable[..., Daemon]) -> None:
    class Frozen:
        @hookimpl
        def veto(self, decision: Decision) -> str | None:
            return "frozen" if isinstance(decision, SetTimeLimit) else None

    ours = daemon(submitted(), plugins=[Frozen(), Elastic(ElasticOptions()), Easy()])
    reply = ours.ask(p.Elastic("a", "ET", 50))
    assert (reply.outcome, reply.reason) == ("refused", "another plugin forbids it")
    assert ours.scheduler.state.jobs["a"].estimate == 100


def test_in_monitor_mode_nothing_is_changed(daemon: Callable[..., Daemon]) -> None:
    ours = daemon(submitted(), watching=True)
    reply = ours.ask(p.Elastic("a", "ET", 50))
    assert reply.outcome == "refused" and "monitor" in reply.reason
    assert ours.ask(p.Status()).status is not None


def test_status_tells_about_run_queues_and_problems_to_everybody(daemon: Callable[..., Daemon]) -> None:
    ours = daemon(submitted("a"), submitted("b"), submitted("c"), submitted("d"))
    until(lambda: (said := ours.ask(p.Status()).status) and said.last_cycle is not None, "a cycle was made")
    report = ours.ask(p.Status(), uid=OTHER).status
    assert report is not None and report.last_cycle is not None
    assert (report.run, report.mode, report.cluster) == (7, "drive", "cluster")
    (pool,) = report.pools
    assert (pool.total, pool.free, pool.queued, pool.running, report.jobs) == (10, 2, 2, 2, 4)
    ours.inbox.failed(Problem("easy", "schedule", "broken", ""))
    report = ours.ask(p.Status()).status
    assert report is not None and report.problems_in_all == 1
    assert report.problems[0][1] == "easy: schedule: broken"


def test_many_at_once_are_all_answered(daemon: Callable[..., Daemon]) -> None:
    ours = daemon(*(submitted(f"j{n}") for n in range(12)))
    replies: dict[int, p.Reply] = {}

    def one(n: int) -> None:
        replies[n] = ask(ours.path, p.Elastic(f"j{n}", "ET", n + 1), timeout=HANG)

    threads = [threading.Thread(target=one, args=(n,)) for n in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG)
    assert {n: (r.outcome, f"{101 + n} s" in r.reason) for n, r in replies.items()} == {
        n: ("accepted", True) for n in range(12)
    }


def test_requests_are_events_of_the_cycle_that_serves_them() -> None:
    woken = []
    inbox = Inbox(lambda: woken.append(1), REPORT, clock=time.time)
    future = inbox.ask(p.Elastic("a", "RP", 4), Peer("alice", True))
    assert woken and not future.done()
    (event,) = inbox.take(9.0)
    assert event == ElasticCommandReceived(9.0, "a", "RP", 4, "alice", True, event.request)
    assert event.request and list(inbox.take(10.0)) == []

    class Told:
        @hookimpl
        def answer(self, request: str) -> Answer | None:
            return Answer("in part", request)

    inbox.served(Cycle(9.0, (), (), ()), Scheduler(ClusterDescription.flat(10), plugged(Told())))
    assert future.result(0) == p.Reply("in part", event.request)


def test_what_plugins_remember_is_saved_before_a_request_has_an_effect(tmp_path: Path) -> None:
    class Crashing(Waiting):
        def apply(self, now: float, decisions: Sequence[Decision]) -> Sequence[Outcome]:
            if any(isinstance(d, SetTimeLimit) for d in decisions):
                raise KeyboardInterrupt
            return super().apply(now, decisions)

    adapter = Crashing(submitted())
    inbox = Inbox(adapter.wake, REPORT, clock=time.time)
    inbox.ask(p.Elastic("a", "ET", 50), Peer("root", True))
    elastic = Elastic(ElasticOptions(max_per_job=1))
    scheduler = Scheduler(adapter.describe(), plugged(elastic, Easy()), capabilities=adapter.capabilities)
    with Journal.open(tmp_path / "j.db") as journal:
        run = journal.begin_run(RunInfo("drive", 0.0, "1", "", 0, adapter.describe(), {}))
        with pytest.raises(KeyboardInterrupt):
            Engine(adapter, scheduler, journal, mode=Mode.DRIVE, requests=inbox).run()
        checkpoint = journal.last_checkpoint(run)
    assert checkpoint is not None and checkpoint.states["elastic"]["served"] == {"a": 1}


# ---------------------------------------------------------------------- bad clients


@pytest.mark.parametrize(
    ("line", "word"),
    [
        (b"\n", "not a request"),
        (b"hello\n", "not a request"),
        (b"\xff\xfe\n", "not a request"),
        (b"[]\n", "not a request"),
        (b'{"request":"shutdown"}\n', "shutdown"),
        (b'{"request":"elastic","job":"1"}\n', "command"),
        (b'{"request":"elastic","job":"1","command":"XX","amount":5}\n', "command"),
        (b'{"request":"elastic","job":"1","command":"ET","amount":-5}\n', "amount"),
        (b'{"request":"elastic","job":"1","command":"ET","amount":1e300}\n', "amount"),
        (b'{"request":"elastic","job":1,"command":"ET","amount":5}\n', "job"),
        (b'{"request":"elastic","job":"1","command":"ET","amount":5,"user":"root"}\n', "user"),
        (b'{"request":"unreserve","reservation":""}\n', "reservation"),
        (b"x" * 20_000 + b"\n", "at most"),
        (b"x" * 200_000, "at most"),
    ],
)
def test_what_is_no_request_is_told_so(served: Any, line: bytes, word: str) -> None:
    path, inbox = served()
    reply = raw(path, line)
    assert reply["outcome"] == "failed" and word in reply["reason"]
    assert list(inbox.take(0.0)) == []


def test_a_silent_client_is_given_up_and_others_are_served(served: Any) -> None:
    path, _ = served(client_timeout=0.3)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as silent:
        silent.settimeout(5)
        silent.connect(str(path))
        silent.sendall(b'{"request":')
        assert raw(path, b'{"request":', b'"status"}\n')["outcome"] == "accepted"
        assert silent.recv(10) == b""


def test_more_clients_than_allowed_are_sent_away(served: Any) -> None:
    path, _ = served()
    clients = []
    try:
        for _ in range(17):
            one = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            one.settimeout(HANG)
            one.connect(str(path))
            clients.append(one)
        assert b"too many" in clients[-1].recv(1000)
    finally:
        for one in clients:
            one.close()
    until(lambda: "status" in raw(path, b'{"request":"status"}\n'), "somebody is served again")


def test_a_request_that_no_cycle_serves_is_withdrawn(served: Any) -> None:
    path, inbox = served(timeout=0.3)
    reply = ask(path, p.Unreserve("r1"), timeout=HANG)
    assert reply.outcome == "failed" and "withdrawn" in reply.reason
    assert list(inbox.take(1.0)) == []


def test_a_request_whose_client_went_away_is_not_served(served: Any) -> None:
    path, inbox = served()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as one:
        one.connect(str(path))
        one.sendall(p.write(p.Unreserve("r1")))
        until(lambda: inbox._waiting, "the request has come")
    until(lambda: inbox._waiting[0][2].cancelled(), "its end was seen")
    assert list(inbox.take(1.0)) == []


def test_the_end_of_the_daemon_answers_those_who_wait(tmp_path: Path) -> None:
    inbox = Inbox(lambda: None, REPORT, clock=time.time)
    server = Server(tmp_path / "s", inbox)
    found: list[p.Reply] = []
    wish = p.Unreserve("r1")
    asking = threading.Thread(target=lambda: found.append(ask(tmp_path / "s", wish, timeout=HANG)))
    asking.start()
    until(lambda: inbox._waiting, "the request has come")
    server.close()
    asking.join(HANG)
    assert found[0].outcome == "failed" and "ended" in found[0].reason
    assert not (tmp_path / "s").exists()


# ---------------------------------------------------------------------- the socket's file


def test_everybody_may_connect_and_the_kernel_says_who(served: Any) -> None:
    path, inbox = served()
    assert stat.S_IMODE(path.stat().st_mode) == 0o666
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as one:
        one.connect(str(path))
        one.sendall(p.write(p.Unreserve("r1")))
        until(lambda: inbox._waiting, "the request has come")
        events = inbox.take(1.0)
        inbox.close()
    assert (events[0].user, events[0].operator) == (pwd.getpwuid(ME).pw_name, True)


def test_the_socket_of_a_killed_daemon_is_taken_over_and_a_living_ones_is_not(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as left:
        left.bind(str(path))
    with Server(path, Inbox(lambda: None, REPORT, clock=time.time)):
        with pytest.raises(Failure, match="another daemon"):
            Server(path, Inbox(lambda: None, REPORT, clock=time.time))
        assert ask(path, p.Status()).status is not None


def test_a_path_that_cannot_be_a_socket_is_named(tmp_path: Path) -> None:
    inbox = Inbox(lambda: None, REPORT, clock=time.time)
    with pytest.raises(UserError, match="at most 107 bytes"):
        Server(tmp_path / ("x" * 120), inbox)
    file = tmp_path / "file"
    file.write_text("precious")
    with pytest.raises(UserError, match="another file"):
        Server(file, inbox)
    assert file.read_text() == "precious"
    with pytest.raises(Failure, match="cannot be bound"):
        Server(tmp_path / "none" / "s", inbox)


def test_asking_nobody_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(Failure, match="is `headway run` running"):
        ask(tmp_path / "s", p.Status(), timeout=0.2)


def test_a_socket_that_was_taken_away_is_made_anew(served: Callable[..., tuple[Path, Inbox]]) -> None:
    path, _ = served(look_after=0.05)
    path.unlink()
    until(path.exists, "the socket is there again")
    assert ask(path, p.Status(), timeout=HANG).status is not None
    assert stat.S_IMODE(path.stat().st_mode) == 0o666


def test_what_was_put_into_its_place_is_left_alone_and_told_once(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with capture_logs() as logs, Server(path, Inbox(lambda: None, REPORT, clock=time.time), look_after=0.02):
        path.unlink()
        path.write_text("mine")
        until(lambda: logs, "it is told")
        time.sleep(0.2)
    assert [log["event"] for log in logs] == ["the local socket went away and cannot be made anew"]
    assert path.read_text() == "mine"


def test_a_client_waits_where_too_many_want_to_connect(tmp_path: Path) -> None:
    path = tmp_path / "full.sock"
    with socket.socket(socket.AF_UNIX) as listener, contextlib.ExitStack() as stack:
        listener.bind(str(path))
        listener.listen(0)
        while True:
            other = stack.enter_context(socket.socket(socket.AF_UNIX))
            other.setblocking(False)
            try:
                other.connect(str(path))
            except BlockingIOError:
                break
        with pytest.raises(Failure, match="too many clients now; try again"):
            ask(path, p.Status(), timeout=0.2)

        def serve() -> None:
            listener.settimeout(HANG)
            while True:
                taken, _ = listener.accept()
                if taken.recv(1024):
                    taken.sendall(p.write(p.Reply("accepted")))
                    return
                taken.close()

        with ThreadPoolExecutor(1) as threads:
            answer = threads.submit(ask, path, p.Status(), timeout=HANG, patience=HANG)
            time.sleep(0.2)
            stack.close()
            serve()
            assert answer.result(HANG).outcome == "accepted"
