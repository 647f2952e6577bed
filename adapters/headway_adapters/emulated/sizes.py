"""A job's processors are changed.

A running job keeps its work, or, with the attribute ``malleable``, shares it among its processors.
"""

from __future__ import annotations

import msgspec

from headway import decisions as dec
from headway import events as ev
from headway.errors import StateError
from headway.model import JobDescription
from headway_adapters.emulated.execution import Execution
from headway_adapters.emulated.machine import Machine


class Sizes:
    """Changes sizes of what waits and runs."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def resize(self, decision: dec.Resize) -> str:
        """Other processors, for a running job on other nodes. Returns why not, or ""."""
        machine = self._machine
        job_id = decision.job_id
        if decision.processors < 1:
            return f"job {job_id} cannot have {decision.processors} processors"
        known = machine.submitted.get(job_id)
        if known is not None:
            index, waiting = known
            if refusal := _shape_in_nodes(waiting):
                return refusal
            new = _resized(waiting, decision.processors)
            machine.submitted[job_id] = (index, new)
            machine.tell_changed(new)
            return ""
        execution = machine.running.get(job_id)
        if execution is None:
            return f"job {job_id} is not known"
        if refusal := _shape_in_nodes(execution.job):
            return refusal
        return self._resize_running(execution, decision)

    def _resize_running(self, execution: Execution, decision: dec.Resize) -> str:
        machine = self._machine
        old = execution.job
        new = _resized(old, decision.processors)
        machine.cut(execution)
        pool = machine.pool_of(execution)
        more = decision.processors - old.request.processors
        if pool in machine.free:
            if more > machine.free[pool]:
                return f"{more} more processors asked for, {machine.free[pool]} free"
            machine.free[pool] -= more
        else:
            machine.nodes.give_back(old.request, execution.placement)
            try:
                machine.nodes.guard(new.request, decision.placement, pool)
            except StateError as error:
                machine.nodes.take(old.request, execution.placement)
                return str(error)
            machine.nodes.take(new.request, decision.placement)
            execution.placement = decision.placement
        execution.book(machine.now)
        if (old.attributes or {}).get("malleable"):
            # Perfectly parallel work: the same work takes less time on more processors.
            execution.work *= old.request.processors / decision.processors
        execution.job = new
        machine.agenda.reschedule(execution)
        machine.tell_changed(new)
        if execution.placement:
            machine.news.append(ev.JobMigrated(machine.now, new.id, execution.placement))
        return ""


def _shape_in_nodes(job: JobDescription) -> str:
    """Why a job's processors alone cannot be changed; "" if they can."""
    request = job.request
    if request.nodes or request.processors_per_node or request.processors_per_chunk or request.exclusive:
        return f"job {job.id} asks for whole nodes or a number on each: its processors do not change alone"
    return ""


def _resized(job: JobDescription, processors: int) -> JobDescription:
    return msgspec.structs.replace(job, request=msgspec.structs.replace(job.request, processors=processors))
