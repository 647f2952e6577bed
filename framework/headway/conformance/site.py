"""The cluster that a conformance test runs on: what its author writes, all of it.

A :class:`Site` is a cluster of at least three nodes with the same number of processors (two or more). No
other user works there, and its own scheduler starts nothing. The site makes adapters of the cluster, and
does to it what a user, an operator or an accident would do behind the adapter's back.

Five methods must be there:

====================  =========================================================================
:meth:`Site.adapter`  a new adapter of the cluster
:meth:`Site.bring`    a user submits a job
:meth:`Site.cancel`   a user removes a job
:meth:`Site.runs`     what runs, as the cluster itself says
:meth:`Site.waits`    what waits, as the cluster itself says
====================  =========================================================================

What else can be done to the cluster :attr:`Site.can` names in the words of :data:`CAN`. A test that needs
another word is skipped, and says which. A test of a decision that the adapter cannot carry out is skipped
as well: the adapter's capabilities say so.
"""

from __future__ import annotations

import abc
import contextlib
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from headway.adapter import ClusterAdapter
from headway.errors import Failure
from headway.model import Placement

#: What a site can be made to do: word -> meaning, with the method that does it.
CAN: Mapping[str, str] = MappingProxyType({
    "again": "a second adapter of the cluster can be made beside the first",
    "after": "a job can wait for another job (Wanted.after)",
    "holds": "a user can hold a job (Wanted.held) and release it (release)",
    "shapes": "a job can ask for any number of processors on each of several nodes",
    "parts": "a job can have several parts that start together (bring_parts)",
    "pools": "there is a second pool over the same nodes (second_pool)",
    "signals": "a signal ends a job that does not catch it",
    "drain": "an operator can take a node out of service and put it back (drain, undrain)",
    "changes": "the commands that changed something are known (changes)",
    "executions": "how often a job was started is known (executions)",
    "drop": "a job can disappear without a trace (drop)",
    "outage": "the batch system can be made not to answer (outage)",
    "garbage": "its listings can be made nonsense (fault)",
    "truncate": "its listings can be cut off (fault)",
    "slow-start": "its start command can be made to start the job and not to answer (fault)",
    "refuse-start": "its start command can be made to refuse (fault)",
})  # fmt: skip

#: Names of jobs that must be nothing but names.
NAMES = (
    "two words",
    "it's",
    'say "hello"',
    "$(touch /tmp/headway-was-here) `id` ; rm -rf ~ | cat > x & exit",
    "-n",
    "ümläut ☃",
    "a<b>c[1] d",
    "back\\slash",
    "new\nline",
)

#: How often a polling adapter should look here, seconds: the tests wait for its looks.
PACE: Mapping[str, float] = MappingProxyType(
    {"poll_interval": 0.2, "confirm_interval": 0.05, "start_timeout": 2.0, "command_timeout": 5.0}
)


@dataclass(frozen=True)
class Wanted:
    """A job that a test submits."""

    processors: int = 1
    #: How long it runs.
    seconds: float = 60.0
    #: On so many nodes, the same number of processors on each; 0: on any.
    nodes: int = 0
    #: Held by its user.
    held: bool = False
    name: str = "job"
    #: Its time limit.
    minutes: int = 10
    #: The job that must have completed; "": none.
    after: str = ""


