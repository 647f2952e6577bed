"""System metrics: how well the machine was used, and where its idle capacity went.

All comes from step functions over time (busy processors, queued processors, capacity). Idle
capacity is divided without remainder by what the queue looked like at that moment:

* *no demand*: no job waits;
* *fragmentation*: jobs wait and each needs more processors than are free -- the hole is too small;
* *held back*: a waiting job would fit by its number of processors and yet does not start: the policy
  keeps the processors (for a reservation, say), or they are the wrong ones (memory, features, nodes).

*Lost capacity* is the smaller of the free processors and the processors that the queue asks for: what a
scheduler that could cut jobs at will would have used. It is never above fragmentation + held back.

Both follow the idea of the loss of capacity in Y. Zhang, H. Franke, J. Moreira and A. Sivasubramaniam,
"An integrated approach to parallel scheduling using gang-scheduling, backfilling, and migration",
JSSPP 2001: idle processors count as lost while jobs wait. The division and the exact formulas are ours.
That a figure over the whole makespan contains the filling and the draining of the machine, and
should be read with one from the steady part, is among the pitfalls of E. Frachtenberg and
D. G. Feitelson, "Pitfalls in parallel job scheduling evaluation", JSSPP 2005; hence
``utilisation_while_arriving``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headway.metrics.jobs import JobColumns, idle_seconds, job_columns, occupations
from headway.metrics.steps import Steps, dot, smallest_present
from headway.model import ClusterDescription, JobDescription
from headway.model.nodes import sharing_nodes
from headway.results import JobResult, RunResult

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class SystemCurves:
    """The machine over time: step functions on one common grid, in processors (the queue length in jobs)."""

    capacity: Steps
    busy: Steps
    queue_length: Steps
    queued_processors: Steps
    #: min(free, asked for by the queue).
    lost: Steps
    #: Free while jobs wait and none of them is small enough.
    fragmented: Steps
    #: Free while a job waits that is small enough.
    held_back: Steps


@dataclass(frozen=True)
class SystemMetrics:
    """One figure each; shares are of the capacity over the makespan. NaN: nothing to measure."""

    #: Seconds, absolute: first submission (or begin of the run), last end.
    begin: float
    end: float
    #: Seconds from begin to end.
    makespan: float
    #: Usable processors at the beginning.
    processors: int
    #: Processor-seconds.
    capacity: float
    work: float
    #: Shares.
    utilisation: float
    utilisation_while_arriving: float
    offered_load: float
    lost_capacity: float
    fragmentation: float
    held_back: float
    no_demand: float
    #: Processors and jobs, means over time.
    mean_busy_processors: float
    mean_queue_length: float
    max_queue_length: float
    mean_queued_processors: float
    max_queued_processors: float
    #: Jobs that ran to their end, per hour of makespan.
    throughput: float


@dataclass(frozen=True)
class _Group:
    """Pools that share nodes, and so processors: a waiting job of one can use an idle one of the other."""

    pools: frozenset[str]
    processors: int


def system_metrics(
    result: RunResult, *, columns: JobColumns | None = None, curves: SystemCurves | None = None
) -> SystemMetrics:
    """The system metrics of a run; ``columns`` and ``curves`` are computed unless given."""
    columns = columns or job_columns(result)
    curves = curves or system_curves(result, columns=columns)
    busy, capacity = curves.busy, curves.capacity
    available = capacity.integral()
    work = max(0.0, busy.integral() - dot(idle_seconds(result, columns), columns.allocated))

    def share(amount: float) -> float:
        return amount / available if available > 0 else float("nan")

    idle = dot(np.maximum(0.0, capacity.values - busy.values), capacity.durations)
    fragmented, held_back = curves.fragmented.integral(), curves.held_back.integral()

    arriving = load = float("nan")
    if len(columns.submit):
        first, last = max(busy.begin, float(columns.submit.min())), float(columns.submit.max())
        offered = capacity.between(first, last).integral() if last > first else 0.0
        if offered > 0:
            arriving = busy.between(first, last).integral() / offered
            load = _work(result, columns) / offered
    makespan = busy.end - busy.begin
    return SystemMetrics(
        begin=busy.begin,
        end=busy.end,
        makespan=makespan,
        processors=int(capacity.values[0]),
        capacity=available,
        work=work,
        utilisation=share(work),
        utilisation_while_arriving=arriving,
        offered_load=load,
        lost_capacity=share(curves.lost.integral()),
        fragmentation=share(fragmented),
        held_back=share(held_back),
        no_demand=share(max(0.0, float(idle) - fragmented - held_back)),
        mean_busy_processors=busy.mean(),
        mean_queue_length=curves.queue_length.mean(),
        max_queue_length=curves.queue_length.maximum(),
        mean_queued_processors=curves.queued_processors.mean(),
        max_queued_processors=curves.queued_processors.maximum(),
        throughput=int(columns.finished.sum()) / makespan * 3600.0 if makespan > 0 else float("nan"),
    )


def _work(result: RunResult, columns: JobColumns) -> float:
    """Processor-seconds of all jobs that ended."""
    if not any(job.several for job in result.jobs):
        return float(np.nansum(columns.runtime * columns.allocated))
    rows, start, end, size = occupations(result, columns)
    plain = np.array([not result.jobs[row].several for row in rows], np.bool_)
    return float(np.nansum(np.where(plain, columns.runtime[rows], end - start) * size))


def system_curves(result: RunResult, *, columns: JobColumns | None = None) -> SystemCurves:
    """The step functions of a run, from its begin (else the first submission) to its end.

    A job is queued from when it is eligible (submitted, its begin time reached, its dependencies
    ended) until its last start, or until it is cancelled, or the run ends. A job that a user held
    and that never started is not queued: its user does not ask for it to run.
    """
    columns = columns or job_columns(result)
    begin, end = span(result, columns)
    groups = _groups(result.cluster)
    capacities = [_capacity(result, group, groups, begin, end) for group in groups]
    ran = columns.started
    stop = np.where(np.isnan(columns.end), end, columns.end)
    queued_from = np.clip(eligible(result, columns), begin, None)
    queued_until = np.minimum(np.where(ran, columns.start, stop), end)
    wanted = ~np.fromiter((j.job.held and j.start_time is None for j in result.jobs), np.bool_, len(ran))
    rows, starts, stops, size = occupations(result, columns)
    times = _Times(
        rows,
        starts,
        np.where(np.isnan(stops), end, stops),
        size,
        queued_from,
        queued_until,
        wanted & (queued_until > queued_from),
        columns.processors.astype(np.float64),
    )
    grid = times.grid(capacities, begin, end)
    total = _totals(times, capacities, _group_of_jobs(result, groups), grid, begin, end)

    def steps(name: str) -> Steps:
        return Steps(times=grid, values=total[name], end=end)

    return SystemCurves(
        capacity=steps("capacity"),
        busy=steps("busy"),
        queue_length=steps("length"),
        queued_processors=steps("demand"),
        lost=steps("lost"),
        fragmented=steps("fragmented"),
        held_back=steps("held_back"),
    )


@dataclass(frozen=True)
class _Times:
    """When jobs ran and waited."""

    #: Times in which processors were taken: which job, from when until when, how many.
    rows: NDArray[np.int64]
    starts: Floats
    stops: Floats
    size: Floats
    #: Of each job: from when until when it may have been queued, whether it was, its processors.
    queued_from: Floats
    queued_until: Floats
    queued: NDArray[np.bool_]
    asked: Floats

    def grid(self, capacities: Sequence[Steps], begin: float, end: float) -> Floats:
        """The moments between ``begin`` and ``end`` at which something changes; ``begin`` at least."""
        queued = self.queued
        grid = np.unique(
            np.concatenate(
                [np.array([begin]), self.starts, self.stops]
                + [self.queued_from[queued], self.queued_until[queued]]
                + [c.times for c in capacities]
            )
        )
        grid = grid[(grid >= begin) & (grid < end)]
        return grid if len(grid) else np.array([begin])


def _totals(
    times: _Times,
    capacities: Sequence[Steps],
    group_of: NDArray[np.int64],
    grid: Floats,
    begin: float,
    end: float,
) -> dict[str, NDArray[np.number[Any]]]:
    """Each curve's values on the grid, over all groups of pools."""
    total: dict[str, NDArray[np.number[Any]]] = {}

    def add(name: str, values: NDArray[np.number[Any]]) -> None:
        total[name] = compact(values if name not in total else total[name] + values)

    # A long run has many moments: no more of its curves are there at a time, as floats, than are needed.
    for index, capacity in enumerate(capacities):
        mine = group_of == index
        running, waiting = mine[times.rows], mine & times.queued
        busy = _count(times.starts[running], times.stops[running], times.size[running], begin, end).at(grid)
        add("busy", busy)
        usable = capacity.at(grid)
        add("capacity", usable)
        free = np.maximum(0.0, usable - busy)
        del usable, busy
        from_, until = times.queued_from[waiting], times.queued_until[waiting]
        sizes = times.asked[waiting]
        demand = _count(from_, until, sizes, begin, end).at(grid)
        add("demand", demand)
        add("lost", np.minimum(free, demand))
        del demand
        length = _count(from_, until, np.ones(len(sizes)), begin, end).at(grid)
        add("length", length)
        smallest = smallest_present(grid, from_, until, sizes)
        add("fragmented", np.where((length > 0) & (smallest > free), free, 0.0))
        add("held_back", np.where(smallest <= free, free, 0.0))
    return total


