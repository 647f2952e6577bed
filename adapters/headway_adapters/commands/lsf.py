"""The commands of LSF over an emulated cluster, in two flavours: IBM Spectrum LSF and volclava.

What was seen on a running volclava 2.2 and is done so here: ``brun`` starts held jobs, jobs with unmet
dependencies and jobs whose time has not come, and starts on a full host, without a word, and the job runs
a little later; an inactivated queue accepts jobs and starts none; the limit of a running job cannot be
changed; ``bjobs -o`` knows few fields and refuses the whole command otherwise; ``bhosts`` and ``bqueues``
know no ``-json``; there are no reservations and no ``bresize``; a daemon that does not answer is waited
for without end. The IBM flavour is after its documentation: all fields, ``-json`` everywhere, limits of
running jobs, ``brsvadd``, ``brsvdel``, ``brsvs`` and ``bresize release``.

What was not seen and is our guess: the texts of refused options, what ``brun`` says to unknown hosts, too
few slots and hosts that are down. Dependency conditions are those joined by ``&&`` (others are refused),
memory is not counted, and there are no checkpoints and migrations.

LSF's own scheduler (an active queue) is first come, first served.
"""

from __future__ import annotations

import math
import os
import pwd
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from headway_adapters.commands import lsf_text as text
from headway_adapters.commands.cjson import as_json
from headway_adapters.commands.machine import Job, Machine, Node, Share, runtime_of
from headway_adapters.commands.server import Call, Caller, Reply
from headway_adapters.commands.system import Refused, System, stated_exit, stated_runtime

_FAILED = 255
_BAD_FIELD = 99
_JOB_ID = re.compile(r"(\d+)(?:\[([\d,-]*)\])?$")
_INDICES = re.compile(r"(.*)\[(\d[\d,:-]*)\](?:%\d+)?$", re.DOTALL)
_CONDITION = re.compile(r'(done|ended|started|exit)\(\s*(?:"([^"]*)"|([^")]+?))\s*\)$')
_KINDS = {"done": "completed", "ended": "ended", "started": "started", "exit": "failed"}
#: Fields of ``bjobs -o`` that volclava was seen to know.
_FEW_FIELDS = (
    "jobid", "stat", "user", "queue", "job_name", "exec_host", "submit_time", "start_time", "finish_time",
    "proj_name", "from_host", "mem",
)  # fmt: skip
#: Options of bsub and bmod that take a value, and those that take none.
_VALUES = (
    "-J", "-n", "-W", "-q", "-w", "-b", "-P", "-R", "-m", "-o", "-e", "-i", "-oo", "-eo", "-M", "-G", "-g",
    "-app", "-sp", "-U", "-Jd", "-u", "-k", "-cwd", "-env", "-c", "-F", "-v", "-S", "-t", "-We", "-E", "-L",
)  # fmt: skip
_FLAGS = ("-H", "-r", "-rn", "-x", "-xn", "-N", "-B", "-ar", "-V", "-Wn", "-bn", "-wn", "-Pn", "-spn", "-mn")

#: How each flavour names itself.
_PRODUCTS = {
    "ibm": "IBM Spectrum LSF Standard 10.1.0.12, Apr 16 2021\n"
    "Copyright International Business Machines Corp. 1992, 2016.\n"
    "US Government Users Restricted Rights - Use, duplication or disclosure restricted by GSA ADP Schedule "
    "Contract with IBM Corp.\n",
    "volclava": "volclava project 2.2, Nov 21 2026\n",
}
#: What bmod of IBM Spectrum LSF changes of a running job.
_OF_RUNNING = {"-W", "-Wn", "-M", "-R", "-r", "-rn"}


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


@dataclass(frozen=True)
class Selection:
    """Which jobs a listing shows."""

    users: str
    kinds: frozenset[str]
    ids: tuple[str, ...] = ()
    queue: str = ""
    name: str = ""
    options: Mapping[str, str] = field(default_factory=dict)


