"""A copy of live clusters has the copies of datasets that exist now, and goes on with those on their way."""

from __future__ import annotations

from typing import Any

import pytest
from building import described, federated, plugged

from headway import decisions as d
from headway import events as ev
from headway.emulation import emulate
from headway.emulation.live_copy import Copy
from headway.model import ClusterDescription, Dataset, Link, Site, Store
from headway.model.sites import Replica
from headway.plugins import Catalogue, PluginConfig
from headway.scheduler import Scheduler
from headway_plugins.data.staging import Staging
from headway_plugins.policies.fcfs import Fcfs

NOW = 10_000.0
CLUSTER = federated(
    Site("a", store=Store()), Site("b", store=Store(capacity=1000)), Site("c"),
    links=[Link("a", "b", bandwidth=10.0)],
    datasets=[Dataset("d", 600, ("a",)), Dataset("e", 600, ("a",))],
)  # fmt: skip
NEEDS_D = ev.JobSubmitted(NOW, described("b:1", 1, 100, submit=NOW, pool="b:q", attributes={"data": "d"}))
CONFIGS = [PluginConfig("fcfs"), PluginConfig("staging")]


class Live:
    def __init__(self, cluster: ClusterDescription = CLUSTER) -> None:
        self.cluster = cluster

    def describe(self) -> ClusterDescription:
        return self.cluster

    def wait(self, deadline: float | None) -> Any:
        return NOW, [NEEDS_D]


def start(*replicas: Replica) -> float:
    """When the job starts, seconds from now."""
    copy = Copy(Live(), replicas)  # type: ignore[arg-type]
    result = emulate(copy.cluster, copy.jobs, CONFIGS, Catalogue(), label="copy", start=NOW)
    (one,) = result.jobs
    assert one.start_time is not None
    return one.start_time - NOW


@pytest.mark.parametrize(
    ("replica", "seconds"),
    [
        (None, 60),
        (Replica("d", "b", since=5.0), 0),
        # A half of it has arrived.
        (Replica("d", "b", since=5.0, source="a", done=300), 30),
        # What is on its way over a link that is there no more is copied anew.
        (Replica("d", "b", since=5.0, source="c", done=300), 60),
    ],
)
def test_a_job_starts_when_its_data_can_be_there(replica: Replica | None, seconds: float) -> None:
    assert start(*([] if replica is None else [replica])) == seconds


def test_what_is_not_needed_makes_room_as_it_would() -> None:
    # The store has room for one of both: the other one is a copy, and no original.
    assert start(Replica("e", "b", since=5.0)) == 60


def test_what_is_not_configured_is_left_out() -> None:
    odd = [Replica("f", "b"), Replica("d", "c"), Replica("d", "nowhere"), Replica("d", "a", 5.0)]
    copy = Copy(Live(), odd)  # type: ignore[arg-type]
    assert copy.cluster.sites == CLUSTER.sites
    alone = ClusterDescription.flat(4)
    assert Copy(Live(alone), odd).cluster.sites is None  # type: ignore[arg-type]


def test_a_fresh_look_says_how_far_a_copy_is() -> None:
    copy = Copy(Live(), [Replica("d", "b", 5.0, "a", 300)])  # type: ignore[arg-type]
    scheduler = Scheduler(copy.cluster, plugged(Fcfs(), Staging()), capabilities=frozenset({d.Copy, d.Drop}))
    assert scheduler.step(copy.now, copy.events) == []
    (job,) = scheduler.state.jobs.values()
    half = "it waits for dataset d (50 % of it has arrived from a, the rest is expected in 30 s)"
    assert scheduler.state.why_waiting(job) == half
