"""How a run takes decisions to a cluster."""

from __future__ import annotations

import enum


class Mode(enum.StrEnum):
    """What is done with decisions."""

    #: Apply them.
    DRIVE = "drive"
    #: Journal them, apply nothing.
    MONITOR = "monitor"
    #: Apply them to an emulated cluster.
    DRY_RUN = "dry-run"
