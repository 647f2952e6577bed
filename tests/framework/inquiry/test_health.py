"""Invariants of a scheduler: kept in order, and each of them seen when it is broken."""

from __future__ import annotations

import pytest
from building import alike, described, node_cluster, plugged

from headway.decisions import Start
from headway.events import JobHeld, JobStarted, JobSubmitted
from headway.inquiry import Inquiry
from headway.inquiry.health import state_checks
from headway.inquiry.inquiry import seen_by
from headway.inquiry.reports import HealthCheck
from headway.model import ClusterDescription
from headway.scheduler import Scheduler
from headway.state import Status
from headway_plugins.placement.first_fit import FirstFit
from headway_plugins.policies.conservative import Conservative


@pytest.fixture
def scheduler() -> Scheduler:
    """Two nodes in use, a job that is booked, one that is held, and one that waits for its time."""
    made = Scheduler(node_cluster(*alike(2, 4)), plugged(Conservative(), FirstFit()))
    jobs = [described("1", 8), described("2", 8), described("3", 8), described("4", 8, begin_time=500.0)]
    starts = made.step(0.0, [*(JobSubmitted(0.0, job) for job in jobs), JobHeld(0.0, "3")])
    made.step(1.0, [JobStarted(1.0, one.job_id, one.placement) for one in starts if isinstance(one, Start)])
    for view in made.views.values():
        assert view.bookings
    return made


def checks(scheduler: Scheduler, now: float = 1.0, cycle: float | None = None) -> dict[str, HealthCheck]:
    return {one.name: one for one in state_checks(Inquiry(scheduler), now, cycle)}


def ill(scheduler: Scheduler, now: float = 1.0) -> set[str]:
    return {name for name, one in checks(scheduler, now).items() if not one.ok}


def test_all_is_well(scheduler: Scheduler) -> None:
    assert ill(scheduler) == set()
    told = checks(scheduler)
    assert told["nodes given once"].detail == "1 jobs on 2 nodes, no processor twice"
    assert told["plans ahead"].detail == "1 planned starts, none in the past"


def test_a_node_that_is_given_twice(scheduler: Scheduler) -> None:
    job = scheduler.state.jobs["2"]
    job.status, job.placement = Status.RUNNING, (("n1", 4),)
    found = checks(scheduler)["nodes given once"]
    assert not found.ok
    assert found.detail.endswith("has 8 of 4 processors in use")
    assert found.remedy


def test_a_pool_without_nodes_that_is_given_twice() -> None:
    made = Scheduler(ClusterDescription.flat(4), plugged(Conservative()))
    made.step(0.0, [JobSubmitted(0.0, described("1", 4))])
    made.step(1.0, [JobSubmitted(1.0, described("2", 4)), JobStarted(1.0, "2")])
    found = checks(made)["nodes given once"]
    assert found.detail == "pool pool has 8 of 4 processors in use"


def test_a_job_that_is_forgotten(scheduler: Scheduler) -> None:
    scheduler.state.jobs["3"].held = False
    found = checks(scheduler)["jobs known"]
    assert (found.ok, found.detail) == (False, "job 3 is in no queue, and waits for nothing")
    private = Inquiry(scheduler, sees=seen_by("somebody"))
    assert "job 3" not in str(state_checks(private, 1.0, None))


def test_a_plan_in_the_past(scheduler: Scheduler) -> None:
    scheduler.state.now = 1000.0
    assert "plans ahead" in ill(scheduler, 1000.0)


def test_a_cycle_that_is_overdue(scheduler: Scheduler) -> None:
    due = scheduler.next_wakeup()
    assert due is not None
    assert ill(scheduler, due + 59) == set()
    assert ill(scheduler, due + 61) == {"last cycle"}
    assert checks(scheduler, due + 61, cycle=100.0)["last cycle"].ok
