"""``headway schema``: what editors and programs need to know of the configuration file and of ``--json``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import click

from headway.cli.as_json import JsonOption, schema_of
from headway.cli.common import adapter_option, examples, plugin_files_option
from headway.errors import UserError, nearest


@click.command(
    "schema",
    epilog=examples(
        "headway schema > headway.schema.json    of the configuration file, for an editor",
        "headway schema status                   of what `headway status --json` prints",
        "headway schema journal info",
        "headway schema --list                   the commands that have --json",
    ),
)
@click.argument("words", nargs=-1, metavar="[COMMAND]...")
@click.option("--list", "listed", is_flag=True, help="List the commands that have --json.")
@plugin_files_option("A Python file with plugins that the configuration names. Repeatable.")
@adapter_option
@click.pass_context
def command(
    context: click.Context,
    words: tuple[str, ...],
    listed: bool,
    plugin_files: tuple[Path, ...],
    adapter_files: tuple[Path, ...],
) -> None:
    """Print the JSON schema of the configuration file, with the options of all installed plugins and
    adapters; with COMMAND, the schema of what that command prints with --json.

    An editor with yaml-language-server completes and checks a configuration whose first line is
    `# yaml-language-server: $schema=headway.schema.json`.
    """
    root = context.find_root()
    if listed:
        for path in _with_json(root, root.command, ()):
            click.echo(" ".join(path))
        return
    if words:
        found = schema_of(_named(root, words))
        if found is None:
            raise UserError(
                f"headway {' '.join(words)}: expected a command with --json (headway schema --list)"
            )
    else:
        from headway.config import Adapters
        from headway.config.schema import configuration_schema
        from headway.plugins import Catalogue

        found = configuration_schema(Catalogue(plugin_files), Adapters.with_files(adapter_files))
    click.echo(json.dumps(found, indent=2, ensure_ascii=False))


def _named(root: click.Context, words: tuple[str, ...]) -> click.Command:
    """The command of these words; raises :class:`UserError` if there is none."""
    at = root.command
    for number, word in enumerate(words):
        known = at.list_commands(root) if isinstance(at, click.Group) else []
        found = at.get_command(root, word) if isinstance(at, click.Group) else None
        if found is None:
            raise UserError(f"no command is called {' '.join(words[: number + 1])!r}.{nearest(word, known)}")
        at = found
    return at


def _with_json(root: click.Context, group: click.Command, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The words of each command that has --json."""
    if any(isinstance(parameter, JsonOption) for parameter in group.params):
        yield path
    if isinstance(group, click.Group):
        for name in sorted(group.list_commands(root)):
            found = group.get_command(root, name)
            if found is not None and not found.hidden:
                yield from _with_json(root, found, (*path, name))
