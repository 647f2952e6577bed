"""What `--json` prints has a shape, from which its schema is made."""

from __future__ import annotations

import json

import click
from click.testing import CliRunner

from headway.cli import cli
from headway.cli.as_json import json_option, say_json, schema_of
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
    command = cli.get_command(click.Context(cli), "elastic")
    assert command is not None and schema_of(command) is None
    status = cli.get_command(click.Context(cli), "status")
    assert status is not None and schema_of(status) is not None
