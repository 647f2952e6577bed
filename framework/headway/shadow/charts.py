"""The charts of a shadow report. There is no text in them but numbers and our own words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from headway.report.drawing import Axes
from headway.report.plots import COLOURS, DASHES, THIRD, axes_of_waits, over_time, svg, time_unit
from headway.shadow.comparing import Curves
from headway.shadow.findings import Row
from headway.shadow.intervals import Compared

Floats = NDArray[np.float64]


def waits_over_time(curves: Curves, *, prefix: str) -> str:
    """Mean wait of the jobs by when they were submitted."""
    longest = max((float(np.nanmax(one)) for one in curves.waits if not np.isnan(one).all()), default=1.0)
    unit, name = time_unit(longest)
    return _over_time(curves, [one / unit for one in curves.waits], f"mean wait, {name}", "Waits", prefix)


def queues_over_time(curves: Curves, *, prefix: str) -> str:
    """Waiting jobs."""
    return _over_time(curves, curves.queues, "waiting jobs", "Waiting jobs", prefix)


def _over_time(curves: Curves, lines: Sequence[Floats], label: str, title: str, prefix: str) -> str:
    begin = float(curves.times[0]) if len(curves.times) else 0.0
    unit, name = time_unit(float(curves.times[-1]) - begin if len(curves.times) else 1.0)

    def draw(axes: Axes) -> None:
        for number, values in enumerate(lines):
            axes.plot((curves.times - begin) / unit, values, color=COLOURS[number], linestyle=DASHES[number],
                      linewidth=1.4, marker="o", markersize=2)  # fmt: skip
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=0)
        axes.set_xlabel(f"{name} since the beginning of the record")
        axes.set_ylabel(label)

    return over_time(draw, prefix, title)


def distribution(curves: Curves, *, prefix: str) -> str:
    """Which share of the jobs waited at most so long."""
    longest = max((float(one[-1]) for one in curves.distribution if len(one)), default=60.0)
    longest = max(longest, 60.0)

    def draw(axes: Axes) -> None:
        for number, waits in enumerate(curves.distribution):
            shares = np.arange(1, len(waits) + 1) / max(len(waits), 1)
            axes.plot(np.append(np.maximum(waits, 1.0), 1e12), np.append(shares, 1.0), drawstyle="steps-post",
                      color=COLOURS[number], linestyle=DASHES[number])  # fmt: skip
        axes_of_waits(axes, longest)

    return svg(draw, prefix, "Distribution of waits", width=THIRD, height=2.8)


def by_hour(rows: Sequence[Row], what: str, *, prefix: str) -> str:
    """Two bars an hour of the day: ``"wait"`` or ``"use"``."""
    found: list[Compared] = [getattr(row, what) for row in rows]
    heights = np.array([[one.system.mean or 0.0, one.headway.mean or 0.0] for one in found]).reshape(-1, 2)
    unit, label = (0.01, "% in use") if what == "use" else time_unit(float(heights.max(initial=1.0)))
    if what == "wait":
        label = f"mean wait, {label}"

    def draw(axes: Axes) -> None:
        places = np.array([int(row.name[:2]) for row in rows], np.float64)
        for number in range(2):
            axes.bar(places + (number - 0.5) * 0.4, heights[:, number] / unit, width=0.38,
                     color=COLOURS[number])  # fmt: skip
        axes.set_xlim(-0.6, 23.6)
        axes.set_xticks(range(0, 24, 3), [f"{hour}:00" for hour in range(0, 24, 3)])
        axes.set_ylim(bottom=0)
        axes.set_ylabel(label)

    return svg(draw, prefix, f"{what} by hour of the day", width=THIRD, height=2.8)
