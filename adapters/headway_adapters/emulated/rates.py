"""A job's rate: what the physics modules and the nodes' speeds make of it."""

from __future__ import annotations

from collections.abc import Sequence

from headway import decisions as dec
from headway import events as ev
from headway_adapters.emulated.execution import Execution
from headway_adapters.emulated.machine import Machine
from headway_adapters.emulated.physics import Physics


class Rates:
    """Asks all that has a say in how fast a job goes, and carries out what changes it."""

    def __init__(self, machine: Machine, physics: Sequence[Physics]) -> None:
        self._machine = machine
        self._physics = tuple(physics)
        #: Every start has a rate of its own; otherwise it is 1 unless the start says something special.
        self.uneven = bool(physics) or (machine.power is not None and machine.power.uneven)

    def reconsider(self, execution: Execution) -> None:
        """Ask for the job's rate again and move its completion."""
        machine = self._machine
        execution.book(machine.now)
        rate = 1.0
        for module in self._physics:
            rate *= module.rate(execution, machine.now)
        if machine.power is not None:
            rate *= machine.power.rate(execution, machine.pool_of(execution))
        rate *= execution.pace
        execution.rate = rate
        machine.agenda.reschedule(execution)

    def set_frequency(self, decision: dec.SetFrequency) -> str:
        """Another clock for a running job's processors. Returns why not, or ""."""
        machine = self._machine
        if machine.power is None:
            return "the emulated cluster has no energy profile, so it knows no frequencies"
        execution = machine.running.get(decision.job_id)
        if execution is None:
            return f"job {decision.job_id} is not running"
        machine.cut(execution)
        execution.frequency = decision.frequency
        self.reconsider(execution)
        machine.news.append(ev.JobFrequencyChanged(machine.now, decision.job_id, decision.frequency))
        return ""