def compact(counts: NDArray[np.number[Any]]) -> NDArray[np.number[Any]]:
    """Whole numbers, none negative, in no more bytes than they need."""
    most = counts.max()
    return counts.astype(np.int16 if most < 2**15 else np.int32 if most < 2**31 else np.float64)


def _count(begins: Floats, ends: Floats, weights: Floats, begin: float, end: float) -> Steps:
    return Steps.from_changes(
        np.concatenate((begins, ends)), np.concatenate((weights, -weights)), begin=begin, end=end
    )


def span(result: RunResult, columns: JobColumns) -> tuple[float, float]:
    """When the run began and ended.

    If jobs were left running or waiting, it ended with the last thing that is known to have happened.
    """
    if not len(columns.submit):
        begin = result.begin if result.begin is not None else 0.0
        return begin, begin
    begin = float(result.begin if result.begin is not None else columns.submit.min())
    ends = columns.end[~np.isnan(columns.end)]
    if len(ends) == len(columns.end):
        return begin, max(begin, float(ends.max()))
    known = [begin, float(columns.submit.max()), *(float(t.max()) for t in (ends,) if len(t))]
    starts = columns.start[columns.started]
    if len(starts):
        known.append(float(starts.max()))
    known.extend(float(times[-1].time) for times in (result.decisions, result.capacity) if len(times))
    return begin, max(known)


