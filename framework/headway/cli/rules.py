"""How commands show what the rule book says, and how a run without a campaign answers it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headway.errors import UserError

if TYPE_CHECKING:
    from rich.console import Console

    from headway.experiment.rulebook import Judged, Kind
    from headway.report.table import Table

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
    given ``accept`` for :func:`accepted`, and ``strict_method``."""
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


def accepted(said: Sequence[str]) -> dict[str, str]:
    """Rule -> reason, from ``--accept``; :class:`UserError` for what says no reason, and for a rule that is
    not one of workloads and runs."""
    from headway.experiment.rulebook import Stage, all_rules

    known = [one.name for one in all_rules() if one.stage in (Stage.WORKLOAD, Stage.RUN)]
    found = {}
    for text in said:
        name, equals, reason = text.partition("=")
        if not equals or not reason.strip():
            raise UserError(f"--accept: expected a rule and a reason, such as 14=included, found {text!r}")
        if name.strip() not in known:
            raise UserError(f"--accept: expected a rule ({', '.join(known)}), found {name.strip()!r}")
        found[name.strip()] = reason.strip()
    return found


def show_doubts(
    screen: Console, found: Sequence[Judged], measured: Mapping[str, float] | None = None
) -> None:
    """What one run, or one workload, breaks or leaves open: a line a rule, worst first; the others are
    counted. ``measured``: figures without warm-up and cool-down."""
    from headway.experiment.rulebook import Outcome, breaches
    from headway.report.quantities import duration, number

    shown = [*breaches(found), *(one for one in found if one.outcome is Outcome.ACCEPTED)]
    screen.print(f"\n{rules_table(found).note}", markup=False)
    _print_rows(screen, rules_table(shown).rows)
    if measured is not None and not measured["measured jobs"]:
        screen.print("without warm-up and cool-down no job is left")
    elif measured is not None:
        jobs, wait = number(measured["measured jobs"]), duration(measured["mean wait"])
        slowdown = number(measured["mean bounded slowdown"])
        said = f"without warm-up and cool-down: {jobs} jobs, mean wait {wait}, bounded slowdown {slowdown}"
        screen.print(said, markup=False)


def show_rules(screen: Console, found: Sequence[Judged]) -> None:
    """A line for each rule, worst first; rules that do not apply are counted."""
    table = rules_table(found)
    screen.print(table.note)
    _print_rows(screen, table.rows)


def _print_rows(screen: Console, rows: Sequence[Sequence[str]]) -> None:
    from rich.table import Table as ScreenTable

    if not rows:
        return
    shown = ScreenTable("rule", "", "", box=None, pad_edge=False, show_header=False)
    for name, outcome, text in rows:
        style = _STYLES.get(outcome, "")
        shown.add_row(name, f"[{style}]{outcome}[/]" if style else outcome, text.replace("[", r"\["))
    screen.print(shown)


def rules_table(found: Sequence[Judged]) -> Table:
    """A line a rule, worst first; its note counts them."""
    from headway.experiment.rulebook import Outcome, breaches, excluded
    from headway.report.table import Table

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


#: What a campaign can do about a rule, and a run without one.
_IN_CAMPAIGN = (
    "Change the campaign, answer under method, or accept a rule there with a reason (method.accept)"
)
ON_THE_SPOT = "Change the run, or accept a rule with a reason (--accept RULE=REASON)"


def refuse_breaches(
    found: Sequence[Judged],
    what: Path | str,
    worst: Kind | None = None,
    *,
    option: str = "--strict",
    remedy: str = _IN_CAMPAIGN,
) -> None:
    """Raise :class:`UserError` that names all rules that are broken or not answered, if there are any; with
    ``worst`` only if one of them refuses by itself."""
    from headway.experiment.rulebook import Kind, Outcome, breaches

    broken = breaches(found)
    how = f" ({option})"
    if worst is Kind.REFUSE:
        broken, how = [one for one in broken if one.outcome is Outcome.REFUSED], ""
    if broken:
        lines = "\n".join(f"  {one.rule.name} {one.rule.title}: {one}" for one in broken)
        count = f"{len(broken)} rules are" if len(broken) > 1 else "a rule is"
        raise UserError(f"{what}: {count} broken or not answered{how}. {remedy}:\n{lines}")
