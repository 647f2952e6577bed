"""A command loads what it needs: each process pays for its imports, and a user waits for them."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest
from full_metrics import FULL
from waiting import HANG

from headway.inquiry.reports import JobReport
from headway.service import Inbox, Peer, Server
from headway.service.protocol import AnyRequest, Explained, Reply, Report

#: The command line; what it has loaded stands on the last line of its errors.
LOADED = """
import atexit, sys
atexit.register(lambda: print("loaded", *sys.modules, file=sys.stderr))
from headway.cli import main
main()
"""
#: Libraries of pictures, pages, databases and connections.
OF_FEW = {"PIL", "asyncio", "jinja2", "matplotlib", "paramiko", "psycopg", "scipy", "sqlalchemy", "structlog"}
#: What a client of the daemon does without, too.
NOT_OF_A_CLIENT = OF_FEW | {
    "headway.engine",
    "headway.plugins.catalogue",
    "headway.scheduler",
    "headway.state",
    "headway_adapters",
    "headway_plugins",
    "numpy",
    "pluggy",
}
#: What a help text does without.
NOT_OF_HELP = NOT_OF_A_CLIENT | {"headway.config", "msgspec", "pydantic", "rich", "yaml"}

REPORT = Report("drive", "tc", 1, 0.0)


def loaded_by(*arguments: object) -> set[str]:
    """The modules that a command has loaded when it is over, and the packages that they are in."""
    words = [sys.executable, "-c", LOADED, *map(str, arguments)]
    ran = subprocess.run(words, capture_output=True, text=True, timeout=HANG, check=False)
    assert ran.returncode == 0, ran.stderr
    return set(ran.stderr.rpartition("loaded ")[-1].split())


class Answering(Inbox):
    """Gives the same reply to each question."""

    def ask(self, request: AnyRequest, peer: Peer) -> Future[Reply]:
        job = JobReport("15", "batch", "pending", 4, 60.0, 60.0, 1.0, position=3, planned_start=2e9)
        found = Explained("15", ("Job 15 waits.",), job)
        future: Future[Reply] = Future()
        future.set_result(Reply("accepted", status=REPORT, found=found, metrics=FULL, as_of=1.7e9))
        return future


@pytest.fixture
def config(tmp_path: Path, pretended_slurm: Callable[..., Path]) -> Iterator[Path]:
    """The configuration of a daemon that answers."""
    inbox = Answering(lambda: None, REPORT, clock=time.time)
    server = Server(tmp_path / "journal.db.sock", inbox)
    yield pretended_slurm()
    server.close()


@pytest.mark.parametrize(
    "command", ["status", "explain", "jobs", "top", "reserve", "unreserve", "elastic", "health", "metrics"]
)
def test_help_of_users_commands_loads_little(command: str) -> None:
    assert loaded_by(command, "--help") & NOT_OF_HELP == set()


@pytest.mark.parametrize("command", ["run", "check", "datasets", "dry-run", "convert", "generate", "replay"])
def test_help_of_other_commands_loads_no_libraries(command: str) -> None:
    assert loaded_by(command, "--help") & OF_FEW == set()


@pytest.mark.parametrize("words", [["status"], ["explain", "15"], ["metrics"]])
def test_a_client_of_the_daemon_loads_no_scheduler(config: Path, words: list[str]) -> None:
    assert loaded_by(*words, "-c", config) & NOT_OF_A_CLIENT == set()


def test_a_dry_run_without_files_loads_its_policy_and_no_pages(trace: Path) -> None:
    loaded = loaded_by("dry-run", "--trace", trace, "--policy", "easy")
    assert loaded & OF_FEW == set()
    batch_systems = {f"headway_adapters.{name}" for name in ("federation", "lsf", "pbs", "polling", "slurm")}
    assert loaded & batch_systems == set()
    policies = {name for name in loaded if name.startswith("headway_plugins.policies.")}
    assert policies == {"headway_plugins.policies.easy", "headway_plugins.policies.tuning"}


def test_a_journal_in_a_file_needs_nothing_of_postgresql(tmp_path: Path, trace: Path) -> None:
    loaded = loaded_by("dry-run", "--trace", trace, "--policy", "easy", "--journal", tmp_path / "j.db")
    assert "sqlalchemy.dialects.sqlite" in loaded
    assert not {name for name in loaded if name.startswith("sqlalchemy.dialects.postgresql")}
