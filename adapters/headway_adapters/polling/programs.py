"""Small programs that wait for commands and for time, driven on the adapter's thread.

A program is a generator that yields what it waits for. Commands run on a pool of threads, so that nothing
here blocks the adapter.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from headway.errors import Failure
from headway_adapters.polling.words import Argv
from headway_adapters.transport import Result


@dataclass(frozen=True)
class Run:
    """Run commands at the same time; the program gets what became of each, in their order."""

    argvs: Sequence[Argv]


@dataclass(frozen=True)
class Pause:
    """Go on after so many seconds."""

    seconds: float


Program = Generator[Run | Pause, Any, None]


@dataclass(frozen=True)
class _Answer:
    """What became of a command."""

    #: None: it could not be run.
    result: Result | None
    #: Why it failed; "" if it did not.
    problem: str


@dataclass
class _Running:
    """A program that waits for something."""

    program: Program
    futures: Sequence[Future[Result]] = ()
    #: On the monotonic clock.
    due: float = 0.0


class Programs:
    """All programs of one adapter."""

    def __init__(self, act: Callable[[Argv], Result], poke: Callable[[], None], *, parallel: int) -> None:
        """``act`` runs a command, on any thread; ``poke`` makes the adapter call :meth:`advance` soon.
        ``parallel``: commands that run at the same time."""
        self._act = act
        self._poke = poke
        self._pool = ThreadPoolExecutor(parallel, thread_name_prefix="actuator")
        self._running: list[_Running] = []

    def __len__(self) -> int:
        return len(self._running)

    def begin(self, program: Program) -> None:
        """Let a program run until it waits."""
        running = _Running(program)
        self._running.append(running)
        self._go_on(running, None)

    def advance(self) -> bool:
        """Let every program go on that has what it waits for; whether any command was run."""
        acted, again = False, True
        while again:
            again = False
            now = time.monotonic()
            for running in list(self._running):
                if running.futures:
                    if not all(future.done() for future in running.futures):
                        continue
                    acted = again = True
                    self._go_on(running, [_answer(future) for future in running.futures])
                elif now >= running.due:
                    again = True
                    self._go_on(running, None)
        return acted

    @property
    def due(self) -> float | None:
        """Seconds from now until a program has waited long enough; None: none waits for time."""
        times = [running.due for running in self._running if not running.futures]
        return max(0.0, min(times) - time.monotonic()) if times else None

    def close(self) -> None:
        """Begin nothing more. The transport ends commands that run."""
        self._running.clear()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _go_on(self, running: _Running, answer: Any) -> None:
        running.futures = ()
        try:
            wanted = running.program.send(answer)
        except StopIteration:
            self._running.remove(running)
            return
        if isinstance(wanted, Pause):
            running.due = time.monotonic() + wanted.seconds
            return
        running.futures = [self._pool.submit(self._act, argv) for argv in wanted.argvs]
        for future in running.futures:
            future.add_done_callback(lambda _: self._poke())


def _answer(future: Future[Result]) -> _Answer:
    try:
        result = future.result()
    except Failure as error:
        return _Answer(None, str(error) or "it could not be run")
    return _Answer(result, "" if result.ok else result.complaint())


def run_one(argv: Argv) -> Generator[Run | Pause, Any, str]:
    """Run one command; why it failed, "" if it did not."""
    [answer] = yield Run([argv])
    problem: str = answer.problem
    return problem
