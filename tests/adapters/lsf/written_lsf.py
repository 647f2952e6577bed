"""Listings of jobs as a real server writes them, whatever its users have written into their jobs.

After a volclava 2.2, and after IBM's manuals for the JSON that only IBM's has. ``bsub`` takes the line breaks
out of names and commands; who submits through LSF's library may leave them in, so here all stay.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from recorded_lsf import output

from headway_adapters.lsf import listing
from headway_adapters.transport import Result, Transport

SEPARATOR = "-" * 78 + "\n"
PARAMETERS = """
 SCHEDULING PARAMETERS:
           r15s   r1m  r15m   ut      pg    io   ls    it    tmp    swp    mem
 loadSched   -     -     -     -       -     -    -     -     -      -      -
 loadStop    -     -     -     -       -     -    -     -     -      -      -

 RESOURCE REQUIREMENT DETAILS:
 Combined: select[type == local] order[r15s:pg]{more}
 Effective: {effective}
"""
IBM = "IBM Spectrum LSF Standard 10.1.0.13, Apr 15 2022\n\nMy cluster name is c1\nMy master name is lsfa\n"


@dataclass(frozen=True)
class Job:
    """A job with everything that its user writes."""

    number: int
    user: str
    stat: str = "PEND"
    slots: int = 1
    host: str = "lsfb"
    minutes: int = 20
    name: str = "requ"
    command: str = "sleep 600"
    project: str = "default"
    description: str = ""
    cwd: str = "$HOME"
    shell: str = ""
    output: str = ""
    mail: str = ""
    requirement: str = ""
    dependency: str = ""

    @property
    def placed(self) -> bool:
        return self.stat in ("RUN", "USUSP", "EXIT", "DONE")


HEAD = "JOBID   USER    STAT  QUEUE      FROM_HOST   EXEC_HOST   JOB_NAME   SUBMIT_TIME\n"


def row(job: Job) -> str:
    """One row of ``bjobs -w``."""
    hosts = ":".join([job.host] * job.slots) if job.placed else "   -     "
    return (
        f"{job.number:<7} {job.user:<7} {job.stat:<5} hwtest     lsfa        {hosts:<11} "
        f"{job.name:<10} Nov 22 02:38\n"
    )


def table(jobs: Sequence[Job]) -> str:
    """``bjobs -w``."""
    return HEAD + "".join(map(row, jobs))


def record(job: Job) -> str:
    """One record of ``bjobs -UF``."""
    mail = f", Mail <{job.mail}>" if job.mail else ""
    text = f"\nJob <{job.number}>, Job Name <{job.name}>, User <{job.user}>, Project <{job.project}>{mail}, "
    text += f"Status <{job.stat}>, Queue <hwtest>, Command <{job.command}>"
    text += f", Job Description <{job.description}>\n" if job.description else "\n"
    text += f"Sun Nov 22 02:38:18: Submitted from host <lsfa>, CWD <{job.cwd}>"
    text += f", Output File <{job.output}>" if job.output else ""
    text += f", {job.slots} Task(s)" if job.slots > 1 else ""
    text += f", Requested Resources <{job.requirement}>" if job.requirement else ""
    text += f", Dependency Condition <{job.dependency}>" if job.dependency else ""
    text += f", Login Shell <{job.shell}>" if job.shell else ""
    text += ";\n"
    if job.placed:
        where = " ".join([f"<{job.host}>"] * job.slots)
        text += f"Sun Nov 22 02:38:19: Started {job.slots} Task(s) on Host(s) {where}, Allocated {job.slots} "
        text += f"Slot(s) on Host(s) {where}, Execution Home </home/{job.user}>, "
        text += f"Execution CWD </home/{job.user}>;\n"
    if job.stat == "EXIT":
        text += "Sun Nov 22 02:38:31: Exited with exit code 130. The CPU time used is 0.0 seconds.\n"
    if job.stat == "PEND":
        text += " PENDING REASONS:\n Requeue the job for the next run: 1 host;\n"
    text += f"\n RUNLIMIT                \n {job.minutes}.0 min                \n"
    effective = "select[type == local] order[r15s:pg]" if job.placed else "-"
    return text + PARAMETERS.format(
        more=f" {job.requirement}" if job.requirement else "", effective=effective
    )


def history(job: Job, *, requeued: bool = False) -> str:
    """One record of ``bhist -l``, not wrapped."""
    text = f"\nJob <{job.number}>, Job Name <{job.name}>, User <{job.user}>, Project <{job.project}>, "
    text += f"Command <{job.command}>\nSun Nov 22 02:38:18: Submitted from host <lsfa>, to Queue <hwtest>, "
    text += f"CWD <{job.cwd}>;\nSun Nov 22 02:38:19: Dispatched to <{job.host}>;\n"
    if requeued:
        text += "Sun Nov 22 02:38:22: Signal <REQUEUE_PEND> requested by user or administrator <root>;\n"
    return text + "Sun Nov 22 02:38:31: Exited with exit code 130. The CPU time used is 0.0 seconds;\n"


def fields(job: Job) -> dict[str, str]:
    """The fields of ``bjobs -o`` of IBM's."""
    return {
        **{name.upper(): "-" for name in listing.FIELDS},
        "JOBID": str(job.number), "JOBINDEX": "0", "USER": job.user, "STAT": job.stat, "QUEUE": "hwtest",
        "JOB_NAME": job.name, "JOB_DESCRIPTION": job.description or "-", "PROJ_NAME": job.project,
        "FROM_HOST": "lsfa", "SUBMIT_TIME": "Nov 22 02:38", "MIN_REQ_PROC": str(job.slots),
        "MAX_REQ_PROC": str(job.slots), "RUNTIMELIMIT": f"{job.minutes}.0",
        "COMBINED_RESREQ": f"select[type == local] {job.requirement}", "DEPENDENCY": job.dependency or "-",
        "EXEC_HOST": f"{job.slots}*{job.host}" if job.placed else "-",
        "START_TIME": "Nov 22 02:38" if job.placed else "-",
        "FINISH_TIME": "Nov 22 02:38 E" if job.stat == "EXIT" else "-",
        "EXIT_CODE": "130" if job.stat == "EXIT" else "-",
    }  # fmt: skip


