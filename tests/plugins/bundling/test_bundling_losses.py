"""What becomes of a bundle when something goes wrong: members lost, late or refused, a new scheduler."""

from __future__ import annotations

import json

import pytest
from building import alike, described, emulate, node_cluster, plugged, traced
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from headway.decisions import Cancel, Kill, Requeue, SubmitSubjob
from headway.energy.profiles import load_profile, with_energy
from headway.events import DecisionFailed, JobEnded, JobStarted, JobSubmitted
from headway.hookspecs import Plugin, hookimpl
from headway.metrics.energy import energy_use
from headway.model import ClusterDescription, Dependency
from headway.model.bundles import BUNDLE, Oversubscription
from headway.results import RunResult
from headway.scheduler import Scheduler
from headway.state import State
from headway_adapters.emulated import EmulatedAdapter, Faults
from headway_plugins.bundling.elastic import Elastic
from headway_plugins.bundling.manager import Bundling, BundlingOptions
from headway_plugins.bundling.model import Interval, Member, Model
from headway_plugins.policies.easy import Easy

QUICK = (Phase.explicit, Phase.generate)


class Somebody(Plugin):
    """Does something to jobs at certain times: (time, decision)."""

    def __init__(self, *deeds):
        self.deeds = sorted(deeds, key=lambda deed: deed[0])

    @hookimpl
    def control(self, state):
        due = [what for time, what in self.deeds if time <= state.now]
        self.deeds = [deed for deed in self.deeds if deed[0] > state.now]
        for time, _ in self.deeds[:1]:
            for pool in state.pools.values():
                state.wake_at(time, pool)
        return due


#: The first of the whole runs worked out by hand: job 1 begins at 10 on 1.1 (2 processors until 1460) and 1.2
#: (2 until 1000).
WIDE = [(0, 6, 1000, 1000), (10, 8, 600, 600)]


def run(
    jobs, *others, processors=10, cluster=None, faults=None, seed=0, kind=Bundling, migration=20.0, **options
):
    plugin = kind(BundlingOptions(migration=migration, **options))
    traces = [
        job if hasattr(job, "job") else traced(str(at), job[1], job[2], job[0], runtime=job[3])
        for at, job in enumerate(jobs)
    ]
    return emulate(
        cluster or ClusterDescription.flat(processors), traces, Easy(), plugin, *others, faults=faults,
        seed=seed, oversubscription=Oversubscription(options.get("penalty", 1.0), migration),
    )  # fmt: skip


def requests(found):
    return [each.job.request for _, each in found.decisions if isinstance(each, SubmitSubjob)]


def held(record):
    return [(member.start, member.end, member.processors) for member in record.members]


@pytest.mark.parametrize("lost", ["1.1", "1.2"])
@pytest.mark.parametrize("how", [Kill, Cancel])
def test_what_is_left_of_a_bundle_does_not_suffice_and_it_begins_again(lost, how):
    """At 410 nothing was saved. Two processors would take 2,400 s, 1.1 has 1,050 left: the job waits again,
    and starts at once in what is free. At 1000 its own request starts, and what was done from 410 to 980
    moves there: 570 of 1,200 s."""
    found = run(WIDE, Somebody((410, how(lost, "lost"))))
    assert found.problems == []
    job = found.results["1"]
    assert (job.state, job.restarts) == ("completed", 1)
    assert held(job)[:2] == [(10, 410, 2), (10, 410, 2)]
    assert [(start, processors) for start, _, processors in held(job)[2:]] == [(410, 2), (410, 2), (1000, 8)]
    assert job.end_time == pytest.approx(1000 + 20 + (1 - 570 / 1200) * 600)


def test_a_member_that_goes_back_to_the_queue_is_lost_to_its_bundle():
    found = run(WIDE, Somebody((410, Requeue("1.2", "for somebody else"))))
    assert found.problems == []
    assert found.results["1"].state == "completed"
    # Nobody waits for it: it is removed.
    ended = [event.job_id for event in found.adapter.told if isinstance(event, JobEnded)]
    assert ended.count("1.2") == 1
    assert held(found.results["1"])[1] == (10, 410, 2)


