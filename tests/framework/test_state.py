"""The cluster as the scheduler knows it: what each event does to it."""

from __future__ import annotations

import msgspec
import pytest
from building import alike, described, node_cluster

from headway import events as ev
from headway.decisions import Kill, Requeue, Reserve, SetTimeLimit, Signal, Start, Suspend
from headway.errors import StateError
from headway.model import ClusterDescription, Dependency, NodeDescription, PoolDescription, Reservation
from headway.scheduler.gate import take_effect
from headway.state import Barrier, State, Status

PENDING, WAITING, STARTING = Status.PENDING, Status.WAITING, Status.STARTING
RUNNING, SUSPENDED = Status.RUNNING, Status.SUSPENDED


def flat(processors: int = 8) -> State:
    return State(ClusterDescription.flat(processors))


def nodes(count: int = 4, processors: int = 4, **more) -> State:
    return State(node_cluster(*alike(count, processors), **more))


def pool(state: State, name: str = "pool"):
    return state.domains[name]


def tell(state: State, *events, now: float | None = None) -> None:
    state.now = now if now is not None else max(event.time for event in events)
    state.apply(ev.in_order(events))
    state.advance(state.now)


def submit(state: State, *descriptions, now: float = 0) -> None:
    tell(state, *(ev.JobSubmitted(now, job) for job in descriptions))


def queued(state: State, name: str = "pool") -> list[str]:
    return [job.id for job in pool(state, name).queue]


def begin(state: State, job_id: str, placement=()) -> None:
    job = state.jobs[job_id]
    state.begin(job, placement, "foreground", None)
    state.sweep(job.domain, [job])


# ---------------------------------------------------------------- arrivals and starts


def test_jobs_queue_in_order_of_submission():
    state = flat()
    submit(state, described("a"), described("b"), now=0)
    submit(state, described("c", submit=5), described("late", submit=3), now=6)
    assert queued(state) == ["a", "b", "late", "c"]


def test_a_decided_start_takes_its_processors_at_once():
    state = flat()
    submit(state, described("a", 5, 100))
    begin(state, "a")
    job = state.jobs["a"]
    assert (job.status, job.start_time, job.expected_end) == (STARTING, 0, 100)
    assert (pool(state).free, queued(state)) == (3, [])


def test_the_confirmation_moves_the_start_to_when_it_happened():
    state = flat()
    submit(state, described("a", 5, 100))
    begin(state, "a")
    tell(state, ev.JobStarted(7, "a"))
    assert (state.jobs["a"].status, state.jobs["a"].expected_end) == (RUNNING, 107)
    assert pool(state).free == 3


def test_a_start_on_other_nodes_than_decided_is_what_counts():
    state = nodes()
    submit(state, described("a", 4))
    begin(state, "a", (("n0", 4),))
    tell(state, ev.JobStarted(0, "a", (("n2", 2), ("n3", 2))))
    assert state.nodes.free.processors[:4].tolist() == [4, 4, 2, 2]
    assert pool(state).free == 12


def test_a_start_by_somebody_else_leaves_the_queue_and_takes_processors():
    state = flat()
    submit(state, described("a", 5), described("b", 1))
    tell(state, ev.JobStarted(3, "a"))
    assert (queued(state), pool(state).free) == (["b"], 3)
    assert state.anomalies == []


def test_a_start_that_is_on_its_way_counts_as_starting():
    state = nodes()
    submit(state, described("a", 4))
    tell(state, ev.JobReleasing(1, "a", (("n1", 4),)))
    assert (state.jobs["a"].status, pool(state).free, queued(state)) == (STARTING, 12, [])


@pytest.mark.parametrize("outcome", ev.OUTCOMES)
def test_an_end_gives_everything_back_and_forgets_the_job(outcome):
    state = nodes()
    submit(state, described("a", 6))
    begin(state, "a", (("n0", 4), ("n1", 2)))
    tell(state, ev.JobStarted(0, "a", (("n0", 4), ("n1", 2))), ev.JobEnded(5, "a", outcome))
    assert state.jobs == {}
    assert (pool(state).free, pool(state).running) == (16, [])
    assert state.nodes.free.processors[:4].tolist() == [4] * 4


def test_a_job_that_is_cancelled_while_it_waits_leaves_the_queue():
    state = flat()
    submit(state, described("a"), described("b"), described("c"))
    tell(state, ev.JobEnded(1, "b", "cancelled"))
    assert (queued(state), pool(state).free) == (["a", "c"], 8)


