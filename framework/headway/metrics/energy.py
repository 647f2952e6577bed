"""What a run used: power over time, and energy by pool, class, node and job.

Everything is computed afterwards from what ran where, when and at which frequency, and from the
nodes' power states; the model is :class:`headway.energy.EnergyModel`. What is counted:

* *busy*: the processors of running jobs at their level (dynamic and static power). A job's energy is
  this, of all its executions, including executions that were cut off and repeated;
* *idle*: processors without a job, and what nodes that are on draw beside their processors;
* *asleep*: sleeping nodes, and falling asleep and waking.

The span is that of the system metrics: from the run's begin to its last end. A suspended job's processors
are idle. A node that failed is counted as idle: what it draws is not known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headway.energy import EnergyModel
from headway.metrics.jobs import JobColumns, job_columns
from headway.metrics.steps import Steps
from headway.metrics.system import SystemCurves, system_curves
from headway.model import NodeDescription, Placement, processors_of
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
    """What ran, one entry a span in which a job did not change, cut to the run's own span."""

    #: Row of the job in the run.
    job: NDArray[np.int64]
    pool: list[str]
    placement: list[Placement]
    #: Processors held.
    held: NDArray[np.int64]
    frequency: list[float | None]
    start: Floats
    end: Floats

    @property
    def seconds(self) -> Floats:
        return self.end - self.start


