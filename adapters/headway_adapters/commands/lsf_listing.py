"""LSF's listings of jobs: bjobs and bhist."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from headway_adapters.commands import lsf_text as text
from headway_adapters.commands.cjson import as_json
from headway_adapters.commands.lsf_server import JOB_ID, LsfServer
from headway_adapters.commands.lsf_words import BAD_FIELD, FAILED, base_name, columns, letters_of, stat_of
from headway_adapters.commands.machine import Job
from headway_adapters.commands.server import Call, Reply

#: Fields of ``bjobs -o`` that volclava was seen to know.
_FEW_FIELDS = (
    "jobid", "stat", "user", "queue", "job_name", "exec_host", "submit_time", "start_time", "finish_time",
    "proj_name", "from_host", "mem",
)  # fmt: skip
#: The columns of ``bjobs -A``.
_STATES = ("PEND", "DONE", "RUN", "EXIT", "SSUSP", "USUSP", "PSUSP")
#: States that bjobs shows with ``-a`` only; a job on its way back to the queue looks ended.
_OVER = {"ended", "leaving"}


class LsfListing(LsfServer):
    """bjobs and bhist."""

    # ------------------------------------------------------------------ listings of jobs

    def _bjobs(self, call: Call) -> Reply:
        letters: dict[str, bool] = dict.fromkeys(
            ("-a", "-w", "-l", "-UF", "-json", "-p", "-r", "-s", "-d", "-noheader", "-X", "-W", "-A"), False
        )
        given, rest = letters_of(
            call, {**letters, "-u": True, "-q": True, "-J": True, "-o": True, "-m": True}
        )
        for word in rest:
            if not JOB_ID.fullmatch(word):
                return Reply(FAILED, "", f"{word}: Illegal job ID.\n")
        fields: list[str] = []
        if "-o" in given:
            fields = [
                word.partition(":")[0] for word in re.sub(r"delimiter='[^']*'", "", given["-o"]).split()
            ]
            known = _FEW_FIELDS if self.flavour == "volclava" else tuple(self._fields())
            for name in fields:
                if name.lower() not in known:
                    said = f"<{name.upper()}> in the format string is not a valid field name.\n"
                    return Reply(BAD_FIELD, "", said)
        jobs, missing = self._selected(call, given, rest)
        err = "".join(f"Job <{word}> is not found\n" for word in missing)
        rc = FAILED if missing or not jobs else 0
        if not jobs and not missing and "-json" not in given:
            kind = "unfinished " if "-a" not in given and "-d" not in given else ""
            return Reply(FAILED, "", f"No {kind}job found\n")
        if "-A" in given:
            return self._arrays(jobs)
        if fields:
            return Reply(rc, self._formatted(call, given, fields, jobs), err)
        if "-p" in given:
            entries = [
                (
                    (
                        str(j.number),
                        j.user,
                        stat_of(j),
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
                str(job.number), job.user, stat_of(job), job.queue, self.master,
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
                kinds = {"queued", "starting", "running", "suspended", *_OVER}
            kinds |= {"queued", "starting"} if "-p" in given else set()
            kinds |= {"running"} if "-r" in given else set()
            kinds |= {"suspended"} if "-s" in given else set()
            kinds |= _OVER if "-d" in given else set()
            kinds = kinds or {"queued", "starting", "running", "suspended"}
            jobs = [job for job in jobs if job.state in kinds]
        if "-q" in given:
            jobs = [job for job in jobs if job.queue == given["-q"]]
        if "-J" in given:
            jobs = [job for job in jobs if given["-J"] in (job.name, base_name(job))]
        order = {"running": 0, "suspended": 0, "starting": 1, "queued": 1, "leaving": 2, "ended": 2}
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
        return columns([name.upper() for name in names], records, head="-noheader" not in given)

    def _fields(self) -> dict[str, Callable[[Job], str]]:
        """What each field of ``bjobs -o`` shows."""
        return {
            "jobid": lambda job: str(job.number),
            "jobindex": lambda job: str(job.index or 0),
            "stat": stat_of,
            "user": lambda job: job.user,
            "user_group": lambda job: job.words["group"] or "-",
            "queue": lambda job: job.queue,
            "job_name": lambda job: job.name,
            "job_description": lambda job: job.words["description"] or "-",
            "proj_name": lambda job: job.words["project"],
            "from_host": lambda job: self.master,
            "exec_host": self._listed_hosts,
            "alloc_slot": lambda job: ":".join(f"{s.processors}*{s.node}" for s in job.shares)
            if _is_placed(job) else "-",
            "nalloc_slot": lambda job: str(_slots(job)) if _is_placed(job) else "-",
            "nexec_host": lambda job: str(len(job.shares)) if _is_placed(job) else "-",
            "first_host": lambda job: job.shares[0].node if _is_placed(job) and job.shares else "-",
            "slots": lambda job: str(_slots(job) if _is_placed(job) else job.words["slots"]),
            "ask_hosts": lambda job: " ".join(job.words["hosts"]) or "-",
            "submit_time": lambda job: self._minute(job.submitted),
            "start_time": self._started,
            "finish_time": self._finished,
            "specified_start_time": lambda job: "-" if job.begin is None else self._minute(job.begin),
            "specified_terminate_time": lambda job: "-",
            "min_req_proc": lambda job: str(job.words["slots"]),
            "max_req_proc": lambda job: str(job.words["most"] or job.words["slots"]),
            "nreq_slot": lambda job: str(job.words["slots"]),
            "runtimelimit": lambda job: "-" if math.isinf(job.walltime) else f"{job.walltime / 60:.1f}",
            "run_time": lambda job: f"{self.machine.elapsed(job):.0f} second(s)",
            "combined_resreq": self._needs,
            "effective_resreq": lambda job: self._needs(job) if _is_placed(job) else "-",
            "dependency": lambda job: job.words["condition"] or "-",
            "exclusive": lambda job: "Y" if job.words["exclusive"] else "N",
            "rsvid": lambda job: job.words["reservation"] or "-",
            "exit_code": lambda job: "130" if job.state == "leaving" else str(job.words["code"] or "-"),
            "exit_reason": lambda job: job.words["why"] or "-",
            "pend_reason": lambda job: self._reason(job) + ";" if job.state == "queued" else "-",
            "priority": lambda job: str(job.words["priority"]),
            "command": lambda job: job.words["command"],
            "resize_enabled": lambda job: "Y" if job.words["resizable"] else "N",
            "mem": lambda job: ("0" if self.flavour == "volclava" else "-") if job.started is None
            else "6960" if self.flavour == "volclava" else "6.7 Mbytes",
        }  # fmt: skip

    def _started(self, job: Job) -> str:
        if job.started is None:
            return "-"
        return self._second(job.started) if self.flavour == "volclava" else self._minute(job.started)

    def _finished(self, job: Job) -> str:
        if job.state in _OVER and job.stopped is not None:
            if self.flavour == "volclava":
                return self._second(job.stopped)
            return self._minute(job.stopped) + (" L" if job.outcome == "completed" else " E")
        if self.flavour == "ibm" and job.state == "running" and not math.isinf(job.walltime):
            left = (job.walltime - self.machine.elapsed(job)) / self.machine.speed
            return self._minute(self.machine.wall() + left) + " L"
        return "-"

    def _listed_hosts(self, job: Job) -> str:
        if self.flavour == "ibm":
            return self._hosts(job) or "-"
        # Each host once, however many slots the job has there.
        return ":".join(dict.fromkeys(self._hosts(job).split(":")))

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

    def _arrays(self, jobs: Sequence[Job]) -> Reply:
        """``bjobs -A``: a row for each array that has one of these jobs."""
        arrays = {job.number: job for job in jobs if job.index is not None}
        if not arrays:
            return Reply(FAILED, "", "No unfinished job found\n")
        out = "JOBID    ARRAY_SPEC  OWNER   NJOBS PEND DONE  RUN EXIT SSUSP USUSP PSUSP\n"
        for number, one in arrays.items():
            states = Counter(stat_of(job) for job in self.machine.jobs.values() if job.number == number)
            counts = [states.total(), *(states[name] for name in _STATES)]
            cells = "".join(f"{count:>6}" for count in counts)
            out += f"{number:<8} {one.words['spec']} {one.user:<7}{cells}\n"
        return Reply(0, out)

    def _bmgroup(self, call: Call) -> Reply:
        return Reply(FAILED, "", "No host group defined in the system\n")

    def _long(self, job: Job, unwrapped: bool) -> str:
        words = job.words
        head = (
            f"Job <{job.id}>, Job Name <{job.name}>, User <{job.user}>, Project <{words['project']}>, "
            f"Status <{stat_of(job)}>, Queue <{job.queue}>, Command <{words['command']}>"
            + (f", Job Description <{words['description']}>" if words["description"] else "")
        )
        kind = "Task(s)" if unwrapped else "Processors Requested"
        lines = [self._submission(job, "", kind)]
        if job.started is not None and job.state in ("running", "suspended", *_OVER):
            lines.append(f"{self._full(job.started)}: {self._start_line(job, unwrapped)};")
        if job.state in _OVER and job.stopped is not None:
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
        if words["most"] > words["slots"]:
            parts.append(f"{words['slots']}-{words['most']} {kind}")
        elif words["slots"] > 1:
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
        given, rest = letters_of(
            call, {"-a": False, "-l": False, "-d": False, "-w": False, "-u": True, "-n": True}
        )
        user = given.get("-u", call.caller.user)
        jobs = [j for word in rest for j in self.find(word)] if rest else [
            j for j in self.machine.jobs.values() if user in ("all", j.user)
        ]  # fmt: skip
        if not jobs:
            return Reply(FAILED, "", "No matching job found\n")
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


def _slots(job: Job) -> int:
    return sum(share.processors for share in job.shares)


def _is_placed(job: Job) -> bool:
    return job.state in ("running", "suspended", *_OVER) and job.executions > 0
