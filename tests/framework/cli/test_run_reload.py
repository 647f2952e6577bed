"""`headway run`: a configuration whose mistake only the cluster or the journal can find."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from headway.cli import run
from headway.config import Config
from headway.engine import Stopped
from headway.errors import UserError


def test_the_old_configuration_stays_in_force(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "site.yaml"
    file.write_text("mode: drive\nseed: 1\n")
    served: list[int] = []

    def serve(config: Config, plugin_files: tuple[Path, ...]) -> Stopped:
        served.append(config.seed)
        if config.seed == 2:
            raise UserError("cluster.options.partitions: Slurm has no partition 'bacth'.")
        file.write_text("mode: drive\nseed: 2\n")
        return Stopped.RELOAD if len(served) == 1 else Stopped.STOPPED

    monkeypatch.setattr(run, "serve", serve)
    done = CliRunner().invoke(run.command, ["-c", str(file)], catch_exceptions=False)
    assert done.exit_code == 0
    assert served == [1, 2, 1]
    assert "the old one stays in force" in done.stderr and "'bacth'" in done.stderr


def test_at_the_beginning_there_is_no_old_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "site.yaml"
    file.write_text("mode: drive\n")

    def serve(config: Config, plugin_files: tuple[Path, ...]) -> Stopped:
        raise UserError("cluster.options.partitions: Slurm has no partition 'bacth'.")

    monkeypatch.setattr(run, "serve", serve)
    with pytest.raises(UserError, match="bacth"):
        CliRunner().invoke(run.command, ["-c", str(file)], catch_exceptions=False)
