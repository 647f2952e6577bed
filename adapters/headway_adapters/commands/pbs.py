"""The commands of PBS over an emulated cluster.

What was seen on a running OpenPBS 23.06 and is done so here: ``qrun -H`` starts a held job, and starts
on a full vnode, without a word; it refuses a job whose time has not come or whose dependency is not met;
``qsig -s resume`` only asks the scheduler; ``admin-suspend`` puts the vnodes in maintenance; only a
manager raises the walltime of a running job; reservations wait for PBS's own scheduler; texts and exit
codes (the server's error number modulo 256, 2 for ``qrun``).

What was not seen and is our guess: the refusal of a start on vnodes that are down, offline or in
maintenance (the same as for resources that are not there), the texts of wrong options, what ``qalter``
says to wrong values.

PBS's own scheduler (``set server scheduling = True``) is first come, first served, and respects confirmed
reservations.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from headway_adapters.commands import pbs_text as text
from headway_adapters.commands.cjson import as_json
from headway_adapters.commands.machine import Job, Machine, Node, Share, runtime_of
from headway_adapters.commands.server import Call, Caller, Reply
from headway_adapters.commands.system import Refused, System, first_fit, options, stated_exit, stated_runtime

VERSION = "23.06.06"
#: Error numbers of the server, modulo 256.
_UNKNOWN_JOB = 153
_NOT_ALLOWED = 159
_UNKNOWN_QUEUE = 172
_BAD_VALUE = 166
_MODIFIES_RUNNING = 167
_BAD_STATE = 170
_FINISHED = 35
_CANNOT_CONNECT = 162
_NOT_RERUNABLE = 168
_BEFORE = {"after": "before", "afterok": "beforeok", "afternotok": "beforenotok", "afterany": "beforeany"}
_KINDS = {"after": "started", "afterok": "completed", "afternotok": "failed", "afterany": "ended"}
_JOB_ID = re.compile(r"(\d+)(\[(\d*)\])?(\.[\w.-]+)?$")
_TRUE = ("true", "t", "y", "yes", "1")


@dataclass(frozen=True)
class Chunk:
    """So many times these resources of one vnode."""

    count: int
    resources: Mapping[str, str]

    @property
    def processors(self) -> int:
        return int(self.resources.get("ncpus", "1"))

    @property
    def memory(self) -> int:
        return text.size(self.resources.get("mem", "0"))


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


class Pbs(System):
    """OpenPBS with one server."""

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
        self.commands = {
            "qstat": self._qstat, "qsub": self._qsub, "qrun": self._qrun, "qdel": self._qdel,
            "qhold": self._qhold, "qrls": self._qrls, "qalter": self._qalter, "qsig": self._qsig,
            "qrerun": self._qrerun, "qmove": self._qmove, "qmgr": self._qmgr, "pbsnodes": self._pbsnodes,
            "pbs_rsub": self._rsub, "pbs_rstat": self._rstat, "pbs_rdel": self._rdel,
            "pbs_release_nodes": self._release_nodes,
        }  # fmt: skip

    def down(self, name: str) -> Reply:
        said = f"Connection refused\n{name}: cannot connect to server {self.server} (errno=15010)\n"
        return Reply({"qstat": 255, "qrun": 2}.get(name, _CANNOT_CONNECT), "", said)

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
                raise Refused(_UNKNOWN_JOB, f"{name}: Unknown Job Id {given}")
            return list(self.arrays[full].elements)
        if full not in self.machine.jobs:
            raise Refused(_UNKNOWN_JOB, f"{name}: Unknown Job Id {given}")
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
        """Refuse whoever is neither manager nor (with ``owner``) the job's owner."""
        if not call.caller.manager and not (owner and call.caller.user == job.user):
            raise Refused(_NOT_ALLOWED, f"{call.name}: Unauthorized Request  {shown or job.id}")

    def _wants(self, call: Call, job: Job, *states: str) -> None:
        if job.state not in states:
            if job.state == "ended":
                raise Refused(_FINISHED, f"{call.name}: Job has finished {job.id}")
            raise Refused(_BAD_STATE, f"{call.name}: Request invalid for state of job {job.id}")

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
        return self.machine.free(node) and node.processors - node.assigned >= share.processors

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
        room: dict[str, Node] = {}
        for node in self.machine.nodes.values():
            if not self.machine.free(node) or (within is not None and node.name not in within):
                continue
            copy = Node(node.name, node.processors, node.memory, node.host)
            if start <= self.machine.wall():
                copy.given = {key: list(shares) for key, shares in node.given.items()}
            room[node.name] = copy
        if within is None:
            for other in self.reservations.values():
                if other.start < end and start < other.end:
                    for share in other.shares:
                        if share.node in room:
                            room[share.node].given.setdefault(other.id, []).append(share)
        shares: list[Share] = []
        for chunk in chunks_of(select):
            for _ in range(chunk.count):
                nodes = [node for node in room.values() if not (alone and node.given)]
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

    # ------------------------------------------------------------------ submission

    def _qsub(self, call: Call) -> Reply:
        given, rest = options(call, "a:A:c:C:e:fhj:J:k:l:m:M:N:o:p:P:q:r:R:S:u:v:VW:xXz")
        script = ""
        if call.script is not None:
            kind, script = call.script
            if kind == "error":
                return Reply(1, "", f"qsub: script file:: {script}\n")
            given = _directives(script) + given
            name = rest[0].rpartition("/")[2] if kind == "file" and rest else "STDIN"
        else:
            # `qsub ... -- program words`
            script = " ".join(rest)
            name = "STDIN"
        words: dict[str, Any] = {
            "Priority": 0, "Rerunable": "True", "Join_Path": "n", "project": "_pbs_project_default",
            "Submit_arguments": _arguments(call.words, rest), "resources": {}, "depend": [],
            "Variable_List": self._variables(call),
        }  # fmt: skip
        asked: list[str] = []
        settings: dict[str, Any] = {"queue": self.default_queue, "holds": set(), "begin": None}
        indices = ""
        for letter, value in given:
            if letter == "-l":
                asked.append(value)
            elif letter == "-N":
                name = value
            elif letter == "-J":
                indices = value
            else:
                self._set_option(call, letter, value, words, settings)
        words["select"], words["place"], words["resources"] = _request(call, asked)
        queue = settings["queue"]
        if queue not in self.queues:
            return Reply(_UNKNOWN_QUEUE, "", "qsub: Unknown queue\n")
        if not self.queues[queue].enabled:
            return Reply(_BAD_VALUE, "", "qsub: Queue is not enabled\n")
        words["Variable_List"]["PBS_O_QUEUE"] = queue
        number = self._next
        walltime = words["resources"].get("walltime")
        limit = text.seconds(walltime) if walltime is not None else math.inf
        runtime = runtime_of(stated_runtime(call, script), limit)
        try:
            elements: list[int | None] = list(_indices(indices)) if indices else [None]
        except ValueError:
            return Reply(_BAD_VALUE, "", f"qsub: illegal -J value: {indices}\n")
        self._next += 1
        array = Array(f"{number}[].{self.server}", indices) if indices else None
        if array is not None:
            self.arrays[array.id] = array
        for index in elements:
            suffix = "" if index is None else f"[{index}]"
            job = Job(
                id=f"{number}{suffix}.{self.server}", number=number, index=index, user=call.caller.user,
                group=call.caller.group, name=name, queue=queue, walltime=limit, runtime=runtime,
                exit_code=stated_exit(script), holds=set(settings["holds"]), begin=settings["begin"],
                dependencies=[(_KINDS[kind], other) for kind, other in words["depend"]],
                words={**words, "resources": dict(words["resources"]), "home": call.caller.home,
                       "cwd": call.cwd},
            )  # fmt: skip
            if array is not None:
                array.elements.append(job)
            self.machine.submit(job)
        return Reply(0, (array.id if array else f"{number}.{self.server}") + "\n")

    def _set_option(
        self, call: Call, letter: str, value: str, words: dict[str, Any], settings: dict[str, Any]
    ) -> None:
        """One option of qsub or qalter other than ``-l``, ``-N`` and ``-J``."""
        if letter == "-q":
            settings["queue"] = value.partition("@")[0]
        elif letter == "-h":
            settings["holds"] = {"u"} if call.name == "qsub" else set(value) - {"n"}
        elif letter == "-a":
            settings["begin"] = self._wall(call, value)
        elif letter == "-p":
            try:
                words["Priority"] = int(value)
            except ValueError:
                raise Refused(_BAD_VALUE, f"{call.name}: illegal -p value") from None
        elif letter == "-A":
            words["Account_Name"] = value
        elif letter == "-P":
            words["project"] = value
        elif letter == "-r":
            words["Rerunable"] = "True" if value == "y" else "False"
        elif letter == "-j":
            words["Join_Path"] = value
        elif letter in ("-o", "-e"):
            key = "Output_Path" if letter == "-o" else "Error_Path"
            words[key] = value if ":" in value else f"{self.server}:{value}"
        elif letter == "-v":
            words["Variable_List"] = {**words["Variable_List"], **_pairs(value, call.environment)}
        elif letter == "-W":
            for entry in _split(value):
                key, _, what = entry.partition("=")
                if key == "depend":
                    words["depend"] = self._dependencies(call, what)

    def _dependencies(self, call: Call, given: str) -> list[tuple[str, str]]:
        found = []
        for part in given.split(","):
            kind, *others = part.split(":")
            if kind in _BEFORE.values():
                continue
            if kind not in _KINDS or not others:
                raise Refused(_BAD_VALUE, f"{call.name}: illegal -W value")
            for other in others:
                jobs = self._jobs(other.partition("@")[0], call.name)
                found += [(kind, job.id) for job in jobs]
        return found

    def _variables(self, call: Call) -> dict[str, str]:
        environment = call.environment
        home = environment.get("HOME", call.caller.home)
        return {
            "PBS_O_HOME": home,
            "PBS_O_LANG": environment.get("LANG", "C.UTF-8"),
            "PBS_O_LOGNAME": call.caller.user,
            "PBS_O_PATH": environment.get("PATH", ""),
            "PBS_O_MAIL": f"/var/mail/{call.caller.user}",
            "PBS_O_SHELL": environment.get("SHELL", "/bin/sh"),
            "PBS_O_INTERACTIVE_AUTH_METHOD": "resvport",
            "PBS_O_INTERACTIVE_ENCRYPT_METHOD": "",
            "PBS_O_WORKDIR": call.cwd,
            "PBS_O_SYSTEM": "Linux",
            "PBS_O_QUEUE": self.default_queue,
            "PBS_O_HOST": self.server,
        }

    def _wall(self, call: Call, given: str) -> float:
        """A wall time from ``[[[[CC]YY]MM]DD]hhmm[.SS]``, the next one that it can mean."""
        digits, _, second = given.partition(".")
        if not re.fullmatch(r"(\d\d){2,6}", digits) or not re.fullmatch(r"(\d\d)?", second):
            raise Refused(_BAD_VALUE, f"{call.name}: illegal -a value")
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
            raise Refused(_BAD_VALUE, f"{call.name}: illegal -a value") from None
        return wall

    # ------------------------------------------------------------------ commands about jobs

    def _qrun(self, call: Call) -> Reply:
        given, rest = options(call, "aH:")
        where = dict(given).get("-H")
        said, rc = [], 0
        for word in rest:
            try:
                self._run_one(call, word, where)
            except Refused as refused:
                if ("-a", "") in given and refused.message.startswith("qrun: Resource temporarily"):
                    continue
                rc = 2
                said.append(refused.message + "\n")
        if not rest:
            return Reply(2, "", "usage: qrun [-a] [-H vnode_specification ] job_identifier_list\n")
        return Reply(rc, "", "".join(said))

    def _run_one(self, call: Call, word: str, where: str | None) -> None:
        jobs = self._jobs(word, "qrun")
        unavailable = Refused(2, f"qrun: Resource temporarily unavailable {word}")
        for job in jobs:
            self._may(call, job, word, owner=False)
            if job.state == "suspended" and where is None and not self.scheduling:
                raise Refused(2, f"qrun: Could not contact Scheduler {word}")
            if job.state != "queued":
                raise Refused(2, f"qrun: Request invalid for state of job {word}")
            early = job.begin is not None and job.begin > self.machine.wall()
            if self.refuse_starts or early or self.machine.dependency(job) is not True:
                raise unavailable
            if where is None:
                if not self.scheduling:
                    raise Refused(2, f"qrun: Could not contact Scheduler {word}")
                shares = self._place_job(job)
            else:
                shares = self._shares(job, where)
            if shares is None:
                raise unavailable
            self.machine.start(job, shares)

    def _shares(self, job: Job, where: str) -> list[Share] | None:
        """What ``-H`` says: one entry a chunk. None: not as many as the select has, or closed vnodes."""
        wanted = [chunk for chunk in chunks_of(job.words["select"]) for _ in range(chunk.count)]
        entries = _entries(where)
        shares = []
        for at, entry in enumerate(entries):
            for part in entry.strip("()").split("+"):
                name, _, resources = part.partition(":")
                if name not in self.machine.nodes:
                    raise Refused(2, f"qrun: Unknown node  {where}")
                given = dict(pair.partition("=")[::2] for pair in resources.split(":") if pair)
                try:
                    chunk = Chunk(1, given or (wanted[at].resources if at < len(wanted) else {}))
                    shares.append(Share(name, chunk.processors, chunk.memory))
                except ValueError:
                    raise Refused(2, f"qrun: Illegal attribute or resource value  {where}") from None
        if len(entries) != len(wanted):
            return None
        if not all(self.machine.free(self.machine.nodes[share.node]) for share in shares):
            return None
        return shares

    def _qdel(self, call: Call) -> Reply:
        _, rest = options(call, "xW:")

        def delete(job: Job) -> None:
            self._may(call, job)
            self._wants(call, job, "queued", "starting", "running", "suspended")
            self.machine.kill(job)

        return self._each(call, rest, delete)

    def _qhold(self, call: Call) -> Reply:
        given, rest = options(call, "h:")
        kinds = set(dict(given).get("-h", "u")) - {"n"}

        def hold(job: Job) -> None:
            self._may(call, job, owner=kinds <= {"u"})
            self._wants(call, job, "queued", "running")
            job.holds |= kinds
            job.modified = self.machine.wall()

        return self._each(call, rest, hold)

    def _qrls(self, call: Call) -> Reply:
        given, rest = options(call, "h:")
        kinds = set(dict(given).get("-h", "u"))

        def release(job: Job) -> None:
            self._may(call, job, owner=kinds <= {"u", "n"})
            self._wants(call, job, "queued", "running")
            job.holds -= kinds
            job.modified = self.machine.wall()
            self.machine.disturb()

        return self._each(call, rest, release)

    def _qalter(self, call: Call) -> Reply:
        given, rest = options(call, "a:A:c:e:h:j:k:l:m:M:N:o:p:P:r:R:S:u:v:W:")

        def alter(job: Job) -> None:
            self._may(call, job)
            self._wants(call, job, "queued", "starting", "running", "suspended")
            running = job.state != "queued"
            asked = [value for letter, value in given if letter == "-l"]
            if asked:
                self._alter_resources(call, job, asked, running)
            settings: dict[str, Any] = {"holds": None, "begin": None}
            for letter, value in given:
                if letter == "-N":
                    job.name = value
                elif letter != "-l":
                    if running and letter in ("-a", "-W"):
                        raise Refused(
                            _MODIFIES_RUNNING, f"qalter: Cannot modify attribute while job running  {job.id}"
                        )
                    self._set_option(call, letter, value, job.words, settings)
                    if letter == "-W":
                        job.dependencies = [(_KINDS[kind], other) for kind, other in job.words["depend"]]
            if settings["holds"] is not None:
                job.holds = settings["holds"]
            if settings["begin"] is not None:
                job.begin = settings["begin"]
                self.machine.at(self.machine.instant(job.begin), self.machine.disturb)
            job.modified = self.machine.wall()
            self.machine.disturb()

        return self._each(call, rest, alter)

    def _alter_resources(self, call: Call, job: Job, asked: Sequence[str], running: bool) -> None:
        given = _resources(call, asked)
        for name, value in given.items():
            if name == "walltime":
                try:
                    limit = text.seconds(value)
                except ValueError:
                    raise Refused(
                        _BAD_VALUE,
                        f"qalter: Illegal attribute or resource value Resource_List.walltime {job.id}",
                    ) from None
                if running and limit > job.walltime and not call.caller.manager:
                    raise Refused(_NOT_ALLOWED, f"qalter: Unauthorized Request  {job.id}")
                job.words["resources"]["walltime"] = text.duration(limit)
                self.machine.set_limit(job, limit)
            elif running:
                raise Refused(
                    _MODIFIES_RUNNING,
                    f"qalter: Cannot modify attribute while job running  Resource_List.{name} {job.id}",
                )
            else:
                kept = {
                    k: v for k, v in job.words["resources"].items() if k not in ("nodect", "ncpus", "mem")
                }
                if name == "select":
                    kept.pop("select", None)
                entries = [f"{k}={v}" for k, v in {**kept, **given}.items()]
                job.words["select"], job.words["place"], job.words["resources"] = _request(call, entries)

    def _qsig(self, call: Call) -> Reply:
        given, rest = options(call, "s:")
        signal = dict(given).get("-s", "SIGTERM")

        def send(job: Job) -> None:
            if signal in ("suspend", "resume", "admin-suspend", "admin-resume"):
                self._may(call, job, owner=False)
                self._suspend_or_resume(call, job, signal)
                return
            self._may(call, job)
            self._wants(call, job, "running", "suspended")
            number = {"SIGKILL": 9, "KILL": 9, "9": 9, "SIGTERM": 15, "TERM": 15, "15": 15}.get(signal)
            if number is not None:
                job.words["signal"] = 256 + number
                self.machine.kill(job, "failed")

        return self._each(call, rest, send)

    def _suspend_or_resume(self, call: Call, job: Job, signal: str) -> None:
        by_administrator = signal.startswith("admin")
        if signal.endswith("suspend"):
            self._wants(call, job, "running")
            job.by_administrator = by_administrator
            # A suspended job's processors can be given to others; those of one that an administrator
            # suspended are out of use.
            self.machine.suspend(job, keep=by_administrator)
            if by_administrator:
                for name in {share.node for share in job.shares}:
                    self.machine.nodes[name].maintenance.append(job.id)
                    self.machine.nodes[name].changed = self.machine.wall()
            return
        self._wants(call, job, "suspended")
        if job.by_administrator != by_administrator:
            raise Refused(_BAD_STATE, f"{call.name}: Request invalid for state of job {job.id}")
        if not by_administrator:
            job.resuming = True
            job.modified = self.machine.wall()
            self.machine.disturb()
            return
        job.by_administrator = False
        for name in {share.node for share in job.shares}:
            self.machine.nodes[name].maintenance.remove(job.id)
            self.machine.nodes[name].changed = self.machine.wall()
        self.machine.resume(job)
        self.machine.disturb()

    def _qrerun(self, call: Call) -> Reply:
        _, rest = options(call, "W:")

        def rerun(job: Job) -> None:
            self._may(call, job, owner=False)
            self._wants(call, job, "running", "suspended", "starting")
            if job.words["Rerunable"] != "True":
                raise Refused(_NOT_RERUNABLE, f"qrerun: job is not rerunable {job.id}")
            self.machine.requeue(job)
            job.words["Exit_status"] = -11

        return self._each(call, rest, rerun)

    def _qmove(self, call: Call) -> Reply:
        _, rest = options(call, "")
        if len(rest) < 2:
            raise Refused(2, "usage: qmove destination job_identifier...")
        queue = rest[0].partition("@")[0]

        def move(job: Job) -> None:
            self._may(call, job)
            self._wants(call, job, "queued")
            if queue not in self.queues:
                raise Refused(_UNKNOWN_QUEUE, f"qmove: Unknown queue {job.id}")
            job.queue = queue
            job.modified = self.machine.wall()
            self.machine.disturb()

        return self._each(call, rest[1:], move)

    def _release_nodes(self, call: Call) -> Reply:
        given, rest = options(call, "j:a")
        given_id = dict(given).get("-j")
        if given_id is None:
            raise Refused(2, "usage: pbs_release_nodes [-j job_identifier] host_or_vnode1 host_or_vnode2 ...")
        job = self._jobs(given_id, call.name)[0]
        self._may(call, job)
        self._wants(call, job, "running")
        primary = self.machine.nodes[job.shares[0].node].host
        names = rest or [share.node for share in job.shares]
        if ("-a", "") in given:
            names = [s.node for s in job.shares if self.machine.nodes[s.node].host != primary]
        for name in names:
            if name not in self.machine.nodes or all(share.node != name for share in job.shares):
                raise Refused(_BAD_VALUE, f"pbs_release_nodes: Unknown node  {name}")
            if self.machine.nodes[name].host == primary:
                raise Refused(
                    162, f"pbs_release_nodes: Can't free '{name}' since it's on a primary execution host"
                )
        for name in names:
            self.machine.nodes[name].given.pop(job.id, None)
        pairs = zip(job.shares, job.words["numbers"], strict=True)
        job.words["numbers"] = [number for share, number in pairs if share.node not in names]
        job.shares = [share for share in job.shares if share.node not in names]
        select = "+".join(
            f"1:ncpus={s.processors}" + (f":mem={text.size_text(s.memory)}" if s.memory else "")
            for s in job.shares
        )
        entries = [f"select={select}", f"place={job.words['place']}"]
        entries += [f"walltime={v}" for k, v in job.words["resources"].items() if k == "walltime"]
        job.words["select"], job.words["place"], job.words["resources"] = _request(call, entries)
        job.modified = self.machine.wall()
        self.machine.disturb()
        return Reply()

    # ------------------------------------------------------------------ listings of jobs

    def _qstat(self, call: Call) -> Reply:
        if call.words == ("--version",):
            return Reply(0, f"pbs_version = {VERSION}\n")
        given, rest = options(call, "BQfF:txw")
        flags = {letter for letter, _ in given}
        form = dict(given).get("-F", "")
        if form not in ("", "json"):
            raise Refused(2, f"qstat: invalid -F value {form}")
        if "-B" in flags:
            return self._show(form, "Server", {self.server: self._server_record()}, "Server: ", flags)
        if "-Q" in flags:
            unknown = [name for name in rest if name not in self.queues]
            if unknown:
                raise Refused(_UNKNOWN_QUEUE, f"qstat: Unknown queue {unknown[0]}")
            records = {name: self._queue_record(queue) for name, queue in self.queues.items()}
            kept = {name: record for name, record in records.items() if not rest or name in rest}
            return self._show(form, "Queue", kept, "Queue: ", flags)
        records, errors, rc = {}, [], 0
        if rest:
            for word in rest:
                try:
                    records.update(self._records_of(word, flags))
                except Refused as refused:
                    errors.append(refused.message + "\n")
                    rc = refused.rc
        else:
            records = self._all_records(flags)
        if "-f" in flags:
            reply = self._show(form, "Jobs", records, "Job Id: ", flags)
            return Reply(rc, reply.out, "".join(errors))
        rows = [
            (
                job_id,
                record["Job_Name"],
                record["Job_Owner"].partition("@")[0],
                record.get("resources_used", {}).get("cput", "0") if record["job_state"] != "Q" else "0",
                record["job_state"],
                record["queue"],
            )
            for job_id, record in records.items()
        ]
        return Reply(rc, text.table(rows), "".join(errors))

    def _show(
        self, form: str, key: str, records: Mapping[str, Any], title: str, flags: Iterable[str]
    ) -> Reply:
        if form == "json":
            head = {
                "timestamp": int(self.machine.wall()),
                "pbs_version": VERSION,
                "pbs_server": self.server,
            }
            return Reply(0, as_json({**head, key: records} if records else head) + "\n")
        if key != "Jobs" and "-f" not in flags:
            raise Refused(2, "qstat: only the full listing (-f) of queues and servers is emulated")
        return Reply(
            0, "".join(f"{title}{name}\n{text.attributes(record)}\n" for name, record in records.items())
        )

    def _all_records(self, flags: Iterable[str]) -> dict[str, Any]:
        records: dict[str, Any] = {}
        seen: set[str] = set()
        history = "-x" in flags
        for job in self.machine.jobs.values():
            array = self._array(job)
            if array is None:
                if history or job.state != "ended":
                    records[job.id] = self._record(job)
            elif array.id not in seen:
                seen.add(array.id)
                if history or array.alive:
                    records.update(self._array_records(array, flags))
        return records

    def _array_records(self, array: Array, flags: Iterable[str]) -> dict[str, Any]:
        records = {array.id: self._array_record(array)}
        if "-t" in flags:
            records.update({job.id: self._record(job) for job in array.elements})
        return records

    def _records_of(self, word: str, flags: set[str]) -> dict[str, Any]:
        if not word[:1].isdigit():
            raise Refused(_UNKNOWN_QUEUE, f"qstat: Unknown queue destination {word}")
        jobs = self._jobs(word, "qstat")
        array = self._array(jobs[0])
        finished = not array.alive if array else jobs[0].state == "ended"
        if finished and "-x" not in flags:
            raise Refused(
                _FINISHED,
                f"qstat: {word} Job has finished, use -x or -H to obtain historical job information",
            )
        if array is not None and "[]" in word:
            return self._array_records(array, flags)
        return {job.id: self._record(job) for job in jobs}

    def _letter(self, job: Job) -> tuple[str, int]:
        """State and substate."""
        if job.state == "ended":
            array = self._array(job)
            return ("X" if array and array.alive else "F"), job.words["substate"]
        if job.state == "queued":
            if job.holds:
                return "H", 20
            if self.machine.dependency(job) is not True:
                return "H", 22
            if job.begin is not None and job.begin > self.machine.wall():
                return "W", 30
            return "Q", 10
        if job.state == "suspended":
            return "S", 45 if job.resuming else 43
        return "R", 41 if job.state == "starting" else 42

    def _record(self, job: Job) -> dict[str, Any]:
        array = self._array(job)
        if array is not None and job.state == "queued" and not job.executions:
            # An element that never ran shows what the array has.
            record = self._array_record(array)
            for key in ("array", "array_state_count", "array_indices_submitted", "array_indices_remaining",
                        "project", "Submit_Host"):  # fmt: skip
                record.pop(key)
            record["job_state"], record["substate"] = self._letter(job)
            record["Hold_Types"] = "".join(sorted(job.holds)) or "n"
            return record
        record = self._full_record(job, array)
        if record["job_state"] == "X":
            for key in ("resources_used", "exec_host", "exec_vnode", "Hold_Types", "comment"):
                record.pop(key, None)
        return record

    def _array_record(self, array: Array) -> dict[str, Any]:
        first = array.elements[0]
        alive = array.alive
        begun = any(job.executions or job.state == "starting" for job in array.elements)
        record = self._full_record(first, None)
        for key in ("resources_used", "exec_host", "exec_vnode", "session_id", "jobdir", "hashname",
                    "run_count", "run_version", "obittime", "comment"):  # fmt: skip
            record.pop(key, None)
        held = alive[0].holds if alive else set()
        if alive:
            record.pop("history_timestamp", None)
        state, substate = ("F", 92) if not alive else ("B", 70) if begun else self._letter(alive[0])
        counts = {
            "Queued": sum(job.state == "queued" for job in alive),
            "Running": sum(job.state in ("running", "starting", "suspended") for job in alive),
            "Exiting": 0,
            "Expired": len(array.elements) - len(alive),
        }
        changes = {
            "job_state": state, "substate": substate, "Hold_Types": "".join(sorted(held)) or "n",
            "Error_Path": self._path(first, "e", "^array_index^"),
            "Output_Path": self._path(first, "o", "^array_index^"),
        }  # fmt: skip
        record = {key: changes.get(key, value) for key, value in record.items()}
        project, host = record.pop("project"), record.pop("Submit_Host")
        record |= {
            "array": "True",
            "array_state_count": " ".join(f"{key}:{count}" for key, count in counts.items()),
            "array_indices_submitted": array.indices,
            "array_indices_remaining": _ranges([job.index or 0 for job in alive if job.state == "queued"]),
            "project": project,
            "Submit_Host": host,
        }
        return record

    def _path(self, job: Job, letter: str, index: str) -> str:
        key = "Error_Path" if letter == "e" else "Output_Path"
        ready = job.words.get(key)
        if ready is not None:
            return str(ready)
        return f"{self.server}:{job.words['cwd']}/{job.name}.{letter}{job.number}" + (
            f".{index}" if index else ""
        )

    def _full_record(self, job: Job, array: Array | None) -> dict[str, Any]:
        words = job.words
        state, substate = self._letter(job)
        ran = job.executions > 0
        index = str(job.index) if job.index is not None else ""
        at = self._clock
        hosts = [
            f"{self.machine.nodes[share.node].host}/{number}*{share.processors}"
            for share, number in zip(job.shares, words.get("numbers", range(1 << 20)), strict=False)
        ]
        processors = sum(share.processors for share in job.shares)
        record: dict[str, Any] = {"Job_Name": job.name, "Job_Owner": f"{job.user}@{self.server}"}
        if ran and state != "Q" and state != "H":
            record["resources_used"] = {
                "cpupercent": 0, "cput": "00:00:00", "mem": "4692kb", "ncpus": processors,
                "vmem": "7684kb", "walltime": text.duration(self.machine.elapsed(job)),
            }  # fmt: skip
        record |= {"job_state": state, "queue": job.queue, "server": self.server}
        if "Account_Name" in words:
            record["Account_Name"] = words["Account_Name"]
        if array is None:
            record["Checkpoint"] = "u"
        record["ctime"] = at(job.submitted)
        depend = self._depend(job)
        if depend:
            record["depend"] = depend
        record["Error_Path"] = self._path(job, "e", index)
        if job.shares:
            record["exec_host"] = "+".join(hosts)
            record["exec_vnode"] = "+".join(_vnode(share) for share in job.shares)
        if job.begin is not None and job.state == "queued":
            record["Execution_Time"] = at(job.begin)
        waits = job.state == "queued" and self.machine.dependency(job) is not True
        holds = job.holds | ({"s"} if waits else set())
        record |= {
            "Hold_Types": "".join(sorted(holds)) or "n", "Join_Path": words["Join_Path"], "Keep_Files": "n",
            "Mail_Points": "a", "mtime": at(job.modified), "Output_Path": self._path(job, "o", index),
            "Priority": words["Priority"], "qtime": at(job.submitted), "Rerunable": words["Rerunable"],
            "Resource_List": words["resources"], "schedselect": words["select"],
        }  # fmt: skip
        if job.started is not None:
            record["stime"] = at(job.started)
        if job.stopped is not None and ran:
            record["obittime"] = at(job.stopped)
        if ran:
            record |= {"session_id": words.get("session_id", 500), "jobdir": words["home"]}
        record |= {
            "substate": substate, "Variable_List": words["Variable_List"], "euser": job.user,
            "egroup": job.group,
        }  # fmt: skip
        if ran:
            record["hashname"] = job.id
        record |= {"queue_rank": int(job.submitted * 1e6), "queue_type": "E"}
        if job.state == "ended" and ran:
            when = self.zone.text(job.started or 0.0, "%a %b %d at %H:%M")
            end = "finished" if job.outcome == "completed" else "failed"
            record["comment"] = f"Job run at {when} on {record.get('exec_vnode', '')} and {end}"
        if state not in ("W", "H"):
            record["etime"] = at(max(job.submitted, job.begin or 0.0))
        if ran:
            record["run_count"] = job.executions
        if job.state == "ended" and ran:
            record["Stageout_status"] = 1
        if words.get("Exit_status") is not None:
            record["Exit_status"] = words["Exit_status"]
        if array is None:
            record["Submit_arguments"] = words["Submit_arguments"]
        else:
            record |= {"array_id": array.id, "array_index": job.index}
        if job.state == "ended":
            record["history_timestamp"] = words["history_timestamp"]
        record["project"] = words["project"]
        if ran:
            record["run_version"] = job.executions
        record["Submit_Host"] = self.server
        return record

    def _depend(self, job: Job) -> str:
        parts: dict[str, list[str]] = {}
        for kind, other in job.words["depend"]:
            parts.setdefault(kind, []).append(f"{other}@{self.server}")
        for other_job in self.machine.alive.values():
            for kind, other in other_job.words["depend"]:
                if other == job.id:
                    parts.setdefault(_BEFORE[kind], []).append(f"{other_job.id}@{self.server}")
        return ",".join(":".join([kind, *others]) for kind, others in parts.items())

    # ------------------------------------------------------------------ server, queues, vnodes

    def _state_count(self, jobs: Iterable[Job]) -> str:
        counts = dict.fromkeys("TQHWREB", 0)
        arrays = set()
        for job in jobs:
            array = self._array(job)
            if array is not None and array.id not in arrays:
                arrays.add(array.id)
                counts["B"] += any(element.executions for element in array.elements)
            letter = self._letter(job)[0]
            letter = "R" if letter == "S" else letter
            if letter in counts:
                counts[letter] += 1
        names = ("Transit", "Queued", "Held", "Waiting", "Running", "Exiting", "Begun")
        return "".join(f"{name}:{count} " for name, count in zip(names, counts.values(), strict=True))

    def _assigned(self, jobs: Iterable[Job]) -> dict[str, int]:
        running = [job for job in jobs if job.state in ("running", "starting")]
        found = {
            "ncpus": sum(share.processors for job in running for share in job.shares),
            "nodect": sum(len(job.shares) for job in running),
        }
        return found

    def _queue_record(self, queue: Queue) -> dict[str, Any]:
        jobs = [job for job in self.machine.alive.values() if job.queue == queue.name]
        record: dict[str, Any] = {
            "queue_type": "Execution",
            "total_jobs": len(jobs),
            "state_count": self._state_count(jobs),
            **queue.attributes,
        }
        if any(job.state in ("running", "starting") for job in jobs):
            record["resources_assigned"] = self._assigned(jobs)
        return record | {"enabled": str(queue.enabled), "started": str(queue.started)}

    def _server_record(self) -> dict[str, Any]:
        alive = list(self.machine.alive.values())
        return {
            "server_state": "Active" if self.scheduling else "Idle",
            "server_host": self.server,
            "scheduling": str(self.scheduling),
            "total_jobs": len(self.machine.jobs),
            "state_count": self._state_count(alive),
            "default_queue": self.default_queue,
            "log_events": 511,
            "mailer": "/usr/sbin/sendmail",
            "mail_from": "adm",
            "query_other_jobs": "True",
            "resources_default": {"ncpus": 1},
            "default_chunk": {"ncpus": 1},
            "resources_assigned": self._assigned(alive),
            "scheduler_iteration": 600,
            "flatuid": "True",
            "resv_enable": "True",
            "node_fail_requeue": 310,
            "max_array_size": 10000,
            "resend_term_delay": 5,
            "pbs_license_min": 0,
            "pbs_license_max": 2147483647,
            "pbs_license_linger_time": 31536000,
            "license_count": "Avail_Global:1000000 Avail_Local:1000000 Used:0 High_Use:0",
            "pbs_version": VERSION,
            "eligible_time_enable": "False",
            "job_history_enable": "True",
            "max_concurrent_provision": 5,
            "clear_topjob_estimates_enable": "False",
            "power_provisioning": "False",
            "max_job_sequence_id": 9999999,
        }

    def _qmgr(self, call: Call) -> Reply:
        given, _ = options(call, "c:aezn")
        said = []
        for letter, line in given:
            if letter == "-c":
                said.append(self._qmgr_line(call, line))
        return Reply(0, "".join(said))

    def _qmgr_line(self, call: Call, line: str) -> str:
        words = shlex.split(re.sub(r"\s*([+-]?=)\s*", r" \1 ", line, count=1))
        if len(words) < 2:
            raise Refused(1, f"qmgr: Syntax error in line: {line}")
        verb, kind, *rest = words
        verb = {"s": "set", "l": "list", "p": "print", "c": "create", "d": "delete"}.get(verb, verb)
        kind = {"s": "server", "n": "node", "q": "queue"}.get(kind, kind)
        if verb in ("list", "print"):
            return self._qmgr_list(verb, kind, rest)
        if not call.caller.manager:
            name = rest[0] if kind != "server" and rest else ""
            raise Refused(1, f"qmgr obj={name} svr=default: Unauthorized Request  ")
        sign = next((word for word in rest if word in ("=", "+=", "-=")), None)
        if verb == "set" and sign is not None:
            where = rest.index(sign)
            names, attribute = rest[: where - 1], rest[where - 1]
            self._qmgr_set(kind, names, attribute, " ".join(rest[where + 1 :]))
            return ""
        if verb == "create" and kind == "queue" and rest:
            self.queues[rest[0]] = Queue(rest[0], enabled=False, started=False)
            return ""
        raise Refused(1, f"qmgr: Syntax error in line: {line}")

    def _qmgr_set(self, kind: str, names: Sequence[str], attribute: str, value: str) -> None:
        true = value.lower() in _TRUE
        if kind == "server":
            if attribute == "scheduling":
                self.scheduling = true
            elif attribute == "default_queue":
                self.default_queue = value
        elif kind == "queue":
            for queue in self._named(self.queues, names, "Unknown queue"):
                if attribute in ("enabled", "started"):
                    setattr(queue, attribute, true)
                else:
                    queue.attributes[attribute] = value
        elif kind == "node":
            for node in self._named(self.machine.nodes, names, "Unknown node"):
                if attribute == "state":
                    node.closed = "offline" in value
                elif attribute == "comment":
                    node.comment = value
                else:
                    node.attributes[attribute] = value
                node.changed = self.machine.wall()
        else:
            raise Refused(1, f"qmgr: Illegal object type: {kind}.")
        self.machine.disturb()

    def _named(self, known: Mapping[str, Any], names: Sequence[str], complaint: str) -> list[Any]:
        wanted = [name for word in names for name in word.split(",") if name]
        for name in wanted:
            if name not in known:
                raise Refused(1, f"qmgr obj={name} svr=default: {complaint} ")
        return [known[name] for name in wanted]

    def _qmgr_list(self, verb: str, kind: str, rest: Sequence[str]) -> str:
        if kind == "server":
            record = self._server_record()
            wanted = [name for word in rest for name in word.split(",") if name and name != self.server]
            record = {key: value for key, value in record.items() if not wanted or key in wanted}
            if verb == "print":
                return "".join(
                    f"set server {k} = {v}\n" for k, v in record.items() if isinstance(v, str | int)
                )
            return f"Server {self.server}\n{text.attributes(record)}\n"
        if kind == "queue":
            queues = self._named(self.queues, rest[:1] or list(self.queues), "Unknown queue")
            return "".join(f"Queue {q.name}\n{text.attributes(self._queue_record(q))}\n" for q in queues)
        if kind == "node":
            nodes = self._named(self.machine.nodes, rest[:1] or list(self.machine.nodes), "Unknown node")
            return "".join(f"Node {n.name}\n{text.attributes(self._node_record(n, False))}\n" for n in nodes)
        raise Refused(1, f"qmgr: Illegal object type: {kind}.")

    def _pbsnodes(self, call: Call) -> Reply:
        given, rest = options(call, "avo:c:r:lF:C:SjH:")
        flags = {letter for letter, _ in given}
        chosen = [value for letter, value in given if letter in ("-o", "-c", "-r")]
        if chosen:
            return self._set_offline(call, "-o" in flags, [*chosen, *rest], dict(given).get("-C"))
        if "-C" in flags:
            if not call.caller.manager:
                raise Refused(1, "pbsnodes: Unauthorized Request ")
            for node in self._nodes_of_hosts(rest):
                node.comment = dict(given)["-C"]
            return Reply()
        nodes = list(self.machine.nodes.values())
        if rest:
            for name in rest:
                if name not in self.machine.nodes:
                    return Reply(1, f"Node: {name},  Error: Unknown node \n")
            nodes = [self.machine.nodes[name] for name in rest]
        if "-l" in flags:
            out = [node for node in nodes if self._node_state(node).split(",")[0] in ("down", "offline")
                   or node.closed]  # fmt: skip
            return Reply(0, "".join(f"{n.name:<20} {self._node_state(n)} {n.comment}\n" for n in out))
        if dict(given).get("-F") == "json":
            head = {"timestamp": int(self.machine.wall()), "pbs_version": VERSION, "pbs_server": self.server}
            records = {node.name: self._node_record(node, True) for node in nodes}
            return Reply(0, as_json({**head, "nodes": records}) + "\n")
        listing = ""
        for node in nodes:
            record = self._node_record(node, False)
            listing += f"{node.name}\n{text.attributes(record, ' ' * 5, fold=False)}\n"
        return Reply(0, listing)

    def _nodes_of_hosts(self, names: Sequence[str]) -> list[Node]:
        """All vnodes of a host, or one vnode."""
        found = []
        for name in names:
            nodes = [node for node in self.machine.nodes.values() if name in (node.host, node.name)]
            if not nodes:
                raise Refused(1, f"pbsnodes: Unknown node  {name}")
            found += nodes
        return found

    def _set_offline(self, call: Call, closed: bool, names: Sequence[str], comment: str | None) -> Reply:
        nodes = self._nodes_of_hosts(names)
        if not call.caller.manager:
            raise Refused(1, "pbsnodes: Unauthorized Request ")
        for node in nodes:
            node.closed = closed
            node.changed = self.machine.wall()
            if comment is not None:
                node.comment = comment
        self.machine.disturb()
        return Reply()

    def _node_state(self, node: Node) -> str:
        states = []
        if node.down:
            states.append("down")
        if node.closed:
            states.append("offline")
        holders = [self.machine.jobs[job_id] for job_id in node.given]
        if any("excl" in job.words["place"] for job in holders):
            states.append("job-exclusive")
        elif node.processors and node.assigned >= node.processors:
            states.append("job-busy")
        if node.maintenance:
            states.append("maintenance")
        return ",".join(states) or "free"

    def _node_record(self, node: Node, for_json: bool) -> dict[str, Any]:
        several = sum(other.host == node.host for other in self.machine.nodes.values()) > 1
        record: dict[str, Any] = {
            "Mom": node.host, "Port": 15002, "pbs_version": VERSION, "ntype": "PBS",
            "state": self._node_state(node), "pcpus": node.processors or 2,
        }  # fmt: skip
        if node.given:
            if for_json:
                record["jobs"] = list(node.given)
            else:
                slots, at = [], 0
                for job_id, shares in node.given.items():
                    for _ in range(sum(share.processors for share in shares)):
                        slots.append(f"{job_id}/{at}")
                        at += 1
                record["jobs"] = slots
        record["resources_available"] = {
            "arch": "linux", "host": node.host, "mem": text.size_text(node.memory),
            "ncpus": node.processors, "vnode": node.name,
            **{k.partition(".")[2]: v for k, v in node.attributes.items()
               if k.startswith("resources_available.")},
        }  # fmt: skip
        memory = node.assigned_memory
        if for_json:
            assigned: dict[str, Any] = {"mem": text.size_text(memory)} if memory else {}
            record["resources_assigned"] = assigned | ({"ncpus": node.assigned} if node.given else {})
        else:
            record["resources_assigned"] = {
                "accelerator_memory": "0kb", "hbmem": "0kb",
                "mem": text.size_text(memory) if memory else "0kb", "naccelerators": 0,
                "ncpus": node.assigned, "vmem": "0kb",
            }  # fmt: skip
        if node.comment:
            record["comment"] = node.comment
        record |= {k: v for k, v in node.attributes.items() if not k.startswith("resources_available.")}
        record |= {"resv_enable": "True", "sharing": "default_shared"}
        if several:
            record["in_multivnode_host"] = 1
        if node.maintenance:
            record["maintenance_jobs"] = ",".join(node.maintenance)
        record["license"] = "l"
        record["last_state_change_time"] = int(node.changed) if for_json else self._clock(node.changed)
        if node.used is not None:
            record["last_used_time"] = int(node.used) if for_json else self._clock(node.used)
        return record

    # ------------------------------------------------------------------ reservations

    def _rsub(self, call: Call) -> Reply:
        given, _ = options(call, "R:E:D:l:N:U:I:q:")
        if call.caller.manager and call.caller.user == "root":
            raise Refused(247, "pbs_rsub: Bad effective UID for reservation")
        chosen = dict(given)
        if "-R" not in chosen or not ("-D" in chosen or "-E" in chosen):
            raise Refused(2, "pbs_rsub: missing start, end or duration")
        start = self._wall(call, chosen["-R"])
        try:
            end = start + text.seconds(chosen["-D"]) if "-D" in chosen else self._wall(call, chosen["-E"])
        except ValueError:
            raise Refused(2, "pbs_rsub: illegal -D value") from None
        select, _, _ = _request(call, [value for letter, value in given if letter == "-l"])
        name = f"R{self._next}"
        self._next += 1
        users = chosen.get("-U", call.caller.user)
        owners = ",".join(u if "@" in u else f"{u}@{self.server}" for u in users.split(","))
        reservation = Reservation(
            f"{name}.{self.server}", call.caller, chosen.get("-N", "NULL"), start, end, select,
            self.machine.wall(), owners,
        )  # fmt: skip
        self.reservations[reservation.id] = reservation
        wanted = sum(chunk.count * chunk.processors for chunk in chunks_of(select))
        self.queues[name] = Queue(name, False, False, {
            "acl_user_enable": "True", "acl_users": owners, "resources_max": {"ncpus": wanted},
            "resources_available": {"ncpus": wanted},
        })  # fmt: skip
        for wall in (start, end):
            self.machine.at(self.machine.instant(wall), self.machine.disturb)
        self.machine.at(self.machine.instant(end), lambda: self._remove(reservation))
        self._cycle()
        return Reply(0, f"{reservation.id} {'CONFIRMED' if reservation.shares else 'UNCONFIRMED'}\n")

    def _remove(self, reservation: Reservation) -> None:
        if self.reservations.pop(reservation.id, None) is None:
            return
        name = reservation.id.partition(".")[0]
        del self.queues[name]
        for job in [job for job in self.machine.alive.values() if job.queue == name]:
            self.machine.kill(job)

    def _rdel(self, call: Call) -> Reply:
        _, rest = options(call, "")
        for word in rest:
            full = word if "." in word else f"{word}.{self.server}"
            reservation = self.reservations.get(full)
            if reservation is None:
                raise Refused(206, f"pbs_rdel: Unknown Reservation Id  {word}")
            if not call.caller.manager and call.caller.user != reservation.owner.user:
                raise Refused(_NOT_ALLOWED, f"pbs_rdel: Unauthorized Request  {word}")
            self._remove(reservation)
        return Reply()

    def _rstat(self, call: Call) -> Reply:
        given, rest = options(call, "fFBS")
        flags = {letter for letter, _ in given}
        out = []
        known = [
            r for r in self.reservations.values() if not rest or r.id in rest or r.id.split(".")[0] in rest
        ]
        for reservation in known:
            if "-B" in flags:
                out.append(f"Resv ID: {reservation.id}\n")
            elif flags & {"-F", "-f"}:
                record = self._reservation_record(reservation)
                out.append(f"Resv ID: {reservation.id}\n{text.attributes(record, '', fold=False)}\n")
        if not flags & {"-F", "-f", "-B"} and known:
            out.append("Resv ID         Queue         User     State             Start / Duration / End\n")
            out.append("-" * 79 + "\n")
            for r in known:
                start = self.zone.text(r.start, "%a %H:%M")
                end = self.zone.text(r.end, "%a %H:%M")
                state = {"RESV_UNCONFIRMED": "UN", "RESV_CONFIRMED": "CO"}.get(
                    r.state(self.machine.wall())[0], "RN"
                )
                queue = r.id.partition(".")[0]
                out.append(f"{r.id:<15} {queue:<13} {r.owner.user + '@':<8} {state:<4} "
                           f"{start} / {int(r.end - r.start)} / {end}\n")  # fmt: skip
        return Reply(0, "".join(out))

    def _reservation_record(self, r: Reservation) -> dict[str, Any]:
        state, substate = r.state(self.machine.wall())
        _, place, resources = _request(None, [f"select={r.select}"])
        length = int(r.end - r.start)
        record: dict[str, Any] = {
            "Reserve_Name": r.name, "Reserve_Owner": f"{r.owner.user}@{self.server}", "reserve_state": state,
            "reserve_substate": substate, "reserve_start": self._clock(r.start),
            "reserve_end": self._clock(r.end), "reserve_duration": length, "queue": r.id.partition(".")[0],
            "Resource_List": {**resources, "place": place, "walltime": text.duration(length)},
            "schedselect": r.select,
        }  # fmt: skip
        if r.shares:
            record["resv_nodes"] = "+".join(_vnode(share) for share in r.shares)
        return record | {
            "Authorized_Users": r.users, "server": self.server, "ctime": self._clock(r.submitted),
            "mtime": self._clock(r.submitted),
            "Variable_List": {"PBS_O_LOGNAME": r.owner.user, "PBS_O_HOST": self.server,
                              "PBS_O_MAIL": f"/var/mail/{r.owner.user}"},
            "euser": r.owner.user, "egroup": r.owner.group, "reserve_count": 1, "Submit_Host": self.server,
        }  # fmt: skip


