"""Elastic commands: what each does to queued and running jobs, and who may not be delayed by it."""

from __future__ import annotations

from itertools import groupby
from operator import attrgetter

import pytest
from building import alike, described, emulate, node_cluster, plugged, traced
from hypothesis import given, settings
from hypothesis import strategies as st

from headway import events as ev
from headway.decisions import Kill, Resize, SetTimeLimit, Start
from headway.hookspecs import hookimpl
from headway.model import ClusterDescription, NodeDescription, PoolDescription, Reservation
from headway.scheduler import Scheduler
from headway.workload.jobs import TraceCommand, TraceJob, dedicated
from headway_adapters.emulated import EmulatedAdapter, Faults
from headway_plugins.elasticity.commands import Elastic, ElasticOptions
from headway_plugins.placement.first_fit import FirstFit
from headway_plugins.policies.easy import Easy

FLAT = ClusterDescription.flat(10)
MALLEABLE = {"attributes": {"malleable": True}}


class Asked:
    """A run with commands given as "time job command amount"."""

    def __init__(self, jobs, *commands, cluster=FLAT, more=(), faults=None, **options):
        self.elastic = Elastic(ElasticOptions(**options))
        given = []
        for command in commands:
            time, job, kind, amount = command.split()
            given.append(TraceCommand(float(time), job, kind, float(amount)))
        self.run = emulate(cluster, jobs, Easy(), self.elastic, *more, commands=given, faults=faults)
        assert self.run.problems == []

    @property
    def outcomes(self):
        return [answer.outcome for answer in self.elastic.answers]

    @property
    def reason(self):
        return self.elastic.answers[-1].reason

    def ended(self, job):
        result = self.run.results[job]
        return result.end_time, result.state


def wanted(name, processors, estimate, start, submit=0):
    job = traced(name, processors, estimate, submit)
    return TraceJob(dedicated(job.job, float(start)), job.runtime)


# ---------------------------------------------------------------------- queued jobs


QUEUED = [traced("r", 10, 100), traced("q", 4, 50, 1, runtime=40)]


@pytest.mark.parametrize(
    ("command", "outcome", "request_after", "end"),
    [
        ("ET 30", "accepted", (4, 80), 170),
        ("RT 20", "accepted", (4, 30), 120),
        ("RT 45", "accepted", (4, 5), 100),
        ("RT 50", "in part", (4, 1), 100),
        ("RT 1000", "in part", (4, 1), 100),
        ("EP 3", "accepted", (7, 50), 140),
        ("EP 6", "accepted", (10, 50), 140),
        ("EP 7", "in part", (10, 50), 140),
        ("RP 1", "accepted", (3, 50), 140),
        ("RP 3", "accepted", (1, 50), 140),
        ("RP 9", "in part", (1, 50), 140),
    ],
)
def test_a_queued_job(command, outcome, request_after, end):
    asked = Asked(QUEUED, f"10 q {command}")
    assert asked.outcomes == [outcome]
    request = asked.run.results["q"].job.request
    assert (request.processors, request.walltime) == request_after
    assert asked.ended("q") == (end, "completed")


def test_a_queued_job_that_is_made_smaller_may_start_at_once():
    asked = Asked([traced("r", 7, 100), traced("q", 4, 50, 1)], "10 q RP 1")
    assert asked.run.starts["q"] == 10


def test_a_queued_job_that_is_made_shorter_may_be_backfilled_at_once():
    jobs = [traced("r", 7, 100), traced("head", 10, 100, 1), traced("q", 3, 200, 2)]
    assert Asked(jobs, "10 q RT 110").run.starts["q"] == 10
    assert Asked(jobs, "10 q RT 109").run.starts["q"] == 200


# ---------------------------------------------------------------------- running jobs: time


def test_an_extension_moves_the_limit_and_the_work_of_a_running_job():
    asked = Asked([traced("r", 4, 100, runtime=90)], "10 r ET 50")
    assert asked.outcomes == ["accepted"]
    assert asked.ended("r") == (140, "completed")
    assert "150 s now, was 100 s" in asked.reason


