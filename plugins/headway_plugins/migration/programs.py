"""Programs that dump processes, run on a job's nodes.

``through`` is how a command comes to a node: an argument vector in which ``{node}`` and ``{user}`` are
replaced, such as ``[ssh, -oBatchMode=yes, "{user}@{node}"]``; empty, it runs here. No shell sees a
word here; ssh gives them to a shell on the other side, which is why each word must be plain.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Sequence

from pydantic import Field, field_validator

from headway.adapter import Check
from headway.errors import Failure
from headway_plugins.migration.options import ImageOptions

_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./\[\]-]*")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
#: Characters of a program's last words that are passed on.
_LONGEST = 300


class ProgramOptions(ImageOptions):
    """The options of images, and these."""

    through: tuple[str, ...] = Field(
        default=(),
        description=(
            "command that runs a program on a node; `{node}` and `{user}` are replaced. Empty: programs run "
            "on this machine"
        ),
    )
    program: str = Field(description="the program, a name or an absolute path")

    @field_validator("through")
    @classmethod
    def _placeholders_are_known(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for word in value:
            for name in _PLACEHOLDER.findall(word):
                if name not in ("node", "user"):
                    raise ValueError(f"only the placeholders {{node}} and {{user}}, found {{{name}}}")
        return value


class Programs:
    """Runs commands on nodes until told to stop."""

    def __init__(self, through: Sequence[str], seconds: float) -> None:
        """``seconds``: the longest that a command may take."""
        self._through = tuple(through)
        self._seconds = seconds
        self._stopping = threading.Event()

    def vector(self, node: str, user: str, argv: Sequence[str]) -> tuple[str, ...]:
        """The whole command. Raises :class:`Failure` for a word that may not stand in it."""
        for name in (node, user):
            if name and _NAME.fullmatch(name) is None:
                raise Failure(f"expected a plain name, found {name[:40]!r}")
        for word in argv:
            if _PLAIN.fullmatch(word) is None:
                raise Failure(f"expected a plain word, found {word[:40]!r}")
        values = {"node": node, "user": user}
        words = (_PLACEHOLDER.sub(lambda found: values[found[1]], word) for word in self._through)
        return (*words, *argv)

    def run(self, node: str, user: str, argv: Sequence[str]) -> str:
        """What a command printed. Raises :class:`Failure` with its last words if it fails or is late."""
        command = self.vector(node, user, argv)
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                start_new_session=True, text=True, errors="replace",
            )  # fmt: skip
        except OSError as error:
            raise Failure(f"{command[0]}: {error.strerror}") from error
        end = time.monotonic() + self._seconds
        while True:
            try:
                said, _ = process.communicate(timeout=0.2)
                break
            except subprocess.TimeoutExpired:
                late = time.monotonic() > end
                if late or self._stopping.is_set():
                    os.killpg(process.pid, signal.SIGKILL)
                    process.communicate()
                    why = f"the program took longer than {self._seconds:g} s" if late else "the daemon ends"
                    raise Failure(f"{argv[0]} on {node}: {why}") from None
        if process.returncode != 0:
            last = " ".join(said.split())[-_LONGEST:] or "it said nothing"
            raise Failure(f"{argv[0]} on {node}: exit code {process.returncode}: {last}")
        return said

    def stop(self) -> None:
        self._stopping.set()

    def check(self, subject: str, program: str, argv: Sequence[str], remedy: str) -> Check:
        """Whether a program is there and says that it can work, as far as that can be seen from here."""
        if self._through:
            found = f"{program} is run on the nodes, through {self._through[0]}"
            return Check(subject, True, found, f"try there: {' '.join(argv)}", known=False)
        if shutil.which(program) is None:
            return Check(subject, False, f"{program} is not installed", remedy)
        try:
            done = subprocess.run(argv, capture_output=True, text=True, errors="replace", timeout=30)
        except (OSError, subprocess.TimeoutExpired) as error:
            return Check(subject, False, f"{' '.join(argv)}: {error}", remedy)
        said = " ".join((done.stdout + done.stderr).split())[-_LONGEST:]
        return Check(subject, done.returncode == 0, said or f"{' '.join(argv)}: nothing said", remedy)
