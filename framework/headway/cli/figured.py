"""What commands that emulate or study print with ``--json``: numbers beside the sentences and tables.

Times are seconds; a figure that does not exist is null.
"""

from __future__ import annotations

from typing import Any

import msgspec

from headway.cli.printed import Printed
from headway.metrics.summary import Summary


class Mean(msgspec.Struct, frozen=True):
    """A mean, half of its 95 % confidence interval, and of how many values."""

    mean: float | None
    half: float | None
    count: int


class Foreseen(msgspec.Struct, frozen=True):
    """A waiting job's expected start, absolute seconds; None: it cannot be foreseen."""

    job: str
    user: str
    processors: int
    start: float | None
    nodes: tuple[str, ...]


class RunReport(Printed, frozen=True):
    """``headway dry-run``."""

    #: As ``metrics.json`` has them.
    metrics: Summary | None = None
    #: How far the run may be trusted: as ``metrics.json`` has it under ``method``.
    method: dict[str, Any] | None = None
    #: Of a copy of the live queue: the jobs that wait, the first to start first.
    forecast: tuple[Foreseen, ...] = ()


class RunsReport(Printed, frozen=True):
    """``headway demo``."""

    #: By policy.
    metrics: dict[str, Summary] = {}


class PointReport(msgspec.Struct, frozen=True):
    """A policy on a workload; ``x``: its load or factor."""

    workload: str
    x: float
    policy: str
    #: Left out of verdicts by a rule.
    left_out: bool
    #: By metric, as ``rows.csv`` calls them; over the seeds.
    metrics: dict[str, Mean]


class ChangeReport(msgspec.Struct, frozen=True):
    """A policy against the first policy, in one metric."""

    workload: str
    x: float
    policy: str
    against: str
    metric: str
    #: Percent; negative: less.
    change: Mean
    #: Runs in which it is less, and of how many.
    less: int
    of: int
    verdict: str


class ComparisonReport(Printed, frozen=True):
    """``headway compare``."""

    points: tuple[PointReport, ...] = ()
    changes: tuple[ChangeReport, ...] = ()


class TuningReport(Printed, frozen=True):
    """``headway tune``: the option, its best value, and the points (``policy``: ``OPTION=VALUE``)."""

    option: str = ""
    best: int | None = None
    points: tuple[PointReport, ...] = ()


class StudyReport(Printed, frozen=True):
    """``headway analyze``."""

    #: As ``analysis.json`` has it.
    study: dict[str, Any] = {}
    method: dict[str, Any] = {}
