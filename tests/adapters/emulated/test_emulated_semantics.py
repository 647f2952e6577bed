"""The emulated cluster, rule by rule."""

from __future__ import annotations

import pytest
from building import alike, emulate, node_cluster, traced
from hypothesis import given, settings
from hypothesis import strategies as st

from headway import events as ev
from headway.decisions import (
    Cancel,
    Checkpoint,
    Hold,
    Kill,
    Release,
    Requeue,
    Reserve,
    Resume,
    SetTimeLimit,
    Signal,
    Start,
    Suspend,
    Unreserve,
)
from headway.errors import UserError
from headway.hookspecs import hookimpl
from headway.model import ClusterDescription, Reservation
from headway.workload.jobs import Begun
from headway_adapters.emulated import EmulatedAdapter, Faults
from headway_plugins.policies.easy import Easy
from headway_plugins.policies.fcfs import Fcfs

FLAT = ClusterDescription.flat(8)


class At:
    """Takes given decisions at given times (or at the first instant after them)."""

    def __init__(self, **plan):
        self.plan = sorted(((int(when[1:]), made) for when, made in plan.items()), key=lambda item: item[0])

    @hookimpl
    def startup(self, state):
        for pool in state.pools.values():
            for when, _ in self.plan:
                state.wake_at(when, pool)

    @hookimpl
    def control(self, state):
        made = []
        while self.plan and self.plan[0][0] <= state.now:
            made.extend(self.plan.pop(0)[1])
        return made


def rounds(run):
    """``(time, [(event, job), ...])`` of each round."""
    return [
        (
            time,
            [
                (type(e).__name__, getattr(e, "job_id", "") or getattr(getattr(e, "job", None), "id", ""))
                for e in es
            ],
        )
        for time, es in run.adapter.rounds
    ]


# ---------------------------------------------------------------- one instant


def test_at_one_instant_completions_then_changes_then_arrivals_in_file_order_then_one_cycle():
    cluster = ClusterDescription("c", FLAT.pools, (), (Reservation("r", 5, 10, pool="pool", processors=1),))
    jobs = [traced("a", 7, 10, runtime=5), traced("z", 1, 10, 5), traced("b", 7, 5, 5), traced("y", 1, 10, 5)]
    run = emulate(cluster, jobs, Fcfs())
    ((_, at_five),) = [r for r in rounds(run) if r[0] == 5]
    assert at_five == [
        ("JobStarted", "a"),
        ("JobEnded", "a"),
        ("ReservationStarted", ""),
        ("JobSubmitted", "z"),
        ("JobSubmitted", "b"),
        ("JobSubmitted", "y"),
    ]
    assert run.starts["z"] == 5


def test_completions_at_one_instant_come_in_the_order_of_their_starts():
    jobs = [traced("a", 1, 10), traced("b", 1, 10), traced("c", 1, 5, 5)]
    run = emulate(FLAT, jobs, Fcfs())
    assert [job for name, job in rounds(run)[-1][1] if name == "JobEnded"] == ["a", "b", "c"]


def test_a_job_without_runtime_completes_in_a_further_round_at_the_same_instant():
    run = emulate(FLAT, [traced("a", 8, 10, runtime=0), traced("b", 8, 10)], Fcfs())
    assert run.starts == {"a": 0, "b": 0}
    assert [time for time, _ in run.adapter.rounds] == [0, 0, 10]
    assert run.results["a"].end_time == 0


# ---------------------------------------------------------------- how a job ends


@pytest.mark.parametrize(
    ("runtime", "end", "state"),
    [(50, 50, "completed"), (100, 100, "completed"), (101, 100, "timed out"), (0, 0, "completed")],
)
def test_a_job_is_killed_at_its_estimate(runtime, end, state):
    result = emulate(FLAT, [traced("a", 1, 100, runtime=runtime)], Fcfs()).results["a"]
    assert (result.end_time, result.state, result.runtime) == (end, state, end)


def test_a_job_ends_as_its_trace_says():
    jobs = [
        traced("a", outcome="failed"),
        traced("b", outcome="cancelled", runtime=5),
        traced("c", runtime=900),
    ]
    assert emulate(FLAT, jobs, Fcfs()).states == {"a": "failed", "b": "cancelled", "c": "timed out"}


def test_a_job_that_never_fits_waits_for_ever_and_the_run_ends():
    run = emulate(FLAT, [traced("a", 9), traced("b", 1)], Easy())
    assert run.states == {"a": "pending", "b": "completed"}


# ---------------------------------------------------------------- the machine checks for itself


