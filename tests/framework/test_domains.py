"""Pools that share nodes: one queue in one order, one set of bookings; each job on nodes of its own pool."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from building import described, node_cluster, plugged

from headway import events as ev
from headway.daemon.replay import scheduler_of
from headway.decisions import Decision, Start
from headway.errors import UserError
from headway.hookspecs import hookimpl
from headway.inquiry import explain
from headway.inquiry.pools import pool_report
from headway.journal import RunInfo, RunRecord
from headway.model import ClusterDescription, NodeDescription, PoolBounds, PoolDescription
from headway.model.nodes import sharing_nodes
from headway.plugins import Catalogue
from headway.scheduler import Scheduler, plain_clock
from headway.state import Barrier, Job, State
from headway_plugins.placement.first_fit import FirstFit
from headway_plugins.policies.conservative import Conservative
from headway_plugins.policies.easy import Easy, EasyOptions
from headway_plugins.policies.fcfs import Fcfs


def hosts(*pools: PoolDescription, count: int = 3, processors: int = 8) -> ClusterDescription:
    """So many hosts, all of them in all pools."""
    pools = pools or (PoolDescription("workq"), PoolDescription("hwtest"))
    names = tuple(pool.name for pool in pools)
    nodes = tuple(NodeDescription(f"n{at}", processors, pools=names) for at in range(count))
    return ClusterDescription("c", pools, nodes)


def apart() -> ClusterDescription:
    """Pool a has n0 and n1, pool b n1 and n2, pool c n3."""
    pools = [("a",), ("a", "b"), ("b",), ("c",)]
    nodes = (NodeDescription(f"n{at}", 4, pools=names) for at, names in enumerate(pools))
    return node_cluster(*nodes, pools=("a", "b", "c"))


def driven(cluster: ClusterDescription, *plugins: Any, **more: Any) -> Scheduler:
    return Scheduler(cluster, plugged(*(plugins or (Easy(),)), FirstFit()), **more)


def arrive(*jobs: Any, at: float = 0) -> list[ev.Event]:
    return [ev.JobSubmitted(at, job) for job in jobs]


def starts(decisions: Sequence[Decision]) -> list[tuple[str, str]]:
    """Each start's job and nodes."""
    return [
        (decision.job_id, " ".join(name for name, _ in decision.placement))
        for decision in decisions if isinstance(decision, Start)
    ]  # fmt: skip


def order(s: Scheduler, domain: str) -> str:
    return " ".join(job.id for job in s.state.domains[domain].queue)


# ---------------------------------------------------------------- which pools are one


def test_pools_are_joined_by_the_nodes_that_they_share():
    s = driven(apart())
    assert list(s.state.domains) == list(s.views) == ["a+b", "c"]
    joined = s.state.domains["a+b"]
    assert (joined.total, joined.free, [pool.total for pool in joined.pools]) == (12, 12, [8, 8])
    assert s.state.pools["c"].domain.pools == (s.state.pools["c"],)


@pytest.mark.parametrize(
    ("nodes", "groups"),
    [
        ([], [("a",), ("b",), ("c",), ("d",)]),
        ([("a",), ("b",)], [("a",), ("b",), ("c",), ("d",)]),
        ([("d", "a")], [("a", "d"), ("b",), ("c",)]),
        ([("b", "c"), ("a", "c")], [("a", "b", "c"), ("d",)]),
        ([("a", "b"), ("c", "d"), ("d", "a")], [("a", "b", "c", "d")]),
        ([("a", "elsewhere"), ("elsewhere", "b")], [("a",), ("b",), ("c",), ("d",)]),
    ],
)
def test_by_way_of_others_too(nodes, groups):
    assert sharing_nodes("abcd", nodes) == groups


def test_a_node_that_comes_joins_its_pools_with_all_that_waits_and_runs_there():
    s = driven(apart())
    s.step(0, arrive(described("ra", 8, 50, pool="a"), described("rc", 4, 90, pool="c")))
    s.step(1, [ev.JobStarted(0, "ra", (("n0", 4), ("n1", 4))), ev.JobStarted(0, "rc", (("n3", 4),))])
    s.step(
        2, arrive(described("late", 4, 10, pool="c", submit=2), described("wide", 8, 10, pool="a", submit=1))
    )
    assert (order(s, "a+b"), order(s, "c")) == ("wide", "late")
    s.step(3, [ev.NodeUp(3, NodeDescription("n2", 4, pools=("b", "c")))])
    (domain,) = s.state.domains.values()
    assert (domain.name, domain.total, domain.free) == ("a+b+c", 16, 0)
    assert [(end, processors, job.id) for end, _, processors, job in domain.running] == [
        (13, 4, "late"), (50, 8, "ra"), (90, 4, "rc"),
    ]  # fmt: skip
    assert order(s, "a+b+c") == "wide" and s.views["a+b+c"].booked(s.state.jobs["wide"]).start == 50


