"""What the journal tells about one job, in the order in which it happened."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, TypeVar

from headway.decisions import Decision, Start
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


class Recorded(Protocol):
    """An event or a decision, as a journal has it."""

    @property
    def run_id(self) -> int: ...

    @property
    def time(self) -> float:
        """An event's own time, a decision's cycle's time; seconds of the run's clock."""
        ...

    @property
    def what(self) -> Event | Decision: ...


One = TypeVar("One", bound=Recorded)

#: What a run tells of a job when it begins: with the time at which it happened, or with its own.
_STATED = (JobSubmitted, JobStarted, JobEnded)
_FOUND = (*_STATED, JobReleasing, JobSuspended)


def told_once(history: Iterable[One]) -> Iterator[One]:
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


def last_failure(history: Sequence[Recorded]) -> str:
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
