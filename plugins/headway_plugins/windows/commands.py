"""``headway window``: tonight's set, what was left out and why, and how the night will go."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from headway.cli.common import console, examples, say
from headway.errors import UserError

if TYPE_CHECKING:
    from headway_plugins.windows.plan import Plan

#: Jobs that are listed unless ``--all`` is given.
_LISTED = 20


@click.command("window", epilog=examples("headway window --list night.csv --processors 1000 --length 13h"))
@click.option("--list", "list_path", type=click.Path(path_type=Path), required=True,
              help="CSV, a stage a line: job, stage, length; also tasks, reward, priority.")  # fmt: skip
@click.option("--processors", type=click.IntRange(1, 10_000_000), required=True,
              help="Size of the machine, which is empty.")  # fmt: skip
@click.option(
    "--length", metavar="TIME", required=True, help="From the beginning to the deadline, as in 13h."
)
@click.option("--order", type=click.Choice(["LCPF", "STCPU", "RANDOM", "PRIO"]), default="LCPF",
              show_default=True, help="Whose tasks go first; PRIO takes all jobs on.")  # fmt: skip
@click.option("--fill", "share", type=click.FloatRange(0, 1, min_open=True),
              help="r: how much of the window is filled; default: by the longest critical path.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="For RANDOM.")
@click.option("--all", "every", is_flag=True, help=f"List all jobs, not {_LISTED} of each kind.")
def command(
    list_path: Path, processors: int, length: str, order: str, share: float | None, seed: int, every: bool
) -> None:
    """Plan a window with a deadline: of jobs whose rewards are only earned if they end in time, which to take
    on.

    Tells which set earns most, who is left out and why, and when each job of the set would end.
    """
    import numpy as np

    from headway.durations import EXPECTED, seconds_of
    from headway_plugins.windows.lists import read_jobs
    from headway_plugins.windows.plan import plan_window

    seconds = seconds_of(length)
    if not seconds:
        raise UserError(f"--length: expected {EXPECTED}, more than 0; found {length!r}")
    plan = plan_window(
        read_jobs(list_path), processors, float(seconds), order=order, share=share,  # type: ignore[arg-type]
        rng=np.random.default_rng(seed),
    )  # fmt: skip
    show(plan, order, every)


def show(plan: Plan, order: str, every: bool) -> None:
    """Print the set, who is left out and why, and the forecast."""
    import math

    from rich.table import Table

    from headway.report.quantities import duration
    from headway_plugins.windows.plan import out_of

    jobs, forecast = plan.jobs, plan.forecast
    whole = plan.processors * plan.deadline
    asked, taken = (math.fsum(jobs[n].work for n in some) for some in (range(len(jobs)), plan.chosen))
    say(
        f"{_count(len(jobs), 'job')}, {asked / whole:.2f} of the window ({plan.processors} processors for "
        f"{duration(plan.deadline)})."
    )
    if order == "PRIO":
        say(
            f"By priority, nothing is selected: {len(plan.chosen)} taken on, {taken / whole:.2f} of the "
            f"window."
        )
    else:
        say(
            f"The set: {len(plan.chosen)} of them, {taken / whole:.2f} of the window; it may be filled to "
            f"{plan.share:.3f}."
        )
    if plan.gap:
        say(f"Another set may earn up to {plan.gap:g} more: there were too many to try all.")
    screen = console()
    table = Table("job", "stages", "tasks", "work", "critical path", "reward", "ends after",
                  box=None, pad_edge=False)  # fmt: skip
    ends = sorted(zip(forecast.ends, plan.chosen, strict=True))
    for end, number in ends if every else ends[:_LISTED]:
        job = jobs[number]
        table.add_row(
            job.name, str(len(job.stages)), str(job.tasks), duration(job.work), duration(job.path),
            f"{job.worth:g}", duration(end) if end <= plan.deadline else "too late",
        )  # fmt: skip
    screen.print(table)
    if len(ends) > _LISTED and not every:
        say(f"... and {len(ends) - _LISTED} more (--all).")
    out = [*plan.left_out, *plan.too_long]
    if out:
        say("Left out:")
        table = Table("job", "reward", "why", box=None, pad_edge=False)
        for number in out if every else out[:_LISTED]:
            table.add_row(jobs[number].name, f"{jobs[number].worth:g}", out_of(plan, number))
        screen.print(table)
        if len(out) > _LISTED and not every:
            say(f"... and {len(out) - _LISTED} more (--all).")
    late = len(plan.chosen) - forecast.completed
    say(
        f"Forecast by {order}: {_count(forecast.completed, 'job')} in time, {late} too late. They earn "
        f"{forecast.reward:g}; no schedule earns more than {plan.most:g} ({plan.ratio:.3f} of it). "
        f"Processors are busy {100 * forecast.busy / whole:.1f} % of the time, "
        f"{100 * forecast.wasted / whole:.1f} % for jobs that come too late."
    )


def _count(count: int, what: str) -> str:
    return f"{count} {what if count == 1 else what + 's'}"
