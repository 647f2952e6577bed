"""The rule book: all rules, and what they say of a campaign."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from headway.errors import UserError
from headway.experiment.rulebook import comparisons, definitions, runs, workloads
from headway.experiment.rulebook.rule import Evidence, Finding, Kind, Rule, Stage
from headway.inputs.entry_points import entry_points

#: Entry points of further rules.
GROUP = "headway.rules"

#: The rules that come with headway.
RULES: tuple[Rule, ...] = (*definitions.RULES, *workloads.RULES, *runs.RULES, *comparisons.RULES)


class Outcome(StrEnum):
    """What became of a rule, worst first."""

    REFUSED = "refused"
    BROKEN = "broken"
    NOT_STATED = "not stated"
    #: Points are left out of all verdicts, and others are left.
    EXCLUDED = "left out"
    ACCEPTED = "accepted"
    NOTED = "noted"
    KEPT = "kept"
    UNKNOWN = "not known yet"
    OTHER = "does not apply"


#: Outcomes that strictness does not let pass.
BREACHES = (Outcome.REFUSED, Outcome.BROKEN, Outcome.NOT_STATED)


@dataclass(frozen=True)
class Judged:
    """A rule, and what it says of a campaign."""

    rule: Rule
    outcome: Outcome
    #: Worst first.
    findings: tuple[Finding, ...]
    #: Why it is accepted.
    reason: str = ""

    def __str__(self) -> str:
        """A line: the worst finding, and how many more there are."""
        if not self.findings:
            return self.rule.keep
        worst = self.findings[0]
        x = "" if worst.x is None else f"{worst.x:g}"
        where = ", ".join(part for part in (worst.scenario, x, worst.variant) if part)
        more = sum(one.kind == worst.kind for one in self.findings) - 1
        others = f" (and {more} more)" if more else ""
        reason = f" — accepted: {self.reason}" if self.outcome is Outcome.ACCEPTED else ""
        return f"{where + ': ' if where else ''}{worst.message}{others}{reason}"


def all_rules() -> tuple[Rule, ...]:
    """headway's rules and the installed rules; :class:`UserError` for two of one name."""
    found = {one.name: one for one in RULES}
    for entry in entry_points(group=GROUP):
        loaded = entry.load()
        for one in (loaded,) if isinstance(loaded, Rule) else tuple(loaded):
            if one.name in found:
                raise UserError(f"rule {one.name!r} ({entry.value}): a rule of that name is there already")
            found[one.name] = one
    return tuple(found.values())


def judge(evidence: Evidence, rules: Iterable[Rule] | None = None) -> list[Judged]:
    """What each rule says, worst first.

    Raises :class:`UserError` if the campaign accepts a rule that does not exist.
    """
    rules = all_rules() if rules is None else tuple(rules)
    known = {one.name for one in rules}
    accepted = evidence.campaign.method.accept
    for name in accepted:
        if name not in known:
            raise UserError(f"method.accept: expected rules ({', '.join(sorted(known))}), found {name!r}")
    found = [_judged(one, evidence, accepted.get(one.name, "")) for one in rules]
    order = list(Outcome)
    return sorted(found, key=lambda one: (order.index(one.outcome), -one.rule.severity))


def _judged(one: Rule, evidence: Evidence, reason: str) -> Judged:
    if (one.stage is Stage.WORKLOAD and not evidence.workloads) or (
        one.stage in (Stage.RUN, Stage.COMPARISON) and not evidence.rows
    ):
        return Judged(one, Outcome.UNKNOWN, ())
    findings = tuple(sorted(one.check(evidence), key=lambda finding: -finding.kind))
    if not findings:
        return Judged(one, Outcome.OTHER, ())
    worst = findings[0].kind
    if worst is Kind.KEPT:
        return Judged(one, Outcome.KEPT, findings)
    if worst is Kind.NOTE:
        return Judged(one, Outcome.NOTED, findings)
    if reason:
        return Judged(one, Outcome.ACCEPTED, findings, reason)
    if worst is Kind.REFUSE:
        return Judged(one, Outcome.REFUSED, findings)
    if worst is Kind.EXCLUDE and _something_left(evidence, findings):
        # What is said of the points that are left counts as if the others were not there.
        rest = tuple(finding for finding in findings if finding.kind is not Kind.EXCLUDE)
        if not rest or rest[0].kind in (Kind.KEPT, Kind.NOTE):
            return Judged(one, Outcome.EXCLUDED, findings)
        worst, findings = rest[0].kind, (*rest, *findings[: len(findings) - len(rest)])
    return Judged(one, Outcome.NOT_STATED if worst is Kind.ASK else Outcome.BROKEN, findings)


def _something_left(evidence: Evidence, findings: Sequence[Finding]) -> bool:
    """Whether some variant can still be compared with the first somewhere (or there is but one, and a point
    of it)."""
    out = {(one.scenario, one.x, one.variant) for one in findings if one.kind is Kind.EXCLUDE}
    base = evidence.campaign.variants[0].label
    others = [variant.label for variant in evidence.campaign.variants if variant.label != base] or [base]
    return any(
        not out & {(scenario, x, base), (scenario, x, other)}
        for scenario, x, variant, _ in evidence.points()
        if variant == base
        for other in others
    )


def breaches(found: Sequence[Judged]) -> list[Judged]:
    """The findings that strictness does not let pass."""
    return [one for one in found if one.outcome in BREACHES]


def excluded(found: Sequence[Judged]) -> dict[tuple[str, float, str], str]:
    """Points (scenario, x, variant) that no verdict is given on, and why."""
    points: dict[tuple[str, float, str], str] = {}
    for one in found:
        if one.outcome is Outcome.ACCEPTED:
            continue
        for finding in one.findings:
            if finding.kind is Kind.EXCLUDE and finding.x is not None:
                key = (finding.scenario, finding.x, finding.variant)
                points.setdefault(key, f"rule {one.rule.name}, {one.rule.title}")
    return points


def as_data(found: Sequence[Judged]) -> list[dict[str, Any]]:
    """What the rules found as plain values, with the numbers; one that does not exist is None."""
    return [
        {
            "rule": one.rule.name,
            "title": one.rule.title,
            "severity": one.rule.severity,
            "outcome": str(one.outcome),
            "reason": one.reason,
            "findings": [
                {
                    "kind": finding.kind.name.lower(),
                    "scenario": finding.scenario,
                    "x": finding.x,
                    "variant": finding.variant,
                    "message": finding.message,
                    "numbers": {name: _finite(value) for name, value in finding.numbers.items()},
                }
                for finding in one.findings
            ],
        }
        for one in found
    ]


def _finite(value: float) -> float | None:
    number = float(value)
    return number if abs(number) < float("inf") else None
