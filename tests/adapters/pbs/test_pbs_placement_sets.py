"""PBS's placement sets as switches."""

from __future__ import annotations

import dataclasses

import msgspec
import pytest
from pbs_recorded import NODES, SITE, job, read

from headway.model import NodeDescription, SwitchDescription
from headway_adapters.pbs.placement_sets import group_keys, leaf_key, placement_sets


def nodes(**features: tuple[str, ...]) -> dict[str, NodeDescription]:
    return {name: NodeDescription(name, 4, features=has) for name, has in features.items()}


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        ({"node_group_enable": "True", "node_group_key": "switch"}, ("switch",)),
        ({"node_group_enable": "True", "node_group_key": '"switch, rack"'}, ("switch", "rack")),
        ({"node_group_enable": "False", "node_group_key": "switch"}, ()),
        ({"node_group_key": "switch"}, ()),
        ({"node_group_enable": "True"}, ()),
    ],
)
def test_the_keys_of_the_server(server, expected):
    assert group_keys(server) == expected


def test_sets_of_two_resources_are_two_levels():
    found = placement_sets(
        ("rack", "switch", "nothing"),
        nodes(
            a=("switch=s1", "rack=r1"), b=("switch=s1", "rack=r1"), c=("switch=s2", "rack=r1"),
            d=("switch=s3", "rack=r2"), e=("rack=r2", "fast"), f=("fast",),
        ),
    )  # fmt: skip
    assert found == (
        SwitchDescription("switch=s1", ("a", "b")),
        SwitchDescription("switch=s2", ("c",)),
        SwitchDescription("switch=s3", ("d",)),
        SwitchDescription("rack=r1", (), ("switch=s1", "switch=s2")),
        SwitchDescription("rack=r2", ("e",), ("switch=s3",)),
    )


def test_a_vnode_of_several_sets_is_in_the_first():
    found = placement_sets(("switch",), nodes(a=("switch=s1", "switch=s2"), b=("switch=s2",)))
    assert found == (SwitchDescription("switch=s1", ("a",)), SwitchDescription("switch=s2", ("b",)))


def test_without_keys_there_are_no_switches():
    assert placement_sets((), nodes(a=("switch=s1",))) == ()


def test_the_resource_with_the_most_values_has_the_leaf_switches():
    vnodes = nodes(a=("switch=s1", "rack=r1"), b=("switch=s2", "rack=r1"))
    assert leaf_key(("rack", "switch"), vnodes) == "switch"
    assert leaf_key(("other",), vnodes) == leaf_key((), vnodes) == ""


def grouped(place: str, *keys: str) -> tuple[int, set[str]]:
    """The bound on switches of a job with that place, and what is noted."""
    vnodes = {
        name: msgspec.structs.replace(node, features=(*node.features, f"switch=s{number % 2}"))
        for number, (name, node) in enumerate(NODES.nodes.items())
    }
    notes: set[str] = set()
    grouped_nodes = dataclasses.replace(NODES, nodes=vnodes)
    site = dataclasses.replace(SITE, group_keys=keys)
    found = read({"1.s": job(place=place)}, nodes=grouped_nodes, site=site, notes=notes)
    (one,) = found.jobs.values()
    return one.job.request.switches, notes


@pytest.mark.parametrize(
    ("place", "keys", "switches", "noted"),
    [
        ("free:group=switch", ("switch",), 1, ""),
        ("scatter:excl:group=switch", ("rack", "switch"), 1, ""),
        ("free", ("switch",), 0, ""),
        (
            "free:group=rack",
            ("switch",),
            0,
            "place=group=rack is not kept: headway looks at the groups of switch",
        ),
        ("free:group=switch", (), 0, "node_group_key, which names none"),
    ],
)
def test_a_group_of_the_leaf_switches_is_a_bound_of_one(place, keys, switches, noted):
    bound, notes = grouped(place, *keys)
    assert bound == switches
    assert any(noted in note for note in notes) if noted else not notes
