"""``headway what-if``: what would become of the queue under another policy."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headway.cli.as_json import json_option, say_json
from headway.cli.asking import ask_daemon
from headway.cli.cells import ID_WIDTH, NAME_WIDTH, moment, short, span
from headway.cli.common import adapter_option, daemon_config_option, examples, say, wall_clock
from headway.errors import Failure, UserError

if TYPE_CHECKING:
    from headway.inquiry.reports import CourseReport, ForeseenJob, WhatIfReport


@click.command(
    "what-if",
    epilog=examples(
        "headway what-if conservative",
        "headway what-if easy --set bookings=3 --jobs 50",
        "headway what-if like-slurm --json",
    ),
)
@click.argument("policy")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE",
              help="An option of the policy, its value in YAML. Repeatable.")  # fmt: skip
@click.option("--jobs", "most", type=click.IntRange(0, 5000), default=20, show_default=True,
              help="Jobs that are told one by one.")  # fmt: skip
@daemon_config_option
@adapter_option
@json_option("headway.inquiry.reports:WhatIfReport")
def command(
    policy: str,
    settings: tuple[str, ...],
    most: int,
    config_path: Path | None,
    adapter_files: tuple[Path, ...],
    as_json: bool,
) -> None:
    """Tell when the waiting jobs would start under POLICY, beside when they are foreseen to start now.

    POLICY takes the place of the configured policy; all other plugins stay. The daemon follows both in
    processes of their own, as if no other job came and all ran as long as they are planned with; nothing
    changes. For operators. Takes up to 20 seconds.
    """
    import msgspec

    from headway.inputs.settings import parsed_settings
    from headway.inquiry.reports import WhatIfReport
    from headway.service.protocol import WhatIf

    options = parsed_settings(settings)
    try:
        text = msgspec.json.encode(options).decode() if options else ""
        wanted = msgspec.convert({"policy": policy, "options": text, "most": most}, WhatIf)
    except (msgspec.ValidationError, TypeError) as error:
        raise UserError(f"POLICY, --set: {error}") from error
    reply = ask_daemon(config_path, adapter_files, wanted)
    if reply.outcome == "unknown":
        raise UserError(reply.reason)
    if not isinstance(reply.found, WhatIfReport):
        raise Failure("the daemon answers without a comparison")
    if as_json:
        say_json(reply.found)
    else:
        _show(reply.found)


def _show(found: WhatIfReport) -> None:
    say(
        f"{found.waiting} jobs wait at {wall_clock(found.now)}. Under {found.policy}, {found.earlier} of "
        f"them would start earlier, {found.later} later and {found.same} at the same time; of "
        f"{found.unknown} that is not known."
    )
    for name, course in (("As it is", found.present), (f"Under {found.policy}", found.other)):
        say(f"{name} ({', '.join(course.plugins)}): {_sums(course, found.until)}")
        if course.known_until is not None:
            say(f"  Known until {wall_clock(course.known_until)}: {course.ended}.")
    if found.jobs:
        _table(found)
    if found.left_out and found.jobs:
        say(f"{found.left_out} more jobs are not shown (--jobs).")
    say("As if no other job came and all jobs ran as long as they are planned with.")


def _sums(course: CourseReport, until: float | None) -> str:
    told = [f"{course.starts} starts are known"]
    if course.mean_wait is not None and course.median_wait is not None:
        told.append(f"mean wait {span(course.mean_wait)}, median {span(course.median_wait)}")
    if course.use is not None and until is not None:
        told.append(f"{100 * course.use:.1f} % of the processors are busy until {wall_clock(until)}")
    return "; ".join(told) + "."


def _table(found: WhatIfReport) -> None:
    """A line for each job."""
    head = ["job", "user", "pool", "cpus", "as it is", found.policy, "change"]
    lines = [head, *(_line(job, found.now) for job in found.jobs)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(head))]
    room = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    for line in lines:
        cells = [
            cell.rjust(width) if name in ("cpus", "change") else cell.ljust(width)
            for name, cell, width in zip(head, line, widths, strict=True)
        ]
        click.echo(" ".join(cells).rstrip()[:room])


def _line(job: ForeseenJob, now: float) -> list[str]:
    return [
        short(job.id, ID_WIDTH),
        short(job.user, NAME_WIDTH),
        short(job.pool, NAME_WIDTH),
        str(job.processors),
        _start(job.present, now),
        _start(job.other, now),
        _change(job),
    ]


def _start(start: float | None, now: float) -> str:
    return "not known" if start is None else moment(start, now)


def _change(job: ForeseenJob) -> str:
    if job.present is None or job.other is None:
        return ""
    change = job.other - job.present
    if abs(change) < 1.0:
        return "same"
    return f"{'+' if change > 0 else '-'}{span(abs(change))}"