def document(records: Sequence[Mapping[str, str]], *, escaped: bool) -> str:
    """A listing in JSON; not ``escaped``: what users wrote stands there as it is."""
    if escaped:
        return json.dumps({"COMMAND": "bjobs", "JOBS": len(records), "RECORDS": list(records)}) + "\n"
    shown = ",".join("{" + ",".join(f'"{k}":"{v}"' for k, v in one.items()) + "}" for one in records)
    return f'{{"COMMAND":"bjobs","JOBS":{len(records)},"RECORDS":[{shown}]}}\n'


@dataclass
class WrittenLsf(Transport):
    """Four hosts of four slots and these jobs."""

    jobs: Sequence[Job]
    ibm: bool = False
    escaped: bool = True
    requeued: frozenset[int] = frozenset()
    #: What becomes of the answer about alice's jobs, one by one.
    mangle: Callable[[str], str] = str
    said: list[tuple[str, ...]] = field(default_factory=list)

    def run(self, argv: Sequence[str], timeout: float) -> Result:
        words = tuple(argv)
        self.said.append(words)
        text, rc, stderr = self._answer(words)
        whole = text if not text or text.endswith("\n") else text + "\n"
        return Result(
            argv=words, rc=rc, stdout=whole.encode("utf-8", "surrogateescape"), stderr=stderr, seconds=0.01
        )

    def _answer(self, argv: tuple[str, ...]) -> tuple[str, int, str]:
        match argv[0]:
            case "lsid":
                return (IBM if self.ibm else output("lsid")), 0, ""
            case "bqueues":
                return "\nQUEUE: hwtest\nPRIO NICE STATUS\n 30 20 Open:Inact_Adm\nHOSTS:  all\n", 0, ""
            case "lshosts":
                rows = "".join(f"lsf{h} linux I5 1.0 4 1000M - Yes ()\n" for h in "abcd")
                return f"HOST_NAME type model cpuf ncpus maxmem maxswp server RESOURCES\n{rows}", 0, ""
            case "bhosts" if "-json" in argv:
                return "", 255, "bhosts: invalid option -- 'o'"
            case "bhosts":
                rows = "".join(f"lsf{h} ok - 4 0 0 0 0 0\n" for h in "abcd")
                return f"HOST_NAME STATUS JL/U MAX NJOBS RUN SSUSP USUSP RSV\n{rows}", 0, ""
            case "bhist":
                chosen = [job for job in self.jobs if str(job.number) in argv]
                told = [history(job, requeued=job.number in self.requeued) for job in chosen]
                mangled = [
                    self.mangle(text) if job.user == "alice" else text
                    for job, text in zip(chosen, told, strict=True)
                ]
                return SEPARATOR.join(mangled), 0, ""
            case "bjobs":
                return self._bjobs(argv)
        return "", 0, ""

    def _bjobs(self, argv: tuple[str, ...]) -> tuple[str, int, str]:
        ids = [word for word in argv[1:] if word.isdigit()]
        user = argv[argv.index("-u") + 1] if "-u" in argv else "all"
        jobs = [j for j in self.jobs if (not ids or str(j.number) in ids) and user in ("all", j.user)]
        if "jobid user" in argv:
            owners = [{"JOBID": str(job.number), "USER": job.user} for job in jobs]
            return document(owners, escaped=True), 0, ""
        if "-json" in argv:
            if not self.ibm:
                return "", 99, "<JOBINDEX> in the format string is not a valid field name."
            return document([fields(job) for job in jobs], escaped=self.escaped), 0, ""
        if not jobs:
            return "", 255, "No job found"
        write = row if "-w" in argv else record
        told = [self.mangle(write(job)) if job.user == "alice" else write(job) for job in jobs]
        return (HEAD + "".join(told) if "-w" in argv else SEPARATOR.join(told) + "\n"), 0, ""
