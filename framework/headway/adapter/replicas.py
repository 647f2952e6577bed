"""Copies of datasets that earlier runs knew, and what a cluster can do with datasets."""

from __future__ import annotations

from typing import Literal

import msgspec

from headway.decisions import Copy, Decision, Drop
from headway.model.transfers import Transfers


class KnownReplica(msgspec.Struct, frozen=True):
    """A copy of a dataset as the runs before left it."""

    dataset: str
    site: str
    #: It is there; or it was on its way; or it was being removed.
    state: Literal["there", "copying", "dropping"]
    #: Of a copy on its way: the site that it comes from.
    source: str = ""


def copying_capabilities(transfers: Transfers) -> frozenset[type[Decision]]:
    """The decisions that these commands can carry out."""
    found: set[type[Decision]] = set()
    if transfers.copies:
        found.add(Copy)
    if transfers.drops:
        found.add(Drop)
    return frozenset(found)
