"""What subjobs could have of a pool that shares nodes with others."""

from __future__ import annotations

import pytest
from building import described, node_cluster, plugged

from headway import events as ev
from headway.model import NodeDescription, Request
from headway.scheduler import Scheduler
from headway_plugins.bundling.room import Room
from headway_plugins.bundling.slots import Slots
from headway_plugins.placement.first_fit import FirstFit
from headway_plugins.policies.easy import Easy


@pytest.fixture
def scheduler() -> Scheduler:
    """Pool a has n0 and n1, pool b n1 to n3, of 4 processors each; a job of pool b has n1 until 100, and the
    first of the queue wants all of pool a."""
    names = [("a",), ("a", "b"), ("b",), ("b",)]
    nodes = (NodeDescription(f"n{at}", 4, pools=pools) for at, pools in enumerate(names))
    scheduler = Scheduler(node_cluster(*nodes, pools=("a", "b")), plugged(Easy(), FirstFit()))
    runs = described("r", 4, 100, pool="b")
    scheduler.step(0, [ev.JobSubmitted(0, runs), ev.JobStarted(0, "r", (("n1", 4),))])
    scheduler.step(0, [ev.JobSubmitted(0, described("h", 8, 100, pool="a"))])
    return scheduler


def test_it_is_what_the_pool_has_until_the_head_needs_it(scheduler: Scheduler) -> None:
    state = scheduler.state
    assert Room(state.pools["a"], state).slots() == Slots(free=4, extra=0, shadow=100)
    # Of pool b the head can have the shared node alone.
    assert Room(state.pools["b"], state).slots() == Slots(free=8, extra=4, shadow=0)


def test_what_is_asked_for_in_another_pool_may_take_the_shared_node(scheduler: Scheduler) -> None:
    state = scheduler.state
    room = Room(state.pools["b"], state)
    room.give(state.jobs["h"], Request(2, 10))
    assert room.slots() == Slots(free=6, extra=2, shadow=0)
