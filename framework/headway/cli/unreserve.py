"""``headway unreserve``: a reservation given back."""

from __future__ import annotations

from pathlib import Path

import click

from headway.cli.asking import ask_daemon, outcome_option, tell
from headway.cli.common import adapter_option, daemon_config_option, examples


@click.command("unreserve", epilog=examples("headway unreserve r7 -c site.yaml"))
@click.argument("reservation", metavar="ID")
@daemon_config_option
@adapter_option
@outcome_option
def command(
    reservation: str, config_path: Path | None, adapter_files: tuple[Path, ...], as_json: bool
) -> None:
    """Give the reservation ID back, which `headway reserve` made. For its user and for operators."""
    from headway.service.protocol import Unreserve

    tell(ask_daemon(config_path, adapter_files, Unreserve(reservation)), as_json)