class Lsf(System):
    """One LSF cluster; the first host is its master."""

    def __init__(
        self, machine: Machine, *, cluster: str = "emulated", queues: Sequence[str] = ("normal",),
        flavour: str = "ibm", active: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(machine)
        self.cluster = cluster
        self.flavour = flavour
        self.version = _PRODUCTS[flavour]
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
        self.commands: dict[str, Callable[[Call], Reply]] = {
            "bjobs": self._bjobs, "bsub": self._bsub, "brun": self._brun, "bkill": self._bkill,
            "bstop": self._bstop, "bresume": self._bresume, "bmod": self._bmod,
            "brequeue": self._brequeue, "bswitch": self._bswitch, "btop": self._btop, "bbot": self._bbot,
            "bhosts": self._bhosts, "bqueues": self._bqueues, "lshosts": self._lshosts,
            "lsload": self._lsload, "lsid": self._lsid,
            "lsclusters": self._lsclusters, "badmin": self._badmin, "bparams": self._bparams,
            "bhist": self._bhist,
        }  # fmt: skip
        if flavour == "ibm":
            self.commands |= {
                "brsvadd": self._brsvadd, "brsvdel": self._brsvdel, "brsvs": self._brsvs,
                "bresize": self._bresize,
            }  # fmt: skip

    def down(self, name: str) -> Reply:
        return Reply(0, "", "batch system daemon not responding ... still trying\n", wait=True)

    # ------------------------------------------------------------------ jobs by their ids

    def find(self, given: str) -> list[Job]:
        found = _JOB_ID.fullmatch(given)
        if found is None:
            return []
        if found.group(2) and "," not in given and "-" not in given:
            return [job for job in (self.machine.jobs.get(given),) if job is not None]
        wanted = _expand(found.group(2) or "")
        number = int(found.group(1))
        return [
            job
            for job in self.machine.jobs.values()
            if job.number == number and (not wanted or job.index in wanted)
        ]

    def _each(self, call: Call, given: Sequence[str], action: Callable[[Job], str]) -> Reply:
        """Do something to each job; what it says is printed, the exit code is that of the last refusal."""
        if not given:
            raise Refused(_FAILED, f"{call.name}: Job ID or job name is missing")
        out, err, rc = "", "", 0
        for word in given:
            if not _JOB_ID.fullmatch(word):
                err += f"{word}: Illegal job ID.\n"
                rc = _FAILED
                continue
            jobs = self.find(word)
            if not jobs:
                err += f"Job <{word}>: No matching job found\n"
                rc = _FAILED
            for job in jobs:
                if len(jobs) > 1 and job.state == "ended":
                    continue
                try:
                    self._may(call.caller, job)
                    out += action(job)
                except Refused as refused:
                    err += f"Job <{job.id}>: {refused.message}\n"
                    rc = refused.rc
        return Reply(rc, out, err)

    def _may(self, caller: Caller, job: Job) -> None:
        if not caller.manager and caller.user != job.user:
            raise Refused(_FAILED, "User permission denied")

    def _unfinished(self, job: Job) -> None:
        if job.state == "ended":
            raise Refused(_FAILED, "Job has already finished")

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
                if job.queue != name or job.words["forced"]:
                    continue
                shares = self._place(job)
                if shares is None:
                    break
                self._note(job, f"Dispatched to {_angled(shares)}")
                self.machine.start(job, shares)

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
            if not self.machine.free(node) or (words["hosts"] and node.name not in words["hosts"]):
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

    # ------------------------------------------------------------------ submission

    def _bsub(self, call: Call) -> Reply:
        script = ""
        words = list(call.words)
        if call.script is not None:
            script = call.script[1]
            words = _directives(script) + words
        given, rest = _parsed(call, words)
        command = " ".join(rest) if rest else script
        if not command.strip():
            raise Refused(_FAILED, "bsub: No command is specified. Job not submitted.")
        chosen = dict(given)
        queue_name = chosen.get("-q", self.default_queue)
        queue = self.queues.get(queue_name)
        if queue is None:
            raise Refused(_FAILED, f"{queue_name}: No such queue. Job not submitted.")
        if not queue.open:
            raise Refused(_FAILED, f"{queue_name}: Queue has been closed. Job not submitted.")
        name = chosen.get("-J", command.strip().splitlines()[0] if rest else "")
        found = _INDICES.fullmatch(name)
        indices: Sequence[int | None] = [None]
        if found is not None:
            name = found.group(1)
            indices = sorted(_expand(found.group(2)))
            if not indices:
                raise Refused(_FAILED, "Bad index list. Job not submitted.")
        settings = self._settings(call, chosen, "Job not submitted.")
        limit = settings.pop("limit", math.inf)
        dependencies = settings.pop("dependencies", [])
        begin = settings.pop("begin", None)
        runtime = runtime_of(stated_runtime(call, command), limit)
        number = self._next
        self._next += 1
        for index in indices:
            job = Job(
                id=str(number) if index is None else f"{number}[{index}]", number=number, index=index,
                user=call.caller.user, group=call.caller.group,
                name=name if index is None else f"{name}[{index}]", queue=queue_name, walltime=limit,
                runtime=runtime, exit_code=stated_exit(command), begin=begin,
                holds={"u"} if "-H" in chosen else set(), dependencies=list(dependencies),
                words={
                    "slots": 1, "most": 0, "requirement": "", "hosts": (), "project": "default",
                    "condition": "", "priority": "-", "reservation": "", "group": "", "description": "",
                    **settings, "exclusive": "-x" in chosen, "resizable": "-ar" in chosen,
                    "command": command.strip(), "cwd": call.cwd, "home": call.caller.home,
                    "with_hold": "-H" in chosen, "forced": False, "events": [], "why": "", "code": None,
                },
            )  # fmt: skip
            self.machine.submit(job)
        kind = "queue" if "-q" in chosen else "default queue"
        return Reply(0, f"Job <{number}> is submitted to {kind} <{queue_name}>.\n")

    def _settings(self, call: Call, chosen: Mapping[str, str], end: str) -> dict[str, Any]:
        """What options of bsub and bmod say about a job; raises :class:`Refused`."""
        found: dict[str, Any] = {}
        if "-n" in chosen:
            least, _, most = chosen["-n"].partition(",")
            if not least.isdecimal() or int(least) < 1 or (most and not most.isdecimal()):
                raise Refused(_FAILED, f"Bad argument for option -n. {end}")
            found["slots"], found["most"] = int(least), int(most or 0)
        if "-W" in chosen:
            try:
                found["limit"] = text.run_limit(chosen["-W"])
            except ValueError:
                raise Refused(_FAILED, f"{chosen['-W']}: Illegal RUNLIMIT format. {end}") from None
        if "-w" in chosen:
            found["condition"] = chosen["-w"]
            found["dependencies"] = self._condition(call, chosen["-w"], end)
        if "-b" in chosen:
            found["begin"] = self._time(chosen["-b"], end)
        names = {"-P": "project", "-R": "requirement", "-sp": "priority", "-G": "group", "-Jd": "description"}
        found |= {name: chosen[letter] for letter, name in names.items() if letter in chosen}
        if "-m" in chosen:
            hosts = tuple(re.split(r"[+\s]+", chosen["-m"].strip()))
            for host in hosts:
                if host not in self.machine.nodes:
                    raise Refused(_FAILED, f"{host}: Bad host name, host group name or cluster name. {end}")
            found["hosts"] = hosts
        if "-U" in chosen:
            if chosen["-U"] not in self.reservations:
                raise Refused(_FAILED, f"{chosen['-U']}: The reservation does not exist. {end}")
            found["reservation"] = chosen["-U"]
        return found

    def _condition(self, call: Call, given: str, end: str) -> list[tuple[str, str]]:
        found = []
        bad = Refused(_FAILED, f"Invalid dependency condition <{given}>. {end}")
        for part in given.split("&&"):
            match = _CONDITION.fullmatch(part.strip().strip("()") + ")" if part.count("(") else part.strip())
            if match is None:
                raise bad
            kind, name, other = match.groups()
            if name is None and _JOB_ID.fullmatch(other):
                jobs = self.find(other)
            else:
                wanted = name if name is not None else other
                jobs = [j for j in self.machine.jobs.values() if _base_name(j) == wanted][-1:]
                jobs = [j for job in jobs for j in self.find(str(job.number))]
            jobs = [job for job in jobs if job.user == call.caller.user or call.caller.manager]
            if not jobs:
                raise bad
            found += [(_KINDS[kind], job.id) for job in jobs]
        return found

    def _time(self, given: str, end: str) -> float:
        """A wall time from ``[[[year:]month:]day:]hour:minute``, the next one that it can mean."""
        bad = Refused(_FAILED, f"{given}: Bad time specification. {end}")
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

    # ------------------------------------------------------------------ commands about jobs

    def _brun(self, call: Call) -> Reply:
        given, rest = _letters(call, {"-m": True, "-b": False, "-c": False, "-f": False})
        refused = "Failed to run the job: "
        if not call.caller.manager:
            return Reply(_FAILED, "", f"{refused}User permission denied\n")
        if len(rest) != 1 or not _JOB_ID.fullmatch(rest[0]):
            return Reply(_FAILED, "", f"{rest[0] if rest else 'brun'}: Illegal job ID.\n")
        jobs = self.find(rest[0])
        if not jobs:
            return Reply(_FAILED, "", f"{refused}No matching job found\n")
        asked = given.get("-m", "").split() or list(self.machine.nodes)
        for job in jobs:
            if job.state == "ended":
                return Reply(_FAILED, "", f"{refused}Job has already finished\n")
            if job.state != "queued":
                return Reply(_FAILED, "", f"{refused}Job has already started\n")
            if self.refuse_starts:
                return Reply(_FAILED, "", f"{refused}Host or host group is not available\n")
            try:
                shares = self._forced(job, asked)
            except Refused as reason:
                return Reply(reason.rc, "", f"{refused}{reason.message}\n")
            job.holds.clear()
            self._note(job, f"Job is forced to run by user or administrator <{call.caller.user}>")
            self._note(job, f"Dispatched to {_angled(shares)}")
            self.machine.start(job, shares)
        return Reply(0, f"Job <{rest[0]}> is being forced to run.\n")

    def _forced(self, job: Job, asked: Sequence[str]) -> list[Share]:
        """The slots on the hosts that ``brun -m`` names, one host after the other, however full they are.

        IBM Spectrum LSF also takes ``host#slots`` (and ``host*slots``).
        """
        left = job.words["slots"]
        counts: dict[str, int] = {}
        for word in asked:
            host, given = word, ""
            if self.flavour == "ibm":
                host, _, given = word.replace("*", "#").partition("#")
            if host not in self.machine.nodes or (given and not given.isdecimal()):
                raise Refused(_FAILED, f"{word}: Bad host name, host group name or cluster name")
            if self.machine.nodes[host].down:
                raise Refused(_FAILED, "Host or host group is not available")
            count = min(int(given) if given else self.machine.nodes[host].processors, left)
            counts[host] = counts.get(host, 0) + count
            left -= count
        if left:
            raise Refused(_FAILED, "Not enough slots on the specified hosts")
        return [Share(host, count) for host, count in counts.items() if count]

    def _bkill(self, call: Call) -> Reply:
        given, rest = _letters(
            call, {"-s": True, "-r": False, "-u": True, "-q": True, "-J": True, "-d": False}
        )
        signal = given.get("-s", "KILL").removeprefix("SIG")

        def kill(job: Job) -> str:
            self._unfinished(job)
            if signal in ("STOP", "TSTP", "CONT"):
                return self._stop(call, job) if signal != "CONT" else self._resume(call, job)
            if signal in ("KILL", "TERM", "INT", "9", "15", "2"):
                self._note(job, f"Signal <KILL> requested by user or administrator <{call.caller.user}>")
                self.machine.kill(job)
                return f"Job <{job.id}> is being terminated\n"
            return f"Job <{job.id}> is being signaled\n"

        return self._each(call, self._or_all(call, rest), kill)

    def _or_all(self, call: Call, rest: Sequence[str]) -> list[str]:
        """The ids given; ``0`` means all unfinished jobs of the user (of everybody, for a manager)."""
        if list(rest) != ["0"]:
            return list(rest)
        alive = self.machine.alive.values()
        return [job.id for job in alive if call.caller.manager or job.user == call.caller.user]

    def _bstop(self, call: Call) -> Reply:
        _, rest = _letters(call, {"-u": True, "-q": True, "-J": True})
        return self._each(call, self._or_all(call, rest), lambda job: self._stop(call, job))

    def _stop(self, call: Call, job: Job) -> str:
        self._unfinished(job)
        letter = "u" if call.caller.user == job.user else "a"
        if job.state == "queued":
            job.holds.add(letter)
            job.modified = self.machine.wall()
        elif job.state == "running":
            job.words["stopped_by"] = letter

            def suspend() -> None:
                if job.state == "running":
                    self._note(job, "Suspended by the user or administrator")
                    self.machine.suspend(job, keep=True)

            self._soon(suspend)
        return f"Job <{job.id}> is being stopped\n"

    def _bresume(self, call: Call) -> Reply:
        _, rest = _letters(call, {"-u": True, "-q": True, "-J": True})
        return self._each(call, self._or_all(call, rest), lambda job: self._resume(call, job))

    def _resume(self, call: Call, job: Job) -> str:
        self._unfinished(job)
        holds = {job.words.get("stopped_by", "u")} if job.state == "suspended" else job.holds
        if "a" in holds and not call.caller.manager:
            raise Refused(_FAILED, "User permission denied")
        if job.state == "queued" and job.holds:
            job.holds.clear()
            job.modified = self.machine.wall()
            self.machine.disturb()
        elif job.state == "suspended":
            job.resuming = True
            self._note(job, "Suspended:  Waiting for re-scheduling after being resumed by user")

            def resume() -> None:
                if job.state == "suspended" and job.resuming:
                    self._note(job, "Running")
                    self.machine.resume(job)

            self._soon(resume)
        else:
            raise Refused(_FAILED, "Job has not been suspended or stopped")
        return f"Job <{job.id}> is being resumed\n"

    def _bmod(self, call: Call) -> Reply:
        given, rest = _parsed(call, call.words)
        chosen = dict(given)

        def modify(job: Job) -> str:
            if job.state == "ended":
                raise Refused(_FAILED, "Job has already finished")
            changeable = self.flavour == "ibm" and set(chosen) <= _OF_RUNNING
            if job.state != "queued" and not changeable:
                said = "Job parameters cannot be changed now; non-repetitive job is running."
                raise Refused(_FAILED, said)
            settings = self._settings(call, chosen, "Job not modified.")
            if "-Wn" in chosen or "limit" in settings:
                self.machine.set_limit(job, settings.pop("limit", math.inf))
            if "-wn" in chosen:
                settings |= {"dependencies": [], "condition": ""}
            if "dependencies" in settings:
                job.dependencies = settings.pop("dependencies")
            if "-bn" in chosen or "begin" in settings:
                job.begin = settings.pop("begin", None)
                if job.begin is not None:
                    self.machine.at(self.machine.instant(job.begin), self.machine.disturb)
            if "-mn" in chosen:
                settings["hosts"] = ()
            if "-J" in chosen:
                job.name = chosen["-J"]
            if "-q" in chosen:
                self._switch(job, chosen["-q"])
            if "-x" in chosen or "-xn" in chosen:
                settings["exclusive"] = "-x" in chosen
            job.words.update(settings)
            job.modified = self.machine.wall()
            self.machine.disturb()
            return f"Parameters of job <{job.id}> are being changed\n"

        return self._each(call, rest, modify)

    def _brequeue(self, call: Call) -> Reply:
        flags = dict.fromkeys(("-H", "-a", "-r", "-d", "-e", "-p"), False)
        given, rest = _letters(call, {**flags, "-J": True, "-u": True})

        def requeue(job: Job) -> str:
            if job.state in ("queued", "ended"):
                raise Refused(_FAILED, "Job is not in a state to be requeued")
            user = call.caller.user
            self._note(job, f"Signal <REQUEUE_PEND> requested by user or administrator <{user}>")
            self._note(job, "Exited with exit code 130. The CPU time used is 0.0 seconds")
            self.machine.requeue(job)
            if "-H" in given:
                job.holds.add("u")
            self._note(job, "Pending: Job has been requeued")
            return f"Job <{job.id}> is being requeued\n"

        return self._each(call, rest, requeue)

    def _bswitch(self, call: Call) -> Reply:
        _, rest = _letters(call, {"-q": True, "-u": True, "-J": True})
        if not rest:
            raise Refused(_FAILED, "bswitch: Destination queue is missing")

        def switch(job: Job) -> str:
            self._unfinished(job)
            self._switch(job, rest[0])
            return f"Job <{job.id}> is switched to queue <{rest[0]}>\n"

        return self._each(call, rest[1:], switch)

    def _switch(self, job: Job, queue: str) -> None:
        if queue not in self.queues:
            raise Refused(_FAILED, f"{queue}: No such queue")
        job.queue = queue
        job.modified = self.machine.wall()
        self.machine.disturb()

    def _btop(self, call: Call) -> Reply:
        return self._move(call, "top")

    def _bbot(self, call: Call) -> Reply:
        return self._move(call, "bottom")

    def _move(self, call: Call, end: str) -> Reply:
        _, rest = _letters(call, {"-u": True})
        position = int(rest[1]) if len(rest) > 1 and rest[1].isdecimal() and int(rest[1]) > 0 else 1

        def move(job: Job) -> str:
            if job.state != "queued":
                raise Refused(_FAILED, "Job has already started")
            others = sorted(
                (j for j in self.machine.alive.values() if j.state == "queued" and j is not job),
                key=lambda other: other.rank,
            )
            at = min(position - 1, len(others)) if end == "top" else max(len(others) - position + 1, 0)
            before = others[at - 1].rank if at else (others[0].rank - 2.0 if others else job.rank)
            after = others[at].rank if at < len(others) else before + 2.0
            job.rank = (before + after) / 2
            self._note(
                job, f"Job moved to position {position} relative to <{end}> by user or administrator "
                f"<{call.caller.user}>",
            )  # fmt: skip
            return f"Job <{job.id}> has been moved to position {position} from {end}.\n"

        return self._each(call, rest[:1], move)

    def _bresize(self, call: Call) -> Reply:
        if len(call.words) < 3 or call.words[0] != "release":
            raise Refused(_FAILED, "usage: bresize release [-c] released_host_specification job_ID")
        *_, what, job_id = call.words

        def release(job: Job) -> str:
            if job.state != "running":
                raise Refused(_FAILED, "Job is not running")
            if not job.words["resizable"]:
                raise Refused(_FAILED, "Job is not resizable")
            left = {share.node: share.processors for share in job.shares}
            for word in what.split():
                count, star, host = word.rpartition("*")
                if left.get(host, 0) < (int(count) if count.isdecimal() else 1):
                    raise Refused(_FAILED, f"{word}: Bad host specification")
                left[host] = left[host] - int(count) if star else 0
            if not any(left.values()):
                raise Refused(_FAILED, "Cannot release all slots of a job")
            for share in job.shares:
                self.machine.nodes[share.node].given.pop(job.id, None)
            job.shares = [Share(host, count) for host, count in left.items() if count]
            for share in job.shares:
                self.machine.nodes[share.node].given.setdefault(job.id, []).append(share)
            job.words["slots"] = sum(left.values())
            job.modified = self.machine.wall()
            self.machine.disturb()
            return f"Job resize request is submitted for job <{job.id}>\n"

        return self._each(call, [job_id], release)

    # ------------------------------------------------------------------ listings of jobs

    def _bjobs(self, call: Call) -> Reply:
        letters: dict[str, bool] = dict.fromkeys(
            ("-a", "-w", "-l", "-UF", "-json", "-p", "-r", "-s", "-d", "-noheader", "-X", "-W"), False
        )
        given, rest = _letters(call, {**letters, "-u": True, "-q": True, "-J": True, "-o": True, "-m": True})
        for word in rest:
            if not _JOB_ID.fullmatch(word):
                return Reply(_FAILED, "", f"{word}: Illegal job ID.\n")
        fields: list[str] = []
        if "-o" in given:
            fields = [
                word.partition(":")[0] for word in re.sub(r"delimiter='[^']*'", "", given["-o"]).split()
            ]
            known = _FEW_FIELDS if self.flavour == "volclava" else tuple(self._fields())
            for name in fields:
                if name.lower() not in known:
                    said = f"<{name.upper()}> in the format string is not a valid field name.\n"
                    return Reply(_BAD_FIELD, "", said)
        jobs, missing = self._selected(call, given, rest)
        err = "".join(f"Job <{word}> is not found\n" for word in missing)
        rc = _FAILED if missing or not jobs else 0
        if not jobs and not missing and "-json" not in given:
            kind = "unfinished " if "-a" not in given and "-d" not in given else ""
            return Reply(_FAILED, "", f"No {kind}job found\n")
        if fields:
            return Reply(rc, self._formatted(call, given, fields, jobs), err)
        if "-p" in given:
            entries = [
                (
                    (
                        str(j.number),
                        j.user,
                        _stat(j),
                        j.queue,
                        self.master,
                        j.name,
                        self._minute(j.submitted),
                    ),
                    self._reason(j),
                )
                for j in jobs
            ]
            return Reply(rc, text.pending_table(entries), err)
        if "-l" in given or "-UF" in given:
            return Reply(rc, text.joined([self._long(job, "-UF" in given) for job in jobs]), err)
        rows = [
            (
                str(job.number), job.user, _stat(job), job.queue, self.master,
                self._hosts(job), job.name, self._minute(job.submitted),
            )
            for job in jobs
        ]  # fmt: skip
        return Reply(rc, text.jobs_table(rows, head="-noheader" not in given), err)

    def _selected(
        self, call: Call, given: Mapping[str, str], rest: Sequence[str]
    ) -> tuple[list[Job], list[str]]:
        """The jobs that a listing shows, running ones first, and the ids that mean none."""
        missing = [word for word in rest if not self.find(word)]
        if rest:
            jobs = [job for word in rest for job in self.find(word)]
        else:
            user = given.get("-u", call.caller.user)
            jobs = [job for job in self.machine.jobs.values() if user in ("all", job.user)]
            kinds = set()
            if "-a" in given:
                kinds = {"queued", "starting", "running", "suspended", "ended"}
            kinds |= {"queued", "starting"} if "-p" in given else set()
            kinds |= {"running"} if "-r" in given else set()
            kinds |= {"suspended"} if "-s" in given else set()
            kinds |= {"ended"} if "-d" in given else set()
            kinds = kinds or {"queued", "starting", "running", "suspended"}
            jobs = [job for job in jobs if job.state in kinds]
        if "-q" in given:
            jobs = [job for job in jobs if job.queue == given["-q"]]
        if "-J" in given:
            jobs = [job for job in jobs if given["-J"] in (job.name, _base_name(job))]
        order = {"running": 0, "suspended": 0, "starting": 1, "queued": 1, "ended": 2}
        return sorted(jobs, key=lambda job: (order[job.state], job.rank)), missing

    def _hosts(self, job: Job) -> str:
        """Where a job runs or ran."""
        if job.state in ("queued", "starting"):
            return ""
        if self.flavour == "ibm":
            return ":".join(f"{s.processors}*{s.node}" if s.processors > 1 else s.node for s in job.shares)
        return ":".join(share.node for share in job.shares for _ in range(share.processors))

    def _formatted(
        self, call: Call, given: Mapping[str, str], names: Sequence[str], jobs: Sequence[Job]
    ) -> str:
        fields = self._fields()
        records = [{name.upper(): fields[name.lower()](job) for name in names} for job in jobs]
        if "-json" in given:
            return as_json({"COMMAND": "bjobs", "JOBS": len(records), "RECORDS": records}) + "\n"
        return _columns([name.upper() for name in names], records, head="-noheader" not in given)

    def _fields(self) -> dict[str, Callable[[Job], str]]:
        """What each field of ``bjobs -o`` shows."""

        def started(job: Job) -> str:
            if job.started is None:
                return "-"
            return self._second(job.started) if self.flavour == "volclava" else self._minute(job.started)

        def finished(job: Job) -> str:
            if job.state == "ended" and job.stopped is not None:
                if self.flavour == "volclava":
                    return self._second(job.stopped)
                return self._minute(job.stopped) + (" L" if job.outcome == "completed" else " E")
            if self.flavour == "ibm" and job.state == "running" and not math.isinf(job.walltime):
                left = (job.walltime - self.machine.elapsed(job)) / self.machine.speed
                return self._minute(self.machine.wall() + left) + " L"
            return "-"

        def listed_hosts(job: Job) -> str:
            if self.flavour == "ibm":
                return self._hosts(job) or "-"
            # Each host once, however many slots the job has there.
            return ":".join(dict.fromkeys(self._hosts(job).split(":")))

        def slots(job: Job) -> int:
            return sum(share.processors for share in job.shares)

        def placed(job: Job) -> bool:
            return job.state in ("running", "suspended", "ended") and job.executions > 0

        return {
            "jobid": lambda job: str(job.number),
            "jobindex": lambda job: str(job.index or 0),
            "stat": _stat,
            "user": lambda job: job.user,
            "user_group": lambda job: job.words["group"] or "-",
            "queue": lambda job: job.queue,
            "job_name": lambda job: job.name,
            "job_description": lambda job: job.words["description"] or "-",
            "proj_name": lambda job: job.words["project"],
            "from_host": lambda job: self.master,
            "exec_host": listed_hosts,
            "alloc_slot": lambda job: ":".join(f"{s.processors}*{s.node}" for s in job.shares)
            if placed(job) else "-",
            "nalloc_slot": lambda job: str(slots(job)) if placed(job) else "-",
            "nexec_host": lambda job: str(len(job.shares)) if placed(job) else "-",
            "first_host": lambda job: job.shares[0].node if placed(job) and job.shares else "-",
            "slots": lambda job: str(slots(job) if placed(job) else job.words["slots"]),
            "ask_hosts": lambda job: " ".join(job.words["hosts"]) or "-",
            "submit_time": lambda job: self._minute(job.submitted),
            "start_time": started,
            "finish_time": finished,
            "specified_start_time": lambda job: "-" if job.begin is None else self._minute(job.begin),
            "specified_terminate_time": lambda job: "-",
            "min_req_proc": lambda job: str(job.words["slots"]),
            "max_req_proc": lambda job: str(job.words["most"] or job.words["slots"]),
            "nreq_slot": lambda job: str(job.words["slots"]),
            "runtimelimit": lambda job: "-" if math.isinf(job.walltime) else f"{job.walltime / 60:.1f}",
            "run_time": lambda job: f"{self.machine.elapsed(job):.0f} second(s)",
            "combined_resreq": self._needs,
            "effective_resreq": lambda job: self._needs(job) if placed(job) else "-",
            "dependency": lambda job: job.words["condition"] or "-",
            "exclusive": lambda job: "Y" if job.words["exclusive"] else "N",
            "rsvid": lambda job: job.words["reservation"] or "-",
            "exit_code": lambda job: "-" if not job.words["code"] else str(job.words["code"]),
            "exit_reason": lambda job: job.words["why"] or "-",
            "pend_reason": lambda job: self._reason(job) + ";" if job.state == "queued" else "-",
            "priority": lambda job: str(job.words["priority"]),
            "command": lambda job: job.words["command"],
            "resize_enabled": lambda job: "Y" if job.words["resizable"] else "N",
            "mem": lambda job: ("0" if self.flavour == "volclava" else "-") if job.started is None
            else "6960" if self.flavour == "volclava" else "6.7 Mbytes",
        }  # fmt: skip

    def _needs(self, job: Job) -> str:
        own = job.words["requirement"]
        return "select[type == local] order[r15s:pg]" + (f" {own}" if own else "")

    def _reason(self, job: Job) -> str:
        """Why it waits."""
        if job.holds:
            return "The job was suspended by the user while pending"
        if not self.queues[job.queue].active:
            return "The queue is inactivated by the administrator"
        if self.machine.dependency(job) is None:
            return "Dependency condition invalid or never satisfied"
        if self.machine.dependency(job) is False:
            return "Job dependency condition not satisfied"
        if job.begin is not None and job.begin > self.machine.wall():
            return "Job has a specified start time"
        full = sum(node.assigned >= node.processors for node in self.machine.nodes.values())
        return f"Job slot limit reached: {full} host" + ("s" if full != 1 else "")

    def _long(self, job: Job, unwrapped: bool) -> str:
        words = job.words
        head = (
            f"Job <{job.id}>, Job Name <{job.name}>, User <{job.user}>, Project <{words['project']}>, "
            f"Status <{_stat(job)}>, Queue <{job.queue}>, Command <{words['command']}>"
        )
        kind = "Task(s)" if unwrapped else "Processors Requested"
        lines = [self._submission(job, "", kind)]
        if job.started is not None and job.state in ("running", "suspended", "ended"):
            lines.append(f"{self._full(job.started)}: {self._start_line(job, unwrapped)};")
        if job.state == "ended" and job.stopped is not None:
            event = words["events"][-1][1] if words["events"] else "Exited"
            lines.append(f"{self._full(job.stopped)}: {event};")
            if words["why"]:
                lines.append(f"{self._full(job.stopped)}: {words['why']};")
        reason = None
        if job.state in ("queued", "starting"):
            reason = ("PENDING REASONS", self._reason(job))
        elif job.state == "suspended":
            why = "Waiting for re-scheduling after being resumed by user" if job.resuming else (
                "The job was suspended by user"
            )  # fmt: skip
            reason = ("SUSPENDING REASONS", why)
        return text.long_job(
            head, lines, text.minutes(job.walltime), reason, self._needs(job),
            job.state in ("running", "suspended"), limit_first=not unwrapped,
        )  # fmt: skip

    def _submission(self, job: Job, queue: str, kind: str) -> str:
        """The first line of a job's history; ``kind`` is what its slots are called."""
        words = job.words
        parts = [
            f"{self._full(job.submitted)}: Submitted from host <{self.master}>"
            + (" with hold" if words["with_hold"] else "")
            + queue
        ]
        if job.begin is not None:
            parts.append(f"Specified Start Time <{self._full(job.begin)}>")
        parts.append(f"CWD <{words['cwd']}>")
        if words["slots"] > 1:
            parts.append(f"{words['slots']} {kind}")
        if words["requirement"]:
            parts.append(f"Requested Resources <{words['requirement']}>")
        if words["condition"]:
            parts.append(f"Dependency Condition <{words['condition']}>")
        if words["hosts"]:
            parts.append(f"Specified Hosts <{'>, <'.join(words['hosts'])}>")
        if words["exclusive"]:
            parts.append("Exclusive Execution")
        return ", ".join(parts) + ";"

    def _start_line(self, job: Job, unwrapped: bool) -> str:
        element = f"[{job.index}] started" if job.index is not None else "Started"
        home = f"Execution Home <{job.words['home']}>, Execution CWD <{job.words['cwd']}>"
        if not unwrapped:
            count = sum(share.processors for share in job.shares)
            several = f"{count} Hosts/Processors " if count > 1 else ""
            slots = " ".join(f"<{share.node}>" for share in job.shares for _ in range(share.processors))
            return f"{element} on {several}{slots}, {home}"
        count = sum(share.processors for share in job.shares)
        if self.flavour == "ibm":
            slots = " ".join(
                f"<{s.processors}*{s.node}>" if s.processors > 1 else f"<{s.node}>" for s in job.shares
            )
        else:
            slots = " ".join(f"<{share.node}>" for share in job.shares for _ in range(share.processors))
        where = f"on Host(s) {slots}"
        return f"{element} {count} Task(s) {where}, Allocated {count} Slot(s) {where}, {home}"

    def _bhist(self, call: Call) -> Reply:
        given, rest = _letters(
            call, {"-a": False, "-l": False, "-d": False, "-w": False, "-u": True, "-n": True}
        )
        user = given.get("-u", call.caller.user)
        jobs = [j for word in rest for j in self.find(word)] if rest else [
            j for j in self.machine.jobs.values() if user in ("all", j.user)
        ]  # fmt: skip
        if not jobs:
            return Reply(_FAILED, "", "No matching job found\n")
        blocks = []
        for job in jobs:
            words = job.words
            lines = [
                f"\nJob <{job.id}>, Job Name <{job.name}>, User <{job.user}>, Project <{words['project']}>, "
                f"Command <{words['command']}>",
                self._submission(job, f", to Queue <{job.queue}>", "Processors Requested"),
            ]
            if not math.isinf(job.walltime):
                lines += ["", " RUNLIMIT                ", f" {text.minutes(job.walltime):<24}"]
            lines += [text.event(self._full(wall), what) for wall, what in words["events"]]
            until = job.stopped if job.state == "ended" and job.stopped is not None else self.machine.wall()
            ran = int(self.machine.elapsed(job) / self.machine.speed)
            total = int(until - job.submitted)
            lines += [
                "", f"Summary of time in seconds spent in various states by  {self._full(until)}",
                "  PEND     PSUSP    RUN      USUSP    SSUSP    UNKWN    TOTAL",
                f"  {max(total - ran, 0):<8} {0:<8} {ran:<8} {0:<8} {0:<8} {0:<8} {total:<8}    ",
            ]  # fmt: skip
            blocks.append("\n".join(lines) + "\n")
        return Reply(0, text.joined(blocks))

    def _minute(self, wall: float) -> str:
        local = self.zone.local(wall)
        return self.zone.text(wall, "%b ") + f"{local.tm_mday:>2} " + self.zone.text(wall, "%H:%M")

    def _second(self, wall: float) -> str:
        return self.zone.text(wall, "%m/%d-%H:%M:%S")

    def _full(self, wall: float) -> str:
        local = self.zone.local(wall)
        return self.zone.text(wall, "%a %b ") + f"{local.tm_mday:>2} " + self.zone.text(wall, "%H:%M:%S")

    # ------------------------------------------------------------------ hosts, queues, the cluster

    def _host_row(self, node: Node, *, wide: bool = True) -> tuple[str, str, int, int, int, int, int]:
        jobs = [(self.machine.jobs[job_id], shares) for job_id, shares in node.given.items()]

        def slots(*states: str, resuming: bool | None = None) -> int:
            return sum(
                share.processors
                for job, shares in jobs
                if job.state in states and (resuming is None or job.resuming == resuming)
                for share in shares
            )

        if node.down:
            status = "unavail"
        elif node.attributes.get("power") == "off":
            status = "closed_Power"
        elif node.closed:
            status = "closed_Adm"
        elif any(job.words["exclusive"] for job, _ in jobs):
            status = "closed_Excl"
        elif node.assigned >= node.processors:
            status = "closed_Full"
        else:
            status = "ok"
        if not wide:
            status = status.partition("_")[0]
        return (
            node.name, status, node.processors, node.assigned, slots("running", "starting"),
            slots("suspended", resuming=True), slots("suspended", resuming=False),
        )  # fmt: skip

    def _bhosts(self, call: Call) -> Reply:
        letters = {
            "-w": False,
            "-l": False,
            "-o": True,
            "-json": False,
            "-a": False,
            "-X": False,
            "-x": False,
        }
        if self.flavour == "volclava":
            for word in ("-json", "-o"):
                if word in call.words:
                    usage = "Usage: bhosts [-h] [-V] [-w | -l] [-R res_req] [host_name ...]"
                    return Reply(_FAILED, "", f"bhosts: invalid option -- '{word[1]}'\n{usage}\n")
        given, rest = _letters(call, letters)
        for name in rest:
            if name not in self.machine.nodes:
                return Reply(_FAILED, "", f"{name}: Bad host name, host group name or cluster name\n")
        nodes = [node for node in self.machine.nodes.values() if not rest or node.name in rest]
        if "-o" in given:
            fields: dict[str, Callable[[Node], str]] = {
                "host_name": lambda node: node.name,
                "status": lambda node: self._host_row(node)[1],
                "cpuf": lambda node: "1.0",
                "jl_u": lambda node: "-",
                "max": lambda node: str(node.processors),
                "njobs": lambda node: str(node.assigned),
                "run": lambda node: str(self._host_row(node)[4]),
                "ssusp": lambda node: str(self._host_row(node)[5]),
                "ususp": lambda node: str(self._host_row(node)[6]),
                "rsv": lambda node: "0",
                "dispatch_window": lambda node: "-",
                "comments": lambda node: node.comment or "-",
                "mem": lambda node: f"{node.memory >> 20}M",
            }
            return self._listed("bhosts", "HOSTS", given, fields, nodes)
        if "-l" in given:
            return Reply(0, "".join(self._host_long(node) for node in nodes))
        return Reply(0, text.hosts_table([self._host_row(node, wide="-w" in given) for node in nodes]))

    def _host_long(self, node: Node) -> str:
        name, status, most, jobs, run, ssusp, ususp = self._host_row(node)
        comment = f"\n ADMIN ACTION COMMENTS: {node.comment}\n" if node.comment else ""
        return (
            f"HOST  {name}\n"
            "STATUS           CPUF  JL/U    MAX  NJOBS    RUN  SSUSP  USUSP    RSV DISPATCH_WINDOW\n"
            f"{status:<15} {'1.00':>5} {'-':>5} {most:>6} {jobs:>6} {run:>6} {ssusp:>6} {ususp:>6} {0:>6} "
            "     -\n"
            "\n CURRENT LOAD USED FOR SCHEDULING:\n"
            "              r15s   r1m  r15m    ut    pg    io   ls    it   tmp   swp   mem  slots\n"
            " Total         0.0   0.0   0.0    0%   0.0     0    0     0   79G    0M "
            f"{node.memory >> 30:>4}G {max(most - jobs, 0):>6}\n"
            " Reserved      0.0   0.0   0.0    0%   0.0     0    0     0    0M    0M    0M      -\n\n\n"
            " LOAD THRESHOLD USED FOR SCHEDULING:\n"
            "           r15s   r1m  r15m   ut      pg    io   ls    it    tmp    swp    mem\n"
            " loadSched   -     -     -     -       -     -    -     -     -      -      -  \n"
            f" loadStop    -     -     -     -       -     -    -     -     -      -      -  \n\n{comment}\n"
        )

    def _listed(
        self, command: str, count: str, given: Mapping[str, str], fields: Mapping[str, Callable[[Any], str]],
        things: Sequence[Any],
    ) -> Reply:  # fmt: skip
        names = [word.partition(":")[0] for word in given["-o"].split()]
        for name in names:
            if name.lower() not in fields:
                said = f"<{name.upper()}> in the format string is not a valid field name.\n"
                return Reply(_BAD_FIELD, "", said)
        records = [{name.upper(): fields[name.lower()](thing) for name in names} for thing in things]
        if "-json" in given:
            return Reply(0, as_json({"COMMAND": command, count: len(records), "RECORDS": records}) + "\n")
        return Reply(0, _columns([name.upper() for name in names], records))

    def _queue_counts(self, queue: Queue) -> tuple[int, int, int, int, int]:
        """Slots of its jobs: all, pending, running, system- and user-suspended."""
        jobs = [job for job in self.machine.alive.values() if job.queue == queue.name]

        def slots(*states: str) -> int:
            return sum(
                job.words["slots"] for job in jobs
                if (_stat(job) if job.state == "suspended" else job.state) in states
            )  # fmt: skip

        pending = slots("queued", "starting")
        running, ssusp, ususp = slots("running"), slots("SSUSP"), slots("USUSP")
        return pending + running + ssusp + ususp, pending, running, ssusp, ususp

    def _queue_status(self, queue: Queue, *, long: bool = False) -> str:
        first = "Open" if queue.open else "Closed"
        if queue.active:
            return f"{first}:Active"
        return f"{first}:Inact_Adm" if long else f"{first}:Inact"

    def _bqueues(self, call: Call) -> Reply:
        if self.flavour == "volclava":
            for word in ("-json", "-o"):
                if word in call.words:
                    return Reply(_FAILED, "", f"bqueues: invalid option -- '{word[1]}'\n")
        given, rest = _letters(call, {"-w": False, "-l": False, "-o": True, "-json": False, "-u": True})
        for name in rest:
            if name not in self.queues:
                return Reply(_FAILED, "", f"{name}: No such queue\n")
        queues = [queue for queue in self.queues.values() if not rest or queue.name in rest]
        if "-o" in given:
            fields: dict[str, Callable[[Queue], str]] = {
                "queue_name": lambda queue: queue.name,
                "description": lambda queue: "An emulated queue.",
                "priority": lambda queue: str(queue.priority),
                "status": self._queue_status,
                "max": lambda queue: "-",
                "jl_u": lambda queue: "-",
                "jl_p": lambda queue: "-",
                "jl_h": lambda queue: "-",
                "njobs": lambda queue: str(self._queue_counts(queue)[0]),
                "pend": lambda queue: str(self._queue_counts(queue)[1]),
                "run": lambda queue: str(self._queue_counts(queue)[2]),
                "susp": lambda queue: str(sum(self._queue_counts(queue)[3:])),
                "ssusp": lambda queue: str(self._queue_counts(queue)[3]),
                "ususp": lambda queue: str(self._queue_counts(queue)[4]),
                "rsv": lambda queue: "0",
                "hosts": lambda queue: "all",
                "users": lambda queue: "all",
                "run_limit": lambda queue: "-",
            }
            return self._listed("bqueues", "QUEUES", given, fields, queues)
        if "-l" in given:
            return Reply(
                0, "".join(
                    text.queue_long(
                        q.name, q.priority, self._queue_status(q, long=True), self._queue_counts(q)
                    )
                    for q in queues
                ),
            )  # fmt: skip
        rows = []
        for queue in queues:
            jobs, pending, run, ssusp, ususp = self._queue_counts(queue)
            rows.append(
                (queue.name, queue.priority, self._queue_status(queue), jobs, pending, run, ssusp + ususp)
            )
        return Reply(0, text.queues_table(rows))

    def _lshosts(self, call: Call) -> Reply:
        _, rest = _letters(call, {"-w": False, "-l": False, "-json": False})
        nodes = [node for node in self.machine.nodes.values() if not rest or node.name in rest]
        return Reply(0, text.servers_table([(node.name, node.processors, node.memory) for node in nodes]))

    def _lsload(self, call: Call) -> Reply:
        _letters(call, {"-w": False, "-l": False})
        nodes = self.machine.nodes.values()
        return Reply(0, text.load_table([(n.name, "unavail" if n.down else "ok", n.memory) for n in nodes]))

    def _lsid(self, call: Call) -> Reply:
        return Reply(
            0, f"{_PRODUCTS[self.flavour]}\nMy cluster name is {self.cluster}\n"
            f"My master name is {self.master}\n",
        )  # fmt: skip

    def _lsclusters(self, call: Call) -> Reply:
        hosts = len(self.machine.nodes)
        first, *others = self.administrators
        return Reply(
            0, "CLUSTER_NAME   STATUS   MASTER_HOST               ADMIN    HOSTS  SERVERS\n"
            f"{self.cluster:<14} {'ok':<8} {self.master:<18} {first:>12} {hosts:>8} {hosts:>8}\n"
            + (f"LSF administrators: {' '.join([first, *others])}\n" if "-l" in call.words else ""),
        )  # fmt: skip

    def _bparams(self, call: Call) -> Reply:
        if self.flavour == "volclava" and "-a" in call.words:
            said = "bparams: invalid option -- 'a'\nUsage: bparams [-h] [-V] [-l]\n"
            return Reply(_FAILED, "", said)
        if "-a" in call.words:
            return Reply(
                0, f"\tDEFAULT_QUEUE = {self.default_queue}\n\tMBD_SLEEP_TIME = 10\n\tCLEAN_PERIOD = 3600\n"
                "\tMAX_JOBID = 999999\n\tJOB_ACCEPT_INTERVAL = 0\n",
            )  # fmt: skip
        return Reply(
            0, f"Default Queues:  {self.default_queue}\nMBD_SLEEP_TIME used for calculations:  10 seconds\n"
            "Job Checking Interval:  7 seconds\nJob Accepting Interval:  0 seconds\n",
        )  # fmt: skip

    def _badmin(self, call: Call) -> Reply:
        verb, *words = call.words or ("",)
        if verb == "showconf":
            return Reply(
                0, "MBD configuration at " + self._full(self.machine.wall()) + "\n"
                + ("\tLSB_MOD_ALL_JOBS = Y\n" if self.flavour == "ibm" else ""),
            )  # fmt: skip
        names, comment = _without_comment(words)
        if verb in ("qinact", "qact", "qopen", "qclose"):
            return self._set_queues(call, verb, names)
        powers = verb == "hpower" and self.flavour == "ibm"
        if powers and names:
            verb, *names = names
        if verb in ("hclose", "hopen") or (powers and verb in ("suspend", "resume")):
            return self._set_hosts(call, verb, names, comment)
        if verb in ("reconfig", "mbdrestart", "ckconfig"):
            return Reply(0, "\nChecking configuration files ...\n\nNo errors found.\n\n")
        raise Refused(_FAILED, f"badmin: {verb}: unknown command")

    def _set_queues(self, call: Call, verb: str, names: Sequence[str]) -> Reply:
        said = {
            "qinact": "inactivated", "qact": "activated", "qopen": "opened", "qclose": "closed",
        }[verb]  # fmt: skip
        out = ""
        for name in self.queues if list(names) == ["all"] else names or [self.default_queue]:
            if name not in self.queues:
                return Reply(_FAILED, out, f"{name}: No such queue\n")
            if not call.caller.manager:
                return Reply(_FAILED, out, f"{name}: User permission denied\n")
            queue = self.queues[name]
            if verb in ("qinact", "qact"):
                queue.active = verb == "qact"
            else:
                queue.open = verb == "qopen"
            out += f"Queue <{name}> is {said}\n"
        self.machine.disturb()
        return Reply(0, out)

    def _set_hosts(self, call: Call, verb: str, names: Sequence[str], comment: str) -> Reply:
        said = {"hclose": "Close", "hopen": "Open", "suspend": "Suspend", "resume": "Resume"}[verb]
        out = ""
        for name in self.machine.nodes if list(names) == ["all"] else names or [self.master]:
            if name not in self.machine.nodes:
                return Reply(_FAILED, out, f"{name}: Bad host name, host group name or cluster name\n")
            if not call.caller.manager:
                return Reply(_FAILED, out, f"{said} <{name}> ...... User permission denied\n")
            node = self.machine.nodes[name]
            if verb in ("suspend", "resume"):
                node.attributes["power"] = "off" if verb == "suspend" else "on"
            node.closed = verb in ("hclose", "suspend")
            node.comment = comment
            node.changed = self.machine.wall()
            out += f"{said} <{name}> ...... done\n"
        self.machine.disturb()
        return Reply(0, out)

    # ------------------------------------------------------------------ reservations

    def _brsvadd(self, call: Call) -> Reply:
        given, _ = _letters(
            call, {"-n": True, "-m": True, "-u": True, "-b": True, "-e": True, "-N": True, "-g": True,
                   "-s": False, "-R": True},
        )  # fmt: skip
        if not call.caller.manager:
            return Reply(_FAILED, "", "brsvadd: User permission denied. Reservation not created.\n")
        end = "Reservation not created."
        hosts = tuple(given.get("-m", "").split()) or tuple(self.machine.nodes)
        for host in hosts:
            if host not in self.machine.nodes:
                raise Refused(_FAILED, f"{host}: Bad host name, host group name or cluster name. {end}")
        if "-b" not in given or "-e" not in given:
            raise Refused(_FAILED, f"brsvadd: begin and end time are needed. {end}")
        first, last = self._time(given["-b"], end), self._time(given["-e"], end)
        if last <= first:
            raise Refused(_FAILED, f"Bad time specification. {end}")
        slots = sum(self.machine.nodes[host].processors for host in hosts)
        if "-n" in given:
            if not given["-n"].isdecimal() or int(given["-n"]) > slots:
                raise Refused(_FAILED, f"Not enough slots. {end}")
            slots = int(given["-n"])
        for other in self.reservations.values():
            shared = set(hosts) & set(other.hosts)
            if shared and other.start < last and first < other.end:
                raise Refused(_FAILED, f"Not enough slots. {end}")
        owner = given.get("-u", given.get("-g", call.caller.user))
        number = self._numbers[owner] = self._numbers.get(owner, -1) + 1
        name = given.get("-N", f"{owner}#{number}")
        if name in self.reservations:
            raise Refused(_FAILED, f"{name}: The reservation already exists. {end}")
        reservation = Reservation(name, owner, hosts, slots, first, last)
        self.reservations[name] = reservation
        self.machine.at(self.machine.instant(last), lambda: self._remove(reservation))
        return Reply(0, f"Reservation {name} is created\n")

    def _remove(self, reservation: Reservation) -> None:
        if self.reservations.get(reservation.id) is reservation:
            del self.reservations[reservation.id]
            self.machine.disturb()

    def _brsvdel(self, call: Call) -> Reply:
        out = ""
        for name in call.words:
            if not call.caller.manager:
                return Reply(_FAILED, out, f"{name}: User permission denied\n")
            if name not in self.reservations:
                return Reply(_FAILED, out, f"{name}: No such reservation\n")
            self._remove(self.reservations[name])
            out += f"Reservation {name} is being deleted\n"
        return Reply(0, out)

    def _brsvs(self, call: Call) -> Reply:
        _letters(call, {"-l": False, "-w": False, "-a": False, "-p": True})
        if not self.reservations:
            return Reply(_FAILED, "", "No reservation found\n")
        out = "RSVID       TYPE      USER      NCPUS       RSV_HOSTS     TIME_WINDOW\n"
        for r in self.reservations.values():
            window = "-".join(self._numbered(wall) for wall in (r.start, r.end))
            left = r.slots
            for at, host in enumerate(r.hosts):
                slots = min(left, self.machine.nodes[host].processors)
                left -= slots
                if at == 0:
                    start = f"{r.id:<11} {'user':<9} {r.user:<9} {f'0/{r.slots}':<11}"
                else:
                    start = " " * 43
                out += f"{start} {f'{host}:0/{slots}':<13} {window if at == 0 else ''}".rstrip() + "\n"
        return Reply(0, out)

    def _numbered(self, wall: float) -> str:
        """``11/21/14/30``: month, day, hour, minute."""
        local = self.zone.local(wall)
        return f"{local.tm_mon}/{local.tm_mday}/{local.tm_hour}/{local.tm_min}"


# ---------------------------------------------------------------------- words


def _stat(job: Job) -> str:
    """A job's state in LSF's word."""
    if job.state == "queued":
        return "PSUSP" if job.holds else "PEND"
    if job.state == "starting":
        return "PEND"
    if job.state == "suspended":
        return "SSUSP" if job.resuming else "USUSP"
    if job.state == "ended":
        return "DONE" if job.outcome == "completed" and job.exit_code == 0 else "EXIT"
    return "RUN"


def _base_name(job: Job) -> str:
    """Its name without an element's index."""
    return job.name.rpartition("[")[0] if job.index is not None else job.name


def _angled(shares: Sequence[Share]) -> str:
    slots = [f"<{share.node}>" for share in shares for _ in range(share.processors)]
    return slots[0] if len(slots) == 1 else f"{len(slots)} Hosts/Processors {' '.join(slots)}"


def _expand(given: str) -> set[int]:
    """``1,3-9:2`` as numbers; none for what is no such list."""
    found: set[int] = set()
    for part in given.split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+)(?::(\d+))?)?", part)
        if match is None:
            return set()
        first, last, step = (int(number) if number else 0 for number in match.groups())
        found |= set(range(first, (last or first) + 1, step or 1))
    return found


