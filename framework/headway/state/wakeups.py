"""What becomes due by the clock alone: begin times, reservations, retries, ends of predictions, and what
plugins asked for."""

from __future__ import annotations

from heapq import heappush

from headway.state.facts import Facts
from headway.state.records import Domain, Job, PoolState


def wake_at(state: Facts, time: float, what: PoolState | Domain | Job) -> None:
    """Look at a pool's domain or a waiting job again at ``time`` even if nothing happens."""
    if not isinstance(what, PoolState | Domain | Job):
        raise TypeError(f"expected a pool (state.pools[NAME]), a domain or a job to wake, found {what!r}")
    state.seq += 1
    if isinstance(what, Domain):
        # The pool may be in a different domain by then.
        what = what.pools[0]
    heappush(state.wakeups, (time, state.seq, what))
