"""The jobs that come to and leave nodes, in front and in the background; made when it is needed.

A watcher keeps its own arrays by node and is told what changed, so that its work grows with the
changes only.
"""

from __future__ import annotations

from collections.abc import Iterable

from headway.model import Placement
from headway.resources import Located, NodeTable
from headway.state.records import ON_NODES, Job

#: A job, where it is, whether that is in the background, and 1 if it comes or -1 if it leaves.
Change = tuple[Job, Located, bool, int]


class Tenants:
    """The jobs on nodes, and what watches them."""

    def __init__(self, nodes: NodeTable, jobs: Iterable[Job]) -> None:
        self._nodes = nodes
        self._there: dict[Job, Change] = {}
        self._watchers: list[list[Change]] = []
        for job in jobs:
            if job.status in ON_NODES and job.placement:
                self.enter(job, job.placement)

    def watch(self) -> list[Change]:
        """A list to which each change is added; empty it when you have looked. At first it has the jobs that
        are there."""
        changes = list(self._there.values())
        self._watchers.append(changes)
        return changes

    def unwatch(self, changes: list[Change]) -> None:
        """Nothing is added any more to a list that :meth:`watch` gave."""
        self._watchers = [watcher for watcher in self._watchers if watcher is not changes]

    def nodes_of(self, job: Job) -> list[int]:
        """The indices of the nodes that a job is on, in either tier."""
        there = self._there.get(job)
        return there[1].nodes if there is not None else []

    def enter(self, job: Job, placement: Placement) -> None:
        """A job takes these processors, in the tier that it is in."""
        change = (job, self._nodes.locate(placement), job.behind, 1)
        self._there[job] = change
        for watcher in self._watchers:
            watcher.append(change)

    def leave(self, job: Job) -> None:
        """A job gives its processors back."""
        there = self._there.pop(job, None)
        if there is not None:
            change = (*there[:3], -1)
            for watcher in self._watchers:
                watcher.append(change)

    def measured(self, job: Job) -> None:
        """A job uses its processors otherwise than was known."""
        there = self._there.get(job)
        if there is not None:
            for watcher in self._watchers:
                watcher.extend(((*there[:3], -1), there))
