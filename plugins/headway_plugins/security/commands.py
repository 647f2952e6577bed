"""``headway security``: what protection costs."""

from __future__ import annotations

from pathlib import Path

import click
from rich.table import Table

from headway.cli.as_json import printed_json
from headway.cli.common import console, examples, say
from headway.cli.numbers import FiniteRange
from headway_plugins.security.protection.commands import (
    keys_command,
    seal_command,
    sign_command,
    unseal_command,
)


@click.group("security")
def command() -> None:
    """Security levels: what they cost here, and the keys, manifests and sealed files of `headway protect`."""


@command.command("measure", epilog=examples("headway security measure --out speeds.yaml"))
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False),
              help="Write the profile to this file, for the option `profile` of plugins.")  # fmt: skip
@click.option("--seconds", type=FiniteRange(0.01, 60), default=0.2, show_default=True,
              help="Least duration of each of the five measurements of an algorithm.")  # fmt: skip
@printed_json
def measure_command(out: Path | None, seconds: float) -> None:
    """Measure on this machine, in one thread, how fast data is encrypted and hashed and what a signature
    costs.

    Run it on a compute node. Levels are suggestions: set your site's own in the file. Needs the package
    cryptography (extra `security`).
    """
    from headway.report.atomic import writing
    from headway_plugins.security.levels import SERVICES, parse_profile
    from headway_plugins.security.measured import measure, profile_text

    figures = measure(seconds)
    text = profile_text(figures)
    # What is written can be read again, and says which options are worth having.
    kept = {
        option.name
        for ladder in parse_profile(text, "the measured profile").ladders
        for option in ladder
    }  # fmt: skip
    table = Table("service", "level", "option", "MB/s", "ms", "", box=None, pad_edge=False)
    for service in SERVICES:
        for figure in figures.of(service):
            table.add_row(
                service,
                f"{figure.level:g}",
                figure.option,
                "" if figure.speed is None else f"{figure.speed:.0f}",
                "" if figure.speed is not None else f"{1e3 * figure.seconds:.3f}",
                "" if figure.option in kept else "never taken: another algorithm is as good and no slower",
            )
    console().print(table)
    if out is not None:
        with writing(out) as stream:
            stream.write(text)
        say(f"written: {out}")


for _command in (keys_command, sign_command, seal_command, unseal_command):
    command.add_command(_command)
