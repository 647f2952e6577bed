"""What a workload looks like: classes, widths and lengths, arrivals, load, sizes, estimates.

The study of a trace in A. A. Chandio, K. Bilal, N. Tziritas, Z. Yu, Q. Jiang, S. U. Khan, C.-Z. Xu, "A
comparative study on resource allocation and energy efficient job scheduling strategies in large-scale
parallel computing systems", 2014, section 4: its tables 3 (short and long), 4 (width x length) and 5 (four
classes), its figures 2 (offered load a day), 3 (arrivals), 4 (widths) and 5 (lengths). Sizes and estimates
are looked at as in D. G. Feitelson, "Workload Modeling for Computer Systems Performance Evaluation", 2015.

Everything is computed from the columns of a trace, without a loop over jobs. What was decided here:

- *Bins* are upper bounds, which belong to their bin. The paper's table 4 leaves gaps (from 1 to 2 minutes,
  from 24 to 32 processors and so on); here a job is in the first bin that holds it, so the table's "2-10 min"
  is more than 1 and at most 10 minutes, and its "2-24" is 2 to 32 processors.
- A job counts in a table if what the table needs is known: classes, cells and work need a runtime (0 is
  one) and a size (the processors asked for, else the processors that it got), arrivals only the submission.
- *Hours and days* follow the machine's clock. The header's ``TimeZoneString`` names its zone, with
  summer time; else ``TimeZone`` is added to UTC; else it is UTC. Without ``UnixStartTime`` the hour of time 0
  is unknown: it is taken as a midnight (which it is for workload models), and there are no weekdays.
- *Offered load* of a day is the work of the jobs that are submitted on it over what the machine can do in
  24 hours, on the first and the last day as well. The paper's figure 2 plots "the amount of queued
  work-load over time" in per cent; this is the reading that needs no schedule.
- *Estimates* are what users gave: a trace without them has no accuracy, although an emulation takes
  the runtimes then. A job was killed at its limit if its runtime is its estimate or more and its status is
  failed or cancelled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from headway.errors import UserError
from headway.model.classes import CLASSES, ClassBounds
from headway.workload.dispersion import dispersion, estimate_concentration, gap_variation
from headway.workload.emulation import sizes
from headway.workload.estimate_study import COLUMNS as ESTIMATE_COLUMNS
from headway.workload.estimate_study import estimate_study
from headway.workload.group_study import COLUMNS as GROUP_COLUMNS
from headway.workload.group_study import group_study
from headway.workload.trace import Column, Trace

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: A line of a table: column -> value; None for what does not exist.
Row = dict[str, Any]

HOUR, DAY = 3600.0, 86400.0

#: Seconds: the upper bounds of the length bins of the paper's table 4; the last bin has none.
LENGTH_BOUNDS = (60.0, 600.0, 1200.0, HOUR, 4 * HOUR, 8 * HOUR)
#: Processors: the bounds of its width bins.
WIDTH_BOUNDS = (1, 32)

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

#: Days (a century) beyond which a trace's submit times are no times any more, and days are not listed.
MOST_DAYS = 36_525

#: Seconds (30,000 years): a submit time beyond is none.
_LAST_TIME = 1e12

#: Epoch seconds that :mod:`datetime` can tell the date of, with a day to spare for zones.
_LAST_DATE = 253_402_300_799 - DAY

#: Summer time begins and ends on a quarter of an hour, everywhere.
_QUARTER = 900.0


@dataclass(frozen=True)
class Jobs:
    """The columns that the study looks at, one value a job; NaN for what the trace does not say."""

    submit: Floats
    #: Seconds.
    runtime: Floats
    #: Processors.
    size: Floats
    #: Seconds: what users gave, nothing in its place.
    estimate: Floats
    status: Floats

    @classmethod
    def of(cls, trace: Trace) -> Jobs:
        records = trace.records

        def known(values: Floats, least: float) -> Floats:
            return np.where(values >= least, values, np.nan)

        return cls(
            submit=records[:, Column.SUBMIT],
            runtime=known(records[:, Column.RUNTIME], 0),
            size=known(sizes(records), 1),
            estimate=known(records[:, Column.ESTIMATE], 1e-9),
            status=known(records[:, Column.STATUS], 0),
        )

    @property
    def measured(self) -> NDArray[np.bool_]:
        """True for a job whose runtime and size are known."""
        return ~(np.isnan(self.runtime) | np.isnan(self.size))

    @property
    def work(self) -> Floats:
        """Processor-seconds; 0 where it is not known."""
        return np.nan_to_num(self.size * self.runtime)


@dataclass(frozen=True)
class Clock:
    """The submissions on the machine's wall clock."""

    #: Seconds since the midnight with which day 0 begins.
    seconds: Floats
    #: The zone, for a person; "" if the hours are counted from the trace's time 0.
    zone: str
    #: The date of day 0; None: not known.
    first_day: date | None

    @property
    def day(self) -> Integers:
        return np.floor(self.seconds / DAY).astype(np.int64)

    @property
    def hour(self) -> Integers:
        """0 to 23."""
        return np.floor(np.mod(self.seconds, DAY) / HOUR).astype(np.int64)


