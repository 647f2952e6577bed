"""A run's summary on the terminal."""

from __future__ import annotations

from collections import Counter
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from headway.metrics import Summary
from headway.report.quantities import (
    CLASS_METRICS,
    CLASS_NAMES,
    SYSTEM_METRICS,
    class_figures,
    energy_figures,
    job_figures,
    number,
)

#: As many as 80 columns hold; ``metrics.json`` has more.
_SHOWN = ("mean", "median", "p95", "max")
#: Reasons for which jobs still wait that are told.
_REASONS = 4


def render_summary(summary: Summary) -> RenderableType:
    """What :command:`headway dry-run` prints: counts, per-job metrics, by class too, system metrics."""
    gap = Text()
    parts: list[RenderableType] = [_headline(summary), gap, _jobs(summary), gap, _classes(summary)]
    parts += [gap, _system(summary)]
    counts = summary["counts"]
    if counts["refused"]:
        lines = [f"  {number(n)} × {reason}" for reason, n in _reasons(counts["refused_by_reason"]).items()]
        title = f"{_counted(counts['refused'], 'job')} refused:"
        parts += [gap, Text("\n".join([title, *lines]), style="yellow")]
    if counts["left_waiting"]:
        parts += [gap, Text("\n".join(_left_waiting(counts["left_waiting"])), style="yellow")]
    if counts["plugin_failures"]:
        told = [f"The {failure['told']}." for failure in counts["plugin_failures"]]
        parts += [gap, Text("\n".join(told), style="red")]
    if counts["decisions_failed"]:
        failed = _counted(counts["decisions_failed"], "decision")
        were = "was" if counts["decisions_failed"] == 1 else "were"
        parts += [gap, Text(f"{failed} {were} not carried out (see decisions.csv)", style="yellow")]
    return Group(*parts)


def _left_waiting(groups: list[dict[str, Any]]) -> list[str]:
    """How many jobs still wait, and why: a line for each reason that most of them have."""
    number_of = sum(group["jobs"] for group in groups)
    lines = [f"{_counted(number_of, 'job')} still wait{'s' if number_of == 1 else ''}:"]
    for group in groups[:_REASONS]:
        such = f" (job {group['first']})" if group["jobs"] == 1 else f" (such as job {group['first']})"
        lines.append(f"  {number(group['jobs'])} × {group['why']}{such}")
    if others := sum(group["jobs"] for group in groups[_REASONS:]):
        lines.append(f"  {number(others)} × for other reasons")
    return lines


def _reasons(by_reason: dict[str, int]) -> dict[str, int]:
    """Counts by reason without its particulars in brackets (each size that is too large, say)."""
    found: Counter[str] = Counter()
    for reason, n in by_reason.items():
        found[reason.partition(" (")[0]] += n
    return dict(found.most_common())


def _counted(n: int, what: str) -> str:
    return f"{number(n)} {what}{'' if n == 1 else 's'}"


def _headline(summary: Summary) -> Text:
    counts, run = summary["counts"], summary["run"]
    text = Text.assemble((str(run["label"]), "bold"), f": {_counted(counts['jobs'], 'job')}")
    states = ", ".join(f"{number(n)} {state}" for state, n in counts["by_state"].items())
    if states:
        text.append(f" ({states})")
    if run["wall_seconds"] > 0:
        text.append(f"; {_counted(run['cycles'], 'cycle')} in {run['wall_seconds']:.2f} s")
    return text


def _table() -> Table:
    # Two blanks between columns: the box brings one.
    return Table(
        box=box.SIMPLE_HEAD, header_style="bold", show_edge=False, padding=(0, 1, 0, 0), pad_edge=False
    )


def _jobs(summary: Summary) -> Table:
    table = _table()
    table.add_column("per job", no_wrap=True)
    for name in _SHOWN:
        table.add_column(name, justify="right", no_wrap=True)
    for title, values, write in job_figures(summary):
        table.add_row(title, *(write(values[name]) for name in _SHOWN))
    return table


def _classes(summary: Summary) -> Table:
    table = _table()
    table.add_column("means by class", no_wrap=True)
    for title, *_ in CLASS_METRICS:
        table.add_column(title, justify="right", no_wrap=True)
    for name, found in summary["classes"].items():
        table.add_row(CLASS_NAMES[name], *class_figures(found))
    return table


def _system(summary: Summary) -> Table:
    table = _table()
    table.add_column("system")
    table.add_column("", justify="right")
    for key, (title, write) in SYSTEM_METRICS.items():
        table.add_row(title, write(summary["system"][key]))
    for title, shown in energy_figures(summary["energy"]):
        table.add_row(title, shown)
    for key, value in summary["extra"].items():
        for title, shown in flatten(key, value):
            table.add_row(Text(title), Text(shown))
    return table


#: A table within a contributed metric that has more figures than this is not shown in lines.
_MOST = 12


def flatten(title: str, value: Any, inside: bool = False) -> list[tuple[str, str]]:
    """A contributed metric as lines: nested keys joined by `` / ``. Of a large table inside, and of a list of
    tables, it is said how many entries it has; all of them are in ``metrics.json``."""
    if isinstance(value, dict):
        lines = [line for key, inner in value.items() for line in flatten(f"{title} / {key}", inner, True)]
        if inside and len(lines) > _MOST:
            return [(title, f"{len(value)} entries, in metrics.json")]
        return lines
    if isinstance(value, list) and any(isinstance(one, dict) for one in value):
        return [(title, f"{len(value)} entries, in metrics.json")]
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return [(title, number(value))]
    return [(title, str(value))]
