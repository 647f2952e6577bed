"""What nodes have: arrays of what is free, offers to placement plugins, free capacity over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway.inputs.late import late

if TYPE_CHECKING:
    from headway.resources.free import (
        MANY,
        UNMANAGED,
        Bools,
        Free,
        Ints,
        Located,
        bits,
        gres_on_node,
        layout_is_open,
        memory_on_node,
        nodes_of,
        takes_processors_alone,
    )
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
    "layout_is_open",
    "memory_on_node",
    "next_after",
    "nodes_of",
    "takes_processors_alone",
]

__getattr__ = late(
    __name__,
    {
        ".free": "MANY UNMANAGED Bools Free Ints Located bits gres_on_node layout_is_open "
        "memory_on_node nodes_of takes_processors_alone",
        ".nodes": "NodeTable",
        ".offer": "Nodes Offer",
        ".profile": "Profile next_after",
    },
)
