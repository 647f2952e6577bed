"""What a rule of the rule book is, what it is shown and what it finds.

E. Frachtenberg and D. G. Feitelson, "Pitfalls in parallel job scheduling evaluation", JSSPP 2005, list 32
ways in which an evaluation of a scheduler goes wrong. Each is a :class:`Rule`: a function of
:class:`Evidence` (a campaign's definition, and what is known of its workloads and runs) that yields
:class:`Finding` s. The list is advice that depends on context (the authors say so), so a campaign can
accept what a rule finds with a reason, which is printed.

Rules are found in :data:`headway.experiment.rulebook.RULES` and by entry point (group ``headway.rules``: a
:class:`Rule`, or several).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum

from headway.decisions import Decision
from headway.experiment.campaign import Campaign, Row, Variant
from headway.experiment.facts import WorkloadFacts
from headway.plugins import Catalogue, PluginConfig, options_model, traits_of
from headway.plugins.hook_names import hooks_of

#: Hooks of the plugins that may look at estimates; a plugin that only places jobs does not.
_LOOKING = {"schedule", "order_queue", "queue_key", "prepare", "predict_runtime", "control", "revise"}


class Stage(StrEnum):
    """What a rule needs to know."""

    DEFINITION = "definition"
    WORKLOAD = "workload"
    #: Of each run by itself.
    RUN = "run"
    #: Of all runs together.
    COMPARISON = "comparison"


class Kind(IntEnum):
    """What follows from a finding; the worst is the largest."""

    #: The rule is kept; with the numbers.
    KEPT = 0
    #: Something to know. Not a breach.
    NOTE = 1
    #: A question that the definition does not answer.
    ASK = 2
    #: Something that makes results doubtful.
    WARN = 3
    #: Run, but left out of all verdicts.
    EXCLUDE = 4
    #: Not run.
    REFUSE = 5


@dataclass(frozen=True)
class Finding:
    """What a rule says of one campaign, or of a part of it."""

    kind: Kind
    message: str
    #: Which part; "" and None: all.
    scenario: str = ""
    x: float | None = None
    variant: str = ""
    #: Figures behind the message, by name.
    numbers: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class VariantFacts:
    """What is known of a variant's plugins: their traits, and how they are configured."""

    label: str
    plugins: tuple[PluginConfig, ...]
    #: One of them lets jobs overtake.
    backfills: bool
    #: One of them reads estimates, or may do so.
    reads_estimates: bool
    #: Decision types that they need.
    needs: frozenset[type[Decision]]
    #: How jobs run on more or fewer processors, where one of them says so.
    speedup: str
    #: Levels of multiprogramming; 1: a processor has one process.
    levels: int
    #: Options that are there to be tuned: (plugin, option) -> value.
    tunable: Mapping[tuple[str, str], object]


@dataclass(frozen=True)
class Evidence:
    """What is known of a campaign: nothing but its definition, or its workloads too, or all its runs."""

    campaign: Campaign
    traits: Sequence[VariantFacts]
    #: One of each scenario and seed; empty: they were not looked at.
    workloads: Sequence[WorkloadFacts] = ()
    #: Empty: nothing has run.
    rows: Sequence[Row] = ()

    @property
    def models(self) -> list[WorkloadFacts]:
        return [facts for facts in self.workloads if not facts.recorded]

    @property
    def recorded(self) -> list[WorkloadFacts]:
        return [facts for facts in self.workloads if facts.recorded]

    def points(self) -> Iterator[tuple[str, float, str, list[Row]]]:
        """Scenario, x, variant and their rows, in order of seed."""
        found: dict[tuple[str, float, str], list[Row]] = {}
        for row in self.rows:
            found.setdefault((row.scenario, row.x, row.variant), []).append(row)
        for (scenario, x, variant), rows in found.items():
            yield scenario, x, variant, sorted(rows, key=lambda row: row.seed)


@dataclass(frozen=True)
class Rule:
    """One rule."""

    #: The pitfall's number in the paper; E1, ... and G1, ... are others. Keys of ``method.accept``.
    name: str
    #: The pitfall, in a few words.
    title: str
    #: What keeps the rule, in a sentence.
    keep: str
    #: 3: gravest.
    severity: int
    stage: Stage
    check: Callable[[Evidence], Iterable[Finding]]


def rule(
    name: str, title: str, keep: str, *, severity: int, stage: Stage
) -> Callable[[Callable[[Evidence], Iterable[Finding]]], Rule]:
    """A :class:`Rule` from its check; without a finding it does not apply."""

    def made(check: Callable[[Evidence], Iterable[Finding]]) -> Rule:
        return Rule(name, title, keep, severity, stage, check)

    return made


def facts_of_variant(variant: Variant, catalogue: Catalogue) -> VariantFacts:
    """What the variant's plugins say of themselves."""
    plugins = tuple(catalogue.expanded(variant.plugins))
    classes = [(config, catalogue.get(config.name, config.where)) for config in plugins]
    studies = [traits_of(kind).study for _, kind in classes]
    tunable: dict[tuple[str, str], object] = {}
    for (config, kind), study in zip(classes, studies, strict=True):
        option, _ = study.tunable
        if option:
            model = options_model(kind)
            default = model.model_fields[option].default if model is not None else None
            tunable[config.name, option] = config.options.get(option, default)
    return VariantFacts(
        label=variant.label,
        plugins=plugins,
        backfills=any(study.backfills for study in studies),
        reads_estimates=any(
            bool(_LOOKING & set(hooks_of(kind))) if study.estimates is None else study.estimates
            for (_, kind), study in zip(classes, studies, strict=True)
        ),
        needs=frozenset(need for _, kind in classes for need in traits_of(kind).needs),
        speedup=next((study.speedup for study in studies if study.speedup), ""),
        levels=max((study.levels for study in studies), default=1),
        tunable=tunable,
    )


def evidence_of(
    campaign: Campaign,
    catalogue: Catalogue,
    *,
    workloads: Sequence[WorkloadFacts] = (),
    rows: Sequence[Row] = (),
) -> Evidence:
    """What the rules are shown; the workloads of the rows beside the given workloads."""
    known = {(facts.scenario, facts.x, facts.seed): facts for facts in workloads}
    for row in rows:
        if row.facts is not None:
            known[row.scenario, row.x, row.seed] = row.facts
    traits = [facts_of_variant(variant, catalogue) for variant in campaign.variants]
    return Evidence(campaign, traits, list(known.values()), rows)
