"""Two tiers: a job in front and a job in the background share processors, and go on at each other's cost.

On a place (a node; a flat pool is one place) with as many processors as processes everybody has his own and
runs at full speed. Where there are more, a process in front runs at 1 - loss, and one in the background at

- its efficiency, if what those in front leave idle is what those in the background require,
- efficiency x idle / required, if it is less,

which on places of one processor are equations (3.1) and (3.2) of the paper (:mod:`headway.sharing`). A job
is as slow as its slowest process. A rate changes only when a neighbour changes, so nothing is computed
between. A suspended or moving job keeps its place as if it ran.
"""

from __future__ import annotations

from random import Random

from headway import decisions as dec
from headway import events as ev
from headway.model import Placement
from headway.sharing import CPU, Sharing
from headway_adapters.emulated.execution import BACKGROUND, FOREGROUND, Execution
from headway_adapters.emulated.guard import Guard
from headway_adapters.emulated.machine import Machine
from headway_adapters.emulated.rates import Rates

#: What comes before a flat pool's name, which no node's name has.
_POOL = "pool "
_NOWHERE: dict[str, float] = {}


class Place:
    """A node, or a flat pool: who is on it."""

    __slots__ = ("behind", "capacity", "drawn", "front")

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        #: Who has how many processors here, in either tier.
        self.front: dict[Execution, int] = {}
        self.behind: dict[Execution, int] = {}
        #: What was drawn for each since its neighbours are those that they are.
        self.drawn: dict[Execution, float] = {}


class Tiers:
    """Who shares processors with whom, and how fast that lets each go."""

    def __init__(
        self, machine: Machine, guard: Guard, rates: Rates, sharing: Sharing | None, rng: Random
    ) -> None:
        self._machine = machine
        self._guard = guard
        self._rates = rates
        #: Estimates bound work, and how far jobs are is told.
        self.told = sharing is not None
        self._sharing = sharing or Sharing()
        self._rng = rng
        #: Nobody was in the background yet, so nobody was looked at.
        self.used = False
        self._places: dict[str, Place] = {}
        #: Places whose tenants changed since the last :meth:`settle`, in order; executions to look at.
        self._changed: dict[str, None] = {}
        self._restless: dict[Execution, None] = {}

    # ------------------------------------------------------------------ who is where

    def watch(self) -> None:
        """Keep who is where from now on."""
        if not self.used:
            self.used = True
            self._machine.left = self.leave
            for execution in self._machine.running.values():
                self.enter(execution)

    def enter(self, execution: Execution) -> None:
        """An execution has taken its processors."""
        tier = execution.tier == FOREGROUND
        execution.use = _use(execution)
        places, changed = self._places, self._changed
        for name, count in self._where(execution):
            place = places.get(name)
            if place is None:
                place = self._place(name, execution)
            if tier:
                place.front[execution] = count
                others = place.behind
            else:
                place.behind[execution] = count
                others = place.front
            if others:
                for other in others:
                    place.drawn.pop(other, None)
                changed[name] = None
        execution.paces = None

    def leave(self, execution: Execution) -> None:
        """An execution gives its processors back."""
        tier = execution.tier == FOREGROUND
        places, changed = self._places, self._changed
        for name, _ in self._where(execution):
            place = places.get(name)
            if place is None:
                place = self._place(name, execution)
            if tier:
                place.front.pop(execution, None)
                others = place.behind
            else:
                place.behind.pop(execution, None)
                others = place.front
            if others:
                place.drawn.pop(execution, None)
                for other in others:
                    place.drawn.pop(other, None)
                changed[name] = None
        execution.paces = None
        self._restless.pop(execution, None)

    def _where(self, execution: Execution) -> Placement:
        if execution.placement:
            return execution.placement
        return ((_POOL + self._machine.pool_of(execution.job), execution.job.request.processors),)

    def _place(self, name: str, execution: Execution) -> Place:
        """A place that nobody was on before."""
        machine = self._machine
        if execution.placement:
            capacity = int(machine.nodes.total[machine.nodes.index[name]])
        else:
            pool = machine.pool_of(execution.job)
            capacity = next(p.processors for p in machine.cluster.pools if p.name == pool)
        place = self._places[name] = Place(capacity)
        return place

    # ------------------------------------------------------------------ rates

    def settle(self) -> None:
        """Let everybody go at the rate that the neighbours leave, who changed at this instant."""
        if not self._changed and not self._restless:
            return
        restless = self._restless
        for name in self._changed:
            place = self._places.get(name)
            if place is not None:
                look = self._look_at_one if place.capacity == 1 else self._look_at
                look(name, place, restless)
        self._changed = {}
        for execution in restless:
            pace = min((execution.paces or _NOWHERE).values(), default=1.0)
            if execution.pausing:
                pace = 0.0
            if pace != execution.pace or execution.moved:
                execution.pace, execution.moved = pace, False
                self._rates.reconsider(execution)
                if self.told:
                    news = ev.JobPaceChanged(
                        self._machine.now, execution.job.id, execution.consumed, execution.rate
                    )
                    self._machine.news.append(news)
        self._restless = {}

    def _look_at(self, name: str, place: Place, restless: dict[Execution, None]) -> None:
        """The rates of all processes on a place."""
        front, behind, drawn, sharing = place.front, place.behind, place.drawn, self._sharing
        crowded = front and behind and sum(front.values()) + sum(behind.values()) > place.capacity
        if not crowded:
            for tenants in (front, behind):
                for execution in tenants:
                    if execution.paces and execution.paces.pop(name, None) is not None:
                        restless[execution] = None
            return
        for execution in front:
            loss = drawn.get(execution)
            if loss is None:
                loss = drawn[execution] = sharing.draw_loss(self._rng)
            self._goes(execution, name, 1.0 - loss, restless)
        idle = place.capacity - sum([e.use * n for e, n in front.items()])
        required = sum([e.use * n for e, n in behind.items()])
        share = 1.0 if idle >= required else max(idle, 0.0) / required
        for execution in behind:
            efficiency = drawn.get(execution)
            if efficiency is None:
                processes = execution.job.request.processors
                efficiency = drawn[execution] = sharing.draw_efficiency(self._rng, processes)
            self._goes(execution, name, efficiency * share, restless)

    def _look_at_one(self, name: str, place: Place, restless: dict[Execution, None]) -> None:
        """The same on one processor, the paper's case, which is by far the most frequent."""
        front, behind, drawn = place.front, place.behind, place.drawn
        one = next(iter(front), None)
        other = next(iter(behind), None)
        if one is None or other is None:
            alone = one or other
            if alone is not None and alone.paces and alone.paces.pop(name, None) is not None:
                restless[alone] = None
            return
        sharing = self._sharing
        loss = drawn.get(one)
        if loss is None:
            loss = drawn[one] = sharing.draw_loss(self._rng)
        rate = drawn.get(other)
        if rate is None:
            rate = drawn[other] = sharing.draw_efficiency(self._rng, other.job.request.processors)
        idle, required = 1 - one.use, other.use
        if idle < required:
            rate = rate * idle / required
        self._goes(one, name, 1.0 - loss, restless)
        self._goes(other, name, rate, restless)

    @staticmethod
    def _goes(execution: Execution, name: str, rate: float, restless: dict[Execution, None]) -> None:
        paces = execution.paces
        if paces is None:
            paces = execution.paces = {}
        if paces.get(name) != rate:
            paces[name] = rate
            restless[execution] = None

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
                machine.agenda.at(now + self._sharing.migration_cost, self._goes_on, execution)
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
            refusal = self._guard.no_room(execution.job, placement, tier)
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
