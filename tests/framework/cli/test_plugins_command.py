"""``headway plugins``, and the help texts."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from commandline import Headway

from headway.cli import cli
from headway.cli.plugins import reflowed
from headway.plugins import Catalogue

PLUGIN = '''
from typing import Annotated, Literal

import pydantic
from headway.hookspecs import hookimpl

class Inner(pydantic.BaseModel):
    pass

class Patient:
    """Starts nothing [at all]."""

    class Options(pydantic.BaseModel):
        patience: float = pydantic.Field(default=3.5, description="how much, in [s]")
        names: list[str] = pydantic.Field(default_factory=list)
        since: Literal["start", "submit"] = pydantic.Field(default="start", alias="from")
        limits: dict[str, Annotated[float, pydantic.Field(gt=0)]] | None = None
        inner: list[Inner] = []

    def __init__(self, options):
        self.options = options

    @hookimpl
    def schedule(self, view):
        return []
'''


def test_every_plugin_is_listed_under_what_it_does(headway: Headway) -> None:
    ran = headway("plugins")
    assert (ran.code, ran.err) == (0, "")
    names = [line.split()[0] for line in ran.out.splitlines() if line.startswith("  ") and line[2] != " "]
    assert sorted(names) == sorted([*Catalogue().names(), *Catalogue().presets()])
    policies = ran.out.split("Policies: ")[1].split("\n\n")[0]
    assert "  easy " in policies and "  first-fit " not in policies
    assert "Adapters (cluster: adapter: NAME): emulated, federation, lsf, pbs, slurm" in ran.out
    assert max(map(len, ran.out.splitlines())) <= 80


@pytest.mark.parametrize("name", Catalogue().names())
def test_each_plugin_tells_about_itself(headway: Headway, name: str) -> None:
    ran = headway("plugins", name)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith(f"{name}: ")
    assert "\nhooks: " in ran.out and "\noptions:" in ran.out


def test_a_plugin_of_a_file_is_listed_with_its_options(headway: Headway, tmp_path: Path) -> None:
    path = tmp_path / "patient.py"
    path.write_text(PLUGIN)
    assert "  patient " in headway("plugins", "--plugin", path).out
    said = headway("plugins", "patient", "--plugin", path).out
    assert said.startswith("patient: Starts nothing [at all].\n")
    assert f"enable: --plugin {path}" in said.splitlines()
    assert ["patience", "float", "3.5", "how", "much,", "in", "[s]"] in [
        line.split() for line in said.splitlines()
    ]
    rows = [line.split("  ") for line in said.splitlines()]
    shown = {row[1]: next(cell.strip() for cell in row[2:] if cell) for row in rows if len(row) > 3}
    assert shown["names"] == "list[str]"
    assert shown["from"] == "start | submit"
    assert shown["limits"] == "dict[str, float] | None"
    assert shown["inner"] == "list[mapping]"


def test_a_file_may_be_named_before_any_command(headway: Headway, tmp_path: Path) -> None:
    (tmp_path / "patient.py").write_text(PLUGIN)
    assert "patience" in headway("--plugin", "patient.py", "plugins", "patient").out
    for command in (["plugins"], ["generate"], ["estimates"]):
        ran = headway("--plugin", "none.py", *command)
        assert (ran.code, "none.py: expected a Python file" in ran.err) == (2, True), command


@pytest.mark.parametrize("name", Catalogue().names())
def test_every_option_of_every_plugin_is_explained(name: str) -> None:
    options = Catalogue().info(name).options
    for key, field in options.model_fields.items() if options is not None else ():
        assert field.description, f"{name}: {key}"


def test_texts_are_folded_by_paragraphs_lists_and_code() -> None:
    text = "One two three\nfour five.\n\n- first item\n  goes on\n- second\n\n    code = 1\n    more\n"
    assert reflowed(text, 20) == [
        "One two three four", "five.", "", "- first item goes on", "- second", "", "    code = 1", "    more",
    ]  # fmt: skip


COMMANDS = ["demo", "dry-run", "run", "check", "plugins", "replay", "explain"]


@pytest.mark.parametrize("arguments", [[], *([name] for name in COMMANDS)])
def test_help_fits_80_columns(headway: Headway, arguments: list[str]) -> None:
    ran = headway(*arguments, "--help")
    assert (ran.code, ran.err) == (0, "")
    assert max(map(len, ran.out.splitlines())) <= 80


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_explained_in_sentences_and_every_command_has_examples(
    headway: Headway, name: str
) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help and parameter.help.endswith("."), f"{name} {parameter.name}"
    said = headway(name, "--help").out
    examples = [line.strip() for line in said.split("Examples:")[1].splitlines() if line.strip()]
    assert examples and all(line.startswith(f"headway {name}") for line in examples)


def test_the_version_is_told(headway: Headway) -> None:
    assert headway("--version").out.startswith("headway, version 0.")


def test_h_is_help(headway_process: Headway) -> None:
    """In a process of its own: click remembers of a command how the first one who called it asks for help."""
    assert headway_process("run", "-h").out == headway_process("run", "--help").out != ""
