"""What the torture needs to know about a batch system, and what it reads from its records."""

from __future__ import annotations

import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from live_daemon import Daemon

from torture.history import History
from torture.stamps import Run
from torture.stream import Act, Shape, Wanted

#: Seconds after which a command counts as unanswered.
TIMEOUT = 60.0


@dataclass(frozen=True)
class Share:
    """What a job had of one node, from begin to end by the system's own records."""

    key: str
    node: str
    processors: int
    begin: float
    end: float


@dataclass
class Records:
    """What the system itself wrote down, by the jobs' keys; times are seconds since the epoch."""

    #: When it started each job.
    starts: dict[str, list[float]] = field(default_factory=dict)
    #: When it put each job back into its queue.
    requeues: dict[str, list[float]] = field(default_factory=dict)
    #: The state that it last told of each job: "done", "failed", "cancelled", "timeout" or its own word.
    states: dict[str, str] = field(default_factory=dict)
    shares: list[Share] = field(default_factory=list)
    #: Those of them that it says it made by itself, and why.
    own: dict[str, list[tuple[float, str]]] = field(default_factory=dict)
    #: Those of them that it says it was asked for; None: it does not say that.
    on_request: dict[str, list[float]] | None = None
    #: Jobs that were accepted, and that it said it did not have when it was back after a kill.
    lost: set[str] = field(default_factory=set)
    #: Faults of its own that it tells of: what and how often.
    oddities: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Answer:
    """What came of a command; ``accepted`` None: nobody answered."""

    accepted: bool | None
    text: str
    id: str = ""


class System(ABC):
    """A real batch system with two users, which can be killed and started again."""

    name: ClassVar[str]
    #: The first is for elements of arrays and for jobs that overrun.
    shapes: ClassVar[list[Shape]]
    #: Shares of kills that hit its server, and a node's daemon.
    server_share: ClassVar[float]
    node_share: ClassVar[float] = 0.0
    #: Where its records are in whole seconds and its releases are late: seconds by which what one job
    #: had may overlap what the next one has by the records alone.
    blur: ClassVar[float] = 1.0
    #: Whether it may forget what it said just before a SIGKILL of its server.
    forgets: ClassVar[bool] = False
    #: Whether jobs are lost, and requeued, when their node's daemon is killed.
    loses_with_node: ClassVar[bool] = False
    #: Whether it starts by itself what is requeued before headway has seen it run, and put its hold back.
    resumes: ClassVar[bool] = False

    #: Kinds of jobs that take minutes here.
    slow: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, root: Path) -> None:
        self.root = root
        #: Processors of each node.
        self.nodes: Mapping[str, int] = {}

    # -- its life ----------------------------------------------------------------------------------

    @abstractmethod
    def stop(self) -> None: ...

    @abstractmethod
    def kill_server(self) -> None: ...

    def saved(self) -> float | None:
        """After a SIGKILL of its server: the moment since which it forgets all; None: it forgets nothing."""
        return None

    @abstractmethod
    def restart_server(self) -> None:
        """Start it again; returns once it answers."""

    def kill_node(self, node: str) -> None:
        raise NotImplementedError

    def restart_node(self, node: str) -> None:
        raise NotImplementedError

    # -- its users and its administrator -------------------------------------------------------------

    @abstractmethod
    def submit(self, job: Wanted, command: list[str], after: str | None) -> Answer:
        """Submit a job that runs ``command``; ``after``: the id of the job that it depends on."""

    @abstractmethod
    def act(self, job: Wanted, job_id: str, act: Act) -> Answer: ...

    @abstractmethod
    def unfinished(self) -> dict[str, str]:
        """The ids of the jobs that are not over, with their states. Raises OSError without an answer."""

    def mend(self, *, managed: bool = True) -> str:
        """What an administrator does after faults of the system's own; says what was done, or "".

        ``managed``: headway decides what starts; else control was given back.
        """
        return ""

    def mend_stuck(self, open_: Mapping[str, str]) -> str:
        """The same when nothing has moved for a while: what it forgot about the jobs that are left."""
        return ""

    def hasten(self, outlived: Iterable[str]) -> None:
        """End what makes jobs wait for minutes whatever headway does; ``outlived``: whose end it forgot."""
        return

    # -- headway ------------------------------------------------------------------------------------

    @abstractmethod
    def daemon(self, directory: Path) -> Daemon: ...

    def kill_daemon(self, daemon: Daemon) -> None:
        """SIGKILL of headway, and not of the commands that it has called."""
        assert daemon.process is not None
        daemon.process.kill()

    @abstractmethod
    def give_back(self, daemon: Daemon) -> subprocess.CompletedProcess[str]: ...

    @abstractmethod
    def left_over(self) -> list[str]:
        """What of headway's is still there after control was given back."""

    # -- its records --------------------------------------------------------------------------------

    @abstractmethod
    def records(self, history: History, runs: Mapping[str, list[Run]]) -> Records: ...

    def where(self, run: Run) -> dict[str, int] | None:
        """The processors on each node that a run was told it had; None: it was not told."""
        return None


#: What commands say, in small letters, when their request was on its way and the answer did not come.
UNANSWERED = (
    "end of file", "rerun request still in progress", "zero bytes were transmitted or received",
    # Of an array: one element's node is gone, and the others did what was asked.
    "server could not connect to mom",
    "socket timed out on send/recv",
)  # fmt: skip


def asked(call: subprocess.CompletedProcess[str]) -> Answer:
    """A command's answer: by its exit code, or nobody's if the server was gone before it answered."""
    text = (call.stdout + call.stderr).strip()
    if call.returncode != 0 and any(word in text.lower() for word in UNANSWERED):
        return Answer(None, text)
    return Answer(call.returncode == 0, text)


def timed(command, *arguments: object) -> tuple[float, Answer, float]:  # type: ignore[no-untyped-def]
    """Call a command: when it was asked, what it answered, and when."""
    begin = time.time()
    try:
        answer = command(*arguments)
    except subprocess.TimeoutExpired as error:
        answer = Answer(None, f"no answer within {error.timeout:g} s")
    return begin, answer, time.time()
