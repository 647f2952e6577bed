"""The jobs that wait, counted by pool and reason: all of them at once, now and then."""

from __future__ import annotations

from collections import Counter

from headway.state import State, Status
from headway.state.reasons import reason_of

#: Of a job in its queue: a plugin stopped its last start; its policy has it in the queue.
VETO, QUEUE = "veto", "queue"

_PENDING, _WAITING = Status.PENDING, Status.WAITING


def count_waiting(state: State) -> tuple[Counter[tuple[str, str]], Counter[str]]:
    """(Pool, reason) -> jobs, and user -> jobs. The reasons are those of :mod:`headway.state.reasons` and, of
    jobs in their queue, :data:`VETO` and :data:`QUEUE`."""
    reasons: Counter[tuple[str, str]] = Counter()
    users: Counter[str] = Counter()
    for job in state.jobs.values():
        status = job.status
        if status is _PENDING:
            reason = VETO if job.veto else QUEUE
        elif status is _WAITING:
            found = reason_of(state, job)
            reason = QUEUE if found is None else found.name
        else:
            continue
        reasons[job.pool.name, reason] += 1
        users[job.user] += 1
    return reasons, users
