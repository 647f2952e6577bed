"""The daemon's local socket: users' requests to a running scheduler, authorised by the user's id.

A Unix socket, a line of JSON each way (:mod:`headway.service.protocol`). One thread serves it
(:class:`Server`), hands requests to the scheduler's thread through an :class:`Inbox`, and never
makes the scheduler wait. Commands speak to it with :func:`headway.service.client.ask`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway.inputs.late import late

if TYPE_CHECKING:
    from headway.service.inbox import Inbox, Peer
    from headway.service.server import Server

__all__ = ["Inbox", "Peer", "Server"]

__getattr__ = late(
    __name__,
    {
        ".inbox": "Inbox Peer",
        ".server": "Server",
    },
)
