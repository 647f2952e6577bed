"""Which jobs are before a job, and what would let it start now: tried on the plan, which stays as it is."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest
from building import alike, described, node_cluster, plugged

from headway.events import Event, JobHeld, JobStarted, JobSubmitted
from headway.hookspecs import hookimpl
from headway.inquiry import Inquiry, explain
from headway.inquiry import sooner as module
from headway.inquiry.before import before, before_in_words
from headway.inquiry.inquiry import first_served, served_order
from headway.inquiry.jobs import Wanted, job_page, job_report
from headway.inquiry.outlook import sooner_line
from headway.inquiry.planned import PlannedStarts
from headway.inquiry.reports import BeforeReport, SoonerReport
from headway.inquiry.sooner import sooner
from headway.model import ClusterDescription
from headway.scheduler import Scheduler, plain_clock
from headway.state import Job
from headway_plugins.placement.first_fit import FirstFit
from headway_plugins.policies.conservative import Conservative
from headway_plugins.policies.easy import Easy
from headway_plugins.policies.fcfs import Fcfs

POLICIES = [Easy, Conservative]


def submitted(job_id: str, processors: int, limit: float = 1000, **more: Any) -> JobSubmitted:
    return JobSubmitted(0.0, described(job_id, processors, limit, **more))


def stepped(*jobs: JobSubmitted, policy: Any = Easy, cluster: ClusterDescription | None = None) -> Scheduler:
    """A scheduler of four nodes of two processors, after jobs came one after the other and started."""
    scheduler = Scheduler(cluster or node_cluster(*alike(4, 2)), plugged(policy(), FirstFit()))
    for job in jobs:
        decisions = scheduler.step(0.0, [job])
        begun: list[Event] = [JobStarted(0.0, one.job_id, one.placement) for one in decisions]  # type: ignore[attr-defined]
        scheduler.step(0.0, begun)
    return scheduler


def of(scheduler: Scheduler, job_id: str) -> list[SoonerReport]:
    return sooner(Inquiry(scheduler), scheduler.state.jobs[job_id])


#: Six of eight processors are busy until 1000; a job for all waits for that, and others behind it.
BUSY = (submitted("runs", 6), submitted("head", 8))


@pytest.mark.parametrize("policy", POLICIES)
def test_a_shorter_limit_that_ends_before_the_first_booking(policy: Any) -> None:
    scheduler = stepped(*BUSY, submitted("long", 2, 5000), policy=policy)
    # 1000 s are 16 whole minutes and more.
    assert of(scheduler, "long") == [SoonerReport("limit", limit=960.0)]


@pytest.mark.parametrize("policy", POLICIES)
def test_fewer_nodes_or_processors(policy: Any) -> None:
    few = (submitted("other", 2, 500), submitted("wide", 4, 400), submitted("nodes", 8, 400, nodes=4))
    scheduler = stepped(*BUSY[:1], submitted("head", 8), *few, policy=policy)
    assert of(scheduler, "wide") == [], "job other has the two processors"
    scheduler = stepped(*BUSY, *few[1:], submitted("long", 2, 5000), policy=policy)
    assert of(scheduler, "wide") == [SoonerReport("size", processors=2)]
    assert of(scheduler, "nodes") == [SoonerReport("size", nodes=1, processors=2)]


@pytest.mark.parametrize("policy", [*POLICIES, Fcfs])
def test_the_first_of_the_queue_would_start_before_anything_is_booked(policy: Any) -> None:
    scheduler = stepped(*BUSY[:1], submitted("wide", 4, 500), policy=policy)
    assert of(scheduler, "wide") == [SoonerReport("size", processors=2)]


def test_another_pool_feature_or_resource() -> None:
    others = [msgspec.structs.replace(node, name=f"m{at}") for at, node in
              enumerate(alike(1, 2, gres=(("gpu:b", 1),), pools=("pool",)))]  # fmt: skip
    elsewhere = [msgspec.structs.replace(node, name="o") for node in alike(1, 2, pools=("other",))]
    nodes = alike(2, 2, features=("fast",), gres=(("gpu:a", 1),), pools=("pool",))
    scheduler = stepped(
        submitted("runs", 4, pool="pool", features=("fast",)),
        submitted("head", 6, pool="pool"),
        submitted("fast", 2, 500, pool="pool", features=("fast",)),
        submitted("gpu", 1, 500, pool="pool", gres_per_node=(("gpu:a", 1),)),
        submitted("long", 2, 5000, pool="pool"),
        cluster=node_cluster(*nodes, *others, *elsewhere, pools=("pool", "other")),
    )
    assert of(scheduler, "fast") == [SoonerReport("feature", feature="fast")]
    assert of(scheduler, "gpu") == [SoonerReport("resource", resource="gpu:b")]
    assert of(scheduler, "long") == [SoonerReport("limit", limit=960.0), SoonerReport("pool", pool="other")]


def test_a_policy_without_backfilling_is_not_spoken_for() -> None:
    scheduler = stepped(*BUSY, submitted("long", 2, 5000), policy=Fcfs)
    assert of(scheduler, "long") == [] and explain(scheduler, "long", plain_clock)


def test_nothing_is_said_of_jobs_that_run_or_wait_outside_of_the_queue() -> None:
    scheduler = stepped(*BUSY, submitted("held", 2, 5000, held=True))
    assert of(scheduler, "held") == of(scheduler, "runs") == []


def test_no_further_trial_is_begun_once_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    scheduler = stepped(*BUSY, submitted("long", 2, 5000))
    monkeypatch.setattr(module, "SECONDS", 0.0)
    assert of(scheduler, "long") == []


class Drawing:
    """Places jobs by drawing lots, as a plugin may."""

    @hookimpl
    def place(self, job: Job, offer: Any, view: Any) -> Any:
        order = view.rng.permutation(offer.feasible)
        return offer.take(order)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("seed", range(8))
def test_what_is_told_holds_and_asking_changes_nothing(policy: Any, seed: int) -> None:
    """A job that is submitted anew in the way that is told starts in the next cycle, and no planned start
    moves; a scheduler that was asked decides as one that was not."""
    draw = random.Random(seed)
    jobs = [
        submitted(str(number), draw.randint(1, 8), draw.choice([300, 600, 1000, 3000]), nodes=0)
        for number in range(12)
    ]
    asked, other = stepped(*jobs, policy=policy), stepped(*jobs, policy=policy)
    plans = PlannedStarts().after_cycle(asked)
    found = {
        job.id: sooner(Inquiry(asked), job) for domain in asked.state.domains.values() for job in domain.queue
    }
    assert PlannedStarts().after_cycle(asked) == plans
    later = [submitted("last", 1, 60)]
    assert asked.step(1.0, list(later)) == other.step(1.0, list(later))
    for job_id, helps in found.items():
        for help_ in helps:
            changed = [
                submitted(
                    one.job.id,
                    help_.processors if help_.change == "size" else one.job.request.processors,
                    help_.limit if help_.limit is not None else one.job.request.walltime,
                )
                if one.job.id == job_id
                else one
                for one in jobs
            ]
            # Where it stood before its turn it took nothing that the plan leaves to others.
            trial = stepped(*changed, policy=policy)
            assert trial.state.jobs[job_id].start_time == 0.0, (job_id, help_)


def test_draws_of_a_placement_are_as_if_nobody_had_asked() -> None:
    def made() -> Scheduler:
        scheduler = Scheduler(node_cluster(*alike(4, 2)), plugged(Easy(), Drawing()), seed=3)
        scheduler.step(0.0, [submitted("runs", 6)])
        scheduler.step(0.0, [*BUSY[1:], submitted("long", 2, 5000)])
        return scheduler

    asked, other = made(), made()
    assert of(asked, "long")
    job_report(Inquiry(asked), asked.state.jobs["head"])
    last = submitted("last", 1, 60)
    assert asked.step(1.0, [last]) == other.step(1.0, [last])


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ([], ""),
        ([SoonerReport("limit", limit=960.0)],
         "By this plan it would fit now with a limit of at most 16 min."),
        ([SoonerReport("size", nodes=1, processors=2), SoonerReport("size", processors=3)],
         "By this plan it would fit now on 1 node (2 processors), or on 3 processors."),
        ([SoonerReport("feature", feature="f"), SoonerReport("resource", resource="gpu:b"),
          SoonerReport("pool", pool="x")],
         "By this plan it would fit now without the feature 'f', or with 'gpu:b' instead, or in pool 'x', if "
         "its user may use that."),
    ],
)  # fmt: skip
def test_it_is_said_in_words(found: list[SoonerReport], said: str) -> None:
    assert sooner_line(found) == said


# ---------------------------------------------------------------------- before it


def test_the_jobs_before_a_job_are_counted_and_the_first_are_named() -> None:
    scheduler = stepped(*BUSY, *(submitted(f"j{number}", 8) for number in range(9)))
    jobs, inquiry = scheduler.state.jobs, Inquiry(scheduler)
    assert before(inquiry, jobs["head"]) == BeforeReport(0) and before(inquiry, jobs["runs"]) is None
    assert before(inquiry, jobs["j0"]) == BeforeReport(1, 8, ("head",))
    assert before(inquiry, jobs["j8"]) == BeforeReport(9, 72, ("head", "j0", "j1", "j2", "j3"))
    assert before_in_words(inquiry, jobs["j0"]) == [
        "1 job is before it in the queue, for 8 processors together: head."
    ]
    assert before_in_words(inquiry, jobs["j8"]) == [
        "9 jobs are before it in the queue, for 72 processors together: head, j0, j1, j2, j3 and others."
    ]


def test_other_users_jobs_are_only_counted_where_they_are_private() -> None:
    mine = [submitted(f"j{number}", 8, user="ann" if number % 2 else "ben") for number in range(6)]
    scheduler = stepped(*BUSY, *mine)
    job = scheduler.state.jobs["j5"]

    def seen_by(user: str, *, listed: bool = False) -> Inquiry:
        theirs = [other for other in scheduler.state.jobs.values() if other.user == user]
        return Inquiry(
            scheduler, sees=lambda other: other.user == user, seen=theirs[::-1] if listed else None
        )

    for user in ("ann", "ben", "cleo"):
        for other in scheduler.state.jobs.values():
            assert before(seen_by(user), other) == before(seen_by(user, listed=True), other)
    assert before(seen_by("ann"), job) == BeforeReport(6, 48, ("j1", "j3"))
    said = "6 jobs are before it in the queue, for 48 processors together"
    assert before_in_words(seen_by("ann"), job) == [f"{said}: among them your jobs j1, j3."]
    assert before_in_words(seen_by("cleo"), job) == [f"{said}."]


def test_sums_of_a_queue_serve_all_questions_after_a_cycle_in_any_order() -> None:
    scheduler = stepped(*BUSY, *(submitted(f"j{number}", 1 + number % 7) for number in range(20)))
    jobs, inquiry = scheduler.state.domains["pool"].queue, Inquiry(scheduler)
    for place in (9, 3, 0, len(jobs) - 1, 12):
        found = before(inquiry, jobs[place])
        assert found is not None
        assert (found.jobs, found.processors) == (place, sum(job.processors for job in jobs[:place]))


# ---------------------------------------------------------------------- the head, and orders of plugins


def test_a_head_that_is_not_booked_has_its_earliest_start() -> None:
    """EASY books it once a job could be backfilled."""
    scheduler = stepped(submitted("runs", 8), submitted("head", 4), submitted("next", 4))
    assert not scheduler.views["pool"].bookings
    report = job_report(Inquiry(scheduler), scheduler.state.jobs["head"])
    assert (report.planned_start, len(report.planned_placement)) == (1000.0, 2)
    assert PlannedStarts().after_cycle(scheduler) == {"head": 1000.0}
    assert job_report(Inquiry(scheduler), scheduler.state.jobs["next"]).planned_start is None
    assert "As the first of the queue it can start at 1000, or earlier." in explain(
        scheduler, "head", plain_clock
    )


class LargestFirst:
    """Serves the largest job first, in each cycle anew."""

    @hookimpl
    def order_queue(self, jobs: Any) -> Any:
        return sorted(jobs, key=lambda job: -job.processors)


def test_the_order_is_that_in_which_the_last_cycle_served_the_jobs() -> None:
    scheduler = Scheduler(node_cluster(*alike(4, 2)), plugged(LargestFirst(), Easy(), FirstFit()))
    events = [submitted("runs", 8), submitted("a", 5), submitted("b", 6), submitted("c", 7)]
    (start,) = scheduler.step(0.0, events)
    scheduler.step(1.0, [JobStarted(1.0, "runs", start.placement)])  # type: ignore[attr-defined]
    inquiry = Inquiry(scheduler)
    page = job_page(inquiry, Wanted(status="pending"), 0, 10)
    assert [(job.id, job.position) for job in page.jobs] == [("c", 1), ("b", 2), ("a", 3)]
    assert before(inquiry, scheduler.state.jobs["a"]) == BeforeReport(2, 13, ("c", "b"))
    assert page.jobs[0].planned_start == 1001.0
    assert job_report(inquiry, scheduler.state.jobs["b"]).position == 2
    said = explain(scheduler, "a", plain_clock)
    assert any(line.startswith("It is number 3 of 3 in the queue") for line in said)
    (domain,) = scheduler.state.domains.values()
    assert first_served(scheduler, domain).id == "c"
    # What left the queue since is passed over.
    scheduler.follow(2.0, [JobHeld(2.0, "c")])
    assert first_served(scheduler, domain) is served_order(scheduler, domain)[0]
    assert first_served(scheduler, domain).id == "b"


@pytest.mark.parametrize("seed", range(4))
def test_the_order_in_an_answer_is_that_of_the_jobs_numbers_however_they_were_listed(seed: int) -> None:
    """After a restart a batch system may list what is left of a begun array, or came back, elsewhere."""
    names = ["9_2", "9_10", "10+1", "11_1", "11_2", "12[3].server", "12[10].server", "13"]
    events: list[Event] = []
    for prefix, more in (("1", {"held": True}), ("2", {}), ("3", {})):
        events += [submitted(prefix + name, 8 if prefix == "2" else 1, 9000, **more) for name in names]
    mixed = random.Random(seed).sample(events, len(events))
    numbered = msgspec.structs.replace(node_cluster(*alike(4, 2)), numbered=True)

    def told(listed: list[Event]) -> list[str]:
        scheduler = Scheduler(numbered, plugged(Fcfs(), FirstFit()))
        runs = [JobStarted(0.0, f"3{name}", ((f"n{at // 2}", 1),)) for at, name in enumerate(names)]
        scheduler.step(0.0, [*listed, *runs])
        return [job.id for job in job_page(Inquiry(scheduler), Wanted(), 0, 100).jobs]

    assert told(mixed) == [prefix + name for prefix in "213" for name in names]
