"""How events, decisions and plugin states are written as text, and read back identical.

The text is JSON as :mod:`msgspec` writes it. JSON cannot say everything that a Python value can:

* ``inf`` and ``nan`` are no JSON numbers (msgspec would silently write ``null``);
* a lone surrogate, which is how Python represents a byte that is no UTF-8, has no UTF-8 form.

A value with one of these is written as Python's own :mod:`json` does it (``Infinity``, ``NaN``,
``\\udc80``), with a leading space so that the reader knows. Such values are rare, and so the
common ones keep msgspec's speed and typed decoding.

Not kept apart: two neighbouring surrogates that together encode one character come back as that
character; the tuples and non-string keys of an untyped value (a job's ``attributes``, a plugin's
state) come back as lists and strings; NumPy scalars come back as Python numbers.
"""

from __future__ import annotations

import json
from typing import Any, Generic, TypeVar

import msgspec
import numpy as np
from sqlalchemy import Text
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator

T = TypeVar("T")

_MARK = " "


def _plain(value: Any) -> Any:
    """A NumPy scalar as the Python number it stands for: plugins compute with NumPy."""
    if isinstance(value, np.generic):
        return value.item()
    raise NotImplementedError(f"a {type(value).__name__} cannot be written as JSON")


_ENCODER = msgspec.json.Encoder(enc_hook=_plain)


def encode(value: Any) -> str:
    """``value`` (a struct, or JSON-able data) as text.

    Raises TypeError or ValueError for what cannot be written, such as a set of objects.
    """
    try:
        encoded = _ENCODER.encode(value)
    except UnicodeEncodeError:
        return _encode_extended(value)
    # "null" is a None, part of a string, or the trace of a number that JSON does not have.
    if b"null" in encoded:
        return _encode_extended(value)
    return encoded.decode()


def _encode_extended(value: Any) -> str:
    builtins = msgspec.to_builtins(value, str_keys=True, enc_hook=_plain)
    return _MARK + json.dumps(builtins, separators=(",", ":"))


class Decoder(Generic[T]):
    """Reads what :func:`encode` wrote, as a value of ``kind`` (which may be a union of structs).

    Raises :class:`msgspec.DecodeError` (or its subclass ``ValidationError``) or ValueError on other text.
    """

    def __init__(self, kind: Any) -> None:
        self._kind = kind
        self._decoder = msgspec.json.Decoder(kind)

    def __call__(self, text: str) -> T:
        if text.startswith(_MARK):
            return msgspec.convert(json.loads(text), self._kind)  # type: ignore[no-any-return]
        return self._decoder.decode(text)  # type: ignore[no-any-return]


class AnyText(TypeDecorator[str]):
    """A text column that keeps any Python string, also what a database refuses.

    PostgreSQL's text has no NUL, and no database's has lone surrogates. A string with one of these is
    stored as its JSON form behind the character U+001A (SUBSTITUTE); every other as it is.
    """

    impl = Text
    cache_ok = True

    _SUBSTITUTE = "\x1a"

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        if value is None:
            return None
        if "\0" not in value and not value.startswith(self._SUBSTITUTE):
            if value.isascii():
                return value
            try:
                value.encode()
                return value
            except UnicodeEncodeError:
                pass
        return self._SUBSTITUTE + json.dumps(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:
        if value is not None and value.startswith(self._SUBSTITUTE):
            return str(json.loads(value[1:]))
        return value
