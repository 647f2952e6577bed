"""Running a paper's experiments again, and saying claim by claim what was measured.

A reproduction is an object behind an entry point of the group ``headway.reproductions``: it has a
``title`` and a method ``run(context)`` that returns its claims. Verdicts come from confidence
intervals over seeds by one rule for all papers: :func:`verdict` for the direction, :func:`size_verdict`
beside a paper's number, never from a tolerance around it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from headway.experiment.campaign import Campaign, Row, read_rows, run_campaign
from headway.experiment.statistics import Interval


@dataclass(frozen=True)
class Claim:
    """One claim of a paper beside our measurement."""

    where: str
    paper: str
    measured: str
    #: Whether its direction holds: "yes", "in part" or "no"; "not run" with the reason in ``measured``.
    holds: str
    #: How what we measured compares with the paper's figure (:func:`size_verdict`); "" if it has none.
    size: str = ""


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
    #: Directory with rows of earlier runs, which are taken instead of running the same again.
    kept: Path | None = None

    def run(self, name: str, campaign: Campaign) -> list[Row]:
        """Run one experiment, unless its rows are there already, and keep its rows for the record."""
        self.on_plan(name, campaign.size())
        rows = self._rows_of_before(name, campaign)
        if rows:
            self.on_done(len(rows))
        else:
            rows = run_campaign(campaign, workers=self.workers, on_done=self.on_done)
        self.rows.append((name, rows))
        return rows

    def _rows_of_before(self, name: str, campaign: Campaign) -> list[Row]:
        """The rows that are kept of just this experiment; none if there are not all."""
        path = self.kept / f"{name}.csv" if self.kept is not None else None
        if path is None or not path.is_file():
            return []
        rows = read_rows(path)
        wanted = {
            (scenario.label, scenario.x, variant.label, seed)
            for scenario in campaign.scenarios
            for variant in campaign.variants
            for seed in campaign.seeds
        }
        found = {(row.scenario, row.x, row.variant, row.seed) for row in rows}
        return rows if found == wanted and len(rows) == len(wanted) else []


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


def size_verdict(published: float, measured: Interval) -> str:
    """How large an improvement is beside the published one, both in percent.

    "as published" if the confidence interval contains the published figure, else "smaller" or "larger",
    with the measured mean's share of it.
    """
    if measured.low <= published <= measured.high:
        return "as published"
    word = "smaller" if measured.mean < published else "larger"
    return f"{word}: {measured.mean / published:.2f} of it"


def claims_table(claims: Sequence[Claim]) -> str:
    """The claims as a Markdown table."""
    lines = ["| where | the paper says | we measured | holds? | as large? |", "|---|---|---|---|---|"]
    lines += [f"| {c.where} | {c.paper} | {c.measured} | {c.holds} | {c.size or '-'} |" for c in claims]
    return "\n".join(lines) + "\n"
