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
from headway.cli.common import adapter_option, daemon_config_option, examples, messages, say, wall_clock
from headway.cli.printable import printable
from headway.errors import Failure, UserError

if TYPE_CHECKING:
    from headway.inquiry.reports import JobList, JobReport
    from headway.service.protocol import Jobs

_STATUSES = ("pending", "waiting", "starting", "running", "suspended")
_NEVER = float("inf")
#: How a sorted list compares jobs; beside it the daemon's order decides, so "order" compares nothing.
_SORTS: dict[str, Callable[[JobReport], Any]] = {
    "order": lambda job: 0,
    "start": lambda job: _or_never(job.started if job.started is not None else job.planned_start),
    "submitted": lambda job: job.submitted,
    "size": lambda job: -job.processors,
    "limit": lambda job: _or_never(job.limit),
    "user": lambda job: job.user,
}
#: So often a list is fetched anew whose pages are not all of one cycle.
_TRIES = 3
#: Beyond so many pages it is not: a busy daemon makes cycles faster.
_FEW_PAGES = 8
#: Characters of a user's name, a pool's name and a job's id that are shown where lines are short.
_NAME, _ID = 10, 14


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
@click.option("--status", default=None, type=click.Choice(_STATUSES), metavar="STATUS",
              help=f"Only jobs of this status: {', '.join(_STATUSES)}.")  # fmt: skip
@click.option("--sort", "order", type=click.Choice(list(_SORTS)), default="order", show_default=True,
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
    jobs = sorted(found.jobs, key=_SORTS[order])[:most]
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
        _short(job.id, _ID),
        *([_short(job.user, _NAME)] if with_user else []),
        _short(job.pool, _NAME) + ("+" if len(job.pools) > 1 else ""),
        job.status,
        size,
        _span(job.limit),
        _span(max(0.0, waited)),
        "" if job.position is None else str(job.position),
        _moment(start, now),
        _reason(job),
    ]


def _reason(job: JobReport) -> str:
    """Why it waits, in a few words."""
    if not job.waits_because:
        return ""
    others = ", ".join(_short(one, _ID) for one in job.waits_for[:1])
    more = f" +{len(job.waits_for) - 1}" if len(job.waits_for) > 1 else ""
    return f"{job.waits_because}{f' ({others}{more})' if others else ''}"


def _span(seconds: float | None) -> str:
    """``45s``, ``30m``, ``2h30``, ``3d`` or ``3d12h``."""
    if seconds is None:
        return "none"
    if seconds < 60:
        return f"{seconds:.0f}s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes}m"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours}h{minutes:02}" if minutes else f"{hours}h"
    days, hours = divmod(hours, 24)
    return f"{days}d{hours}h" if hours else f"{days}d"


def _moment(seconds: float | None, now: float) -> str:
    """A time by the local clock: of today without its day, of this year without its year."""
    if seconds is None:
        return "-"
    try:
        at, today = datetime.fromtimestamp(seconds), datetime.fromtimestamp(now)
    except (ValueError, OverflowError, OSError):
        return "-"
    if at.date() == today.date():
        return at.strftime("%H:%M")
    return at.strftime("%m-%d %H:%M") if abs(seconds - now) < 180 * 86400 else at.strftime("%Y-%m-%d")


def _short(text: str, most: int) -> str:
    """Users' text in one line, cut to its column."""
    shown = printable(text).replace("\n", " ").replace("\t", " ")
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"


def _or_never(seconds: float | None) -> float:
    return _NEVER if seconds is None else seconds
