"""The plugin ``fairness``: how unfair a run was to each of its jobs, as metrics, columns and a report
section.

G. Sabin, P. Sadayappan: Unfairness Metrics for Space-Sharing Parallel Job Schedulers. JSSPP 2005. It decides
nothing: enable it beside any policy. What the figures mean stands in ``equality.py`` and ``starts.py``,
what is counted in ``figures.py``, and how that was checked in ``docs/papers/unfairness_metrics.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import Any

import numpy as np
import pydantic
from numpy.typing import NDArray

from headway.errors import UserError
from headway.hookspecs import Plugin, hookimpl
from headway.metrics import JobColumns, job_columns
from headway.metrics.system import eligible
from headway.plugins import Traits
from headway.report import Section
from headway.report.quantities import NONE, duration, number, share
from headway.results import RunResult
from headway_plugins.fairness.equality import Equality, resource_equality
from headway_plugins.fairness.figures import by_name, by_width, missed, overtakers
from headway_plugins.fairness.shares import Standing, against_shares, tree_of
from headway_plugins.fairness.starts import FairStarts, fair_starts

Floats = NDArray[np.float64]

#: Where a run keeps what was computed of it.
_KEPT = "fairness"
#: Jobs and users that the report lists.
_LISTED = 10


class FairnessOptions(pydantic.BaseModel):
    """Options of the unfairness metrics."""

    model_config = pydantic.ConfigDict(extra="forbid")

    by_definition: int = pydantic.Field(
        default=300,
        ge=0,
        description="largest number of jobs for which fair start times are found by a run of its own for "
        "each job, where the scheduler allows no faster way",
    )


@dataclass(frozen=True)
class Found:
    """All that is known of a run's fairness."""

    columns: JobColumns
    starts: FairStarts | None
    #: Why there are no fair start times.
    why_not: str
    equality: Equality | None
    #: Why there is no resource equality.
    why_unequal: str
    #: What each user deserved by the site's shares; empty: the run has no shares.
    standings: Sequence[Standing] = ()
    #: Why that is not there although the site has shares.
    why_no_shares: str = ""

    @property
    def losses(self) -> dict[str, Floats]:
        """What each job got later (seconds) or less (processor-seconds) than is fair, by measure."""
        found: dict[str, Floats] = {}
        if self.starts is not None:
            found["strict"] = self.columns.start - self.starts.strict
            found["relaxed"] = self.columns.start - self.starts.relaxed
        if self.equality is not None:
            found["equality"] = self.equality.unfairness
        return found


def judged(result: RunResult, up_to: int = 0) -> Found:
    """All measures of a run, computed once."""
    found = result.computed.get(_KEPT)
    if not isinstance(found, Found):
        columns = job_columns(result)
        starts: FairStarts | None = None
        equality: Equality | None = None
        standings: Sequence[Standing] = ()
        why_not = why_unequal = why_no_shares = ""
        try:
            starts = fair_starts(result, up_to)
        except UserError as error:
            why_not = str(error)
        try:
            equality = resource_equality(result, columns)
        except UserError as error:
            why_unequal = str(error)
        try:
            tree = None if equality is None else tree_of(result)
            standings = [] if tree is None else against_shares(result, tree, columns)
        except UserError as error:
            why_no_shares = str(error)
        found = result.computed[_KEPT] = Found(
            columns, starts, why_not, equality, why_unequal, standings, why_no_shares
        )
    return found


