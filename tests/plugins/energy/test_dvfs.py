"""dvfs: the lowest class and level that meet the deadline, as in Chandio et al. 2014, Algorithm 1."""

from __future__ import annotations

import json

import msgspec
import pydantic
import pytest
from building import alike, described, emulate, node_cluster, plugged, traced
from energy_building import PAPER, PRESENT, run_result, three_classes
from hypothesis import given, settings
from hypothesis import strategies as st

from headway import events as ev
from headway.decisions import SetTimeLimit, Start
from headway.energy import EnergyModel
from headway.energy.profiles import with_energy
from headway.hookspecs import hookimpl
from headway.metrics.energy import energy_use
from headway.model import ClusterDescription, NodeDescription, Reservation
from headway.scheduler import Scheduler
from headway_plugins.energy.dvfs import Dvfs
from headway_plugins.placement.first_fit import FirstFit
from headway_plugins.policies.conservative import Conservative
from headway_plugins.policies.easy import Easy
from headway_plugins.policies.greedy import Greedy
from headway_plugins.policies.strict import Strict


def dvfs(**options) -> Dvfs:
    return Dvfs(Dvfs.Options(**options))


def starts(run) -> dict[str, Start]:
    return {d.job_id: d for _, d in run.decisions if isinstance(d, Start)}


def flat(processors: int = 4) -> ClusterDescription:
    return with_energy(ClusterDescription.flat(processors), PAPER)


@pytest.mark.parametrize(
    ("slack", "ghz"),
    [
        (1 / 0.7, 2.1),  # exactly the time at the slowest level
        (1.42, 2.4),
        (1.25, 2.4),
        (1.2, 2.7),
        (1 / 0.9, 2.7),
        (1.1, None),
        (1.0, None),
        (50, 2.1),
    ],
)
def test_the_slowest_level_that_meets_the_deadline(slack: float, ghz: float | None) -> None:
    run = emulate(flat(), [traced("1", 1, 100)], Strict(), dvfs(slack=slack))
    frequency = starts(run)["1"].frequency
    assert frequency == (None if ghz is None else pytest.approx(ghz * 1e9))


def test_a_slowed_job_gets_the_time_that_it_needs() -> None:
    run = emulate(flat(), [traced("1", 1, 100)], Strict(), dvfs(slack=2))
    limits = [d for _, d in run.decisions if isinstance(d, SetTimeLimit)]
    assert [d.walltime for d in limits] == [pytest.approx(100 / 0.7)]
    assert run.states == {"1": "completed"}
    assert run.results["1"].end_time == pytest.approx(100 / 0.7)


def test_limits_can_be_left_alone() -> None:
    run = emulate(flat(), [traced("1", 1, 100)], Strict(), dvfs(slack=2, limits="keep"))
    assert run.states == {"1": "timed out"}


def test_the_lowest_class_with_enough_nodes_that_meets_the_deadline() -> None:
    cluster = three_classes(2, 2, 2)
    jobs = [
        traced("easy", 2, 100),  # class I at its slowest
        traced("next", 2, 100),  # class I is full: class II at the slowest level that meets 1.43
        traced("last", 1, 100),  # class III
        traced("wide", 2, 100),  # one node of III is left: waits
    ]
    run = emulate(cluster, jobs, Greedy(), dvfs(slack=1 / 0.7))
    at = {name: start.placement[0][0].rstrip("0123456789") for name, start in starts(run).items()}
    assert at["easy"] == "I"
    assert at["next"] == "II"
    assert at["last"] == "III"
    assert run.starts["wide"] > 0


def test_a_job_that_only_a_fast_class_can_run_in_time_waits_for_it() -> None:
    cluster = three_classes(2, 0, 1)
    jobs = [traced("1", 1, 100), traced("2", 1, 100)]
    jobs = [traced(j.job.id, 1, 100, attributes={"deadline": 80 if j.job.id == "2" else 1000}) for j in jobs]
    run = emulate(cluster, jobs, Greedy(), dvfs())
    assert starts(run)["1"].placement == (("I0", 1),)
    assert starts(run)["2"].placement == (("III0", 1),)
    assert starts(run)["2"].frequency is None
    assert run.results["2"].end_time == pytest.approx(75)


def test_it_waits_for_it_though_another_placement_knows_a_place() -> None:
    cluster = three_classes(2, 0, 1)
    jobs = [
        traced("1", 1, 100, attributes={"deadline": 80}),
        traced("2", 1, 100, attributes={"deadline": 80}),
    ]
    run = emulate(cluster, jobs, Greedy(), dvfs(), FirstFit())
    assert starts(run)["1"].placement == starts(run)["2"].placement == (("III0", 1),)
    wide = [traced("1", 2, 100), traced("2", 2, 100)]
    run = emulate(three_classes(3, 0, 0), wide, Greedy(), dvfs(slack=1), FirstFit())
    assert run.starts == {"1": 0, "2": 100}
    run = emulate(three_classes(3, 2, 0), wide, Greedy(), dvfs(slack=1), FirstFit())
    assert {name for name, _ in starts(run)["2"].placement} == {"II0", "II1"}


