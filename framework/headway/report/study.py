"""The study of a workload for people and programs: terminal tables, CSV and JSON files, an HTML page.

What is in it is computed by :mod:`headway.workload.analysis`; ``docs/outputs/study.md`` defines each column.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from headway.errors import Failure
from headway.report import quantities
from headway.report.atomic import writing
from headway.report.quantities import duration, number, share
from headway.version import __version__
from headway.workload.estimate_study import HEAD

if TYPE_CHECKING:
    from headway.workload.analysis import Row, Study

#: The figures of the summary that tables show: key, name, how it is written.
SUMMARY: tuple[tuple[str, str, Callable[[float | None], str]], ...] = (
    ("jobs", "jobs", number),
    ("measured", "of known runtime and size", number),
    ("zero_runtime", "without any runtime", number),
    ("span", "first to last submission", duration),
    ("jobs_per_day", "jobs a day", number),
    ("mean_gap", "mean time between submissions", duration),
    ("gap_cv", "their coefficient of variation", number),
    ("idc_hour", "index of dispersion of submissions, hours", number),
    ("idc_day", "index of dispersion of submissions, days", number),
    ("processors", "processors", number),
    ("offered_load", "offered load", share),
    ("busiest_day_load", "busiest day", share),
    ("days_above_capacity", "days above 100 %", number),
    ("serial", "jobs of one processor", share),
    ("powers_of_two", "sizes that are powers of two", share),
    ("parallel_powers_of_two", "of sizes above 1", share),
    ("parallel_even", "even sizes among sizes above 1", share),
    ("mean_processors", "mean size, processors", number),
    ("median_processors", "median size, processors", number),
    ("mean_runtime", "mean runtime", duration),
    ("median_runtime", "median runtime", duration),
    ("estimated", "jobs with an estimate", number),
    ("mean_accuracy", "mean runtime / estimate", number),
    ("median_accuracy", "median runtime / estimate", number),
    ("exact_estimates", "estimates that are exact", share),
    ("estimate_concentration", "estimates of one multiple of the runtime", share),
    ("at_limit", "runs as long as the estimate or longer", share),
    ("killed_at_limit", "of all jobs, killed at the limit", share),
    ("estimate_modes", "different estimates", number),
    ("largest_estimate", "largest estimate", duration),
    ("largest_estimate_share", "jobs that ask for it", share),
    ("estimate_head_share", "jobs of the 20 most popular estimates", share),
    ("estimate_joint_modes", "joint ratio: this share of the estimates ...", share),
    ("estimate_joint_jobs", "... has this share of the jobs", share),
    ("estimates_per_user", "different estimates of a user, median", number),
    ("owned_modes", "estimates of one user alone", number),
    ("owners", "users with such estimates", number),
    ("estimate_shape", "shape a of the estimates' times", number),
)

#: Of the table of classes: column, title, how it is written.
CLASSES: tuple[tuple[str, str, Callable[[float | None], str]], ...] = (
    ("jobs", "jobs", number),
    ("share", "of jobs", share),
    ("work_share", "of work", share),
    ("mean_processors", "mean size", number),
    ("mean_runtime", "mean runtime", duration),
    ("runtime_median", "median", duration),
)

#: Of the table of estimates: column, title, how it is written.
ESTIMATES: tuple[tuple[str, str, Callable[[float | None], str]], ...] = (
    ("popularity", "rank", number),
    ("jobs", "jobs", number),
    ("share", "of jobs", share),
    ("users", "users", number),
    ("weeks", "weeks", number),
)

#: Of the tables of groups and queues: column, title, how it is written.
GROUPS: tuple[tuple[str, str, Callable[[float | None], str]], ...] = (
    ("jobs", "jobs", number),
    ("share", "of jobs", share),
    ("mean_runtime", "runtime", duration),
    ("mean_wait", "wait", duration),
    ("gap_cv", "CV of gaps", number),
    ("flow_ratio", "flow", share),
)
#: Number of groups, or queues, that tables show: the groups with the most jobs.
MOST_GROUPS = 20

#: Characters of the longest bar on a terminal.
_BAR = 30


def class_title(name: str) -> str:
    """What tables call a row of the classes."""
    return quantities.CLASS_NAMES.get(name, name)


def length_title(row: Row) -> str:
    """A length bin: "≤ 1 min", "10–20 min", "> 8 h"."""
    if row["length_to"] is None:
        return f"> {_length(row['length_above'])}"
    if row["length_above"] is None:
        return f"≤ {_length(row['length_to'])}"
    low, high = _length(row["length_above"]), _length(row["length_to"])
    if low.split()[1] == high.split()[1]:
        low = low.split()[0]
    return f"{low}–{high}"


def _length(seconds: float) -> str:
    for unit, name in ((3600.0, "h"), (60.0, "min")):
        if seconds % unit == 0:
            return f"{seconds / unit:g} {name}"
    return f"{seconds:g} s"


def width_title(row: Row) -> str:
    """A width bin: "1", "2–32", "> 32"."""
    low, high = row["width_from"], row["width_to"]
    if high is None:
        return f"> {low - 1}"
    return str(high) if low == high else f"{low}–{high}"


def size_title(row: Row) -> str:
    """A bin of sizes: "1", "3–4"."""
    return str(row["to"]) if row["from"] == row["to"] else f"{row['from']}–{row['to']}"


def accuracy_title(row: Row) -> str:
    """A bin of runtime / estimate: "≤ 0.1", "0.1–0.2", "1", "> 1"."""
    low, high = row["above"], row["to"]
    if low is None:
        return f"≤ {high:g}"
    if high is None:
        return f"> {low:g}"
    return f"{high:g}" if low == high else f"{low:g}–{high:g}"


def cell_matrix(study: Study) -> tuple[list[str], list[tuple[str, list[float]]]]:
    """The cells as people read them: titles of the widths, and each length with its per cent of the jobs.

    The last column and the last row are the sums.
    """
    rows = []
    widths: list[str] = []
    for _, cells in groupby(study.tables["cells"], key=lambda row: (row["length_above"], row["length_to"])):
        line = list(cells)
        widths = [width_title(row) for row in line]
        shares = [100 * (row["share"] or 0.0) for row in line]
        rows.append((length_title(line[0]), [*shares, sum(shares)]))
    rows.append(("all", [sum(column) for column in zip(*(shares for _, shares in rows), strict=True)]))
    return [*widths, "all"], rows


def bounds_sentence(study: Study) -> str:
    """What narrow and short mean."""
    b = study.bounds
    return (
        f"narrow: at most {b.narrow} processor{'' if b.narrow == 1 else 's'}, "
        f"short: at most {quantities.duration(b.short)}"
    )


# --- terminal -------------------------------------------------------------------------------------


def render_study(study: Study) -> RenderableType:
    """What :command:`headway analyze` prints; 80 columns wide at most."""
    gap = Text()
    parts: list[RenderableType] = [
        Text.assemble((Path(study.path).name, "bold"), f": {number(study.summary['jobs'])} jobs"), gap,
        _summary(study), gap, _classes(study), gap, _cells(study), gap,
        _hours(study),
    ]  # fmt: skip
    if study.tables["weekdays"]:
        weekdays = study.tables["weekdays"]
        parts += [gap, _bars("day of the week", weekdays, lambda row: str(row["weekday"]), "mean", "a day")]
    parts += [gap, _bars("processors", study.tables["sizes"], size_title, "work_share", "of work")]
    if study.summary["estimated"]:
        parts += [gap, _bars("runtime / estimate", study.tables["accuracy"], accuracy_title)]
    if study.tables["estimate_modes"]:
        parts += [gap, _estimates(study)]
    for key, title in (("groups", "group"), ("queues", "queue")):
        if study.tables[key]:
            parts += [gap, _groups(study, key, title)]
    if study.notes:
        parts += [gap, Text("\n".join(study.notes), style="yellow")]
    return Group(*parts)


def _table() -> Table:
    return Table(
        box=box.SIMPLE_HEAD, header_style="bold", show_edge=False, padding=(0, 1, 0, 0), pad_edge=False
    )


def _summary(study: Study) -> Table:
    table = _table()
    table.add_column("workload")
    table.add_column("", justify="right")
    for key, title, write in SUMMARY:
        table.add_row(title, write(study.summary[key]))
    return table


def _classes(study: Study) -> Table:
    table = _table()
    table.add_column("class", no_wrap=True)
    for _, title, _ in CLASSES:
        table.add_column(title, justify="right", no_wrap=True)
    for row in study.tables["classes"]:
        table.add_row(class_title(row["class"]), *(write(row[key]) for key, _, write in CLASSES))
    table.caption = bounds_sentence(study)
    table.caption_justify = "left"
    return table


def _cells(study: Study) -> Table:
    widths, rows = cell_matrix(study)
    table = _table()
    table.add_column("% of jobs", no_wrap=True)
    for title in widths:
        table.add_column(title, justify="right")
    for name, shares in rows:
        table.add_row(name, *(f"{value:.2f}" for value in shares))
    table.caption = "length by processors"
    table.caption_justify = "left"
    return table


def popular_estimates(study: Study) -> list[tuple[str, list[str]]]:
    """The most popular estimates, each with its figures, as tables show them."""
    return [
        (duration(row["estimate"]), [write(row[key]) for key, _, write in ESTIMATES])
        for row in study.tables["estimate_modes"][:HEAD]
    ]


def _estimates(study: Study) -> Table:
    table = _table()
    table.add_column("estimate", no_wrap=True)
    for _, title, _ in ESTIMATES:
        table.add_column(title, justify="right", no_wrap=True)
    for name, figures in popular_estimates(study):
        table.add_row(name, *figures)
    return table


def largest_groups(study: Study, key: str, title: str) -> list[tuple[str, list[str]]]:
    """The groups (or queues) with the most jobs, each with its figures, as tables show them."""
    return [
        (str(row[title]), [write(row[name]) for name, _, write in GROUPS])
        for row in study.tables[key][:MOST_GROUPS]
    ]


def _groups(study: Study, key: str, title: str) -> Table:
    table = _table()
    table.add_column(title, no_wrap=True)
    for _, name, _ in GROUPS:
        table.add_column(name, justify="right", no_wrap=True)
    for name, figures in largest_groups(study, key, title):
        table.add_row(name, *figures)
    if key == "groups":
        table.caption = "means; gaps: between submissions; flow: runtimes / (runtimes + waits)"
        table.caption_justify = "left"
    return table


def _hours(study: Study) -> Table:
    table = _bars("hour of day", study.tables["hours"], lambda row: f"{row['hour']:2}:00", "mean", "a day")
    table.caption = f"time zone: {study.zone}" if study.zone else "hours since the trace's time 0"
    table.caption_justify = "left"
    return table


def _bars(
    title: str,
    rows: Sequence[Row],
    name: Callable[[Row], str],
    further: str = "",
    further_title: str = "",
) -> Table:
    """A histogram of ``jobs`` and ``share``, and one column more."""
    table = _table()
    table.add_column(title, no_wrap=True)
    table.add_column("jobs", justify="right", no_wrap=True)
    table.add_column("of jobs", justify="right", no_wrap=True)
    if further:
        table.add_column(further_title, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    longest = max((row["share"] or 0.0 for row in rows), default=0.0)
    for row in rows:
        length = round(_BAR * (row["share"] or 0.0) / longest) if longest else 0
        more = [share(row[further]) if further.endswith("share") else number(row[further])] if further else []
        table.add_row(name(row), number(row["jobs"]), share(row["share"]), *more, "█" * length)
    return table


# --- files ----------------------------------------------------------------------------------------


def write_study(study: Study, directory: Path, further: Mapping[str, Any] | None = None) -> list[Path]:
    """Writes a CSV file a table, ``summary.csv``, ``analysis.json``, ``analysis.html``; returns the paths.

    ``directory`` is made if missing; ``further``: keys of ``analysis.json`` behind the others. Raises
    :class:`Failure` if something cannot be written.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Failure(f"{directory}: cannot be made: {error.strerror or error}") from error
    written = []
    tables: dict[str, tuple[Sequence[str], Sequence[Row]]] = {
        "summary": (("quantity", "value"), [{"quantity": k, "value": v} for k, v in study.summary.items()])
    }
    tables |= {name: (study.columns[name], rows) for name, rows in study.tables.items()}
    for name, (columns, rows) in tables.items():
        path = directory / f"{name}.csv"
        with writing(path) as stream:
            out = csv.writer(stream, lineterminator="\n")
            out.writerow(columns)
            out.writerows([_cell(row[column]) for column in columns] for row in rows)
        written.append(path)
    path = directory / "analysis.json"
    with writing(path) as stream:
        json.dump(
            {**as_json(study), **(further or {})}, stream, indent=2, ensure_ascii=False, allow_nan=False
        )
        stream.write("\n")
    written.append(path)
    path = directory / "analysis.html"
    with writing(path) as stream:
        stream.write(render_study_html(study))
    written.append(path)
    return written


