"""What PBS's vnodes have left. ``qrun`` puts a job on a full vnode without a word, so this is asked first."""

from __future__ import annotations

from collections.abc import Sequence

from headway import decisions as d
from headway.model import Placement
from headway.nodes import memory_on_node
from headway_adapters.pbs import reader, writer
from headway_adapters.pbs.look import PbsLook
from headway_adapters.polling import Look
from headway_adapters.polling.snapshot import SnapshotJob


class Room:
    """What the vnodes have left, by the last look and all that is on its way."""

    def __init__(self, look: Look[reader.Detail] | None, flights: Sequence[d.Start]) -> None:
        self._nodes = look.snapshot.nodes if look is not None else {}
        self._power = look.snapshot.power if look is not None else {}
        self._hosts = look.hosts if isinstance(look, PbsLook) else {}
        self._vnodes = look.vnodes if isinstance(look, PbsLook) else {}
        self._used: dict[str, int] = {}
        self._memory: dict[str, int] = {}
        placed = look.placed if isinstance(look, PbsLook) else {}
        for job in placed.values():
            self._add(job, job.placement)
        for start in flights:
            known = look.snapshot.jobs.get(start.job_id) if look is not None else None
            if known is not None and known.state == "pending":
                self._add(known, start.placement)

    def _add(self, job: SnapshotJob, placement: Placement) -> None:
        for name, count in placement:
            self._used[name] = self._used.get(name, 0) + count
            memory = memory_on_node(job.job.request, count)
            self._memory[name] = self._memory.get(name, 0) + memory

    def take(self, job_id: str, job: SnapshotJob, placement: Placement, detail: reader.Detail) -> None:
        """Count a start. Raises :class:`writer.Unfit` if a vnode has not enough left, or is not usable."""
        for name, count in placement:
            node = self._nodes.get(name)
            if node is None:
                raise writer.Unfit(f"job {job_id}: {name!r} is not a vnode of the managed queues")
            if not node.available:
                raise writer.Unfit(f"job {job_id}: vnode {name} is not usable ({node.reason})")
            if self._power.get(name, "on") != "on":
                raise writer.Unfit(f"job {job_id}: vnode {name} is {self._power[name]}")
            if job.job.pool not in node.pools:
                raise writer.Unfit(f"job {job_id}: vnode {name} does not serve queue {job.job.pool}")
            left = node.processors - self._used.get(name, 0)
            if count > left or (detail.whole and left < node.processors):
                raise writer.Unfit(
                    f"job {job_id}: vnode {name} has {max(left, 0)} processors free, not {count}"
                )
            memory = memory_on_node(job.job.request, count)
            if node.memory and memory > node.memory - self._memory.get(name, 0):
                raise writer.Unfit(f"job {job_id}: vnode {name} has too little memory free")
            if detail.whole_hosts:
                for other in self._vnodes.get(self._hosts.get(name, name), ()):
                    if self._used.get(other, 0):
                        raise writer.Unfit(f"job {job_id}: its host is to be had whole, {other} is in use")
        self._add(job, placement)
