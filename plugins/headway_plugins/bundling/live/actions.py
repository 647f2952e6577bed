"""What the manager of a bundle is to do."""

from __future__ import annotations

import msgspec

from headway.adapter.migration import (
    Move,
)


class Submit(msgspec.Struct, frozen=True):
    """Submit subjob ``number``."""

    number: int


class Cancel(msgspec.Struct, frozen=True):
    """End a subjob, or take it out of the queue."""

    number: int


class Shrink(msgspec.Struct, frozen=True):
    """Reduce the waiting placeholder to one processor, so that it starts soon and tells the exit code."""

    number: int
    seconds: float


class Postpone(msgspec.Struct, frozen=True):
    """Put the placeholder back into the queue, held: what depends on it goes on waiting."""

    number: int


class Release(msgspec.Struct, frozen=True):
    """Let the postponed placeholder start."""

    number: int


class Perform(msgspec.Struct, frozen=True):
    """Let the handler do a piece of work; what it came to is told with :meth:`Brain.worked`."""

    move: Move
    task: str


class Finish(msgspec.Struct, frozen=True):
    """Write the result down."""

    exit_code: int
    message: str


Action = Submit | Cancel | Shrink | Postpone | Release | Perform | Finish
