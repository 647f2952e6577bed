"""What a bundle's manager decides. No I/O: what was seen comes in, actions come out.

The paper's event handlers (:mod:`headway_plugins.bundling.cases`), with what reality adds:

- A subjob counts once workers on all its nodes have reported. A subjob that does not start in time is taken
  back.
- The application is moved by a migration handler's machine (:mod:`headway.adapter.migration`), which believes
  that it moves a job: "requeue" is to stop all processes, "start" is to launch them in their new places. So
  nothing is stopped before a checkpoint is complete, and whatever fails before leaves the application
  running.
- An unplanned end of a member, a worker or a subjob, stops all processes. Once all of them
  are known to be gone the application goes on from its last checkpoint: on the original request if that
  runs, else on the remaining subjobs if they suffice, else it waits again with what was saved.
- The option to restart on the original request begins from the last checkpoint, too: it is never less.
- A plan that no member outlives is followed as far as it goes, with a checkpoint before its end.
- A failed move is tried again after a pause; processors that could not be taken into use three times are
  given back.

What is known of a bundle is in ``bundle.py``, launching and stopping in ``launching.py``, moves in
``moving.py``, what becomes of subjobs in ``subjobs.py``; here is what is decided in a step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from headway.adapter.user_side import Queue
from headway_plugins.bundling import cases
from headway_plugins.bundling.live.actions import Action, Release
from headway_plugins.bundling.live.subjobs import Subjobs
from headway_plugins.bundling.model import EQUAL, INFINITY, Interval
from headway_plugins.bundling.slots import Slots, backfillable

#: How often a move to the same members is tried.
_TRIES = 3


class Brain(Subjobs):
    """A bundle. :meth:`step` is called again and again; between two calls what became of actions is told."""

    def step(
        self, now: float, queue: Queue | None, slots: Slots | None, ends: Mapping[int, int]
    ) -> list[Action]:
        """What is to be done now.

        ``queue``: a new look at it, or None. ``slots``: what could start at once, if that was seen with it.
        ``ends``: exit codes of this launch's processes that workers wrote down.
        """
        if self._began is None:
            self._began = now
            self._take_up(now)
        if queue is not None:
            self._room = queue.room
            self._look(now, queue)
        self._missing_workers(now)
        if self.state.status in ("running", "moving"):
            self._ended(now, queue, ends)
        if not self.state.subjobs and self.state.status == "waiting":
            self._ask(now, 1, [cases.Request(self.spec.processors, self.spec.walltime)])
        handle = {
            "waiting": self._waiting, "running": self._running, "moving": self._drive,
            "halting": self._halting, "ending": self._ending, "done": _nothing,
        }[self.state.status]  # fmt: skip
        handle(now, slots)
        # What follows from what was told between two steps is among them.
        actions, self._actions = self._actions, []
        return actions

    def _take_up(self, now: float) -> None:
        """A manager begins. Its predecessor may have ended between a launch and the plan for it."""
        state = self.state
        if state.status != "running" or not state.intervals or state.began is None:
            return
        if state.began > state.intervals[0].start:
            self._follow(now, state.saved)
            for subjob in state.subjobs:
                if subjob.number not in state.members and subjob.number and subjob.state == "ready":
                    self._cancel(subjob.number)

    def _waiting(self, now: float, slots: Slots | None) -> None:
        state = self.state
        first = state.placeholder
        if first is not None and first.state == "ready":
            for subjob in self._outstanding():
                self._cancel(subjob.number)
            self._launch(now, [first.number])
            return
        if first is not None and first.state == "postponed":
            first.state = "queued"
            self._actions.append(Release(0))
        if first is not None and first.state == "started":
            return
        if self._outstanding():
            return
        ready = [subjob.number for subjob in state.subjobs if subjob.number and subjob.state == "ready"]
        if ready:
            self._begin_on(now, ready)
            return
        if slots is None or now < self._again or first is None or not first.job:
            return
        share = state.saved
        rest = self.model._replace(walltime=(1.0 - share) * self.model.walltime) if share < 1 else self.model
        slots = self._rounded(now, slots)
        load, choice = self._best(
            now, slots, lambda load, slots: cases.first_subjobs(rest._replace(omax=load), now, slots)
        )
        if choice is None and not self._unfit and not self._tight:
            self._unfit = True
            passing = f", {slots.free} for {slots.shadow - now:.0f} s" if slots.passing(now) else ""
            free = f"{slots.lasting} processors are free for any time{passing}"
            many = f"with at most {self.spec.omax} processes on each"
            self._note(now, f"the bundle waits: {free}; {many} it would not be complete in time")
        if choice is not None:
            self._unfit = False
            limits = [one.walltime * self.spec.slack for one in choice.subjobs]
            if choice.case == 3:
                limits[1] = choice.subjobs[1].walltime
            elif choice.case == 2:
                limits[0] = min(limits[0], slots.shadow - now)
            self._ask(now, load, [
                cases.Request(one.processors, limit)
                for one, limit in zip(choice.subjobs, limits, strict=True)
            ])  # fmt: skip

    def _running(self, now: float, slots: Slots | None) -> None:
        state = self.state
        first = state.placeholder
        if first is not None and first.state == "ready" and 0 not in state.members:
            if now >= self._move_again:
                self._turn(now)
            return
        if now >= self._move_again and self._changed(now):
            return
        q = sum(one.member.processors for one in self._members())
        if slots is None or now < self._again or q >= self.model.processors or 0 in state.members:
            return
        if self._outstanding():
            return
        slots = self._rounded(now, slots)
        members = [one.member for one in self._members()]
        ahead = list(state.intervals)
        if ahead and ahead[-1].migrating:
            # As it is, it does not come to its end.
            ahead.append(Interval(ahead[-1].end, INFINITY, q))
        bears, done = self._bears(state.members), self._done(now)
        load, choice = self._best(now, slots, lambda load, slots: cases.further_subjobs(
            self.model._replace(omax=min(load, bears)), now, done, members, ahead, slots,
            min_gain=self.spec.min_gain, slack=self.spec.slack,
        ))  # fmt: skip
        if choice is not None:
            self._ask(now, load, list(choice.subjobs))

    def _best(
        self, now: float, slots: Slots, choose: Callable[[int, Slots], cases.Choice | None]
    ) -> tuple[int, cases.Choice | None]:
        """The choice that completes first, and for how many processes on a processor it has memory.

        A node whose memory bears few processes for each of its free processors offers fewer of them, or all
        of them to fewer processes."""
        if not self.spec.memory:
            return 0, choose(self.model.omax, slots)
        best: tuple[int, cases.Choice] | None = None
        seen = -1
        for load in range(self.model.omax, 0, -1):
            each = load * self.spec.memory
            usable = sum(count if free is None else min(count, free // each) for count, free in self._room)
            bears = slots._replace(free=min(slots.free, usable), extra=min(slots.extra, usable))
            choice = choose(load, bears) if usable else None
            if choice is not None and (best is None or choice.completion < best[1].completion + EQUAL):
                best = load, choice
            seen = max(seen, usable)
        if best is not None:
            self._tight = ""
            return best
        if slots.free > 0 and choose(self.model.omax, slots) is not None:
            tight = (
                f"{slots.free} processors are free, of which {max(0, seen)} have the "
                f"{self.spec.memory / 2**20:.0f} MiB of one process: too few for all processes"
            )
            if tight != self._tight:
                self._note(now, tight)
            self._tight = tight
        return 0, None

    def _changed(self, now: float) -> bool:
        """Whether a move began: to fewer subjobs, to more, or to be saved."""
        state = self.state
        due = next((one for one in state.intervals if one.migrating and one.start <= now < one.end), None)
        if due is not None and 0 not in state.members:
            staying = [
                one.number
                for one in self._members()
                if one.member.end >= due.end + self.model.migration - EQUAL
            ]
            if staying and self._suffices(staying):
                self._move(now, "shrink", staying)
                return True
            if state.saved_at is None or state.saved_at < due.start:
                self._move(now, "save", [])
                return True
            return False
        joining = [
            one.number
            for one in state.subjobs
            if one.number and one.state == "ready" and one.number not in state.members
        ]
        if joining and 0 not in state.members and not self._outstanding():
            if self._failed_moves >= _TRIES:
                self._note(now, "the application could not be moved; the processors are given back")
                for number in joining:
                    self._cancel(number)
                self._failed_moves = 0
                self._later(now)
                return False
            self._move(now, "grow", [*state.members, *joining])
            return True
        every = self.spec.checkpoint_every
        if every and now >= max(state.began or now, state.saved_at or 0.0) + every:
            self._move(now, "save", [])
            return True
        return False

    def _turn(self, now: float) -> None:
        """The original request has started after all."""
        turn = cases.when_placeholder_starts(self.model, now, self._done(now), self.state.completion)
        self._note(now, f"the original request started: {turn.option}")
        for subjob in self._outstanding():
            self._cancel(subjob.number)
        if turn.option == "continue":
            first = self.state.subjob(0)
            first.state = "postponed"
            self._postpone(first)
        elif turn.option == "move" and self._failed_moves < _TRIES:
            self._move(now, "placeholder", [0])
        else:
            self._stop_all(now)


def _nothing(now: float, slots: Slots | None) -> None:
    pass


def slots_of(queue: Queue) -> Slots:
    """What could start at once behind the whole queue, as EASY reckons."""
    head = queue.waiting[0].processors if queue.waiting else None
    return backfillable(queue.time, queue.free, head, queue.ends)
