"""What a cluster must offer to be scheduled: the one interface of Slurm and of the emulated cluster.

Time belongs to the cluster. The engine asks :meth:`ClusterAdapter.wait`; a batch system's adapter
sleeps and polls, the emulated cluster jumps. An adapter turns what it sees into events and
carries decisions out; it never decides.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from headway.decisions import Decision
from headway.events import Event
from headway.model import ClusterDescription


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """What became of one decision when it was handed to the cluster.

    ``accepted`` means that the cluster took the order; whether a start really happened is said by
    the following events. ``message`` is the cluster's answer where there was one.
    """

    accepted: bool
    message: str = ""


class Check(msgspec.Struct, frozen=True):
    """One line of ``headway check``: what was looked at, whether it is in order, what was seen."""

    subject: str
    ok: bool
    detail: str
    #: What to do about it when it is not in order.
    remedy: str = ""


class Outage(msgspec.Struct, frozen=True):
    """A cluster that does not answer."""

    cluster: str
    #: Absolute seconds.
    since: float
    message: str


class ClusterAdapter(abc.ABC):
    """A cluster, seen by the engine."""

    #: The decision types that it can carry out.
    capabilities: frozenset[type[Decision]] = frozenset()

    @classmethod
    def capable_of(
        cls, cluster: ClusterDescription, options: Mapping[str, Any] | None = None
    ) -> frozenset[type[Decision]]:
        """The decision types that an adapter of this class can carry out on such a cluster, as far as
        that can be said without asking it. ``options``: as under ``cluster.options``."""
        return cls.capabilities

    @abc.abstractmethod
    def describe(self) -> ClusterDescription:
        """Pools, nodes and reservations now. Called once, before the first :meth:`wait`.

        Raises :class:`headway.errors.Failure` when the cluster cannot be reached.
        """

    @abc.abstractmethod
    def wait(self, deadline: float | None) -> tuple[float, Sequence[Event]] | None:
        """Block until something happened or ``deadline`` (absolute seconds; None: for ever) passed.

        Returns the time now and the events since the last call, in the order of
        :func:`headway.events.in_order`. The first call reports every job that exists. Returns
        None when nothing can happen any more (an emulation's end).

        A cluster that does not answer is waited for, not an error: the call returns no events
        at ``deadline`` and the adapter logs the outage.
        """

    @abc.abstractmethod
    def apply(self, now: float, decisions: Sequence[Decision]) -> Sequence[Outcome]:
        """Carry decisions out, in order; one outcome each. Idempotent.

        A decision that was refused comes back as a :class:`headway.events.DecisionFailed` of a
        later :meth:`wait` as well, so that the scheduler's state follows events alone.
        """

    def check(self) -> list[Check]:
        """What ``headway check`` reports about this cluster: connection, privileges, set-up."""
        return []

    def measured_watts(self) -> Mapping[str, float]:
        """Node -> watts that the batch system measured last, for ``headway status``; only of nodes that it
        measures. May be called from any thread."""
        return {}

    def outages(self) -> Sequence[Outage]:
        """What does not answer now, for ``headway status``. May be called from any thread."""
        return ()

    def wake(self) -> None:  # noqa: B027 (an adapter that never blocks has nothing to do)
        """Make a blocked :meth:`wait` return soon. Called from a signal handler."""

    def close(self) -> None:  # noqa: B027 (nor has one without connections)
        """Give back what :meth:`describe` or :meth:`wait` took (connections)."""

    def __enter__(self) -> ClusterAdapter:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
