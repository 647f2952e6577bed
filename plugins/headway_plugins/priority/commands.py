"""``headway shares`` and ``headway priority``: how users stand, and where priorities come from."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from headway.cli.as_json import json_option, say_json
from headway.cli.common import console, examples, messages, say
from headway.cli.last_run import daemon_or_last_run_options, repeat_last_run, told_by_daemon

if TYPE_CHECKING:
    from headway.scheduler import Scheduler
    from headway_plugins.priority.fair_share import FairShare
    from headway_plugins.priority.reports import Priorities, ShareReport, Shares, Wanted

#: As ``sshare -l`` calls them.
SHARES = (
    "Account", "User", "RawShares", "NormShares", "RawUsage", "NormUsage", "EffectvUsage", "FairShare",
    "LevelFS",
)  # fmt: skip
#: And the columns of minutes.
MINUTES = ("GrpTRESMins", "TRESRunMins")

_parsable_option = click.option(
    "-P", "--parsable", is_flag=True, help="Separate columns by | and fold nothing."
)


@click.command(
    "shares",
    epilog=examples(
        "headway shares                            yours, as the daemon knows them",
        "headway shares --journal dry.sqlite -P    at the end of a dry run, for scripts",
        "headway shares -c site.yaml --html s.html  a page: targets against usage over time",
    ),
)
@daemon_or_last_run_options
@_parsable_option
@click.option(
    "--html",
    "html",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write a page with the tree, and with targets against usage over time, instead of a table; from the "
    "journal.",
)
@json_option("headway_plugins.priority.reports:Shares")
def shares(
    config_path: Path | None,
    journal_path: str | None,
    plugin_files: tuple[Path, ...],
    adapter_files: tuple[Path, ...],
    journal_only: bool,
    parsable: bool,
    html: Path | None,
    as_json: bool,
) -> None:
    """Print the shares of each account and user, and their use.

    The columns are the columns of `sshare -l`. The daemon tells; with `service.private` it tells a user the
    own shares and those of the accounts above. With --journal, --journal-only, --plugin or --html, or where
    no daemon answers, the last run of the journal is repeated to its end instead, and nothing is asked.
    """
    from headway.inputs.extras import need_report
    from headway_plugins.priority.reports import Shares, Wanted

    if html is not None:
        need_report("--html")
    elif not (journal_path or journal_only or plugin_files):
        pages = told_by_daemon(config_path, "shares", lambda first: _text(Wanted(first)))
        if pages:
            told = [msgspec.json.decode(one, type=Shares) for one in pages]
            _show_shares(Shares(tuple(row for one in told for row in one.rows)), parsable, as_json)
            return
    from headway_plugins.priority.share_course import Course
    from headway_plugins.priority.standings import share_reports

    course = Course()

    def look(running: Scheduler, at: float) -> None:
        course.look(_fair_share(running), at)

    scheduler, now = repeat_last_run(
        config_path, journal_path, plugin_files, adapter_files, look if html is not None else None
    )
    plugin = _fair_share(scheduler)
    running = list(scheduler.state.running_jobs())
    plugin.nodes_of(running)
    found = Shares(share_reports(plugin, plugin.standing(now), running, now))
    if html is not None:
        # Here and not above: matplotlib takes longer to load than all else.
        from headway.report.plots import SERIES
        from headway_plugins.priority.share_page import write_share_page

        course.end(plugin, now)
        cells = [share_cells(row)[: len(SHARES)] for row in found.rows]
        write_share_page(html, SHARES, cells, course, course.families(plugin, SERIES))
        if as_json:
            say_json(found)
        say(f"written to {html}", messages() if as_json else None)
        return
    _show_shares(found, parsable, as_json)


def _show_shares(found: Shares, parsable: bool, as_json: bool) -> None:
    if as_json:
        say_json(found)
    else:
        _print((*SHARES, *MINUTES), [share_cells(row) for row in found.rows], parsable, left=2)


@click.command(
    "priority",
    epilog=examples(
        "headway priority                       your waiting jobs (an operator's: all)",
        "headway priority 4711 -c site.yaml     one job",
    ),
)
@click.argument("job_id", metavar="[JOB]", required=False)
@daemon_or_last_run_options
@_parsable_option
@click.option("-n", "--norm", is_flag=True, help="Print the factors without their weights, from 0 to 1.")
@json_option("headway_plugins.priority.reports:Priorities")
def priority(
    job_id: str | None,
    config_path: Path | None,
    journal_path: str | None,
    plugin_files: tuple[Path, ...],
    adapter_files: tuple[Path, ...],
    journal_only: bool,
    parsable: bool,
    norm: bool,
    as_json: bool,
) -> None:
    """Print the priority of each job that waits, and what each factor gives to it, as sprio does.

    The daemon tells; with `service.private` it tells a user of the own jobs only. With --journal,
    --journal-only or --plugin, or where no daemon answers, the last run of the journal is repeated to its end
    instead, and nothing is asked.
    """
    from headway_plugins.priority.reports import Priorities, Wanted

    pages: list[msgspec.Raw] = []
    if not (journal_path or journal_only or plugin_files):
        pages = told_by_daemon(config_path, "priority", lambda first: _text(Wanted(first, job=job_id or "")))
    if pages:
        told = [msgspec.json.decode(one, type=Priorities) for one in pages]
        found = Priorities(told[0].weights, tuple(job for one in told for job in one.jobs))
    else:
        found = _priorities_of_last_run(config_path, journal_path, plugin_files, adapter_files, job_id)
    if as_json:
        say_json(found)
    else:
        _print(*priority_rows(found, norm=norm), parsable, left=2)


def _text(asked: Wanted) -> str:
    return msgspec.json.encode(asked).decode()


def _priorities_of_last_run(
    config_path: Path | None,
    journal_path: str | None,
    plugin_files: tuple[Path, ...],
    adapter_files: tuple[Path, ...],
    job_id: str | None,
) -> Priorities:
    from headway.errors import UserError
    from headway_plugins.priority.multifactor import Multifactor
    from headway_plugins.priority.reports import Priorities
    from headway_plugins.priority.waiting import waiting

    scheduler, now = repeat_last_run(config_path, journal_path, plugin_files, adapter_files)
    plugins = scheduler.plugins.by_name.values()
    plugin = next((one for one in plugins if isinstance(one, Multifactor)), None)
    if plugin is None:
        raise UserError("the run has no plugin `multifactor`, so its jobs have no priorities")
    scheduler.state.now = now
    jobs = sorted(waiting(scheduler.state), key=lambda job: job.seq)
    if job_id is not None:
        jobs = [job for job in jobs if job.id == job_id or job.description.array_id == job_id]
        if not jobs:
            raise UserError(f"no job {job_id!r} waits in the journal's last run")
    return Priorities(dict(plugin.weights), plugin.reports(jobs, scheduler.state) if jobs else ())


def share_cells(row: ShareReport) -> tuple[str, ...]:
    """The cells of ``sshare -l`` of an account or user."""
    is_root = not row.depth
    level = "inf" if row.level_fair_share is None else f"{row.level_fair_share:.6f}"
    return (
        " " * row.depth + row.account,
        row.user,
        "" if is_root else "parent" if row.shares is None else f"{row.shares:.15g}",
        f"{row.norm_shares:.6f}",
        str(int(row.usage)),
        "" if is_root else f"{row.norm_usage:.6f}",
        f"{row.effective_usage:.6f}",
        "" if row.fair_share is None else f"{row.fair_share:.6f}",
        "" if is_root or row.shares is None else level,
        row.minutes_limit,
        ",".join(f"{name}={minutes}" for name, minutes in row.minutes_running.items()),
    )


def priority_rows(found: Priorities, *, norm: bool) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Names of columns, and a row a job: its priority and its factors, weighted or (``norm``) not."""
    names = ("Job", "User", "Priority", *found.weights, "nice")
    rows: list[tuple[str, ...]] = []
    for job in found.jobs:
        values = [
            f"{job.factors[name]:.7f}" if norm else f"{weight * job.factors[name]:.2f}"
            for name, weight in found.weights.items()
        ]
        rows.append((job.id, job.user, f"{job.priority:.2f}", *values, f"{job.nice:.15g}"))
    return names, rows


