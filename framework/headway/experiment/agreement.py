"""Whether two ways of making a workload put the policies of a campaign in the same order.

Two standard measures. *Kendall's tau* (M. G. Kendall, "A new measure of rank correlation", Biometrika 30,
1938; tau-b, which allows for ties): of one sample, the policies by a metric in a scenario against the
same policies in another scenario; 1 is the same order, -1 the reverse. *Pairs of policies*: which of the
pairs that differ significantly in the first scenario (pair by pair over the samples, as the rule book's
verdicts) do so in the other, and to which side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from headway.experiment.campaign import Row
from headway.experiment.rulebook import Evidence
from headway.experiment.rulebook.comparisons import verdicts

#: Scenario, x and variant of points that no verdict is given on -> why (:func:`excluded` of the rule book).
Excluded = Mapping[tuple[str, float, str], str]
#: The verdicts that name a side.
DECIDED = ("less", "more")


@dataclass(frozen=True)
class Pairs:
    """Of the pairs of policies that differ significantly in one scenario: what the other says of them."""

    decided: int
    #: They differ there, too, and to the same side; to the other side.
    same: int
    reversed: int

    def __str__(self) -> str:
        return f"{self.same} of {self.decided}" + (f", {self.reversed} reversed" if self.reversed else "")


def kendall(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Kendall's tau-b of two lists of values of the same policies; NaN of fewer than two, or if one list has
    the same value throughout."""
    if len(ours) < 2 or np.ptp(ours) == 0 or np.ptp(theirs) == 0:
        return float("nan")
    from scipy import stats

    return float(stats.kendalltau(ours, theirs).statistic)


def orders(
    rows: Sequence[Row], scenario: str, metric: str, variants: Sequence[str]
) -> dict[int, list[float]]:
    """Sample (seed) -> the metric of each of these variants, in their order."""
    found: dict[int, dict[str, float]] = {}
    for row in rows:
        if row.scenario == scenario:
            found.setdefault(row.seed, {})[row.variant] = row.values[metric]
    return {seed: [values[name] for name in variants] for seed, values in sorted(found.items())}


def taus(
    rows: Sequence[Row], scenario: str, other: str, metric: str, variants: Sequence[str]
) -> dict[int, float]:
    """Sample -> tau of the variants' order in one scenario and in the other, where both have the sample."""
    ours, theirs = orders(rows, scenario, metric, variants), orders(rows, other, metric, variants)
    return {seed: kendall(ours[seed], theirs[seed]) for seed in ours if seed in theirs}


def decisions(evidence: Evidence, metric: str, left_out: Excluded) -> dict[tuple[str, str, str], str]:
    """(scenario, a, b) -> "less" or "more" for each pair of variants of which a is significantly less, or
    more, than b by the rule book. Scenarios have one x each."""
    found = {}
    campaign = evidence.campaign
    for ours, base in combinations(campaign.variants, 2):
        pair = replace(
            evidence,
            campaign=replace(campaign, variants=(base, ours)),
            rows=[row for row in evidence.rows if row.variant in (base.label, ours.label)],
        )
        for one in verdicts(pair, left_out, [metric]):
            if one.says in DECIDED:
                found[one.scenario, ours.label, base.label] = one.says
    return found


def pairs(decided: Mapping[tuple[str, str, str], str], scenario: str, other: str) -> Pairs:
    """What ``other`` says of the pairs that are decided in ``scenario``."""
    wanted = {(a, b): says for (name, a, b), says in decided.items() if name == scenario}
    says = [(said, decided.get((other, a, b))) for (a, b), said in wanted.items()]
    return Pairs(
        len(says), sum(one == two for one, two in says), sum(two not in (one, None) for one, two in says)
    )