# ---------------------------------------------------------------------- what requests mean


def chunks_of(select: str) -> list[Chunk]:
    """``2:ncpus=4:mem=1gb+ncpus=2`` as chunks. Raises ValueError."""
    found = []
    for part in select.split("+"):
        first, *rest = part.split(":")
        if first.isdigit():
            count = int(first)
        else:
            count, rest = 1, [first, *rest]
        resources = dict(entry.partition("=")[::2] for entry in rest)
        if not all(resources) or not all(resources.values()):
            raise ValueError(select)
        chunk = Chunk(count, resources)
        if chunk.processors < 0 or chunk.memory < 0:
            raise ValueError(select)
        found.append(chunk)
    return found


def _resources(call: Call | None, asked: Sequence[str]) -> dict[str, str]:
    """The values of ``-l``, each a comma list of ``name=value``."""
    found: dict[str, str] = {}
    for entry in asked:
        for part in entry.split(","):
            name, equals, value = part.partition("=")
            if not equals or not name or not value:
                raise Refused(_BAD_VALUE, f"{call.name if call else 'qsub'}: illegal -l value")
            found[name] = value
    return found


def _request(call: Call | None, asked: Sequence[str]) -> tuple[str, str, dict[str, Any]]:
    """``(select with its defaults, place, Resource_List)``; raises :class:`Refused`."""
    name = call.name if call else "qsub"
    given = _resources(call, asked)
    place = given.pop("place", "free" if "select" in given else "pack")
    if "nodes" in given:
        # The old form: nodes=2:ppn=4
        select = "+".join(
            re.sub(r":?ppn=(\d+)", r":ncpus=\1", part) for part in given.pop("nodes").split("+")
        )
        place = "scatter"
    elif "select" in given:
        select = given.pop("select")
    else:
        select = f"1:ncpus={given.pop('ncpus', '1')}"
        if "mem" in given:
            select += f":mem={given.pop('mem')}"
    try:
        chunks = chunks_of(select)
        walltime = given.get("walltime")
        if walltime is not None:
            given["walltime"] = text.duration(text.seconds(walltime))
    except ValueError:
        raise Refused(
            _BAD_VALUE, f"{name}: Illegal attribute or resource value Resource_List.select"
        ) from None
    full = "+".join(
        f"{chunk.count}:"
        + ":".join(f"{k}={v}" for k, v in {**chunk.resources, "ncpus": chunk.processors}.items())
        for chunk in chunks
    )
    total: dict[str, Any] = {
        **given,
        "ncpus": sum(chunk.count * chunk.processors for chunk in chunks),
        "nodect": sum(chunk.count for chunk in chunks),
        "place": place,
        "select": select,
    }
    memory = sum(chunk.count * chunk.memory for chunk in chunks)
    if memory:
        total["mem"] = text.size_text(memory)
    return full, place, dict(sorted(total.items()))