def test_a_deadline_that_no_class_meets_is_missed_at_full_speed_and_counted() -> None:
    cluster = three_classes(2, 2, 1)
    plugin = dvfs()
    run = emulate(cluster, [traced("1", 1, 100, attributes={"deadline": 50})], Strict(), plugin)
    assert starts(run)["1"].placement == (("III0", 1),)
    assert starts(run)["1"].frequency is None
    assert run.states == {"1": "completed"}
    figures = plugin.register_metrics()["dvfs"](run_result(run, cluster))
    assert (figures["deadlines_met"], figures["deadlines_missed"]) == (0, 1)


def test_a_job_wider_than_the_fastest_class_runs_on_the_fastest_that_holds_it() -> None:
    cluster = three_classes(4, 2, 1)
    run = emulate(cluster, [traced("1", 2, 100, attributes={"deadline": 10})], Strict(), dvfs())
    assert {name for name, _ in starts(run)["1"].placement} == {"II0", "II1"}


def test_a_job_wider_than_every_class_runs_over_several() -> None:
    cluster = three_classes(2, 2, 1)
    run = emulate(cluster, [traced("1", 5, 100)], Strict(), dvfs(slack=1))
    assert run.states == {"1": "completed"}


def test_random_deadlines_are_repeatable_and_in_the_papers_range() -> None:
    def deadlines(run: int = 0, **options: int) -> list[float]:
        plugin = dvfs(deadlines="random", **options)
        cluster = three_classes(40, 1, 1)
        jobs = [traced(str(at), 1, 100) for at in range(40)]
        emulate(cluster, jobs, Strict(), plugin, seed=run)
        jobs = [traced(str(at), 1, 100) for at in range(40)]
        kept: list[float] = []
        original = plugin._random
        for at in range(40):
            job = type("J", (), {"id": str(at), "expected_runtime": 100.0, "description": jobs[at].job})()
            kept.append(original(job))
        return kept

    first = deadlines(seed=1)
    assert first == deadlines(seed=1) == deadlines(2, seed=1) != deadlines(seed=2)
    # Without a seed of their own they follow the run's, so each seed of a campaign draws others.
    assert first == deadlines(1) == deadlines(1) != deadlines(2)
    assert min(first) >= 75 and max(first) <= 100 / 0.7
    assert max(first) - min(first) > 40


def test_from_submission_the_waiting_counts() -> None:
    jobs = [traced("1", 4, 30), traced("2", 4, 100)]
    run = emulate(flat(), jobs, Strict(), dvfs(slack=1.5, **{"from": "submit"}))
    assert starts(run)["1"].frequency == pytest.approx(2.1e9)
    # It may take 150 s from its submission, and has waited for 30/0.7 of them.
    assert starts(run)["2"].frequency is None


def test_the_head_of_the_queue_is_not_delayed_by_a_slower_backfilled_job() -> None:
    jobs = [
        traced("long", 3, 100, attributes={"deadline": 100}),
        traced("head", 4, 50),
        traced("filler", 1, 80),
        traced("short", 1, 20, submit=81),
    ]
    run = emulate(flat(), jobs, Easy(), dvfs(slack=2))
    assert run.starts["filler"] == 0
    # 80 s at 0.8 of the frequency are 100 s: no more.
    assert starts(run)["filler"].frequency == pytest.approx(2.4e9)
    assert run.starts["head"] == pytest.approx(100)


def test_a_reservation_is_not_run_into() -> None:
    cluster = with_energy(ClusterDescription.flat(4), PAPER)
    kept = Reservation("r", 120, 200, pool="pool", processors=4)
    cluster = type(cluster)(cluster.name, cluster.pools, cluster.nodes, (kept,), cluster.energy)
    run = emulate(cluster, [traced("1", 1, 100)], Strict(), dvfs(slack=2))
    assert starts(run)["1"].frequency == pytest.approx(2.7e9)
    assert run.results["1"].end_time <= 120


def test_a_reservation_on_nodes_is_not_run_into() -> None:
    cluster = with_energy(node_cluster(*alike(1, 4)), PAPER)
    kept = Reservation("r", 120, 200, nodes=("n0",))
    cluster = type(cluster)(cluster.name, cluster.pools, cluster.nodes, (kept,), cluster.energy)
    run = emulate(cluster, [traced("1", 1, 100)], Strict(), dvfs(slack=2))
    assert starts(run)["1"].frequency == pytest.approx(2.7e9)


