"""A small trace, and the command line in this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from headway.cli import main

#: Calls ``headway`` with these words; gives the exit code.
Command = Callable[..., int]


@pytest.fixture(autouse=True)
def _in_a_directory_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def command() -> Command:
    def run(*words: object) -> int:
        try:
            main([str(word) for word in words])
        except SystemExit as stop:
            return int(stop.code or 0)
        return 0

    return run


def line(number: int, size: int, runtime: int) -> str:
    estimate = runtime if number % 5 else 3 * runtime
    start = f"{number} {20 * number} 0 {runtime} {size} -1 -1 {size} {estimate}"
    return f"{start} -1 1 {number % 3 + 1} 1 1 1 1 -1 -1"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Forty jobs of 1 to 16 processors that queue up, on a machine of 16."""
    lines = [line(n, 1 + n * 7 % 16, 50 + n * 37 % 400) for n in range(1, 41)]
    path = tmp_path / "small.swf"
    path.write_text("\n".join(["; MaxProcs: 16", "; UnixStartTime: 1000000000", *lines]) + "\n")
    return path
