"""Letters on their way: the scheduler's thread leaves them, another thread has them delivered.

A letter is delivered at most once. It is in the journal before it comes here, and is never taken from there:
what a crash, a full queue or a failing command costs is lost, and the log tells of it. A letter that came
twice would be about something that happened once.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from typing import Any

from headway.adapter import Outcome
from headway.config.letters import LettersConfig
from headway.decisions import Tell
from headway.errors import Failure
from headway.inputs.placeholders import filled
from headway.letters.letter import MOST_SUBJECT, Letter, letter_of
from headway.letters.program import Program
from headway.service.limits import Allowance, Limits
from headway.service.protocol import LetterCounts

#: Letters that wait, at most.
MOST_WAITING = 1000
#: Seconds that the daemon's end waits for letters.
CLOSING = 10.0
_HOUR = 3600.0
#: The name under which all users' letters are counted together: no user has it.
_ALL = ""


class Post:
    """Takes letters and has them delivered; lives as long as the daemon, over all of its runs."""

    def __init__(self, log: Any, *, clock: Callable[[], float] = time.monotonic) -> None:
        """``clock``: seconds that never go back, for the limits."""
        self._log = log
        self._clock = clock
        self._delivery: LettersConfig | None = None
        self._limits: tuple[Limits, Limits] | None = None
        self._change = threading.Condition()
        self._waiting: deque[tuple[Letter, LettersConfig]] = deque()
        self._counts: Counter[str] = Counter()
        self._program = Program()
        self._thread: threading.Thread | None = None
        self._closing = False

    # ------------------------------------------------------------------ the scheduler's thread

    def use(self, delivery: LettersConfig) -> None:
        """Deliver letters in this way from now on; without a command not at all."""
        if delivery == self._delivery:
            return
        self._delivery = delivery
        if delivery.command:
            each, all_ = (Allowance(most, most / _HOUR) for most in (delivery.hourly, delivery.hourly_in_all))
            self._limits = Limits(each, clock=self._clock), Limits(all_, clock=self._clock)

    def send(self, tell: Tell) -> Outcome:
        """Take a letter. Returns at once, accepted if the command will be run for it."""
        delivery = self._delivery
        if delivery is None or not delivery.command:
            return Outcome(False, "not sent: letters.command is not configured")
        try:
            letter = letter_of(tell)
            self._take_one(letter.user)
            self._leave(letter, delivery)
        except Failure as error:
            self._count("refused")
            user, subject = (str(text)[:MOST_SUBJECT] for text in (tell.user, tell.subject))
            self._log.warning("a letter was not sent", user=user, subject=subject, error=str(error))
            return Outcome(False, f"not sent: {error}")
        return Outcome(True, f"handed to {delivery.command[0]}")

    def _take_one(self, user: str) -> None:
        """Raises :class:`Failure` if this user, or all users together, get no more letters now."""
        assert self._limits is not None and self._delivery is not None
        each, all_ = self._limits
        if not each.take(user, operator=False):
            raise Failure(f"the user gets {self._delivery.hourly} letters an hour (letters.hourly)")
        if not all_.take(_ALL, operator=False):
            most = self._delivery.hourly_in_all
            raise Failure(f"all users together get {most} letters an hour (letters.hourly_in_all)")

    def _leave(self, letter: Letter, delivery: LettersConfig) -> None:
        with self._change:
            if self._closing:
                raise Failure("the daemon ends")
            if len(self._waiting) >= MOST_WAITING:
                raise Failure(f"{MOST_WAITING} letters wait already")
            self._waiting.append((letter, delivery))
            self._change.notify()
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="letters", daemon=True)
                self._thread.start()

    # ------------------------------------------------------------------ any thread

    def counts(self) -> LetterCounts:
        """What became of the letters since the daemon began. May be called from any thread."""
        with self._change:
            counts = self._counts
            return LetterCounts(counts["delivered"], counts["failed"], counts["refused"], len(self._waiting))

    def close(self) -> None:
        """Deliver what waits, for :data:`CLOSING` seconds at most; what is left then is lost, and logged."""
        with self._change:
            self._closing = True
            self._change.notify()
        if self._thread is None:
            return
        self._thread.join(CLOSING)
        with self._change:
            lost = [letter for letter, _ in self._waiting]
            self._waiting.clear()
            self._counts["failed"] += len(lost)
        self._program.end()
        # A process that SIGKILL does not end is not waited for.
        self._thread.join(1.0)
        for letter in lost:
            self._log.warning(
                "a letter was not delivered", user=letter.user, subject=letter.subject,
                error="the daemon ended before",
            )  # fmt: skip

    # ------------------------------------------------------------------ the post's thread

    def _work(self) -> None:
        while (item := self._next()) is not None:
            letter, delivery = item
            try:
                argv = filled(delivery.command, user=letter.user, subject=letter.subject)
                self._program.run(argv, letter.text, delivery.timeout)
            except Exception as error:
                # Whatever it is, the letters behind this letter must not wait for ever.
                self._count("failed")
                self._log.warning(
                    "a letter was not delivered", user=letter.user, subject=letter.subject, error=str(error),
                    exc_info=None if isinstance(error, Failure) else error,
                )  # fmt: skip
            else:
                self._count("delivered")
                self._log.info("a letter was delivered", user=letter.user, subject=letter.subject)

    def _count(self, what: str) -> None:
        with self._change:
            self._counts[what] += 1

    def _next(self) -> tuple[Letter, LettersConfig] | None:
        """The next letter; None: there is none, and none will come."""
        with self._change:
            self._change.wait_for(lambda: self._waiting or self._closing)
            return self._waiting.popleft() if self._waiting else None
