"""When a site starts jobs, by its calendar."""

from __future__ import annotations

import datetime
import zoneinfo
from bisect import bisect_right

from headway.model.sites import WEEK, Site

_INF = float("inf")


def opens_and_closes(site: Site, now: float) -> tuple[bool, float]:
    """Whether the site starts jobs at this moment, and when that changes (seconds since the epoch; infinite:
    never).

    The calendar goes by local time: where the clock is put on or back, spans are shorter or longer.
    """
    if not site.calendar:
        return True, _INF
    zone = zoneinfo.ZoneInfo(site.zone)
    local = datetime.datetime.fromtimestamp(now, zone)
    second = local.weekday() * 86400 + local.hour * 3600 + local.minute * 60 + local.second
    at = second + local.microsecond / 1e6
    is_open, border = _of_week(site.calendar, at)
    if border == _INF:
        return is_open, _INF
    then = now + (border - at)
    if _offset(zone, now) == _offset(zone, then):
        return is_open, then
    # What the clock says jumps before that.
    jump = _change_of_clock(zone, now, then)
    open_then, border = opens_and_closes(site, jump)
    return is_open, (border if open_then == is_open else jump)


def _of_week(calendar: tuple[tuple[int, int], ...], at: float) -> tuple[bool, float]:
    """Whether a moment of the week lies in a span, and when that changes; the latter may be next week."""
    index = bisect_right(calendar, (at, _INF)) - 1
    whole_week = calendar == ((0, WEEK),)
    if whole_week:
        return True, _INF
    if index >= 0 and at < calendar[index][1]:
        end = calendar[index][1]
        first_begin, first_end = calendar[0]
        return True, (WEEK + first_end if end == WEEK and first_begin == 0 else end)
    following = index + 1
    return False, (calendar[following][0] if following < len(calendar) else WEEK + calendar[0][0])


def _offset(zone: zoneinfo.ZoneInfo, time: float) -> float:
    offset = datetime.datetime.fromtimestamp(time, zone).utcoffset()
    return 0.0 if offset is None else offset.total_seconds()


def _change_of_clock(zone: zoneinfo.ZoneInfo, before: float, after: float) -> float:
    """The second at which the clock is put on or back, of which there is one between these moments."""
    first = _offset(zone, before)
    low, high = int(before), int(after) + 1
    while high - low > 1:
        middle = (low + high) // 2
        if _offset(zone, middle) == first:
            low = middle
        else:
            high = middle
    return float(high)
