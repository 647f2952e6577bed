"""What each chart of the report shows, in sentences: for whoever does not see it, or wants its figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from headway.metrics.steps import Steps
from headway.model.classes import CLASSES, ClassBounds
from headway.report import gantt, quantities
from headway.results import RunResult

if TYPE_CHECKING:
    from headway.report.plots import Plotted

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Told:
    """A run, as sentences tell it."""

    #: What the sentences about it begin with; "": there is one run only.
    label: str
    run: Plotted
    result: RunResult

    def say(self, text: str) -> str:
        """A sentence about it."""
        return f"{self.label}: {text}." if self.label else f"{text[:1].upper()}{text[1:]}."


def all_words(
    labels: Sequence[str], runs: Sequence[Plotted], results: Sequence[RunResult]
) -> dict[str, list[str]]:
    """For each plot of the page, by the template's name of it, a sentence a run."""
    shown = labels if len(labels) > 1 else [""]
    told = [Told(*one) for one in zip(shown, runs, results, strict=True)]
    tellers: dict[str, Callable[[Told], str]] = {
        "utilisation": _utilisation,
        "queue": _queue,
        "power": _power,
        "wait": _wait,
        "size": _by_size,
        "runtime": _by_runtime,
        "class_wait": lambda one: _by_class(one, one.run.columns.wait),
        "class_turnaround": lambda one: _by_class(one, one.run.columns.turnaround),
    }
    return {name: [text for one in told if (text := tell(one))] for name, tell in tellers.items()}


def schedule(result: RunResult, run: Plotted) -> str:
    """What the Gantt chart shows."""
    columns = run.columns
    started = int(columns.started.sum())
    work = np.nan_to_num(columns.runtime) * columns.allocated
    names, index = gantt.users_by_work(result, columns)
    whole = float(work.sum())
    parts = [
        f"{name or '(no name)'} {quantities.share(float(work[index == at].sum()) / whole)}"
        for at, name in enumerate(names[:5])
        if whole > 0
    ]
    text = f"{quantities.number(started)} jobs ran within {quantities.duration(_length(run.curves.busy))}"
    return f"{text}; most of the work: {', '.join(parts)}." if parts else f"{text}."


def _length(curve: Steps) -> float:
    return float(curve.end - curve.begin)


def _utilisation(one: Told) -> str:
    busy, capacity = one.run.curves.busy, one.run.curves.capacity
    possible = capacity.integral()
    if not possible > 0:
        return ""
    from headway.report.plots import BINS

    means = np.divide(busy.bin_means(BINS)[1], np.maximum(capacity.bin_means(BINS)[1], 1e-9))
    least, most = float(means.min()), min(1.0, float(means.max()))
    full = float((means >= 0.9).mean())
    return one.say(
        f"{quantities.share(busy.integral() / possible)} of the capacity was used, in the mean; between "
        f"{quantities.share(least)} and {quantities.share(most)}, and at least 90 % for "
        f"{quantities.share(full)} of the time"
    )


def _queue(one: Told) -> str:
    curve = one.run.curves.queue_length
    if not _length(curve) > 0:
        return ""
    empty = float(curve.durations[curve.values == 0].sum()) / _length(curve)
    most = curve.maximum()
    at = float(curve.times[int(np.argmax(np.where(curve.durations > 0, curve.values, -1)))]) - curve.begin
    return one.say(
        f"{quantities.number(curve.mean())} jobs waited in the mean, at most {quantities.number(most)} "
        f"({quantities.duration(at)} after the beginning), and none for {quantities.share(empty)} of the time"
    )


def _power(one: Told) -> str:
    use = one.run.energy
    if use is None:
        return ""
    write = quantities.watts if use.absolute else quantities.number
    return one.say(f"{write(use.mean_power)} in the mean, at most {write(use.peak_power)}")


def _wait(one: Told) -> str:
    waits = one.run.columns.wait[one.run.columns.started]
    if not len(waits):
        return ""
    half, nine, longest = (float(value) for value in np.percentile(waits, (50, 90, 100)))
    return one.say(
        f"half of the jobs waited at most {quantities.duration(half)}, 90 % at most "
        f"{quantities.duration(nine)}, the longest {quantities.duration(longest)}; "
        f"{quantities.share(float((waits < 1).mean()))} waited less than a second"
    )


def _classed(one: Told, classes: NDArray[np.int64], names: Sequence[str]) -> str:
    slowdowns = one.run.columns.bounded_slowdown
    parts = []
    for which, name in enumerate(names):
        values = slowdowns[(classes == which) & ~np.isnan(slowdowns)]
        if len(values):
            median, high = (quantities.number(float(value)) for value in np.percentile(values, (50, 90)))
            parts.append(f"{name} {median} ({high})")
    return one.say(f"median (90th percentile): {'; '.join(parts)}") if parts else ""


def _by_size(one: Told) -> str:
    from headway.report.plots import SIZE_CLASSES

    classes = np.searchsorted(np.array(SIZE_CLASSES), one.run.columns.processors, side="right") - 1
    names = [f"from {low} processor{'' if low == 1 else 's'} on" for low in SIZE_CLASSES]
    return _classed(one, classes, names)


def _by_runtime(one: Told) -> str:
    from headway.report.plots import RUNTIME_CLASSES

    bounds = np.array([bound for bound, _ in RUNTIME_CLASSES[:-1]])
    classes = np.searchsorted(bounds, one.run.columns.runtime, side="right")
    return _classed(one, classes, [name for _, name in RUNTIME_CLASSES])


def _by_class(one: Told, seconds: Floats) -> str:
    bounds: ClassBounds = one.result.class_bounds
    classes = bounds.of(one.run.columns.processors, one.run.columns.runtime)
    known = ~np.isnan(seconds)
    parts = []
    for place, name in enumerate(("all", *CLASSES)):
        here = seconds[known if place == 0 else known & (classes == place - 1)]
        if len(here):
            first, median, third = (
                quantities.duration(float(value)) for value in np.percentile(here, (25, 50, 75))
            )
            parts.append(f"{name} {median} ({first} to {third})")
    return one.say(f"median (middle half): {'; '.join(parts)}") if parts else ""
