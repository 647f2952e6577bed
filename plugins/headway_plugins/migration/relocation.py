"""A move through the queue: save, leave, start on other nodes; every handler but suspend_resume uses it.

=========== ================================================ ============================================
step        what is asked for                                what ends it
=========== ================================================ ============================================
preparing   is there room for an image                       work reports
saving      a signal to the job, or a dump of its processes  it was taken, or work reports
confirming  is the image complete; its sizes and checksums   work reports, until ``save_seconds`` are over
leaving     requeue                                          a look shows the job in its queue
verifying   is the image still as it was confirmed           work reports
starting    start on the target                              a look shows it running there
returning   start on the source, in the tier that it had     a look shows it running there
=========== ================================================ ============================================

A handler that saves nothing has only *leaving*, *starting* and *returning*. Up to *confirming* the job
runs where it ran, so whatever fails leaves it there, and what was saved by halves is thrown away. Nothing
is killed before the image was confirmed. From *leaving* on a look at the batch system decides, not the
answer to an order: an order that was refused, or of which nothing was heard, may have been heard. A job that
can be started neither on the target nor on the source stays in its queue, which is where the policy
finds it.

An image that is damaged after the job left is put aside, so that the job, which then begins anew, does not
read it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headway.adapter.migration import (
    ON_NODES,
    Answered,
    Instruction,
    Move,
    Order,
    Over,
    Reported,
    Seen,
    Signal,
    Work,
)
from headway.decisions import Requeue, Start
from headway.model import Placement
from headway_plugins.migration.steps import Steps


@dataclass(frozen=True)
class Way:
    """How a handler's moves go. Times are seconds."""

    #: "" saves nothing; "signal": the job does it itself; "dump": work does it.
    saves: str = ""
    #: The signal that makes a job save itself.
    signal: str = "USR1"
    #: A dump leaves the processes stopped: they must be told to go on if they are not to leave.
    leaves_stopped: bool = False
    #: How long it may take until the image is complete.
    save_seconds: float = 600.0
    #: Between two questions whether it is.
    ask_seconds: float = 0.5
    #: How long the batch system may take to put the job back into its queue.
    leave_seconds: float = 120.0


