"""What the tests that run on every real batch system do to one: its users, its operator, its accidents."""

from __future__ import annotations

import abc
import contextlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from live_daemon import Daemon
from waiting import until

#: The file that a text of a user's would make if anything of it were executed.
TRAP = Path("/tmp/headway-was-here")
#: What stands in texts that nobody may execute.
EXECUTED = f"$(touch {TRAP}) `touch {TRAP}` ; touch {TRAP} | touch {TRAP} && touch {TRAP}"


@dataclass(frozen=True)
class SmallDisk:
    """A file system of one megabyte, as a daemon of the system sees it."""

    path: Path
    system: RealSystem

    def fill(self) -> None:
        """Leave no byte free."""
        said = self.system.shell(f"cat /dev/zero > {self.path}/ballast")
        assert "No space left" in said, said

    def free(self) -> None:
        """Take the ballast away."""
        self.system.shell(f"rm {self.path}/ballast")


class RealSystem(abc.ABC):
    """A real batch system whose own scheduler leaves the jobs to headway."""

    name: ClassVar[str]
    #: How many nodes it has, and processors each.
    nodes: ClassVar[int]
    processors: ClassVar[int]
    #: Where a script of a job finds its id, as headway writes it.
    own_id: ClassVar[str]
    #: An id that no job has.
    no_job: ClassVar[str] = "99999"
    #: Whose its jobs are.
    user: ClassVar[str] = "alice"
    #: The line of root's shell that prints all that the system knows of jobs, ended ones too.
    history: str
    #: The adapter's option that names its queues.
    queues: ClassVar[str] = "queues"

    def __init__(self, directory: Path) -> None:
        """``directory``: where its users may read and write."""
        self.directory = directory
        directory.chmod(0o777)
        self.diary = directory / "diary"
        self.diary.touch()
        self.diary.chmod(0o666)
        self._daemons: list[Daemon] = []
        TRAP.unlink(missing_ok=True)

    @property
    def whole(self) -> int:
        """All processors."""
        return self.nodes * self.processors

    # -- headway -----------------------------------------------------------------------------------

    def daemon(self, *, options: dict[str, Any] | None = None, **config: Any) -> Daemon:
        """A daemon for it, with its files in a directory of its own."""
        place = self.directory / f"headway{len(self._daemons)}"
        place.mkdir()
        daemon = self.new_daemon(place, options or {}, config)
        daemon.aside = self.aside
        self._daemons.append(daemon)
        return daemon

    def aside(self) -> str:
        """What the jobs wrote down and the system knows of them, for a test that waited in vain."""
        return f"{self.diary.read_text()}{self.shell(self.history)}"

    @abc.abstractmethod
    def new_daemon(self, directory: Path, options: dict[str, Any], config: dict[str, Any]) -> Daemon: ...

    def close(self) -> None:
        """No daemon of the test's is left, nor a job."""
        for daemon in self._daemons:
            daemon.clean_up()
        self.clean()
        TRAP.unlink(missing_ok=True)

    # -- users -------------------------------------------------------------------------------------

    def script(self, seconds: float) -> Path:
        """A job that writes down when it begins and, after so many seconds, when it ends."""
        path = self.directory / f"job-{seconds:g}.sh"
        if not path.exists():
            # One that another job is about to run must not be open for writing (exit code 126).
            made = path.with_suffix(".new")
            made.write_text(
                f"#!/bin/sh\njob={self.own_id}\necho begin $job >> {self.diary}\n"
                f"sleep {seconds}\necho end $job >> {self.diary}\n"
            )
            made.chmod(0o755)
            made.rename(path)
        return path

    def begun(self) -> Counter[str]:
        """How often each job began."""
        return self._count("begin")

    def ended(self) -> Counter[str]:
        """How often each job came to its end."""
        return self._count("end")

    def _count(self, what: str) -> Counter[str]:
        lines = [line.split() for line in self.diary.read_text().splitlines()]
        return Counter(words[1] for words in lines if words[0] == what)

    @abc.abstractmethod
    def submit(
        self,
        processors: int = 1,
        seconds: float = 600,
        *,
        minutes: int = 10,
        nodes: int = 0,
        held: bool = False,
    ) -> str:
        """A user's job of so many processors (on so many whole nodes); its id. ``held``: by its user."""

    @abc.abstractmethod
    def impossible(self) -> list[str]:
        """Jobs that can never run, as far as the system takes them."""

    @abc.abstractmethod
    def hostile(self, victim: str) -> list[str]:
        """Jobs whose texts pretend to be something else (of the job ``victim``, too), or to be commands, or
        break what reads them. Each runs for a moment and writes that down."""

    @abc.abstractmethod
    def cancel(self, job: str) -> None: ...

    @abc.abstractmethod
    def runs(self, job: str) -> bool: ...

    @abc.abstractmethod
    def waits(self, job: str) -> bool: ...

    def taken_over(self, job: str) -> bool:
        """Whether headway has done with a job what it does with each; from then on it stays as it is."""
        return True

    # -- its operator --------------------------------------------------------------------------------

    @abc.abstractmethod
    def everything(self) -> list[str]:
        """All that it shows of its jobs, without what the clock alone changes."""

    @abc.abstractmethod
    def node_down(self) -> None:
        """Take one node out of service."""

    @abc.abstractmethod
    def node_up(self) -> None:
        """Put it back."""

    @abc.abstractmethod
    def outage(self) -> contextlib.AbstractContextManager[None]:
        """Its server does not answer meanwhile."""

    @abc.abstractmethod
    def clean(self) -> None:
        """End all jobs, and wait until they have left; put the node back."""

    # -- files ---------------------------------------------------------------------------------------

    @abc.abstractmethod
    def shell(self, line: str) -> str:
        """A line of root's shell where the daemon runs; what it said."""

    @contextlib.contextmanager
    def small_disk(self) -> Iterator[SmallDisk]:
        """A file system of one megabyte. Raises :class:`OSError` where it cannot be mounted."""
        place = self.directory / "small"
        place.mkdir()
        said = self.shell(f"mount -t tmpfs -o size=1m headway-test {place} && echo mounted")
        if "mounted" not in said:
            raise OSError(f"a small file system cannot be mounted: {said}")
        try:
            yield SmallDisk(place, self)
        finally:
            self.shell(f"umount -l {place}")

    def readable(self, path: Path) -> Path:
        """A journal that the daemon has written to, where tests can read it."""
        copies = self.directory / "copies"
        copies.mkdir(exist_ok=True)
        self.shell(f"cp {path}* {copies}")
        return copies / path.name

    def until(self, condition: Any, what: str) -> None:
        until(condition, what, pause=0.3)
