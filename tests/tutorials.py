"""The tutorials of ``docs/tutorials``, block by block, and a shell that carries them out."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from waiting import HANG

ROOT = Path(__file__).parents[1]
OWN_POLICY, FIRST_SLURM = (
    (ROOT / "docs" / "tutorials" / f"{name}.md").read_text(encoding="utf-8")
    for name in ("own_policy", "first_slurm")
)
#: Where the commands are that are installed beside the interpreter.
BIN = Path(sys.executable).parent


def blocks(page: str) -> list[tuple[str, str]]:
    """Kind and text of each block, in order."""
    return re.findall(r"^```(\w+)\n(.*?)^```", page, re.MULTILINE | re.DOTALL)


def steps(page: str) -> list[tuple[str, list[str]]]:
    """Each block of commands, and the lines that the page says are printed by it."""
    found: list[tuple[str, list[str]]] = []
    for kind, text in blocks(page):
        if kind == "sh":
            found.append((text, []))
        elif kind == "text":
            found[-1][1].extend(text.splitlines())
    return found


def plain(text: str) -> str:
    return " ".join(text.split())


def bash(script: str, folder: Path, **environment: str) -> str:
    """What a script printed, which must end well."""
    done = subprocess.run(
        ["bash", "-e", "-c", script], cwd=folder, text=True, timeout=4 * HANG,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "COLUMNS": "110", **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    return done.stdout
