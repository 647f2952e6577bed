"""PBS's server: its jobs, arrays, queues and reservations, its users' rights, and its own scheduler."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from headway_adapters.commands import pbs_text as text
from headway_adapters.commands.machine import Job, Machine, Node, Share
from headway_adapters.commands.pbs_request import (
    BAD_STATE,
    BAD_VALUE,
    CANNOT_CONNECT,
    FINISHED,
    NOT_ALLOWED,
    UNKNOWN_JOB,
    chunks_of,
)
from headway_adapters.commands.server import Call, Caller, Reply
from headway_adapters.commands.system import Refused, System, first_fit

VERSION = "23.06.06"
BEFORE = {"after": "before", "afterok": "beforeok", "afternotok": "beforenotok", "afterany": "beforeany"}
KINDS = {"after": "started", "afterok": "completed", "afternotok": "failed", "afterany": "ended"}
_JOB_ID = re.compile(r"(\d+)(\[(\d*)\])?(\.[\w.-]+)?$")
TRUE = ("true", "t", "y", "yes", "1")


@dataclass(eq=False)
class Array:
    """A job array: what its elements share."""

    id: str
    indices: str
    elements: list[Job] = field(default_factory=list)

    @property
    def alive(self) -> list[Job]:
        return [job for job in self.elements if job.state != "ended"]


@dataclass
class Queue:
    """A queue. A reservation has one of its own."""

    name: str
    enabled: bool = True
    started: bool = True
    attributes: dict[str, Any] = field(default_factory=dict)


@dataclass(eq=False)
class Reservation:
    """Wall times; ``shares`` once PBS's scheduler has confirmed it."""

    id: str
    owner: Caller
    name: str
    start: float
    end: float
    select: str
    submitted: float
    users: str
    shares: list[Share] = field(default_factory=list)

    def state(self, now: float) -> tuple[str, int]:
        if not self.shares:
            return "RESV_UNCONFIRMED", 1
        return ("RESV_RUNNING", 5) if self.start <= now < self.end else ("RESV_CONFIRMED", 2)


