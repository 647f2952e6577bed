"""Sessions of browsers: a cookie that stands for a user whom a token or a link has named.

They are kept in memory, as hashes, and end with the process. Of a session that a token began, the token is
looked at again with each request.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from headway.serve.shares import Shares
from headway.serve.source import Caller
from headway.serve.tokens import hash_of

#: Seconds for which a session lasts.
LASTS = 12 * 3600.0
#: Sessions at a time, in all and of one user, whose oldest ends for a new one.
_MOST, _MOST_EACH = 1000, 50


@dataclass(frozen=True)
class Session:
    caller: Caller
    #: On the monotonic clock, which no step of the system's clock moves.
    ends: float
    #: Of the token that began it; "": none did.
    token_id: str = ""


@dataclass
class Sessions:
    """The sessions of this process."""

    #: The cookie's name. Cookies are shared between the ports of a host, so that it has the port in it.
    cookie: str = "headway"
    #: Whether the cookie is for TLS only.
    secure: bool = False
    clock: Callable[[], float] = time.monotonic
    #: By the hash of the cookie.
    _kept: Shares[Session] = field(default_factory=lambda: Shares(_MOST, _MOST_EACH), init=False)
    #: Hash of the word of the link -> the user that it lets in, once.
    _links: dict[str, Caller] = field(default_factory=dict, init=False)

    def begin(self, caller: Caller, token_id: str = "", ends: float | None = None) -> str:
        """A new session: the cookie's value. ``ends``: before a session does, on the monotonic clock."""
        word = secrets.token_urlsafe(32)
        over = self.clock() + LASTS
        session = Session(caller, over if ends is None else min(ends, over), token_id)
        self._kept.put(caller.user, hash_of(word), session)
        return word

    def find(self, word: str) -> Session | None:
        """The session that a cookie's value stands for."""
        found = self._kept.get(hash_of(word))
        if found is not None and self.clock() >= found.ends:
            self.end(word)
            return None
        return found

    def end(self, word: str) -> None:
        self._kept.drop(hash_of(word))

    def link(self, caller: Caller) -> str:
        """A word that begins a session of this user, once."""
        word = secrets.token_urlsafe(32)
        self._links[hash_of(word)] = caller
        return word

    def follow(self, word: str) -> str | None:
        """The cookie's value of the session that a link begins; None: there is no such link any more."""
        caller = self._links.pop(hash_of(word), None)
        return None if caller is None else self.begin(caller)
