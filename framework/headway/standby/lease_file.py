"""The lease of a journal in a file: a small file beside it, which ``headway journal follow`` tells.

It is written in place, under a lock, so that of two processes that change it the second sees what the first
wrote. Nothing of it need survive the machine.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from headway.errors import Failure
from headway.standby.leadership import Word
from headway.standby.lease import Lease

#: How long another process may have it locked: one that was stopped just then keeps it so.
SECONDS = 1.0
_LONGEST = 4096
_word = msgspec.json.Decoder(Word)


def lease_path(journal: Path) -> Path:
    """The file of the lease of a journal's file."""
    return journal.with_name(journal.name + ".lease")


class LeaseFile(Lease):
    """The lease beside the journal's file."""

    shared = False

    def __init__(self, journal: Path) -> None:
        self.path = lease_path(journal)
        self.name = str(self.path)

    def read(self) -> Word | None:
        try:
            opened = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise Failure(f"lease {self.path}: cannot be read: {error.strerror}") from error
        with self._locked(opened, fcntl.LOCK_SH):
            return self._said(opened)

    def replace(self, seen: Word | None, by: Word) -> bool:
        try:
            opened = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise Failure(f"lease {self.path}: cannot be written: {error.strerror}") from error
        with self._locked(opened, fcntl.LOCK_EX):
            if self._said(opened) != seen:
                return False
            said = msgspec.json.encode(by)
            os.pwrite(opened, said, 0)
            os.ftruncate(opened, len(said))
            return True

    def close(self) -> None:
        """Nothing is open between two calls."""

    def _said(self, opened: int) -> Word | None:
        said = os.pread(opened, _LONGEST, 0)
        try:
            return _word.decode(said) if said else None
        except msgspec.DecodeError as error:
            raise Failure(
                f"lease {self.path}: expected what headway wrote, found {said[:60]!r}: remove the file"
            ) from error

    @contextlib.contextmanager
    def _locked(self, opened: int, kind: int) -> Iterator[None]:
        end = time.monotonic() + SECONDS
        try:
            while True:
                try:
                    fcntl.flock(opened, kind | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > end:
                        raise Failure(f"lease {self.path}: another process keeps it locked") from None
                    time.sleep(0.01)
            yield
        except OSError as error:
            raise Failure(f"lease {self.path}: cannot be read or written: {error.strerror}") from error
        finally:
            os.close(opened)
