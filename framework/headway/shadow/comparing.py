"""Compares the record with its emulations: over all jobs, and group by group.

Which jobs are compared: those that came in a stretch, without the first 5 % of them (the emulation begins
with what ran and waited then, as the batch system had brought it about), up to the last job for which 99 % of
them were over at the stretch's end (:mod:`headway.experiment.steady`). So long jobs are not left out
because they are long.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, tzinfo

import numpy as np
from numpy.typing import NDArray

from headway.experiment.steady import LEAST_WARM_UP, automatic_cool_down
from headway.metrics.jobs import BOUND
from headway.metrics.steps import Steps
from headway.model import Request
from headway.shadow import use
from headway.shadow.findings import Counted, Delay, Findings, Grouping, Missing, Row, Span
from headway.shadow.foretold import Draw, Plan, Workload, foretell, workload_of
from headway.shadow.intervals import BATCHES, FEWEST, Compared, Estimate, compared, over_time, spread
from headway.shadow.record import Course, Record, Stretch
from headway.version import __version__

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

#: Accounts (pools, QOS, users) that have a row of their own, those with the most jobs.
MOST_ROWS = 20
OTHERS = "all others"
NONE = "(none)"
#: Upper ends of the classes of sizes, processors.
SIZES = (1, 4, 16, 64, 256, 1024)
#: What has to be known of jobs that are compared.
NOTED: dict[str, Callable[[Course], object]] = {
    "were held by users or administrators: that time counts as wait on both sides": lambda one: one.held,
    "depended on other jobs: that time counts as wait on both sides": lambda one: one.job.dependencies,
    "named a time to begin: the time until then counts as wait on both sides": (
        lambda one: one.job.begin_time is not None
    ),
    "named a reservation": lambda one: one.job.reservation,
    "went back to the queue: only the last execution and the wait before it count": (
        lambda one: one.requeued
    ),
    "were changed while they waited: the emulation has them as they were at last": lambda one: one.changed,
    "were suspended: in the emulation they are not": lambda one: one.paused > 0,
}
DROPPED = "depended on jobs outside the record, which is left out of the emulation"
#: Spans of time that curves are drawn in.
BINS = 60
#: Points of a distribution.
POINTS = 400


@dataclass(frozen=True)
class Curves:
    """What the page's charts show; the batch system's first, then headway's."""

    #: Middles of spans of time, and the mean waits of the jobs that were submitted in each; NaN: none was.
    times: Floats
    waits: tuple[Floats, Floats]
    #: Mean numbers of waiting jobs in each span.
    queues: tuple[Floats, Floats]
    #: Sorted waits, thinned out.
    distribution: tuple[Floats, Floats]


@dataclass
class _Part:
    """A stretch with its emulations."""

    stretch: Stretch
    work: Workload
    #: Places in the workload of the jobs that are compared, in order of submission.
    measured: NDArray[np.int64]
    #: When what is measured begins.
    begin: float
    #: Columns, one value a job of the workload.
    submit: Floats
    start: Floats
    end: Floats
    held: Floats
    #: One emulation after another: starts, ends and processors held.
    starts: list[Floats] = field(default_factory=list)
    ends: list[Floats] = field(default_factory=list)
    helds: list[Floats] = field(default_factory=list)
    not_compared: Counter[str] = field(default_factory=Counter)


