"""A site's mail command that writes letters down: its words and its input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

#: A letter is a file: the words, each with a null character behind it, an empty word, the text. To some users
#: it does more than it should.
_MAIL = """#!/bin/sh
new=$(mktemp {box}/.new.XXXXXX)
printf '%s\\0' "$@" > $new
printf '\\0' >> $new
cat >> $new
mv $new {box}/letter.${{new##*.}}
case "$*" in
  *noisy@*) head -c 10000000 /dev/zero | tr '\\0' n >&2; exit 3;;
  *dies@*) kill -9 $$;;
  *hangs@*) echo $$ > {box}/hangs; exec sleep 1000;;
esac
"""


class MailBox:
    """The letters that were sent with one command."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        folder.chmod(0o755)
        program = folder / "mail"
        program.write_text(_MAIL.format(box=folder))
        program.chmod(0o755)
        self.command = [str(program), "-s", "[headway] {subject}", "--", "{user}"]

    def config(self, **more: Any) -> dict[str, Any]:
        return {"command": self.command, "timeout": 600.0, **more}

    def letters(self) -> list[tuple[list[str], str]]:
        """The words and the text of each, by text."""
        found = []
        for path in self.folder.glob("letter.*"):
            words, _, text = path.read_bytes().decode().partition("\0\0")
            found.append((words.split("\0"), text))
        return sorted(found, key=json.dumps)

    @property
    def hanging(self) -> int | None:
        """The process that hangs."""
        path = self.folder / "hangs"
        return int(path.read_text()) if path.exists() and path.read_text().endswith("\n") else None
