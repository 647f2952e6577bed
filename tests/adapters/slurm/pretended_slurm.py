"""A Slurm that is not there: a transport that answers from recorded output."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from headway import events as ev
from headway_adapters.slurm import SlurmAdapter
from headway_adapters.transport import Result, Transport

FIXTURES = Path(__file__).parent / "fixtures" / "slurm-22.05"
RECORDS = {record["job_id"]: record for record in json.loads((FIXTURES / "squeue.json").read_text())["jobs"]}


class PretendedSlurm(Transport):
    """Answers from recorded output; ``jobs`` is what squeue lists, ``answer`` overrides any command."""

    def __init__(self) -> None:
        self.jobs: list[dict[str, Any]] = [
            {**RECORDS[15], "state_reason": "JobHeldAdmin", "admin_comment": "headway:held"}, RECORDS[7],
        ]  # fmt: skip
        self.said: list[tuple[str, ...]] = []
        self.answer: Callable[[tuple[str, ...]], Result | None] = lambda argv: None

    def run(self, argv: Sequence[str], timeout: float) -> Result:
        words = tuple(argv)
        self.said.append(words)
        return self.answer(words) or result(words, self._stdout(words))

    def _stdout(self, argv: tuple[str, ...]) -> str:
        if "--version" in argv:
            return "slurm-wlm 22.05.8"
        if argv[0] == "squeue":
            return json.dumps({"errors": [], "jobs": self.jobs})
        if argv[0] == "sinfo":
            return (FIXTURES / "sinfo.json").read_text()
        what = argv[argv.index("show") + 1] if "show" in argv else ""
        files = {
            "config": "show-config.txt", "partition": "show-partitions-oneline.txt",
            "reservation": "show-reservations-oneline.txt", "nodes": "show-nodes-oneline.txt",
        }  # fmt: skip
        return (FIXTURES / files[what]).read_text() if what in files else ""


def result(argv: tuple[str, ...], stdout: str = "", rc: int = 0, stderr: str = "") -> Result:
    return Result(argv=argv, rc=rc, stdout=stdout.encode(), stderr=stderr, seconds=0.01)


def events(one: SlurmAdapter, seconds: float = 0.3) -> list[ev.Event]:
    """All that an adapter tells within so many seconds."""
    found: list[ev.Event] = []
    end = time.time() + seconds
    while time.time() < end:
        moment = one.wait(end)
        assert moment is not None
        found += moment[1]
    return found
