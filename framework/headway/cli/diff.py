"""``headway diff``: how two runs of one workload differ."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headway.cli.as_json import json_option, say_json
from headway.cli.common import examples, say

if TYPE_CHECKING:
    from headway.experiment.difference import FirstDifference, Moved, RunDifference, Shift, Taken


@click.command(
    "diff",
    epilog=examples(
        "headway dry-run --trace log.swf --out one",
        "headway dry-run --trace log.swf --policy conservative --out two",
        "headway diff one two                     which jobs, by how much, and the first difference",
    ),
)
@click.argument("first", metavar="OUT1", type=click.Path(path_type=Path))
@click.argument("second", metavar="OUT2", type=click.Path(path_type=Path))
@json_option("headway.experiment.difference:RunDifference")
def command(first: Path, second: Path, as_json: bool) -> None:
    """Tell how two runs of the same workload differ: which jobs start at another time or on other nodes, by
    how much, and the first decision that is another, with what waited and what was free then.

    OUT1 and OUT2 are directories of `headway dry-run --out`. Exit code 0: the runs are the same, 1: they
    differ, 2: they are not of the same workload.
    """
    from headway.experiment.difference import difference

    found = difference(first, second)
    if as_json:
        say_json(found)
    else:
        for line in _told(found, str(first), str(second)):
            say(line)
    if not found.same:
        sys.exit(1)


def _told(found: RunDifference, one: str, other: str) -> Iterator[str]:
    """The difference in sentences; ``one`` and ``other`` are what the runs are called."""
    for name, (ours, theirs) in found.made_of.items():
        yield f"{name}: {_text(ours)} in {one}, {_text(theirs)} in {other}"
    for count, where, not_in in ((found.only_first, one, other), (found.only_second, other, one)):
        if count:
            yield f"{_jobs(count)} of {where} not in {not_in} with the same id, submission and size"
    if found.same:
        yield f"the same: {_jobs(found.jobs)} with the same starts, ends and nodes, by the same decisions"
        return
    yield f"of {_jobs(found.jobs)} in both:"
    yield f"  {_shifted(found.start, 'start')}"
    yield f"  {_shifted(found.end, 'end')}"
    yield f"  {found.nodes:,} on other nodes, {found.states:,} in another state at the end"
    if found.most:
        yield "\nwhose start moved most:"
        yield from (f"  {_moved(moved)}" for moved in found.most)
    yield "\n" + f"{'':<24}{found.labels[0]:>20}{found.labels[1]:>20}"
    for name, values in found.figures.items():
        yield f"{name:<24}" + "".join(f"{_figure(name, value):>20}" for value in values)
    if found.decided is not None:
        yield ""
        yield from _first(found.decided, one, other)


def _jobs(count: int) -> str:
    return f"{count:,} {'job' if count == 1 else 'jobs'}"


def _processors(count: int) -> str:
    return f"{count:,} processor{'' if count == 1 else 's'}"


def _text(value: object) -> str:
    return "none" if value is None else str(value)


def _shifted(shift: Shift, what: str) -> str:
    from headway.report.quantities import duration

    text = f"{shift.differing:,} {what} at another time"
    if shift.mean is not None:
        text += (
            f": on average {_signed(shift.mean)}, {duration(shift.mean_absolute)} either way, at most "
            f"{_signed(shift.largest)}"
        )
    return text + (f"; {shift.only_one:,} {what} in one run only" if shift.only_one else "")


def _signed(seconds: float | None) -> str:
    from headway.report.quantities import duration

    if seconds is None:
        return duration(None)
    return f"{duration(abs(seconds))} {'later' if seconds >= 0 else 'earlier'}"


def _moved(one: Moved) -> str:
    from headway.cli.common import when

    start, other = ("never" if time is None else when(time) for time in (one.first, one.second))
    apart = "" if one.first is None or one.second is None else f", {_signed(one.second - one.first)}"
    return f"job {one.job_id} ({_processors(one.processors)}): {start} and {other}{apart}"


def _figure(name: str, value: float | None) -> str:
    from headway.report.quantities import duration, number

    if name.endswith("wait") or name == "makespan":
        return duration(value)
    return f"{value:.1%}" if name == "utilisation" and value is not None else number(value)


def _first(found: FirstDifference, one: str, other: str) -> Iterator[str]:
    """Where the runs part, and what both knew then."""
    from headway.cli.common import when
    from headway.report.quantities import duration

    yield f"The first difference is at {when(found.time)}:"
    starts = {moved.job_id: moved for moved in found.starts}
    for where, taken, then in ((one, found.first, "second"), (other, found.second, "first")):
        if not taken:
            yield f"  {where} decides nothing that the other does not"
        for decision in taken:
            yield f"  {where}: {_decision(decision)}{_elsewhere(decision, starts, then)}"
    of, free = "", ""
    if found.processors is not None:
        of, free = f" of {found.processors:,}", f" ({found.processors - found.held:,} free)"
    yield f"Then running jobs held {found.held:,}{of} processors{free}, and {_jobs(found.waiting)} waited" + (
        ", by submission:" if found.heads else "."
    )
    for head in found.heads:
        yield (
            f"  job {head.job_id}: {_processors(head.processors)}, limit {duration(head.limit)}, waiting for "
            f"{duration(found.time - head.submitted)}"
        )
    if found.waiting > len(found.heads):
        yield f"  and {found.waiting - len(found.heads):,} more"


def _decision(taken: Taken) -> str:
    about = f" of job {taken.job_id}" if taken.job_id else ""
    nodes = f" on {taken.nodes}" if taken.nodes else ""
    failed = "" if taken.accepted else f"; not carried out: {taken.message}"
    reason = f" ({taken.reason})" if taken.reason else ""
    return f"{taken.decision}{about}{nodes}{reason}{failed}"


def _elsewhere(taken: Taken, starts: dict[str, Moved], then: str) -> str:
    """When the job of a start starts in the other run."""
    from headway.cli.common import when

    moved = starts.get(taken.job_id)
    if moved is None or taken.decision != "Start":
        return ""
    time = moved.second if then == "second" else moved.first
    return "; the other never starts it" if time is None else f"; the other starts it at {when(time)}"
