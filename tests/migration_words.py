"""Instructions of migration handlers, in short."""

from __future__ import annotations

from collections.abc import Sequence

from headway.adapter.migration import Instruction, Order, Signal, Work


def names(instructions: Sequence[Instruction]) -> list[str]:
    """Instructions in short: ``requeue``, ``start n2``, ``signal USR1``, ``work dump``, ``over moved``."""
    found = []
    for one in instructions:
        if isinstance(one, Order):
            where = " ".join(node for node, _ in getattr(one.decision, "placement", ()))
            found.append(f"{type(one.decision).__name__.lower()} {where}".strip())
        elif isinstance(one, Signal):
            found.append(f"signal {one.name}")
        elif isinstance(one, Work):
            found.append(f"work {one.task}")
        else:
            found.append(f"over {one.outcome}")
    return found
