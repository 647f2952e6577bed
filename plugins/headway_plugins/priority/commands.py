"""``headway shares`` and ``headway priority``: how users stand, and where priorities come from."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headway.cli.common import console, examples, say
from headway.cli.last_run import last_run_options, repeat_last_run

if TYPE_CHECKING:
    from headway.scheduler import Scheduler
    from headway.state import Job
    from headway_plugins.accounts.tree import Floats, Shape
    from headway_plugins.priority.fair_share import FairShare
    from headway_plugins.priority.multifactor import Multifactor

#: As ``sshare -l`` calls them.
SHARES = (
    "Account", "User", "RawShares", "NormShares", "RawUsage", "NormUsage", "EffectvUsage", "FairShare",
    "LevelFS",
)  # fmt: skip

_parsable_option = click.option(
    "-P", "--parsable", is_flag=True, help="Separate columns by | and fold nothing."
)


@click.command(
    "shares",
    epilog=examples(
        "headway shares -c site.yaml               as the daemon knows it",
        "headway shares --journal dry.sqlite -P    at the end of a dry run, for scripts",
        "headway shares -c site.yaml --html s.html  a page: targets against usage over time",
    ),
)
@last_run_options
@_parsable_option
@click.option(
    "--html",
    "html",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write a page with the tree, and with targets against usage over time, instead of a table.",
)
def shares(
    config_path: Path | None,
    journal_path: str | None,
    plugin_files: tuple[Path, ...],
    adapter_files: tuple[Path, ...],
    parsable: bool,
    html: Path | None,
) -> None:
    """Print the shares of each account and user, and their use.

    The columns are the columns of `sshare -l`. The last run of the journal is repeated to its end, and
    nothing is asked.
    """
    from headway.inputs.extras import need_report
    from headway_plugins.priority.minutes import MINUTES, minutes_rows
    from headway_plugins.priority.share_course import Course

    if html is not None:
        need_report("--html")
    course = Course()

    def look(running: Scheduler, at: float) -> None:
        course.look(_fair_share(running), at)

    scheduler, now = repeat_last_run(
        config_path, journal_path, plugin_files, adapter_files, look if html is not None else None
    )
    plugin = _fair_share(scheduler)
    if html is not None:
        # Here and not above: matplotlib takes longer to load than all else.
        from headway.report.plots import SERIES
        from headway_plugins.priority.share_page import write_share_page

        course.end(plugin, now)
        write_share_page(html, SHARES, share_rows(plugin, now), course, course.families(plugin, SERIES))
        say(f"written to {html}")
        return
    minutes = minutes_rows(plugin, scheduler.state.running_jobs(), now)
    rows = zip(share_rows(plugin, now), minutes, strict=True)
    _print((*SHARES, *MINUTES), [(*row, *more) for row, more in rows], parsable, left=2)


@click.command(
    "priority",
    epilog=examples(
        "headway priority -c site.yaml          all waiting jobs",
        "headway priority 4711 -c site.yaml     one job",
    ),
)
@click.argument("job_id", metavar="[JOB]", required=False)
@last_run_options
@_parsable_option
@click.option("-n", "--norm", is_flag=True, help="Print the factors without their weights, from 0 to 1.")
def priority(
    job_id: str | None,
    config_path: Path | None,
    journal_path: str | None,
    plugin_files: tuple[Path, ...],
    adapter_files: tuple[Path, ...],
    parsable: bool,
    norm: bool,
) -> None:
    """Print the priority of each job that waits, and what each factor gives to it, as sprio does.

    The last run of the journal is repeated to its end, and nothing is asked.
    """
    from headway.errors import UserError
    from headway_plugins.priority.multifactor import Multifactor

    scheduler, now = repeat_last_run(config_path, journal_path, plugin_files, adapter_files)
    plugins = scheduler.plugins.by_name.values()
    plugin = next((one for one in plugins if isinstance(one, Multifactor)), None)
    if plugin is None:
        raise UserError("the run has no plugin `multifactor`, so its jobs have no priorities")
    scheduler.state.now = now
    jobs = waiting(scheduler)
    if job_id is not None:
        jobs = [job for job in jobs if job.id == job_id or job.description.array_id == job_id]
        if not jobs:
            raise UserError(f"no job {job_id!r} waits in the journal's last run")
    names, rows = priority_rows(plugin, scheduler, jobs, norm=norm)
    _print(names, rows, parsable, left=2)


def waiting(scheduler: Scheduler) -> list[Job]:
    """The jobs that are on no nodes, in order of arrival."""
    from headway.state import Status

    waits = (Status.PENDING, Status.WAITING)
    return sorted((job for job in scheduler.state.jobs.values() if job.status in waits), key=lambda j: j.seq)


def share_rows(plugin: FairShare, now: float) -> list[tuple[str, ...]]:
    """The rows of ``sshare -l`` at ``now`` (absolute seconds): the tree from the root down."""
    from headway_plugins.priority.classic import Classic, effective_usage, normalised_shares
    from headway_plugins.priority.fair_tree import level_fair_share

    standing = plugin.standing(now)
    tree, total = plugin.tree, standing.usage
    shape = tree.shape()
    whole = total[0]
    classic = isinstance(plugin, Classic)
    norm_shares = normalised_shares(shape) if classic else _own_part(shape)
    effective = effective_usage(shape, total) if classic else shape.of_parent(total)
    level = level_fair_share(shape, total)
    rows: list[tuple[str, ...]] = []
    for node, depth in tree.walk():
        entry = tree.entries[node]
        used = total[node] / whole if whole > 0 else 0.0
        rows.append(
            (
                " " * depth + entry.account,
                entry.user,
                "" if not node else "parent" if entry.shares is None else f"{entry.shares:.15g}",
                f"{norm_shares[node] if node or classic else 0:.6f}",
                str(int(total[node])),
                "" if not node else f"{used:.6f}",
                # The root has all usage, even where no user has used anything yet.
                f"{effective[node] if node else 1:.6f}",
                f"{standing.factor[node]:.6f}" if entry.user or classic else "",
                "" if not node or entry.shares is None else f"{level[node]:.6f}",
            )
        )
    return rows


def _own_part(shape: Shape) -> Floats:
    """Each node's part of the siblings' shares; of a node without shares of its own the account's part."""
    part = shape.part.copy()
    part[shape.joint] = part[shape.parent[shape.joint]]
    return part


