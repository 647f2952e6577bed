"""A run's results, as a program has them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from headway.errors import UserError
from headway.notebook.frames import pandas_frame, polars_frame

if TYPE_CHECKING:
    from headway.dry_run.written import Finished
    from headway.results import RunResult

#: Statistics of each metric that a notebook shows.
_SHOWN = ("mean", "median", "p95", "max")


class Run:
    """What :func:`headway.run` and :func:`headway.load` give: the jobs, decisions and metrics of one run.

    Its arrays have the columns of the files that ``headway dry-run --out`` writes (``docs/outputs/run.md``):
    times are seconds, absolute ones on the run's clock (``metrics["run"]["epoch"]`` is the second of the
    epoch at which that begins); NaN stands for "never" and "does not apply", an empty text for an unknown
    name.
    """

    def __init__(
        self,
        metrics: dict[str, Any],
        jobs: Callable[[], NDArray[Any]],
        decisions: Callable[[], NDArray[Any]],
        finished: Finished | None = None,
    ) -> None:
        """``metrics``: as ``metrics.json`` has them; ``jobs`` and ``decisions`` are asked once at most."""
        self.metrics = metrics
        self._get_jobs = jobs
        self._get_decisions = decisions
        self._finished = finished

    @property
    def label(self) -> str:
        """The policy's name."""
        return str(self.metrics["run"]["label"])

    @cached_property
    def jobs(self) -> NDArray[Any]:
        """A structured array of shape ``(jobs,)``, in order of submission.

        Fields, among others: ``job_id``, ``user``, ``account``, ``state`` (texts); ``submit_time``,
        ``start_time``, ``end_time``, ``wait``, ``turnaround``, ``runtime``, ``estimate`` (seconds);
        ``slowdown``, ``bounded_slowdown``; ``processors`` (asked for), ``allocated`` (held); with an energy
        profile ``energy`` (joules). ``jobs.dtype.names`` lists all, ``docs/outputs/run.md`` says what each
        is.
        """
        return self._get_jobs()

    @cached_property
    def decisions(self) -> NDArray[Any]:
        """A structured array of shape ``(decisions,)``, in the order taken: ``time`` (seconds), ``decision``
        (``Start``, ...), ``job_id``, ``nodes``, ``reason``, ``accepted`` (bool), ``message``, ``details``."""
        return self._get_decisions()

    @property
    def rules(self) -> Sequence[dict[str, Any]]:
        """What the rules of the evaluation of schedulers say of this run, worst first (``docs/trust.md``): of
        each ``rule``, ``title``, ``outcome``, ``reason`` and ``findings``; empty if nothing was judged."""
        found: Sequence[dict[str, Any]] = self.metrics.get("method", {}).get("rules", ())
        return found

    def frame(self) -> Any:
        """The jobs as a ``pandas.DataFrame``, a line a job; :class:`headway.errors.UserError` without
        pandas."""
        return pandas_frame(self.jobs)

    def polars(self) -> Any:
        """The jobs as a ``polars.DataFrame``, a line a job; :class:`headway.errors.UserError` without
        polars."""
        return polars_frame(self.jobs)

    @property
    def result(self) -> RunResult:
        """The whole record of the run: nodes, power, activities. Raises :class:`headway.errors.UserError` for
        a run that was loaded from files."""
        return self._in_memory("the whole record").figures.result

    def save(self, folder: str | Path) -> list[Path]:
        """Write the files of ``headway dry-run --out`` into the folder, which is made if it is missing, and
        give their paths; :func:`headway.load` reads them.

        Raises :class:`headway.errors.UserError` for a run that was loaded from files, and without the extra
        ``report``; :class:`headway.errors.Failure` if a file cannot be written.
        """
        return self._in_memory("what its files are made of").write(Path(folder), keep_trace=True)

    def to_evalys(self, path: str | Path) -> None:
        """Write the jobs as a CSV file that ``evalys.jobset.JobSet.from_csv`` reads
        (:mod:`headway.report.evalys`).

        Raises :class:`headway.errors.UserError` for a run that was loaded from files,
        :class:`headway.errors.Failure` if the file cannot be written.
        """
        from headway.report.evalys import write_evalys_csv

        write_evalys_csv(Path(path), self._in_memory("the rows of its jobs").figures)

    def _in_memory(self, what: str) -> Finished:
        if self._finished is None:
            raise UserError(
                f"a run that was loaded from files does not have {what}; expected a run of headway.run"
            )
        return self._finished

    def _figures(self) -> list[tuple[str, list[str]]]:
        from headway.report.quantities import job_figures

        return [
            (title, [write(values[name]) for name in _SHOWN])
            for title, values, write in job_figures(self.metrics)
        ]

    def _doubts(self) -> str:
        """How many rules are kept and broken, in a sentence; empty if nothing was judged."""
        from headway.experiment.rulebook.book import BREACHES

        outcomes = [one["outcome"] for one in self.rules]
        broken = [one["rule"] for one in self.rules if one["outcome"] in BREACHES]
        if not outcomes:
            return ""
        which = f" ({', '.join(broken)})" if broken else ""
        return f"rules: {outcomes.count('kept')} kept, {len(broken)} broken or not answered{which}"

    def __repr__(self) -> str:
        wait = self.metrics["jobs"]["wait"]["mean"]
        counts = self.metrics["counts"]
        waited = "none waited" if wait is None else f"mean wait {wait:.0f} s"
        return f"<Run {self.label}: {counts['jobs']} jobs, {counts['finished']} finished, {waited}>"

    def _repr_html_(self) -> str:
        """The table that a notebook shows."""
        counts = self.metrics["counts"]
        head = "".join(f"<th>{name}</th>" for name in ("per job", *_SHOWN))
        rows = "".join(
            f"<tr><td>{escape(title)}</td>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"
            for title, cells in self._figures()
        )
        said = f"{self.label}: {counts['jobs']:,} jobs, {counts['finished']:,} finished"
        return (
            f"<p><b>{escape(said)}</b></p><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
            f"<p>{escape(self._doubts())}</p>"
        )
