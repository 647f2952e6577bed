"""From an event to a command: which cycle and which decision a line of the log belongs to.

A cycle's id is ``RUN-CYCLE``, a decision's ``RUN-CYCLE-PLACE``: the run, the number of the cycle in it, and
the decision's place in the cycle (the first is 0), as the journal has them. The engine says the ids of what
it hands to an adapter, and the adapter writes them beside what it does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Sized
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple


class Trail(NamedTuple):
    """A cycle, and the decisions of it that are being carried out, by their ids and in their order."""

    cycle: str = ""
    ids: tuple[str, ...] = ()

    def of(self, places: Sequence[int]) -> Trail:
        """The same cycle with the decisions at these places."""
        return Trail(self.cycle, tuple([self.ids[place] for place in places]) if self.ids else ())


#: No cycle's.
NOTHING = Trail()

_TRAIL: ContextVar[Trail] = ContextVar("headway_trail", default=NOTHING)


@contextmanager
def following(trail: Trail) -> Iterator[None]:
    """In the block, what is done and logged belongs to this cycle and these decisions."""
    token = _TRAIL.set(trail)
    try:
        yield
    finally:
        _TRAIL.reset(token)


def current() -> Trail:
    """Whose work is done here now; an empty one outside of any cycle's."""
    return _TRAIL.get()


def ids_of(decisions: Sized) -> tuple[str, ...]:
    """The ids of decisions that were just handed over, each; () where nobody said them."""
    ids = _TRAIL.get().ids
    return ids if len(ids) == len(decisions) else ()