def compare(
    record: Record,
    plan: Plan,
    delay: Delay,
    *,
    draws: int = 5,
    seed: int = 0,
    users: bool = False,
    zone: tzinfo | None = None,
    drawn: Callable[[], None] = lambda: None,
) -> tuple[Findings, Curves]:
    """Emulate each stretch ``draws`` times, from ``seed`` on, and compare.

    ``users``: a table by user, too. ``zone``: of the hours of the day; default: the local one. ``drawn`` is
    called after each emulation.
    """
    parts, remarks = [], list[str]()
    for stretch in record.stretches:
        part = _part(stretch)
        for number in range(draws):
            draw = foretell(stretch, part.work, plan, seed + number)
            _take(part, draw)
            if not number:
                _remark(draw, remarks)
            drawn()
        _drop_unstarted(part)
        parts.append(part)
    table = _Jobs(parts, zone)
    findings = Findings(
        cluster=record.cluster,
        policy=plan.label,
        plugins=[one.name for one in plan.catalogue.expanded(plan.plugins)],
        begin=parts[0].stretch.begin if parts else 0.0,
        end=parts[-1].stretch.end if parts else 0.0,
        zone=_zone_name(parts, zone),
        jobs=len(table.system_wait),
        wait=compared(table.system_wait, table.waits),
        slowdown=compared(table.system_slowdown, table.slowdowns),
        use=_use_over_time(parts),
        median_wait=_quantiles(table, 0.5),
        p95_wait=_quantiles(table, 0.95),
        tables=_tables(parts, table, users, zone),
        stretches=[
            Span(part.stretch.begin, part.stretch.end, len(part.stretch.courses), len(part.measured))
            for part in parts
        ],
        gaps=[Missing(gap.begin, gap.end, gap.why, gap.bridged) for gap in record.gaps],
        left_out=_left_out(parts),
        noted=_noted(parts),
        remarks=remarks,
        delay=delay,
        draws=draws,
        seed=seed,
        headway_version=__version__,
    )
    return findings, _curves(parts, table)


# ---------------------------------------------------------------------- one stretch


def _part(stretch: Stretch) -> _Part:
    work = workload_of(stretch)
    nan = float("nan")
    courses = work.courses
    submit = np.array([one.submit for one in courses], np.float64)
    start = np.array([nan if one.start is None else one.start for one in courses], np.float64)
    end = np.array([nan if one.end is None else one.end for one in courses], np.float64)
    known = np.array([one.runtime is not None for one in courses], np.bool_)
    held = np.array([use.held_by(one) for one in courses], np.float64)
    came = np.array([not (one.begun or one.waited) for one in courses], np.bool_)
    arrivals = np.flatnonzero(came)
    first = math.ceil(LEAST_WARM_UP * len(arrivals))
    last = automatic_cool_down(np.where(known, end, nan)[arrivals], first, stretch.end)
    window = arrivals[first:last]
    measured = window[known[window]]
    begin = float(submit[measured[0]]) if len(measured) else stretch.begin
    part = _Part(stretch, work, measured, max(begin, stretch.begin), submit, start, end, held)
    said = part.not_compared
    said["ran when the record began"] = sum(one.begun for one in courses)
    said["waited when the record began"] = sum(one.waited for one in courses)
    said["came in the first 5 % of a stretch (warm-up)"] = min(first, len(arrivals))
    said["came so late that too few of their time were over at the end (cool-down)"] = len(arrivals) - max(
        last, min(first, len(arrivals))
    )
    unknown = window[~known[window]]
    vanished = sum(courses[at].outcome == "vanished" for at in unknown)
    said["ended unseen, so their runtime is not known"] = vanished
    said["were not over at the end of the record"] = len(unknown) - vanished
    said["were cancelled while they waited"] = work.cancelled
    said["have no size"] = work.sizeless
    return part


def _take(part: _Part, draw: Draw) -> None:
    """Keep what is compared of an emulation."""
    start = draw.start
    stated = part.start[~np.isnan(part.start)]
    if len(stated) and (stated == np.floor(stated)).all():
        # The batch system states whole seconds, so headway's starts are stated so, too.
        start = np.floor(start)
    part.starts.append(start)
    part.ends.append(draw.end)
    held = {one.job.id: use.held_in(one) for one in draw.result.jobs}
    part.helds.append(np.array([held.get(job.job.id, 0) for job in part.work.jobs], np.float64))


def _remark(draw: Draw, remarks: list[str]) -> None:
    """What was wrong in an emulation."""
    for failure in draw.result.failures:
        remarks.append(str(failure))
    for group in draw.result.left_waiting:
        remarks.append(f"Jobs that would not have started: {group.jobs} (first {group.first}). {group.why}")
    reasons = Counter(one.reason for one in draw.result.refused)
    for reason, jobs in reasons.most_common(5):
        remarks.append(f"Jobs that would have been refused: {jobs}. {reason}")


