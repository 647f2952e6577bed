"""What a bundle's manager decides. No I/O: what was seen comes in, actions come out.

The paper's event handlers (:mod:`headway_plugins.bundling.cases`), with what reality adds:

- A subjob counts once workers on all its nodes have reported; one that does not start in time is taken back.
- The application is moved by a migration handler's machine (:mod:`headway.adapter.migration`), which believes
  that it moves a job: "requeue" is to stop all processes, "start" is to launch them in their new places. So
  nothing is stopped before a checkpoint is complete, and whatever fails before leaves the application
  running.
- The end of a member that nobody planned, of a worker or of a subjob, stops all processes. Once all of them
  are known to be gone the application goes on from its last checkpoint: on the original request if that
  runs, else on the remaining subjobs if they suffice, else it waits again with what was saved.
- The option to restart on the original request begins from the last checkpoint, too: it is never less.
- A plan that no member outlives is followed as far as it goes, with a checkpoint before its end.
- A failed move is tried again after a pause; processors that could not be taken into use three times are
  given back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import msgspec

from headway.adapter.migration import (
    Answered,
    Instruction,
    Machine,
    MigrationHandler,
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
from headway.adapter.user_side import Listed, Queue
from headway.decisions import Requeue, Start
from headway.model import JobDescription, Placement, Request
from headway_plugins.bundling import cases
from headway_plugins.bundling.live.messages import Launch, Orders, Report
from headway_plugins.bundling.live.specification import Specification
from headway_plugins.bundling.live.state import State, Subjob
from headway_plugins.bundling.model import EQUAL, INFINITY, Interval, progress
from headway_plugins.bundling.planning import plan
from headway_plugins.bundling.processes import redistribute, spread
from headway_plugins.bundling.slots import Slots, backfillable

#: A listing may not show a job that was submitted so many seconds before it.
_UNLISTED = 10.0
#: A process that failed may only be the first of its subjob to be ended; how long that is in doubt, seconds.
_DOUBT = 2.0
#: After nothing could be asked for, or was taken back: the first and the longest pause, seconds.
_PAUSE, _LONGEST_PAUSE = 5.0, 300.0
#: How often a move to the same members is tried.
_TRIES = 3
#: What the placeholder needs to pass the exit code on, seconds.
_LAST_WORD = 60.0
#: Notes that are kept.
_NOTES = 200


class Submit(msgspec.Struct, frozen=True):
    """Submit subjob ``number``."""

    number: int


class Cancel(msgspec.Struct, frozen=True):
    """End a subjob, or take it out of the queue."""

    number: int


class Shrink(msgspec.Struct, frozen=True):
    """Make the waiting placeholder one of one processor, so that it starts soon and tells the exit code."""

    number: int
    seconds: float


class Postpone(msgspec.Struct, frozen=True):
    """Put the placeholder back into the queue, held: what depends on it goes on waiting."""

    number: int


class Release(msgspec.Struct, frozen=True):
    """Let the postponed placeholder start."""

    number: int


class Perform(msgspec.Struct, frozen=True):
    """Let the handler do a piece of work; what it came to is told with :meth:`Brain.worked`."""

    move: Move
    task: str


class Finish(msgspec.Struct, frozen=True):
    """Write the result down."""

    exit_code: int
    message: str


Action = Submit | Cancel | Shrink | Postpone | Release | Perform | Finish


class _Moving:
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


class Brain:
    """One bundle. :meth:`step` is called again and again; between two calls what became of actions is
    told."""

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
        self._moving: _Moving | None = None
        self._actions: list[Action] = []
        #: When queues and moves are tried again, and after which pause.
        self._again, self._pause = 0.0, _PAUSE
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
        #: A manager that begins has heard of nobody yet.
        self._began: float | None = None

    # ------------------------------------------------------------------ what is told

    def report(self, now: float, report: Report) -> None:
        """A worker said how it is."""
        key = report.job, report.node
        self._reports[key] = report
        self._heard[key] = now
        subjob = self._of(report.job)
        if subjob is None:
            return
        subjob.placement = report.placement
        before = self._lives.setdefault(key, report.life)
        if before != report.life:
            self._lives[key] = report.life
            if subjob.number in self.state.members and not self.state.halted:
                self._lose(now, f"the worker on {report.node} of subjob {subjob.number} began again")

    def submitted(self, now: float, number: int, job: str) -> None:
        """A subjob was submitted."""
        subjob = self.state.subjob(number)
        subjob.job, subjob.submitted = job, now
        if subjob.state == "asked":
            subjob.state = "queued"

    def refused(self, now: float, number: int, why: str) -> None:
        """A subjob could not be submitted."""
        subjob = self.state.subjob(number)
        subjob.state, subjob.reason = "ended", why
        self._note(now, f"subjob {number} was refused: {why}")
        self._later(now)
        if number == 0:
            self._end(now, 1, f"the original request was refused: {why}")

    def unanswered(self, now: float, number: int) -> None:
        """Nobody knows whether a subjob was submitted: looks at the queue will tell."""
        self.state.subjob(number).asked = now

    def finished(self) -> None:
        """The result is written down."""
        self._finished = True

    def not_finished(self) -> None:
        """The result could not be written down now; that is tried again."""
        self._finishing = False

    def shrunk(self) -> None:
        """The placeholder is small now."""
        self._shrunk = True

    def not_shrunk(self, now: float, why: str, *, again: bool = False) -> None:
        """The placeholder could not be made smaller: then it goes, or that is tried ``again``."""
        if again:
            self._shrinking = False
            return
        self._note(now, f"the original request cannot pass the exit code on: {why}")
        self._cancel(0)

    def not_postponed(self, now: float, why: str, *, again: bool = False) -> None:
        """The placeholder could not be put back: then it goes, or that is tried ``again``."""
        self._postponed = False
        if not again:
            self._note(now, f"the original request cannot be kept for the jobs that depend on it: {why}")
            self._cancel(0)

    def not_released(self) -> None:
        """The placeholder could not be released; that is tried again."""
        self.state.subjob(0).state = "postponed"

    def worked(self, now: float, move: Move, reported: Reported) -> None:
        """A piece of work is done."""
        if self._moving is not None and self._moving.move is move:
            self._tell(now, reported)

    def cancel(self, now: float) -> None:
        """The user wants it to end."""
        if self.state.status not in ("ending", "done"):
            self._end(now, 130, "its user cancelled it")

    # ------------------------------------------------------------------ orders

    def orders(self, job: str, node: str) -> Orders:
        """What a worker is to do."""
        state = self.state
        subjob = self._of(job)
        if subjob is None and any(one.state == "asked" for one in state.subjobs):
            # It started before its number was known.
            return Orders(Launch(state.launch))
        if subjob is None or subjob.state in ("leaving", "ended"):
            return Orders(Launch(state.launch), leave=0)
        if state.status in ("ending", "done"):
            code = state.exit_code or 0
            return Orders(Launch(state.launch), leave=code if subjob.number == 0 else 0)
        return Orders(self._launch_on(subjob, node), state.signals, state.signal)

    def _launch_on(self, subjob: Subjob, node: str) -> Launch:
        state = self.state
        if state.halted or subjob.number not in state.members:
            return Launch(state.launch)
        hosts: dict[str, int] = {}
        here: list[tuple[int, int]] = []
        for key, processes in state.layout.items():
            number, host, index = key.split("/")
            if processes:
                hosts[host] = hosts.get(host, 0) + len(processes)
            if int(number) == subjob.number and host == node:
                here += [(process - 1, int(index)) for process in processes]
        if self.spec.launch == "once":
            first = next(iter(state.layout), "")
            here = [(0, 0)] if first == f"{subjob.number}/{node}/0" else []
        variables = {
            "HEADWAY_BUNDLE": self.spec.id,
            "HEADWAY_PROCESSES": str(self.spec.processors),
            "HEADWAY_RESTARTS": str(state.executions - 1),
            "HEADWAY_NODE": node,
            "HEADWAY_IMAGE": self.image,
        }
        return Launch(state.launch, tuple(sorted(here)), variables, tuple(hosts.items()))

    @property
    def image(self) -> str:
        """Where the application saves itself; "" if nothing is saved."""
        directory = self.spec.checkpoint_options.get("directory")
        return f"{directory}/{self.spec.id}" if directory else ""

    @property
    def awaited(self) -> list[int]:
        """Processes whose end is the application's."""
        return [0] if self.spec.launch == "once" else list(range(self.spec.processors))

    # ------------------------------------------------------------------ a step

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

    # ------------------------------------------------------------------ the queue

    def _look(self, now: float, queue: Queue) -> None:
        for subjob in self.state.subjobs:
            if not subjob.job:
                self._adopt(now, subjob, queue)
                continue
            if subjob.state == "ended":
                continue
            if subjob.state == "leaving" and subjob.number not in self._cancelled:
                self._cancelled.add(subjob.number)
                self._actions.append(Cancel(subjob.number))
            self._compare(now, subjob, queue.jobs.get(subjob.job), queue.time)
            seen = queue.jobs.get(subjob.job)
            if subjob.state == "postponed" and seen is not None and seen.state == "running":
                self._postpone(subjob)

    def _adopt(self, now: float, subjob: Subjob, queue: Queue) -> None:
        """One that was decided: perhaps it was submitted, and its manager died then."""
        if subjob.state == "ended":
            return
        name = self.name_of(subjob.number)
        found = next(
            (one for one in queue.jobs.values() if one.name == name and one.user == self.spec.user), None
        )
        if found is not None:
            self.submitted(subjob.asked, subjob.number, found.id)
        elif queue.time > subjob.asked + _UNLISTED and subjob.number:
            subjob.state, subjob.reason = "ended", "it was not submitted"
        elif queue.time > subjob.asked + _UNLISTED and self.state.status not in ("ending", "done"):
            subjob.asked = now
            self._actions.append(Submit(0))

    def name_of(self, number: int) -> str:
        """What subjob ``number`` is called in the batch system. PBS knows 15 characters."""
        return f"{self.spec.id}.{number}"

    def _compare(self, now: float, subjob: Subjob, seen: Listed | None, time: float) -> None:
        if seen is None:
            if subjob.submitted is None or time > subjob.submitted + _UNLISTED:
                self._gone(now, subjob, "it is no longer in the queue")
            return
        if seen.state == "ended":
            self._gone(now, subjob, seen.reason or "it ended")
        elif seen.state == "running":
            if subjob.state == "queued":
                subjob.state, subjob.started, subjob.reason = "started", now, ""
                self._note(now, f"subjob {subjob.number} ({subjob.processors} processors) started")
            subjob.end = seen.end
        elif seen.state == "pending":
            if subjob.state in ("started", "ready", "postponed"):
                # What its workers said is of another life.
                for reports in (self._reports, self._heard, self._lives):
                    for key in [key for key in reports if key[0] == subjob.job]:
                        del reports[key]
            if subjob.state in ("started", "ready"):
                subjob.state, subjob.placement = "queued", ()
                if subjob.number in self.state.members:
                    self._lose(now, f"subjob {subjob.number} went back to the queue")
            if subjob.state == "queued":
                subjob.reason = seen.reason
            waits = subjob.number and subjob.state == "queued" and subjob.submitted is not None
            if waits and now > (subjob.submitted or 0.0) + self.spec.confirm:
                self._note(now, f"subjob {subjob.number} did not start at once; it is taken back")
                self._cancel(subjob.number)
                self._later(now)

    def _gone(self, now: float, subjob: Subjob, why: str) -> None:
        before = subjob.state
        subjob.state, subjob.reason = "ended", why
        if subjob.number in self.state.members and before != "leaving":
            self._lose(now, f"subjob {subjob.number} ended ({why})")
        elif (
            subjob.number == 0
            and before in ("queued", "postponed")
            and self.state.status not in ("ending", "done")
        ):
            # Who cancels the job that he knows means all of it.
            self._end(now, 130, f"the original request was taken out of the queue ({why})")
        elif subjob.number == 0 and before in ("started", "ready"):
            self._note(now, f"the original request ended ({why}); see subjob-0.out")

    def _missing_workers(self, now: float) -> None:
        """Subjobs whose workers are all there, and such that are silent."""
        for subjob in self.state.subjobs:
            if subjob.state not in ("started", "ready"):
                continue
            since = max(subjob.started or now, self._began or now)
            keys = [(subjob.job, node) for node, _ in subjob.placement]
            heard = [self._heard.get(key) for key in keys]
            if any(self._reports[key].leaving for key in keys if key in self._reports):
                subjob.state = "leaving"
                self._cancelled.add(subjob.number)
                if subjob.number in self.state.members:
                    self._lose(now, f"the batch system ends subjob {subjob.number}")
            elif subjob.state == "started":
                if keys and None not in heard:
                    subjob.state = "ready"
                elif now > since + self.spec.silence:
                    self._note(now, f"the workers of subjob {subjob.number} do not report; it is given up")
                    self._cancel(subjob.number)
                    self._later(now)
            elif any(now > max(since, time or since) + self.spec.silence for time in heard):
                self._note(now, f"a worker of subjob {subjob.number} is silent; it is given up")
                member = subjob.number in self.state.members
                self._cancel(subjob.number)
                if member:
                    self._lose(now, f"a worker of subjob {subjob.number} is silent")

    # ------------------------------------------------------------------ ends

    def _ended(self, now: float, queue: Queue | None, written: Mapping[int, int]) -> None:
        state = self.state
        if state.halted:
            return
        codes = dict(written)
        for subjob in self._members():
            for node, _ in subjob.placement:
                report = self._reports.get((subjob.job, node))
                if report is not None and report.launch == state.launch:
                    codes |= report.ended
        if any(codes.values()):
            code = next(codes[process] for process in sorted(codes) if codes[process])
            if self._failed is None or self._failed[0] != state.launch:
                self._failed = state.launch, now
            # A subjob that is being ended takes its processes with it: then they have not failed.
            elif queue is not None and queue.time > self._failed[1] + _DOUBT:
                process = next(process for process in sorted(codes) if codes[process])
                self._end(now, code, f"process {process} ended with exit code {code}")
        elif all(process in codes for process in self.awaited):
            self._end(now, 0, "the application is complete")

    def _end(self, now: float, code: int, message: str) -> None:
        state = self.state
        state.exit_code, state.message, state.ended = code, message, now
        state.status = "ending"
        self._moving = None
        self._stop()
        self._note(now, message)

    def _ending(self, now: float, slots: Slots | None) -> None:
        state = self.state
        if not self._finishing:
            self._finishing = True
            self._actions.append(Finish(state.exit_code or 0, state.message))
        for subjob in state.subjobs:
            if subjob.number and subjob.state != "ended":
                self._cancel(subjob.number)
        first = state.placeholder
        if first is not None and first.state == "asked":
            self._cancel(0)
        if first is not None and first.state in ("queued", "postponed"):
            if state.exit_code == 130:
                self._cancel(0)
            elif not self._shrinking:
                self._shrinking = True
                self._actions.append(Shrink(0, _LAST_WORD))
        # It tells the exit code when it starts, from the result that stands in the directory.
        gone = all(one.state == "ended" or (one.number == 0 and self._shrunk) for one in state.subjobs)
        if gone and self._finished:
            state.status = "done"

    # ------------------------------------------------------------------ waiting

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
            self._note(now, f"it waits: {free}; {many} it would not be complete in time")
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

    def _begin_on(self, now: float, ready: list[int]) -> None:
        """Subjobs are there: the application runs on them, if they suffice."""
        if self._suffices(ready):
            self._launch(now, ready)
            return
        self._note(now, "what started does not suffice; it is given back")
        for number in ready:
            self._cancel(number)
        self._later(now)

    # ------------------------------------------------------------------ running

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
                self._note(now, "the application could not be moved; processors are given back")
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

    def _postpone(self, first: Subjob) -> None:
        if not self._postponed:
            self._postponed = True
            self._actions.append(Postpone(first.number))

    def _suffices(self, numbers: Sequence[int]) -> bool:
        q = sum(self.state.subjob(number).member.processors for number in numbers)
        return self.model._replace(omax=self._bears(numbers)).suffices(q)

    def _bears(self, numbers: Sequence[int]) -> int:
        """The most processes on one processor for which all of these subjobs have memory."""
        loads = [self.state.subjob(number).load or self.model.omax for number in numbers]
        return min([self.model.omax, *loads])

    # ------------------------------------------------------------------ moves

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
            self._note(now, f"{spec.checkpoint} cannot move it: {why}")
            self._failed_move(now)
            if purpose == "placeholder":
                self._stop_all(now)
            return
        self._moving = _Moving(move, self._handler.machine(move), purpose, target, self._done(now))
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

    def _order(self, now: float, moving: _Moving, order: Order) -> None:
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

    def _over(self, now: float, moving: _Moving, over: Over) -> None:
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
        self._move_again = now + max(_PAUSE, min(_LONGEST_PAUSE, self.model.migration))

    # ------------------------------------------------------------------ launching and stopping

    def _launch(self, now: float, numbers: list[int]) -> None:
        """Begin, or go on from the last checkpoint, on these subjobs."""
        self.state.layout = {}
        self._place(numbers)
        self._start(now, numbers)
        self._follow(now, self.state.saved)

    def _place(self, numbers: Sequence[int]) -> None:
        """The layout on these subjobs: the present one with as few changes as possible."""
        state = self.state
        keys = [key for number in numbers for key in state.subjob(number).keys][: self.model.processors]
        old = {key: held for key, held in state.layout.items() if key in set(keys)}
        if not old:
            state.layout = dict(spread(self.model.processors, keys))
            return
        leaving = [key for key in state.layout if key not in old]
        joining = [key for key in keys if key not in state.layout]
        state.layout, _ = redistribute(state.layout, joining, leaving)

    def _start(self, now: float, members: list[int]) -> None:
        state = self.state
        state.members = list(members)
        state.launch += 1
        state.halted = False
        state.signals, state.signal = 0, ""
        state.executions += 1
        state.began = now
        self._failed, self._pause = None, _PAUSE
        state.first_start = state.first_start if state.first_start is not None else now

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

    def _halting(self, now: float, slots: Slots | None) -> None:
        """Wait until nothing runs any more; then go on where that is possible."""
        state = self.state
        if not self._stopped():
            return
        lost = [one for one in self._members() if one.state == "leaving" and one.job]
        if lost:
            # Not before the batch system says that it has ended.
            return
        first = state.placeholder
        usable = [one for one in state.subjobs if one.state == "ready"]
        state.members, state.layout, state.intervals = [], {}, []
        if first is not None and first.state == "ready":
            self._launch(now, [0])
            for subjob in usable:
                if subjob.number:
                    self._cancel(subjob.number)
            return
        state.status = "waiting"
        if usable:
            self._begin_on(now, [subjob.number for subjob in usable])

    def _stopped(self) -> bool:
        """Whether nothing of the application runs any more on subjobs that are there."""
        return self._all(lambda report: report.launch == self.state.launch and not report.live)

    def _launched(self) -> bool:
        """Whether all of it runs."""
        return self._all(lambda report: report.launch == self.state.launch)

    def _all(self, holds: Callable[[Report], bool]) -> bool:
        """Whether something holds for the reports of all workers of members."""
        for subjob in self._members():
            if subjob.state not in ("started", "ready"):
                continue
            for node, _ in subjob.placement:
                report = self._reports.get((subjob.job, node))
                if report is None or not holds(report):
                    return False
        return True

    # ------------------------------------------------------------------ plans

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

    def _follow(self, now: float, done: float) -> None:
        """Plan what is ahead of what runs now."""
        state = self.state
        members = [one.member for one in self._members()]
        model = self.model._replace(omax=self._bears(state.members))
        ahead: list[Interval] | None = plan(model, now, done, members)
        if ahead is None:
            end = min(member.end for member in members)
            leave = max(now, end - self.model.migration)
            q = min(self.model.processors, sum(member.processors for member in members))
            ahead = [Interval(now, leave, q), Interval(leave, end, 0, True)]
        state.base, state.intervals, state.status = done, ahead, "running"

    def _rounded(self, now: float, slots: Slots) -> Slots:
        """Slots whose passing one lasts a multiple of the grain: limits are rounded up."""
        if math.isinf(slots.shadow):
            return slots
        lasts = math.floor((slots.shadow - now) / self._grain) * self._grain
        return slots._replace(shadow=now + lasts)

    # ------------------------------------------------------------------ subjobs

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
        self._again, self._pause = now + self._pause, min(_LONGEST_PAUSE, 2 * self._pause)

    def _note(self, now: float, text: str) -> None:
        self.state.notes = [*self.state.notes[-_NOTES + 1 :], (now, text)]


def _nothing(now: float, slots: Slots | None) -> None:
    pass


def slots_of(queue: Queue) -> Slots:
    """What could start at once behind the whole queue, as EASY reckons."""
    head = queue.waiting[0].processors if queue.waiting else None
    return backfillable(queue.time, queue.free, head, queue.ends)
