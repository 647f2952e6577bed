"""What every move's machine does alike: it is at one step, and a stimulus means what it means there."""

from __future__ import annotations

from collections.abc import Sequence

from headway.adapter.migration import Answered, Instruction, Move, Passed, Reported, Seen, Stimulus


class Steps:
    """A move (:class:`.Machine` of handlers). A subclass says how it begins and what stimuli do."""

    def __init__(self, move: Move) -> None:
        self._move = move
        self.step = "new"
        self.due: float | None = None
        #: Until when what it is at may take.
        self._until = 0.0
        #: Why it goes back, or stays: for the last word.
        self._why = ""
        #: The last order was refused, not heard of, or is late: the next look decides what it came to.
        self._in_doubt = False

    def tell(self, now: float, stimulus: Stimulus) -> Sequence[Instruction]:
        if self.step == "over":
            return []
        if isinstance(stimulus, Seen):
            return self._seen(now, stimulus)
        if isinstance(stimulus, Answered):
            return self._answered(now, stimulus)
        if isinstance(stimulus, Reported):
            return self._reported(now, stimulus)
        assert isinstance(stimulus, Passed)
        return [] if self.due is None or now < self.due else self._late(now)

    def _seen(self, now: float, seen: Seen) -> Sequence[Instruction]:
        return []

    def _answered(self, now: float, answered: Answered) -> Sequence[Instruction]:
        return []

    def _reported(self, now: float, reported: Reported) -> Sequence[Instruction]:
        return []

    def _late(self, now: float) -> Sequence[Instruction]:
        """``due`` is over."""
        return []
