"""Files that let users in: keys, secrets."""

from __future__ import annotations

import os
from pathlib import Path

from headway.errors import UserError

#: Bytes of a key's file, at most.
_MOST = 1024 * 1024


def read_secret(path: Path, key: str) -> bytes:
    """What stands in a file that not everybody may read; ``key``: the configuration's, for the message.
    :class:`UserError` if it cannot be read, or all users can read it."""
    return _read(path, key, secret=True)


def read_public(path: Path, key: str) -> bytes:
    """What stands in a file that everybody may read, but not change."""
    return _read(path, key, secret=False)


def _read(path: Path, key: str, secret: bool) -> bytes:
    try:
        with open(path, "rb") as stream:
            mode = os.fstat(stream.fileno()).st_mode & 0o777
            text = stream.read(_MOST)
    except OSError as error:
        raise UserError(f"{key}: {path}: cannot be read: {error.strerror or error}") from error
    wrong = mode & (0o007 if secret else 0o002)
    if wrong:
        may = "read or change" if secret else "change"
        raise UserError(f"{key}: {path}: expected a file that others may not {may}, found mode {mode:04o}")
    return text