def test_and_one_that_changes_its_pools_takes_them_apart():
    s = driven(apart())
    s.step(0, arrive(described("ra", 4, 50, pool="a"), described("rb", 8, 40, pool="b")))
    assert [job.id for *_, job in s.state.domains["a+b"].running] == ["rb", "ra"]
    s.step(1, [ev.JobStarted(0, "ra", (("n0", 4),)), *arrive(described("wide", 8, 10, pool="b"), at=1)])
    s.step(2, [ev.NodeUp(2, NodeDescription("n1", 4, pools=("b",)))])
    assert list(s.state.domains) == ["a", "b", "c"]
    a, b, _ = s.state.domains.values()
    assert (a.total, a.free, b.total, b.free) == (4, 0, 8, 0)
    assert [job.id for *_, job in a.running] == ["ra"] and [job.id for *_, job in b.running] == ["rb"]
    assert order(s, "b") == "wide"


def test_what_is_reserved_and_who_is_in_the_background_go_along():
    s = driven(apart(), Fcfs())
    s.step(0, [ev.JobSubmitted(0, described("behind", 2, 50, pool="c"))])
    s.step(1, [ev.JobStarted(0, "behind", (("n3", 2),), tier="background")])
    s.step(2, [ev.NodeUp(2, NodeDescription("n2", 4, pools=("b", "c")))])
    domain = s.state.domains["a+b+c"]
    assert list(domain.background) == ["behind"] and domain.free == 16


# ---------------------------------------------------------------- one queue


@pytest.mark.parametrize("policy", [Easy, Conservative])
def test_the_head_of_one_pool_is_not_passed_for_ever_by_jobs_of_another(policy):
    """Bob's job of all processors was sent first; a dozen later jobs of one host each do not starve it."""
    s = driven(hosts(), policy())
    s.step(0, arrive(described("first", 8, 100, pool="workq")))
    s.step(
        1, [ev.JobStarted(0, "first", (("n0", 8),)), *arrive(described("bob", 24, 60, pool="hwtest"), at=1)]
    )
    later = [described(f"alice{at}", 8, 90 + 10 * at, pool="workq", submit=2) for at in range(12)]
    # One ends before bob's job is to start, and none of the others does.
    assert starts(s.step(2, arrive(*later, at=2))) == [("alice0", "n1")]
    assert s.views["workq+hwtest"].booked(s.state.jobs["bob"]).start == 100
    assert starts(s.step(92, [ev.JobEnded(92, "alice0")])) == []
    assert starts(s.step(100, [ev.JobEnded(100, "first")])) == [("bob", "n0 n1 n2")]


def test_fcfs_serves_the_pools_in_the_order_in_which_jobs_came():
    s = driven(hosts(), Fcfs())
    jobs = [
        described(name, 24, 10, pool=pool) for name, pool in zip("abcd", ["workq", "hwtest"] * 2, strict=True)
    ]
    assert starts(s.step(0, arrive(*jobs))) == [("a", "n0 n1 n2")]
    assert order(s, "workq+hwtest") == "b c d"


def test_a_higher_tier_comes_first_whatever_the_pool_and_the_order():
    s = driven(
        hosts(PoolDescription("low", priority_tier=1), PoolDescription("high", priority_tier=2)), Fcfs()
    )
    s.step(0, arrive(described("r", 24, 10, pool="low")))
    s.step(1, arrive(described("a", 1, pool="low"), described("b", 1, pool="high"), at=1))
    assert order(s, "low+high") == "b a"
    s.step(2, [ev.PoolChanged(2, PoolDescription("low", priority_tier=3))])
    assert order(s, "low+high") == "a b"


def start_pools(decisions: Sequence[Decision]) -> list[tuple[str, str]]:
    """Each start's job, and its pool as the start says it."""
    return [(decision.job_id, decision.pool) for decision in decisions if isinstance(decision, Start)]


