"""Parts that may share nodes or hosts: chunks of several kinds, and a chunk on several nodes of one host."""

from __future__ import annotations

from typing import Any

import pytest
from building import described, plugged
from hypothesis import given
from hypothesis import strategies as st

from headway import events as ev
from headway.errors import StateError
from headway.inquiry import explain
from headway.model import ClusterDescription, JobDescription, NodeDescription, PoolDescription, Request
from headway.model.parts import placements_of
from headway.scheduler import Scheduler, plain_clock
from headway_plugins.placement.best_fit import BestFit
from headway_plugins.placement.first_fit import FirstFit
from headway_plugins.policies.conservative import Conservative
from headway_plugins.policies.easy import Easy

GIB = 1 << 30


def node(name: str, processors: int = 8, **more: Any) -> NodeDescription:
    return NodeDescription(name, processors, pools=("batch",), **{"memory": 4 * GIB, **more})


THREE = tuple(node(name) for name in "abc")
#: Three hosts of two nodes.
VNODES = tuple(node(f"{host}{at}", 4, host=host) for host in "abc" for at in range(2))


def chunks(count: int, processors: int, memory: int = 0, **more: Any) -> Request:
    """So many chunks of one kind."""
    if not processors:
        return Request(0, 1.0, memory_per_node=memory, nodes=1, **more)
    return Request(count * processors, 1.0, processors_per_chunk=processors, memory_per_chunk=memory, **more)


