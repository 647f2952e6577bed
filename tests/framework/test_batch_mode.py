"""Batch mode: queues are examined at multiples of the cycle, everything else happens at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from building import described, emulate, plugged, traced
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headway import events as ev
from headway.config import parse_config
from headway.daemon.replay import replay
from headway.decisions import Kill, SetTimeLimit, Start
from headway.emulation import emulate as emulate_configured
from headway.errors import UserError
from headway.experiment.definition import load_campaign
from headway.experiment.execution import run_campaign
from headway.hookspecs import hookimpl
from headway.inquiry import explain
from headway.journal import Journal
from headway.model import ClusterDescription, PoolDescription, Reservation
from headway.plugins import Catalogue, PluginConfig
from headway.scheduler import Scheduler
from headway.workload.jobs import TraceCommand
from headway_adapters.emulated import Faults
from headway_plugins.elasticity.commands import Elastic, ElasticOptions
from headway_plugins.orders.largest_first import LargestFirst
from headway_plugins.policies.conservative import Conservative
from headway_plugins.policies.easy import Easy
from headway_plugins.policies.fcfs import Fcfs

FLAT = ClusterDescription.flat(8)
POLICIES = {"fcfs": Fcfs, "easy": Easy, "conservative": Conservative}


def starts(jobs, policy=Fcfs, cycle=10, **more):
    run = emulate(FLAT, jobs, policy(), cycle=cycle, **more)
    assert run.problems == []
    return run.starts


# ---------------------------------------------------------------- when jobs start


def test_a_job_that_arrives_on_a_multiple_starts_at_once_another_waits_for_the_next():
    assert starts([traced("a", 1, 5, 20), traced("b", 1, 5, 21), traced("c", 1, 5, 29)]) == {
        "a": 20, "b": 30, "c": 30,
    }  # fmt: skip


def test_processors_are_free_when_their_job_ends_and_taken_at_the_next_cycle():
    run = emulate(FLAT, [traced("a", 8, 13), traced("b", 8, 10)], Fcfs(), cycle=10)
    assert run.results["a"].end_time == 13
    assert run.starts["b"] == 20


def test_multiples_are_those_of_the_runs_clock_not_of_its_beginning():
    assert starts([traced("a", 1, 5, 1003), traced("b", 1, 5, 1004)]) == {"a": 1010, "b": 1010}


def test_a_job_of_no_work_makes_room_in_the_same_cycle():
    assert starts([traced("a", 8, 10, runtime=0), traced("b", 8, 10)]) == {"a": 0, "b": 0}


def test_all_that_came_since_the_last_cycle_is_looked_at_together():
    jobs = [traced("small", 5, 100, 1), traced("large", 8, 5, 2)]
    assert emulate(FLAT, jobs, Fcfs(), LargestFirst(), cycle=10).starts == {"small": 20, "large": 10}
    assert emulate(FLAT, jobs, Fcfs(), LargestFirst()).starts == {"small": 1, "large": 101}


def test_a_cycle_may_be_a_part_of_a_second():
    found = starts([traced("a", 8, 1, 0.3), traced("b", 8, 1, 0.35)], cycle=0.1)
    # 0.3 is no multiple of 0.1 in binary: the next one is as good as equal.
    assert found["a"] == pytest.approx(0.3) and found["b"] == pytest.approx(1.4, abs=0.11)


def test_several_pools_are_examined_at_the_same_time():
    cluster = ClusterDescription(
        "two", (PoolDescription("p", processors=8), PoolDescription("q", processors=8))
    )
    jobs = [traced("a", 1, 5, 3, pool="p"), traced("b", 1, 5, 7, pool="q"), traced("c", 1, 5, 11, pool="p")]
    assert emulate(cluster, jobs, Fcfs(), cycle=10).starts == {"a": 10, "b": 10, "c": 20}


def test_begin_times_and_reservations_come_due_by_the_clock_and_wait_for_the_cycle():
    assert starts([traced("a", 1, 5, 0, begin_time=12)]) == {"a": 20}
    kept = Reservation("r", 4, 15, processors=8)
    cluster = ClusterDescription("flat", (PoolDescription("pool", processors=8),), reservations=(kept,))
    assert emulate(cluster, [traced("a", 1, 5)], Fcfs(), cycle=10).starts == {"a": 20}


# ---------------------------------------------------------------- work in proportion to what changed


def test_idle_cycles_cost_nothing():
    """Two years with three jobs are a handful of rounds, not six million."""
    year = 365 * 86400
    jobs = [traced("a", 8, year), traced("b", 8, 10, 5), traced("c", 1, 5, 2 * year + 1)]
    run = emulate(FLAT, jobs, Fcfs(), cycle=10)
    assert run.starts == {"a": 0, "b": year, "c": 2 * year + 10}
    assert len(run.adapter.rounds) < 12


def test_a_job_that_can_never_start_does_not_keep_the_clock_running():
    run = emulate(FLAT, [traced("a", 9, 10, 3), traced("b", 1, 10, 4)], Easy(), cycle=10, max_rounds=20)
    assert run.starts == {"a": None, "b": 10}


class Never:
    """Nobody starts."""

    @hookimpl
    def veto(self, decision):
        return "never" if isinstance(decision, Start) else None


def test_neither_does_one_whose_start_is_vetoed():
    run = emulate(FLAT, [traced("a", 1, 10, 3)], Fcfs(), Never(), cycle=10, max_rounds=20)
    assert run.starts == {"a": None}


def test_the_next_cycle_is_planned_only_while_somebody_waits_for_it():
    s = Scheduler(FLAT, plugged(Fcfs()), cycle=10)
    assert s.step(1, []) == [] and s.next_wakeup() is None
    assert s.step(3, [ev.JobSubmitted(3, described("a", 8, 50))]) == []
    assert s.next_wakeup() == 10
    s.step(4, [ev.JobEnded(4, "a", "cancelled")])
    assert s.next_wakeup() is None
    s.step(5, [ev.JobSubmitted(5, described("b", 8, 50))])
    assert [d.job_id for d in s.step(10, [])] == ["b"]
    assert s.next_wakeup() is None


def test_a_clock_that_is_never_exact_examines_the_queue_as_soon_as_the_time_has_passed():
    """A batch system is polled: the step for 10 comes at 10.3."""
    s = Scheduler(FLAT, plugged(Fcfs()), cycle=10)
    s.step(9.1, [ev.JobSubmitted(9, described("a", 8, 50))])
    assert [d.job_id for d in s.step(10.3, [ev.JobSubmitted(10.2, described("b", 8, 50))])] == ["a"]
    assert s.step(12.0, [ev.JobEnded(11.9, "a")]) == []
    assert s.next_wakeup() == 20


def test_an_earlier_time_of_something_else_comes_first():
    s = Scheduler(FLAT, plugged(Fcfs()), cycle=10)
    s.step(1, [ev.JobSubmitted(1, described("a", 1)), ev.JobSubmitted(1, described("b", 1, begin_time=4))])
    assert s.next_wakeup() == 4
    assert s.step(4, []) == []
    assert [d.job_id for d in s.step(10, [])] == ["a", "b"]


def test_between_two_cycles_the_explanation_is_when_the_next_one_is():
    s = Scheduler(FLAT, plugged(Fcfs()), cycle=10)
    s.step(0, [ev.JobSubmitted(0, described("a", 8, 50))])
    s.step(3, [ev.JobSubmitted(3, described("b", 8, 50))])
    assert "It waits for 8 more processors." in explain(s, "b", str)
    s.step(4, [ev.JobEnded(4, "a")])
    told = explain(s, "b", str)
    assert told[-1] == "Something happened since the queue was examined; it is examined next at 10."
    s.step(10, [])
    assert "It is being started" in explain(s, "b", str)[-1]


# ---------------------------------------------------------------- what does not wait


def test_users_commands_are_answered_at_once():
    elastic = Elastic(ElasticOptions())
    run = emulate(
        FLAT,
        [traced("a", 8, 100), traced("b", 8, 10, 1)],
        Easy(),
        elastic,
        commands=[TraceCommand(33.0, "a", "RT", 20.0)],
        cycle=10,
    )
    assert [(at, type(d)) for at, d in run.decisions if not isinstance(d, Start)] == [(33.0, SetTimeLimit)]
    assert elastic.answers[-1].outcome == "accepted"
    assert run.starts["b"] == 80


class KillsAt13:
    """Ends a job at the time 13."""

    def __init__(self, job_id):
        self.job_id = job_id

    @hookimpl
    def observe(self, event, state):
        if isinstance(event, ev.JobStarted):
            for pool in state.pools.values():
                state.wake_at(13, pool)

    @hookimpl
    def control(self, state):
        return [Kill(self.job_id, "enough")] if state.now == 13 and self.job_id in state.jobs else []


def test_so_is_what_plugins_decide_beside_the_policy():
    run = emulate(FLAT, [traced("a", 8, 100), traced("b", 8, 10, 1)], Fcfs(), KillsAt13("a"), cycle=10)
    assert run.results["a"].end_time == 13
    assert run.starts["b"] == 20


def test_in_monitor_mode_a_decision_between_two_cycles_does_not_make_it_forget_who_waits():
    s = Scheduler(FLAT, plugged(Fcfs(), KillsAt13("k")), monitor=True, cycle=10)
    both = [ev.JobSubmitted(0, described(name, 4)) for name in "ak"]
    s.step(0, [*both, ev.JobStarted(0, "a"), ev.JobStarted(0, "k")])
    assert s.step(11, [ev.JobEnded(11, "a"), ev.JobSubmitted(11, described("b", 4))]) == []
    assert [type(d) for d in s.step(13, [])] == [Kill]
    assert [d.job_id for d in s.step(20, [])] == ["b"]


# ---------------------------------------------------------------- against the event-driven schedule


@st.composite
def workloads(draw):
    jobs, submit = [], 0
    for number in range(draw(st.integers(1, 14))):
        submit += draw(st.sampled_from([0, 0, 1, 3, 10]))
        estimate = draw(st.integers(1, 30))
        runtime = draw(st.one_of(st.just(estimate), st.integers(0, 35)))
        jobs.append(traced(str(number), draw(st.integers(1, 8)), estimate, submit, runtime=runtime))
    return jobs


@settings(max_examples=120, deadline=None)
@given(workloads(), st.sampled_from(sorted(POLICIES)), st.sampled_from([1, 7, 10]))
def test_every_start_is_on_a_multiple_and_nobody_waits_longer_than_to_the_first_at_which_it_could(
    jobs, policy, cycle
):
    run = emulate(FLAT, jobs, POLICIES[policy](), cycle=cycle)
    assert run.problems == []
    assert all(start % cycle == 0 for start in run.starts.values())
    # Asked at every event and at every multiple as well, the policy starts nobody between two cycles whom
    # it would not have started at the last one: at each multiple all that could be started is.
    asked = emulate(FLAT, jobs, AskedAgain(POLICIES[policy](), cycle), cycle=cycle)
    assert asked.problems == []
    assert asked.starts == run.starts


class AskedAgain:
    """A policy that is asked once more, from a cleared slate, after each of its cycles."""

    def __init__(self, policy, cycle):
        self.policy, self.cycle = policy, cycle

    @hookimpl
    def schedule(self, view):
        made = list(self.policy.schedule(view))
        assert view.now % self.cycle == 0
        count = len(view.made)
        view.queue = [job for job in view.queue if job.start_time is None]
        view.forget()
        view.fresh, view.arrivals = -1, None
        if view.queue:
            self.policy.schedule(view)
        assert len(view.made) == count, "somebody could have started who was not"
        return made


@settings(max_examples=60, deadline=None)
@given(workloads(), st.sampled_from(sorted(POLICIES)))
def test_where_everything_happens_on_multiples_batch_mode_is_the_event_driven_schedule(jobs, policy):
    slow = [
        traced(
            j.job.id, j.job.request.processors, 10 * j.job.request.walltime, 10 * j.job.submit_time,
            runtime=10 * j.runtime,
        )
        for j in jobs
    ]  # fmt: skip
    assert starts(slow, POLICIES[policy]) == starts(slow, POLICIES[policy], cycle=None)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(jobs=workloads(), latency=st.sampled_from([0, 4]), failing=st.sampled_from([0, 0.3]))
def test_a_journal_of_it_is_replayed_identically(tmp_path_factory, jobs, latency, failing):
    path: Path = tmp_path_factory.mktemp("batch") / "run.db"
    with Journal.open(path) as journal:
        emulate_configured(
            FLAT, jobs, [PluginConfig("easy")], Catalogue(), label="easy", seed=3, cycle=10, journal=journal,
            config_text="{plugins: [easy], cycle: 10s}", faults={"latency": latency, "failure_rate": failing},
        )  # fmt: skip
    with Journal.open(path) as journal:
        found = replay(journal, Catalogue())
    assert found.differences == [] and found.decisions >= len(jobs)


def test_a_replay_without_the_cycle_would_differ(tmp_path):
    path = tmp_path / "run.db"
    jobs = [traced("a", 1, 5, 3)]
    with Journal.open(path) as journal:
        emulate_configured(FLAT, jobs, [PluginConfig("easy")], Catalogue(), label="easy", cycle=10,
                           journal=journal, config_text="plugins: [easy]")  # fmt: skip
    with Journal.open(path) as journal:
        assert replay(journal, Catalogue()).differences


def test_commands_that_take_effect_late_or_fail_are_retried_at_multiples():
    run = emulate(
        FLAT, [traced("a", 8, 10, 3), traced("b", 8, 10, 4)], Fcfs(), cycle=10, faults=Faults(latency=3)
    )
    assert run.starts == {"a": 13, "b": 33}


# ---------------------------------------------------------------- where it is said


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("10s", 10), ("10", 10), ("1m", 60), ("1m30s", 90), ("2.5", 2.5), ("1h", 3600)],
)
def test_the_configuration_takes_seconds_or_units(text, seconds):
    assert parse_config(f"cycle: {text}").cycle == seconds


def test_by_default_every_event_counts():
    assert parse_config("").cycle is None


EXPECTED = "expected a time such as 30m, 1h30m, 2d or 45 (seconds), with the longer unit first"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("often", f"cycle: {EXPECTED}, found 'often'"),
        ("yes", f"cycle: {EXPECTED}, found True"),
        ("0", "cycle: expected greater than 0, found 0"),
        ("0s", "cycle: expected greater than 0, found '0s'"),
        ("-5", "cycle: expected greater than 0, found -5"),
        ("2d", "cycle: expected less than or equal to 86400, found '2d'"),
        (".nan", "cycle: expected"),
        ("[1]", "cycle: expected a number, found [1]"),
    ],
)
def test_what_is_no_cycle_is_refused(text, said):
    with pytest.raises(UserError) as error:
        parse_config(f"cycle: {text}")
    assert said in str(error.value)


CAMPAIGN = """
processors: 8
cycle: 10s
policies:
  - easy
  - {label: often, plugins: [easy], cycle: 1}
workloads: [{model: month, options: {days: 1}}]
seeds: 1
"""


def test_a_campaign_has_one_for_all_and_one_for_each(tmp_path):
    path = tmp_path / "campaign.yaml"
    path.write_text(CAMPAIGN)
    plan = load_campaign(path)
    assert [variant.cycle for variant in plan.variants] == [10, 1]
    rows = run_campaign(plan)
    waits = {row.variant: row.values["mean wait"] for row in rows}
    assert waits["easy"] > waits["often"]
    path.write_text(CAMPAIGN.replace("cycle: 1}", "cycle: never}"))
    with pytest.raises(UserError, match="cycle: expected a time"):
        load_campaign(path)
