"""Lines with confidence intervals over what a campaign varies."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from headway.experiment.campaign import Row, select
from headway.experiment.statistics import interval

#: Distinguishable without colour as well: line style and marker go together.
_STYLES = (("#0068a8", "-", "o"), ("#c2540a", "--", "s"), ("#00795c", ":", "^"), ("#8a4a9e", "-.", "D"))

#: How the names of metrics in seconds begin; a class of jobs may stand behind.
_SECONDS = ("mean wait", "mean turnaround", "mean runtime", "makespan", "mean dedicated delay")


def line_plot(
    rows: Sequence[Row],
    metrics: Sequence[str],
    path: Path,
    *,
    x_label: str,
    title: str,
    reference: Sequence[str] = (),
) -> None:
    """One panel a metric, one line a variant, with 95 % confidence intervals over the seeds, as PNG.

    Variants in ``reference`` do not depend on x: they are drawn as a horizontal line at their mean.
    """
    variants = list(dict.fromkeys(row.variant for row in rows))
    figure = Figure(figsize=(4.2 * len(metrics), 3.4), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title, fontsize=10)
    for at, metric in enumerate(metrics):
        axes = figure.add_subplot(1, len(metrics), at + 1)
        for number, variant in enumerate(variants):
            colour, line, marker = _STYLES[number % len(_STYLES)]
            if variant in reference:
                values = interval(select(rows, metric, variant=variant))
                axes.axhline(values.mean, color=colour, linestyle=line, label=variant, linewidth=1.2)
                continue
            xs = sorted({row.x for row in rows if row.variant == variant})
            means = [interval(select(rows, metric, variant=variant, x=x)) for x in xs]
            axes.errorbar(
                xs, [m.mean for m in means], yerr=[0 if m.count < 2 else m.half for m in means],
                color=colour, linestyle=line, marker=marker, markersize=4, linewidth=1.2, capsize=2,
                label=variant,
            )  # fmt: skip
        axes.set_xlabel(x_label, fontsize=9)
        axes.set_title(f"{metric}, s" if metric.startswith(_SECONDS) else metric, fontsize=9)
        axes.grid(alpha=0.3)
        axes.tick_params(labelsize=8)
        if at == 0:
            axes.legend(fontsize=8, framealpha=0.8)
    figure.savefig(path, dpi=110)
