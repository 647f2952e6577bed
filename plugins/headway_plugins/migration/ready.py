"""The word of a job's execution that it can be signalled.

A signal that a job does not catch yet ends it, so each execution says when it may come: it writes a file,
`ready`, into its image directory. That of an earlier execution must never be taken for it, and its time alone
cannot tell: batch systems tell whole seconds, some only when they hear of a start, and an execution may be
followed by the next within two. So three things must hold:

- it is not older than the execution, by a second at most,
- it is not the very file that was accepted for another execution: what was accepted is written down,
  before the job is signalled, so that it outlives the daemon,
- if it holds a number, that is how often the job was restarted.

And once a job has left its nodes, its word is taken away.
"""

from __future__ import annotations

import os
import re
import stat

import msgspec

from headway.adapter.migration import Move
from headway.errors import Failure
from headway_plugins.migration.images import Images

_NUMBER = re.compile(rb"\s*(\d{1,9})\s*")
#: Seconds.
_TOLERANCE = 1.0


class _Accepted(msgspec.Struct, frozen=True):
    """A file, and the execution that it was accepted for."""

    file: tuple[int, int]
    restarts: int
    #: Absolute seconds; None: not known.
    start: float | None

    def holds_for(self, move: Move) -> bool:
        """Whether that is the execution which is to be moved. Not every batch system counts restarts."""
        if self.restarts != move.restarts:
            return False
        return self.start is None or move.start is None or abs(self.start - move.start) < _TOLERANCE


class Ready:
    """The file ``name`` in jobs' image directories."""

    def __init__(self, images: Images, name: str) -> None:
        self._images = images
        self._name = name

    def accept(self, move: Move) -> None:
        """Raise :class:`Failure` unless the job's present execution has said that it can be signalled."""
        path = self._images.place(move.job.id) / self._name
        unsaid = "the job has not said that it can be signalled"
        try:
            opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError as error:
            raise Failure(f"{path}: {error.strerror}: {unsaid}") from error
        try:
            found, text = os.fstat(opened), b""
            if stat.S_ISREG(found.st_mode):
                text = os.read(opened, 100)
        finally:
            os.close(opened)
        if not stat.S_ISREG(found.st_mode):
            raise Failure(f"{path}: expected a plain file: {unsaid}")
        other = f"{path}: is not of this execution: {unsaid}"
        if move.start is not None and found.st_mtime < move.start - _TOLERANCE:
            raise Failure(other)
        if (number := _NUMBER.fullmatch(text)) and int(number[1]) != move.restarts:
            raise Failure(f"{other}; expected {move.restarts} restarts, found {int(number[1])}")
        now = _Accepted((found.st_ino, found.st_mtime_ns), move.restarts, move.start)
        before = self._accepted(move.job.id)
        if before is not None and before.file == now.file and not before.holds_for(move):
            raise Failure(other)
        if before != now:
            self._images.keep_record(move.job.id, "ready", msgspec.json.encode(now))

    def withdraw(self, job: str) -> None:
        """The job has left its nodes: what it said holds no more."""
        (self._images.place(job) / self._name).unlink(missing_ok=True)

    def _accepted(self, job: str) -> _Accepted | None:
        try:
            return msgspec.json.decode(self._images.record(job, "ready").read_bytes(), type=_Accepted)
        except (OSError, msgspec.DecodeError):
            return None
