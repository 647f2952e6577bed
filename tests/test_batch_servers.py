"""How the launchers of real batch systems are called."""

import os
import sys
from pathlib import Path

import pytest
from batch_servers import SYSTEM_PYTHON, BatchServer, why_missing


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.mark.skipif(not os.access(SYSTEM_PYTHON, os.X_OK), reason=f"needs {SYSTEM_PYTHON}")
def test_a_launcher_in_any_python_runs_in_the_systems_own(tmp_path: Path) -> None:
    text = "#!/usr/bin/env python3\nimport sys\nprint(sys.executable, sys.flags.isolated, *sys.argv[1:])\n"
    server = BatchServer("pbs", written(tmp_path / "launcher", text), tmp_path)

    assert server.launcher("status").split() == [SYSTEM_PYTHON, "1", "status", str(tmp_path)]
    said = server.run("true", user="alice").split()
    assert said == [SYSTEM_PYTHON, "1", "exec", str(tmp_path), "--as", "alice", "--", "true"]


IN_SHELL = '#!/bin/sh\necho 0 "$@"\n'
IN_ITS_OWN_PYTHON = f"#!{sys.executable}\nimport sys\nprint(sys.flags.isolated, *sys.argv[1:])\n"


@pytest.mark.parametrize("text", [IN_SHELL, IN_ITS_OWN_PYTHON])
def test_any_other_launcher_runs_as_it_is(text: str, tmp_path: Path) -> None:
    server = BatchServer("lsf", written(tmp_path / "launcher", text), tmp_path)

    assert server.launcher("status").split() == ["0", "status", str(tmp_path)]


NOTHING_THERE = "#!/bin/sh\necho 'nothing is installed in /opt/pbs' >&2; exit 1\n"
PACKAGES_MISSING = "#!/bin/sh\necho apt-get install -y libical3; exit 1\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="a real server needs root, and that is said first")
@pytest.mark.parametrize(
    ("text", "why"),
    [
        (NOTHING_THERE, "a real PBS cannot be started: nothing is installed in /opt/pbs"),
        (PACKAGES_MISSING, "a real PBS needs packages: apt-get install -y libical3"),
    ],
)
def test_a_launcher_says_why_it_cannot_start_a_server(
    text: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADWAY_PBS_TESTSERVER", str(written(tmp_path / "launcher", text)))

    assert why_missing("pbs") == why
