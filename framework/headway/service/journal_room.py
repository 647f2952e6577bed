"""How large the journal's files are, and what room is left for them: for metrics and health."""

from __future__ import annotations

import os
from pathlib import Path

from headway.inquiry.reports import HealthCheck

#: Less room than this for the journal is worth waking an operator for, bytes.
LITTLE = 256 * 2**20


class JournalRoom:
    """The room of one journal. May be asked from any thread."""

    def __init__(self, journal: str) -> None:
        """``journal``: as the configuration names it. Of a database server nothing is known here."""
        self._path = None if "://" in journal else Path(journal)

    def sizes(self) -> tuple[int | None, int | None]:
        """Bytes of its files, and bytes that are free beside them; None: not known."""
        if self._path is None:
            return None, None
        size = 0
        for name in (self._path.name, f"{self._path.name}-wal", f"{self._path.name}-shm"):
            try:
                size += self._path.with_name(name).stat().st_size
            except OSError:
                continue
        return size, self._free()

    def _free(self) -> int | None:
        assert self._path is not None
        try:
            found = os.statvfs(self._path.parent)
        except OSError:
            return None
        return found.f_bavail * found.f_frsize

    def check(self) -> HealthCheck | None:
        """Whether it can be written; None where that is not known."""
        if self._path is None:
            return None
        size, free = self.sizes()
        if not os.access(self._path, os.W_OK):
            return HealthCheck(
                "journal", False, f"{self._path} cannot be written", "give it back to headway's user"
            )
        said = f"{_told(size)} in {self._path}, {_told(free)} free"
        if free is None or free >= LITTLE:
            return HealthCheck("journal", True, said)
        return HealthCheck("journal", False, said, "make room, or: headway journal prune")


def _told(size: int | None) -> str:
    return "unknown" if size is None else f"{size / 2**20:.0f} MiB"
