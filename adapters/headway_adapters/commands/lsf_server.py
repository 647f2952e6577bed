"""LSF's cluster: its jobs, queues and reservations, its users' rights, and its own scheduler."""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from headway_adapters.commands.lsf_words import FAILED, angled, expanded
from headway_adapters.commands.machine import Job, Machine, Share
from headway_adapters.commands.server import Call, Caller, Reply
from headway_adapters.commands.system import Refused, System

JOB_ID = re.compile(r"(\d+)(?:\[([\d,-]*)\])?$")
#: How each flavour names itself.
PRODUCTS = {
    "ibm": "IBM Spectrum LSF Standard 10.1.0.12, Apr 16 2021\n"
    "Copyright International Business Machines Corp. 1992, 2016.\n"
    "US Government Users Restricted Rights - Use, duplication or disclosure restricted by GSA ADP Schedule "
    "Contract with IBM Corp.\n",
    "volclava": "volclava project 2.2, Nov 21 2026\n",
}


@dataclass
class Queue:
    """A queue of LSF."""

    name: str
    priority: int = 30
    active: bool = True
    open: bool = True


@dataclass(eq=False)
class Reservation:
    """An advance reservation; wall times."""

    id: str
    user: str
    hosts: tuple[str, ...]
    slots: int
    start: float
    end: float


