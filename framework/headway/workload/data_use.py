"""The datasets that a trace's jobs read, from a file beside it: trace formats have no place for them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import msgspec

from headway.errors import UserError
from headway.inputs.lists import lines_of
from headway.model.sites import DATA
from headway.workload.jobs import TraceJob

_COLUMNS = ("job_id", "datasets")


def read_data_use(path: Path, known: Collection[str] | None = None) -> dict[str, list[str]]:
    """Job id -> the datasets that the job reads.

    The file is CSV with a header: ``job_id,datasets``, names with spaces between them. Raises
    :class:`UserError`, with the line, for a name with a comma, a name that is not among ``known`` where that
    is given, and for a job that is named twice.
    """
    found: dict[str, list[str]] = {}
    for number, row in lines_of(path, _COLUMNS, _COLUMNS):
        where = f"{path}, line {number}"
        names = row["datasets"].split()
        wrong = next((name for name in names if "," in name), None)
        if wrong is not None:
            raise UserError(f"{where}: datasets: expected names with spaces between them, found {wrong!r}")
        if known is not None and (strange := next((name for name in names if name not in known), None)):
            raise UserError(f"{where}: datasets: expected configured datasets, found {strange!r}")
        if row["job_id"] in found:
            raise UserError(f"{where}: job {row['job_id']!r} is named twice")
        found[row["job_id"]] = names
    return found


def jobs_with_data(jobs: Sequence[TraceJob], uses: Mapping[str, Sequence[str]]) -> list[TraceJob]:
    """The jobs with the attribute ``data`` where the file names them."""
    return [_with(trace, uses[trace.job.id]) if trace.job.id in uses else trace for trace in jobs]


def _with(trace: TraceJob, use: Sequence[str]) -> TraceJob:
    attributes = {**(trace.job.attributes or {}), DATA: ",".join(use)}
    return msgspec.structs.replace(trace, job=msgspec.structs.replace(trace.job, attributes=attributes))
