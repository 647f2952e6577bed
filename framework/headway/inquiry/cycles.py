"""The report of the last cycle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from headway.adapter import Outcome
from headway.decisions import Decision
from headway.events import Event
from headway.inquiry.inquiry import Inquiry, Sees, everything
from headway.inquiry.reports import CycleReport, DecisionReport

#: Decisions that are told one by one.
TOLD = 500


@dataclass(frozen=True)
class Cycle:
    """A cycle that is over."""

    #: Absolute seconds.
    now: float
    events: Sequence[Event]
    decisions: Sequence[Decision]
    #: What became of each decision.
    outcomes: Sequence[Outcome]
    #: Seconds of the whole cycle, and of the scheduler's step in it.
    seconds: float = 0.0
    step_seconds: float = 0.0


def cycle_report(inquiry: Inquiry, cycle: Cycle, sees: Sees = everything) -> CycleReport:
    """What happened in a cycle; of the decisions those are told that are about jobs that may be seen."""
    told = (
        decision_report(inquiry, decision, outcome)
        for decision, outcome in zip(cycle.decisions, cycle.outcomes, strict=True)
        if _may_be_told(inquiry, decision, sees)
    )
    return CycleReport(
        inquiry.scheduler.cycles,
        cycle.now,
        cycle.seconds,
        cycle.step_seconds,
        dict(Counter(type(event).__name__ for event in cycle.events)),
        dict(Counter(type(decision).__name__ for decision in cycle.decisions)),
        tuple(islice(told, TOLD)),
    )


def _may_be_told(inquiry: Inquiry, decision: Decision, sees: Sees) -> bool:
    """A decision about a job that has gone meanwhile is told to those who may see all jobs."""
    job_id = getattr(decision, "job_id", None)
    job = inquiry.state.jobs.get(job_id) if job_id else None
    return sees is everything or (job is not None and sees(job))


def decision_report(inquiry: Inquiry, decision: Decision, outcome: Outcome) -> DecisionReport:
    """A decision, and what became of it."""
    return DecisionReport(
        type(decision).__name__,
        getattr(decision, "job_id", None) or "",
        inquiry.told(getattr(decision, "reason", "")),
        outcome.accepted,
        inquiry.told(outcome.message),
    )
