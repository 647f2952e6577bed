"""Where a command's sentences and tables go instead of standard output, while ``--json`` collects them."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table as ScreenTable


class Collector:
    """Takes what is printed on :func:`headway.cli.common.console` and by :func:`headway.cli.common.say`."""

    #: As a console that is no terminal has it.
    is_terminal = False
    width = 120

    def __init__(self) -> None:
        self.sentences: list[str] = []
        #: Title, heads and rows of each table.
        self.tables: list[tuple[str, tuple[str, ...], tuple[tuple[str, ...], ...]]] = []
        #: What the shape of the command has beside sentences and tables.
        self.figures: dict[str, Any] = {}

    def __bool__(self) -> bool:
        return bool(self.sentences or self.tables or self.figures)

    def print(self, *objects: Any, **_: Any) -> None:
        """What a console prints: texts, tables, and groups of them."""
        from rich.console import Group
        from rich.table import Table as ScreenTable

        for one in objects:
            if isinstance(one, ScreenTable):
                self._table(one)
            elif isinstance(one, Group):
                self.print(*one.renderables)
            else:
                self.say(_plain(one))

    def say(self, text: str) -> None:
        """Sentences, a line each."""
        self.sentences.extend(line.strip() for line in text.splitlines() if line.strip())

    def _table(self, table: ScreenTable) -> None:
        columns = [[_plain(cell) for cell in column.cells] for column in table.columns]
        heads = tuple(_plain(column.header) for column in table.columns)
        self.tables.append((_plain(table.title or ""), heads, tuple(zip(*columns, strict=True))))
        self.say(_plain(table.caption or ""))


#: The collector of the command that runs now, if it was called with ``--json``.
COLLECTOR: ContextVar[Collector | None] = ContextVar("collector", default=None)


def note(**figures: Any) -> None:
    """Put numbers beside the sentences and tables of a document (:mod:`headway.cli.figured`); where none is
    made: nothing."""
    if (collector := COLLECTOR.get()) is not None:
        collector.figures.update(figures)


def _plain(shown: Any) -> str:
    """The text of what a console prints, without colours."""
    from rich.console import Console
    from rich.text import Text

    if isinstance(shown, Text):
        return shown.plain
    if isinstance(shown, str):
        return shown
    plain = Console(width=Collector.width, color_system=None, force_terminal=False)
    with plain.capture() as text:
        plain.print(shown)
    return text.get()