class Site(abc.ABC):
    """A cluster. Times are seconds."""

    #: What reports call it.
    name: str
    #: Words of :data:`CAN`.
    can: frozenset[str] = frozenset()
    #: The names that users can give to jobs, of :data:`NAMES`; the tests of the others are skipped.
    names: Collection[str] = NAMES
    #: How long the adapter's first answer may take.
    patience: float = 15.0
    #: A job that its user releases may be started by the batch system before headway can hold it.
    starts_released: bool = False
    #: A job that went back to the queue may not start for a while.
    rests_requeued: bool = False
    #: A signal may come before the job's own program runs, and be lost.
    loses_early_signals: bool = False
    #: The jobs of the present test, and the nodes that it drained.
    mine: set[str]
    drained: set[str]

    # ------------------------------------------------------------------ must be there

    @abc.abstractmethod
    def adapter(self, *, read_only: bool = False, **options: Any) -> ClusterAdapter:
        """A new adapter of this cluster.

        ``options``: more of its options; ``command_timeout`` for sites that can "outage" or "slow-start", and
        what :meth:`reserving`, :meth:`telling` and :meth:`second_pool` answer.
        """

    @abc.abstractmethod
    def bring(self, job: Wanted) -> str:
        """Submit a job; its id, as the adapter has it."""

    @abc.abstractmethod
    def cancel(self, job_id: str) -> None:
        """Its user removes a job. Raises :class:`Failure` for a job that is not there any more."""

    @abc.abstractmethod
    def runs(self) -> dict[str, Placement]:
        """All jobs that run or are suspended, and where."""

    @abc.abstractmethod
    def waits(self) -> set[str]:
        """All jobs that wait."""

    # ------------------------------------------------------------------ goes with words of CAN

    def bring_parts(self, processors: Sequence[int]) -> str:
        """Submit a job of parts that start together, of so many processors each; its id."""
        raise NotImplementedError

    def release(self, job_id: str) -> None:
        """Its user ends the hold."""
        raise NotImplementedError

    def drain(self, node: str) -> None:
        """An operator takes a node out of service."""
        raise NotImplementedError

    def undrain(self, node: str) -> None:
        """An operator puts a node back."""
        raise NotImplementedError

    def changes(self) -> Sequence[object]:
        """The commands so far that changed something."""
        raise NotImplementedError

    def executions(self, job_id: str) -> int:
        """How often a job was started."""
        raise NotImplementedError

    def drop(self, job_id: str) -> None:
        """Make a job disappear without a trace."""
        raise NotImplementedError

    def outage(self) -> contextlib.AbstractContextManager[None]:
        """The batch system does not answer meanwhile."""
        raise NotImplementedError

    def fault(self, kind: str) -> contextlib.AbstractContextManager[None]:
        """Something is wrong meanwhile: "garbage", "truncate", "slow-start" or "refuse-start"."""
        raise NotImplementedError

    # ------------------------------------------------------------------ has a default

    def now(self) -> float:
        """The time that the adapter tells."""
        return time.time()

    def reserving(self) -> dict[str, Any]:
        """Prepare the cluster for reservations; the adapter's options with which it makes them."""
        return {}

    def second_pool(self) -> tuple[str, dict[str, Any]]:
        """A pool over the same nodes besides the pool of the tests' jobs, and the adapter's options with
        which it drives both. Goes with "pools"."""
        raise NotImplementedError

    def telling(self) -> dict[str, Any]:
        """Prepare the cluster for notes at jobs; the adapter's options with which it writes them."""
        return {}

    def clean(self) -> None:
        """Remove the test's jobs and put its nodes back. Called before the first test, and after each."""
        mine: set[str] = getattr(self, "mine", set())
        drained: set[str] = getattr(self, "drained", set())
        for job_id in {*self.running(), *self.waiting()} if mine else ():
            with contextlib.suppress(Failure):
                self.cancel(job_id)
        for node in drained:
            self.undrain(node)
        self.mine, self.drained = set(), set()

    def close(self) -> None:  # noqa: B027 (a cluster that stays has nothing to do)
        """Take the cluster down."""

    # ------------------------------------------------------------------ what tests ask for

    def submit(
        self, processors: int = 1, seconds: float = 60.0, *, nodes: int = 0, held: bool = False,
        name: str = "job", minutes: int = 10, after: str = "",
    ) -> str:  # fmt: skip
        """A user's job (:class:`Wanted`); its id."""
        job_id = self.bring(Wanted(processors, seconds, nodes, held, name, minutes, after))
        self.mine.add(job_id)
        return job_id

    def submit_parts(self, *processors: int) -> str:
        """A user's job of several parts; its id."""
        job_id = self.bring_parts(processors)
        self.mine.add(job_id)
        return job_id

    def running(self) -> dict[str, Placement]:
        """What runs of the present test's jobs, and where."""
        return {job_id: placement for job_id, placement in self.runs().items() if job_id in self.mine}

    def waiting(self) -> set[str]:
        """What waits of the present test's jobs."""
        return self.waits() & self.mine
