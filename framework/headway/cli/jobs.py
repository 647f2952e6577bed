"""``headway jobs``: the jobs in the daemon's order, with their planned starts."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headway.cli.as_json import json_option, say_json
from headway.cli.asking import ask_daemon
from headway.cli.cells import ID_WIDTH, NAME_WIDTH, SORTS, STATUSES, moment, reason, short, span
from headway.cli.common import adapter_option, daemon_config_option, examples, messages, say, wall_clock
from headway.errors import Failure, UserError

if TYPE_CHECKING:
    from headway.inquiry.reports import JobList, JobReport
    from headway.service.protocol import Jobs

#: So often a list is fetched anew whose pages are not all of one cycle.
_TRIES = 3
#: Beyond so many pages it is not: a busy daemon makes cycles faster.
_FEW_PAGES = 8


@click.command(
    "jobs",
    epilog=examples(
        "headway jobs                                 mine",
        "headway jobs --all --pool batch --sort start",
        "headway jobs --all --status pending -n 20    the next of the queue",
        "headway jobs --json | jq '.jobs[].planned_start'",
    ),
)
@daemon_config_option
@adapter_option
@click.option("--all", "everyone", is_flag=True, help="All users' jobs, as far as the site shows them.")
@click.option("--pool", default="", metavar="POOL", help="Only jobs of this pool (partition, queue).")
@click.option("--user", default="", metavar="USER", help="Only jobs of this user. Default: mine.")
@click.option("--account", default="", metavar="ACCOUNT", help="Only jobs of this account.")
@click.option("--qos", default="", metavar="QOS", help="Only jobs of this QOS.")
@click.option("--name", default="", metavar="NAME", help="Only jobs of this name.")
@click.option("--status", default=None, type=click.Choice(STATUSES), metavar="STATUS",
              help=f"Only jobs of this status: {', '.join(STATUSES)}.")  # fmt: skip
@click.option("--sort", "order", type=click.Choice(list(SORTS)), default="order", show_default=True,
              help="By this; size: the largest first. Default: the order of the queue.")  # fmt: skip
@click.option("-n", "most", type=click.IntRange(min=1), default=None, metavar="N",
              help="At most so many jobs.")  # fmt: skip
@json_option("headway.inquiry.reports:JobList", "Print the jobs as JSON; times are seconds since 1970.")
def command(
    config_path: Path | None,
    adapter_files: tuple[Path, ...],
    everyone: bool,
    user: str,
    status: str | None,
    order: str,
    most: int | None,
    as_json: bool,
    **filters: Any,
) -> None:
    """List my jobs: place in the queue, planned start, and why a job waits.

    The running daemon answers from what it planned in its last cycle; the batch system is not asked. First
    come the jobs in the queue, in the daemon's order, then jobs outside of it, then jobs that run.
    """
    from msgspec.structs import replace

    from headway.service.protocol import Jobs

    if everyone and user:
        raise UserError("expected --all or --user, found both")
    mine = not everyone and not user
    wanted = Jobs(user=user, mine=mine, status=status or "", **filters)

    def ask(question: Jobs) -> Any:
        return ask_daemon(config_path, adapter_files, question)

    found = _fetched(ask, wanted, most if order == "order" else None)
    jobs = sorted(found.jobs, key=SORTS[order])[:most]
    found = replace(found, jobs=tuple(jobs))
    if as_json:
        say_json(found)
        return
    _show(found, with_user=not mine)
    if not jobs:
        say("No job of yours is in the cluster's queue, and none runs." if mine else "No such job.")
    if found.remark:
        say(f"{found.remark}.", messages(), style="yellow")


# ---------------------------------------------------------------------- pages


def _fetched(ask: Callable[[Jobs], Any], wanted: Jobs, most: int | None) -> JobList:
    """All jobs that are wanted, or the first of them, of one cycle if that is possible."""
    from msgspec.structs import replace

    for _ in range(_TRIES):
        found, pages, changed = _all_pages(ask, wanted, most)
        if not changed or pages > _FEW_PAGES:
            break
    if changed:
        remark = "The queue changed while it was read: a job may be missing, or stand where it stood before"
        found = replace(found, remark="; ".join(filter(None, [found.remark, remark])))
    return found


def _all_pages(ask: Callable[[Jobs], Any], wanted: Jobs, most: int | None) -> tuple[JobList, int, bool]:
    """The jobs, on how many pages they were, and whether a cycle came between two pages."""
    from msgspec.structs import replace

    from headway.inquiry.pages import MOST
    from headway.inquiry.reports import JobList, JobPage

    jobs: dict[str, JobReport] = {}
    moments: set[float] = set()
    remark, first, pages = "", 0, 0
    while True:
        count = MOST if most is None else min(MOST, most - len(jobs))
        try:
            reply = ask(replace(wanted, first=first, count=count))
        except Failure as error:
            if not jobs:
                raise
            remark = f"Only the first {len(jobs)} jobs are shown: {error}"
            break
        page = reply.found
        if not isinstance(page, JobPage) or reply.as_of is None:
            raise Failure(f"the daemon has no answer: {reply.reason or reply.outcome}")
        pages += 1
        moments.add(reply.as_of)
        # A job that started meanwhile is on a later page again.
        jobs.update((job.id, job) for job in page.jobs)
        remark = reply.reason.capitalize()
        if page.next is None or (most is not None and len(jobs) >= most):
            break
        first = page.next
    return JobList(tuple(jobs.values()), max(moments), remark), pages, len(moments) > 1


# ---------------------------------------------------------------------- a table


def _show(found: JobList, *, with_user: bool) -> None:
    """A line for each job."""
    zone = datetime.fromtimestamp(found.as_of).astimezone().tzname()
    say(f"As of the daemon's cycle at {wall_clock(found.as_of)}; times are {zone}.")
    if not found.jobs:
        return
    head = ["job", *(["user"] if with_user else []), "pool", "status", "cpus", "limit", "waited", "place",
            "start", "reason"]  # fmt: skip
    lines = [head, *(_line(job, found.as_of, with_user) for job in found.jobs)]
    right = {"cpus", "limit", "waited", "place"}
    widths = [max(len(line[at]) for line in lines) for at in range(len(head) - 1)]
    room = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    for line in lines:
        cells = [
            cell.rjust(width) if name in right else cell.ljust(width)
            for name, cell, width in zip(head, line, widths, strict=False)
        ]
        click.echo(" ".join([*cells, line[-1]]).rstrip()[:room])


def _line(job: JobReport, now: float, with_user: bool) -> list[str]:
    start = job.started if job.started is not None else job.planned_start
    waited = (job.started if job.started is not None else now) - job.submitted
    size = f"{job.processors}/{job.nodes}n" if job.nodes else str(job.processors)
    return [
        short(job.id, ID_WIDTH),
        *([short(job.user, NAME_WIDTH)] if with_user else []),
        short(job.pool, NAME_WIDTH) + ("+" if len(job.pools) > 1 else ""),
        job.status,
        size,
        span(job.limit),
        span(max(0.0, waited)),
        "" if job.position is None else str(job.position),
        moment(start, now),
        reason(job),
    ]
