"""Prime time: Monday to Friday from 8 to 18 h, by the clock of the place where a log was recorded.

E. Frachtenberg and D. G. Feitelson, "Pitfalls in parallel job scheduling evaluation", JSSPP 2005, pitfall 31:
jobs of the day and of the night should not be averaged together. The hours are our choice.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from headway.workload.trace import Column, Trace

#: Hours of a working day: from the first up to before the second.
BEGIN, END = 8, 18
#: The days before Saturday; Monday is 0.
DAYS = 5
#: Seconds within which a local clock shows one hour: zones are apart by multiples of it.
_QUARTER = 900


def prime_time(trace: Trace) -> NDArray[np.bool_] | None:
    """Which records were submitted in prime time; None where the header does not say when the trace begins
    (``UnixStartTime``) and in which zone (``TimeZoneString``, else the seconds of ``TimeZone``)."""
    zone = zone_of(trace)
    if trace.epoch is None or zone is None:
        return None
    quarters, which = np.unique(
        (trace.records[:, Column.SUBMIT] + trace.epoch) // _QUARTER, return_inverse=True
    )
    prime = np.array([_is_prime(quarter * _QUARTER, zone) for quarter in quarters.tolist()], np.bool_)
    found: NDArray[np.bool_] = prime[which]
    return found


def zone_of(trace: Trace) -> tzinfo | None:
    """The zone of the trace's header; None: it names none that is known."""
    name = trace.fields.get("TimeZoneString", "").strip()
    if name:
        try:
            return ZoneInfo(name)
        except (KeyError, ValueError, OSError):
            # Not of this machine's list of zones: the seconds will do, but for summers.
            pass
    try:
        return timezone(timedelta(seconds=int(trace.fields["TimeZone"])))
    except (KeyError, ValueError):
        return None


def _is_prime(moment: float, zone: tzinfo) -> bool:
    local = datetime.fromtimestamp(moment, UTC).astimezone(zone)
    return local.weekday() < DAYS and BEGIN <= local.hour < END
