"""The ``headway`` command line: one module a command."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from headway.cli.printable import printable
from headway.cli.streams import drop_output, open_standard_streams
from headway.errors import HeadwayError
from headway.version import __version__

#: Command -> (group, module, one line for ``--help``), in the order of ``--help``: within a group, what a
#: newcomer needs comes first. Modules are loaded when their command is called.
_COMMANDS = {
    "init": ("operate", "init", "Ask a cluster what it is; write what headway needs there."),
    "check": ("operate", "check", "Check configuration, plugins, journal and cluster."),
    "run": ("operate", "run", "Schedule a real cluster (or watch it with --monitor)."),
    "drive": ("operate", "drive", "Drive for a time, then give everything back: a first try."),
    "give-back": ("operate", "give_back", "Give control back to the batch system."),
    "status": ("operate", "status", "Report on the running daemon."),
    "serve": ("operate", "serve", "Serve the page and the interface over HTTP."),
    "health": ("operate", "health", "Look whether all is well: exit code 0, 1 or 2."),
    "what-if": ("operate", "what_if", "Compare the plan with the same queue under another policy."),
    "metrics": ("operate", "metrics", "Print the daemon's figures, for Prometheus."),
    "token": ("operate", "token", "Make, list, revoke and prune tokens for `headway serve`."),
    "plugins": ("operate", "plugins", "List what is installed, or describe a plugin."),
    "schema": ("operate", "schema", "JSON schema of the configuration file, or of --json."),
    "journal": ("operate", "journal", "Look after the journal: info, check, prune, copies."),
    "completion": ("operate", "completion", "Complete commands and options in bash, zsh or fish."),
    "replay": ("operate", "replay", "Run a journal again and report decisions that differ."),
    "starts": ("operate", "starts", "Compare planned with real starts, from the journal."),
    "shadow": ("operate", "shadow", "What headway would have done where it only watched."),
    "jobs": ("users", "jobs", "List my jobs: place, planned start, why each waits."),
    "explain": ("users", "explain", "Tell why a job waits, and its expected start."),
    "top": ("users", "top", "Watch queue, nodes and plan in a terminal."),
    "when": ("users", "when", "Tell when a job would start, before it is submitted."),
    "holes": ("users", "holes", "Tell what is free now, and for how long."),
    "elastic": ("users", "elastic", "Change a job's time limit or size, also while it runs."),
    "reserve": ("users", "reserve", "Reserve nodes or processors for a time."),
    "unreserve": ("users", "unreserve", "Give a reservation back."),
    "datasets": ("users", "datasets", "Tell which site has which dataset, or gets a copy."),
    "demo": ("experiments", "demo", "Compare three policies on a generated month of jobs."),
    "dry-run": ("experiments", "dry_run", "Run a trace, or a copy of the live queue, in emulation."),
    "compare": ("experiments", "compare", "A campaign: policies, workloads, loads, with intervals."),
    "diff": ("experiments", "diff", "How two runs differ: jobs, by how much, and why first."),
    "repeat": ("experiments", "repeat", "Run a campaign again: are the numbers the same?"),
    "results": ("experiments", "results", "A database of campaigns: list, filter, tabulate, plot."),
    "lint-experiment": ("experiments", "lint_experiment", "Which rules of evaluation a campaign breaks."),
    "tune": ("experiments", "tune", "Find the best value of a policy's option."),
    "analyze": ("experiments", "analyze", "Describe a workload: classes, arrivals, load, sizes."),
    "generate": ("experiments", "generate", "Draw a workload from a model and write it to a file."),
    "convert": ("experiments", "convert", "Convert a workload between formats."),
    "estimates": ("experiments", "estimates", "List models of users' estimates; fit one to a trace."),
    "reproduce": ("papers", "reproduce", "Repeat a paper's experiments, claim by claim."),
    "claims": ("papers", "claims", "Judge claims again from their rows; find stale tables."),
}


class _Lazy(click.Group):
    """A group whose commands are imported when they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        from headway.cli.installed import installed_commands

        others = {*super().list_commands(ctx), *installed_commands()}
        return list(_COMMANDS) + sorted(others - set(_COMMANDS))

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name in _COMMANDS:
            return importlib.import_module(f"headway.cli.{_COMMANDS[name][1]}").command
        from headway.cli.installed import installed_commands

        installed = installed_commands()
        if name in installed:
            loaded: click.Command = installed[name].load()
            return loaded
        return super().get_command(ctx, name)

    def by_group(self, ctx: click.Context) -> dict[str, list[tuple[str, str]]]:
        """Heading -> the commands below it that are not hidden, and their lines."""
        from headway.cli.groups import Told, grouped
        from headway.cli.installed import installed_lines

        told: dict[str, Told] = {name: (group, line) for name, (group, _, line) in _COMMANDS.items()}
        lines = installed_lines()
        for name in (*lines, *self.list_commands(ctx)):
            if name in told:
                continue
            if name in lines:
                told[name] = lines[name]
            elif (command := self.get_command(ctx, name)) and not command.hidden:
                told[name] = command.get_short_help_str(limit=100)
        return grouped(told.items())

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for heading, rows in self.by_group(ctx).items():
            with formatter.section(heading):
                formatter.write_dl(rows)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Commands by their lines for ``--help``, and options; no command is loaded for it."""
        from headway.cli.groups import Told
        from headway.cli.installed import installed_lines

        told: dict[str, Told] = {name: (group, line) for name, (group, _, line) in _COMMANDS.items()}
        told.update(installed_lines())
        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        lines = [told.get(name, "") for name in names]
        return [
            *(CompletionItem(name, help=said if isinstance(said, str) else said[1])
              for name, said in zip(names, lines, strict=True)),
            *click.Command.shell_complete(self, ctx, incomplete),
        ]  # fmt: skip

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        # Commands of ours are known without asking what is installed.
        if args and args[0] not in _COMMANDS and args[0] not in self.list_commands(ctx):
            from headway.cli.installed import add_plugin_commands

            add_plugin_commands(self, ctx.params.get("plugin_files") or ())
            if args[0] not in self.list_commands(ctx):
                from headway.errors import nearest

                ctx.fail(f"no command is called {args[0]!r}.{nearest(args[0], self.list_commands(ctx))}")
        return super().resolve_command(ctx, args)


@click.group(
    cls=_Lazy,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="`headway COMMAND --help` describes a command.",
)
@click.version_option(__version__, prog_name="headway")
@click.option("--plugin", "plugin_files", multiple=True, type=click.Path(path_type=Path),
              help="A Python file with plugins that contribute the command after it. "
                   "Repeatable.")  # fmt: skip
def cli(plugin_files: tuple[Path, ...]) -> None:
    """Schedule jobs from outside the batch system, live or in emulation.

    One configuration file names the cluster and the plugins that decide. The same file drives a
    real cluster, watches it, or runs on an emulated copy. Begin with `headway demo`, which needs no
    cluster.
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point: errors that were raised on purpose become a message and an exit code."""
    open_standard_streams()
    try:
        try:
            cli.main(arguments, prog_name="headway", standalone_mode=False)
        finally:
            sys.stdout.flush()
    except click.exceptions.Abort:
        click.echo("aborted", err=True)
        sys.exit(130)
    except click.exceptions.Exit as error:
        sys.exit(error.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except HeadwayError as error:
        click.echo(f"headway: {printable(str(error))}", err=True)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader went away (`| head`): not an error, and no more output is possible.
        drop_output()
        sys.exit(0)
    except OSError as error:
        # Files have errors of their own that say more; this is mostly the output: a full disk.
        drop_output()
        click.echo(f"headway: {error.filename or 'output'}: {error.strerror or error}", err=True)
        sys.exit(1)
