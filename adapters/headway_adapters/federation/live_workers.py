"""Threads that do what takes long, and what they have to say to the engine's thread."""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable
from typing import NoReturn

from headway import events as ev
from headway_adapters.federation.live_commands import Ended

#: Made on a worker's thread, run on the engine's: it gets the time (absolute seconds) and returns events.
News = Callable[[float], list[ev.Event]]


class Mailbox:
    """What workers have to say, until the engine's thread takes it."""

    def __init__(self, stir: Callable[[], None]) -> None:
        """``stir`` ends the engine's sleep."""
        self._stir = stir
        self._news: deque[News] = deque()

    def say(self, news: News) -> None:
        """From any thread."""
        self._news.append(news)
        self._stir()

    def taken(self, now: float) -> list[ev.Event]:
        """All that was said, as events."""
        events: list[ev.Event] = []
        while self._news:
            events += self._news.popleft()(now)
        return events


class Workers:
    """Up to ``most`` threads that work off tasks in their order."""

    def __init__(self, name: str, most: int, mailbox: Mailbox) -> None:
        self._name = name
        self._most = most
        self._mailbox = mailbox
        self._tasks: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._closed = False

    def give(self, task: Callable[[], None]) -> None:
        """Have a task done; called on the engine's thread."""
        self._tasks.put(task)
        if len(self._threads) < self._most:
            name = f"{self._name}-{len(self._threads)}"
            thread = threading.Thread(target=self._work, name=name, daemon=True)
            self._threads.append(thread)
            thread.start()

    def close(self) -> None:
        """No task begins any more; tasks that go on end with their commands."""
        self._closed = True
        for _ in self._threads:
            self._tasks.put(lambda: None)

    def _work(self) -> None:
        while not self._closed:
            task = self._tasks.get()
            if self._closed:
                return
            try:
                task()
            except Ended:
                return
            except BaseException as error:  # it must not end unseen: the engine's thread raises it
                self._mailbox.say(_raising(error))
                return


def _raising(error: BaseException) -> News:
    def news(now: float) -> NoReturn:
        raise error

    return news