def _drop_unstarted(part: _Part) -> None:
    """Jobs that do not start in each emulation have nothing to compare."""
    if not part.starts:
        return
    started = ~np.isnan(np.array(part.starts)[:, part.measured]).any(axis=0)
    part.not_compared["would not have started under headway"] = int((~started).sum())
    part.measured = part.measured[started]


# ---------------------------------------------------------------------- the jobs that are compared


class _Jobs:
    """The jobs that are compared, of all stretches, in order."""

    def __init__(self, parts: Sequence[_Part], zone: tzinfo | None) -> None:
        self.courses = [part.work.courses[at] for part in parts for at in part.measured]
        count = len(self.courses)
        self.submit = _joined([part.submit[part.measured] for part in parts])
        runtime = np.fromiter((one.runtime or 0.0 for one in self.courses), np.float64, count)
        self.system_wait = np.maximum(_joined([part.start[part.measured] for part in parts]) - self.submit, 0)
        self.waits = [
            np.maximum(_joined([part.starts[number][part.measured] for part in parts]) - self.submit, 0)
            for number in range(len(parts[0].starts) if parts else 0)
        ]
        self.system_slowdown = _slowdown(self.system_wait, runtime)
        self.slowdowns = [_slowdown(wait, runtime) for wait in self.waits]
        self.hours = use.hours_of(self.submit, zone)
        self.wait = np.mean(self.waits, axis=0) if count else np.zeros(0)

    def of(self, mask: Bools) -> tuple[Compared, Compared]:
        """Wait and slowdown of some of them."""
        return (
            compared(self.system_wait[mask], [wait[mask] for wait in self.waits]),
            compared(self.system_slowdown[mask], [one[mask] for one in self.slowdowns]),
        )


def _joined(arrays: Sequence[Floats]) -> Floats:
    return np.concatenate(arrays) if arrays else np.zeros(0)


def _slowdown(wait: Floats, runtime: Floats) -> Floats:
    found: Floats = np.maximum(1.0, (wait + runtime) / np.maximum(runtime, BOUND))
    return found


def _quantiles(table: _Jobs, q: float) -> tuple[float | None, float | None]:
    if not len(table.system_wait):
        return None, None
    ours = float(np.mean([np.quantile(wait, q) for wait in table.waits]))
    return float(np.quantile(table.system_wait, q)), ours


# ---------------------------------------------------------------------- use


def _busy(part: _Part, number: int | None) -> Steps:
    """Processors in use: by the batch system's schedule, or in an emulation."""
    if number is None:
        return use.busy(part.start, part.end, part.held, part.stretch)
    return use.busy(part.starts[number], part.ends[number], part.helds[number], part.stretch)


def _use_over_time(parts: Sequence[_Part]) -> Compared:
    """Share of the processors in use, in blocks of time."""
    length = sum(part.stretch.end - part.begin for part in parts)
    draws = len(parts[0].starts) if parts else 0
    if length <= 0 or not draws:
        return Compared(Estimate(None), Estimate(None), Estimate(None))
    system, ours, there = [], [list[Floats]() for _ in range(draws)], []
    for part in parts:
        blocks = max(1, round(BATCHES[0] * (part.stretch.end - part.begin) / length))
        edges = np.linspace(part.begin, part.stretch.end, blocks + 1)
        there.append(np.diff(use.cumulated(use.capacity(part.stretch), edges)))
        system.append(np.diff(use.cumulated(_busy(part, None), edges)))
        for number in range(draws):
            ours[number].append(np.diff(use.cumulated(_busy(part, number), edges)))
    capacity = np.where((capacities := np.concatenate(there)) > 0, capacities, np.nan)
    theirs = np.concatenate(system) / capacity
    drawn = [np.concatenate(one) / capacity for one in ours]
    mine = np.mean(drawn, axis=0)
    chance = spread([float(np.nanmean(one)) for one in drawn])
    return Compared(over_time(theirs), over_time(mine, chance), over_time(mine - theirs, chance))


