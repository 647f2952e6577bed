"""Two tiers: a job in front and a job in the background share processors, and go on at each other's cost.

A job is as slow as its slowest process; how fast each is that has a neighbour says
:mod:`headway_adapters.emulated.neighbours`.
"""

from __future__ import annotations

from random import Random

from headway import decisions as dec
from headway import events as ev
from headway.model import Placement
from headway.workload.sharing import CPU, Sharing
from headway_adapters.emulated.execution import BACKGROUND, FOREGROUND, Execution
from headway_adapters.emulated.guard import Guard
from headway_adapters.emulated.machine import Machine
from headway_adapters.emulated.neighbours import neighbours
from headway_adapters.emulated.rates import Rates


class Tiers:
    """Which jobs share processors, and how fast that lets each job go."""

    def __init__(
        self, machine: Machine, guard: Guard, rates: Rates, sharing: Sharing | None, rng: Random
    ) -> None:
        self._machine = machine
        self._guard = guard
        self._rates = rates
        #: Estimates bound work, and how far jobs are is told.
        self.told = sharing is not None
        self._sharing = sharing or Sharing()
        self._neighbours = neighbours(machine, self._sharing, rng)
        #: A job was in the background; until then no job is looked at.
        self.used = False
        #: The jobs whose rate may have changed since the last :meth:`settle`, in order.
        self._restless: dict[Execution, None] = {}

    # ------------------------------------------------------------------ which job is where

    def watch(self) -> None:
        """Keep which job is where from now on."""
        if not self.used:
            self.used = True
            self._machine.left = self.leave
            for execution in self._machine.running.values():
                self.enter(execution)

    def enter(self, execution: Execution) -> None:
        """An execution has taken its processors."""
        execution.use = _use(execution)
        self._neighbours.enter(execution)

    def leave(self, execution: Execution) -> None:
        """An execution gives its processors back."""
        self._neighbours.leave(execution)
        self._restless.pop(execution, None)

    # ------------------------------------------------------------------ rates

    def settle(self) -> None:
        """Let every job go at the rate that its neighbours leave; the neighbours changed at this instant."""
        restless = self._restless
        self._neighbours.look(restless)
        if not restless:
            return
        self._restless = {}
        machine, told = self._machine, self.told
        for execution in restless:
            paces = execution.paces
            pace = min(paces.values()) if paces else 1.0
            if execution.pausing:
                pace = 0.0
            if pace != execution.pace or execution.moved:
                execution.pace, execution.moved = pace, False
                self._rates.reconsider(execution)
                # A job without work left ends at this instant, which is all the news of it.
                if told and execution.work > 0.0:
                    resumes = execution.resumes if execution.pausing else None
                    machine.news.append(
                        ev.JobPaceChanged(
                            machine.now, execution.job.id, execution.consumed, execution.rate, resumes
                        )
                    )

    # ------------------------------------------------------------------ moves

    def swap(self, decision: dec.SwapTiers) -> str:
        """Bring a job of the background to the front, and perhaps another one back. Returns why not, or
        ""."""
        machine = self._machine
        moves = []
        for job_id, tier, from_ in (
            (decision.job_id, FOREGROUND, BACKGROUND),
            (decision.other_job_id, BACKGROUND, FOREGROUND),
        ):
            if not job_id:
                continue
            execution = machine.running.get(job_id)
            if execution is None:
                return f"job {job_id} is not running"
            if execution.tier != from_:
                return f"job {job_id} is in the {execution.tier}, not in the {from_}"
            moves.append((execution, execution.placement, tier))
        refusal = self._relocate(moves)
        if not refusal:
            for execution, _, tier in moves:
                machine.moves_of(execution).promotions += tier == FOREGROUND
                machine.news.append(ev.JobTierChanged(machine.now, execution.job.id, tier))
        return refusal

    def migrate(self, decision: dec.Migrate) -> str:
        """Move a running job, with what it has done or from its beginning. Returns why not, or ""."""
        machine = self._machine
        execution = machine.running.get(decision.job_id)
        if execution is None:
            return f"job {decision.job_id} is not running"
        tier = decision.tier or execution.tier
        unknown = next((name for name, _ in decision.placement if name not in machine.nodes.index), None)
        if unknown is not None:
            return f"node {unknown} is not known"
        refusal = self._relocate([(execution, decision.placement or execution.placement, tier)])
        if refusal:
            return refusal
        now, job_id = machine.now, execution.job.id
        execution.moved = True
        if decision.restart:
            machine.moves_of(execution).restarts += 1
            execution.work, execution.consumed = execution.trace.runtime, 0.0
        else:
            machine.moves_of(execution).migrations += 1
            if self._sharing.migration_cost > 0:
                execution.pausing += 1
                execution.resumes = now + self._sharing.migration_cost
                machine.agenda.at(execution.resumes, self._goes_on, execution)
                if execution.pausing == 1:
                    machine.news.append(ev.JobSuspended(now, job_id))
        machine.news.append(ev.JobMigrated(now, job_id, execution.placement, tier, decision.restart))
        self._restless[execution] = None
        return ""

    def _goes_on(self, execution: Execution) -> None:
        """A job is at its new place."""
        machine = self._machine
        if machine.running.get(execution.job.id) is not execution:
            return
        execution.pausing -= 1
        if not execution.pausing:
            self._restless[execution] = None
            machine.news.append(ev.JobResumed(machine.now, execution.job.id))

    def _relocate(self, moves: list[tuple[Execution, Placement, str]]) -> str:
        """All leave what they have, then each takes what it is sent to; or none does, and why is returned."""
        self.watch()
        machine = self._machine
        before = [(execution, execution.placement, execution.tier) for execution, _, _ in moves]
        for execution, _, _ in moves:
            execution.book(machine.now)
            machine.cut(execution)
            machine.vacate(execution)
        refusal, taken = "", 0
        for execution, placement, tier in moves:
            refusal = self._guard.no_room(execution.job, placement, tier, execution.pool)
            if refusal:
                break
            self._take(execution, placement, tier)
            taken += 1
        if refusal:
            for execution, _, _ in moves[:taken]:
                machine.vacate(execution)
            for execution, placement, tier in before:
                self._take(execution, placement, tier)
        for execution, _, _ in moves:
            self._restless[execution] = None
        return refusal

    def _take(self, execution: Execution, placement: Placement, tier: str) -> None:
        execution.placement, execution.tier = placement, tier
        self._machine.occupy(execution)
        self.enter(execution)


def _use(execution: Execution) -> float:
    """Share of a processor that each process of the job uses."""
    attributes = execution.job.attributes
    return attributes.get(CPU, 1.0) if attributes else 1.0