def test_a_requeued_job_goes_back_to_its_place():
    state = flat()
    submit(state, described("a", 5), described("b", 5))
    begin(state, "a")
    tell(state, ev.JobStarted(0, "a"))
    tell(state, ev.JobRequeued(9, "a"))
    assert (queued(state), pool(state).free, state.jobs["a"].start_time) == (["a", "b"], 8, None)


def test_the_same_job_twice_is_a_change():
    state = flat()
    submit(state, described("a", 1, 100))
    submit(state, described("a", 2, 50), now=1)
    assert (queued(state), state.jobs["a"].processors, state.jobs["a"].estimate) == (["a"], 2, 50)
    assert "twice" in state.anomalies[0]


# ---------------------------------------------------------------- the guard


def test_a_job_that_is_not_pending_is_not_started():
    state = flat()
    submit(state, described("a"), described("h", held=True))
    begin(state, "a")
    for name in ("a", "h"):
        with pytest.raises(StateError, match="not pending"):
            begin(state, name)


def test_no_processor_is_given_twice_on_a_flat_pool():
    state = flat(8)
    submit(state, described("a", 5), described("b", 4))
    begin(state, "a")
    with pytest.raises(StateError, match="3 are free"):
        begin(state, "b")
    assert pool(state).free == 3


def test_no_processor_is_given_twice_on_a_node():
    state = nodes()
    submit(state, described("a", 3), described("b", 2))
    begin(state, "a", (("n0", 3),))
    with pytest.raises(StateError, match="n0"):
        begin(state, "b", (("n0", 2),))
    assert (queued(state), pool(state).free) == (["b"], 13)


def test_a_start_that_is_undone_leaves_no_trace():
    state = nodes()
    submit(state, described("a", 3), described("b", 2))
    begin(state, "a", (("n0", 3),))
    state.undo(state.jobs["a"])
    assert (queued(state), pool(state).free, state.jobs["a"].status) == (["a", "b"], 16, PENDING)
    assert state.jobs["a"].placement == () and state.jobs["a"].start_time is None


# ---------------------------------------------------------------- holds, begin times, pools


def test_a_held_job_is_not_in_the_queue_until_it_is_released():
    state = flat()
    submit(state, described("a", held=True), described("b"))
    assert (queued(state), state.jobs["a"].status) == (["b"], WAITING)
    assert state.why_waiting(state.jobs["a"]).startswith("held")
    tell(state, ev.JobReleased(1, "a"))
    assert queued(state) == ["a", "b"]
    tell(state, ev.JobHeld(2, "a", "by an administrator"))
    assert queued(state) == ["b"]
    assert "by an administrator" in state.why_waiting(state.jobs["a"])


def test_a_begin_time_is_waited_for():
    state = flat()
    submit(state, described("a", begin_time=50))
    assert (queued(state), state.next_wakeup()) == ([], 50)
    assert state.why_waiting(state.jobs["a"]) == "its begin time 50 has not come"
    assert (
        state.why_waiting(state.jobs["a"], lambda at: f"{at:g} o'clock")
        == "its begin time 50 o'clock has not come"
    )
    state.now = 50
    state.advance(50)
    assert queued(state) == ["a"]
    assert state.next_wakeup() is None


def test_a_begin_time_does_not_lift_a_hold():
    state = flat()
    submit(state, described("a", begin_time=50))
    tell(state, ev.JobHeld(10, "a"))
    state.now = 50
    state.advance(50)
    assert queued(state) == []
    tell(state, ev.JobReleased(60, "a"))
    assert queued(state) == ["a"]


def test_a_release_does_not_lift_a_begin_time():
    state = flat()
    submit(state, described("a", begin_time=50, held=True))
    tell(state, ev.JobReleased(10, "a"))
    assert queued(state) == []
    state.now = 50
    state.advance(50)
    assert queued(state) == ["a"]


def test_a_closed_pool_takes_jobs_and_starts_none():
    state = State(ClusterDescription("c", (PoolDescription("pool", 8, open=False),)))
    submit(state, described("a"))
    assert queued(state) == []
    assert "closed" in state.why_waiting(state.jobs["a"])


def test_a_job_without_a_pool_goes_to_the_only_one_and_to_none_of_two():
    two = State(ClusterDescription("c", (PoolDescription("x", 8), PoolDescription("y", 8))))
    submit(two, described("a"), described("b", pool="y"), described("c", pool="z"))
    assert queued(two, "y") == ["b"]
    assert set(two.jobs) == {"b"}
    assert len(two.anomalies) == 2


