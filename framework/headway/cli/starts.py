"""``headway starts``: planned starts beside real ones."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headway.cli.as_json import json_option, say_json
from headway.cli.asking import DURATION
from headway.cli.common import (
    adapter_option,
    console,
    daemon_config_option,
    examples,
    messages,
    named_config,
    say,
    wall_clock,
)
from headway.cli.last_run import JOURNAL_ONLY, found_by, from_daemon
from headway.errors import Failure, UserError

if TYPE_CHECKING:
    from headway.journal.starts_report import StartsReport


@click.command(
    "starts",
    epilog=examples(
        "headway starts                                     since the daemon began",
        "headway starts -c site.yaml --since 7d             from the journal",
        "headway starts -c site.yaml --out cluster.json     for campaigns (method.measured)",
    ),
)
@daemon_config_option
@adapter_option
@click.option("--since", type=DURATION, default=None, metavar="TIME",
              help="Only starts that were planned in this time before now (30m, 12h, 7d). Default: all "
                   "starts in the journal.")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE",
              help="Write the starts and the measured latencies to this file, for campaigns.")  # fmt: skip
@JOURNAL_ONLY
@json_option("headway.journal.starts_report:StartsReport")
def command(
    config_path: Path | None,
    adapter_files: tuple[Path, ...],
    since: float | None,
    out: Path | None,
    journal_only: bool,
    as_json: bool,
) -> None:
    """Tell when jobs were planned to start and when they did, and how long starts and ends take.

    The daemon tells what it planned since it began. With --since, --out or --journal-only, or where no daemon
    answers, the journal of the configuration is read, and nothing else: runs that drive and runs that watch
    (--monitor) are counted apart.
    """
    found = None
    if not (journal_only or adapter_files) and since is None and out is None:
        found = from_daemon(config_path, _asked)
    if found is None:
        found = _from_journal(named_config(config_path), adapter_files, since, out)
    if as_json:
        say_json(found)
    else:
        _show(found)
    if out is not None:
        say(f"written: {out}", messages() if as_json else None)


def _asked(socket: Path) -> StartsReport:
    """As the daemon counts them."""
    from headway.journal.starts_report import StartsReport
    from headway.service.protocol import Starts

    found = found_by(socket, Starts()).found
    if not isinstance(found, StartsReport):
        raise Failure("the daemon has another answer to the question about starts")
    return found


def _from_journal(
    config_path: Path, adapter_files: tuple[Path, ...], since: float | None, out: Path | None
) -> StartsReport:
    from headway.config import Adapters, load_config
    from headway.experiment.planned_starts import encoded, planned_starts, report_of
    from headway.journal import Journal
    from headway.report.atomic import writing

    config = load_config(config_path, Adapters.with_files(adapter_files))
    begin = None if since is None else time.time() - since
    with Journal.open(config.journal, create=False, read_only=True) as journal:
        found = planned_starts(journal, begin or 0.0)
    if found is None:
        raise UserError(f"{config.journal}: expected a run that drove or watched a cluster, found none")
    if out is not None:
        with writing(out) as stream:
            stream.write(encoded(found))
    return report_of(found, begin)


def _show(found: StartsReport) -> None:
    screen = console()
    since = f", since {wall_clock(found.since)}" if found.since is not None else ""
    until = f", until {wall_clock(found.until)}" if found.until is not None else ""
    say(f"cluster {found.cluster}{since}{until}", screen)
    for mode, starts in found.starts.items():
        say(f"{'driven' if mode == 'drive' else 'only watched'}: {starts}", screen)
    if not found.starts:
        say("no run in that time", screen)
    if not found.latencies:
        say("latencies: none measured yet (a daemon in mode drive measures them)", screen)
    for cluster, latencies in found.latencies.items():
        say(f"latencies{f' of {cluster}' if cluster else ''}: {latencies}", screen)
