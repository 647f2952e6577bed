"""The journal: what happened and what was decided, durable before it is acted upon."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headway.journal.null import JournalWriter, NullJournal
from headway.journal.records import (
    CheckpointRecord,
    CycleRecord,
    HistoryEntry,
    RunInfo,
    RunRecord,
    UnfinishedDecision,
)

if TYPE_CHECKING:
    from headway.journal.journal import Journal

__all__ = [
    "CheckpointRecord",
    "CycleRecord",
    "HistoryEntry",
    "Journal",
    "JournalWriter",
    "NullJournal",
    "RunInfo",
    "RunRecord",
    "UnfinishedDecision",
]


def __getattr__(name: str) -> Any:
    # SQLAlchemy takes a quarter of a second to load, and most commands open no journal.
    if name == "Journal":
        from headway.journal.journal import Journal

        return Journal
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
