"""The stand-by's side of ``headway journal follow``: the command, run by a thread, and the copy it makes.

The command's answers are applied to the stand-by's journal, each in one transaction. An answer that says that
nothing more was there makes the copy as new as the question was: :attr:`Follower.known_to`.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from headway.adapter.descendants import with_its_parent
from headway.errors import Failure, HeadwayError
from headway.standby.copies import Copy
from headway.standby.frames import Depose, Frame, More, Question, Unpacker, packed
from headway.standby.leadership import OFTEN, Word, lasting

#: Between two questions, seconds, at most; and between two attempts to run the command.
_ASK, _AGAIN = 0.25, 1.0
#: How long an answer may take, seconds; the first, with a connection and a start of the command on a machine
#: that is busy.
_ANSWER, FIRST = 10.0, 60.0
#: Between two looks whether it is to end while an answer is waited for, seconds.
_LOOK = 0.1
#: Bytes of what the command said last on its standard error that are kept.
_SAID = 400


class Link:
    """The running command."""

    def __init__(self, command: Sequence[str]) -> None:
        """Raises :class:`Failure` if it cannot be run."""
        self.name = command[0]
        try:
            self._process = subprocess.Popen(
                list(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                preexec_fn=with_its_parent(), bufsize=0,
            )  # fmt: skip
        except OSError as error:
            raise Failure(f"standby.follow: {command[0]}: cannot be run: {error.strerror}") from error
        self._come = Unpacker(f"standby.follow: {command[0]}")
        self._said = b""
        self._selector = selectors.DefaultSelector()
        for pipe in (self._process.stdout, self._process.stderr):
            assert pipe is not None
            os.set_blocking(pipe.fileno(), False)
            self._selector.register(pipe, selectors.EVENT_READ)

    def ask(self, question: Question, seconds: float, over: Callable[[], bool] = lambda: False) -> Frame:
        """Its answer. Raises :class:`Failure` if it ends, says something else, or none comes in so many
        seconds."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(packed(question))
        except OSError as error:
            raise self._ended() from error
        end = lasting() + seconds
        while True:
            for frame in self._come.frames():
                return frame
            left = end - lasting()
            if left <= 0 or over():
                raise Failure(f"standby.follow: {self.name}: no answer within {seconds:.1f} s{self._words()}")
            self._read(min(left, _LOOK))

    def close(self) -> None:
        self._selector.close()
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def _read(self, seconds: float) -> None:
        for key, _ in self._selector.select(seconds):
            pipe: Any = key.fileobj
            more = os.read(pipe.fileno(), 1 << 20)
            if pipe is self._process.stderr:
                self._said = (self._said + more)[-_SAID:]
                if not more:
                    self._selector.unregister(key.fileobj)
            elif more:
                self._come.add(more)
            else:
                # Let it say why.
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(0.2)
                with contextlib.suppress(OSError):
                    assert self._process.stderr is not None
                    self._said = (self._said + (self._process.stderr.read(_SAID) or b""))[-_SAID:]
                raise self._ended()

    def _ended(self) -> Failure:
        return Failure(f"standby.follow: {self.name}: ended{self._words()}")

    def _words(self) -> str:
        said = self._said.decode(errors="backslashreplace").strip()
        return f": {said}" if said else ""


