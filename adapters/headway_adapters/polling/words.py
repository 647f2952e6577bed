"""What may stand in a command: the checks that every writer makes, whatever its system's commands are.

Names, ids and times come from users, plugins and the batch system. Each is checked here, in full, before
it becomes a word of an argument vector; what does not pass raises :class:`Unfit`.
"""

from __future__ import annotations

import math
import re

from headway.errors import Failure

Argv = tuple[str, ...]

#: Ten years: a longer limit is a mistake.
_LONGEST = 366 * 86400 * 10


class Unfit(Failure):
    """A decision that cannot be written as a command."""


_SIGNAL = re.compile(r"[A-Z][A-Z0-9]{1,9}")


def signal_name(name: str) -> str:
    """A signal's name without SIG, such as "USR1", checked."""
    return matching(name, _SIGNAL, "the name of a signal")


def matching(text: str, pattern: re.Pattern[str], what: str) -> str:
    """``text``, which ``pattern`` matches as a whole; ``what`` it should be completes "is not ..."."""
    if pattern.fullmatch(text) is None:
        raise Unfit(f"{text!r} is not {what}")
    return text


def time_limit(seconds: float) -> float:
    """``seconds``, which can be a time limit."""
    if not math.isfinite(seconds) or seconds <= 0 or seconds > _LONGEST:
        raise Unfit(f"{seconds!r} seconds is not a time limit")
    return seconds


def point_in_time(seconds: float) -> float:
    """``seconds`` since the epoch, which can be a point in time."""
    if not math.isfinite(seconds) or not 0 <= seconds < 1 << 33:
        raise Unfit(f"{seconds!r} is not a point in time")
    return seconds