def test_a_job_that_runs_again_is_not_stretched_twice() -> None:
    from headway.decisions import Requeue
    from headway.hookspecs import hookimpl

    class Once:
        done = False

        @hookimpl
        def startup(self, state):
            state.wake_at(10, next(iter(state.pools.values())))

        @hookimpl
        def control(self, state):
            if state.now >= 10 and not self.done:
                self.done = True
                return [Requeue("1")]
            return []

    run = emulate(flat(), [traced("1", 1, 100)], Strict(), dvfs(slack=1 / 0.7), Once())
    assert run.results["1"].job.request.walltime == pytest.approx(100 / 0.7)
    assert run.results["1"].end_time == pytest.approx(10 + 100 / 0.7)


def test_the_reason_says_what_it_saves() -> None:
    run = emulate(flat(), [traced("1", 1, 100)], Strict(), dvfs(slack=2))
    assert (
        "at 2.10 GHz, which saves 41% of its energy and takes 1.43 times as long" in starts(run)["1"].reason
    )


def test_the_lowest_level_can_be_limited() -> None:
    run = emulate(flat(), [traced("1", 1, 100)], Strict(), dvfs(slack=9, lowest=1))
    assert starts(run)["1"].frequency == pytest.approx(2.7e9)


@pytest.mark.parametrize("options", [{"slack": 0.5}, {"deadlines": "soon"}, {"lowest": -1}, {"speed": 1}])
def test_wrong_options_are_refused(options) -> None:
    with pytest.raises(pydantic.ValidationError):
        Dvfs.Options(**options)


def test_a_node_that_comes_later_is_used() -> None:
    scheduler = Scheduler(three_classes(1, 0, 0), plugged(Greedy(), dvfs()))
    scheduler.step(0, [ev.JobSubmitted(0, described("1", 1, 50, 0))])
    scheduler.step(10, [ev.NodeUp(10, NodeDescription("I9", 1, pools=("pool",), node_class="I"))])
    started = scheduler.step(11, [ev.JobSubmitted(11, described("2", 1, 50, 11))])
    assert [d.placement for d in started if isinstance(d, Start)] == [(("I9", 1),)]


def figures(plugin: Dvfs) -> dict:
    return plugin.register_metrics()["dvfs"](None)


def test_starts_count_when_they_happen_and_not_when_they_are_taken_away() -> None:
    class Noon:
        @hookimpl
        def veto(self, decision, state):
            return "not before noon" if isinstance(decision, Start) and state.now < 50 else None

    jobs = [traced("1", 1, 100), *(traced(f"t{at}", 1, 1, submit=10 * at) for at in range(10))]
    plugin = dvfs(slack=1 / 0.7)
    run = emulate(flat(), jobs, Strict(), plugin, Noon())
    assert set(run.states.values()) == {"completed"}
    assert figures(plugin) == {"starts_by_level": {"3": 11}, "deadlines_met": 11, "deadlines_missed": 0}


def test_a_start_that_is_taken_away_leaves_the_job_as_it_was() -> None:
    class Never:
        @hookimpl
        def veto(self, decision, state):
            return "never" if isinstance(decision, Start) and state.now < 50 else None

    plugin = dvfs(slack=2, limits="keep")
    scheduler = Scheduler(flat(), plugged(Strict(), plugin, Never()))
    scheduler.step(0, [ev.JobSubmitted(0, described("1", 1, 100, 0))])
    job = scheduler.state.jobs["1"]
    for now in (10, 20, 30):
        assert scheduler.step(now, [ev.JobSubmitted(now, described(f"t{now}", 1, 1, now))]) == []
        assert (job.expected_runtime, job.frequency) == (100, None)


def test_in_monitor_mode_nothing_grows() -> None:
    scheduler = Scheduler(flat(), plugged(Strict(), dvfs(slack=2)), monitor=True)
    (start, limit) = scheduler.step(0, [ev.JobSubmitted(0, described("1", 1, 100, 0))])
    assert start.frequency == pytest.approx(2.1e9) and limit.walltime == pytest.approx(100 / 0.7)
    job = scheduler.state.jobs["1"]
    for now in (10, 20):
        scheduler.step(now, [ev.JobSubmitted(now, described(f"t{now}", 1, 1, now))])
        assert (job.expected_runtime, job.estimate) == (100, 100)


