"""What every transport offers: run argument vectors, one or several at once, with a time-out.

A transport that reaches another machine (SSH) quotes each argument itself; no code above it ever
builds a command line.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec

from headway.adapter import Check
from headway.errors import Failure

#: Status of a command that a shell saw end by SIGILL, SIGABRT, SIGBUS, SIGFPE, SIGSEGV.
_CRASHES = frozenset({132, 134, 135, 136, 139})


class Result(msgspec.Struct, frozen=True):
    """What became of one command."""

    argv: tuple[str, ...]
    #: Exit status; negative: ended by that signal; 124 if it was ended for taking too long.
    rc: int
    stdout: bytes
    stderr: str
    #: Wall-clock seconds.
    seconds: float
    timed_out: bool = False
    #: The command wrote more than the transport's output limit and was ended.
    too_long: bool = False
    #: The connection ended before the command's end was known. Like one that timed out it may have
    #: had its effect, or some of it: only the next look at the cluster tells.
    cut: bool = False
    #: A signal ended the command while its connection held.
    signalled: bool = False

    @property
    def ok(self) -> bool:
        return self.rc == 0 and not self.timed_out and not self.too_long and not self.cut

    @property
    def unanswered(self) -> bool:
        """Whether the command failed in a way that leaves open what it did."""
        return self.timed_out or self.cut

    @property
    def crashed(self) -> bool:
        """Whether the command fell over what it was to do, itself and not for us."""
        if self.timed_out or self.too_long:
            return False
        return self.signalled or self.rc in _CRASHES or self.rc < 0

    @property
    def text(self) -> str:
        """Standard output as text."""
        return self.stdout.decode("utf-8", errors="replace")

    def complaint(self) -> str:
        """Why it failed, in one line, for a person."""
        if self.timed_out:
            return f"{self.argv[0]} did not answer within {self.seconds:.0f} s"
        if self.too_long:
            return f"{self.argv[0]} wrote more than the output limit"
        if self.crashed and not self.stderr.strip():
            return f"{self.argv[0]} crashed (status {self.rc})"
        said = self.stderr.strip() or self.text.strip()
        lines = [line.strip() for line in said.splitlines() if line.strip()]
        return "; ".join(lines[:3]) if lines else f"{self.argv[0]} ended with status {self.rc}"


class Transport(abc.ABC):
    """Runs commands where the batch system's commands are."""

    #: Commands that :meth:`run_many` runs at the same time.
    workers: int = 8
    #: The user that commands run as, there.
    user: str = ""
    #: Where that is, for a person; "" means on this machine.
    where: str = ""

    @abc.abstractmethod
    def run(self, argv: Sequence[str], timeout: float) -> Result:
        """Run one command and wait for it, at most ``timeout`` seconds.

        A command that fails is a result; raises :class:`headway.errors.Failure` only when it
        could not be started at all (no such program, no connection).
        """

    def feed(self, argv: Sequence[str], given: bytes, timeout: float) -> Result:
        """As :meth:`run`, with ``given`` on the command's standard input."""
        raise Failure(f"{argv[0]}: nothing can be given to a command here")

    def run_many(self, argvs: Sequence[Sequence[str]], timeout: float) -> list[Result]:
        """Run several commands at the same time; results in the order of the commands."""
        if len(argvs) < 2:
            return [self.run(argv, timeout) for argv in argvs]
        with ThreadPoolExecutor(min(self.workers, len(argvs)), thread_name_prefix="transport") as pool:
            return list(pool.map(lambda argv: self.run(argv, timeout), argvs))

    def check(self) -> list[Check]:
        """What ``headway check`` reports about the way to the commands; nothing when there is none."""
        return []

    def close(self) -> None:  # noqa: B027 - a transport that holds nothing has nothing to do
        """End what still runs and give connections back. A later :meth:`run` fails."""
