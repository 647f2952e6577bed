"""Placements on many nodes, which are handled as arrays: as node by node."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import StateError
from headway.model import NodeDescription, Request
from headway.resources import Located, NodeTable, Offer, gres_on_node, memory_on_node

NODES = 12
#: Pools of a node; a domain is its first letter.
POOLS = (("a1",), ("a2", "a1"), ("b1", "a2"), ("b1",))


@st.composite
def tables(draw, alike: bool = False) -> NodeTable:
    """Nodes of several sizes and pools, some of which cannot be used."""
    table = NodeTable()
    same = draw(st.booleans())
    for at in range(NODES):
        pools = POOLS[1] if same else draw(st.sampled_from(POOLS))
        usable = draw(st.sampled_from((True, True, True, False)))
        gres = (("gpu", draw(st.integers(1, 3))),)
        size = 4 if alike else draw(st.integers(1, 4))
        table.put(NodeDescription(f"n{at}", size, memory=6, gres=gres, pools=pools, available=usable))
    table.group({pool: pool[0] for pools in POOLS for pool in pools})
    for at in draw(st.sets(st.integers(0, NODES - 1), max_size=2)):
        table.set_power(f"n{at}", "asleep", 0)
    return table


PLACES = st.dictionaries(st.integers(0, NODES), st.integers(1, 4), min_size=1, max_size=NODES).map(
    lambda found: tuple((f"n{at}", count) for at, count in found.items())
)
SHAPES = st.sampled_from(
    (
        {}, {}, {"exclusive": True}, {"memory_per_node": 2}, {"memory_per_processor": 2},
        {"memory_per_chunk": 3, "processors_per_chunk": 2}, {"gres_per_node": (("gpu", 1),)},
        {"gres_per_chunk": (("gpu", 1),), "processors_per_chunk": 2}, {"gres_per_node": (("fpga", 1),)},
    )
)  # fmt: skip


def levels(table: NodeTable) -> list[list[int]]:
    free = table.free
    return [array[:NODES].tolist() for array in (free.processors, free.memory, free.gres["gpu"])]


@given(st.booleans().flatmap(tables), PLACES, SHAPES)
def test_a_job_takes_and_gives_back_what_it_has_of_each_node(table, place, shape):
    request = Request(sum(count for _, count in place), 10, **shape)
    before, expected = levels(table), levels(table)
    shares: dict[str, list[int]] = {}
    too_much = False
    for name, count in place:
        if (node := table.index.get(name)) is None:
            continue
        expected[0][node] -= count
        expected[1][node] -= memory_on_node(request, count)
        for resource, amount in gres_on_node(request, count):
            expected[2][node] -= amount if resource == "gpu" else 0
        too_much |= expected[0][node] < 0
        for domain in dict.fromkeys(pool[0] for pool in table.descriptions[name].pools):
            share = shares.setdefault(domain, [0, 0])
            share[0] += count
            share[1] += count if table.available[node] else 0
    taken = table.take(request, place)
    assert levels(table) == expected
    if not too_much:
        assert list(taken.items()) == [(domain, tuple(both)) for domain, both in shares.items()]
    table.give_back(request, place)
    assert levels(table) == before


def refusal(table: NodeTable, request: Request, place: tuple[tuple[str, int], ...], pool: str) -> str:
    """What a guard that looks at one node after the other says, if it has anything to say."""
    for name, count in place:
        node = table.index.get(name, -1)
        if node < 0 or pool not in table.descriptions[name].pools:
            return f"node {name} is not in pool"
        if not table.available[node]:
            return f"node {name} is not available"
        if name in table.power:
            return f"node {name} is asleep"
        left = table.free.processors[node]
        if count > left:
            return f"node {name} has {left} processors free"
        if request.exclusive and not count == left == table.total[node]:
            return f"node {name} would be shared"
        if memory_on_node(request, count) > table.free.memory[node]:
            return f"node {name} has {table.free.memory[node]} bytes free"
        for resource, amount in gres_on_node(request, count):
            if resource != "gpu" or amount > table.free.gres["gpu"][node]:
                return f"node {name} has too few {resource} free"
    return ""


@given(tables(alike=True), PLACES, PLACES, SHAPES, st.sampled_from(("a1", "b1")))
def test_the_guard_says_of_many_nodes_what_it_says_of_each(table, there, place, shape, pool):
    held = [(name, min(count, 2)) for name, count in there if name in table.index][:3]
    table.take(Request(1, 10, memory_per_processor=2), tuple(held))
    request = Request(sum(count for _, count in place), 10, **shape)
    why = refusal(table, request, place, pool)
    if not why:
        table.guard(request, place, pool)
    else:
        with pytest.raises(StateError) as refused:
            table.guard(request, place, pool)
        assert str(refused.value).startswith(why)


def test_the_guard_refuses_many_nodes_of_which_one_comes_twice():
    table = NodeTable()
    for at in range(8):
        table.put(NodeDescription(f"n{at}", 4, pools=("p",)))
    place = tuple((f"n{at}", 2) for at in (0, 1, 2, 3, 4, 5, 5, 6))
    with pytest.raises(StateError, match="twice"):
        table.guard(Request(16, 10), place, "p")
    assert not table.offers(place, table.free.processors)


def in_blocks(room: list[int], wanted: int, least: int) -> list[int]:
    """Node by node: as many as there is room for while the least is left for each node after it."""
    counts = []
    for after, most in zip(range(len(room) - 1, -1, -1), room, strict=True):
        counts.append(min(most, wanted - after * least))
        wanted -= counts[-1]
    return counts


@given(st.lists(st.integers(1, 9), min_size=1, max_size=20), st.data())
def test_processors_are_shared_out_as_node_by_node(room, data):
    table = NodeTable()
    for at, most in enumerate(room):
        table.put(NodeDescription(f"n{at}", most, pools=("p",)))
    wanted = data.draw(st.integers(len(room), sum(room)))
    request = Request(wanted, 10, nodes=len(room))
    order = np.array(data.draw(st.permutations(range(len(room)))))
    offer = Offer(table, request, table.slots(request, table.pool_mask("p"), table.free), table.free)
    placement = offer.take(order)
    assert placement == tuple((f"n{at}", n) for at, n in enumerate(in_blocks(room, wanted, 1)))
    assert all(type(count) is int for _, count in placement)


@given(
    st.permutations(range(NODES)).flatmap(lambda all_: st.integers(1, NODES).map(lambda n: all_[:n])),
    st.data(),
)
def test_a_placement_that_is_made_is_where_it_is_when_it_is_looked_up(nodes, data):
    table = NodeTable()
    for at in range(NODES):
        table.put(NodeDescription(f"n{at}", 4, pools=("p",)))
    several = data.draw(st.lists(st.integers(1, 2), min_size=len(nodes), max_size=len(nodes)))
    placement = table.placed(np.array(nodes), np.array(several))
    assert placement == tuple((f"n{node}", count) for node, count in zip(nodes, several, strict=True))
    found, anew = table.locate(placement), Located(placement, table.index)
    for place in (found, anew):
        assert (place.nodes, place.counts, place.known) == (nodes, several, len(nodes))
        assert (place.processors, place.clear) == (sum(several), True)
        assert place.bits == sum(1 << node for node in nodes)
        assert [array.tolist() for array in place.as_arrays()] == [nodes, several]
