"""``--json`` of commands whose report is sentences and tables: what is printed, without its layout."""

from __future__ import annotations

import msgspec


class PrintedTable(msgspec.Struct, frozen=True):
    """A table as it is printed, with its figures in words and units for people."""

    #: "": it has none.
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Printed(msgspec.Struct, frozen=True):
    """What a command prints for people: its sentences, a line each, and its tables, both in their order."""

    sentences: tuple[str, ...]
    tables: tuple[PrintedTable, ...]
