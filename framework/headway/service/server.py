"""The socket's thread: takes requests, names the asking user, and brings replies back.

All sockets are non-blocking and every connection has a deadline, so that a slow or silent client
holds up no other client. The kernel says which user a client is (SO_PEERCRED); the socket itself is open
to all users.
"""

from __future__ import annotations

import contextlib
import math
import os
import pwd
import selectors
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Hashable
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import structlog

from headway.errors import Failure, HeadwayError
from headway.service import protocol
from headway.service.asked import Asked
from headway.service.following import Following, Link
from headway.service.limits import Limits
from headway.service.listening import listen_at
from headway.service.peer import Peer
from headway.service.protocol import Reply

#: Connections at a time: in all, and of one user.
MAX_CLIENTS = 64
MAX_PER_USER = 16
#: Of a program that asks on behalf of many users, so that some are left for users of this machine.
MAX_PER_SPEAKER = 48
#: Between two words in the log about a user that asks too often, seconds.
_SCOLD_PAUSE = 60.0
#: Between two looks whether the socket is still there, seconds.
LOOK_AFTER = 5.0
_CREDENTIALS = struct.Struct("3i")


def peer_uid(connection: socket.socket) -> int:
    """The user id of the client that connected."""
    packed = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return int(_CREDENTIALS.unpack(packed)[1])


