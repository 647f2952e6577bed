"""Best fit: the nodes with the least left over, so that emptier nodes stay whole for larger jobs."""

from __future__ import annotations

import numpy as np

from headway.hookspecs import Plugin, hookimpl
from headway.model import Placement
from headway.plugins import Again, Traits
from headway.resources import Offer


class BestFit(Plugin):
    """Place jobs on the fullest nodes that can host them."""

    traits = Traits(ask_again=Again.DOMAIN)

    @hookimpl
    def place(self, offer: Offer) -> Placement | None:
        order = np.argsort(offer.free.processors[offer.feasible], kind="stable")
        return offer.take(offer.feasible[order])
