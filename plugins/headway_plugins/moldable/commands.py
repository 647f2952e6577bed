"""``headway plan``: what the algorithms for moldable jobs make of a batch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from headway.cli.common import console, examples, say
from headway.errors import UserError

if TYPE_CHECKING:
    from headway_plugins.moldable.advice import Plans

#: Jobs that are listed unless ``--all`` is given.
_LISTED = 20


@click.command("plan", epilog=examples("headway plan --list night.csv --processors 64"))
@click.option("--list", "list_path", type=click.Path(path_type=Path), required=True,
              help="A CSV file, a job a line: processes, time; if wanted name, least, stretch.")  # fmt: skip
@click.option("--processors", type=click.IntRange(1, 100_000), required=True,
              help="Size of the machine, which is empty.")  # fmt: skip
@click.option("--algorithm", type=click.Choice(["A1", "A2", "A3", "A4", "LTF"]),
              help="Show this algorithm's plan; default: the one that ends first.")  # fmt: skip
@click.option("--all", "every", is_flag=True, help=f"List all jobs that are made smaller, not {_LISTED}.")
def command(list_path: Path, processors: int, algorithm: str | None, every: bool) -> None:
    """Plan a batch of moldable jobs: programs that may be started on fewer processors than they have
    processes.

    Tells when the batch would end by each of the algorithms A1 to A4, and by LTF, which leaves every job as
    it is; whom the best of them makes smaller, and why.
    """
    from headway_plugins.moldable.advice import plans
    from headway_plugins.moldable.lists import read_list

    names, tasks = read_list(list_path)
    try:
        found = plans(tasks, processors)
    except ValueError as error:
        raise UserError(f"{list_path}: {error}") from error
    show(found, names, algorithm, every)


def show(found: Plans, names: list[str], algorithm: str | None, every: bool) -> None:
    """Print the makespans, the advice, and who is made smaller."""
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
