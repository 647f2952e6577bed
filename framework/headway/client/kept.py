"""Answers that the client keeps, so that what has not changed is not sent again."""

from __future__ import annotations

from collections import OrderedDict

#: Bytes that are kept, at most.
MOST = 16 * 1024 * 1024


class Kept:
    """The answers of one client by their paths, those that were asked for last."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._size = 0
        #: Path -> the answer's tag, and its body.
        self._answers: OrderedDict[str, tuple[str, bytes]] = OrderedDict()

    def tag(self, path: str) -> str | None:
        """The tag of the answer that is kept; None: none is."""
        found = self._answers.get(path)
        return None if found is None else found[0]

    def body(self, path: str) -> bytes:
        """The answer that is kept."""
        self._answers.move_to_end(path)
        return self._answers[path][1]

    def keep(self, path: str, tag: str | None, body: bytes) -> None:
        """The answer of a path is this one; without a tag it is not kept."""
        if (known := self._answers.pop(path, None)) is not None:
            self._size -= len(known[1])
        if tag is None or len(body) > self._most:
            return
        self._answers[path] = tag, body
        self._size += len(body)
        while self._size > self._most:
            _, (_, oldest) = self._answers.popitem(last=False)
            self._size -= len(oldest)
