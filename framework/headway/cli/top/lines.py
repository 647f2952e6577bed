"""Lines of a picture: texts of a width in the terminal's cells, in which nothing can command the terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from rich.cells import cell_len, set_cell_size

from headway.cli.printable import printable

Row = TypeVar("Row")


class Piece(NamedTuple):
    """A part of a line, and how it looks: a name of :data:`headway.cli.top.app.LOOKS`. Each look has the same
    meaning in words beside it, so that a terminal without colours tells as much."""

    text: str
    look: str = ""


Line = tuple[Piece, ...]


def line(text: str, look: str = "") -> Line:
    """A line of one look."""
    return (Piece(text, look),)


def plain(of: Line) -> str:
    """The text of a line."""
    return "".join(piece.text for piece in of)


def clean(text: str) -> str:
    """What a user or a program wrote, in one line and harmless."""
    return printable(text).replace("\n", " ").replace("\t", " ")


def fit(text: str, width: int, right: bool = False) -> str:
    """A text in exactly so many cells; what is cut off leaves a mark."""
    shown = clean(text)
    cells = cell_len(shown)
    if cells > width:
        return set_cell_size(shown, width - 1) + "…" if width > 0 else ""
    return " " * (width - cells) + shown if right else shown + " " * (width - cells)


def clipped(of: Line, width: int) -> Line:
    """A line in exactly so many cells."""
    made: list[Piece] = []
    left = width
    for piece in of:
        text = clean(piece.text)
        cells = cell_len(text)
        if cells > left:
            text, cells = set_cell_size(text, left), left
        if text:
            made.append(Piece(text, piece.look))
        left -= cells
    if left:
        made.append(Piece(" " * left))
    return tuple(made)


def wrapped(text: str, width: int, indent: str = "") -> list[str]:
    """A text folded between its words; ``indent`` begins its second and further lines."""
    made, now = [], ""
    for word in clean(text).split():
        if now.strip() and cell_len(now) + 1 + cell_len(word) > width:
            made.append(now)
            now = indent
        now = f"{now} {word}" if now.strip() else now + word
        while cell_len(now) > width:
            head = set_cell_size(now, width).rstrip()
            made.append(head)
            now = indent + now[len(head) :]
    return [*made, now] if now.strip() else made


@dataclass(frozen=True)
class Column(Generic[Row]):
    """A column of a table."""

    name: str
    cell: Callable[[Row], str]
    #: Cells, at most.
    most: int
    right: bool = False
    #: Where there is no room, columns with the highest number go first; 0: it stays.
    spare: int = 0


def table(
    columns: Sequence[Column[Row]], rows: Sequence[Row], width: int, least: int = 22
) -> tuple[str, list[str]]:
    """The head and the rows in so many cells. The last column has what the others leave: ``least`` cells, if
    enough columns are there that can be left out."""
    cells = {column.name: [clean(column.cell(row)) for row in rows] for column in columns}
    # A column that can be left out and in which nothing stands is.
    kept = [column for column in columns if not column.spare or any(cells[column.name])]

    def room(column: Column[Row]) -> int:
        return min(column.most, max(len(column.name), *map(cell_len, cells[column.name]), 0))

    def rest() -> int:
        return width - sum(room(column) + 1 for column in kept[:-1])

    while rest() < least and (spare := max(kept[:-1], key=lambda column: column.spare)).spare:
        kept.remove(spare)
    widths = [*map(room, kept[:-1]), max(1, rest())]

    def made(texts: Sequence[str]) -> str:
        parts = zip(texts, widths, kept, strict=True)
        return fit(" ".join(fit(text, wide, column.right) for text, wide, column in parts), width)

    return (
        made([column.name for column in kept]),
        [made([cells[column.name][at] for column in kept]) for at in range(len(rows))],
    )
