"""Advance reservations: capacity promised for a time."""

from __future__ import annotations

import msgspec


class Reservation(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Capacity that is kept free from ``start`` until ``end`` for those it names.

    On a flat pool it takes ``processors``; on a node pool it takes whole ``nodes``.
    A job may use it when it names the reservation (:attr:`JobDescription.reservation`).
    """

    id: str
    #: Absolute seconds; ``end`` is exclusive.
    start: float
    end: float
    pool: str = ""
    processors: int = 0
    nodes: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()
    #: True when headway made it (and so may change or remove it).
    ours: bool = False
    reason: str = ""
