"""A pending job is kept from starting, and released again."""

from __future__ import annotations

import msgspec

from headway import decisions as dec
from headway import events as ev
from headway_adapters.emulated.machine import Machine


class Holds:
    """Holds and releases what waits. Both return why not, or ""; doing it twice is no error."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def hold(self, decision: dec.Hold) -> str:
        return self._set(
            decision.job_id, True, ev.JobHeld(self._machine.now, decision.job_id, decision.reason)
        )

    def release(self, decision: dec.Release) -> str:
        return self._set(decision.job_id, False, ev.JobReleased(self._machine.now, decision.job_id))

    def _set(self, job_id: str, held: bool, event: ev.Event) -> str:
        known = self._machine.submitted.get(job_id)
        if known is None:
            return f"job {job_id} is not waiting"
        index, job = known
        if job.held != held:
            self._machine.submitted[job_id] = (index, msgspec.structs.replace(job, held=held))
            self._machine.news.append(event)
        return ""
