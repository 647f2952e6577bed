"""``headway.load``: results from their files."""

from __future__ import annotations

from pathlib import Path

from headway.errors import UserError
from headway.experiment.folder import ROWS, read_results
from headway.notebook.comparison import Comparison
from headway.notebook.runs import Run
from headway.report.folder import is_run, read_decisions, read_jobs, read_metrics


def load(folder: str | Path) -> Run | Comparison:
    """The results in a folder: a :class:`Run` of what ``headway dry-run --out`` or :meth:`Run.save` wrote, a
    :class:`Comparison` of what ``headway compare --out`` or :meth:`Comparison.save` wrote.

    Jobs and decisions are read when they are first asked for. Raises :class:`headway.errors.UserError` if the
    folder has neither, or files that are something else; :class:`headway.errors.Failure` if one cannot be
    read.
    """
    path = Path(folder)
    if (path / ROWS).is_file():
        return Comparison(*read_results(path))
    if not is_run(path):
        raise UserError(
            f"{path}: expected the files of `headway dry-run --out` or `headway compare --out`, found neither"
        )
    return Run(read_metrics(path), lambda: read_jobs(path), lambda: read_decisions(path))
