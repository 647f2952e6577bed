"""The blocks of a fat tree."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headway.model import SwitchDescription
from headway_plugins.partitions.fat_tree import switch_blocks

NODES = tuple(f"n{at}" for at in range(1, 9))
LEAVES = tuple(SwitchDescription(f"leaf{at}", NODES[2 * at : 2 * at + 2]) for at in range(4))
TREE = (
    *LEAVES,
    SwitchDescription("left", (), ("leaf0", "leaf1")),
    SwitchDescription("right", (), ("leaf2", "leaf3")),
    SwitchDescription("top", (), ("left", "right")),
)


def sizes(blocks):
    return [len(block) for block in blocks]


def test_all_the_halves_are_switches():
    blocks = switch_blocks(NODES, TREE)
    assert sizes(blocks) == [1] * 8 + [2] * 4 + [4] * 2 + [8]
    assert blocks[8] == ("n1", "n2") and blocks[12] == NODES[:4] and blocks[14] == NODES


def test_a_leaf_switch_is_not_cut_by_a_larger_block():
    """Three leaf switches of unlike sizes below one."""
    uneven = (
        SwitchDescription("a", NODES[:3]), SwitchDescription("b", NODES[3:4]),
        SwitchDescription("c", NODES[4:]),
        SwitchDescription("top", (), ("a", "b", "c")),
    )  # fmt: skip
    blocks = switch_blocks(NODES, uneven, unit=4)
    assert blocks == [("n4",), ("n1", "n2", "n3"), NODES[:4], NODES[4:], NODES]


def test_what_nothing_connects_is_no_block():
    blocks = switch_blocks(NODES, LEAVES[:2])
    assert sizes(blocks) == [1] * 8 + [2] * 2, "the leaf switches, and four nodes that are on none"


def test_without_switches_the_nodes_are_a_row():
    assert sizes(switch_blocks(NODES[:6], (), unit=2)) == [2, 2, 2, 4, 6]


@given(st.lists(st.integers(1, 5), min_size=1, max_size=6), st.integers(1, 4))
def test_blocks_are_nested_or_disjoint_and_cover_everything(lengths, unit):
    names = [f"n{at}" for at in range(sum(lengths))]
    switches, at = [], 0
    for number, length in enumerate(lengths):
        switches.append(SwitchDescription(f"s{number}", tuple(names[at : at + length])))
        at += length
    switches.append(SwitchDescription("top", (), tuple(f"s{n}" for n in range(len(lengths)))))
    blocks = [set(block) for block in switch_blocks(names, switches, unit)]
    assert blocks[-1] == set(names)
    assert all(a <= b or b <= a or not a & b for a in blocks for b in blocks)
    leaves = [set(switch.nodes) for switch in switches[:-1]]
    assert all(leaf <= block or block <= leaf or not leaf & block for leaf in leaves for block in blocks)
