"""Commands that installed packages bring through the entry points ``headway.commands``."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import EntryPoint, entry_points

import click
import pytest

import headway.cli
from headway.cli import installed
from headway.cli.groups import GROUPS, LONGEST_LINE, OTHERS
from headway.cli.installed import COMMAND_LINES, COMMANDS


@click.command("greet", short_help="Say good day.")
@click.argument("whom")
def greet(whom: str) -> None:
    click.echo(f"good day {whom}")


#: Of the first there is no such module; of the second no such command is installed.
LINES = {
    "grow": "Grow a tree.",
    "gone": "Of a package that is there no longer.",
    "count": ("papers", "Count pages."),
    "weigh": ("of a later version", "Weigh a book."),
}
SHIPPED = {entry.name: entry for entry in entry_points(group=COMMANDS)}


@pytest.fixture(autouse=True)
def _installed(monkeypatch):
    entries = {
        COMMANDS: [
            EntryPoint("greet", f"{__name__}:greet", COMMANDS),
            EntryPoint("grow", "no.such.module:grow", COMMANDS),
            EntryPoint("count", "no.such.module:count", COMMANDS),
            EntryPoint("weigh", "no.such.module:weigh", COMMANDS),
            EntryPoint("run", f"{__name__}:greet", COMMANDS),
        ],
        COMMAND_LINES: [EntryPoint("lines", f"{__name__}:LINES", COMMAND_LINES)],
    }
    monkeypatch.setattr(installed, "entry_points", lambda group: entries.get(group, []))


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


def test_one_whose_line_is_known_is_listed_without_being_loaded(capsys):
    code, out, _ = run(capsys, "--help")
    assert code == 0 and "gone" not in out
    assert any(line.split() == ["grow", "Grow", "a", "tree."] for line in out.splitlines())


def sections(help_text: str) -> dict[str, list[str]]:
    """Heading -> the names below it."""
    found: dict[str, list[str]] = {}
    for line in help_text.splitlines():
        if line.endswith(":") and not line.startswith(" "):
            names = found.setdefault(line[:-1], [])
        elif line.startswith("  ") and not line.startswith("   ") and found:
            names.append(line.split()[0])
    return found


def test_commands_are_listed_in_groups(capsys):
    _, out, _ = run(capsys, "--help")
    found = sections(out)
    assert [heading for heading in found if heading != "Options"] == [*GROUPS.values(), OTHERS]
    assert found[GROUPS["operate"]][:3] == ["init", "check", "run"]
    assert found[GROUPS["users"]][:2] == ["jobs", "explain"]
    assert found[GROUPS["experiments"]][0] == "demo"


def test_one_that_names_a_group_is_listed_behind_ours(capsys):
    _, out, _ = run(capsys, "--help")
    assert sections(out)[GROUPS["papers"]] == ["reproduce", "claims", "count"]


def test_one_without_a_group_that_we_know_is_listed_with_others(capsys):
    _, out, _ = run(capsys, "--help")
    assert sections(out)[OTHERS][:3] == ["grow", "weigh", "greet"]


def test_each_command_of_ours_has_a_group_and_one_short_line():
    for name, (group, _, line) in headway.cli._COMMANDS.items():
        assert group in GROUPS, name
        assert len(line) <= LONGEST_LINE, name


def test_each_of_those_that_ship_has_a_group_and_one_short_line():
    told = {}
    for entry in entry_points(group=COMMAND_LINES):
        told.update(entry.load())
    assert set(told) == set(SHIPPED)
    for name, (group, line) in told.items():
        assert group in GROUPS, name
        assert len(line) <= LONGEST_LINE, name
    assert not any(entry.load().hidden for entry in SHIPPED.values())


def test_none_of_those_that_ship_is_loaded_for_the_help():
    code = (
        "import sys, headway.cli\n"
        "try: headway.cli.main(['--help'])\n"
        "except SystemExit: pass\n"
        "print('loaded', *sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stderr.split("loaded")[-1].split())
    assert "headway.cli" in loaded and all(name in done.stdout for name in SHIPPED)
    assert loaded.isdisjoint(entry.module for entry in SHIPPED.values())


def test_a_command_of_ours_is_not_replaced(capsys):
    _, out, _ = run(capsys, "run", "--help")
    assert "Schedule" in out or "real cluster" in out


def test_a_misspelt_one_is_among_the_nearest(capsys):
    code, _, err = run(capsys, "grete")
    assert code == 2 and "'greet'" in err
