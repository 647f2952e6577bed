"""PBS's little languages: chunks, places, what a job has where."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway_adapters.pbs import select
from headway_adapters.pbs.select import Chunk, Place, Share

GB = 1 << 30


@pytest.mark.parametrize(
    ("text", "chunks"),
    [
        ("1:ncpus=8", [Chunk(8)]),
        ("2:ncpus=4:mem=1gb", [Chunk(4, GB)] * 2),
        ("ncpus=2", [Chunk(2)]),
        ("3", [Chunk(1)] * 3),
        ("1:ncpus=1+2:ncpus=8:ngpus=2", [Chunk(1), *[Chunk(8, 0, (("ngpus", 2),))] * 2]),
        ("ncpus=4:mpiprocs=4:ompthreads=1", [Chunk(4)]),
        ("1:ncpus=1:host=n1:big=True", [Chunk(1, 0, (), (("big", "True"), ("host", "n1")))]),
        ('1:ncpus=1:tag="a+b:c"', [Chunk(1, 0, (), (("tag", "a+b:c"),))]),
        ("ncpus=1:scratch=10gb", [Chunk(1, 0, (("scratch", 10 * GB),))]),
    ],
)
def test_chunks_one_by_one_and_in_order(text: str, chunks: list[Chunk]) -> None:
    assert select.parse_select(text) == tuple(chunks)


@pytest.mark.parametrize(
    "text", ["ncpus", "ncpus=x", "ncpus=1:mem=lots", "1:=3", "9999999:ncpus=1", "1:a b=3"]
)
def test_what_is_no_select_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        select.parse_select(text)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("free", Place()), ("", Place()), ("pack:excl", Place("pack", "excl")),
        ("scatter:exclhost", Place("scatter", "exclhost")), ("vscatter:shared", Place("vscatter", "shared")),
        ("group=switch", Place(group="switch")), ("sideways", Place()),
    ],
)  # fmt: skip
def test_places(text: str, place: Place) -> None:
    assert select.parse_place(text) == place


@pytest.mark.parametrize(
    ("text", "shares"),
    [
        ("(v[0]:ncpus=4)+(v[1]:ncpus=4)", {"v[0]": Share(4), "v[1]": Share(4)}),
        ("(a:ncpus=2:mem=1gb+b:ncpus=1)+(a:ncpus=2:mem=1gb)", {"a": Share(4, 2 * GB), "b": Share(1)}),
        ("(a:ncpus=1:ngpus=1)+(a:ncpus=1:ngpus=1)", {"a": Share(2, 0, (("ngpus", 2),))}),
        ("(a:mem=1gb)", {"a": Share(0, GB)}),
    ],
)
def test_what_a_job_has_on_each_vnode(text: str, shares: dict[str, Share]) -> None:
    assert dict(select.parse_exec_vnode(text)) == shares


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("pbshost/0*4+pbshost/1*4", {"pbshost": 8}), ("n1/0+n1/1+n2/0", {"n1": 2, "n2": 1}),
        ("n1/0-3+n2/1,3-4", {"n1": 4, "n2": 3}), ("n1", {"n1": 0}),
    ],
)  # fmt: skip
def test_what_a_job_has_on_each_host(text: str, counts: dict[str, int]) -> None:
    assert {name: share.processors for name, share in select.parse_exec_host(text)} == counts


@pytest.mark.parametrize(
    ("text", "chunks"),
    [
        ("2:ppn=4", [Chunk(4)] * 2),
        ("n17:ppn=2+1", [Chunk(2, 0, (), (("host", "n17"),)), Chunk(1)]),
        ("1:ppn=8:bigmem:gpus=2", [Chunk(8, 0, (("gpus", 2),), (("bigmem", ""),))]),
        ("3#shared", [Chunk(1)] * 3),
    ],
)
def test_torques_nodes(text: str, chunks: list[Chunk]) -> None:
    assert select.parse_nodes(text) == tuple(chunks)


def lies(chunks: list[Chunk], counts: dict[str, int], **more: object) -> list[str]:
    return [name for name, _ in select.distribute(tuple(chunks), counts, **more)]  # type: ignore[arg-type]


def test_each_chunk_gets_a_vnode_and_each_vnode_a_chunk() -> None:
    assert lies([Chunk(4)] * 2, {"a": 4, "b": 4}) == ["a", "b"]
    assert lies([Chunk(2)] * 3, {"a": 4, "b": 2}) == ["a", "b", "a"]
    assert lies([Chunk(1), Chunk(8), Chunk(8)], {"a": 8, "b": 8, "c": 8}) == ["c", "a", "b"]
    assert lies([Chunk(3)] * 2, {"a": 8, "b": 8}, whole=True) == ["a", "b"]
    assert lies([Chunk(1), Chunk(1)], {"a": 1, "b": 1}, homes={0: {"b"}}) == ["b", "a"]


@pytest.mark.parametrize(
    ("chunks", "counts"),
    [
        ([Chunk(4)], {"a": 2}), ([Chunk(4)], {"a": 4, "b": 4}), ([Chunk(3)], {"a": 4}),
        ([Chunk(2), Chunk(2)], {"a": 3, "b": 1}),
    ],
)  # fmt: skip
def test_chunks_that_do_not_lie_on_the_vnodes_are_refused(
    chunks: list[Chunk], counts: dict[str, int]
) -> None:
    with pytest.raises(ValueError, match=r"chunk"):
        lies(chunks, counts)


def test_a_vnode_without_a_chunk_is_refused_also_where_it_is_had_whole() -> None:
    with pytest.raises(ValueError, match="no chunk is left for c"):
        lies([Chunk(2), Chunk(1)], {"a": 2, "b": 2, "c": 2}, whole=True)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=6), st.integers(1, 4))
def test_chunks_of_one_kind_fill_what_was_placed_for_them(fills: list[int], size: int) -> None:
    counts = {f"v{at}": fill * size for at, fill in enumerate(fills)}
    chunks = (Chunk(size),) * sum(fills)
    found: dict[str, int] = {}
    for name, chunk in select.distribute(chunks, counts):
        found[name] = found.get(name, 0) + chunk.ncpus
    assert found == counts


@given(st.text())
def test_no_text_makes_a_parser_fail_in_another_way(text: str) -> None:
    for parse in (select.parse_select, select.parse_nodes, select.parse_exec_vnode, select.parse_exec_host):
        with contextlib.suppress(ValueError):
            parse(text)
    select.parse_place(text)
