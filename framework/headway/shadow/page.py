"""The page of a shadow report: one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from markupsafe import Markup

from headway.report.atomic import writing
from headway.report.html import page_environment, stylesheet
from headway.report.quantities import NONE, duration, number, share
from headway.shadow import charts
from headway.shadow.comparing import Curves
from headway.shadow.findings import Findings, Grouping
from headway.shadow.intervals import FEWEST, Compared, Estimate
from headway.shadow.sentences import delays, interval, moment, summary

#: What a table shows of each row.
HEADS = ("jobs", "wait", "with headway", "difference", "slowdown", "with headway", "difference", "in use",
         "with headway")  # fmt: skip


def write_page(path: Path, found: Findings, curves: Curves) -> None:
    """Write the page. Raises :class:`headway.errors.Failure` if that is not possible."""
    page = render_page(found, curves)
    with writing(path) as stream:
        stream.write(page)


def render_page(found: Findings, curves: Curves) -> str:
    """The page. All that comes from users (names of accounts, pools, users, reasons) is escaped."""
    environment = page_environment()
    hours = next((table for table in found.tables if table.by == "hour"), Grouping("hour", []))
    return environment.get_template("shadow.html").render(
        title=f"{found.cluster}: what headway would have done",
        css=stylesheet(environment),
        version=found.headway_version,
        summary=summary(found),
        tiles=_tiles(found),
        heads=HEADS,
        tables=[(_title(table, found), table.by, _rows(table), table.note) for table in found.tables],
        plots={
            "waits": Markup(charts.waits_over_time(curves, prefix="w")),
            "queues": Markup(charts.queues_over_time(curves, prefix="q")),
            "distribution": Markup(charts.distribution(curves, prefix="d")),
            "hour_wait": Markup(charts.by_hour(hours.rows, "wait", prefix="hw")),
            "hour_use": Markup(charts.by_hour(hours.rows, "use", prefix="hu")),
        } if found.jobs else {},
        fewest=FEWEST,
        delays=delays(found),
        plugins=", ".join(found.plugins),
        seeds=f"{found.seed} to {found.seed + found.draws - 1}" if found.draws > 1 else str(found.seed),
        draws=found.draws,
        stretches=[(moment(one.begin), moment(one.end), number(one.jobs), number(one.compared))
                   for one in found.stretches],
        gaps=[(moment(one.begin), duration(one.end - one.begin), one.why, one.bridged) for one in found.gaps],
        left_out=[(number(one.jobs), one.what) for one in found.left_out],
        noted=[(number(one.jobs), one.what) for one in found.noted],
        remarks=found.remarks,
    )  # fmt: skip


def _tiles(found: Findings) -> list[tuple[str, str, str, str]]:
    """Name, the batch system's figure, headway's, its interval."""
    tiles = []
    for name, of, write, floor in (
        ("mean wait", found.wait, duration, 0.0),
        ("mean bounded slowdown", found.slowdown, number, 1.0),
        ("processors in use", found.use, share, 0.0),
    ):
        between = interval(of.headway, write, floor)
        tiles.append((name, write(of.system.mean), write(of.headway.mean), between))
    for name, pair in (("median wait", found.median_wait), ("95 % waited at most", found.p95_wait)):
        tiles.append((name, duration(pair[0]), duration(pair[1]), ""))
    return tiles


def _title(table: Grouping, found: Findings) -> str:
    if table.by == "hour":
        return f"By hour of the day ({found.zone})"
    return f"By {table.by}"


def _rows(table: Grouping) -> list[tuple[str, list[tuple[str, str, str]]]]:
    """Of each row its name, and its cells: text, a smaller text below it, and a CSS class."""
    rows = []
    for row in table.rows:
        cells = [(number(row.jobs), "", "")]
        cells += _cells(row.wait, duration, 0.0) + _cells(row.slowdown, number, 1.0)
        cells += [(share(row.use.system.mean), "", ""), (share(row.use.headway.mean), "", "")]
        rows.append((row.name, cells))
    return rows


def _cells(found: Compared, write: Callable[[float | None], str], floor: float) -> list[tuple[str, str, str]]:
    return [
        (write(found.system.mean), "", ""),
        (write(found.headway.mean), interval(found.headway, write, floor), ""),
        (_plus(found.difference, write), _between(found.difference, write), _shown(found.difference)),
    ]


def _plus(found: Estimate, write: Callable[[float | None], str]) -> str:
    if found.mean is None:
        return NONE
    return ("+" if found.mean > 0 else "−" if found.mean < 0 else "") + write(abs(found.mean))


def _between(found: Estimate, write: Callable[[float | None], str]) -> str:
    if found.low is None or found.high is None:
        return ""
    return f"{_plus(Estimate(found.low), write)} to {_plus(Estimate(found.high), write)}"


def _shown(found: Estimate) -> str:
    """Whether a difference is shown: its interval does not include zero."""
    if found.low is None or found.high is None or found.low <= 0 <= found.high:
        return ""
    return "better" if found.high < 0 else "worse"