@dataclass(frozen=True)
class Study:
    """All that was found; ``docs/outputs/study.md`` defines keys of ``summary`` and columns of ``tables``."""

    #: The trace's file, or the model.
    path: str
    bounds: ClassBounds
    #: Upper bounds of the bins of the cells: seconds, and processors.
    length_bounds: tuple[float, ...]
    width_bounds: tuple[int, ...]
    #: The zone of hours and days, for a person; "" if they are counted from the trace's time 0.
    zone: str
    summary: Row
    #: Name -> rows, all with the same columns.
    tables: dict[str, list[Row]]
    #: Columns of each table, in order.
    columns: dict[str, tuple[str, ...]]
    #: The jobs, for plots.
    jobs: Jobs
    #: What a reader has to know of the figures, a sentence each.
    notes: list[str] = field(default_factory=list)


def study(
    trace: Trace,
    *,
    processors: int | None = None,
    bounds: ClassBounds = ClassBounds(),  # noqa: B008 (frozen)
    length_bounds: Sequence[float] = LENGTH_BOUNDS,
    width_bounds: Sequence[int] = WIDTH_BOUNDS,
    zone: str | None = None,
) -> Study:
    """Study ``trace`` on a machine of ``processors`` (default: as its header says).

    ``length_bounds`` (seconds) and ``width_bounds`` (processors) are the upper bounds of the bins, rising;
    ``zone`` is the machine's time zone, such as "Europe/Stockholm", instead of the header's.

    Raises :class:`UserError` for bounds that do not rise from above 0, for an unknown zone, for a trace
    without jobs, and for submit times that cannot be any.
    """
    if not len(trace):
        raise UserError(f"{trace.path}: expected jobs to analyse, found none")
    submit = trace.records[:, Column.SUBMIT]
    if not np.abs(submit).max() <= _LAST_TIME:
        raise UserError(
            f"{trace.path}: expected submit times in seconds, found {submit.min():g} to {submit.max():g}"
        )
    _rising("lengths", length_bounds)
    _rising("widths", width_bounds)
    notes: list[str] = []
    if processors is None:
        processors = trace.max_processors
    if processors is None:
        notes.append("The header names no machine size: there is no load. (--processors N gives one.)")
    jobs = Jobs.of(trace)
    clock = clock_of(trace, zone, notes)
    tables = {
        "classes": class_rows(jobs, bounds),
        "cells": cell_rows(jobs, length_bounds, width_bounds),
        "hours": hour_rows(jobs, clock),
        "weekdays": weekday_rows(jobs, clock),
        "days": day_rows(jobs, clock, processors),
        "sizes": size_rows(jobs),
        "accuracy": accuracy_rows(jobs),
    }
    summary = summary_of(jobs, tables["days"], processors)
    figures, further = estimate_study(trace)
    summary |= figures
    tables |= further
    tables |= group_study(trace, processors)
    _remark(summary, jobs, clock, processors, notes)
    return Study(
        path=trace.path,
        bounds=bounds,
        length_bounds=tuple(map(float, length_bounds)),
        width_bounds=tuple(map(int, width_bounds)),
        zone=clock.zone,
        summary=summary,
        tables=tables,
        columns=COLUMNS,
        jobs=jobs,
        notes=notes,
    )


