"""What `--json` prints has a shape, from which its schema is made."""

from __future__ import annotations

import json

import click
import msgspec
from click.testing import CliRunner
from rich.console import Group
from rich.table import Table
from rich.text import Text

from headway.cli import cli
from headway.cli.as_json import json_option, printed_json, say_json, schema_of
from headway.cli.common import console, messages, say
from headway.cli.printed import Printed, PrintedTable
from headway.inquiry.reports import CopyReport


@click.command()
@json_option("headway.inquiry.reports:CopyReport")
def shows(as_json: bool) -> None:
    """A command."""
    if as_json:
        say_json(CopyReport("kiel", "mainz", 5.0, 7))


def test_the_shape_is_printed_and_told() -> None:
    printed = json.loads(CliRunner().invoke(shows, ["--json"]).output)
    schema = schema_of(shows)
    assert schema is not None
    shape = schema["$defs"][schema["$ref"].rpartition("/")[2]]
    assert set(printed) == set(shape["properties"]) == set(shape["required"])


def test_a_command_without_json_has_no_schema() -> None:
    command = cli.get_command(click.Context(cli), "run")
    assert command is not None and schema_of(command) is None
    status = cli.get_command(click.Context(cli), "status")
    assert status is not None and schema_of(status) is not None


@click.command()
@click.option("--fail", is_flag=True)
@printed_json
def tells(fail: bool) -> None:
    """A command that prints for people."""
    table = Table("job", "wait", title="Waits")
    table.add_row("1", Text("5 s", style="red"))
    say("Two sentences.\nEach a line.")
    console().print(Group(table, Text("all is well", style="green")))
    say("a remark", messages())
    if fail:
        raise SystemExit(3)


def test_sentences_and_tables_become_a_document_without_their_layout() -> None:
    ran = CliRunner().invoke(tells, ["--json"])
    assert msgspec.json.decode(ran.stdout, type=Printed) == Printed(
        ("Two sentences.", "Each a line.", "all is well"),
        (PrintedTable("Waits", ("job", "wait"), (("1", "5 s"),)),),
    )
    assert ran.stderr == "a remark\n" and ran.exit_code == 0
    plain = CliRunner().invoke(tells)
    assert plain.stdout.startswith("Two sentences.\nEach a line.\n") and "{" not in plain.stdout


def test_the_exit_code_stays_and_what_was_found_is_printed() -> None:
    ran = CliRunner().invoke(tells, ["--json", "--fail"])
    assert (
        ran.exit_code == 3 and msgspec.json.decode(ran.stdout, type=Printed).sentences[0] == "Two sentences."
    )


def test_a_command_that_fails_before_it_found_anything_prints_no_document() -> None:
    @click.command()
    @printed_json
    def fails() -> None:
        raise click.ClickException("no such file")

    ran = CliRunner().invoke(fails, ["--json"])
    assert (ran.exit_code, ran.stdout) == (1, "")