def eligible(result: RunResult, columns: JobColumns) -> Floats:
    """From when each job could have started, by its begin time and its dependencies."""
    eligible = columns.submit.copy()
    rows: dict[str, list[int]] | None = None
    for row, record in enumerate(result.jobs):
        job = record.job
        if job.begin_time is not None and job.begin_time > eligible[row]:
            eligible[row] = job.begin_time
        if job.dependencies:
            if rows is None:
                rows = _named(result.jobs)
            eligible[row] = max(eligible[row], _released(job, result.jobs, rows))
    return eligible


def _named(jobs: Sequence[JobResult]) -> dict[str, list[int]]:
    """The rows of each job, and of each array."""
    rows: dict[str, list[int]] = {}
    for row, record in enumerate(jobs):
        rows.setdefault(record.job.id, []).append(row)
        if record.job.array_id:
            rows.setdefault(record.job.array_id, []).append(row)
    return rows


def _released(job: JobDescription, jobs: Sequence[JobResult], rows: dict[str, list[int]]) -> float:
    """When a job's dependencies were met; inf: never; -inf: the jobs of this run do not tell."""
    moments = []
    for dependency in job.dependencies:
        others = [jobs[row] for row in rows.get(dependency.job_id, ())]
        if not others:
            continue
        started = dependency.kind == "started"
        reached = [other.start_time if started else other.end_time for other in others]
        moments.append(max(inf if moment is None else moment + dependency.delay for moment in reached))
    if not moments:
        return -inf
    return min(moments) if job.any_dependency else max(moments)


def _groups(cluster: ClusterDescription) -> list[_Group]:
    """Pools joined where they share a node. A cluster without pools is one group of all its nodes."""
    pools = [pool.name for pool in cluster.pools] or [""]
    members = [set(names) for names in sharing_nodes(pools, (node.pools for node in cluster.nodes))]
    return [
        _Group(
            pools=frozenset(names),
            processors=sum(p.processors for p in cluster.pools if p.flat and p.name in names)
            + sum(
                n.processors
                for n in cluster.nodes
                if n.available and (names & set(n.pools) or (not n.pools and len(members) == 1))
            ),
        )
        for names in members
    ]


def _group_of_jobs(result: RunResult, groups: Sequence[_Group]) -> NDArray[np.int64]:
    """Index of each job's group; one whose pool is not known goes with the first."""
    if len(groups) == 1:
        return np.zeros(len(result.jobs), dtype=np.int64)
    group = {name: index for index, g in enumerate(groups) for name in g.pools}
    return np.fromiter((group.get(j.pool or j.job.pool, 0) for j in result.jobs), np.int64, len(result.jobs))


def _capacity(result: RunResult, group: _Group, groups: Sequence[_Group], begin: float, end: float) -> Steps:
    """Usable processors of a group over time.

    A change names one pool. Pools that share nodes all report a failure on them, so what the group
    lost is what that pool of it lost that lost most.
    """
    pools = {name: size for name, size in result.cluster.pool_sizes().items() if name in group.pools}
    now = dict(pools)
    only = next(iter(pools)) if len(groups) == 1 and len(pools) == 1 else None
    times, deltas = [], []
    level = group.processors
    for change in sorted(result.capacity, key=lambda c: c.time):
        name = only if only is not None and change.pool == "" else change.pool
        if name not in now:
            continue
        now[name] = change.processors
        lost = max((pools[n] - now[n] for n in now), key=abs)
        usable = max(0, group.processors - lost)
        times.append(change.time)
        deltas.append(float(usable - level))
        level = usable
    return Steps.from_changes(
        np.array(times), np.array(deltas), begin=begin, end=end, initial=float(group.processors)
    )
