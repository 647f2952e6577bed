"""The rule book: what a campaign does right and wrong, by its definition, its workloads and its runs."""

from headway.experiment.rulebook.book import (
    RULES,
    Judged,
    Outcome,
    all_rules,
    as_data,
    breaches,
    excluded,
    judge,
)
from headway.experiment.rulebook.rule import Evidence, Finding, Kind, Rule, Stage, evidence_of, rule

__all__ = [
    "RULES",
    "Evidence",
    "Finding",
    "Judged",
    "Kind",
    "Outcome",
    "Rule",
    "Stage",
    "all_rules",
    "as_data",
    "breaches",
    "evidence_of",
    "excluded",
    "judge",
    "rule",
]
