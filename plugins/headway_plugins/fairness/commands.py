"""``headway fairness``: which jobs and users a live cluster served unfairly, from the daemon's journal."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np
from rich.table import Table

from headway.cli.as_json import printed_json
from headway.cli.asking import DURATION
from headway.cli.common import (
    adapter_option,
    console,
    examples,
    required_config_option,
    say,
    wall_clock,
)
from headway.errors import UserError
from headway.metrics import job_columns
from headway.report.quantities import NONE, duration, number, share

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headway.config import Adapters
    from headway.metrics import JobColumns
    from headway.results import RunResult
    from headway_plugins.accounts.tree import Tree
    from headway_plugins.fairness.live import Past

#: Jobs and users that are listed.
_LISTED = 10


@click.command("fairness", epilog=examples("headway fairness -c site.yaml --since 7d"))
@required_config_option
@adapter_option
@click.option("--since", type=DURATION, default="7d", show_default=True, metavar="TIME",
              help="Judge the jobs that ended in this time before now (30m, 12h, 7d).")  # fmt: skip
@printed_json
def command(config_path: Path, adapter_files: tuple[Path, ...], since: float) -> None:
    """Tell which users the cluster served unfairly, and which jobs overtook theirs. A user with less than an
    equal share of the processors in use was served unfairly.

    Reads the journal of the configuration, and nothing else; what happened while no daemon ran is not in
    it. Fair start times need a run that can be repeated: headway dry-run --with fairness.
    """
    from headway.config import Adapters, load_config
    from headway.journal import Journal
    from headway_plugins.fairness.equality import resource_equality
    from headway_plugins.fairness.figures import by_name, missed
    from headway_plugins.fairness.live import past
    from headway_plugins.fairness.plugin import STANDING_HEADS, standing_row
    from headway_plugins.fairness.shares import against_shares

    config = load_config(config_path, Adapters.with_files(adapter_files))
    with Journal.open(config.journal, create=False, read_only=True) as journal:
        told = past(journal)
    if told is None:
        raise UserError(f"{config.journal}: expected a run that drove or watched a cluster, found none")
    result = told.result
    columns = job_columns(result)
    begin = time.time() - since
    judged = columns.finished & (columns.end >= begin)
    if not judged.any():
        raise UserError(
            f"{config.journal}: expected jobs that ended since {wall_clock(begin)} (--since), found none"
        )
    found = resource_equality(result, columns)
    rows = np.flatnonzero(judged)
    loss = found.unfairness[rows]
    figures = missed(loss)
    say(
        f"{len(rows)} jobs that ended since {wall_clock(begin)}; {found.unfinished} still run, "
        f"{found.waiting} wait. Mean resource unfairness {_hours(figures['mean'])} processor-hours; "
        f"{share(figures['share_unfair'])} of the jobs got less than an equal share of the processors in use."
    )
    screen = console()
    users = by_name([result.jobs[row].job.user for row in rows.tolist()], lost=loss)
    table = Table("user", "jobs", "processor-hours below the equal share", box=None, pad_edge=False)
    for name, row in list(users.items())[:_LISTED]:
        table.add_row(name or NONE, number(row["jobs"]), _hours(row["lost"]))
    screen.print(table)
    tree = _site_shares(told, config.adapters)
    if tree is not None:
        table = Table(*STANDING_HEADS, box=None, pad_edge=False, title_justify="left",
                      title="By the site's shares: processor-hours since the beginning of the "
                            "journal")  # fmt: skip
        for one in against_shares(result, tree, columns)[:_LISTED]:
            table.add_row(*standing_row(one))
        screen.print(table)
    _show_worst(result, columns, rows[np.argsort(-loss, kind="stable")][:_LISTED], found.unfairness)


def _show_worst(
    result: RunResult, columns: JobColumns, rows: NDArray[np.int64], lost: NDArray[np.float64]
) -> None:
    """Of these rows the jobs that lost something, what they lost, and which jobs overtook them."""
    from headway.metrics.system import eligible
    from headway_plugins.fairness.figures import overtakers

    worst = [row for row in rows if lost[row] > 0]
    if not worst:
        return
    came = eligible(result, columns)
    table = Table("job", "user", "processors", "waited", "processor-hours below the equal share",
                  "overtaken by",
                  box=None, pad_edge=False)  # fmt: skip
    for row in worst:
        job = result.jobs[row].job
        table.add_row(
            job.id, job.user, number(job.request.processors), duration(float(columns.start[row] - came[row])),
            _hours(float(lost[row])), ", ".join(overtakers(result, came, int(row))) or NONE,
        )  # fmt: skip
    console().print(table)


def _site_shares(told: Past, adapters: Adapters) -> Tree | None:
    """The accounts of the daemon's fair share, as it knew them last; None: it has none."""
    from headway.daemon.replay import scheduler_of
    from headway.plugins import Catalogue
    from headway_plugins.accounts.associations import entry_of
    from headway_plugins.priority.fair_share import FairShare

    for plugin in scheduler_of(told.last_run, Catalogue(), adapters).plugins.by_name.values():
        if isinstance(plugin, FairShare):
            tree = plugin.tree
            if "policy" in plugin.traits.requires and told.policy is not None:
                tree = plugin.options.tree([entry_of(one) for one in told.policy.associations])
            if tree.listed:
                return tree
    return None


def _hours(seconds: float | int | None) -> str:
    return number(None if seconds is None else seconds / 3600.0)
