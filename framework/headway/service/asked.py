"""What the local socket's thread asks: a daemon that schedules, or one that stands by."""

from __future__ import annotations

from collections.abc import Callable, Collection
from concurrent.futures import Future
from typing import Protocol

from headway.service import protocol
from headway.service.outbox import Outbox
from headway.service.peer import Peer
from headway.service.protocol import Reply, Report


class Asked(Protocol):
    """Answers the requests that come. Called by the socket's thread."""

    #: What it calls when there is news for a program that follows; the socket's server sets it.
    has_news: Callable[[], None]

    def ask(self, request: protocol.AnyRequest, peer: Peer) -> Future[Reply]:
        """Leave a request; its reply comes."""

    def limited(self, user: str) -> None:
        """A request was refused because this user asks too often."""

    def follow(self, operators: Collection[str], *, operator: bool) -> Outbox:
        """What a program gets from now on that follows the daemon. ``operator``: whether the program's own
        user is one. :class:`headway.errors.Failure` says why it cannot."""

    @property
    def has_more_to_tell(self) -> bool:
        """Whether programs that follow are still to be told something (:meth:`go_on_telling`)."""

    def go_on_telling(self) -> None:
        """Have programs that follow told what there is time for."""

    def whole_status(self) -> Report:
        """How the daemon is, with everything that only some may know."""

    def close(self) -> None:
        """Requests are not served any more: answer the requests that are left."""
