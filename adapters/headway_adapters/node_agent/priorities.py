"""Background and foreground on one node, with what the kernel offers.

Two ways, the first that a job's processes can be had with:

``cgroup``
    The job has a control group of version 2 with the controller ``cpu``: ``cpu.idle`` is 1 in the
    background (Linux 5.15), or ``cpu.weight`` is 1 where there is none. Forked processes are in it by birth.
``idle``
    Each thread of the job gets the policy ``SCHED_IDLE``. Forked ones inherit it; one that comes in from
    elsewhere gets it at the next look.

Where the kernel groups processes by session (``sched_autogroup_enabled``), SCHED_IDLE counts only within
the session: a job in a session of its own would have as much as any other, policy or not. So the group's own
weight is set as well (``/proc/PID/autogroup``), where all its processes are the job's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from headway_adapters.node_agent.watch import Tenant

BACKGROUND, FOREGROUND = "background", "foreground"

_AUTOGROUP = re.compile(r"/autogroup-(\d+) nice (-?\d+)")
_JOB_GROUP = re.compile(
    r"^0::(/.*?(?:/job_\d+|/pbs_jobs\.service/jobid/[A-Za-z0-9_.\[\]-]+|/lsf/[^/\s]+/job\.\d+[^/\n]*))(?:/|$)",
    re.MULTILINE,
)
#: Rounds after which a job that forks faster than it can be followed is left for the next look.
_ROUNDS = 5


class Applied(msgspec.Struct):
    """What became of a job's tier here."""

    way: str
    #: Threads, or groups, that were changed now.
    changed: int = 0
    #: Why something could not be changed.
    problem: str = ""


