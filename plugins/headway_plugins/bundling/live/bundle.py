"""What is known of a bundle: its subjobs, how much is done, what is to be done next."""

from __future__ import annotations

import math
from collections.abc import Sequence

from headway.adapter.migration import (
    Machine,
    MigrationHandler,
    Move,
)
from headway_plugins.bundling import cases
from headway_plugins.bundling.live.actions import Action, Cancel, Postpone, Submit
from headway_plugins.bundling.live.messages import Report
from headway_plugins.bundling.live.specification import Specification
from headway_plugins.bundling.live.state import State, Subjob
from headway_plugins.bundling.model import progress
from headway_plugins.bundling.slots import Slots

#: After nothing could be asked for, or was taken back: the first and the longest pause, seconds.
PAUSE, LONGEST_PAUSE = 5.0, 300.0
#: Notes that are kept.
_NOTES = 200


class Moving:
    """A move under way."""

    def __init__(self, move: Move, machine: Machine, purpose: str, target: list[int], share: float) -> None:
        self.move = move
        self.machine = machine
        #: "grow", "shrink", "placeholder" or "save".
        self.purpose = purpose
        self.target = target
        #: What is done by the moment at which the checkpoint is asked for.
        self.share = share
        self.signal: int | None = None


class Bundle:
    """A bundle, with what was decided about it."""

    def __init__(self, spec: Specification, state: State, handler: MigrationHandler, grain: float) -> None:
        """``grain``: seconds that limits are multiples of."""
        self.spec = spec
        self.state = state
        self.model = spec.model
        self._handler = handler
        self._grain = grain
        self._reports: dict[tuple[str, str], Report] = {}
        self._heard: dict[tuple[str, str], float] = {}
        self._lives: dict[tuple[str, str], str] = {}
        self._moving: Moving | None = None
        self._actions: list[Action] = []
        #: When queues and moves are tried again, and after which pause.
        self._again, self._pause = 0.0, PAUSE
        self._move_again, self._failed_moves = 0.0, 0
        #: When a process was first seen to have failed: launch, time.
        self._failed: tuple[int, float] | None = None
        self._cancelled: set[int] = set()
        self._postponed = False
        #: Free processors and memory of nodes, as they were seen last, and what was said of them.
        self._room: tuple[tuple[int, int | None], ...] = ()
        self._tight = ""
        #: It was said that nothing that is free suits.
        self._unfit = False
        self._finishing = self._finished = self._shrinking = self._shrunk = False
        if state.status == "moving":
            # The machine died with the manager. What runs goes on; what was stopped is launched again.
            state.status = "halting" if state.halted else "running"
        #: A manager that begins has heard of no worker yet.
        self._began: float | None = None

    @property
    def image(self) -> str:
        """Where the application saves itself; "" if nothing is saved."""
        directory = self.spec.checkpoint_options.get("directory")
        return f"{directory}/{self.spec.id}" if directory else ""

    @property
    def awaited(self) -> list[int]:
        """Processes whose end is the application's."""
        return [0] if self.spec.launch == "once" else list(range(self.spec.processors))

    def name_of(self, number: int) -> str:
        """What subjob ``number`` is called in the batch system. PBS knows 15 characters."""
        return f"{self.spec.id}.{number}"

    def _end(self, now: float, code: int, message: str) -> None:
        state = self.state
        state.exit_code, state.message, state.ended = code, message, now
        state.status = "ending"
        self._moving = None
        self._stop()
        self._note(now, message)

    def _postpone(self, first: Subjob) -> None:
        if not self._postponed:
            self._postponed = True
            self._actions.append(Postpone(first.number))

    def _suffices(self, numbers: Sequence[int]) -> bool:
        q = sum(self.state.subjob(number).member.processors for number in numbers)
        return self.model._replace(omax=self._bears(numbers)).suffices(q)

    def _bears(self, numbers: Sequence[int]) -> int:
        """The most processes on a processor for which all of these subjobs have memory."""
        loads = [self.state.subjob(number).load or self.model.omax for number in numbers]
        return min([self.model.omax, *loads])

    def _stop(self) -> None:
        if not self.state.halted:
            self.state.launch += 1
            self.state.halted = True

    def _stop_all(self, now: float) -> None:
        """Stop what runs, to launch it again elsewhere."""
        self._moving = None
        self._stop()
        self.state.status = "halting"

    def _lose(self, now: float, why: str) -> None:
        """A member is gone, and processes with it."""
        if self.state.status in ("running", "moving"):
            lost = max(0.0, self._done(now) - self.state.saved) if not self.state.halted else 0.0
            self._note(now, f"{why}: back to the last checkpoint, {lost:.1%} of the work is lost")
            self._stop_all(now)

    def _done(self, now: float) -> float:
        """The share of the application that is done, as the plan has it."""
        state = self.state
        if state.halted or not state.intervals:
            return state.saved
        return min(1.0, state.base + progress(self.model, state.intervals, now))

    @property
    def urgent(self) -> bool:
        """Whether the next look at the queue should come soon."""
        state = self.state
        known = {one.job: one.state for one in state.subjobs}
        return (
            bool(self._outstanding())
            or state.status in ("halting", "ending")
            or self._failed is not None
            or any(one.state == "leaving" for one in state.subjobs)
            or any(known.get(job) == "queued" for job, _ in self._heard)
        )

    def _rounded(self, now: float, slots: Slots) -> Slots:
        """Slots whose passing slot lasts a multiple of the grain: limits are rounded up."""
        if math.isinf(slots.shadow):
            return slots
        lasts = math.floor((slots.shadow - now) / self._grain) * self._grain
        return slots._replace(shadow=now + lasts)

    def _ask(self, now: float, load: int, requests: Sequence[cases.Request]) -> None:
        """``load``: processes on a processor for which memory is asked for."""
        for request in requests:
            number = len(self.state.subjobs)
            limit = max(self._grain, math.ceil(request.walltime / self._grain - 1e-6) * self._grain)
            bears = load if self.spec.memory else 0
            self.state.subjobs.append(Subjob(number, request.processors, limit, now, load=bears))
            self._actions.append(Submit(number))
            if number:
                self._note(now, f"asks for subjob {number}: {request.processors} processors, {limit:.0f} s")

    def _cancel(self, number: int) -> None:
        subjob = self.state.subjob(number)
        if subjob.state in ("asked", "ended") and not subjob.job:
            subjob.state = "ended"
        elif number not in self._cancelled and subjob.state != "ended":
            self._cancelled.add(number)
            subjob.state = "leaving"
            self._actions.append(Cancel(number))

    def not_cancelled(self, number: int) -> None:
        """It could not be cancelled now; that is tried again."""
        self._cancelled.discard(number)

    def _outstanding(self) -> list[Subjob]:
        """Further subjobs that were asked for and are not ready yet."""
        return [
            one for one in self.state.subjobs if one.number and one.state in ("asked", "queued", "started")
        ]

    def _members(self) -> list[Subjob]:
        return [self.state.subjob(number) for number in self.state.members]

    def _of(self, job: str) -> Subjob | None:
        return next((one for one in self.state.subjobs if one.job == job), None)

    def _later(self, now: float) -> None:
        """Something was refused or came too late: the next question waits longer."""
        self._again, self._pause = now + self._pause, min(LONGEST_PAUSE, 2 * self._pause)

    def _note(self, now: float, text: str) -> None:
        self.state.notes = [*self.state.notes[-_NOTES + 1 :], (now, text)]
