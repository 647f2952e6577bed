"""Orders of the queue: who is served first, and by what ties are broken."""

from __future__ import annotations

import pytest
from building import described, plugged

from headway import events as ev
from headway.model import ClusterDescription, NodeDescription, PoolDescription
from headway.scheduler import Scheduler
from headway_plugins.orders.largest_first import LargestFirst
from headway_plugins.orders.longest_first import LongestFirst
from headway_plugins.orders.round_robin import RoundRobin
from headway_plugins.orders.shortest_first import ShortestFirst
from headway_plugins.orders.smallest_first import SmallestFirst
from headway_plugins.placement.first_fit import FirstFit
from headway_plugins.policies.fcfs import Fcfs
from headway_plugins.policies.strict import Strict

#: id, processors, estimate, submission; in order of arrival.
ARRIVALS = [
    ("a", 3, 50, 0),
    ("b", 1, 70, 5),
    ("c", 3, 20, 5),
    ("d", 2, 50, 3),
    ("e", 1, 50, 5),
    ("f", 3, 50, 0),
]

ORDERS = {
    SmallestFirst: "bedafc",
    LargestFirst: "afcdbe",
    ShortestFirst: "cafdeb",
    LongestFirst: "bafdec",
}


def queue_under(*plugins, changes=()):
    """Ids in service order, all behind a job that takes the whole machine."""
    s = Scheduler(ClusterDescription.flat(4), plugged(Strict(), *plugins))
    s.step(0, [ev.JobSubmitted(0, described("whole", 4, 999))])
    for name, processors, estimate, submit in ARRIVALS:
        # One by one, so that each finds its place among those that wait.
        s.step(5, [ev.JobSubmitted(5, described(name, processors, estimate, submit))])
    for name, processors, estimate, submit in changes:
        s.step(6, [ev.JobChanged(6, described(name, processors, estimate, submit))])
    assert s.problems == []
    return "".join(job.id for job in s.state.domains["pool"].queue)


@pytest.mark.parametrize("order", ORDERS)
def test_equal_jobs_are_served_by_submission_then_by_arrival(order):
    assert queue_under(order()) == ORDERS[order]


def test_without_an_order_it_is_by_submission_then_by_arrival():
    assert queue_under() == "afdbce"


def test_a_job_that_changes_finds_its_new_place():
    assert queue_under(SmallestFirst(), changes=[("a", 1, 50, 0)]) == "abedfc"
    assert queue_under(LongestFirst(), changes=[("c", 3, 999, 5)]) == "cbafde"


def test_the_first_order_that_is_enabled_counts():
    assert queue_under(SmallestFirst(), LongestFirst()) == ORDERS[SmallestFirst]


def in_turn(*plugins, **tiers):
    """Ids in the order of their starts: jobs of three pools on the same host, with room for all."""
    names = ("workq", "hwtest", "night")
    pools = tuple(PoolDescription(name, priority_tier=tiers.get(name, 0)) for name in names)
    nodes = (NodeDescription("n0", 64, pools=names),)
    s = Scheduler(ClusterDescription("c", pools, nodes), plugged(Fcfs(), FirstFit(), *plugins))
    arrivals = [("w1", "workq", 1), ("w2", "workq", 3), ("w3", "workq", 2), ("h1", "hwtest", 1),
                ("h2", "hwtest", 2), ("n1", "night", 1)]  # fmt: skip
    jobs = [described(name, processors, pool=pool) for name, pool, processors in arrivals]
    made = s.step(0, [ev.JobSubmitted(0, job) for job in jobs])
    assert s.problems == []
    return " ".join(decision.job_id for decision in made)


def test_round_robin_serves_one_job_of_each_pool_in_turn():
    assert in_turn() == "w1 w2 w3 h1 h2 n1"
    assert in_turn(RoundRobin()) == "w1 h1 n1 w2 h2 w3"


def test_pools_of_one_tier_take_turns_behind_those_of_a_higher_tier():
    assert in_turn(RoundRobin(), hwtest=2, workq=1, night=1) == "h1 h2 w1 n1 w2 w3"


def test_within_a_pool_round_robin_keeps_the_other_order():
    assert in_turn(RoundRobin(), LargestFirst()) == "w2 h2 n1 w3 h1 w1"
