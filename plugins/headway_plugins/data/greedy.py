"""The four simple algorithms of Phan, Ranganathan and Sion 2005, section 5.2: jobs first in, first out.

``LL``: each job to the node that is free first; ``rand``: to a random node. Objects to a random store each
(``rand``), or not replicated (``none``).

Decisions: of nodes that are free at the same microsecond the first is taken. When a node is free is predicted
in the mode in which the plan is evaluated. Nodes are drawn by job, then stores by object.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from headway_plugins.data.evaluation import Course, Mode, evaluate, micro
from headway_plugins.data.model import Tables
from headway_plugins.draws import Draws


@dataclass(frozen=True)
class Dispatch:
    """Nodes and stores for jobs in the order of their numbers."""

    #: By job.
    node: list[int]
    #: By object; None: no replicas.
    store: list[int] | None
    #: Seconds from now.
    makespan: float


def least_loaded(
    tables: Tables, mode: Mode, store: Sequence[int], *, direct: bool = False,
    order: Sequence[int] | None = None,
) -> list[int]:  # fmt: skip
    """The node of each job, if each job in turn goes to the node that is free first.

    ``order``: the jobs as they are queued; None: by number.
    """
    course = Course(tables, mode, store, direct=direct)
    free = [micro(at) for at in course.free]
    node = [0] * len(tables.jobs)
    for job in range(len(tables.jobs)) if order is None else order:
        node[job] = at = free.index(min(free))
        free[at] = micro(course.serve(job, at).ends)
    return node


def greedy(
    tables: Tables, draws: Draws, *, jobs: Literal["LL", "rand"] = "LL",
    rep: Literal["rand", "none"] = "rand", mode: Mode = "event", direct: bool = False,
) -> Dispatch:  # fmt: skip
    """One of the four. ``mode`` is that of plans with replicas."""
    count = len(tables.jobs)
    node = draws.several(count, tables.nodes) if jobs == "rand" else None
    store = draws.several(tables.objects, tables.local_stores) if rep == "rand" else None
    found: Mode = "rep-none" if store is None else mode
    if node is None:
        node = least_loaded(tables, found, store or (), direct=direct)
    makespan, _ = evaluate(tables, found, range(count), node, store or (), direct=direct)
    return Dispatch(node, store, makespan)
