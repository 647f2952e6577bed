"""What the clusters of a federation are told before they are asked for the first time, each in its own names.

Jobs are taken to be at the cluster that their name begins with. Moves are the exception, because a job that
stands still must not be missed: see :mod:`headway_adapters.federation.handlers`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import wait
from functools import partial
from typing import Any, TypeVar

from headway import decisions as d
from headway.adapter import ClusterAdapter, Seen, WishedFrequency
from headway.model.sites import DATA, MOVABLE
from headway_adapters.federation.handlers import Handlers
from headway_adapters.federation.live_routes import LiveRoutes
from headway_adapters.federation.member import Member

T = TypeVar("T")
#: How long clusters have to be told that the daemon ends, seconds.
_LEAVE = 5.0


class ToldBefore(ClusterAdapter):
    """The part of a federation that passes on what is said before the first look."""

    _members: Mapping[str, Member]
    _routes: LiveRoutes
    _handlers: Handlers

    def asked_before(self, starts: Mapping[str, float]) -> None:
        for name, member in self._members.items():
            member.adapter.asked_before(_own(name, starts))

    def submitted_before(self, known: Callable[[Collection[str]], Mapping[str, float]]) -> None:
        for name, member in self._members.items():
            member.adapter.submitted_before(partial(_known_of, name, known))

    def wished_before(self, wishes: Mapping[str, WishedFrequency]) -> None:
        for name, member in self._members.items():
            member.adapter.wished_before(_own(name, wishes))

    def tiers_before(self, tiers: Mapping[str, str]) -> None:
        for name, member in self._members.items():
            member.adapter.tiers_before(_own(name, tiers))

    def moving_before(self, decisions: Mapping[str, d.Decision]) -> None:
        self._handlers.remember(decisions)

    def use_handlers(self, handlers: Iterable[Any], gives: frozenset[type[d.Decision]]) -> None:
        self._handlers.use(handlers, gives)
        able = (member.adapter.capabilities for member in self._members.values())
        self.capabilities = self.capabilities.union(*able)

    def highest_epoch(self, *, above: int | None) -> Seen:
        """Of the clusters that have answered: the others are told by :meth:`lead` when they do."""
        asked = {
            name: member.run(partial(member.adapter.highest_epoch, above=above))
            for name, member in self._members.items() if member.description is not None
        }  # fmt: skip
        found = {name: answer.result() for name, answer in asked.items()}
        alive = [f"{name}: {seen.alive}" for name, seen in found.items() if seen.alive]
        return Seen(max((seen.epoch for seen in found.values()), default=0), "; ".join(alive))

    def lead(self, epoch: int, name: str) -> None:
        """Of a cluster that has not answered yet this is the first that it is told."""
        answers = [
            (member, member.run(partial(member.adapter.lead, epoch, name)))
            for member in self._members.values()
        ]
        for member, answer in answers:
            if member.description is not None:
                answer.result()

    def leave(self) -> None:
        answers = [
            member.run(member.adapter.leave) for member in self._members.values()
            if member.description is not None
        ]  # fmt: skip
        wait(answers, _LEAVE)

    def tell_words(self, words: Iterable[str]) -> None:
        known = frozenset(words)
        if self._routes.able:
            known |= {DATA, MOVABLE}
        for member in self._members.values():
            member.adapter.tell_words(known)


def _own(cluster: str, known: Mapping[str, T]) -> dict[str, T]:
    """What is known of a cluster's jobs, by its own names."""
    begin = f"{cluster}:"
    return {job.removeprefix(begin): one for job, one in known.items() if job.startswith(begin)}


def _known_of(
    cluster: str, known: Callable[[Collection[str]], Mapping[str, float]], jobs: Collection[str]
) -> dict[str, float]:
    return _own(cluster, known([f"{cluster}:{job}" for job in jobs]))
