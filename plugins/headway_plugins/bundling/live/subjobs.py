"""What becomes of a bundle's subjobs: in the queue, when they are refused, when they end."""

from __future__ import annotations

from collections.abc import Mapping

from headway.adapter.user_side import Listed, Queue
from headway_plugins.bundling.live.actions import Cancel, Finish, Shrink, Submit
from headway_plugins.bundling.live.moving import Moves
from headway_plugins.bundling.live.state import Subjob
from headway_plugins.bundling.slots import Slots

#: A listing may not show a job that was submitted so many seconds before it.
_UNLISTED = 10.0
#: A process that failed may only be the first of its subjob to be ended; how long that is in doubt, seconds.
_DOUBT = 2.0
#: What the placeholder needs to pass the exit code on, seconds.
_LAST_WORD = 60.0


class Subjobs(Moves):
    """A bundle whose subjobs are looked after."""

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
        """It is not known whether a subjob was submitted: looks at the queue will tell."""
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

    def cancel(self, now: float) -> None:
        """The user wants it to end."""
        if self.state.status not in ("ending", "done"):
            self._end(now, 130, "its user cancelled it")

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
        """Adopt a subjob that was decided: perhaps it was submitted, and its manager died then."""
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
            self._waits(now, subjob, seen)

    def _waits(self, now: float, subjob: Subjob, seen: Listed) -> None:
        """A subjob is in the queue: it has not started yet, or went back."""
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
            self._note(now, f"subjob {subjob.number} did not start at once and is cancelled")
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
            # The user knows only this job: a user that cancels it means the whole bundle.
            self._end(now, 130, f"the original request was removed from the queue ({why})")
        elif subjob.number == 0 and before in ("started", "ready"):
            self._note(now, f"the original request ended ({why}); see subjob-0.out")

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
