"""``headway limits``: how much users, accounts and others may have at once, and what they have of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from headway.cli.as_json import json_option, say_json
from headway.cli.common import console, examples, say
from headway.cli.last_run import daemon_or_last_run_options, repeat_last_run, told_by_daemon

if TYPE_CHECKING:
    from headway_plugins.limits.reports import LimitList


@click.command(
    "limits",
    epilog=examples(
        "headway limits                          those that your jobs are under",
        "headway limits --journal dry.sqlite     at the end of a dry run",
    ),
)
@daemon_or_last_run_options
@json_option("headway_plugins.limits.reports:LimitList")
def command(
    config_path: Path | None,
    journal_path: str | None,
    plugin_files: tuple[Path, ...],
    adapter_files: tuple[Path, ...],
    journal_only: bool,
    as_json: bool,
) -> None:
    """Print the limits that jobs came under, and what is in use of each.

    The daemon tells; with `service.private` it tells a user of the limits of the own jobs. With --journal,
    --journal-only or --plugin, or where no daemon answers, the last run of the journal is repeated to its end
    instead, and nothing is asked.
    """
    from headway_plugins.limits.reports import LimitList, Wanted

    pages: list[msgspec.Raw] = []
    if not (journal_path or journal_only or plugin_files):
        pages = told_by_daemon(
            config_path, "limits", lambda first: msgspec.json.encode(Wanted(first)).decode()
        )
    if pages:
        told = [msgspec.json.decode(one, type=LimitList) for one in pages]
        found = LimitList(tuple(row for one in told for row in one.rows))
    else:
        found = _of_last_run(config_path, journal_path, plugin_files, adapter_files)
    if as_json:
        say_json(found)
    else:
        _print(found)


def _of_last_run(
    config_path: Path | None,
    journal_path: str | None,
    plugin_files: tuple[Path, ...],
    adapter_files: tuple[Path, ...],
) -> LimitList:
    from headway.errors import UserError
    from headway_plugins.limits.plugin import Limits
    from headway_plugins.limits.reports import LimitList, limit_reports

    scheduler, now = repeat_last_run(config_path, journal_path, plugin_files, adapter_files)
    plugins = scheduler.plugins.by_name.values()
    plugin = next((one for one in plugins if isinstance(one, Limits)), None)
    if plugin is None:
        raise UserError("the run has no plugin `limits`")
    return LimitList(tuple(limit_reports(plugin.holders(), now)))


def _print(found: LimitList) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, header_style="bold", show_edge=False, pad_edge=False)
    for name, justify in (("limit of", "left"), ("what", "left"), ("limit", "right"), ("in use", "right")):
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    for row in found.rows:
        used = "one job" if row.used is None else f"{row.used:g}"
        table.add_row(Text(row.of), Text(row.unit.rstrip(",")), f"{row.limit:g}", used)
    console().print(table)
    if not found.rows:
        say("none")
