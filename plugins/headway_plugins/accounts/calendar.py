"""When usage is forgotten: at the beginning of a day, week (Sunday), month, quarter or year."""

from __future__ import annotations

import datetime
import zoneinfo
from typing import Literal

Period = Literal["none", "daily", "weekly", "monthly", "quarterly", "yearly"]


def period_begin(time: float, period: Period, zone: zoneinfo.ZoneInfo) -> float:
    """When the period began in which ``time`` lies; both in seconds since the epoch. Not for "none"."""
    day = datetime.datetime.fromtimestamp(time, zone).replace(hour=0, minute=0, second=0, microsecond=0)
    if period == "weekly":
        day -= datetime.timedelta(days=(day.weekday() + 1) % 7)
    elif period == "monthly":
        day = day.replace(day=1)
    elif period == "quarterly":
        day = day.replace(day=1, month=day.month - (day.month - 1) % 3)
    elif period == "yearly":
        day = day.replace(day=1, month=1)
    return day.timestamp()


def next_period(time: float, period: Period, zone: zoneinfo.ZoneInfo) -> float:
    """When the next period begins."""
    begin = datetime.datetime.fromtimestamp(period_begin(time, period, zone), zone)
    days = {"daily": 1, "weekly": 7, "monthly": 31, "quarterly": 92, "yearly": 366}[period]
    # At noon, so that an hour that a clock is put on or back does not end in another day.
    inside = begin.replace(hour=12) + datetime.timedelta(days=days)
    return period_begin(inside.timestamp(), period, zone)
