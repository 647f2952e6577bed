"""Running a campaign for a command: here or on a cluster, with progress, kept runs and a record."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headway.cli.common import messages, prepare_directory, say
from headway.errors import Failure
from headway.inputs.extras import need_cluster

if TYPE_CHECKING:
    from headway.experiment.campaign import Campaign, Row
    from headway.experiment.execution import Failed, Runner
    from headway.experiment.kept_runs import KeptRuns
    from headway.experiment.rulebook import Judged


def place_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--workers`` and ``--scheduler``."""
    command = click.option(
        "--scheduler", default="", metavar="ADDRESS",
        help="Run on the Dask cluster of this scheduler, such as tcp://head:8786 (extra `cluster`).",
    )(command)  # fmt: skip
    return click.option(
        "--workers", type=click.IntRange(min=1),
        help="Number of processes. Default: all cores. With --scheduler: number of workers to wait for. "
             "Default: 1.",
    )(command)  # fmt: skip


@dataclass(frozen=True)
class Ran:
    """What became of a campaign."""

    rows: list[Row]
    failed: list[Failed]
    #: What :func:`headway.experiment.folder.write_record` keeps of it.
    record: dict[str, Any]
    #: Of its workloads so many had run before, in the same folder.
    kept: int = 0


def run_in_folder(
    plan: Campaign,
    folder: Path,
    out: Path,
    *,
    workers: int | None,
    scheduler: str,
    anew: bool = False,
    finish: Callable[[Ran], None],
) -> Ran:
    """Run what is missing of a campaign in the folder ``out``; ``finish`` writes the results while no other
    program can run one there. ``folder``: where the files are that its definition names.

    Raises :class:`UserError` for a policy that cannot run on a machine of the campaign, :class:`Failure` if
    no run gave anything; nothing is written before all is in order.
    """
    from headway.experiment.definition import check_policies
    from headway.experiment.kept_runs import KeptRuns, locked, wanted
    from headway.experiment.record import files_of, made_by, program

    began = datetime.now(UTC)
    check_policies(plan)
    files = files_of(plan, plan.catalogue())
    runs = wanted(plan, files)
    named = files.named(folder)
    with _place(workers, scheduler) as (runner, where):
        prepare_directory(out)
        with locked(out):
            kept = KeptRuns(out, runs, named, program(), anew=anew)
            there = len(runs) - len(kept.missing)
            failed = _run_missing(kept, runner, plan, out, len(runs))
            kept.complete()
            record = made_by(plan, named, folder, where, began, failed)
            ran = Ran(kept.rows(), failed, record, there)
            if not ran.rows:
                raise all_failed(out, failed, len(runs))
            finish(ran)
    return ran


def _run_missing(kept: KeptRuns, runner: Runner, plan: Campaign, out: Path, wanted: int) -> list[Failed]:
    """Run what is missing of ``wanted`` workloads, with progress; what failed."""
    from headway.cli.screen import new_progress
    from headway.experiment.kept_runs import run_missing

    there = wanted - len(kept.missing)
    if there:
        say(f"{out}: {there} of {wanted} workloads have run before", messages())
    try:
        with new_progress("emulations") as progress:
            task = progress.add_task("emulations", total=plan.size())
            progress.advance(task, there * len(plan.variants))
            return run_missing(kept, runner, lambda n: progress.advance(task, n))
    except BaseException:
        done = wanted - len(kept.missing)
        say(f"{out}: {done} of {wanted} workloads are kept; the same command continues", messages())
        raise


def write_all(
    out: Path,
    plan: Campaign,
    ran: Ran,
    found: Sequence[Judged],
    *,
    text: str,
    folder: Path,
    call: Sequence[str],
) -> None:
    """The results and their record; ``text``: the definition, ``call``: the command."""
    from headway.experiment.folder import write_method, write_record, write_results

    write_results(out, text, ran.rows)
    write_method(out, folder, plan, found)
    write_record(out, {"command": shlex.join(call), **ran.record})


def all_failed(out: Path, failed: list[Failed], count: int) -> Failure:
    """What is raised for runs that failed: each with its place."""
    lines = "\n".join(f"  {one.place}: {one.message}" for one in failed)
    rest = (
        ""
        if len(failed) == count
        else ("; the others are done, and the same command runs the failed workloads again")
    )
    return Failure(f"{out}: {len(failed)} of {count} workloads failed{rest}:\n{lines}")


@contextmanager
def _place(workers: int | None, scheduler: str) -> Iterator[tuple[Runner, str]]:
    """Where it runs, and how that is called."""
    from headway.experiment.execution import here

    if not scheduler:
        count = workers or os.cpu_count() or 1
        yield here(count), f"{count} processes"
        return
    need_cluster("--scheduler")
    from headway.experiment.dask_cluster import connected

    def tell(text: str) -> None:
        say(text, messages())

    with connected(scheduler, workers or 1, tell) as cluster:
        if cluster.page:
            tell(f"Dask's page: {cluster.page}")
        yield cluster.runner(), f"Dask cluster {scheduler}"
