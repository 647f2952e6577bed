"""``headway holes``: what is free now, and for how long."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headway.cli.as_json import json_option, say_json
from headway.cli.asking import ask_daemon
from headway.cli.common import adapter_option, daemon_config_option, examples, say, wall_clock
from headway.cli.wanted import TIME_LIMIT, named, wanted_options
from headway.errors import Failure, UserError

if TYPE_CHECKING:
    from headway.inquiry.reports import HoleReport, PoolHoles


@click.command(
    "holes",
    epilog=examples(
        "headway holes                              all that is free now",
        "headway holes -p gpu --gres gpu:a100:2     of the nodes with two such GPUs free",
        "headway holes -N 4 -t 2h                   whether 4 nodes are free for 2 hours",
    ),
)
@daemon_config_option
@adapter_option
@wanted_options
@click.option("-t", "--time", "seconds", type=TIME_LIMIT,
              help="How long it must be free.")  # fmt: skip
@json_option("headway.inquiry.reports:HoleList")
def command(config_path: Path | None, adapter_files: tuple[Path, ...], as_json: bool, **wanted: Any) -> None:
    """Tell what is free now, and for how long, for a job that delays no job that is booked.

    Of a pool's lines the first has most and the last the longest time. A job that asks for no more than a
    line has starts at once, if no limit keeps it.
    """
    from headway.inquiry.reports import HoleList
    from headway.service.protocol import Holes

    reply = ask_daemon(config_path, adapter_files, Holes(**named(wanted)))
    if reply.outcome == "unknown":
        raise UserError(reply.reason)
    if not isinstance(reply.found, HoleList):
        raise Failure("the daemon answers without holes")
    if as_json:
        say_json(reply.found)
        return
    say(f"As of {wall_clock(reply.as_of or 0.0)}:")
    for pool in reply.found.pools:
        _show(pool)


def _show(pool: PoolHoles) -> None:
    if not pool.holes:
        say(f"{pool.pool}: nothing; {pool.why}.")
    for hole in pool.holes:
        say(f"{pool.pool}: {_sized(hole)} {_lasting(hole, pool)}")
    if pool.fits is not None and pool.holes:
        say(f"{pool.pool}: what you ask for {'fits now' if pool.fits else 'does not fit now'}.")


def _sized(hole: HoleReport) -> str:
    processors = f"{hole.processors} processor{'s' if hole.processors != 1 else ''}"
    if not hole.nodes:
        return processors
    return f"{hole.nodes} node{'s' if hole.nodes != 1 else ''}, {processors}"


def _lasting(hole: HoleReport, pool: PoolHoles) -> str:
    if hole.until is None or hole.seconds is None:
        return "without limit"
    least = "at least " if hole.until == pool.known_until else ""
    return f"for {least}{timedelta(seconds=int(hole.seconds))} (until {wall_clock(hole.until)})"
