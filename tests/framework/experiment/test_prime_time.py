"""Prime time by the clock of the log's own place."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from headway.experiment.prime_time import prime_time
from headway.workload import Column, Trace
from headway.workload.trace import WIDTH

STOCKHOLM = {"TimeZoneString": "Europe/Stockholm"}


def found(moments: list[datetime], fields: dict[str, str]) -> list[bool] | None:
    """Of jobs that are submitted at these moments, in a trace that begins on 1 July 2002."""
    epoch = int(datetime(2002, 7, 1, tzinfo=ZoneInfo("UTC")).timestamp())
    records = np.full((len(moments), WIDTH), -1.0)
    records[:, Column.SUBMIT] = [moment.timestamp() - epoch for moment in moments]
    prime = prime_time(Trace("t.swf", fields={"UnixStartTime": str(epoch), **fields}, records=records))
    return None if prime is None else prime.tolist()


def at(*time: int) -> datetime:
    return datetime(*time, tzinfo=ZoneInfo("Europe/Stockholm"))  # type: ignore[misc,arg-type]


@pytest.mark.parametrize(
    ("moment", "prime"),
    [
        (at(2002, 7, 5, 7, 59, 59), False),  # a Friday
        (at(2002, 7, 5, 8), True),
        (at(2002, 7, 5, 17, 59, 59), True),
        (at(2002, 7, 5, 18), False),
        (at(2002, 7, 6, 12), False),  # Saturday
        (at(2002, 7, 7, 12), False),
        (at(2002, 7, 8, 8), True),
        (at(2002, 12, 2, 8), True),  # in winter, too
        (at(2002, 12, 2, 7, 59), False),
    ],
)
def test_monday_to_friday_from_8_to_18(moment, prime):
    assert found([moment], STOCKHOLM) == [prime]


def test_a_zone_that_is_not_known_goes_by_its_seconds_and_without_any_there_is_none():
    seven = at(2002, 12, 2, 7, 30)
    assert found([seven], {"TimeZoneString": "Nowhere/Nohow", "TimeZone": "7200"}) == [True]
    assert found([seven], {"TimeZone": "3600"}) == [False]
    assert found([seven], {}) is None
    assert found([seven], {**STOCKHOLM, "UnixStartTime": "-1"}) is None