def as_json(study: Study) -> dict[str, Any]:
    """The whole study as plain values; what does not exist is None."""
    return {
        "workload": {
            "path": study.path,
            "zone": study.zone or None,
            "class_bounds": {"narrow": study.bounds.narrow, "short": study.bounds.short},
            "length_bounds": list(study.length_bounds),
            "width_bounds": list(study.width_bounds),
            "notes": study.notes,
            "headway_version": __version__,
        },
        "summary": study.summary,
        **study.tables,
    }


def _cell(value: Any) -> str:
    """A whole number without a decimal point, another as short as can be read back; empty for None."""
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return repr(value) if isinstance(value, float) else str(value)


def render_study_html(study: Study) -> str:
    """The study as one HTML page that needs nothing else, in the looks of a run's report."""
    from markupsafe import Markup

    # Here and not above: on a screen a study needs no templates.
    from headway.report.html import page_environment, stylesheet

    environment = page_environment()
    widths, cells = cell_matrix(study)
    summary = study.summary
    return environment.get_template("study.html").render(
        title=f"{Path(study.path).name}: workload",
        css=stylesheet(environment),
        version=__version__,
        tiles=[
            ("jobs", number(summary["jobs"])),
            ("submitted over", duration(summary["span"])),
            ("processors", number(summary["processors"])),
            ("offered load", share(summary["offered_load"])),
            ("median runtime", duration(summary["median_runtime"])),
            ("jobs of one processor", share(summary["serial"])),
        ],
        notes=study.notes,
        bounds=bounds_sentence(study),
        zone=study.zone,
        class_titles=[title for _, title, _ in CLASSES],
        classes=[
            (class_title(row["class"]), [write(row[key]) for key, _, write in CLASSES])
            for row in study.tables["classes"]
        ],
        widths=widths,
        cells=[(name, [f"{value:.2f}" for value in shares]) for name, shares in cells],
        deepest=max((max(shares[:-1]) for _, shares in cells[:-1]), default=0.0) or 1.0,
        summary=[(title, write(summary[key])) for key, title, write in SUMMARY],
        dated=bool(study.tables["weekdays"]),
        estimated=bool(summary["estimated"]),
        estimate_titles=[title for _, title, _ in ESTIMATES],
        estimates=popular_estimates(study),
        group_titles=[title for _, title, _ in GROUPS],
        groups=[
            (heading, title, largest_groups(study, key, title))
            for key, heading, title in (("groups", "Groups", "group"), ("queues", "Queues", "queue"))
            if study.tables[key]
        ],
        plots={name: Markup(plot) for name, plot in _plots(study).items()},
    )