def test_a_job_that_was_cancelled_met_no_deadline_and_one_that_timed_out_missed_it() -> None:
    plugin = dvfs()
    scheduler = Scheduler(flat(), plugged(Strict(), plugin))
    jobs = [described(name, 1, 100, 0) for name in ("a", "b", "c")]
    scheduler.step(0, [ev.JobSubmitted(0, job) for job in jobs])
    scheduler.step(1, [ev.JobStarted(0, job.id, ()) for job in jobs])
    ends = {"a": "completed", "b": "cancelled", "c": "timed out"}
    scheduler.step(50, [ev.JobEnded(50, name, outcome) for name, outcome in ends.items()])
    assert (figures(plugin)["deadlines_met"], figures(plugin)["deadlines_missed"]) == (1, 1)


def test_a_job_without_a_runtime_gets_no_other_limit() -> None:
    run = emulate(flat(), [traced("1", 1, 0)], Strict(), dvfs(slack=2))
    assert not [d for _, d in run.decisions if isinstance(d, SetTimeLimit)]
    assert run.states == {"1": "completed"}


def test_after_a_restart_a_limit_is_not_stretched_twice() -> None:
    first = dvfs(slack=1 / 0.7)
    scheduler = Scheduler(flat(), plugged(Strict(), first))
    _, limit = scheduler.step(0, [ev.JobSubmitted(0, described("1", 1, 100, 0))])
    scheduler.step(1, [ev.JobStarted(0, "1", ()), ev.JobChanged(1, described("1", 1, limit.walltime, 0))])
    saved = json.loads(json.dumps(scheduler.checkpoint()))

    again = Scheduler(flat(), plugged(Strict(), dvfs(slack=1 / 0.7)), saved=saved)
    seen = described("1", 1, limit.walltime, 0)
    again.step(2, [ev.JobSubmitted(0, seen), ev.JobStarted(0, "1", ())])
    (start,) = again.step(3, [ev.JobRequeued(3, "1")])
    assert start.frequency == pytest.approx(2.1e9), "and it has the limit for that already"


def test_a_sensitivity_costs_nothing_at_full_speed() -> None:
    model = EnergyModel(with_energy(ClusterDescription.flat(4), PRESENT))
    # 0.67 + 1 - 0.67 is not 1, and a job that is stretched by nothing must not be held up by what is booked.
    assert model.rate(PRESENT.classes[0], None, 0.67) == 1.0


def test_on_a_slow_class_the_first_job_starts_though_others_are_booked_behind_it() -> None:
    slow = msgspec.structs.replace(PAPER.classes[0], name="slow", speed=0.5)
    profile = msgspec.structs.replace(PAPER, classes=(slow,))
    cluster = with_energy(node_cluster(*alike(2, 4)), profile)
    jobs = [traced(str(at), 5, 100) for at in range(3)]
    run = emulate(cluster, jobs, Conservative(), dvfs(slack=2))
    assert run.starts == {"0": 0, "1": 200, "2": 400}


def test_a_slow_class_does_not_run_into_a_reservation() -> None:
    slow = msgspec.structs.replace(PAPER.classes[0], name="slow", speed=0.5)
    profile = msgspec.structs.replace(PAPER, classes=(slow,))
    cluster = with_energy(node_cluster(*alike(1, 4)), profile)
    kept = Reservation("r", 120, 200, nodes=("n0",))
    cluster = type(cluster)(cluster.name, cluster.pools, cluster.nodes, (kept,), cluster.energy)
    run = emulate(cluster, [traced("1", 1, 100)], Strict(), dvfs(slack=4))
    assert run.starts["1"] == 200


@st.composite
def workloads(draw):
    jobs, submit = [], 0
    for at in range(draw(st.integers(1, 10))):
        submit += draw(st.sampled_from([0, 5, 40]))
        estimate = draw(st.integers(1, 90))
        jobs.append(traced(f"j{at}", draw(st.integers(1, 5)), estimate, submit))
    return jobs


@settings(max_examples=60, deadline=None)
@given(workloads(), st.sampled_from([Strict, Greedy, Easy]), st.floats(1, 3))
def test_every_job_completes_and_uses_no_more_than_at_full_speed(jobs, policy, slack) -> None:
    cluster = three_classes(4, 3, 2)
    run = emulate(cluster, jobs, policy(), dvfs(slack=slack))
    assert not run.problems
    assert set(run.states.values()) == {"completed"}
    use = energy_use(run_result(run, cluster))
    assert use is not None
    for job, joules, record in zip(jobs, use.jobs, run.adapter.results(), strict=True):
        kinds = {PAPER.classes[["I", "II", "III"].index(n.rstrip("0123456789"))] for n, _ in record.placement}
        most = max(k.capacitance * k.levels[0].voltage ** 2 * k.levels[0].frequency / k.speed for k in kinds)
        if len(kinds) == 1:
            assert joules <= job.job.request.processors * job.runtime * most * (1 + 1e-9)
