"""Answers that are made in a short time, however many jobs wait."""

from __future__ import annotations

import random
from contextlib import suppress

import pytest
from building import alike, described, node_cluster, plugged
from msgspec.structs import replace

from headway.decisions import Start
from headway.events import Event, JobChanged, JobEnded, JobStarted, JobSubmitted
from headway.inquiry.cycles import Cycle
from headway.inquiry.reports import BeforeReport, BookingPage, JobPage, JobReport
from headway.inquiry.spare_time import SpareTime
from headway.model import ClusterDescription
from headway.scheduler import Scheduler
from headway.service import protocol as p
from headway.service.answers import Answers
from headway.service.jobs_of_users import JobsOfUsers
from headway.service.peer import Peer
from headway.view.node_turns import NodeTurns
from headway.view.owed import Enough, short_of_time
from headway_plugins.placement.first_fit import FirstFit
from headway_plugins.policies.conservative import Conservative
from headway_plugins.policies.easy import Easy

ROOT, ANN = Peer("root", True), Peer("u1")
FLAT = ClusterDescription.flat(32)
NODES = node_cluster(*alike(8, 4))


def waiting(cluster: ClusterDescription, jobs: int = 60) -> Scheduler:
    """Of so many jobs most wait, and the policy owes bookings."""
    draw = random.Random(4)
    scheduler = Scheduler(cluster, plugged(Conservative(), FirstFit()))
    sizes, lengths = [1, 2, 4, 8, 16, 31], [30, 70, 400]
    events: list[Event] = [
        JobSubmitted(
            0.0, described(f"j{n}", draw.choice(sizes), draw.choice(lengths), n / 8, user=f"u{n % 5}")
        )
        for n in range(jobs)
    ]
    made = scheduler.step(10.0, events)
    scheduler.step(10.0, [JobStarted(10.0, d.job_id, d.placement) for d in made if isinstance(d, Start)])
    return scheduler


@pytest.mark.parametrize("cluster", [FLAT, NODES])
@pytest.mark.parametrize("seconds", [0.0, 0.0005, 10.0])
def test_bookings_that_are_made_in_a_short_time_are_those_that_are_made_in_the_end(
    cluster: ClusterDescription, seconds: float
) -> None:
    whole = {b.job.id: (b.start, b.placement, b.extra) for b in waiting(cluster).views["pool"].bookings}
    scheduler = waiting(cluster)
    view = scheduler.views["pool"]
    owed = [view.owed]
    for _ in range(3):
        with suppress(Enough):
            view.make_owed(short_of_time(seconds))
        owed.append(view.owed)
    assert owed == sorted(owed, reverse=True)
    if not seconds:
        assert owed[-1] == owed[0] > 0
    assert {b.job.id: (b.start, b.placement, b.extra) for b in view.bookings} == whole


def test_an_answer_does_not_wait_for_all_bookings() -> None:
    scheduler, answers = waiting(FLAT, 5000), Answers()
    answers._booking = SpareTime(share=0.0, most=0.0005)
    assert answers.reply(p.Jobs(count=500), ROOT, scheduler).outcome == "accepted"
    turns = scheduler.views["pool"]._turns
    assert turns is not None
    assert turns.owes


def test_spare_time_is_a_share_of_all_time() -> None:
    now = 0.0
    spare = SpareTime(share=0.5, most=0.002, clock=lambda: now)
    for at, most in ((0.0, 0.002), (0.0, 0.0), (0.001, 0.0005), (100.0, 0.002)):
        now = at
        check, spent = spare.check(), 0
        with pytest.raises(Enough):
            while True:
                check()
                spent += 1
                sum(range(2000))
        assert bool(spent) == bool(most)


class Random:
    """Jobs that come, change and go."""

    def __init__(self) -> None:
        self.draw = random.Random(3)
        self.scheduler = Scheduler(FLAT, plugged(Easy()))
        self.index = JobsOfUsers()
        self.made = 0

    def cycle(self) -> None:
        now, jobs, events = float(self.made), list(self.scheduler.state.jobs), list[Event]()
        if jobs and self.draw.random() < 0.4:
            events.append(JobEnded(now, self.draw.choice(jobs)))
        elif jobs and self.draw.random() < 0.3:
            name = self.draw.choice(jobs)
            new = described(name, 2, 50, user=f"u{self.draw.randrange(3)}")
            events.append(JobChanged(now, new))
        self.made += 1
        user = f"u{self.draw.randrange(3)}"
        events.append(JobSubmitted(now, described(f"j{self.made}", 8, 100, now, user=user)))
        made = self.scheduler.step(now, events)
        self.index.note(events, self.scheduler.state)
        started: list[Event] = [JobStarted(now, one.job_id) for one in made if isinstance(one, Start)]
        self.scheduler.step(now, started)
        self.index.note(started, self.scheduler.state)


