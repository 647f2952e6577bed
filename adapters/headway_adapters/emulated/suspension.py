"""A running job is stopped and runs again: both its work and its limit wait.

It keeps its memory, generic resources and licences. Others may have its processors meanwhile, as on Slurm;
that it runs again only where they are free, which a real Slurm does not look at, is checked here.
"""

from __future__ import annotations

from headway import decisions as dec
from headway import events as ev
from headway_adapters.emulated.machine import Machine


class Suspension:
    """Suspends and resumes. Both return why not, or ""."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def suspend(self, decision: dec.Suspend) -> str:
        execution = self._machine.running.get(decision.job_id)
        if execution is None or execution.suspended:
            return f"job {decision.job_id} is not running"
        if execution.bundle:
            return f"job {decision.job_id} is in a bundle, which is not suspended"
        self._set(decision.job_id, True)
        self._machine.lend(execution)
        self._machine.news.append(ev.JobSuspended(self._machine.now, decision.job_id))
        return ""

    def resume(self, decision: dec.Resume) -> str:
        execution = self._machine.running.get(decision.job_id)
        if execution is None or not execution.suspended:
            return f"job {decision.job_id} is not suspended"
        if refusal := self._machine.take_again(execution):
            return refusal
        self._set(decision.job_id, False)
        self._machine.news.append(ev.JobResumed(self._machine.now, decision.job_id))
        return ""

    def _set(self, job_id: str, suspended: bool) -> None:
        execution = self._machine.running[job_id]
        execution.book(self._machine.now)
        self._machine.cut(execution)
        execution.suspended = suspended
        self._machine.agenda.reschedule(execution)
