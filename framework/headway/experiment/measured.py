"""The numbers of one emulation that campaigns compare, over all of its jobs or over a window of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from headway.experiment.method import Method, Trim
from headway.experiment.statistics import batch_interval, batch_means, skew
from headway.experiment.steady import Window, automatic_cool_down, automatic_warm_up, rise
from headway.metrics import Figures, JobColumns, Summary
from headway.metrics.classes import metrics_by_class
from headway.metrics.jobs import bounded_slowdown
from headway.metrics.summary import statistics
from headway.model.classes import ClassBounds
from headway.results import RunResult
from headway.workload.jobs import REQUESTED_START

Floats = NDArray[np.float64]

#: Seconds: other bounds of the bounded slowdown than the usual 10, to see whether a result depends on it.
OTHER_BOUNDS = (1, 60)

#: Of which metrics the means over 30 batches of the measured jobs are kept, for intervals within one run.
BATCHED = ("mean wait", "mean bounded slowdown", "geometric mean bounded slowdown")

#: Figures of classes of jobs.
_BY_CLASS = ("wait", "turnaround", "slowdown")


@dataclass(frozen=True)
class Course:
    """What is kept of a run until it is known which of its jobs are measured. One value a job, by
    submission."""

    columns: JobColumns
    #: Requested start of a dedicated job, seconds; NaN of others.
    wanted: Floats
    #: Ended at its limit.
    at_limit: NDArray[np.bool_]
    #: Submitted in prime time (:mod:`headway.experiment.prime_time`); None: the workload has no calendar.
    prime: NDArray[np.bool_] | None
    bounds: ClassBounds
    #: Figures of the run as a whole.
    whole: dict[str, float]
    energy: dict[str, float]
    #: "user" and "account" (without one, the group) -> a number for each job's; -1: it has none.
    holders: dict[str, NDArray[np.int64]] = field(default_factory=dict)

    @property
    def wait(self) -> Floats:
        """Submission (of a dedicated job: requested start) to start, seconds; NaN: never started."""
        due = np.fmax(self.columns.submit, self.wanted)
        return self.columns.start - due


@dataclass(frozen=True)
class Measured:
    """A run's numbers."""

    values: dict[str, float]
    #: Means of batches, in order of submission, of the metrics of :data:`BATCHED`; empty for fewer jobs.
    batches: dict[str, list[float]]


def measure(result: RunResult) -> dict[str, float]:
    """The numbers that campaigns compare, over all jobs.

    Beside the usual means: ``slowdown of means`` = (mean wait + mean runtime) / mean runtime (Kumar
    and others 2012), and the wait of a dedicated job counted from its requested start. The means of
    the classes ("mean wait SN") and the slowdown ratio count every wait from the submission (Chandio
    and others 2014).
    """
    return figures(observed(result), None).values


def observed(
    result: RunResult,
    prime: NDArray[np.bool_] | None = None,
    *,
    known: Figures | None = None,
    by_holder: bool = True,
) -> Course:
    """What is kept of a run. ``prime``: which of its jobs were submitted in prime time; ``known``: its
    figures, if there are any yet; ``by_holder``: users and accounts are kept, too."""
    known = known or Figures(result)
    columns, summary = known.columns, known.summary
    count = len(result.jobs)
    nan = float("nan")
    wanted = np.full(count, nan)
    at_limit = np.zeros(count, np.bool_)
    for at, job in enumerate(result.jobs):
        if job.job.attributes:
            wanted[at] = float(job.job.attributes.get(REQUESTED_START, nan))
        if job.state == "timed out":
            at_limit[at] = True
    return Course(
        columns=columns,
        wanted=wanted,
        at_limit=at_limit,
        prime=prime,
        bounds=result.class_bounds,
        whole=_whole(summary, columns, at_limit, result),
        energy=_of_energy(summary),
        holders={
            "user": _numbered([job.job.user for job in result.jobs]),
            "account": _numbered([job.job.account or job.job.group for job in result.jobs]),
        }
        if by_holder
        else {},
    )


