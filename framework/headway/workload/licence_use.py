"""The licences that a trace's jobs need, from a file beside it: trace formats have no place for them."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from headway.errors import UserError
from headway.workload.jobs import TraceJob

_HEADER = ["job_id", "licence", "amount"]


def read_licence_use(path: Path) -> dict[str, dict[str, int]]:
    """Job id -> licence -> how much of it the job needs, from lines ``job_id,licence,amount``.

    A header of these three names may come first. Raises :class:`UserError`, with the line, for an amount that
    is no whole number above 0, and for a licence of a job that is named twice.
    """
    found: dict[str, dict[str, int]] = {}
    try:
        with open(path, newline="", encoding="utf-8") as stream:
            for number, row in enumerate(csv.reader(stream), start=1):
                cells = [cell.strip() for cell in row]
                if not row or (number == 1 and cells == _HEADER):
                    continue
                where = f"{path}:{number}"
                if len(cells) != len(_HEADER) or not all(cells):
                    raise UserError(f"{where}: expected job_id,licence,amount, found {','.join(row)!r}")
                job_id, licence, text = cells
                amount = int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0
                if amount < 1:
                    raise UserError(f"{where}: expected a whole number above 0, found {text!r}")
                if licence in found.setdefault(job_id, {}):
                    raise UserError(f"{where}: licence {licence!r} of job {job_id} is named twice")
                found[job_id][licence] = amount
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: expected text in UTF-8 ({error.reason})") from error
    return found


def jobs_with_licences(jobs: Sequence[TraceJob], uses: Mapping[str, Mapping[str, int]]) -> list[TraceJob]:
    """The jobs, with the licences that the file says they need."""
    return [_with(trace, uses[trace.job.id]) if trace.job.id in uses else trace for trace in jobs]


def _with(trace: TraceJob, use: Mapping[str, int]) -> TraceJob:
    request = msgspec.structs.replace(trace.job.request, licences=tuple(use.items()))
    return msgspec.structs.replace(trace, job=msgspec.structs.replace(trace.job, request=request))
