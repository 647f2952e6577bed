"""A job's time limit is changed."""

from __future__ import annotations

import msgspec

from headway import decisions as dec
from headway_adapters.emulated.commands import Commands
from headway_adapters.emulated.machine import Machine


class Limits:
    """Changes limits of what waits and runs."""

    def __init__(self, machine: Machine, commands: Commands) -> None:
        self._machine = machine
        self._commands = commands

    def set_time_limit(self, decision: dec.SetTimeLimit) -> str:
        """Another limit, seconds from the job's start. Returns why not, or ""."""
        machine = self._machine
        job_id = decision.job_id
        execution = machine.running.get(job_id)
        known = machine.submitted.get(job_id)
        if execution is not None:
            old = execution.job
        elif known is not None:
            old = known[1]
        else:
            return f"job {job_id} is not known"
        if decision.walltime == old.request.walltime:
            return ""
        request = msgspec.structs.replace(old.request, walltime=decision.walltime)
        new = msgspec.structs.replace(old, request=request)
        # A limit that its user asked for goes with the work (the user knows what the job needs).
        change = decision.walltime - old.request.walltime
        if not decision.asked or not self._commands.answered(job_id, "ET" if change > 0 else "RT"):
            change = 0.0
        if execution is not None:
            execution.book(machine.now)
            execution.job = new
            execution.limit = decision.walltime
            execution.work = max(execution.work + change, 0.0)
            machine.agenda.reschedule(execution)
        elif known is not None:
            index, _ = known
            machine.submitted[job_id] = (index, new)
            if change:
                machine.arrivals.change_work(index, change)
        machine.tell_changed(new)
        return ""
