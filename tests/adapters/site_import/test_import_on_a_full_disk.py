"""`headway import --out`: a file that could not be written whole is not there."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from imports import FILES


@pytest.mark.parametrize("before", [None, "mine\n"])
def test_nothing_stays_of_a_file_that_could_not_be_written(tmp_path: Path, before: str | None) -> None:
    out = tmp_path / "site.yaml"
    if before is not None:
        out.write_text(before)

    def little_room() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))

    program = "import sys; sys.dont_write_bytecode = True; from headway.cli import main; main()"
    words = ["import", "slurm", str(FILES / "slurm.conf"), "--out", str(out), "--force"]
    done = subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, preexec_fn=little_room
    )
    assert done.returncode == 1, done.stderr
    assert f"{out}: cannot be written: File too large" in done.stderr
    assert [path.read_text() for path in tmp_path.iterdir()] == ([] if before is None else [before])
