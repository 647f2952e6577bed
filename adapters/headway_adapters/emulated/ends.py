"""A job ends, is ended, or goes back to the queue."""

from __future__ import annotations

from collections.abc import Callable

from headway import decisions as dec
from headway import events as ev
from headway_adapters.emulated.bundles import Bundles
from headway_adapters.emulated.commands import Commands
from headway_adapters.emulated.execution import Execution
from headway_adapters.emulated.machine import Machine

_JobEnded = ev.JobEnded


class Ends:
    """Ends executions."""

    def __init__(self, machine: Machine, commands: Commands, bundles: Bundles) -> None:
        self._machine = machine
        self._commands = commands
        self._bundles = bundles
        bundles.ends_with(self.leave)
        #: Says of an execution that is over whether it keeps its nodes for now, and the news of it waits
        #: until they are free; there where these have to be given back first.
        self.held_back: Callable[[Execution, ev.Event], bool] | None = None

    # ------------------------------------------------------------------ by itself

    def complete(self, execution: Execution, now: float, events: list[ev.Event]) -> None:
        """An execution came to the end that was planned for it: its work is done, or its limit reached."""
        if execution.bundle:
            self._bundles.complete(execution, events)
            return
        if execution.version:
            execution.book(now)
            # A limit that leaves no more than rounding's worth of work is met, not missed.
            missed = execution.work > 1e-6 * max(execution.rate, 1e-9)
        else:
            # It ran undisturbed at rate 1.
            execution.consumed = now - execution.start
            missed = execution.work > execution.limit
        if missed:
            self.leave(execution, now, "timed out", "its time limit", events)
        else:
            self.leave(execution, now, execution.trace.outcome, "", events)

    def leave(
        self, execution: Execution, now: float, outcome: str, reason: str, events: list[ev.Event]
    ) -> None:
        """A job is gone from the machine; ``events`` are told next."""
        machine = self._machine
        execution.version += 1
        job_id = execution.job.id
        if machine.altered and job_id in machine.altered:
            # A change that was not told yet is of no interest any more.
            machine.altered.discard(job_id)
            events[:] = [event for event in events if not _alters(event, job_id)]
        del machine.running[job_id]
        machine.end(execution.index, machine.record(execution, now, outcome))
        ended = _JobEnded(now, job_id, outcome, reason)
        if self.held_back is not None and self.held_back(execution, ended):
            return
        machine.vacate(execution)
        events.append(ended)
        if execution.bundle:
            self._bundles.left(execution, outcome, events)

    # ------------------------------------------------------------------ by others

    def cut_off(self, execution: Execution, outcome: str, reason: str) -> None:
        """End a job before its time."""
        machine = self._machine
        execution.book(machine.now)
        machine.agenda.moved = True
        self.leave(execution, machine.now, outcome, reason, machine.news)

    def back_to_queue(self, execution: Execution, reason: str) -> None:
        """A running job waits again; what it has done and not saved is lost."""
        machine = self._machine
        machine.agenda.void(execution)
        machine.cut(execution)
        job = execution.job
        del machine.running[job.id]
        if machine.saved is not None and (left := machine.saved(execution)) is not None:
            machine.left_over[execution.index] = left
        machine.restarts[execution.index] = machine.restarts.get(execution.index, 0) + 1
        requeued = ev.JobRequeued(machine.now, job.id, reason)
        if self.held_back is not None and self.held_back(execution, requeued):
            return
        machine.vacate(execution)
        machine.submitted[job.id] = (execution.index, job)
        machine.news.append(requeued)
        if execution.bundle:
            self._bundles.left(execution, "", machine.news)

    def kill(self, decision: dec.Kill | dec.Cancel) -> str:
        """End a running job, or remove a waiting job. Returns why not, or ""."""
        machine = self._machine
        job_id = decision.job_id
        execution = machine.running.get(job_id)
        if execution is not None:
            # A user that reduces a job's time below what it has run says that it is done.
            if self._commands.answered(job_id, "RT"):
                self.cut_off(execution, "completed", "reduced")
            else:
                self.cut_off(execution, "cancelled", decision.reason)
            return ""
        known = machine.submitted.pop(job_id, None)
        if known is None:
            return f"job {job_id} is not known"
        index, job = known
        if job_id in self._bundles:
            self._bundles.end(job_id, "cancelled", decision.reason, machine.news)
            return ""
        machine.end(index, machine.never_started(index, job, machine.now, "cancelled"))
        machine.news.append(ev.JobEnded(machine.now, job.id, "cancelled", decision.reason))
        return ""

    def requeue(self, decision: dec.Requeue) -> str:
        """Send a running job back to the queue. Returns why not, or ""."""
        execution = self._machine.running.get(decision.job_id)
        if execution is None:
            return f"job {decision.job_id} is not running"
        self.back_to_queue(execution, decision.reason)
        return ""


def _alters(event: ev.Event, job_id: str) -> bool:
    """Whether it is news of a change of this job."""
    if isinstance(event, ev.JobChanged):
        return event.job.id == job_id
    return isinstance(event, ev.JobMigrated) and event.job_id == job_id