def user_name(uid: int) -> str:
    """A user's name; "uid:N" for one without."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid:{uid}"


@dataclass(eq=False)
class _Client:
    connection: socket.socket
    uid: int
    #: On the monotonic clock: when it is given up.
    deadline: float
    said: bytes = b""
    reply: bytes = b""
    future: Future[Reply] | None = None


@dataclass(frozen=True)
class Bound:
    """A socket that is bound to its path, and listens."""

    listener: socket.socket
    #: The path's file, as it was when it was bound.
    file: os.stat_result

    @classmethod
    def to(cls, path: Path) -> Bound:
        """Raises what :class:`Server` does."""
        # Every user may ask; what is done depends on the asking user.
        listener = listen_at(path, f"service.socket: {path}", "another daemon answers there")
        listener.setblocking(False)
        try:
            return cls(listener, os.stat(path))
        except OSError as error:
            listener.close()
            raise Failure(f"service.socket: {path}: went away at once: {error.strerror or error}") from error


class Server:
    """Serves one socket until closed; a context manager."""

    def __init__(
        self,
        path: Path,
        inbox: Asked,
        *,
        operators: Collection[str] = (),
        speakers: Collection[str] = (),
        timeout: float = 30.0,
        client_timeout: float = 10.0,
        limits: Limits | None = None,
        credentials: Callable[[socket.socket], int] = peer_uid,
        look_after: float = LOOK_AFTER,
        bound: Bound | None = None,
        log: Any = None,
    ) -> None:
        """Binds ``path`` at once, unless an earlier server has left it ``bound``. ``operators`` are users
        besides root and the daemon's own; ``speakers`` may ask on behalf of other users.

        ``timeout``: seconds that a request waits for its cycle; ``client_timeout``: that a client may
        take to say its line, and to read its reply; ``limits``: how often a user may ask; ``look_after``:
        seconds between two looks whether the socket is still there. Raises :class:`UserError`
        for a path that cannot be a socket's, :class:`Failure` if it cannot be bound.
        """
        self.path = path
        self._inbox = inbox
        self._operators = frozenset(operators)
        self._speakers = frozenset(speakers)
        self._timeout = timeout
        self._client_timeout = client_timeout
        self._limits = limits if limits is not None else Limits()
        #: User (id, or name of one that another program speaks for) -> when it was logged last that the user
        #: asks too often (monotonic clock).
        self._scolded: dict[Hashable, float] = {}
        self._credentials = credentials
        self._log = log if log is not None else structlog.get_logger("headway.service")
        self._clients: set[_Client] = set()
        #: Replies that came from the scheduler's thread.
        self._done: deque[_Client] = deque()
        self._closing = False
        self._bound = bound if bound is not None else Bound.to(path)
        self._leaves_it = False
        self._look_after = look_after
        #: On the monotonic clock.
        self._next_look = time.monotonic() + look_after
        #: Why the socket that went away could not be made anew, as it was logged last.
        self._not_bound = ""
        self._poke_from, self._poke_to = socket.socketpair()
        for one in (self._poke_from, self._poke_to):
            one.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._bound.listener, selectors.EVENT_READ, "listener")
        self._selector.register(self._poke_from, selectors.EVENT_READ, "poke")
        self._following = Following(inbox, self._selector, self._log)
        inbox.has_news = self._poke
        self._thread = threading.Thread(target=self._serve, name="headway-service", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Answer what is left, and take the socket away."""
        if self._closing:
            return
        self._end()
        if self._is_there():
            with contextlib.suppress(OSError):
                self.path.unlink()

    def hand_over(self) -> Bound:
        """Answer what is left, and leave the socket to another server: a client that connects meanwhile is
        not refused, but waits for that server."""
        self._leaves_it = True
        self._end()
        return self._bound

    def _end(self) -> None:
        self._inbox.close()
        self._closing = True
        self._poke()
        self._thread.join(5.0)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # ------------------------------------------------------------------ the thread

    def _serve(self) -> None:
        try:
            while not self._closing:
                for key, _ in self._selector.select(self._pause()):
                    self._attend(key.data)
                self._collect()
                self._give_up()
                self._following.go_on()
                self._look_after_socket()
            self._collect()
            self._following.close()
            for client in list(self._clients):
                if client.reply:
                    self._write(client)
                self._drop(client)
        except Exception as error:
            self._log.exception("the local socket is not served any more", error=str(error))
        finally:
            self._selector.close()
            if not self._leaves_it:
                self._bound.listener.close()

    def _attend(self, what: Any) -> None:
        if what == "listener":
            self._accept()
        elif what == "poke":
            with contextlib.suppress(BlockingIOError):
                self._poke_from.recv(4096)
        elif isinstance(what, Link):
            self._following.attend(what)
        elif what in self._clients:
            try:
                if what.reply:
                    self._write(what)
                else:
                    self._read(what)
            except OSError:
                self._drop(what)
            except Exception:
                # One request must not cost the others.
                self._log.exception("a request could not be served", uid=what.uid)
                self._drop(what)

    def _pause(self) -> float:
        due = min((client.deadline for client in self._clients), default=math.inf)
        return min(max(0.0, min(due, self._next_look) - time.monotonic()), self._following.pause())

    def _is_there(self) -> bool:
        """Whether the path is still our socket's."""
        try:
            now = os.stat(self.path)
        except OSError:
            return False
        return (now.st_dev, now.st_ino) == (self._bound.file.st_dev, self._bound.file.st_ino)

    def _look_after_socket(self) -> None:
        """Make the socket anew if it was taken away, for example by a job that tidies up old files."""
        if time.monotonic() < self._next_look:
            return
        self._next_look = time.monotonic() + self._look_after
        if self._is_there():
            return
        try:
            bound = Bound.to(self.path)
        except HeadwayError as error:
            if str(error) != self._not_bound:
                self._not_bound = str(error)
                self._log.error("the local socket went away and cannot be made anew", error=str(error))
            return
        self._selector.unregister(self._bound.listener)
        self._bound.listener.close()
        self._bound, self._not_bound = bound, ""
        self._selector.register(bound.listener, selectors.EVENT_READ, "listener")
        self._log.warning("the local socket went away; it was made anew", path=str(self.path))

    def _accept(self) -> None:
        try:
            connection, _ = self._bound.listener.accept()
        except OSError:
            # It went away, or there is no file left to open: the next attempt tells.
            time.sleep(0.01)
            return
        connection.setblocking(False)
        try:
            uid = self._credentials(connection)
        except OSError:
            connection.close()
            return
        client = _Client(connection, uid, time.monotonic() + self._client_timeout)
        if len(self._clients) >= MAX_CLIENTS or self._has_enough(uid):
            with contextlib.suppress(OSError):
                busy = Reply("failed", "too many requests at a time; try again")
                connection.send(protocol.write(busy))
            connection.close()
            return
        self._clients.add(client)
        self._selector.register(connection, selectors.EVENT_READ, client)

    def _has_enough(self, uid: int) -> bool:
        """Whether a user has as many connections as one may have; a speaker has those of many users."""
        mine = sum(other.uid == uid for other in self._clients)
        return mine >= MAX_PER_USER and (mine >= MAX_PER_SPEAKER or user_name(uid) not in self._speakers)

    def _read(self, client: _Client) -> None:
        try:
            more = client.connection.recv(65536)
        except BlockingIOError:
            return
        if not more:
            self._drop(client)
            return
        if client.future is not None:
            # It has said its line; more of it is ignored.
            return
        client.said += more
        line, end, _ = client.said.partition(b"\n")
        if len(line) > protocol.MAX_REQUEST:
            self._answer(client, Reply("failed", f"a request has at most {protocol.MAX_REQUEST} bytes"))
        elif end:
            self._take(client, line)

    def _take(self, client: _Client, line: bytes) -> None:
        speaker = user_name(client.uid)
        try:
            request = protocol.read_request(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            request = None
            wrong = f"not a request: {error}"
        itself = client.uid in (0, os.geteuid())
        speaks = itself or speaker in self._speakers
        if isinstance(request, protocol.OnBehalf) and (speaks or request.user == speaker):
            user = request.user
            operator = user in self._operators and request.operator
            who: Hashable = user if speaks else client.uid
            request = request.asked
        else:
            user, who = speaker, client.uid
            operator = itself or user in self._operators
        if not self._limits.take(who, operator):
            self._too_often(client, who, user, operator)
            return
        if request is None:
            self._answer(client, Reply("failed", wrong))
            return
        if isinstance(request, protocol.OnBehalf):
            text = f"user {speaker} may not ask on behalf of others (service.speakers)"
            self._answer(client, Reply("refused", text))
            return
        if isinstance(request, protocol.Follow):
            self._follow(client, speaker, operator=operator, may=speaks)
            return
        client.deadline = time.monotonic() + self._timeout + request.takes
        client.future = self._inbox.ask(request, Peer(user, operator))
        if not isinstance(request, protocol.AtOnce | protocol.Question):
            through = {"through": speaker} if speaks and who is user else {}
            asked = msgspec.to_builtins(request)
            self._log.info("request", by=user, operator=operator, asked=asked, **through)
        client.future.add_done_callback(lambda _: self._came(client))

    def _follow(self, client: _Client, speaker: str, *, operator: bool, may: bool) -> None:
        """Have a program told what changes from now on."""
        if not may:
            text = f"user {speaker} may not follow what all users do (service.speakers)"
            self._answer(client, Reply("refused", text))
            return
        try:
            outbox = self._inbox.follow(self._operators, operator=operator)
        except Failure as error:
            self._answer(client, Reply("failed", str(error)))
            return
        self._clients.remove(client)
        self._selector.unregister(client.connection)
        self._following.add(client.connection, outbox)
        self._log.info("a program follows the daemon", by=speaker)

    def _too_often(self, client: _Client, who: Hashable, user: str, operator: bool) -> None:
        """Refuse, and count it. No journal, and hardly a word in the log: both would fill up."""
        self._inbox.limited(user)
        allowed = self._limits.of(operator)
        now = time.monotonic()
        if now >= self._scolded.get(who, -math.inf) + _SCOLD_PAUSE:
            self._scolded[who] = now
            self._log.warning("a user asks too often and is refused", by=user, burst=allowed.burst,
                              rate=allowed.rate)  # fmt: skip
        text = f"too many requests: at most {allowed.burst} at once and {allowed.rate:g} a second, no more"
        self._answer(client, Reply("failed", text))

    def _came(self, client: _Client) -> None:
        """A reply is there. Called by whichever thread made it."""
        self._done.append(client)
        self._poke()

    def _poke(self) -> None:
        # A full pipe wakes as well.
        with contextlib.suppress(OSError):
            self._poke_to.send(b"x")

    def _collect(self) -> None:
        while self._done:
            client = self._done.popleft()
            if client in self._clients and client.future is not None and not client.reply:
                with contextlib.suppress(CancelledError):
                    self._answer(client, client.future.result(0))

    def _answer(self, client: _Client, reply: Reply) -> None:
        client.reply = protocol.write(reply)
        client.deadline = time.monotonic() + self._client_timeout
        try:
            self._selector.modify(client.connection, selectors.EVENT_WRITE, client)
            self._write(client)
        except OSError:
            self._drop(client)

    def _write(self, client: _Client) -> None:
        try:
            sent = client.connection.send(client.reply)
        except BlockingIOError:
            return
        except OSError:
            self._drop(client)
            return
        client.reply = client.reply[sent:]
        if not client.reply:
            self._drop(client)

    def _give_up(self) -> None:
        now = time.monotonic()
        for client in [client for client in self._clients if client.deadline <= now]:
            if client.reply or client.future is None:
                self._drop(client)
            elif client.future.cancel():
                text = f"no cycle within {self._timeout:g} s; the request is withdrawn"
                self._answer(client, Reply("failed", text))
            else:
                text = f"no answer within {self._timeout:g} s, but the request is being served"
                self._answer(client, Reply("failed", text))

    def _drop(self, client: _Client) -> None:
        if client not in self._clients:
            return
        self._clients.remove(client)
        if client.future is not None:
            # A client that hangs up before a cycle took the request does not want it any more.
            client.future.cancel()
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(client.connection)
        client.connection.close()
