"""The processes of jobs, looked at again and again, at little cost.

What a process belongs to is found once (:func:`headway_adapters.node_agent.processes.names_of`), and kept as
long as it lives; after that each look reads one line of it. A process that belongs to no job is asked again
while it is young: a batch system puts it into its control group after it was made.

A job's processor time is the sum over its processes, with that of their children that ended. So a child's
time stays with its job when the child ends; only what was no child of the job's any more is lost.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from headway_adapters.node_agent.processes import names_of

_PROC = Path("/proc")
_TICKS = os.sysconf("SC_CLK_TCK")
#: Seconds for which a process that belongs to no job is asked again.
_YOUNG = 30.0


class Tenant(msgspec.Struct):
    """One job on this node."""

    #: The best name, and all of them.
    job: str
    names: frozenset[str]
    processes: set[int]
    users: set[int]
    #: Processor seconds so far.
    seconds: float
    #: Its processes of one thread, with their scheduling policies; the others are asked thread by thread.
    policies: dict[int, int] = {}


class _Known(msgspec.Struct):
    start: int
    names: tuple[str, ...]
    user: int
    cgroup: str


class Watch:
    """Looks at all processes of a node."""

    def __init__(self, proc: Path = _PROC) -> None:
        self._proc = str(proc)
        self._known: dict[int, _Known] = {}

    def look(self) -> list[Tenant]:
        """The jobs that have processes here now."""
        uptime = self._uptime()
        seen: dict[int, _Known] = {}
        tenants: list[Tenant] = []
        by_name: dict[str, Tenant] = {}
        for entry in os.listdir(self._proc):
            if not entry.isdigit():
                continue
            pid = int(entry)
            stat = self._stat(entry)
            if stat is None:
                continue
            start = int(stat[19])
            known = self._known.get(pid)
            if (
                known is None
                or known.start != start
                or (not known.names and uptime - start / _TICKS < _YOUNG)
            ):
                known = self._learn(pid, start)
            seen[pid] = known
            if not known.names:
                continue
            tenant = next((by_name[name] for name in known.names if name in by_name), None)
            if tenant is None:
                tenant = Tenant(known.names[0], frozenset(known.names), set(), set(), 0.0)
                tenants.append(tenant)
            elif not tenant.names.issuperset(known.names):
                if len(known.names) > len(tenant.names):
                    tenant.job = known.names[0]
                tenant.names |= frozenset(known.names)
            for name in known.names:
                by_name[name] = tenant
            # A process that has ended and waits for its parent: only its time counts.
            if stat[0] not in "ZX":
                tenant.processes.add(pid)
                tenant.users.add(known.user)
                if stat[17] == "1" and len(stat) > 38:
                    tenant.policies[pid] = int(stat[38])
            tenant.seconds += sum(map(int, stat[11:15])) / _TICKS
        self._known = seen
        return [one for one in tenants if one.processes]

    def cgroup(self, pid: int) -> str:
        """The text of a process's ``cgroup`` file as it was when it was first seen."""
        known = self._known.get(pid)
        return known.cgroup if known is not None else ""

    def _uptime(self) -> float:
        try:
            with open(f"{self._proc}/uptime") as file:
                return float(file.read().split()[0])
        except (OSError, ValueError, IndexError):
            return 0.0

    def _stat(self, pid: str) -> list[str] | None:
        """The words of a process's ``stat`` behind its name: state, parent, ... ; None if it is gone."""
        try:
            file = os.open(f"{self._proc}/{pid}/stat", os.O_RDONLY)
        except OSError:
            return None
        try:
            text = os.read(file, 2048)
        except OSError:
            return None
        finally:
            os.close(file)
        words = text[text.rfind(b")") + 2 :].decode("ascii", "replace").split()
        return words if len(words) >= 20 else None

    def _learn(self, pid: int, start: int) -> _Known:
        here = f"{self._proc}/{pid}"
        cgroup = _text(f"{here}/cgroup")
        environment = _environment(_text(f"{here}/environ"))
        try:
            user = os.stat(here).st_uid
        except OSError:
            user = -1
        names = names_of(cgroup, environment)
        return _Known(start, names, user, cgroup if names else "")


def _text(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""


def _environment(text: str) -> Mapping[str, str]:
    found = {}
    for item in text.split("\0"):
        if item.startswith(("SLURM_", "PBS_", "LSB_")):
            key, _, value = item.partition("=")
            found[key] = value
    return found