@pytest.mark.parametrize(
    ("decision", "message"),
    [
        (Start("ghost"), "not waiting"),
        (Start("big"), "9 processors asked for, 8 free"),
        (Start("held"), "held"),
        (Suspend("a"), "not running"),
        (Resume("a"), "not suspended"),
        (Requeue("a"), "not running"),
        (Kill("ghost"), "not known"),
        (SetTimeLimit("ghost", 5), "not known"),
        (Hold("ghost"), "not waiting"),
        (Release("ghost"), "not waiting"),
        (Unreserve("ghost"), "not known"),
        (Reserve(Reservation("r", 5, 5)), "ends before it begins"),
        (Reserve(Reservation("r", 0, 5, nodes=("n9",))), "unknown nodes: n9"),
        (Checkpoint("a"), "cannot carry out Checkpoint"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)
def test_what_cannot_be_is_refused_and_told(decision, message):
    adapter = EmulatedAdapter(FLAT, [traced("a"), traced("big", 9), traced("held", held=True)])
    adapter.wait(None)
    (outcome,) = adapter.apply(0, [decision])
    assert not outcome.accepted and message in outcome.message
    now, events = adapter.wait(None)
    assert now == 0
    assert events == [ev.DecisionFailed(0, decision, outcome.message)]


def test_a_plugin_that_insists_on_the_impossible_does_not_stop_the_clock():
    class Insists:
        @hookimpl
        def control(self):
            return [Suspend("ghost")]

    run = emulate(FLAT, [traced("a", 8, 10), traced("b", 8, 10, 3)], Fcfs(), Insists(), max_rounds=2000)
    assert run.starts == {"a": 0, "b": 10}


def test_placements_are_checked_on_nodes():
    adapter = EmulatedAdapter(node_cluster(*alike(2, 4)), [traced("a", 4), traced("b", 4)])
    adapter.wait(None)
    outcomes = adapter.apply(
        0, [Start("a", (("n0", 4),)), Start("b", (("n0", 4),)), Start("b", (("n1", 4),))]
    )
    assert [outcome.accepted for outcome in outcomes] == [True, False, True]


def test_a_workload_out_of_order_is_refused():
    with pytest.raises(ValueError, match="before its predecessor"):
        EmulatedAdapter(FLAT, [traced("a", submit=5), traced("b", submit=4)])


# ---------------------------------------------------------------- decisions and their effects


def test_what_a_decision_changed_is_told_at_the_same_instant():
    run = emulate(FLAT, [traced("a", 8, 100), traced("b", 8, 100)], Fcfs(), At(t10=[Kill("a", "over quota")]))
    assert run.states["a"] == "cancelled"
    assert run.starts["b"] == 10


@pytest.mark.parametrize(("requeued", "end"), [(150, 1150), (250, 1150), (350, 1250), (400, 1100)])
def test_what_a_job_saved_before_counts_until_it_has_saved_itself_anew(requeued, end):
    """It saves itself from 100 to 200, when 900 s are left, and from 300 to 400, when 700 s are."""
    job = traced("a", 8, 2000, runtime=1000, attributes={"saves": 100})
    told = {"t100": [Signal("a", "USR1")], "t300": [Signal("a", "USR1")]}
    run = emulate(FLAT, [job], Fcfs(), At(**told, **{f"t{requeued}": [Requeue("a")]}))
    assert run.results["a"].end_time == end


def test_a_pending_job_can_be_cancelled():
    run = emulate(FLAT, [traced("a", 8, 100), traced("b", 8, 100)], Fcfs(), At(t10=[Cancel("b")]))
    result = run.results["b"]
    assert (result.state, result.start_time, result.end_time, result.starts) == ("cancelled", None, 10, 0)


def test_suspension_books_the_progress():
    run = emulate(FLAT, [traced("a", 1, 100, runtime=60)], Fcfs(), At(t20=[Suspend("a")], t50=[Resume("a")]))
    result = run.results["a"]
    assert (result.end_time, result.runtime, result.state) == (90, 60, "completed")


def test_a_suspended_jobs_limit_does_not_run():
    run = emulate(FLAT, [traced("a", 1, 100, runtime=999)], Fcfs(), At(t20=[Suspend("a")], t50=[Resume("a")]))
    result = run.results["a"]
    assert (result.end_time, result.runtime, result.state) == (130, 100, "timed out")


def test_a_suspended_job_keeps_its_processors():
    run = emulate(
        FLAT, [traced("a", 8, 50), traced("b", 1, 10)], Fcfs(), At(t20=[Suspend("a")], t60=[Resume("a")])
    )
    assert run.starts["b"] == 90


def test_a_requeued_job_runs_again_from_its_start():
    run = emulate(FLAT, [traced("a", 8, 50)], Fcfs(), At(t20=[Requeue("a")]))
    result = run.results["a"]
    assert (result.start_time, result.end_time, result.runtime, result.starts) == (20, 70, 50, 2)


def test_a_longer_limit_lets_a_job_finish():
    run = emulate(FLAT, [traced("a", 1, 100, runtime=150)], Fcfs(), At(t50=[SetTimeLimit("a", 200)]))
    assert (run.results["a"].end_time, run.states["a"]) == (150, "completed")


def test_a_shorter_limit_kills_it_earlier():
    run = emulate(FLAT, [traced("a", 1, 100)], Fcfs(), At(t50=[SetTimeLimit("a", 70)]))
    assert (run.results["a"].end_time, run.states["a"]) == (70, "timed out")


def test_a_limit_that_is_over_already_kills_it_now():
    run = emulate(FLAT, [traced("a", 1, 100)], Fcfs(), At(t50=[SetTimeLimit("a", 30)]))
    assert (run.results["a"].end_time, run.states["a"]) == (50, "timed out")


def test_the_limit_of_a_pending_job_counts_when_it_starts():
    jobs = [traced("a", 8, 100), traced("b", 8, 100)]
    run = emulate(FLAT, jobs, Fcfs(), At(t50=[SetTimeLimit("b", 30)]))
    assert (run.results["b"].end_time, run.states["b"]) == (130, "timed out")
    assert run.results["b"].job.request.walltime == 30


def test_a_held_job_starts_after_its_release():
    jobs = [traced("a", 8, 100), traced("b", 8, 10)]
    run = emulate(FLAT, jobs, Fcfs(), At(t50=[Hold("b"), SetTimeLimit("b", 5)], t120=[Release("b")]))
    assert run.starts["b"] == 120


def test_a_job_that_is_held_from_the_start_starts_after_its_release():
    run = emulate(FLAT, [traced("a", held=True)], Fcfs(), At(t50=[Release("a")]))
    assert run.starts["a"] == 50


def test_a_decision_taken_again_is_no_news():
    adapter = EmulatedAdapter(FLAT, [traced("a", held=True)])
    adapter.wait(None)
    kept = Reserve(Reservation("r", 50, 60, pool="pool", processors=1))
    assert adapter.apply(0, [Hold("a")])[0].accepted
    assert adapter.apply(0, [kept])[0].accepted
    assert adapter.wait(None)[1] == [ev.ReservationMade(0, kept.reservation)]
    assert adapter.apply(0, [kept])[0].accepted
    assert adapter.wait(None) == (50, [ev.ReservationStarted(50, "r")])


# ---------------------------------------------------------------- reservations


def test_a_reservation_keeps_processors_and_begins_and_ends_on_time():
    kept = Reservation("r", 20, 40, pool="pool", processors=8)
    jobs = [traced("a", 8, 15), traced("b", 8, 15), traced("m", 8, 20, reservation="r")]
    run = emulate(FLAT, jobs, Easy(), At(t0=[Reserve(kept)]))
    assert run.starts == {"a": 0, "b": 40, "m": 20}


def test_a_removed_reservation_keeps_nothing():
    kept = Reservation("r", 20, 40, pool="pool", processors=8)
    run = emulate(
        FLAT, [traced("a", 8, 15), traced("b", 8, 15)], Easy(), At(t0=[Reserve(kept)], t18=[Unreserve("r")])
    )
    assert run.starts["b"] == 18


# ---------------------------------------------------------------- latency and failures


def test_a_command_takes_its_latency():
    run = emulate(FLAT, [traced("a", 8, 10), traced("b", 8, 10)], Fcfs(), faults=Faults(latency=3))
    assert run.starts == {"a": 3, "b": 16}


def test_a_failed_command_is_told_and_tried_again_later():
    run = emulate(FLAT, [traced("a", 8, 10)], Fcfs(), faults=Faults(failure_rate=0.9), seed=1)
    refused = [e for e in run.adapter.told if isinstance(e, ev.DecisionFailed)]
    assert refused and "injected" in refused[0].message
    assert run.starts["a"] == refused[-1].time + min(15 * 2 ** (len(refused) - 1), 600)


# ---------------------------------------------------------------- nodes that fail


@pytest.mark.parametrize("requeue", [True, False])
def test_a_failing_node_ends_or_requeues_its_jobs_and_comes_back(requeue):
    cluster = node_cluster(*alike(2, 4))
    faults = Faults(node_mtbf=100, node_repair=20, requeue=requeue)
    run = emulate(cluster, [traced("a", 8, 150)], Fcfs(), faults=faults, seed=3, max_rounds=10_000)
    names = [type(e).__name__ for e in run.adapter.told]
    result = run.results["a"]
    if requeue:
        assert result.state == "completed" and result.starts > 1 and result.runtime == 150
        assert names.index("NodeDown") < names.index("NodeUp")
    else:
        assert result.state == "node failure" and result.end_time < 150
        assert "JobRequeued" not in names


def test_usable_processors_are_noted():
    run = emulate(
        node_cluster(*alike(2, 4)),
        [traced("a", 4, 200)],
        Fcfs(),
        faults=Faults(node_mtbf=100, requeue=True),
        seed=1,
    )
    assert {change.processors for change in run.adapter.capacity} <= {0, 4, 8}
    times = [change.time for change in run.adapter.capacity]
    assert times and times == sorted(times)


def test_failures_alone_do_not_keep_a_run_alive():
    cluster = node_cluster(*alike(2, 4))
    run = emulate(cluster, [traced("a", 9)], Fcfs(), faults=Faults(node_mtbf=10), max_rounds=100)
    assert run.states == {"a": "pending"}


def test_flat_pools_have_no_nodes_to_fail():
    with pytest.raises(UserError, match=r"node_mtbf.*'pool'"):
        EmulatedAdapter(FLAT, [], faults=Faults(node_mtbf=10))


# ---------------------------------------------------------------- physics


class Pace:
    def __init__(self, factor):
        self.factor = factor

    def rate(self, execution, now):
        return self.factor


def test_half_the_rate_takes_twice_as_long():
    result = emulate(FLAT, [traced("a", 1, 100, runtime=40)], Fcfs(), physics=[Pace(0.5)]).results["a"]
    assert (result.end_time, result.state) == (80, "completed")


def test_a_slowed_job_is_killed_at_its_limit():
    result = emulate(FLAT, [traced("a", 1, 100, runtime=60)], Fcfs(), physics=[Pace(0.5)]).results["a"]
    assert (result.end_time, result.state) == (100, "timed out")


def test_modules_multiply():
    run = emulate(FLAT, [traced("a", 1, 100, runtime=40)], Fcfs(), physics=[Pace(0.5), Pace(4)])
    assert run.results["a"].end_time == 20


def test_a_job_that_stands_still_runs_into_its_limit():
    result = emulate(FLAT, [traced("a", 1, 100, runtime=1)], Fcfs(), physics=[Pace(0.0)]).results["a"]
    assert (result.end_time, result.state) == (100, "timed out")


changes = st.lists(
    st.tuples(st.integers(1, 30), st.sampled_from(["suspend", 0.25, 0.5, 1.0, 2.0])), max_size=6
)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 50), changes)
def test_work_is_conserved_whatever_happens_to_the_rate(runtime, plan):
    """Rate times time over all phases is the job's work."""
    adapter = EmulatedAdapter(FLAT, [traced("a", 1, 10_000, runtime=runtime)], physics=[pace := Pace(1.0)])
    adapter.wait(None)
    adapter.apply(0, [Start("a")])
    done, now, rate = 0.0, 0.0, 1.0
    suspended = False
    for duration, what in plan:
        moment = adapter.wait(now + duration)
        if moment is None:
            break
        time, events = moment
        done, now = done + (0 if suspended else rate * (time - now)), time
        if any(isinstance(event, ev.JobEnded) for event in events):
            break
        if what == "suspend":
            adapter.apply(now, [Resume("a") if suspended else Suspend("a")])
            suspended = not suspended
        else:
            pace.factor = rate = what
            adapter.reconsider(adapter.running["a"])
    if suspended:
        adapter.apply(now, [Resume("a")])
        suspended = False
    while (moment := adapter.wait(None)) is not None:
        done, now = done + rate * (moment[0] - now), moment[0]
    assert adapter.results()[0].state == "completed"
    assert done == pytest.approx(runtime)