def test_an_extension_saves_a_job_that_its_limit_would_end():
    asked = Asked([traced("r", 4, 100, runtime=120)], "99 r ET 50")
    assert asked.ended("r") == (150, "timed out")
    plain = Asked([traced("r", 4, 100, runtime=120)])
    assert plain.ended("r") == (100, "timed out")


def test_a_reduction_ends_a_running_job_earlier():
    asked = Asked([traced("r", 4, 100)], "10 r RT 40")
    assert asked.outcomes == ["accepted"]
    assert asked.ended("r") == (60, "completed")


@pytest.mark.parametrize("amount", [70, 71, 100, 1000])
def test_a_reduction_to_what_has_run_already_ends_the_job_now(amount):
    asked = Asked([traced("r", 4, 100)], f"30 r RT {amount}")
    assert asked.outcomes == ["accepted"]
    assert asked.ended("r") == (30, "completed")
    assert "has run 30 s already, so the job ends now (reduced)" in asked.reason
    assert [type(decision) for _, decision in asked.run.decisions][-1] is Kill


def test_commands_at_one_instant_add_up():
    asked = Asked([traced("r", 4, 100)], "10 r ET 50", "10 r ET 50", "10 r RT 20")
    assert asked.outcomes == ["accepted"] * 3
    assert asked.ended("r") == (180, "completed")


def test_the_heads_reservation_moves_with_an_extension_and_backfilling_knows_it():
    # Until the extension the head's shadow time is 100; from then on it is 150.
    jobs = [traced("r", 6, 100), traced("head", 8, 10, 1), traced("b", 4, 140, 5)]
    assert Asked(jobs).run.starts == {"r": 0, "head": 100, "b": 110}
    asked = Asked(jobs, "5 r ET 50")
    assert asked.run.starts == {"r": 0, "head": 150, "b": 5}


def test_the_pools_limit_caps_an_extension():
    pool = ClusterDescription("c", (PoolDescription("pool", processors=10, max_walltime=120.0),))
    asked = Asked([traced("r", 4, 100)], "10 r ET 50", "20 r ET 50", cluster=pool)
    assert asked.outcomes == ["in part", "refused"]
    assert asked.ended("r") == (120, "completed")


# ---------------------------------------------------------------------- running jobs: size


def test_a_running_job_grows_if_processors_are_free():
    asked = Asked([traced("r", 4, 100)], "10 r EP 6")
    assert asked.outcomes == ["accepted"]
    assert asked.run.results["r"].job.request.processors == 10
    assert asked.ended("r") == (100, "completed")


def test_a_malleable_jobs_work_divides_by_its_processors():
    asked = Asked([traced("r", 4, 100, **MALLEABLE)], "20 r EP 4")
    assert asked.ended("r") == (60, "completed")
    asked = Asked([traced("r", 4, 100, **MALLEABLE)], "20 r RP 2")
    assert asked.ended("r") == (180, "completed")


def test_a_malleable_jobs_limit_is_scaled_with_its_work():
    asked = Asked([traced("r", 4, 100, runtime=200, **MALLEABLE)], "20 r RP 2")
    assert asked.ended("r") == (180, "timed out")


def test_what_is_given_back_is_used_in_the_same_instant():
    jobs = [traced("r", 10, 100, **MALLEABLE), traced("q", 5, 10, 1)]
    asked = Asked(jobs, "20 r RP 5")
    assert asked.run.starts == {"r": 0, "q": 20}
    assert asked.ended("r") == (180, "completed")


def test_a_rigid_running_job_keeps_its_processors():
    asked = Asked([traced("r", 4, 100)], "10 r RP 1")
    assert asked.outcomes == ["refused"]
    assert "not marked malleable" in asked.reason


