"""Runs that are over leave no memory behind, however many follow each other."""

from __future__ import annotations

import gc
import weakref

from headway.emulation.collector import quiet_collector


class _State:
    def __init__(self) -> None:
        self.itself = self


def test_what_a_large_run_has_left_is_gone_when_the_next_one_begins():
    with quiet_collector(100_000):
        left = weakref.ref(_State())
    with quiet_collector(1):
        assert left() is None


def test_small_runs_are_cleared_away_together():
    with quiet_collector(100_000):
        pass
    left = []
    for _ in range(6):
        with quiet_collector(10_000):
            left.append(weakref.ref(_State()))
    with quiet_collector(1):
        assert [one() for one in left] == [None] * 6


def test_the_collector_is_afterwards_as_it_was():
    before = gc.get_threshold()
    with quiet_collector():
        assert gc.get_threshold() != before
    assert gc.get_threshold() == before and gc.get_freeze_count() == 0
