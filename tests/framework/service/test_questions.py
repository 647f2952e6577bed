"""Questions to the daemon: answered between two steps, by what the asking user may see, and in no cycle's
way."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from building import alike, described, node_cluster, plugged
from threaded_daemon import REPORT, Cluster, Daemon, name_users
from waiting import HANG, until

from headway.adapter import Outage, StartsWait
from headway.engine import Engine
from headway.errors import Failure, UserError
from headway.events import Event, JobStarted, JobSubmitted
from headway.hookspecs import hookimpl
from headway.inquiry import explain
from headway.inquiry.spare_time import SpareTime
from headway.journal.planned import LivePlans
from headway.model import ClusterDescription
from headway.model.questions import Question
from headway.scheduler import Scheduler, plain_clock
from headway.service import Inbox, Peer
from headway.service import protocol as p
from headway.service.answers import Answers
from headway.service.client import ask
from headway.service.inbox import ANSWERING, MAX_WAITING
from headway.state import State
from headway_plugins.placement.first_fit import FirstFit
from headway_plugins.policies.conservative import Conservative
from headway_plugins.policies.easy import Easy

ANN, BEN = 11111, 22222
NAMES = {ANN: "ann", BEN: "ben"}


@pytest.fixture
def daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Daemon]]:
    running: list[Daemon] = []
    name_users(monkeypatch, NAMES)

    def start(*events: Event, plugins: Sequence[Any] = (), monitor: bool = False, **more: Any) -> Daemon:
        enabled = plugins or [Easy(), FirstFit()]
        running.append(Daemon(tmp_path, *events, plugins=enabled, monitor=monitor, **more))
        return running[-1]

    yield start
    for one in running:
        one.close()


def submitted(job_id: str, processors: int, user: str, **more: Any) -> JobSubmitted:
    return JobSubmitted(0.0, described(job_id, processors, 100, user=user, **more))


#: Job a of ann runs; b of ben waits for it, c of ann behind it.
QUEUE = (submitted("a", 3, "ann"), submitted("b", 4, "ben"), submitted("c", 4, "ann"))


# ---------------------------------------------------------------------- answers


def test_a_job_is_explained_in_the_words_of_the_daemons_own_scheduler(daemon: Callable[..., Daemon]) -> None:
    ours = daemon(*QUEUE)
    ours.settled()
    reply = ours.ask(p.Explain("b"))
    assert isinstance(reply.found, p.Explained) and reply.found.job is not None
    assert list(reply.found.sentences) == explain(ours.scheduler, "b", plain_clock)
    assert "It waits for the end of job a (by " in " ".join(reply.found.sentences)
    assert (reply.found.job.position, reply.found.job.waits_for) == (1, ("a",))
    assert reply.as_of == ours.scheduler.state.now


def test_each_question_finds_what_it_asks_for(daemon: Callable[..., Daemon]) -> None:
    ours = daemon(*QUEUE)
    ours.settled()
    assert [job.id for job in ours.found(p.Jobs()).jobs] == ["b", "c", "a"]
    assert [job.id for job in ours.found(p.Jobs(user="ann", status="pending")).jobs] == ["c"]
    assert ours.found(p.Jobs(first=1, count=1)).next == 2
    assert [pool.queued for pool in ours.found(p.Pools()).pools] == [2]
    assert [node.jobs for node in ours.found(p.Nodes(pool="pool")).nodes] == [("a",), ("a",)]
    assert [one.job for one in ours.found(p.Bookings()).bookings] == ["b"]
    assert ours.found(p.Cycle()).events == {"JobStarted": 1}


def test_jobs_are_of_an_account_a_qos_a_name_and_of_the_asking_user(daemon: Callable[..., Daemon]) -> None:
    marked = [
        submitted("d", 1, "ann", account="x"),
        submitted("e", 1, "ben", qos="fast"),
        submitted("f", 1, "ann", name="n"),
    ]
    ours = daemon(*QUEUE, *marked)
    ours.settled()

    def ids(uid: int | None = None, **wanted: Any) -> list[str]:
        return sorted(job.id for job in ours.found(p.Jobs(**wanted), uid).jobs)

    assert ids(account="x") == ["d"] and ids(qos="fast") == ["e"] and ids(name="n") == ["f"]
    assert ids(account="x", qos="fast") == [] and ids(name="n", user="ben") == []
    assert ids(ANN, mine=True) == ["a", "c", "d", "f"] and ids(BEN, mine=True, user="ann") == ["b", "e"]
    assert ids(mine=True) == [], "an operator has jobs too, or none"


def test_an_array_is_explained_by_its_elements(daemon: Callable[..., Daemon]) -> None:
    elements = [submitted(f"9_{number}", 4, "ann", array_id="9", array_index=number) for number in (1, 2, 3)]
    ours = daemon(*elements)
    ours.settled()
    found = ours.found(p.Explain("9"))
    assert found.job is None and found.id == "9"
    assert found.sentences[:2] == ("Job array 9 of ann: 3 elements not over.", "On nodes: 1.")


def test_the_answer_says_what_starts_wait_for_and_which_cluster_is_silent(
    daemon: Callable[..., Daemon],
) -> None:
    ours = daemon(
        *QUEUE, full_job_id=lambda given: given.lower(), outages=lambda: (Outage("tc", 7.0, "refused"),),
        starts_waiting=lambda: (StartsWait("tc", 2, "the budget"),),
    )  # fmt: skip
    ours.settled()
    found = ours.found(p.Explain("B"))
    assert (found.id, found.outages) == ("b", (p.OutageReport("tc", 7.0, "refused"),))
    assert [one.sentence for one in found.starts_waiting] == ["2 starts wait for the budget"]
    assert not ours.found(p.Explain("a")).starts_waiting, "it runs"


def test_in_monitor_mode_a_job_that_would_be_started_is_told_so_until_it_starts(
    daemon: Callable[..., Daemon],
) -> None:
    ours = daemon(*QUEUE, monitor=True)
    until(lambda: ours.cycles() >= 1, "the first cycle is over")
    ours.cluster.happens(submitted("d", 4, "ann"))
    until(lambda: ours.cycles() >= 2, "another cycle is over")
    assert "It would be started now on n0, n1: " in " ".join(ours.found(p.Explain("a")).sentences)
    ours.cluster.happens(JobStarted(2.0, "a", (("n0", 2), ("n1", 1))))
    until(lambda: ours.cycles() >= 3, "its start was seen")
    assert "It runs on n0, n1, " in " ".join(ours.found(p.Explain("a")).sentences)


# ---------------------------------------------------------------------- who may see what


@pytest.mark.parametrize(("private", "uid", "all_of_them"), [(True, ANN, False), (False, ANN, True)])
def test_a_user_sees_what_the_site_lets_users_see(
    daemon: Callable[..., Daemon], private: bool, uid: int, all_of_them: bool
) -> None:
    ours = daemon(*QUEUE, private=private)
    ours.settled()
    assert [job.id for job in ours.found(p.Jobs(), uid).jobs] == (
        ["b", "c", "a"] if all_of_them else ["c", "a"]
    )
    assert [one.job for one in ours.found(p.Bookings(), uid).bookings] == (["b"] if all_of_them else [])
    assert ours.ask(p.Explain("b"), uid).outcome == ("accepted" if all_of_them else "unknown")
    assert ours.ask(p.Explain("c"), uid).outcome == "accepted"
    nodes = ours.found(p.Nodes(), BEN).nodes
    assert [node.jobs for node in nodes] == ([("a",)] * 2 if all_of_them else [()] * 2)
    assert [node.free for node in nodes] == [0, 1]
    said = ours.ask(p.Jobs(), uid).reason
    assert said == ("" if all_of_them else "only your own jobs are shown")


def test_a_foreign_job_is_told_as_one_that_is_not_there_and_operators_see_it(
    daemon: Callable[..., Daemon],
) -> None:
    ours = daemon(*QUEUE, private=True)
    ours.settled()
    foreign, none = ours.ask(p.Explain("b"), ANN), ours.ask(p.Explain("nope"), ANN)
    assert foreign.reason.replace("'b'", "'nope'") == none.reason
    assert none.reason == "no job of yours with the id 'nope' is in the cluster's queue"
    assert ours.ask(p.Explain("b")).outcome == "accepted", "the daemon's own user is an operator"


def test_the_last_cycle_tells_a_user_of_the_own_jobs_decisions(daemon: Callable[..., Daemon]) -> None:
    ours = daemon(submitted("a", 1, "ann"), submitted("b", 1, "ben"), private=True, monitor=True)
    until(lambda: ours.cycles() >= 1, "the first cycle is over")
    told = ours.found(p.Cycle(), ANN)
    assert told.decisions == {"Start": 2} and [one.job for one in told.first] == ["a"]


# ---------------------------------------------------------------------- what is refused


def test_what_is_not_there_is_said_in_words(daemon: Callable[..., Daemon]) -> None:
    ours = daemon(*QUEUE)
    ours.settled()
    for question in (p.Jobs(pool="no"), p.Nodes(pool="no"), p.Bookings(pool="no")):
        reply = ours.ask(question)
        assert (reply.outcome, reply.reason) == ("unknown", "expected one of the pools pool; found 'no'")
    assert ours.ask(p.Explain("x")).reason == "no job with the id 'x' is in the cluster's queue"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b'{"request":"explain","job":""}\n', "length >= 1"),
        (b'{"request":"jobs","status":"lost"}\n', "matching regex"),
        (b'{"request":"jobs","count":501}\n', "<= 500"),
        (b'{"request":"jobs","first":-1}\n', ">= 0"),
        (b'{"request":"nodes","user":"ann"}\n', "unknown field `user`"),
    ],
)
def test_a_question_with_a_mistake_is_no_request(line: bytes, said: str) -> None:
    with pytest.raises(msgspec.DecodeError, match=said):
        p.read_request(line)


def test_a_question_that_cannot_be_answered_costs_neither_the_run_nor_the_others(
    daemon: Callable[..., Daemon],
) -> None:
    def breaks() -> Sequence[Outage]:
        raise RuntimeError("no such thing")

    ours = daemon(*QUEUE, outages=breaks)
    ours.settled()
    reply = ours.ask(p.Explain("a"))
    assert reply.outcome == "failed" and "no such thing" in reply.reason
    assert ours.ask(p.Pools()).outcome == "accepted"
    none = ours.ask(p.Datasets())
    assert (none.outcome, none.reason) == ("unknown", "no sites are configured")
    (problem,) = ours.scheduler.problems
    assert (problem.plugin, problem.hook) == ("headway", "explain") and "breaks" in problem.traceback


def test_a_daemon_that_ends_answers_the_questions_that_are_left() -> None:
    inbox = Inbox(lambda: None, REPORT, clock=time.time)
    future = inbox.ask(p.Pools(), Peer("ann"))
    inbox.close()
    assert future.result(0).outcome == "failed"


def test_questions_are_bounded_with_the_requests() -> None:
    inbox = Inbox(lambda: None, REPORT, clock=time.time)
    for _ in range(MAX_WAITING):
        inbox.ask(p.Pools(), Peer("ann"))
    assert inbox.ask(p.Unreserve("r"), Peer("ann")).result(0).outcome == "failed"
    assert inbox.ask(p.Pools(), Peer("ann")).result(0).outcome == "failed"


# ---------------------------------------------------------------------- no cycle is delayed


def test_a_question_makes_no_cycle_and_no_row_in_the_journal(daemon: Callable[..., Daemon]) -> None:
    ours = daemon(*QUEUE)
    ours.settled()
    ours.ask(p.Pools())
    cycles, waits = ours.cycles(), ours.cluster.waits
    for _ in range(20):
        ours.ask(p.Explain("b"))
    until(lambda: ours.cluster.waits > waits, "the engine waits again")
    assert ours.cycles() == cycles


def test_what_happens_while_questions_come_is_a_cycle_as_ever(daemon: Callable[..., Daemon]) -> None:
    ours = daemon(*QUEUE)
    ours.settled()
    cycles = ours.cycles()
    for number in range(5):
        ours.cluster.news.append(submitted(f"n{number}", 4, "ann"))
        ours.ask(p.Pools())
    until(lambda: len(ours.scheduler.state.jobs) == 8, "all have come")
    assert cycles < ours.cycles() <= cycles + 5


def test_a_request_that_comes_with_questions_gets_its_cycle(daemon: Callable[..., Daemon]) -> None:
    ours = daemon(*QUEUE)
    ours.settled()
    asking = threading.Thread(target=lambda: [ours.ask(p.Pools()) for _ in range(20)])
    asking.start()
    replies = [ask(ours.path, p.Unreserve("r"), timeout=HANG) for _ in range(5)]
    asking.join(HANG)
    assert {reply.outcome for reply in replies} == {"refused"}


def test_a_wake_up_that_is_due_is_kept_although_only_a_question_came() -> None:
    class Due:
        def answer_questions(self, scheduler: Scheduler) -> None: ...

        def was_woken_to_answer(self) -> bool:
            return True

    scheduler = Scheduler(ClusterDescription.flat(4), plugged(Easy()))
    engine = Engine(Cluster(), scheduler, requests=Due())  # type: ignore[arg-type]
    assert not engine._only_asked(1.0, []), "there was no cycle yet"
    scheduler.step(1.0, [])
    assert engine._only_asked(2.0, [])
    assert not engine._only_asked(2.0, [submitted("a", 1, "ann")])
    scheduler.state.wake_at(5.0, next(iter(scheduler.state.pools.values())).domain)
    assert engine._only_asked(4.0, []) and not engine._only_asked(5.0, [])


def test_before_the_first_cycle_a_question_waits() -> None:
    inbox = Inbox(lambda: None, REPORT, clock=time.time)
    scheduler = Scheduler(ClusterDescription.flat(4), plugged(Easy()))
    future = inbox.ask(p.Pools(), Peer("ann"))
    inbox.answer_questions(scheduler)
    assert not future.done()
    scheduler.step(0.0, [])
    inbox.answer_questions(scheduler)
    assert future.result(0).outcome == "accepted"


def test_a_crowd_of_questions_is_answered_in_parts() -> None:
    """Each takes 20 ms: after so many seconds the cluster is asked again what happened."""

    class Slow:
        @hookimpl
        def explain(self) -> str:
            time.sleep(0.02)
            return "slow"

    woken: list[None] = []
    inbox = Inbox(lambda: woken.append(None), REPORT, clock=time.time)
    scheduler = Scheduler(ClusterDescription.flat(1), plugged(Slow(), Easy()))
    scheduler.step(0.0, [submitted("a", 1, "ann"), submitted("b", 1, "ann")])
    futures = [inbox.ask(p.Explain("b"), Peer("ann", True)) for _ in range(50)]
    inbox.was_woken_to_answer()
    woken.clear()
    inbox.answer_questions(scheduler)
    answered = sum(future.done() for future in futures)
    assert 1 <= answered <= math.ceil(ANSWERING / 0.02), answered
    assert woken and inbox.was_woken_to_answer(), "the rest follows after the next look"
    while not all(future.done() for future in futures):
        inbox.answer_questions(scheduler)


def test_a_client_that_asks_a_daemon_that_is_not_there_waits_no_longer_than_it_says(tmp_path: Path) -> None:
    began = time.monotonic()
    with pytest.raises(Failure, match="no daemon answers"):
        ask(tmp_path / "none.sock", p.Pools(), patience=0.2)
    assert time.monotonic() - began < 2.5


def test_how_good_plans_were_is_counted_as_they_are_made(daemon: Callable[..., Daemon]) -> None:
    ours = daemon(*QUEUE, plans=LivePlans("cluster", "drive", carried_out=True))
    ours.settled()
    found = ours.found(p.Starts())
    assert (found.cluster, found.since, found.until) == ("cluster", 1.0, 2.0)
    assert (found.starts["drive"].planned, found.starts["drive"].began) == (1, 1)


class Weather:
    """Answers one question, fails at another, and refuses a third."""

    @hookimpl
    def inform(self, question: Question, state: State) -> Any:
        if question.name == "broken":
            raise ValueError("no")
        if question.name == "refused":
            raise UserError("expected a place")
        known = [job.id for job in state.jobs.values() if question.may_see(job.user)]
        weather = {"text": question.text, "jobs": known, "never": math.inf}
        return {"weather": weather, "long": "x" * p.MAX_REPLY}.get(question.name)


def test_a_plugin_answers_a_question_about_what_the_user_may_see(daemon: Any) -> None:
    one = daemon(*QUEUE, plugins=[Weather(), Easy(), FirstFit()], private=True)
    one.settled()
    cycles = one.cycles()
    for uid, jobs, remark in (
        (None, ["a", "b", "c"], ""), (ANN, ["a", "c"], "only your own jobs are shown")
    ):  # fmt: skip
        reply = one.ask(p.PluginQuestion("weather", "here"), uid)
        assert (reply.outcome, reply.reason) == ("accepted", remark)
        # JSON has no infinity.
        assert msgspec.json.decode(reply.found.answer) == {"text": "here", "jobs": jobs, "never": None}
    assert one.cycles() == cycles


@pytest.mark.parametrize(
    ("name", "outcome", "reason"),
    [
        ("nothing", "unknown", "no enabled plugin answers the question 'nothing' (see `headway plugins`)"),
        ("refused", "unknown", "expected a place"),
        ("broken", "failed", "plugin weather failed at the question 'broken'"),
        ("long", "failed", f"the answer has more than {p.MAX_REPLY} bytes"),
    ],
)
def test_a_question_that_no_plugin_can_answer_costs_its_answer(
    daemon: Any, name: str, outcome: str, reason: str
) -> None:
    one = daemon(*QUEUE, plugins=[Weather(), Easy(), FirstFit()])
    one.settled()
    reply = one.ask(p.PluginQuestion(name))
    assert (reply.outcome, reply.reason) == (outcome, reason)
    assert one.ask(p.PluginQuestion("weather")).outcome == "accepted"


@pytest.mark.parametrize("flat", [False, True])
def test_bookings_that_a_policy_owes_are_made_for_a_moment_and_the_rest_when_asked_again(
    flat: bool,
) -> None:
    """Conservative backfilling books every job, and of thousands a question has no more made than it can."""
    cluster = ClusterDescription.flat(4) if flat else node_cluster(*alike(2, 2))
    scheduler = Scheduler(cluster, plugged(Conservative(), *([] if flat else [FirstFit()])))
    scheduler.step(0.0, [submitted("runs", 3, "ann")])
    waiting = [JobSubmitted(0.0, described(f"w{number}", 3, 5000 + number)) for number in range(30)]
    scheduler.step(0.0, [*waiting, JobSubmitted(0.0, described("long", 1, 50000))])
    view, root = scheduler.views["pool"], Peer("root", True)
    owed = view.owed
    assert owed >= 20
    answers = Answers()
    answers.plans_over_time._owed_each = 1.0
    answers._booking = SpareTime(most=-1.0)
    found = answers.reply(p.Explain("w20"), root, scheduler).found
    assert isinstance(found, p.Explained) and found.job is not None and found.job.planned_start is None
    assert any("is not worked out yet: that is done from the head" in line for line in found.sentences)
    reply = answers.reply(p.Bookings(), root, scheduler)
    assert (reply.outcome, reply.reason) == ("accepted", f"{owed} more bookings are not worked out")
    page = answers.reply(p.Jobs(), root, scheduler).found
    assert isinstance(page, p.JobPage) and len(page.jobs) == 32
    assert view.owed == owed, "nothing was made"
    answers._booking = SpareTime(most=10.0)
    found = answers.reply(p.Explain("w9"), root, scheduler).found
    assert isinstance(found, p.Explained) and found.job is not None and found.job.planned_start is not None
    assert found.plan_history is not None and found.plan_history.first == found.job.planned_start
    assert list(found.sentences) == explain(scheduler, "w9", plain_clock)
    assert answers.reply(p.Bookings(), root, scheduler).reason == ""
