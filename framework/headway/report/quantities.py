"""Numbers for a person: durations, shares, counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

#: What stands for a figure that does not exist.
NONE = "–"


def duration(seconds: float | None) -> str:
    """``"14 s"``, ``"3 min 20 s"``, ``"2 h 05 min"``, ``"5 d 3 h"``."""
    if seconds is None:
        return NONE
    if seconds < 0:
        return "−" + duration(-seconds)
    if seconds < 9.95:
        return f"{seconds:.1f} s" if seconds % 1 else f"{int(seconds)} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    if whole < 48 * 3600:
        return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
    return f"{whole // 86400} d {whole % 86400 // 3600} h"


def compact(seconds: float | None) -> str:
    """In seven characters: ``"14 s"``, ``"3 min"``, ``"45.0 h"``, ``"10.1 d"``, ``"365 d"``."""
    if seconds is None:
        return NONE
    if seconds < 0:
        return "−" + compact(-seconds)
    if seconds < 59.5:
        return f"{seconds:.0f} s"
    if seconds < 59.5 * 60:
        return f"{seconds / 60:.0f} min"
    if seconds < 99.95 * 3600:
        return f"{seconds / 3600:.1f} h"
    days = seconds / 86400
    return f"{days:.1f} d" if days < 99.95 else f"{days:.0f} d"


def share(value: float | None) -> str:
    """``"83.1 %"``."""
    return NONE if value is None else f"{100 * value:.1f} %"


def number(value: float | None) -> str:
    """Whole numbers with thin spaces between thousands, others with three significant digits or more."""
    if value is None:
        return NONE
    if float(value).is_integer() or abs(value) >= 1000:
        return f"{round(value):,}".replace(",", "\u202f")
    return f"{value:.2f}" if abs(value) >= 1 else f"{value:.3g}"


def joules(value: float | None) -> str:
    """``"3.6 kJ"``, ``"12.0 kWh"``: kilowatt-hours and more from a tenth of one on."""
    if value is None:
        return NONE
    hours = value / 3.6e6
    for factor, unit in ((1e6, "GWh"), (1e3, "MWh"), (0.1, "kWh")):
        if hours >= factor:
            return f"{hours / max(factor, 1):.4g} {unit}"
    return f"{value / 1e3:.3g} kJ" if value >= 1e3 else f"{value:.3g} J"


def watts(value: float | None) -> str:
    """``"354 W"``, ``"12.3 kW"``."""
    if value is None:
        return NONE
    for factor, unit in ((1e6, "MW"), (1e3, "kW")):
        if value >= factor:
            return f"{value / factor:.4g} {unit}"
    return f"{value:.3g} W"


def relative(value: float | None) -> str:
    """A figure without a unit, of a profile that is not calibrated."""
    return NONE if value is None else f"{value:.4g}"


#: Of each energy figure that tables show, in their order; figures of an uncalibrated profile are relative.
ENERGY_METRICS: dict[str, tuple[str, Callable[[float | None], str]]] = {
    "total": ("energy", joules),
    "busy": ("energy of jobs", joules),
    "idle": ("energy of idle capacity", joules),
    "asleep": ("energy of sleep and waking", joules),
    "mean_power": ("mean power", watts),
    "peak_power": ("peak power", watts),
    "node_seconds_asleep": ("node time asleep", duration),
}


def energy_figures(energy: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """What tables show of a run's energy; nothing without a profile."""
    if energy is None:
        return []
    figures = [
        (title, (write if energy["absolute"] or write is duration else relative)(energy[key]))
        for key, (title, write) in ENERGY_METRICS.items()
    ]
    write = energy_writer(energy)
    for title, key in (("energy of jobs on class", "by_class"), ("energy of pool", "by_pool")):
        if len(energy[key]) > 1:
            figures += [(f"{title} {name}", write(value)) for name, value in energy[key].items()]
    return figures


def energy_writer(energy: Mapping[str, Any]) -> Callable[[float | None], str]:
    """How a run's energies are written: as joules, or without a unit."""
    return joules if energy["absolute"] else relative


#: Of each per-job metric: what people call it, and how its values are written.
JOB_METRICS: dict[str, tuple[str, Callable[[float | None], str]]] = {
    "wait": ("wait", duration),
    "turnaround": ("turnaround", duration),
    "runtime": ("runtime", duration),
    "slowdown": ("slowdown", number),
    "bounded_slowdown": ("bounded slowdown", number),
    "accuracy": ("runtime / estimate", number),
}

#: Of each system metric that tables show, in their order.
SYSTEM_METRICS: dict[str, tuple[str, Callable[[float | None], str]]] = {
    "processors": ("processors", number),
    "makespan": ("makespan", duration),
    "utilisation": ("utilisation", share),
    "utilisation_while_arriving": ("utilisation while jobs arrive", share),
    "offered_load": ("offered load", share),
    "lost_capacity": ("lost capacity", share),
    "fragmentation": ("idle: no waiting job fits", share),
    "held_back": ("idle: a waiting job would fit", share),
    "no_demand": ("idle: no job waits", share),
    "mean_queue_length": ("mean queue length, jobs", number),
    "max_queue_length": ("longest queue, jobs", number),
    "mean_queued_processors": ("mean processors asked for by the queue", number),
    "throughput": ("jobs finished per hour", number),
}

#: What the classes of jobs are called.
CLASS_NAMES: dict[str, str] = {
    "all": "all",
    "SN": "SN short, narrow",
    "LN": "LN long, narrow",
    "SW": "SW short, wide",
    "LW": "LW long, wide",
}

#: Of each class: column title, metric (of which the mean is shown) or figure, and how it is written.
CLASS_METRICS: tuple[tuple[str, str, Callable[[float | None], str]], ...] = (
    ("jobs", "jobs", number),
    ("wait", "wait", duration),
    ("turnaround", "turnaround", duration),
    ("slowdown", "slowdown", number),
    ("slowdown ratio", "slowdown_ratio", number),
)


#: Of each pool, as :data:`CLASS_METRICS`.
POOL_METRICS: tuple[tuple[str, str, Callable[[float | None], str]], ...] = (
    ("jobs", "jobs", number),
    ("processors", "processors", number),
    ("utilisation", "utilisation", share),
    ("wait", "wait", duration),
    ("turnaround", "turnaround", duration),
    ("bounded slowdown", "bounded_slowdown", number),
)


def job_figures(summary: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any], Callable[[Any], str]]]:
    """Of each per-job metric of a summary: its title, its statistics, and how they are written."""
    figures = [(title, summary["jobs"][key], write) for key, (title, write) in JOB_METRICS.items()]
    energy = summary["energy"]
    if energy is not None:
        figures.append(("energy", energy["per_job"], energy_writer(energy)))
    return figures


def class_figures(found: Mapping[str, Any]) -> list[str]:
    """The texts of :data:`CLASS_METRICS` for one class of a summary."""
    return _means(found, CLASS_METRICS)


def pool_figures(found: Mapping[str, Any]) -> list[str]:
    """The texts of :data:`POOL_METRICS` for one pool of a summary."""
    return _means(found, POOL_METRICS)


def _means(
    found: Mapping[str, Any], metrics: Sequence[tuple[str, str, Callable[[float | None], str]]]
) -> list[str]:
    values = (found[key] for _, key, _ in metrics)
    means = (value["mean"] if isinstance(value, Mapping) else value for value in values)
    return [write(value) for value, (_, _, write) in zip(means, metrics, strict=True)]
