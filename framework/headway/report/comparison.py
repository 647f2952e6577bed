"""Runs side by side: which figures are compared, and the terminal's table of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from headway.metrics import Summary
from headway.report import quantities

#: Column title, how to get it from a summary, how to write it, and which value is best.
Column = tuple[str, tuple[str, ...], Callable[[float | None], str], str]
COMPARED: tuple[Column, ...] = (
    ("jobs", ("counts", "finished"), quantities.number, ""),
    ("mean wait", ("jobs", "wait", "mean"), quantities.duration, "low"),
    ("median wait", ("jobs", "wait", "median"), quantities.duration, "low"),
    ("p95 wait", ("jobs", "wait", "p95"), quantities.duration, "low"),
    ("mean bounded slowdown", ("jobs", "bounded_slowdown", "mean"), quantities.number, "low"),
    ("utilisation", ("system", "utilisation"), quantities.share, "high"),
    ("makespan", ("system", "makespan"), quantities.duration, "low"),
    ("lost capacity", ("system", "lost_capacity"), quantities.share, "low"),
)
#: The further columns where runs have an energy profile.
_ENERGY: tuple[Column, ...] = (
    ("energy", ("energy", "total"), quantities.joules, "low"),
    ("peak power", ("energy", "peak_power"), quantities.watts, "low"),
)


#: The titles of :data:`COMPARED` as a terminal's table has them: in two lines.
_HEADINGS = {
    "jobs": "jobs",
    "mean wait": "mean\nwait",
    "median wait": "median\nwait",
    "p95 wait": "p95\nwait",
    "mean bounded slowdown": "bounded\nslowdown",
    "utilisation": "utili-\nsation",
    "makespan": "make-\nspan",
    "lost capacity": "lost\ncapacity",
    "energy": "energy",
    "peak power": "peak\npower",
}


def compared_columns(summaries: Sequence[Summary]) -> tuple[Column, ...]:
    """:data:`COMPARED`, and energy where there is any."""
    energies = [summary["energy"] for summary in summaries if summary["energy"] is not None]
    if not energies:
        return COMPARED
    if all(energy["absolute"] for energy in energies):
        return COMPARED + _ENERGY
    return COMPARED + tuple((title, path, quantities.relative, best) for title, path, _, best in _ENERGY)


def compared(
    summaries: Sequence[Summary], duration: Callable[[float | None], str] = quantities.duration
) -> list[list[tuple[str, bool]]]:
    """One row a summary, one pair a column of :func:`compared_columns`: the text, and whether it is the best.

    Durations are written by ``duration``. What looks the same is equally good; where all are equal,
    none is marked.
    """
    columns = []
    for _, path, write, best in compared_columns(summaries):
        if write is quantities.duration:
            write = duration
        values = [_at(summary, path) for summary in summaries]
        texts = [write(value) for value in values]
        known = [v for v in values if v is not None]
        winner = ""
        if best and known and len(set(texts)) > 1:
            winner = write(min(known) if best == "low" else max(known))
        columns.append([(text, bool(winner) and text == winner) for text in texts])
    return [list(row) for row in zip(*columns, strict=True)]


def compare_table(summaries: Sequence[Summary]) -> Table:
    """Runs as rows, what matters most as columns; the best of each column is bold, with a star.

    80 columns wide at most where the runs' labels have no more than 13 characters and none has energy.
    """
    table = Table(
        box=box.SIMPLE_HEAD, header_style="bold", show_edge=False, padding=0, caption_justify="left",
    )  # fmt: skip
    table.add_column("policy", no_wrap=True, vertical="bottom")
    for title, *_ in compared_columns(summaries):
        # The blank stands above the stars.
        heading = "\n".join(f"{line} " for line in _HEADINGS[title].split("\n"))
        table.add_column(heading, justify="right", no_wrap=True, vertical="bottom")
    for summary, row in zip(summaries, compared(summaries, quantities.compact), strict=True):
        cells = [Text(f"{text}*", style="bold green") if best else Text(f"{text} ") for text, best in row]
        table.add_row(Text(summary["run"]["label"]), *cells)
    if len(summaries) > 1:
        table.caption = "* best of its column"
    return table


def _at(summary: Summary, path: Sequence[str]) -> float | None:
    value: Any = summary
    for key in path:
        value = None if value is None else value[key]
    return value
