"""The site's key: a file that only its owner can read."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from headway.errors import UserError

_LEAST, _MOST = 32, 4096


def read_key(path: Path) -> bytes:
    """The key in a file. Raises :class:`UserError` if it cannot be read, if others can read or change it, or
    if it is too short to be one."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise UserError(f"{path}: the key cannot be read: {error.strerror}") from error
    found = os.fstat(file)
    if not stat.S_ISREG(found.st_mode):
        os.close(file)
        raise UserError(f"{path}: expected a plain file with the key")
    with os.fdopen(file, "rb") as opened:
        if found.st_mode & 0o077:
            mode = stat.S_IMODE(found.st_mode)
            raise UserError(
                f"{path}: expected a key that only its owner can read (0600), found mode {mode:04o}"
            )
        if found.st_uid not in (0, os.geteuid()):
            raise UserError(f"{path}: expected a key that root or this user owns, found user {found.st_uid}")
        key = opened.read(_MOST + 1).strip()
    if not _LEAST <= len(key) <= _MOST:
        raise UserError(f"{path}: expected a key of {_LEAST} to {_MOST} bytes, found {len(key)}")
    return key