def _parsed(call: Call, words: Sequence[str]) -> tuple[list[tuple[str, str]], list[str]]:
    """The options of bsub or bmod, and the words after them; raises :class:`Refused`."""
    found: list[tuple[str, str]] = []
    at = 0
    while at < len(words) and words[at].startswith("-"):
        word = words[at]
        if word in _FLAGS:
            found.append((word, ""))
            at += 1
        elif word in _VALUES and at + 1 < len(words):
            found.append((word, words[at + 1]))
            at += 2
        else:
            raise Refused(_FAILED, f"{call.name}: Illegal option -- {word}")
    return found, list(words[at:])


def _letters(call: Call, known: Mapping[str, bool]) -> tuple[dict[str, str], list[str]]:
    """Options of another command (True: with a value), anywhere among its words."""
    found: dict[str, str] = {}
    rest: list[str] = []
    at = 0
    while at < len(call.words):
        word = call.words[at]
        at += 1
        if not word.startswith("-") or word == "-":
            rest.append(word)
        elif word not in known:
            raise Refused(_FAILED, f"{call.name}: invalid option -- '{word[1:2]}'\nUsage: {call.name}")
        elif known[word]:
            if at == len(call.words):
                raise Refused(_FAILED, f"{call.name}: option requires an argument -- '{word[1:2]}'")
            found[word] = call.words[at]
            at += 1
        else:
            found[word] = ""
    return found, rest


def _without_comment(words: Sequence[str]) -> tuple[list[str], str]:
    """badmin's names, and what its ``-C`` says."""
    if "-C" in words:
        at = list(words).index("-C")
        return [*words[:at], *words[at + 2 :]], "".join(words[at + 1 : at + 2])
    return list(words), ""


def _directives(script: str) -> list[str]:
    """The options on the ``#BSUB`` lines of a script."""
    found: list[str] = []
    for line in script.splitlines():
        if line.startswith("#BSUB"):
            option, _, value = line[5:].strip().partition(" ")
            found.append(option)
            if value.strip():
                found.append(value.strip().strip('"'))
    return found


def _columns(names: Sequence[str], records: Sequence[Mapping[str, str]], *, head: bool = True) -> str:
    """Aligned columns, as ``-o`` without ``-json`` prints them."""
    rows = ([list(names)] if head else []) + [[record[name] for name in names] for record in records]
    widths = [max((len(row[at]) for row in rows), default=0) for at in range(len(names))]
    return "".join(
        " ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() + "\n"
        for row in rows
    )
