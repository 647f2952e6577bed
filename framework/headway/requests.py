"""Requests of users to a running scheduler, and their answers.

A request enters the scheduler as an event of the next cycle, so it is journalled and replayed like
everything else; a plugin decides on it and tells what became of it (hook ``answer``).
:mod:`headway.service` brings requests in through a socket.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import msgspec

from headway.decisions import Decision
from headway.events import Event

if TYPE_CHECKING:
    from headway.adapter import Outcome
    from headway.plugins import Problem
    from headway.scheduler import Scheduler


class Answer(msgspec.Struct, frozen=True):
    """What a plugin answers to a request, in the step in which it was served.

    The answer holds only if the cluster accepts all ``decisions``, which the plugin made in this step;
    otherwise the user is told the cluster's refusal.
    """

    #: "accepted", "in part", "refused" or "waiting".
    outcome: str
    reason: str = ""
    decisions: tuple[Decision, ...] = ()


class RequestSource(Protocol):
    """Where an engine gets users' requests from. Called by the engine's thread only."""

    def take(self, now: float) -> Sequence[Event]:
        """The requests since the last call, as events of ``now`` (absolute seconds)."""

    def served(
        self,
        now: float,
        scheduler: Scheduler,
        decisions: Sequence[Decision],
        outcomes: Sequence[Outcome],
    ) -> None:
        """A cycle is over: what was taken can be answered."""

    def failed(self, problem: Problem) -> None:
        """A plugin failed, or something made no sense; the log has it already."""
