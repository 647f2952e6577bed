"""Planned starts after each cycle: as many as can be worked out in a share of all time."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest
from building import alike, described, node_cluster, plugged

from headway.decisions import Start
from headway.events import Event, JobEnded, JobStarted, JobSubmitted
from headway.inquiry.planned import KEPT, PlannedStarts
from headway.inquiry.spare_time import SpareTime
from headway.model import ClusterDescription
from headway.scheduler import Scheduler
from headway.view.node_turns import NodeTurns
from headway.view.owed import Check, Enough
from headway_plugins.placement.first_fit import FirstFit
from headway_plugins.policies.conservative import Conservative

FLAT = ClusterDescription.flat(32)
NODES = node_cluster(*alike(8, 4))
CLUSTERS = pytest.mark.parametrize("cluster", [FLAT, NODES])


class Steps(SpareTime):
    """Time for so many pieces of work in each cycle."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self.steps = steps

    def check(self) -> Check:
        left = self.steps

        def check() -> None:
            nonlocal left
            if not left:
                raise Enough
            left -= 1

        return check


def waiting(cluster: ClusterDescription, jobs: int = 60, seed: int = 4) -> Scheduler:
    """Of so many jobs most wait, and the policy owes bookings."""
    draw = random.Random(seed)
    scheduler = Scheduler(cluster, plugged(Conservative(), FirstFit()))
    sizes, lengths = [1, 2, 4, 8, 16, 31], [30, 70, 400]
    events: list[Event] = [
        JobSubmitted(0.0, described(f"j{n}", draw.choice(sizes), draw.choice(lengths), n / 8))
        for n in range(jobs)
    ]
    made = scheduler.step(10.0, events)
    scheduler.step(10.0, [JobStarted(10.0, d.job_id, d.placement) for d in made if isinstance(d, Start)])
    return scheduler


def end_one(scheduler: Scheduler, now: float) -> list[Any]:
    """A running job ends early, so that the plan is made anew."""
    entry = scheduler.views["pool"].running[-1]
    made = scheduler.step(now, [JobEnded(now, entry[3].id)])
    return made + scheduler.step(
        now, [JobStarted(now, d.job_id, d.placement) for d in made if isinstance(d, Start)]
    )


def whole(scheduler: Scheduler) -> dict[str, float]:
    return {booking.job.id: booking.start for booking in scheduler.views["pool"].bookings}


@CLUSTERS
def test_with_time_enough_all_are_known(cluster: ClusterDescription) -> None:
    scheduler = waiting(cluster)
    found = PlannedStarts(Steps(1000)).after_cycle(scheduler)
    assert found == whole(waiting(cluster))
    assert len(found) == len(scheduler.state.domains["pool"].queue)


@CLUSTERS
def test_the_loop_does_not_wait_for_all_of_them(cluster: ClusterDescription) -> None:
    """What is worked out is right, the first of the queue is known in any case, and the rest comes later."""
    scheduler = waiting(cluster)
    plans = PlannedStarts(Steps(9))
    some = plans.after_cycle(scheduler)
    assert scheduler.views["pool"].owed
    queue = scheduler.state.domains["pool"].queue
    assert queue[0].id in some
    assert len(some) < 20 < len(queue)
    more = plans.after_cycle(scheduler)
    assert more.items() > some.items()
    assert more.items() < whole(scheduler).items()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("is_quick", [True, False])
@CLUSTERS
def test_the_first_of_the_queue_is_known_without_a_booking(
    cluster: ClusterDescription, is_quick: bool, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not is_quick:
        monkeypatch.setattr(NodeTurns, "is_quick", False)
    scheduler = waiting(cluster, seed=seed)
    for now in (11.0, 12.0, 13.0):
        end_one(scheduler, now)
        owed, head = scheduler.views["pool"].owed, scheduler.state.domains["pool"].queue[0].id
        found = PlannedStarts(Steps(0)).after_cycle(scheduler)
        assert scheduler.views["pool"].owed == owed
        assert found.items() <= whole(scheduler).items()
        assert head in found


@CLUSTERS
def test_a_start_that_is_not_worked_out_again_stays_for_a_while(cluster: ClusterDescription) -> None:
    scheduler = waiting(cluster)
    plans = PlannedStarts(Steps(1000))
    before = plans.after_cycle(scheduler)
    plans._spare = Steps(0)
    end_one(scheduler, 11.0)
    found, pending = plans.after_cycle(scheduler), {job.id for job in scheduler.state.domains["pool"].queue}
    assert found.keys() == pending
    assert scheduler.views["pool"].owed
    known = PlannedStarts(Steps(0)).after_cycle(scheduler)
    assert found == {**{job_id: before[job_id] for job_id in pending}, **known}
    # A job that leaves the queue is gone at once, and after a while what is not known is.
    gone = scheduler.state.domains["pool"].queue[-1].id
    end = scheduler.state.now + 5.0
    scheduler.step(end, [JobEnded(end, gone)])
    assert gone not in plans.after_cycle(scheduler)
    late = 11.0 + KEPT
    scheduler.step(late, [JobSubmitted(late, described("last", 1, 30, late))])
    end_one(scheduler, late)
    assert plans.after_cycle(scheduler) == PlannedStarts(Steps(0)).after_cycle(scheduler)


@CLUSTERS
@pytest.mark.parametrize("steps", [0, 7, 1000])
def test_looking_changes_no_decision(cluster: ClusterDescription, steps: int) -> None:
    looked, other = waiting(cluster), waiting(cluster)
    plans = PlannedStarts(Steps(steps))
    for number in range(12):
        plans.after_cycle(looked)
        now = 11.0 + number
        assert end_one(looked, now) == end_one(other, now)
    assert whole(looked) == whole(other)


def test_of_several_domains_the_one_that_owes_least_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = [
        msgspec.structs.replace(node, name=f"{name}{node.name}", pools=(name,))
        for name in ("a", "b")
        for node in alike(4, 4)
    ]
    scheduler = Scheduler(node_cluster(*nodes, pools=("a", "b")), plugged(Conservative(), FirstFit()))
    events = [
        JobSubmitted(0.0, described(f"{pool}{n}", 9, 100.0 + n, pool=pool))
        for pool, count in (("a", 40), ("b", 5))
        for n in range(count)
    ]
    scheduler.step(0.0, events)
    asked = list[int]()
    monkeypatch.setattr(NodeTurns, "make_owed", lambda turns, check: asked.append(turns.owed))
    PlannedStarts().after_cycle(scheduler)
    assert asked == sorted(asked)
    assert len(asked) == 2
