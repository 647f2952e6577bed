"""``headway when``: when a job would start that is not submitted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headway.cli.as_json import json_option, say_json
from headway.cli.asking import MOMENT, ask_daemon
from headway.cli.common import adapter_option, daemon_config_option, examples, say, wall_clock
from headway.cli.wanted import TIME_LIMIT, named, wanted_options
from headway.errors import Failure, UserError

if TYPE_CHECKING:
    from headway.inquiry.reports import SmallerRequest, TrialReport

#: Nodes that are named.
_NAMED = 8


@click.command(
    "when",
    epilog=examples(
        "headway when -N 4 -t 2h",
        "headway when -N 4 -t 2h --gres gpu:a100:2 --qos high",
        "headway when -p batch -n 64 --mem-per-processor 2G -t 1-12:00:00 --json",
    ),
)
@daemon_config_option
@adapter_option
@wanted_options
@click.option("-t", "--time", "seconds", type=TIME_LIMIT, required=True,
              help="Its time limit: 2h, 90m, 2:00:00, 1-12:00:00.")  # fmt: skip
@click.option("-q", "--qos", default="", help="Its QOS. Default: that of your latest job.")
@click.option("-A", "--account", default="", help="Its account. Default: that of your latest job.")
@click.option("-b", "--begin", type=MOMENT,
              help="Its earliest start: 14:30, 2026-03-01T14:30, +2h.")  # fmt: skip
@click.option("--smaller/--no-smaller", default=True, help="Try smaller requests as well.")
@json_option("headway.inquiry.reports:TrialReport")
def command(config_path: Path | None, adapter_files: tuple[Path, ...], as_json: bool, **wanted: Any) -> None:
    """Tell when a job of yours would start that asks for this, if it was submitted now.

    The daemon tries the job in a copy of its scheduler; nothing is submitted. Takes two seconds at most.
    """
    from headway.inquiry.reports import TrialReport
    from headway.service.protocol import When

    reply = ask_daemon(config_path, adapter_files, When(**named(wanted)))
    if reply.outcome == "unknown":
        raise UserError(reply.reason)
    if not isinstance(reply.found, TrialReport):
        raise Failure("the daemon answers without a trial")
    if as_json:
        say_json(reply.found)
    else:
        _show(reply.found, reply.as_of or 0.0)


def _show(report: TrialReport, as_of: float) -> None:
    say(_sentence(report))
    if report.position is not None:
        say(f"It would be number {report.position} of {report.queue_length} in the queue.")
    if report.why and report.outcome not in ("never", "now"):
        say(report.why)
    if report.account or report.qos:
        said = [
            f"account {report.account}" if report.account else "",
            f"QOS {report.qos}" if report.qos else "",
        ]
        say(f"Tried with {' and '.join(filter(None, said))}.")
    if report.smaller:
        say("Smaller requests would start earlier:")
        for one in report.smaller:
            say(f"  {_asked(one)}: {wall_clock(one.start)}")
    say(f"As of {wall_clock(as_of)}; other jobs that come or end early change it.")


def _sentence(report: TrialReport) -> str:
    where = f" in pool {report.pool}{_nodes(report)}"
    if report.outcome == "never":
        return f"It can never start: {report.why}."
    if report.outcome == "now":
        return f"It would start now{where}{f': {report.why}' if report.why else ''}."
    if report.start is not None:
        how = "is planned to start" if report.outcome == "planned" else "is expected to start"
        return f"It {how} at {wall_clock(report.start)}{where}."
    if report.not_before is None:
        return f"When it would start{where} cannot be foreseen."
    return f"It would not start before {wall_clock(report.not_before)}{where}."


def _nodes(report: TrialReport) -> str:
    names = [name for name, _ in report.placement]
    if not names:
        return ""
    more = f" and {len(names) - _NAMED} more nodes" if len(names) > _NAMED else ""
    return f" on {', '.join(names[:_NAMED])}{more}"


def _asked(one: SmallerRequest) -> str:
    nodes = f"-N {one.nodes} " if one.nodes else ""
    processors = f"-n {one.processors} " if one.processors else ""
    return f"{nodes}{processors}-t {_clock(int(one.limit))}"


def _clock(seconds: int) -> str:
    """As sbatch takes it."""
    hours, rest = divmod(seconds, 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}"
