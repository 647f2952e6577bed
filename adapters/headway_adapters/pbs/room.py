"""What PBS's vnodes have left. ``qrun`` puts a job on a full vnode without a word, so this is asked first.

Each tier has all processors of a vnode: one process in front and one in the background on each. Memory is
there once. A vnode that somebody has whole takes nobody else, in neither tier.
"""

from __future__ import annotations

from collections.abc import Sequence

from headway import decisions as d
from headway.model import Placement, Request
from headway.model.parts import by_node, placements_of
from headway.resources import memory_on_node
from headway_adapters.pbs import reader, writer
from headway_adapters.pbs.look import PbsLook
from headway_adapters.polling import Look
from headway_adapters.polling.agents import BACKGROUND, FOREGROUND
from headway_adapters.polling.snapshot import SnapshotJob


class Room:
    """What the vnodes have left, by the last look and all that is on its way."""

    def __init__(self, look: Look[reader.Detail] | None, flights: Sequence[d.Start]) -> None:
        self._nodes = look.snapshot.nodes if look is not None else {}
        self._power = look.snapshot.power if look is not None else {}
        self._hosts = look.hosts if isinstance(look, PbsLook) else {}
        self._vnodes = look.vnodes if isinstance(look, PbsLook) else {}
        #: By vnode and tier.
        self._used: dict[tuple[str, str], int] = {}
        self._whole: set[str] = set()
        self._memory: dict[str, int] = {}
        placed = look.placed if isinstance(look, PbsLook) else {}
        shown = look.snapshot.jobs if look is not None else {}
        for key, job in placed.items():
            # Which tier it is in is known to us alone, not to PBS.
            self._add(job, job.placement, shown.get(key, job).tier)
        for start in flights:
            known = shown.get(start.job_id)
            if known is not None and known.state == "pending":
                self._add(known, start.placement, start.tier)

    def _add(self, job: SnapshotJob, placement: Placement, tier: str) -> None:
        for name, count in by_node(placement).items():
            self._used[name, tier] = self._used.get((name, tier), 0) + count
            if job.job.request.exclusive:
                self._whole.add(name)
        for name, memory in _memory(job.job.request, placement).items():
            self._memory[name] = self._memory.get(name, 0) + memory

    def _used_by_any(self, name: str) -> int:
        return self._used.get((name, FOREGROUND), 0) + self._used.get((name, BACKGROUND), 0)

    def take(self, start: d.Start, job: SnapshotJob, detail: reader.Detail) -> None:
        """Count a start. Raises :class:`writer.Unfit` if a vnode has not enough left, or is not usable."""
        job_id, behind = start.job_id, start.tier == BACKGROUND
        if behind and (detail.whole or detail.whole_hosts):
            raise writer.Unfit(f"job {job_id} is to have its vnodes whole: none is in the background")
        memories = _memory(job.job.request, start.placement)
        for name, count in by_node(start.placement).items():
            node = self._nodes.get(name)
            if node is None:
                raise writer.Unfit(f"job {job_id}: {name!r} is not a vnode of the managed queues")
            if not node.available:
                raise writer.Unfit(f"job {job_id}: vnode {name} is not usable ({node.reason})")
            if self._power.get(name, "on") != "on":
                raise writer.Unfit(f"job {job_id}: vnode {name} is {self._power[name]}")
            if job.job.pool not in node.pools:
                raise writer.Unfit(f"job {job_id}: vnode {name} does not serve queue {job.job.pool}")
            left = node.processors - self._used.get((name, start.tier), 0)
            if count > left or (detail.whole and self._used_by_any(name)):
                where = "free in the background" if behind else "free"
                raise writer.Unfit(
                    f"job {job_id}: vnode {name} has {max(left, 0)} processors {where}, not {count}"
                )
            if name in self._whole:
                raise writer.Unfit(f"job {job_id}: vnode {name} belongs to a job that has it whole")
            memory = memories[name]
            if node.memory and memory > node.memory - self._memory.get(name, 0):
                raise writer.Unfit(f"job {job_id}: vnode {name} has too little memory free")
            if detail.whole_hosts:
                for other in self._vnodes.get(self._hosts.get(name, name), ()):
                    if self._used_by_any(other):
                        raise writer.Unfit(f"job {job_id}: its host is to be had whole, {other} is in use")
        self._add(job, start.placement, start.tier)


def _memory(request: Request, placement: Placement) -> dict[str, int]:
    """Bytes on each vnode, of all parts."""
    shares = [(request, placement)]
    if request.parts:
        shares = list(zip(request.parts, placements_of(request, placement), strict=True))
    found: dict[str, int] = {}
    for part, own in shares:
        for name, count in own:
            found[name] = found.get(name, 0) + memory_on_node(part, count)
    return found
