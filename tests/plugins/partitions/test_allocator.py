"""Where partitions fit: the dossier's vectors (acceptance 1), and a brute force on small machines."""

from __future__ import annotations

from itertools import pairwise, permutations

from hypothesis import given, settings
from hypothesis import strategies as st

from headway.model.wiring import Torus
from headway.partitions.torus import MESH, TORUS, Box, Geometry, Wires, bits_of, shapes_of
from headway_plugins.partitions.allocator import Allocator
from headway_plugins.partitions.blocks import row_tree, torus_tree


def test_1_first_fit_on_an_empty_2x2x2():
    geometry = Geometry(Torus((2, 2, 2)))
    allocator, wires, found = Allocator(geometry, MESH), Wires(geometry), []
    for size in (1, 2, 4, 1, 1):
        box = allocator.fit(size, wires.busy, wires.full)
        found.append(box and (box.shape, box.origin))
        if box:
            wires.take(*geometry.masks(box))
    assert found == [
        ((1, 1, 1), (0, 0, 0)), ((1, 1, 2), (0, 1, 0)), ((1, 2, 2), (1, 0, 0)), ((1, 1, 1), (0, 0, 1)), None,
    ]  # fmt: skip


def test_1_eleven_midplanes_get_twelve_and_seven_a_row():
    allocator = Allocator(Geometry(Torus((8, 4, 4))), MESH)
    assert allocator.least(11) == 12 and allocator.fit(11).size == 12
    assert allocator.fit(7).shape == (7, 1, 1)
    assert allocator.least(129) == 0 and allocator.fit(129) is None
    assert [allocator.midplanes(n) for n in (1, 512, 513)] == [1, 1, 2]


def test_1_halving_trees():
    for shape, blocks, levels in (
        ((2, 2, 2), 15, 4), ((2, 4, 4), 63, 6), ((4, 4, 4), 127, 7), ((8, 4, 4), 255, 8),
    ):  # fmt: skip
        tree = torus_tree(shape, MESH)
        assert (sum(map(len, tree)), len(tree)) == (blocks, levels)
    shapes = [level[0].shape for level in torus_tree((8, 4, 4), MESH)]
    assert shapes == [
        (8, 4, 4), (4, 4, 4), (2, 4, 4), (2, 2, 4), (2, 2, 2), (1, 2, 2), (1, 1, 2), (1, 1, 1),
    ]  # fmt: skip


@given(shape=st.tuples(*[st.integers(1, 6)] * 3))
def test_every_level_of_a_tree_covers_what_is_split(shape):
    geometry = Geometry(Torus(shape))
    tree = torus_tree(shape, MESH)
    for above, below in pairwise(tree):
        split = [box for box in above if box.size > 1]
        for box, halves in zip(split, zip(below[::2], below[1::2], strict=True), strict=True):
            first, second = (geometry.masks(half)[0] for half in halves)
            assert not first & second and first | second == geometry.masks(box)[0]


def test_rows_are_halved_at_their_leaves():
    names = [f"n{i}" for i in range(6)]
    assert row_tree(names, 2) == [
        [tuple(names)], [tuple(names[:4]), tuple(names[4:])], [tuple(names[:2]), tuple(names[2:4])],
    ]  # fmt: skip


# ---------------------------------------------------------------------- brute force


def conflicts(geometry: Geometry, box: Box, held: list[Box], down: set[int]) -> bool:
    """By the definition, link by link."""
    mine, links = geometry.masks(box)
    if down & set(bits_of(mine)):
        return True
    if any(geometry.masks(other)[0] & mine for other in held):
        return True
    return any(
        1 + sum(geometry.masks(other)[1] >> link & 1 for other in held) > geometry.capacity[link]
        for link in bits_of(links)
    )


def brute_force(geometry, connection, k, held, down, shape=None, rotate=False, best=False):
    """As the dossier says it, one candidate after another."""
    sizes = range(k, geometry.size + 1) if shape is None else [0]
    for size in sizes:
        if shape is None:
            shapes = shapes_of(size, geometry.shape)
        else:
            turned = set(permutations(shape)) if rotate else {shape}
            shapes = sorted(turned, key=lambda s: (s[0] * s[1] + s[1] * s[2] + s[2] * s[0], s))
        fits = [
            box
            for each in shapes
            if geometry.possible(each, connection)
            for box in (Box(at, each, connection) for at in geometry.origins(each))
            if not conflicts(geometry, box, held, down)
        ]
        if fits:
            return min(fits, key=lambda b: geometry.masks(b)[1].bit_count()) if best else fits[0]
    return None


@st.composite
def questions(draw):
    shape = draw(st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(1, 3)))
    torus = Torus(
        shape,
        capacity=draw(st.tuples(*[st.integers(1, 2)] * 3)),
        deny_passthrough=tuple(draw(st.sets(st.integers(0, 2), max_size=2))),
    )
    asked = draw(
        st.lists(
            st.tuples(st.integers(1, 9), st.sampled_from([MESH, TORUS]), st.booleans()),
            min_size=1,
            max_size=8,
        )
    )
    down = draw(st.sets(st.integers(0, shape[0] * shape[1] * shape[2] - 1), max_size=2))
    return torus, asked, down


@given(questions(), st.tuples(*[st.integers(1, 3)] * 3), st.booleans())
@settings(max_examples=120)
def test_5_the_allocator_is_the_brute_force_and_nothing_is_used_twice(question, shape, rotate):
    torus, asked, down = question
    geometry = Geometry(torus)
    wires, held = Wires(geometry), []
    unusable = sum(1 << at for at in down)
    allocators = {how: Allocator(geometry, how) for how in (MESH, TORUS)}
    for k, how, best in asked:
        busy = wires.busy | unusable
        box = allocators[how].fit(k, busy, wires.full, best=best)
        assert box == brute_force(geometry, how, k, held, down, best=best)
        shaped = allocators[how].fit(0, busy, wires.full, shape=shape, rotate=rotate, best=best)
        assert shaped == brute_force(geometry, how, 0, held, down, shape, rotate, best)
        if box is not None:
            wires.take(*geometry.masks(box))
            held.append(box)


@given(
    st.sampled_from([((8, 4, 4), (1, 1, 1)), ((5, 3, 2), (1, 1, 1)), ((4, 4, 2), (2, 1, 3))]),
    st.sampled_from([MESH, TORUS]),
    st.lists(st.integers(1, 20), min_size=1, max_size=12),
    st.integers(0, 2**32),
)
@settings(max_examples=40)
def test_sets_of_boxes_answer_as_a_walk_along_all_boxes(machine, how, sizes, down):
    shape, capacity = machine
    geometry = Geometry(Torus(shape, capacity=capacity))
    allocator, wires, held = Allocator(geometry, how), Wires(geometry), []
    for size in sizes:
        busy = wires.busy | down & (1 << geometry.size) - 1
        table = allocator._table
        fits = [
            box for box in table.boxes
            if box.size >= size and wires.fits(*geometry.masks(box)) and not geometry.masks(box)[0] & busy
        ]  # fmt: skip
        found = allocator.fit(size, busy, wires.full)
        assert found == (fits[0] if fits else None)
        if found is not None:
            alike = [box for box in fits if box.size == found.size]
            fewest = min(alike, key=lambda box: geometry.masks(box)[1].bit_count())
            assert allocator.fit(size, busy, wires.full, best=True) == fewest
            wires.take(*geometry.masks(found))
            held.append(found)
        if len(held) > 3:
            # The next question is about less in some places, and perhaps about more in others.
            wires.give_back(*geometry.masks(held.pop(0)))