def _entries(where: str) -> list[str]:
    """``(a:ncpus=1+b:ncpus=2)+(c)`` as its parenthesised parts."""
    found, depth, part = [], 0, ""
    for letter in where:
        depth += (letter == "(") - (letter == ")")
        if letter == "+" and depth == 0:
            found.append(part)
            part = ""
        else:
            part += letter
    return [*found, part]


def _vnode(share: Share) -> str:
    memory = f":mem={share.memory // 1024}kb" if share.memory else ""
    return f"({share.node}{memory}:ncpus={share.processors})"


def _indices(given: str) -> range:
    """``1-10`` or ``1-10:2`` (optionally ``%n``). Raises ValueError."""
    found = re.fullmatch(r"(\d+)-(\d+)(?::(\d+))?(?:%\d+)?", given)
    if found is None:
        raise ValueError(given)
    first, last, step = (int(part or 1) for part in found.groups())
    if last <= first or step < 1:
        raise ValueError(given)
    return range(first, last + 1, step)


def _ranges(numbers: Sequence[int]) -> str:
    """``1,3-5``; ``-`` for none."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and parts[-1][-1] == number - 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ",".join(f"{p[0]}-{p[-1]}" if len(p) > 1 else str(p[0]) for p in parts) or "-"


def _directives(script: str) -> list[tuple[str, str]]:
    """The options on the ``#PBS`` lines of a script, up to its first command."""
    found: list[tuple[str, str]] = []
    for line in script.splitlines():
        if line.startswith("#PBS"):
            try:
                words = shlex.split(line[4:])
            except ValueError:
                words = line[4:].split()
            call = Call("qsub", tuple(words), Caller("", "", False))
            found += options(call, "a:A:c:C:e:fhj:J:k:l:m:M:N:o:p:P:q:r:R:S:u:v:VW:xXz")[0]
        elif line.strip() and not line.startswith("#"):
            break
    return found


def _arguments(words: Sequence[str], rest: Sequence[str]) -> str:
    """The options as the user gave them, without the script or command."""
    return " ".join(words[: len(words) - len(rest)]).removesuffix(" --").removesuffix("--")


def _split(value: str) -> list[str]:
    """The ``name=value`` parts of ``-W``, whose values may hold commas."""
    found: list[str] = []
    for part in value.split(","):
        if "=" in part or not found:
            found.append(part)
        else:
            found[-1] += "," + part
    return found


def _pairs(value: str, environment: Mapping[str, str]) -> dict[str, str]:
    """The variables of ``-v``; one without a value has that of the environment."""
    found = {}
    for part in _split(value):
        name, equals, given = part.partition("=")
        found[name] = given if equals else environment.get(name, "")
    return found
