"""Jobs that were sent to several pools: they wait in all of them, and run where they can be first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from building import OneOfEachUser, described, emulate, node_cluster, plugged, traced

from headway import events as ev
from headway.decisions import Decision, Start
from headway.emulation.live_copy import Copy
from headway.hookspecs import hookimpl
from headway.inquiry import explain
from headway.model import ClusterDescription, NodeDescription, PoolBounds, PoolDescription
from headway.scheduler import Scheduler, plain_clock
from headway.state import Barrier, Job, State, Status
from headway_adapters.emulated import EmulatedAdapter
from headway_plugins.placement.first_fit import FirstFit
from headway_plugins.policies.conservative import Conservative
from headway_plugins.policies.easy import Easy
from headway_plugins.policies.fcfs import Fcfs

BOTH = {"pool": "a", "further_pools": ("b",)}


def pools(a: int = 4, b: int = 4, **bounds: Any) -> ClusterDescription:
    """Two flat pools; ``bounds`` are those of a."""
    bounded = PoolBounds(**bounds) if bounds else None
    return ClusterDescription("c", (PoolDescription("a", a, bounds=bounded), PoolDescription("b", b)))


def nodes(*more: NodeDescription, **bounds: int) -> ClusterDescription:
    """Pools of two nodes of four processors: a1, a2 and b1, b2; ``bounds`` are those of a."""
    cluster = node_cluster(
        *(NodeDescription(f"{pool}{at}", 4, pools=(pool,)) for pool in "ab" for at in (1, 2)), *more,
        pools=("a", "b"),
    )  # fmt: skip
    bounded = PoolDescription("a", bounds=PoolBounds(**bounds))
    return msgspec.structs.replace(cluster, pools=(bounded, cluster.pools[1])) if bounds else cluster


def driven(cluster: ClusterDescription, *plugins: Any, **more: Any) -> Scheduler:
    return Scheduler(cluster, plugged(*(plugins or (Fcfs(),)), FirstFit()), **more)


def arrive(*jobs: Any, at: float = 0) -> list[ev.Event]:
    return [ev.JobSubmitted(at, job) for job in jobs]


def starts(decisions: Sequence[Decision]) -> list[tuple[str, str]]:
    """Each start's job, and its pool where it says one."""
    return [(decision.job_id, decision.pool) for decision in decisions if isinstance(decision, Start)]


def queued(s: Scheduler) -> dict[str, list[str]]:
    return {name: [job.id for job in pool.queue] for name, pool in s.state.domains.items()}


def why(s: Scheduler, job_id: str) -> str:
    return s.state.why_waiting(s.state.jobs[job_id])


# ---------------------------------------------------------------- where it starts


@pytest.mark.parametrize(
    ("busy", "job", "started"),
    [
        ({}, {}, [("j", "a")]),
        ({}, {"pool": "b", "further_pools": ("a",)}, [("j", "a")]),
        ({"a": 4}, {}, [("j", "b")]),
        ({"a": 2}, {"processors": 3}, [("j", "b")]),
        ({"a": 4, "b": 4}, {}, []),
        ({"a": 1, "b": 2}, {"processors": 3}, [("j", "a")]),
        ({}, {"pool": "b", "further_pools": ("nowhere",)}, [("j", "")]),
        ({}, {"pool": "nowhere", "further_pools": ("b", "a")}, [("j", "a")]),
        ({}, {"pool": "nowhere", "further_pools": ("b",)}, [("j", "b")]),
    ],
)
def test_a_job_starts_in_the_first_of_its_pools_that_has_room(busy, job, started):
    s = driven(pools())
    s.step(0, arrive(*(described(f"busy {name}", size, pool=name) for name, size in busy.items())))
    processors = job.pop("processors", 1)
    assert starts(s.step(1, arrive(described("j", processors, **{**BOTH, **job}), at=1))) == started
    assert s.problems == []


