"""The commands of a running emulator, as tests call them."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headway_adapters.commands import Emulator

FIXTURES = Path(__file__).parent / "adapters" / "commands" / "fixtures"


@dataclass(frozen=True)
class Answer:
    """What a command printed and returned."""

    rc: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Commands:
    """The commands of a running emulator."""

    def __init__(self, emulator: Emulator) -> None:
        self.emulator = emulator

    def __call__(
        self, *argv: str, user: str | None = None, stdin: str = "", timeout: float = 20.0,
        environment: dict[str, str] | None = None,
    ) -> Answer:  # fmt: skip
        """Run one, as ``user`` if named, else as a manager."""
        variables = {"PATH": f"{self.emulator.bin}:/usr/bin:/bin", "HOME": "/root", "TZ": "UTC"}
        if user is not None:
            variables["HEADWAY_EMULATED_USER"] = user
        done = subprocess.run(
            argv, env={**variables, **(environment or {})}, input=stdin, capture_output=True, text=True,
            timeout=timeout, errors="surrogateescape",
        )  # fmt: skip
        return Answer(done.returncode, done.stdout, done.stderr)

    def ok(self, *argv: str, user: str | None = None, stdin: str = "", **environment: str) -> str:
        """Run one that must succeed; what it printed."""
        answer = self(*argv, user=user, stdin=stdin, environment=environment)
        assert answer.rc == 0, (argv, answer)
        assert answer.err == "", (argv, answer)
        return answer.out

    def refused(self, *argv: str, user: str | None = None) -> tuple[int, str]:
        """Run one that must fail and print nothing else; its exit code and message."""
        answer = self(*argv, user=user)
        assert answer.rc != 0, (argv, answer)
        assert answer.out == "", (argv, answer)
        return answer.rc, answer.err


def recorded(system: str, name: str) -> dict[str, Any]:
    """A recorded command: argv, rc, stdout, stderr."""
    return json.loads((FIXTURES / system / f"{name}.json").read_text())
