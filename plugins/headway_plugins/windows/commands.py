"""``headway window``: tonight's set, what was left out and why, and how the night will go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headway.cli.as_json import printed_json
from headway.cli.common import console, examples, say, when
from headway.cli.last_run import last_run_options, pool_of, repeat_last_run
from headway.cli.numbers import FiniteRange
from headway.errors import UserError

if TYPE_CHECKING:
    from rich.table import Table

    from headway.scheduler import Scheduler
    from headway_plugins.windows.dispatch import OrderName
    from headway_plugins.windows.plan import Plan

#: Jobs that are listed unless ``--all`` is given.
_LISTED = 20


@click.command(
    "window",
    epilog=examples(
        "headway window --list night.csv --processors 1000 --length 13h   a list on an empty machine",
        "headway window -c site.yaml                                      tonight, as the daemon knows it",
    ),
)
@click.option("--list", "list_path", type=click.Path(path_type=Path),
              help="CSV file with a stage on each line: job, stage, length; optional: tasks, reward, "
                   "priority.")  # fmt: skip
@click.option("--processors", type=click.IntRange(1, 10_000_000),
              help="With --list: processors of the machine, which is empty.")  # fmt: skip
@click.option(
    "--length", metavar="TIME", help="With --list: time from the beginning to the deadline, such as 13h."
)
@click.option("--order", type=click.Choice(["LCPF", "STCPU", "RANDOM", "PRIO"]),
              help="With --list: order of the tasks; PRIO takes all jobs on. [default: LCPF]")  # fmt: skip
@click.option("--fill", "share", type=FiniteRange(0, 1, min_open=True),
              help="With --list: r, the share of the window that is filled. Default: by the longest "
                   "critical path.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="For RANDOM.")
@last_run_options
@click.option("--pool", help="Instead of --list: the pool whose window is shown. Default: the only pool.")
@click.option("--all", "every", is_flag=True, help=f"List all jobs, not {_LISTED} of each kind.")
@printed_json
def command(
    list_path: Path | None,
    processors: int | None,
    length: str | None,
    order: OrderName | None,
    share: float | None,
    seed: int,
    config_path: Path | None,
    journal_path: str | None,
    plugin_files: tuple[Path, ...],
    adapter_files: tuple[Path, ...],
    pool: str | None,
    every: bool,
) -> None:
    """Plan a window with a deadline: of jobs whose rewards are only earned if they end in time, which to take
    on.

    Tells which set earns most, which jobs are left out and why, and when each job of the set would end.

    The jobs are a list, or the jobs of the policy `two-phase` in a pool: the last run of the journal is
    repeated to its end, and nothing is asked or changed.
    """
    import numpy as np

    from headway.inputs.durations import EXPECTED, seconds_of
    from headway_plugins.windows.lists import read_jobs
    from headway_plugins.windows.plan import plan_window

    if list_path is None:
        for name, given in (
            ("--processors", processors), ("--length", length), ("--order", order), ("--fill", share),
        ):  # fmt: skip
            if given is not None:
                raise click.UsageError(f"{name}: expected --list beside it, found none")
        _show_tonight(*repeat_last_run(config_path, journal_path, plugin_files, adapter_files), pool, every)
        return
    if config_path is not None or journal_path is not None or pool is not None:
        raise click.UsageError("expected either --list, or a live window by --config or --journal")
    if processors is None or length is None:
        raise click.UsageError("--list: expected --processors and --length beside it")
    seconds = seconds_of(length)
    if not seconds:
        raise UserError(f"--length: expected {EXPECTED}, more than 0; found {length!r}")
    order = order or "LCPF"
    plan = plan_window(
        read_jobs(list_path), processors, float(seconds), order=order, share=share,
        rng=np.random.default_rng(seed),
    )  # fmt: skip
    show(plan, order, every)


def _show_tonight(scheduler: Scheduler, now: float, name: str | None, every: bool) -> None:
    """Print the window of a pool that is open, or the next window."""
    from headway_plugins.windows.policy import TwoPhase

    enabled = (one for one in scheduler.plugins.by_name.values() if isinstance(one, TwoPhase))
    policy = next(enabled, None)
    if policy is None:
        raise UserError("the run has no policy `two-phase`, so no pool has windows")
    pool = pool_of(scheduler, name)
    scheduler.state.now = now
    tonight = policy.tonight(scheduler.state, pool.domain)
    window = tonight.window
    if window.open_at(now):
        say(f"Pool {pool.name}: the window is open until {when(window.closes)}; what is left of it:")
    else:
        say(
            f"Pool {pool.name}: the window opens at {when(window.opens)} and closes at "
            f"{when(window.closes)}; if nothing changes until then:"
        )
    show(tonight.plan, policy.options.order, every, tonight.users, tonight.reasons)
    if tonight.given_up:
        say("Can no longer be done:")
        for job, why in tonight.given_up.items():
            say(f"  {job}: {why}")


def show(
    plan: Plan, order: str, every: bool, users: Sequence[str] = (), reasons: Mapping[int, str] | None = None
) -> None:
    """Print the set, the jobs that are left out and why, and the forecast. ``users``: each job's user;
    ``reasons``: why jobs are left out, where it is not the plan's own reason."""
    import math

    from headway.report.quantities import duration

    jobs, forecast = plan.jobs, plan.forecast
    names = [f"{job.name} of {user}" for job, user in zip(jobs, users, strict=True)] if users else [
        job.name for job in jobs
    ]  # fmt: skip
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
    _show_set(plan, names, every)
    _show_left_out(plan, names, every, reasons or {})
    late = len(plan.chosen) - forecast.completed
    say(
        f"Forecast by {order}: {_count(forecast.completed, 'job')} in time, {late} too late. They earn "
        f"{forecast.reward:g}; no schedule earns more than {plan.most:g} ({plan.ratio:.3f} of it). "
        f"Processors are busy {100 * forecast.busy / whole:.1f} % of the time, "
        f"{100 * forecast.wasted / whole:.1f} % for jobs that come too late."
    )


