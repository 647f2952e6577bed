"""Which process of an application runs on which processor, and which of them a bulk migration moves.

The paper shows a case of it (Figure 2); this module reproduces it. Processes are numbered from 1. Of q
processors each has floor(P_t / q) processes, and the first P_t mod q have a further process.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple, TypeVar

Processor = TypeVar("Processor", bound=Hashable)


class Move(NamedTuple):
    """A process that goes from a processor to another processor."""

    process: int
    source: Hashable
    target: Hashable


def _targets(processes: int, processors: int) -> list[int]:
    each, more = divmod(processes, processors)
    return [each + (at < more) for at in range(processors)]


def spread(processes: int, processors: Sequence[Processor]) -> dict[Processor, tuple[int, ...]]:
    """The first placement: process i on processor (i - 1) mod q, in the order given.

    Raises ValueError without processors.
    """
    if not processors:
        raise ValueError("expected at least one processor, found none")
    count = len(processors)
    return {processor: tuple(range(at + 1, processes + 1, count)) for at, processor in enumerate(processors)}


def redistribute(
    layout: dict[Processor, tuple[int, ...]],
    joining: Iterable[Processor] = (),
    leaving: Iterable[Processor] = (),
) -> tuple[dict[Processor, tuple[int, ...]], list[Move]]:
    """The placement after processors joined, at the end of the order, and other processors left; and the
    moves to it, by process.

    Processors above their share give their highest processes to the processors that join, each filled up
    before the next, then to old processors below their share. Processes of processors that leave go, in their
    order, each to the processor with the fewest processes, the first on ties.

    Raises ValueError for a processor that joins twice, leaves without being there, or is the last to leave.
    """
    held = {processor: list(processes) for processor, processes in layout.items()}
    new = list(joining)
    for processor in new:
        if processor in held:
            raise ValueError(f"processor {processor!r} is in the bundle already")
        held[processor] = []
    if new:
        _expand(held, len(held) - len(new))
    gone = list(leaving)
    orphans: list[int] = []
    for processor in gone:
        if processor not in held:
            raise ValueError(f"processor {processor!r} is not in the bundle")
        orphans += held.pop(processor)
    if gone:
        if not held:
            raise ValueError("all processors leave; expected at least one to stay")
        for process in sorted(orphans):
            min(held.values(), key=len).append(process)
    before = {process: processor for processor, processes in layout.items() for process in processes}
    after = {process: processor for processor, processes in held.items() for process in processes}
    moves = [Move(p, before[p], after[p]) for p in sorted(before) if before[p] != after[p]]
    return {processor: tuple(sorted(processes)) for processor, processes in held.items()}, moves


def _expand(held: dict[Processor, list[int]], old: int) -> None:
    """Bring all processors to their share; the first ``old`` were there before."""
    loads = list(held.values())
    targets = _targets(sum(map(len, loads)), len(loads))
    surplus: list[int] = []
    for load, target in zip(loads, targets, strict=True):
        load.sort()
        surplus += load[target:]
        del load[target:]
    surplus.sort()
    at = 0
    for index in [*range(old, len(loads)), *range(old)]:
        room = targets[index] - len(loads[index])
        if room > 0:
            loads[index] += surplus[at : at + room]
            at += room
