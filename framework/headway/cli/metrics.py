"""``headway metrics``: what the daemon measures, as Prometheus reads it."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from headway.cli.as_json import json_option, say_json
from headway.cli.asking import ask_daemon
from headway.cli.common import adapter_option, daemon_config_option, examples
from headway.errors import Failure


@click.command(
    "metrics",
    epilog=examples(
        "headway metrics -c site.yaml                  for the textfile collector of node_exporter",
        "headway metrics -c site.yaml --openmetrics    the same as OpenMetrics",
    ),
)
@daemon_config_option
@adapter_option
@click.option("--openmetrics", is_flag=True, help="Write OpenMetrics 1.0 instead of Prometheus' text.")
@json_option("headway.measured.report:Measured", "Print the figures as JSON.")
def command(
    config_path: Path | None, adapter_files: tuple[Path, ...], openmetrics: bool, as_json: bool
) -> None:
    """Print what the daemon measures, as text for Prometheus."""
    from headway.inputs.extras import need_api
    from headway.service.protocol import Metrics

    if not as_json:
        need_api("headway metrics")
    found = ask_daemon(config_path, adapter_files, Metrics()).metrics
    if found is None:
        raise Failure("the daemon answers without figures")
    if as_json:
        say_json(found)
        return
    from headway.measured.exposition import exposition

    sys.stdout.flush()
    sys.stdout.buffer.write(exposition(found, openmetrics))
