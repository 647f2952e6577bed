"""Runs on the emulated cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway.inputs.late import late

if TYPE_CHECKING:
    from headway.emulation.run import emulate, validated_faults

__all__ = ["emulate", "validated_faults"]

__getattr__ = late(
    __name__,
    {
        ".run": "emulate validated_faults",
    },
)
