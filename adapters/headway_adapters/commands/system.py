"""What the emulated PBS and the emulated LSF share: being called, refusing, options, numbers of jobs."""

from __future__ import annotations

import abc
import getopt
import re
from collections.abc import Callable, Mapping, Sequence

from headway_adapters.commands.machine import Job, Machine, Node, Share
from headway_adapters.commands.server import Call, Reply
from headway_adapters.commands.zone import Zone

_SLEEP = re.compile(r"^\s*(?:exec\s+)?(?:\S*/)?sleep\s+([0-9]+(?:\.[0-9]+)?)\s*$", re.MULTILINE)
_STATED = re.compile(r"^#\s*runtime:\s*([0-9]+(?:\.[0-9]+)?)\s*$", re.MULTILINE)
_EXIT = re.compile(r"^\s*exit\s+([0-9]+)\s*$", re.MULTILINE)
#: Seconds that a submitted job runs, in the environment of its submission.
RUNTIME = "HEADWAY_RUNTIME"


class Refused(Exception):
    """A command, or its part about one job, was refused: exit code and message."""

    def __init__(self, rc: int, message: str) -> None:
        super().__init__(message)
        self.rc = rc
        self.message = message


class System(abc.ABC):
    """A batch system's commands over a machine."""

    #: What every command says to ``-V``, on standard error; None: there is no such option.
    version: str | None = None
    #: Name of each command -> what carries it out.
    commands: Mapping[str, Callable[[Call], Reply]]

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        #: That of the command that is carried out.
        self.zone = Zone()
        #: Every start is refused (a fault).
        self.refuse_starts = False

    @abc.abstractmethod
    def down(self, name: str) -> Reply:
        """What a command says when the batch system's daemon does not answer."""

    @abc.abstractmethod
    def find(self, text: str) -> list[Job]:
        """The jobs that a job id means, for the control command; empty if there is none."""

    def drop(self, job: Job) -> None:
        """Forget a job without a trace, as a batch system does some time after its end."""
        if job.state != "ended":
            self.machine.kill(job)
        del self.machine.jobs[job.id]

    def in_order(self, place: Callable[[Job], Sequence[Share] | None]) -> None:
        """Start queued jobs as they came, until one does not fit."""
        for job in self.machine.queued():
            shares = place(job)
            if shares is None:
                return
            self.machine.start(job, shares)


def options(call: Call, letters: str) -> tuple[list[tuple[str, str]], list[str]]:
    """A command's single-letter options in order, and the words after them; raises :class:`Refused`."""
    try:
        return getopt.getopt(list(call.words), letters)
    except getopt.GetoptError as error:
        raise Refused(2, f"{call.name}: invalid option -- '{error.opt}'\nusage: {call.name}") from error


def stated_runtime(call: Call, script: str) -> float | None:
    """How long the submitted job runs, where its user said so: ``HEADWAY_RUNTIME`` at its submission, a
    line ``# runtime: SECONDS`` in its script, or that it is nothing but ``sleep`` (all of them together)."""
    if given := call.environment.get(RUNTIME):
        try:
            return max(float(given), 0.0)
        except ValueError:
            raise Refused(1, f"{call.name}: {RUNTIME}: expected seconds, found {given!r}") from None
    if found := _STATED.search(script):
        return float(found.group(1))
    sleeps = _SLEEP.findall(script)
    return sum(map(float, sleeps)) if sleeps else None


def stated_exit(script: str) -> int:
    """What the script returns: its last ``exit N``."""
    found = _EXIT.findall(script)
    return int(found[-1]) & 255 if found else 0


def first_fit(nodes: Sequence[Node], processors: int, memory: int = 0) -> Node | None:
    """The first of the nodes that has so much free."""
    for node in nodes:
        enough = node.processors - node.assigned >= processors
        if enough and (not memory or node.memory - node.assigned_memory >= memory):
            return node
    return None
