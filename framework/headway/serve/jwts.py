"""Slurm's tokens: signed words that name a user and a time at which they end (``scontrol token``).

Slurm documents them under "JSON Web Tokens (JWT) Authentication": HS256 with a key that Slurm's daemons
share, or RS256 with one of the public keys of a JWKS file; the claim ``sun`` is the user, ``exp`` the end.
Decided here: one algorithm, which the configuration's key fixes and the token's header cannot change; ``exp``
must be there; with JWKS the token must name its key (``kid``); ``iat`` is not looked at, because a clock that
differs a little would lock users out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jwt
import msgspec

from headway.errors import UserError
from headway.serve.secret_files import read_public, read_secret

#: Bytes of a key of HS256, at least (RFC 7518, 3.2); Slurm's page makes one of 32.
_SHORTEST = 32
#: Bits of a key of RS256, at least (RFC 7518, 3.3).
_SMALLEST = 2048
#: What a token is, at most, bytes.
_LONGEST = 8192


class _KeySet(msgspec.Struct):
    keys: list[dict[str, Any]]


def _is_usable(key: Mapping[str, Any]) -> bool:
    """Whether a key of a JWKS file is a public key for signatures by RS256."""
    kind = key.get("kty") == "RSA" and key.get("alg", "RS256") == "RS256" and key.get("use", "sig") == "sig"
    return kind and "d" not in key and isinstance(key.get("kid"), str) and bool(key["kid"])


@dataclass(frozen=True)
class Named:
    """The user that a token names, and when it ends (absolute seconds)."""

    user: str
    ends: float


@dataclass(frozen=True)
class SlurmTokens:
    """Says which user a token of Slurm's names."""

    algorithm: str
    #: The key by the id that a token names, "" if it names none; None: there is none.
    key_for: Callable[[str], Any]
    claim: str = "sun"
    #: Seconds by which clocks may differ.
    leeway: float = 10.0

    @classmethod
    def by_secret(cls, path: Path, claim: str = "sun", leeway: float = 10.0) -> SlurmTokens:
        """By the key that Slurm's daemons share; :class:`UserError` if it is none."""
        secret = read_secret(path, "serve.jwt.key")
        if len(secret) < _SHORTEST:
            raise UserError(
                f"serve.jwt.key: {path}: expected a key of at least {_SHORTEST} bytes, found {len(secret)}"
            )
        try:
            key = jwt.get_algorithm_by_name("HS256").prepare_key(secret)
        except jwt.InvalidKeyError as error:
            raise UserError(f"serve.jwt.key: {path}: expected a key for HS256: {error}") from error
        return cls("HS256", lambda _: key, claim, leeway)

    @classmethod
    def by_public_keys(cls, path: Path, claim: str = "sun", leeway: float = 10.0) -> SlurmTokens:
        """By the public keys of a JWKS file; :class:`UserError` if there is none for RS256."""
        try:
            keys = msgspec.json.decode(read_public(path, "serve.jwt.jwks"), type=_KeySet).keys
            found = {one["kid"]: jwt.PyJWK(one, "RS256").key for one in keys if _is_usable(one)}
        except (jwt.PyJWTError, ValueError) as error:
            raise UserError(f"serve.jwt.jwks: {path}: expected public keys (JWKS): {error}") from error
        found = {name: key for name, key in found.items() if key.key_size >= _SMALLEST}
        if not found:
            raise UserError(
                f"serve.jwt.jwks: {path}: expected a key for RS256 with an id (kid) and at least {_SMALLEST} "
                "bits, found none"
            )
        return cls("RS256", found.get, claim, leeway)

    def read(self, word: str) -> Named | None:
        """What a token says; None: it is not valid here and now."""
        if len(word) > _LONGEST:
            return None
        try:
            header = jwt.get_unverified_header(word)
            kid = header.get("kid")
            key = self.key_for(kid if isinstance(kid, str) else "")
            if key is None or header.get("alg") != self.algorithm:
                return None
            claims = jwt.decode(
                word, key, algorithms=[self.algorithm], leeway=self.leeway,
                options={"require": ["exp", self.claim], "verify_iat": False, "verify_sub": False},
            )  # fmt: skip
        except (jwt.PyJWTError, ValueError):
            return None
        user = claims[self.claim]
        return Named(user, float(claims["exp"])) if isinstance(user, str) and user else None
