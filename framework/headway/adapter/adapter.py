"""What a cluster must offer to be scheduled: the one interface of Slurm and of the emulated cluster.

Time belongs to the cluster. The engine asks :meth:`ClusterAdapter.wait`; a batch system's adapter
sleeps and polls, the emulated cluster jumps. An adapter turns what it sees into events and
carries decisions out; it never decides.
"""

from __future__ import annotations

import abc
import contextlib
import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, ClassVar

import msgspec
import pydantic

from headway.adapter.condition import Check, Condition
from headway.adapter.giving_back import GivingBack
from headway.adapter.leadership import Led
from headway.adapter.replicas import KnownReplica
from headway.decisions import Decision, Start
from headway.errors import UserError
from headway.events import Event
from headway.model import ClusterDescription


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """What became of one decision when it was handed to the cluster.

    ``accepted`` means that the cluster took the order; whether a start really happened is said by
    the following events. ``message`` is the cluster's answer where there was one.
    """

    accepted: bool
    message: str = ""


class WishedFrequency(msgspec.Struct, frozen=True):
    """At which frequency an earlier run wanted a job to run."""

    hertz: float
    #: When its start was decided, absolute seconds; None: headway did not decide it.
    asked: float | None = None
    #: When the execution began that it is for, absolute seconds; None: no run saw the beginning.
    started: float | None = None
    #: It was set, and seen to be; else it was only asked for.
    is_set: bool = False
    #: The limit that was to go with it, in seconds, and of which it is not known that it was asked for.
    walltime: float | None = None