# ---------------------------------------------------------------- dependencies


def after(*wanted: tuple[str, str], **more):
    return {"dependencies": tuple(Dependency(kind, job_id) for kind, job_id in wanted), **more}


@pytest.mark.parametrize(
    ("kind", "outcome", "met"),
    [
        ("ended", "failed", True),
        ("ended", "cancelled", True),
        ("completed", "completed", True),
        ("completed", "failed", False),
        ("failed", "failed", True),
        ("failed", "timed out", True),
        ("failed", "node failure", True),
        ("failed", "cancelled", True),
        ("failed", "preempted", True),
        ("failed", "vanished", False),
        ("failed", "completed", False),
        ("started", "completed", True),
    ],
)
def test_a_dependency_waits_for_the_end_and_looks_at_the_outcome(kind, outcome, met):
    state = flat()
    submit(state, described("a"), described("b", **after((kind, "a"))))
    assert queued(state) == ["a"]
    assert "a" in state.why_waiting(state.jobs["b"])
    tell(state, ev.JobEnded(5, "a", outcome))
    assert queued(state) == (["b"] if met else [])


def test_a_dependency_on_a_start_is_met_by_the_confirmed_start():
    state = flat()
    submit(state, described("a"), described("b", **after(("started", "a"))))
    begin(state, "a")
    assert queued(state) == []
    tell(state, ev.JobStarted(1, "a"))
    assert queued(state) == ["b"]


def test_all_dependencies_are_needed_or_any():
    state = flat()
    submit(
        state,
        described("a"),
        described("b"),
        described("all", **after(("ended", "a"), ("ended", "b"))),
        described("any", **after(("ended", "a"), ("ended", "b"), any_dependency=True)),
    )
    assert queued(state) == ["a", "b"]
    tell(state, ev.JobEnded(1, "b"))
    assert queued(state) == ["a", "any"]
    tell(state, ev.JobEnded(2, "a"))
    assert queued(state) == ["all", "any"]


def test_a_dependency_on_a_forgotten_job_is_met_by_any_end_but_not_by_a_success():
    state = flat()
    submit(state, described("a", **after(("ended", "old"))), described("b", **after(("completed", "old"))))
    assert queued(state) == ["a"]


def test_a_singleton_waits_for_earlier_namesakes_of_its_user():
    state = flat()
    single = after(("singleton", ""), name="x")
    submit(
        state,
        described("a", user="u", **single),
        described("b", user="u", **single),
        described("other", user="v", **single),
    )
    assert queued(state) == ["a", "other"]
    begin(state, "a")
    tell(state, ev.JobStarted(0, "a"))
    assert queued(state) == ["other"]
    tell(state, ev.JobEnded(5, "a"))
    assert queued(state) == ["b", "other"]


def test_a_held_singleton_is_not_looked_at_at_each_end():
    state = flat()
    single = after(("singleton", ""), name="x")
    submit(state, described("a", user="u", **single), described("b", user="u", held=True, **single))
    assert state.dependants == {}
    tell(state, ev.JobReleased(0, "b"))
    assert queued(state) == ["a"]
    tell(state, ev.JobEnded(5, "a"))
    assert queued(state) == ["b"]


def test_a_namesake_of_another_name_is_waited_for_no_more():
    state = flat()
    submit(state, described("a", name="x", user="u"))
    submit(state, described("b", user="u", **after(("singleton", ""), name="x")))
    assert queued(state) == ["a"]
    tell(state, ev.JobChanged(5, described("a", name="y", user="u")))
    assert queued(state) == ["a", "b"]


def test_a_namesake_that_goes_back_behind_it_is_waited_for_no_more():
    state = flat()
    submit(state, described("a", begin_time=10, user="u", **after(("singleton", ""), name="x")))
    submit(state, described("b", name="x", user="u"))
    tell(state, ev.JobStarted(1, "b"))
    state.now = 10
    state.advance(10)
    assert queued(state) == []
    tell(state, ev.JobRequeued(11, "b"))
    assert queued(state) == ["a", "b"]


def test_of_several_clusters_only_namesakes_on_its_own_count_for_a_singleton():
    state = flat()
    submit(state, described("A:1", name="x", user="u"))
    on_a, on_b = after(("singleton", "A:"), name="x"), after(("singleton", "B:"), name="x")
    submit(state, described("A:2", user="u", **on_a), described("B:1", user="u", **on_b))
    assert queued(state) == ["A:1", "B:1"]
    assert state.why_waiting(state.jobs["A:2"]) == "it waits for its namesakes"
    tell(state, ev.JobEnded(5, "A:1"))
    assert queued(state) == ["A:2", "B:1"]