def test_it_waits_in_all_and_leaves_all_when_one_frees_first():
    s = driven(pools())
    s.step(0, arrive(described("a", 4, pool="a"), described("b", 4, pool="b")))
    s.step(1, [*arrive(described("j", 2, **BOTH), at=1), ev.JobStarted(0, "a"), ev.JobStarted(0, "b")])
    assert queued(s) == {"a": ["j"], "b": ["j"]}
    assert starts(s.step(50, [ev.JobEnded(50, "b")])) == [("j", "b")]
    assert queued(s) == {"a": [], "b": []}
    s.step(51, [ev.JobStarted(51, "j", pool="b")])
    assert (s.state.jobs["j"].pool.name, s.state.domains["b"].free, s.state.domains["a"].free) == ("b", 2, 0)


def test_what_it_leaves_behind_in_another_pool_starts_in_the_same_step():
    """The job held up the queue of a; b's pass comes after a's."""
    s = driven(pools())
    s.step(0, arrive(described("a", 2, pool="a"), described("b", 4, pool="b")))
    s.step(1, arrive(described("wide", 4, **BOTH), described("behind", 2, pool="a"), at=1))
    assert queued(s) == {"a": ["wide", "behind"], "b": ["wide"]}
    assert starts(s.step(50, [ev.JobEnded(50, "b")])) == [("wide", "b"), ("behind", "")]


@pytest.mark.parametrize("policy", [Fcfs, Easy, Conservative])
def test_it_is_never_started_twice(policy):
    s = driven(pools(), policy())
    assert starts(s.step(0, arrive(described("j", 4, **BOTH), described("k", 4, **BOTH)))) == [
        ("j", "a"), ("k", "b"),
    ]  # fmt: skip


def test_on_nodes_the_placement_is_in_the_pool_of_the_start():
    s = driven(nodes())
    first, second = s.step(0, arrive(described("j", 8, **BOTH), described("k", 8, **BOTH)))
    assert first.pool == "a" and {name for name, _ in first.placement} == {"a1", "a2"}
    assert second.pool == "b" and {name for name, _ in second.placement} == {"b1", "b2"}


# ---------------------------------------------------------------- what keeps it out of one pool


def test_a_job_that_fits_one_pool_alone_is_not_impossible():
    s = driven(pools(a=2, b=8))
    assert starts(s.step(0, arrive(described("j", 6, **BOTH)))) == [("j", "b")]
    assert s.notices == []


def test_nodes_of_one_pool_alone_leave_the_other_out():
    s = driven(nodes())
    (start,) = s.step(0, arrive(described("j", 2, required_nodes=("b2",), **BOTH)))
    assert (start.pool, start.placement) == ("b", (("b2", 2),))


def test_only_where_no_pool_can_run_it_it_can_never_run():
    s = driven(pools(a=2, b=8))
    s.step(0, arrive(described("j", 9, **BOTH)))
    reason = (
        "in pool 'a': it can never run as it is: it needs 9 processors, and pool 'a' has 2; "
        "in pool 'b': it can never run as it is: it needs 9 processors, and pool 'b' has 8"
    )
    assert why(s, "j") == reason and s.state.jobs["j"].obstacle is not None
    (notice,) = s.notices
    assert notice.startswith("job j is left out of the queue: it can never run as it is: in pool 'a': it")
    s.notices.clear()
    assert starts(s.step(1, [ev.PoolChanged(1, PoolDescription("b", 12))])) == [("j", "b")]


@pytest.mark.parametrize(
    ("bounds", "request_", "said"),
    [
        ({"max_walltime": 60.0}, {}, "it asks for 100 s, and pool 'a' runs jobs of at most 60 s"),
        ({"max_nodes": 1}, {"nodes": 2}, "it needs 2 nodes, and pool 'a' runs jobs of at most 1"),
        ({"max_nodes": 1}, {"processors": 5}, "it needs 2 nodes, and pool 'a' runs jobs of at most 1"),
        ({"min_nodes": 2}, {"nodes": 1}, "it asks for 1 nodes, and pool 'a' runs jobs of at least 2"),
        (
            {"max_processors_per_node": 2},
            {"processors": 8, "processors_per_node": 4},
            "it asks for 4 processors a node, and pool 'a' gives at most 2 processors a node",
        ),
        (
            {"max_memory_per_node": 1 << 20},
            {"memory_per_node": 2 << 20},
            "it asks for 2 MiB a node, and pool 'a' gives at most 1 MiB a node",
        ),
    ],
)
def test_the_bounds_of_a_pool_are_an_obstacle_there_alone(bounds, request_, said):
    memory = tuple(NodeDescription(f"{p}3", 4, memory=1 << 30, pools=(p,)) for p in "ab")
    s = driven(nodes(*memory, **bounds))
    processors = request_.pop("processors", 2)
    (start,) = s.step(0, arrive(described("j", processors, **request_, **BOTH)))
    assert start.pool == "b"
    s.step(1, arrive(described("k", processors, pool="a", **request_), at=1))
    assert why(s, "k") == f"it can never run as it is: {said}"


