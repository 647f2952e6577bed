"""How commands show what the rule book says; the options with which a run without a campaign answers it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console

    from headway.experiment.rulebook import Judged

_STYLES = {
    "refused": "red",
    "broken": "red",
    "not stated": "yellow",
    "left out": "yellow",
    "accepted": "yellow",
    "kept": "green",
}


def single_options(function: Any) -> Any:
    """The options ``--accept`` and ``--strict-method`` of a command that has no campaign to answer in; it is
    given ``accept`` for :func:`headway.experiment.answers.accepted`, and ``strict_method``."""
    for option in (
        click.option("--strict-method", is_flag=True,
                     help="Refuse (exit code 2) if a rule of the evaluation of schedulers is broken or not "
                     "answered."),
        click.option("--accept", multiple=True, metavar="RULE=REASON",
                     help="Accept a rule that is not kept, with the reason, or answer the question of a "
                          "rule; the reason is printed. Repeatable."),
    ):  # fmt: skip
        function = option(function)
    return function


def show_doubts(
    screen: Console, found: Sequence[Judged], measured: Mapping[str, float] | None = None
) -> None:
    """What one run, or one workload, breaks or leaves open: a line a rule, worst first; the others are
    counted. ``measured``: figures without warm-up and cool-down."""
    from headway.experiment.answers import doubts_table
    from headway.report.quantities import duration, number

    table = doubts_table(found)
    screen.print(f"\n{table.note}", markup=False)
    _print_rows(screen, table.rows)
    if measured is not None and not measured["measured jobs"]:
        screen.print("without warm-up and cool-down no job is left")
    elif measured is not None:
        jobs, wait = number(measured["measured jobs"]), duration(measured["mean wait"])
        slowdown = number(measured["mean bounded slowdown"])
        said = f"without warm-up and cool-down: {jobs} jobs, mean wait {wait}, bounded slowdown {slowdown}"
        screen.print(said, markup=False)


def show_rules(screen: Console, found: Sequence[Judged]) -> None:
    """A line for each rule, worst first; rules that do not apply are counted."""
    from headway.experiment.answers import rules_table

    table = rules_table(found)
    screen.print(table.note)
    _print_rows(screen, table.rows)


def _print_rows(screen: Console, rows: Sequence[Sequence[str]]) -> None:
    from rich.table import Table as ScreenTable
    from rich.text import Text

    if not rows:
        return
    shown = ScreenTable("rule", "", "", box=None, pad_edge=False, show_header=False)
    for name, outcome, text in rows:
        style = _STYLES.get(outcome, "")
        shown.add_row(name, Text(outcome, style=style), text)
    screen.print(shown)
