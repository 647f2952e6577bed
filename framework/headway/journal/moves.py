"""Moves that were decided and whose end is not recorded.

A batch system does not know that a job is being moved. When a daemon dies meanwhile only the journal
knows; its successor gets it from here.
"""

from __future__ import annotations

from collections.abc import Iterable

from headway.decisions import Checkpoint, Decision, Migrate
from headway.events import DecisionFailed, JobCheckpointed, JobEnded, JobMigrated, JobRequeued, JobSubmitted
from headway.journal.records import HistoryEntry

_ENDINGS = (JobMigrated, JobCheckpointed, JobEnded, JobRequeued)


def open_move(history: Iterable[HistoryEntry]) -> Decision | None:
    """The move that a job's ``history``, in order, leaves open; None if there is none.

    A run that came later has taken it up already: it was shown the job anew.
    """
    found: Decision | None = None
    for entry in history:
        what = entry.what
        if isinstance(what, Migrate | Checkpoint):
            if entry.outcome is None or entry.outcome.accepted:
                found = what
        elif (
            isinstance(what, _ENDINGS)
            or (isinstance(what, DecisionFailed) and isinstance(what.decision, Migrate | Checkpoint))
            or isinstance(what, JobSubmitted)
        ):
            found = None
    return found
