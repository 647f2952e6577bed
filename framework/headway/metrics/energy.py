"""What a run used: power over time, and energy by pool, class, node and job.

Everything is computed afterwards from what ran where, when and at which frequency, and from the
nodes' power states; the model is :class:`headway.energy.EnergyModel`. What is counted:

* *busy*: the processors of running jobs at their level (dynamic and static power). A job's energy is
  this, of all its executions, those that were cut off and repeated as well;
* *idle*: processors without a job, and what nodes that are on draw beside their processors;
* *asleep*: sleeping nodes, and falling asleep and waking.

The span is that of the system metrics: from the run's begin to its last end. A suspended job's processors
are idle. A node that failed is counted as idle: nobody knows what it draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headway.energy import EnergyModel
from headway.metrics.jobs import JobColumns, job_columns
from headway.metrics.steps import Steps
from headway.metrics.system import SystemCurves, system_curves
from headway.model import NodeDescription, Placement
from headway.results import RunResult

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class EnergyUse:
    """The energy of a run. Joules and watts, or relative figures if the profile is not calibrated."""

    #: The profile's name, and whether its figures are joules and watts.
    profile: str
    absolute: bool
    total: float
    busy: float
    idle: float
    asleep: float
    #: Watts.
    mean_power: float
    peak_power: float
    #: Seconds that nodes slept (or were on their way), all together.
    node_seconds_asleep: float
    #: What jobs used, by the class of their processors.
    by_class: dict[str, float]
    #: What each pool drew in all; pools that share nodes count them each.
    by_pool: dict[str, float]
    #: Of each job of the run, in their order; 0 for one that never ran.
    jobs: Floats
    #: Watts over time, in all and of the busy processors alone.
    power: Steps
    busy_power: Steps


@dataclass(frozen=True)
class _Spans:
    """What ran, one entry a span in which a job did not change."""

    #: Row of the job in the run.
    job: NDArray[np.int64]
    pool: Sequence[str]
    start: Floats
    end: Floats
    #: Watts of its processors, and what they would have drawn idle.
    busy: Floats
    idle: Floats


def energy_use(
    result: RunResult, *, columns: JobColumns | None = None, curves: SystemCurves | None = None
) -> EnergyUse | None:
    """The energy that a run used; None if its cluster has no energy profile."""
    if result.cluster.energy is None:
        return None
    model = EnergyModel(result.cluster)
    columns = columns or job_columns(result)
    curves = curves or system_curves(result, columns=columns)
    begin, end = curves.busy.begin, curves.busy.end
    spans, by_class = _spans(result, model, begin, end)
    seconds = spans.end - spans.start
    jobs = np.zeros(len(result.jobs))
    np.add.at(jobs, spans.job, spans.busy * seconds)

    sleep_times, sleep_deltas, asleep, slept = _sleep(result, model, begin, end)
    base = {pool.name: _base(result, model, pool.name) for pool in result.cluster.pools}
    nodes = result.cluster.nodes
    baseline = sum(model.idle_node(node) for node in nodes) + sum(
        base[pool.name] for pool in result.cluster.pools if pool.flat
    )
    changes = np.concatenate((spans.start, spans.end, sleep_times))
    added = spans.busy - spans.idle
    power = Steps.from_changes(
        changes, np.concatenate((added, -added, sleep_deltas)), begin=begin, end=end, initial=baseline
    )
    busy_power = Steps.from_changes(
        changes[: 2 * len(added)], np.concatenate((spans.busy, -spans.busy)), begin=begin, end=end
    )
    busy = float(jobs.sum())
    total = power.integral()
    return EnergyUse(
        profile=model.profile.name,
        absolute=model.profile.absolute,
        total=total,
        busy=busy,
        idle=max(total - busy - asleep, 0.0),
        asleep=asleep,
        mean_power=power.mean(),
        peak_power=power.maximum(),
        node_seconds_asleep=slept,
        by_class=by_class,
        by_pool=_by_pool(result, model, spans, base, begin, end),
        jobs=jobs,
        power=power,
        busy_power=busy_power,
    )


def node_energy(result: RunResult) -> dict[str, float]:
    """What each node drew from the run's begin to its end, by name. Raises :class:`ValueError` without a
    profile."""
    model = EnergyModel(result.cluster)
    curves = system_curves(result)
    begin, end = curves.busy.begin, curves.busy.end
    nodes = {node.name: node for node in result.cluster.nodes}
    used = {name: model.idle_node(node) * (end - begin) for name, node in nodes.items()}
    for _, placement, _, _, frequency, start, stop in _runs(result, begin, end):
        for name, count in placement:
            kind = model.class_of(name)
            extra = model.busy_power(kind, frequency) - kind.idle_power
            used[name] = used.get(name, 0.0) + count * extra * (stop - start)
    for name, start, stop, watts in _naps(result, model, begin, end):
        used[name] += (watts - model.idle_node(nodes[name])) * (stop - start)
    return used


def _runs(
    result: RunResult, begin: float, end: float
) -> list[tuple[int, Placement, str, int, float | None, float, float]]:
    """``(row, placement, pool, processors, frequency, start, end)`` of every span, cut to the run's."""
    runs: list[tuple[int, Placement, str, int, float | None, float, float]] = []
    for row, job in enumerate(result.jobs):
        start = job.active_since if job.active_since is not None else job.start_time
        if start is None:
            continue
        stop = end if job.end_time is None else job.end_time
        if start < begin:
            start = begin
        if stop > start:
            processors = job.job.request.processors
            runs.append((row, job.placement, job.pool, processors, job.frequency, start, stop))
    if result.activities:
        rows = {job.job.id: row for row, job in enumerate(result.jobs)}
        for a in result.activities:
            start = max(a.start, begin)
            if a.end > start:
                runs.append((rows[a.job_id], a.placement, a.pool, a.processors, a.frequency, start, a.end))
    return runs