#: The columns of each table, in order.
COLUMNS: dict[str, tuple[str, ...]] = {
    "classes": (
        "class", "jobs", "share", "processor_seconds", "work_share", "mean_processors", "mean_runtime",
        "runtime_p25", "runtime_median", "runtime_p75", "runtime_p90", "runtime_max", "mean_accuracy",
    ),
    "cells": (
        "length_above", "length_to", "width_from", "width_to", "jobs", "share", "processor_seconds",
        "work_share",
    ),
    "hours": ("hour", "jobs", "share", "mean", "max", "processor_seconds", "work_share"),
    "weekdays": ("weekday", "days", "jobs", "share", "mean", "processor_seconds", "work_share"),
    "days": ("day", "weekday", "jobs", "processor_seconds", "load"),
    "sizes": ("from", "to", "jobs", "share", "powers_of_two", "processor_seconds", "work_share"),
    "accuracy": ("above", "to", "jobs", "share"),
    **ESTIMATE_COLUMNS,
    **GROUP_COLUMNS,
}  # fmt: skip


# --- classes and cells ----------------------------------------------------------------------------


def class_rows(jobs: Jobs, bounds: ClassBounds) -> list[Row]:
    """The four classes, their sums, and all jobs: counts, shares, work and runtimes."""
    which = bounds.of(jobs.size, jobs.runtime)
    known = which >= 0
    groups: dict[str, NDArray[np.bool_]] = {name: which == at for at, name in enumerate(CLASSES)}
    short, narrow = which % 2 == 0, which < 2
    groups |= {
        "narrow": known & narrow, "wide": known & ~narrow, "short": known & short, "long": known & ~short,
        "all": known,
    }  # fmt: skip
    accuracy = jobs.runtime / jobs.estimate
    count, work = int(known.sum()), float(jobs.work.sum())
    rows = []
    for name, here in groups.items():
        runtime = jobs.runtime[here]
        low, median, high, highest = _percentiles(runtime, (25, 50, 75, 90))
        mine = float(jobs.work[here].sum())
        rows.append({
            "class": name,
            "jobs": len(runtime),
            "share": _ratio(len(runtime), count),
            "processor_seconds": mine,
            "work_share": _ratio(mine, work),
            "mean_processors": _mean(jobs.size[here]),
            "mean_runtime": _mean(runtime),
            "runtime_p25": low,
            "runtime_median": median,
            "runtime_p75": high,
            "runtime_p90": highest,
            "runtime_max": float(runtime.max()) if len(runtime) else None,
            "mean_accuracy": _mean(accuracy[here & ~np.isnan(accuracy)]),
        })  # fmt: skip
    return rows


def cell_rows(jobs: Jobs, length_bounds: Sequence[float], width_bounds: Sequence[int]) -> list[Row]:
    """The width x length table, cell by cell: shortest first, narrowest first within."""
    here = jobs.measured
    length = np.searchsorted(np.asarray(length_bounds, np.float64), jobs.runtime[here], side="left")
    width = np.searchsorted(np.asarray(width_bounds, np.float64), jobs.size[here], side="left")
    columns = len(width_bounds) + 1
    cell = length * columns + width
    counts = np.bincount(cell, minlength=(len(length_bounds) + 1) * columns).tolist()
    work = np.bincount(cell, weights=jobs.work[here], minlength=len(counts)).tolist()
    total, all_work = sum(counts), sum(work)
    lengths: list[tuple[float, float | None]] = [*pairwise((0.0, *length_bounds)), (length_bounds[-1], None)]
    widths: list[tuple[int, int | None]] = [*pairwise((0, *width_bounds)), (width_bounds[-1], None)]
    return [
        {
            "length_above": above if above else None,
            "length_to": to,
            "width_from": wider + 1,
            "width_to": widest,
            "jobs": counts[row * columns + column],
            "share": _ratio(counts[row * columns + column], total),
            "processor_seconds": work[row * columns + column],
            "work_share": _ratio(work[row * columns + column], all_work),
        }
        for row, (above, to) in enumerate(lengths)
        for column, (wider, widest) in enumerate(widths)
    ]


# --- arrivals -------------------------------------------------------------------------------------


