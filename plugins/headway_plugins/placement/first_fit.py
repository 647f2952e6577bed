"""First fit: the first nodes, in the cluster's order, that can host the job."""

from __future__ import annotations

from headway.hookspecs import Plugin, hookimpl
from headway.model import Placement
from headway.plugins import Again, Traits
from headway.resources import Offer


class FirstFit(Plugin):
    """Place jobs on the first nodes that can host them."""

    traits = Traits(ask_again=Again.DOMAIN)

    @hookimpl
    def place(self, offer: Offer) -> Placement | None:
        return offer.take(offer.feasible)