class PbsServer(System):
    """What the commands share."""

    def __init__(
        self, machine: Machine, *, server: str = "pbshost", queues: Sequence[str] = ("workq",),
        scheduling: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(machine)
        self.server = server
        self.queues = {name: Queue(name) for name in queues}
        self.default_queue = queues[0]
        self.scheduling = scheduling
        self.arrays: dict[str, Array] = {}
        self.reservations: dict[str, Reservation] = {}
        self._next = 0
        self._session = 500
        machine.scheduler = self._cycle
        machine.began = self._on_start
        machine.ended = self._on_end

    def down(self, name: str) -> Reply:
        said = f"Connection refused\n{name}: cannot connect to server {self.server} (errno=15010)\n"
        return Reply({"qstat": 255, "qrun": 2}.get(name, CANNOT_CONNECT), "", said)

    def _clock(self, wall: float) -> str:
        return text.clock(wall, self.zone)

    # ------------------------------------------------------------------ jobs by their ids

    def find(self, given: str) -> list[Job]:
        try:
            return self._jobs(given, "")
        except Refused:
            return []

    def _jobs(self, given: str, name: str) -> list[Job]:
        """The job, the element, or all elements of the array; raises :class:`Refused`."""
        found = _JOB_ID.fullmatch(given)
        if found is None:
            raise Refused(2, f"{name}: illegally formed job identifier: {given}")
        number, brackets, index, _ = found.groups()
        full = f"{number}{brackets or ''}.{self.server}"
        if brackets and not index:
            if full not in self.arrays:
                raise Refused(UNKNOWN_JOB, f"{name}: Unknown Job Id {given}")
            return list(self.arrays[full].elements)
        if full not in self.machine.jobs:
            raise Refused(UNKNOWN_JOB, f"{name}: Unknown Job Id {given}")
        return [self.machine.jobs[full]]

    def _array(self, job: Job) -> Array | None:
        return self.arrays.get(f"{job.number}[].{self.server}") if job.index is not None else None

    def _each(self, call: Call, given: Sequence[str], action: Callable[[Job], None]) -> Reply:
        """Do something to each job named; the exit code is the last refusal's."""
        if not given:
            raise Refused(2, f"usage: {call.name} job_identifier...")
        said, rc = [], 0
        for word in given:
            try:
                jobs = self._jobs(word, call.name)
                if len(jobs) > 1:
                    jobs = [job for job in jobs if job.state != "ended"]
                for job in jobs:
                    action(job)
            except Refused as refused:
                rc = refused.rc
                said.append(refused.message + "\n")
        return Reply(rc, "", "".join(said))

    def _may(self, call: Call, job: Job, shown: str | None = None, *, owner: bool = True) -> None:
        """Refuse a caller that is neither manager nor (with ``owner``) the job's owner."""
        if not call.caller.manager and not (owner and call.caller.user == job.user):
            raise Refused(NOT_ALLOWED, f"{call.name}: Unauthorized Request  {shown or job.id}")

    def _wants(self, call: Call, job: Job, *states: str) -> None:
        if job.state not in states:
            if job.state == "ended":
                raise Refused(FINISHED, f"{call.name}: Job has finished {job.id}")
            raise Refused(BAD_STATE, f"{call.name}: Request invalid for state of job {job.id}")

    # ------------------------------------------------------------------ PBS's own scheduler

    def _cycle(self) -> None:
        for job in list(self.machine.alive.values()):
            if self.machine.dependency(job) is None:
                # What it waits for will never come: the server deletes it.
                self.machine.kill(job)
        if not self.scheduling:
            return
        for reservation in self.reservations.values():
            if not reservation.shares:
                shares = self._place(reservation.select, "free", math.inf, reservation.start)
                reservation.shares = shares or []
                if shares:
                    queue = self.queues[reservation.id.partition(".")[0]]
                    queue.enabled = queue.started = True
        for job in self.machine.alive.values():
            if job.resuming and all(self._fits(share) for share in job.shares):
                self.machine.resume(job)
        self.in_order(self._place_job)

    def _fits(self, share: Share) -> bool:
        node = self.machine.nodes[share.node]
        return node.takes_jobs and node.processors - node.assigned >= share.processors

    def _place_job(self, job: Job) -> list[Share] | None:
        if not self.queues[job.queue].started:
            return None
        now = self.machine.wall()
        if job.queue in (r.partition(".")[0] for r in self.reservations):
            reservation = self.reservations[f"{job.queue}.{self.server}"]
            if not reservation.start <= now < reservation.end:
                return None
            within = {share.node for share in reservation.shares}
            return self._place(job.words["select"], job.words["place"], now, now, within)
        end = now + job.walltime / self.machine.speed
        return self._place(job.words["select"], job.words["place"], end, now)

    def _place(
        self, select: str, place: str, end: float, start: float, within: set[str] | None = None
    ) -> list[Share] | None:
        """Each chunk on the first vnode that has room for it, from ``start`` to ``end`` (wall)."""
        alone = "excl" in place
        room = self._free_from(start, end, within)
        shares: list[Share] = []
        for chunk in chunks_of(select):
            for _ in range(chunk.count):
                wanted = {chunk.resources.get("vnode"), chunk.resources.get("host")} - {None}
                nodes = [
                    node
                    for node in room.values()
                    if not (alone and node.given) and wanted <= {node.name, node.host}
                ]
                if "scatter" in place:
                    nodes = [node for node in nodes if node.name not in {share.node for share in shares}]
                found = first_fit(nodes, chunk.processors, chunk.memory)
                if found is None:
                    return None
                share = Share(found.name, chunk.processors, chunk.memory)
                shares.append(share)
                if not alone:
                    found.given.setdefault("", []).append(share)
                else:
                    del room[found.name]
        return shares

    def _free_from(self, start: float, end: float, within: set[str] | None) -> dict[str, Node]:
        """The vnodes (``within``: of these) with what is taken of them from ``start`` to ``end`` (wall)."""
        room: dict[str, Node] = {}
        for node in self.machine.nodes.values():
            if not node.takes_jobs or (within is not None and node.name not in within):
                continue
            copy = Node(node.name, node.processors, node.memory, node.host)
            if start <= self.machine.wall():
                copy.given = {key: list(shares) for key, shares in node.given.items()}
            room[node.name] = copy
        if within is not None:
            return room
        for other in self.reservations.values():
            if other.start < end and start < other.end:
                for share in other.shares:
                    if share.node in room:
                        room[share.node].given.setdefault(other.id, []).append(share)
        return room

    def _on_start(self, job: Job) -> None:
        self._session += 13
        job.words["session_id"] = self._session
        # Each chunk has the lowest number that is free on its host.
        taken: dict[str, set[int]] = {}
        for other in self.machine.alive.values():
            if other is not job and other.state in ("running", "suspended"):
                for share, number in zip(other.shares, other.words["numbers"], strict=True):
                    taken.setdefault(self.machine.nodes[share.node].host, set()).add(number)
        numbers = []
        for share in job.shares:
            used = taken.setdefault(self.machine.nodes[share.node].host, set())
            number = next(n for n in range(len(used) + 1) if n not in used)
            used.add(number)
            numbers.append(number)
        job.words["numbers"] = numbers

    def _on_end(self, job: Job) -> None:
        if not job.executions:
            job.words["substate"] = 91
            job.words["Exit_status"] = None
        elif job.outcome == "completed":
            job.words["substate"] = 92
            job.words["Exit_status"] = job.exit_code
        elif job.outcome == "timed out":
            job.words["substate"] = 93
            job.words["Exit_status"] = -29
        else:
            job.words["substate"] = 91
            job.words["Exit_status"] = job.words.pop("signal", 256 + 15)
        job.words["history_timestamp"] = int(job.stopped or 0)

    def _wall(self, call: Call, given: str) -> float:
        """A wall time from ``[[[[CC]YY]MM]DD]hhmm[.SS]``, the next one that it can mean."""
        digits, _, second = given.partition(".")
        if not re.fullmatch(r"(\d\d){2,6}", digits) or not re.fullmatch(r"(\d\d)?", second):
            raise Refused(BAD_VALUE, f"{call.name}: illegal -a value")
        now = self.zone.local(self.machine.wall())
        parts = [int(digits[at : at + 2]) for at in range(0, len(digits), 2)]
        minute, hour = parts.pop(), parts.pop()
        day = parts.pop() if parts else now.tm_mday
        month = parts.pop() if parts else now.tm_mon
        year = now.tm_year if not parts else parts.pop() + (100 * parts.pop() if parts else 2000)
        try:
            wall = self.zone.wall(year, month, day, hour, minute, int(second or 0))
            if wall <= self.machine.wall() and len(digits) == 4:
                wall = self.zone.wall(year, month, day + 1, hour, minute, int(second or 0))
            elif wall <= self.machine.wall() and len(digits) == 6:
                wall = self.zone.wall(year, month + 1, day, hour, minute, int(second or 0))
        except ValueError:
            raise Refused(BAD_VALUE, f"{call.name}: illegal -a value") from None
        return wall
