"""Running a paper's experiments again, and saying claim by claim what was measured.

A reproduction is an object behind an entry point of the group ``headway.reproductions``: it has a
``title`` and a method ``run(context)`` that returns its claims. Verdicts come from confidence
intervals over seeds by one rule for all papers (:func:`verdict`), never from a tolerance around a
paper's number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from headway.experiment.campaign import Campaign, Row, run_campaign
from headway.experiment.statistics import Interval


@dataclass(frozen=True)
class Claim:
    """One claim of a paper beside our measurement."""

    where: str
    paper: str
    measured: str
    #: "yes", "in part" or "no"; "not run" with the reason in ``measured``.
    holds: str


@dataclass
class Context:
    """What a reproduction is given."""

    out: Path
    seeds: tuple[int, ...]
    workers: int
    #: Directory of real traces, if there is one.
    traces: Path | None
    #: Called with how many emulations a step has, and with how many more are done.
    on_plan: Callable[[str, int], None]
    on_done: Callable[[int], None]
    rows: list[tuple[str, list[Row]]]

    def run(self, name: str, campaign: Campaign) -> list[Row]:
        """Run one experiment and keep its rows for the record."""
        self.on_plan(name, campaign.size())
        rows = run_campaign(campaign, workers=self.workers, on_done=self.on_done)
        self.rows.append((name, rows))
        return rows


class Reproduction(Protocol):
    """A paper's experiments."""

    title: str

    def run(self, context: Context) -> list[Claim]: ...


def verdict(improvements: Sequence[Interval]) -> str:
    """Whether "better" holds over several points, each an improvement with its interval.

    "yes": significantly better at some point, significantly worse at none; "no": significantly
    better at none; "in part": both occur.
    """
    better = any(point.low > 0 for point in improvements)
    worse = any(point.high < 0 for point in improvements)
    if not better:
        return "no"
    return "in part" if worse else "yes"


def claims_table(claims: Sequence[Claim]) -> str:
    """The claims as a Markdown table."""
    lines = ["| where | the paper says | we measured | holds? |", "|---|---|---|---|"]
    lines += [f"| {c.where} | {c.paper} | {c.measured} | {c.holds} |" for c in claims]
    return "\n".join(lines) + "\n"
