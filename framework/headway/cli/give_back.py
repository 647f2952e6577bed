"""``headway give-back``."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headway.cli.as_json import json_option, say_json
from headway.cli.common import adapter_option, examples, messages, required_config_option, say
from headway.cli.elsewhere import nobody_leads_elsewhere
from headway.cli.log_output import set_up_log

if TYPE_CHECKING:
    from headway.adapter import Given
    from headway.daemon.giving_back import Report


@click.command(
    "give-back",
    epilog=examples(
        "headway give-back --all --dry-run      what would be given back",
        "headway give-back --all                the batch system schedules again",
        "headway give-back batch                one partition or queue",
        "headway give-back --all --if-silent    as the systemd timer does",
    ),
)
@click.argument("pools", nargs=-1, metavar="[POOL...]")
@click.option("--all", "everything", is_flag=True, help="All that the configuration names.")
@click.option("--dry-run", is_flag=True, help="Tell what would be done, and change nothing.")
@click.option(
    "--if-silent", is_flag=True,
    help="Only where no heartbeat was written for cluster.options.patience; says nothing otherwise.",
)  # fmt: skip
@click.option("--force", is_flag=True, help="Also while a daemon drives.")
@required_config_option
@adapter_option
@json_option("headway.daemon.giving_back:Report")
def command(
    pools: tuple[str, ...], everything: bool, dry_run: bool, if_silent: bool, force: bool, config_path: Path,
    adapter_files: tuple[Path, ...], as_json: bool,
) -> None:  # fmt: skip
    """Give control back to the batch system: it schedules as if headway had never been there.

    Held jobs are released as their users submitted them; holds of users and of administrators stay. The
    daemon must be stopped, and so must its stand-by. POOL is a partition or queue, of several clusters
    CLUSTER:POOL. It can be done again, and goes on where it was.
    Exit code 0 if all was given back, 1 if something could not be.
    """
    from headway.config import Adapters, load_config
    from headway.daemon.giving_back import give_back

    if everything == bool(pools):
        raise click.UsageError("expected --all or the names of pools")
    config = load_config(config_path, Adapters.with_files(adapter_files))
    set_up_log(config.log)
    would = "would: " if dry_run else ""

    def tell(given: Given) -> None:
        if not as_json:
            say(would + given.line)

    if not (dry_run or if_silent or force):
        nobody_leads_elsewhere(config, "would take back what is given back", ", or give back with --force")
    report = give_back(
        config, None if everything else pools, dry_run=dry_run, if_silent=if_silent, force=force, tell=tell
    )
    if as_json:
        say_json(report)
    else:
        say_outcome(report, quiet=if_silent, would=would)
        if report.failed and not if_silent:
            say("run it again when the cause is gone: it goes on where it was", messages())
    if report.failed:
        raise SystemExit(1)


def say_outcome(report: Report, *, quiet: bool = False, would: str = "") -> None:
    """What giving back came to, below its things; ``quiet``: nothing where nothing was done; ``would``: what
    stands before the count of a dry run."""
    for failure in report.failures:
        say(failure, messages(), style="red")
    counted = Counter(one.result for one in report.things)
    if quiet and not counted["given back"] and not counted["failed"]:
        return
    said = ", ".join(f"{counted[word]} {word}" for word in ("given back", "left", "failed") if counted[word])
    if said or not report.failures:
        say(would + said if said else "nothing is to be given back")
    if report.outcome == "interrupted":
        say("a daemon drives again: the rest stays with it")
    for line in report.left_to_do:
        say(line, messages())
