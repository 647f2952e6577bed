"""How a bundle is moved to other subjobs, or saved where it is, by a migration handler."""

from __future__ import annotations

from collections.abc import Sequence

from headway.adapter.migration import (
    Answered,
    Instruction,
    Move,
    Order,
    Over,
    Passed,
    Reported,
    Seen,
    Signal,
    Stimulus,
    Work,
)
from headway.decisions import Requeue, Start
from headway.model import JobDescription, Placement, Request
from headway_plugins.bundling.live.actions import Perform
from headway_plugins.bundling.live.bundle import LONGEST_PAUSE, PAUSE, Moving
from headway_plugins.bundling.live.launching import Launching
from headway_plugins.bundling.slots import Slots


class Moves(Launching):
    """A bundle that moves."""

    def worked(self, now: float, move: Move, reported: Reported) -> None:
        """A piece of work is done."""
        if self._moving is not None and self._moving.move is move:
            self._tell(now, reported)

    def _move(self, now: float, purpose: str, target: list[int]) -> None:
        spec, state = self.spec, self.state
        source = self._placement(state.members, "")
        move = Move(
            JobDescription(
                spec.id, spec.submitted, Request(spec.processors, spec.walltime), user=spec.user,
                name=spec.id,
            ),
            source, self._placement(target, ".next"), max(0, state.executions - 1), start=state.began,
        )  # fmt: skip
        why = self._handler.suits(move)
        if why:
            self._note(now, f"{spec.checkpoint} cannot move the application: {why}")
            self._failed_move(now)
            if purpose == "placeholder":
                self._stop_all(now)
            return
        self._moving = Moving(move, self._handler.machine(move), purpose, target, self._done(now))
        state.status = "moving"
        self._carry_out(now, self._moving.machine.begin(now))

    def _placement(self, numbers: Sequence[int], mark: str) -> Placement:
        """Nodes and processors of subjobs. ``mark`` keeps the target's names apart from the source's, whose
        nodes may be the same."""
        found: dict[str, int] = {}
        for number in numbers:
            for node, count in self.state.subjob(number).placement:
                found[node + mark] = found.get(node + mark, 0) + count
        return tuple(found.items())

    def _drive(self, now: float, slots: Slots | None) -> None:
        moving = self._moving
        assert moving is not None
        state = self.state
        if moving.signal is not None and self._all(
            lambda report: report.launch == state.launch and report.signals >= state.signals
        ):
            moving.signal = None
            self._tell(now, Answered(True))
        if self._moving is moving:
            if state.halted and self._stopped():
                self._tell(now, Seen("pending", (), moving.move.restarts))
            elif not state.halted and state.executions - 1 > moving.move.restarts and self._launched():
                there = self._on_target
                where = moving.move.target if there else moving.move.source
                self._tell(now, Seen("running", where, state.executions - 1))
        if self._moving is moving and moving.machine.due is not None and now >= moving.machine.due:
            self._tell(now, Passed())

    @property
    def _on_target(self) -> bool:
        return self._moving is not None and self.state.members == self._moving.target

    def _tell(self, now: float, stimulus: Stimulus) -> None:
        assert self._moving is not None
        self._carry_out(now, self._moving.machine.tell(now, stimulus))

    def _carry_out(self, now: float, instructions: Sequence[Instruction]) -> None:
        moving = self._moving
        for instruction in instructions:
            assert moving is not None
            if isinstance(instruction, Work):
                self._actions.append(Perform(moving.move, instruction.task))
            elif isinstance(instruction, Signal):
                if instruction.name != "CONT":
                    moving.share = self._done(now)
                moving.signal = self.state.signals = self.state.signals + 1
                self.state.signal = instruction.name
            elif isinstance(instruction, Order):
                self._order(now, moving, instruction)
            else:
                self._over(now, moving, instruction)

    def _order(self, now: float, moving: Moving, order: Order) -> None:
        state = self.state
        if isinstance(order.decision, Requeue):
            # What is written down must hold if this manager ends now: the image is complete.
            state.saved, state.saved_at = moving.share, now
            self._stop()
        elif isinstance(order.decision, Start):
            on_target = order.decision.placement == moving.move.target
            members = moving.target if on_target else list(state.members)
            self._place(members)
            self._start(now, members)

    def _over(self, now: float, moving: Moving, over: Over) -> None:
        state = self.state
        self._moving = None
        what = "checkpoint" if moving.purpose == "save" else f"move ({moving.purpose})"
        self._note(now, f"{what}: {over.outcome}: {over.message}")
        if over.outcome == "ended":
            state.status = "running"
            return
        if over.outcome == "moved":
            if over.restarted:
                state.saved = 0.0
            state.migrations += 1
            self._failed_moves = 0
            self._follow(now, state.saved)
            for subjob in state.subjobs:
                if subjob.number not in state.members and subjob.number and subjob.state == "ready":
                    self._cancel(subjob.number)
            return
        if over.outcome == "saved":
            state.saved, state.saved_at = moving.share, now
            state.status = "running"
            return
        if over.outcome == "stayed" and not state.halted:
            self._failed_move(now)
            if state.executions - 1 > moving.move.restarts:
                self._follow(now, state.saved)
            else:
                state.status = "running"
            return
        # It runs nowhere: it is launched again where that is possible.
        self._stop_all(now)

    def _failed_move(self, now: float) -> None:
        self._failed_moves += 1
        self._move_again = now + max(PAUSE, min(LONGEST_PAUSE, self.model.migration))
