"""The users at work: they submit the stream, and do to their jobs what it says."""

from __future__ import annotations

import heapq
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from torture.history import Asked, History
from torture.stamps import began
from torture.stream import Act, Wanted
from torture.system import UNANSWERED, Answer, System, timed


class Users(threading.Thread):
    """Keeps ``backlog`` jobs in the system until it is told that it is enough; ends after the last act.

    An array counts with all its elements. ``look``: seconds between two looks at how many there are.
    """

    def __init__(
        self, system: System, jobs: Iterator[Wanted], history: History, stamps: Path, script: Path,
        *, backlog: int = 24, look: float = 3.0,
    ) -> None:  # fmt: skip
        super().__init__(name="users", daemon=True)
        self._system, self._jobs, self._history = system, jobs, history
        self._stamps, self._script = stamps, script
        self._backlog, self._look = backlog, look
        self._enough = threading.Event()
        #: Acts by when they are due; those that wait for their job to run.
        self._due: list[tuple[float, int, Act]] = []
        self._not_yet: list[tuple[int, Act]] = []
        #: What ended it, if it did not end by itself.
        self.error: Exception | None = None

    def enough(self) -> None:
        """Submit no more; acts that wait for a run that does not come are dropped with it."""
        self._enough.set()

    def run(self) -> None:
        try:
            self._work()
        except Exception as error:
            self.error = error
            raise

    def _work(self) -> None:
        room, looked, last = 0, 0.0, 0.0
        while not (self._enough.is_set() and not self._due):
            now = time.time()
            for waiting in [one for one in self._not_yet if began(self._stamps, f"t{one[0]}")]:
                self._not_yet.remove(waiting)
                heapq.heappush(self._due, (now + waiting[1].after, *waiting))
            while self._due and self._due[0][0] <= now:
                _, number, act = heapq.heappop(self._due)
                self._act(number, act)
            if not self._enough.is_set() and now - looked >= self._look:
                room, looked = self._room(), now
            if room > 0 and not self._enough.is_set() and now - last > 0.3:
                job = next(self._jobs)
                room -= max(job.elements, 1)
                last = now
                self.submit(job)
            time.sleep(0.1)

    def _room(self) -> int:
        try:
            return self._backlog - len(self._system.unfinished())
        except (OSError, subprocess.TimeoutExpired):
            return 0

    def submit(self, job: Wanted) -> str:
        """Submit a job; its id, "" if it was not taken."""
        before = self._history.submission(job.after) if job.after is not None else None
        after = before.id if before is not None and before.accepted else None
        self._history.want(job)
        command = [str(self._script), str(self._stamps), job.name, f"{job.seconds:g}", str(job.exit_code)]
        answer = self._ask(job, "submit", (), lambda: self._system.submit(job, command, after))
        for act in job.acts if answer.accepted else ():
            if act.kind == "requeue":
                self._not_yet.append((job.number, act))
            else:
                heapq.heappush(self._due, (time.time() + act.after, job.number, act))
        return answer.id

    def act_now(self, job: Wanted, act: Act) -> None:
        """Do this, whatever the stream says."""
        self._act(job.number, act)

    def _act(self, number: int, act: Act) -> None:
        job, submitted = self._history.wanted[number], self._history.submission(number)
        assert submitted is not None
        # An element each: one answer for several says "refused" if a single one was over by then.
        for one in [replace(act, elements=(n,)) for n in act.elements] or [act]:
            answer = self._ask(job, one.kind, one.elements, partial(self._system.act, job, submitted.id, one))
        # Nobody leaves a job held because the system was away for a moment.
        tries = len(list(self._history.about(number, "release")))
        if act.kind == "release" and not answer.accepted and tries < 10 and _away(answer.text):
            heapq.heappush(self._due, (time.time() + 3.0, number, act))

    def _ask(
        self, job: Wanted, kind: str, elements: tuple[int, ...], command: Callable[[], Answer]
    ) -> Answer:
        asked, answer, answered = timed(command)
        self._history.ask(
            Asked(job.number, kind, elements, asked, answered, answer.accepted, answer.text, answer.id)
        )
        return answer


def _away(text: str) -> bool:
    """Whether an answer says that the system is not there."""
    return any(
        word in text.lower()
        for word in ("contact", "connect", "timed out", "no answer", "responding", *UNANSWERED)
    )