def test_a_dependency_waits_on_after_a_begin_time():
    state = flat()
    submit(state, described("a"), described("b", begin_time=50, **after(("ended", "a"))))
    state.now = 50
    state.advance(50)
    assert queued(state) == ["a"]
    tell(state, ev.JobEnded(60, "a"))
    assert queued(state) == ["b"]


# ---------------------------------------------------------------- changes


def test_a_changed_request_counts_from_then_on():
    state = flat()
    submit(state, described("a", 2, 100), described("b", 2, 100))
    tell(state, ev.JobChanged(5, described("a", 3, 60, submit=9)))
    assert (state.jobs["a"].processors, state.jobs["a"].expected_runtime) == (3, 60)
    assert queued(state) == ["b", "a"]


def test_a_changed_limit_moves_a_running_jobs_end():
    state = flat()
    submit(state, described("a", 2, 100))
    begin(state, "a")
    tell(state, ev.JobStarted(0, "a"), ev.JobChanged(10, described("a", 2, 40)))
    assert state.jobs["a"].expected_end == 40
    assert [entry[0] for entry in pool(state).running] == [40]


def test_a_running_job_that_changes_size_changes_what_is_free():
    state = flat()
    submit(state, described("a", 2, 100))
    begin(state, "a")
    tell(state, ev.JobStarted(0, "a"), ev.JobChanged(10, described("a", 5, 100)))
    assert pool(state).free == 3
    tell(state, ev.JobEnded(20, "a"))
    assert pool(state).free == 8


def test_what_a_job_took_is_what_it_gives_back_even_if_its_request_changed_since():
    state = State(node_cluster(*alike(1, 4, memory=100)))
    submit(state, described("a", 2, memory_per_node=60))
    begin(state, "a", (("n0", 2),))
    tell(state, ev.JobStarted(0, "a", (("n0", 2),)), ev.JobChanged(1, described("a", 2, memory_per_node=10)))
    tell(state, ev.JobEnded(2, "a"))
    assert state.nodes.free.memory[0] == 100


def test_a_change_to_another_pool_moves_the_job_there():
    state = State(ClusterDescription("c", (PoolDescription("x", 8), PoolDescription("y", 8))))
    submit(state, described("a", pool="x"))
    tell(state, ev.JobChanged(1, described("a", pool="y")))
    assert (queued(state, "x"), queued(state, "y")) == ([], ["a"])
    tell(state, ev.JobChanged(2, described("a", pool="nowhere")))
    assert queued(state, "y") == ["a"]
    assert "nowhere" in state.anomalies[0]


def test_a_change_can_hold_and_release():
    state = flat()
    submit(state, described("a"))
    tell(state, ev.JobChanged(1, described("a", held=True)))
    assert queued(state) == []
    tell(state, ev.JobChanged(2, described("a")))
    assert queued(state) == ["a"]


# ---------------------------------------------------------------- suspension, migration, tiers


def test_a_suspended_job_keeps_its_processors_and_its_limit():
    state = flat()
    submit(state, described("a", 5, 100))
    begin(state, "a")
    tell(state, ev.JobStarted(0, "a"), ev.JobSuspended(10, "a"))
    assert (state.jobs["a"].status, pool(state).free) == (SUSPENDED, 3)
    tell(state, ev.JobResumed(40, "a"))
    assert (state.jobs["a"].status, state.jobs["a"].expected_end) == (RUNNING, 130)
    tell(state, ev.JobChanged(50, described("a", 5, 200)))
    assert state.jobs["a"].expected_end == 230


def test_a_second_run_forgets_how_long_the_first_was_suspended():
    state = flat()
    submit(state, described("a", 5, 100))
    begin(state, "a")
    tell(
        state,
        ev.JobStarted(0, "a"),
        ev.JobSuspended(10, "a"),
        ev.JobResumed(40, "a"),
        ev.JobRequeued(50, "a"),
    )
    begin(state, "a")
    tell(state, ev.JobStarted(60, "a"))
    assert state.jobs["a"].expected_end == 160


def test_a_migrated_job_takes_its_new_nodes():
    state = nodes()
    submit(state, described("a", 4, 100))
    begin(state, "a", (("n0", 4),))
    tell(state, ev.JobStarted(0, "a", (("n0", 4),)), ev.JobMigrated(30, "a", (("n3", 4),)))
    assert state.nodes.free.processors[:4].tolist() == [4, 4, 4, 0]
    assert (state.jobs["a"].expected_end, pool(state).free) == (100, 12)


