"""What a dry run says and writes: the summary, the files, how far to trust it, a forecast."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from headway.cli.collecting import note
from headway.cli.common import console, contributions, say, wall_clock
from headway.cli.rules import show_doubts

if TYPE_CHECKING:
    from headway.cli.dry_run.site import Site
    from headway.experiment.single import One, Trusted
    from headway.report import Section
    from headway.results import JobResult, RunResult
    from headway.workload import Trace

#: Jobs of a forecast that are listed.
_FORECAST = 50


def report(
    result: RunResult,
    site: Site,
    out: Path | None,
    replayed: list[Trace],
    *,
    live_since: float | None = None,
    one: One | None = None,
) -> Trusted | None:
    """Print the summary; write the files if a directory was given.

    ``replayed`` holds the trace that was replayed, if there was one. It is taken out for its schedule, which
    comes first: its records are many, and nothing else needs them. ``live_since``: when the cluster was
    copied (epoch second); then there is a forecast, too. ``one``: what the rule book knows of the run; what
    it says is printed, written and returned.
    """
    from headway.emulation.collector import quiet_collector
    from headway.metrics import Figures
    from headway.report import FORMATS, render_summary, write_outputs

    metrics, columns, sections = contributions(site.plugins, site.catalogue)
    figures = Figures(result, metrics, columns)
    trusted = one.after(result, site.catalogue, known=figures) if one is not None else None
    written: list[Path] = []
    try:
        # Before anything is printed: a reader that goes away early (| head) must not cost the files.
        if out is not None:
            with quiet_collector():
                schedule = write_outputs(
                    result, out, trace=replayed.pop() if replayed else None, formats=("swf",)
                )
                others = [name for name in FORMATS if name != "swf"]
                written = write_outputs(
                    result,
                    out,
                    formats=others,
                    sections=[*sections([result]), *([_doubts(trusted)] if trusted is not None else [])],
                    figures=figures,
                    further={"method": trusted.data()} if trusted is not None else {},
                )
                written[-1:-1] = schedule
    finally:
        note(metrics=figures.summary, method=None if trusted is None else trusted.data())
        console().print(render_summary(figures.summary))
        if trusted is not None:
            show_doubts(console(), trusted.judged, trusted.measured)
        if live_since is not None:
            _print_forecast(result, live_since)
        say(f"\nseed: {result.seed}")
    if out is not None:
        say(f"results: {', '.join(path.name for path in written)} in {out}")
    return trusted


def _doubts(trusted: Trusted) -> Section:
    """What the rule book says of the run, for the page."""
    from markupsafe import escape

    from headway.cli.rules import rules_table
    from headway.report import Section

    table = rules_table(trusted.judged)
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in table.rows
    )
    return Section("How far to trust this", f"<p>{escape(table.note)}</p><table>{rows}</table>")


def _print_forecast(result: RunResult, since: float) -> None:
    """When what waits at the time ``since`` is expected to start."""
    from rich import box
    from rich.table import Table

    waiting = [job for job in result.jobs if job.start_time is None or job.start_time >= since]
    if not waiting:
        say("\nNo job waits.")
        return
    note(forecast=[_foreseen(job) for job in waiting])
    starting = sorted(
        (start, at, job) for at, job in enumerate(waiting) if (start := job.start_time) is not None
    )
    table = Table(
        box=box.SIMPLE_HEAD, header_style="bold", show_edge=False, padding=(0, 1, 0, 0), pad_edge=False
    )
    table.add_column("job", no_wrap=True)
    table.add_column("user")
    table.add_column("procs", justify="right", no_wrap=True)
    table.add_column("expected start", no_wrap=True)
    table.add_column("nodes", overflow="ellipsis", no_wrap=True)
    for start, _, job in starting[:_FORECAST]:
        nodes = ",".join(name for name, _ in job.placement[:4])
        if len(job.placement) > 4:
            nodes += f" + {len(job.placement) - 4}"
        table.add_row(job.job.id, job.job.user, str(job.job.request.processors), wall_clock(start), nodes)
    if starting:
        say("\nForecast, if every job runs for its estimate and nothing else is submitted:\n")
        console().print(table)
    if len(starting) > _FORECAST:
        say(f"... and {len(starting) - _FORECAST} more (all of them with --out, in jobs.csv)")
    if unknown := len(waiting) - len(starting):
        these = "1 job waits" if unknown == 1 else f"{unknown} jobs wait"
        say(
            f"\n{these} for something that cannot be foreseen, such as a release from hold: the summary and "
            "`headway explain JOB` say for what."
        )


def _foreseen(job: JobResult) -> dict[str, Any]:
    """A waiting job's expected start: see :class:`headway.cli.figured.Foreseen`."""
    return {
        "job": job.job.id, "user": job.job.user, "processors": job.job.request.processors,
        "start": job.start_time, "nodes": [name for name, _ in job.placement],
    }  # fmt: skip


def in_short(result: RunResult) -> str:
    """Mean wait and mean bounded slowdown."""
    from headway.metrics import job_columns
    from headway.metrics.summary import statistics
    from headway.report.quantities import duration, number

    columns = job_columns(result)
    wait, slowdown = statistics(columns.wait)["mean"], statistics(columns.bounded_slowdown)["mean"]
    return f"mean wait {duration(wait)}, bounded slowdown {number(slowdown)}"
