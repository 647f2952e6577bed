"""On nodes of one processor jobs get the processors that they get by the way that serves all nodes."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from building import alike, described, emulate, node_cluster, plugged, traced
from msgspec.structs import replace

from headway import events as ev
from headway.decisions import Start
from headway.model import NodeDescription
from headway.scheduler import Scheduler
from headway.workload import TraceJob
from headway.workload.sharing import Sharing
from headway_plugins.consolidation import manager
from headway_plugins.consolidation.manager import Consolidation, ConsolidationOptions
from headway_plugins.consolidation.slots import Slots

#: Which nodes each pool has.
POOLS = {"a": range(16), "b": range(8, 28), "c": range(14, 24)}
CLUSTER = node_cluster(*alike(20, 1), *[node for node in alike(28, 1, features=("big",))[20:]])
#: The same nodes; of three pools the second has some of both others.
SHARED = node_cluster(
    *[
        replace(node, pools=tuple(pool for pool, has in POOLS.items() if at in has))
        for at, node in enumerate(CLUSTER.nodes)
    ],
    pools=tuple(POOLS),
)


def workload(seed: int, *, shared: bool = False) -> list[TraceJob]:
    """Some jobs ask for a feature, some use all of their processors, and several use the same share.

    ``shared``: each is of one or two of the pools."""
    draw = Random(seed)
    time, jobs = 0.0, []
    for at in range(60):
        time += draw.expovariate(1 / 6.0)
        big = draw.random() < 0.2
        processors = draw.choice((1, 1, 2, 3, 5, 8) if big else (1, 1, 2, 3, 5, 8, 13))
        runtime = draw.uniform(1, 60)
        use = draw.choice((0.5, 0.7, 0.97, draw.uniform(0.4, 1.0)))
        more: dict[str, Any] = {"features": ("big",)} if big else {}
        if shared:
            pool, *others = ["b"] if big else draw.sample(list(POOLS), draw.choice((1, 1, 2)))
            more |= {"pool": pool, "further_pools": tuple(others)}
        estimate = runtime * draw.uniform(1, 4)
        jobs.append(
            traced(
                str(at), processors, estimate, time, runtime=runtime, attributes={"cpu": use}, **more
            )
        )  # fmt: skip
    return jobs


@pytest.mark.parametrize(
    ("variant", "options"),
    [("keasy", {}), ("reasy", {"cpu_error": 0.3}), ("measy", {}), ("measy", {"cpu_known": False})],
    ids=str,
)
@pytest.mark.parametrize("shared", [False, True])
def test_the_same_processors(
    variant: str, options: dict[str, Any], shared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = workload(len(variant) + len(options), shared=shared)

    def schedule() -> list[tuple[Any, ...]]:
        plugin = Consolidation(ConsolidationOptions(variant=variant, **options))
        found = emulate(SHARED if shared else CLUSTER, jobs, plugin, sharing=Sharing())
        assert found.problems == []
        return [(name, r.start_time, r.end_time, r.placement) for name, r in found.results.items()]

    single = schedule()
    assert {len(placement) for *_, placement in single} >= {1, 2, 3, 5, 8, *([] if shared else [13])}
    # What serves all nodes is then made anew in each cycle, from who is there.
    monkeypatch.setattr(manager, "SingleSlots", Slots)
    assert single == schedule()


def test_a_node_on_which_the_batch_system_shows_two_jobs_is_idle_once_both_are_gone() -> None:
    scheduler = Scheduler(
        node_cluster(*alike(3, 1)), plugged(Consolidation(ConsolidationOptions(variant="reasy")))
    )
    there = [described(name, 1) for name in "abc"]
    scheduler.step(0, [event for job in there for event in (
        ev.JobSubmitted(0, job), ev.JobStarted(0, job.id, (("n0" if job.id in "ab" else "n1", 1),)),
    )])  # fmt: skip
    # The policy looks at the nodes, and finds nothing for this one.
    scheduler.step(1, [ev.JobSubmitted(1, described("large", 3))])
    scheduler.step(2, [ev.JobEnded(2, "a"), ev.JobEnded(2, "c"), ev.JobEnded(2, "large")])
    [start] = scheduler.step(3, [ev.JobSubmitted(3, described("d", 2))])
    assert isinstance(start, Start) and start.placement == (("n1", 1), ("n2", 1))
    assert scheduler.problems == []


@pytest.mark.parametrize(("runtime", "fits"), [(50, True), (57, False)])
def test_a_reservation_counts_with_a_job_that_is_slow_now_as_if_it_were_not(
    runtime: float, fits: bool
) -> None:
    scheduler = Scheduler(
        node_cluster(*alike(3, 1)), plugged(Consolidation(ConsolidationOptions(variant="reasy")))
    )
    scheduler.step(0, [
        ev.JobSubmitted(0, described("a", 1, 60)), ev.JobStarted(0, "a", (("n0", 1),)),
        ev.JobSubmitted(0, described("b", 1, 55)), ev.JobStarted(0, "b", (("n1", 1),)),
        ev.JobPaceChanged(0, "b", 0.0, 0.5),
    ])  # fmt: skip
    assert [entry[3].id for entry in scheduler.state.domains["pool"].running] == ["a", "b"]
    # The head can start when b ends, at 55.5 at full speed, before a.
    made = scheduler.step(
        1, [ev.JobSubmitted(1, described("head", 2, 10)), ev.JobSubmitted(1, described("c", 1, runtime))]
    )
    [start] = [decision for decision in made if isinstance(decision, Start)]
    assert (start.job_id, start.tier) == ("c", "foreground" if fits else "background")
    assert scheduler.problems == []


@pytest.mark.parametrize("processors", [1, 2])
def test_pools_that_come_to_share_nodes_and_do_so_no_longer(processors: int) -> None:
    plugin = Consolidation(ConsolidationOptions(variant="reasy"))
    cluster = node_cluster(
        NodeDescription("n0", processors, pools=("a",)), NodeDescription("n1", processors, pools=("b",)),
        pools=("a", "b"),
    )  # fmt: skip
    scheduler = Scheduler(cluster, plugged(plugin))

    def started(now: float, size: int, name: str, *events: ev.Event) -> list[str]:
        """The nodes of a job of pool a that arrives, and ends at once."""
        job = described(name, size * processors, 10, now, pool="a")
        made = scheduler.step(now, [*events, ev.JobSubmitted(now, job)])
        nodes = [node for one in made if isinstance(one, Start) for node, _ in one.placement]
        scheduler.step(now + 1, [ev.JobStarted(now + 1, name), ev.JobEnded(now + 1, name)])
        assert scheduler.problems == []
        return nodes

    def up(now: float, *pools: str) -> ev.NodeUp:
        return ev.NodeUp(now, NodeDescription("n1", processors, pools=pools))

    assert started(0, 1, "j") == ["n0"]
    assert started(10, 2, "k", up(10, "a", "b")) == ["n0", "n1"]
    assert started(20, 1, "l", up(20, "b")) == ["n0"]
    assert list(plugin._slots) == ["a"], "what is known of domains that are no more is forgotten"
    assert started(30, 2, "m", up(30, "a", "b")) == ["n0", "n1"]
