"""What is kept of many users in bounded room, so that no user pushes out what is another's."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Value = TypeVar("Value")


@dataclass
class Shares(Generic[Value]):
    """Values by their keys, each of a user. A user with ``most_each`` gives up its own oldest for a new one;
    beyond ``most`` in all the user that has most does."""

    most: int
    most_each: int
    #: Key -> its user and the value, the oldest first; and the keys of each user in the same order.
    _kept: dict[Hashable, tuple[str, Value]] = field(default_factory=dict, init=False)
    _of: dict[str, dict[Hashable, None]] = field(default_factory=dict, init=False)

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: Hashable) -> Value | None:
        found = self._kept.get(key)
        return found[1] if found is not None else None

    def put(self, user: str, key: Hashable, value: Value) -> None:
        """Keep a value under a key that is new."""
        if len(self._of.get(user, ())) >= self.most_each:
            self.drop(next(iter(self._of[user])))
        elif len(self._kept) >= self.most:
            most = max(self._of, key=lambda one: len(self._of[one]))
            self.drop(next(iter(self._of[most])))
        self._kept[key] = user, value
        self._of.setdefault(user, {})[key] = None

    def drop(self, key: Hashable) -> None:
        """Forget what is kept under a key, if anything is."""
        found = self._kept.pop(key, None)
        if found is None:
            return
        mine = self._of[found[0]]
        del mine[key]
        if not mine:
            del self._of[found[0]]

    def oldest(self) -> tuple[Hashable, Value] | None:
        """The oldest of all; None: nothing is kept."""
        first = next(iter(self._kept.items()), None)
        return (first[0], first[1][1]) if first is not None else None