def _show_set(plan: Plan, names: Sequence[str], every: bool) -> None:
    """The jobs of the set, in the order of their ends."""
    from rich.table import Table

    from headway.report.quantities import duration

    table = Table("job", "stages", "tasks", "work", "critical path", "reward", "ends after",
                  box=None, pad_edge=False)  # fmt: skip
    ends = sorted(zip(plan.forecast.ends, plan.chosen, strict=True))
    for end, number in ends if every else ends[:_LISTED]:
        job = plan.jobs[number]
        table.add_row(
            names[number], str(len(job.stages)), str(job.tasks), duration(job.work), duration(job.path),
            f"{job.worth:g}", duration(end) if end <= plan.deadline else "too late",
        )  # fmt: skip
    _print(table, len(ends), every)


def _show_left_out(plan: Plan, names: Sequence[str], every: bool, reasons: Mapping[int, str]) -> None:
    from rich.table import Table

    from headway_plugins.windows.plan import out_of

    out = [*plan.left_out, *plan.too_long]
    if not out:
        return
    say("Left out:")
    table = Table("job", "reward", "why", box=None, pad_edge=False)
    for number in out if every else out[:_LISTED]:
        why = reasons.get(number) or out_of(plan, number)
        table.add_row(names[number], f"{plan.jobs[number].worth:g}", why)
    _print(table, len(out), every)


def _print(table: Table, count: int, every: bool) -> None:
    """The table, and how many of ``count`` rows are not in it."""
    console().print(table)
    if count > _LISTED and not every:
        say(f"... and {count - _LISTED} more (--all).")


def _count(count: int, what: str) -> str:
    return f"{count} {what if count == 1 else what + 's'}"