@pytest.mark.parametrize("first", [0, 20])
def test_the_jobs_of_a_user_are_known_without_a_look_at_all_jobs(first: int) -> None:
    run = Random()
    for number in range(80):
        run.cycle()
        state = run.scheduler.state
        if number >= first:
            for user in ("u0", "u1", "u2", "nobody"):
                mine = {job for job in state.jobs.values() if job.user == user}
                assert set(run.index.of(state, user)) == mine


def _without_names(jobs: tuple[JobReport, ...]) -> list[JobReport]:
    return [replace(job, why="", waits_for=()) for job in jobs]


@pytest.mark.parametrize("status", ["", "pending", "running"])
@pytest.mark.parametrize("private", [False, True])
def test_a_users_page_is_the_page_of_all_jobs_without_the_others(private: bool, status: str) -> None:
    scheduler, answers = waiting(NODES), Answers(private=private)
    answers.note(Cycle(10.0, (), (), ()), scheduler)
    every = answers.reply(p.Jobs(status=status, count=500), ROOT, scheduler).found
    mine = answers.reply(p.Jobs(status=status, user="u1", count=500), ANN, scheduler).found
    assert isinstance(every, JobPage)
    assert isinstance(mine, JobPage)
    theirs = tuple(job for job in every.jobs if job.user == "u1")
    if private:
        # Why a job waits names no other users' jobs.
        assert _without_names(mine.jobs) == _without_names(theirs)
    else:
        assert mine.jobs == theirs
    assert mine.jobs
    if private:
        assert answers.reply(p.Jobs(status=status, count=500), ANN, scheduler).found == mine


@pytest.mark.parametrize("private", [False, True])
def test_explaining_counts_the_jobs_before_anew_after_each_cycle(private: bool) -> None:
    scheduler, answers = waiting(FLAT), Answers(private=private)
    for now in range(11, 16):
        queue = scheduler.state.domains["pool"].queue
        for peer in (ANN, ROOT):
            for place, job in enumerate(queue):
                reply = answers.reply(p.Explain(job.id), peer, scheduler)
                if job.user != "u1" and private and peer is ANN:
                    assert reply.outcome == "unknown"
                    continue
                assert isinstance(reply.found, p.Explained)
                told, seen = reply.found.before, [job.id for job in queue[:place]]
                if private and peer is ANN:
                    seen = [job.id for job in queue[:place] if job.user == "u1"]
                processors = sum(job.processors for job in queue[:place])
                assert told == BeforeReport(place, processors, tuple(seen[:5]))
        running = scheduler.views["pool"].running
        events: list[Event] = [JobEnded(float(now), running[0][3].id)]
        made = scheduler.step(float(now), events)
        answers.note(Cycle(float(now), events, (), ()), scheduler)
        started: list[Event] = [
            JobStarted(float(now), one.job_id, one.placement) for one in made if isinstance(one, Start)
        ]
        scheduler.step(float(now), started)
        answers.note(Cycle(float(now), started, (), ()), scheduler)


def test_where_no_booking_is_made_for_an_answer_it_is_not_said_that_asking_again_helps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(NodeTurns, "is_quick", False)
    scheduler, answers = waiting(NODES), Answers()
    last = scheduler.state.domains["pool"].queue[-1]
    found = answers.reply(p.Explain(last.id), ROOT, scheduler).found
    assert isinstance(found, p.Explained)
    assert [line for line in found.sentences if "not worked out: on so many nodes" in line]
    booked = answers.reply(p.Bookings(), ROOT, scheduler)
    made = len(scheduler.views["pool"].made_bookings)
    assert isinstance(booked.found, BookingPage) and booked.outcome == "accepted"
    assert len(booked.found.bookings) == made and booked.found.owed == scheduler.views["pool"].owed > 0
    assert booked.reason == f"{booked.found.owed} more bookings are not worked out"
    assert "again" not in " ".join([*found.sentences, booked.reason])