def _fair_share(scheduler: Scheduler) -> FairShare:
    from headway.errors import UserError
    from headway_plugins.priority.fair_share import FairShare

    for plugin in scheduler.plugins.by_name.values():
        if isinstance(plugin, FairShare):
            return plugin
    raise UserError("the run has no plugin that counts usage (fair-tree, classic, windows)")


#: Columns of the widest table.
_WIDEST = 10_000
_AMOUNTS = re.compile(r"(?:[^\s,=]+=[0-9.]+)(?:,[^\s,=]+=[0-9.]+)+")


def _of_resources(cell: str) -> str:
    """``cpu=3,node=1`` of ``cpu=3,mem=0,node=1``: for a person, what is 0 says nothing."""
    if _AMOUNTS.fullmatch(cell) is None:
        return cell
    return ",".join(item for item in cell.split(",") if float(item.partition("=")[2] or 1))


def _print(names: Sequence[str], rows: Sequence[Sequence[str]], parsable: bool, left: int) -> None:
    if parsable:
        for row in (names, *rows):
            click.echo("|".join(row))
        return
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, header_style="bold", show_edge=False, pad_edge=False)
    for at, name in enumerate(names):
        table.add_column(name, justify="left" if at < left else "right", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(_of_resources(cell)) for cell in row))
    # A terminal breaks a long line; a table as wide as the terminal would leave names and numbers out.
    shown = console()
    shown.width = max(shown.width, _WIDEST)
    shown.print(table)
    if not rows:
        say("none")
