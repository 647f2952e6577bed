"""A move whose nodes stay the same: stop the job, see that it stands, let it run again.

=========== ================= ==================================================================
step        asked for         what ends it
=========== ================= ==================================================================
stopping    suspend           a look shows it suspended; refused or not seen in time: it runs on
resuming    resume            a look shows it running; asked for again until ``resume_seconds``
                              are over, then the job goes back to its queue
=========== ================= ==================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headway.adapter.migration import Answered, Instruction, Move, Order, Over, Seen
from headway.decisions import Requeue, Resume, Suspend
from headway_plugins.migration.steps import Steps


@dataclass(frozen=True)
class Times:
    """Seconds."""

    stop: float = 60.0
    resume: float = 300.0
    #: Between two orders to resume.
    again: float = 5.0


class Pause(Steps):
    """A move. See the module's text."""

    def __init__(self, move: Move, times: Times) -> None:
        super().__init__(move)
        self._times = times

    def begin(self, now: float) -> Sequence[Instruction]:
        self.step, self.due = "stopping", now + self._times.stop
        return [Order(Suspend(self._move.job.id, "its move"))]

    def _seen(self, now: float, seen: Seen) -> Sequence[Instruction]:
        if seen.state == "ended":
            return self._over("ended", "it ended before its move was over")
        if seen.state == "pending":
            said = f"it could not be resumed: {self._why}" if self.step == "leaving" else "it was requeued"
            return self._over("queued", said)
        if self.step == "stopping":
            if seen.state == "suspended":
                self.step, self._until, self._in_doubt = "resuming", now + self._times.resume, False
                return self._resume(now)
            if self._in_doubt:
                return self._over("stayed", f"it could not be suspended: {self._why}")
        elif self.step in ("resuming", "leaving") and seen.state == "running":
            return self._over("moved", "the job stood still and runs again")
        return []

    def _answered(self, now: float, answered: Answered) -> Sequence[Instruction]:
        if not answered.accepted:
            self._why, self._in_doubt = answered.message, True
        return []

    def _late(self, now: float) -> Sequence[Instruction]:
        if self.step == "stopping":
            # The next look decides: an order may be carried out late.
            self._in_doubt, self.due = True, None
            self._why = self._why or f"the job still ran after {self._times.stop:g} s"
            return []
        if now < self._until:
            return self._resume(now)
        self.step, self.due = "leaving", now + self._times.again
        self._why = self._why or f"the job stood still for {self._times.resume:g} s after that"
        return [Order(Requeue(self._move.job.id, "it is suspended and cannot be resumed"))]

    def _resume(self, now: float) -> Sequence[Instruction]:
        self.due = now + self._times.again
        return [Order(Resume(self._move.job.id, "its move"))]

    def _over(self, outcome: str, message: str) -> Sequence[Instruction]:
        self.step, self.due = "over", None
        return [Over(outcome, message)]
