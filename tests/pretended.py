"""Batch systems that are not there: transports that answer from recorded output."""

from __future__ import annotations

import abc
import time
from collections.abc import Callable, Sequence

from headway import events as ev
from headway.adapter import ClusterAdapter
from headway_adapters.transport import Result, Transport


class Pretended(Transport):
    """Keeps what was ``said`` to it; ``answer`` overrides any command."""

    def __init__(self) -> None:
        self.said: list[tuple[str, ...]] = []
        self.answer: Callable[[tuple[str, ...]], Result | None] = lambda argv: None

    def run(self, argv: Sequence[str], timeout: float) -> Result:
        words = tuple(argv)
        self.said.append(words)
        return self.answer(words) or self.listed(words)

    @abc.abstractmethod
    def listed(self, argv: tuple[str, ...]) -> Result:
        """What the batch system answers."""


def result(argv: tuple[str, ...], stdout: str = "", rc: int = 0, stderr: str = "") -> Result:
    return Result(
        argv=argv, rc=rc, stdout=stdout.encode("utf-8", "surrogateescape"), stderr=stderr, seconds=0.01
    )


def events(one: ClusterAdapter, seconds: float = 0.3) -> list[ev.Event]:
    """All that an adapter tells within so many seconds."""
    found: list[ev.Event] = []
    end = time.time() + seconds
    while time.time() < end:
        moment = one.wait(end)
        assert moment is not None
        found += moment[1]
    return found
