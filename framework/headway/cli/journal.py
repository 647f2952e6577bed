"""``headway journal``: the journal over the years."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headway.cli.as_json import json_option, printed_json, say_json
from headway.cli.asking import DURATION
from headway.cli.common import (
    adapter_option,
    console,
    examples,
    named_config,
    say,
    site_config_option,
    wall_clock,
)
from headway.errors import Damaged, UserError

if TYPE_CHECKING:
    from headway.journal.checking import Findings
    from headway.journal.pruning import Pruned
    from headway.journal.summary import Summary

#: Faults and remarks that are printed; ``--json`` has all.
_SHOWN = 20
#: Runs that are listed, the newest.
_RUNS = 20
_KEEP = 90 * 86400.0

_KEEP_OPTION = click.option(
    "--keep", type=DURATION, default=_KEEP, metavar="TIME",
    help="How long runs are kept after their end (90d, 5000h), at least 30d. Default: 90d.",
)  # fmt: skip
_JOURNAL_OPTION = click.option(
    "--journal", "journal_path", metavar="JOURNAL",
    help="A SQLite file or a database URL, in the place of the configuration's journal.",
)  # fmt: skip
_PLACE_OPTIONS = (site_config_option, _JOURNAL_OPTION, adapter_option)


def _place_options(function: Any) -> Callable[..., Any]:
    """A command's options ``-c``, ``--journal`` and ``--adapter``, for :func:`_place`."""
    for option in reversed(_PLACE_OPTIONS):
        function = option(function)
    decorated: Callable[..., Any] = function
    return decorated


def _place(config_path: Path | None, journal_path: str | None, adapter_files: tuple[Path, ...]) -> str:
    """The journal's file or URL."""
    if journal_path is not None:
        return journal_path
    from headway.config import Adapters, load_config

    return load_config(named_config(config_path), Adapters.with_files(adapter_files)).journal


@click.group("journal")
def command() -> None:
    """Look after the journal: what it holds, whether it is in order, old runs, backups, another database.

    `info`, `check`, `prune` and `backup` may run beside the daemon; `restore` and `move` want it stopped.
    """


@command.command("info", epilog=examples("headway journal info -c site.yaml"))
@_place_options
@_KEEP_OPTION
@json_option("headway.journal.summary:Summary")
def info(
    config_path: Path | None,
    journal_path: str | None,
    adapter_files: tuple[Path, ...],
    keep: float,
    as_json: bool,
) -> None:
    """Tell where the journal is, what it holds, and what `prune` would remove. Only reads."""
    from headway.journal.database import Database
    from headway.journal.summary import summary

    _check_keep(keep)
    place = _place(config_path, journal_path, adapter_files)
    with closing(Database(place, create=False, read_only=True)) as database:
        found = summary(database, keep)
    if as_json:
        say_json(found)
    else:
        _show(found)


@command.command(
    "check", epilog=examples("headway journal check -c site.yaml && headway journal backup ... -c site.yaml")
)
@_place_options
@json_option("headway.journal.checking:Findings")
def check(
    config_path: Path | None, journal_path: str | None, adapter_files: tuple[Path, ...], as_json: bool
) -> None:
    """Look at all of the journal, and name each record that is wrong or cannot be read. Only reads.

    Exit code 0 if all is in order, 3 if the journal is damaged, 2 if it is no journal, 1 if it cannot be
    reached.
    """
    from headway.journal import checking
    from headway.journal.database import Database

    place = _place(config_path, journal_path, adapter_files)
    with closing(Database(place, create=False, read_only=True)) as database:
        found = checking.check(database)
    if as_json:
        say_json(found)
    else:
        _tell_findings(found)
    if found.faults:
        raise SystemExit(Damaged.exit_code)