def test_a_job_of_several_pools_starts_in_that_of_the_highest_tier_that_has_room():
    pools = PoolDescription("low", priority_tier=1), PoolDescription("high", priority_tier=2)
    nodes = NodeDescription("n0", 8, pools=("low", "high")), NodeDescription("n1", 8, pools=("low",))
    s = driven(ClusterDescription("c", pools, nodes), Fcfs())
    jobs = [described(name, 8, 10, pool="low", further_pools=("high",)) for name in "ab"]
    assert start_pools(s.step(0, arrive(*jobs))) == [("a", "high"), ("b", "low")]


def test_a_job_of_several_pools_that_waits_starts_by_the_tiers_as_they_are_then():
    s = driven(
        hosts(PoolDescription("low", priority_tier=1), PoolDescription("high", priority_tier=2)), Fcfs()
    )
    s.step(0, arrive(described("r", 24, 10, pool="low")))
    s.step(1, arrive(described("a", 1, 10, pool="high", further_pools=("low",)), at=1))
    made = s.step(2, [ev.PoolChanged(2, PoolDescription("low", priority_tier=3)), ev.JobEnded(2, "r")])
    assert start_pools(made) == [("a", "low")]


def test_a_higher_tier_comes_before_an_order_that_changes_with_time():
    class Backwards:
        @hookimpl
        def order_queue(self, jobs):
            return list(reversed(jobs))

    s = driven(
        hosts(PoolDescription("low", priority_tier=1), PoolDescription("high", priority_tier=2)),
        Backwards(), Fcfs(),
    )  # fmt: skip
    pools = {"a": "low", "b": "high", "c": "low", "d": "high"}
    made = s.step(0, arrive(*(described(name, 1, pool=pool) for name, pool in pools.items())))
    assert [name for name, _ in starts(made)] == ["d", "b", "c", "a"]


def test_the_configuration_says_another_tier():
    pools = PoolDescription("low", priority_tier=1), PoolDescription("high", priority_tier=2)
    s = driven(hosts(*pools), Fcfs(), tiers={"low": 2})
    s.step(0, arrive(described("r", 24, 10, pool="low")))
    s.step(1, arrive(described("a", 1, pool="low"), described("b", 1, pool="high"), at=1))
    assert order(s, "low+high") == "a b"


@pytest.mark.parametrize(("per_pool", "booked"), [(False, ["a"]), (True, ["a", "b"])])
def test_easy_may_book_the_first_of_each_pool(per_pool, booked):
    s = driven(hosts(), Easy(EasyOptions(bookings_per_pool=per_pool)))
    waiting = zip("abc", ["workq", "hwtest", "workq"], strict=True)
    jobs = [described(name, 24, 50, pool=pool) for name, pool in waiting]
    s.step(0, arrive(described("r", 8, 100, pool="workq"), *jobs))
    assert [booking.job.id for booking in s.views["workq+hwtest"].bookings] == booked


# ---------------------------------------------------------------- its own pool's nodes and limits


def test_each_job_has_nodes_of_its_own_pool():
    s = driven(apart(), Fcfs())
    made = s.step(0, arrive(described("b", 8, 10, pool="b"), described("a", 4, 10, pool="a")))
    assert starts(made) == [("b", "n1 n2"), ("a", "n0")]


def test_a_job_that_is_too_large_for_its_pool_holds_up_nobody():
    s = driven(apart(), Fcfs())
    assert starts(
        s.step(0, arrive(described("large", 12, 10, pool="b"), described("a", 4, 10, pool="a")))
    ) == [("a", "n0")]
    assert "pool 'b' has 8" in s.state.why_waiting(s.state.jobs["large"])


BOTH = {"pool": "a", "further_pools": ("b",)}


def test_a_job_of_several_pools_is_in_the_queue_once_and_starts_where_it_can_be_first():
    s = driven(apart(), Conservative())
    s.step(0, arrive(described("r", 4, 100, pool="a"), described("s", 8, 50, pool="b")))
    s.step(1, [ev.JobStarted(0, "r", (("n0", 4),)), ev.JobStarted(0, "s", (("n1", 4), ("n2", 4)))])
    s.step(2, arrive(described("j", 8, 10, **BOTH), at=2))
    assert order(s, "a+b") == "j"
    s.state.domains["a+b"].touch()
    s.step(3, [])
    assert s.views["a+b"].booked(s.state.jobs["j"]).start == 50
    (start,) = s.step(40, [ev.JobEnded(40, "s")])
    assert (start.pool, starts([start])) == ("b", [("j", "n1 n2")])
    assert order(s, "a+b") == "" and not s.state.domains["a+b"].shared


