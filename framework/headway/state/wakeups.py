"""What becomes due by the clock alone: begin times, reservations, retries, ends of predictions, and what
plugins asked for."""

from __future__ import annotations

from heapq import heappush

from headway.state.expectations import next_outlived
from headway.state.facts import Facts
from headway.state.records import Domain, Job, PoolState


def next_wakeup(state: Facts) -> float | None:
    """When something becomes due by the clock alone (begin times, reservations, retries, and jobs that
    outlive what they were predicted)."""
    due = state.wakeups[0][0] if state.wakeups else None
    if state.predict is None:
        return due
    outlived = next_outlived(state)
    if due is None or outlived is None:
        return outlived if due is None else due
    return min(due, outlived)


def wake_at(state: Facts, time: float, what: PoolState | Domain | Job) -> None:
    """Look at a pool's domain or a waiting job again at ``time`` even if nothing happens."""
    state.seq += 1
    if isinstance(what, Domain):
        # It may be another by then.
        what = what.pools[0]
    heappush(state.wakeups, (time, state.seq, what))