#: Job 2 runs on 2.1 (2 processors) from 5, and on 2.2 (4, whose limit the option ``slack`` trebles) from 300.
#: Jobs 3 and 4 take what is left over, and what 2.1 leaves.
GROWN = [
    (0, 10, 2000, 2000), (0, 8, 2000, 300), (5, 12, 800, 800), (310, 4, 1690, 1690), (320, 2, 3000, 3000),
]  # fmt: skip


def test_what_is_left_goes_on_from_the_last_move():
    """What was done at 300 is safe. On the 4 processors that are left at 400 the whole takes 2,400 s; at 2000
    the job's own request starts."""
    found = run(GROWN, Somebody((400, Kill("2.1", "lost"))), processors=20, slack=3.0)
    assert found.problems == []
    job = found.results["2"]
    assert (job.state, job.restarts) == ("completed", 0)
    done = (300 - 5) / 4800 + (2000 - 420) / 2400
    end = pytest.approx(2000 + 20 + (1 - done) * 800)
    assert held(job) == [(5, 400, 2), (300, 2020, 4), (2000, end, 12)]
    assert job.end_time == end


@pytest.mark.parametrize("kind", ["as it is", "restored"])
def test_a_bundle_that_is_lost_waits_with_its_last_checkpoint(kind):
    """At 300 the share 295 / 4800 was done. At 400 nothing that is left completes within its limit, so all is
    given back. 4 processors are free, on which the rest takes (1 - 295 / 4800) * 2,400 s."""
    plugin = Restarted if kind == "restored" else Bundling
    found = run(GROWN, Somebody((400, Kill("2.1", "lost"))), processors=20, kind=plugin)
    assert found.problems == []
    job, safe = found.results["2"], 295 / 4800
    last = requests(found)[-1]
    assert (last.processors, last.walltime) == (4, pytest.approx((1 - safe) * 2400))
    end = pytest.approx(2000 + 20 + (1 - safe - 1600 / 2400) * 800)
    assert held(job) == [(5, 400, 2), (300, 400, 4), (400, 2020, 4), (2000, end, 12)]
    assert (job.state, job.restarts, job.end_time) == ("completed", 0, end)


def test_a_bundle_that_is_lost_twice_falls_back_to_the_same_checkpoint():
    deeds = Somebody((400, Kill("2.1", "lost")), (500, Kill("2.3", "lost")))
    found = run(GROWN, deeds, processors=20)
    assert found.problems == []
    before, last = requests(found)[-2:]
    assert before.walltime == last.walltime == pytest.approx((1 - 295 / 4800) * 2400)
    assert held(found.results["2"])[2:4] == [(400, 500, 4), (500, 2020, 4)]
    done = 295 / 4800 + 1500 / 2400
    assert found.results["2"].end_time == pytest.approx(2000 + 20 + (1 - done) * 800)


def test_the_own_request_goes_on_from_the_checkpoint_of_a_lost_bundle():
    """Another job takes what the bundle had, and 12 processors are free at 2000."""
    jobs = [*GROWN[:4], (330, 6, 1600, 1600)]
    found = run(jobs, Somebody((400, Kill("2.1", "lost"))), processors=20)
    assert found.problems == []
    job = found.results["2"]
    end = pytest.approx(2000 + (1 - 295 / 4800) * 800)
    assert held(job) == [(5, 400, 2), (300, 400, 4), (2000, end, 12)]
    assert (job.state, job.restarts, job.end_time) == ("completed", 0, end)


def test_a_refused_move_leaves_the_checkpoint_before_it():
    job = Elastic("1", "pool", Model(8, 800.0))
    job.adopt(0.0, [Interval(0.0, 1600.0, 4)], together=0.0)
    members = {"1.1": Member(4, 1600.0)}
    job.sent(400.0, members, "")
    job.sent(800.0, members, "")
    assert (job.safe, job.before) == (0.5, 0.25)
    job.refused = True
    # Tried again, and refused again.
    job.sent(1200.0, members, "")
    job.refused = True
    job.reset()
    assert (job.done, job.rest().walltime) == (0.25, 600.0)


