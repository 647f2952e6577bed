"""What the nodes of a batch system have left that puts a job on a full node without a word.

``qrun`` and ``brun`` do, so this is asked first. Each tier has all processors of a node: one process in front
and one in the background on each. Memory is there once. A node that a job has whole takes no other job, in
neither tier.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from headway import decisions as d
from headway.model import NodeDescription, Placement, Request
from headway.model.parts import by_node, placements_of
from headway.resources import memory_on_node
from headway_adapters.polling.agents import BACKGROUND, FOREGROUND
from headway_adapters.polling.snapshot import Snapshot, SnapshotJob
from headway_adapters.polling.words import Unfit


class Room:
    """What the nodes have left, by the last look and all that is on its way."""

    def __init__(
        self, seen: Snapshot | None, *, node: str, processors: str = "processors", memory: bool = False,
        hosts: Mapping[str, str] | None = None, vnodes: Mapping[str, Sequence[str]] | None = None,
    ) -> None:  # fmt: skip
        """``seen``: the cluster as it is; None: it was not looked at. ``node``, ``processors``: the batch
        system's words for them. ``memory``: it counts, too. ``hosts``, ``vnodes``: node -> host and host ->
        nodes, where a host has several."""
        self._seen = seen if seen is not None else Snapshot(0.0)
        self._node = node
        self._processors = processors
        self._counts_memory = memory
        self._hosts = hosts or {}
        self._vnodes = vnodes or {}
        #: By node and tier.
        self._used: dict[tuple[str, str], int] = {}
        self._whole: set[str] = set()
        self._memory: dict[str, int] = {}

    # ------------------------------------------------------------------ what is taken

    def occupy(self, job: SnapshotJob, placement: Placement, tier: str) -> None:
        """A job has these processors, and its nodes for itself alone if it asks for them so."""
        for name, count in by_node(placement).items():
            self.fill(name, count, tier)
            if job.job.request.exclusive:
                self._whole.add(name)
        for name, memory in _memory(job.job.request, placement).items():
            self._memory[name] = self._memory.get(name, 0) + memory

    def fill(self, node: str, count: int, tier: str = FOREGROUND) -> None:
        """So many processors of a node are taken."""
        self._used[node, tier] = self._used.get((node, tier), 0) + count

    def expect(self, starts: Iterable[d.Start]) -> None:
        """These starts are on their way; a job that runs already is counted as such."""
        for start in starts:
            known = self._seen.jobs.get(start.job_id)
            if known is not None and known.state == "pending":
                self.occupy(known, start.placement, start.tier)

    # ------------------------------------------------------------------ what is left

    def admit(self, start: d.Start, job: SnapshotJob, *, whole: bool, whole_hosts: bool = False) -> None:
        """Let a start through, which :meth:`occupy` then counts. ``whole``: no other job may be on its nodes,
        ``whole_hosts``: nor on the others of their hosts.

        Raises :class:`Unfit` if a node has not enough left, or is not usable.
        """
        job_id = start.job_id
        if start.tier == BACKGROUND and (whole or whole_hosts):
            raise Unfit(f"job {job_id} asks for whole {self._node}s, which would be shared in the background")
        memories = _memory(job.job.request, start.placement)
        for name, count in by_node(start.placement).items():
            node = self._seen.nodes.get(name)
            why = self._unusable(name, node, job.job.pool)
            if not why and node is not None:
                why = self._too_full(node, count, memories[name], start.tier)
                why = why or (self._shared(name, whole_hosts) if whole or whole_hosts else "")
            if why:
                raise Unfit(f"job {job_id}: {why}")

    def _unusable(self, name: str, node: NodeDescription | None, pool: str) -> str:
        if node is None:
            return f"{name!r} is not a {self._node} of the managed queues"
        if pool not in node.pools:
            return f"{self._node} {name} does not serve queue {pool}"
        if not node.available:
            return f"{self._node} {name} is not usable ({node.reason})"
        if (state := self._seen.power.get(name, "on")) != "on":
            return f"{self._node} {name} is {state}"
        return ""

    def _too_full(self, node: NodeDescription, count: int, memory: int, tier: str) -> str:
        left = max(node.processors - self._used.get((node.name, tier), 0), 0)
        if count > left:
            where = "free in the background" if tier == BACKGROUND else "free"
            return f"{self._node} {node.name} has {left} {self._processors} {where}, not {count}"
        if node.name in self._whole:
            return f"{self._node} {node.name} belongs to a job that has all of it"
        taken = self._memory.get(node.name, 0)
        if self._counts_memory and node.memory and memory > node.memory - taken:
            return f"{self._node} {node.name} has too little memory free"
        return ""

    def _shared(self, name: str, whole_hosts: bool) -> str:
        beside = self._vnodes.get(self._hosts.get(name, name), ()) if whole_hosts else ()
        for other in (name, *beside):
            if any(self._used.get((other, tier), 0) for tier in (FOREGROUND, BACKGROUND)):
                return f"{self._node} {other} would be shared, and the job asks for all of it"
        return ""


def _memory(request: Request, placement: Placement) -> dict[str, int]:
    """Bytes on each node, of all parts."""
    shares = [(request, placement)]
    if request.parts:
        shares = list(zip(request.parts, placements_of(request, placement), strict=True))
    found: dict[str, int] = {}
    for part, own in shares:
        for name, count in own:
            found[name] = found.get(name, 0) + memory_on_node(part, count)
    return found
