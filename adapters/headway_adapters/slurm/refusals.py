"""Nodes on which Slurm has said that a job can never run.

Slurm compares more with a node's configuration than headway knows of (``-B``, ``--mincpus``,
``--threads-per-core``, ...), and says of a job that was sent to nodes that do not satisfy it
``BadConstraints``. Asking again would be answered so again, so nodes like these are excluded for this job:
others are tried, and when none is left headway tells once that the job can never run as it is. A node that is
described anew, or a job with another request, is as good as new; so is everything after a restart.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, replace

import msgspec

from headway.model import NodeDescription, Placement, Request
from headway_adapters.polling.snapshot import SnapshotJob


@dataclass(frozen=True)
class _Refused:
    """A request, and what the nodes are like that it was refused on."""

    request: Request
    kinds: frozenset[NodeDescription]


class Refusals:
    """What Slurm has said against jobs; laid over each look."""

    def __init__(self) -> None:
        self._refused: dict[str, _Refused] = {}
        #: Kinds of nodes -> the names of these, as in the last look.
        self._names: dict[frozenset[NodeDescription], tuple[str, ...]] = {}

    def learned(
        self, job_id: str, request: Request, placement: Placement, nodes: Mapping[str, NodeDescription]
    ) -> None:
        """Slurm refused a job with this ``request``, as the last look showed it, on this ``placement``.

        Where that has fewer processors than it asks for, another request was refused: Slurm raises the
        processors of a job to its tasks when it looks at it, if the processors alone had been lowered.
        """
        if sum(count for _, count in placement) < request.processors:
            return
        kinds = frozenset(_kind(nodes[name]) for name, _ in placement if name in nodes)
        known = self._refused.get(job_id)
        if known is not None:
            self._refused[job_id] = replace(known, kinds=known.kinds | kinds)
        else:
            self._refused[job_id] = _Refused(_bare(request), kinds)

    def show(self, jobs: MutableMapping[str, SnapshotJob], nodes: Mapping[str, NodeDescription]) -> None:
        """Exclude in ``jobs``, as Slurm lists them, the nodes on which they were refused."""
        if not self._refused:
            return
        names: dict[NodeDescription, list[str]] = {}
        for name, node in nodes.items():
            names.setdefault(_kind(node), []).append(name)
        shared = self._names
        self._names = {}
        for key, refused in list(self._refused.items()):
            job = jobs.get(key)
            if job is None or job.state != "pending" or _bare(job.job.request) != refused.request:
                del self._refused[key]
                continue
            kinds = refused.kinds
            if kinds not in self._names:
                found = tuple(sorted(name for kind in kinds for name in names.get(kind, ())))
                # The same object as long as it says the same: many jobs may share it.
                self._names[kinds] = found if found != shared.get(kinds) else shared[kinds]
            request = job.job.request
            excluded = tuple(dict.fromkeys((*request.excluded_nodes, *self._names[kinds])))
            if excluded != request.excluded_nodes:
                request = msgspec.structs.replace(request, excluded_nodes=excluded)
                described = msgspec.structs.replace(job.job, request=request)
                jobs[key] = msgspec.structs.replace(job, job=described)


def _kind(node: NodeDescription) -> NodeDescription:
    """What a node has, without what changes from day to day."""
    return msgspec.structs.replace(node, name="", available=True, reason="", wake_time=0.0)


def _bare(request: Request) -> Request:
    return msgspec.structs.replace(request, walltime=0.0)
