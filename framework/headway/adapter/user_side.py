"""What an ordinary user can do with a batch system: list the queue, submit, cancel.

No administrator's right is needed for any of it. Adapters bring it: the entry points of the group
:data:`GROUP` (name of the batch system -> a class that is made with a mapping of options, and has the
methods of :class:`UserSide`). What runs as a job asks it, too, which processors it was given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from headway.errors import Failure, UserError, nearest
from headway.inputs.entry_points import entry_points
from headway.model import Placement

GROUP = "headway.user_sides"


class Silence(Failure):
    """The batch system did not answer: what it was asked for may have been done, or not."""


class Listed(msgspec.Struct, frozen=True):
    """A job of the queue. Times are absolute seconds."""

    id: str
    name: str
    user: str
    processors: int
    #: "pending", "starting", "running", "suspended" or "ended".
    state: str
    #: When its limit ends it, if it has started.
    end: float | None = None
    exit_code: int | None = None
    #: Why it waits, or how it ended, in the batch system's words.
    reason: str = ""


class Queue(msgspec.Struct, frozen=True):
    """A queue (a partition) at one moment."""

    #: Absolute seconds.
    time: float
    #: Processors that a new job could have now.
    free: int
    #: Jobs that wait and may start, the first of them first.
    waiting: tuple[Listed, ...] = ()
    #: When jobs that have processors here are expected to end, and how many they have.
    ends: tuple[tuple[float, int], ...] = ()
    #: All jobs by id.
    jobs: Mapping[str, Listed] = {}
    #: Of each node with free processors: how many, and how much memory is free (bytes; None: the batch system
    #: does not manage it).
    room: tuple[tuple[int, int | None], ...] = ()


class Window(msgspec.Struct, frozen=True):
    """What a new job could have at once, as the batch system's own scheduler says."""

    processors: int
    #: For so many seconds; infinite: without end.
    seconds: float


class Submission(msgspec.Struct, frozen=True):
    """A job that is to be submitted."""

    name: str
    processors: int
    #: Its limit, seconds.
    walltime: float
    #: What runs on its first node: no shell sees it.
    argv: tuple[str, ...]
    #: Where its output goes, an absolute path.
    output: str
    account: str = ""
    #: Bytes for each processor; 0: not stated.
    memory: int = 0


class Allocation(msgspec.Struct, frozen=True):
    """What a job was given, as it sees it itself."""

    job: str
    placement: Placement
    #: The node on which this process runs.
    node: str

    @property
    def others(self) -> tuple[str, ...]:
        """The other nodes."""
        return tuple(name for name, _ in self.placement if name != self.node)


class UserSide(Protocol):
    """One batch system, as one user.

    Methods raise :class:`headway.errors.Failure` with the batch system's message, and :class:`Silence` if it
    does not answer.
    """

    #: Seconds: limits are multiples of it.
    grain: float
    #: Where jobs are sent.
    queue: str
    #: A job can write something for the scheduler (:meth:`note`).
    hears: bool

    def look(self) -> Queue:
        """The queue at present."""

    def windows(self, command: Sequence[str]) -> Sequence[Window]:
        """What the scheduler offers at present, by its command ``showbf``, which is given with its words."""

    def submit(self, job: Submission) -> str:
        """Submit it; its id."""

    def cancel(self, job: str) -> None:
        """End the job, or take it out of the queue; a job that is gone already is no failure."""

    def shrink(self, job: str, seconds: float) -> None:
        """Reduce a waiting job to one processor for ``seconds``."""

    def postpone(self, job: str) -> None:
        """Put a job that runs back into the queue, held: what depends on it goes on waiting."""

    def release(self, job: str) -> None:
        """Let a job start that was postponed."""

    def allocation(self, environment: Mapping[str, str]) -> Allocation | None:
        """What the job has in which this process runs; None: it runs in none."""

    def notes(self, environment: Mapping[str, str]) -> Mapping[str, str]:
        """What the scheduler wrote for the job in which this process runs; empty where there is nothing."""

    def note(self, environment: Mapping[str, str], key: str, value: str) -> None:
        """Write something for the scheduler to that job."""

    def elsewhere(
        self, argv: Sequence[str], allocation: Allocation, environment: Mapping[str, str]
    ) -> tuple[tuple[str, ...], ...]:
        """The commands that run ``argv`` once on each other node of the job in which they are called."""


def load_user_side(system: str, options: Mapping[str, Any]) -> UserSide:
    """The user's side of a batch system. Raises :class:`UserError` for a name or options that are wrong."""
    known = {entry.name: entry for entry in entry_points(group=GROUP)}
    if system not in known:
        raise UserError(f"--system: no batch system is called {system!r}.{nearest(system, known)}")
    made: UserSide = known[system].load()(options)
    return made
