"""Who asks: by the way the request came.

A request that brings a token is that token's user or nobody: no other way is tried then, so that a token that
allows less is never replaced by a cookie or a socket that allows more. Else a proxy that is trusted says who
asks; else a browser's session; else, on a Unix socket, the system.
"""

from __future__ import annotations

import hmac
import os
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

import structlog
from starlette.requests import Request

from headway.errors import HeadwayError
from headway.serve.connections import peer_of
from headway.serve.jwts import SlurmTokens
from headway.serve.sessions import Sessions
from headway.serve.source import Caller
from headway.serve.tokens import PREFIX, Token, Tokens
from headway.service.server import user_name

ALL = frozenset({"read", "user", "operator"})
#: The header with the word that a proxy shares with this process.
SECRET_HEADER = "X-Headway-Proxy-Secret"
_LONGEST_NAME = 256


def this_process() -> Caller:
    """The user of this process, with all that this user may do."""
    return Caller(user_name(os.geteuid()), ALL, itself=True)


@dataclass(frozen=True)
class Proxy:
    """A proxy that knows the user."""

    header: str
    #: Users that it runs as, where it connects through a Unix socket.
    users: Collection[str] = ()
    #: Addresses that it connects from, where it brings the secret.
    addresses: Collection[str] = ()
    secret: bytes = b""
    scopes: frozenset[str] = ALL

    def is_peer(self, peer: object) -> bool:
        """Whether the other end, a user id or an address, is the proxy's."""
        return user_name(peer) in self.users if isinstance(peer, int) else peer in self.addresses

    def caller(self, request: Request) -> Caller | None:
        """The user that it names; None: it names none, or brings no secret."""
        if peer_of(request.scope) is None and not self._brings_secret(request):
            return None
        names = request.headers.getlist(self.header)
        return Caller(names[0], self.scopes) if len(names) == 1 and is_name(names[0]) else None

    def _brings_secret(self, request: Request) -> bool:
        words = request.headers.getlist(SECRET_HEADER)
        return bool(self.secret) and len(words) == 1 and hmac.compare_digest(words[0].encode(), self.secret)


def is_name(text: str) -> bool:
    """Whether a text can be a user's name."""
    return 0 < len(text) <= _LONGEST_NAME and text.isprintable() and not any(map(str.isspace, text))


@dataclass
class Ways:
    """All ways in which a user can be known here, beside the other end of a Unix socket."""

    tokens: Tokens | None = None
    jwt: SlurmTokens | None = None
    jwt_scopes: frozenset[str] = ALL
    proxy: Proxy | None = None
    sessions: Sessions = field(default_factory=Sessions)
    #: Absolute seconds.
    clock: Callable[[], float] = time.time
    #: Why tokens cannot be used, as it was logged last.
    _said: str = field(default="", init=False)

    async def caller(self, request: Request) -> Caller | None:
        """The user that asks; None: it is not known."""
        headers = request.headers.getlist("authorization")
        if headers:
            return self._by_word(headers)
        uid = peer_of(request.scope)
        peer = uid if uid is not None else (request.client.host if request.client else "")
        if self.proxy is not None and self.proxy.is_peer(peer):
            return self.proxy.caller(request)
        if (found := self._by_cookie(request)) is not None:
            return found
        if uid is None:
            return None
        return this_process() if uid == os.geteuid() else Caller(user_name(uid), ALL)

    def begin_session(self, request: Request) -> str | None:
        """A session of the token that the request brings: the cookie's value; None: it brings none."""
        word = _bearer(request.headers.getlist("authorization"))
        if word is None:
            return None
        if (token := self._own(word)) is not None:
            left = token.expires - self.clock()
            return self.sessions.begin(_caller_of(token), token.id, self.sessions.clock() + left)
        named = self._slurms(word)
        if named is None:
            return None
        caller, ends = named
        return self.sessions.begin(caller, ends=self.sessions.clock() + ends - self.clock())

    def _by_word(self, headers: list[str]) -> Caller | None:
        word = _bearer(headers)
        if word is None:
            return None
        if word.startswith(PREFIX):
            token = self._own(word)
            return _caller_of(token) if token is not None else None
        named = self._slurms(word)
        return named[0] if named is not None else None

    def _slurms(self, word: str) -> tuple[Caller, float] | None:
        """The user that a token of Slurm's names, and when it ends (absolute seconds)."""
        named = self.jwt.read(word) if self.jwt is not None else None
        if named is None or not is_name(named.user):
            return None
        return Caller(named.user, self.jwt_scopes), named.ends

    def _own(self, word: str) -> Token | None:
        return self._ask_tokens(lambda tokens: tokens.named(word, self.clock()))

    def _by_cookie(self, request: Request) -> Caller | None:
        word = request.cookies.get(self.sessions.cookie)
        session = self.sessions.find(word) if word else None
        if session is None:
            return None
        if session.token_id:
            token = self._ask_tokens(lambda tokens: tokens.still(session.token_id, self.clock()))
            return _caller_of(token) if token is not None else None
        return session.caller

    def _ask_tokens(self, question: Callable[[Tokens], Token | None]) -> Token | None:
        """Nobody is known by a token as long as the file cannot be used; that is logged once."""
        if self.tokens is None:
            return None
        try:
            found = question(self.tokens)
        except HeadwayError as error:
            if str(error) != self._said:
                self._said = str(error)
                structlog.get_logger("headway.serve").error("the tokens cannot be used", error=str(error))
            return None
        self._said = ""
        return found


def _bearer(headers: list[str]) -> str | None:
    """The word of the one header ``Authorization: Bearer WORD``."""
    if len(headers) != 1:
        return None
    kind, _, word = headers[0].partition(" ")
    return word.strip() if kind.lower() == "bearer" else None


def _caller_of(token: Token) -> Caller:
    return Caller(token.user, frozenset(token.scopes))
