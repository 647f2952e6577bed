"""The choice of leaf switches against all subsets of them, and what is said of wrong descriptions."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import UserError
from headway.model import SwitchDescription
from headway_plugins.placement.topology.files import described, read_switches
from headway_plugins.placement.topology.switches import SwitchTree


@st.composite
def forests(draw):
    """Switches over two to seven leaf switches of a node each, in one or several trees, of any height."""
    count = draw(st.integers(2, 7))
    switches = [SwitchDescription(f"l{at}", (f"n{at}",)) for at in range(count)]
    tops = [switch.name for switch in switches]
    while len(tops) > 1 and draw(st.booleans()):
        some = draw(st.lists(st.sampled_from(tops), min_size=1, max_size=4, unique=True))
        name = f"s{len(switches)}"
        switches.append(SwitchDescription(name, (), tuple(some)))
        tops = [*(top for top in tops if top not in some), name]
    return count, switches


def above(switches, name):
    """The switch and those above it."""
    found = [name]
    while parent := next((s.name for s in switches if found[-1] in s.switches), None):
        found.append(parent)
    return found


def height(switches, name):
    below = next(s.switches for s in switches if s.name == name)
    return 1 + max(height(switches, child) for child in below) if below else 0


def common(switches, leaves):
    """The height of the lowest switch above all these leaves; infinity if there is none."""
    chains = [above(switches, f"l{leaf}") for leaf in leaves]
    return min((height(switches, s) for s in chains[0] if all(s in c for c in chains)), default=float("inf"))


def best(switches, room, need, base, connected):
    """By all subsets: how many leaf switches are needed, and how high the switch above them is."""
    found = []
    for count in range(1, len(room) + 1):
        for some in combinations(range(len(room)), count):
            high = common(switches, some)
            if set(base) <= set(some) and sum(room[at] for at in some) >= need:
                if connected and high == float("inf"):
                    continue
                found.append((count, high, some))
        if found:
            return min(found)[:2], [some for *_, some in found]
    return None, []


@given(forests(), st.data())
def test_the_choice_is_that_of_all_subsets(forest, data):
    count, switches = forest
    tree = SwitchTree(switches, [f"n{at}" for at in range(count)])
    assert tree.leaves == [f"l{at}" for at in range(count)]
    room = data.draw(st.lists(st.integers(0, 6), min_size=count, max_size=count))
    need = data.draw(st.integers(1, 20))
    base = data.draw(st.lists(st.integers(0, count - 1), max_size=2, unique=True))
    connected = data.draw(st.booleans())
    expected, subsets = best(switches, room, need, base, connected)
    chosen = tree.choose(np.array(room), need, base, connected=connected)
    if expected is None:
        assert chosen is None
        return
    assert chosen is not None
    some = chosen.tolist()
    assert len(set(some)) == len(some)
    assert set(base) <= set(some)
    assert sum(room[at] for at in some) >= need
    assert (len(some), common(switches, some)) == expected
    if len(some) == 1 and not base:
        # Best fit.
        assert room[some[0]] == min(room[at] for (at,) in subsets)
    elif len(some) > len(base):
        # No leaf in the last one's place would leave less over below the same switch.
        *first, last = some
        rest = need - sum(room[at] for at in first)
        for other in range(count):
            if other not in some and common(switches, [*first, other]) <= expected[1] and room[other] >= rest:
                inside = common(switches, [*some, other]) <= expected[1]
                assert not inside or room[other] >= room[last]


def switch(name, nodes=(), switches=()):
    return SwitchDescription(name, tuple(nodes), tuple(switches))


@pytest.mark.parametrize(
    ("switches", "problems"),
    [
        ([switch("a", ["n0", "n1"]), switch("b", ["n2"])], []),
        ([switch("a", ["n0", "n1"])], ["node 'n2' is on no switch"]),
        ([switch("a", ["n0"])], ["nodes 'n1', 'n2' are on no switch"]),
        (
            [switch("a", ["n0", "n1", "n2", "x"]), switch("b", ["y", "z"])],
            [
                "switch 'a': there is no node 'x'",
                "switch 'b': there are no nodes 'y', 'z'",
                "switch 'b' has no node and is left out",
            ],
        ),
        (
            [switch("a", ["n0", "n1", "n2"]), switch("b", ["n1"]), switch("c", [], ["b", "a", "d"])],
            [
                "switch 'c': switch 'd' below it is not described",
                "switch 'b': node 'n1' is on switch 'a' already and stays there",
                "switch 'b' has no node and is left out",
            ],
        ),
        (
            [switch("a", ["n0", "n1", "n2"], ["c"]), switch("b", [], ["a"]), switch("c", [], ["b"])],
            [
                "switch 'c': switch 'b' below it closes a circle ('b' below 'c' below 'a' below 'b'); the "
                "second place is left out",
                "switch 'c' has no node and is left out",
            ],
        ),
        (
            [switch("a", ["n0", "n1", "n2"]), switch("t", [], ["a"]), switch("u", [], ["a"]), switch("a")],
            [
                "switch 'a' is described twice: the first description counts",
                "switch 'u': switch 'a' is below switch 't' already and stays there",
                "switch 'u' has no node and is left out",
            ],
        ),
        (
            [switch("a", ["n0", "n1", "n2"], ["a"])],
            ["switch 'a': switch 'a' below it closes a circle ('a' below 'a'); the second place is left out"],
        ),
    ],
)
def test_what_is_wrong_is_said_and_the_rest_counts(switches, problems):
    tree = SwitchTree(switches, ["n0", "n1", "n2"])
    assert tree.problems == problems
    assert tree.leaf_of["n0"] == 0
    assert tree.choose(np.array([3, 3, 3, 3]), 3) is not None


def test_long_lists_of_names_are_cut():
    tree = SwitchTree([switch("a", [f"x{at}" for at in range(9)])], ["n0"])
    assert tree.problems[0] == "switch 'a': there are no nodes 'x0', 'x1', 'x2', 'x3', 'x4' and 4 more"


def test_switches_as_sites_write_them_down():
    expected = (
        switch("leaf1", ["n1", "n2"]),
        switch("leaf2", ["n3", "m07", "m08"]),
        switch("top", [], ["leaf1", "leaf2"]),
    )
    yaml = "leaf1: n[1-2]\nleaf2: {nodes: [n3, 'm[07-08]']}\ntop: {switches: [leaf1, leaf2]}\n"
    assert read_switches(yaml, "t.yaml") == expected
    conf = (
        "# racks\nSwitchName=leaf1 Nodes=n[1-2] LinkSpeed=1\n\nswitchname=leaf2 nodes=n3,m[07-08] # old\n"
        "SwitchName=top Switches=leaf[1-2]\n"
    )
    assert read_switches(conf, "topology.conf") == expected
    continued = (
        "SwitchName=leaf1 Nodes=n[1-2]\nSwitchName=leaf2\\\n  Nodes=n3,\\\nm[07-08]\n"
        "SwitchName=top \\\nSwitches=leaf[1-2]\\"
    )
    assert read_switches(continued, "topology.conf") == expected
    shown = (
        "SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=n[1-2]\nSwitchName=leaf2 Level=0 LinkSpeed=1 "
        "Nodes=n3,m[07-08]\nSwitchName=top Level=1 LinkSpeed=1 Nodes=m[07-08],n[1-3] Switches=leaf[1-2]\n"
    )
    assert read_switches(shown, "scontrol show topology") == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[a, b]", "t: expected switches by name, found ['a', 'b']"),
        ("a: {node: n1}", "t: a: node: unknown key. Did you mean 'nodes'?"),
        ("a: 5", "t: a: nodes: expected names, such as n[1-16], found 5"),
        ("a: n[3-1]", "t: a: nodes: host list range '3-1' runs backwards or is too long"),
        ("7: n1", "t: 7: expected the name of a switch, found 7"),
        ("SwitchName=a Nodes", "t, line 1: expected KEY=VALUE, found 'Nodes'"),
        ("SwitchName=a Nodes=n1\nNodes=n2", "t, line 2: expected SwitchName=NAME, found 'Nodes=n2'"),
        ("SwitchName=a \\\nNodes=n1\nSwitchName=b \\\nNodes", "t, line 3: expected KEY=VALUE, found 'Nodes'"),
        ("SwitchName=a Nodes=n[1-999999999999]", "t, line 1: nodes: host list range"),
    ],
)
def test_a_mistake_names_its_place(text, said):
    with pytest.raises(UserError) as error:
        read_switches(text, "t")
    assert str(error.value).startswith(said)


def test_an_option_is_read_as_a_file_is():
    assert described({"a": ["n1", "n2"]}, "switches") == (switch("a", ["n1", "n2"]),)