def test_a_tier_is_noted():
    state = flat()
    submit(state, described("a"))
    begin(state, "a")
    tell(state, ev.JobStarted(0, "a", (), "background"))
    assert state.jobs["a"].tier == "background"
    tell(state, ev.JobTierChanged(5, "a", "foreground"))
    assert state.jobs["a"].tier == "foreground"


# ---------------------------------------------------------------- failed decisions


def test_a_failed_start_comes_back_later_and_later():
    state = flat()
    submit(state, described("a", 5))
    waits, now = [], 0.0
    for _ in range(8):
        begin(state, "a")
        tell(state, ev.DecisionFailed(now, Start("a"), "no licence"))
        assert (queued(state), pool(state).free) == ([], 8)
        assert "no licence" in state.why_waiting(state.jobs["a"])
        again = state.next_wakeup()
        waits.append(again - now)
        now = state.now = again
        state.advance(now)
        assert queued(state) == ["a"]
    assert waits == [15, 30, 60, 120, 240, 480, 600, 600]


def test_a_job_whose_request_changed_is_tried_at_once():
    state = flat()
    submit(state, described("a", 5))
    for _ in range(4):
        begin(state, "a")
        tell(state, ev.DecisionFailed(state.now, Start("a"), "no"))
        state.now = state.next_wakeup()
        state.advance(state.now)
    begin(state, "a")
    tell(state, ev.DecisionFailed(state.now, Start("a"), "no"))
    tell(state, ev.JobChanged(state.now, described("a", 5, name="another")))
    assert queued(state) == [], "it failed as it is"
    tell(state, ev.JobChanged(state.now, described("a", 4)))
    assert queued(state) == ["a"]
    assert state.jobs["a"].failures == 1


def test_a_start_that_succeeds_ends_the_backing_off():
    state = flat()
    submit(state, described("a"))
    begin(state, "a")
    tell(state, ev.DecisionFailed(0, Start("a"), "no"))
    state.now = 15
    state.advance(15)
    begin(state, "a")
    tell(state, ev.JobStarted(15, "a"))
    assert state.jobs["a"].failures == 0


@pytest.mark.parametrize("decision", [SetTimeLimit("a", 5), Kill("a"), Reserve(Reservation("r", 0, 1))])
def test_another_decision_that_fails_does_not_take_a_start_back(decision):
    state = flat()
    submit(state, described("a", 5))
    begin(state, "a")
    tell(state, ev.DecisionFailed(1, decision, "no"))
    assert (state.jobs["a"].status, pool(state).free) == (STARTING, 3)


# ---------------------------------------------------------------- told to go, and suspended by somebody


@pytest.mark.parametrize(
    "told", [Kill("a"), Requeue("a"), Signal("a", "TERM", 30.0)], ids=lambda d: type(d).__name__
)
def test_a_job_that_was_told_to_go_goes_although_somebody_suspends_it(told):
    state = flat()
    submit(state, described("a", 5, 1000))
    begin(state, "a")
    tell(state, ev.JobStarted(0, "a"))
    state.now = 10
    take_effect(state, told)
    gone_by = state.jobs["a"].gone_by
    tell(state, ev.JobSuspended(11, "a"))
    job = state.jobs["a"]
    assert (job.leaving, job.gone_by, job.expected_end) == (True, gone_by, gone_by)
    tell(state, ev.JobResumed(20, "a"))
    assert (job.leaving, job.expected_end) == (True, gone_by)


def test_a_job_that_was_told_to_stand_aside_stays_once_it_does():
    state = State(msgspec.structs.replace(ClusterDescription.flat(8), suspended_lend=True))
    submit(state, described("a", 5, 1000))
    begin(state, "a")
    tell(state, ev.JobStarted(0, "a"))
    state.now = 10
    take_effect(state, Suspend("a"))
    assert state.jobs["a"].leaving
    tell(state, ev.JobSuspended(11, "a"))
    assert not state.jobs["a"].leaving


# ---------------------------------------------------------------- behind barriers


def barred_by(state: State, key: str = "limit") -> None:
    state.bars = lambda job: Barrier("a limit", key)


