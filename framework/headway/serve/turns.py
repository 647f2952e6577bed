"""Turns of requests, of which one user has some at most."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary


class Turns:
    """So many requests go on at a time, and of these so many of one user, so that nobody waits for another
    user's requests alone."""

    def __init__(self, at_once: int, of_one: int) -> None:
        self._all = asyncio.Semaphore(at_once)
        self._of_one = of_one
        #: User -> turns of that user, as long as there is a request of it.
        self._of_users: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    @property
    def users(self) -> list[str]:
        """Whose requests go on or wait."""
        return list(self._of_users)

    @asynccontextmanager
    async def of(self, user: str) -> AsyncIterator[None]:
        """A turn of this user's."""
        mine = self._of_users.get(user)
        if mine is None:
            mine = self._of_users[user] = asyncio.Semaphore(self._of_one)
        async with mine, self._all:
            yield