class Follower(threading.Thread):
    """Follows the other daemon's journal until :meth:`end`."""

    def __init__(self, command: Sequence[str], journal: Path, patience: float, log: Any) -> None:
        """``journal``: the stand-by's own, which is made if there is none. Raises what opening it raises."""
        super().__init__(name="follower", daemon=True)
        self._command = command
        self._log = log
        self._pause = min(_ASK, OFTEN * patience)
        self._patience = patience
        self._over = threading.Event()
        self._lock = threading.Lock()
        #: What the other daemon's lease is to say: this one leads.
        self._deposes: Word | None = None
        #: Once it does.
        self.deposed = threading.Event()
        self._copy = Copy(journal)
        #: When the last answer came, and what the other daemon's lease said in it; None: none ever came.
        self.told: tuple[float, Word | None] | None = None
        #: Whether the last answer had all that there was.
        self.caught_up = False
        #: The copy has all that the other's journal had at this time; None: it is not complete yet.
        self.known_to: float | None = None
        #: The last run and cycle of the other's journal, the highest number of a writer there, and why it
        #: cannot be followed.
        self.newest = (0, 0)
        self.epoch = 0
        self.trouble = ""

    @property
    def copied(self) -> tuple[int, int]:
        """The last run and cycle of the own journal."""
        return self._copy.newest

    @property
    def own_epoch(self) -> int:
        """The highest number of a writer of the own journal."""
        return self._copy.epoch

    def run(self) -> None:
        while not self._over.is_set():
            try:
                with contextlib.closing(Link(self._command)) as link:
                    self._follow(link)
            except Exception as error:
                # Also for what nobody foresaw: without this thread the leader would seem to be silent.
                unforeseen = None if isinstance(error, HeadwayError) else error
                if not self.trouble and not self._over.is_set():
                    said = "the other daemon cannot be followed"
                    self._log.warning(said, error=str(error), exc_info=unforeseen)
                self.trouble = str(error) or type(error).__name__
            self._over.wait(_AGAIN)

    def depose(self, word: Word) -> None:
        """Follow no more, close the own journal, and tell the other daemon's lease that this one leads, as
        soon as the other's machine can be reached: a leader there that was stopped or cut off finds it."""
        with self._lock:
            self._deposes = word
            self._copy.close()

    def end(self) -> None:
        """Follow no more, and close the own journal."""
        self._over.set()
        with self._lock:
            self._copy.close()
        self.join(self._pause)

    def _follow(self, link: Link) -> None:
        """Ask and copy until something is wrong, or there is no more to do."""
        # Before rows are asked for it must be known whether the other daemon leads.
        question: Question = More(rows=False)
        seconds = FIRST
        while not self._over.is_set():
            if (word := self._deposes) is not None:
                question = Depose(word)
            asked = lasting()
            frame = link.ask(question, seconds, self._over.is_set)
            seconds = _ANSWER
            if frame.wrong:
                raise Failure(f"standby.follow: {link.name}: {frame.wrong}")
            if isinstance(question, Depose):
                self._log.info("the leader before knows that this daemon leads", epoch=question.word.epoch)
                self.deposed.set()
                self._over.set()
                return
            with self._lock:
                follows = not isinstance(question, More) or question.rows
                question, at_once = self._use(frame, asked, follows=follows)
            if not at_once:
                self._over.wait(self._pause)

    def _use(self, frame: Frame, asked: float, *, follows: bool) -> tuple[Question, bool]:
        """Take an answer; the next question, and whether it is to be asked at once. ``follows``: rows were
        asked for."""
        look = More(rows=False)
        if self._deposes is not None or self._over.is_set():
            # The own journal is the daemon's now.
            return look, True
        leads = frame.word is None or frame.word.leads
        if frame.diverged and leads:
            kept = self._copy.renew()
            self._log.warning(
                "the own journal is not what the other daemon's was; it is copied anew",
                run=frame.diverged, kept=str(kept),
            )  # fmt: skip
            return self._copy.begin(), True
        self._take(frame, asked)
        if not leads or frame.diverged:
            return look, False
        return (More(), not frame.complete) if follows else (self._copy.begin(), True)

    def _take(self, frame: Frame, asked: float) -> None:
        self._copy.apply(frame)
        self.newest, self.caught_up = frame.newest, frame.complete
        self.told = (lasting(), frame.word)
        self.epoch = max(self.epoch, frame.epoch)
        if frame.complete:
            self.known_to = asked
        if self.trouble:
            self._log.info("the other daemon is followed again")
        self.trouble = ""
