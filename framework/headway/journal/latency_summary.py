"""What is said of measured latencies: to a person, and over the socket."""

from __future__ import annotations

import msgspec

#: Of :class:`LatencySummary`.
QUANTILES = (0.5, 0.95, 1.0)


class LatencySummary(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a person wants to know: how many were measured, and their :data:`QUANTILES` in seconds."""

    starts: int = 0
    start: tuple[float, ...] = ()
    ends: int = 0
    end: tuple[float, ...] = ()

    def __str__(self) -> str:
        """For a person, in a line; "": nothing was measured."""
        return "; ".join(
            f"{what} half within {half:.1f} s, 95 % within {most:.1f} s, longest {longest:.1f} s ({count})"
            for what, count, (half, most, longest) in (
                ("from a decision to the start", self.starts, self.start or (0, 0, 0)),
                ("from an end until it is known", self.ends, self.end or (0, 0, 0)),
            )
            if count
        )
