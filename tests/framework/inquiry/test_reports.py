"""What is told of jobs, pools, nodes, bookings and a cycle, of schedulers in known states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from building import alike, described, node_cluster, plugged

from headway.adapter import Outcome
from headway.decisions import Decision, Start
from headway.events import (
    DatasetCopied,
    DatasetCopying,
    Event,
    JobStarted,
    JobSubmitted,
    JobSuspended,
    NodeDown,
    ReservationMade,
)
from headway.hookspecs import hookimpl
from headway.inquiry import Inquiry, explain
from headway.inquiry.bookings import booking_page
from headway.inquiry.cycles import Cycle, cycle_report
from headway.inquiry.datasets import dataset_list
from headway.inquiry.jobs import Wanted, job_page, job_report
from headway.inquiry.nodes import node_page
from headway.inquiry.pools import pool_list
from headway.inquiry.reports import (
    CopyReport,
    DatasetList,
    DatasetReport,
    DecisionReport,
    JobReport,
    ReplicaReport,
    StoreReport,
)
from headway.inquiry.waiting import CAUSES
from headway.model import ClusterDescription, Dependency, NodeDescription, PoolDescription, Reservation
from headway.model.sites import Dataset, Link, Site, Sites, Store
from headway.scheduler import Scheduler, plain_clock
from headway.state import Job
from headway.state.reasons import REASONS
from headway_plugins.placement.first_fit import FirstFit
from headway_plugins.policies.conservative import Conservative
from headway_plugins.policies.easy import Easy
from headway_plugins.policies.fcfs import Fcfs

FOUR = ClusterDescription.flat(4)
TWO = node_cluster(*alike(2, 2))


def submitted(job_id: str, processors: int = 1, estimate: float = 100, **more: Any) -> JobSubmitted:
    return JobSubmitted(0.0, described(job_id, processors, estimate, **more))


def after(
    cluster: ClusterDescription, plugins: Sequence[Any], *events: Event, now: float = 0.0, **more: Any
) -> Scheduler:
    """A scheduler after a step with these events; its starts are confirmed."""
    scheduler = Scheduler(cluster, plugged(*plugins), **more)
    starts = [one for one in scheduler.step(now, events) if isinstance(one, Start)]
    scheduler.step(now, [JobStarted(now, one.job_id, one.placement) for one in starts])
    return scheduler


def report(scheduler: Scheduler, job_id: str) -> JobReport:
    return job_report(Inquiry(scheduler), scheduler.state.jobs[job_id])


# ---------------------------------------------------------------------- jobs


def test_a_running_job_says_where_it_is_and_until_when() -> None:
    cluster = node_cluster(*alike(2, 2))
    scheduler = after(cluster, [Easy(), FirstFit()], submitted("a", 3, 100, user="ann", account="phys"))
    told = report(scheduler, "a")
    assert (told.status, told.user, told.account, told.pool) == ("running", "ann", "phys", "pool")
    assert (told.started, told.expected_end, told.limit) == (0.0, 100.0, 100.0)
    assert sum(count for _, count in told.placement) == 3
    assert (told.why, told.waits_because, told.position, told.planned_start) == ("", "", None, None)


def test_the_first_of_the_queue_is_told_its_planned_start_and_the_job_that_it_waits_for() -> None:
    scheduler = after(FOUR, [Easy()], submitted("a", 3), submitted("b", 4), submitted("c", 1, 500))
    told = report(scheduler, "b")
    assert (told.status, told.position, told.queue_length) == ("pending", 1, 2)
    assert (told.planned_start, told.waits_because, told.waits_for) == (100.0, "booking", ("a",))
    assert told.why == ("Processors are kept for it from 100 on. It waits for the end of job a (by 100).")
    told = report(scheduler, "c")
    assert (told.position, told.planned_start) == (2, None)
    assert (told.waits_because, told.waits_for) == ("would delay", ("b",))


def test_a_job_that_no_end_makes_room_for_has_a_booking_without_a_start() -> None:
    events = (submitted("a", 1), submitted("b", 4), NodeDown(0.0, "n1"))
    scheduler = after(TWO, [Easy(), FirstFit()], *events, wait_for_down_nodes=True)
    told = report(scheduler, "b")
    assert (told.position, told.planned_start, told.waits_because) == (1, None, "nodes down")
    (booked,) = booking_page(Inquiry(scheduler), "", 0, 10).bookings
    assert (booked.job, booked.start, booked.end) == ("b", None, None)
    for one in (told, booked):
        assert msgspec.json.decode(msgspec.json.encode(one), type=type(one)) == one


@pytest.mark.parametrize("policy", [Fcfs, Easy, Conservative])
def test_what_never_ends_is_told_so_in_json_too(policy: Any) -> None:
    for cluster in (FOUR, TWO):
        endless = (submitted("a", 3, float("inf")), submitted("b", 4, float("inf")))
        scheduler = after(cluster, [policy(), FirstFit()], *endless)
        inquiry = Inquiry(scheduler)
        found = (
            job_page(inquiry, Wanted(), 0, 9), pool_list(inquiry), booking_page(inquiry, "", 0, 9),
            node_page(inquiry, "", 0, 9),
        )  # fmt: skip
        for one in found:
            assert msgspec.json.decode(msgspec.json.encode(one), type=type(one)) == one
        assert [job.limit for job in found[0].jobs] == [None, None]


def test_a_job_outside_of_the_queue_says_the_name_of_the_reason() -> None:
    first = submitted("a", 1)
    depends = submitted("b", 1, dependencies=(Dependency("completed", "a"),))
    scheduler = after(FOUR, [Easy()], first, depends, submitted("c", 1, held=True), submitted("d", 9))
    told = report(scheduler, "b")
    assert (told.status, told.waits_because, told.waits_for) == ("waiting", "dependency", ("a",))
    assert told.why == "It cannot start: it waits for job a (completed)."
    assert report(scheduler, "c").waits_because == "hold"
    assert report(scheduler, "d").waits_because == "obstacle"
    assert report(scheduler, "d").position is None


class Says:
    """A plugin that answers a question."""

    def __init__(self, question: str, answer: str) -> None:
        self.question, self.answer = question, answer

    @hookimpl
    def explain(self, job: Job, question: str) -> str | None:
        return self.answer if question == self.question else None


class Vetoes:
    @hookimpl
    def veto(self, decision: Decision) -> str | None:
        return "not today" if isinstance(decision, Start) and decision.job_id == "v" else None


class Idle:
    """A policy that starts nothing."""

    @hookimpl
    def schedule(self, view: Any) -> list[Decision]:
        return []


LICENSED = msgspec.structs.replace(TWO, licences=(("matlab", 2),))

#: Kind -> a scheduler in which job v waits for that.
KINDS: dict[str, Any] = {
    "nodes down": lambda: after(
        TWO, [Fcfs(), FirstFit()], submitted("v", 4), NodeDown(0.0, "n0"), wait_for_down_nodes=True
    ),
    "next cycle": lambda: after(FOUR, [Easy()], submitted("v", 1), now=1.0, cycle=10.0),
    "veto": lambda: after(FOUR, [Vetoes(), Easy()], submitted("v", 1)),
    "booking": lambda: after(FOUR, [Easy()], submitted("a", 3), submitted("v", 4)),
    "policy": lambda: after(FOUR, [Idle(), Says("waiting", "It is not its turn")], submitted("v", 1)),
    "licences": lambda: after(
        LICENSED, [Idle(), FirstFit()], submitted("v", 1, licences=(("matlab", 1),)),
        JobSubmitted(0.0, described("a", 1, licences=(("matlab", 2),))),
        JobStarted(0.0, "a", (("n0", 1),)),
    ),
    "processors": lambda: after(FOUR, [Fcfs()], submitted("a", 3), submitted("v", 4)),
    "placement": lambda: after(
        TWO, [Idle(), FirstFit(), Says("placement", "Its block boots")], submitted("v", 1)
    ),
    "would delay": lambda: after(
        FOUR, [Easy()], submitted("a", 3), submitted("b", 4), submitted("v", 1, 500)
    ),
    "order": lambda: after(FOUR, [Fcfs()], submitted("a", 3), submitted("b", 4), submitted("v", 1)),
    "not started": lambda: after(FOUR, [Idle()], submitted("v", 1)),
}  # fmt: skip


def test_each_cause_has_a_state_in_which_a_job_waits_for_it() -> None:
    assert list(KINDS) == [cause.kind for cause in CAUSES]
    assert not {cause.kind for cause in CAUSES} & {reason.name for reason in REASONS}


@pytest.mark.parametrize("kind", KINDS)
def test_the_report_names_the_cause_and_says_what_explain_says(kind: str) -> None:
    scheduler = KINDS[kind]()
    told = report(scheduler, "v")
    assert told.waits_because == kind
    assert told.why and told.why in " ".join(explain(scheduler, "v", plain_clock))


def test_a_plugin_that_fails_when_it_is_asked_costs_its_own_sentence_alone() -> None:
    class Broken:
        @hookimpl
        def explain(self, job: Job, question: str) -> str | None:
            raise ValueError("broken")

    scheduler = after(FOUR, [Broken(), Idle(), Says("waiting", "It is not its turn")], submitted("v", 1))
    assert report(scheduler, "v").why == "It is not its turn."
    assert {(one.plugin, one.hook) for one in scheduler.problems} == {("broken", "explain")}


def several(*events: Event) -> Scheduler:
    pools = (PoolDescription("big", 4), PoolDescription("small", 2))
    return after(ClusterDescription("cluster", pools), [Conservative()], *events)


def test_a_job_of_several_pools_is_told_once_with_the_earliest_of_its_bookings() -> None:
    scheduler = several(
        submitted("a", 4, 500, pool="big"), submitted("b", 2, 100, pool="small"),
        submitted("v", 2, pool="big", further_pools=("small",)),
    )  # fmt: skip
    before = scheduler.state.jobs["v"].pool
    told = report(scheduler, "v")
    assert told.pools == ("big", "small") and told.planned_start == 100.0
    assert "In pool 'big' " in told.why and "In pool 'small' " in told.why
    assert scheduler.state.jobs["v"].pool is before
    page = job_page(Inquiry(scheduler), Wanted(), 0, 100)
    assert [one.id for one in page.jobs] == ["v", "a", "b"]
    small = job_page(Inquiry(scheduler), Wanted(pool="small"), 0, 100)
    assert [one.id for one in small.jobs] == ["v", "b"]


# ---------------------------------------------------------------------- pages of jobs


def test_jobs_come_by_queue_then_outside_of_it_then_on_nodes() -> None:
    scheduler = after(
        FOUR, [Fcfs()], submitted("run", 3, user="ann"), submitted("held", 1, held=True, user="ben"),
        submitted("first", 4, user="ann"), submitted("second", 4, user="ben"),
    )  # fmt: skip

    def ids(first: int = 0, count: int = 100, **wanted: str) -> tuple[list[str], int | None]:
        page = job_page(Inquiry(scheduler), Wanted(**wanted), first, count)
        return [job.id for job in page.jobs], page.next

    assert ids() == (["first", "second", "held", "run"], None)
    assert ids(count=2) == (["first", "second"], 2)
    assert ids(2, 2) == (["held", "run"], None)
    assert ids(9) == ([], None)
    assert ids(user="ben") == (["second", "held"], None)
    assert ids(status="waiting") == (["held"], None)
    assert ids(status="running", user="ann") == (["run"], None)
    page = job_page(Inquiry(scheduler), Wanted(user="ben"), 0, 1)
    assert [job.position for job in page.jobs] == [2]
    own = job_page(Inquiry(scheduler), Wanted(), 0, 100, lambda job: job.user == "ben")
    assert [job.id for job in own.jobs] == ["second", "held"]


# ---------------------------------------------------------------------- nodes, pools, bookings, a cycle


def test_nodes_say_what_they_have_and_which_jobs_and_reservations_are_on_them() -> None:
    nodes = (
        NodeDescription("n0", 4, memory=2**30, gres=(("gpu", 2),), features=("fast",)),
        NodeDescription("n1", 4, available=False, reason="disk"),
    )
    job = submitted("a", 2, memory_per_processor=2**28, gres_per_node=(("gpu", 1),), nodes=1)
    upkeep = Reservation("upkeep", 500.0, 600.0, nodes=("n1",))
    scheduler = after(node_cluster(*nodes), [Easy(), FirstFit()], job, ReservationMade(0.0, upkeep))
    first, second = node_page(Inquiry(scheduler), "pool", 0, 10).nodes
    assert (first.processors, first.free, first.jobs, first.power) == (4, 2, ("a",), "on")
    assert (first.memory, first.memory_free, first.gres) == (2**30, 2**29, (("gpu", 2, 1),))
    assert (first.available, first.features, first.pools) == (True, ("fast",), ("pool",))
    assert (second.available, second.reason, second.reservations) == (False, "disk", ("upkeep",))
    assert (second.memory, second.memory_free) == (None, None)
    page = node_page(Inquiry(scheduler), "", 0, 1, lambda job: False)
    assert ([node.name for node in page.nodes], page.next, page.nodes[0].jobs) == (["n0"], 1, ())
    assert [node.name for node in node_page(Inquiry(scheduler), "", 1, 1).nodes] == ["n1"]


def test_pools_say_how_they_are_used_and_with_which_pools_they_share_nodes() -> None:
    nodes = (NodeDescription("n0", 4, pools=("a", "b")), NodeDescription("n1", 2, pools=("c",)))
    cluster = node_cluster(*nodes, pools=("a", "b", "c"))
    first = submitted("1", 3, pool="a")
    scheduler = after(cluster, [Easy(), FirstFit()], first, submitted("2", 4, pool="b"))
    told = {pool.name: pool for pool in pool_list(Inquiry(scheduler)).pools}
    assert (told["a"].total, told["a"].free, told["a"].running, told["a"].queued) == (4, 1, 1, 0)
    assert (told["b"].queued, told["b"].head, told["b"].open) == (1, 4, True)
    assert [told[name].shares_nodes_with for name in "abc"] == [("b",), ("a",), ()]


def test_bookings_say_for_which_job_where_and_from_when() -> None:
    cluster = node_cluster(*alike(2, 2))
    jobs = (submitted("a", 3), submitted("b", 4, 50, user="ben"), submitted("c", 4, 60, user="cat"))
    scheduler = after(cluster, [Conservative(), FirstFit()], *jobs)
    first, second = booking_page(Inquiry(scheduler), "", 0, 10).bookings
    assert (first.job, first.user, first.start, first.end) == ("b", "ben", 100.0, 150.0)
    assert (second.job, second.start) == ("c", 150.0)
    assert dict(first.placement) == {"n0": 2, "n1": 2}
    page = booking_page(Inquiry(scheduler), "pool", 0, 1)
    assert ([one.job for one in page.bookings], page.next) == (["b"], 1)
    own = booking_page(Inquiry(scheduler), "", 0, 10, lambda job: job.user == "cat")
    assert [one.job for one in own.bookings] == ["c"]


def test_a_cycle_says_what_happened_what_was_decided_and_what_became_of_it() -> None:
    scheduler = Scheduler(FOUR, plugged(Easy()))
    events = [submitted("a", 2), submitted("b", 2)]
    decisions = scheduler.step(5.0, events)
    cycle = Cycle(5.0, events, decisions, [Outcome(True), Outcome(False, "no")], 0.5, 0.25)
    told = cycle_report(Inquiry(scheduler), cycle)
    assert (told.number, told.at, told.seconds, told.step_seconds) == (1, 5.0, 0.5, 0.25)
    assert (told.events, told.decisions) == ({"JobSubmitted": 2}, {"Start": 2})
    assert told.first == (
        DecisionReport("Start", "a", decisions[0].reason),
        DecisionReport("Start", "b", decisions[1].reason, False, "no"),
    )
    own = cycle_report(Inquiry(scheduler), cycle, lambda job: job.id == "b")
    assert [one.job for one in own.first] == ["b"] and own.decisions == {"Start": 2}


def test_no_report_changes_the_scheduler() -> None:
    """Two schedulers, of which one is asked everything between all steps, decide the same."""

    def events(now: float) -> list[Event]:
        at = int(now)
        return [submitted(f"{at}-{number}", 1 + (at * 7 + number * 3) % 4, 10 + at) for number in range(3)]

    asked, other = (Scheduler(TWO, plugged(Conservative(), FirstFit())) for _ in range(2))
    ends: list[tuple[float, Event]] = []
    for now in map(float, range(30)):
        told = [*events(now), *(event for at, event in ends if at == now)]
        made = asked.step(now, told)
        assert made == other.step(now, told)
        for one in made:
            assert isinstance(one, Start)
            ends.append((now + 1, JobStarted(now + 1, one.job_id, one.placement)))
        inquiry = Inquiry(asked)
        job_page(inquiry, Wanted(), 0, 500)
        node_page(inquiry, "", 0, 500)
        booking_page(inquiry, "", 0, 500)
        pool_list(inquiry)
        for job in list(asked.state.jobs):
            explain(asked, job, str)


def test_what_a_suspended_job_keeps_is_told_beside_the_cause() -> None:
    nodes = alike(1, 2, memory=2**30)
    cluster = node_cluster(*nodes, suspended_lend=True)
    first = submitted("a", 1, memory_per_node=2**30)
    scheduler = after(cluster, [Idle(), FirstFit()], first, JobStarted(0.0, "a", (("n0", 1),)))
    scheduler.step(1.0, [JobSuspended(1.0, "a"), submitted("v", 1, memory_per_node=2**29)])
    assert report(scheduler, "v").why.endswith("Suspended job a keeps what this job also asks for: memory.")


# ---------------------------------------------------------------------- datasets


def test_datasets_say_where_they_are_and_stores_what_they_have() -> None:
    sites = Sites(
        (Site("a", store=Store(100)), Site("b", store=Store()), Site("c")),
        (Link("a", "b", 1.0),),
        (Dataset("x", 30, ("a",)), Dataset("y", 20, ("a",))),
    )
    scheduler = after(
        msgspec.structs.replace(FOUR, sites=sites), [Fcfs()],
        DatasetCopying(5.0, "y", "b", "a", 7), DatasetCopied(6.0, "x", "b", "a"), now=6.0,
    )  # fmt: skip
    assert scheduler.state.catalogue is not None
    assert dataset_list(scheduler.state.catalogue) == DatasetList(
        (
            DatasetReport("x", 30, (ReplicaReport("a"), ReplicaReport("b", 6.0))),
            DatasetReport("y", 20, (ReplicaReport("a"),), (CopyReport("b", "a", 5.0, 7),)),
        ),
        (StoreReport("a", 100, 50), StoreReport("b", None, 50)),
    )
