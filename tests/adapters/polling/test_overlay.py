"""The last look: as it came, as it is, and as it is told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
from building import described

from headway.adapter import Outcome
from headway.model import NodeDescription
from headway_adapters.polling import Look
from headway_adapters.polling.overlay import Overlay
from headway_adapters.polling.snapshot import Snapshot, SnapshotJob

ON_N = (("n", 1),)


class Actuators:
    """Node n is as they say."""

    power = "waking"

    def show(self, snapshot: Snapshot) -> Snapshot:
        node = msgspec.structs.replace(snapshot.nodes["n"], available=True, reason="")
        return replace(snapshot, nodes={"n": node}, power={"n": self.power})


class Agents:
    """Job 1 is in the background."""

    def show(self, snapshot: Snapshot) -> Snapshot:
        job = msgspec.structs.replace(snapshot.jobs["1"], tier="background")
        return replace(snapshot, jobs={**snapshot.jobs, "1": job})


class Moves:
    """Job 2 is being moved, and shown where it was."""

    def show(self, snapshot: Snapshot) -> Snapshot:
        job = SnapshotJob(described("2", pool="p"), "running", placement=ON_N)
        return replace(snapshot, jobs={**snapshot.jobs, "2": job})


def look(time: float) -> Look[str]:
    jobs = {
        "1": SnapshotJob(described("1", pool="p"), "running", placement=ON_N),
        "2": SnapshotJob(described("2", pool="p"), "pending"),
    }
    nodes = {"n": NodeDescription("n", 4, pools=("p",), available=False, reason="headway: waking")}
    return Look(Snapshot(time, jobs, nodes), details={"2": "its detail", "3": "of no job"})


def laid(actuators: Any, time: float = 1.0) -> Overlay[str]:
    overlay: Overlay[str] = Overlay(actuators, Agents())  # type: ignore[arg-type]
    overlay.take(look(time))
    overlay.show(Moves())  # type: ignore[arg-type]
    return overlay


def states(snapshot: Snapshot | None) -> list[tuple[str, str]]:
    assert snapshot is not None
    return [(job.state, job.tier) for job in snapshot.jobs.values()]


def test_each_state_of_a_look_knows_more_than_the_one_before() -> None:
    one = laid(Actuators())
    assert one.raw is not None
    assert states(one.raw.snapshot) == [("running", "foreground"), ("pending", "foreground")]
    assert states(one.snapshot) == [("running", "background"), ("pending", "foreground")]
    assert states(one.shown) == [("running", "background"), ("running", "foreground")]
    assert (one.known("2") or one).state == "pending"  # type: ignore[union-attr]
    assert (one.detail("2"), one.detail("3"), one.usable("n")) == ("its detail", None, False)


def test_a_node_that_changes_between_two_looks_moves_no_job() -> None:
    actuators = Actuators()
    one = laid(actuators)
    actuators.power = "asleep"
    one.nodes_changed()
    assert one.shown is not None and one.snapshot is not None
    assert one.shown.power == one.snapshot.power == {"n": "asleep"}
    # The job that is being moved, and the one in the background, are as they were told.
    assert states(one.shown) == [("running", "background"), ("running", "foreground")]
    assert states(one.snapshot) == [("running", "background"), ("pending", "foreground")]


def test_what_was_written_holds_until_the_next_look() -> None:
    one = laid(Actuators())
    assert one.times is None
    one.remember("new", "1", Outcome(True))
    one.remember("other", "2", Outcome(False, "no"))
    assert (one.as_written("1", "old"), one.as_written("2", "old")) == ("new", "old")
    one.take(look(2.0))
    assert one.as_written("1", "old") == "old"
    assert one.times == (1.0, 2.0)
