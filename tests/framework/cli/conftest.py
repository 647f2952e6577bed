"""The command line in process, a small trace, and a Slurm that is a directory of scripts."""

from __future__ import annotations

import gzip
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import structlog
from commandline import Headway, Ran, command_of, small_trace_lines
from waiting import HANG

from headway.cli import main

FIXTURES = Path(__file__).parents[2] / "adapters" / "slurm" / "fixtures" / "slurm-22.05"


@pytest.fixture(autouse=True)
def _in_a_directory_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    yield
    structlog.reset_defaults()


@pytest.fixture
def headway(capsys: pytest.CaptureFixture[str]) -> Headway:
    """Calls the command line in this process, in the test's directory."""

    def run(*arguments: object) -> Ran:
        capsys.readouterr()
        code: object = 0
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as stop:
            code = stop.code or 0
        out, err = capsys.readouterr()
        assert isinstance(code, int)
        assert "Traceback" not in out + err
        return Ran(code, out, err)

    return run


@pytest.fixture
def headway_process() -> Headway:
    """Calls the command line as a process of its own."""

    def run(*arguments: object, **more: object) -> Ran:
        done = subprocess.run(
            command_of(*arguments), capture_output=True, text=True, timeout=HANG, check=False,
            env={**os.environ, **more},  # type: ignore[dict-item]
        )  # fmt: skip
        return Ran(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A small clean trace, ``small.swf``, and the same as ``small.swf.gz``."""
    text = "\n".join(small_trace_lines()) + "\n"
    (tmp_path / "small.swf.gz").write_bytes(gzip.compress(text.encode()))
    path = tmp_path / "small.swf"
    path.write_text(text)
    return path


@pytest.fixture
def pretended_slurm(tmp_path: Path) -> Callable[..., Path]:
    """Makes a configuration ``slurm.yaml`` whose Slurm commands are shell scripts.

    ``script`` is what each of them does; by default they print recorded output.
    """

    def make(script: str | None = None, mode: str = "monitor") -> Path:
        programs = tmp_path / "bin"
        programs.mkdir(exist_ok=True)
        recorded = f"""case "$*" in
            *--version*) echo "slurm-wlm 22.05.8";;
            *"show config"*) cat {FIXTURES}/show-config.txt;;
            *"show partition"*) cat {FIXTURES}/show-partitions-oneline.txt;;
            *"show reservation"*) cat {FIXTURES}/show-reservations-oneline.txt;;
            *"show nodes"*) cat {FIXTURES}/show-nodes-oneline.txt;;
            *--json*) cat {FIXTURES}/$(basename $0).json;;
        esac"""
        for name in ("squeue", "sinfo", "scontrol", "scancel", "sacct", "sdiag", "sacctmgr"):
            path = programs / name
            path.write_text(f"#!/bin/sh\n{script or recorded}\n")
            path.chmod(0o755)
        config = tmp_path / "slurm.yaml"
        config.write_text(
            f"mode: {mode}\njournal: {tmp_path / 'journal.db'}\ncluster:\n  adapter: slurm\n  options:\n"
            f"    partitions: [batch]\n    bin_dir: {programs}\n    command_timeout: 1\n"
        )
        return config

    return make
