"""PBS's commands that submit and change jobs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from headway_adapters.commands import pbs_text as text
from headway_adapters.commands.machine import Job, Share, runtime_of
from headway_adapters.commands.pbs_request import (
    BAD_STATE,
    BAD_VALUE,
    MODIFIES_RUNNING,
    NOT_ALLOWED,
    NOT_RERUNABLE,
    QSUB,
    UNKNOWN_QUEUE,
    Chunk,
    arguments,
    chunks_of,
    directives,
    entries_of,
    indices_of,
    parts_of,
    request_of,
    resources_of,
    variables_of,
)
from headway_adapters.commands.pbs_server import BEFORE, KINDS, Array, PbsServer
from headway_adapters.commands.server import Call, Reply
from headway_adapters.commands.system import Refused, options, stated_exit, stated_runtime

#: The attributes that options of qsub and qalter set as they are, and the attributes that are paths.
_TEXTS = {"-A": "Account_Name", "-P": "project", "-j": "Join_Path"}
_PATHS = {"-o": "Output_Path", "-e": "Error_Path"}


class PbsJobs(PbsServer):
    """qsub, qrun, qdel, qhold, qrls, qalter, qsig, qrerun, qmove and pbs_release_nodes."""

    # ------------------------------------------------------------------ submission

    def _qsub(self, call: Call) -> Reply:
        given, rest = options(call, QSUB)
        script = ""
        if call.script is not None:
            kind, script = call.script
            if kind == "error":
                return Reply(1, "", f"qsub: script file:: {script}\n")
            given = directives(script) + given
            name = rest[0].rpartition("/")[2] if kind == "file" and rest else "STDIN"
        else:
            # `qsub ... -- program words`
            script = " ".join(rest)
            name = "STDIN"
        words: dict[str, Any] = {
            "Priority": 0, "Rerunable": "True", "Join_Path": "n", "project": "_pbs_project_default",
            "Submit_arguments": arguments(call.words, rest), "resources": {}, "depend": [],
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
        words["select"], words["place"], words["resources"] = request_of(call, asked)
        queue = settings["queue"]
        if queue not in self.queues:
            return Reply(UNKNOWN_QUEUE, "", "qsub: Unknown queue\n")
        if not self.queues[queue].enabled:
            return Reply(BAD_VALUE, "", "qsub: Queue is not enabled\n")
        words["Variable_List"]["PBS_O_QUEUE"] = queue
        return self._enqueue(call, name, script, indices, words, settings)

    def _enqueue(
        self, call: Call, name: str, script: str, indices: str, words: dict[str, Any],
        settings: dict[str, Any],
    ) -> Reply:  # fmt: skip
        """Put a job, or the elements of an array, into their queue."""
        number = self._next
        walltime = words["resources"].get("walltime")
        limit = text.seconds(walltime) if walltime is not None else math.inf
        runtime = runtime_of(stated_runtime(call, script), limit)
        try:
            elements: list[int | None] = list(indices_of(indices)) if indices else [None]
        except ValueError:
            return Reply(BAD_VALUE, "", f"qsub: illegal -J value: {indices}\n")
        self._next += 1
        array = Array(f"{number}[].{self.server}", indices) if indices else None
        if array is not None:
            self.arrays[array.id] = array
        for index in elements:
            suffix = "" if index is None else f"[{index}]"
            job = Job(
                id=f"{number}{suffix}.{self.server}", number=number, index=index, user=call.caller.user,
                group=call.caller.group, name=name, queue=settings["queue"], walltime=limit, runtime=runtime,
                exit_code=stated_exit(script), holds=set(settings["holds"]), begin=settings["begin"],
                dependencies=[(KINDS[kind], other) for kind, other in words["depend"]],
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
        elif letter == "-W":
            for entry in parts_of(value):
                key, _, what = entry.partition("=")
                if key == "depend":
                    words["depend"] = self._dependencies(call, what)
        elif letter == "-v":
            words["Variable_List"] = {**words["Variable_List"], **variables_of(value, call.environment)}
        else:
            words.update(self._attribute(call, letter, value))

    def _attribute(self, call: Call, letter: str, value: str) -> dict[str, Any]:
        """The attribute that an option sets, under the name that qstat gives it; {}: it sets none here."""
        if letter in _TEXTS:
            return {_TEXTS[letter]: value}
        if letter in _PATHS:
            return {_PATHS[letter]: value if ":" in value else f"{self.server}:{value}"}
        if letter == "-r":
            return {"Rerunable": "True" if value == "y" else "False"}
        if letter == "-p":
            try:
                return {"Priority": int(value)}
            except ValueError:
                raise Refused(BAD_VALUE, f"{call.name}: illegal -p value") from None
        return {}

    def _dependencies(self, call: Call, given: str) -> list[tuple[str, str]]:
        found = []
        for part in given.split(","):
            kind, *others = part.split(":")
            if kind in BEFORE.values():
                continue
            if kind not in KINDS or not others:
                raise Refused(BAD_VALUE, f"{call.name}: illegal -W value")
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
        entries = entries_of(where)
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
        if not all(self.machine.nodes[share.node].takes_jobs for share in shares):
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
                            MODIFIES_RUNNING, f"qalter: Cannot modify attribute while job running  {job.id}"
                        )
                    self._set_option(call, letter, value, job.words, settings)
                    if letter == "-W":
                        job.dependencies = [(KINDS[kind], other) for kind, other in job.words["depend"]]
            if settings["holds"] is not None:
                job.holds = settings["holds"]
            if settings["begin"] is not None:
                job.begin = settings["begin"]
                self.machine.at(self.machine.instant(job.begin), self.machine.disturb)
            job.modified = self.machine.wall()
            self.machine.disturb()

        return self._each(call, rest, alter)

    def _alter_resources(self, call: Call, job: Job, asked: Sequence[str], running: bool) -> None:
        given = resources_of(call, asked)
        for name, value in given.items():
            if name == "walltime":
                try:
                    limit = text.seconds(value)
                except ValueError:
                    raise Refused(
                        BAD_VALUE,
                        f"qalter: Illegal attribute or resource value Resource_List.walltime {job.id}",
                    ) from None
                if running and limit > job.walltime and not call.caller.manager:
                    raise Refused(NOT_ALLOWED, f"qalter: Unauthorized Request  {job.id}")
                job.words["resources"]["walltime"] = text.duration(limit)
                self.machine.set_limit(job, limit)
            elif running:
                raise Refused(
                    MODIFIES_RUNNING,
                    f"qalter: Cannot modify attribute while job running  Resource_List.{name} {job.id}",
                )
            else:
                kept = {
                    k: v for k, v in job.words["resources"].items() if k not in ("nodect", "ncpus", "mem")
                }
                if name == "select":
                    kept.pop("select", None)
                entries = [f'{k}="{v}"' for k, v in {**kept, **given}.items()]
                job.words["select"], job.words["place"], job.words["resources"] = request_of(call, entries)

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
            # A suspended job's processors can be given to others; the processors of a job that an
            # administrator suspended are out of use.
            self.machine.suspend(job, keep=by_administrator)
            if by_administrator:
                for name in {share.node for share in job.shares}:
                    self.machine.nodes[name].maintenance.append(job.id)
                    self.machine.nodes[name].changed = self.machine.wall()
            return
        self._wants(call, job, "suspended")
        if job.by_administrator != by_administrator:
            raise Refused(BAD_STATE, f"{call.name}: Request invalid for state of job {job.id}")
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
                raise Refused(NOT_RERUNABLE, f"qrerun: job is not rerunable {job.id}")
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
                raise Refused(UNKNOWN_QUEUE, f"qmove: Unknown queue {job.id}")
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
                raise Refused(BAD_VALUE, f"pbs_release_nodes: Unknown node  {name}")
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
        job.words["select"], job.words["place"], job.words["resources"] = request_of(call, entries)
        job.modified = self.machine.wall()
        self.machine.disturb()
        return Reply()
