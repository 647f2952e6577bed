"""`headway drive`: what it refuses before it touches anything."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from headway.cli import cli


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
