"""Lines with confidence intervals over what a campaign varies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from headway.experiment.campaign import Row, select
from headway.experiment.statistics import interval

#: Distinguishable without colour as well: line style and marker go together.
_STYLES = (
    ("#0068a8", "-", "o"), ("#c2540a", "--", "s"), ("#00795c", ":", "^"), ("#8a4a9e", "-.", "D"),
    ("#404040", "-", "v"), ("#b8860b", "--", "P"), ("#b3006b", ":", "X"), ("#3f7f1f", "-.", "<"),
)  # fmt: skip

#: How the names of metrics in seconds begin; a class of jobs may stand behind.
_SECONDS = (
    "total runtime",
    "mean wait",
    "mean turnaround",
    "mean runtime",
    "makespan",
    "mean dedicated delay",
)


def line_plot(
    rows: Sequence[Row],
    metrics: Sequence[str],
    path: Path,
    *,
    x_label: str,
    title: str,
    reference: Sequence[str] = (),
    units: Mapping[str, tuple[str, float]] = MappingProxyType({}),
) -> None:
    """One panel a metric, one line a variant, with 95 % confidence intervals over the seeds, as PNG.

    Variants in ``reference`` do not depend on x: they are drawn as a horizontal line at their mean.
    ``units``: of metrics that are shown in another unit than their own, its name and its size.
    """
    variants = list(dict.fromkeys(row.variant for row in rows))
    figure = Figure(figsize=(4.2 * len(metrics), 3.4), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title, fontsize=10)
    for at, metric in enumerate(metrics):
        axes = figure.add_subplot(1, len(metrics), at + 1)
        unit, size = units.get(metric, ("s" if metric.startswith(_SECONDS) else "", 1.0))
        for number, variant in enumerate(variants):
            colour, line, marker = _STYLES[number % len(_STYLES)]
            if variant in reference:
                values = interval([value / size for value in select(rows, metric, variant=variant)])
                axes.axhline(values.mean, color=colour, linestyle=line, label=variant, linewidth=1.2)
                continue
            xs = sorted({row.x for row in rows if row.variant == variant})
            means = [
                interval([value / size for value in select(rows, metric, variant=variant, x=x)]) for x in xs
            ]
            axes.errorbar(
                xs, [m.mean for m in means], yerr=[0 if m.count < 2 else m.half for m in means],
                color=colour, linestyle=line, marker=marker, markersize=4, linewidth=1.2, capsize=2,
                label=variant,
            )  # fmt: skip
        axes.set_xlabel(x_label, fontsize=9)
        axes.set_title(f"{metric}, {unit}" if unit else metric, fontsize=9)
        axes.grid(alpha=0.3)
        axes.tick_params(labelsize=8)
        if at == 0:
            axes.legend(fontsize=8, framealpha=0.8)
    figure.savefig(path, dpi=110)


def bar_plot(rows: Sequence[Row], metrics: Sequence[str], path: Path, *, title: str) -> None:
    """One panel a metric, one bar a variant: its mean over the seeds with the 95 % confidence interval."""
    variants = list(dict.fromkeys(row.variant for row in rows))
    width = max(3.2, 0.42 * len(variants))
    figure = Figure(figsize=(width * len(metrics), 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title, fontsize=10)
    for at, metric in enumerate(metrics):
        axes = figure.add_subplot(1, len(metrics), at + 1)
        found = [interval(select(rows, metric, variant=variant)) for variant in variants]
        axes.bar(
            range(len(variants)), [f.mean for f in found], yerr=[f.half if f.count > 1 else 0 for f in found],
            color=_STYLES[0][0], capsize=2, error_kw={"linewidth": 1},
        )  # fmt: skip
        _name_bars(axes, variants)
        axes.set_title(f"{metric}, s" if metric.startswith(_SECONDS) else metric, fontsize=9)
    figure.savefig(path, dpi=110)


def box_plot(
    samples: Mapping[str, Mapping[str, Sequence[float]]], path: Path, *, title: str, label: str
) -> None:
    """One panel a metric (outer keys), one box a variant (inner keys): median, quartiles, whiskers at the
    5th and 95th percentile; logarithmic."""
    figure = Figure(figsize=(5.6 * len(samples), 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title, fontsize=10)
    for at, (metric, of_variants) in enumerate(samples.items()):
        axes = figure.add_subplot(1, len(samples), at + 1)
        axes.boxplot(
            [list(values) for values in of_variants.values()], positions=range(len(of_variants)),
            whis=(5, 95), showfliers=False, widths=0.6,
        )  # fmt: skip
        axes.set_yscale("symlog", linthresh=1.0)
        _name_bars(axes, list(of_variants))
        axes.set_title(f"{metric}, {label}", fontsize=9)
    figure.savefig(path, dpi=110)


def _name_bars(axes: Axes, names: Sequence[str]) -> None:
    axes.set_xticks(range(len(names)))
    axes.set_xticklabels(names, rotation=60, ha="right", fontsize=7)
    axes.grid(alpha=0.3, axis="y")
    axes.tick_params(axis="y", labelsize=8)