@pytest.mark.parametrize(("estimate", "pool"), [(60, "a"), (61, "b")])
def test_a_flat_pool_is_bounded_in_time_too(estimate, pool):
    s = driven(pools(max_walltime=60.0))
    assert starts(s.step(0, arrive(described("j", 1, estimate, **BOTH)))) == [("j", pool)]


def test_a_bound_that_a_qos_lifts_does_not_hold_for_its_jobs():
    s = driven(pools(max_walltime=60.0, lifted=(("max_walltime", "long"), ("max_nodes", "wide"))))
    jobs = [described(qos or "none", 1, 100, qos=qos, **BOTH) for qos in ("long", "wide", "")]
    assert starts(s.step(0, arrive(*jobs))) == [("long", "a"), ("wide", "b"), ("none", "b")]


def test_a_bound_that_is_lifted_lets_the_job_in():
    s = driven(pools(max_walltime=60.0))
    s.step(0, arrive(described("j", 1, 100, pool="a")))
    assert why(s, "j").startswith("it can never run as it is")
    assert starts(s.step(1, [ev.PoolChanged(1, PoolDescription("a", 4))])) == [("j", "")]


def test_another_time_limit_is_judged_anew():
    s = driven(pools(max_walltime=60.0))
    s.step(0, arrive(described("full", 4, pool="b"), described("j", 1, 100, **BOTH)))
    assert queued(s) == {"a": [], "b": ["j"]}
    changed = ev.JobChanged(1, described("j", 1, 50, **BOTH))
    assert starts(s.step(1, [changed])) == [("j", "a")]


def test_a_closed_pool_is_passed_over():
    s = driven(pools())
    s.step(0, [ev.PoolChanged(0, PoolDescription("a", 4, open=False))])
    assert starts(s.step(1, arrive(described("j", **BOTH), at=1))) == [("j", "b")]


def test_closing_both_and_opening_one():
    s = driven(pools())
    closed = [ev.PoolChanged(0, PoolDescription(name, 4, open=False)) for name in "ab"]
    s.step(0, closed)
    s.step(1, arrive(described("j", **BOTH), at=1))
    assert why(s, "j") == "in pool 'a': pool 'a' is closed; in pool 'b': pool 'b' is closed"
    assert starts(s.step(2, [ev.PoolChanged(2, PoolDescription("b", 4))])) == [("j", "b")]


def test_a_pool_that_appears_is_one_more_choice():
    s = driven(ClusterDescription("c", (PoolDescription("a", 4), PoolDescription("c", 1))))
    s.step(0, arrive(described("busy", 4, pool="a"), described("j", 4, **BOTH)))
    assert queued(s)["a"] == ["j"]
    assert starts(s.step(1, [ev.PoolChanged(1, PoolDescription("b", 4))])) == [("j", "b")]


class OneInPoolA:
    """Bars all but one job in pool a."""

    def __init__(self) -> None:
        self.there: set[str] = set()

    @hookimpl
    def startup(self, state: State) -> None:
        state.watch(self)

    def took(self, job: Job) -> None:
        if job.pool.name == "a":
            self.there.add(job.id)

    def gave(self, job: Job) -> None:
        self.there.discard(job.id)

    @hookimpl
    def react(self, state: State) -> list[Decision]:
        if not self.there:
            state.lifted("a")
        return []

    @hookimpl
    def bar_job(self, job: Job) -> Barrier | None:
        return Barrier("one job is in a", "a") if job.pool.name == "a" and self.there else None


