"""The factors of a job's priority that need nothing but the job, the clock and the machine.

Each is a function of several jobs at once whose values are between 0 and 1. After Slurm's page "Multifactor
Priority Plugin" (age, size, pool, QOS, resources) and the Maui administrator's guide, chapter "Job
Prioritization" (expansion factor, deadline).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import numpy as np

from headway.model import Request
from headway.state import Factor, Job, PoolState, State
from headway_plugins.accounts.amounts import amount
from headway_plugins.accounts.tree import Floats

_GIB = 2.0**30


class Moment:
    """The time at which factors are told, absolute seconds: now, or ``at`` where that is set."""

    def __init__(self) -> None:
        self.at: float | None = None

    def __call__(self, state: State) -> float:
        return state.now if self.at is None else self.at


def eligible(jobs: Sequence[Job]) -> Floats:
    """Since when each job could have started, absolute seconds: its submission, its begin time, or when it
    stopped waiting for other jobs; infinity: it still waits for a job."""
    return np.array([
        job.submit_time if job.unconditional and job.independent is None else _eligible(job) for job in jobs
    ])  # fmt: skip


def _eligible(job: Job) -> float:
    begin = job.description.begin_time
    since = job.submit_time if begin is None else max(job.submit_time, begin)
    return since if job.independent is None else max(since, job.independent)


class Age:
    """Time since a job could have started, over ``max_age`` seconds; at most 1. ``known``: when jobs stopped
    waiting for other jobs, as an earlier run saw it."""

    def __init__(
        self, max_age: float, known: Mapping[str, float] | None = None, moment: Moment | None = None
    ) -> None:
        self.max_age = max_age
        self._moment = moment if moment is not None else Moment()
        self._known = known if known is not None else {}

    def __call__(self, jobs: Sequence[Job], state: State) -> Floats:
        since, known = eligible(jobs), self._known
        if known:
            since = np.maximum(since, [known.get(job.id, -np.inf) for job in jobs])
        return np.minimum(np.maximum((self._moment(state) - since) / self.max_age, 0.0), 1.0)

    def one(self, job: Job, state: State) -> float:
        """Of one job."""
        since = max(_eligible(job), self._known.get(job.id, -math.inf))
        return min(max((self._moment(state) - since) / self.max_age, 0.0), 1.0)


class Size:
    """How large a job is.

    ``machine``: its processors as a share of the cluster's; where there are nodes, the mean of that and of
    its share of the nodes (of a single node, if it does not say how many). ``time``: processors over minutes
    of its estimate, as a share of the cluster's processors; where there are nodes, at least the processors
    that as many nodes as it asks for have on average. ``favour="small"``: 1 minus that.
    """

    def __init__(self, favour: Literal["large", "small"], by: Literal["machine", "time"]) -> None:
        self.favour, self.by = favour, by

    def __call__(self, jobs: Sequence[Job], state: State) -> Floats:
        processors, nodes = machine(state)
        asked = np.array([job.processors for job in jobs], np.float64)
        if self.by == "time":
            minutes = np.maximum(np.array([job.estimate for job in jobs]) / 60.0, 1.0)
            if nodes:
                asked = np.maximum(asked, _on(jobs) * processors / nodes)
            found = asked / np.floor(minutes) / processors
        else:
            found = asked / processors
            if nodes:
                found = (found + _on(jobs) / nodes) / 2
        found = np.minimum(found, 1.0)
        return 1.0 - found if self.favour == "small" else found

    def one(self, job: Job, state: State) -> float:
        """Of one job."""
        processors, nodes = machine(state)
        found = float(job.processors)
        if self.by == "time":
            if nodes:
                found = max(found, max(job.request.nodes, 1) * processors / nodes)
            found = found / math.floor(max(job.estimate / 60.0, 1.0)) / processors
        else:
            found /= processors
            if nodes:
                found = (found + max(job.request.nodes, 1) / nodes) / 2
        found = min(found, 1.0)
        return 1.0 - found if self.favour == "small" else found


def _on(jobs: Sequence[Job]) -> Floats:
    """On how many nodes each is at least."""
    return np.array([max(job.request.nodes, 1) for job in jobs], np.float64)


def machine(state: State) -> tuple[int, int]:
    """The cluster's processors and nodes, nodes that are down included."""
    processors, nodes = 0, len(state.nodes)
    for pool in state.pools.values():
        processors += pool.description.processors
    return max(processors + int(state.nodes.total.sum()) if nodes else processors, 1), nodes


def nothing(jobs: Sequence[Job], state: State) -> Floats:
    """0 for each job: the site has set no values."""
    return np.zeros(len(jobs))


def listed(values: Mapping[str, float], of: Callable[[Job], str]) -> Factor:
    """What the site gave a pool or a QOS, over the largest of these; 0 for a name that is not listed."""
    largest = max(values.values(), default=0.0)
    if largest <= 0:
        return nothing

    def factor(jobs: Sequence[Job], state: State) -> Floats:
        return np.array([values.get(of(job), 0.0) for job in jobs]) / largest

    return factor


def expansion(moment: Moment) -> Factor:
    """Wait over wait and estimate together: 1 - 1/X of Maui's expansion factor X = 1 + wait / estimate."""

    def factor(jobs: Sequence[Job], state: State) -> Floats:
        waited = np.maximum(moment(state) - eligible(jobs), 0.0)
        return waited / (waited + np.maximum(np.array([job.estimate for job in jobs]), 1.0))

    return factor


def deadline(horizon: float, moment: Moment) -> Factor:
    """1 once a job must start to end by its attribute ``deadline`` (absolute seconds), less before that, and
    0 ``horizon`` seconds before; 0 without a deadline."""

    def factor(jobs: Sequence[Job], state: State) -> Floats:
        due = np.array([float(job.attribute("deadline", np.inf) or np.inf) for job in jobs])
        slack = due - np.array([job.estimate for job in jobs]) - moment(state)
        return np.where(np.isfinite(due), np.clip(1.0 - slack / horizon, 0.0, 1.0), 0.0)

    return factor


def resource(name: str) -> Factor:
    """What a job asks of ``processors``, ``memory`` or a generic resource, over what its pool has."""

    def factor(jobs: Sequence[Job], state: State) -> Floats:
        there = {pool.name: pool_amount(state, pool, name) for pool in state.pools.values()}
        asked = np.array([_asked(job.request, name, job.processors) for job in jobs])
        return np.clip(asked / np.array([max(there[job.pool.name], 1e-9) for job in jobs]), 0.0, 1.0)

    return factor


def _asked(request: Request, name: str, processors: int) -> float:
    return float(processors) if name == "processors" else amount(request, name, processors)


def pool_amount(state: State, pool: PoolState, name: str) -> float:
    """How much of a resource a pool's nodes have: memory in GiB."""
    if pool.flat:
        return float(pool.description.processors) if name == "processors" else 0.0
    members = [node for node in state.nodes.descriptions.values() if pool.name in node.pools]
    if name == "processors":
        return float(sum(node.processors for node in members))
    if name == "memory":
        return sum(node.memory for node in members) / _GIB
    return float(sum(count for node in members for kind, count in node.gres if kind == name))
