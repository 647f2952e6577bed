"""An ordinary user's bundles on a real batch system: what the tests of every system do alike."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import sysconfig
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest
from waiting import HANG, until

APPLICATION = Path(__file__).parents[1] / "selfsaving.py"
PROCESSES, UNITS = 4, 40


#: headway as somebody else, who may not be able to reach the interpreter that runs the tests.
AS_USER = """#!{python}
import sys
sys.path[:0] = {paths!r}
from headway.cli import main
main()
"""


def headway_for(user: str, directory: Path, run: Callable[..., object]) -> Path:
    """The program `headway`, which that user can run; skips where there is none. ``run`` runs words as this
    user and raises AssertionError if that fails."""
    root = Path(__file__).parents[2]
    libraries = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    paths = [*(str(root / tree) for tree in ("framework", "plugins", "adapters")), *sorted(libraries)]
    program = directory / "headway"
    for python in (sys.executable, "/usr/bin/python3"):
        program.write_text(AS_USER.format(python=python, paths=paths))
        program.chmod(0o755)
        with contextlib.suppress(AssertionError):
            run(str(program), "bundle", "submit", "--help")
            return program
    pytest.skip(f"user {user} can run no Python that has headway's libraries")


class Bundles:
    """An ordinary user's bundles on a batch system that others keep busy."""

    def __init__(
        self, base: Path, program: Path, run: Callable[..., str], uid: int, words: Sequence[str] = ()
    ) -> None:
        """``base``: a directory that becomes the user's. ``run`` runs words as this user, whose number is
        ``uid``. ``words``: of each submission."""
        self._program = program
        self._run = run
        self._uid = uid
        self._words = words
        self.base = base
        self.meeting = base / "meeting"
        self.again()
        self.ids: list[str] = []

    def again(self) -> None:
        """A new place for the application to meet."""
        shutil.rmtree(self.meeting, ignore_errors=True)
        self.meeting.mkdir(parents=True)
        for path in (self.base, self.meeting):
            os.chown(path, self._uid, -1)

    def hold(self) -> None:
        """The application does not end before :meth:`go`, however slow everything else is."""
        (self.meeting / "hold").touch()

    def go(self) -> None:
        (self.meeting / "hold").unlink()

    @property
    def command(self) -> list[str]:
        return [
            shutil.which("python3", path="/usr/bin:/bin") or sys.executable,
            str(APPLICATION),
            str(self.meeting),
            str(UNITS),
            "0.1",
        ]

    def run(self, *words: str, check: bool = True) -> str:
        """A command of `headway bundle`, as the user."""
        variables = f"HEADWAY_BUNDLES={self.base}/bundles"
        where = ("env", f"--chdir={self.base}", f"HOME={self.base}", variables, str(self._program), "bundle")
        return self._run(*where, *words, check=check)

    def submit(self, *words: str, command: Sequence[str] = ()) -> str:
        """Submit the application, or another ``command``, as a bundle; its id."""
        said = self.run(
            "submit", "--processors", str(PROCESSES), "--time", "60", "--move", "4", "--poll", "1",
            # On a busy machine a worker takes half a minute to start.
            "--silence", f"{HANG:g}", "--set", "spare=0",
            *self._words, *words, "--", *(command or self.command),
        )  # fmt: skip
        self.ids.append(said.split()[1].rstrip(":"))
        return self.ids[-1]

    def known(self, bundle: str) -> dict[str, Any]:
        """All that the manager wrote down."""
        found: dict[str, Any] = json.loads(self.run("status", "--json", bundle))[bundle]
        return found

    def begun(self) -> list[tuple[int, int, int, str]]:
        """(restart, process, its first number, its processor) of each start."""
        path = self.meeting / "begun"
        lines = path.read_text().splitlines() if path.exists() else []
        rows = [line.split() for line in lines]
        return [(int(row[0]), int(row[1]), int(row[2]), row[3]) for row in rows]

    def until_begun(self, restart: int, what: str) -> list[tuple[int, int, int, str]]:
        """Wait for all processes of an execution."""

        def these() -> list[tuple[int, int, int, str]]:
            return [row for row in self.begun() if row[0] == restart]

        until(lambda: len(these()) == PROCESSES, what, said=self.said)
        return these()

    def said(self) -> str:
        """The managers' logs."""
        return "\n".join(path.read_text() for path in self.base.glob("bundles/*/*.log"))

    def processes(self, *words: str) -> list[psutil.Process]:
        """Of this test's bundles: those whose command line has these words."""
        found = []
        for process in psutil.process_iter(["cmdline"]):
            line = process.info["cmdline"] or []
            if str(self.base) in " ".join(line) and all(word in line for word in words):
                found.append(process)
        return found

    def done(self, bundle: str) -> dict[str, Any]:
        path = self.base / "bundles" / bundle / "result.json"
        until(path.exists, "the bundle is done", said=self.said)
        return dict(json.loads(path.read_text()))

    @property
    def right(self) -> bool:
        """Whether the application computed what it should."""
        expected = sum(number * number for number in range(PROCESSES * UNITS))
        return (self.meeting / "result").read_text() == str(expected)
