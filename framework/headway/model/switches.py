"""How nodes are connected: switches, and what hangs on each."""

from __future__ import annotations

import msgspec


class SwitchDescription(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A switch of the network, or whatever else groups nodes that are close to each other.

    As its source describes it: nodes and switches that it names may not exist, and there may be circles.
    """

    name: str
    #: The nodes that are connected to it directly; a switch that has some is a *leaf switch*.
    nodes: tuple[str, ...] = ()
    #: The switches below it.
    switches: tuple[str, ...] = ()
