"""The journal's lock without the journal: whatever is in it, no daemon drives by it meanwhile."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from headway.errors import HeadwayError, Held
from headway.inputs.database_url import database_url
from headway.journal.database import Database
from headway.journal.lock import FileLock


@contextlib.contextmanager
def alone(journal: str) -> Iterator[None]:
    """Be the only process that may write to a journal (a file or a URL), which is not read.

    Raises :class:`Held` when another process writes to it, :class:`headway.errors.Failure` for a file that
    cannot be opened. A file that is not there, or a server that does not answer, keeps nobody out: no daemon
    can drive by it either.
    """
    url = database_url(journal, "journal")
    path = Path(url.database or "") if url.get_backend_name() == "sqlite" else None
    with contextlib.ExitStack() as stack:
        if path is None:
            _hold_server(journal, stack)
        elif path.is_file():
            stack.callback(FileLock(path).release)
        yield


def _hold_server(journal: str, stack: contextlib.ExitStack) -> None:
    try:
        stack.callback(Database(journal, create=False, read_only=False).close)
    except Held:
        raise
    except HeadwayError:
        return