def test_what_a_job_grows_by_is_not_given_to_another_in_the_same_instant():
    asked = Asked([traced("r", 4, 100), traced("q", 5, 10, 10)], "10 r EP 5")
    assert asked.outcomes == ["accepted"]
    assert asked.run.starts["q"] == 100
    assert not [o for o in asked.run.adapter.told if isinstance(o, ev.DecisionFailed)]


def test_a_growth_never_delays_the_head_of_the_queue():
    # At 50 there are 6 for the head of 5, so one of the two that are free now is not needed.
    blocked = [traced("r", 4, 100), traced("s", 4, 50), traced("head", 5, 100, 1)]
    assert Asked(blocked, "10 r EP 1").outcomes == ["accepted"]
    refused = Asked(blocked, "10 r EP 2")
    assert refused.outcomes == ["refused"]
    assert "job head, which is first in the queue" in refused.reason
    assert refused.run.starts["head"] == 50


def test_a_growth_never_takes_what_a_dedicated_job_will_need():
    jobs = [traced("r", 4, 100), wanted("d", 5, 10, 60)]
    assert Asked(jobs, "10 r EP 1").outcomes == ["accepted"]
    refused = Asked(jobs, "10 r EP 2")
    assert refused.outcomes == ["refused"]
    assert "dedicated job d, which must start at 60" in refused.reason


def test_a_growth_beyond_what_is_free_or_the_machine_is_refused():
    jobs = [traced("r", 4, 100), traced("s", 4, 100)]
    asked = Asked(jobs, "10 r EP 3", "20 r EP 100")
    assert asked.outcomes == ["refused", "refused"]
    assert "2 free" in asked.reason


def test_with_wait_a_growth_is_granted_when_it_can_be():
    jobs = [traced("r", 4, 100), traced("s", 4, 50)]
    asked = Asked(jobs, "10 r EP 5", wait=True)
    assert asked.outcomes == ["accepted"]
    assert asked.elastic.answers[0].time == 50
    assert asked.run.results["r"].job.request.processors == 9


def test_a_growth_that_waits_until_its_job_is_over_is_refused_then():
    asked = Asked([traced("r", 4, 100), traced("s", 4, 300)], "10 r EP 5", wait=True)
    assert asked.outcomes == ["refused"]
    assert asked.elastic.answers[0].time == 100


def test_on_nodes_a_job_grows_and_shrinks_where_it_runs():
    cluster = node_cluster(*alike(2, 4))
    jobs = [traced("r", 5, 100, **MALLEABLE)]
    asked = Asked(jobs, "20 r EP 3", cluster=cluster, more=(FirstFit(),))
    assert asked.outcomes == ["accepted"]
    assert dict(asked.run.results["r"].placement) == {"n0": 4, "n1": 4}
    asked = Asked(jobs, "20 r RP 3", cluster=cluster, more=(FirstFit(),))
    assert asked.outcomes == ["accepted"]
    assert sum(count for _, count in asked.run.results["r"].placement) == 2


def test_on_nodes_a_growth_needs_room_on_the_jobs_own_nodes():
    cluster = node_cluster(*alike(2, 4))
    jobs = [traced("r", 2, 100, required_nodes=("n0",)), traced("s", 2, 100, required_nodes=("n0",))]
    asked = Asked(jobs, "20 r EP 1", cluster=cluster, more=(FirstFit(),))
    assert asked.outcomes == ["refused"]
    assert "nodes of the job have no room" in asked.reason


# ---------------------------------------------------------------------- who may not be delayed


def test_an_extension_that_delays_a_dedicated_job_is_refused_and_names_it():
    jobs = [traced("r", 4, 100), wanted("d", 8, 10, 120)]
    assert Asked(jobs, "10 r ET 20").outcomes == ["accepted"]
    refused = Asked(jobs, "10 r ET 21")
    assert refused.outcomes == ["refused"]
    assert refused.reason == "it would delay dedicated job d, which must start at 120"
    assert refused.run.starts["d"] == 120


