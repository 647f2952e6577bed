"""``place`` on hosts of several vnodes: which vnodes a job may have, and how its chunks lie on them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pbs_recorded import NOW, QUEUES, SITE, job, listing, nodes

from headway import decisions as d
from headway_adapters.pbs import cluster, dsv, reader, select, writer
from headway_adapters.pbs.select import Chunk

#: Three hosts of two vnodes with 8 processors and 4 GB each.
NODES = nodes(*({"offers": {"host": f"h{at // 2}"}} for at in range(6)))
HOST = {name: NODES.hosts[name] for name in "abcdef"}


def pending(number: int = 1, cluster: cluster.Nodes = NODES, **fields: Any) -> tuple[Any, reader.Detail]:
    key, between = f"{number}.s", "|abcdefghijklmnop"
    records = dsv.jobs(listing({key: job(**fields)}, between), between)
    found = reader.read_jobs(records, NOW, SITE, QUEUES, cluster, set())
    return found.jobs[key].job.request, found.details[key]


def allowed(request: Any) -> set[str]:
    return set("abcdef") - set(request.excluded_nodes)


def test_what_fits_a_vnode_may_lie_on_any() -> None:
    request, detail = pending(select="2:ncpus=4", place="pack")
    assert (request.nodes, request.processors, allowed(request)) == (1, 8, set("abcdef"))
    assert not detail.spread


#: As above: each host has a red vnode and a blue one, but for the last host, which has a green one instead.
COLOURED = nodes(
    *(
        {"offers": {"host": f"h{at // 2}", "color": "red" if at % 2 == 0 else "green" if at == 5 else "blue"}}
        for at in range(6)
    )
)


def test_packed_chunks_that_want_different_things_get_a_host_that_has_all_of_them() -> None:
    chosen = set()
    for number in range(4):
        request, _ = pending(
            number, COLOURED, select="1:ncpus=2:color=red+1:ncpus=2:color=blue", place="pack"
        )
        red, blue = request.parts
        assert (red.features, blue.features) == (("color=red",), ("color=blue",))
        assert allowed(red) == allowed(blue)
        chosen.add(frozenset(allowed(red)))
    assert chosen == {frozenset("ab"), frozenset("cd")}, "jobs spread over the hosts that have them"


def test_packed_chunks_of_which_one_wants_something_lie_on_one_host() -> None:
    request, _ = pending(2, COLOURED, select="1:ncpus=2:color=green+1:ncpus=2", place="pack")
    assert [part.features for part in request.parts] == [("color=green",), ()]
    assert {frozenset(allowed(part)) for part in request.parts} == {frozenset("ef")}


def test_on_a_host_of_one_vnode_packed_chunks_want_what_each_of_them_wants() -> None:
    one_vnode = nodes(*({"offers": {"host": name, "color": "red"}} for name in "ab"))
    request, _ = pending(cluster=one_vnode, select="1:ncpus=2:color=red+1:ncpus=3", place="pack")
    assert (request.processors, request.nodes, request.features) == (5, 1, ("color=red",))


@pytest.mark.parametrize("place", ["pack", "free"])
def test_a_job_larger_than_a_vnode_gets_one_host(place: str) -> None:
    """Also a single chunk: PBS divides it between the vnodes of a host."""
    chunks = "1:ncpus=12:mem=6gb" if place == "free" else "3:ncpus=4:mem=2gb"
    hosts = []
    for number in range(3):
        request, detail = pending(number, select=chunks, place=place)
        assert (request.processors, request.nodes) == (12, 0)
        assert len({HOST[name] for name in allowed(request)}) == 1
        assert len(allowed(request)) == 2
        hosts += {HOST[name] for name in allowed(request)}
    # Jobs spread over the hosts.
    assert sorted(hosts) == ["h0", "h1", "h2"]
    first, second = sorted(allowed(request))
    start = d.Start("2.s", ((first, 8), (second, 4)))
    where = writer.start(start, detail, hosts=HOST)[2]
    if place == "free":
        assert where == f"({first}:ncpus=8:mem=4194304kb+{second}:ncpus=4:mem=2097152kb)"
    else:
        share = "ncpus=4:mem=2097152kb"
        assert where == f"({first}:{share})+({first}:{share})+({second}:{share})"


@pytest.mark.parametrize(("chunks", "place"), [("1:ncpus=2:mem=6gb", "free"), ("2:ncpus=1:mem=3gb", "pack")])
def test_memory_larger_than_a_vnodes_is_divided_between_those_of_a_host(chunks: str, place: str) -> None:
    request, detail = pending(select=chunks, place=place)
    assert (request.processors, request.memory_per_processor) == (2, 3 << 30)
    first, second = sorted(allowed(request))
    assert HOST[first] == HOST[second]
    where = writer.start(d.Start("1.s", ((first, 1), (second, 1))), detail, hosts=HOST)[2]
    share = "ncpus=1:mem=3145728kb"
    between = "+" if place == "free" else ")+("
    assert where == f"({first}:{share}{between}{second}:{share})"


def test_of_several_chunks_each_that_is_larger_in_memory_lies_on_one_host() -> None:
    request, _ = pending(select="1:ncpus=2:mem=6gb+1:ncpus=1", place="free")
    large, small = request.parts
    assert (large.one_host, large.memory_per_processor) == (True, 3 << 30)
    assert (small.one_host, small.processors) == (False, 1)
    apart, _ = pending(select="3:ncpus=2:mem=6gb", place="scatter")
    assert [part.one_host for part in apart.parts] == [True] * 3
    assert apart.parts_apart == "hosts"


def test_what_no_host_has_is_asked_for_as_it_is() -> None:
    request, detail = pending(select="1:ncpus=17")
    assert (request.processors, request.nodes, detail.spread) == (17, 1, False)


def test_scatter_means_hosts() -> None:
    request, _ = pending(select="3:ncpus=2", place="scatter")
    assert request.nodes == 3
    assert sorted(HOST[name] for name in allowed(request)) == ["h0", "h1", "h2"]
    # Four chunks have no four hosts: such a job can never run here, and nobody starts it on three.
    request, _ = pending(select="4:ncpus=2", place="scatter")
    assert (request.nodes, len(allowed(request))) == (4, 3)
    request, _ = pending(select="4:ncpus=2", place="vscatter")
    assert len(allowed(request)) == 6


def test_a_vnode_out_of_service_is_passed_over() -> None:
    away = nodes(*({"offers": {"host": f"h{at // 2}"}, "state": "offline" if at in (0, 3) else "free"}
                   for at in range(6)))  # fmt: skip
    for number in range(4):
        request, _ = pending(number, away, select="3:ncpus=2", place="scatter")
        assert {"b", "c"} <= allowed(request)
        request, _ = pending(number, away, select="1:ncpus=12")
        assert allowed(request) == {"e", "f"}


@pytest.mark.parametrize(
    ("chunks", "place", "hosts"),
    [("1:ncpus=2", "exclhost", 1), ("2:ncpus=2", "scatter:exclhost", 2), ("3:ncpus=8", "free:exclhost", 2)],
)
def test_exclhost_takes_all_vnodes_of_its_hosts(chunks: str, place: str, hosts: int) -> None:
    request, detail = pending(select=chunks, place=place)
    assert request.exclusive
    assert set(request.required_nodes) == allowed(request)
    assert (request.nodes, len({HOST[name] for name in allowed(request)})) == (2 * hosts, hosts)
    where = writer.start(d.Start("1.s", tuple((name, 8) for name in allowed(request))), detail, hosts=HOST)[2]
    assert where.count("(") == len(detail.chunks)
    running = job(job_state="R", place=place, exec_vnode=where, select=chunks)
    found = reader.read_jobs(
        dsv.jobs(listing({"1.s": running}), "|abcdefghijklmnop"), NOW, SITE, QUEUES, NODES, set()
    )
    assert dict(found.jobs["1.s"].placement) == dict.fromkeys(allowed(request), 8)


@given(
    st.lists(st.integers(1, 16), min_size=1, max_size=6),
    st.lists(st.integers(0, 8), min_size=6, max_size=6),
    st.booleans(),
)
def test_chunks_are_spread_within_what_there_is(sizes: list[int], free: list[int], apart: bool) -> None:
    chunks = tuple(Chunk(size, size << 30) for size in sizes)
    counts = {name: count for name, count in zip("abcdef", free, strict=True) if count}
    try:
        lies = select.spread(chunks, counts, HOST, apart=apart)
    except ValueError:
        return
    used: dict[str, int] = {}
    for chunk, parts in zip(chunks, lies, strict=True):
        assert sum(part.ncpus for _, part in parts) == chunk.ncpus
        assert sum(part.memory for _, part in parts) >= chunk.memory
        assert len({HOST[name] for name, _ in parts}) == 1
        for name, part in parts:
            used[name] = used.get(name, 0) + part.ncpus
    assert all(used[name] <= counts[name] for name in used)
    if apart:
        assert len({HOST[parts[0][0]] for parts in lies}) == len(chunks)
