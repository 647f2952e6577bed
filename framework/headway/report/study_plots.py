"""The plots of a workload's study, drawn like the plots of a run's report (:mod:`headway.report.plots`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullFormatter, NullLocator

from headway.model.classes import CLASSES
from headway.report.drawing import Axes
from headway.report.plots import COLOURS, DASHES, TIME_MARKS, over_time, svg
from headway.report.quantities import number as in_thousands

if TYPE_CHECKING:
    from headway.workload.analysis import Row, Study

#: Days that have a bar each; of more, equal spans of days do, with their mean.
_MOST_BARS = 400


def day_loads(study: Study, *, prefix: str) -> str:
    """Offered load of each day over the whole trace, or jobs of each day where there is no load."""
    rows = study.tables["days"]
    loads = [row["load"] for row in rows]
    loaded = bool(loads) and loads[0] is not None
    values = np.array([100 * load for load in loads] if loaded else [row["jobs"] for row in rows], np.float64)
    step = max(1, -(-len(values) // _MOST_BARS))
    means = np.array([values[at : at + step].mean() for at in range(0, len(values), step)])

    def draw(axes: Axes) -> None:
        places = np.arange(len(means)) * step
        axes.bar(places, means, width=0.9 * step, align="edge", color=COLOURS[0])
        if loaded:
            axes.axhline(100, color=COLOURS[1], linewidth=1.2, linestyle=DASHES[1])
        axes.set_xlim(0, max(len(values), 1))
        axes.set_ylim(bottom=0)
        axes.set_xlabel(
            "days since the first" if step == 1 else f"days since the first; means over {step} days"
        )
        axes.set_ylabel("offered load, %" if loaded else "jobs a day")

    return over_time(draw, prefix, "Offered load by day" if loaded else "Jobs by day", whole=True)


def bars(
    names: Sequence[str], heights: Sequence[float], label: str, unit: str, title: str, *, prefix: str
) -> str:
    """One bar a name."""

    def draw(axes: Axes) -> None:
        axes.bar(range(len(names)), list(heights), width=0.8, color=COLOURS[0])
        axes.set_xticks(range(len(names)), list(names))
        if len(names) > 10:
            axes.tick_params(axis="x", labelsize=7)
        axes.set_ylim(bottom=0)
        axes.set_xlabel(label)
        axes.set_ylabel(unit)

    return svg(draw, prefix, title, width=5.6, height=3.1)


def shares(names: Sequence[str], rows: Sequence[Row], label: str, title: str, *, prefix: str) -> str:
    """Two bars a row: its share of the jobs, and its share of the work."""

    def draw(axes: Axes) -> None:
        for number, (key, name) in enumerate((("share", "of jobs"), ("work_share", "of work"))):
            heights = [100 * (row[key] or 0.0) for row in rows]
            axes.bar(
                np.arange(len(rows)) + (number - 0.5) * 0.4, heights, width=0.38, color=COLOURS[number],
                label=name,
            )  # fmt: skip
        axes.set_xticks(range(len(names)), list(names))
        if len(names) > 8:
            axes.tick_params(axis="x", labelsize=6, labelrotation=30)
        axes.set_ylim(bottom=0)
        axes.set_xlabel(label)
        axes.set_ylabel("%")
        axes.legend(frameon=False)

    return svg(draw, prefix, title, width=5.6, height=3.1)


def flows(rows: Sequence[Row], label: str, *, prefix: str) -> str:
    """Two bars a row: its mean runtime, and its mean wait, on a logarithmic axis; below a second: no bar."""

    def draw(axes: Axes) -> None:
        for number, (key, name) in enumerate((("mean_runtime", "runtime"), ("mean_wait", "wait"))):
            heights = [max(row[key] or 0.0, 1.0) for row in rows]
            axes.bar(
                np.arange(len(rows)) + (number - 0.5) * 0.4, heights, width=0.38, color=COLOURS[number],
                label=name,
            )  # fmt: skip
        axes.set_xticks(range(len(rows)), [str(row[label]) for row in rows])
        if len(rows) > 10:
            axes.tick_params(axis="x", labelsize=7)
        axes.set_yscale("log")
        axes.set_ylim(bottom=1.0)
        longest = max(max(row["mean_runtime"] or 0.0, row["mean_wait"] or 0.0) for row in rows)
        axes.yaxis.set_major_locator(FixedLocator([m for m in TIME_MARKS if m <= max(longest, 60.0) * 1.1]))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda v, _: TIME_MARKS.get(round(v), "")))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.set_xlabel(label)
        axes.set_ylabel("mean")
        axes.legend(frameon=False)

    return svg(draw, prefix, f"Runtime and wait by {label}", width=5.6, height=3.1)


def estimates(study: Study, *, prefix: str) -> str:
    """Which share of the jobs asks for at most so long, and which share of the jobs runs at most so long."""
    rows = sorted(study.tables["estimate_modes"], key=lambda row: row["estimate"])
    times = np.array([row["estimate"] for row in rows])
    # From zero jobs on: the shortest estimate is a step, too.
    times, asked = np.append(times[0], times), 100 * np.cumsum([0.0, *(row["share"] for row in rows)])
    runtime = np.sort(study.jobs.runtime[~(np.isnan(study.jobs.runtime) | np.isnan(study.jobs.estimate))])

    def draw(axes: Axes) -> None:
        axes.plot(
            np.maximum(times, 1.0), asked, drawstyle="steps-post", color=COLOURS[0], linestyle=DASHES[0],
            label="estimate",
        )  # fmt: skip
        longest = float(times[-1])
        if len(runtime):
            longest = max(longest, float(runtime[-1]))
            ranks = np.unique(np.linspace(0, len(runtime) - 1, min(len(runtime), 500)).astype(np.int64))
            axes.plot(
                np.maximum(runtime[ranks], 1.0), 100 * (ranks + 1) / len(runtime), drawstyle="steps-post",
                color=COLOURS[1], linestyle=DASHES[1], label="runtime",
            )  # fmt: skip
        _time_axis(axes, longest)
        axes.set_ylim(0, 102)
        axes.set_ylabel("% of jobs with at most this time")
        axes.legend(frameon=False)

    return svg(draw, prefix, "Estimates and runtimes", width=5.6, height=3.1)


def popularity(study: Study, *, prefix: str) -> str:
    """The share of each estimate by its popularity rank, both on logarithmic axes."""
    rows = study.tables["estimate_modes"]

    def draw(axes: Axes) -> None:
        axes.plot(
            [row["popularity"] for row in rows], [100 * row["share"] for row in rows],
            color=COLOURS[0], marker=".", markersize=4, linestyle="none",
        )  # fmt: skip
        axes.set_xscale("log")
        axes.set_yscale("log")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
            axis.set_minor_formatter(NullFormatter())
        axes.set_xlabel("popularity rank of the estimate")
        axes.set_ylabel("% of jobs with this estimate")

    return svg(draw, prefix, "Popularity of estimates", width=5.6, height=3.1)


def growth(study: Study, *, prefix: str) -> str:
    """How many different estimates the first jobs have."""
    rows = study.tables["estimate_growth"]

    def draw(axes: Axes) -> None:
        axes.plot([row["jobs"] for row in rows], [row["modes"] for row in rows], color=COLOURS[0])
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=0)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: in_thousands(v)))
        axes.set_xlabel("jobs submitted so far")
        axes.set_ylabel("different estimates")

    return svg(draw, prefix, "Different estimates", width=5.6, height=3.1)


def accuracy_by_runtime(study: Study, *, prefix: str) -> str:
    """Mean of runtime / estimate of groups of jobs of like runtime; less than a second counts as one."""
    rows = study.tables["estimate_accuracy"]

    def draw(axes: Axes) -> None:
        middle = [max(np.sqrt(max(row["runtime_from"], 1.0) * row["runtime_to"]), 1.0) for row in rows]
        axes.plot(middle, [100 * row["mean_accuracy"] for row in rows], color=COLOURS[0], marker=".")
        _time_axis(axes, max(row["runtime_to"] for row in rows))
        axes.set_ylim(bottom=0)
        axes.set_ylabel("mean runtime / estimate, %")

    return svg(draw, prefix, "Accuracy by runtime", width=5.6, height=3.1)


def _time_axis(axes: Axes, longest: float) -> None:
    """A logarithmic axis from a second to so many, with marks at times that people know."""
    axes.set_xscale("log")
    axes.set_xlim(1.0, max(longest, 60.0) * 1.1)
    axes.xaxis.set_major_locator(FixedLocator([m for m in TIME_MARKS if m <= longest * 1.1]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: TIME_MARKS.get(round(v), "")))
    axes.xaxis.set_minor_locator(NullLocator())


def runtimes(study: Study, *, prefix: str) -> str:
    """Which share of each class's jobs runs at most so long; less than a second counts as one."""
    which = study.bounds.of(study.jobs.size, study.jobs.runtime)

    def draw(axes: Axes) -> None:
        longest = 60.0
        for number, name in enumerate(CLASSES):
            runtime = np.sort(study.jobs.runtime[which == number])
            if not len(runtime):
                continue
            longest = max(longest, float(runtime[-1]))
            ranks = np.unique(np.linspace(0, len(runtime) - 1, min(len(runtime), 500)).astype(np.int64))
            axes.plot(
                np.maximum(runtime[ranks], 1.0), 100 * (ranks + 1) / len(runtime), drawstyle="steps-post",
                color=COLOURS[number], linestyle=DASHES[number], label=name,
            )  # fmt: skip
        _time_axis(axes, longest)
        axes.set_ylim(0, 102)
        axes.set_xlabel("runtime")
        axes.set_ylabel("% of the class with at most this runtime")
        if axes.lines:
            axes.legend(frameon=False)

    return svg(draw, prefix, "Runtimes by class", width=5.6, height=3.1)