@pytest.mark.parametrize("policy", [Fcfs, Easy, Conservative])
def test_a_barrier_in_one_pool_does_not_keep_it_out_of_the_other(policy):
    s = driven(pools(), policy(), OneInPoolA())
    jobs = [described(str(at), 2, **BOTH) for at in range(4)]
    assert starts(s.step(0, arrive(*jobs))) == [("0", "a"), ("1", "b"), ("2", "b")]
    assert why(s, "3") == "" and queued(s) == {"a": [], "b": ["3"]}
    s.step(1, [ev.JobStarted(1, job, pool=pool) for job, pool in (("0", "a"), ("1", "b"), ("2", "b"))])
    assert starts(s.step(9, [ev.JobEnded(9, "0")])) == [("3", "a")]
    assert s.problems == []


def test_what_bars_it_everywhere_is_told_of_each_pool():
    s = driven(pools(), Fcfs(), OneOfEachUser())
    s.step(0, arrive(described("1", user="u", **BOTH), described("2", user="u", **BOTH)))
    assert why(s, "2") == "in pool 'a': another one runs; in pool 'b': another one runs"


# ---------------------------------------------------------------- and back


def test_after_a_failed_start_it_is_back_in_all_of_its_pools():
    s = driven(pools())
    s.step(0, arrive(described("a", 4, pool="a")))
    (start,) = s.step(1, arrive(described("j", 4, **BOTH), at=1))
    s.step(2, [ev.DecisionFailed(2, start, "refused")])
    assert why(s, "j").startswith("its last start failed (refused)")
    assert starts(s.step(17, [])) == [("j", "b")]
    s.step(18, [ev.DecisionFailed(18, start, "refused"), ev.JobEnded(18, "a")])
    assert starts(s.step(48, [])) == [("j", "a")]


def test_requeued_it_is_back_in_all_of_its_pools():
    s = driven(pools())
    s.step(0, arrive(described("a", 4, pool="a")))
    s.step(1, arrive(described("j", 4, **BOTH), at=1))
    s.step(2, [ev.JobStarted(2, "j", pool="b"), ev.JobEnded(2, "a")])
    s.step(3, [ev.JobSubmitted(3, described("other", 4, pool="b"))])
    assert starts(s.step(4, [ev.JobRequeued(4, "j")])) == [("j", "a"), ("other", "")]


def test_a_start_that_a_plugin_vetoes_is_back_in_all_of_its_pools():
    class Vetoes:
        @hookimpl
        def veto(self, decision: Decision, state: State) -> str | None:
            return "not today" if isinstance(decision, Start) and state.now < 10 else None

    s = driven(pools(), Fcfs(), Vetoes())
    assert s.step(0, arrive(described("j", **BOTH))) == []
    assert queued(s) == {"a": ["j"], "b": ["j"]}
    assert starts(s.step(10, arrive(described("b", 4, pool="b"), at=10))) == [("j", "a"), ("b", "")]


def test_held_and_released_it_is_in_all_of_its_pools():
    s = driven(pools())
    s.step(0, arrive(described("a", 4, pool="a"), described("b", 4, pool="b"), described("j", **BOTH)))
    s.step(1, [ev.JobHeld(1, "j")])
    assert queued(s) == {"a": [], "b": []}
    s.step(2, [ev.JobReleased(2, "j")])
    assert queued(s) == {"a": ["j"], "b": ["j"]}


def test_its_user_changes_the_list():
    s = driven(pools())
    s.step(0, arrive(described("a", 4, pool="a"), described("b", 4, pool="b"), described("j", **BOTH)))
    s.step(1, [ev.JobChanged(1, described("j", pool="b"))])
    assert queued(s) == {"a": [], "b": ["j"]} and s.state.in_several == set()
    s.step(2, [ev.JobChanged(2, described("j", pool="b", further_pools=("a",)))])
    assert queued(s) == {"a": ["j"], "b": ["j"]}
    s.step(3, [ev.JobEnded(3, "j")])
    assert queued(s) == {"a": [], "b": []} and s.state.in_several == set()


def test_a_start_by_somebody_else_says_its_pool_or_its_nodes_do():
    s = driven(nodes())
    full = [described(f"full {pool}", 8, pool=pool) for pool in "ab"]
    s.step(0, arrive(*full, described("j", 2, **BOTH), described("k", 2, **BOTH)))
    s.step(1, [ev.JobEnded(1, "full b"), ev.JobStarted(1, "j", (("b1", 2),))])
    assert s.state.jobs["j"].pool.name == "b"
    assert "j" not in queued(s)["a"]


