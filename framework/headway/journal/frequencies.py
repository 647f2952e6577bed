"""At which frequency jobs should run, read from what was decided about them and what became of it.

A batch system does not tell a job's frequency. When a daemon dies between asking for one and setting it, or
before its next checkpoint, only the journal knows; its successor gets it from here. With a lower frequency
goes a longer limit; whether that was asked for is not known either, if the daemon died before it wrote down
what became of it.
"""

from __future__ import annotations

from collections.abc import Iterable

from headway.adapter import WishedFrequency
from headway.decisions import Decision, SetFrequency, SetTimeLimit, Start
from headway.events import (
    DecisionFailed,
    Event,
    JobChanged,
    JobEnded,
    JobFrequencyChanged,
    JobRequeued,
    JobStarted,
)
from headway.journal.records import HistoryEntry

#: Seconds by which the starts of one execution, as two looks show them, may differ.
_ALIKE = 1.0
#: Seconds by which a batch system may round a limit.
_LIMITS_ALIKE = 60.0


def wished_frequency(history: Iterable[HistoryEntry]) -> WishedFrequency | None:
    """What a job's ``history``, in order, says of the execution that came last; None: the nodes' own."""
    story = _Story()
    for entry in history:
        story.add(entry)
    return story.end()


class _Story:
    """What is known of a job's execution so far."""

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        """It runs no more, or anew: at the nodes' own frequency."""
        #: Asked for and neither set nor refused, hertz.
        self.wished: float | None = None
        #: Set, hertz.
        self.had: float | None = None
        #: When its start was decided, and in which run.
        self.asked: float | None = None
        self.run: int | None = None
        #: When it began.
        self.started: float | None = None
        #: A limit that was decided, and of which it is not known whether it was asked for.
        self.walltime: float | None = None

    def add(self, entry: HistoryEntry) -> None:
        what = entry.what
        if isinstance(what, Decision):
            self._decided(what, entry)
        else:
            self._happened(what, entry.run_id)

    def _decided(self, decision: Decision, entry: HistoryEntry) -> None:
        carried_out = entry.outcome is None or entry.outcome.accepted
        if isinstance(decision, Start) and carried_out:
            self._forget()
            self.wished, self.asked, self.run = decision.frequency, entry.time, entry.run_id
        elif isinstance(decision, SetFrequency) and carried_out:
            self.wished = decision.frequency
        elif isinstance(decision, SetTimeLimit):
            self.walltime = decision.walltime if entry.outcome is None else None

    def _happened(self, event: Event, run: int) -> None:
        if isinstance(event, JobChanged):
            if self.walltime is not None and event.job.request.walltime > self.walltime - _LIMITS_ALIKE:
                self.walltime = None
        elif isinstance(event, JobFrequencyChanged):
            self.had = event.frequency
            if self.wished == event.frequency:
                self.wished = None
        elif isinstance(event, DecisionFailed):
            self._failed(event.decision)
        elif isinstance(event, JobRequeued | JobEnded):
            self._forget()
        elif isinstance(event, JobStarted):
            self._started(event, run)

    def _failed(self, decision: Decision) -> None:
        if isinstance(decision, Start):
            self._forget()
        elif isinstance(decision, SetFrequency) and decision.frequency == self.wished:
            self.wished = None
        elif isinstance(decision, SetTimeLimit):
            self.walltime = None

    def _started(self, event: JobStarted, run: int) -> None:
        if self.started is not None and abs(self.started - event.time) >= _ALIKE:
            self._forget()
        # An execution that a later run found may be another than the execution asked for.
        if self.run is None or self.run == run:
            self.started = event.time

    def end(self) -> WishedFrequency | None:
        hertz = self.wished if self.wished is not None else self.had
        if hertz is None:
            return None
        return WishedFrequency(
            hertz,
            asked=self.asked,
            started=self.started,
            is_set=self.wished is None,
            walltime=self.walltime,
        )