def _whole(
    summary: Summary, columns: JobColumns, at_limit: NDArray[np.bool_], result: RunResult
) -> dict[str, float]:
    """Figures of the run as a whole: how the machine did, and what was left."""
    system = summary["system"]
    nan = float("nan")
    last = float(columns.submit.max()) if len(columns.submit) else nan
    offered, achieved = _number(system["offered_load"]), _number(system["utilisation_while_arriving"])
    work = columns.runtime * columns.allocated
    total = float(np.nansum(work))
    waiting = columns.finished & (columns.start > last)
    # The share of the offered work that waits, times the offered load: a share of what the machine could do.
    deficit = offered * float(work[waiting].sum()) / total if total > 0 else nan
    unfinished = ~(columns.end <= last)
    held = float(np.nansum(columns.runtime * np.maximum(columns.allocated - columns.processors, 0)))
    refused = summary["counts"]["by_state"].get("refused", 0)
    waits = columns.wait[~np.isnan(columns.wait)]
    rising = rise(waits)
    return {
        "utilisation": _number(system["utilisation"]),
        "makespan": _number(system["makespan"]),
        "offered load": offered,
        "achieved load": achieved,
        "queued deficit": deficit,
        "wait rise tau": rising.tau,
        "wait rise p": rising.p,
        "unfinished at last submission": float(unfinished.sum()),
        "processors of unfinished": _mean(columns.processors[unfinished]),
        "refused": float(len(result.refused)),
        "never started": float((~columns.started).sum() - refused),
        "unfinished": float((columns.started & ~columns.finished).sum()),
        "ended at limit": float(at_limit.sum()),
        "internal fragmentation": held / total if total > 0 else nan,
    }


def aligned(courses: Sequence[Course], rows: Sequence[Sequence[int]]) -> list[Course]:
    """Courses of one workload whose jobs came in different orders, or not all of them: the jobs that are in
    all courses, in the order of ``rows``, which are the rows of the workload that the jobs of each course
    came from."""
    common = reduce(np.intersect1d, (np.array(one, np.int64) for one in rows))
    found = []
    for course, theirs in zip(courses, rows, strict=True):
        order = np.argsort(np.array(theirs, np.int64))
        which = order[np.searchsorted(np.array(theirs, np.int64)[order], common)]
        found.append(
            replace(
                course,
                columns=_part(course.columns, which),
                wanted=course.wanted[which],
                at_limit=course.at_limit[which],
                prime=None if course.prime is None else course.prime[which],
                holders={name: whose[which] for name, whose in course.holders.items()},
            )
        )
    return found


def common_window(courses: Sequence[Course], method: Method) -> Window | None:
    """The jobs that are measured of all these runs of one workload; None: all."""
    if not courses or (method.warmup == Trim() and method.cooldown == Trim()):
        return None
    # In the workload's order, which is that of submissions unless these react to ends.
    submit = np.maximum.accumulate(courses[0].columns.submit)
    count = len(submit)
    if not count:
        return None
    first, unsteady = 0, False
    if method.warmup.automatic:
        found = [automatic_warm_up(course.wait[~np.isnan(course.wait)]) for course in courses]
        first, unsteady = max(one.jobs for one in found), any(one.half for one in found)
    elif method.warmup.jobs is not None:
        first = min(method.warmup.jobs, count)
    elif method.warmup.seconds is not None:
        first = int(np.searchsorted(submit, submit[0] + method.warmup.seconds))
    last = count
    if method.cooldown.automatic:
        last = min(automatic_cool_down(c.columns.end, first, float(c.columns.submit.max())) for c in courses)
    elif method.cooldown.jobs is not None:
        last = max(first, count - method.cooldown.jobs)
    elif method.cooldown.seconds is not None:
        last = int(np.searchsorted(submit, submit[-1] - method.cooldown.seconds, side="right"))
    return Window(first, max(first, last), unsteady)


