"""The jobs on a node, found through their processes.

A process belongs to the job that its control group names (``job_12`` under Slurm, the job's
identifier under ``pbs_jobs.service`` or ``lsf``); where the batch system makes no control groups, to
the job that its environment names (``SLURM_JOB_ID``, ``PBS_JOBID``, ``LSB_JOBID``). The control group
comes first, because a user can write anything into an environment.

One job has several names: an element of an array is both ``4711_3`` and a number of its own, a PBS
job is ``12.server`` and ``12``. All are kept. The processors of a job are the processors that its processes
may run on (their affinity).
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
import psutil

from headway.errors import Failure

_CGROUPS = (
    re.compile(r"/job_(\d+)(?:/|$)", re.MULTILINE),
    re.compile(r"/pbs_jobs\.service/jobid/([A-Za-z0-9_.\[\]-]+)"),
    re.compile(r"/lsf/[^/\s]+/job\.(\d+)(?:\.|/|$)", re.MULTILINE),
)


class JobUse(msgspec.Struct, frozen=True):
    """What one job has and uses on this node."""

    #: The batch system's identifier; an array's element as ``ARRAY_INDEX`` or ``ARRAY[INDEX]``.
    job: str
    names: frozenset[str]
    #: The identifiers of its processes.
    processes: tuple[int, ...]
    #: Where its processes may run.
    cpus: tuple[int, ...]
    #: Processor seconds of its present processes so far.
    cpu_seconds: float
    #: Resident memory, bytes.
    memory: int


def names_of(cgroup: str, environment: Mapping[str, str]) -> tuple[str, ...]:
    """The names of the job that a process belongs to, the best first; none if it belongs to none.

    ``cgroup`` is the text of ``/proc/PID/cgroup``.
    """
    grouped = next((found[1] for one in _CGROUPS if (found := one.search(cgroup))), None)
    stated = _stated(environment)
    if grouped is None:
        return tuple(stated)
    names = _with_short(grouped)
    # The environment adds an array's names only where it speaks of the same job.
    if set(names) & set(stated):
        return tuple(dict.fromkeys([*stated, *names]))
    return tuple(names)


def _stated(environment: Mapping[str, str]) -> list[str]:
    if slurm := environment.get("SLURM_JOB_ID"):
        array, task = environment.get("SLURM_ARRAY_JOB_ID"), environment.get("SLURM_ARRAY_TASK_ID")
        return [f"{array}_{task}", slurm] if array and task else [slurm]
    if pbs := environment.get("PBS_JOBID"):
        return _with_short(pbs)
    if lsf := environment.get("LSB_JOBID"):
        index = environment.get("LSB_JOBINDEX", "0")
        return [f"{lsf}[{index}]"] if index not in ("", "0") else [lsf]
    return []


def _with_short(name: str) -> list[str]:
    short = name.partition(".")[0]
    return [name] if short == name else [name, short]


def jobs_here(
    processes: Iterable[psutil.Process] | None = None, *, proc: Path = Path("/proc")
) -> list[JobUse]:
    """The jobs that have processes here, in the order of their names.

    A process that ends while it is looked at, or whose owner alone may look at it, is left out.
    """
    known: dict[str, _Sum] = {}
    found: list[_Sum] = []
    for process in psutil.process_iter() if processes is None else processes:
        try:
            names = names_of(_cgroup(proc, process.pid), _environment(process))
            if not names:
                continue
            times, cpus = process.cpu_times(), process.cpu_affinity() or []
            memory = process.memory_info().rss
        except psutil.Error:
            continue
        job = next((known[name] for name in names if name in known), None)
        if job is None:
            job = _Sum()
            found.append(job)
        if len(names) > len(job.names):
            job.best = names[0]
        job.names.update(names)
        known.update(dict.fromkeys(names, job))
        job.processes.append(process.pid)
        job.cpus.update(cpus)
        job.cpu_seconds += times.user + times.system
        job.memory += memory
    return [
        JobUse(
            job=s.best,
            names=frozenset(s.names),
            processes=tuple(sorted(s.processes)),
            cpus=tuple(sorted(s.cpus)),
            cpu_seconds=s.cpu_seconds,
            memory=s.memory,
        )
        for s in sorted(found, key=lambda one: one.best)
    ]


def find(jobs: Iterable[JobUse], name: str) -> JobUse | None:
    """The job of this name, by any of its names."""
    return next((job for job in jobs if name in job.names), None)


def first_of(job: JobUse, user: str | None = None) -> int:
    """The first process of a job here: all its others come from it.

    Raises :class:`Failure` if there are several such, or if one of its processes is not ``user``'s. The batch
    system's own process above them does not count.
    """
    parents: dict[int, int] = {}
    for pid in job.processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process = psutil.Process(pid)
            owner, name = process.username(), process.name()
            if owner == "root" and name.startswith("slurmstepd"):
                continue
            if user is not None and owner != user:
                raise Failure(f"job {job.job}: expected processes of {user}, found {pid} of {owner}")
            parents[pid] = process.ppid()
    first = [pid for pid, parent in parents.items() if parent not in parents]
    if len(first) != 1:
        found = ", ".join(map(str, sorted(first))) or "none"
        raise Failure(f"job {job.job}: expected one process from which all others come, found {found}")
    return first[0]


class _Sum(msgspec.Struct):
    best: str = ""
    names: set[str] = set()
    processes: list[int] = []
    cpus: set[int] = set()
    cpu_seconds: float = 0.0
    memory: int = 0


def _environment(process: psutil.Process) -> Mapping[str, str]:
    try:
        return process.environ()
    except psutil.AccessDenied:
        return {}


def _cgroup(proc: Path, pid: int) -> str:
    try:
        return (proc / str(pid) / "cgroup").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