class LsfServer(System):
    """What the commands share; the first host is the cluster's master."""

    def __init__(
        self, machine: Machine, *, cluster: str = "emulated", queues: Sequence[str] = ("normal",),
        flavour: str = "ibm", active: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(machine)
        self.cluster = cluster
        self.flavour = flavour
        self.version = PRODUCTS[flavour]
        self.master = next(iter(machine.nodes))
        self.queues = {name: Queue(name, active=active) for name in queues}
        self.default_queue = queues[0]
        self.reservations: dict[str, Reservation] = {}
        self._next = 1
        self._numbers: dict[str, int] = {}
        starter = pwd.getpwuid(os.getuid()).pw_name
        self.administrators = ["root", *([starter] if starter != "root" else [])]
        machine.scheduler = self._dispatch
        machine.began = self._on_start
        machine.ended = self._on_end

    def down(self, name: str) -> Reply:
        return Reply(0, "", "batch system daemon not responding ... still trying\n", wait=True)

    # ------------------------------------------------------------------ jobs by their ids

    def find(self, given: str) -> list[Job]:
        found = JOB_ID.fullmatch(given)
        if found is None:
            return []
        if found.group(2) and "," not in given and "-" not in given:
            return [job for job in (self.machine.jobs.get(given),) if job is not None]
        wanted = expanded(found.group(2) or "")
        number = int(found.group(1))
        return [
            job
            for job in self.machine.jobs.values()
            if job.number == number and (not wanted or job.index in wanted)
        ]

    def _each(self, call: Call, given: Sequence[str], action: Callable[[Job], str]) -> Reply:
        """Do something to each job; what it says is printed, the exit code is that of the last refusal."""
        if not given:
            raise Refused(FAILED, f"{call.name}: Job ID or job name is missing")
        out, err, rc = "", "", 0
        for word in given:
            if not JOB_ID.fullmatch(word):
                err += f"{word}: Illegal job ID.\n"
                rc = FAILED
                continue
            jobs = self.find(word)
            if not jobs:
                err += f"Job <{word}>: No matching job found\n"
                rc = FAILED
            for job in jobs:
                if len(jobs) > 1 and job.state == "ended":
                    continue
                try:
                    self._may(call.caller, job)
                    out += action(job)
                except Refused as refused:
                    err += f"Job <{job.id}>{' ' * (call.name == 'brequeue')}: {refused.message}\n"
                    rc = refused.rc
        return Reply(rc, out, err)

    def _may(self, caller: Caller, job: Job) -> None:
        if not caller.manager and caller.user != job.user:
            raise Refused(FAILED, "User permission denied")

    def _unfinished(self, job: Job) -> None:
        if job.state == "ended":
            raise Refused(FAILED, "Job has already finished")

    def _soon(self, action: Callable[[], None]) -> None:
        """Do something a little later, as sbatchd does."""
        self.machine.at(self.machine.now + self.machine.start_delay * self.machine.speed, action)

    def _note(self, job: Job, event: str) -> None:
        job.words["events"].append((self.machine.wall(), event))

    # ------------------------------------------------------------------ LSF's own scheduler

    def _dispatch(self) -> None:
        for name in sorted(self.queues, key=lambda name: -self.queues[name].priority):
            queue = self.queues[name]
            if not queue.active:
                continue
            for job in self.machine.queued():
                if job.queue != name or job.words["forced"] or self._enough_of(job):
                    continue
                shares = self._place(job)
                if shares is None:
                    break
                self._note(job, f"Dispatched to {angled(shares)}")
                self.machine.start(job, shares)

    def _enough_of(self, job: Job) -> bool:
        """Whether as many elements of its array run as its user lets run at a time."""
        most = job.words["at_once"]
        if not most:
            return False
        others = (one for one in self.machine.alive.values() if one.number == job.number)
        return sum(one.started is not None for one in others) >= most

    def _place(self, job: Job) -> list[Share] | None:
        """Slots on the first hosts that have some free, as the job's requirement says."""
        words = job.words
        requirement = words["requirement"]
        tile = re.search(r"span\s*\[\s*ptile\s*=\s*(\d+)", requirement)
        one_host = re.search(r"span\s*\[\s*hosts\s*=\s*1", requirement) is not None
        reservation = self.reservations.get(words["reservation"])
        now = self.machine.wall()
        end = now + job.walltime / self.machine.speed
        left = words["slots"]
        shares: list[Share] = []
        for node in self.machine.nodes.values():
            if not node.takes_jobs or (words["hosts"] and node.name not in words["hosts"]):
                continue
            if reservation is not None and node.name not in reservation.hosts:
                continue
            taken = any(
                other is not reservation
                and node.name in other.hosts
                and other.start < end
                and now < other.end
                for other in self.reservations.values()
            )
            exclusive = any(self.machine.jobs[job_id].words["exclusive"] for job_id in node.given)
            free = node.processors - node.assigned
            if taken or exclusive or (words["exclusive"] and node.given):
                continue
            count = min(free, left)
            if tile is not None:
                count = min(int(tile.group(1)), left) if free >= min(int(tile.group(1)), left) else 0
            elif one_host and free < left:
                count = 0
            if count > 0:
                shares.append(Share(node.name, count))
                left -= count
            if left == 0:
                return shares
        return None

    def _on_start(self, job: Job) -> None:
        process = 10_000 + 7 * job.number
        self._note(job, f"Starting (Pid {process})")
        self._note(
            job, f"Running with execution home <{job.words['home']}>, Execution CWD <{job.words['cwd']}>, "
            f"Execution Pid <{process}>",
        )  # fmt: skip

    def _on_end(self, job: Job) -> None:
        code: int | None = None
        if job.outcome == "completed":
            code = job.exit_code
        elif job.executions:
            code = 140 if job.outcome == "timed out" else 130
        job.words["code"] = code
        if code == 0:
            self._note(job, "Done successfully. The CPU time used is 0.0 seconds")
        elif code is None:
            self._note(job, "Exited")
        else:
            if job.outcome == "timed out":
                job.words["why"] = "TERM_RUNLIMIT: job killed after reaching LSF run time limit"
            elif job.outcome == "cancelled":
                job.words["why"] = "TERM_OWNER: job killed by owner"
            self._note(job, f"Exited with exit code {code}. The CPU time used is 0.0 seconds")

    def _time(self, given: str, end: str) -> float:
        """A wall time from ``[[[year:]month:]day:]hour:minute``, the next one that it can mean."""
        bad = Refused(FAILED, f"{given}: Bad time specification. {end}")
        parts = given.split(":")
        if not 2 <= len(parts) <= 5 or not all(part.isdecimal() for part in parts):
            raise bad
        numbers = [int(part) for part in parts]
        now = self.zone.local(self.machine.wall())
        minute, hour = numbers.pop(), numbers.pop()
        day = numbers.pop() if numbers else now.tm_mday
        month = numbers.pop() if numbers else now.tm_mon
        year = numbers.pop() if numbers else now.tm_year
        try:
            wall = self.zone.wall(year, month, day, hour, minute)
            if wall <= self.machine.wall():
                # The next day, month or year, whichever was not said.
                step = {2: (0, 0, 1), 3: (0, 1, 0), 4: (1, 0, 0)}.get(len(parts), (0, 0, 0))
                wall = self.zone.wall(year + step[0], month + step[1], day + step[2], hour, minute)
        except ValueError:
            raise bad from None
        return wall

    def _minute(self, wall: float) -> str:
        local = self.zone.local(wall)
        return self.zone.text(wall, "%b ") + f"{local.tm_mday:>2} " + self.zone.text(wall, "%H:%M")

    def _second(self, wall: float) -> str:
        return self.zone.text(wall, "%m/%d-%H:%M:%S")

    def _full(self, wall: float) -> str:
        local = self.zone.local(wall)
        return self.zone.text(wall, "%a %b ") + f"{local.tm_mday:>2} " + self.zone.text(wall, "%H:%M:%S")
