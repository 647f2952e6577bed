"""``headway elastic``: a job changed by its user."""

from __future__ import annotations

from pathlib import Path

import click

from headway.cli.asking import DURATION, JobId, ask_daemon, outcome_option, tell
from headway.cli.common import adapter_option, daemon_config_option, examples


@click.command(
    "elastic",
    epilog=examples(
        "headway elastic 4711 --extend 30m -c site.yaml    half an hour more",
        "headway elastic 4711 --shrink 4 -c site.yaml      four processors fewer",
    ),
)
@click.argument("job", metavar="JOB", type=JobId())
@daemon_config_option
@adapter_option
@click.option("--extend", type=DURATION, help="Give the job this much more time.")
@click.option(
    "--reduce", type=DURATION, help="Take this much time away; the job ends now if it has run longer."
)
@click.option("--grow", type=click.IntRange(1), help="Give the job this many more processors.")
@click.option("--shrink", type=click.IntRange(1), help="Take this many processors away.")
@outcome_option
def command(
    job: str,
    config_path: Path | None,
    adapter_files: tuple[Path, ...],
    extend: float | None,
    reduce: float | None,
    grow: int | None,
    shrink: int | None,
    as_json: bool,
) -> None:
    """Change the time or size of JOB, which waits or runs, through the daemon.

    For the job's owner and for operators. Exit code 0 if it was done (perhaps in part, then it says so),
    1 if it was refused; the answer names the reason.
    """
    from headway.service.protocol import Elastic

    asked = {"ET": extend, "RT": reduce, "EP": grow, "RP": shrink}
    given = [(command, float(amount)) for command, amount in asked.items() if amount is not None]
    if len(given) != 1:
        found = "none" if not given else str(len(given))
        raise click.UsageError(
            f"expected exactly one of --extend, --reduce, --grow and --shrink; found {found}"
        )
    tell(ask_daemon(config_path, adapter_files, Elastic(job, *given[0])), as_json)
