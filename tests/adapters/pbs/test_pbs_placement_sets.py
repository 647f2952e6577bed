"""PBS's placement sets as switches."""

from __future__ import annotations

import pytest

from headway.model import NodeDescription, SwitchDescription
from headway_adapters.pbs.placement_sets import group_keys, placement_sets


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
