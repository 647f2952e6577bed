"""What LSF's listings are made of: tables and JSON documents -> their records. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from headway.errors import Failure


def text_of(data: bytes) -> str:
    """Output as text; bytes that are no UTF-8 become the replacement character."""
    return data.decode("utf-8", errors="replace")


def table(text: str) -> list[dict[str, str]]:
    """A table whose values hold no blanks, except in the last column, by its header's words."""
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        return []
    header = lines[0].split()
    found = []
    for line in lines[1:]:
        cells = line.split(None, len(header) - 1)
        if len(cells) == len(header):
            found.append(dict(zip(header, (cell.strip() for cell in cells), strict=True)))
    return found


def records(data: bytes, what: str) -> list[dict[str, Any]]:
    """The records of a ``-json`` listing. Raises :class:`Failure` when it is cut off or no such listing."""
    try:
        document = msgspec.json.decode(text_of(data).encode())
    except (msgspec.DecodeError, RecursionError) as error:
        raise Failure(f"{what}: not the expected JSON ({error}); it begins {data[:60]!r}") from error
    listed = document.get("RECORDS") if isinstance(document, dict) else None
    if not isinstance(listed, list):
        raise Failure(f"{what}: the JSON holds no RECORDS")
    count = next((document[key] for key in ("JOBS", "HOSTS", "QUEUES") if key in document), None)
    if isinstance(count, int) and count != len(listed):
        raise Failure(f"{what}: {len(listed)} of {count} records")
    return [record for record in listed if isinstance(record, dict)]


def raw_records(data: bytes) -> list[msgspec.Raw]:
    """The bytes of each record; raises :class:`msgspec.DecodeError` where :func:`records` has to look."""
    clean = data if data.isascii() else text_of(data).encode()
    document = msgspec.json.decode(clean, type=dict[str, msgspec.Raw])
    listed = msgspec.json.decode(document.pop("RECORDS", b""), type=list[msgspec.Raw])
    plain = {key: msgspec.json.decode(value) for key, value in document.items()}
    count = next((plain[key] for key in ("JOBS", "HOSTS", "QUEUES") if key in plain), None)
    if isinstance(count, int) and count != len(listed):
        raise msgspec.DecodeError("another number of records")
    return listed


def cell(record: Mapping[str, Any], key: str) -> str:
    """A field of a JSON record as text; "" where there is none."""
    value = record.get(key)
    if value is None or value == "-":
        return ""
    return value if isinstance(value, str) else str(value)