class Relocation(Steps):
    """A move. See the module's text."""

    def __init__(self, move: Move, way: Way) -> None:
        super().__init__(move)
        self._way = way
        self._nodes = {"source": _names(move.source), "target": _names(move.target)}
        self._dumped = False
        self._complete = False
        self._begins_anew = not way.saves

    # ------------------------------------------------------------------ stimuli

    def begin(self, now: float) -> Sequence[Instruction]:
        if not self._way.saves:
            return self._leave(now)
        self.step = "preparing"
        return [Work("prepare")]

    def _seen(self, now: float, seen: Seen) -> Sequence[Instruction]:
        if seen.state == "ended":
            return self._over("ended", "it ended before its move was over", discard=True)
        here = seen.state in ON_NODES
        again = seen.restarts > self._move.restarts
        if here and again and (self.step != "leaving" or self._in_doubt):
            # While it leaves, a batch system may count its next execution already (Slurm: COMPLETING).
            return self._runs_again(seen)
        if self.step in ("preparing", "saving", "confirming"):
            if seen.state == "pending":
                return self._over(
                    "queued", "another program or user sent the job back to its queue", discard=True
                )
            if lost := self._nodes["target"] & seen.down:
                return self._stay(f"node {_said(lost)} of the target is out of service")
            return []
        if self.step == "leaving":
            if seen.state == "pending":
                return self._left(now)
            if self._in_doubt:
                return self._stay(self._why)
            return []
        if self.step in ("starting", "returning") and self._in_doubt and seen.state == "pending":
            return self._return(seen)
        return []

    def _runs_again(self, seen: Seen) -> Sequence[Instruction]:
        found = _names(seen.placement)
        if found == self._nodes["target"] and self.step in ("verifying", "starting", "returning", "leaving"):
            lost = f"; {self._why}" if self._begins_anew and self._why else ""
            return self._over("moved", f"it runs on {_said(found)}{lost}")
        if found == self._nodes["source"]:
            why = self._why or "it was sent back"
            return self._over("stayed", f"{why}; it was started again on {_said(found)}")
        return self._over("stayed", f"the job was started on {_said(found)}, but not by this move")

    def _answered(self, now: float, answered: Answered) -> Sequence[Instruction]:
        if self.step == "saving":
            if not answered.accepted:
                return self._stay(f"it could not be signalled: {answered.message}")
            return self._confirm(now)
        if answered.accepted or self.step not in ("leaving", "starting", "returning"):
            return []
        self._in_doubt = True
        if self.step == "leaving":
            self._why = f"it could not be requeued: {answered.message}"
        else:
            where = self._nodes["target" if self.step == "starting" else "source"]
            said = f"it could not be started on {_said(where)}: {answered.message}"
            self._why = f"{self._why}; {said}" if self._why else said
        return []

    def _reported(self, now: float, reported: Reported) -> Sequence[Instruction]:
        expected = {"preparing": "prepare", "saving": "dump", "confirming": "confirm", "verifying": "verify"}
        if reported.task != expected.get(self.step):
            return []
        if self.step == "preparing":
            if not reported.ok:
                return self._stay(f"no image can be kept: {reported.message}")
            self.step = "saving"
            self._until = now + self._way.save_seconds
            return [Signal(self._way.signal)] if self._way.saves == "signal" else [Work("dump")]
        if self.step == "saving":
            self._dumped = True
            return self._confirm(now) if reported.ok else self._stay(f"it was not saved: {reported.message}")
        if self.step == "confirming":
            return self._confirmed(now, reported)
        if not reported.ok:
            # The image is put aside: what begins anew must not find it.
            self._why = (
                f"the image of the job is damaged and was put aside, so the job begins anew: "
                f"{reported.message}"
            )
            self._begins_anew = True
        return self._start()

    def _confirmed(self, now: float, reported: Reported) -> Sequence[Instruction]:
        if reported.again and now < self._until:
            self.due = min(now + self._way.ask_seconds, self._until)
            return []
        if reported.again:
            seconds = f"{self._way.save_seconds:g} s"
            return self._stay(f"its image was not complete within {seconds}: {reported.message}")
        if not reported.ok:
            return self._stay(f"its image is not in order: {reported.message}")
        self.due, self._complete = None, True
        if not self._move.target:
            return self._over("saved", "its image is complete and checked")
        return self._leave(now)

    def _late(self, now: float) -> Sequence[Instruction]:
        self.due = None
        if self.step == "confirming":
            return [Work("confirm")]
        if self.step == "leaving":
            self._in_doubt = True
            self._why = f"the job was not back in its queue within {self._way.leave_seconds:g} s"
        return []

    # ------------------------------------------------------------------ steps

    def _confirm(self, now: float) -> Sequence[Instruction]:
        self.step = "confirming"
        return [Work("confirm")]

    def _leave(self, now: float) -> Sequence[Instruction]:
        self.step, self._in_doubt = "leaving", False
        self.due = now + self._way.leave_seconds
        where = _said(self._nodes["target"])
        return [Order(Requeue(self._move.job.id, f"it moves to {where}"))]

    def _left(self, now: float) -> Sequence[Instruction]:
        self.due, self._in_doubt, self._why = None, False, ""
        if not self._way.saves:
            return self._start()
        self.step = "verifying"
        return [Work("verify")]

    def _start(self) -> Sequence[Instruction]:
        self.step, self._in_doubt = "starting", False
        return [Order(Start(self._move.job.id, self._move.target, "its move", self._move.tier))]

    def _return(self, seen: Seen) -> Sequence[Instruction]:
        lost = self._nodes["source"] & seen.down
        if self.step == "returning" or lost:
            gone = f"; node {_said(lost)}, where it ran, is out of service" if lost else ""
            return self._over("queued", f"{self._why}{gone}")
        self.step, self._in_doubt = "returning", False
        move = self._move
        return [Order(Start(move.job.id, move.source, "back, its move failed", move.source_tier))]

    def _stay(self, why: str) -> Sequence[Instruction]:
        """It has not left: it runs on where it is.

        An image that was complete stays with a job that reads it by itself; a dump does not fit a process
        that went on after it."""
        return self._over("stayed", why, discard=not self._complete or self._way.leaves_stopped)

    def _over(self, outcome: str, message: str, *, discard: bool = False) -> Sequence[Instruction]:
        self.step, self.due = "over", None
        instructions: list[Instruction] = []
        if outcome in ("stayed", "saved") and self._way.leaves_stopped and self._dumped:
            instructions.append(Signal("CONT"))
        # What a job wrote is its own, and may be all that it has; a dump is ours.
        if discard and self._way.saves == "dump":
            instructions.append(Work("discard"))
        return [*instructions, Over(outcome, message, outcome == "moved" and self._begins_anew)]


def same_nodes(move: Move) -> bool:
    """Whether the target's nodes are the source's: then the batch system has nothing to move."""
    return bool(move.target) and _names(move.source) == _names(move.target)


def _names(placement: Placement) -> frozenset[str]:
    return frozenset(node for node, _ in placement)


def _said(nodes: frozenset[str]) -> str:
    return ", ".join(sorted(nodes)) or "no node"
