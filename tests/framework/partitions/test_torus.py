"""The torus' geometry: the dossier's vectors (acceptance 1), and properties."""

from __future__ import annotations

from itertools import islice, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import UserError
from headway.model.wiring import PartitionTimes, Torus
from headway.partitions.cabling import capacity_of_cables
from headway.partitions.timing import seconds_at
from headway.partitions.torus import MESH, TORUS, Box, Geometry, Wires, name_of, shapes_of

BIG = Geometry(Torus((8, 4, 4)))


def links(geometry: Geometry, shape: tuple[int, int, int], connection: str) -> int:
    return geometry.masks(Box((0, 0, 0), shape, connection))[1].bit_count()


def test_1_the_machine_has_128_midplanes_and_65536_nodes():
    assert BIG.size == 128 and BIG.size * BIG.torus.unit == 65_536


@pytest.mark.parametrize(("shape", "wrapped", "plain"), [((2, 2, 2), 128, 63), ((8, 2, 2), 16, 9)])
def test_1_positions_of_a_shape(shape, wrapped, plain):
    assert len(list(BIG.origins(shape))) == wrapped
    assert len(list(BIG.origins(shape, wrap=False))) == plain


def test_1_shapes_by_surface_then_extents():
    first = list(islice(shapes_of(8, (8, 4, 4)), 6))
    assert first == [(2, 2, 2), (1, 2, 4), (1, 4, 2), (2, 1, 4), (2, 4, 1), (4, 1, 2)]
    assert shapes_of(7, (8, 4, 4)) == [(7, 1, 1)]
    assert shapes_of(11, (8, 4, 4)) == []


@pytest.mark.parametrize(
    ("shape", "connection", "count"),
    [
        ((1, 1, 1), TORUS, 0), ((2, 1, 1), MESH, 1), ((2, 1, 1), TORUS, 8), ((8, 1, 1), MESH, 7),
        ((8, 1, 1), TORUS, 8), ((2, 2, 2), MESH, 12), ((2, 2, 2), TORUS, 64), ((8, 4, 4), MESH, 304),
        ((8, 4, 4), TORUS, 384),
    ],
)  # fmt: skip
def test_1_links_of_a_box(shape, connection, count):
    assert links(BIG, shape, connection) == count


@pytest.mark.parametrize(
    ("first", "second", "capacity", "fits"),
    [
        ((0, 2, TORUS), (2, 2, TORUS), 1, False), ((0, 2, TORUS), (2, 2, MESH), 1, False),
        ((0, 2, TORUS), (2, 1, MESH), 1, True), ((0, 2, MESH), (2, 2, MESH), 1, True),
        ((0, 2, TORUS), (2, 2, TORUS), 2, True), ((0, 2, TORUS), (2, 2, MESH), 2, True),
    ],
)  # fmt: skip
def test_1_partitions_on_one_line_of_four(first, second, capacity, fits):
    geometry = Geometry(Torus((4, 1, 1), capacity=(capacity, 1, 1)))
    wires = Wires(geometry)
    one, other = (geometry.masks(Box((at, 0, 0), (n, 1, 1), how)) for at, n, how in (first, second))
    wires.take(*one)
    assert wires.fits(*other) is fits
    wires.give_back(*one)
    assert wires.fits(*other)


def test_no_torus_through_other_switches_where_that_is_denied():
    geometry = Geometry(Torus((4, 2, 1), deny_passthrough=(0,)))
    assert not geometry.possible((2, 1, 1), TORUS)
    assert geometry.possible((4, 2, 1), TORUS) and geometry.possible((2, 1, 1), MESH)
    assert "closed" in str(geometry.box_of(["m0-0-0", "m1-0-0"], TORUS))


@given(
    shape=st.tuples(*[st.integers(1, 5)] * 3),
    seed=st.tuples(*[st.integers(0, 100)] * 6),
    connection=st.sampled_from([MESH, TORUS]),
)
def test_a_box_is_found_from_its_midplanes(shape, seed, connection):
    geometry = Geometry(Torus(shape))
    extent = tuple(1 + n % whole for n, whole in zip(seed[:3], shape, strict=True))
    origin = tuple(
        0 if n == whole else at % whole for at, n, whole in zip(seed[3:], extent, shape, strict=True)
    )
    box = Box(origin, extent, connection)
    assert geometry.box_of(geometry.nodes_of(box), connection) == box


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        (["m0-0-0", "m2-0-0"], "not contiguous"), (["m0-0-0", "m1-1-0"], "no rectangle"),
        (["m0-0-0", "n7"], "no midplane is called n7"),
    ],
)  # fmt: skip
def test_what_is_no_box_is_named(nodes, said):
    assert said in str(BIG.box_of(nodes, MESH))


# ---------------------------------------------------------------------- cables


def all_cables(shape, times=1):
    found = []
    for d, whole in enumerate(shape):
        if whole == 1:
            continue
        for at in product(*map(range, shape)):
            following = (*at[:d], (at[d] + 1) % whole, *at[d + 1 :])
            found += [(name_of(at), name_of(following))] * times
    return found


@pytest.mark.parametrize("shape", [(4, 3, 1), (2, 2, 2), (1, 1, 1), (3, 2, 1)])
def test_cables_that_close_give_the_capacity(shape):
    assert capacity_of_cables(shape, all_cables(shape), "cables") == (1, 1, 1)
    twice = capacity_of_cables(shape, all_cables(shape, 2), "cables")
    assert twice == tuple(2 if n > 1 else 1 for n in shape)


def test_a_line_that_does_not_close_is_named():
    cables = [pair for pair in all_cables((4, 3, 1)) if pair != ("m3-1-0", "m0-1-0")]
    with pytest.raises(UserError, match="line along x through m3-1-0 does not close: no cable from m3-1-0"):
        capacity_of_cables((4, 3, 1), cables, "emulation.torus.cables")


def test_a_cable_that_joins_no_neighbours_and_an_unknown_midplane_are_named():
    with pytest.raises(UserError, match=r"cables\[0\]: expected a cable between neighbours"):
        capacity_of_cables((4, 3, 1), [("m0-0-0", "m2-0-0")], "cables")
    with pytest.raises(UserError, match=r"cables\[0\]: expected a midplane .* found 'm9-0-0'"):
        capacity_of_cables((4, 3, 1), [("m9-0-0", "m2-0-0")], "cables")


def test_links_of_one_dimension_have_as_many_cables_each():
    cables = [*all_cables((3, 1, 1)), ("m0-0-0", "m1-0-0")]
    with pytest.raises(UserError, match="as many cables on each link along x, found 1 and 2"):
        capacity_of_cables((3, 1, 1), cables, "cables")


# ---------------------------------------------------------------------- times


def test_times_between_and_beyond_the_measured_sizes():
    boot = PartitionTimes().boot
    assert [seconds_at(boot, n) for n in (32, 512, 1024, 2048)] == [26, 26, 36, 38]
    assert [seconds_at(boot, n) for n in (4096, 16_384, 65_536)] == [40, 44, 48]
    assert seconds_at(boot, 724) == pytest.approx(31, abs=0.01)
    assert seconds_at(((512, 7.0),), 4096) == 7
