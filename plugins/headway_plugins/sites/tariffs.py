"""What a processor-hour costs at a site, or what it emits, over time.

A number holds always. A CSV file has the columns ``time`` and ``price`` or ``carbon``, as the file of prices
of the power cap (:mod:`headway_plugins.energy.cap_over_time`). A value holds until the next one, the last for
ever, and the first holds before its time, too. Times are seconds since the epoch.
"""

from __future__ import annotations

import zoneinfo
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from headway.errors import UserError
from headway.inputs import text_of
from headway_plugins.energy.cap_over_time import read_prices

_INF = float("inf")


class Tariff:
    """A value that changes at some moments."""

    def __init__(self, steps: Sequence[tuple[float, float]]) -> None:
        """``steps``: at least one ``(since, value)``, in order of time."""
        self._times = [time for time, _ in steps]
        self._values = [value for _, value in steps]
        lasting = [after - before for before, after in zip(self._times, self._times[1:], strict=False)]
        #: The integral from the first time to each time.
        self._sums = [0.0, *accumulate(map(float.__mul__, map(float, self._values), map(float, lasting)))]

    @classmethod
    def constant(cls, value: float) -> Tariff:
        """The same value always."""
        return cls([(0.0, value)])

    def at(self, moment: float) -> float:
        """The value at a moment."""
        return self._values[max(bisect_right(self._times, moment) - 1, 0)]

    def integral(self, begin: float, end: float) -> float:
        """Value times seconds from ``begin`` to ``end``."""
        return self._until(end) - self._until(begin)

    def mean(self, begin: float, end: float) -> float:
        """The mean from ``begin`` to ``end``; of no time the value at ``begin``."""
        return self.integral(begin, end) / (end - begin) if end > begin else self.at(begin)

    def next_change(self, moment: float) -> float:
        """When there is another value next; infinity: never."""
        at = bisect_right(self._times, moment)
        return self._times[at] if at < len(self._times) else _INF

    def _until(self, moment: float) -> float:
        at = max(bisect_right(self._times, moment) - 1, 0)
        return self._sums[at] + self._values[at] * (moment - self._times[at])


def read_tariffs(
    given: Mapping[str, float | Path], column: str, zone: str, context: Mapping[str, Any] | None
) -> dict[str, Tariff]:
    """The tariff of each site, of a number or a file. Raises :class:`UserError` for a file that is wrong."""
    found = {}
    for site, one in given.items():
        if isinstance(one, int | float):
            found[site] = Tariff.constant(float(one))
            continue
        of = f"plugin 'follow': {column}: {site}"
        beside = (context or {}).get("beside")
        path = beside / one if beside is not None else one
        try:
            text = text_of(one, context)
        except (OSError, UnicodeDecodeError) as error:
            problem = getattr(error, "strerror", None) or error
            raise UserError(f"{of}: {path} cannot be read: {problem}") from error
        found[site] = Tariff(read_prices(path, text, zoneinfo.ZoneInfo(zone), column, of))
    return found
