"""Runs on the emulated cluster."""

from headway.emulation.run import emulate, validated_faults

__all__ = ["emulate", "validated_faults"]
