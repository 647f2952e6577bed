"""Writing a file so that it is there whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from headway.errors import Failure


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yields the path of a temporary file beside ``path``; renames it to ``path`` when all went well.

    On any error an older ``path`` stays as it was and nothing new is left behind. Errors of the
    operating system (no space, no permission, no such directory) become
    :class:`headway.errors.Failure`, which names ``path`` and says what the system said.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        try:
            yield temporary
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise Failure(f"{path}: cannot be written: {error.strerror or error}") from error


@contextmanager
def writing(path: Path) -> Iterator[TextIO]:
    """A UTF-8 text file, written with bare line feeds, that becomes ``path`` when all went well.

    What cannot be written so, such as the name of a file that is not UTF-8, becomes question marks.
    Raises as :func:`replacing` does.
    """
    with (
        replacing(path) as temporary,
        open(temporary, "x", encoding="utf-8", errors="replace", newline="") as stream,
    ):
        yield stream
        stream.flush()
        # Some file systems tell of a lack of space only now.
        os.fsync(stream.fileno())
