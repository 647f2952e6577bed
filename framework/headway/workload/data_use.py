"""The datasets that a trace's jobs read, from a file beside it: trace formats have no place for them."""

from __future__ import annotations

import csv
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import msgspec

from headway.errors import UserError
from headway.model.sites import DATA
from headway.workload.jobs import TraceJob

_HEADER = ["job_id", "dataset"]


def read_data_use(path: Path, known: Collection[str]) -> dict[str, list[str]]:
    """Job id -> the datasets that the job reads, from lines ``job_id,dataset``.

    A header of these two names may come first. Raises :class:`UserError`, with the line, for a dataset that
    is not among ``known``, and for one that a job names twice.
    """
    found: dict[str, list[str]] = {}
    try:
        with open(path, newline="", encoding="utf-8") as stream:
            for number, row in enumerate(csv.reader(stream), start=1):
                cells = [cell.strip() for cell in row]
                if not row or (number == 1 and cells == _HEADER):
                    continue
                where = f"{path}:{number}"
                if len(cells) != len(_HEADER) or not all(cells):
                    raise UserError(f"{where}: expected job_id,dataset, found {','.join(row)!r}")
                job_id, dataset = cells
                if dataset not in known:
                    raise UserError(f"{where}: expected a configured dataset, found {dataset!r}")
                if dataset in found.setdefault(job_id, []):
                    raise UserError(f"{where}: dataset {dataset!r} of job {job_id} is named twice")
                found[job_id].append(dataset)
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: expected text in UTF-8 ({error.reason})") from error
    return found


def jobs_with_data(jobs: Sequence[TraceJob], uses: Mapping[str, Sequence[str]]) -> list[TraceJob]:
    """The jobs, with the datasets that the file says they read."""
    return [_with(trace, uses[trace.job.id]) if trace.job.id in uses else trace for trace in jobs]


def _with(trace: TraceJob, datasets: Sequence[str]) -> TraceJob:
    attributes = {**(trace.job.attributes or {}), DATA: ",".join(datasets)}
    return msgspec.structs.replace(trace, job=msgspec.structs.replace(trace.job, attributes=attributes))
