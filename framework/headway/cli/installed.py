"""Commands that are not ours: of installed packages, and of plugins."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import EntryPoint
from pathlib import Path

import click

from headway.cli.groups import Told
from headway.inputs.entry_points import entry_points

#: Entry points (name of a command -> click command) of commands that installed packages bring, such as
#: the commands of adapters. Loaded when they are called; when they are listed only if no line says
#: what they are.
COMMANDS = "headway.commands"

#: Entry points (any name -> mapping of names of such commands to their lines for ``--help``, or to pairs of a
#: group (:data:`headway.cli.groups.GROUPS`) and a line).
COMMAND_LINES = "headway.command_lines"


def installed_commands() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=COMMANDS)}


def installed_lines() -> dict[str, Told]:
    """What is said of installed commands without loading them."""
    installed = installed_commands()
    told: dict[str, Told] = {}
    for entry in entry_points(group=COMMAND_LINES):
        told.update(entry.load())
    return {name: line for name, line in told.items() if name in installed}


def add_plugin_commands(group: click.Group, files: Iterable[Path]) -> None:
    """Commands that plugins contribute; looked for only when no command of ours is meant.

    The plugins are made with the defaults of their options, because no configuration is read yet.
    """
    from headway.plugins import Catalogue, PluginConfig, Plugins
    from headway.plugins.hook_names import hooks_of

    catalogue = Catalogue(files)
    for name in catalogue.names():
        try:
            if "register_commands" not in hooks_of(catalogue.get(name)):
                continue
            plugins = Plugins.load([PluginConfig(name)], catalogue, None)
            for _, register in plugins.implementations("register_commands"):
                register(group)
        except Exception as error:  # a plugin's code must not cost the other commands
            click.echo(f"headway: plugin {name}: its commands cannot be loaded: {error}", err=True)
