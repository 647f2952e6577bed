"""The side of a link that asks: a connection that is made when it is needed, and again after a failure."""

from __future__ import annotations

from typing import Any

from headway.errors import Failure
from headway.link.channel import Channel, connect


class Client:
    """Asks one server. Not for several threads at once."""

    def __init__(self, address: str, key: bytes, seconds: float = 5.0, *, peer: str = "agent") -> None:
        """``address``: ``unix:PATH`` or ``HOST:PORT``. ``seconds``: for each wait. ``peer``: the server's
        name in messages."""
        self.address = address
        self._key = key
        self._seconds = seconds
        self._peer = peer
        self._channel: Channel | None = None

    def ask(self, message: Any) -> Any:
        """The answer to a message. Raises :class:`Failure`: it is not known then whether it was heard.

        On a connection from before that turns out to be dead it is asked once more: messages are
        idempotent."""
        again = self._channel is not None
        try:
            return self._ask(message)
        except Failure:
            if not again:
                raise
            return self._ask(message)

    def _ask(self, message: Any) -> Any:
        try:
            if self._channel is None:
                connection = connect(self.address, self._seconds)
                try:
                    self._channel = Channel(connection, self._key, agent=False)
                except BaseException:
                    connection.close()
                    raise
            self._channel.send(message)
            return self._channel.receive()
        except Failure as error:
            self.close()
            raise type(error)(f"{self._peer} at {self.address}: {error}") from error
        except (OSError, ValueError) as error:
            self.close()
            raise Failure(f"{self._peer} at {self.address}: {error}") from error

    def close(self) -> None:
        if self._channel is not None:
            self._channel.close()
            self._channel = None