class ClusterAdapter(Condition, Led, contextlib.AbstractContextManager["ClusterAdapter"], abc.ABC):
    """A cluster, seen by the engine."""

    #: The decision types that it can carry out.
    capabilities: frozenset[type[Decision]] = frozenset()
    #: Other jobs may have the processors of a suspended job (:attr:`ClusterDescription.suspended_lend`).
    suspended_lend: bool = False
    #: It can drive migration handlers (:mod:`headway.adapter.migration`), and so carry out what these give.
    moves: bool = False
    #: The batch system's own commands are to show planned starts (:meth:`show_starts`).
    shows_starts: bool = False
    #: What gives its cluster back to the batch system (``headway give-back``); None: it has nothing to give.
    gives_back: ClassVar[type[GivingBack] | None] = None

    @classmethod
    def capable_of(
        cls, cluster: ClusterDescription, options: Mapping[str, Any] | None = None
    ) -> frozenset[type[Decision]]:
        """The decision types that an adapter of this class can carry out on such a cluster, as far as
        that can be said without asking it. ``options``: as under ``cluster.options``."""
        return cls.capabilities

    @classmethod
    def full_job_id(cls, given: str, cluster: str) -> str:
        """The whole id of a job that a person names by a part of it, such as its number without the server's
        name. ``cluster``: its name, as :meth:`describe` gives it."""
        return given

    @classmethod
    def lacking(cls) -> list[str]:
        """What a real cluster's adapter must have and this class lacks, for a person."""
        found = [f"the method {name}" for name in sorted(cls.__abstractmethods__)]
        if not _is_model(getattr(cls, "Options", None)):
            found.append("Options, a pydantic model of cluster.options")
        if Start not in cls.capabilities:
            found.append("Start among its capabilities")
        try:
            inspect.signature(cls).bind(None, read_only=False, clock=None)
        except TypeError as error:
            found.append(f"a constructor (options, *, read_only=False, clock=None): {error}")
        return found

    @abc.abstractmethod
    def describe(self) -> ClusterDescription:
        """Pools, nodes and reservations now. Called once, before the first :meth:`wait`.

        Raises :class:`headway.errors.Failure` when the cluster cannot be reached.
        """

    @abc.abstractmethod
    def wait(self, deadline: float | None) -> tuple[float, Sequence[Event]] | None:
        """Block until something happened or ``deadline`` (absolute seconds; None: for ever) passed.

        Returns the time now, which never goes back, and the events since the last call, in the order of
        :func:`headway.events.in_order`. The first call reports every job that exists. Returns
        None when nothing can happen any more (an emulation's end).

        A cluster that does not answer is waited for, not an error: the adapter tells
        :class:`headway.events.ClusterSilent` once and logs the outage, the call returns no other events
        at ``deadline``, and with what happened meanwhile comes :class:`headway.events.ClusterAnswers`.
        """

    @abc.abstractmethod
    def apply(self, now: float, decisions: Sequence[Decision]) -> Sequence[Outcome]:
        """Carry decisions out, in order; one outcome each. Idempotent.

        A decision that was refused comes back as a :class:`headway.events.DecisionFailed` of a
        later :meth:`wait` as well, so that the scheduler's state follows events alone.
        """

    def asked_before(self, starts: Mapping[str, float]) -> None:
        """Starts that earlier runs decided: job -> when (absolute seconds). Called before :meth:`describe`.

        A start that is still on its way has had so much of its time."""

    def submitted_before(self, known: Callable[[Collection[str]], Mapping[str, float]]) -> None:
        """``known``: ids of jobs -> when they were submitted (absolute seconds), as far as earlier runs were
        told it. Called before :meth:`describe`.

        It is asked about jobs that went back to the queue, for which the batch system may state a different
        moment."""

    def wished_before(self, wishes: Mapping[str, WishedFrequency]) -> None:
        """Frequencies that earlier runs wanted, by job. Called before :meth:`describe`.

        What was not set yet is set, for an execution that is still the same, and so is a longer limit that
        was to go with it."""

    def use_handlers(self, handlers: Iterable[Any], gives: frozenset[type[Decision]]) -> None:
        """The migration handlers (:class:`headway.adapter.migration.MigrationHandler`) of the enabled
        plugins, in the order in which they are asked, and the decision types that can be carried out with
        them (none where :attr:`moves` is False). Called before :meth:`describe`. Raises :class:`UserError`
        for handlers that cannot serve here."""

    def tell_words(self, words: Iterable[str]) -> None:
        """Attributes of jobs that the configuration names: users can say them with their jobs. Called before
        :meth:`describe`."""

    def tell_policy(self) -> None:
        """Plugins go by the site's policy as the batch system has it. Called before :meth:`describe`. The
        first :meth:`wait` tells it (:class:`headway.events.SitePolicyChanged`), and so does each later
        :meth:`wait` that finds it changed. Raises :class:`UserError` where there is nothing to ask."""
        raise UserError(
            "plugins: from-slurm: expected a single Slurm cluster, found another cluster; write the "
            "values into the configuration instead"
        )

    def tiers_before(self, tiers: Mapping[str, str]) -> None:
        """The tiers of running jobs as earlier runs knew them, by job. Called before :meth:`describe`."""

    def replicas_before(self, known: Sequence[KnownReplica]) -> None:
        """Copies of datasets that earlier runs made, began, or began to remove. Called before
        :meth:`describe`.

        Of a copy that is there, the first events tell it. A copy that was on its way is removed and told as
        failed, and a removal is completed."""

    def moving_before(self, decisions: Mapping[str, Decision]) -> None:
        """Moves that an earlier run began and did not end, by job. Called before :meth:`describe`.

        They are given up: each job stays as it is found, and a job that a move suspended is resumed."""

    def check(self) -> list[Check]:
        """What ``headway check`` reports about this cluster: connection, privileges, set-up."""
        return []

    def looked(self, job_id: str) -> tuple[float, float] | None:
        """When the job's batch system was looked at before the last time, and the last time (absolute
        seconds): what the latter told of happened since the former. None where there are no looks, or none
        before."""
        return None

    def show_starts(self, planned: Iterable[tuple[str, float]]) -> None:
        """Show the planned starts where the batch system's own commands tell them: job, and absolute seconds.

        Called after each cycle in mode drive, where :attr:`shows_starts` is set, with the jobs that wait and
        have a planned start (:class:`headway.inquiry.planned.PlannedStarts`). A job that is missing has none
        any more. Returns soon: the adapter writes what has changed later, little by little. Whatever it shows
        keeps no job from starting, and the times at which users want their jobs to begin
        stay theirs."""

    def wake(self) -> None:
        """Make a blocked :meth:`wait` return soon. Called from a signal handler."""

    def close(self) -> None:
        """Give back what :meth:`describe` or :meth:`wait` took (connections)."""

    def __exit__(self, *exc: object) -> None:
        self.close()


def _is_model(found: object) -> bool:
    return isinstance(found, type) and issubclass(found, pydantic.BaseModel)
