"""The ``headway`` command line: one module a command."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import click

from headway import __version__
from headway.errors import HeadwayError

#: Command -> (module, one line for ``--help``). Modules are loaded when their command is called.
_COMMANDS = {
    "demo": ("demo", "A generated month on 320 processors under three policies, compared."),
    "dry-run": ("dry_run", "Run a trace, or a copy of the live queue, in the emulated cluster."),
    "run": ("run", "The daemon: schedule a real cluster (or watch it with --monitor)."),
    "check": ("check", "Is everything there: configuration, plugins, journal, cluster?"),
    "plugins": ("plugins", "What is installed: policies and other plugins, their options."),
    "replay": ("replay", "Run a journal again and report decisions that differ."),
    "explain": ("explain", "Why a job waits, what it waits for, when it is expected to start."),
}


class _Lazy(click.Group):
    """A group whose commands are imported when they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS) + sorted(set(super().list_commands(ctx)) - set(_COMMANDS))

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name in _COMMANDS:
            return importlib.import_module(f"headway.cli.{_COMMANDS[name][0]}").command
        return super().get_command(ctx, name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [(name, line) for name, (_, line) in _COMMANDS.items()]
        rows += [
            (name, command.get_short_help_str())
            for name in sorted(self.commands)
            if (command := self.commands[name]) and not command.hidden
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.list_commands(ctx):
            _add_plugin_commands(self, ctx.params.get("plugin_files") or ())
            if args[0] not in self.list_commands(ctx):
                from headway.errors import nearest

                ctx.fail(f"no command is called {args[0]!r}.{nearest(args[0], self.list_commands(ctx))}")
        return super().resolve_command(ctx, args)


def _add_plugin_commands(group: click.Group, files: Iterable[Path]) -> None:
    """Commands that plugins contribute; looked for only when no command of ours is meant.

    The plugins are made with the defaults of their options, because no configuration is read yet.
    """
    from headway.plugins import Catalogue, PluginConfig, Plugins, hooks_of

    catalogue = Catalogue(files)
    for name in catalogue.names():
        try:
            if "register_commands" not in hooks_of(catalogue.get(name)):
                continue
            plugins = Plugins.load([PluginConfig(name)], catalogue, None)
            for _, register in plugins.implementations("register_commands"):
                register(group)
        except Exception as error:  # somebody else's code must not cost the other commands
            click.echo(f"headway: plugin {name}: its commands are not available: {error}", err=True)


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="headway")
@click.option("--plugin", "plugin_files", multiple=True, type=click.Path(path_type=Path),
              help="Before a command that a plugin file contributes: that file. Repeatable.")  # fmt: skip
def cli(plugin_files: tuple[Path, ...]) -> None:
    """An external scheduler for real batch systems and for an emulated cluster."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point: errors that were raised on purpose become a message and an exit code."""
    try:
        cli.main(arguments, prog_name="headway", standalone_mode=False)
    except click.exceptions.Abort:
        click.echo("aborted", err=True)
        sys.exit(130)
    except click.exceptions.Exit as error:
        sys.exit(error.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except HeadwayError as error:
        click.echo(f"headway: {error}", err=True)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader went away (`| head`): not an error, and no more output is possible.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