@pytest.mark.parametrize(("safe", "late"), [(0.25, True), (1.0, False)])
def test_plans_do_not_count_on_what_did_not_come_true(safe, late):
    job = Elastic("1", "pool", Model(8, 800.0), running=True, safe=safe)
    job.reset(late=late)
    assert (job.done, job.rest()) == (0.0, job.model)


def test_a_request_that_was_held_for_its_bundle_is_released_when_that_is_lost():
    """At 1190 the bundle is nearly done, so its request is held. Ten seconds before the end it is lost."""
    jobs = [(0, 8, 1300, 1190), (10, 8, 600, 600)]
    assert run(jobs, processors=12).results["1"].end_time == 1210
    found = run(jobs, Somebody((1200, Kill("1.1", "lost"))), processors=12)
    assert found.problems == []
    assert (found.states["1"], found.results["1"].end_time) == ("completed", 1800)


def test_somebody_kills_the_job_itself():
    found = run(WIDE, Somebody((410, Cancel("1", "not wanted any more"))))
    assert found.problems == []
    assert found.results["1"].state == "cancelled"
    assert held(found.results["1"]) == [(10, 410, 2), (10, 410, 2)]
    assert not found.adapter.running and found.results["0"].state == "completed"


def test_its_own_request_is_killed_after_the_move():
    found = run(WIDE, Somebody((1010, Kill("1", "not wanted any more"))))
    assert found.problems == []
    assert (found.results["1"].state, found.results["1"].end_time) == ("cancelled", 1010)
    assert not found.adapter.running


@pytest.mark.parametrize("kind", ["completed", "ended"])
def test_who_depends_on_the_job_starts_when_its_application_is_done(kind):
    after = traced("after", 1, 50, 20, dependencies=(Dependency(kind, "1"),))
    found = run([*WIDE, after])
    assert found.problems == []
    assert found.starts["after"] == found.results["1"].end_time == pytest.approx(1135)


def test_who_depends_on_the_completion_of_a_cancelled_bundle_never_starts():
    after = traced("after", 1, 50, 20, dependencies=(Dependency("completed", "1"),))
    found = run([*WIDE, after], Somebody((410, Cancel("1", "not wanted any more"))))
    assert found.starts["after"] is None


def test_a_node_with_a_member_fails():
    """Nodes of two processors: with the node of 1.1, its other member goes too, and both begin again."""
    cluster = node_cluster(*alike(5, 2))

    class Breaks(Somebody):
        @hookimpl
        def control(self, state):
            if any(time <= state.now for time, _ in self.deeds):
                node = state.jobs["1.1"].placement[0][0]
                failures.append(node)
            return super().control(state)

    failures = []
    found = run(WIDE, Breaks((410, Kill("1.1", "its node failed"))), cluster=cluster)
    assert found.problems == [] and failures
    job = found.results["1"]
    assert (job.state, job.restarts) == ("completed", 1)
    assert job.end_time == pytest.approx(1335)


def test_energy_is_that_of_the_members():
    """Job 0 has 6 processors for 1,000 s; job 1's members have 5,080 processor-seconds."""
    cluster = with_energy(ClusterDescription.flat(10), load_profile("present-day"))
    found = run(WIDE, cluster=cluster)
    assert held(found.results["1"]) == [(10, 1000, 2), (10, 1020, 2), (1000, pytest.approx(1135), 8)]
    use = energy_use(
        RunResult(
            "ejb", cluster, found.adapter.results(), capacity=found.adapter.capacity,
            activities=found.adapter.activities, power=found.adapter.power,
        )
    )  # fmt: skip
    assert use.jobs[1] / use.jobs[0] == pytest.approx(5080 / 6000)
    assert use.busy == pytest.approx(use.jobs.sum()) and use.total == pytest.approx(use.busy + use.idle)


