"""The log says of each command for which jobs it was, and by which decisions; and commands are counted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from structlog.testing import capture_logs

from headway_adapters.polling.client import CommandClient
from headway_adapters.polling.commands import Commands
from headway_adapters.polling.counted import MOST_PROGRAMS, REST
from headway_adapters.transport import Result, Transport


class Answering(Transport):
    """Answers by the last word: "fails", "hangs" or "silent"."""

    def run(self, argv: Sequence[str], timeout: float) -> Result:
        last = argv[-1]
        status = 0 if last not in ("fails", "hangs", "silent") else 1
        return Result(tuple(argv), status, b"", last, 0.25, timed_out=last == "hangs")

    def feed(self, argv: Sequence[str], given: bytes, timeout: float) -> Result:
        return self.run(argv, timeout)


class Client(CommandClient):
    def only_reads(self, argv: Sequence[str]) -> bool:
        return argv[0] == "show"

    def is_silence(self, result: Result) -> bool:
        return result.stderr == "silent"


@pytest.fixture
def commands() -> Commands:
    import structlog

    client = Client(Answering(), timeout=1.0, read_only=False)
    return Commands(client, "Slurm", structlog.get_logger())


def lines(commands: Commands, *argvs: Sequence[str]) -> list[Any]:
    with capture_logs() as said:
        commands.change(argvs)
    return [line for line in said if line["event"] == "command"]


def test_a_command_names_its_jobs_and_their_decisions(commands: Commands) -> None:
    commands.trail = {"12": ["7-3-0"], "13": ["7-3-1", "7-3-4"], "3": ["7-3-2"]}
    (one, two, three) = lines(
        commands,
        ["scontrol", "update", "JobId=12", "NumNodes=3x"],
        ["scontrol", "release", "12,13"],
        ["scontrol", "reconfigure"],
    )
    assert (one["job"], one["id"]) == (["12"], ["7-3-0"])
    assert one["command"] == "scontrol update JobId=12 NumNodes=3x"
    assert (one["status"], one["seconds"]) == (0, 0.25)
    assert (two["job"], two["id"]) == (["12", "13"], ["7-3-0", "7-3-1", "7-3-4"])
    assert (three["job"], three["id"]) == (None, None)


def test_commands_are_counted_by_what_became_of_them(commands: Commands) -> None:
    commands.change([["/usr/bin/scontrol", "x"], ["scontrol", "fails"], ["scontrol", "hangs"]])
    commands.change([["scontrol", "silent"]])
    commands._client.run(["show", "x"])
    told = {(one.command, one.outcome): one for one in commands._client.counted.told("c")}
    assert {key: one.count for key, one in told.items()} == {
        ("scontrol", "done"): 1, ("scontrol", "failed"): 1, ("scontrol", "unknown"): 1,
        ("scontrol", "silent"): 1, ("show", "done"): 1,
    }  # fmt: skip
    assert told["show", "done"].seconds == 0.25
    assert told["show", "done"].cluster == "c"


def test_programs_are_bounded(commands: Commands) -> None:
    for number in range(MOST_PROGRAMS + 3):
        commands._client.run([f"program{number}", "x"])
    told = {one.command: one.count for one in commands._client.counted.told("c")}
    assert len(told) == MOST_PROGRAMS + 1
    assert told[REST] == 3
