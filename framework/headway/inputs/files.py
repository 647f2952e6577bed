"""Files that plugins' options name, such as a curve of prices: read once, and kept in the journal.

So a replay has what the run had, whatever became of the file. A plugin's options read them in a pydantic
validator, through the validation context's ``files``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

#: Where a run's recorded plugin states have the texts; no plugin can be called so.
SAVED_AS = "/files"


class InputFiles:
    """The texts of the files that a run's options name, by their names as configured."""

    def __init__(self, recorded: Mapping[str, str] | None = None) -> None:
        """``recorded`` are the files of a run that is repeated: they are not read again."""
        self.texts: dict[str, str] = dict(recorded or {})

    def text(self, name: Path, beside: Path | None) -> str:
        """The file's text, of a path that is relative to ``beside``; raises OSError or UnicodeDecodeError."""
        known = self.texts.get(str(name))
        if known is None:
            path = beside / name if beside is not None else name
            # Excel begins its files with a byte order mark.
            known = self.texts[str(name)] = path.read_bytes().decode("utf-8-sig")
        return known


def text_of(name: Path, context: Mapping[str, Any] | None) -> str:
    """The text of a file that an option names. The validation's context may have the run's ``files``, and the
    directory that paths are relative to, ``beside``. Raises OSError or UnicodeDecodeError.
    """
    given = context or {}
    files = given.get("files") or InputFiles()
    text: str = files.text(name, given.get("beside"))
    return text