@command.command(
    "prune",
    epilog=examples(
        "headway journal prune --keep 90d --dry-run -c site.yaml",
        "headway journal prune --keep 90d -c site.yaml",
    ),
)
@_place_options
@_KEEP_OPTION
@click.option("--dry-run", is_flag=True, help="Only tell what would be removed.")
@json_option("headway.journal.pruning:PruneReport")
def prune(
    config_path: Path | None,
    journal_path: str | None,
    adapter_files: tuple[Path, ...],
    keep: float,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Remove runs that ended long ago.

    A run goes as a whole; a reload of the daemon begins a new run. What a restart needs stays: the run that
    is being written and the newest run of each mode.
    """
    from headway.journal.database import Database
    from headway.journal.pruning import Pruned, PruneReport, over_before
    from headway.journal.pruning import prune as remove_old

    _check_keep(keep)
    place = _place(config_path, journal_path, adapter_files)
    now = time.time()
    if dry_run:
        with closing(Database(place, create=False, read_only=True)) as database, database.reading() as read:
            done = Pruned(over_before(read, now - keep, now), 0, beside=False)
    else:
        done = remove_old(place, now - keep)
    if as_json:
        say_json(PruneReport(*done, dry_run))
    else:
        _tell_pruned(done, dry_run)


@command.command(
    "backup", epilog=examples("headway journal backup /backup/journal-monday.sqlite -c site.yaml")
)
@click.argument("file", type=click.Path(path_type=Path))
@_place_options
@printed_json
def backup(
    file: Path, config_path: Path | None, journal_path: str | None, adapter_files: tuple[Path, ...]
) -> None:
    """Write the journal of this moment into a new FILE (SQLite), also while the daemon writes.

    Nothing is overwritten. Only its owner can read FILE (mode 0600).
    """
    from headway.inputs.sizes import said_bytes
    from headway.journal.backup import back_up
    from headway.journal.database import Database

    place = _place(config_path, journal_path, adapter_files)
    with closing(Database(place, create=False, read_only=True)) as database:
        back_up(database, file)
    say(f"written: {file} ({said_bytes(file.stat().st_size)})")


@command.command(
    "restore", epilog=examples("headway journal restore /backup/journal-monday.sqlite -c site.yaml")
)
@click.argument("file", type=click.Path(path_type=Path))
@_place_options
@click.option("--force", is_flag=True, help="Also replace a journal that has later entries than the backup.")
@printed_json
def restore(
    file: Path,
    config_path: Path | None,
    journal_path: str | None,
    adapter_files: tuple[Path, ...],
    force: bool,
) -> None:
    """Put the backup FILE into the journal's place, with the daemon stopped.

    The replaced journal stays beside it, as JOURNAL.replaced-DATE-TIME.
    """
    from headway.journal.backup import restore as put_back

    place = _place(config_path, journal_path, adapter_files)
    kept = put_back(file, place, force=force)
    say(f"restored: {place}")
    if kept is not None:
        say(f"the journal before it: {kept}")


@command.command(
    "move",
    epilog=examples(
        "headway journal move postgresql://headway@db.example.org/headway -c site.yaml",
        "headway journal move journal.sqlite --journal postgresql://headway@db.example.org/headway",
    ),
)
@click.argument("to", metavar="JOURNAL")
@_place_options
@printed_json
def move(
    to: str, config_path: Path | None, journal_path: str | None, adapter_files: tuple[Path, ...]
) -> None:
    """Copy the journal to JOURNAL, a new file or an empty PostgreSQL database, with the daemon stopped.

    All of it or nothing: each table's rows are counted and compared by a digest. The journal itself stays as
    it is; the configuration's key `journal` decides which of them the daemon uses.
    """
    from headway.inputs.database_url import database_url
    from headway.journal.backup import move as copy_over

    tables = copy_over(_place(config_path, journal_path, adapter_files), to)
    for name, digest in tables.items():
        say(f"{name}: {digest.rows} rows, the same on both sides (SHA-256 {digest.digest[:16]})")
    shown = database_url(to, "journal").render_as_string(hide_password=True) if "://" in to else to
    say(f"written: {shown}. To use it, put it into the configuration as `journal`, and start the daemon.")


def _check_keep(keep: float) -> None:
    from headway.journal.recovery import LOOKED_BACK

    if keep < LOOKED_BACK:
        days = LOOKED_BACK / 86400
        raise UserError(
            f"--keep: expected at least {days:.0f}d, because a restart looks for jobs' tiers there; "
            f"found {keep / 86400:.3g}d"
        )


def _moment(time_: float | None) -> str:
    return "none" if time_ is None else wall_clock(time_)


def _show(found: Summary) -> None:
    from rich.table import Table

    from headway.inputs.sizes import said_bytes

    say(f"journal {found.place}")
    say(f"{found.kind}, schema version {found.schema_version}, made by {found.created_by}")
    writer = {True: "being written now", False: "no process writes to it", None: ""}[found.being_written]
    last = f"last writer: {found.last_writer}" if found.last_writer else ""
    say("; ".join(word for word in (said_bytes(found.size), writer, last) if word))
    counted = (_counted(len(found.runs), "run"), _counted(found.cycles, "cycle"),
               _counted(found.events, "event"), _counted(found.decisions, "decision"))  # fmt: skip
    say(", ".join(counted))
    say(f"from {_moment(found.oldest)} to {_moment(found.newest)}")
    if found.runs:
        table = Table("run", "mode", "from", "to", "end", "cycles", "events", "decisions")
        for column in (table.columns[0], *table.columns[5:]):
            column.justify = "right"
        for run in found.runs[-_RUNS:]:
            table.add_row(
                str(run.id), run.mode, _moment(run.started_at),
                "" if run.ended_at is None else _moment(run.ended_at), run.end_reason,
                str(run.cycles), str(run.events), str(run.decisions),
            )  # fmt: skip
        console().print(table)
        if len(found.runs) > _RUNS:
            say(f"and {len(found.runs) - _RUNS} earlier runs (--json lists all)")
    say(f"`headway journal prune` would remove {_runs(found.prunable)}")


def _runs(numbers: list[int]) -> str:
    if not numbers:
        return "no run"
    listed = ", ".join(map(str, numbers[:_SHOWN])) + (", ..." if len(numbers) > _SHOWN else "")
    return f"{_counted(len(numbers), 'run')}: {listed}"


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _tell_findings(found: Findings) -> None:
    for title, lines in (("remark", found.remarks), ("damaged", found.faults)):
        for line in lines[:_SHOWN]:
            say(f"{title}: {line}")
        if len(lines) > _SHOWN:
            say(f"... and {len(lines) - _SHOWN} more (--json lists them)")
    verdict = "damaged" if found.faults else "in order"
    counted = (_counted(found.runs, "run"), _counted(found.events, "event"),
               _counted(found.decisions, "decision"))  # fmt: skip
    say(f"{found.place}: {verdict}: {', '.join(counted)}")


def _tell_pruned(done: Pruned, dry_run: bool) -> None:
    from headway.inputs.sizes import said_bytes

    if dry_run:
        say(f"would remove {_runs(done.runs)}")
        return
    say(f"removed {_runs(done.runs)}")
    if done.runs and done.beside:
        say("the journal is in use: its free space is used again, but the file does not shrink")
    elif done.runs:
        say(f"given back: {said_bytes(max(0, done.bytes))}")


@command.command("follow", epilog=examples("ssh headway1 headway journal follow -c /etc/headway/site.yaml"))
@site_config_option
@_JOURNAL_OPTION
def follow(config_path: Path | None, journal_path: str | None) -> None:
    """Tell a stand-by what is new in the journal: a stand-by runs this command (`standby.follow`).

    Questions come on standard input, answers go to standard output, neither for people. It ends with its
    input. The journal is only read.
    """
    from headway.standby.telling import journal_file, tell

    if journal_path is None:
        from headway.config import load_config

        # No adapter is needed, and a stand-by waits for the first answer.
        journal_path = load_config(named_config(config_path), None).journal
    tell(journal_file(journal_path), 0, 1)