def test_an_extension_that_delays_a_late_dedicated_job_further_is_refused():
    jobs = [traced("r", 4, 100), wanted("d", 8, 10, 60, submit=1)]
    refused = Asked(jobs, "10 r ET 1", "70 r ET 1")
    assert refused.outcomes == ["refused", "refused"]
    assert refused.run.starts["d"] == 100


def test_with_priority_for_jobs_the_dedicated_job_is_late():
    jobs = [traced("r", 4, 100), wanted("d", 8, 10, 120)]
    asked = Asked(jobs, "10 r ET 50", priority="jobs")
    assert asked.outcomes == ["accepted"]
    assert asked.run.starts["d"] == 150


def test_shrinking_makes_a_job_longer_and_must_not_delay_a_dedicated_one():
    jobs = [traced("r", 8, 100, **MALLEABLE), wanted("d", 8, 10, 120)]
    refused = Asked(jobs, "50 r RP 4")
    assert refused.outcomes == ["refused"]
    assert "delay dedicated job d" in refused.reason


@pytest.mark.parametrize("nodes", [False, True])
def test_an_extension_into_a_reservation_is_refused(nodes):
    if nodes:
        kept = Reservation("maintenance", 150.0, 200.0, nodes=("n0",))
        cluster = node_cluster(*alike(2, 5), reservations=(kept,))
    else:
        kept = Reservation("maintenance", 150.0, 200.0, pool="pool", processors=8)
        cluster = ClusterDescription("c", (PoolDescription("pool", processors=10),), reservations=(kept,))
    jobs = [traced("r", 4, 100)]
    more = (FirstFit(),) if nodes else ()
    assert Asked(jobs, "10 r ET 50", cluster=cluster, more=more).outcomes == ["accepted"]
    refused = Asked(jobs, "10 r ET 51", cluster=cluster, more=more)
    assert refused.outcomes == ["refused"]
    assert refused.reason == "it would delay reservation maintenance"


# ---------------------------------------------------------------------- refusals, order, counts


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("10 nobody ET 5", "unknown"),
        ("150 r ET 5", "over"),
        ("100 r ET 5", "over"),
        ("10 later ET 5", "not submitted yet"),
        ("10 r XX 5", "expected one of ET, RT, EP, RP, found 'XX'"),
        ("10 r ET 0", "expected an amount above 0, found 0"),
        ("10 r ET -5", "expected an amount above 0, found -5"),
        ("10 r ET nan", "expected an amount above 0, found nan"),
        ("10 r ET inf", "expected an amount above 0, found inf"),
        ("10 r EP 0.5", "expected whole processors, found 0.5"),
    ],
)
def test_what_cannot_be_is_refused_with_its_reason(command, reason):
    asked = Asked([traced("r", 4, 100), traced("later", 1, 10, 300)], command)
    assert asked.outcomes == ["refused"]
    assert reason in asked.reason
    assert asked.ended("r") == (100, "completed")


def test_a_job_has_a_limited_number_of_commands_and_refused_ones_do_not_count():
    asked = Asked([traced("r", 4, 100)], "10 r RP 1", "20 r ET 5", "30 r ET 5", "40 r ET 5", max_per_job=2)
    assert asked.outcomes == ["refused", "accepted", "accepted", "refused"]
    assert "has used all of its 2 commands" in asked.reason
    assert asked.ended("r") == (110, "completed")


def step_with_user(user, operator=False):
    elastic = Elastic(ElasticOptions())
    scheduler = Scheduler(FLAT, plugged(Easy(), elastic), capabilities=EmulatedAdapter.capabilities)
    scheduler.step(0.0, [ev.JobSubmitted(0.0, described("q", 20, user="ann"))])
    command = ev.ElasticCommandReceived(1.0, "q", "ET", 5, user, operator, "request-1")
    decisions = scheduler.step(1.0, [command])
    return elastic, decisions


