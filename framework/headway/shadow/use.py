"""How much of a cluster was in use, and how much of it there was, over time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, tzinfo

import msgspec
import numpy as np
from numpy.typing import NDArray

from headway import events as ev
from headway.metrics.steps import Steps
from headway.model import ClusterDescription, NodeDescription, processors_of
from headway.results import JobResult
from headway.shadow.record import Course, Stretch

Floats = NDArray[np.float64]


def capacity(stretch: Stretch, pool: str | None = None) -> Steps:
    """The usable processors of a pool, or of the cluster, over a stretch."""
    nodes = {node.name: node for node in stretch.cluster.nodes}
    flat = {one.name: one.processors for one in stretch.cluster.pools}

    def usable(node: NodeDescription) -> int:
        counts = node.available and (pool is None or pool in node.pools)
        return node.processors if counts else 0

    total = float(sum(map(usable, nodes.values())) + _flat(stretch.cluster, pool))
    times, deltas = [], []
    for event in stretch.changes:
        before = 0.0
        if isinstance(event, ev.NodeUp):
            before = usable(nodes[event.node.name]) if event.node.name in nodes else 0
            nodes[event.node.name] = event.node
            after = usable(event.node)
        elif isinstance(event, ev.NodeDown) and event.node in nodes:
            node = nodes[event.node]
            before, after = usable(node), 0
            nodes[event.node] = _down(node)
        elif isinstance(event, ev.PoolChanged) and pool in (None, event.pool.name):
            before, after = flat.get(event.pool.name, 0), event.pool.processors
            flat[event.pool.name] = event.pool.processors
        else:
            continue
        times.append(event.time)
        deltas.append(float(after - before))
    return Steps.from_changes(
        np.array(times, np.float64), np.array(deltas, np.float64),
        begin=stretch.begin, end=stretch.end, initial=total,
    )  # fmt: skip


def _flat(cluster: ClusterDescription, pool: str | None) -> int:
    return sum(one.processors for one in cluster.pools if pool in (None, one.name))


def _down(node: NodeDescription) -> NodeDescription:
    return msgspec.structs.replace(node, available=False)


def held_by(course: Course) -> int:
    """The processors that a job had, or asked for."""
    return processors_of(course.placement) or course.job.request.processors


def held_in(result: JobResult) -> int:
    """The same of a job in an emulation."""
    return processors_of(result.placement) or result.job.request.processors


def busy(start: Floats, end: Floats, processors: Floats, stretch: Stretch) -> Steps:
    """Processors in use over a stretch. End NaN: until the end of the stretch."""
    ran = ~np.isnan(start)
    start, end, processors = start[ran], end[ran], processors[ran]
    end = np.where(np.isnan(end), stretch.end, end)
    return Steps.from_changes(
        np.concatenate((start, end)), np.concatenate((processors, -processors)),
        begin=stretch.begin, end=stretch.end,
    )  # fmt: skip


def within(start: Floats, end: Floats, begin: float, last: float) -> Floats:
    """The seconds of each execution between two moments. End NaN: until then."""
    until = np.minimum(np.where(np.isnan(end), last, end), last)
    return np.where(np.isnan(start), 0.0, np.maximum(until - np.maximum(start, begin), 0.0))


def cumulated(steps: Steps, moments: Floats) -> Floats:
    """The integral of the steps from their beginning to each of these moments."""
    points = np.append(steps.times, steps.end)
    area = np.concatenate(([0.0], np.cumsum(steps.values * steps.durations)))
    return np.interp(moments, points, area)


def hours_between(begin: float, end: float, zone: tzinfo | None) -> tuple[Floats, list[int]]:
    """The moments at which an hour of the clock begins between two moments, which are the first and the last;
    and the hour of the day of each span between them."""
    first = datetime.fromtimestamp(begin, zone)
    into = first.minute * 60 + first.second + first.microsecond / 1e6
    edges = np.unique(np.concatenate(([begin], np.arange(begin - into + 3600.0, end, 3600.0), [end])))
    return edges, hours_of(edges[:-1], zone)


def hours_of(moments: Sequence[float] | Floats, zone: tzinfo | None) -> list[int]:
    """The hour of the day of each moment."""
    return [datetime.fromtimestamp(float(moment) + 1e-3, zone).hour for moment in moments]
