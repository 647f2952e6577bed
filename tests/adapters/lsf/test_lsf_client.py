"""LSF's commands: what counts as no answer."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from recorded_lsf import fixture

from headway_adapters.lsf.client import LsfClient
from headway_adapters.lsf.options import LsfOptions
from headway_adapters.polling.client import Unanswered
from headway_adapters.transport import Result, Transport


class Says(Transport):
    """Answers every command with the same."""

    def __init__(self, stdout: str, rc: int = 0) -> None:
        self._stdout, self._rc = stdout.encode(), rc

    def run(self, argv: Sequence[str], timeout: float) -> Result:
        return Result(argv=tuple(argv), rc=self._rc, stdout=self._stdout, stderr="", seconds=0.0)


def client(stdout: str, rc: int = 0) -> LsfClient:
    return LsfClient(LsfOptions(queues=("normal",)), read_only=False, transport=Says(stdout, rc))


@pytest.mark.parametrize("name", ["bjobs_all_wide", "bhosts_wide", "bqueues_long"])
def test_a_table_that_is_cut_off_within_a_line_is_no_answer(name: str) -> None:
    whole = fixture(name)["stdout"]
    argv = fixture(name)["argv"]
    assert client(whole).run(argv).text == whole
    # Half a table looks like a whole one with fewer jobs and hosts.
    half = whole[: whole.index("\n", len(whole) // 2) - 3]
    with pytest.raises(Unanswered, match="cut off"):
        client(half).run(argv)


def test_what_a_changing_command_says_need_be_no_line() -> None:
    assert client("Job <1> is being terminated").run(("bkill", "1")).ok


def test_nothing_at_all_is_an_answer() -> None:
    assert client("").run(("bjobs", "-w")).ok
