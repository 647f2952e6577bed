"""What a batch system must offer so that :class:`headway_adapters.polling.PollingAdapter` can drive it.

An adapter is one class that extends ``PollingAdapter`` and overrides methods of :class:`BatchSystem`. It
states ``system`` (the word in the log), ``title`` (the name for people), ``Options`` and ``capabilities``,
and gives the constructor its client and its options (``docs/adapters.md`` has a complete example). Four
methods must be there:

=====================  ========================================================================
:meth:`learn`          what is learned about the cluster once; answers the cluster's name
:meth:`look`           one look at everything. Runs on a thread of its own
:meth:`start_all`      ask for starts (each job once, none that is on its way); a
                       :class:`headway_adapters.polling.look.Launch` each
:meth:`carry_out`      any other decision
=====================  ========================================================================

The others have a default, which a batch system overrides where it needs to:

=====================  ========================================================================
``check``              the lines of ``headway check``
:meth:`switches`       how the nodes are connected
:meth:`adopt`          starts that an earlier run asked for and that are on their way
:meth:`given_up`       why a start that is on its way cannot happen any more
:meth:`take_back`      undo a start that did not happen, so that it never happens later
:meth:`extra_patience` how much longer than ``start_timeout`` a start may take
:meth:`tend`           housekeeping after a look (take jobs over, clear what is left behind)
:meth:`news`           what a look tells besides jobs, nodes and reservations
:meth:`rules`          in which pools a start that is not headway's is worth a word
:meth:`drives`         to which pools jobs may be sent (decision ``Route``)
:meth:`signalling`     the command that sends a job's processes a signal, for migration handlers
:meth:`drain`          takes a node out of service; with ``drains = True`` nodes can then sleep through
                       the site's own commands (:mod:`headway_adapters.polling.actuators`)
:meth:`undrain`        puts it back
:meth:`epoch_seen`      the number of the daemon that took over last, as the batch system itself shows it
:meth:`lacks`          why a kind of decision cannot be carried out
=====================  ========================================================================

To do this, the class has the parts of the adapter that it extends:

=====================  ========================================================================
``self.overlay``       the last look: a job as it was seen, its detail, the nodes
``self.commands``      runs commands that change something, and says what became of them
``self.guard``         whether a job may be started, by the last look
``self.flights``       the starts that are on their way
``self.notes``         logs what is odd, each once
``self.now()``         the time, absolute seconds
=====================  ========================================================================

:meth:`learn` and :meth:`look` raise :class:`headway.errors.Failure` (best
:class:`headway_adapters.polling.client.Unanswered`) when the system does not answer or talks nonsense; that
is an outage: `ClusterSilent` is all that is told, and looks are tried again with growing pauses. So is any
other exception of a look (output that no reader foresaw), which is logged with its traceback. An answer about
one job that is not understood costs that job a look (:attr:`Look.unread`), never the others.
"""

from __future__ import annotations

import abc
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, Generic, Protocol

from pydantic import BaseModel

from headway import decisions as d
from headway import events as ev
from headway.adapter import Outcome, Seen
from headway.model import NodeDescription, SwitchDescription
from headway_adapters.polling.flights import Flight
from headway_adapters.polling.look import DetailT, Launch, Look, PayloadT
from headway_adapters.polling.snapshot import Snapshot, SnapshotJob


class Pace(Protocol):
    """The options that the loop itself needs, all seconds."""

    @property
    def poll_interval(self) -> float:
        """Between two looks when nothing was done."""

    @property
    def confirm_interval(self) -> float:
        """From a start to the look that should confirm it."""

    @property
    def start_timeout(self) -> float:
        """How long a started job may stay pending; then the start is taken back."""


