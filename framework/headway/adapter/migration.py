"""Moves of running jobs: what a migration handler is, and what it may ask of a cluster.

A handler (hook ``migrate``) knows one way to move a job: begin it anew, let it save itself, dump its
processes. It does nothing on the cluster itself. For each move it gives a *machine*: stimuli in,
instructions out, without I/O, so that every failure at every step can be tested. An adapter drives the
machine: it tells what the batch system shows (:class:`Seen`), what became of an order
(:class:`Answered`), what a piece of work found (:class:`Reported`) and that time passed
(:class:`Passed`); and it carries the instructions out. Work is what takes time and touches files or
nodes; the handler does it (:meth:`MigrationHandler.perform`) on a thread of the adapter's.

Where one daemon drives several clusters, each cluster has a handler of its own
(:meth:`MigrationHandler.for_cluster`), which knows jobs and nodes by that cluster's names alone.

What a move must keep, whatever goes wrong and whichever process is killed: the job is running or queued, is
never lost and never there twice, and what happened is reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from headway.adapter.condition import Check
from headway.decisions import AnyDecision
from headway.model import JobDescription, Placement

#: How a move can be over: the job runs on the target; saved, and runs on; it runs where it ran (or there
#: again); it waits in its queue; it came to its end meanwhile.
OUTCOMES = ("moved", "saved", "stayed", "queued", "ended")
#: The states (:attr:`Seen.state`) in which a job has its nodes.
ON_NODES = ("starting", "running", "suspended")


class Move(msgspec.Struct, frozen=True):
    """A job that is to be moved, or only saved."""

    job: JobDescription
    #: Where it runs.
    source: Placement
    #: Where it is to run; () for saving alone (:class:`headway.decisions.Checkpoint`).
    target: Placement
    #: How often it had gone back to the queue when the move began.
    restarts: int
    #: The tier that it is to run in.
    tier: str = "foreground"
    #: It is to begin again: what it has done need not be kept.
    restart: bool = False
    #: When its present execution began, absolute seconds; None: not known.
    start: float | None = None
    #: The tier that it is in, in which it goes back where it ran.
    source_tier: str = "foreground"


# ---------------------------------------------------------------------- stimuli


class Seen(msgspec.Struct, frozen=True, tag=True):
    """What a look at the batch system showed of the job."""

    #: "pending", "starting", "running", "suspended" or "ended" (also for a job that is gone).
    state: str
    placement: Placement = ()
    restarts: int = 0
    #: Nodes of source and target that are out of service.
    down: frozenset[str] = frozenset()


class Answered(msgspec.Struct, frozen=True, tag=True):
    """What the batch system answered to the last order or signal. A start that was accepted and did not
    happen in time is answered a second time."""

    accepted: bool
    message: str = ""


class Reported(msgspec.Struct, frozen=True, tag=True):
    """What a piece of work came to."""

    task: str
    ok: bool
    message: str = ""
    #: Nothing is wrong, but what it waits for is not there yet: it wants to be asked again.
    again: bool = False


class Passed(msgspec.Struct, frozen=True, tag=True):
    """Time passed. It may be told at any moment."""


Stimulus = Seen | Answered | Reported | Passed


# ---------------------------------------------------------------------- instructions


class Order(msgspec.Struct, frozen=True, tag=True):
    """Carry this out: Suspend, Resume, Requeue, or Start."""

    decision: AnyDecision


class Signal(msgspec.Struct, frozen=True, tag=True):
    """Send the job a signal, such as "USR1"."""

    name: str


class Work(msgspec.Struct, frozen=True, tag=True):
    """Let the handler perform this."""

    task: str


class Over(msgspec.Struct, frozen=True, tag=True):
    """The move is over: one of :data:`OUTCOMES`, and a sentence for a person."""

    outcome: str
    message: str = ""
    #: It runs on the target and began again there: what it had done is lost.
    restarted: bool = False


Instruction = Order | Signal | Work | Over


class Machine(Protocol):
    """One move. Pure: ``now`` are seconds on any clock that never goes back."""

    @property
    def step(self) -> str:
        """What it is at, in a word or two, for the log and ``headway status``."""

    def begin(self, now: float) -> Sequence[Instruction]:
        """The first instructions."""

    def tell(self, now: float, stimulus: Stimulus) -> Sequence[Instruction]:
        """What is to be done after a stimulus. After :class:`Over` nothing more comes."""

    @property
    def due(self) -> float | None:
        """When it wants to be told that time passed."""


class MigrationHandler(Protocol):
    """One way to move jobs. See the module's text."""

    name: str

    def check(self) -> Sequence[Check]:
        """What it needs, and whether that is there: lines of ``headway check``. Changes nothing."""

    def suits(self, move: Move) -> str:
        """Why it cannot carry this move out; "" if it can."""

    def machine(self, move: Move) -> Machine:
        """The machine for this move."""

    def perform(self, move: Move, task: str) -> Reported:
        """A piece of work, on a thread of its own; may take long. Whatever it raises is a failure of the
        work and ends nothing else."""

    def stop(self) -> None:
        """End what :meth:`perform` is at, soon: the daemon ends. May be called from any thread."""

    def tidy(self, alive: frozenset[str]) -> Sequence[str]:
        """Remove what is left of jobs that are not ``alive`` any more, and what is too old or too much; what
        was done, in words. On a thread, now and then."""

    def for_cluster(self, cluster: str) -> MigrationHandler:
        """The handler for one of several clusters. It meets jobs of this cluster only, under the ids that
        they have there, and must not share images or memory with that of another cluster: both may have a
        job 17. A handler that remembers nothing of jobs may return itself.

        Raises :class:`headway.errors.UserError` if its options suit a single cluster only. Without this
        method a handler serves a single cluster only.
        """

    def carry(self, job: str, there: MigrationHandler, job_there: str, user: str) -> str:
        """Take what is kept of a job that waits to the handler of another cluster, where the job is
        ``job_there``, and leave it here as well; what was taken, in words, "" for nothing. May be called
        again, on a thread, and take long. Raises :class:`headway.errors.Failure`; then the job stays here.

        A handler without this method keeps nothing.
        """


def handler_for(handlers: Sequence[Any], move: Move) -> tuple[Any, str]:
    """The first handler that suits the move, or None; and why the handlers before it do not."""
    reasons: list[str] = []
    for handler in handlers:
        why = handler.suits(move)
        if not why:
            return handler, "; ".join(reasons)
        reasons.append(f"{handler.name}: {why}")
    return None, "; ".join(reasons) or "no migration handler is enabled (such as requeue)"
