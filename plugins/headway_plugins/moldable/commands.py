"""``headway plan``: what the algorithms for moldable jobs make of a batch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from headway.cli.as_json import printed_json
from headway.cli.common import console, examples, say
from headway.cli.last_run import last_run_options, pool_of, repeat_last_run
from headway.errors import UserError

if TYPE_CHECKING:
    from headway_plugins.moldable.advice import Plans

#: Jobs that are listed unless ``--all`` is given.
_LISTED = 20


@click.command(
    "plan",
    epilog=examples(
        "headway plan --list night.csv --processors 64    a list of jobs on an empty machine",
        "headway plan -c site.yaml --pool night           the jobs that wait in a pool now",
    ),
)
@click.option("--list", "list_path", type=click.Path(path_type=Path),
              help="CSV file with a job on each line: processes, time; optional: name, least, "
                   "stretch.")  # fmt: skip
@click.option("--processors", type=click.IntRange(1, 100_000),
              help="With --list: processors of the machine, which is empty.")  # fmt: skip
@last_run_options
@click.option("--pool", help="Instead of --list: the pool whose queue is planned. Default: the only pool.")
@click.option("--algorithm", type=click.Choice(["A1", "A2", "A3", "A4", "LTF"]),
              help="Show this algorithm's plan. Default: the plan that ends first.")  # fmt: skip
@click.option("--all", "every", is_flag=True, help=f"List all jobs that are made smaller, not {_LISTED}.")
@printed_json
def command(
    list_path: Path | None,
    processors: int | None,
    config_path: Path | None,
    journal_path: str | None,
    plugin_files: tuple[Path, ...],
    adapter_files: tuple[Path, ...],
    pool: str | None,
    algorithm: str | None,
    every: bool,
) -> None:
    """Plan a batch of moldable jobs: programs that may be started on fewer processors than they have
    processes.

    Tells when the batch would end by each of the algorithms A1 to A4, and by LTF, which leaves every job as
    it is; which jobs the best of them makes smaller, and why.

    The batch is a list, or what waits in a pool: the last run of the journal is repeated to its end, and
    nothing is asked or changed. Jobs are moldable there as the run's policy `moldable` takes them, else if
    they say so.
    """
    from headway_plugins.moldable.advice import plans
    from headway_plugins.moldable.lists import read_list

    if list_path is None:
        if processors is not None:
            raise click.UsageError("--processors: expected --list beside it, found none")
        show(*_waiting(config_path, journal_path, plugin_files, adapter_files, pool), algorithm, every)
        return
    if config_path is not None or journal_path is not None or pool is not None:
        raise click.UsageError("expected either --list, or a live queue by --config or --journal")
    if processors is None:
        raise click.UsageError("--list: expected the size of the machine by --processors, found none")
    names, tasks = read_list(list_path, processors)
    show(plans(tasks, processors), names, algorithm, every)


def _waiting(
    config_path: Path | None, journal_path: str | None, plugin_files: tuple[Path, ...],
    adapter_files: tuple[Path, ...], name: str | None,
) -> tuple[Plans, list[str]]:  # fmt: skip
    """The plans for what waits in a pool of the last recorded run, and the jobs' ids and names."""
    from headway_plugins.moldable.advice import plans
    from headway_plugins.moldable.policy import Moldable, frontier

    scheduler, now = repeat_last_run(config_path, journal_path, plugin_files, adapter_files)
    state, pool = scheduler.state, pool_of(scheduler, name)
    state.now = now
    enabled = (one for one in scheduler.plugins.by_name.values() if isinstance(one, Moldable))
    policy = next(enabled, None) or Moldable()
    free_at = frontier(pool.domain, now)
    jobs = policy.batch(state, pool.domain)
    tasks = [policy.task(job) for job in jobs]
    able = [at for at, task in enumerate(tasks) if task.least <= len(free_at)]
    say(
        f"Pool {pool.name}: {state.free_in(pool)} of {pool.total} processors free, "
        f"{len(jobs)} waiting, {len(state.entries_in(pool))} running until they are expected to end."
    )
    if not len(free_at):
        raise UserError(f"pool {pool.name}: expected processors, found none that are up")
    if len(able) < len(jobs):
        say(f"{len(jobs) - len(able)} of these jobs cannot run on the nodes that are up, and are left out.")
    names = [f"{jobs[at].id} {jobs[at].name}".strip() for at in able]
    return plans([tasks[at] for at in able], len(free_at), free_at), names


def show(found: Plans, names: list[str], algorithm: str | None, every: bool) -> None:
    """Print the makespans, the advice, and the jobs that are made smaller."""
    from rich.table import Table

    from headway.report.quantities import duration
    from headway_plugins.moldable.advice import PLAIN, advice, shrunk, why

    count = f"{len(found.tasks)} {'job' if len(found.tasks) == 1 else 'jobs'}"
    say(f"{count} on {found.processors} processors. No plan ends before {duration(found.bound)}.")
    table = Table("plan", "the batch ends in", "x lower bound", "jobs made smaller", box=None, pad_edge=False)
    for name, schedule in found.schedules.items():
        ratio = f"{schedule.makespan / found.bound:.3f}" if found.bound else ""
        label = "LTF (as they are)" if name == PLAIN else name
        table.add_row(label, duration(schedule.makespan), ratio, str(len(shrunk(found.tasks, schedule))))
    screen = console()
    screen.print(table)
    say(advice(found))
    chosen = algorithm or found.best
    schedule = found.schedules[chosen]
    smaller = shrunk(found.tasks, schedule)
    if not smaller:
        return
    table = Table(
        "job", "processes", "processors", "starts after", "ends after", "why", box=None, pad_edge=False
    )
    for entry in smaller if every else smaller[:_LISTED]:
        task = found.tasks[entry.task]
        table.add_row(
            names[entry.task], str(task.processes), str(entry.size), duration(entry.start),
            duration(entry.end), why(task, entry.size, chosen, schedule, found.processors),
        )  # fmt: skip
    say(f"Jobs that {chosen} makes smaller:")
    screen.print(table)
    if len(smaller) > _LISTED and not every:
        say(f"... and {len(smaller) - _LISTED} more (--all).")
