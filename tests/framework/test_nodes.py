"""Nodes and placements: what fits where, in which shape, and that nothing is given twice."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import StateError
from headway.model import NodeDescription, Request, Reservation, processors_of
from headway.resources import NodeTable, Offer

G = 1 << 30


def table_of(*nodes: NodeDescription) -> NodeTable:
    table = NodeTable()
    for node in nodes:
        table.put(node)
    return table


def four(processors: int = 4, **more) -> NodeTable:
    return table_of(*(NodeDescription(f"n{at}", processors, pools=("p",), **more) for at in range(4)))


def offer(table: NodeTable, request: Request, pool: str = "p") -> Offer:
    free = table.free
    return Offer(table, request, table.slots(request, table.eligible(request, pool), free), free)


def placed(table: NodeTable, request: Request, order=None):
    given_nodes = offer(table, request)
    return given_nodes.take(given_nodes.feasible if order is None else order)


# ---------------------------------------------------------------- shapes


def test_nodes_are_taken_in_order_of_preference_and_filled_in_the_tables():
    assert placed(four(), Request(6, 1)) == (("n0", 4), ("n1", 2))
    assert placed(four(), Request(6, 1), order=[3, 1, 0]) == (("n1", 4), ("n3", 2))


def test_what_does_not_fit_has_no_placement():
    assert placed(four(), Request(17, 1)) is None
    assert placed(four(), Request(4, 1, nodes=5)) is None
    assert placed(four(), Request(10, 1, nodes=2)) is None
    assert placed(four(), Request(5, 1, processors_per_node=5)) is None


def test_so_many_nodes_share_the_processors_in_blocks_as_slurm_does():
    assert placed(four(), Request(6, 1, nodes=3)) == (("n0", 4), ("n1", 1), ("n2", 1))
    assert placed(four(), Request(10, 1, nodes=4)) == (("n0", 4), ("n1", 4), ("n2", 1), ("n3", 1))
    assert processors_of(placed(four(), Request(7, 1, nodes=3))) == 7


def test_fewer_processors_than_nodes_still_take_one_on_each():
    assert placed(four(), Request(1, 1, nodes=3)) == (("n0", 1), ("n1", 1), ("n2", 1))


def test_processors_per_node_are_exact_where_nodes_are_stated():
    assert placed(four(), Request(6, 1, nodes=3, processors_per_node=2)) == (("n0", 2), ("n1", 2), ("n2", 2))


def test_processors_per_node_alone_divide_the_total():
    assert placed(four(), Request(6, 1, processors_per_node=3)) == (("n0", 3), ("n1", 3))


def test_chunks_lie_on_a_node_together_and_may_share_it():
    assert placed(four(), Request(8, 1, processors_per_chunk=2)) == (("n0", 4), ("n1", 4))
    assert placed(four(), Request(9, 1, processors_per_chunk=3)) == (("n0", 3), ("n1", 3), ("n2", 3))
    assert placed(four(), Request(15, 1, processors_per_chunk=3)) is None
    table = four()
    table.take(Request(1, 1), (("n0", 1),))
    assert placed(table, Request(6, 1, processors_per_chunk=2)) == (("n0", 2), ("n1", 4))


@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=6),
    st.integers(1, 4), st.integers(1, 6), st.integers(1, 4),
)  # fmt: skip
def test_chunks_on_a_number_of_nodes_are_not_divided(sizes, chunk, count, nodes):
    table = table_of(*(NodeDescription(f"n{at}", size, pools=("p",)) for at, size in enumerate(sizes)))
    placement = placed(table, Request(chunk * count, 1, processors_per_chunk=chunk, nodes=nodes))
    most = sorted((size // chunk for size in sizes), reverse=True)[:nodes]
    if count >= nodes:
        assert (placement is not None) == (len(most) == nodes and min(most) > 0 and sum(most) >= count)
    if placement is not None:
        assert len(placement) == nodes
        assert processors_of(placement) == chunk * max(count, nodes)
        assert all(processors and processors % chunk == 0 for _, processors in placement)


def test_chunks_on_whole_nodes_get_all_of_them():
    request = Request(9, 1, processors_per_chunk=3, exclusive=True)
    assert placed(four(), request) == (("n0", 4), ("n1", 4), ("n2", 4))


@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.integers(1, 4), st.integers(1, 6))
def test_chunks_are_placed_wherever_there_is_room_for_all(sizes, chunk, count):
    table = table_of(*(NodeDescription(f"n{at}", size, pools=("p",)) for at, size in enumerate(sizes)))
    placement = placed(table, Request(chunk * count, 1, processors_per_chunk=chunk))
    assert (placement is not None) == (sum(size // chunk for size in sizes) >= count)
    if placement is not None:
        assert processors_of(placement) == chunk * count
        assert all(processors and processors % chunk == 0 for _, processors in placement)


def test_larger_nodes_are_taken_where_the_preferred_ones_are_too_small():
    table = table_of(*(NodeDescription(f"n{at}", size, pools=("p",)) for at, size in enumerate((1, 4, 1, 4))))
    assert placed(table, Request(8, 1, nodes=2)) == (("n1", 4), ("n3", 4))


def test_an_exclusive_job_gets_whole_nodes_and_only_empty_ones():
    table = four()
    table.take(Request(1, 1), (("n0", 1),))
    assert placed(table, Request(5, 1, exclusive=True)) == (("n1", 4), ("n2", 4))


def test_nobody_joins_an_exclusive_job():
    table = four()
    request = Request(2, 1, exclusive=True)
    table.take(request, placed(table, request))
    assert placed(table, Request(1, 1)) == (("n1", 1),)


def test_an_exclusive_job_is_not_charged_memory_for_processors_that_it_did_not_ask_for():
    table = four(memory=8 * G)
    request = Request(2, 1, exclusive=True, memory_per_processor=3 * G)
    placement = placed(table, request)
    table.guard(request, placement, "p")
    assert placement == (("n0", 4),)


def test_memory_limits_the_processors_of_a_node():
    table = four(memory=8 * G)
    assert placed(table, Request(4, 1, memory_per_processor=3 * G)) == (("n0", 2), ("n1", 2))
    assert placed(table, Request(4, 1, memory_per_node=9 * G)) is None


def test_memory_counts_while_it_is_taken():
    table = four(memory=8 * G)
    table.take(Request(1, 1, memory_per_node=6 * G), (("n0", 1),))
    assert placed(table, Request(1, 1, memory_per_node=4 * G)) == (("n1", 1),)


def test_a_node_without_managed_memory_hosts_any_amount():
    assert placed(four(), Request(4, 1, memory_per_node=1 << 50)) == (("n0", 4),)


def test_generic_resources_are_counted_by_node():
    table = four(gres=(("gpu", 2),))
    request = Request(2, 1, gres_per_node=(("gpu", 2),))
    table.take(request, (("n0", 2),))
    assert placed(table, request) == (("n1", 2),)
    assert placed(table, Request(1, 1, gres_per_node=(("gpu", 3),))) is None
    assert placed(table, Request(1, 1, gres_per_node=(("fpga", 1),))) is None


def test_all_features_are_needed():
    table = table_of(
        NodeDescription("a", 4, features=("fast",), pools=("p",)),
        NodeDescription("b", 4, features=("fast", "big"), pools=("p",)),
    )
    assert placed(table, Request(1, 1, features=("fast", "big"))) == (("b", 1),)
    assert placed(table, Request(1, 1, features=("slow",))) is None


def test_excluded_nodes_are_not_used():
    assert placed(four(), Request(5, 1, excluded_nodes=("n0", "n2", "unheard-of"))) == (("n1", 4), ("n3", 1))


def test_required_nodes_are_among_the_nodes():
    assert placed(four(), Request(5, 1, required_nodes=("n2",))) == (("n0", 4), ("n2", 1))


def test_every_required_node_is_used_even_where_fewer_would_do():
    assert dict(placed(four(), Request(2, 1, required_nodes=("n3", "n1")))) == {"n1": 1, "n3": 1}
    assert dict(placed(four(), Request(2, 1, exclusive=True, required_nodes=("n3", "n1")))) == {
        "n1": 4,
        "n3": 4,
    }


def test_required_nodes_stay_where_larger_ones_are_picked():
    table = table_of(*(NodeDescription(f"n{at}", size, pools=("p",)) for at, size in enumerate((1, 1, 4, 4))))
    assert dict(placed(table, Request(5, 1, nodes=2, required_nodes=("n1",)))) == {"n1": 1, "n2": 4}


def test_a_required_node_that_is_busy_or_unknown_leaves_no_placement():
    table = four()
    table.take(Request(4, 1), (("n1", 4),))
    assert placed(table, Request(1, 1, required_nodes=("n1",))) is None
    assert placed(table, Request(1, 1, required_nodes=("n9",))) is None


def test_a_plugin_may_offer_nodes_that_host_nothing():
    table = four()
    table.take(Request(4, 1), (("n0", 4),))
    assert placed(table, Request(5, 1), order=[0, 1, 2, 3]) == (("n1", 4), ("n2", 1))


# ---------------------------------------------------------------- the guard


@pytest.mark.parametrize(
    ("request_", "placement", "message"),
    [
        (Request(2, 1), (("n0", 1),), "fewer than the 2"),
        (Request(2, 1), (("n9", 2),), "not in pool"),
        (Request(2, 1), (("other", 2),), "not in pool"),
        (Request(2, 1), (("n1", 2),), "not available"),
        (Request(5, 1), (("n0", 5),), "4 processors free"),
        (Request(8, 1), (("n0", 4), ("n0", 4)), "twice"),
        (Request(2, 1), (("n0", 4), ("n2", -2)), "no placement"),
        (Request(2, 1, memory_per_node=9 * G), (("n0", 2),), "bytes free"),
        (Request(2, 1, gres_per_node=(("gpu", 1),)), (("n0", 2),), "gpu"),
        (Request(2, 1, exclusive=True), (("n0", 2),), "shared"),
    ],
)
def test_the_guard_names_what_cannot_be_had(request_, placement, message):
    table = four(memory=8 * G)
    table.put(NodeDescription("other", 4, pools=("q",)))
    table.set_available("n1", False)
    with pytest.raises(StateError, match=message):
        table.guard(request_, placement, "p")


# ---------------------------------------------------------------- changes


def test_the_table_grows_beyond_its_first_size():
    table = table_of(*(NodeDescription(f"n{at}", 2, pools=("p",), gres=(("gpu", 1),)) for at in range(200)))
    assert table.count("p") == (400, 400)
    assert len(placed(table, Request(400, 1, gres_per_node=(("gpu", 1),)))) == 200


def test_a_changed_description_keeps_what_runs_on_the_node():
    table = four(memory=8 * G, gres=(("gpu", 2),))
    table.take(Request(3, 1, memory_per_node=2 * G, gres_per_node=(("gpu", 1),)), (("n0", 3),))
    table.put(NodeDescription("n0", 8, memory=16 * G, gres=(("gpu", 4), ("nic", 1)), pools=("q",)))
    assert table.free.processors[0] == 5
    assert table.free.memory[0] == 14 * G
    assert table.free.gres["gpu"][0] == 3
    assert table.count("p") == (12, 12)
    assert table.count("q") == (8, 5)


def test_a_placement_is_found_again_once_its_node_has_come():
    table = NodeTable()
    table.put(NodeDescription("a", 4, pools=("pool",)))
    placement = (("a", 2), ("b", 1))
    assert (table.locate(placement).nodes, table.locate(placement).clear) == ([0], False)
    table.put(NodeDescription("b", 4, pools=("pool",)))
    found = table.locate(placement)
    assert (found.nodes, found.counts, found.processors, found.clear) == ([0, 1], [2, 1], 3, True)
    assert table.locate(placement) is found
    table.take(Request(3, 1.0), placement)
    table.give_back(Request(3, 1.0), placement)
    assert table.locate(placement) is not found


def test_a_node_that_is_down_counts_nowhere():
    table = four()
    table.set_available("n0", False)
    assert table.count("p") == (12, 12)
    assert placed(table, Request(1, 1)) == (("n1", 1),)


def test_reserved_nodes_are_free_only_outside_the_reservation():
    table = four()
    table.set_reservations([Reservation("r", 10, 20, nodes=("n0", "n1"))])
    usable = lambda start, end, own="": table.unreserved(start, end, own)  # noqa: E731
    assert usable(0, 10) is None
    assert usable(0, 11)[:4].tolist() == [False, False, True, True]
    assert usable(20, 30)[:4].tolist() == [True] * 4
    assert usable(12, 15, "r")[:4].tolist() == [True, True, False, False]
    assert table.broken((("n0", 1),), 5, 11, "").id == "r"
    assert table.broken((("n0", 1),), 5, 11, "r") is None
    assert table.broken((("n2", 1),), 5, 11, "") is None


# ---------------------------------------------------------------- properties

requests = st.builds(
    Request,
    processors=st.integers(1, 14),
    walltime=st.just(10.0),
    nodes=st.sampled_from([0, 0, 1, 2, 3]),
    processors_per_node=st.sampled_from([0, 0, 1, 2, 3]),
    memory_per_node=st.sampled_from([0, 0, 2 * G, 5 * G]),
    memory_per_processor=st.sampled_from([0, 0, G, 2 * G]),
    gres_per_node=st.sampled_from([(), (), (("gpu", 1),), (("gpu", 2),)]),
    features=st.sampled_from([(), (), ("fast",)]),
    required_nodes=st.sampled_from([(), (), ("n1",), ("n0", "n3")]),
    excluded_nodes=st.sampled_from([(), (), ("n2",)]),
    exclusive=st.booleans(),
)
machines = st.lists(
    st.tuples(st.integers(1, 6), st.sampled_from([0, 4 * G, 8 * G]), st.integers(0, 3), st.booleans()),
    min_size=4,
    max_size=7,
)


def machine(shapes) -> NodeTable:
    return table_of(
        *(
            NodeDescription(
                f"n{at}", size, memory, (("gpu", gpus),) if gpus else (), ("fast",) if fast else (), ("p",)
            )
            for at, (size, memory, gpus, fast) in enumerate(shapes)
        )
    )


def snapshot(table: NodeTable):
    free = table.free
    return free.processors.tolist(), free.memory.tolist(), {name: v.tolist() for name, v in free.gres.items()}


@given(machines, st.lists(requests, min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_jobs_never_take_more_than_a_node_has_and_give_exactly_that_back(shapes, wanted, random):
    table = machine(shapes)
    empty = snapshot(table)
    on = []
    for request in wanted:
        nodes = list(range(len(shapes)))
        random.shuffle(nodes)
        placement = placed(table, request, np.asarray(nodes))
        if placement is None:
            continue
        table.guard(request, placement, "p")
        table.take(request, placement)
        on.append((request, placement))
        assert (table.free.processors >= 0).all()
        assert (table.free.memory >= 0).all()
        assert all((amount >= 0).all() for amount in table.free.gres.values())
        names = [name for name, _ in placement]
        assert set(request.required_nodes) <= set(names)
        assert not set(request.excluded_nodes) & set(names)
        assert processors_of(placement) >= request.processors
        if request.nodes:
            assert len(names) == request.nodes
        if request.nodes and request.processors_per_node and not request.exclusive:
            assert {count for _, count in placement} == {request.processors_per_node}
    random.shuffle(on)
    for request, placement in on:
        table.give_back(request, placement)
    assert snapshot(table) == empty


#: Requests that any processors of a machine may serve.
plain_requests = requests.map(
    lambda request: msgspec.structs.replace(
        request, nodes=0, processors_per_node=0, required_nodes=(), exclusive=False
    )
)


@given(machines, plain_requests)
def test_an_empty_machine_that_is_large_enough_in_every_way_hosts_the_job(shapes, request_):
    table = machine(shapes)
    slots = table.slots(request_, table.eligible(request_, "p"), table.free)
    assert (placed(table, request_) is not None) == (int(slots.sum()) >= request_.processors)


# ---------------------------------------------------------------- placements that are given again and again


def six() -> NodeTable:
    return table_of(*(NodeDescription(f"n{at}", 4, pools=("p",)) for at in range(6)))


def test_a_placement_that_is_kept_stays_located_when_its_job_has_gone():
    table = six()
    placement = tuple((f"n{at}", 4) for at in range(5))
    table.keep(placement)
    found = table.locate(placement)
    table.take(Request(20, 1), placement)
    table.give_back(Request(20, 1), placement)
    assert table.locate(placement) is found


@given(
    st.lists(st.integers(-1, 7), min_size=1, max_size=8), st.integers(0, 5), st.integers(0, 5), st.booleans()
)
def test_what_is_offered_is_told_alike_of_kept_placements_and_others(nodes, taken, count, keep):
    table = six()
    table.take(Request(taken, 1), (("n0", min(taken, 4)),))
    placement = tuple((f"n{at}", count) for at in nodes)
    free = table.free.processors
    known = len(set(nodes)) == len(nodes) and all(0 <= at < 6 for at in nodes)
    if keep:
        table.keep(placement)
    expected = known and all(0 < count <= free[at] for at in nodes)
    assert table.offers(placement, free) == expected


@pytest.mark.parametrize(
    ("taken", "behind", "message"),
    [
        ((), (), ""),
        ((("n4", 1),), (), "would be shared|processors free"),
        ((), (("n2", 1),), "would be shared"),
    ],
)
def test_many_whole_nodes_are_guarded_at_once_as_one_by_one(taken, behind, message):
    table = six()
    table.take(Request(1, 1), taken)
    table.take_behind(Request(1, 1), behind)
    placement = tuple((f"n{at}", 4) for at in range(5))
    request = Request(20, 1, exclusive=True)
    if not message:
        table.guard(request, placement, "p")
        return
    with pytest.raises(StateError, match=message):
        table.guard(request, placement, "p")


def test_many_nodes_that_are_not_given_whole_are_not_for_a_job_that_asks_for_them():
    with pytest.raises(StateError, match="would be shared"):
        six().guard(Request(5, 1, exclusive=True), tuple((f"n{at}", 3) for at in range(5)), "p")


# ---------------------------------------------------------------- what is idle


def test_idle_nodes_are_those_of_which_nothing_is_taken_and_follow_each_change():
    table = four(2)
    assert bin(table.idle(table.free)).count("1") >= 4
    request = Request(processors=1, walltime=60.0)
    table.take(request, (("n1", 1),))
    assert table.idle(table.free) & 0b1111 == 0b1101
    table.give_back(request, (("n1", 1),))
    assert table.idle(table.free) & 0b1111 == 0b1111
    table.put(NodeDescription("n3", 3, pools=("p",)))
    assert table.idle(table.free) & 0b1111 == 0b1111


def test_whole_nodes_are_offered_as_a_set_that_says_the_same_as_its_slots():
    table = four(2)
    table.take(Request(processors=1, walltime=60.0), (("n2", 1),))
    request = Request(processors=6, walltime=60.0, exclusive=True)
    found = table.offer(request, table.eligible(request, "p"), table.free)
    assert found is not None
    assert found.nodes == 0b1011
    assert found.feasible.tolist() == [0, 1, 3]
    assert found.slots[:4].tolist() == [2, 2, 0, 2]
    assert (
        table.offer(
            Request(processors=7, walltime=60.0, exclusive=True), table.eligible(request, "p"), table.free
        )
        is None
    )
