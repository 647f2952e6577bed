"""What becomes due by the clock alone: begin times, reservations, retries, and what plugins asked for."""

from __future__ import annotations

from heapq import heappush

from headway.state.facts import Facts
from headway.state.records import Job, PoolState


def next_wakeup(state: Facts) -> float | None:
    """When something becomes due by the clock alone (begin times, reservations, retries)."""
    return state.wakeups[0][0] if state.wakeups else None


def wake_at(state: Facts, time: float, what: PoolState | Job) -> None:
    """Look at a pool or a waiting job again at ``time`` even if nothing happens."""
    state.seq += 1
    heappush(state.wakeups, (time, state.seq, what))
