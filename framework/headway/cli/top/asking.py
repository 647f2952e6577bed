"""How the daemon is asked: on a thread of its own, seldom enough for the user's other commands."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import Future
from pathlib import Path

from headway.errors import Failure
from headway.service.client import ask
from headway.service.limits import Allowance
from headway.service.protocol import AnyRequest, Reply

#: Of what a user may ask (:data:`headway.service.limits.USERS`), so much that a second picture, which is left
#: alone, and a command now and then have room beside it.
ALLOWANCE = Allowance(12, 0.7)
#: Seconds for an answer, and for a daemon that is not there: the picture tells that it is away.
_PATIENCE, _ABSENCE = 15.0, 0.2

#: Asks, and gives the reply or why there is none.
Ask = Callable[[AnyRequest], Reply | Failure]
#: Questions, each of which is sent the answer to it.
Questions = Generator[AnyRequest, Reply, None]


class Pace:
    """So many questions at once, and so many a second after that."""

    def __init__(self, allowance: Allowance = ALLOWANCE, clock: Callable[[], float] = time.monotonic) -> None:
        self._allowance, self._clock = allowance, clock
        self._left, self._at = float(allowance.burst), clock()

    def pause(self) -> float:
        """Seconds until a question may be asked, after there was none left."""
        return max(0.0, 1.0 - self._left) / self._allowance.rate

    def take(self) -> bool:
        """Whether one more question may be asked now."""
        now = self._clock()
        self._left = min(self._allowance.burst, self._left + (now - self._at) * self._allowance.rate)
        self._at = now
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True


def by_socket(path: Path) -> Ask:
    """Asks the daemon at a socket."""

    def asked(request: AnyRequest) -> Reply | Failure:
        try:
            return ask(path, request, timeout=_PATIENCE, patience=_ABSENCE)
        except Failure as failure:
            return failure

    return asked


class Asker:
    """Asks on a thread that ends with the process, so that nobody who leaves waits for an answer."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._work: queue.SimpleQueue[tuple[AnyRequest, Future[Reply | Failure]] | None]
        self._work = queue.SimpleQueue()
        threading.Thread(target=self._serve, name="headway-top", daemon=True).start()

    def ask(self, request: AnyRequest) -> Future[Reply | Failure]:
        """The reply, or why there is none, later."""
        future: Future[Reply | Failure] = Future()
        self._work.put((request, future))
        return future

    def close(self) -> None:
        """Ask no more."""
        self._work.put(None)

    def _serve(self) -> None:
        while (task := self._work.get()) is not None:
            request, future = task
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(self._ask(request))
                except Exception as error:
                    future.set_exception(error)
