"""What is counted, cycle by cycle."""

from __future__ import annotations

from collections.abc import Sequence

from building import described, plugged

from headway.adapter import Outcome
from headway.decisions import Decision, Start
from headway.events import ClusterSilent, Event, JobHeld, JobStarted, JobSubmitted
from headway.inquiry.cycles import Cycle
from headway.journal.latencies import LatencyMeter
from headway.measured.measures import MOST_PAIRS, MOST_USERS, REST, Measures
from headway.model import ClusterDescription
from headway.scheduler import Scheduler
from headway.service.figures import Figures
from headway.service.plans_over_time import PlansOverTime
from headway.service.protocol import Report
from headway_plugins.policies.easy import Easy


class Counted:
    """A scheduler of four processors, and what is counted of it."""

    def __init__(self, since: float = 0.0) -> None:
        self.measures = Measures(lambda: since)
        self.scheduler = Scheduler(ClusterDescription.flat(4), plugged(Easy()))

    def step(self, now: float, *events: Event, accepted: bool = True) -> Sequence[Decision]:
        made = self.scheduler.step(now, events)
        cycle = Cycle(now, events, made, [Outcome(accepted)] * len(made), 0.02, 0.004)
        self.measures._count_due = 0.0
        self.measures.cycle(cycle, self.scheduler)
        return made


def test_a_cycle_is_counted_with_its_time_its_events_and_decisions() -> None:
    one = Counted()
    one.step(10.0, JobSubmitted(10.0, described("1", 4)), JobSubmitted(10.0, described("2", 4)))
    told = one.measures.told()
    assert told.events == {"JobSubmitted": 2}
    assert [(c.decision, c.outcome, c.count) for c in told.decisions] == [("Start", "accepted", 1)]
    assert told.cycle_seconds is not None
    assert told.step_seconds is not None
    assert (told.cycle_seconds.count, told.cycle_seconds.sum) == (1, 0.02)
    at = told.step_seconds.bounds.index(0.005)
    assert told.step_seconds.counts[at] == 1
    assert (told.jobs, told.last_cycle) == (2, 10.0)


def test_decisions_are_refused_or_not_applied() -> None:
    refusing = Counted()
    refusing.step(0.0, JobSubmitted(0.0, described("1")), accepted=False)
    for mode, outcome in (("drive", "refused"), ("monitor", "not applied")):
        told = Figures(refusing.measures).told(Report(mode, "c", 1, 0.0), 0, users=False)
        assert [(one.outcome, one.count) for one in told.decisions] == [(outcome, 1)]


def test_a_wait_goes_from_the_submission_to_the_start() -> None:
    one = Counted()
    (start,) = one.step(100.0, JobSubmitted(100.0, described("1", submit=40.0, qos="night")))
    assert isinstance(start, Start)
    one.step(101.0, JobStarted(101.0, "1", start.placement))
    (wait,) = one.measures.told().waits
    assert (wait.pool, wait.qos, wait.seconds.sum, wait.seconds.count) == ("pool", "night", 61.0, 1)


def test_jobs_that_began_before_the_daemon_have_no_wait() -> None:
    one = Counted(since=500.0)
    one.step(501.0, JobSubmitted(501.0, described("1", submit=40.0)), JobStarted(99.0, "1"))
    assert one.measures.told().waits == ()


def test_waiting_jobs_are_counted_by_reason_and_user() -> None:
    one = Counted()
    one.step(
        0.0,
        JobSubmitted(0.0, described("1", 4, user="ann")),
        JobSubmitted(0.0, described("2", 4, user="ann")),
        JobSubmitted(0.0, described("3", 4, user="bob")),
        JobHeld(0.0, "3"),
    )
    told = one.measures.told(users=True)
    assert {(w.reason, w.jobs) for w in told.waiting} == {("queue", 1), ("hold", 1)}
    assert {(u.user, u.waiting) for u in told.users} == {("ann", 1), ("bob", 1)}
    assert told.waiting_as_of == 0.0
    assert one.measures.told().users == ()


def test_waiting_jobs_are_not_counted_in_each_cycle() -> None:
    one = Counted()
    one.step(0.0, JobSubmitted(0.0, described("1", 4)), JobSubmitted(0.0, described("2", 4)))
    made = one.scheduler.step(1.0, [JobSubmitted(1.0, described("3", 4))])
    one.measures.cycle(Cycle(1.0, (), made, ()), one.scheduler)
    assert one.measures.told().waiting_as_of == 0.0


def test_names_that_users_choose_are_bounded() -> None:
    one = Counted()
    extra = 5
    for number in range(MOST_PAIRS + extra):
        one.measures._waits.add(("pool", f"qos{number}"), 1.0)
    waits = {wait.qos: wait.seconds.count for wait in one.measures.told().waits}
    assert len(waits) == MOST_PAIRS + 1
    assert waits[REST] == extra
    jobs = [
        JobSubmitted(0.0, described(str(n), 4, user=f"u{n}")) for n in range(MOST_USERS + extra + 1)
    ]  # The first one starts.
    one.step(0.0, *jobs)
    users = {user.user: user.waiting for user in one.measures.told(users=True).users}
    assert len(users) == MOST_USERS + 1
    assert users[REST] == extra


def test_planned_starts_are_early_or_late() -> None:
    one = Counted()
    one.step(0.0, JobSubmitted(0.0, described("1", 4)))
    job = one.scheduler.state.jobs["1"]
    one.measures.plan_met(job, 100.0, 40.0)
    one.measures.plan_met(job, 100.0, 130.0)
    told = {error.side: error.seconds.sum for error in one.measures.told().plan_errors}
    assert told == {"early": 60.0, "late": 30.0}


def test_outages_are_counted_when_they_begin() -> None:
    one = Counted()
    one.step(0.0, JobSubmitted(0.0, described("1")))
    one.step(1.0, ClusterSilent(1.0))
    assert one.measures.told().outages_begun == 1


def test_what_a_process_takes_is_told() -> None:
    told = Measures().told()
    assert told.cpu_seconds > 0
    assert told.memory_bytes is not None
    assert told.memory_bytes > 2**20


def test_who_drives_and_by_which_number() -> None:
    measures = Measures()
    measures.leads(7, drives=True)
    assert (measures.told().leader, measures.told().epoch) == (True, 7)
    measures.leads(0, drives=False)
    assert (measures.told().leader, measures.told().epoch) == (False, 0)


def test_starts_that_were_measured_and_plans_that_were_met_are_counted() -> None:
    one = Counted()
    meter, plans = LatencyMeter(), PlansOverTime(one.measures.plan_met)
    meter.on_start = one.measures.start_took
    plans.note("1", 100.0, 0.0)
    arrived = JobSubmitted(0.0, described("1"))
    (start,) = one.step(0.0, arrived)
    began = JobStarted(130.5, "1")
    meter.cycle(128.0, [arrived], [start])
    meter.cycle(131.0, [began], [])
    one.step(131.0, began)
    plans.happened([began], one.scheduler.state)
    told = one.measures.told()
    assert told.start_seconds[""].sum == 2.5
    assert [(error.side, error.seconds.sum) for error in told.plan_errors] == [("late", 30.5)]
