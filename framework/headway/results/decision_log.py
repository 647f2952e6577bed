"""The decisions of a run, of which there may be very many, each with a sentence of its own.

All but the latest are packed: they take a fraction of the memory, and are read again few times.
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Iterator, Sequence
from typing import overload

from headway.results.results import DecisionRecord

#: Records that are packed together. A run with fewer decisions packs none.
_BLOCK = 65_536


class DecisionLog(Sequence[DecisionRecord]):
    """Decisions in the order in which they were taken. Best read from the first to the last."""

    def __init__(self, block: int = _BLOCK) -> None:
        """``block``: how many are packed together."""
        self._block = block
        self._packed: list[bytes] = []
        self._latest: list[DecisionRecord] = []

    def append(self, record: DecisionRecord) -> None:
        """Add one."""
        latest = self._latest
        latest.append(record)
        if len(latest) == self._block:
            self._packed.append(zlib.compress(pickle.dumps(latest, pickle.HIGHEST_PROTOCOL), 1))
            latest.clear()

    def __len__(self) -> int:
        return len(self._packed) * self._block + len(self._latest)

    def __iter__(self) -> Iterator[DecisionRecord]:
        for at in range(len(self._packed)):
            yield from self._unpacked(at)
        yield from self._latest

    @overload
    def __getitem__(self, index: int) -> DecisionRecord: ...
    @overload
    def __getitem__(self, index: slice) -> list[DecisionRecord]: ...
    def __getitem__(self, index: int | slice) -> DecisionRecord | list[DecisionRecord]:
        if isinstance(index, slice):
            return list(self)[index]
        at = range(len(self))[index]
        block, place = divmod(at, self._block)
        return self._unpacked(block)[place] if block < len(self._packed) else self._latest[place]

    def _unpacked(self, at: int) -> list[DecisionRecord]:
        records: list[DecisionRecord] = pickle.loads(zlib.decompress(self._packed[at]))
        return records