def _plots(study: Study) -> dict[str, str]:
    """The page's plots as SVG, by the template's names."""
    # Here and not above: matplotlib takes longer to load than the study takes.
    from headway.report import study_plots

    tables = study.tables
    plots = {
        "days": study_plots.day_loads(study, prefix="d"),
        "hours": study_plots.bars(
            [str(row["hour"]) for row in tables["hours"]],
            [row["mean"] for row in tables["hours"]],
            "hour", "jobs in this hour of a day", "Arrivals by hour", prefix="h",
        ),
        "weekdays": study_plots.bars(
            [row["weekday"][:3] for row in tables["weekdays"]],
            [row["mean"] or 0.0 for row in tables["weekdays"]],
            "", "jobs on such a day", "Arrivals by weekday", prefix="w",
        ),
        "sizes": study_plots.shares(
            [size_title(row) for row in tables["sizes"]], tables["sizes"], "processors",
            "Sizes", prefix="s",
        ),
        "lengths": study_plots.runtimes(study, prefix="l"),
        "accuracy": study_plots.bars(
            [accuracy_title(row) for row in tables["accuracy"]],
            [100 * (row["share"] or 0.0) for row in tables["accuracy"]],
            "runtime / estimate", "% of jobs", "Accuracy of estimates", prefix="a",
        ),
    }  # fmt: skip
    for key, title in (("groups", "group"), ("queues", "queue")):
        largest = tables[key][:MOST_GROUPS]
        plots[key] = study_plots.flows(largest, title, prefix=key[0] + "f") if largest else ""
    if tables["estimate_modes"]:
        plots["estimates"] = study_plots.estimates(study, prefix="e")
        plots["popularity"] = study_plots.popularity(study, prefix="p")
        plots["growth"] = study_plots.growth(study, prefix="g")
        if tables["estimate_accuracy"]:
            plots["by_runtime"] = study_plots.accuracy_by_runtime(study, prefix="r")
    return plots
