"""The CPU use of a trace's jobs, from a file beside it: trace formats have no place for it."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from headway.errors import UserError
from headway.workload.jobs import TraceJob
from headway.workload.sharing import CPU


def read_cpu_use(path: Path) -> dict[str, float]:
    """Job id -> share of a processor that each of its processes uses, from lines ``job_id,cpu``.

    A header of these two names may come first. Raises :class:`UserError`, with the line, for anything else
    than a number above 0 and up to 1, and for a job that is named twice.
    """
    found: dict[str, float] = {}
    try:
        with open(path, newline="", encoding="utf-8") as stream:
            for number, row in enumerate(csv.reader(stream), start=1):
                if not row or (number == 1 and [cell.strip() for cell in row] == ["job_id", "cpu"]):
                    continue
                where = f"{path}:{number}"
                if len(row) != 2:
                    raise UserError(f"{where}: expected job_id,cpu, found {','.join(row)!r}")
                job_id, text = row[0].strip(), row[1].strip()
                try:
                    use = float(text)
                except ValueError:
                    use = float("nan")
                if not 0 < use <= 1:
                    raise UserError(f"{where}: expected a share above 0 and up to 1, found {text!r}")
                if job_id in found:
                    raise UserError(f"{where}: job {job_id} is named twice")
                found[job_id] = use
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: expected text in UTF-8 ({error.reason})") from error
    return found


def jobs_with_cpu_use(jobs: Sequence[TraceJob], uses: Mapping[str, float]) -> list[TraceJob]:
    """The jobs with the attribute ``cpu`` where the file names them."""
    return [_with(trace, uses[trace.job.id]) if trace.job.id in uses else trace for trace in jobs]


def _with(trace: TraceJob, use: float) -> TraceJob:
    attributes = {**(trace.job.attributes or {}), CPU: use}
    return msgspec.structs.replace(trace, job=msgspec.structs.replace(trace.job, attributes=attributes))