def spanning(processors: int, memory: int = 0) -> Request:
    """A chunk that may lie on several nodes of one host."""
    return Request(processors, 1.0, one_host=True, memory_per_processor=memory // processors)


def job(name: str, *parts: Request, apart: str = "", estimate: float = 100.0) -> JobDescription:
    total = sum(part.processors for part in parts)
    return JobDescription(name, 0.0, Request(total, estimate, parts=parts, parts_apart=apart), pool="batch")


def driven(
    nodes: tuple[NodeDescription, ...] = THREE, policy: Any = None, placement: Any = None
) -> Scheduler:
    cluster = ClusterDescription("c", (PoolDescription("batch"),), nodes)
    return Scheduler(cluster, plugged(policy or Easy(), placement or FirstFit()))


def started(scheduler: Scheduler, now: float, *jobs: JobDescription) -> dict[str, tuple]:
    decisions = scheduler.step(now, [ev.JobSubmitted(now, one) for one in jobs])
    assert not scheduler.problems
    return {start.job_id: start.placement for start in decisions}


def left(scheduler: Scheduler) -> list[int]:
    return scheduler.state.nodes.free.processors[: len(scheduler.state.nodes)].tolist()


@pytest.mark.parametrize(
    ("nodes", "asked", "placed"),
    [
        (THREE, job("j", chunks(1, 8), chunks(4, 1)), (("a", 8), ("b", 4))),
        (
            THREE[:2],
            job("j", chunks(1, 1, 3 * GIB), chunks(7, 2, GIB // 10)),
            (("a", 1), ("a", 6), ("b", 8)),
        ),
        # In the order that was asked for the last chunk would find no node.
        (
            THREE[:2],
            job("j", chunks(1, 3), chunks(1, 4), chunks(1, 5), chunks(1, 4, GIB)),
            (("a", 3), ("b", 4), ("a", 5), ("b", 4)),
        ),
        (VNODES, job("j", spanning(6), spanning(6)), (("a0", 4), ("a1", 2), ("b0", 4), ("b1", 2))),
        # One node is enough, though it is not the first of its host.
        (VNODES, job("j", chunks(1, 3), spanning(4)), (("a0", 3), ("a1", 4))),
        (VNODES, job("j", spanning(5), chunks(1, 3)), (("a0", 4), ("a1", 1), ("a1", 3))),
        (VNODES, job("j", spanning(2), spanning(2), apart="hosts"), (("a0", 2), ("b0", 2))),
        (
            THREE,
            job("j", *[chunks(1, 8)] * 3, chunks(1, 0, GIB)),
            (("a", 8), ("b", 8), ("c", 8), ("a", 0)),
        ),
    ],
)  # fmt: skip
def test_where_parts_lie(nodes: Any, asked: JobDescription, placed: Any) -> None:
    s = driven(nodes)
    assert started(s, 0, asked) == {"j": placed}
    total = sum(node.processors for node in nodes)
    assert sum(left(s)) == total - asked.request.processors
    s.step(1, [ev.JobStarted(1, "j", placed), ev.JobEnded(2, "j", "completed")])
    assert left(s) == [node.processors for node in nodes]
    assert s.state.nodes.free.memory[: len(nodes)].tolist() == [node.memory for node in nodes]


def test_memory_of_each_chunk_is_where_the_chunk_is() -> None:
    s = driven(THREE[:2])
    started(s, 0, job("j", chunks(1, 1, 3 * GIB), chunks(7, 2, GIB // 10)))
    tenth = GIB // 10
    assert s.state.nodes.free.memory[:2].tolist() == [GIB - 3 * tenth, 4 * GIB - 4 * tenth]


def test_gpus_are_counted_by_the_chunk() -> None:
    nodes = tuple(node(name, gres=(("gpu", 4),)) for name in "abc")
    request = Request(16, 100.0, processors_per_chunk=2, gres_per_chunk=(("gpu", 1),))
    s = driven(nodes)
    found = started(s, 0, JobDescription("j", 0.0, request, pool="batch"))
    assert found == {"j": (("a", 8), ("b", 8))}
    assert s.state.nodes.free.gres["gpu"][:3].tolist() == [0, 0, 4]
    # Four more would need as many GPUs on a node that has none, so one node is left.
    more = Request(6, 100.0, processors_per_chunk=1, gres_per_chunk=(("gpu", 1),))
    assert started(s, 1, JobDescription("k", 1.0, more, pool="batch")) == {}


def test_what_others_have_is_not_given_again_and_a_booking_is_for_all_parts() -> None:
    s = driven(policy=Conservative())
    assert started(s, 0, described("a", 8, 50, pool="batch", nodes=1)) == {"a": (("a", 8),)}
    asked = job("j", chunks(1, 8), chunks(2, 8), estimate=100)
    behind = described("k", 8, 40, 1, pool="batch", nodes=1)
    # The job is booked for 50, and the one behind it ends by then.
    assert started(s, 1, asked, behind) == {"k": (("b", 8),)}
    decisions = s.step(45, [ev.JobEnded(45, "k", "completed"), ev.JobEnded(45, "a", "completed")])
    assert [start.job_id for start in decisions] == ["j"]


def test_a_placement_that_gives_a_node_twice_too_much_is_refused() -> None:
    table, request = driven().state.nodes, job("k", chunks(1, 8), chunks(4, 1)).request
    table.guard(request, (("b", 8), ("a", 4)), "batch")
    with pytest.raises(StateError, match="node a has too little free for all jobs that would be there"):
        table.guard(request, (("a", 8), ("a", 4)), "batch")


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (job("j", chunks(1, 9), chunks(1, 1)), "of its part 0"),
        (job("j", chunks(2, 6), chunks(2, 5)), "has no nodes for all of its 2 parts together"),
        (job("j", chunks(1, 1), chunks(1, 25)), "it needs 26 processors"),
    ],
)
def test_why_it_can_never_run(asked: JobDescription, why: str) -> None:
    s = driven()
    assert started(s, 0, asked) == {}
    assert why in "\n".join(explain(s, "j", plain_clock))


KIND = st.tuples(st.integers(1, 4), st.integers(0, 5), st.sampled_from([0, GIB, 2 * GIB, 3 * GIB]))


@given(
    st.lists(st.tuples(st.lists(KIND, min_size=1, max_size=4), st.integers(1, 50)), min_size=1, max_size=6),
    st.sampled_from([FirstFit, BestFit]),
    st.sampled_from([Easy, Conservative]),
)
def test_nothing_is_given_twice_and_all_is_given_back(
    asked: list[tuple[list[tuple[int, int, int]], int]], placement: Any, policy: Any
) -> None:
    s = driven(policy=policy(), placement=placement())
    running: dict[str, tuple] = {}
    for number, (kinds, length) in enumerate(asked):
        parts = [
            part for n, c, m in kinds for part in ([chunks(1, 0, m)] * n if not c else [chunks(n, c, m)])
        ]
        one = job(f"j{number}", *parts, estimate=length)
        if one.request.processors:
            running |= started(s, number, one)
        assert min(left(s)) >= 0
        assert s.state.nodes.free.memory[:3].min() >= 0
    now = float(len(asked))
    while running:
        name, placed = running.popitem()
        known = s.state.jobs[name].request
        for part, own in zip(known.parts, placements_of(known, placed), strict=True):
            assert sum(count for _, count in own) == part.processors
        now += 1
        running |= {
            start.job_id: start.placement for start in s.step(now, [ev.JobEnded(now, name, "completed")])
        }
        assert min(left(s)) >= 0
        assert not s.problems
    assert left(s) == [8, 8, 8]
    assert s.state.nodes.free.memory[:3].tolist() == [4 * GIB] * 3
