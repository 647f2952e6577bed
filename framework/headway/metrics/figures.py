"""All that is computed of one run, each once, when it is first asked for.

The tables, the report and the summary on the terminal want the same columns, curves and figures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from headway.metrics.energy import EnergyUse, energy_use
from headway.metrics.jobs import JobColumns, job_columns
from headway.metrics.summary import Metric, Summary, summarise
from headway.metrics.system import SystemCurves, system_curves
from headway.results import RunResult

#: A column of ``jobs.csv`` that a plugin adds: one number a job; NaN: none.
JobColumn = Callable[[RunResult], Sequence[float] | NDArray[np.float64]]


class Figures:
    """What a finished run comes to."""

    def __init__(
        self,
        result: RunResult,
        extra: Mapping[str, Metric] | None = None,
        job_columns: Mapping[str, JobColumn] | None = None,
    ) -> None:
        """``extra``: metrics that plugins add, ``job_columns``: columns of ``jobs.csv`` that they add, by
        name."""
        self.result = result
        self.job_columns = dict(job_columns or {})
        self._extra = extra

    @cached_property
    def columns(self) -> JobColumns:
        return job_columns(self.result)

    @cached_property
    def curves(self) -> SystemCurves:
        return system_curves(self.result, columns=self.columns)

    @cached_property
    def energy(self) -> EnergyUse | None:
        """None: the cluster has no energy profile."""
        return energy_use(self.result, columns=self.columns, curves=self.curves)

    @cached_property
    def summary(self) -> Summary:
        return summarise(
            self.result, self._extra, columns=self.columns, curves=self.curves, energy=self.energy
        )
