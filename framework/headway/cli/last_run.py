"""For commands that look at the last recorded run: the live daemon's, which is not asked, or a dry run's."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headway.cli.common import adapter_option, plugin_option

if TYPE_CHECKING:
    from headway.scheduler import Scheduler
    from headway.state import PoolState

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
    from headway.errors import UserError
    from headway.journal import Journal
    from headway.model.modes import Mode
    from headway.plugins import Catalogue

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


def pool_of(scheduler: Scheduler, name: str | None) -> PoolState:
    """The pool of that name, or the only one. Raises :class:`headway.errors.UserError` for another name,
    and if there are several to choose from."""
    from headway.errors import UserError

    pools = scheduler.state.pools
    known = ", ".join(sorted(pools)) or "none"
    if name is None:
        if len(pools) != 1:
            raise UserError(f"--pool: expected the name of a pool, found none; the run has {known}")
        return next(iter(pools.values()))
    if name not in pools:
        raise UserError(f"--pool: expected a pool of the run ({known}), found {name!r}")
    return pools[name]
