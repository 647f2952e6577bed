"""Which jobs share processors on the emulated cluster, and at which rate that lets each process go.

On a place (a node; a flat pool is one place) with as many processors as processes each process has its own
processor and runs at full speed. Where there are more processes, a process in front runs at 1 - loss, and a
process in the background at

- its efficiency, if foreground jobs leave idle what background jobs require,
- efficiency x idle / required, if it is less,

which on places of one processor are equations (3.1) and (3.2) of the paper (:mod:`headway.workload.sharing`).
A rate changes only when a neighbour changes, so nothing is computed between. A suspended or moving job keeps
its place as if it ran.
"""

from __future__ import annotations

from random import Random
from typing import Protocol

from headway.model import Placement
from headway.workload.sharing import Sharing
from headway_adapters.emulated.execution import FOREGROUND, Execution
from headway_adapters.emulated.machine import Machine

#: What comes before a flat pool's name, which no node's name has.
_POOL = "pool "


def neighbours(machine: Machine, sharing: Sharing, rng: Random) -> Neighbours:
    """The object that keeps which job is where on this machine."""
    nodes = machine.nodes
    if not machine.free and nodes.single:
        return Pairs(machine, sharing, rng)
    return Places(machine, sharing, rng)


class Neighbours(Protocol):
    """Which job is where, and at which rates that lets the jobs go (:attr:`Execution.paces`)."""

    def enter(self, execution: Execution) -> None:
        """An execution has taken its processors."""

    def leave(self, execution: Execution) -> None:
        """An execution gives its processors back."""

    def look(self, restless: dict[Execution, None]) -> None:
        """Find the rates where a job came or left, in that order; a job whose rate changed is added to
        ``restless``."""


class Pairs:
    """Nodes of one processor each, the paper's case: one process in front and one behind."""

    def __init__(self, machine: Machine, sharing: Sharing, rng: Random) -> None:
        self._nodes = machine.nodes
        self._draw = sharing.drawing(rng)
        size = len(machine.nodes)
        #: By node.
        self._front: list[Execution | None] = [None] * size
        self._behind: list[Execution | None] = [None] * size
        #: Nodes of which a neighbour came or left since the last look, in order.
        self._changed: dict[int, None] = {}

    def enter(self, execution: Execution) -> None:
        self._put(execution, execution)

    def leave(self, execution: Execution) -> None:
        self._put(execution, None)

    def _put(self, execution: Execution, occupant: Execution | None) -> None:
        """Its processors are the occupant's from now on."""
        mine, others = self._front, self._behind
        if execution.tier != FOREGROUND:
            mine, others = others, mine
        changed = self._changed
        for node in self._nodes.locate(execution.placement).nodes:
            mine[node] = occupant
            if others[node] is not None:
                changed[node] = None
        execution.paces = None

    def look(self, restless: dict[Execution, None]) -> None:
        changed, self._changed = self._changed, {}
        front, behind, draw = self._front, self._behind, self._draw
        for node in changed:
            one, other = front[node], behind[node]
            if one is None or other is None:
                alone = one or other
                if alone is not None and alone.paces and alone.paces.pop(node, None) is not None:
                    restless[alone] = None
                continue
            # A job that was here before had another neighbour, so both are drawn anew.
            loss, rate = draw(other.job.request.processors)
            idle, required = 1 - one.use, other.use
            if idle < required:
                rate = rate * idle / required
            paces = one.paces
            if paces is None:
                paces = one.paces = {}
            if paces.get(node) != 1.0 - loss:
                paces[node] = 1.0 - loss
                restless[one] = None
            paces = other.paces
            if paces is None:
                paces = other.paces = {}
            if paces.get(node) != rate:
                paces[node] = rate
                restless[other] = None


class Place:
    """A node, or a flat pool: the jobs on it."""

    __slots__ = ("behind", "capacity", "drawn", "front")

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        #: How many processors each job has here, in either tier.
        self.front: dict[Execution, int] = {}
        self.behind: dict[Execution, int] = {}
        #: What was drawn for each since it has its present neighbours.
        self.drawn: dict[Execution, float] = {}


class Places:
    """Nodes and pools of any size."""

    def __init__(self, machine: Machine, sharing: Sharing, rng: Random) -> None:
        self._machine = machine
        self._sharing = sharing
        self._rng = rng
        self._places: dict[str, Place] = {}
        #: Places whose tenants changed since the last look, in order.
        self._changed: dict[str, None] = {}

    def enter(self, execution: Execution) -> None:
        tier = execution.tier == FOREGROUND
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

    def _where(self, execution: Execution) -> Placement:
        if execution.placement:
            return execution.placement
        return ((_POOL + self._machine.pool_of(execution), execution.job.request.processors),)

    def _place(self, name: str, execution: Execution) -> Place:
        """A place that no job was on before."""
        machine = self._machine
        if execution.placement:
            capacity = int(machine.nodes.total[machine.nodes.index[name]])
        else:
            pool = machine.pool_of(execution)
            capacity = next(p.processors for p in machine.cluster.pools if p.name == pool)
        place = self._places[name] = Place(capacity)
        return place

    def look(self, restless: dict[Execution, None]) -> None:
        for name in self._changed:
            place = self._places.get(name)
            if place is not None:
                self._look_at(name, place, restless)
        self._changed = {}

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

    @staticmethod
    def _goes(execution: Execution, name: str, rate: float, restless: dict[Execution, None]) -> None:
        paces = execution.paces
        if paces is None:
            paces = execution.paces = {}
        if paces.get(name) != rate:
            paces[name] = rate
            restless[execution] = None