@st.composite
def workloads(draw):
    now, jobs = 0, []
    for _ in range(draw(st.integers(2, 12))):
        now += draw(st.sampled_from((0, 0, 5, 40, 300)))
        estimate = draw(st.sampled_from((30, 100, 250, 700, 2000)))
        share = draw(st.sampled_from((0.1, 0.5, 0.9, 1.0)))
        jobs.append((now, draw(st.integers(1, 16)), estimate, estimate * share))
    return jobs


def check(found, count, processors=16):
    """All jobs ran to their end, no processor was given twice, nothing is left behind."""
    assert found.problems == []
    assert list(found.states.values()) == ["completed"] * count
    assert not found.adapter.running
    changes = {}
    for job in found.results.values():
        spans = held(job) if job.members else [(job.start_time, job.end_time, job.job.request.processors)]
        for start, end, wide in spans:
            changes[start] = changes.get(start, 0) + wide
            changes[end] = changes.get(end, 0) - wide
    used = 0
    for time in sorted(changes):
        used += changes[time]
        assert 0 <= used <= processors


@given(workloads(), st.sampled_from((0.0, 3.0)), st.sampled_from((0.0, 0.2)), st.integers(0, 3))
@settings(max_examples=40, deadline=None, phases=QUICK)
def test_late_and_refused_commands(jobs, latency, failures, seed):
    faults = Faults(latency=latency, failure_rate=failures)
    check(run(jobs, processors=16, min_processors=2, faults=faults, seed=seed), len(jobs))


def test_a_start_of_its_own_that_was_ordered_before_its_subjobs_came_is_final():
    """Its subjobs are on their way when the policy starts job 8 as it is; it ran twice."""
    jobs = [
        (5, 13, 30, 15), (5, 12, 250, 125), (5, 2, 100, 100), (10, 4, 100, 10), (50, 9, 250, 125),
        (50, 10, 100, 90), (55, 11, 250, 125), (95, 9, 100, 100), (395, 9, 2000, 2000),
    ]  # fmt: skip
    found = run(jobs, processors=16, min_processors=2, faults=Faults(latency=3.0), seed=3)
    check(found, len(jobs))
    assert [wide for start, end, wide in held(found.results["8"]) if end > start] == [9]
    told = [event for event in found.adapter.told if isinstance(event, JobStarted | JobEnded)]
    left = {event.job_id for event in told if isinstance(event, JobStarted)}
    left -= {event.job_id for event in told if isinstance(event, JobEnded)}
    assert not left


def test_a_subjob_of_a_job_that_started_on_its_own_meanwhile_is_removed():
    """It was asked for, its job starts, and then it comes."""
    plugin = Bundling(BundlingOptions())
    scheduler = Scheduler(
        ClusterDescription.flat(10), plugged(Easy(), plugin), capabilities=EmulatedAdapter.capabilities
    )
    scheduler.step(0.0, [JobSubmitted(0.0, described("a", 6, 1000.0)), JobStarted(0.0, "a")])
    asked = scheduler.step(10.0, [JobSubmitted(10.0, described("b", 8, 600.0, 10.0))])
    [first, second] = [decision.job for decision in asked if isinstance(decision, SubmitSubjob)]
    scheduler.step(11.0, [JobSubmitted(11.0, first)])
    scheduler.step(12.0, [JobEnded(12.0, "a"), JobStarted(12.0, "b")])
    removed = scheduler.step(13.0, [JobSubmitted(13.0, second)])
    assert {decision.job_id for decision in removed} == {second.id}
    assert first.id not in scheduler.state.jobs or scheduler.state.jobs[first.id].leaving


@given(workloads(), st.integers(0, 5))
@settings(max_examples=25, deadline=None, phases=QUICK)
def test_nodes_that_fail(jobs, seed):
    faults = Faults(node_mtbf=3000.0, node_repair=200.0, requeue=True)
    cluster = node_cluster(*alike(8, 2))
    check(run(jobs, cluster=cluster, min_processors=2, faults=faults, seed=seed), len(jobs))


