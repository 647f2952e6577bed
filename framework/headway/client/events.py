"""The stream of changes, as the client reads it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from headway.errors import Failure

#: Bytes of an event, at most.
_MOST = 8 * 1024 * 1024


@dataclass(frozen=True)
class Event:
    """Something that happened."""

    #: By which the stream is resumed behind it; None: it has none.
    number: int | None
    #: Such as "cycle", "decision", "event", "jobs", "daemon".
    kind: str
    #: What was sent, as plain values.
    data: Any


def events_of(lines: Iterable[bytes]) -> Iterator[Event]:
    """The events of a stream's lines. A last event without its empty line did not come whole, and is left
    out. :class:`headway.errors.Failure` for what is no stream of events."""
    fields: dict[bytes, bytes] = {}
    size = 0
    for line in lines:
        line = line.rstrip(b"\r\n")
        size += len(line)
        if size > _MOST:
            raise Failure(f"an event has more than {_MOST} bytes")
        if line:
            name, _, value = line.partition(b":")
            if name:
                fields[name] = value.removeprefix(b" ")
            continue
        if b"data" in fields:
            yield _event(fields)
        fields, size = {}, 0


def _event(fields: dict[bytes, bytes]) -> Event:
    number = fields.get(b"id")
    try:
        return Event(
            int(number) if number is not None else None,
            fields.get(b"event", b"message").decode(),
            msgspec.json.decode(fields[b"data"]),
        )
    except ValueError as error:
        raise Failure(f"expected an event with a number and JSON, found {fields!r:.80}") from error