def test_nothing_is_kept_of_a_barred_job_that_ended():
    state = flat(64)
    barred_by(state)
    submit(state, *(described(f"j{n}", 32) for n in range(10)))
    state.lifted("limit", most=8)
    tell(state, *(ev.JobEnded(1, f"j{n}", "cancelled") for n in range(9)))
    assert [job.id for job in state.barred["limit"]] == ["j9"]
    tell(state, ev.JobEnded(2, "j9", "cancelled"))
    assert not state.barred


def test_a_barred_job_that_changes_its_size_waits_once():
    state = flat(64)
    barred_by(state)
    submit(state, described("a", 32), described("b", 32))
    tell(state, ev.JobChanged(1, described("a", 4)))
    assert [(job.id, job.processors) for job in state.barred["limit"]] == [("b", 32), ("a", 4)]
    state.bars = lambda job: None
    state.lifted("limit", most=8)
    assert queued(state) == ["a"]
    state.lifted("limit")
    assert (queued(state), state.barred) == (["a", "b"], {})


def test_a_barred_job_that_somebody_starts_is_barred_no_longer():
    state = flat(64)
    barred_by(state)
    submit(state, described("a", 32))
    tell(state, ev.JobStarted(1, "a"))
    assert (state.jobs["a"].barrier, state.barred) == (None, {})


# ---------------------------------------------------------------- nodes


def test_a_node_that_goes_down_takes_its_free_processors_along():
    state = nodes()
    submit(state, described("a", 6))
    begin(state, "a", (("n0", 4), ("n1", 2)))
    tell(state, ev.JobStarted(0, "a", (("n0", 4), ("n1", 2))))
    tell(state, ev.NodeDown(5, "n1", "broken"))
    assert (pool(state).total, pool(state).free) == (12, 8)


def test_a_job_that_ends_on_a_node_that_is_down_frees_only_the_others():
    state = nodes()
    submit(state, described("a", 6))
    begin(state, "a", (("n0", 4), ("n1", 2)))
    tell(state, ev.JobStarted(0, "a", (("n0", 4), ("n1", 2))), ev.NodeDown(5, "n1"))
    tell(state, ev.JobEnded(6, "a", "node failure"))
    assert (pool(state).total, pool(state).free) == (12, 12)
    tell(state, ev.NodeUp(9, NodeDescription("n1", 4, pools=("pool",))))
    assert (pool(state).total, pool(state).free) == (16, 16)


def test_a_node_comes_back_with_the_jobs_that_stayed_on_it():
    state = nodes()
    submit(state, described("a", 3))
    begin(state, "a", (("n1", 3),))
    tell(state, ev.JobStarted(0, "a", (("n1", 3),)), ev.NodeDown(5, "n1"))
    tell(state, ev.NodeUp(9, NodeDescription("n1", 4, pools=("pool",))))
    assert (pool(state).total, pool(state).free) == (16, 13)


def test_a_node_described_anew_keeps_what_only_the_configuration_knew():
    state = State(node_cluster(NodeDescription("n1", 4, pools=("pool",), node_class="fast", wake_time=90.0)))
    tell(state, ev.NodeDown(1, "n1", "drained"))
    tell(state, ev.NodeUp(2, NodeDescription("n1", 8, pools=("pool",))))
    again = state.nodes.descriptions["n1"]
    assert (again.processors, again.node_class, again.wake_time) == (8, "fast", 90.0)


def test_a_new_node_adds_to_its_pool():
    state = nodes()
    tell(state, ev.NodeUp(1, NodeDescription("n9", 16, pools=("pool",))))
    assert (pool(state).total, pool(state).free) == (32, 32)


def test_a_node_that_changes_pools_leaves_the_old_one():
    state = nodes(pools=("pool", "other"))
    tell(state, ev.NodeUp(1, NodeDescription("n0", 4, pools=("other",))))
    assert (pool(state).total, pool(state, "other").total) == (12, 4)
    assert pool(state, "other").free == 4


def test_pools_that_share_nodes_are_one():
    shared = NodeDescription("s", 4, pools=("x", "y"))
    state = State(node_cluster(shared, NodeDescription("own", 4, pools=("y",)), pools=("x", "y")))
    submit(state, described("a", 3, pool="x"), described("b", 2, pool="y"))
    assert list(state.domains) == ["x+y"]
    domain = pool(state, "x+y")
    assert [job.id for job in domain.queue] == ["a", "b"]
    begin(state, "a", (("s", 3),))
    assert (domain.free, state.pools["x"].total, state.pools["y"].total) == (5, 4, 8)
    assert [(entry[2], entry[3].id) for entry in domain.running] == [(3, "a")]
    with pytest.raises(StateError):
        begin(state, "b", (("s", 2),))
    tell(state, ev.JobEnded(5, "a"))
    assert domain.free == domain.total == 8


