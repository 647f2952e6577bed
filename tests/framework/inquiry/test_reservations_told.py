"""What is told of reservations: when and where to all, for whom and why to users that may see all jobs."""

from __future__ import annotations

import pytest
from building import alike, node_cluster, plugged

from headway.events import ReservationMade
from headway.inquiry.inquiry import Inquiry, everything, seen_by
from headway.inquiry.reports import ReservationReport
from headway.inquiry.reservations import reservation_page
from headway.model import Reservation
from headway.scheduler import Scheduler
from headway_plugins.policies.fcfs import Fcfs


@pytest.fixture
def scheduler() -> Scheduler:
    made = Scheduler(node_cluster(*alike(2, 4)), plugged(Fcfs()))
    kept = Reservation("r1", 50.0, 90.0, nodes=("n0",), users=("ann",), accounts=("phys",), reason="course")
    made.step(
        0.0, [ReservationMade(0.0, kept), ReservationMade(0.0, Reservation("r2", 10.0, 20.0, nodes=("n1",)))]
    )
    return made


def test_when_where_and_for_whom(scheduler: Scheduler) -> None:
    page = reservation_page(Inquiry(scheduler, str), 0, 1)
    assert page.reservations == (
        ReservationReport(
            "r1", 50.0, 90.0, nodes=("n0",), users=("ann",), accounts=("phys",), reason="course"
        ),
    )
    assert page.next == 1
    assert [one.id for one in reservation_page(Inquiry(scheduler, str), 1, 5).reservations] == ["r2"]


def test_a_user_is_not_told_for_whom_and_why(scheduler: Scheduler) -> None:
    sees = seen_by("ben")
    assert sees is not everything
    (first, _) = reservation_page(Inquiry(scheduler, str, (), sees, set()), 0, 5).reservations
    assert first == ReservationReport("r1", 50.0, 90.0, nodes=("n0",))


def test_what_is_over_is_not_told(scheduler: Scheduler) -> None:
    scheduler.step(30.0, [])
    assert [one.id for one in reservation_page(Inquiry(scheduler, str), 0, 5).reservations] == ["r1"]
