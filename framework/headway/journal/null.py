"""The journal that is none: for emulations, whose runs can be repeated anyway."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar, Protocol

from headway.adapter import Outcome
from headway.decisions import Decision
from headway.events import Event
from headway.journal.records import RunInfo


class JournalWriter(Protocol):
    """What the engine needs of a journal; :class:`headway.journal.Journal` documents each method."""

    #: False: nothing is kept, so the engine need not even ask.
    enabled: ClassVar[bool]

    def begin_run(self, info: RunInfo) -> int: ...

    def end_run(self, reason: str, *, ended_at: float | None = None) -> None: ...

    def record_events(self, seq: int, now: float, events: Sequence[Event]) -> None: ...

    def record_decisions(self, seq: int, decisions: Sequence[Decision]) -> None: ...

    def record_outcomes(self, seq: int, outcomes: Sequence[Outcome]) -> None: ...

    def checkpoint(self, seq: int, states: Mapping[str, Any], of: Collection[str] | None = None) -> None: ...

    def close(self) -> None: ...


class NullJournal:
    """Keeps nothing. Its only run has the id 0."""

    enabled: ClassVar[bool] = False

    def begin_run(self, info: RunInfo) -> int:
        return 0

    def end_run(self, reason: str, *, ended_at: float | None = None) -> None:
        pass

    def record_events(self, seq: int, now: float, events: Sequence[Event]) -> None:
        pass

    def record_decisions(self, seq: int, decisions: Sequence[Decision]) -> None:
        pass

    def record_outcomes(self, seq: int, outcomes: Sequence[Outcome]) -> None:
        pass

    def checkpoint(self, seq: int, states: Mapping[str, Any], of: Collection[str] | None = None) -> None:
        pass

    def close(self) -> None:
        pass

    def __enter__(self) -> NullJournal:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