# ---------------------------------------------------------------- reservations


def reserved(state: State, name: str = "r", start: float = 10, end: float = 20, **more) -> None:
    if "nodes" not in more:
        more = {"pool": "pool", "processors": 6, **more}
    tell(state, ev.ReservationMade(state.now if state.now > 0 else 0, Reservation(name, start, end, **more)))


def test_a_flat_reservation_is_in_the_profile():
    state = flat(8)
    reserved(state)
    profile = state.profile(pool(state))
    assert [profile.free_at(t) for t in (0, 10, 19, 20)] == [8, 2, 2, 8]


def test_a_job_that_would_run_into_a_reservation_is_not_started():
    state = flat(8)
    submit(state, described("long", 3, 11), described("short", 3, 10), described("small", 2, 99))
    reserved(state)
    with pytest.raises(StateError, match="reservation r"):
        begin(state, "long")
    begin(state, "short")
    begin(state, "small")


def test_a_job_that_would_run_into_a_reservation_of_its_nodes_is_not_started():
    state = nodes()
    submit(state, described("long", 3, 11), described("short", 3, 10))
    reserved(state, nodes=("n0",))
    with pytest.raises(StateError, match="reservation r"):
        begin(state, "long", (("n0", 3),))
    begin(state, "short", (("n0", 3),))
    begin(state, "long", (("n1", 3),))


def test_a_job_of_a_reservation_waits_for_it_and_then_uses_it():
    state = flat(8)
    submit(state, described("in", 6, 10, reservation="r"), described("out", 3, 5))
    assert "does not exist" in state.why_waiting(state.jobs["in"])
    reserved(state)
    assert queued(state) == ["out"]
    assert "begins at 10" in state.why_waiting(state.jobs["in"])
    tell(state, ev.ReservationStarted(10, "r"))
    assert queued(state) == ["in", "out"]
    with pytest.raises(StateError):
        begin(state, "out")
    begin(state, "in")
    assert pool(state).free == 2


def test_a_job_does_not_use_more_than_its_reservation_has():
    state = flat(8)
    submit(state, described("a", 4, 5, reservation="r"), described("b", 4, 5, reservation="r"))
    reserved(state, start=0)
    begin(state, "a")
    with pytest.raises(StateError, match="fit"):
        begin(state, "b")


def test_what_a_job_leaves_inside_a_reservation_is_kept_again():
    state = flat(8)
    submit(state, described("a", 6, 5, reservation="r"))
    reserved(state, start=0)
    begin(state, "a")
    profile = state.profile(pool(state))
    assert [profile.free_at(t) for t in (0, 6, 20)] == [2, 2, 8]


def test_a_job_that_outlives_its_reservation_does_not_run_into_the_next_one():
    state = flat(8)
    submit(state, described("a", 6, 15, reservation="r"), described("b", 6, 10, reservation="r"))
    reserved(state, start=0, end=10)
    reserved(state, "next", start=10, end=30)
    with pytest.raises(StateError, match="into another"):
        begin(state, "a")
    begin(state, "b")


def test_a_job_whose_reservation_is_over_waits_again():
    state = flat(8)
    submit(state, described("a", 6, 5, reservation="r"))
    reserved(state, start=0)
    assert queued(state) == ["a"]
    tell(state, ev.ReservationEnded(20, "r"))
    assert queued(state) == []
    assert "does not exist" in state.why_waiting(state.jobs["a"])


def test_a_job_that_its_reservation_was_too_small_for_is_told_that_there_is_none():
    state = flat(8)
    submit(state, described("a", 6, 5, reservation="r"))
    reserved(state, processors=5)
    assert "has 5" in state.why_waiting(state.jobs["a"])
    tell(state, ev.ReservationEnded(20, "r"))
    assert "does not exist" in state.why_waiting(state.jobs["a"])


def test_a_changed_reservation_replaces_the_old_one():
    state = flat(8)
    submit(state, described("a", 6, 5, reservation="r"))
    reserved(state)
    reserved(state, start=0, end=5, processors=7)
    assert len(pool(state).reservations) == 1
    assert state.profile(pool(state)).free_at(0) == 1
    assert queued(state) == ["a"]


