"""What a job's planned start is worth, and what would let it start now, in sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from headway.inquiry.reports import PlanAccuracy, PlanHistory, SoonerReport

#: Changes of a planned start that are told, the last ones.
_TOLD = 4


def history_lines(history: PlanHistory, clock: Callable[[float], str]) -> Iterator[str]:
    """When a job's start was planned first, and how it changed."""
    first, noted = clock(history.first), clock(history.noted)
    since = f" (nothing is known of before {clock(history.since)})" if history.noted <= history.since else ""
    if not history.changes:
        yield f"Its planned start has stood since {noted}{since}."
        return
    times = "once" if history.changes == 1 else f"{history.changes} times"
    yield f"Its start was first planned at {noted}, for {first}{since}; that has changed {times} since."
    told = history.latest[-_TOLD:]
    at = len(history.latest) - len(told)
    # Of changes between the first and the ones on record nothing is known.
    gap = history.changes > len(history.latest)
    before = history.latest[at - 1].start if at else (None if gap else history.first)
    for change in told:
        moved = "" if before is None else f", {_moved(change.start - before)}"
        yield f"At {clock(change.at)} it became {clock(change.start)}{moved}."
        before = change.start


def accuracy_line(accuracy: PlanAccuracy) -> str:
    """How good planned starts were in a pool."""
    said = (
        f"Of the last {accuracy.jobs} jobs of pool {accuracy.pool!r} that began with a planned start, half "
        f"began within {_span(accuracy.half)} of the first one, and 90 % within {_span(accuracy.most)}"
    )
    if accuracy.half_at_hour is not None and accuracy.most_at_hour is not None:
        said += (
            f"; of what was planned an hour before the start, within {_span(accuracy.half_at_hour)} and "
            f"{_span(accuracy.most_at_hour)}"
        )
    return f"{said}."


def sooner_line(found: Sequence[SoonerReport]) -> str:
    """What would let a job start now; "" if nothing is known to."""
    if not found:
        return ""
    return f"By this plan it would fit now {', or '.join(map(_change, found))}."


def _change(one: SoonerReport) -> str:
    if one.change == "limit" and one.limit is not None:
        return f"with a limit of at most {_span(one.limit)}"
    if one.change == "size":
        nodes = f"{one.nodes} node{'s' if one.nodes > 1 else ''} ({one.processors} processors)"
        return f"on {nodes}" if one.nodes else f"on {one.processors} processors"
    if one.change == "feature":
        return f"without the feature {one.feature!r}"
    if one.change == "resource":
        return f"with {one.resource!r} instead"
    return f"in pool {one.pool!r}, if its user may use that"


def _moved(seconds: float) -> str:
    return f"{_span(abs(seconds))} {'later' if seconds > 0 else 'earlier'}"


def _span(seconds: float) -> str:
    """``45 s``, ``12 min``, ``3 h 05 min`` or ``2 d 4 h``."""
    if seconds < 59.5:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} h {minutes:02} min" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if hours else f"{days} d"
