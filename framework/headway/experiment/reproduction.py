"""Running a paper's experiments again, and saying claim by claim what was measured.

A reproduction is an object behind an entry point of the group ``headway.reproductions``: it has a
``title``, what the paper says of its experiments (``published``), and a method ``run(context)`` that returns
its claims. Their verdicts come from :mod:`headway.experiment.judging`, one rule for all papers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from headway.errors import UserError
from headway.experiment.campaign import Campaign, Row, Task, tasks_of
from headway.experiment.claims_page import Broken, Claim, claims_table
from headway.experiment.execution import run_tasks
from headway.experiment.kept import KeptRows
from headway.experiment.published import Published
from headway.experiment.rulebook import Outcome, evidence_of, judge
from headway.plugins import Catalogue

__all__ = ["Claim", "Context", "Reproduction", "claims_table"]


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
    #: Whether experiments may be run whose rows are not there.
    may_run: bool = True
    #: What the rule book found of the experiments of :meth:`run`.
    broken: dict[str, list[Broken]] = field(default_factory=dict)

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
        kept = KeptRows(self.out)
        known = kept.broken(name)
        if any(row.facts is not None for row in rows):
            known = _broken(campaign, rows)
            kept.note(name, known)
        elif known is None:
            # Rows in a file have neither the facts of their workloads nor the means of their batches, so only
            # the definition can be judged.
            known = _broken(campaign, ())
        self.broken[name] = known
        return rows

    def collect(self, name: str, tasks: Sequence[Task], definition: object) -> list[Row]:
        """Run the tasks that have no rows yet, and write each one's rows when it ends; rows in the order of
        the tasks.

        ``definition``: all that the rows depend on beside their keys. Raises :class:`UserError` if rows are
        to be kept that are of another one, or are missing where nothing may be run.
        """
        self.on_plan(name, sum(len(task.keys) for task in tasks))
        kept = KeptRows(self.out, self.call, keep=self.keep)
        found = {row.key: row for row in kept.begin(name, definition)}
        missing = [task for task in tasks if not found.keys() >= set(task.keys)]
        wanted, without = (sum(len(task.keys) for task in some) for some in (tasks, missing))
        if missing:
            self.refuse_to_run(name, wanted, without)
        self.on_done(wanted - without)

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

    def refuse_to_run(self, name: str, wanted: int, missing: int) -> None:
        """Raise :class:`UserError` for an experiment of so many rows, some missing, if nothing may be run."""
        if not self.may_run:
            raise UserError(f"{self.out / name}.csv: expected {wanted} rows, of which {missing} are missing")

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


def _broken(campaign: Campaign, rows: Sequence[Row]) -> list[Broken]:
    """The rules of evaluation that a campaign breaks."""
    return [
        Broken(one.rule.name, one.rule.title, str(one))
        for one in judge(evidence_of(campaign, Catalogue(), rows=rows))
        if one.outcome in (Outcome.REFUSED, Outcome.BROKEN, Outcome.EXCLUDED)
    ]