def test_the_end_of_a_prediction_is_not_looked_for_where_something_happens_before():
    state = flat(8)
    state.predict = lambda job: 10.0
    submit(state, described("runs", 5, 100), described("waits", 2, 50), described("large", 5, 50))
    begin(state, "runs")
    assert state.next_wakeup() == state.next_wakeup(10.5) == state.now + 10
    assert state.next_wakeup(10.0) is None


def test_a_reservation_wakes_its_pool_at_its_start_and_end():
    state = flat(8)
    reserved(state)
    pool(state).news.due = False
    assert state.next_wakeup() == 10
    state.now = 10
    state.advance(10)
    assert pool(state).news.due
    assert state.next_wakeup() == 20


# ---------------------------------------------------------------- expected ends


def test_a_job_that_outlives_its_prediction_falls_back_to_its_estimate():
    state = flat(8)
    state.predict = lambda job: 30.0
    submit(state, described("a", 6, 100))
    begin(state, "a")
    tell(state, ev.JobStarted(0, "a"))
    assert state.jobs["a"].expected_end == 30
    state.now = 40
    state.overdue(pool(state))
    assert state.jobs["a"].expected_end == 100


@pytest.mark.parametrize(("answer", "expected"), [(None, 100), (30, 30), (0, 1), (500, 100)])
def test_a_prediction_is_at_least_a_second_and_at_most_the_estimate(answer, expected):
    state = flat(8)
    state.predict = lambda job: answer
    submit(state, described("a", 6, 100))
    assert state.jobs["a"].expected_runtime == expected


# ---------------------------------------------------------------- nonsense

UNKNOWN = [
    ev.JobStarted(1, "x"),
    ev.JobEnded(1, "x"),
    ev.JobRequeued(1, "x"),
    ev.JobHeld(1, "x"),
    ev.JobReleased(1, "x"),
    ev.JobReleasing(1, "x"),
    ev.JobChanged(1, described("x")),
    ev.JobSuspended(1, "x"),
    ev.JobResumed(1, "x"),
    ev.JobMigrated(1, "x"),
    ev.JobTierChanged(1, "x", "background"),
    ev.NodeDown(1, "x"),
    ev.ReservationStarted(1, "x"),
    ev.ReservationEnded(1, "x"),
]


@pytest.mark.parametrize("event", UNKNOWN, ids=lambda event: type(event).__name__)
@pytest.mark.parametrize("state", [flat, nodes], ids=["flat", "nodes"])
def test_an_event_about_something_unknown_is_an_anomaly_and_changes_nothing(event, state):
    known = state()
    tell(known, event)
    assert len(known.anomalies) == 1 and "x" in known.anomalies[0]
    assert known.jobs == {}


@pytest.mark.parametrize(
    "event",
    [
        ev.JobCheckpointed(1, "x"),
        ev.ElasticCommandReceived(1, "x", "ET", 60),
        ev.NodeFrequencyChanged(1, "x", 1e9),
        ev.Tick(1),
        ev.DecisionFailed(1, Start("x"), "no"),
    ],
    ids=lambda event: type(event).__name__,
)
def test_news_for_plugins_alone_changes_nothing(event):
    state = flat()
    tell(state, event)
    assert state.anomalies == []


def test_every_event_has_a_meaning():
    assert set(flat().handlers) == set(ev.AnyEvent.__args__)


@pytest.mark.parametrize(
    "event",
    [
        ev.JobRequeued(5, "a"),
        ev.JobSuspended(5, "a"),
        ev.JobResumed(5, "a"),
        ev.JobMigrated(5, "a", (("n0", 1),)),
        ev.JobReleased(5, "a"),
    ],
    ids=lambda event: type(event).__name__,
)
def test_news_that_does_not_suit_a_pending_job_leaves_it_in_the_queue(event):
    state = nodes()
    submit(state, described("a"))
    tell(state, event)
    assert (queued(state), pool(state).free) == (["a"], 16)


def test_a_job_that_starts_twice_is_counted_once():
    state = nodes()
    submit(state, described("a", 2))
    tell(state, ev.JobStarted(1, "a", (("n0", 2),)))
    tell(state, ev.JobStarted(2, "a", (("n1", 2),)))
    assert pool(state).free == 14
    assert "again" in state.anomalies[0]


def test_a_job_on_nodes_that_nobody_knows_does_no_harm():
    state = nodes()
    submit(state, described("a", 2))
    tell(state, ev.JobStarted(1, "a", (("elsewhere", 2),)))
    assert pool(state).free == 16
    tell(state, ev.JobEnded(2, "a"))
    assert (pool(state).free, state.anomalies) == (16, [])