@dataclass(frozen=True)
class _Draw:
    """What spans drew."""

    #: Watts of a span's processors, and what they would have drawn idle.
    busy: Floats
    idle: Floats
    #: Joules of all spans by class.
    by_class: dict[str, float]


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
    spans = _spans(result, columns, begin, end)
    draw = _draw(spans, model)
    jobs = np.asarray(np.bincount(spans.job, draw.busy * spans.seconds, len(result.jobs)), np.float64)

    sleep_times, sleep_deltas, asleep, slept = _sleep(result, model, begin, end)
    base = {pool.name: _base(result, model, pool.name) for pool in result.cluster.pools}
    nodes = result.cluster.nodes
    baseline = sum(model.idle_node(node) for node in nodes) + sum(
        base[pool.name] for pool in result.cluster.pools if pool.flat
    )
    changes = np.concatenate((spans.start, spans.end, sleep_times))
    added = draw.busy - draw.idle
    power = Steps.from_changes(
        changes, np.concatenate((added, -added, sleep_deltas)), begin=begin, end=end, initial=baseline
    )
    busy_power = Steps.from_changes(
        changes[: 2 * len(added)], np.concatenate((draw.busy, -draw.busy)), begin=begin, end=end
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
        by_class=draw.by_class,
        by_pool=_by_pool(result, model, spans, draw, base, begin, end),
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
    spans = _spans(result, job_columns(result), begin, end)
    for placement, frequency, seconds in zip(
        spans.placement, spans.frequency, spans.seconds.tolist(), strict=True
    ):
        for name, count in placement:
            kind = model.class_of(name)
            extra = model.busy_power(kind, frequency) - kind.idle_power
            used[name] = used.get(name, 0.0) + count * extra * seconds
    for name, start, stop, watts in _naps(result, model, begin, end):
        used[name] += (watts - model.idle_node(nodes[name])) * (stop - start)
    return used


def _spans(result: RunResult, columns: JobColumns, begin: float, end: float) -> _Spans:
    """Every span of every job that has any length."""
    count = len(result.jobs)
    since = np.fromiter(
        (np.nan if job.active_since is None else job.active_since for job in result.jobs), np.float64, count
    )
    start = np.maximum(np.where(np.isnan(since), columns.start, since), begin)
    # One that did not end in the run is on until its end.
    last = np.fromiter((end if job.end_time is None else job.end_time for job in result.jobs), float, count)
    rows = np.flatnonzero(last > start)
    ran = [result.jobs[row] for row in rows.tolist()]
    spans = _Spans(
        job=rows,
        pool=[job.pool for job in ran],
        placement=[job.placement for job in ran],
        held=columns.allocated[rows],
        frequency=[job.frequency for job in ran],
        start=start[rows],
        end=last[rows],
    )
    if not result.activities:
        return spans
    row_of = {job.job.id: row for row, job in enumerate(result.jobs)}
    before = [a for a in result.activities if a.end > max(a.start, begin)]

    def together(mine: NDArray, more: list[float]) -> NDArray:
        return np.concatenate((mine, np.array(more, mine.dtype)))

    return _Spans(
        job=together(spans.job, [row_of[a.job_id] for a in before]),
        pool=spans.pool + [a.pool for a in before],
        placement=spans.placement + [a.placement for a in before],
        held=together(
            spans.held, [processors_of(a.placement) if a.placement else a.processors for a in before]
        ),
        frequency=spans.frequency + [a.frequency for a in before],
        start=together(spans.start, [max(a.start, begin) for a in before]),
        end=together(spans.end, [a.end for a in before]),
    )


def _draw(spans: _Spans, model: EnergyModel) -> _Draw:
    """The watts of each span, and the joules by class."""
    kinds = model.profile.classes
    numbers = {kind.name: number for number, kind in enumerate(kinds)}
    count = len(spans.job)
    # A part is what a span has in one class; there is one a span unless a placement mixes classes.
    part_of, held = np.arange(count), spans.held
    classes = np.zeros(count, np.int64)
    if len(kinds) > 1:
        shares = [
            model.shares(placement, pool, processors)
            for placement, pool, processors in zip(
                spans.placement, spans.pool, spans.held.tolist(), strict=True
            )
        ]
        part_of = np.repeat(part_of, [len(share) for share in shares])
        classes = np.array([numbers[name] for share in shares for name in share], np.int64)
        held = np.array([processors for share in shares for processors in share.values()], np.int64)
    levels = {frequency: at for at, frequency in enumerate(dict.fromkeys(spans.frequency))}
    level = np.fromiter((levels[frequency] for frequency in spans.frequency), np.int64, count)
    table = np.array([[model.busy_power(kind, frequency) for frequency in levels] for kind in kinds])
    watts = held * table[classes, level[part_of]] if count else np.zeros(0)
    idle = held * np.array([kind.idle_power for kind in kinds])[classes]
    joules = np.bincount(classes, watts * spans.seconds[part_of], len(kinds))
    return _Draw(
        busy=np.asarray(np.bincount(part_of, watts, count), np.float64),
        idle=np.asarray(np.bincount(part_of, idle, count), np.float64),
        by_class=dict(zip(numbers, joules.tolist(), strict=True)),
    )


def _base(result: RunResult, model: EnergyModel, pool: str) -> float:
    """Watts of a pool in which nothing runs."""
    description = next(p for p in result.cluster.pools if p.name == pool)
    if description.flat:
        return description.processors * model.class_of_pool(pool).idle_power
    return sum(model.idle_node(node) for node in result.cluster.nodes if pool in node.pools)


def _by_pool(
    result: RunResult,
    model: EnergyModel,
    spans: _Spans,
    draw: _Draw,
    base: dict[str, float],
    begin: float,
    end: float,
) -> dict[str, float]:
    by_pool = {name: watts * (end - begin) for name, watts in base.items()}
    nodes: dict[str, NodeDescription] = {node.name: node for node in result.cluster.nodes}
    added = (draw.busy - draw.idle) * spans.seconds
    if len(by_pool) == 1:
        by_pool[next(iter(by_pool))] += float(added.sum())
    elif all(len(node.pools) < 2 for node in result.cluster.nodes):
        for pool, joules in zip(spans.pool, added.tolist(), strict=True):
            if pool in by_pool:
                by_pool[pool] += joules
    else:
        for pool, joules in _added_on_shared_nodes(model, spans, added, nodes):
            if pool in by_pool:
                by_pool[pool] += joules
    for name, start, stop, watts in _naps(result, model, begin, end):
        for pool in nodes[name].pools:
            if pool in by_pool:
                by_pool[pool] += (watts - model.idle_node(nodes[name])) * (stop - start)
    return by_pool


def _added_on_shared_nodes(
    model: EnergyModel, spans: _Spans, added: Floats, nodes: Mapping[str, NodeDescription]
) -> Iterator[tuple[str, float]]:
    """``(pool, joules)`` that jobs add; what a job adds on a node counts in each pool of the node."""
    for at, placement in enumerate(spans.placement):
        if not placement:
            yield spans.pool[at], float(added[at])
        for name, count in placement:
            kind = model.class_of(name)
            extra = model.busy_power(kind, spans.frequency[at]) - kind.idle_power
            for pool in nodes[name].pools if name in nodes else ():
                yield pool, count * extra * float(spans.end[at] - spans.start[at])


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
