"""The intervals in which an application will run and be moved, to its projected completion: equation 3.

Processes leave a subjob together, during its last lambda seconds. Two subjobs that end within lambda of
each other are left in one migration. A departure that would begin after the application's completion is
not planned.
"""

from __future__ import annotations

from collections.abc import Iterable

from headway_plugins.bundling.model import EQUAL, Interval, Member, Model


def plan(
    model: Model, now: float, done: float, members: Iterable[Member], lead: float = 0.0
) -> list[Interval] | None:
    """What is ahead of an application of which the share ``done`` is done, on these subjobs; the last
    interval ends at its projected completion T_c. None: it cannot be completed so.

    ``lead``: seconds of a migration that begins now, 0 for none.
    """
    lasts, least, most = model.migration, model.least, model.processors
    left = sorted(members, key=lambda member: member.end)
    processors = sum(member.processors for member in left)
    intervals = []
    at, remaining = now + lead, 1.0 - done
    if lead > 0:
        intervals.append(Interval(now, at, 0, True))
    first = 0
    while True:
        usable = min(most, processors)
        if usable < least:
            return None
        time = model.time_on(usable)
        completion, end = at + remaining * time, left[first].end
        if completion <= end + EQUAL:
            intervals.append(Interval(at, completion, usable))
            return intervals
        departure = end - lasts
        if departure < at - EQUAL:
            return None
        departure = max(departure, at)
        intervals.append(Interval(at, departure, usable))
        intervals.append(Interval(departure, end, 0, True))
        remaining -= (departure - at) / time
        while first < len(left) and (left[first].end <= end + EQUAL or left[first].end < end + lasts - EQUAL):
            processors -= left[first].processors
            first += 1
        at = end