def test_a_start_on_its_way_after_a_restart_is_in_its_pool():
    s = driven(pools())
    s.step(0, [*arrive(described("j", 3, **BOTH)), ev.JobReleasing(0, "j", pool="b")])
    assert (s.state.jobs["j"].status, s.state.domains["b"].free) == (Status.STARTING, 1)
    s.step(1, [ev.JobStarted(1, "j", pool="b")])
    assert (s.state.jobs["j"].status, s.state.domains["b"].free) == (Status.RUNNING, 1)


def test_news_about_a_running_job_leaves_it_where_it_runs():
    s = driven(pools())
    s.step(0, arrive(described("a", 4, pool="a"), described("j", 2, **BOTH)))
    s.step(1, [ev.JobStarted(1, "j", pool="b")])
    s.step(2, [ev.JobChanged(2, described("j", 2, 500, **BOTH))])
    job = s.state.jobs["j"]
    assert (job.pool.name, job.expected_end, s.state.domains["b"].free) == ("b", 501, 2)


def test_a_start_that_a_plugin_wishes_for_goes_where_its_nodes_are():
    class Starts:
        @hookimpl
        def control(self, state: State) -> list[Decision]:
            job = state.jobs.get("j")
            return [Start("j", (("b2", 2),))] if job is not None and job.status is Status.PENDING else []

    class Nothing:
        @hookimpl
        def schedule(self, view: Any) -> list[Decision]:
            return []

    s = driven(nodes(), Nothing(), Starts())
    (start,) = s.step(0, arrive(described("j", 2, **BOTH)))
    assert (start.pool, s.state.jobs["j"].pool.name, s.problems) == ("b", "b", [])


def test_no_plugin_starts_it_in_a_pool_that_may_not_run_it():
    class Starts:
        @hookimpl
        def control(self, state: State) -> list[Decision]:
            job = state.jobs.get("j")
            return [Start("j", pool="a")] if job is not None and job.status is Status.PENDING else []

    s = driven(pools(max_walltime=60.0), Fcfs(), Starts())
    s.step(0, arrive(described("full", 4, pool="b"), described("j", 1, 100, **BOTH)))
    assert [problem.message for problem in s.problems] == [
        "job j may not start in pool 'a': it can never run as it is: it asks for 100 s, and pool 'a' runs "
        "jobs of at most 60 s; not started"
    ]


# ---------------------------------------------------------------- told


def test_explain_says_of_each_pool_why_it_waits():
    s = driven(pools(a=2))
    s.step(0, arrive(described("full", 4, pool="b"), described("j", 3, **BOTH)))
    text = " ".join(explain(s, "j", plain_clock))
    assert "in pools 'a' and 'b'" in text
    assert "In pool 'a': it can never run as it is: it needs 3 processors, and pool 'a' has 2." in text
    assert "In pool 'b' it is number 1 of 1 in the queue; 0 of 4 processors are free." in text


def test_a_wish_of_a_monitor_names_the_pool():
    s = driven(pools(), monitor=True)
    s.step(0, arrive(described("a", 4, pool="a")))
    s.step(1, [ev.JobStarted(1, "a"), *arrive(described("j", 4, **BOTH), at=1)])
    assert queued(s) == {"a": ["j"], "b": ["j"]}


# ---------------------------------------------------------------- emulated


def test_the_emulated_cluster_runs_it_where_it_was_started_and_says_so():
    jobs = [traced("long", 4, 500, pool="a"), traced("j", 4, 100, **BOTH), traced("k", 4, 100, **BOTH)]
    run = emulate(pools(), jobs, Fcfs())
    assert run.starts == {"long": 0, "j": 0, "k": 100}
    assert {name: result.pool for name, result in run.results.items()} == {"long": "a", "j": "b", "k": "b"}
    assert run.problems == []


def test_the_emulated_cluster_runs_it_where_only_a_further_pool_is_there():
    run = emulate(
        pools(), [traced("j", 4, 100, pool="nowhere", further_pools=("b", "b"))], Fcfs(), max_rounds=9
    )
    assert (run.starts, run.results["j"].pool, run.problems) == ({"j": 0}, "b", [])


