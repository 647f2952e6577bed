"""A shadow report in words: what a reader needs before any table."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from headway.report.quantities import duration, number, share
from headway.shadow.comparing import enough
from headway.shadow.findings import Findings
from headway.shadow.intervals import FEWEST, Compared, Estimate


def moment(time: float) -> str:
    """A moment, local, with its zone."""
    return datetime.fromtimestamp(time).astimezone().strftime("%Y-%m-%d %H:%M %Z")


def interval(found: Estimate, write: Callable[[float], str], floor: float = -float("inf")) -> str:
    """``"40 to 60 s"`` in the quantity's words; "": there is none. ``floor``: no value lies below it."""
    if found.low is None or found.high is None:
        return ""
    return f"{write(max(found.low, floor))} to {write(max(found.high, floor))}"


def summary(found: Findings) -> list[str]:
    """The report in sentences, the most important ones."""
    if not found.jobs:
        return [
            f"The record of cluster {found.cluster} from {moment(found.begin)} to {moment(found.end)} holds "
            "no job that can be compared. What was left out, and why, is listed below."
        ]
    said = [
        f"From {moment(found.begin)} to {moment(found.end)} headway watched cluster {found.cluster} while "
        f"its batch system scheduled it. {number(found.jobs)} jobs are compared: as the batch system ran "
        f"them, and as headway ({found.policy}) would have run them, with the same arrivals and runtimes, in "
        f"{number(found.draws)} emulation{'s' if found.draws > 1 else ''}.",
        _changed("mean wait", found.wait, duration, "shorter", "longer"),
        _changed("mean bounded slowdown", found.slowdown, number, "less", "more", 1.0),
        _changed("share of the processors in use", found.use, share, "lower", "higher", write_change=_points),
        _verdict(found),
    ]
    return [one for one in said if one]


def _changed(
    what: str, found: Compared, write: Callable[[float], str], less: str, more: str, floor: float = 0.0,
    write_change: Callable[[float], str] | None = None,
) -> str:  # fmt: skip
    """The batch system's figure, headway's, and the difference, with their intervals."""
    theirs, ours, change = found.system, found.headway, found.difference
    if theirs.mean is None or ours.mean is None or change.mean is None:
        return ""
    words = f"The {what} was {write(theirs.mean)}; with headway it would have been {write(ours.mean)}"
    if between := interval(ours, write, floor):
        words += f" (95 % interval {between})"
    write = write_change or write
    words += f": {write(abs(change.mean))} {less if change.mean < 0 else more}"
    if change.low is not None and change.high is not None:
        words += f" ({_between(change.low, change.high, write, less, more)})"
    return words + "."


def _points(value: float) -> str:
    return f"{100 * value:.1f} percentage points"


def _between(low: float, high: float, write: Callable[[float], str], less: str, more: str) -> str:
    """An interval of a difference: ``"5 s to 9 s shorter"``, ``"5 s shorter to 2 s longer"``."""
    if low >= 0:
        return f"{write(low)} to {write(high)} {more}"
    if high <= 0:
        return f"{write(-high)} to {write(-low)} {less}"
    return f"{write(-low)} {less} to {write(high)} {more}"


def _verdict(found: Findings) -> str:
    """What the interval of the wait's difference says."""
    if not enough(found):
        return (
            f"There are too few jobs for intervals ({found.jobs}; it takes {FEWEST}), so none are given: "
            "these means may be chance. Watch for longer."
        )
    change = found.wait.difference
    if change.low is None or change.high is None:
        return ""
    if change.low <= 0 <= change.high:
        said = "The interval of the difference in waits includes zero: no change of the wait is shown."
    elif change.high < 0:
        said = (
            "The whole interval of the difference lies below zero: headway would have made the wait shorter."
        )
    else:
        said = (
            "The whole interval of the difference lies above zero: headway would have made the wait longer."
        )
    if change.correlated:
        said += (
            " Neighbouring batches of jobs are alike even if there are only ten, so the true interval is "
            "wider than the one given: watch for longer."
        )
    return said


def delays(found: Findings) -> str:
    """How long starts and ends take in the emulation, and whence that is known."""
    delay = found.delay
    start = f"a start takes {delay.start:.1f} s"
    start += f" ({delay.starts} measured)" if delay.starts else " (assumed: headway has started nothing here)"
    end = f"an end is known after {delay.end:.1f} s"
    end += f" ({delay.ends} measured)" if delay.ends else " (not measured)"
    return f"In the emulation {start}, {end} (medians); from {delay.whence}."