class Fairness(Plugin):
    """How unfair the schedule was to each job: fair start times (strict, relaxed) and resource equality."""

    Options = FairnessOptions
    traits = Traits(
        paper=(
            "G. Sabin, P. Sadayappan: Unfairness Metrics for Space-Sharing Parallel Job Schedulers, "
            "JSSPP 2005"
        ),
    )

    def __init__(self, options: FairnessOptions | None = None) -> None:
        super().__init__(options or FairnessOptions())

    def _judged(self, result: RunResult) -> Found:
        return judged(result, self.options.by_definition)

    @hookimpl
    def register_metrics(self) -> dict[str, Callable[[RunResult], Any]]:
        return {"fairness": self._figures}

    @hookimpl
    def register_job_columns(self) -> dict[str, Callable[[RunResult], Floats]]:
        def of(pick: Callable[[Found], Floats | None]) -> Callable[[RunResult], Floats]:
            def column(result: RunResult) -> Floats:
                values = pick(self._judged(result))
                return np.full(len(result.jobs), np.nan) if values is None else values

            return column

        return {
            "fair_start_strict": of(lambda found: None if found.starts is None else found.starts.strict),
            "fair_start_relaxed": of(lambda found: None if found.starts is None else found.starts.relaxed),
            "miss_strict": of(lambda found: _positive(found.losses.get("strict"))),
            "miss_relaxed": of(lambda found: _positive(found.losses.get("relaxed"))),
            "deserved": of(lambda found: None if found.equality is None else found.equality.deserved),
            "resource_unfairness": of(lambda found: found.losses.get("equality")),
        }

    def _figures(self, result: RunResult) -> dict[str, Any]:
        found = self._judged(result)
        losses, columns = found.losses, found.columns
        waited = columns.wait > 0
        figures: dict[str, Any] = {name: missed(loss, waited) for name, loss in losses.items()}
        if found.equality is not None:
            figures["unfinished"] = found.equality.unfinished
        for name, why in (("fair starts", found.why_not), ("resource equality", found.why_unequal)):
            if why:
                figures[name] = f"not computed: {why}"
        figures["by_width"] = by_width(columns.processors, **losses)
        figures["by_user"] = by_name([job.job.user for job in result.jobs], **losses)
        accounts = [job.job.account for job in result.jobs]
        figures["by_account"] = by_name(accounts, **losses) if any(accounts) else {}
        if found.standings:
            figures["by_share"] = [asdict(one) for one in found.standings]
        if found.why_no_shares:
            figures["shares"] = f"not computed: {found.why_no_shares}"
        return figures

    @hookimpl
    def register_report_sections(self, results: Sequence[RunResult]) -> list[Section]:
        return [Section(f"Fairness: {result.label}", self._section(result)) for result in results]

    def _section(self, result: RunResult) -> str:
        found = self._judged(result)
        losses, columns = found.losses, found.columns
        parts = [
            f"<p>{escape(why)}</p>" for why in (found.why_not, found.why_unequal, found.why_no_shares) if why
        ]
        parts.append(
            "<p>Strict and relaxed: the mean time by which a job began after its fair start. Resource "
            "equality: processor-hours that a job got below the equal share. Fairness says nothing about "
            "speed: each policy is measured by its own fair starts.</p>"
        )
        heads = [_HEADS[name] for name in losses]
        groups = {"all": {"jobs": len(columns.submit)} | {k: missed(v)["mean"] for k, v in losses.items()}}
        parts.append(
            _table(["processors", "jobs", *heads], _rows(groups | by_width(columns.processors, **losses)))
        )
        users = by_name([job.job.user for job in result.jobs], **losses)
        listed = dict(list(users.items())[:_LISTED])
        parts.append(f"<h4>Users with the largest losses, sums ({len(listed)} of {len(users)})</h4>")
        parts.append(_table(["user", "jobs", *heads], _rows(listed)))
        if found.standings:
            parts.append(f"<h4>{escape(_BY_SHARES)} ({len(found.standings[:_LISTED])} of "
                         f"{len(found.standings)})</h4>")  # fmt: skip
            parts.append(_table(STANDING_HEADS, [standing_row(one) for one in found.standings[:_LISTED]]))
        if "strict" in losses:
            parts.append(self._latest(result, losses["strict"]))
        return "\n".join(parts)

    def _latest(self, result: RunResult, late: Floats) -> str:
        """The jobs that later arrivals delayed most, and the jobs that overtook them."""
        order = np.argsort(-np.nan_to_num(late, nan=-np.inf), kind="stable")[:_LISTED]
        came = eligible(result, job_columns(result))
        rows = [
            [
                result.jobs[at].job.id, result.jobs[at].job.user, str(result.jobs[at].job.request.processors),
                duration(float(late[at])), ", ".join(overtakers(result, came, int(at))),
            ]
            for at in order
            if late[at] > 0
        ]  # fmt: skip
        if not rows:
            return "<p>No job started later than its strict fair start.</p>"
        heads = [
            "job",
            "user",
            "processors",
            "time after its strict fair start",
            "overtaken by (most work first)",
        ]
        return "<h4>Jobs that later arrivals delayed most</h4>" + _table(heads, rows)


_BY_SHARES = "Users with the largest deficit by the site's shares, in processor-hours"
STANDING_HEADS = ("account", "user", "share", "jobs", "deserved", "got", "deficit")


def standing_row(one: Standing) -> list[str]:
    """A line under :data:`STANDING_HEADS`: processor-hours."""
    hours = [number(seconds / 3600.0) for seconds in (one.deserved, one.got, one.deserved - one.got)]
    return [one.account, one.user or NONE, share(one.share), number(one.jobs), *hours]


_HEADS = {"strict": "strict", "relaxed": "relaxed", "equality": "resource equality, processor-hours"}


def _positive(loss: Floats | None) -> Floats | None:
    return None if loss is None else np.maximum(loss, 0.0)


def _rows(groups: dict[str, dict[str, Any]]) -> list[list[str]]:
    return [
        [
            name or NONE,
            number(row["jobs"]),
            *(
                number(None if row[key] is None else row[key] / 3600.0)
                if key == "equality"
                else duration(row[key])
                for key in _HEADS
                if key in row
            ),
        ]
        for name, row in groups.items()
    ]


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    def line(tag: str, cells: Sequence[str]) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    return f"<table>{line('th', heads)}{''.join(line('td', row) for row in rows)}</table>"