def test_only_a_jobs_owner_or_an_operator_commands_it():
    elastic, decisions = step_with_user("bob")
    assert decisions == []
    assert elastic.answer("request-1").outcome == "refused"
    assert elastic.answers[0].reason == "job q belongs to ann, not to bob"
    for user, operator in (("ann", False), ("root", True)):
        elastic, decisions = step_with_user(user, operator)
        assert decisions == [
            SetTimeLimit("q", 105, "extend time: its time is 105 s now, was 100 s", asked=True)
        ]  # fmt: skip
        answer = elastic.answer("request-1")
        assert (answer.outcome, list(answer.decisions)) == ("accepted", decisions)
        assert elastic.answer("request-1") is None


def test_commands_are_served_first_come_first_served():
    # Six are free: the first may have them, the second not any more.
    jobs = [traced("r", 2, 100), traced("s", 2, 100)]
    asked = Asked(jobs, "10 s EP 4", "10 r EP 4")
    assert [(a.job_id, a.outcome) for a in asked.elastic.answers] == [("s", "accepted"), ("r", "refused")]


def test_at_one_instant_completions_come_first_then_commands_then_arrivals_and_the_policy():
    # r ends at 100, so q may grow; what is left is too little for the arrival.
    jobs = [traced("r", 5, 100), traced("q", 5, 200), traced("new", 2, 10, 100)]
    asked = Asked(jobs, "100 q EP 4")
    assert asked.outcomes == ["accepted"]
    assert asked.run.starts["new"] == 200


def test_a_command_at_the_second_of_its_jobs_arrival_comes_after_it():
    asked = Asked([traced("r", 4, 100, 10)], "10 r ET 50")
    assert asked.outcomes == ["accepted"]
    assert asked.ended("r") == (160, "completed")


def test_without_the_plugin_commands_change_nothing():
    run = emulate(FLAT, [traced("r", 4, 100)], Easy(), commands=[TraceCommand(10.0, "r", "ET", 50.0)])
    assert run.results["r"].end_time == 100


def test_a_limit_that_another_plugin_changes_does_not_change_the_work():
    class Generous:
        done = False

        @hookimpl
        def control(self, state):
            if "r" in state.jobs and state.now >= 20 and not self.done:
                self.done = True
                return [SetTimeLimit("r", 500.0)]
            return None

    jobs = [traced("r", 4, 100)]
    # The command before it is refused (beyond the dedicated job), so it explains nothing.
    run = Asked([*jobs, wanted("d", 8, 10, 100), traced("t", 1, 1, 20)], "10 r ET 50", more=(Generous(),)).run
    assert run.results["r"].end_time == 100


# ---------------------------------------------------------------------- what the cluster refuses


def test_a_change_that_the_cluster_refuses_is_as_if_it_had_not_been():
    elastic = Elastic(ElasticOptions())
    scheduler = Scheduler(FLAT, plugged(Easy(), elastic), capabilities=EmulatedAdapter.capabilities)
    scheduler.step(0.0, [ev.JobSubmitted(0.0, described(n, 2)) for n in "rs"])
    scheduler.step(0.0, [ev.JobStarted(0.0, n) for n in "rs"])
    commands = [
        ev.ElasticCommandReceived(1.0, "r", "ET", 50),
        ev.ElasticCommandReceived(1.0, "s", "EP", 4),
    ]
    limit, size = scheduler.step(1.0, commands)
    job, grown = scheduler.state.jobs["r"], scheduler.state.jobs["s"]
    pool = job.domain
    assert (job.estimate, job.expected_end) == (150, 150)
    assert (grown.processors, pool.free) == (6, 2)
    failed = [ev.DecisionFailed(2.0, d, "no") for d in (limit, size)]
    assert scheduler.step(2.0, failed) == []
    assert (job.estimate, job.expected_end) == (100, 100)
    assert (grown.processors, pool.free) == (2, 6)
    assert [entry[2] for entry in pool.running] == [2, 2]
    assert [(a.job_id, a.outcome) for a in elastic.answers][2:] == [("r", "refused"), ("s", "refused")]
    assert elastic.answers[-1].reason == "by the cluster: no"
    scheduler.step(3.0, [ev.JobEnded(3.0, n) for n in "rs"])
    assert pool.free == 10 and pool.running == []