def test_a_bound_of_one_of_its_pools_leaves_the_other():
    bounded = hosts(PoolDescription("a", bounds=PoolBounds(max_walltime=5)), PoolDescription("b"))
    s = driven(bounded, Fcfs())
    (start,) = s.step(0, arrive(described("j", 8, 10, **BOTH)))
    assert start.pool == "b"


class OneInA:
    """Lets one job run in pool a."""

    def __init__(self) -> None:
        self.running = 0

    @hookimpl
    def startup(self, state: State) -> None:
        state.watch(self)

    def took(self, job: Job) -> None:
        self.running += job.pool.name == "a"

    def gave(self, job: Job) -> None:
        self.running -= job.pool.name == "a"

    @hookimpl
    def bar_job(self, job: Job) -> Barrier | None:
        return Barrier("one job in a", "a") if job.pool.name == "a" and self.running else None


@pytest.mark.parametrize("policy", [Fcfs, Easy, Conservative])
def test_a_limit_of_one_of_its_pools_leaves_the_other_in_the_same_step(policy):
    s = driven(hosts(PoolDescription("a"), PoolDescription("b")), policy(), OneInA())
    made = s.step(
        0, arrive(*(described(name, 8, 10, **BOTH) for name in "jk"), described("l", 8, 10, pool="a"))
    )
    assert {start.job_id: start.pool for start in made} == {"j": "a", "k": "b"}
    assert s.problems == []


def test_a_pool_that_puts_a_job_ahead_and_bars_it_does_so_no_longer():
    pools = PoolDescription("a", priority_tier=2), PoolDescription("b", priority_tier=1)
    s = driven(hosts(*pools), Fcfs(), OneInA())
    s.step(0, arrive(described("r", 24, 10, pool="a")))
    s.step(1, arrive(described("j", 1, 10, submit=1, **BOTH), described("first", 1, 10, pool="b"), at=1))
    assert order(s, "a+b") == "first j"


# ---------------------------------------------------------------- what is said


def test_explain_names_the_job_of_the_other_pool():
    s = driven(hosts())
    s.step(0, arrive(described("r", 8, 100, pool="workq")))
    s.step(1, [ev.JobStarted(0, "r", (("n0", 8),)), *arrive(described("bob", 24, 60, pool="hwtest"), at=1)])
    s.step(2, arrive(described("alice", 8, 200, pool="workq", submit=2), at=2))
    text = "\n".join(explain(s, "alice", plain_clock))
    assert (
        "It is number 2 of 2 in the queue of pools 'workq' and 'hwtest', which share nodes; 16 of 24" in text
    )
    assert "without delaying job bob of pool 'hwtest', for which nodes are kept from 100 on" in text


def test_a_status_report_tells_each_pool_its_own():
    s = driven(apart(), Fcfs())
    s.step(
        0,
        arrive(
            described("a", 8, 50, pool="a"), described("b", 8, 50, pool="b"), described("a2", 1, pool="a")
        ),
    )
    reports = [pool_report(s.state, pool) for pool in s.state.pools.values()]
    assert [(one.name, one.total, one.free, one.queued, one.running, one.head) for one in reports] == [
        ("a", 8, 0, 1, 1, 1), ("b", 8, 4, 1, 0, 8), ("c", 4, 4, 0, 0, 0),
    ]  # fmt: skip


# ---------------------------------------------------------------- runs that an earlier version recorded


def recorded(version: str, cluster: ClusterDescription) -> RunRecord:
    return RunRecord(7, RunInfo("dry-run", 0.0, version, "mode: dry-run", 0, cluster), None, "")


def test_a_run_of_before_is_refused_where_pools_share_nodes():
    with pytest.raises(
        UserError, match=r"run 7 was recorded by headway 0\.1\.0, which served the pools a, b separately"
    ):
        scheduler_of(recorded("0.1.0", apart()), Catalogue())
    assert list(scheduler_of(recorded("0.2.0", apart()), Catalogue()).state.domains) == ["a+b", "c"]
    assert list(scheduler_of(recorded("0.1.0", ClusterDescription.flat(4)), Catalogue()).state.domains) == [
        "pool"
    ]


def test_a_tier_of_a_pool_that_there_is_not_is_told():
    state = State(hosts(), {"workq": 5, "hwtset": 9})
    assert state.notices == [
        "pools.hwtset: no pool is called 'hwtset'; its tier does nothing. Did you mean 'hwtest'?"
    ]
