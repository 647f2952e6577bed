"""What an operator should know that is not headway's doing: counted, with the latest of each kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from headway.adapter import Oddity


class Oddities:
    """Counts what is odd, by kind. Written by one thread, read by any."""

    def __init__(self, cluster: str, clock: Callable[[], float]) -> None:
        self._cluster = cluster
        self._clock = clock
        self._seen: dict[str, Oddity] = {}

    def saw(self, what: str, detail: str) -> None:
        """One more of the kind ``what``."""
        known = self._seen.get(what)
        now = self._clock()
        if known is None:
            seen = Oddity(self._cluster, what, 1, now, detail)
        else:
            seen = msgspec.structs.replace(known, count=known.count + 1, last=now, detail=detail)
        self._seen = {**self._seen, what: seen}

    def shown(self) -> Sequence[Oddity]:
        """All kinds that were seen."""
        return tuple(self._seen.values())
