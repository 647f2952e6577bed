"""A running job saves on a signal what it has done, and goes on from there if it is requeued.

That is what a job of the workload does whose attribute ``saves`` says how many seconds it needs for it;
others take no notice of signals. Until it has saved itself anew, what it had saved before counts.
"""

from __future__ import annotations

from headway import decisions as dec
from headway_adapters.emulated.execution import Execution
from headway_adapters.emulated.machine import Machine


class Saving:
    """What signalled jobs have saved."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        #: By id: when it has saved itself, seconds, and the work that is left from there on.
        self._begun: dict[str, tuple[float, float]] = {}
        #: By id: the work that was left when it had saved itself the time before, seconds.
        self._before: dict[str, float] = {}
        machine.saved = self._saved

    def signal(self, decision: dec.Signal) -> str:
        """A job's processes get a signal. Returns why not, or ""."""
        machine = self._machine
        execution = machine.running.get(decision.job_id)
        if execution is None or execution.suspended:
            return f"job {decision.job_id} is not running"
        seconds = (execution.job.attributes or {}).get("saves")
        begun = self._begun.get(decision.job_id)
        saving = begun is not None and begun[0] > machine.now
        if isinstance(seconds, int | float) and not saving:
            if begun is not None:
                self._before[decision.job_id] = begun[1]
            execution.book(machine.now)
            machine.agenda.reschedule(execution)
            self._begun[decision.job_id] = (machine.now + seconds, execution.work)
        return ""

    def _saved(self, execution: Execution) -> float | None:
        """A job leaves its place: the work that is left of what it has saved, seconds at rate 1, or None."""
        before = self._before.pop(execution.job.id, None)
        done, left = self._begun.pop(execution.job.id, (float("inf"), 0.0))
        return left if done <= self._machine.now else before