def _use_of(parts: Sequence[_Part], chosen: Callable[[_Part], Bools], pool: str | None = None) -> Compared:
    """Share of a pool's processors, or of all, that some jobs used of all that ran; without intervals."""
    there = system = 0.0
    draws = len(parts[0].starts) if parts else 0
    ours = np.zeros(draws)
    for part in parts:
        begin, end, mask = part.begin, part.stretch.end, chosen(part)
        there += float(use.capacity(part.stretch, pool).between(begin, end).integral())
        system += float((use.within(part.start, part.end, begin, end) * part.held)[mask].sum())
        for number in range(draws):
            seconds = use.within(part.starts[number], part.ends[number], begin, end)
            ours[number] += float((seconds * part.helds[number])[mask].sum())
    if there <= 0 or not draws:
        return Compared(Estimate(None), Estimate(None), Estimate(None))
    mine, theirs = float(ours.mean()) / there, system / there
    return Compared(Estimate(theirs), Estimate(mine), Estimate(mine - theirs))


def _use_by_hour(parts: Sequence[_Part], zone: tzinfo | None) -> list[Compared]:
    """The share in use in each hour of the day."""
    draws = len(parts[0].starts) if parts else 0
    sums = np.zeros((2 + draws, 24))
    for part in parts:
        edges, hours = use.hours_between(part.begin, part.stretch.end, zone)
        curves = [use.capacity(part.stretch), _busy(part, None)]
        curves += [_busy(part, number) for number in range(draws)]
        for row, curve in enumerate(curves):
            np.add.at(sums[row], hours, np.diff(use.cumulated(curve, edges)))
    found = []
    for hour in range(24):
        there = sums[0, hour]
        if there <= 0 or not draws:
            found.append(Compared(Estimate(None), Estimate(None), Estimate(None)))
            continue
        theirs, mine = float(sums[1, hour] / there), float(sums[2:, hour].mean() / there)
        found.append(Compared(Estimate(theirs), Estimate(mine), Estimate(mine - theirs)))
    return found


# ---------------------------------------------------------------------- tables


def _tables(parts: Sequence[_Part], table: _Jobs, users: bool, zone: tzinfo | None) -> list[Grouping]:
    keys: dict[str, Callable[[Course], str]] = {
        "pool": lambda one: one.pool or one.job.pool or NONE,
        "QOS": lambda one: one.job.qos or NONE,
        "account": lambda one: one.job.account or one.job.group or NONE,
        "size": lambda one: _size(one.job.request.processors),
        "GPU": lambda one: _gpu(one.job.request),
    }
    if users:
        keys["user"] = lambda one: one.job.user or NONE
    tables = [_grouping(parts, table, by, key) for by, key in keys.items()]
    tables.append(_by_hour(parts, table, zone))
    return tables


def _grouping(parts: Sequence[_Part], table: _Jobs, by: str, key: Callable[[Course], str]) -> Grouping:
    mine = np.array([key(one) for one in table.courses], object)
    all_of = [np.array([key(one) for one in part.work.courses], object) for part in parts]
    counted = Counter(mine.tolist())
    order = [name for name, _ in sorted(counted.items(), key=lambda item: (-item[1], item[0]))]
    if by == "size":
        order = [name for name in _sizes() if name in counted]
    kept = order if by == "size" or len(order) <= MOST_ROWS else order[: MOST_ROWS - 1]
    rows = []
    for name in kept:
        wait, slowdown = table.of(mine == name)
        there = {id(part): names == name for part, names in zip(parts, all_of, strict=True)}
        pool = name if by == "pool" and name != NONE else None
        used = _use_of(parts, lambda part, there=there: there[id(part)], pool)  # type: ignore[misc]
        rows.append(Row(name, counted[name], wait, slowdown, used))
    note = ""
    if len(kept) < len(order):
        rest = set(order) - set(kept)
        mask = np.array([name in rest for name in mine], np.bool_)
        wait, slowdown = table.of(mask)
        others = {
            id(part): np.array([name not in kept for name in names], np.bool_)
            for part, names in zip(parts, all_of, strict=True)
        }
        used = _use_of(parts, lambda part: others[id(part)])
        rows.append(Row(f"{OTHERS} ({len(rest)})", int(mask.sum()), wait, slowdown, used))
        note = f"Those with the most jobs have a row; {len(rest)} others are together."
    if by == "pool":
        note = (note + " Use: of the pool's own processors.").strip()
    return Grouping(by, rows, note)


