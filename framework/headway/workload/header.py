"""The header of a trace: its comments, and what they say by ``; Key: value``."""

from __future__ import annotations

import re
from collections.abc import Iterable

# The blank behind the colon may be missing; but //... is the rest of an address.
_FIELD = re.compile(r";\s*([A-Za-z]\w*)\s*:\s*(?!//)(.*)$")


def header_field(line: str) -> tuple[str, str] | None:
    """The key and the value of a header's line; None if it is a comment alone."""
    found = _FIELD.match(line.strip())
    return (found[1], found[2].strip()) if found else None


def add_field(fields: dict[str, str], key: str, value: str) -> None:
    """Put a value with the others; a repeated key's values are joined by line feeds."""
    fields[key] = f"{fields[key]}\n{value}" if key in fields else value


def header_fields(lines: Iterable[str]) -> dict[str, str]:
    """What all lines of a header say."""
    fields: dict[str, str] = {}
    for line in lines:
        if (found := header_field(line)) is not None:
            add_field(fields, *found)
    return fields
