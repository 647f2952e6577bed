"""``headway reserve``: an advance reservation."""

from __future__ import annotations

from pathlib import Path

import click

from headway.cli.asking import DURATION, MOMENT, ask_daemon, outcome_option, tell
from headway.cli.common import adapter_option, daemon_config_option, examples


@click.command(
    "reserve",
    epilog=examples(
        "headway reserve --at 14:00 --for 2h --nodes 4 -c site.yaml",
        "headway reserve --at +1d --for 30m --processors 16 --user alice -c site.yaml",
    ),
)
@daemon_config_option
@adapter_option
@click.option("--at", type=MOMENT, required=True, help="Start: 14:30, 2026-03-01T14:30, +2h, now.")
@click.option("--for", "duration", type=DURATION, required=True, help="Duration: 30m, 1h30m, 2d, 45 (s).")
@click.option("--nodes", type=click.IntRange(1), help="Number of whole nodes.")
@click.option(
    "--processors", type=click.IntRange(1), help="Number of processors; as whole nodes in a pool of nodes."
)
@click.option("--pool", default="", help="The partition or queue; needed if several are open.")
@click.option(
    "--user",
    default="",
    help="User of the reservation; only operators reserve for other users. Default: you.",
)
@click.option("--account", default="", help="Account whose limits count. Default: your account.")
@outcome_option
def command(
    config_path: Path | None,
    adapter_files: tuple[Path, ...],
    at: float,
    duration: float,
    nodes: int | None,
    processors: int | None,
    pool: str,
    user: str,
    account: str,
    as_json: bool,
) -> None:
    """Reserve nodes or processors from a time on. Says the reservation's name, which jobs then ask for."""
    from headway.service.protocol import Reserve

    if (nodes is None) == (processors is None):
        raise click.UsageError("expected either --nodes or --processors")
    request = Reserve(at, duration, nodes or 0, processors or 0, pool, user, account)
    tell(ask_daemon(config_path, adapter_files, request), as_json)