def _by_hour(parts: Sequence[_Part], table: _Jobs, zone: tzinfo | None) -> Grouping:
    hours, used = np.array(table.hours, np.int64), _use_by_hour(parts, zone)
    rows = []
    for hour in range(24):
        mask = hours == hour
        if mask.any() or used[hour].system.mean is not None:
            rows.append(Row(f"{hour:02d}:00", int(mask.sum()), *table.of(mask), used[hour]))
    return Grouping(
        "hour", rows, "Waits and slowdowns of the jobs that were submitted in the hour; use in it."
    )


def _sizes() -> list[str]:
    names, low = [], 1
    for high in SIZES:
        names.append(str(high) if low == high else f"{low}–{high}")
        low = high + 1
    return [*names, f"> {SIZES[-1]}"]


def _size(processors: int) -> str:
    return _sizes()[int(np.searchsorted(SIZES, processors))]


def _gpu(request: Request) -> str:
    asked = (*request.gres_per_node, *request.gres_per_chunk)
    names = sorted({name for name, amount in asked if amount and "gpu" in name.lower()})
    return " + ".join(names) or "no GPU"


# ---------------------------------------------------------------------- what is said beside


def _left_out(parts: Sequence[_Part]) -> list[Counted]:
    counted: Counter[str] = Counter()
    for part in parts:
        counted.update(part.not_compared)
    return [Counted(what, jobs) for what, jobs in counted.items() if jobs]


def _noted(parts: Sequence[_Part]) -> list[Counted]:
    """Jobs that are compared, of which something has to be known."""
    counted: Counter[str] = Counter()
    for part in parts:
        counted[DROPPED] += part.work.dropped_dependencies
        for at in part.measured:
            course = part.work.courses[at]
            for what, holds in NOTED.items():
                counted[what] += bool(holds(course))
    return [Counted(what, jobs) for what, jobs in counted.items() if jobs]


def _zone_name(parts: Sequence[_Part], zone: tzinfo | None) -> str:
    if not parts:
        return ""
    moment = datetime.fromtimestamp(parts[-1].stretch.end, zone)
    return moment.astimezone(zone).tzname() or ""


def _curves(parts: Sequence[_Part], table: _Jobs) -> Curves:
    if not len(table.submit):
        empty = np.zeros(0)
        return Curves(empty, (empty, empty), (empty, empty), (empty, empty))
    begin, end = parts[0].stretch.begin, parts[-1].stretch.end
    edges = np.linspace(begin, end, BINS + 1)
    place = np.clip(np.searchsorted(edges, table.submit, side="right") - 1, 0, BINS - 1)
    count = np.bincount(place, minlength=BINS).astype(np.float64)
    count[count == 0] = np.nan

    def means(values: Floats) -> Floats:
        return np.bincount(place, values, BINS) / count

    def queue(starts: Callable[[_Part], Floats]) -> Floats:
        waiting, known = np.zeros(BINS), np.zeros(BINS)
        for part in parts:
            until = np.where(np.isnan(found := starts(part)), part.stretch.end, found)
            times = np.concatenate((part.submit, np.maximum(until, part.submit)))
            ones = np.ones(len(part.submit))
            steps = Steps.from_changes(
                times, np.concatenate((ones, -ones)), begin=part.stretch.begin, end=part.stretch.end
            )
            clipped = np.clip(edges, part.stretch.begin, part.stretch.end)
            waiting += np.diff(use.cumulated(steps, clipped))
            known += np.diff(clipped)
        return waiting / np.where(known > 0, known, np.nan)

    def thinned(values: Floats) -> Floats:
        return np.quantile(values, np.linspace(0, 1, min(POINTS, len(values))))

    return Curves(
        (edges[1:] + edges[:-1]) / 2,
        (means(table.system_wait), means(table.wait)),
        (queue(lambda part: part.start), queue(lambda part: part.starts[0])),
        (thinned(table.system_wait), thinned(table.waits[0])),
    )


def enough(findings: Findings) -> bool:
    """Whether there are enough jobs for intervals."""
    return findings.jobs >= FEWEST
