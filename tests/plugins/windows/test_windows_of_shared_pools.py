"""The set of a window where pools share nodes: what a pool cannot do is not taken on for another's nodes."""

from __future__ import annotations

from building import InItsPool, described, emulate, node_cluster, plugged, traced

from headway import events as ev
from headway.model import NodeDescription
from headway.scheduler import Scheduler
from headway_plugins.placement.first_fit import FirstFit
from headway_plugins.windows.policy import TwoPhase, TwoPhaseOptions

DAY = 86400


def night(
    *groups: tuple[str, str, int, float], nodes: tuple[str, ...] = ("a b", "b", "b")
) -> dict[str, float]:
    """When each group ended that has one stage; it is a name, a pool, a number of tasks and their length. A
    window has ten seconds. By default pool a has one of the three nodes of pool b."""
    cluster = node_cluster(
        *(NodeDescription(f"n{at}", 1, pools=tuple(pools.split())) for at, pools in enumerate(nodes)),
        pools=("a", "b"),
    )
    tasks = [
        traced(
            f"{name}.{at}", 1, length, pool=pool,
            attributes={"window": {"job": name, "stage": 1, "reward": 1, "priority": 1}},
        )
        for name, pool, count, length in groups for at in range(count)
    ]  # fmt: skip
    policy = TwoPhase(TwoPhaseOptions(opens="00:00", length=10, fill=1.0, reselect=0))
    run = emulate(cluster, tasks, policy, FirstFit(), InItsPool(), max_rounds=20_000)
    assert run.problems == []
    ended = {}
    for name, result in run.results.items():
        assert result.end_time is not None
        group = name.split(".")[0]
        ended[group] = max(ended.get(group, 0), result.end_time)
    return ended


def test_only_what_the_pool_itself_can_do_is_in_the_set():
    # Pool a has ten seconds; the whole has thirty.
    assert night(("A", "a", 2, 5), ("B", "a", 1, 5)) == {"A": DAY + 10, "B": 5}


def test_and_what_all_pools_can_do_together():
    ended = night(("A", "a", 1, 10), ("B", "b", 2, 10), ("C", "b", 1, 10))
    assert sorted(ended.values()) == [10, 10, DAY + 10]


def test_pools_of_the_same_nodes_are_one_pool():
    groups = [("A", 2, 5), ("B", 3, 7), ("C", 1, 9)]
    several = night(
        *((name, "ab"[at % 2], n, t) for at, (name, n, t) in enumerate(groups)), nodes=("a b",) * 3
    )
    one = night(*((name, "a", n, t) for name, n, t in groups), nodes=("a",) * 3)
    assert several == one


def test_groups_follow_their_pools_when_these_come_to_share_nodes():
    nodes = (NodeDescription("n0", 1, pools=("a",)), NodeDescription("n1", 1, pools=("b",)))
    policy = TwoPhase(TwoPhaseOptions(opens="12:00", length=10))
    s = Scheduler(node_cluster(*nodes, pools=("a", "b")), plugged(policy, FirstFit()))
    mark = {"window": {"job": "A", "stage": 1, "reward": 1, "priority": 1}}
    s.step(
        0, [ev.JobSubmitted(0, described(name, 1, 5, pool="a", attributes=mark)) for name in ("A.1", "A.2")]
    )
    s.step(1, [ev.NodeUp(1, NodeDescription("n1", 1, pools=("a", "b")))])
    s.step(2, [ev.JobEnded(2, "A.1", "cancelled")])
    assert s.problems == []
