"""What becomes of a finished dry run: its figures, how far it may be trusted, its files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headway.dry_run.asked import EXPORTS

if TYPE_CHECKING:
    from headway.dry_run.site import Site
    from headway.experiment.single import One, Trusted
    from headway.metrics import Figures
    from headway.plugins import Catalogue, PluginConfig
    from headway.report import Section
    from headway.results import RunResult
    from headway.workload import Trace


@dataclass(frozen=True)
class Finished:
    """A run that is over."""

    figures: Figures
    #: What the rule book says of it; None: it is not shown such runs.
    trusted: Trusted | None
    #: The trace that was replayed, if there was one: at most one.
    replayed: list[Trace] = field(default_factory=list)
    #: The sections that plugins add to the report.
    sections: Callable[[Sequence[RunResult]], list[Section]] = lambda _: []

    @classmethod
    def of(cls, result: RunResult, site: Site, replayed: list[Trace], one: One | None = None) -> Finished:
        """``one``: what the rule book knows of the run."""
        from headway.metrics import Figures

        metrics, columns, sections = _contributions(site.plugins, site.catalogue, site.warn)
        figures = Figures(result, metrics, columns)
        trusted = one.after(result, site.catalogue, known=figures) if one is not None else None
        return cls(figures, trusted, replayed, sections)

    def write(self, out: Path, *, keep_trace: bool = False, export: Sequence[str] = ()) -> list[Path]:
        """Write all files of the run into the folder ``out``, which is made if it is missing; their paths.
        ``export``: the programs for which a file of their own is written, of
        :data:`headway.dry_run.asked.EXPORTS`.

        The schedule comes first: the records of the trace are many, and nothing else needs them; they are
        gone afterwards, unless they are to be kept. Raises :class:`headway.errors.Failure` if a
        file cannot be written, :class:`headway.errors.UserError` if what draws the report is not installed.
        """
        from headway.emulation.collector import quiet_collector
        from headway.inputs.extras import need_report
        from headway.report import FORMATS, write_outputs

        need_report("a run's report")
        result, trusted = self.figures.result, self.trusted
        with quiet_collector():
            replayed = self.replayed[-1:]
            if not keep_trace:
                self.replayed.clear()
            schedule = write_outputs(
                result, out, trace=replayed.pop() if replayed else None, formats=("swf",)
            )
            written = write_outputs(
                result,
                out,
                formats=[name for name in FORMATS if name != "swf"],
                sections=[*self.sections([result]), *([_doubts(trusted)] if trusted is not None else [])],
                figures=self.figures,
                further={"method": trusted.data()} if trusted is not None else {},
            )
        written[-1:-1] = schedule
        if "evalys" in export:
            from headway.report.evalys import write_evalys_csv

            written.insert(-1, out / EXPORTS["evalys"])
            write_evalys_csv(written[-2], self.figures)
        return written


def _contributions(
    configs: Sequence[PluginConfig], catalogue: Catalogue, warn: Callable[[str], None]
) -> tuple[dict[str, Any], dict[str, Any], Callable[[Sequence[RunResult]], list[Section]]]:
    """Metrics and columns of ``jobs.csv`` of the enabled plugins by name, and a function that gives their
    report sections; ``warn`` is told of a section that a plugin failed to make."""
    from headway.plugins import Plugins

    plugins = Plugins.load(configs, catalogue, None)
    metrics: dict[str, Any] = {}
    for _, function in plugins.implementations("register_metrics"):
        metrics.update(function() or {})
    columns: dict[str, Any] = {}
    for _, function in plugins.implementations("register_job_columns"):
        columns.update(function() or {})
    makers = plugins.implementations("register_report_sections")

    def sections(results: Sequence[RunResult]) -> list[Section]:
        found: list[Section] = []
        for name, make in makers:
            try:
                found.extend(make(results) or ())
            except Exception as error:  # a plugin's code must not cost the rest of the report
                warn(f"plugin {name}: no report section: {type(error).__name__}: {error}")
        return found

    return metrics, columns, sections


def _doubts(trusted: Trusted) -> Section:
    """What the rule book says of the run, for the page."""
    from markupsafe import escape

    from headway.experiment.answers import rules_table
    from headway.report import Section

    table = rules_table(trusted.judged)
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in table.rows
    )
    return Section("How far to trust this", f"<p>{escape(table.note)}</p><table>{rows}</table>")