# ---------------------------------------------------------------- a copy of something that runs


def test_what_runs_already_goes_on():
    jobs = [traced("old", 6, 100, submit=0, runtime=80), traced("new", 4, 10, submit=50)]
    run = emulate(FLAT, jobs, Fcfs(), start=60, running=[Begun("old", 40, ())])
    assert run.starts == {"old": 20, "new": 100}
    assert run.results["old"].runtime == 80


def test_what_runs_already_takes_its_nodes():
    jobs = [traced("old", 4, 100), traced("new", 8, 10, submit=50)]
    old = Begun("old", 10, (("n1", 4),))
    run = emulate(node_cluster(*alike(2, 4)), jobs, Fcfs(), start=60, running=[old])
    assert run.starts["new"] == 150


def test_results_of_a_run_that_is_cut_short():
    adapter = EmulatedAdapter(FLAT, [traced("a", 8, 100), traced("b", 8), traced("later", submit=500)])
    adapter.wait(None)
    adapter.apply(0, [Start("a")])
    adapter.wait(30)
    a, b = adapter.results()
    assert (a.state, a.start_time, a.end_time, a.runtime, a.starts) == ("running", 0, None, 30, 1)
    assert (b.state, b.start_time, b.runtime, b.starts) == ("pending", None, 0, 0)
