"""With ``service.private`` no answer names another user, another user's job, or what becomes of it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import msgspec
import pytest
from building import alike, described, node_cluster, plugged
from waiting import HANG

from headway.adapter import Oddity, Outcome
from headway.decisions import Start
from headway.events import Event, JobStarted, JobSubmitted
from headway.hookspecs import hookimpl
from headway.inquiry.cycles import Cycle
from headway.inquiry.inquiry import HIDDEN, Inquiry, seen_by
from headway.plugins import Problem
from headway.scheduler import Scheduler
from headway.service import Inbox, Peer
from headway.service import protocol as p
from headway.service.answers import Answers
from headway.service.snapshots import Snapshots
from headway.state import Job
from headway_plugins.placement.first_fit import FirstFit
from headway_plugins.policies.conservative import Conservative
from headway_plugins.policies.easy import Easy
from headway_plugins.policies.fcfs import Fcfs

ANN, ROOT = Peer("ann"), Peer("root", operator=True)
#: No number in a sentence is one of these.
FOREIGN = ("777001", "777002", "777003", "ben")
QUESTIONS: tuple[Any, ...] = (
    p.Jobs(), p.Jobs(mine=True), p.Jobs(user="ben"), p.Explain("12"), p.Explain("11"), p.Nodes(),
    p.Bookings(), p.Cycle(), p.Pools(), p.Holes(), p.Reservations(),
)  # fmt: skip


class Gossip:
    """Names the jobs of others wherever a plugin can say something."""

    @hookimpl
    def explain(self, job: Job, question: str) -> str | None:
        return "Behind job 777002, and job 777001." if question == "waiting" else None


def made(*plugins: Any) -> Scheduler:
    """Jobs of ben run, and wait first; ann's job 11 runs, and 12 waits behind ben's."""
    scheduler = Scheduler(node_cluster(*alike(4, 4)), plugged(*plugins, FirstFit()))
    _step(scheduler, 0.0, submitted("777001", 9, "ben", 900), submitted("11", 1, "ann", 90000))
    _step(scheduler, 1.0, submitted("777002", 16, "ben", 60))
    _step(scheduler, 2.0, submitted("777003", 14, "ben", 60), submitted("12", 2, "ann", 6000))
    _step(scheduler, 3.0, submitted("13", 16, "ann", 6000))
    return scheduler


def _step(scheduler: Scheduler, now: float, *events: Event) -> None:
    starts = [one for one in scheduler.step(now, list(events)) if isinstance(one, Start)]
    if starts:
        scheduler.step(now, [JobStarted(now, one.job_id, one.placement) for one in starts])


def submitted(job_id: str, processors: int, user: str, seconds: float) -> JobSubmitted:
    return JobSubmitted(0.0, described(job_id, processors, seconds, user=user))


def told(answers: Answers, scheduler: Scheduler, peer: Peer) -> str:
    """All answers to a user's questions, as they go over the socket."""
    return "".join(p.write(answers.reply(one, peer, scheduler)).decode() for one in QUESTIONS)


@pytest.mark.parametrize("policy", [Easy, Conservative, Fcfs])
@pytest.mark.parametrize("gossip", [(), (Gossip(),)], ids=["", "gossip"])
def test_no_answer_names_another_users_job(policy: type, gossip: tuple[Any, ...]) -> None:
    scheduler, answers = made(*gossip, policy()), Answers(private=True)
    decided = Start("12", (), reason="backfilled: ends by 900, when job 777002 is to start.")
    answers.note(Cycle(3.0, [], [decided], [Outcome(False, "beside job 777001")]), scheduler)
    mine = told(answers, scheduler, ANN)
    assert not [name for name in FOREIGN if name in mine]
    assert '"12"' in mine and HIDDEN in mine
    assert "777002" in told(answers, scheduler, ROOT)


@pytest.fixture
def trials() -> Iterator[Snapshots]:
    made = Snapshots(tell_time=lambda time: f"<{time:.0f}>")
    yield made
    made.close()


@pytest.mark.parametrize("policy", [Easy, Conservative, Fcfs])
def test_a_trial_names_no_other_users_job_and_tells_times_as_answers_do(
    policy: type, trials: Snapshots
) -> None:
    scheduler = made(policy())

    def asked(sees_all: bool) -> str:
        future: Future[p.Reply] = Future()
        trials.ask(p.When(processors=3, seconds=5000.0), ANN, scheduler, future, sees_all)
        reply = future.result(HANG)
        assert reply.outcome == "accepted", reply
        return p.write(reply).decode()

    mine = asked(False)
    assert not [name for name in FOREIGN if name in mine]
    if policy is not Fcfs:
        assert "777" in asked(True)
    if policy is Conservative:
        assert "kept for it from <" in mine


def test_sentences_of_plugins_are_told_without_jobs_that_are_not_seen() -> None:
    inquiry = Inquiry(made(Easy()), sees=seen_by("ann"))
    assert inquiry.told("for dedicated job 777001, and job 12.") == f"for dedicated {HIDDEN}, and job 12."
    assert inquiry.told("job 777001") == HIDDEN and inquiry.told("Job 777009: none") == "Job 777009: none"
    assert Inquiry(inquiry.scheduler).told("job 777001") == "job 777001"


def test_the_status_names_neither_other_users_nor_their_jobs() -> None:
    report = p.Report("drive", "cluster", 0, 5.0)
    odd = Oddity("c", "jobs that started without headway", 2, 9.0, "job 777001 of ben on node1")

    def status(private: bool, peer: Peer) -> p.Report:
        inbox = Inbox(
            lambda: None, report, clock=time.time, oddities=lambda: (odd,), answers=Answers(private=private)
        )
        for user in ("ann", "ben", "ben"):
            inbox.limited(user)
        inbox.failed(Problem("easy", "propose_starts", "job 777002 of ben", ""))
        found = inbox.ask(p.Status(), peer).result(0).status
        assert found is not None
        return found

    mine = status(True, ANN)
    assert mine.limited == {"ann": 1} and mine.problems_in_all == 1
    assert [(one.what, one.count) for one in mine.oddities] == [(odd.what, 2)]
    assert not [name for name in FOREIGN if name in msgspec.json.encode(mine).decode()]
    for open_to in (status(True, ROOT), status(False, ANN)):
        assert open_to.limited == {"ben": 2, "ann": 1} and open_to.oddities[0].detail == odd.detail
        assert [text for _, text in open_to.problems] == ["easy: propose_starts: job 777002 of ben"]
