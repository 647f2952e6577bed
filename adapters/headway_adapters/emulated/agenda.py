"""What is planned: a heap of moments, and what happens at each.

At one instant all completions come first, then changes; arrivals, which are no entries here, come last.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

from headway_adapters.emulated.execution import Execution

_COMPLETION, _CHANGE = 0, 1


class Agenda:
    """Completions of executions and changes to come. Times are seconds of the run's clock."""

    def __init__(self) -> None:
        #: ``(time, phase, number, what, argument)``: an execution that completes, with the version for
        #: which that is so, or a function that is called with the argument.
        self.heap: list[tuple[float, int, int, Any, Any]] = []
        #: Some completion was moved, so that the heap may hold void ones.
        self.moved = False
        self._number = 0

    def at(self, time: float, happens: Callable[[Any], object], argument: Any) -> None:
        """Have a change happen at this time."""
        self._number = number = self._number + 1
        heappush(self.heap, (time, _CHANGE, number, happens, argument))

    def complete(self, time: float, execution: Execution) -> None:
        """Have an execution complete at this time, unless it changes before."""
        self._number = number = self._number + 1
        heappush(self.heap, (time, _COMPLETION, number, execution, execution.version))

    def reschedule(self, execution: Execution) -> None:
        """Put the completion where the execution's work, rate and limit say."""
        self.void(execution)
        if not execution.suspended:
            self.complete(execution.booked_at + execution.seconds_left(), execution)

    def void(self, execution: Execution) -> None:
        """The completion that was planned for an execution does not happen."""
        execution.version += 1
        self.moved = True

    def drop_void(self) -> None:
        """Have the heap begin with something that will happen."""
        heap = self.heap
        while heap and type(heap[0][3]) is Execution and heap[0][3].version != heap[0][4]:
            heappop(heap)


def nothing(_: object) -> None:
    """What happens at a moment that is enough: what is news by then is told at it."""
