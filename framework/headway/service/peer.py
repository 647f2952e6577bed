"""The user that asks."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Peer:
    """The asking user, as the kernel says."""

    user: str
    operator: bool = False
