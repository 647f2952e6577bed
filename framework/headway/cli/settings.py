"""The values of ``KEY=VALUE`` settings whose types are known."""

from __future__ import annotations

from collections.abc import Sequence
from types import UnionType
from typing import Any, get_args, get_origin

from headway.errors import UserError

#: A count is at most this, another number at most the second.
_MOST_COUNT, _MOST = 10**9, 1e12


def of_kind(value: Any, kind: Any, key: str, option: str = "--set") -> Any:
    """The value of a parameter whose type is ``kind``: a number, a text, a truth value, a list of such, or
    one of several.

    Whole numbers are counts, from 1 on; others are amounts, from 0 on. Raises :class:`UserError` for a
    value of another kind.
    """
    found = _fitted(value, kind)
    if found is _WRONG:
        raise UserError(f"{option}: {key}: expected {_said(kind)}, found {str(value)[:80]!r}")
    return found


_WRONG = object()


def _fitted(value: Any, kind: Any) -> Any:
    if isinstance(kind, UnionType):
        choices = (_fitted(value, one) for one in get_args(kind))
        return next((one for one in choices if one is not _WRONG), _WRONG)
    if get_origin(kind) is Sequence:
        (of,) = get_args(kind)
        parts = [_fitted(part, of) for part in value] if isinstance(value, list) and value else [_WRONG]
        return _WRONG if any(part is _WRONG for part in parts) else parts
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind is str:
        return str(value) if number or isinstance(value, str) else _WRONG
    if kind is int:
        return value if number and isinstance(value, int) and 1 <= value <= _MOST_COUNT else _WRONG
    if kind is float:
        return float(value) if number and 0 <= value <= _MOST else _WRONG
    return value if isinstance(value, kind) else _WRONG


def _said(kind: Any) -> str:
    if isinstance(kind, UnionType):
        return " or ".join(_said(one) for one in get_args(kind))
    if get_origin(kind) is Sequence:
        return f"a list such as [{_EXAMPLES.get(get_args(kind)[0], '...')}] of {_said(get_args(kind)[0])}"
    return _WORDS.get(kind, str(kind))


_WORDS = {
    int: "a whole number from 1 on", float: "a number from 0 on", str: "a text", bool: "true or false",
    type(None): "null",
}  # fmt: skip
_EXAMPLES = {int: "8, 16", float: "0.5, 0.7", str: "KTH, CTC"}
