"""Commands that installed packages bring through the entry points ``headway.commands``."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import click
import pytest

import headway.cli


@click.command("greet", short_help="Say good day.")
@click.argument("whom")
def greet(whom: str) -> None:
    click.echo(f"good day {whom}")


@pytest.fixture(autouse=True)
def _installed(monkeypatch):
    entry = EntryPoint("greet", f"{__name__}:greet", headway.cli.COMMANDS)
    shipped = EntryPoint("run", f"{__name__}:greet", headway.cli.COMMANDS)
    monkeypatch.setattr(
        headway.cli, "entry_points", lambda group: [entry, shipped] if group == headway.cli.COMMANDS else []
    )


def run(capsys, *words: str) -> tuple[int, str, str]:
    code = 0
    try:
        headway.cli.main(list(words))
    except SystemExit as end:
        code = int(end.code or 0)
    out, err = capsys.readouterr()
    return code, out, err


def test_an_installed_command_is_called(capsys):
    assert run(capsys, "greet", "Anna") == (0, "good day Anna\n", "")


def test_it_is_listed_with_its_line(capsys):
    _, out, _ = run(capsys, "--help")
    assert any(line.split() == ["greet", "Say", "good", "day."] for line in out.splitlines())


def test_a_command_of_ours_is_not_replaced(capsys):
    _, out, _ = run(capsys, "run", "--help")
    assert "Schedule" in out or "real cluster" in out


def test_a_misspelt_one_is_among_the_nearest(capsys):
    code, _, err = run(capsys, "grete")
    assert code == 2 and "'greet'" in err
