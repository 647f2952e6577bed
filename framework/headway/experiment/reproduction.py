"""Running a paper's experiments again, and saying claim by claim what was measured.

A reproduction is an object behind an entry point of the group ``headway.reproductions``: it has a
``title``, what the paper says of its experiments (``published``), and a method ``run(context)`` that returns
its claims. Their verdicts are those of :mod:`headway.experiment.judging`, one rule for all papers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from headway.experiment.campaign import Campaign, Row, Task, tasks_of
from headway.experiment.execution import run_tasks
from headway.experiment.kept import KeptRows
from headway.experiment.published import Published


@dataclass(frozen=True)
class Claim:
    """One claim of a paper beside our measurement."""

    where: str
    paper: str
    measured: str
    #: Whether it holds: "yes", "in part" or "no"; "fitted" where a parameter was chosen so that it does; "not
    #: run" with the reason in ``measured``.
    holds: str
    #: How what we measured compares with the paper's figure (``size_verdict``); "" if it has none.
    size: str = ""


@dataclass
class Context:
    """What a reproduction is given."""

    out: Path
    seeds: tuple[int, ...]
    workers: int
    #: Directory of real traces, if there is one.
    traces: Path | None
    #: Called with how many rows an experiment has, and with how many more are there.
    on_plan: Callable[[str, int], None]
    on_done: Callable[[int], None]
    rows: list[tuple[str, list[Row]]]
    #: The command, for people.
    call: str = ""
    #: Rows that are in ``out`` of an earlier call are taken instead of running the same again.
    keep: bool = False
    #: What was run by :meth:`run`, for the rule book.
    campaigns: list[tuple[str, Campaign, list[Row]]] = field(default_factory=list)

    def trace(self, beginning: str) -> Path | None:
        """The real trace whose file's name begins so; None: it is not there."""
        return next(iter(sorted(self.traces.glob(f"{beginning}*"))), None) if self.traces else None

    def run(self, name: str, campaign: Campaign) -> list[Row]:
        """Run one experiment, as far as its rows are not there already."""
        scenarios = [
            # Of a trace its name counts, not where it lies.
            replace(scenario, trace=Path(scenario.trace).name) if scenario.trace else scenario
            for scenario in campaign.scenarios
        ]
        rows = self.collect(name, tasks_of(campaign), (campaign.variants, scenarios, campaign.method))
        self.campaigns.append((name, campaign, rows))
        return rows

    def collect(self, name: str, tasks: Sequence[Task], definition: object) -> list[Row]:
        """Run the tasks that have no rows yet, and write each one's rows when it ends; rows in the order of
        the tasks.

        ``definition``: all that the rows depend on beside their keys. Raises :class:`UserError` if rows are
        to be kept that are of another one.
        """
        self.on_plan(name, sum(len(task.keys) for task in tasks))
        kept = KeptRows(self.out, self.call, keep=self.keep)
        found = {row.key: row for row in kept.begin(name, definition)}
        missing = [task for task in tasks if not found.keys() >= set(task.keys)]
        self.on_done(sum(len(task.keys) for task in tasks) - sum(len(task.keys) for task in missing))

        def ended(rows: list[Row]) -> None:
            kept.add(name, rows)
            found.update((row.key, row) for row in rows)
            self.on_done(len(rows))

        run_tasks(missing, workers=self.workers, on_rows=ended)
        rows = [found.pop(key) for task in tasks for key in task.keys]
        # Behind them what this call does not want, such as further seeds.
        kept.complete(name, [*rows, *found.values()])
        self.rows.append((name, rows))
        return rows

    def record(self, name: str, rows: list[Row], definition: object) -> None:
        """Write rows that came about otherwise, whatever is there."""
        kept = KeptRows(self.out, self.call)
        kept.begin(name, definition)
        kept.complete(name, rows)
        self.rows.append((name, rows))


class Reproduction(Protocol):
    """A paper's experiments."""

    title: str
    #: What the paper says of its own experiments, for the rule book. None: it has none; text: why not.
    published: Published | str | None

    def run(self, context: Context) -> list[Claim]: ...


def claims_table(claims: Sequence[Claim]) -> str:
    """The claims as a Markdown table."""
    lines = ["| where | the paper says | we measured | holds? | as large? |", "|---|---|---|---|---|"]
    lines += [f"| {c.where} | {c.paper} | {c.measured} | {c.holds} | {c.size or '-'} |" for c in claims]
    return "\n".join(lines) + "\n"
