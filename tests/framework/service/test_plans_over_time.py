"""What the daemon planned for jobs over time, and how good that was: bounded, and only what changed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from building import alike, described, node_cluster, plugged

from headway.events import Event, JobEnded, JobRequeued, JobStarted, JobSubmitted
from headway.inquiry.outlook import accuracy_line, history_lines
from headway.inquiry.reports import PlanAccuracy, PlanChange, PlanHistory
from headway.scheduler import Scheduler
from headway.service import plans_over_time as module
from headway.service.plans_over_time import CHANGES, FEWEST, JUDGED, SAME, PlansOverTime
from headway.view import Booking
from headway.view.owed import none_more
from headway_plugins.placement.first_fit import FirstFit
from headway_plugins.policies.conservative import Conservative
from headway_plugins.policies.easy import Easy


class Site:
    """A scheduler of two nodes, and a record of what it plans."""

    def __init__(self, policy: Any = None) -> None:
        self.scheduler = Scheduler(node_cluster(*alike(2, 2)), plugged(policy or Easy(), FirstFit()))
        self.plans_over_time = PlansOverTime()

    def step(self, now: float, *events: Event) -> None:
        decisions = self.scheduler.step(now, events)
        self.plans_over_time.happened(events, self.scheduler.state)
        self.plans_over_time.planned(self.scheduler)
        self.started = [decision.job_id for decision in decisions if hasattr(decision, "job_id")]

    def starts(self, now: float, job_id: str) -> None:
        job = self.scheduler.state.jobs[job_id]
        self.step(now, JobStarted(now, job_id, job.placement))


def submitted(job_id: str, processors: int, at: float = 0.0, limit: float = 1000) -> JobSubmitted:
    return JobSubmitted(at, described(job_id, processors, limit, at))


def test_a_planned_start_is_on_record_from_when_it_was_planned_first() -> None:
    site = Site()
    site.step(0.0, submitted("a", 4))
    assert site.plans_over_time.of("a") is None, "it starts"
    site.starts(1.0, "a")
    site.step(5.0, submitted("b", 4, 5.0))
    assert site.plans_over_time.of("b") == PlanHistory(5.0, 1001.0, since=0.0)
    site.step(9.0, submitted("c", 1, 9.0))
    assert site.plans_over_time.of("b") == PlanHistory(5.0, 1001.0, since=0.0)


def test_a_change_of_more_than_a_minute_is_on_record_with_its_time() -> None:
    site = Site()
    site.step(0.0, submitted("a", 3), submitted("x", 1, limit=500))
    site.starts(1.0, "a")
    site.starts(1.0, "x")
    site.step(2.0, submitted("b", 4, 2.0))
    assert site.plans_over_time.of("b") == PlanHistory(2.0, 1001.0)
    site.step(200.0, JobEnded(200.0, "a"))
    assert site.plans_over_time.of("b") == PlanHistory(2.0, 1001.0, 1, (PlanChange(200.0, 501.0),))


@pytest.mark.parametrize("event", [JobEnded(300.0, "b", "cancelled"), JobRequeued(300.0, "b")])
def test_a_job_that_is_gone_or_begins_anew_has_no_record(event: Event) -> None:
    site = Site()
    site.step(0.0, submitted("a", 4))
    site.starts(1.0, "a")
    site.step(2.0, submitted("b", 4, 2.0))
    site.plans_over_time.happened([event], site.scheduler.state)
    assert site.plans_over_time.of("b") is None and not len(site.plans_over_time)


class Recorded:
    """A record that a test writes."""

    def __init__(self) -> None:
        self.plans_over_time = PlansOverTime()
        self.plans_over_time.since = 0.0

    def plan(self, job_id: str, *plans: tuple[float, float]) -> None:
        for at, start in plans:
            self.plans_over_time.note(job_id, start, at)

    def begins(self, *starts: tuple[str, float]) -> None:
        site = Site()
        site.step(0.0, *(submitted(job_id, 1) for job_id, _ in starts))
        self.plans_over_time.happened([JobStarted(at, job_id) for job_id, at in starts], site.scheduler.state)


def test_less_than_a_minute_is_no_change_but_creeping_is() -> None:
    record = Recorded()
    record.plan("a", (0, 1000), (1, 1000 + SAME - 1), (2, 1000 - SAME + 1), (3, 1000 + SAME))
    assert record.plans_over_time.of("a") == PlanHistory(0, 1000, 1, (PlanChange(3, 1000 + SAME),))


def test_of_many_changes_the_first_plan_and_the_last_changes_are_kept() -> None:
    record = Recorded()
    plans = [(float(at), 1000.0 + 100 * at) for at in range(20)]
    record.plan("a", *plans)
    found = record.plans_over_time.of("a")
    assert found is not None and (found.first, found.changes) == (1000.0, 19)
    assert found.latest == tuple(PlanChange(*plan) for plan in plans[-CHANGES:])


def test_plans_are_judged_by_what_became_of_them() -> None:
    record = Recorded()
    for number in range(10):
        record.plan(f"j{number}", (0, 5000), (100, 9000 + 100 * number))
    record.begins(*((f"j{number}", 9000.0) for number in range(10)))
    found = record.plans_over_time.kept_in("pool")
    assert found is not None and (found.jobs, found.half, found.most) == (10, 4000.0, 4000.0)
    assert (found.jobs_at_hour, found.half_at_hour) == (10, 450.0)
    assert found.most_at_hour == pytest.approx(810.0)
    assert not len(record.plans_over_time), "what became of them is known"


def test_few_jobs_say_nothing_and_the_last_ones_count() -> None:
    record = Recorded()
    for number in range(FEWEST - 1):
        record.plan(f"j{number}", (0, 5000))
    record.begins(*((f"j{number}", 5000.0) for number in range(FEWEST - 1)))
    assert record.plans_over_time.kept_in("pool") is None
    names = [f"k{number}" for number in range(2 * JUDGED)]
    for number, name in enumerate(names):
        record.plan(name, (4000, 4500 if number < JUDGED else 5010))
    record.begins(*((name, 5000.0) for name in names))
    found = record.plans_over_time.kept_in("pool")
    assert found == PlanAccuracy("pool", JUDGED, 10.0, 10.0), "planned for less than an hour"


def test_what_was_planned_an_hour_before_is_not_guessed_from_a_record_with_a_gap() -> None:
    record = Recorded()
    plans = [(float(at), 1000.0 + 100 * at) for at in range(20)]
    for number in range(FEWEST):
        record.plan(f"j{number}", *plans)
    record.begins(*((f"j{number}", 3605.0) for number in range(FEWEST)))
    found = record.plans_over_time.kept_in("pool")
    assert found is not None and found.jobs == FEWEST and not found.jobs_at_hour


def test_only_bookings_that_are_new_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site(Conservative())
    site.step(0.0, submitted("a", 4))
    site.starts(1.0, "a")
    site.step(2.0, *(submitted(f"b{number}", 4, 2.0) for number in range(9)))
    seen: list[Sequence[Booking]] = []
    fresh = site.plans_over_time._fresh

    def looking(view: Any) -> Sequence[Booking]:
        seen.append(fresh(view))
        return seen[-1]

    monkeypatch.setattr(site.plans_over_time, "_fresh", looking)
    site.plans_over_time.planned(site.scheduler)
    site.step(3.0, submitted("c", 4, 3.0))
    site.step(70.0)
    assert len(seen[0]) == 0 and sum(map(len, seen)) <= 10


def test_what_a_policy_owes_is_made_now_and_then_where_that_is_cheap() -> None:
    site = Site(Conservative())
    site.step(0.0, submitted("a", 3))
    site.starts(1.0, "a")
    site.step(2.0, *(submitted(f"b{number}", 4, 2.0) for number in range(9)), submitted("d", 1, 2.0, 5000))
    assert [site.plans_over_time.of(f"b{number}").first for number in range(9)] == [  # type: ignore[union-attr]
        1001.0 + 1000 * number for number in range(9)
    ]
    site.plans_over_time._owed_each = 1.0
    site.step(90.0, JobEnded(90.0, "b8", "cancelled"), submitted("c", 4, 90.0))
    assert site.plans_over_time.of("c") is None, "too dear"


def test_what_is_owed_in_many_pools_takes_no_longer_than_what_is_owed_in_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = [f"p{number}" for number in range(6)]
    nodes = [
        msgspec.structs.replace(node, name=f"{name}{node.name}", pools=(name,))
        for name in names
        for node in alike(2, 2)
    ]
    scheduler = Scheduler(node_cluster(*nodes, pools=tuple(names)), plugged(Conservative(), FirstFit()))
    jobs = [described(f"{name}-{number}", 4, 1000, pool=name) for name in names for number in range(30)]
    scheduler.step(0.0, [JobSubmitted(0.0, job) for job in jobs])
    owed = [view.owed for view in scheduler.views.values()]
    assert min(owed) > 10
    record, began = PlansOverTime(), list[float]()
    # One pool's would be cheap; those of all pools together would not.
    record._owed_each = 0.1 / (2 * max(owed))
    record.planned(scheduler)
    assert [view.owed for view in scheduler.views.values()] == owed
    # One time for all pools.
    record._owed_each = 0.0
    monkeypatch.setattr(module, "short_of_time", lambda seconds: began.append(seconds) or none_more)
    record.planned(scheduler)
    assert [view.owed for view in scheduler.views.values()] == owed
    assert len(began) == 1
    # What one takes is known as far as any was made.
    assert record._owed_each == 0.0
    monkeypatch.undo()
    record.planned(scheduler)
    assert [view.owed for view in scheduler.views.values()] == owed, "only now and then"
    scheduler.step(61.0, [])
    record.planned(scheduler)
    assert not any(view.owed for view in scheduler.views.values())
    assert len(record) > 6


def test_fifty_thousand_jobs_take_little_room() -> None:
    record = Recorded()
    for at in range(3):
        for number in range(1000):
            record.plan(str(number), (at, 1000.0 * at))
    plans = record.plans_over_time._plans
    held = sum(map(sys.getsizeof, plans.values())) + sys.getsizeof(plans)
    assert held / 1000 < 400, "bytes a job: 20 MB for 50,000"


# ---------------------------------------------------------------------- sentences


def clock(time: float) -> str:
    return f"{time:g}"


@pytest.mark.parametrize(
    ("history", "said"),
    [
        (PlanHistory(5, 100), ["Its planned start has stood since 5."]),
        (PlanHistory(5, 100, since=5),
         ["Its planned start has stood since 5 (nothing is known of before 5)."]),
        (PlanHistory(5, 1000, 2, (PlanChange(8, 8200), PlanChange(9, 700))),
         ["Its start was first planned at 5, for 1000; that has changed 2 times since.",
          "At 8 it became 8200, 2 h later.", "At 9 it became 700, 2 h 05 min earlier."]),
        (PlanHistory(5, 1000, 9, (PlanChange(8, 8200), PlanChange(9, 8100))),
         ["Its start was first planned at 5, for 1000; that has changed 9 times since.",
          "At 8 it became 8200.", "At 9 it became 8100, 2 min earlier."]),
    ],
)  # fmt: skip
def test_plans_over_time_in_words(history: PlanHistory, said: list[str]) -> None:
    assert list(history_lines(history, clock)) == said


def test_how_good_they_were_in_words() -> None:
    assert accuracy_line(PlanAccuracy("batch", 87, 240.0, 4200.0)) == (
        "Of the last 87 jobs of pool 'batch' that began with a planned start, half began within 4 min of the "
        "first one, and 90 % within 1 h 10 min."
    )
    assert accuracy_line(PlanAccuracy("batch", 87, 240.0, 4200.0, 20, 20.0, 100800.0)).endswith(
        "; of what was planned an hour before the start, within 20 s and 1 d 4 h."
    )
