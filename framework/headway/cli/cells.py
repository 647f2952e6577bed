"""What columns of jobs hold: reasons, spans, moments and names in few characters, and how jobs are sorted."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from headway.cli.printable import printable

if TYPE_CHECKING:
    from headway.inquiry.reports import JobReport

NEVER = float("inf")
#: Characters of a user's name or a pool's name, and of a job's id, that are shown where lines are short.
NAME_WIDTH, ID_WIDTH = 10, 14
#: How a sorted list compares jobs; beside it the daemon's order decides, so "order" compares nothing.
SORTS: dict[str, Callable[[JobReport], Any]] = {
    "order": lambda job: 0,
    "start": lambda job: or_never(job.started if job.started is not None else job.planned_start),
    "submitted": lambda job: job.submitted,
    "size": lambda job: -job.processors,
    "limit": lambda job: or_never(job.limit),
    "user": lambda job: job.user,
}
#: What jobs can be, as the daemon names it.
STATUSES = ("pending", "waiting", "starting", "running", "suspended")


def reason(job: JobReport) -> str:
    """Why it waits, in a few words."""
    if not job.waits_because:
        return ""
    others = ", ".join(short(one, ID_WIDTH) for one in job.waits_for[:1])
    more = f" +{len(job.waits_for) - 1}" if len(job.waits_for) > 1 else ""
    return f"{job.waits_because}{f' ({others}{more})' if others else ''}"


def span(seconds: float | None) -> str:
    """Seconds in few characters: ``45s``, ``30m``, ``2h30``, ``3d`` or ``3d12h``."""
    if seconds is None:
        return "none"
    if seconds < 60:
        return f"{seconds:.0f}s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes}m"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours}h{minutes:02}" if minutes else f"{hours}h"
    days, hours = divmod(hours, 24)
    return f"{days}d{hours}h" if hours else f"{days}d"


def moment(seconds: float | None, now: float) -> str:
    """A time by the local clock: of today without its day, of this year without its year."""
    if seconds is None:
        return "-"
    try:
        at, today = datetime.fromtimestamp(seconds), datetime.fromtimestamp(now)
    except (ValueError, OverflowError, OSError):
        return "-"
    if at.date() == today.date():
        return at.strftime("%H:%M")
    return at.strftime("%m-%d %H:%M") if abs(seconds - now) < 180 * 86400 else at.strftime("%Y-%m-%d")


def short(text: str, most: int) -> str:
    """Users' text in one line, cut to its column."""
    shown = printable(text).replace("\n", " ").replace("\t", " ")
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"


def or_never(seconds: float | None) -> float:
    return NEVER if seconds is None else seconds
