"""What an agent does between messages: keeps jobs in their tiers, and measures what they use.

The daemon says in which tier each of its jobs is (:class:`Wish`); the agent keeps that, in a file too, so
that an agent that begins anew goes on, and puts every job's processes there again at each look. What it was
not told of it leaves as it is, and when it ends it changes nothing: jobs run on in the tier that they have.

Only jobs of users that it may touch are put anywhere: user numbers from ``least_user`` on, every process of
the job belonging to the user that the daemon named.
"""

from __future__ import annotations

import os
import pwd
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from headway.errors import Failure
from headway_adapters.node_agent.priorities import BACKGROUND, FOREGROUND, Priorities
from headway_adapters.node_agent.watch import Tenant, Watch

#: Looks after a change in which sessions are tried again that a job shares with others.
_AGAIN = 20
#: A job's use is measured over at least so long, seconds.
_LEAST_SPAN = 2.0


class Wish(msgspec.Struct, frozen=True):
    """In which tier a job is to be, and whose it is."""

    tier: str
    user: str = ""


class Report(msgspec.Struct):
    """One job on this node, for the daemon."""

    job: str
    names: tuple[str, ...]
    processes: int
    #: Processors in use since the look before; None: not measured yet.
    use: float | None = None
    #: The tier that it was put into here; "": none.
    tier: str = ""
    #: How: "cgroup" or "idle".
    way: str = ""
    problem: str = ""


class Request(msgspec.Struct, frozen=True):
    """What the daemon asks: to know what there is, once these wishes are taken up."""

    wishes: dict[str, Wish] = {}


class Agent:
    """One node's agent. Its methods may be called by several threads."""

    def __init__(
        self,
        *,
        state: Path | None,
        least_user: int = 1000,
        way: str = "auto",
        proc: Path = Path("/proc"),
        cgroups: Path = Path("/sys/fs/cgroup"),
        note: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``state``: the file that remembers wishes. ``least_user``: no job of a user below it is touched."""
        self._state = state
        self._least = least_user
        self._note = note
        self._clock = clock
        self._watch = Watch(proc)
        self._priorities = Priorities(proc=proc, cgroups=cgroups, cgroup_of=self._watch.cgroup, way=way)
        self._lock = threading.Lock()
        self._wishes: dict[str, Wish] = self._read()
        self._reports: dict[str, Report] = {}
        #: Best name -> when its seconds were taken last, and how many.
        self._before: dict[str, tuple[float, float]] = {}
        self._noted: set[str] = set()
        #: In how many more looks sessions are tried that were shared.
        self._again = 0

    # ------------------------------------------------------------------ looks

    def look(self) -> None:
        """One round: which jobs are here, what they use, every job into the tier that was wished."""
        with self._lock:
            self._look()

    def _look(self) -> None:
        now = self._clock()
        tenants = {one.job: one for one in self._watch.look()}
        reports: dict[str, Report] = {}
        before: dict[str, tuple[float, float]] = {}
        put: dict[str, str] = {}
        changed = False
        for name, tenant in tenants.items():
            report = reports[name] = Report(name, tuple(sorted(tenant.names)), len(tenant.processes))
            self._measure(report, tenant, now, before)
            wish = next((self._wishes[one] for one in tenant.names if one in self._wishes), None)
            if wish is None:
                continue
            report.problem = self._forbidden(tenant, wish)
            if report.problem:
                self._say(f"job {name}: {report.problem}")
                continue
            done = self._priorities.put(tenant, wish.tier)
            report.way, report.problem = done.way, done.problem
            if done.problem:
                self._say(f"job {name}: {done.problem}")
            else:
                report.tier = wish.tier
            if done.changed:
                changed = True
                self._note(f"job {name}: {wish.tier} ({done.way}, {done.changed} changed)")
            if done.way == "idle" and not done.problem:
                put[name] = wish.tier
        fresh = set(tenants) != set(self._before)
        self._before = before
        if put and (changed or fresh or self._again) and self._priorities.sessions_matter():
            if changed or fresh:
                self._again = _AGAIN
            # A process that has just begun is not known to be its job's yet: then its session is put later.
            shared = self._priorities.put_sessions(tenants, put)
            self._again = self._again - 1 if shared else 0
        self._reports = reports

    def _measure(
        self, report: Report, tenant: Tenant, now: float, before: dict[str, tuple[float, float]]
    ) -> None:
        known = self._before.get(report.job)
        if known is None:
            before[report.job] = now, tenant.seconds
            return
        since, seconds = known
        if now - since < _LEAST_SPAN:
            # Too short a time says little.
            before[report.job] = known
            old = self._reports.get(report.job)
            report.use = old.use if old is not None else None
            return
        report.use = round(max(0.0, tenant.seconds - seconds) / (now - since), 3)
        before[report.job] = now, tenant.seconds

    def _forbidden(self, tenant: Tenant, wish: Wish) -> str:
        """Why a job may not be touched; "" if it may."""
        user = _number(wish.user)
        if wish.user and user is None:
            return f"its user {wish.user!r} is not known here; the job is not touched"
        for found in sorted(tenant.users):
            if found < self._least:
                return f"it has processes of user {found}, below {self._least}; the job is not touched"
            if user is not None and found != user:
                return f"it has processes of user {found}, and belongs to {wish.user}; the job is not touched"
        return ""

    # ------------------------------------------------------------------ messages

    def answer(self, message: Any) -> Any:
        """Take up what the daemon wishes, and report. What is not understood is answered with an error."""
        try:
            request = msgspec.convert(message, type=Request)
            for key, wish in request.wishes.items():
                if wish.tier not in (BACKGROUND, FOREGROUND):
                    raise Failure(f"job {key[:40]}: expected the tier background or foreground")
        except (msgspec.ValidationError, Failure) as error:
            return {"error": str(error)}
        with self._lock:
            if any(self._wishes.get(key) != wish for key, wish in request.wishes.items()):
                self._wishes = {**self._wishes, **request.wishes}
                self._look()
                self._keep()
        reports = list(self._reports.values())
        return {"node": os.uname().nodename, "jobs": msgspec.to_builtins(reports)}

    # ------------------------------------------------------------------ the file

    def _keep(self) -> None:
        """Write the wishes down, without the wishes of jobs that are neither here nor new."""
        here = {name for report in self._reports.values() for name in report.names}
        if len(self._wishes) > 2 * len(here) + 100:
            self._wishes = {key: wish for key, wish in self._wishes.items() if key in here}
        if self._state is None:
            return
        fresh = self._state.with_suffix(".new")
        try:
            self._state.parent.mkdir(parents=True, exist_ok=True)
            with open(fresh, "wb", opener=_private) as file:
                file.write(msgspec.json.encode(self._wishes))
            fresh.replace(self._state)
        except OSError as error:
            self._say(f"{self._state}: the tiers could not be saved: {error.strerror}")

    def _read(self) -> dict[str, Wish]:
        if self._state is None:
            return {}
        try:
            return msgspec.json.decode(self._state.read_bytes(), type=dict[str, Wish])
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.DecodeError) as error:
            self._note(f"{self._state}: cannot be read, so jobs stay in their tiers: {error}")
            return {}

    def _say(self, text: str) -> None:
        """Note something, once."""
        if text not in self._noted:
            if len(self._noted) > 10_000:
                self._noted.clear()
            self._noted.add(text)
            self._note(text)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _number(user: str) -> int | None:
    try:
        return pwd.getpwnam(user).pw_uid if user else None
    except KeyError:
        return None


__all__ = ["BACKGROUND", "FOREGROUND", "Agent", "Report", "Request", "Wish"]