@given(
    workloads(), st.lists(st.tuples(st.integers(1, 3000), st.integers(0, 11), st.integers(1, 3)), max_size=6)
)
@settings(max_examples=30, deadline=None, phases=QUICK)
def test_members_that_are_killed(jobs, deeds):
    kills = [(at, Kill(f"{job}.{member}", "lost")) for at, job, member in deeds]
    check(run(jobs, Somebody(*kills), processors=16, min_processors=2, slack=1.5), len(jobs))


class Restarted(Bundling):
    """A new plugin after each step, with what the one before it would have saved."""

    @hookimpl
    def decided(self, decisions, state):
        saved = self.checkpoint()
        fresh = Bundling(self.options)
        if saved is not None:
            fresh.restore(json.loads(json.dumps(saved)))
        self.__dict__.update({key: value for key, value in fresh.__dict__.items() if key != "_costs"})


def taken_up(*there):
    """What a new plugin decides that takes up, at 500, what another has saved while job 1 ran on 1.1 and 1.2,
    where the cluster has these jobs only: (id, whether it runs)."""
    saved = []

    class Saves(Somebody):
        @hookimpl
        def control(self, state):
            if state.now >= 410 and not saved:
                saved.append(json.loads(json.dumps(found[0].checkpoint())))
            return super().control(state)

    found = []

    class Noted(Bundling):
        def __init__(self, options):
            super().__init__(options)
            found.append(self)

    run(WIDE, Saves((410, Cancel("nobody", ""))), kind=Noted)
    state = State(ClusterDescription.flat(10))
    state.now = 500.0
    fresh = Bundling(BundlingOptions(migration=20.0))
    fresh.restore(saved[0])
    sizes = {"0": (6, 1000), "1": (8, 600), "1.1": (2, 1450), "1.2": (2, 990)}
    told = []
    for name, runs in there:
        more = {"attributes": {BUNDLE: "1"}} if "." in name else {}
        told.append(JobSubmitted(10, described(name, *sizes[name], 10, **more)))
        if runs:
            told.append(JobStarted(10, name))
    state.apply(told)
    for event in told:
        fresh.observe(event, state)
    return list(fresh.control(state) or ())


def test_what_could_not_be_taken_back_is_tried_again():
    state = State(ClusterDescription.flat(10))
    plugin = Bundling(BundlingOptions())
    lost = described("1.9", 2, 100, attributes={BUNDLE: "1"})

    def step(now, *told):
        state.now = now
        state.apply([event for event in told if isinstance(event, JobSubmitted)])
        for event in told:
            plugin.observe(event, state)
        return list(plugin.control(state) or ())

    (cancel,) = step(0.0, JobSubmitted(0.0, lost))
    assert isinstance(cancel, Cancel) and cancel.job_id == "1.9"
    assert step(1.0, DecisionFailed(1.0, cancel, "not now")) == []
    assert step(15.0) == []
    assert step(16.0) == [cancel]


def test_a_successor_finds_all_as_it_was():
    assert taken_up(("0", True), ("1", False), ("1.1", True), ("1.2", True)) == []


def test_a_successor_finds_that_a_member_is_gone():
    """Nothing was saved, and 2 processors do not suffice."""
    found = taken_up(("0", True), ("1", False), ("1.1", True))
    assert [(type(each), each.job_id) for each in found] == [(Kill, "1.1")]


def test_a_successor_finds_that_the_job_is_gone():
    found = taken_up(("0", True), ("1.1", True))
    assert [(type(each), each.job_id) for each in found] == [(Kill, "1.1")]


@given(workloads(), st.booleans())
@settings(max_examples=40, deadline=None, phases=QUICK)
def test_a_plugin_that_is_restored_after_each_step_decides_the_same(jobs, late):
    faults = Faults(latency=3.0) if late else None

    def decisions(kind):
        return run(jobs, processors=16, min_processors=2, faults=faults, kind=kind).decisions

    assert decisions(Restarted) == decisions(Bundling)
