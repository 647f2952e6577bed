"""What nodes have: arrays of what is free, offers to placement plugins, free capacity over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway.inputs.late import late

if TYPE_CHECKING:
    from headway.resources.free import (
        UNMANAGED,
        Free,
        gres_on_node,
        gres_on_nodes,
        layout_is_open,
        memory_on_node,
        memory_on_nodes,
        takes_processors_alone,
    )
    from headway.resources.located import Located
    from headway.resources.node_sets import MANY, Bools, Ints, bits, nodes_of
    from headway.resources.nodes import NodeTable
    from headway.resources.offer import Nodes, Offer
    from headway.resources.profile import Profile, next_after

__all__ = [
    "MANY",
    "UNMANAGED",
    "Bools",
    "Free",
    "Ints",
    "Located",
    "NodeTable",
    "Nodes",
    "Offer",
    "Profile",
    "bits",
    "gres_on_node",
    "gres_on_nodes",
    "layout_is_open",
    "memory_on_node",
    "memory_on_nodes",
    "next_after",
    "nodes_of",
    "takes_processors_alone",
]

__getattr__ = late(
    __name__,
    {
        ".free": "UNMANAGED Free gres_on_node gres_on_nodes layout_is_open memory_on_node memory_on_nodes "
        "takes_processors_alone",
        ".located": "Located",
        ".node_sets": "MANY Bools Ints bits nodes_of",
        ".nodes": "NodeTable",
        ".offer": "Nodes Offer",
        ".profile": "Profile next_after",
    },
)
