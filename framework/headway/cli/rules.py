"""How commands show what the rule book says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table as ScreenTable

from headway.errors import UserError

if TYPE_CHECKING:
    from headway.experiment.rulebook import Judged, Kind
    from headway.report.campaign import Table

_STYLES = {
    "refused": "red",
    "broken": "red",
    "not stated": "yellow",
    "left out": "yellow",
    "accepted": "yellow",
    "kept": "green",
}


def show_rules(screen: Console, found: Sequence[Judged]) -> None:
    """A line a rule, worst first; those that do not apply are counted."""
    table = rules_table(found)
    shown = ScreenTable("rule", "", "", box=None, pad_edge=False, show_header=False)
    for name, outcome, text in table.rows:
        style = _STYLES.get(outcome, "")
        shown.add_row(name, f"[{style}]{outcome}[/]" if style else outcome, text.replace("[", r"\["))
    screen.print(table.note)
    screen.print(shown)


def rules_table(found: Sequence[Judged]) -> Table:
    """A line a rule, worst first; its note counts them."""
    from headway.experiment.rulebook import Outcome, breaches, excluded
    from headway.report.campaign import Table

    rows = [
        (one.rule.name, str(one.outcome), f"{one.rule.title}: {one}")
        for one in found
        if one.outcome not in (Outcome.OTHER, Outcome.UNKNOWN)
    ]
    count = sum(one.outcome is Outcome.KEPT for one in found)
    later = sum(one.outcome is Outcome.UNKNOWN for one in found)
    points = len(excluded(found))
    note = (
        f"How far to trust this: {count} rules kept, {len(breaches(found))} broken or not answered"
        + (f", {points} points left out" if points else "")
        + (f", {later} need the runs" if later else "")
    )
    return Table("Rules", ("rule", "", ""), rows, 3, note)


def refuse_breaches(found: Sequence[Judged], what: Path, worst: Kind | None = None) -> None:
    """Raise :class:`UserError` that names all rules that are broken or not answered, if there are any; with
    ``worst`` only if one of them refuses by itself."""
    from headway.experiment.rulebook import Kind, Outcome, breaches

    broken = breaches(found)
    how = " (--strict)"
    if worst is Kind.REFUSE:
        broken, how = [one for one in broken if one.outcome is Outcome.REFUSED], ""
    if broken:
        lines = "\n".join(f"  {one.rule.name} {one.rule.title}: {one}" for one in broken)
        count = f"{len(broken)} rules are" if len(broken) > 1 else "a rule is"
        raise UserError(
            f"{what}: {count} broken or not answered{how}. Change the campaign, answer under method, or "
            f"accept a rule there with a reason (method.accept):\n{lines}"
        )