class BatchSystem(abc.ABC, Generic[DetailT, PayloadT]):
    """A batch system's own part of its adapter. See the module's text for the contract."""

    #: The word for the system in the log.
    system: ClassVar[str]
    #: Its name for people.
    title: ClassVar[str]
    Options: ClassVar[type[BaseModel]]
    #: The decision types that it can carry out.
    capabilities: frozenset[type[d.Decision]]
    #: Whether :meth:`drain` and :meth:`undrain` are there.
    drains: ClassVar[bool] = False
    #: A start puts a job into the reservation that headway keeps for it.
    enters_reservations: ClassVar[bool] = False
    #: The system decides how many processors a start gets on each of its nodes, where its request does not.
    shares_out: ClassVar[bool] = False
    #: Its command to start a job puts it on a full node without a word: tiers are the agents', and the
    #: adapter counts what nodes have left (:mod:`headway_adapters.polling.room`).
    oversubscribes: ClassVar[bool] = False
    #: :attr:`headway_adapters.polling.snapshot.SnapshotJob.restarts` counts every execution but the first.
    counts_restarts: ClassVar[bool] = False

    # ------------------------------------------------------------------ must be there

    @abc.abstractmethod
    def learn(self) -> str:
        """What does not change while we run; the cluster's name.

        Raises :class:`Failure` when the system does not answer, :class:`UserError` for options
        that do not fit it.
        """

    @abc.abstractmethod
    def look(self, before: Snapshot | None) -> Look[DetailT]:
        """Look at everything. Runs on the looking thread, or on the caller's before the first.

        ``before``: what the look before showed; a job of it that is missing now is worth a
        question about its end. Raises :class:`Failure`.
        """

    @abc.abstractmethod
    def start_all(self, starts: Sequence[d.Start]) -> Sequence[Launch[PayloadT]]:
        """Ask for starts, a launch each, in order. Each job is named once and is not on its way.

        A start of which it is unknown whether it was heard is accepted: the next looks tell.
        """

    @abc.abstractmethod
    def carry_out(self, decision: d.Decision, now: float) -> Outcome:
        """Any decision of :attr:`capabilities` but a start."""

    # ------------------------------------------------------------------ what is learned and told

    def switches(self, nodes: Mapping[str, NodeDescription]) -> tuple[SwitchDescription, ...]:
        """How the ``nodes`` are connected, as far as the batch system says it; asked after :meth:`learn`."""
        return ()

    def news(self, look: Look[DetailT]) -> Iterable[ev.Event]:
        """What a look tells besides jobs, nodes and reservations; events of its time."""
        return ()

    def tend(self, look: Look[DetailT], in_flight: set[str]) -> None:
        """Housekeeping after a look; not for the jobs that were ``in_flight`` in it."""
        return

    def rules(self, pool: str) -> bool:
        """Whether only headway starts jobs of this pool: a start from elsewhere is counted and told."""
        return False

    def drives(self, pool: str) -> bool:
        """Whether headway starts the jobs of this pool, which a look showed: jobs are sent to no other."""
        return True

    def lacks(self, kind: type[d.Decision]) -> str:
        """That a decision of this kind cannot be carried out, and why, for a person."""
        return f"{kind.__name__} cannot be carried out on this {self.title}"

    # ------------------------------------------------------------------ several daemons

    def epoch_seen(self) -> Seen:
        """The highest epoch that the batch system shows, and whether its daemon is alive as far as that
        tells; beside the heartbeat. Raises :class:`Failure`."""
        return Seen()

    # ------------------------------------------------------------------ starts on their way

    def adopt(self, look: Look[DetailT]) -> Iterable[tuple[d.Start, PayloadT, int]]:
        """Starts that an earlier run asked for: the start, its payload, the job's restarts then."""
        return ()

    def given_up(self, job: SnapshotJob, detail: DetailT | None) -> str:
        """Why a pending job's start cannot happen any more, "" while it can."""
        return ""

    def take_back(self, flight: Flight[PayloadT], *, late: bool) -> bool:
        """Undo a start that did not happen. ``late``: only its time is over, it could still happen.

        False: it could not be undone; it is tried again at the next look.
        """
        return True

    def extra_patience(self, start: d.Start) -> float:
        """Seconds that a started job may stay pending beyond ``start_timeout``."""
        return 0.0

    # ------------------------------------------------------------------ commands by themselves

    def drain(self, node: str, reason: str) -> tuple[str, ...]:
        """The command that takes a node out of service; for a drained one: with another reason."""
        raise NotImplementedError

    def undrain(self, node: str) -> tuple[str, ...]:
        """The command that puts a node back into service."""
        raise NotImplementedError

    def signalling(self, job_id: str, name: str) -> tuple[str, ...]:
        """The command that sends all processes of a job a signal, such as "USR1"."""
        raise NotImplementedError
