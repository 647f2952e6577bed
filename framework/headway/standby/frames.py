"""What a stand-by and ``headway journal follow`` say to each other, over the command's input and output.

The stand-by asks, the command answers each question once. So the stand-by knows that an answer was made after
its question, which no delay on the way changes. A message is its length (four bytes, the highest first) and
msgpack. Rows are as they stand in the database: lists of values in the order of the table's columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from headway.errors import Failure
from headway.standby.leadership import Word

#: Which language this is: both daemons must speak the same.
LANGUAGE = 1
#: Bytes of a message, at most.
LONGEST = 256 * 1024 * 1024
_LENGTH = 4

#: Where a table ends: run, cycle, position (0 where a table has none).
Place = tuple[int, int, int]


class Begin(msgspec.Struct, frozen=True, tag="begin"):
    """The first question: what the stand-by has."""

    language: int
    #: Run -> when it began, absolute seconds.
    runs: dict[int, float]
    #: Table -> its last row.
    places: dict[str, Place]


class More(msgspec.Struct, frozen=True, tag="more"):
    """What came since the answer before."""

    #: Whether rows are wanted; else only the lease.
    rows: bool = True


class Depose(msgspec.Struct, frozen=True, tag="depose"):
    """This daemon leads from now on."""

    word: Word


class Frame(msgspec.Struct, frozen=True):
    """An answer."""

    #: What the lease there says.
    word: Word | None = None
    #: Nothing more was there.
    complete: bool = True
    #: Rows of runs that are new or have ended.
    runs: list[list[Any]] = []
    #: Table -> new rows.
    rows: dict[str, list[list[Any]]] = {}
    #: Run -> its checkpoints, all of them.
    checkpoints: dict[int, list[list[Any]]] = {}
    #: Of the journal there: its last run and cycle; how many rows were sent goes by this.
    newest: tuple[int, int] = (0, 0)
    #: The highest number of a writer there.
    epoch: int = 0
    #: A run that the stand-by has is another there.
    diverged: int = 0
    #: Why nothing could be told.
    wrong: str = ""


Question = Begin | More | Depose
_question = msgspec.msgpack.Decoder(Question)
_frame = msgspec.msgpack.Decoder(Frame)


def packed(message: Question | Frame) -> bytes:
    """A message as it is sent."""
    body = msgspec.msgpack.encode(message)
    return len(body).to_bytes(_LENGTH, "big") + body


class Unpacker:
    """Bytes as they come, cut into messages. Raises :class:`Failure` for what is none."""

    def __init__(self, name: str) -> None:
        """``name``: where they come from, for messages."""
        self._name = name
        self._come = bytearray()

    def add(self, more: bytes) -> None:
        """These bytes came."""
        self._come += more

    def questions(self) -> Iterator[Question]:
        """The questions that are whole."""
        for body in self._bodies():
            yield self._decoded(_question, body)

    def frames(self) -> Iterator[Frame]:
        """The answers that are whole."""
        for body in self._bodies():
            yield self._decoded(_frame, body)

    def _bodies(self) -> Iterator[bytes]:
        while len(self._come) >= _LENGTH:
            length = int.from_bytes(self._come[:_LENGTH], "big")
            if length > LONGEST:
                raise self._wrong(bytes(self._come[:60]))
            if len(self._come) < _LENGTH + length:
                return
            body = bytes(self._come[_LENGTH : _LENGTH + length])
            del self._come[: _LENGTH + length]
            yield body

    def _decoded(self, decoder: Any, body: bytes) -> Any:
        try:
            return decoder.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise self._wrong(body[:60]) from None

    def _wrong(self, found: bytes) -> Failure:
        return Failure(
            f"{self._name}: expected what `headway journal follow` says, found {found!r}; both machines need "
            "the same version of headway, and a shell that prints nothing"
        )