def test_a_growth_on_nodes_that_the_cluster_refuses_is_taken_back():
    cluster = node_cluster(*alike(2, 4))
    scheduler = Scheduler(
        cluster, plugged(Easy(), FirstFit(), Elastic(ElasticOptions())),
        capabilities=EmulatedAdapter.capabilities,
    )  # fmt: skip
    (start,) = scheduler.step(0.0, [ev.JobSubmitted(0.0, described("r", 2))])
    assert isinstance(start, Start)
    scheduler.step(0.0, [ev.JobStarted(0.0, "r", start.placement)])
    (resize,) = scheduler.step(1.0, [ev.ElasticCommandReceived(1.0, "r", "EP", 2)])
    assert resize == Resize("r", 4, (("n0", 4),), "grow: it has 4 processors now, had 2")
    assert scheduler.state.nodes.free.processors[:2].tolist() == [0, 4]
    scheduler.step(2.0, [ev.DecisionFailed(2.0, resize, "no")])
    assert scheduler.state.nodes.free.processors[:2].tolist() == [2, 4]
    assert scheduler.state.jobs["r"].placement == (("n0", 2),)
    scheduler.step(3.0, [ev.JobEnded(3.0, "r")])
    assert scheduler.state.nodes.free.processors[:2].tolist() == [4, 4]


def test_late_and_failing_commands_to_the_cluster_leave_everything_sound():
    jobs = [traced(f"j{at}", 1 + at % 5, 100, 7 * at, **MALLEABLE) for at in range(12)]
    commands = [
        f"{20 + 5 * at} j{at % 12} {kind} {3 + at}" for at, kind in enumerate(("ET", "RT", "EP", "RP") * 6)
    ]
    asked = Asked(jobs, *commands, faults=Faults(latency=2.0, failure_rate=0.3))
    assert set(asked.run.states.values()) <= {"completed", "timed out"}


# ---------------------------------------------------------------------- restart, invariants


def test_what_waits_and_what_was_counted_survive_a_restart():
    elastic = Elastic(ElasticOptions(wait=True, max_per_job=1))
    scheduler = Scheduler(FLAT, plugged(Easy(), elastic), capabilities=EmulatedAdapter.capabilities)
    scheduler.step(0.0, [ev.JobSubmitted(0.0, described(n, 5)) for n in "rs"])
    scheduler.step(0.0, [ev.JobStarted(0.0, n) for n in "rs"])
    scheduler.step(
        1.0,
        [ev.ElasticCommandReceived(1.0, "s", "ET", 5), ev.ElasticCommandReceived(1.0, "r", "EP", 2)],
    )
    saved = {"elastic": elastic.checkpoint()}
    fresh = Elastic(ElasticOptions(wait=True, max_per_job=1))
    scheduler = Scheduler(
        FLAT, plugged(Easy(), fresh), capabilities=EmulatedAdapter.capabilities, saved=saved
    )
    known = [ev.JobSubmitted(0.0, described(n, 5)) for n in "rs"] + [ev.JobStarted(0.0, n) for n in "rs"]
    assert scheduler.step(2.0, known) == []
    again = [ev.ElasticCommandReceived(3.0, "s", "ET", 5), ev.JobEnded(3.0, "s")]
    assert [type(d) for d in scheduler.step(3.0, again[:1])] == []
    assert fresh.answers[-1].reason == "job s has used all of its 1 commands"
    assert scheduler.step(4.0, again[1:]) == [Resize("r", 7, (), "grow: it has 7 processors now, had 5")]


