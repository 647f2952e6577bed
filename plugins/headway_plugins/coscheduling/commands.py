"""``headway metajob``: nodes of several sites at once, for a user."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click
import msgspec

from headway.cli.as_json import json_option, say_json
from headway.cli.asking import ask_daemon, outcome_option, tell
from headway.cli.common import adapter_option, daemon_config_option, examples, say, when
from headway.errors import Failure

#: The plugin that answers.
_PLUGIN = "metajobs"


@click.group(
    "metajob",
    epilog=examples(
        "headway metajob submit pair.ini --job datastar655=4711 --job purduesp=92 -c site.yaml",
        "headway metajob status m1 -c site.yaml",
        "headway metajob cancel m1 -c site.yaml",
    ),
)
def command() -> None:
    """Reserve nodes of several sites at once, and start jobs there together."""


@command.command(
    epilog=examples(
        "headway metajob submit pair.ini --job datastar655=4711 -c site.yaml",
        "headway metajob submit any.yaml --everywhere --job north=4711 --job south=92 -c site.yaml",
    )
)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--job",
    "jobs",
    multiple=True,
    metavar="MACHINE=ID",
    help="A waiting job that runs on this machine; of a stage: MACHINE.STAGE=ID. May be repeated.",
)
@click.option(
    "--on-loss",
    type=click.Choice(["keep", "cancel_all", "replan"]),
    help="What becomes of the other parts when a site loses one. Default: as the operator says.",
)
@click.option(
    "--everywhere",
    is_flag=True,
    help="The jobs are copies of one job: the first that starts is kept, and the others are removed.",
)
@daemon_config_option
@adapter_option
@outcome_option
def submit(
    file: Path,
    jobs: tuple[str, ...],
    on_loss: str | None,
    everywhere: bool,
    config_path: Path | None,
    adapter_files: tuple[Path, ...],
    as_json: bool,
) -> None:
    """Look for a place for the metajob of FILE (INI or YAML), and bind the jobs to it."""
    from headway_plugins.coscheduling.metajob import to_record
    from headway_plugins.coscheduling.metajob_file import read_file

    request: dict[str, Any] = {"metajob": to_record(read_file(file)), "jobs": dict(_pairs(jobs))}
    if on_loss is not None:
        request["on_loss"] = on_loss
    if everywhere:
        request["everywhere"] = True
    _ask("submit", msgspec.json.encode(request).decode(), config_path, adapter_files, as_json)


@command.command(
    epilog=examples("headway metajob status -c site.yaml", "headway metajob status m1 --json -c site.yaml")
)
@click.argument("metajob", metavar="[ID]", default="")
@json_option("headway_plugins.coscheduling.metajob_status:Told")
@daemon_config_option
@adapter_option
def status(metajob: str, as_json: bool, config_path: Path | None, adapter_files: tuple[Path, ...]) -> None:
    """Tell what the search for metajob ID has done so far and what is reserved; without ID, list your
    metajobs."""
    from headway.service.protocol import Plugin
    from headway_plugins.coscheduling.metajob_status import in_words, list_in_words

    reply = ask_daemon(config_path, adapter_files, Plugin(_PLUGIN, "status", metajob))
    try:
        told = msgspec.json.decode(reply.reason)
    except msgspec.DecodeError as error:
        raise Failure(f"the daemon's answer cannot be read: {error}") from None
    if as_json:
        say_json(told)
        return
    for line in in_words(told, when) if isinstance(told, dict) else list_in_words(told, when):
        say(line)


@command.command(epilog=examples("headway metajob cancel m1 -c site.yaml"))
@click.argument("metajob", metavar="ID")
@daemon_config_option
@adapter_option
@outcome_option
def cancel(metajob: str, config_path: Path | None, adapter_files: tuple[Path, ...], as_json: bool) -> None:
    """Give all that metajob ID has back, and let its waiting jobs run alone; copies are removed."""
    _ask("cancel", metajob, config_path, adapter_files, as_json)


def _ask(
    verb: str, text: str, config_path: Path | None, adapter_files: tuple[Path, ...], as_json: bool
) -> None:
    from headway.service.protocol import MAX_REQUEST, Plugin

    if len(text.encode()) > MAX_REQUEST // 2:
        raise Failure(f"expected a metajob of at most {MAX_REQUEST // 2} bytes, found {len(text.encode())}")
    tell(ask_daemon(config_path, adapter_files, Plugin(_PLUGIN, verb, text)), as_json)


def _pairs(jobs: Iterable[str]) -> Iterator[tuple[str, str]]:
    seen: set[str] = set()
    for pair in jobs:
        machine, equals, job = pair.partition("=")
        if not (machine and equals and job.strip()):
            raise click.BadParameter(f"expected MACHINE=ID, found {pair!r}", param_hint="--job")
        if machine in seen:
            raise click.BadParameter(f"machine {machine} is named twice", param_hint="--job")
        seen.add(machine)
        yield machine, job.strip()
