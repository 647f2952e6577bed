"""What LSF's hosts have left. ``brun`` puts any number of jobs on a full host, so this is asked first.

Each tier has all slots of a host: one process in front and one in the background on each. A host that
somebody has whole has none left, in neither tier.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headway_adapters.polling.agents import BACKGROUND, FOREGROUND


class Room:
    """Free slots by tier and host."""

    def __init__(self, slots: Mapping[str, int]) -> None:
        """``slots``: those of the usable hosts, all of them."""
        self._free = {FOREGROUND: dict(slots), BACKGROUND: dict(slots)}

    def free(self, host: str, tier: str) -> int:
        """Slots that are left; 0 on a host that is not usable."""
        return self._free[tier].get(host, 0)

    def occupy(self, placement: Iterable[tuple[str, int]], tier: str, *, whole: bool) -> None:
        """A job has these slots; ``whole``: and its hosts for itself alone."""
        for host, count in placement:
            for each, free in self._free.items():
                if host in free and (whole or each == tier):
                    free[host] = 0 if whole else free[host] - count
