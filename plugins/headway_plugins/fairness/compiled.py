"""Functions over arrays, compiled where numba is installed (extra ``fast``), and plain Python elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """The function, compiled when it is first called; the compiled form is kept on the disk."""
    try:
        from numba import njit
    except ImportError:
        return function
    return cast(Function, njit(cache=True)(function))


def is_compiled() -> bool:
    """Whether numba is there."""
    try:
        import numba  # noqa: F401
    except ImportError:
        return False
    return True