def test_a_copy_of_a_cluster_has_all_pools_of_its_jobs_and_their_bounds():
    live = EmulatedAdapter(
        pools(max_walltime=60.0), [traced("j", 1, 100, **BOTH), traced("k", 4, 50, pool="b")]
    )
    copy = Copy(live)
    assert [job.job.pools for job in copy.jobs] == [("a", "b"), ("b",)]
    run = emulate(copy.cluster, copy.jobs, Fcfs(), start=copy.now)
    assert {name: result.pool for name, result in run.results.items()} == {"j": "b", "k": "b"}
    assert run.starts == {"j": 0, "k": 100}


def test_the_emulated_cluster_starts_nothing_beyond_a_bound_and_in_no_other_pool():
    adapter = EmulatedAdapter(pools(max_walltime=60.0), [traced("j", 1, 100, **BOTH)])
    adapter.wait(None)
    outcomes = [adapter.apply(0, [Start("j", pool=pool)])[0] for pool in ("c", "a", "b")]
    assert [outcome.accepted for outcome in outcomes] == [False, False, True]
    assert [outcome.message for outcome in outcomes[:2]] == [
        "job j was sent to a, b, not to c", "job j asks for 100 s, pool 'a' allows 60 s"
    ]  # fmt: skip


def test_where_it_could_be_without_others_is_asked_of_each_pool_that_shares_the_nodes():
    s = driven(nodes(NodeDescription("ab", 4, pools=("a", "b"))))
    for name, pool, placement in (
        ("x", "a", (("a1", 4), ("a2", 4), ("ab", 4))), ("y", "b", (("b1", 4),)), ("z", "b", (("b2", 4),))
    ):  # fmt: skip
        job = described(name, sum(count for _, count in placement), pool=pool)
        s.step(0, [*arrive(job), ev.JobStarted(0, name, placement)])
    s.step(1, arrive(described("j", 8, **BOTH)))
    (view,) = s.views.values()
    job, y, z, (a, b) = s.state.jobs["j"], s.state.jobs["y"], s.state.jobs["z"], s.state.pools.values()
    assert view.place_without(job, [y]) is None
    assert view.place_without(job, [y, z]) == (("b1", 4), ("b2", 4))
    assert view.place_without(job, [y, z], pool=a) is None
    assert view.place_without(job, [s.state.jobs["x"]], pool=b) is None
    assert job.pool is a, "nothing is changed"


class RefusesIn:
    """Refuses jobs in these pools."""

    def __init__(self, *pools: str) -> None:
        self.pools = pools

    @hookimpl
    def admit_job(self, job: Job) -> str | None:
        return f"{job.pool.name} is not for it" if job.pool.name in self.pools else None


def test_what_a_plugin_refuses_in_one_pool_starts_in_another():
    s = driven(pools(), Fcfs(), RefusesIn("a"))
    assert starts(s.step(0, arrive(described("j", 2, **BOTH)))) == [("j", "b")]
    s.step(0, [ev.JobStarted(0, "j", pool="b"), *arrive(described("k", 4, **BOTH))])
    assert s.state.jobs["k"].refusal == "" and queued(s) == {"a": [], "b": ["k"]}


@pytest.mark.parametrize("share", [False, True])
def test_what_plugins_refuse_in_all_pools_is_refused(share):
    cluster = nodes(NodeDescription("ab", 4, pools=("a", "b"))) if share else pools()
    s = driven(cluster, Fcfs(), RefusesIn("a", "b"))
    assert s.step(0, arrive(described("j", 2, **BOTH))) == []
    job = s.state.jobs["j"]
    assert job.refusal == ("in pool 'a': a is not for it; in pool 'b': b is not for it")
    assert job.barred and not any(queued(s).values())


def test_it_is_asked_again_when_it_changes():
    refuses = RefusesIn("a", "b")
    s = driven(pools(), Fcfs(), refuses)
    s.step(0, arrive(described("j", 2, **BOTH)))
    refuses.pools = ("a",)
    assert starts(s.step(1, [ev.JobChanged(1, described("j", 1, **BOTH))])) == [("j", "b")]
