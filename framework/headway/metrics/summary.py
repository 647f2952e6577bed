"""The summary of a run: one nested dictionary of plain values, which is what ``metrics.json`` holds."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, TypedDict

import msgspec
import numpy as np
from numpy.typing import NDArray

from headway.metrics.classes import metrics_by_class
from headway.metrics.energy import EnergyUse, energy_use
from headway.metrics.jobs import JobColumns, job_columns
from headway.metrics.pools import metrics_by_pool
from headway.metrics.system import SystemCurves, system_curves, system_metrics
from headway.results import RunResult
from headway.version import __version__

#: A metric that a plugin adds: a number, or a dictionary of numbers, from a run.
Metric = Callable[[RunResult], "float | dict[str, Any]"]

#: Per-job metrics by name, as attributes of :class:`JobColumns`, in the order of tables.
JOB_METRICS = ("wait", "turnaround", "runtime", "slowdown", "bounded_slowdown", "accuracy")

#: Statistics of each, in the order of tables.
STATISTICS = ("count", "mean", "median", "p90", "p95", "p99", "max", "std")


class Summary(TypedDict):
    """See ``docs/outputs`` for every key. A figure that does not exist is None, never NaN."""

    run: dict[str, Any]
    counts: dict[str, Any]
    jobs: dict[str, dict[str, float | None]]
    class_bounds: dict[str, float]
    classes: dict[str, dict[str, Any]]
    #: Empty where the cluster has one pool.
    pools: dict[str, dict[str, Any]]
    system: dict[str, float | None]
    #: None: the cluster has no energy profile.
    energy: dict[str, Any] | None
    extra: dict[str, Any]


def summarise(
    result: RunResult,
    extra: Mapping[str, Metric] | None = None,
    *,
    columns: JobColumns | None = None,
    curves: SystemCurves | None = None,
    energy: EnergyUse | None = None,
) -> Summary:
    """All metrics of a run; ``extra`` adds further metrics under their names to the metrics of its own
    plugins.

    An extra metric that raises costs its own value only: ``{"error": what it said}`` stands there.
    """
    columns = columns or job_columns(result)
    curves = curves or system_curves(result, columns=columns)
    energy = energy or energy_use(result, columns=columns, curves=curves)
    contributed = {**(extra or {}), **result.contributed}
    measured = {name: getattr(columns, name) for name in JOB_METRICS}
    if energy is not None:
        measured["energy"] = _used(energy)
    bounds = result.class_bounds
    classes = metrics_by_class(columns, bounds, measured, statistics)
    system = system_metrics(result, columns=columns, curves=curves)
    return {
        "run": {
            "label": result.label,
            "cluster": result.cluster.name,
            "seed": result.seed,
            "epoch": result.epoch,
            "cycles": result.cycles,
            "wall_seconds": result.wall_seconds,
            "headway_version": __version__,
            "about": dict(result.about),
        },
        "counts": _counts(result, columns),
        "jobs": {name: classes["all"][name] for name in JOB_METRICS},
        "class_bounds": {"narrow": bounds.narrow, "short": bounds.short},
        "classes": classes,
        "pools": metrics_by_pool(result, columns, system.begin, system.end, measured, statistics),
        "system": {name: _plain(value) for name, value in asdict(system).items()},
        "energy": _energy(energy) if energy is not None else None,
        "extra": {name: _contributed(metric, result) for name, metric in contributed.items()},
    }


def _used(use: EnergyUse) -> NDArray[np.float64]:
    """The energy of each job; NaN for one that used none."""
    return np.where(use.jobs > 0, use.jobs, np.nan)


def _energy(use: EnergyUse) -> dict[str, Any]:
    figures = ("total", "busy", "idle", "asleep", "mean_power", "peak_power", "node_seconds_asleep")
    return {
        "profile": use.profile,
        "absolute": use.absolute,
        **{name: _plain(getattr(use, name)) for name in figures},
        "per_job": statistics(_used(use)),
        "by_class": _plain(use.by_class),
        "by_pool": _plain(use.by_pool),
    }


def statistics(values: NDArray[np.float64]) -> dict[str, float | None]:
    """Count, mean, percentiles (linear interpolation), maximum and population standard deviation.

    NaNs are left out; of nothing, all but the count are None.
    """
    values = values[~np.isnan(values)]
    if not len(values):
        return {name: 0 if name == "count" else None for name in STATISTICS}
    median, p90, p95, p99 = np.percentile(values, (50, 90, 95, 99))
    return {
        "count": len(values),
        "mean": _plain(values.mean()),
        "median": _plain(median),
        "p90": _plain(p90),
        "p95": _plain(p95),
        "p99": _plain(p99),
        "max": _plain(values.max()),
        "std": _plain(values.std()),
    }


def _counts(result: RunResult, columns: JobColumns) -> dict[str, Any]:
    taken: Counter[str] = Counter()
    failed = 0
    for record in result.decisions:
        taken[type(record.decision).__name__] += 1
        failed += not record.accepted
    return {
        "jobs": len(result.jobs),
        "started": int(columns.started.sum()),
        "finished": int(columns.finished.sum()),
        "never_started": int((~columns.started).sum()),
        "unfinished": int((columns.started & ~columns.finished).sum()),
        "zero_runtime": int((columns.runtime == 0).sum()),
        "restarts": sum(max(0, job.starts - 1) for job in result.jobs),
        "by_state": dict(sorted(Counter(job.state for job in result.jobs).items())),
        "refused": len(result.refused),
        "refused_by_reason": dict(Counter(r.reason for r in result.refused).most_common()),
        "left_waiting": [msgspec.structs.asdict(one) for one in result.left_waiting],
        "plugin_failures": [{**msgspec.structs.asdict(one), "told": str(one)} for one in result.failures],
        "decisions": dict(sorted(taken.items())),
        "decisions_failed": failed,
    }


def _contributed(metric: Metric, result: RunResult) -> Any:
    try:
        return _plain(metric(result))
    except Exception as error:  # a plugin's code: whatever it raises must not cost the other figures
        return {"error": f"{type(error).__name__}: {error}"}


def _plain(value: Any) -> Any:
    """NumPy scalars as Python ones, NaN and infinity as None, dictionaries all the way down."""
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
