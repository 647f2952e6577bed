"""For commands that look at the last recorded run: the live daemon's, which is not asked, or a dry run's."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from headway.cli.asking import daemon_of
from headway.cli.common import (
    adapter_option,
    daemon_config_option,
    messages,
    plugin_option,
    readable_config,
    say,
)
from headway.errors import Failure, UserError

if TYPE_CHECKING:
    import msgspec

    from headway.scheduler import Scheduler
    from headway.service.protocol import Question, Reply
    from headway.state import PoolState

Answer = TypeVar("Answer")

_OPTIONS = [
    click.option("-c", "--config", "config_path", type=click.Path(path_type=Path),
                 help="The daemon's configuration file, which names its journal."),
    click.option("--journal", "journal_path", metavar="JOURNAL",
                 help="Journal: a SQLite file or a database URL, such as a dry run's, instead of a "
                      "configuration."),
    plugin_option,
    adapter_option,
]  # fmt: skip


def last_run_options(function: Any) -> Any:
    """A command's options ``-c``, ``--journal``, ``--plugin`` and ``--adapter``; it is given ``config_path``,
    ``journal_path``, ``plugin_files`` and ``adapter_files``, for :func:`repeat_last_run`."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


JOURNAL_ONLY = click.option(
    "--journal-only", is_flag=True,
    help="Do not ask the daemon; read the configuration's journal.",
)  # fmt: skip
#: Seconds for which the daemon may take to answer, and is waited for where it is not there.
_PATIENCE, _ABSENCE = 15.0, 0.5


def daemon_or_last_run_options(function: Any) -> Any:
    """The same for a command that asks the daemon first: ``-c`` may be left out, and there is
    ``journal_only``."""
    for option in (JOURNAL_ONLY, *reversed(_OPTIONS[1:]), daemon_config_option):
        function = option(function)
    return function


def from_daemon(config_path: Path | None, ask: Callable[[Path], Answer]) -> Answer | None:
    """What ``ask`` gets from the daemon at its socket; None, and why on standard error, if no daemon answers
    and a configuration names a journal, which can be read instead.

    Raises :class:`Failure` if nothing answers and there is no configuration."""
    journal = config_path is not None or readable_config() is not None
    try:
        socket, _ = daemon_of(config_path)
    except UserError as error:
        if not journal:
            raise
        why = str(error)
    else:
        try:
            return ask(socket)
        except Failure as error:
            if not journal:
                raise
            why = str(error)
    say(f"From the journal: {why}", messages())
    return None


def found_by(socket: Path, question: Question) -> Reply:
    """The daemon's reply to a question, which found something. Raises :class:`UserError` with what the daemon
    says is not there, :class:`Failure` if there is no answer."""
    from headway.service.client import ask

    reply = ask(socket, question, timeout=_PATIENCE, patience=_ABSENCE)
    if reply.outcome == "unknown":
        raise UserError(reply.reason)
    if reply.found is None:
        raise Failure(f"the daemon has no answer: {reply.reason}")
    return reply


def told_by_daemon(config_path: Path | None, name: str, pages: Callable[[int], str]) -> list[msgspec.Raw]:
    """The answers of a plugin of the running daemon to a question, page by page; [] if the journal is to be
    read (:func:`from_daemon`). ``pages``: the text of the question about the page that begins at a place."""
    import msgspec

    from headway.service.protocol import PluginQuestion, Told

    class _Next(msgspec.Struct):
        next: int | None = None

    def ask_all(socket: Path) -> list[msgspec.Raw]:
        found: list[msgspec.Raw] = []
        place: int | None = 0
        while place is not None:
            reply = found_by(socket, PluginQuestion(name, pages(place)))
            if not isinstance(reply.found, Told):
                raise Failure(f"the daemon has another answer to the question {name!r}")
            if not found and reply.reason:
                say(reply.reason, messages())
            found.append(reply.found.answer)
            place = msgspec.json.decode(reply.found.answer, type=_Next).next
        return found

    return from_daemon(config_path, ask_all) or []


def repeat_last_run(
    config_path: Path | None,
    journal_path: str | None,
    plugin_files: tuple[Path, ...],
    adapter_files: tuple[Path, ...],
    look: Callable[[Scheduler, float], None] | None = None,
) -> tuple[Scheduler, float]:
    """The last recorded run, repeated to its end; and the time that it is there now, absolute seconds.

    ``look``: called after each cycle, with its time.

    The journal is read only. Raises :class:`headway.errors.UserError` if there is no recorded run.
    """
    from headway.config import Adapters, load_config
    from headway.daemon.replay import repeating
    from headway.journal import Journal
    from headway.model.modes import Mode
    from headway.plugins import Catalogue

    if journal_path is None:
        config_path = config_path or readable_config()
    elif _is_of_environment("config_path"):
        config_path = None
    if (config_path is None) == (journal_path is None):
        raise click.UsageError("expected either --config or --journal")
    adapters = Adapters.with_files(adapter_files)
    if journal_path is None:
        assert config_path is not None
        journal_path = load_config(config_path, adapters).journal
    with Journal.open(journal_path, create=False, read_only=True) as journal:
        run = journal.last_run()
        if run is None:
            raise UserError(f"{journal_path}: expected a recorded run, found none")
        scheduler = repeating(run, Catalogue(plugin_files), adapters)
        now = run.info.started_at if run.info.mode != Mode.DRY_RUN else 0.0
        for cycle in journal.cycles(run.id):
            scheduler.step(cycle.now, cycle.events)
            now = cycle.now
            if look is not None:
                look(scheduler, now)
    if run.ended_at is None and run.info.mode != Mode.DRY_RUN:
        now = max(now, time.time())
    return scheduler, now


def _is_of_environment(parameter: str) -> bool:
    """Whether the command's parameter stands in the environment, and not on the command line."""
    context = click.get_current_context(silent=True)
    return context is not None and context.get_parameter_source(parameter) is ParameterSource.ENVIRONMENT


def pool_of(scheduler: Scheduler, name: str | None) -> PoolState:
    """The pool of that name, or the only one. Raises :class:`headway.errors.UserError` for another name,
    and if there are several to choose from."""
    pools = scheduler.state.pools
    known = ", ".join(sorted(pools)) or "none"
    if name is None:
        if len(pools) != 1:
            raise UserError(f"--pool: expected the name of a pool, found none; the run has {known}")
        return next(iter(pools.values()))
    if name not in pools:
        raise UserError(f"--pool: expected a pool of the run ({known}), found {name!r}")
    return pools[name]
