"""Pools that share nodes are one machine in each cluster by itself, however pools and nodes of others are
called."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest
from building import described, plugged
from test_federation import Pretended

from headway import events as ev
from headway.decisions import Start
from headway.model import ClusterDescription, NodeDescription, PoolDescription
from headway.scheduler import Scheduler
from headway_adapters.federation import Federation
from headway_plugins.placement.first_fit import FirstFit
from headway_plugins.policies.easy import Easy

#: Two partitions over the same nodes; the second comes first.
OVERLAPPING = ClusterDescription(
    "c",
    (PoolDescription("batch"), PoolDescription("debug", priority_tier=2)),
    tuple(NodeDescription(f"n{at}", 4, pools=("batch", "debug")) for at in range(2)),
)


@pytest.fixture
def whole() -> Iterator[ClusterDescription]:
    one = Federation({name: Pretended(description=OVERLAPPING) for name in ("a", "b")})
    yield one.describe()
    one.close()


def submitted(time: float, name: str, pool: str, processors: int) -> ev.JobSubmitted:
    return ev.JobSubmitted(time, msgspec.structs.replace(described(name, processors, 100, time), pool=pool))


def test_each_cluster_has_its_own_domain(whole: ClusterDescription) -> None:
    made = Scheduler(whole, plugged(Easy(), FirstFit()))
    assert [domain.pool_names for domain in made.state.domains.values()] == [
        ("a:batch", "a:debug"),
        ("b:batch", "b:debug"),
    ]


def test_a_tier_comes_first_in_its_own_cluster_alone(whole: ClusterDescription) -> None:
    made = Scheduler(whole, plugged(Easy(), FirstFit()))
    made.step(0, [submitted(0, f"{one}:runs", f"{one}:batch", 8) for one in "ab"])
    made.step(0, [ev.JobStarted(0, f"{one}:runs", ()) for one in "ab"])
    made.step(1, [submitted(1, f"{one}:early", f"{one}:batch", 8) for one in "ab"])
    made.step(2, [submitted(2, "a:late", "a:debug", 8)])
    decided = made.step(3, [ev.JobEnded(3, f"{one}:runs") for one in "ab"])
    assert {decision.job_id for decision in decided if isinstance(decision, Start)} == {"a:late", "b:early"}
