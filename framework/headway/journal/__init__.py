"""The journal: what happened and what was decided, durable before it is acted upon."""

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
