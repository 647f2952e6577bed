"""What a comparison of policies found, as a program has it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headway.errors import UserError, nearest
from headway.experiment.campaign import Campaign, Row
from headway.experiment.folder import write_method, write_record, write_results
from headway.experiment.rulebook import Evidence, Judged, as_data, evidence_of, excluded, judge
from headway.experiment.rulebook.comparisons import verdicts
from headway.experiment.tables import campaign_tables, mean_of
from headway.inputs.extras import need_report
from headway.notebook.frames import pandas_frame, polars_frame
from headway.report.table import Table


class Comparison:
    """What :func:`headway.compare` gives: the numbers of each emulation, means with 95 % confidence
    intervals, each policy against the first, and which rules of the evaluation of schedulers were kept.

    ``docs/outputs/campaigns.md`` says what each metric is.
    """

    def __init__(
        self,
        campaign: Campaign,
        rows: Sequence[Row],
        text: str | None = None,
        record: dict[str, Any] | None = None,
        folder: Path | None = None,
    ) -> None:
        """``text``: the definition in YAML, ``record``: what made the rows, ``folder``: where the files lie
        that the definition names. Without these it cannot be saved."""
        need_report("a comparison")
        self.campaign = campaign
        self._rows = rows
        self._text = text
        self._record = record
        self._folder = folder

    @property
    def policies(self) -> list[str]:
        """The policies' labels; the others are compared with the first."""
        return [variant.label for variant in self.campaign.variants]

    @property
    def metrics(self) -> list[str]:
        """The names of the metrics."""
        return list(self._rows[0].values)

    @cached_property
    def rows(self) -> NDArray[Any]:
        """A structured array of shape ``(emulations,)``: ``scenario`` (the workload), ``x`` (its load, or
        what else is varied), ``variant`` (the policy), ``seed``, and a field of floats for each of
        :attr:`metrics`, NaN where it has no value. Times are seconds, energies joules."""
        names = self.metrics
        kinds = [("scenario", object), ("x", np.float64), ("variant", object), ("seed", np.int64)]
        kinds += [(name, np.float64) for name in names]
        return np.array(
            [(*row.key, *(row.values[name] for name in names)) for row in self._rows], dtype=kinds
        )

    def means(self, metric: str) -> NDArray[Any]:
        """A structured array of shape ``(points,)``, a point a workload, load and policy: ``scenario``,
        ``x``, ``variant``, the ``mean`` of the metric over the seeds, ``half`` of its 95 % confidence
        interval (Student's t; NaN for a single run) and ``count``, the runs. Raises
        :class:`headway.errors.UserError` for a metric that does not exist."""
        self._check(metric)
        found = [
            (scenario, x, variant, mean_of(rows, metric))
            for scenario, x, variant, rows in self._evidence.points()
        ]
        kinds = [("scenario", object), ("x", np.float64), ("variant", object)]
        kinds += [("mean", np.float64), ("half", np.float64), ("count", np.int64)]
        return np.array([(*place, one.mean, one.half, one.count) for *place, one in found], dtype=kinds)

    def against_first(self, *metrics: str) -> NDArray[Any]:
        """Each policy against the first, pair by pair (the same jobs), as a structured array of shape
        ``(verdicts,)``: ``scenario``, ``x``, ``variant``, ``metric``, ``change`` and ``half`` (the relative
        change in percent with half of its 95 % confidence interval), ``less`` and ``of`` (in how many pairs
        it was less) and ``says``: ``less``, ``more``, ``undecided``, or why there is no verdict.

        ``metrics``: default, those that a verdict may be on (mean wait, mean bounded slowdown). Raises
        :class:`headway.errors.UserError` for a metric that does not exist.
        """
        for metric in metrics:
            self._check(metric)
        found = verdicts(self._evidence, excluded(self._judged), metrics or None)
        kinds = [("scenario", object), ("x", np.float64), ("variant", object), ("metric", object)]
        kinds += [("change", np.float64), ("half", np.float64), ("less", np.int64), ("of", np.int64)]
        return np.array(
            [
                (one.scenario, one.x, one.variant, one.metric, one.change.mean, one.change.half, one.less,
                one.of,
                 one.says)
                for one in found
            ],
            dtype=[*kinds, ("says", object)],
        )  # fmt: skip

    @property
    def rules(self) -> Sequence[dict[str, Any]]:
        """What the rules of the evaluation of schedulers say, worst first, as ``headway lint-experiment``
        does (``docs/rules.md``): of each ``rule``, ``title``, ``outcome``, ``reason`` and ``findings``."""
        return as_data(self._judged)

    def frame(self) -> Any:
        """:attr:`rows` as a ``pandas.DataFrame``; :class:`headway.errors.UserError` without pandas."""
        return pandas_frame(self.rows)

    def polars(self) -> Any:
        """:attr:`rows` as a ``polars.DataFrame``; :class:`headway.errors.UserError` without polars."""
        return polars_frame(self.rows)

    def save(self, folder: str | Path) -> None:
        """Write what ``headway compare --out`` keeps of the emulations, so that :func:`headway.load`,
        ``headway lint-experiment`` and ``headway repeat`` read it. The folder is made if it is missing.

        Raises :class:`headway.errors.UserError` if a policy is a class of the program, which no file can
        name, or if the comparison was loaded; :class:`headway.errors.Failure` if a file cannot be written.
        """
        if self.campaign.plugin_classes:
            names = ", ".join(kind.__name__ for kind in self.campaign.plugin_classes)
            raise UserError(
                f"save: expected policies that a file can name, found classes of this program ({names}): "
                "put them into a Python file and give plugin_files=[FILE]"
            )
        if self._text is None or self._record is None or self._folder is None:
            raise UserError("save: this comparison was loaded from a folder; copy that")
        out = Path(folder)
        out.mkdir(parents=True, exist_ok=True)
        write_results(out, self._text, self._rows)
        write_method(out, self._folder, self.campaign, self._judged)
        write_record(out, self._record)

    @cached_property
    def _evidence(self) -> Evidence:
        return evidence_of(self.campaign, self.campaign.catalogue(), rows=self._rows)

    @cached_property
    def _judged(self) -> list[Judged]:
        return judge(self._evidence)

    def _check(self, metric: str) -> None:
        if metric not in self.metrics:
            raise UserError(f"{metric!r} is no metric of this comparison.{nearest(metric, self.metrics)}")

    def __repr__(self) -> str:
        return f"<Comparison of {', '.join(self.policies)}: {len(self._rows)} emulations>"

    def _repr_html_(self) -> str:
        """The tables that a notebook shows: means, each policy against the first, what the rules say."""
        from headway.experiment.answers import doubts_table

        tables = [*campaign_tables(self._evidence, self._judged), doubts_table(self._judged)]
        return "".join(map(_html, tables))


def _html(table: Table) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in table.heads)
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in table.rows
    )
    return (
        f"<p><b>{escape(table.title)}</b></p><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        f"<p>{escape(table.note)}</p>"
    )
