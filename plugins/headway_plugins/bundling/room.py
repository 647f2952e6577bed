"""What subjobs could have of a pool at once, as more and more of it is asked for."""

from __future__ import annotations

from headway.model import Request
from headway.state import Job, PoolState, State
from headway_plugins.bundling.slots import Slots, backfillable


class Room:
    """The processors of a pool: how many are free, how many jobs have, and what the head of the queue may
    claim of them."""

    def __init__(self, pool: PoolState, state: State) -> None:
        self._pool, self._state = pool, state
        #: Processors that are free and not asked for.
        self.free = state.free_in(pool)
        self._ends = [(end, processors) for end, _, processors, _ in state.entries_in(pool)]
        queue = pool.domain.queue
        self._head = state.most_in(pool, queue[0]) or None if queue else None
        self._slots: Slots | None = None

    def slots(self) -> Slots:
        """What could start behind the whole queue."""
        if self._slots is None:
            self._slots = backfillable(self._state.now, self.free, self._head, self._ends)
        return self._slots

    def give(self, job: Job, request: Request) -> None:
        """A subjob of a job, which is of this pool or of another of its domain, was asked for."""
        taken = min(request.processors, self._state.most_in(self._pool, job))
        if taken:
            self.free = max(self.free - taken, 0)
            self._ends.append((self._state.now + request.walltime, taken))
            self._slots = None
