"""The batch system's commands: what every adapter's client shares, and the only place that runs commands.

In monitor mode (``read_only``) a command that could change something is never run: not by a
decision of the engine's (which applies none then), and not by an adapter's own housekeeping.

After another daemon has taken the cluster over (:attr:`CommandClient.lost`) no such command is run either.

An adapter's client says in :meth:`CommandClient.only_reads` which commands certainly change
nothing, and in :meth:`CommandClient.is_silence` which failures mean that the batch system did not answer.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from typing import Any

from headway.adapter import Check
from headway.errors import Failure
from headway_adapters.polling.counted import CountedCommands
from headway_adapters.polling.fence import Fence
from headway_adapters.transport import Result, Transport

#: Changing commands that are handed to the transport at once; after silence the rest is not tried.
_CHUNK = 64


class Unanswered(Failure):
    """The batch system did not answer."""


class CommandClient(abc.ABC):
    """Runs a batch system's commands through a transport."""

    def __init__(self, transport: Transport, *, timeout: float, read_only: bool) -> None:
        """``timeout``: seconds until a command counts as unanswered."""
        self.read_only = read_only
        #: What is changed carries the epoch of the daemon.
        self.fence = Fence()
        #: Is told the epoch of a daemon that has taken over.
        self.superseded: Callable[[int], None] = lambda epoch: None
        #: Looks elsewhere for such a daemon, before something is changed.
        self.watch: Callable[[], None] = lambda: None
        #: Why nothing may be changed any more: another daemon has taken over. "": it may.
        self.lost = ""
        self._transport = transport
        self._timeout = timeout
        self.counted = CountedCommands(self.is_silence)

    @abc.abstractmethod
    def only_reads(self, argv: Sequence[str]) -> bool:
        """Whether a command certainly changes nothing."""

    @abc.abstractmethod
    def is_silence(self, result: Result) -> bool:
        """Whether a failed command failed because the batch system did not answer."""

    def run(self, argv: Sequence[str]) -> Result:
        """One command; a failed one is a result."""
        return self.run_many([argv])[0]

    def run_many(self, argvs: Sequence[Sequence[str]]) -> list[Result]:
        """Several commands at the same time."""
        if self.read_only or self.lost:
            for argv in argvs:
                if not self.only_reads(argv):
                    self.may_change(argv)
        results = self._transport.run_many(argvs, self._timeout)
        self.counted.count(results)
        return results

    def may_change(self, argv: Sequence[str]) -> None:
        """Raise :class:`Failure` where this command, which changes something, is not to be run."""
        if self.read_only:
            raise Failure(f"monitor mode: {' '.join(argv[:3])} is not run")
        if self.lost:
            raise Failure(self.lost)

    def pass_fence(self, argvs: Sequence[Sequence[str]]) -> None:
        """Find out, before these commands change something, whether another daemon has taken over, as far as
        the batch system does not see to it. Raises :class:`Failure` where they are not to be run."""
        if not self.read_only and self.fence.epoch:
            self.watch()
            if not self.lost and (epoch := self.fence.overtaken(argvs)):
                self.superseded(epoch)
        self.may_change(argvs[0])

    def act(self, argv: Sequence[str], timeout: float) -> Result:
        """One command that changes something, with a time-out of its own (seconds)."""
        self.pass_fence([argv])
        return self._noted(self._transport.run(self.fence.stamped(argv), timeout))

    def feed(self, argv: Sequence[str], given: bytes) -> Result:
        """One command that changes something, with ``given`` on its standard input."""
        self.pass_fence([argv])
        return self._noted(self._transport.feed(argv, given, self._timeout))

    def harmless(self, argv: Sequence[str], given: bytes = b"") -> Result:
        """One command of the site that changes nothing, as its words say: ``--version``, ``--test-only``."""
        if "--test-only" not in argv and list(argv[1:]) != ["--version"]:
            raise Failure(f"expected a command that changes nothing, found {' '.join(argv[:3])}")
        return self._transport.feed(argv, given, self._timeout)

    def look(self, argvs: Sequence[Sequence[str]]) -> list[Result]:
        """Commands that must succeed; raises :class:`Unanswered` with what was said otherwise."""
        results = self.run_many(argvs)
        for result in results:
            if not result.ok:
                raise Unanswered(f"{' '.join(result.argv[:3])}: {result.complaint()}")
        return results

    def change_all(self, argvs: Sequence[Sequence[str]]) -> list[Result | None]:
        """Changing commands, several at a time, with the epoch of the daemon where they can carry it; None
        for a command not tried for lack of an answer."""
        if not argvs:
            return []
        self.pass_fence(argvs)
        self.fence.try_again()
        results = self.change_as_written([self.fence.stamped(argv) for argv in argvs])
        refused = any(result is not None and self.fence.is_refusal(result) for result in results)
        if refused and (epoch := self.fence.higher()):
            self.superseded(epoch)
        return results

    def change_as_written(self, argvs: Sequence[Sequence[str]]) -> list[Result | None]:
        """The same, each command as it is."""
        results: list[Result | None] = []
        for at in range(0, len(argvs), _CHUNK):
            try:
                done = self.run_many(argvs[at : at + _CHUNK])
            except Failure:
                if not results:
                    raise
                # The commands before this command had an effect, which must not be lost.
                done = []
            results.extend(done)
            if not done or any(self.is_silence(result) for result in done):
                results.extend([None] * (len(argvs) - len(results)))
                break
        return results

    def lead(self, epoch: int, name: str, superseded: Callable[[int], None], log: Any) -> None:
        """Be the daemon of this epoch; ``superseded`` is told of a later one. Raises
        :class:`headway.errors.Superseded` if there is one already."""
        self.superseded = superseded
        try:
            self.fence.lead(epoch, name)
        except Unanswered as error:
            log.warning("the batch system could not be told the epoch; it is told later", error=str(error))

    def _noted(self, result: Result) -> Result:
        self.counted.count([result])
        return result

    @property
    def user(self) -> str:
        """The user that the commands run as, where they run."""
        return self._transport.user

    @property
    def where(self) -> str:
        """The machine that they run on, for a person; "" for this machine."""
        return self._transport.where

    def check_transport(self) -> list[Check]:
        """What ``headway check`` reports about the way to the commands."""
        return self._transport.check()

    def close(self) -> None:
        """End what still runs and give connections back."""
        self._transport.close()
