"""What several commands share: options, consoles, progress, clocks."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from headway.cli.collecting import COLLECTOR
from headway.cli.printable import printable
from headway.errors import Failure, UserError

if TYPE_CHECKING:
    from rich.console import Console

    from headway.workload import Trace

config_option = click.option(
    "-c", "--config", "config_path", type=click.Path(path_type=Path), help="Configuration file (YAML)."
)
#: Where a site's configuration is looked for, in this order, if it is not named. Never in the directory in
#: which the command is called: a file that a user left there would tell root which commands to run.
CONFIGS = (Path("/etc/headway/headway.yaml"),)


def _site_config() -> Path:
    """The configuration that is there; raises :class:`click.MissingParameter` if there is none."""
    for path in CONFIGS:
        if path.exists():
            return path
    context = click.get_current_context(silent=True)
    if context is not None and context.resilient_parsing:
        # A shell asks for completions: nothing is run.
        return CONFIGS[0]
    looked = ", ".join(str(path) for path in CONFIGS)
    raise click.MissingParameter(
        f"Expected -c FILE, or HEADWAY_CONFIG in the environment; found none of {looked}",
        param_hint="'-c' / '--config'", param_type="option",
    )  # fmt: skip


required_config_option = click.option(
    "-c", "--config", "config_path", type=click.Path(path_type=Path), envvar="HEADWAY_CONFIG",
    default=_site_config,
    help="Configuration file (YAML). Default: HEADWAY_CONFIG, else /etc/headway/headway.yaml.",
)  # fmt: skip


site_config_option = click.option(
    "-c", "--config", "config_path", type=click.Path(path_type=Path), envvar="HEADWAY_CONFIG",
    help="Configuration file (YAML). Default: as for `headway run`.",
)  # fmt: skip


daemon_config_option = click.option(
    "-c", "--config", "config_path", type=click.Path(path_type=Path), envvar="HEADWAY_CONFIG",
    help="Configuration file (YAML). Default: as for `headway run`, or the daemon's socket alone.",
)  # fmt: skip


def readable_config() -> Path | None:
    """The first configuration of :data:`CONFIGS` that this user can read."""
    return next((path for path in CONFIGS if os.access(path, os.R_OK)), None)


def named_config(path: Path | None) -> Path:
    """The configuration of :data:`site_config_option`, for a command that turned out to need one."""
    return path if path is not None else _site_config()


def _with_those_before(
    context: click.Context, _: click.Parameter, files: tuple[Path, ...]
) -> tuple[Path, ...]:
    """The files of a command, after the files that stand before it: ``headway --plugin FILE COMMAND``."""
    before: tuple[Path, ...] = context.find_root().params.get("plugin_files", ())
    return (*(file for file in before if file not in files), *files)


def plugin_files_option(means: str) -> Callable[[Any], Any]:
    """The option ``--plugin`` of a command, with its own line of help; it may stand before the command."""
    return click.option(
        "--plugin", "plugin_files", multiple=True, type=click.Path(path_type=Path),
        callback=_with_those_before, help=means,
    )  # fmt: skip


plugin_option = plugin_files_option(
    "A Python file whose plugins are enabled before the configured plugins. Repeatable."
)
policy_file_option = plugin_files_option("A Python file whose plugins can be named as policies. Repeatable.")

adapter_option = click.option(
    "--adapter", "adapter_files", multiple=True, type=click.Path(path_type=Path),
    help="A Python file whose adapter the configuration names. Repeatable.",
)  # fmt: skip


def examples(*lines: str) -> str:
    """The end of a command's help: command lines and what they do, line by line."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def console() -> Console:
    """For results, on standard output; or what collects them (:mod:`headway.cli.collecting`)."""
    if (collector := COLLECTOR.get()) is not None:
        return cast("Console", collector)
    from headway.cli.screen import screen

    return screen(stderr=False)


def messages() -> Console:
    """For progress and remarks, on standard error."""
    from headway.cli.screen import screen

    return screen(stderr=True)


def _is_plain_file() -> bool:
    """Whether standard output is a file or a pipe, and no variable says that it is to be taken for a terminal
    (those of rich, which documents them)."""
    forced = os.environ.get("FORCE_COLOR") or os.environ.get("TTY_COMPATIBLE") == "1"
    return not (forced or sys.stdout.isatty())


def say(text: str, where: Console | None = None, style: str | None = None) -> None:
    """Print sentences: folded between words on a terminal, left whole in a file or a pipe."""
    if where is None and (collector := COLLECTOR.get()) is not None:
        collector.say(printable(text))
        return
    if where is None and _is_plain_file():
        # rich, which would print the same, takes longer to load than many commands take.
        try:
            click.echo(printable(text.expandtabs()))
        except BrokenPipeError:
            # A reader that goes away is no error; one with a number would be one for click.
            raise BrokenPipeError from None
        return
    where = where if where is not None else console()
    where.print(text, style=style, markup=False, soft_wrap=not where.is_terminal)


def tell_issues(trace: Trace, verbose: bool | None = None) -> None:
    """Say what was wrong with a trace, on standard error; ``verbose``: line by line. None: the command has no
    option for that."""
    from headway.workload.formats import problems

    for line in problems(trace, verbose):
        say(line, messages(), style="yellow")


def warn(text: str) -> None:
    """Say what may not be as it was meant, on standard error."""
    say(text, messages(), style="yellow")


def prepare_directory(path: Path, option: str = "--out") -> None:
    """Make the directory for results now, so that a long run does not end in an error.

    Raises :class:`UserError` if something else is there, :class:`Failure` if it cannot be written.
    """
    if path.exists() and not path.is_dir():
        raise UserError(f"{option} {path}: expected a directory, found a file")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise UserError(f"{option} {path}: expected a directory, found a file on the way to it") from None
    except OSError as error:
        raise Failure(f"{option} {path}: the directory cannot be made: {error.strerror or error}") from error
    if not os.access(path, os.W_OK | os.X_OK):
        raise Failure(f"{option} {path}: the directory is not writable")


def wall_clock(time: float, zone: bool = True) -> str:
    """An epoch second in local time, for a person, with the zone's name behind it; ``zone=False``: where a
    heading says the zone."""
    if time in (float("inf"), float("-inf")):
        return "never"
    try:
        return (
            datetime.fromtimestamp(time).astimezone().strftime("%Y-%m-%d %H:%M:%S" + (" %Z" if zone else ""))
        )
    except (ValueError, OverflowError, OSError):
        # Limits of thousands of years can be asked for; calendars end with the year 9999.
        return f"{time:.0f} s after 1970"


def when(time: float) -> str:
    """A moment of a run: by the wall clock, or in seconds where time begins at 0, as in dry runs."""
    return wall_clock(time) if time > 1e8 else f"{time:.0f}"


@contextmanager
def reaching_the_cluster(config_path: Path, of: type[Failure] = Failure) -> Iterator[None]:
    """A failure here, of this kind, is one of the way to the cluster: it names the command that looks into
    it."""
    try:
        yield
    except of as error:
        told = f"{error}\n`headway check -c {config_path}` checks each step on the way to the cluster."
        raise type(error)(told) from error