class Priorities:
    """Puts jobs into tiers."""

    def __init__(
        self,
        *,
        proc: Path = Path("/proc"),
        cgroups: Path = Path("/sys/fs/cgroup"),
        cgroup_of: Callable[[int], str] = lambda pid: "",
        way: str = "auto",
    ) -> None:
        """``cgroup_of``: the text of a process's ``cgroup`` file. ``way``: "auto", "cgroup" or "idle"."""
        self._proc = proc
        self._cgroups = cgroups
        self._cgroup_of = cgroup_of
        self._way = way

    def put(self, tenant: Tenant, tier: str) -> Applied:
        """Put a job into a tier; nothing is written where it is there already."""
        if self._way in ("auto", "cgroup"):
            group = self.group(tenant)
            if group is not None:
                return self._put_group(group, tier)
            if self._way == "cgroup":
                return Applied("cgroup", problem="it has no control group of its own with the controller cpu")
        return self._put_threads(tenant, tier)

    # ------------------------------------------------------------------ control groups

    def group(self, tenant: Tenant) -> Path | None:
        """The job's control group, if all its processes are in it and it has the controller ``cpu``."""
        found: set[str] = set()
        for pid in tenant.processes:
            match = _JOB_GROUP.search(self._cgroup_of(pid))
            if match is None or ".." in match[1]:
                return None
            found.add(match[1])
        if len(found) != 1:
            return None
        path = self._cgroups / found.pop().lstrip("/")
        return path if (path / "cpu.weight").exists() else None

    def _put_group(self, path: Path, tier: str) -> Applied:
        idle = path / "cpu.idle"
        file, value = (idle, "1" if tier == BACKGROUND else "0")
        if not idle.exists():
            file, value = path / "cpu.weight", "1" if tier == BACKGROUND else "100"
        try:
            if file.read_text().strip() == value:
                return Applied("cgroup")
            file.write_text(value)
        except OSError as error:
            return Applied("cgroup", problem=f"{file}: {error.strerror}")
        return Applied("cgroup", 1)

    # ------------------------------------------------------------------ threads

    def _put_threads(self, tenant: Tenant, tier: str) -> Applied:
        done = Applied("idle")
        wrong = (os.SCHED_OTHER, os.SCHED_BATCH) if tier == BACKGROUND else (os.SCHED_IDLE,)
        if all(tenant.policies.get(pid, wrong[0]) not in wrong for pid in tenant.processes):
            return done
        seen: set[int] = set()
        for _ in range(_ROUNDS):
            threads = [t for pid in tenant.processes for t in self._threads(pid) if t not in seen]
            if not threads:
                break
            seen.update(threads)
            for thread in threads:
                self._put_thread(thread, tier, done)
        return done

    def _threads(self, pid: int) -> list[int]:
        try:
            return [int(name) for name in os.listdir(self._proc / str(pid) / "task")]
        except OSError:
            return []  # it ended

    def _put_thread(self, thread: int, tier: str, done: Applied) -> None:
        try:
            policy = os.sched_getscheduler(thread) & ~os.SCHED_RESET_ON_FORK
            if tier == BACKGROUND and policy in (os.SCHED_OTHER, os.SCHED_BATCH):
                os.sched_setscheduler(thread, os.SCHED_IDLE, os.sched_param(0))
            elif tier == FOREGROUND and policy == os.SCHED_IDLE:
                os.sched_setscheduler(thread, os.SCHED_OTHER, os.sched_param(0))
            else:
                return
            done.changed += 1
        except ProcessLookupError:
            pass  # it ended meanwhile
        except OSError as error:
            done.problem = f"thread {thread}: {error.strerror}"

    # ------------------------------------------------------------------ sessions

    def sessions_matter(self) -> bool:
        """Whether the kernel groups processes by session."""
        try:
            text = (self._proc / "sys/kernel/sched_autogroup_enabled").read_text()
        except OSError:
            return False
        return text.strip() == "1"

    def put_sessions(self, tenants: Mapping[str, Tenant], tiers: Mapping[str, str]) -> set[str]:
        """Give each session's group the weight of its job's tier, where it has the processes of that job
        alone; the jobs that have a session with others, perhaps only until these are known to be theirs.
        ``tiers``: the tiers of the jobs to be put, by their best name."""
        owner: dict[int, str] = {}
        for name, tenant in tenants.items():
            owner.update(dict.fromkeys(tenant.processes, name))
        groups: dict[str, tuple[set[str], int, int]] = {}
        for entry in os.listdir(self._proc):
            if not entry.isdigit():
                continue
            found = self._autogroup(int(entry))
            if found is None:
                continue
            key, nice = found
            jobs, _, _ = groups.setdefault(key, (set(), int(entry), nice))
            if int(entry) in owner or not self._does_not_count(entry):
                jobs.add(owner.get(int(entry), ""))
        shared: set[str] = set()
        for jobs, pid, nice in groups.values():
            if len(jobs) != 1:
                shared.update(jobs & tiers.keys())
                continue
            (name,) = jobs
            if name not in tiers:
                continue
            wanted = 19 if tiers[name] == BACKGROUND else 0
            if nice == wanted or (tiers[name] == FOREGROUND and nice != 19):
                continue
            try:
                (self._proc / str(pid) / "autogroup").write_text(str(wanted))
            except OSError:
                shared.add(name)  # it ended meanwhile, and another may be there
        return shared

    def _does_not_count(self, pid: str) -> bool:
        """Whether it runs no more, or is Slurm's own process above the processes of a step, in their
        session."""
        try:
            with open(f"{self._proc}/{pid}/stat", "rb") as file:
                name, _, rest = file.read(512).partition(b"(")[2].rpartition(b")")
        except OSError:
            return True
        return name.startswith(b"slurmstepd") or rest.strip()[:1] in (b"Z", b"X")

    def _autogroup(self, pid: int) -> tuple[str, int] | None:
        try:
            with open(f"{self._proc}/{pid}/autogroup") as file:
                found = _AUTOGROUP.match(file.read())
        except OSError:
            return None
        return (found[1], int(found[2])) if found is not None else None
