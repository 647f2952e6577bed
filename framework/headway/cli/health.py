"""``headway health``: whether what must always hold does hold."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headway.cli.as_json import json_option, say_json
from headway.cli.asking import ask_daemon
from headway.cli.common import (
    adapter_option,
    daemon_config_option,
    examples,
    messages,
    say,
    wall_clock,
)
from headway.errors import Failure, HeadwayError

if TYPE_CHECKING:
    from headway.inquiry.reports import HealthReport

#: Exit codes beside 0.
ILL, NOT_ASKED = 1, 2


@click.command(
    "health",
    epilog=examples(
        "headway health -c site.yaml || mail -s headway admin    in a script",
        "headway health -c site.yaml --json                      for a monitor of your own",
    ),
)
@daemon_config_option
@adapter_option
@json_option("headway.inquiry.reports:HealthReport")
def command(config_path: Path | None, adapter_files: tuple[Path, ...], as_json: bool) -> None:
    """Look whether all is well with the daemon: a line each check.

    Exit codes: 0 all is well, 1 something is not, 2 the daemon cannot be asked.
    """
    try:
        found = _asked(config_path, adapter_files)
    except HeadwayError as error:
        # On standard output, of which a monitor shows the first line.
        say(f"UNKNOWN: {error}", messages() if as_json else None)
        sys.exit(NOT_ASKED)
    if as_json:
        say_json(found)
    else:
        _show(found)
    sys.exit(0 if found.well else ILL)


def _asked(config_path: Path | None, adapter_files: tuple[Path, ...]) -> HealthReport:
    """The daemon's report; :class:`HeadwayError` if it cannot be asked."""
    from headway.inquiry.reports import HealthCheck, HealthReport
    from headway.service.protocol import Health, Status

    try:
        reply = ask_daemon(config_path, adapter_files, Health())
    except Failure as error:
        # The thread of the socket may answer where the loop does not.
        status = ask_daemon(config_path, adapter_files, Status()).status
        if status is None:
            raise
        if status.last_cycle is None:
            said = f"no cycle since {wall_clock(status.started)}: the cluster has not answered yet"
        else:
            said = f"it does not answer ({error}); the last cycle was at {wall_clock(status.last_cycle)}"
        silent = [f"{one.cluster} does not answer: {one.message}" for one in status.outages]
        check = HealthCheck("loop", False, "; ".join([said, *silent]), "headway status; the daemon's log")
        return HealthReport((check,))
    if not isinstance(reply.found, HealthReport):
        raise Failure(f"the daemon answers without a report: {reply.reason or reply.outcome}")
    return reply.found


def _show(found: HealthReport) -> None:
    wrong = [check.name for check in found.checks if not check.ok]
    if wrong:
        say(f"ILL: {', '.join(wrong)} ({len(wrong)} of {len(found.checks)} checks)", style="red")
    else:
        say(f"WELL: {len(found.checks)} checks")
    width = max(len(check.name) for check in found.checks)
    for check in found.checks:
        remedy = f" -> {check.remedy}" if not check.ok and check.remedy else ""
        say(f"{'ok ' if check.ok else 'ILL'} {check.name:{width}}  {check.detail}{remedy}")
