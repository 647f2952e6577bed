"""A running job saves on a signal what it has done, and goes on from there if it is requeued.

That is what a job of the workload does whose attribute ``saves`` says how many seconds it needs for it;
others take no notice of signals. Until it has saved itself anew, what it had saved before counts.

A migration handler saves the jobs that it suits at once, and at no cost.
"""

from __future__ import annotations

from collections.abc import Iterable

from headway import decisions as dec
from headway import events as ev
from headway.adapter.migration import MigrationHandler, Move, handler_for
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
        self._handlers: tuple[MigrationHandler, ...] = ()

    def use(self, handlers: Iterable[MigrationHandler]) -> None:
        """The migration handlers, in the order in which they are asked."""
        self._handlers = tuple(handlers)

    def checkpoint(self, decision: dec.Checkpoint) -> str:
        """A handler saves a job. Returns why not, or ""."""
        machine = self._machine
        execution = machine.running.get(decision.job_id)
        if execution is None or execution.suspended:
            return f"job {decision.job_id} is not running"
        handler, why = handler_for(self._handlers, Move(execution.job, execution.placement, (), 0))
        if handler is None:
            return f"job {decision.job_id} cannot be saved: {why}"
        execution.book(machine.now)
        machine.agenda.reschedule(execution)
        self._begun[decision.job_id] = (machine.now, execution.work)
        machine.news.append(ev.JobCheckpointed(machine.now, decision.job_id))
        return ""

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
