"""A long run's decisions: packed, and read as they were."""

from __future__ import annotations

import math

import pytest

from headway.decisions import Reserve, Start
from headway.model import Reservation
from headway.results import DecisionRecord
from headway.results.decision_log import DecisionLog

RECORDS = [
    DecisionRecord(0.0, Start("1", (("n1", 2), ("n\udc80", 1)), "first in the queue")),
    DecisionRecord(0.5, Start("2", reason="backfilled", frequency=2e9)),
    DecisionRecord(1.0, Reserve(Reservation("r", 1.0, math.inf, users=("u",))), False, "no room"),
    DecisionRecord(2.0, Start("3")),
    DecisionRecord(math.inf, Start("4")),
]


@pytest.mark.parametrize("count", range(len(RECORDS) + 1))
def test_what_is_packed_comes_back_as_it_was(count: int) -> None:
    log = DecisionLog(block=2)
    for record in RECORDS[:count]:
        log.append(record)
    expected = RECORDS[:count]
    assert (len(log), list(log)) == (count, expected)
    assert [log[at] for at in range(-count, count)] == [expected[at] for at in range(-count, count)]
    assert (log[1:4], log[::-1]) == (expected[1:4], expected[::-1])
    with pytest.raises(IndexError):
        log[count]
