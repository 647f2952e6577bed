"""The journal: what happened and what was decided, durable before it is acted upon."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway.inputs.late import late

if TYPE_CHECKING:
    from headway.journal.journal import Journal
    from headway.journal.null import JournalWriter, NullJournal
    from headway.journal.records import (
        CheckpointRecord,
        CycleRecord,
        HistoryEntry,
        RunInfo,
        RunRecord,
        UnfinishedDecision,
    )

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

__getattr__ = late(
    __name__,
    {
        # With SQLAlchemy, which takes a quarter of a second to load; most commands open no journal.
        ".journal": "Journal",
        ".null": "JournalWriter NullJournal",
        ".records": "CheckpointRecord CycleRecord HistoryEntry RunInfo RunRecord UnfinishedDecision",
    },
)
