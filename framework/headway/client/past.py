"""What the journal tells of the past, as the client asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from headway.inquiry.past_reports import (
    DecisionHistory,
    EventHistory,
    JobHistory,
    PastDecision,
    PastEvent,
    PastJob,
    WorkHistory,
)
from headway.serve import past

Shape = TypeVar("Shape", bound=msgspec.Struct)


class _Finds(Protocol):
    def __call__(self, question: Any, shape: type[Shape]) -> Shape: ...


class PastOfCluster:
    """Decisions, events, jobs that ran and single jobs, as far as the asking user may know of them.

    Times are absolute seconds: recorded from ``since`` on and before ``until``. A page is behind the entry
    with the number ``after``; the ``next`` of a page is the ``after`` of the page that follows.
    """

    def __init__(self, found: _Finds) -> None:
        self._found = found

    def decisions(
        self, *, job: str = "", kind: str = "", since: float | None = None, until: float | None = None,
        after: str = "", count: int = past.USUAL, oldest_first: bool = False,
    ) -> DecisionHistory:  # fmt: skip
        """A page of decisions with what became of them."""
        asked = past.Decisions(since, until, after, count, oldest_first, job, kind)
        return self._found(asked, DecisionHistory)

    def events(
        self, *, job: str = "", kind: str = "", since: float | None = None, until: float | None = None,
        after: str = "", count: int = past.USUAL, oldest_first: bool = False,
    ) -> EventHistory:  # fmt: skip
        """A page of events."""
        return self._found(past.Events(since, until, after, count, oldest_first, job, kind), EventHistory)

    def work(
        self, *, pool: str = "", since: float | None = None, until: float | None = None, after: str = "",
        count: int = past.USUAL, oldest_first: bool = False,
    ) -> WorkHistory:  # fmt: skip
        """A page of jobs that ran, by their ends."""
        return self._found(past.Work(since, until, after, count, oldest_first, pool), WorkHistory)

    def job(self, job: str) -> JobHistory:
        """What the journal tells of a job."""
        return self._found(past.JobsPast(job), JobHistory)

    def all_of(
        self, question: past.Decisions | past.Events | past.Work
    ) -> Iterator[PastDecision | PastEvent | PastJob]:
        """All that is asked for, page by page, in the order that is asked for."""
        after: str | None = question.after
        while after is not None:
            asked = replace(question, after=after)
            if isinstance(asked, past.Decisions):
                decided = self._found(asked, DecisionHistory)
                yield from decided.decisions
                after = decided.next
            elif isinstance(asked, past.Events):
                happened = self._found(asked, EventHistory)
                yield from happened.events
                after = happened.next
            else:
                ran = self._found(asked, WorkHistory)
                yield from ran.jobs
                after = ran.next