def figures(course: Course, window: Window | None) -> Measured:
    """The numbers of a run; the numbers of jobs are over the window."""
    here = slice(None) if window is None else slice(window.first, window.last)
    columns = _part(course.columns, here)
    finished = columns.finished
    wait = course.wait[here]
    wanted = course.wanted[here]
    nobody = np.zeros(len(wait), np.bool_)
    day, night = (nobody, nobody) if course.prime is None else (course.prime[here], ~course.prime[here])
    waits, runtimes = wait[finished], columns.runtime[finished]
    delays = wait[finished & ~np.isnan(wanted)]
    mean_wait, mean_runtime = _mean(waits), _mean(runtimes)
    bounded = columns.bounded_slowdown[finished]
    other = {
        f"mean bounded slowdown at {bound} s": _mean(bounded_slowdown(columns, float(bound))[finished])
        for bound in OTHER_BOUNDS
    }
    skewed, spread = skew(bounded.tolist()), skew(waits.tolist())
    whole = dict(course.whole)
    of_batches = batch_interval(batch_means(waits.tolist()))
    values = {
        "jobs": float(course.columns.finished.sum()),
        "utilisation": whole.pop("utilisation"),
        "mean wait": mean_wait,
        "mean runtime": mean_runtime,
        "total runtime": float(np.nansum(course.columns.runtime)),
        "slowdown of means": (mean_wait + mean_runtime) / mean_runtime if mean_runtime else float("nan"),
        "mean bounded slowdown": _mean(bounded),
        "makespan": whole.pop("makespan"),
        "mean dedicated delay": _mean(delays),
        **_of_classes(columns, course.bounds),
        "measured jobs": float(finished.sum()),
        "first measured": 0.0 if window is None else float(window.first),
        "unsteady": float(window is not None and window.unsteady),
        "median wait": spread.median,
        "p95 wait": float(np.percentile(waits, 95)) if len(waits) else float("nan"),
        "top 1 % of wait": spread.top,
        "half width of batches": of_batches.interval.half,
        "correlation of batches": of_batches.correlation,
        "share waiting": _mean(waits > 0),
        "mean wait of those that waited": _mean(waits[waits > 0]),
        "mean wait prime time": _mean(wait[finished & day]),
        "mean wait other time": _mean(wait[finished & night]),
        "median bounded slowdown": skewed.median,
        "geometric mean bounded slowdown": skewed.geometric,
        "top 1 % of bounded slowdown": skewed.top,
        **_by_holder(wait, {name: whose[here] for name, whose in course.holders.items()}),
        **other,
        **whole,
        **course.energy,
    }
    batches = {
        "mean wait": batch_means(waits.tolist()),
        "mean bounded slowdown": batch_means(bounded.tolist()),
        "geometric mean bounded slowdown": [float(np.exp(v)) for v in batch_means(np.log(bounded).tolist())],
    }
    return Measured(values, batches)


def _numbered(names: Sequence[str]) -> NDArray[np.int64]:
    """A number for each name, in the order in which they come up; -1 for none."""
    known: dict[str, int] = {"": -1}
    return np.fromiter((known.setdefault(name, len(known) - 1) for name in names), np.int64, len(names))


def _by_holder(wait: Floats, holders: Mapping[str, NDArray[np.int64]]) -> dict[str, float]:
    """The mean over all users with jobs here of the mean wait of their jobs, and the longest such mean."""
    found = {}
    for name, whose in holders.items():
        counted = (whose >= 0) & ~np.isnan(wait)
        _, who = np.unique(whose[counted], return_inverse=True)
        means = np.bincount(who, wait[counted]) / np.bincount(who) if counted.any() else wait[:0]
        found[f"mean wait by {name}"] = _mean(means)
        found[f"worst mean wait by {name}"] = float(means.max()) if len(means) else float("nan")
    return found


def _part(columns: JobColumns, here: slice | NDArray[np.intp]) -> JobColumns:
    return replace(columns, **{part.name: getattr(columns, part.name)[here] for part in fields(columns)})


def _of_energy(summary: Summary) -> dict[str, float]:
    """What was used, where the cluster has an energy profile."""
    energy = summary["energy"]
    if energy is None:
        return {}
    return {
        "energy": _number(energy["total"]),
        "energy of jobs": _number(energy["busy"]),
        "peak power": _number(energy["peak_power"]),
    }


def _of_classes(columns: JobColumns, bounds: ClassBounds) -> dict[str, float]:
    """Means over all jobs, and over the jobs of each class under the metric's and the class's name."""
    found: dict[str, float] = {}
    measured = {name: getattr(columns, name) for name in _BY_CLASS}
    for name, of_class in metrics_by_class(columns, bounds, measured, statistics).items():
        ending = "" if name == "all" else f" {name}"
        means = {f"mean {key}{ending}": of_class[key]["mean"] for key in _BY_CLASS}
        means[f"slowdown ratio{ending}"] = of_class["slowdown_ratio"]
        # "mean wait" of all is there already, with the dedicated jobs' in its own way.
        found |= {key: _number(value) for key, value in means.items() if key != "mean wait"}
    return found


def _mean(values: Iterable[float] | NDArray[np.bool_] | Floats) -> float:
    data = np.asarray(values, np.float64)
    return float(data.mean()) if len(data) else float("nan")


def _number(value: float | None) -> float:
    return float("nan") if value is None else float(value)