def clock_of(trace: Trace, zone: str | None = None, notes: list[str] | None = None) -> Clock:
    """The submissions on the machine's clock; ``zone`` counts instead of what the header says.

    Sentences on what could not be used go to ``notes``. Raises :class:`UserError` for an unknown ``zone``.
    """
    notes = notes if notes is not None else []
    given = named_zone(zone) if zone is not None else None
    if zone is not None and given is None:
        raise UserError(f"time zone: expected a name such as Europe/Stockholm or UTC, found {zone!r}")
    submit = trace.records[:, Column.SUBMIT]
    epoch = trace.epoch
    if epoch is None:
        notes.append(
            "The header has no UnixStartTime: hours and days are counted from the trace's time 0, "
            "and there are no weekdays."
        )
        return Clock(submit, "", None)
    times = submit + epoch
    if not (times.min() >= 0 and times.max() <= _LAST_DATE):
        notes.append(
            f"Submissions from {submit.min():g} to {submit.max():g} s after UnixStartTime {epoch} "
            "have no dates: hours and days are counted from the trace's time 0."
        )
        return Clock(submit, "", None)
    used, name = (given, str(zone)) if given is not None else _zone_of_header(trace, notes)
    local = times + _offsets(times, used)
    first = float(np.floor(local.min() / DAY))
    return Clock(local - first * DAY, name, date(1970, 1, 1) + timedelta(days=int(first)))


def named_zone(name: str) -> tzinfo | None:
    """The time zone of that name; None if it is unknown."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # unknown, no zone's name at all, a directory of zones
        return None


def _zone_of_header(trace: Trace, notes: list[str]) -> tuple[tzinfo, str]:
    name = trace.fields.get("TimeZoneString", "").strip()
    if name:
        found = named_zone(name)
        if found is not None:
            return found, name
        notes.append(f"TimeZoneString {name!r} is not known on this machine.")
    text = trace.fields.get("TimeZone", "").split("\n")[0].strip()
    if text:
        try:
            offset = timezone(timedelta(seconds=int(text)))
        except (ValueError, OverflowError):
            notes.append(f"TimeZone: expected seconds to add to UTC, less than a day; found {text!r}.")
        else:
            return offset, str(offset)
    notes.append("The header names no usable time zone: hours and days are in UTC.")
    return UTC, "UTC"


def _offsets(times: Floats, zone: tzinfo) -> Floats:
    """What to add to each epoch second for the zone's local time."""
    quarters, which = np.unique(np.floor(times / _QUARTER), return_inverse=True)
    offsets = np.empty(len(quarters))
    for at, quarter in enumerate((quarters * _QUARTER).tolist()):
        offset = datetime.fromtimestamp(quarter, zone).utcoffset()
        offsets[at] = offset.total_seconds() if offset is not None else 0.0
    return offsets[which.reshape(-1)]


def hour_rows(jobs: Jobs, clock: Clock) -> list[Row]:
    """Submissions in each hour of the day; ``mean`` and ``max`` are over the days of the trace."""
    hour, day = clock.hour, clock.day
    days = int(day.max() - day.min()) + 1
    counts = np.bincount(hour, minlength=24)
    single, in_single = np.unique(day * 24 + hour, return_counts=True)
    most = np.zeros(24, np.int64)
    np.maximum.at(most, single % 24, in_single)
    work = np.bincount(hour, weights=jobs.work, minlength=24)
    return [
        {
            "hour": at,
            "jobs": int(counts[at]),
            "share": _ratio(counts[at], counts.sum()),
            "mean": counts[at] / days,
            "max": int(most[at]),
            "processor_seconds": float(work[at]),
            "work_share": _ratio(work[at], work.sum()),
        }
        for at in range(24)
    ]


def weekday_rows(jobs: Jobs, clock: Clock) -> list[Row]:
    """Submissions on each day of the week, from Monday; none if the date is unknown."""
    if clock.first_day is None:
        return []
    day = clock.day
    shift = clock.first_day.weekday()
    weekday = (day + shift) % 7
    first, last = int(day.min()), int(day.max())
    counts = np.bincount(weekday, minlength=7)
    work = np.bincount(weekday, weights=jobs.work, minlength=7)
    rows = []
    for at, name in enumerate(WEEKDAYS):
        # Days d from first to last with (d + shift) % 7 = at.
        seen = (last + shift - at) // 7 - (first - 1 + shift - at) // 7
        rows.append({
            "weekday": name,
            "days": seen,
            "jobs": int(counts[at]),
            "share": _ratio(counts[at], counts.sum()),
            "mean": _ratio(counts[at], seen),
            "processor_seconds": float(work[at]),
            "work_share": _ratio(work[at], work.sum()),
        })  # fmt: skip
    return rows


