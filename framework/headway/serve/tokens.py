"""Own tokens: random words that stand for a user, kept as their hashes in a file.

A token is 256 random bits, so that its SHA-256 needs no salt and no slow hash: there is nothing to guess. The
file has the mode 0600, is replaced as a whole, and is read anew when it was changed, so a revoked token ends
at once. Of a token that is over, the record stays for a while, so that it can be listed; of one that was
revoked, without its hash.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from headway.errors import Failure, UserError
from headway.report.atomic import replacing

#: What each token begins with, so that a leaked token is known for what it is.
PREFIX = "headway_"
#: Seconds for which the record of a token that is over stays in the file.
KEPT = 30 * 86400.0
_MODE = 0o600
#: Bytes that the file has at most.
_MOST = 16 * 1024 * 1024


class Token(msgspec.Struct, frozen=True):
    """What is known of a token; times are absolute seconds."""

    #: By which it is listed and revoked; it is no secret.
    id: str
    user: str
    scopes: tuple[str, ...]
    created: float
    expires: float
    name: str = ""
    #: When it was revoked; None: it was not.
    revoked: float | None = None

    @property
    def over(self) -> float:
        """From when on it lets nobody in."""
        return self.expires if self.revoked is None else min(self.revoked, self.expires)


class _Kept(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    token: Token
    #: SHA-256, hexadecimal; "": it was revoked, and no word is this token any more.
    hash: str


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    tokens: tuple[_Kept, ...] = ()


def hash_of(word: str) -> str:
    return hashlib.sha256(word.encode()).hexdigest()


@dataclass
class Tokens:
    """The tokens of a file, which may not be there yet."""

    path: Path
    #: As the file was when it was read.
    _stamp: tuple[int, ...] | None = field(default=None, init=False)
    _by_hash: dict[str, Token] = field(default_factory=dict, init=False)
    _by_id: dict[str, Token] = field(default_factory=dict, init=False)

    def named(self, word: str, now: float) -> Token | None:
        """The token that this word is; None: there is none, or it is over. :class:`Failure` if the file
        cannot be used: no token is known then."""
        self._refresh()
        return _unless_over(self._by_hash.get(hash_of(word)), now)

    def still(self, token_id: str, now: float) -> Token | None:
        """The token with this id, if it is neither revoked nor over."""
        self._refresh()
        return _unless_over(self._by_id.get(token_id), now)

    def all(self) -> tuple[Token, ...]:
        """All tokens of the file, also those that are over."""
        return tuple([one.token for one in self._read().tokens])

    def create(self, user: str, scopes: tuple[str, ...], now: float, seconds: float, name: str = "") -> str:
        """A new token: the word, which is kept nowhere. Those that are over for long are removed."""
        word = PREFIX + base64.urlsafe_b64encode(secrets.token_bytes(32)).decode().rstrip("=")
        with self._changing() as kept:
            kept[:] = [one for one in kept if not _is_over(one, now - KEPT)]
            taken = {one.token.id for one in kept}
            new = next(one for one in iter(lambda: secrets.token_hex(4), "") if one not in taken)
            kept.append(_Kept(Token(new, user, scopes, now, now + seconds, name), hash_of(word)))
        return word

    def revoke(self, token_id: str, now: float) -> Token:
        """Take what a token allows away; :class:`UserError` if there is none with this id."""
        with self._changing() as kept:
            at = next((at for at, one in enumerate(kept) if one.token.id == token_id), None)
            if at is None:
                raise UserError(f"{self.path}: expected the id of a token, found {token_id!r}")
            if kept[at].token.revoked is not None:
                raise UserError(
                    f"{self.path}: expected a token that holds, found {token_id}, which was revoked before"
                )
            gone = msgspec.structs.replace(kept[at].token, revoked=now)
            kept[at] = _Kept(gone, "")
        return gone

    def prune(self, now: float, seconds: float) -> tuple[Token, ...]:
        """Remove the records of tokens that are over for ``seconds``; which these were."""
        with self._changing() as kept:
            gone = [one for one in kept if _is_over(one, now - seconds)]
            kept[:] = [one for one in kept if one not in gone]
        return tuple([one.token for one in gone])

    @contextmanager
    def _changing(self) -> Iterator[list[_Kept]]:
        """The kept tokens, to be changed; nobody else changes them meanwhile."""
        try:
            folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise Failure(f"{self.path}: its folder cannot be read: {error.strerror or error}") from error
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            before = self._read().tokens
            kept = list(before)
            yield kept
            if tuple(kept) == before:
                return
            self._write(_File(tuple(kept)))
            # Else a power cut could bring the file before back, with a token that was revoked.
            os.fsync(folder)
        finally:
            os.close(folder)

    def _write(self, new: _File) -> None:
        with replacing(self.path) as temporary:
            made = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _MODE)
            with open(made, "wb") as stream:
                os.fchmod(made, _MODE)
                if os.geteuid() == 0:
                    # What root makes is for the user that the tokens are of: the file's, or the folder's.
                    like = self.path if self.path.exists() else self.path.parent
                    os.fchown(made, like.stat().st_uid, like.stat().st_gid)
                stream.write(msgspec.json.format(msgspec.json.encode(new)) + b"\n")
                stream.flush()
                os.fsync(made)

    def _read(self) -> _File:
        try:
            with open(self.path, "rb", opener=_no_link) as stream:
                found = os.fstat(stream.fileno())
                if found.st_mode & 0o077:
                    raise Failure(
                        f"{self.path}: expected the mode 0600, because it lets users in; found "
                        f"{found.st_mode & 0o777:04o}"
                    )
                text = stream.read(_MOST)
        except FileNotFoundError:
            return _File()
        except OSError as error:
            raise Failure(f"{self.path}: the tokens cannot be read: {error.strerror or error}") from error
        try:
            return msgspec.json.decode(text, type=_File)
        except msgspec.DecodeError as error:
            raise Failure(f"{self.path}: expected tokens as `headway token` writes them: {error}") from error

    def _refresh(self) -> None:
        try:
            found = self.path.stat()
            stamp: tuple[int, ...] = (
                found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns,
            )  # fmt: skip
        except FileNotFoundError:
            stamp = ()
        except OSError as error:
            self._forget()
            raise Failure(f"{self.path}: the tokens cannot be read: {error.strerror or error}") from error
        if stamp == self._stamp:
            return
        self._forget()
        kept = self._read().tokens
        self._by_hash = {one.hash: one.token for one in kept if one.hash}
        self._by_id = {one.token.id: one.token for one in kept}
        self._stamp = stamp

    def _forget(self) -> None:
        self._stamp, self._by_hash, self._by_id = None, {}, {}


def _unless_over(token: Token | None, now: float) -> Token | None:
    return token if token is not None and token.revoked is None and now < token.expires else None


def _is_over(kept: _Kept, since: float) -> bool:
    return kept.token.over <= since


def _no_link(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC)
