"""How good a schedule was: per-job and system metrics of a run.

Everything here is computed from a :class:`headway.results.RunResult` alone, so that a run of the
emulated cluster and one of a real machine are judged alike. ``docs/outputs`` defines each figure.
"""

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
