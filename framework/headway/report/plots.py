"""The report's plots, as SVG to be put into a page.

Drawn with matplotlib's objects, without its global state. The SVG takes its colours from the
page's CSS variables (``--ink``, ``--line``, ``--series-1`` ...), so it follows light and dark; and
it contains no text but numbers and our own words, so there is nothing in it to escape.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import matplotlib
import numpy as np
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator
from numpy.typing import NDArray

from headway.metrics import JobColumns, SystemCurves
from headway.metrics.energy import EnergyUse
from headway.model.classes import CLASSES, ClassBounds
from headway.report.drawing import Axes, Figure, FigureCanvasSVG, TightLayoutEngine

Floats = NDArray[np.float64]

#: How many runs have a colour and a dash pattern of their own (the page's ``--series-N``); then they repeat.
SERIES = 8
DASHES: tuple[str | tuple[float, tuple[float, ...]], ...] = (
    "solid", (0, (6, 2)), (0, (2, 1.5)), (0, (7, 2, 2, 2)), (0, (1, 1)), (0, (10, 3)), (0, (4, 4)), "solid",
)  # fmt: skip

# Colours that stand for CSS variables until the SVG is finished.
_INK, _LINE = "#0a0b0c", "#0d0e0f"
COLOURS = tuple(f"#1000{n:02x}" for n in range(1, SERIES + 1))
_PARTS = {"held": "#200001", "fragmented": "#200002"}
_VARIABLES = {
    _INK: "var(--ink-2)",
    _LINE: "var(--line)",
    **{colour: f"var(--series-{n})" for n, colour in enumerate(COLOURS, 1)},
    _PARTS["held"]: "var(--held)",
    _PARTS["fragmented"]: "var(--fragmented)",
}
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "headway",
    "font.size": 9,
    "text.color": _INK,
    "axes.labelcolor": _INK,
    "axes.edgecolor": _LINE,
    "xtick.color": _LINE,
    "ytick.color": _LINE,
    "xtick.labelcolor": _INK,
    "ytick.labelcolor": _INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": _LINE,
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
}

#: Bins over the run that curves are averaged in.
BINS = 400

SIZE_CLASSES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
#: Of more classes than these only the least size is named: there is no room for ranges.
MOST_RANGES = 6
RUNTIME_CLASSES = (
    (60.0, "< 1 min"),
    (600.0, "< 10 min"),
    (3600.0, "< 1 h"),
    (4 * 3600.0, "< 4 h"),
    (12 * 3600.0, "< 12 h"),
    (float("inf"), "≥ 12 h"),
)


#: Inches: a plot of which three stand in a row, or one on a telephone, so that its letters can be read there.
THIRD = 4.0
#: The shapes of a plot over time, of which the style sheet shows that for the page's width: the class there,
#: inches wide and high, and marks of the time at most.
SHAPES = (("broad", 11.4, 2.5, 12), ("middle", 7.6, 2.6, 8), ("narrow", THIRD, 2.8, 5))

#: Seconds that a logarithmic axis of times names.
TIME_MARKS = {1: "≤ 1 s", 10: "10 s", 60: "1 min", 600: "10 min", 3600: "1 h", 6 * 3600: "6 h",
              86400: "1 d", 5 * 86400: "5 d", 30 * 86400: "30 d", 365 * 86400: "1 y"}  # fmt: skip


@dataclass(frozen=True)
class Plotted:
    """What the plots need of one run."""

    columns: JobColumns
    curves: SystemCurves
    #: None: no energy profile.
    energy: EnergyUse | None = None


def time_unit(span: float) -> tuple[float, str]:
    """The unit that a span of ``span`` seconds is best told in: its seconds, and its name."""
    for seconds, name in ((86400.0, "days"), (3600.0, "hours"), (60.0, "minutes")):
        if span > 4 * seconds:
            return seconds, name
    return 1.0, "seconds"


def ticks(span: float, count: int = 10) -> list[float]:
    """Round values from 0 to ``span``, at most about ``count``."""
    values = MaxNLocator(nbins=count, steps=[1, 2, 2.5, 5, 10]).tick_values(0.0, max(span, 1e-9))
    return [float(v) for v in values if 0 <= v <= span]


def utilisation(runs: Sequence[Plotted], *, prefix: str) -> str:
    """Busy share of the capacity over time; for one run also where the idle part went."""

    def draw(axes: Axes) -> None:
        begin, unit = _time_axis(axes, runs)
        for number, run in enumerate(runs):
            edges, capacity = run.curves.capacity.bin_means(BINS)
            capacity = np.where(capacity > 0, capacity, np.nan)
            x = (edges - begin) / unit
            busy = run.curves.busy.bin_means(BINS)[1] / capacity
            if len(runs) == 1:
                held = run.curves.held_back.bin_means(BINS)[1] / capacity
                fragmented = run.curves.fragmented.bin_means(BINS)[1] / capacity
                levels = (np.zeros(BINS), busy, busy + held, busy + held + fragmented)
                for low, high, colour in zip(
                    levels, levels[1:], (COLOURS[0], _PARTS["held"], _PARTS["fragmented"]), strict=False
                ):
                    axes.fill_between(x, _closed(low), _closed(high), step="post", color=colour, linewidth=0)
            else:
                _line(axes, x, busy, number)
        axes.set_ylim(0, 1.02)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{100 * v:.0f} %"))

    return over_time(draw, prefix, "Utilisation over time")


def power(runs: Sequence[Plotted], *, prefix: str) -> str:
    """Power over time; for one run also how much of it the jobs drew. At least one run has an energy
    profile."""
    measured = [(number, run.energy) for number, run in enumerate(runs) if run.energy is not None]
    peak = max((use.peak_power for _, use in measured), default=0.0)
    factor, unit = next(((f, u) for f, u in ((1e6, "MW"), (1e3, "kW")) if peak >= f), (1.0, "W"))
    if not all(use.absolute for _, use in measured):
        factor, unit = 1.0, "relative"

    def draw(axes: Axes) -> None:
        begin, span = _time_axis(axes, runs)
        for number, use in measured:
            edges, mean = use.power.bin_means(BINS)
            x = (edges - begin) / span
            if len(runs) == 1:
                jobs = use.busy_power.bin_means(BINS)[1] / factor
                axes.fill_between(x, _closed(jobs), step="post", color=COLOURS[0], alpha=0.25, linewidth=0)
            _line(axes, x, mean / factor, number)
        axes.set_ylim(bottom=0)
        axes.set_ylabel(unit)

    return over_time(draw, prefix, "Power over time")


def queue_length(runs: Sequence[Plotted], *, prefix: str) -> str:
    """Jobs waiting, over time."""

    def draw(axes: Axes) -> None:
        begin, unit = _time_axis(axes, runs)
        for number, run in enumerate(runs):
            edges, mean = run.curves.queue_length.bin_means(BINS)
            x = (edges - begin) / unit
            if len(runs) == 1:
                axes.fill_between(x, _closed(mean), step="post", color=COLOURS[0], alpha=0.25, linewidth=0)
            _line(axes, x, mean, number)
        axes.set_ylim(bottom=0)
        axes.set_ylabel("jobs")

    return over_time(draw, prefix, "Queue length over time")


def wait_distribution(runs: Sequence[Plotted], *, prefix: str) -> str:
    """Which share of the jobs waited at most so long; waits under a second count as one second."""

    def draw(axes: Axes) -> None:
        longest = 60.0
        for number, run in enumerate(runs):
            waits = np.sort(run.columns.wait[run.columns.started])
            if not len(waits):
                continue
            longest = max(longest, float(waits[-1]))
            # Enough quantiles for any screen; all values if there are fewer.
            ranks = np.unique(np.linspace(0, len(waits) - 1, min(len(waits), 1000)).astype(np.int64))
            x = np.maximum(waits[ranks], 1.0)
            axes.plot(
                np.concatenate((x, [1e12])),
                np.concatenate(((ranks + 1) / len(waits), [1.0])),
                drawstyle="steps-post", color=COLOURS[number % SERIES], linestyle=DASHES[number % SERIES],
            )  # fmt: skip
        axes_of_waits(axes, longest)

    return svg(draw, prefix, "Distribution of waits", width=THIRD, height=2.8)


def axes_of_waits(axes: Axes, longest: float) -> None:
    """Axes of a cumulative distribution of waits up to ``longest``, seconds."""
    axes.set_xscale("log")
    axes.set_xlim(1.0, longest * 1.1)
    axes.xaxis.set_major_locator(FixedLocator([m for m in TIME_MARKS if m <= longest * 1.1]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: TIME_MARKS.get(round(v), "")))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_ylim(0, 1.02)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{100 * v:.0f} %"))
    axes.set_xlabel("wait")
    axes.set_ylabel("jobs with at most this wait")


def slowdown_by_size(runs: Sequence[Plotted], *, prefix: str) -> str:
    """Median (dot) and 90th percentile (bar end) of the bounded slowdown, by processors."""
    bounds = np.array(SIZE_CLASSES)
    names = [str(low) if high == low + 1 else f"{low}–{high - 1}" for low, high in pairwise(SIZE_CLASSES)] + [
        f"≥ {SIZE_CLASSES[-1]}"
    ]
    classes = [np.searchsorted(bounds, run.columns.processors, side="right") - 1 for run in runs]
    label = "processors"
    if len(np.unique(np.concatenate(classes))) > MOST_RANGES:
        names, label = [*map(str, SIZE_CLASSES[:-1]), names[-1]], "processors, lower bound"
    return _by_class(runs, classes, names, label, prefix, "Bounded slowdown by size")


def slowdown_by_runtime(runs: Sequence[Plotted], *, prefix: str) -> str:
    """Median (dot) and 90th percentile (bar end) of the bounded slowdown, by runtime."""
    bounds = np.array([bound for bound, _ in RUNTIME_CLASSES[:-1]])
    classes = [np.searchsorted(bounds, run.columns.runtime, side="right") for run in runs]
    names = [name for _, name in RUNTIME_CLASSES]
    return _by_class(runs, classes, names, "runtime", prefix, "Bounded slowdown by runtime")


def _by_class(
    runs: Sequence[Plotted],
    classes: Sequence[NDArray[np.int64]],
    names: Sequence[str],
    label: str,
    prefix: str,
    title: str,
) -> str:
    slowdowns = [run.columns.bounded_slowdown for run in runs]
    measured = [c[~np.isnan(s)] for c, s in zip(classes, slowdowns, strict=True)]
    present = [int(c) for c in np.unique(np.concatenate(measured)) if c >= 0]

    def draw(axes: Axes) -> None:
        width = 0.7 / max(len(runs), 1)
        for number, (class_, slowdown) in enumerate(zip(classes, slowdowns, strict=True)):
            colour = COLOURS[number % SERIES]
            for place, which in enumerate(present):
                values = slowdown[(class_ == which) & ~np.isnan(slowdown)]
                if not len(values):
                    continue
                median, high = np.percentile(values, (50, 90))
                x = place + (number - (len(runs) - 1) / 2) * width
                axes.plot([x, x], [median, high], color=colour, linewidth=min(6.0, 30 * width), alpha=0.55,
                          solid_capstyle="butt")  # fmt: skip
                axes.plot([x], [median], marker="o", markersize=5, color=colour)
        axes.set_yscale("log")
        axes.set_ylim(0.9, max(axes.get_ylim()[1], 10.5))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}" if v < 1e5 else f"{v:.0e}"))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.set_xticks(range(len(present)), [names[p] for p in present])
        axes.tick_params(axis="x", labelsize=8)
        axes.set_xlim(-0.6, max(len(present), 1) - 0.4)
        axes.set_xlabel(label)

    return svg(draw, prefix, title, width=THIRD, height=2.8)


def times_by_class(runs: Sequence[Plotted], bounds: Sequence[ClassBounds], what: str, *, prefix: str) -> str:
    """Box plots of each job's ``what`` (wait or turnaround), of all jobs and of each class; logarithmic.

    A box is the middle half with the median, whiskers reach from the 5th to the 95th percentile, the dot is
    the mean. Less than a second counts as one.
    """
    classes = [b.of(r.columns.processors, r.columns.runtime) for r, b in zip(runs, bounds, strict=True)]
    values = [getattr(run.columns, what) for run in runs]

    def draw(axes: Axes) -> None:
        width = 0.75 / max(len(runs), 1)
        longest = 60.0
        for number, (class_, seconds) in enumerate(zip(classes, values, strict=True)):
            colour = COLOURS[number % SERIES]
            known = ~np.isnan(seconds)
            for place in range(len(CLASSES) + 1):
                here = seconds[known if place == 0 else known & (class_ == place - 1)]
                if not len(here):
                    continue
                low, first, median, third, high = np.maximum(np.percentile(here, (5, 25, 50, 75, 95)), 1.0)
                mean = max(float(here.mean()), 1.0)
                longest = max(longest, high, mean)
                x = place + (number - (len(runs) - 1) / 2) * width
                left, right, cap, gap = x - 0.4 * width, x + 0.4 * width, 0.2 * width, float("nan")
                # The box, then each whisker with its end. As one line: matplotlib's own box plot looks at all
                # of its settings for each, which has it load what it has for windows.
                outline = [
                    (left, first), (right, first), (right, third), (left, third), (left, first), (gap, gap),
                    (x, first), (x, low), (gap, gap), (x - cap, low), (x + cap, low), (gap, gap),
                    (x, third), (x, high), (gap, gap), (x - cap, high), (x + cap, high),
                ]  # fmt: skip
                axes.plot(*zip(*outline, strict=True), color=colour, linewidth=1.1)
                axes.plot([left, right], [median, median], color=colour, linewidth=2.2)
                axes.plot([x], [mean], marker="o", markersize=3.5, color=colour)
        axes.set_yscale("log")
        axes.set_ylim(0.8, longest * 1.3)
        axes.yaxis.set_major_locator(FixedLocator([m for m in TIME_MARKS if m <= longest * 1.3]))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda v, _: TIME_MARKS.get(round(v), "")))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.set_xticks(range(len(CLASSES) + 1), ["all", *CLASSES])
        axes.set_xlim(-0.6, len(CLASSES) + 0.6)

    return svg(draw, prefix, f"{what.capitalize()} by class", width=THIRD, height=2.8)


def _time_axis(axes: Axes, runs: Sequence[Plotted]) -> tuple[float, float]:
    begin = min(run.curves.busy.begin for run in runs)
    end = max(run.curves.busy.end for run in runs)
    unit, name = time_unit(end - begin)
    axes.set_xlim(0, max((end - begin) / unit, 1e-9))
    axes.set_xlabel(f"{name} since the beginning")
    return begin, unit


def _line(axes: Axes, edges: Floats, values: Floats, number: int) -> None:
    axes.plot(
        edges, _closed(values), drawstyle="steps-post", linewidth=1.2,
        color=COLOURS[number % SERIES], linestyle=DASHES[number % SERIES],
    )  # fmt: skip


def _closed(values: Floats) -> Floats:
    """One value more, so that the last bin is drawn too."""
    return np.append(values, values[-1])


def over_time(draw: Callable[[Axes], None], prefix: str, title: str, *, whole: bool = False) -> str:
    """A plot over time in each of :data:`SHAPES`, as elements of a page: letters keep their size. ``whole``:
    only whole numbers are marked."""

    def shaped(marks: int) -> Callable[[Axes], None]:
        def drawn(axes: Axes) -> None:
            draw(axes)
            axes.xaxis.set_major_locator(MaxNLocator(nbins=marks, integer=whole, steps=[1, 2, 2.5, 5, 10]))

        return drawn

    return "".join(
        f'<div class="{shape}">{svg(shaped(marks), prefix + shape[0], title, width=wide, height=high)}</div>'
        for shape, wide, high, marks in SHAPES
    )


def svg(
    draw: Callable[[Axes], None], prefix: str, title: str, *, width: float = 11.4, height: float = 2.5
) -> str:
    """Draws into a new figure and makes its SVG fit to stand in a page, its ids beginning with ``prefix``."""
    with matplotlib.rc_context(_STYLE):
        # Without a rectangle, which matplotlib allows and does not tell: for one, all is measured again.
        layout = TightLayoutEngine(pad=0.4, rect=None)  # type: ignore[arg-type]
        figure = Figure(figsize=(width, height), layout=layout)
        figure.patch.set_alpha(0)
        axes = figure.add_subplot()
        axes.patch.set_alpha(0)
        draw(axes)
        stream = io.StringIO()
        FigureCanvasSVG(figure).print_svg(stream, metadata={"Date": None, "Creator": None})
    text = stream.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S)
    text = re.sub(r"<!--.*?-->\s*", "", text, flags=re.S)
    text = re.sub(r' xmlns(:\w+)?="[^"]*"', "", text)
    text = text.replace("xlink:href", "href")
    text = re.sub(r' id="([^"]+)"', rf' id="{prefix}-\1"', text)
    text = re.sub(r"url\(#([^)]+)\)", rf"url(#{prefix}-\1)", text)
    text = re.sub(r'href="#([^"]+)"', rf'href="#{prefix}-\1"', text)
    text = re.sub(r"(font: [^;\"]*?px) [^;\"]*", r"\1 system-ui, sans-serif", text)
    for colour, variable in _VARIABLES.items():
        text = text.replace(colour, variable)
    box = re.search(r'viewBox="[^"]*"', text)
    assert box is not None
    head = f'<svg {box.group()} role="img" aria-label="{title}">'
    return head + text[text.index(">") + 1 :]
