"""`headway drive`: what it refuses before it touches anything."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import headway.cli.drive as module
from headway.cli import cli
from headway.journal import Journal


@pytest.mark.parametrize(
    ("text", "words", "said"),
    [
        ("mode: dry-run\n", ("--for", "2h"), "mode: expected monitor or drive, found dry-run"),
        ("mode: monitor\n", ("--for", "2h"), "expected a real cluster's adapter"),
        ("mode: monitor\n", (), "Missing option '--for'"),
        ("mode: monitor\n", ("--for", "soon"), "expected a time such as 30m"),
        ("mode: monitor\n", ("--for", "0s"), "a time above 0"),
    ],
)
def test_it_refuses_what_it_cannot_drive(
    tmp_path: Path, text: str, words: tuple[str, ...], said: str
) -> None:
    path = tmp_path / "site.yaml"
    path.write_text(text)
    done = CliRunner().invoke(cli, ["drive", "-c", str(path), *words])
    assert done.exit_code != 0 and said in f"{done.output}{done.exception}"


def test_while_another_headway_has_the_journal_it_does_not_say_that_it_drives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_check", lambda config, path: None)
    monkeypatch.setattr(module, "_pools", lambda config: ["batch"])
    journal = tmp_path / "journal.sqlite"
    path = tmp_path / "site.yaml"
    path.write_text(
        "cluster: {adapter: slurm, options: {partitions: [batch]}}\n"
        f"journal: {journal}\nplugins: [easy]\n"
    )
    with Journal.open(str(journal)):
        done = CliRunner().invoke(cli, ["drive", "-c", str(path), "--for", "2h"])
    said = f"{done.output}{done.exception}"
    assert done.exit_code != 0 and "another headway writes to it" in said
    assert "driving batch" not in said
