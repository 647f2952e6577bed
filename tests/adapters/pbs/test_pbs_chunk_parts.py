"""Chunks of several kinds: which part each belongs to, and where each lies."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from pbs_recorded import NOW, QUEUES, SITE, job, listing, nodes

from headway import decisions as d
from headway_adapters.pbs import dsv, reader, writer

#: Three hosts of one vnode, and three of two.
ALONE = nodes({}, {}, {})
IN_TWO = nodes(*({"offers": {"host": f"h{at // 2}"}} for at in range(6)))


def read(cluster: Any, **fields: Any) -> tuple[Any, reader.Jobs]:
    between = "|abcdefghijklmnop"
    records = dsv.jobs(listing({"1.s": job(**fields)}, between), between)
    found = reader.read_jobs(records, NOW, SITE, QUEUES, cluster, set())
    return found.jobs["1.s"], found


def started(cluster: Any, placement: tuple[tuple[str, int], ...], **fields: Any) -> str:
    """What ``qrun -H`` is told."""
    detail = read(cluster, **fields)[1].details["1.s"]
    return writer.start(d.Start("1.s", placement), detail, hosts=cluster.hosts)[2]


def test_each_kind_lies_where_its_part_does() -> None:
    where = started(ALONE, (("a", 8), ("a", 0), ("b", 4)), select="1:ncpus=8+1:ncpus=0+2:ncpus=2")
    assert where == "(a:ncpus=8)+(a:ncpus=0)+(b:ncpus=2)+(b:ncpus=2)"


def test_a_vnode_may_have_chunks_of_several_kinds() -> None:
    chunks = "1:ncpus=1:mem=3gb+7:ncpus=2:mem=100mb"
    where = started(ALONE, (("a", 1), ("a", 6), ("b", 8)), select=chunks)
    small = "ncpus=2:mem=102400kb"
    assert where.split("+")[0] == "(a:ncpus=1:mem=3145728kb)"
    assert (where.count(f"(a:{small})"), where.count(f"(b:{small})")) == (3, 4)


def test_a_chunk_larger_than_a_vnode_lies_on_those_of_one_host() -> None:
    where = started(IN_TWO, (("a", 8), ("b", 4), ("c", 8), ("d", 4)), select="2:ncpus=12")
    assert where == "(a:ncpus=8+b:ncpus=4)+(c:ncpus=8+d:ncpus=4)"


def test_a_job_without_processors_gets_none() -> None:
    assert started(ALONE, (("a", 1),), select="1:ncpus=0") == "(a:ncpus=0)"


KIND = st.tuples(st.integers(1, 3), st.integers(1, 4), st.sampled_from(["", ":mem=1mb", ":mem=2mb"]))


@given(st.lists(KIND, min_size=2, max_size=4))
def test_a_running_job_is_where_it_was_started(kinds: list[tuple[int, int, str]]) -> None:
    chunks = "+".join(f"{count}:ncpus={ncpus}{memory}" for count, ncpus, memory in kinds)
    waiting, found = read(ALONE, select=chunks)
    parts = waiting.job.request.parts or (waiting.job.request,)
    placement = tuple(("abc"[at % 3], part.processors) for at, part in enumerate(parts))
    where = writer.start(d.Start("1.s", placement), found.details["1.s"])[2]
    running, _ = read(ALONE, select=chunks, job_state="R", substate=42, exec_vnode=where)
    if waiting.job.request.parts:
        assert (running.placement, running.job.request) == (placement, waiting.job.request)
    assert sum(count for _, count in running.placement) == waiting.job.request.processors
