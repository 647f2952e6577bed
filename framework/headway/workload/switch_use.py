"""On how many switches a trace's jobs may lie, from a file beside it: trace formats have no place for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from headway.errors import UserError
from headway.inputs.durations import seconds_of
from headway.inputs.lists import lines_of
from headway.workload.jobs import TraceJob

_NEEDED = ("job_id", "switches")
_COLUMNS = (*_NEEDED, "wait")


def read_switch_use(path: Path) -> dict[str, tuple[int, float | None]]:
    """Job id -> most leaf switches, and how many seconds the job waits for so few (None: not said).

    The file is CSV with a header: ``job_id,switches,wait``; ``wait`` is seconds or 10m, and may be left out.
    Raises :class:`UserError`, with the line, for what is no number above 0 and for a job that is named twice.
    """
    found: dict[str, tuple[int, float | None]] = {}
    for number, row in lines_of(path, _COLUMNS, _NEEDED):
        where = f"{path}, line {number}"
        text, wait = row["switches"], row.get("wait", "")
        most = int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0
        if most < 1:
            raise UserError(f"{where}: switches: expected a whole number above 0, found {text!r}")
        seconds = None
        if wait:
            seconds = seconds_of(wait)
            if seconds is None:
                raise UserError(f"{where}: wait: expected seconds, or a time such as 10m, found {wait!r}")
        if row["job_id"] in found:
            raise UserError(f"{where}: job {row['job_id']!r} is named twice")
        found[row["job_id"]] = most, seconds
    return found


def jobs_with_switches(
    jobs: Sequence[TraceJob], uses: Mapping[str, tuple[int, float | None]]
) -> list[TraceJob]:
    """The jobs, with the bounds that the file gives them."""
    return [_with(trace, *uses[trace.job.id]) if trace.job.id in uses else trace for trace in jobs]


def _with(trace: TraceJob, most: int, wait: float | None) -> TraceJob:
    request = msgspec.structs.replace(trace.job.request, switches=most, switches_wait=wait)
    return msgspec.structs.replace(trace, job=msgspec.structs.replace(trace.job, request=request))