def _spans(
    result: RunResult, model: EnergyModel, begin: float, end: float
) -> tuple[_Spans, dict[str, float]]:
    """Every span with its watts, and the energy of all by class."""
    runs = _runs(result, begin, end)
    by_class = {kind.name: 0.0 for kind in model.profile.classes}
    busy, idle = np.zeros(len(runs)), np.zeros(len(runs))
    #: Watts of one processor by class and frequency: there are few of each.
    known: dict[tuple[str, float | None], float] = {}
    alone = model.profile.classes[0] if len(model.profile.classes) == 1 else None
    for at, (_, placement, pool, processors, frequency, start, stop) in enumerate(runs):
        if alone is not None:
            held = sum([count for _, count in placement]) if placement else processors
            shares = {alone.name: held}
        else:
            shares = model.shares(placement, pool, processors)
        for name, count in shares.items():
            watts = known.get((name, frequency))
            if watts is None:
                watts = known[name, frequency] = model.busy_power(model.classes[name], frequency)
            busy[at] += count * watts
            idle[at] += count * model.classes[name].idle_power
            by_class[name] += count * watts * (stop - start)
    spans = _Spans(
        job=np.fromiter((run[0] for run in runs), np.int64, len(runs)),
        pool=[run[2] for run in runs],
        start=np.fromiter((run[5] for run in runs), np.float64, len(runs)),
        end=np.fromiter((run[6] for run in runs), np.float64, len(runs)),
        busy=busy,
        idle=idle,
    )
    return spans, by_class


def _base(result: RunResult, model: EnergyModel, pool: str) -> float:
    """Watts of a pool in which nothing runs."""
    description = next(p for p in result.cluster.pools if p.name == pool)
    if description.flat:
        return description.processors * model.class_of_pool(pool).idle_power
    return sum(model.idle_node(node) for node in result.cluster.nodes if pool in node.pools)


def _by_pool(
    result: RunResult, model: EnergyModel, spans: _Spans, base: dict[str, float], begin: float, end: float
) -> dict[str, float]:
    seconds = spans.end - spans.start
    added = (spans.busy - spans.idle) * seconds
    by_pool = {name: watts * (end - begin) for name, watts in base.items()}
    if len(by_pool) == 1:
        only = next(iter(by_pool))
        by_pool[only] += float(added.sum())
    else:
        for pool, joules in zip(spans.pool, added.tolist(), strict=True):
            if pool in by_pool:
                by_pool[pool] += joules
    nodes: dict[str, NodeDescription] = {node.name: node for node in result.cluster.nodes}
    for name, start, stop, watts in _naps(result, model, begin, end):
        for pool in nodes[name].pools:
            if pool in by_pool:
                by_pool[pool] += (watts - model.idle_node(nodes[name])) * (stop - start)
    return by_pool


def _naps(
    result: RunResult, model: EnergyModel, begin: float, end: float
) -> list[tuple[str, float, float, float]]:
    """``(node, start, end, watts)`` of every span in which a node was not on."""
    nodes = {node.name: node for node in result.cluster.nodes}
    since: dict[str, tuple[float, str]] = {}
    naps = []

    def close(name: str, until: float) -> None:
        start, power = since.pop(name)
        start, until = max(start, begin), min(until, end)
        if until > start:
            naps.append((name, start, until, model.node_power(nodes[name], power)))

    for change in result.power:
        if change.node not in nodes:
            continue
        if change.node in since:
            close(change.node, change.time)
        if change.power != "on":
            since[change.node] = (change.time, change.power)
    for name in list(since):
        close(name, end)
    return naps


def _sleep(
    result: RunResult, model: EnergyModel, begin: float, end: float
) -> tuple[Floats, Floats, float, float]:
    """Times and changes of power through sleep, its own energy, and node-seconds of it."""
    naps = _naps(result, model, begin, end)
    nodes = {node.name: node for node in result.cluster.nodes}
    starts = np.array([nap[1] for nap in naps])
    stops = np.array([nap[2] for nap in naps])
    watts = np.array([nap[3] for nap in naps])
    less = watts - np.array([model.idle_node(nodes[nap[0]]) for nap in naps])
    return (
        np.concatenate((starts, stops)),
        np.concatenate((less, -less)),
        float(watts @ (stops - starts)),
        float((stops - starts).sum()),
    )
