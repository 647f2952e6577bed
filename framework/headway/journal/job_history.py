"""What the journal tells about one job, in the order in which it happened."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from headway.decisions import Start
from headway.events import (
    DecisionFailed,
    Event,
    JobEnded,
    JobReleasing,
    JobRequeued,
    JobStarted,
    JobSubmitted,
    JobSuspended,
)
from headway.journal.records import HistoryEntry

#: What a run tells of a job when it begins: with the time at which it happened, or with its own.
_STATED = (JobSubmitted, JobStarted, JobEnded)
_FOUND = (*_STATED, JobReleasing, JobSuspended)


def told_once(history: Iterable[HistoryEntry]) -> Iterator[HistoryEntry]:
    """A job's history without what a later run only found as it was: each begins with all jobs there are."""
    told: set[tuple[type, float]] = set()
    shown: type | None = None
    run = None
    for entry in history:
        if isinstance(entry.what, Event):
            kind = type(entry.what)
            stated = (kind, entry.time)
            found = run is not None and entry.run_id != run
            if found and kind in _FOUND and (stated in told or kind is shown):
                continue
            if isinstance(entry.what, _STATED):
                told.add(stated)
            shown = kind
        if run is None:
            run = entry.run_id
        yield entry


def last_failure(history: Sequence[HistoryEntry]) -> str:
    """Why a job's last start failed, from its history; "" if nothing became of it since that says otherwise.

    What the daemon learned from it (nodes that the batch system will not have for this job, a pause) a fresh
    look at the cluster does not show.
    """
    for entry in reversed(history):
        what = entry.what
        if isinstance(what, DecisionFailed) and isinstance(what.decision, Start):
            return what.message
        if isinstance(what, Start | JobStarted | JobEnded | JobRequeued):
            return ""
    return ""
