"""``headway results``: a database of campaigns, to be asked and plotted."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headway.cli.as_json import printed_json
from headway.cli.common import console, messages, say, wall_clock
from headway.errors import UserError, nearest
from headway.inputs.extras import need_parquet, need_report

if TYPE_CHECKING:
    from headway.experiment.campaign import Row
    from headway.experiment.results_database import ResultsDatabase

#: Shown where none is named.
METRICS = ("mean wait", "mean bounded slowdown", "achieved load")


@click.group("results")
@click.option("--db", default="results.db", show_default=True, envvar="HEADWAY_RESULTS", metavar="FILE|URL",
              help="SQLite file, or postgresql://USER@HOST/DATABASE.")  # fmt: skip
@click.pass_context
def command(context: click.Context, db: str) -> None:
    """A database of the results of `headway compare`: store, list, filter, tabulate, plot, export."""
    context.obj = db


def _opened(context: click.Context, *, create: bool = False) -> ResultsDatabase:
    from headway.experiment.results_database import ResultsDatabase

    return ResultsDatabase(context.obj, create=create)


def _chosen(function: Callable[..., Any]) -> Callable[..., Any]:
    """The campaign and the factors of its emulations."""
    function = click.option(
        "--where", multiple=True, metavar="FACTOR=VALUE",
        help="Only emulations of this workload, x, policy or seed. Repeatable: values of the same factor "
             "are alternatives.",
    )(function)  # fmt: skip
    return click.argument("campaign", type=int)(function)


def _rows(context: click.Context, campaign: int, where: Sequence[str]) -> list[Row]:
    from headway.experiment.results_database import condition

    wanted: dict[str, list[str | float | int]] = {}
    for factor, value in map(condition, where):
        wanted.setdefault(factor, []).append(value)
    with closing(_opened(context)) as database:
        rows = database.rows(campaign, wanted)
    if not rows:
        raise UserError(f"campaign {campaign}: no emulation has {', '.join(where)}")
    return rows


@command.command()
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.pass_context
@printed_json
def add(context: click.Context, folders: Sequence[Path]) -> None:
    """Store the results that are in FOLDERS."""
    with closing(_opened(context, create=True)) as database:
        for folder in folders:
            number, new = database.add(folder)
            say(f"{folder}: campaign {number}{'' if new else ', which was there already'}")


@command.command("list")
@click.pass_context
@printed_json
def list_(context: click.Context) -> None:
    """List the campaigns."""
    from rich.table import Table

    table = Table("campaign", "name", "emulations", "version", "stored", box=None, pad_edge=False)
    with closing(_opened(context)) as database:
        for one in database.campaigns():
            stored = wall_clock(datetime.fromisoformat(one.stored).timestamp())
            table.add_row(str(one.id), one.name, str(one.emulations), one.version, stored)
    console().print(table)


@command.command()
@click.argument("campaign", type=int)
@click.pass_context
@printed_json
def show(context: click.Context, campaign: int) -> None:
    """Show a campaign's definition and what made its numbers."""
    with closing(_opened(context)) as database:
        one = database.campaign(campaign)
    screen = console()
    for text in (f"{one.name}: {one.emulations} emulations, stored {one.stored}", one.definition, one.record):
        screen.print(text, markup=False, soft_wrap=True)


@command.command("table")
@_chosen
@click.option("--metric", "metrics", multiple=True, help="Repeatable; default: wait, slowdown, load.")
@click.option("--csv", "as_csv", is_flag=True, help="Print each emulation as CSV instead of means.")
@click.pass_context
@printed_json
def table_(
    context: click.Context, campaign: int, where: Sequence[str], metrics: Sequence[str], as_csv: bool
) -> None:
    """Tabulate means over the seeds, with 95 % confidence intervals."""
    from rich.table import Table

    from headway.experiment.campaign import points, row_lines, select
    from headway.experiment.statistics import interval

    rows = _rows(context, campaign, where)
    names = _known(rows, metrics)
    if as_csv:
        sys.stdout.write(row_lines(rows, names if metrics else list(rows[0].values), head=True))
        return
    table = Table("workload", "x", "policy", "seeds", *names, box=None, pad_edge=False)
    for scenario, x in points(rows):
        here = [row for row in rows if (row.scenario, row.x) == (scenario, x)]
        for policy in dict.fromkeys(row.variant for row in here):
            mine = [row for row in here if row.variant == policy]
            cells = [str(interval(select(mine, name))) for name in names]
            table.add_row(scenario, f"{x:g}", policy, str(len(mine)), *cells)
    console().print(table)


@command.command()
@_chosen
@click.option("--metric", "metrics", multiple=True, help="Repeatable; default: wait, slowdown, load.")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="PNG file.")
@click.pass_context
@printed_json
def plot(
    context: click.Context, campaign: int, where: Sequence[str], metrics: Sequence[str], out: Path
) -> None:
    """Plot metrics over what the campaign varies, a line a policy, for one workload."""
    need_report("headway results plot")
    from headway.experiment.plots import line_plot

    rows = _rows(context, campaign, where)
    workloads = list(dict.fromkeys(row.scenario for row in rows))
    if len(workloads) > 1:
        raise UserError(f"--where workload=...: expected one of {', '.join(workloads)} for a plot")
    line_plot(rows, _known(rows, metrics), out, x_label="load or factor", title=workloads[0])
    say(f"written: {out}", messages())


@command.command()
@_chosen
@click.option("--out", type=click.Path(path_type=Path), required=True,
              help="FILE.csv, or FILE.parquet (extra `parquet`).")  # fmt: skip
@click.pass_context
@printed_json
def export(context: click.Context, campaign: int, where: Sequence[str], out: Path) -> None:
    """Write emulations with all their metrics, a line each."""
    from headway.experiment.campaign import write_rows

    if out.suffix not in (".csv", ".parquet"):
        raise UserError(f"--out {out}: expected a name that ends with .csv or .parquet")
    if out.suffix == ".parquet":
        need_parquet("--out FILE.parquet")
    rows = _rows(context, campaign, where)
    if out.suffix == ".csv":
        write_rows(out, rows)
    else:
        from headway.experiment.parquet import write_parquet

        write_parquet(out, rows)
    say(f"written: {out}", messages())


def _known(rows: Sequence[Row], metrics: Sequence[str]) -> list[str]:
    """The metrics, if all are there; else :class:`UserError`."""
    there = list(rows[0].values)
    for name in metrics:
        if name not in there:
            raise UserError(f"--metric: {name!r} is no metric of this campaign.{nearest(name, there)}")
    return list(metrics or METRICS)
