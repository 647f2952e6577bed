"""The log, for modules that seldom say something: structlog is loaded with their first message.

A daemon logs from its first second, so it sets up and asks structlog itself. A dry run mostly says nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

#: What sets up structlog, until it has been called.
_waiting: list[Callable[[], None]] = []


def set_up_later(set_up: Callable[[], None]) -> None:
    """Call ``set_up``, which configures structlog, before the first message: at once if it is loaded."""
    _waiting[:] = [set_up]
    settle()


def settle() -> None:
    """Set up structlog now if something has loaded it, such as a plugin that logs."""
    if "structlog" in sys.modules and _waiting:
        _waiting.pop()()


class _Late:
    """structlog's logger of a name, got anew for each message."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, method: str) -> Any:
        import structlog

        settle()
        return getattr(structlog.get_logger(self._name), method)


def logger(name: str) -> Any:
    """A logger of structlog's, such as ``headway.engine``."""
    return _Late(name)
