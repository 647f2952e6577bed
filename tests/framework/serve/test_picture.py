"""What a picture keeps in memory."""

from __future__ import annotations

import pytest

from headway.inquiry.reports import BookingReport
from headway.serve import picture
from headway.serve.picture import Picture
from headway.service.changes import Booked


def test_what_is_in_memory_once_is_forgotten_when_nodes_come_and_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picture, "_SAME", 100)
    kept = Picture()
    for n in range(1000):
        row = BookingReport("a", "p", 1, 0.0, 1.0, "ann", placement=((f"cloud{n}", 1),))
        kept.fold(Booked("p", 0, (row,)))
    assert len(kept._pairs) <= 101
    assert kept.bookings["p"][0][0].placement == (("cloud999", 1),)
