"""The HTML report: one file that shows one run, or compares several, and needs nothing else.

No URL outside the file, no network, no fonts. Without a script (or on paper) everything is there but
the zooming into the Gantt chart. Text that came from users (names of jobs, users, labels, reasons) is
escaped, by the template's autoescaping in the page and by :func:`json_for_script` in its data.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from headway.metrics import Figures, Metric, Summary
from headway.metrics.jobs import JobColumns
from headway.metrics.summary import STATISTICS
from headway.report import gantt, quantities, words
from headway.report.atomic import writing
from headway.report.comparison import compared, compared_columns
from headway.report.terminal import flatten
from headway.results import RunResult
from headway.results.section import Section

if TYPE_CHECKING:
    from headway.model.classes import ClassBounds
    from headway.report.plots import Plotted

#: Jobs whose data the page carries for zooming and hovering, over all runs together.
EMBEDDED_JOBS = 20_000

#: Runs that get a Gantt chart; of more, the first ones do, and the page says so.
GANTT_CHARTS = 4

#: The last day that has a date, seconds since the epoch.
_LAST_DAY = datetime(9999, 12, 31, tzinfo=UTC).timestamp()


def write_html(
    path: Path,
    results: Sequence[RunResult],
    *,
    extra: Mapping[str, Metric] | None = None,
    sections: Sequence[Section] = (),
    title: str = "",
    figures: Sequence[Figures] | None = None,
) -> None:
    """Writes the report. Raises :class:`headway.errors.Failure` if that is not possible."""
    page = render_html(results, extra=extra, sections=sections, title=title, figures=figures)
    with writing(path) as stream:
        stream.write(page)


def render_html(
    results: Sequence[RunResult],
    *,
    extra: Mapping[str, Metric] | None = None,
    sections: Sequence[Section] = (),
    title: str = "",
    figures: Sequence[Figures] | None = None,
) -> str:
    """The report on one run, or the comparison of several, as one HTML page.

    ``extra`` are further metrics for the tables, ``sections`` further parts. ``results`` must not be
    empty; ``figures`` are theirs, if there are any yet.
    """
    # Here and not above: matplotlib takes longer to load than a small run takes.
    from headway.report import plots

    if not results:
        raise ValueError("a report needs at least one run")
    figures = figures or [Figures(result, extra) for result in results]
    runs = [plots.Plotted(each.columns, each.curves, each.energy) for each in figures]
    summaries = [each.summary for each in figures]

    charted = min(len(results), GANTT_CHARTS)
    charts = [
        {
            **_chart(
                result, run.columns, run.curves.busy.begin, run.curves.busy.end, EMBEDDED_JOBS // charted
            ),
            "words": [words.schedule(result, run)],
        }
        for result, run in zip(results[:charted], runs, strict=False)
    ]
    environment = page_environment()
    labels = [result.label or f"run {number}" for number, result in enumerate(results, 1)]
    return environment.get_template("report.html").render(
        title=title or _title(labels, results),
        css=stylesheet(environment),
        script=_source(environment, "gantt.js"),
        labels=labels,
        series=[number % plots.SERIES + 1 for number in range(len(results))],
        dashes=[_css_dash(number % plots.SERIES) for number in range(len(results))],
        facts=_facts(results, summaries),
        **_tables(summaries),
        class_bounds=_class_bounds(results),
        refused=[summary["counts"]["refused_by_reason"] for summary in summaries],
        plots=_plots(runs, [result.class_bounds for result in results]),
        words=words.all_words(labels, runs, results),
        charts=charts,
        uncharted=labels[charted:],
        wait_legend=list(zip(gantt.WAIT_NAMES, gantt.WAIT_COLOURS, strict=True)),
        palette=json_for_script(
            {"wait": gantt.WAIT_COLOURS, "bounds": gantt.WAIT_BOUNDS, "user": gantt.USER_COLOURS,
             "other": gantt.OTHER_COLOUR}
        ),
        sections=[{"title": section.title, "html": Markup(section.html)} for section in sections],
        version=summaries[0]["run"]["headway_version"],
    )  # fmt: skip


def _tables(summaries: Sequence[Summary]) -> dict[str, Any]:
    """What the page's tables say, by the template's names."""
    return {
        "tiles": _tiles(summaries[0]) if len(summaries) == 1 else [],
        "compared_titles": [column[0] for column in compared_columns(summaries)],
        "compared": compared(summaries),
        "bars": [_bar(summary) for summary in summaries],
        "system": _system(summaries),
        "statistics": STATISTICS[1:],
        "per_job": [_per_job(summary) for summary in summaries],
        "class_titles": [title for title, *_ in quantities.CLASS_METRICS]
        + ["energy"] * any(summary["energy"] is not None for summary in summaries),
        "by_class": _by_class(summaries),
        "pool_titles": [title for title, *_ in quantities.POOL_METRICS],
        "by_pool": _by_pool(summaries),
    }


def _plots(runs: Sequence[Plotted], bounds: Sequence[ClassBounds]) -> dict[str, Markup]:
    """The page's plots as SVG, by the template's names."""
    from headway.report import plots

    return {
        "utilisation": Markup(plots.utilisation(runs, prefix="u")),
        "queue": Markup(plots.queue_length(runs, prefix="q")),
        "power": Markup(plots.power(runs, prefix="p") if any(run.energy for run in runs) else ""),
        "wait": Markup(plots.wait_distribution(runs, prefix="w")),
        "size": Markup(plots.slowdown_by_size(runs, prefix="s")),
        "runtime": Markup(plots.slowdown_by_runtime(runs, prefix="r")),
        "class_wait": Markup(plots.times_by_class(runs, bounds, "wait", prefix="cw")),
        "class_turnaround": Markup(plots.times_by_class(runs, bounds, "turnaround", prefix="ct")),
    }


def page_environment() -> Environment:
    """What the pages' templates are rendered in: autoescaping, and strict about what is not given."""
    return Environment(
        loader=PackageLoader("headway.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def stylesheet(environment: Environment) -> Markup:
    """The looks of all pages."""
    return _source(environment, "report.css")


def _source(environment: Environment, name: str) -> Markup:
    assert environment.loader is not None
    return Markup(environment.loader.get_source(environment, name)[0])


def json_for_script(value: Any) -> Markup:
    """JSON that can stand inside a ``<script>`` element, whatever strings are in it."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def _title(labels: Sequence[str], results: Sequence[RunResult]) -> str:
    """What was run on what: the workload is named where all runs have the same one."""
    workloads = {result.about.get("workload", "") for result in results}
    on = f" on {workload}" if len(workloads) == 1 and (workload := workloads.pop()) else ""
    return f"{labels[0]}{on}: one run" if len(results) == 1 else f"{len(results)} runs{on} compared"


def _facts(results: Sequence[RunResult], summaries: Sequence[Summary]) -> list[tuple[str, list[str]]]:
    """What was run: one row a fact, one value a run."""
    rows: list[tuple[str, list[str]]] = [("cluster", [result.cluster.name for result in results])]

    def row(title: str, values: list[str]) -> None:
        if any(values):
            rows.append((title, values))

    row("processors", [quantities.number(s["system"]["processors"]) for s in summaries])
    row("nodes", [quantities.number(len(r.cluster.nodes)) if r.cluster.nodes else "" for r in results])
    row("jobs", [_outcomes(s) for s in summaries])
    row("time", [_period(result, s) for result, s in zip(results, summaries, strict=True)])
    row("seed", [str(result.seed) for result in results])
    row("energy profile", [_profile(s["energy"]) for s in summaries])
    row("scheduling", [_speed(result) for result in results])
    for key in dict.fromkeys(key for result in results for key in result.about):
        row(key, [result.about.get(key, "") for result in results])
    return rows


def _profile(energy: Mapping[str, Any] | None) -> str:
    if energy is None:
        return ""
    profile = str(energy["profile"])
    return profile if energy["absolute"] else f"{profile}, not calibrated: relative figures"


def _outcomes(summary: Summary) -> str:
    counts = summary["counts"]
    states = ", ".join(f"{quantities.number(n)} {state}" for state, n in counts["by_state"].items())
    text = f"{quantities.number(counts['jobs'])} ({states})" if states else "0"
    return text + (f"; {quantities.number(counts['refused'])} refused" if counts["refused"] else "")


def _period(result: RunResult, summary: Summary) -> str:
    begin, end = summary["system"]["begin"], summary["system"]["end"]
    if begin is None or end is None:
        return ""
    # A run's clock either counts from its epoch or, live, is the time of day itself.
    first, last = begin + result.epoch, end + result.epoch
    # No calendar goes beyond the year 9999; a limit of a live job may.
    if first < 1e8 or last > _LAST_DAY:
        return quantities.duration(end - begin)
    form = "%Y-%m-%d %H:%M"
    texts = [datetime.fromtimestamp(t, UTC).strftime(form) for t in (first, last)]
    return f"{texts[0]} to {texts[1]} UTC"


def _speed(result: RunResult) -> str:
    if result.wall_seconds <= 0:
        return ""
    return f"{quantities.number(result.cycles)} cycles in {quantities.duration(result.wall_seconds)}"


def _tiles(summary: Summary) -> list[tuple[str, str]]:
    jobs, system, energy = summary["jobs"], summary["system"], quantities.energy_figures(summary["energy"])
    return [
        ("jobs that ran", quantities.number(summary["counts"]["finished"])),
        ("utilisation", quantities.share(system["utilisation"])),
        ("mean wait", quantities.duration(jobs["wait"]["mean"])),
        ("median wait", quantities.duration(jobs["wait"]["median"])),
        ("mean bounded slowdown", quantities.number(jobs["bounded_slowdown"]["mean"])),
        ("makespan", quantities.duration(system["makespan"])),
        # The first of these is the energy of everything.
        *energy[:1],
    ]


def _bar(summary: Summary) -> list[tuple[str, str, float, str]]:
    """Where the capacity went: CSS class, name, percent, text."""
    names = {
        "busy": ("utilisation", "used"),
        "held": ("held_back", "idle, a waiting job would fit"),
        "fragmented": ("fragmentation", "idle, no waiting job fits"),
        "idle": ("no_demand", "idle, no job waits"),
    }
    parts = []
    for name, (key, title) in names.items():
        value = summary["system"][key]
        parts.append((name, title, 100 * min(max(value or 0.0, 0.0), 1.0), quantities.share(value)))
    return parts


def _system(summaries: Sequence[Summary]) -> list[tuple[str, list[str]]]:
    rows = [
        (title, [write(summary["system"][key]) for summary in summaries])
        for key, (title, write) in quantities.SYSTEM_METRICS.items()
    ]
    contributed: dict[str, list[str]] = {}
    for number, summary in enumerate(summaries):
        for title, text in quantities.energy_figures(summary["energy"]):
            contributed.setdefault(title, [""] * len(summaries))[number] = text
        for name, value in summary["extra"].items():
            for title, text in flatten(name, value):
                contributed.setdefault(title, [""] * len(summaries))[number] = text
    return rows + list(contributed.items())


def _per_job(summary: Summary) -> list[tuple[str, str, list[str]]]:
    return [
        (title, quantities.number(values["count"]), [write(values[name]) for name in STATISTICS[1:]])
        for title, values, write in quantities.job_figures(summary)
    ]


def _by_class(summaries: Sequence[Summary]) -> list[tuple[str, list[list[str]]]]:
    """For each class its name and, run by run, its figures; the last is the energy if a run has any."""
    known = any(summary["energy"] is not None for summary in summaries)

    def figures(summary: Summary, name: str) -> list[str]:
        found, energy = summary["classes"][name], summary["energy"]
        shown = quantities.class_figures(found)
        if known:
            write = quantities.energy_writer(energy) if energy is not None else quantities.joules
            shown.append(write(found["energy"]["mean"] if energy is not None else None))
        return shown

    return [
        (title, [figures(summary, name) for summary in summaries])
        for name, title in quantities.CLASS_NAMES.items()
    ]


def _by_pool(summaries: Sequence[Summary]) -> list[tuple[str, list[list[str]]]]:
    """For each pool its name and, run by run, its figures; none where no run has several pools."""
    names = dict.fromkeys(name for summary in summaries for name in summary["pools"])
    nothing = [""] * len(quantities.POOL_METRICS)
    return [
        (
            name,
            [
                quantities.pool_figures(summary["pools"][name]) if name in summary["pools"] else nothing
                for summary in summaries
            ],
        )
        for name in names
    ]


def _class_bounds(results: Sequence[RunResult]) -> str:
    """What the classes mean; where runs differ in it, that of each."""
    found = {b: None for b in (result.class_bounds for result in results)}
    return "; ".join(
        f"narrow: at most {b.narrow} processor{'' if b.narrow == 1 else 's'}, "
        f"short: at most {quantities.duration(b.short)}"
        for b in found
    )


def _css_dash(number: int) -> str:
    """The dash pattern of a series for the legend's little line."""
    from headway.report.plots import DASHES

    dash = DASHES[number]
    return "none" if isinstance(dash, str) else " ".join(str(length) for length in dash[1])


def _chart(result: RunResult, columns: JobColumns, begin: float, end: float, limit: int) -> dict[str, Any]:
    """All that the template needs of one Gantt chart."""
    from headway.report import plots

    shape = gantt.layout(result, columns, end)
    inside = gantt.embedded(result, shape, columns, begin, end, limit)
    picture = base64.b64encode(gantt.raster(shape, columns, begin, end)).decode("ascii")
    unit, name = plots.time_unit(end - begin)
    users, _ = gantt.users_by_work(result, columns)
    no_time = int((columns.started & (columns.end == columns.start)).sum())
    return {
        "label": result.label,
        "picture": picture,
        "data": json_for_script(inside.data),
        "rows": shape.total,
        "row_ticks": [(round(v), v / shape.total) for v in plots.ticks(shape.total, 6)],
        "time_ticks": [
            (f"{v:g}", v * unit / max(end - begin, 1e-9)) for v in plots.ticks((end - begin) / unit, 12)
        ],
        "unit": name,
        "users": list(zip(users, gantt.USER_COLOURS, strict=False)),
        "omitted": inside.omitted,
        "omitted_text": quantities.number(inside.omitted),
        "omitted_work": quantities.share(inside.omitted_work),
        "embedded_text": quantities.number(len(inside.data["id"])),
        "no_time": no_time,
        "no_time_text": quantities.number(no_time),
    }
