"""``headway datasets``: which dataset is where."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from headway.cli.as_json import json_option, say_json
from headway.cli.asking import ask_daemon
from headway.cli.common import (
    adapter_option,
    console,
    daemon_config_option,
    examples,
    say,
    wall_clock,
)
from headway.errors import Failure
from headway.inputs.sizes import said_bytes

if TYPE_CHECKING:
    from headway.inquiry.reports import CopyReport, DatasetList, DatasetReport


@click.command("datasets", epilog=examples("headway datasets -c site.yaml"))
@daemon_config_option
@adapter_option
@json_option("headway.inquiry.reports:DatasetList")
def command(config_path: Path | None, adapter_files: tuple[Path, ...], as_json: bool) -> None:
    """Tell which site has which dataset, which copies are on their way and how far, and what room is left.

    Asks the running daemon.
    """
    from headway.inquiry.reports import DatasetList
    from headway.service.protocol import Datasets

    reply = ask_daemon(config_path, adapter_files, Datasets())
    if not isinstance(reply.found, DatasetList):
        raise Failure(f"the daemon knows no datasets: {reply.reason or reply.outcome}")
    if as_json:
        say_json(reply.found)
    else:
        _show(reply.found)


def _show(found: DatasetList) -> None:
    from rich.table import Table

    if not found.datasets:
        say("No datasets are configured.")
    else:
        table = Table("dataset", "size", "at", "copies on their way")
        table.columns[1].justify = "right"
        for dataset in found.datasets:
            sites = ", ".join(f"{one.site}{'' if one.since is not None else '*'}" for one in dataset.at)
            under_way = "\n".join(_copy(dataset, copy) for copy in dataset.copies)
            table.add_row(dataset.name, said_bytes(dataset.size), sites, under_way)
        console().print(table)
        say("* from the beginning: stays there")
    if found.stores:
        table = Table("store", "capacity", "used", "free")
        for column in table.columns[1:]:
            column.justify = "right"
        for store in found.stores:
            bounded = store.capacity is not None
            capacity = said_bytes(store.capacity) if store.capacity is not None else "not bounded"
            free = said_bytes(max(0, (store.capacity or 0) - store.used)) if bounded else ""
            table.add_row(store.site, capacity, said_bytes(store.used), free)
        console().print(table)


def _copy(dataset: DatasetReport, copy: CopyReport) -> str:
    share = f"{copy.done / dataset.size:.0%}" if dataset.size else "100%"
    return f"{copy.source} to {copy.site}: {share}, since {wall_clock(copy.since)}"
