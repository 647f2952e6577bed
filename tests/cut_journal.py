"""A dry run's journal as it was in the middle of the run."""

from __future__ import annotations

import sqlite3
from pathlib import Path


def cut(journal: Path, now: float) -> Path:
    """A copy that knows nothing of what came after ``now``, as if the run went on."""
    path = journal.with_name(f"{journal.stem}-{now:g}.sqlite")
    with sqlite3.connect(journal) as source, sqlite3.connect(path) as copy:
        source.backup(copy)
        copy.execute("DELETE FROM cycles WHERE now > ?", (now,))
        copy.execute("UPDATE runs SET ended_at = NULL")
    return path
