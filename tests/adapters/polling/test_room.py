"""What nodes have left, before a command that obeys without a word."""

from __future__ import annotations

import pytest
from building import described

from headway import decisions as d
from headway.model import NodeDescription
from headway_adapters.polling.room import Room
from headway_adapters.polling.snapshot import Snapshot, SnapshotJob
from headway_adapters.polling.words import Unfit

JOB = SnapshotJob(described("1", pool="p"), "pending")
NODES = {
    "a": NodeDescription("a", 4, pools=("p",)),
    "b": NodeDescription("b", 4, pools=("p",)),
    "down": NodeDescription("down", 4, pools=("p",), available=False, reason="broken"),
    "other": NodeDescription("other", 4, pools=("q",)),
    "asleep": NodeDescription("asleep", 4, pools=("p",)),
}


def room() -> Room:
    seen = Snapshot(0.0, {"1": JOB}, NODES, power={"asleep": "asleep"})
    return Room(seen, node="host", processors="slots", hosts={"a": "h", "b": "h"}, vnodes={"h": ("a", "b")})


def start(node: str, count: int = 1, tier: str = "foreground") -> d.Start:
    return d.Start("1", ((node, count),), tier=tier)


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        (start("nowhere"), "'nowhere' is not a host of the managed queues"),
        (start("other"), "host other does not serve queue p"),
        (start("down"), r"host down is not usable \(broken\)"),
        (start("asleep"), "host asleep is asleep"),
        (start("a", 4), "host a has 3 slots free, not 4"),
        (start("b", 5, "background"), "host b has 4 slots free in the background, not 5"),
    ],
)
def test_what_a_node_cannot_take(wanted: d.Start, why: str) -> None:
    one = room()
    one.fill("a", 1)
    with pytest.raises(Unfit, match=f"job 1: {why}"):
        one.admit(wanted, JOB, whole=False)


def test_each_tier_has_all_processors_and_none_that_are_whole() -> None:
    one = room()
    one.fill("a", 4)
    one.admit(start("a", 4, "background"), JOB, whole=False)
    with pytest.raises(Unfit, match="host a would be shared"):
        one.admit(start("a", 0, "foreground"), JOB, whole=True)
    with pytest.raises(Unfit, match="which would be shared in the background"):
        one.admit(start("b", 1, "background"), JOB, whole=True)
    one.admit(start("b"), JOB, whole=True)
    with pytest.raises(Unfit, match="host a would be shared"):
        one.admit(start("b"), JOB, whole=False, whole_hosts=True)


def test_a_start_on_its_way_counts_once() -> None:
    one = room()
    one.expect([start("a", 3), d.Start("gone", (("a", 1),))])
    one.admit(start("a", 1), JOB, whole=False)
    with pytest.raises(Unfit, match="has 1 slots free, not 2"):
        one.admit(start("a", 2), JOB, whole=False)
