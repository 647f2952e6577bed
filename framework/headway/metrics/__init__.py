"""How good a schedule was: per-job and system metrics of a run.

Everything here is computed from a :class:`headway.results.RunResult` alone, so that a run of the
emulated cluster and one of a real machine are judged alike. ``docs/outputs`` defines each figure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway.inputs.late import late

if TYPE_CHECKING:
    from headway.metrics.classes import GROUPS
    from headway.metrics.figures import Figures
    from headway.metrics.jobs import BOUND, JobColumns, job_columns
    from headway.metrics.steps import Steps
    from headway.metrics.summary import Metric, Summary, summarise
    from headway.metrics.system import SystemCurves, SystemMetrics, system_curves, system_metrics

__all__ = [
    "BOUND",
    "GROUPS",
    "Figures",
    "JobColumns",
    "Metric",
    "Steps",
    "Summary",
    "SystemCurves",
    "SystemMetrics",
    "job_columns",
    "summarise",
    "system_curves",
    "system_metrics",
]

__getattr__ = late(
    __name__,
    {
        ".classes": "GROUPS",
        ".figures": "Figures",
        ".jobs": "BOUND JobColumns job_columns",
        ".steps": "Steps",
        ".summary": "Metric Summary summarise",
        ".system": "SystemCurves SystemMetrics system_curves system_metrics",
    },
)
