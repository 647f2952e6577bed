"""What plugins are asked on a user's behalf, between two steps (hook ``inform``)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from headway.errors import UserError

Shape = TypeVar("Shape")


@dataclass(frozen=True)
class Question:
    """What a user wants to know that only a plugin knows, and how much the user may see."""

    #: What is asked for, such as ``shares``.
    name: str
    #: What the user's client says more, as it wrote it; the plugin that answers checks it.
    text: str
    #: The user that asks, as the kernel says.
    user: str
    #: Whether the user may see other users' jobs and use.
    sees_all: bool = False
    #: Completes the id of a job that the user names.
    full_job_id: Callable[[str], str] = str

    def read(self, shape: type[Shape]) -> Shape:
        """What the text says, "" as an empty object; :class:`UserError` for a text of another shape."""
        try:
            return msgspec.json.decode(self.text or "{}", type=shape)
        except msgspec.DecodeError as error:
            raise UserError(f"the question {self.name!r}: {error}") from error

    def may_see(self, user: str) -> bool:
        """Whether what this user has and does may be shown."""
        return self.sees_all or user == self.user
