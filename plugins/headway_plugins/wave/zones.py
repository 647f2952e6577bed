"""Time zones, night, and the wavezone that jobs are sent to.

D. Zhou, V. Lo: Wave Scheduler. JSSPP 2005, sections 3.2 and 5.1. Times are hours GMT from a midnight on. Time
zone z = 0 to 23 is z hours west of Greenwich, so its local hour is (t - z) mod 24. Night is from midnight to
six ("from 12pm to 6 am" is a slip: the introduction gives 8:00 to 14:00 GMT for Pacific time). A *wavezone*
is one of W equal groups of neighbouring zones; section 5.1 has six groups of four, the example of 3.2 four of
six.
"""

from __future__ import annotations

from enum import StrEnum

from headway.errors import UserError
from headway_plugins.wave.draws import Draws, Hours

ZONES = 24
#: The local hours of night.
NIGHT = range(6)
#: Times that differ by less, in hours, are one: sums of times that meet a whole hour may miss it by rounding.
SAME = 1e-9


class Target(StrEnum):
    """Which wavezone a job is sent to (the rules (a), (b) and (c) of section 5.1)."""

    #: The wavezone whose earliest zone has just entered night.
    JUST_ENTERED = "just-entered"
    #: The wavezone of a random zone that is in night.
    RANDOM_NIGHT = "random-night"
    #: The wavezone with most zones in night; a random one of several.
    MOST_NIGHT = "most-night"


def hour_of(time: Hours) -> int:
    """The whole hour that a time is in; at a whole hour the new one."""
    return int(time + SAME)


def is_night(zone: int, hour: int) -> bool:
    """Whether a zone is in night during an hour GMT."""
    return (hour - zone) % ZONES in NIGHT


def zones_in_night(hour: int) -> list[int]:
    """The zones in night during an hour GMT, ascending; there are always six."""
    return [zone for zone in range(ZONES) if is_night(zone, hour)]


class Wavezones:
    """A division of the zones into equal groups of neighbours."""

    def __init__(self, count: int = 6) -> None:
        """Raises :class:`UserError` for a number that does not divide 24."""
        if count < 1 or ZONES % count:
            raise UserError(f"wavezones: expected a divisor of {ZONES}, found {count}")
        self.count = count
        #: Zones of a wavezone.
        self.size = ZONES // count

    def of(self, zone: int) -> int:
        """The wavezone of a zone."""
        return zone // self.size

    def in_night(self, hour: int) -> list[int]:
        """How many zones of each wavezone are in night."""
        found = [0] * self.count
        for zone in zones_in_night(hour):
            found[self.of(zone)] += 1
        return found

    def target(self, rule: Target, hour: int, draws: Draws) -> int:
        """The wavezone that a search at this hour is for."""
        if rule is Target.JUST_ENTERED:
            return self.of(hour % ZONES)
        if rule is Target.RANDOM_NIGHT:
            nights = zones_in_night(hour)
            return self.of(nights[draws.below(len(nights))])
        counts = self.in_night(hour)
        most = [wavezone for wavezone, count in enumerate(counts) if count == max(counts)]
        return most[draws.below(len(most))] if len(most) > 1 else most[0]