def test_a_size_and_a_time_asked_for_at_once_are_two_commands():
    job = traced("0", 1, 1, runtime=0, **MALLEABLE)
    commands = [*["000 0 ET 1"] * 5, "001 0 EP 1", "001 0 RT 3"]
    asked = Asked([job], *commands, more=(FirstFit(),), wait=False)
    # Twice as large it has half as much to do; the limit that goes with that answers nobody's wish for less.
    assert asked.outcomes == ["accepted"] * 7
    assert asked.ended("0") == (1.0, "completed")


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_no_processor_is_given_twice_and_every_job_ends_once_whatever_users_command(data):
    nodes = data.draw(st.booleans())
    cluster = node_cluster(*alike(2, 5)) if nodes else FLAT
    submit, jobs = 0, []
    for at in range(data.draw(st.integers(1, 8))):
        submit += data.draw(st.sampled_from([0, 0, 3, 10]))
        estimate = data.draw(st.integers(1, 40))
        attributes = {"malleable": True} if data.draw(st.booleans()) else None
        job = traced(str(at), data.draw(st.integers(1, 10)), estimate, submit,
                     runtime=data.draw(st.integers(0, 50)), attributes=attributes)  # fmt: skip
        if data.draw(st.integers(0, 3)) == 0:
            job = TraceJob(dedicated(job.job, float(submit + data.draw(st.integers(0, 30)))), job.runtime)
        jobs.append(job)
    commands = sorted(
        f"{data.draw(st.integers(0, 80)):03} {data.draw(st.integers(0, len(jobs)))} "
        f"{data.draw(st.sampled_from(['ET', 'RT', 'EP', 'RP']))} {data.draw(st.integers(1, 30))}"
        for _ in range(data.draw(st.integers(0, 12)))
    )
    options = {
        "wait": data.draw(st.booleans()),
        "priority": data.draw(st.sampled_from(["reservations", "jobs"])),
    }
    asked = Asked(jobs, *commands, cluster=cluster, more=(FirstFit(),), **options)
    used = {}
    sizes = {}
    # A job that is over in the instant in which it is changed and started is told without the change.
    for _, together in groupby(asked.run.adapter.told, key=attrgetter("time")):
        for event in together:
            match event:
                case ev.JobSubmitted(job=job) | ev.JobChanged(job=job):
                    sizes[job.id] = job.request.processors
                    if job.id in used:
                        used[job.id] = sizes[job.id]
                case ev.JobStarted(job_id=name):
                    assert name not in used
                    used[name] = sizes[name]
                case ev.JobEnded(job_id=name):
                    used.pop(name, None)
        assert sum(used.values()) <= 10
    assert set(asked.run.states.values()) <= {"completed", "timed out"}


def test_a_dedicated_job_that_arrives_with_a_command_comes_after_it():
    jobs = [traced("r", 4, 100), wanted("d", 6, 10, 60, submit=10)]
    assert Asked(jobs, "10 r EP 3").outcomes == ["accepted"]
    assert Asked(jobs, "11 r EP 3").outcomes == ["refused"]


# ---------------------------------------------------------------------- pools that share nodes


@pytest.mark.parametrize(
    ("pool", "size", "outcome"),
    [
        # When x ends pool a has six left, of which the job would get two.
        ("a", 6, "refused"),
        # Pool b has enough then even so.
        ("b", 12, "accepted"),
        ("b", 13, "refused"),
    ],
)
def test_growing_counts_what_the_head_of_the_queue_needs_in_its_own_pool(pool, size, outcome):
    names = [("a", "b"), ("a", "b"), ("b",), ("b",)]
    nodes = (NodeDescription(f"n{at}", 4, pools=pools) for at, pools in enumerate(names))
    jobs = [
        traced("j", 2, 100, pool="a"), traced("x", 4, 50, pool="b", required_nodes=("n1",)),
        traced("head", size, 40, 1, pool=pool),
    ]  # fmt: skip
    asked = Asked(
        jobs, "10 j EP 2", cluster=node_cluster(*nodes, pools=("a", "b")), more=(FirstFit(),), wait=False
    )
    assert asked.outcomes == [outcome]