def priority_rows(
    plugin: Multifactor, scheduler: Scheduler, jobs: Sequence[Job], *, norm: bool
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Names of columns, and a row a job: its priority and its factors, weighted or (``norm``) not."""
    from headway_plugins.priority.multifactor import nice

    state = scheduler.state
    found = dict(plugin.factors(jobs, state)) if jobs else {}
    total: Sequence[float] = plugin.priorities(jobs, state).tolist() if jobs else []
    less = nice(jobs)
    names = ("Job", "User", "Priority", *plugin.weights, "nice")
    rows: list[tuple[str, ...]] = []
    for at, job in enumerate(jobs):
        values = [
            f"{found[name][at]:.7f}" if norm else f"{weight * found[name][at]:.2f}"
            for name, weight in plugin.weights.items()
        ]
        rows.append((job.id, job.user, f"{total[at]:.2f}", *values, f"{less[at]:.15g}"))
    return names, rows


def _fair_share(scheduler: Scheduler) -> FairShare:
    from headway.errors import UserError
    from headway_plugins.priority.fair_share import FairShare

    for plugin in scheduler.plugins.by_name.values():
        if isinstance(plugin, FairShare):
            return plugin
    raise UserError("the run has no plugin that counts usage (fair-tree, classic, windows)")


#: Columns of the widest table.
_WIDEST = 10_000
_AMOUNTS = re.compile(r"(?:[^\s,=]+=[0-9.]+)(?:,[^\s,=]+=[0-9.]+)+")


def _of_resources(cell: str) -> str:
    """``cpu=3,node=1`` of ``cpu=3,mem=0,node=1``: for a person, what is 0 says nothing."""
    if _AMOUNTS.fullmatch(cell) is None:
        return cell
    return ",".join(item for item in cell.split(",") if float(item.partition("=")[2] or 1))


def _print(names: Sequence[str], rows: Sequence[Sequence[str]], parsable: bool, left: int) -> None:
    if parsable:
        for row in (names, *rows):
            click.echo("|".join(row))
        return
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, header_style="bold", show_edge=False, pad_edge=False)
    for at, name in enumerate(names):
        table.add_column(name, justify="left" if at < left else "right", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(_of_resources(cell)) for cell in row))
    # A terminal breaks a long line; a table as wide as the terminal would leave names and numbers out.
    shown = console()
    shown.width = max(shown.width, _WIDEST)
    shown.print(table)
    if not rows:
        say("none")
