"""LSF's commands that submit and change jobs."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from headway_adapters.commands import lsf_text as text
from headway_adapters.commands.lsf_server import JOB_ID, LsfServer
from headway_adapters.commands.lsf_words import (
    FAILED,
    angled,
    base_name,
    directives,
    expanded,
    letters_of,
    parsed,
)
from headway_adapters.commands.machine import Job, Share, runtime_of
from headway_adapters.commands.server import Call, Reply
from headway_adapters.commands.system import Refused, stated_exit, stated_runtime

_INDICES = re.compile(r"(.*)\[(\d[\d,:-]*)\](?:%(\d+))?$", re.DOTALL)
_CONDITION = re.compile(r'(done|ended|started|exit)\(\s*(?:"([^"]*)"|([^")]+?))\s*\)$')
_KINDS = {"done": "completed", "ended": "ended", "started": "started", "exit": "failed"}
#: What bmod of IBM Spectrum LSF changes of a running job.
_OF_RUNNING = {"-W", "-Wn", "-M", "-R", "-r", "-rn"}
#: Seconds until mbatchd puts a requeued job back into its queue; the real one was seen to take up to 10.
_ROUND = 2.0


class LsfJobs(LsfServer):
    """bsub, brun, bkill, bstop, bresume, bmod, brequeue, bswitch, btop, bbot and bresize."""

    # ------------------------------------------------------------------ submission

    def _bsub(self, call: Call) -> Reply:
        script = ""
        words = list(call.words)
        if call.script is not None:
            script = call.script[1]
            words = directives(script) + words
        given, rest = parsed(call, words)
        command = " ".join(rest) if rest else script
        if not command.strip():
            raise Refused(FAILED, "bsub: No command is specified. Job not submitted.")
        chosen = dict(given)
        queue_name = chosen.get("-q", self.default_queue)
        queue = self.queues.get(queue_name)
        if queue is None:
            raise Refused(FAILED, f"{queue_name}: No such queue. Job not submitted.")
        if not queue.open:
            raise Refused(FAILED, f"{queue_name}: Queue has been closed. Job not submitted.")
        name = _one_line(chosen.get("-J", command.strip().splitlines()[0] if rest else ""))
        found = _INDICES.fullmatch(name)
        indices: Sequence[int | None] = [None]
        spec, at_once = "", 0
        if found is not None:
            spec, name, at_once = name, found.group(1), int(found.group(3) or 0)
            indices = sorted(expanded(found.group(2)))
            if not indices:
                raise Refused(FAILED, "Bad index list. Job not submitted.")
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
                    "spec": spec, "at_once": at_once,
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
                raise Refused(FAILED, f"Bad argument for option -n. {end}")
            found["slots"], found["most"] = int(least), int(most or 0)
        if "-W" in chosen:
            try:
                found["limit"] = text.run_limit(chosen["-W"])
            except ValueError:
                raise Refused(FAILED, f"{chosen['-W']}: Illegal RUNLIMIT format. {end}") from None
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
                    raise Refused(FAILED, f"{host}: Bad host name, host group name or cluster name. {end}")
            found["hosts"] = hosts
        if "-U" in chosen:
            if chosen["-U"] not in self.reservations:
                raise Refused(FAILED, f"{chosen['-U']}: The reservation does not exist. {end}")
            found["reservation"] = chosen["-U"]
        return found

    def _condition(self, call: Call, given: str, end: str) -> list[tuple[str, str]]:
        found = []
        bad = Refused(FAILED, f"Invalid dependency condition <{given}>. {end}")
        for part in given.split("&&"):
            match = _CONDITION.fullmatch(part.strip().strip("()") + ")" if part.count("(") else part.strip())
            if match is None:
                raise bad
            kind, name, other = match.groups()
            if name is None and JOB_ID.fullmatch(other):
                jobs = self.find(other)
            else:
                wanted = name if name is not None else other
                jobs = [j for j in self.machine.jobs.values() if base_name(j) == wanted][-1:]
                jobs = [j for job in jobs for j in self.find(str(job.number))]
            jobs = [job for job in jobs if job.user == call.caller.user or call.caller.manager]
            if not jobs:
                raise bad
            found += [(_KINDS[kind], job.id) for job in jobs]
        return found

    # ------------------------------------------------------------------ commands about jobs

    def _brun(self, call: Call) -> Reply:
        given, rest = letters_of(call, {"-m": True, "-b": False, "-c": False, "-f": False})
        refused = "Failed to run the job: "
        if not call.caller.manager:
            return Reply(FAILED, "", f"{refused}User permission denied\n")
        if len(rest) != 1 or not JOB_ID.fullmatch(rest[0]):
            return Reply(FAILED, "", f"{rest[0] if rest else 'brun'}: Illegal job ID.\n")
        jobs = self.find(rest[0])
        if not jobs:
            return Reply(FAILED, "", f"{refused}No matching job found\n")
        asked = given.get("-m", "").split() or list(self.machine.nodes)
        for job in jobs:
            if job.state == "ended":
                return Reply(FAILED, "", f"{refused}Job has already finished\n")
            if job.state not in ("queued", "leaving"):
                return Reply(FAILED, "", f"{refused}Job has already started\n")
            if self.refuse_starts:
                return Reply(FAILED, "", f"{refused}Host or host group is not available\n")
            try:
                shares = self._forced(job, asked)
            except Refused as reason:
                return Reply(reason.rc, "", f"{refused}{reason.message}\n")
            job.holds.clear()
            self._note(job, f"Job is forced to run by user or administrator <{call.caller.user}>")
            self._note(job, f"Dispatched to {angled(shares)}")
            self.machine.start(job, shares)
        return Reply(0, f"Job <{rest[0]}> is being forced to run.\n")

    def _forced(self, job: Job, asked: Sequence[str]) -> list[Share]:
        """The slots on the hosts that ``brun -m`` names, one host after the other, however full they are.

        A job of LEAST to MOST slots gets as many as they have; the open-source ones refuse hosts that have
        more than MOST. IBM Spectrum LSF also takes ``host#slots`` (and ``host*slots``).
        """
        least = job.words["slots"]
        left = most = max(job.words["most"], least)
        whole = sum(node.processors for name in asked if (node := self.machine.nodes.get(name)) is not None)
        if self.flavour != "ibm" and least < most < whole:
            raise Refused(FAILED, "Too many slots on the specified hosts")
        counts: dict[str, int] = {}
        for word in asked:
            host, given = word, ""
            if self.flavour == "ibm":
                host, _, given = word.replace("*", "#").partition("#")
            if host not in self.machine.nodes or (given and not given.isdecimal()):
                raise Refused(FAILED, f"{word}: Bad host name, host group name or cluster name")
            if self.machine.nodes[host].down:
                raise Refused(FAILED, "Host or host group is not available")
            count = min(int(given) if given else self.machine.nodes[host].processors, left)
            counts[host] = counts.get(host, 0) + count
            left -= count
        if most - left < least:
            raise Refused(FAILED, "Not enough slots on the specified hosts")
        return [Share(host, count) for host, count in counts.items() if count]

    def _bkill(self, call: Call) -> Reply:
        given, rest = letters_of(
            call, {"-s": True, "-r": False, "-u": True, "-q": True, "-J": True, "-d": False}
        )
        signal = given.get("-s", "KILL").removeprefix("SIG")

        def kill(job: Job) -> str:
            self._unfinished(job)
            if job.state == "leaving":
                # It goes back to the queue nevertheless, as the real one's does.
                return f"Job <{job.id}> is being terminated\n"
            if signal in ("STOP", "TSTP", "CONT"):
                return self._stop(call, job) if signal != "CONT" else self._resume(call, job)
            if signal in ("KILL", "TERM", "INT", "9", "15", "2"):
                self._note(job, f"Signal <KILL> requested by user or administrator <{call.caller.user}>")
                self.machine.kill(job)
                return f"Job <{job.id}> is being terminated\n"
            return f"Job <{job.id}> is being signaled\n"

        return self._each(call, self._or_all(call, rest), kill)

    def _or_all(self, call: Call, rest: Sequence[str]) -> list[str]:
        """The ids given; ``0`` means all unfinished jobs of the user (of all users, for a manager)."""
        if list(rest) != ["0"]:
            return list(rest)
        alive = self.machine.alive.values()
        return [job.id for job in alive if call.caller.manager or job.user == call.caller.user]

    def _bstop(self, call: Call) -> Reply:
        _, rest = letters_of(call, {"-u": True, "-q": True, "-J": True})
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
        _, rest = letters_of(call, {"-u": True, "-q": True, "-J": True})
        return self._each(call, self._or_all(call, rest), lambda job: self._resume(call, job))

    def _resume(self, call: Call, job: Job) -> str:
        self._unfinished(job)
        holds = {job.words.get("stopped_by", "u")} if job.state == "suspended" else job.holds
        if "a" in holds and not call.caller.manager:
            raise Refused(FAILED, "User permission denied")
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
            raise Refused(FAILED, "Job has not been suspended or stopped")
        return f"Job <{job.id}> is being resumed\n"

    def _bmod(self, call: Call) -> Reply:
        given, rest = parsed(call, call.words)
        chosen = dict(given)
        return self._each(call, rest, lambda job: self._modify(call, job, chosen))

    def _modify(self, call: Call, job: Job, chosen: Mapping[str, str]) -> str:
        if job.state in ("ended", "leaving"):
            raise Refused(FAILED, "Job has already finished")
        changeable = self.flavour == "ibm" and set(chosen) <= _OF_RUNNING
        if job.state != "queued" and not changeable:
            said = "Job parameters cannot be changed now; non-repetitive job is running."
            raise Refused(FAILED, said)
        settings = self._settings(call, chosen, "Job not modified.")
        self._change_times(job, chosen, settings)
        if "-mn" in chosen:
            settings["hosts"] = ()
        if "-Un" in chosen:
            settings["reservation"] = ""
        if "-J" in chosen:
            job.name = _one_line(chosen["-J"])
        if "-q" in chosen:
            self._switch(job, chosen["-q"])
        if "-x" in chosen or "-xn" in chosen:
            settings["exclusive"] = "-x" in chosen
        job.words.update(settings)
        job.modified = self.machine.wall()
        self.machine.disturb()
        return f"Parameters of job <{job.id}> are being changed\n"

    def _change_times(self, job: Job, chosen: Mapping[str, str], settings: dict[str, Any]) -> None:
        """Change how long the job may run, and after what and when it may start; these leave ``settings``."""
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

    def _brequeue(self, call: Call) -> Reply:
        flags = dict.fromkeys(("-H", "-a", "-r", "-d", "-e", "-p"), False)
        given, rest = letters_of(call, {**flags, "-J": True, "-u": True})

        def requeue(job: Job) -> str:
            self._unfinished(job)
            if job.state in ("queued", "starting"):
                raise Refused(FAILED, "Job has not started yet")
            user = call.caller.user
            self._note(job, f"Signal <REQUEUE_PEND> requested by user or administrator <{user}>")
            if job.state == "leaving":
                return f"Job <{job.id}> is being requeued\n"

            def back() -> None:
                if "-H" in given:
                    job.holds.add("u")
                self._note(job, "Pending: Job has been requeued")

            self._note(job, "Exited with exit code 130. The CPU time used is 0.0 seconds")
            self.machine.requeue(job, delay=_ROUND, back=back)
            return f"Job <{job.id}> is being requeued\n"

        return self._each(call, rest, requeue)

    def _bswitch(self, call: Call) -> Reply:
        _, rest = letters_of(call, {"-q": True, "-u": True, "-J": True})
        if not rest:
            raise Refused(FAILED, "bswitch: Destination queue is missing")

        def switch(job: Job) -> str:
            self._unfinished(job)
            self._switch(job, rest[0])
            return f"Job <{job.id}> is switched to queue <{rest[0]}>\n"

        return self._each(call, rest[1:], switch)

    def _switch(self, job: Job, queue: str) -> None:
        if queue not in self.queues:
            raise Refused(FAILED, f"{queue}: No such queue")
        job.queue = queue
        job.modified = self.machine.wall()
        self.machine.disturb()

    def _btop(self, call: Call) -> Reply:
        return self._move(call, "top")

    def _bbot(self, call: Call) -> Reply:
        return self._move(call, "bottom")

    def _move(self, call: Call, end: str) -> Reply:
        _, rest = letters_of(call, {"-u": True})
        position = int(rest[1]) if len(rest) > 1 and rest[1].isdecimal() and int(rest[1]) > 0 else 1

        def move(job: Job) -> str:
            if job.state != "queued":
                raise Refused(FAILED, "Job has already started")
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
            raise Refused(FAILED, "usage: bresize release [-c] released_host_specification job_ID")
        *_, what, job_id = call.words

        def release(job: Job) -> str:
            if job.state != "running":
                raise Refused(FAILED, "Job is not running")
            if not job.words["resizable"]:
                raise Refused(FAILED, "Job is not resizable")
            left = {share.node: share.processors for share in job.shares}
            for word in what.split():
                count, star, host = word.rpartition("*")
                if left.get(host, 0) < (int(count) if count.isdecimal() else 1):
                    raise Refused(FAILED, f"{word}: Bad host specification")
                left[host] = left[host] - int(count) if star else 0
            if not any(left.values()):
                raise Refused(FAILED, "Cannot release all slots of a job")
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


def _one_line(name: str) -> str:
    """A job's name as mbatchd keeps it: without line breaks."""
    return name.replace("\n", "")
