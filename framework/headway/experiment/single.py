"""The rule book on one run, and on one workload: what a dry run and the study of a trace can be held to.

The rules are the rules of campaigns (:mod:`headway.experiment.rulebook`) in the stages that can be judged
without a comparison. The evidence is a campaign of one policy on one workload with one seed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from headway.experiment.campaign import Campaign, Row, Scenario, Variant
from headway.experiment.facts import WorkloadFacts
from headway.experiment.measured import common_window, figures, observed
from headway.experiment.method import Method, Trim
from headway.experiment.rulebook import Evidence, Judged, Stage, all_rules, as_data, judge
from headway.experiment.rulebook.rule import VariantFacts, facts_of_variant
from headway.experiment.steady import Window

if TYPE_CHECKING:
    from headway.metrics import Figures
    from headway.plugins import Catalogue, PluginConfig
    from headway.results import RunResult

#: What is measured of one run: a campaign's default.
AUTOMATIC = Trim(automatic=True)


@dataclass(frozen=True)
class Trusted:
    """How far one run, or one workload, may be trusted."""

    #: What the rules say, worst first.
    judged: Sequence[Judged]
    #: The jobs that a campaign would measure of this run; None: nothing has run.
    window: Window | None = None
    #: Figures over these.
    measured: Mapping[str, float] | None = None

    def data(self) -> dict[str, Any]:
        """As ``metrics.json`` and ``analysis.json`` have it."""
        found: dict[str, Any] = {"rules": as_data(self.judged)}
        if self.window is None or self.measured is None:
            return found
        values = {_KEYS[name]: self.measured[name] for name in _KEYS}
        plain = {key: value if value == value else None for key, value in values.items()}
        return {"measured": {"first": self.window.first, "last": self.window.last, **plain}, **found}


#: Figures over the measured jobs that are written, and their keys there.
_KEYS = {
    "measured jobs": "jobs",
    "mean wait": "mean_wait",
    "median wait": "median_wait",
    "mean bounded slowdown": "mean_bounded_slowdown",
    "geometric mean bounded slowdown": "geometric_mean_bounded_slowdown",
    "offered load": "offered_load",
    "achieved load": "achieved_load",
    "queued deficit": "queued_deficit",
}


@dataclass(frozen=True)
class One:
    """What is run: one policy on one workload."""

    label: str
    plugins: tuple[PluginConfig, ...]
    facts: WorkloadFacts
    #: Rule -> why it is not kept here.
    accept: Mapping[str, str]

    def before(self, catalogue: Catalogue) -> Trusted:
        """What the rules on workloads say."""
        return self._trusted(catalogue, (), (Stage.WORKLOAD,))

    def after(self, result: RunResult, catalogue: Catalogue, *, known: Figures | None = None) -> Trusted:
        """What the rules on workloads and on runs say of this run; ``known``: its figures."""
        course = observed(result, known=known, by_holder=False)
        window = common_window([course], self._method)
        measured = figures(course, window)
        row = Row("", 1.0, self.label, result.seed, measured.values, measured.batches, self.facts)
        found = self._trusted(catalogue, (row,), (Stage.WORKLOAD, Stage.RUN))
        return replace(found, window=window, measured=measured.values)

    @property
    def _method(self) -> Method:
        return Method(warmup=AUTOMATIC, cooldown=AUTOMATIC, accept=self.accept)

    def _trusted(self, catalogue: Catalogue, rows: Sequence[Row], stages: Iterable[Stage]) -> Trusted:
        variant = Variant(self.label, self.plugins)
        traits = facts_of_variant(variant, catalogue)
        return _judged(variant, traits, self.facts, rows, self._method, stages)


def trusted_workload(facts: WorkloadFacts, accept: Mapping[str, str]) -> Trusted:
    """What the rules on workloads say of one that nothing schedules yet, as if a policy that reads estimates
    were to."""
    traits = VariantFacts("", (), False, True, frozenset(), "", 1, {})
    return _judged(Variant("", ()), traits, facts, (), Method(accept=accept), (Stage.WORKLOAD,))


def _judged(
    variant: Variant,
    traits: VariantFacts,
    facts: WorkloadFacts,
    rows: Sequence[Row],
    method: Method,
    stages: Iterable[Stage],
) -> Trusted:
    rules = [one for one in all_rules() if one.stage in stages]
    names = {one.name for one in rules}
    accept = {name: reason for name, reason in method.accept.items() if name in names}
    scenario = Scenario("", 1.0, facts.processors)
    campaign = Campaign((variant,), (scenario,), (0,), replace(method, accept=accept))
    return Trusted([_placeless(one) for one in judge(Evidence(campaign, (traits,), (facts,), rows), rules)])


def _placeless(one: Judged) -> Judged:
    """There is but one place that a finding can be of."""
    findings = (replace(finding, scenario="", x=None, variant="") for finding in one.findings)
    return replace(one, findings=tuple(findings))