def day_rows(jobs: Jobs, clock: Clock, processors: int | None) -> list[Row]:
    """Submissions and offered load of each day from the first to the last, including days without jobs.

    None at all for a trace of more than :data:`MOST_DAYS` days, whose submit times cannot be right.
    """
    day = clock.day
    first = int(day.min())
    days = int(day.max()) - first + 1
    if days > MOST_DAYS:
        return []
    counts = np.bincount(day - first, minlength=days).tolist()
    work = np.bincount(day - first, weights=jobs.work, minlength=days).tolist()
    rows = []
    for at in range(days):
        when = clock.first_day + timedelta(days=first + at) if clock.first_day is not None else None
        rows.append({
            "day": when.isoformat() if when is not None else str(first + at),
            "weekday": WEEKDAYS[when.weekday()] if when is not None else None,
            "jobs": counts[at],
            "processor_seconds": work[at],
            "load": work[at] / (processors * DAY) if processors else None,
        })  # fmt: skip
    return rows


# --- sizes and estimates --------------------------------------------------------------------------


def size_rows(jobs: Jobs) -> list[Row]:
    """Sizes between powers of two: 1, 2, 3-4, 5-8 and so on, and how many are powers of two."""
    here = ~np.isnan(jobs.size)
    size, work = jobs.size[here], jobs.work[here]
    if not len(size):
        return []
    level = np.ceil(np.log2(size)).astype(np.int64)
    bins = int(level.max()) + 1
    counts = np.bincount(level, minlength=bins).tolist()
    powers = np.bincount(level[power_of_two(size)], minlength=bins).tolist()
    weights = np.bincount(level, weights=work, minlength=bins).tolist()
    return [
        {
            "from": 2 ** (at - 1) + 1 if at else 1,
            "to": 2**at,
            "jobs": counts[at],
            "share": _ratio(counts[at], len(size)),
            "powers_of_two": powers[at],
            "processor_seconds": weights[at],
            "work_share": _ratio(weights[at], sum(weights)),
        }
        for at in range(bins)
    ]


def power_of_two(size: Floats) -> NDArray[np.bool_]:
    """Which sizes are powers of two, 1 among them."""
    return np.frexp(size)[0] == 0.5


def accuracy_rows(jobs: Jobs) -> list[Row]:
    """Runtime over estimate in tenths, then exact estimates (``above`` = ``to`` = 1), then ratios above 1."""
    accuracy = jobs.runtime / jobs.estimate
    accuracy = accuracy[~np.isnan(accuracy)]
    tenths = np.arange(1, 11) / 10
    # The bin of a tenth ends with it, but exact estimates have a row of their own.
    below = np.searchsorted(tenths, accuracy[accuracy < 1], side="left")
    counts = [*np.bincount(below, minlength=10).tolist(), int((accuracy == 1).sum())]
    counts.append(int((accuracy > 1).sum()))
    edges: list[tuple[float | None, float | None]] = [(None, 0.1)]
    edges += [(at / 10, (at + 1) / 10) for at in range(1, 10)]
    edges += [(1.0, 1.0), (1.0, None)]
    return [
        {"above": above, "to": to, "jobs": count, "share": _ratio(count, len(accuracy))}
        for (above, to), count in zip(edges, counts, strict=True)
    ]


# --- the whole ------------------------------------------------------------------------------------


