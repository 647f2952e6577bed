"""The shapes that ``headway token --json`` prints."""

from __future__ import annotations

import msgspec

from headway.serve.tokens import Token


class NewToken(msgspec.Struct, frozen=True):
    """A token as it is shown, once."""

    token: str


class TokenList(msgspec.Struct, frozen=True):
    """All tokens, without what they are."""

    tokens: tuple[Token, ...]
