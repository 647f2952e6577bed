"""What the rule book says of a campaign or a run, as a table and as a refusal; how a run without a campaign
answers it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from headway.errors import UserError
from headway.experiment.rulebook import Judged, Kind, Outcome, Stage, all_rules, breaches, excluded
from headway.report.table import Table


def accepted(said: Sequence[str], *, of_runs: bool = True) -> dict[str, str]:
    """Rule -> reason, from ``--accept``; :class:`UserError` for what says no reason, and for what is no rule,
    or, with ``of_runs``, not one of workloads and runs."""
    known = [one.name for one in all_rules() if not of_runs or one.stage in (Stage.WORKLOAD, Stage.RUN)]
    found = {}
    for text in said:
        name, equals, reason = text.partition("=")
        if not equals or not reason.strip():
            raise UserError(f"--accept: expected a rule and a reason, such as 14=included, found {text!r}")
        if name.strip() not in known:
            raise UserError(f"--accept: expected a rule ({', '.join(known)}), found {name.strip()!r}")
        found[name.strip()] = reason.strip()
    return found


def rules_table(found: Sequence[Judged]) -> Table:
    """A line a rule, worst first; its note counts them."""
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


def doubts_table(found: Sequence[Judged]) -> Table:
    """A line for each rule that is broken, not answered or accepted, worst first; its note counts all."""
    shown = [*breaches(found), *(one for one in found if one.outcome is Outcome.ACCEPTED)]
    return replace(rules_table(found), rows=rules_table(shown).rows)


#: What a campaign can do about a rule, and a run without one.
_IN_CAMPAIGN = (
    "Change the campaign, answer under method, or accept a rule there with a reason (method.accept)"
)
_ON_THE_SPOT = "Change the run, or accept a rule with a reason (--accept RULE=REASON)"


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
    broken = breaches(found)
    how = f" ({option})"
    if worst is Kind.REFUSE:
        broken, how = [one for one in broken if one.outcome is Outcome.REFUSED], ""
    if broken:
        lines = "\n".join(f"  {one.rule.name} {one.rule.title}: {one}" for one in broken)
        count = f"{len(broken)} rules are" if len(broken) > 1 else "a rule is"
        raise UserError(f"{what}: {count} broken or not answered{how}. {remedy}:\n{lines}")


def refuse_without_campaign(found: Sequence[Judged], what: str) -> None:
    """The same of a run, or a workload, that has no campaign to answer in (``--strict-method``)."""
    refuse_breaches(found, what, option="--strict-method", remedy=_ON_THE_SPOT)
