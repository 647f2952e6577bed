"""What a dry run says: the summary, its files, how far to trust it, a forecast."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from headway.cli.collecting import note
from headway.cli.common import console, say, wall_clock
from headway.cli.rules import show_doubts

if TYPE_CHECKING:
    from headway.dry_run.asked import Outputs
    from headway.dry_run.written import Finished
    from headway.results import JobResult, RunResult

#: Jobs of a forecast that are listed.
_FORECAST = 50


def report(finished: Finished, outputs: Outputs, *, live_since: float | None = None) -> None:
    """Print the summary; write the files if a directory was given.

    ``live_since``: when the cluster was copied (epoch second); then there is a forecast, too."""
    from headway.report import render_summary

    out = outputs.out
    figures, trusted, result = finished.figures, finished.trusted, finished.figures.result
    written: list[Path] = []
    try:
        # Before anything is printed: a reader that goes away early (| head) must not cost the files.
        if out is not None:
            written = finished.write(out, export=outputs.export)
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
