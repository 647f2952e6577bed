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
    examples,
    messages,
    required_config_option,
    say,
    wall_clock,
)
from headway.errors import UserError

if TYPE_CHECKING:
    from headway.experiment.planned_starts import RealCluster


@click.command(
    "starts",
    epilog=examples(
        "headway starts -c site.yaml --since 7d",
        "headway starts -c site.yaml --out cluster.json     for campaigns (method.measured)",
    ),
)
@required_config_option
@adapter_option
@click.option("--since", type=DURATION, default=None, metavar="TIME",
              help="Only starts that were planned in this time before now (30m, 12h, 7d). Default: all "
                   "starts in the journal.")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE",
              help="Write the starts and the measured latencies to this file, for campaigns.")  # fmt: skip
@json_option("headway.experiment.planned_starts:RealCluster")
def command(
    config_path: Path, adapter_files: tuple[Path, ...], since: float | None, out: Path | None, as_json: bool
) -> None:
    """Tell when jobs were planned to start and when they did, and how long starts and ends take.

    Reads the journal of the configuration, and nothing else. Runs that drive and runs that watch (--monitor)
    are counted apart.
    """
    from headway.config import Adapters, load_config
    from headway.experiment.planned_starts import encoded, planned_starts
    from headway.journal import Journal
    from headway.report.atomic import writing

    config = load_config(config_path, Adapters.with_files(adapter_files))
    with Journal.open(config.journal, create=False, read_only=True) as journal:
        found = planned_starts(journal, 0.0 if since is None else time.time() - since)
    if found is None:
        raise UserError(f"{config.journal}: expected a run that drove or watched a cluster, found none")
    if out is not None:
        with writing(out) as stream:
            stream.write(encoded(found))
    if as_json:
        say_json(found)
    else:
        _show(found)
    if out is not None:
        say(f"written: {out}", messages() if as_json else None)


def _show(found: RealCluster) -> None:
    from headway.experiment.planned_starts import DRIVE

    screen = console()
    until = f", until {wall_clock(found.until, zone=True)}" if found.until is not None else ""
    say(f"cluster {found.cluster}{until}", screen)
    for mode, starts in found.starts.items():
        say(f"{'driven' if mode == DRIVE else 'only watched'}: {starts}", screen)
    if not found.starts:
        say("no run in that time", screen)
    latencies = found.latencies.summary()
    say(f"latencies: {str(latencies) or 'none measured yet (a daemon in mode drive measures them)'}", screen)
