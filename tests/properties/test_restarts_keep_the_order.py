"""A scheduler that begins anew at any point of a run decides what it would have decided without that.

What a batch system lists then is in an order of its own: what is left of a begun array may stand last.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import pytest
from building import alike, node_cluster
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.decisions import Start
from headway.model import ClusterDescription, JobDescription, Request
from headway.plugins import Catalogue, PluginConfig, Plugins
from headway.scheduler import Scheduler
from headway_adapters.polling.differ import diff
from headway_adapters.polling.snapshot import Snapshot, SnapshotJob

NODES, PROCESSORS = 2, 4
SHAPES = {
    "slurm": "{number}_{element}", "pbs": "{number}[{element}].server", "lsf": "{number}[{element}]",
    "federation": "siteA:{number}_{element}",
}  # fmt: skip


class Wish(NamedTuple):
    """An element of an array, and how long it really runs."""

    submit: float
    processors: int
    limit: float
    runtime: float


#: Arrays, of which most are submitted in the same second as others.
ARRAYS = st.lists(
    st.lists(
        st.builds(
            Wish, st.just(0.0), st.integers(1, 5), st.integers(1, 8).map(float), st.integers(1, 8).map(float)
        ),
        min_size=1, max_size=6,
    ),
    min_size=2, max_size=4,
)  # fmt: skip


class World:
    """A batch system in seconds of virtual time, that carries out starts at once."""

    def __init__(self, wishes: dict[str, Wish]) -> None:
        self.now = 0.0
        self.wishes = wishes
        self.jobs: dict[str, SnapshotJob] = {}
        self.ends: dict[str, float] = {}

    def look(self, order: random.Random | None = None) -> Snapshot:
        """Everything that has been submitted by now, in some order."""
        for name, wish in self.wishes.items():
            if name not in self.jobs and wish.submit <= self.now:
                request = Request(wish.processors, wish.limit)
                self.jobs[name] = SnapshotJob(
                    JobDescription(name, wish.submit, request, pool="pool"), "pending"
                )
        for name, end in list(self.ends.items()):
            if end <= self.now:
                del self.ends[name]
                self.jobs[name] = msgspec.structs.replace(
                    self.jobs[name], state="ended", end_time=end, outcome="completed"
                )
        listed = list(self.jobs)
        if order is not None:
            order.shuffle(listed)
        return Snapshot(self.now, {name: self.jobs[name] for name in listed})

    def carry_out(self, starts: Sequence[Start]) -> None:
        for start in starts:
            name, wish = start.job_id, self.wishes[start.job_id]
            self.ends[name] = self.now + min(wish.runtime, wish.limit)
            self.jobs[name] = msgspec.structs.replace(
                self.jobs[name], state="running", placement=start.placement, start_time=self.now
            )


def cluster() -> ClusterDescription:
    return msgspec.structs.replace(node_cluster(*alike(NODES, PROCESSORS)), numbered=True)


CATALOGUE = Catalogue()
POLICIES = ("fcfs", "easy", "conservative", "greedy")


def scheduler(policy: str, saved: dict[str, Any] | None = None) -> Scheduler:
    policies = [policy] if policy in POLICIES else [policy, "easy"]
    configs = [PluginConfig(name) for name in (*policies, "first-fit")]
    return Scheduler(cluster(), Plugins.load(configs, CATALOGUE, None), saved=saved)


def lived(
    wishes: dict[str, Wish], policy: str, restart_at: float | None, order: random.Random
) -> list[tuple[float, Start]]:
    """All starts, in order, with their times."""
    world, made = World(wishes), scheduler(policy)
    seen: Snapshot | None = None
    started: list[tuple[float, Start]] = []
    while True:
        if world.now == restart_at:
            # The new one finds no plan, and lists what there is in another order.
            made, seen = scheduler(policy, made.checkpoint()), None
        shown = world.look(order)
        events, seen = diff(seen, shown), shown
        starts = [one for one in made.step(world.now, events) if isinstance(one, Start)]
        started += [(world.now, one) for one in starts]
        world.carry_out(starts)
        if not world.ends and all(wish.submit <= world.now for wish in wishes.values()):
            return started
        world.now += 1.0


def named(arrays: Sequence[Sequence[Wish]], shape: str, apart: float) -> dict[str, Wish]:
    """The arrays' elements by id; each second array comes so much later than the one before."""
    return {
        shape.format(number=25 + at, element=element): wish._replace(submit=apart * (at // 2))
        for at, array in enumerate(arrays)
        for element, wish in enumerate(array, start=8)
    }


def what(starts: Sequence[tuple[float, Start]]) -> list[tuple[float, str, Any]]:
    return [(at, start.job_id, start.placement) for at, start in starts]


@pytest.mark.parametrize("policy", [*POLICIES, "shortest-first"])
@given(
    shape=st.sampled_from(sorted(SHAPES.values())), arrays=ARRAYS, seed=st.integers(0, 1000),
    apart=st.sampled_from([0.0, 3.0]),
)  # fmt: skip
@settings(max_examples=8, deadline=None)
def test_a_restart_at_any_point_changes_no_start(
    policy: str, shape: str, arrays: list[list[Wish]], seed: int, apart: float
) -> None:
    wishes = named(arrays, shape, apart)
    whole = what(lived(wishes, policy, None, random.Random(seed)))
    last = int(whole[-1][0]) if whole else 0
    for moment in range(last + 2):
        assert what(lived(wishes, policy, float(moment), random.Random(seed + moment))) == whole