def summary_of(jobs: Jobs, days: Sequence[Row], processors: int | None) -> Row:
    """One figure each: jobs, time, load, sizes, runtimes, estimates. ``days`` are :func:`day_rows`."""
    submit, size, runtime, estimate = jobs.submit, jobs.size, jobs.runtime, jobs.estimate
    first, last = float(submit.min()), float(submit.max())
    span, work = last - first, float(jobs.work.sum())
    loads = [row["load"] for row in days if row["load"] is not None]
    known = size[~np.isnan(size)]
    parallel = known[known > 1]
    accuracy = runtime / estimate
    judged = ~np.isnan(accuracy)
    at_limit = judged & (runtime >= estimate)
    estimated = int(judged.sum())
    status_known = bool((~np.isnan(jobs.status)).any())
    killed = at_limit & np.isin(jobs.status, (0, 5))
    return {
        "jobs": len(submit),
        "measured": int(jobs.measured.sum()),
        "unknown_runtime": int(np.isnan(runtime).sum()),
        "unknown_size": int(np.isnan(size).sum()),
        "zero_runtime": int((runtime == 0).sum()),
        "first_submission": first,
        "last_submission": last,
        "span": span,
        "days": len(days) or None,
        "jobs_per_day": _ratio(len(submit) * DAY, span),
        "mean_gap": _ratio(span, len(submit) - 1),
        "gap_cv": _known(gap_variation(submit)),
        "idc_hour": _known(dispersion(submit, HOUR)),
        "idc_day": _known(dispersion(submit, DAY)),
        "processors": processors,
        "processor_seconds": work,
        "offered_load": _ratio(work, span * processors) if processors else None,
        "busiest_day_load": max(loads, default=None),
        "days_above_capacity": sum(load > 1 for load in loads) if loads else None,
        "serial": _ratio((known == 1).sum(), len(known)),
        "powers_of_two": _ratio(power_of_two(known).sum(), len(known)),
        "parallel_powers_of_two": _ratio(power_of_two(parallel).sum(), len(parallel)),
        "parallel_even": _ratio((parallel % 2 == 0).sum(), len(parallel)),
        "mean_processors": _mean(known),
        "median_processors": _percentiles(known, (50,))[0],
        "max_processors": float(known.max()) if len(known) else None,
        "mean_runtime": _mean(runtime[~np.isnan(runtime)]),
        "median_runtime": _percentiles(runtime[~np.isnan(runtime)], (50,))[0],
        "estimated": estimated,
        "exact_estimates": _ratio((runtime[judged] == estimate[judged]).sum(), estimated),
        "estimate_concentration": _known(estimate_concentration(runtime[judged], estimate[judged])),
        "at_limit": _ratio(at_limit.sum(), estimated),
        "killed_at_limit": _ratio(killed.sum(), estimated) if status_known else None,
        "mean_accuracy": _mean(accuracy[judged]),
        "median_accuracy": _percentiles(accuracy[judged], (50,))[0],
    }


def _remark(summary: Row, jobs: Jobs, clock: Clock, processors: int | None, notes: list[str]) -> None:
    """Sentences on what the figures leave out."""
    unmeasured = summary["jobs"] - summary["measured"]
    if unmeasured:
        notes.append(
            f"{unmeasured:,} of {summary['jobs']:,} jobs have no known runtime or size: they count among the "
            "arrivals only."
        )
    if processors is not None and (larger := int((jobs.size > processors).sum())):
        notes.append(f"{larger:,} jobs are larger than the machine's {processors:,} processors.")
    if summary["days"] is None:
        spanned = int(clock.day.max() - clock.day.min()) + 1
        notes.append(f"The submissions are spread over {spanned:,} days: days are not listed.")
    if not summary["estimated"]:
        notes.append("No job has an estimate: there is no accuracy.")
    if summary["span"] <= 0:
        notes.append("All jobs are submitted at one instant: there is no offered load.")


def _rising(what: str, values: Sequence[float]) -> None:
    if not values or not all(low < high for low, high in pairwise((0, *values))) or values[-1] == np.inf:
        found = ", ".join(f"{value:g}" for value in values) or "none"
        raise UserError(f"{what}: expected upper bounds that rise from above 0, found {found}")


def _ratio(part: Any, whole: Any) -> float | None:
    return float(part) / float(whole) if whole > 0 else None


def _known(value: float) -> float | None:
    return None if np.isnan(value) else value


def _mean(values: Floats) -> float | None:
    return float(values.mean()) if len(values) else None


def _percentiles(values: Floats, which: Sequence[float]) -> list[float | None]:
    return [float(v) for v in np.percentile(values, which)] if len(values) else [None] * len(which)
