"""docs/trust.md: its commands exist, and its table has each rule of workloads and runs."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click

from headway.cli import cli
from headway.experiment.rulebook import RULES, Stage

PAGE = (Path(__file__).parents[2] / "docs" / "trust.md").read_text(encoding="utf-8")


def test_the_commands_exist() -> None:
    (block,) = re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    for line in block.splitlines():
        _, name, *words = shlex.split(line, comments=True)
        context = click.Context(cli)
        command = cli.get_command(context, name)
        assert command is not None
        command.make_context(name, list(words), parent=context)


def names(cell: str) -> set[str]:
    """Rules of a cell such as ``2, 5, 25 to 29``."""
    spread = re.sub(
        r"(\d+) to (\d+)", lambda m: ", ".join(str(n) for n in range(int(m[1]), int(m[2]) + 1)), cell
    )
    return set(spread.split(", "))


def test_the_table_has_each_rule_of_workloads_and_runs() -> None:
    cells = re.findall(r"^\| ([^|]*?) \|", PAGE, re.MULTILINE)
    written = set().union(*(names(cell) for cell in cells if cell[0].isdigit()))
    assert written == {one.name for one in RULES if one.stage in (Stage.WORKLOAD, Stage.RUN)}
