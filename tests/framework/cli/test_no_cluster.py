"""Commands on a machine where the batch system is not: they say what to do, and leave nothing behind."""

from __future__ import annotations

from pathlib import Path

import pytest
from commandline import Headway

from headway import __version__
from headway.journal import Journal, RunInfo
from headway.model import ClusterDescription
from headway.model.modes import Mode


@pytest.fixture(
    params=[("slurm", "partitions"), ("pbs", "queues"), ("lsf", "queues")], ids=lambda made: made[0]
)
def config(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The commands of this batch system are in an empty directory."""
    (tmp_path / "bin").mkdir()
    adapter, pools = request.param
    options = f"{{{pools}: [batch], bin_dir: {tmp_path / 'bin'}}}"
    path = tmp_path / "site.yaml"
    path.write_text(
        f"mode: monitor\ncluster: {{adapter: {adapter}, options: {options}}}\n"
        "plugins: [easy, first-fit]\njournal: hw.db\n"
    )
    return path


@pytest.mark.parametrize(
    "command", [["run", "--monitor"], ["run"], ["explain", "5"], ["dry-run", "--from-cluster"]]
)
def test_the_command_that_looks_further_is_named(headway: Headway, config: Path, command: list[str]) -> None:
    ran = headway(*command, "-c", config)
    said = ran.err.splitlines()
    # `explain` says first that no daemon answers.
    assert ran.code in (1, 2) and said[command[0] == "explain"].startswith("headway: ")
    assert f"`headway check -c {config}` checks each step on the way to the cluster." in ran.err


def test_a_run_that_cannot_begin_leaves_no_journal(headway: Headway, config: Path, tmp_path: Path) -> None:
    assert headway("run", "--monitor", "-c", config).code != 0
    assert not list(tmp_path.glob("hw.db*"))


def test_a_run_that_cannot_begin_keeps_the_journal_of_others(
    headway: Headway, config: Path, tmp_path: Path
) -> None:
    with Journal.open("hw.db") as journal:
        cluster = ClusterDescription.flat(4)
        journal.begin_run(RunInfo(Mode.MONITOR, 0.0, __version__, config.read_text(), 0, cluster))
        journal.end_run("stopped")
    assert headway("run", "--monitor", "-c", config).code != 0
    with Journal.open("hw.db", create=False, read_only=True) as journal:
        assert journal.last_run() is not None
