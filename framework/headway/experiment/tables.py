"""What a campaign found, as tables of texts and as plots."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from math import isfinite, nan
from pathlib import Path
from typing import Any

from headway.experiment.campaign import Campaign, Row
from headway.experiment.rulebook import Evidence, Judged, excluded
from headway.experiment.rulebook.comparisons import verdicts
from headway.experiment.statistics import Interval, batch_interval, interval
from headway.model.energy import EnergyProfile
from headway.report.quantities import duration
from headway.report.table import Table

#: Of the table, beside offered and achieved load, and of the plots.
METRICS = ("mean wait", "mean bounded slowdown", "geometric mean bounded slowdown")
PLOTTED = ("mean wait", "mean bounded slowdown", "achieved load")

#: Of workloads whose jobs have users: means over these, and the longest mean of one of them.
BY_HOLDER = (
    "mean wait by user",
    "worst mean wait by user",
    "mean wait by account",
    "worst mean wait by account",
)
#: Metrics in seconds.
SECONDS = ("mean wait", *BY_HOLDER)

#: With an energy profile; its figures are joules and watts only if it is calibrated.
ENERGY_METRICS = ("energy", "peak power")
ENERGY_UNITS = {"energy": ("kWh", 3.6e6), "peak power": ("kW", 1e3)}


def campaign_tables(evidence: Evidence, found: Sequence[Judged]) -> list[Table]:
    """Means, waits by user where jobs have users, and what changed against the first policy."""
    plan, left_out = evidence.campaign, excluded(found)
    tables = [_means(evidence, (*METRICS, *_energy_metrics(plan)), _units(plan), left_out)]
    if any(row.values.get("mean wait by user", nan) >= 0 for row in evidence.rows or ()):
        tables.append(_means(evidence, BY_HOLDER, {}, left_out, "Waits by user and account"))
    if len(plan.variants) > 1:
        tables.append(_changes(evidence, left_out))
    return tables


def draw_plots(plan: Campaign, rows: Sequence[Row], out: Path) -> list[tuple[str, Path]]:
    """Draw each workload with several loads or factors; workload and file."""
    from headway.experiment.plots import line_plot

    plots = []
    for scenario in dict.fromkeys(s.label for s in plan.scenarios):
        part = [row for row in rows if row.scenario == scenario]
        if len({row.x for row in part}) > 1:
            name = "".join(c if c.isalnum() else "-" for c in scenario)
            line_plot(
                part, (*PLOTTED, *_energy_metrics(plan)), out / f"{name}.png", x_label="load or factor",
                title=scenario, units=_units(plan),
            )  # fmt: skip
            plots.append((scenario, out / f"{name}.png"))
    return plots


def _profiles(plan: Campaign) -> list[EnergyProfile]:
    return [s.cluster.energy for s in plan.scenarios if s.cluster is not None and s.cluster.energy]


def _energy_metrics(plan: Campaign) -> tuple[str, ...]:
    """The metrics of power and energy, if a machine has a profile."""
    return ENERGY_METRICS if _profiles(plan) else ()


def _units(plan: Campaign) -> Mapping[str, tuple[str, float]]:
    """Joules and watts are said only of calibrated profiles."""
    return ENERGY_UNITS if all(profile.absolute for profile in _profiles(plan)) else {}


def _means(
    evidence: Evidence,
    metrics: Sequence[str],
    units: Mapping[str, tuple[str, float]],
    left_out: Mapping[tuple[str, float, str], str],
    title: str = "Means",
) -> Table:
    """A line a point: offered and achieved load, and the metrics with their intervals."""
    names = {"mean bounded slowdown": "bounded slowdown", "geometric mean bounded slowdown": "geometric mean"}
    heads = [f"{name}, {units[name][0]}" if name in units else names.get(name, name) for name in metrics]
    lines = []
    for scenario, x, variant, rows in evidence.points():
        offered, achieved = (
            interval([row.values[name] for row in rows]).mean for name in ("offered load", "achieved load")
        )
        cells = []
        for metric in metrics:
            found = mean_of(rows, metric, units.get(metric, ("", 1.0))[1])
            cells.append(in_time(found) if metric in SECONDS else str(found))
        mark = " ×" if (scenario, x, variant) in left_out else ""
        lines.append((scenario, f"{x:g}", variant + mark, f"{offered:.3f} / {achieved:.3f}", *cells))
    seeds = len(evidence.campaign.seeds)
    note = (
        f"means over {seeds} seeds (traces that nothing is drawn of: one run, by batches), "
        "± half of the 95 % confidence interval; × left out of verdicts"
    )
    return Table(title, ("workload", "x", "policy", "offered / achieved", *heads), lines, 3, note)


def mean_of(rows: Sequence[Row], metric: str, size: float = 1.0) -> Interval:
    """The metric over the runs of a point, in units of ``size``; of a single run the interval is of
    batches."""
    found = interval([row.values[metric] / size for row in rows])
    if len(rows) == 1:
        batches = batch_interval([mean / size for mean in rows[0].batches.get(metric, ())])
        if batches.interval.count > 1 and batches.valid:
            return Interval(found.mean, batches.interval.half, batches.interval.count)
    return found


def points_data(evidence: Evidence, left_out: Collection[tuple[str, float, str]]) -> list[dict[str, Any]]:
    """All metrics of each point: see :class:`headway.cli.figured.PointReport`."""
    return [
        {
            "workload": scenario,
            "x": x,
            "policy": variant,
            "left_out": (scenario, x, variant) in left_out,
            "metrics": {name: asdict(mean_of(rows, name)) for name in rows[0].values},
        }
        for scenario, x, variant, rows in evidence.points()
    ]


def changes_data(evidence: Evidence, left_out: Mapping[tuple[str, float, str], str]) -> list[dict[str, Any]]:
    """Each policy against the first: see :class:`headway.cli.figured.ComparisonReport`."""
    return [
        {
            "workload": one.scenario, "x": one.x, "policy": one.variant, "against": one.against,
            "metric": one.metric, "change": asdict(one.change), "less": one.less, "of": one.of,
            "verdict": one.says,
        }
        for one in (verdicts(evidence, left_out) if len(evidence.campaign.variants) > 1 else ())
    ]  # fmt: skip


def _changes(evidence: Evidence, left_out: Mapping[tuple[str, float, str], str]) -> Table:
    """A line a verdict: each policy against the first."""
    base = evidence.campaign.variants[0].label
    lines = [
        (one.scenario, f"{one.x:g}", one.variant, one.metric, percent(one.change), f"{one.less} of {one.of}",
         one.says)
        for one in verdicts(evidence, left_out)
    ]  # fmt: skip
    heads = ("workload", "x", "policy", "metric", f"against {base}, %", "less in", "verdict")
    return Table(f"Against {base}", heads, lines, len(heads))


def percent(found: Interval) -> str:
    """A change in percent with its interval."""
    if not isfinite(found.mean):
        return "–"
    return f"{found.mean:+.1f}" + (f" ± {found.half:.1f}" if found.count > 1 else "")


def in_time(found: Interval) -> str:
    """A mean in seconds with its interval, as `dry-run` writes times."""
    if not isfinite(found.mean):
        return duration(None)
    return duration(found.mean) + (f" ± {duration(found.half)}" if found.count > 1 else "")
