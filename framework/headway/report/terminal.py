"""A run's summary on the terminal."""

from __future__ import annotations

from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from headway.metrics import Summary
from headway.report.quantities import JOB_METRICS, SYSTEM_METRICS, number

_SHOWN = ("mean", "median", "p90", "p95", "max")


def render_summary(summary: Summary) -> RenderableType:
    """What :command:`headway dry-run` prints: counts, per-job metrics, system metrics."""
    parts: list[RenderableType] = [_headline(summary), _jobs(summary), _system(summary)]
    counts = summary["counts"]
    if counts["refused"]:
        lines = [f"  {number(n)} × {reason}" for reason, n in counts["refused_by_reason"].items()]
        parts.append(Text("\n".join([f"{number(counts['refused'])} jobs refused:", *lines]), style="yellow"))
    if counts["decisions_failed"]:
        failed = number(counts["decisions_failed"])
        parts.append(Text(f"{failed} decisions were not carried out (see decisions.csv)", style="yellow"))
    return Group(*parts)


def _headline(summary: Summary) -> Text:
    counts, run = summary["counts"], summary["run"]
    text = Text.assemble((str(run["label"]), "bold"), f": {number(counts['jobs'])} jobs")
    states = ", ".join(f"{number(n)} {state}" for state, n in counts["by_state"].items())
    if states:
        text.append(f" ({states})")
    if run["wall_seconds"] > 0:
        text.append(f"; {number(run['cycles'])} cycles in {run['wall_seconds']:.2f} s")
    return text


def _jobs(summary: Summary) -> Table:
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
    table.add_column("per job")
    for name in _SHOWN:
        table.add_column(name, justify="right")
    for key, (title, write) in JOB_METRICS.items():
        values = summary["jobs"][key]
        table.add_row(title, *(write(values[name]) for name in _SHOWN))
    return table


def _system(summary: Summary) -> Table:
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
    table.add_column("system")
    table.add_column("", justify="right")
    for key, (title, write) in SYSTEM_METRICS.items():
        table.add_row(title, write(summary["system"][key]))
    for key, value in summary["extra"].items():
        for title, shown in flatten(key, value):
            table.add_row(Text(title), Text(shown))
    return table


def flatten(title: str, value: Any) -> list[tuple[str, str]]:
    """A contributed metric as lines: nested keys joined by `` / ``."""
    if isinstance(value, dict):
        return [line for key, inner in value.items() for line in flatten(f"{title} / {key}", inner)]
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return [(title, number(value))]
    return [(title, str(value))]
