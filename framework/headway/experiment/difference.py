"""How two runs of one workload differ: which jobs, by how much, and the first decision that is another.

Both runs are read from their files, so the runs may be of different configurations, machines or versions of
headway. A job is the same job in both if its id, submission and size are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from headway.errors import UserError
from headway.report.folder import read_decisions, read_jobs, read_metrics

#: How many jobs are named: those whose start moved most, and the first that wait.
NAMED = 5
#: Figures of both runs that stand side by side: name -> keys of ``metrics.json``.
FIGURES: Mapping[str, tuple[str, ...]] = {
    "mean wait": ("jobs", "wait", "mean"),
    "p95 wait": ("jobs", "wait", "p95"),
    "mean bounded slowdown": ("jobs", "bounded_slowdown", "mean"),
    "utilisation": ("system", "utilisation"),
    "makespan": ("system", "makespan"),
}


class Moved(msgspec.Struct, frozen=True):
    """A job that starts at another time. Times are absolute seconds; None: it never starts."""

    job_id: str
    processors: int
    first: float | None
    second: float | None


class Shift(msgspec.Struct, frozen=True):
    """By how much a time of the jobs that have it in both runs differs, in seconds, second less first."""

    #: Jobs for which it differs, and the jobs that have it in one run only.
    differing: int
    only_one: int
    #: Over the differing jobs; None without any.
    mean: float | None
    mean_absolute: float | None
    largest: float | None


class Waiting(msgspec.Struct, frozen=True):
    """A job that waits. ``limit``: the user's estimate, seconds."""

    job_id: str
    processors: int
    limit: float
    submitted: float


class Taken(msgspec.Struct, frozen=True):
    """A decision, as ``decisions.csv`` has it."""

    decision: str
    job_id: str
    nodes: str
    reason: str
    accepted: bool
    message: str
    details: str


class FirstDifference(msgspec.Struct, frozen=True):
    """The first moment at which the runs decide differently, and what both knew then."""

    #: Absolute seconds.
    time: float
    #: What is decided at that moment in the first run alone, and in the second alone.
    first: list[Taken]
    second: list[Taken]
    #: When each job of these decisions starts in the runs; None: never.
    starts: list[Moved]
    #: How many jobs wait then, and the first of them by submission.
    waiting: int
    heads: list[Waiting]
    #: Processors that running jobs hold then, and of how many, as far as the runs say.
    held: int
    processors: int | None


class RunDifference(msgspec.Struct, frozen=True):
    """How the second run differs from the first."""

    same: bool
    #: Labels, and what else the runs were made of that differs: name -> both values.
    labels: tuple[str, str]
    made_of: dict[str, tuple[Any, Any]]
    #: Jobs in both, and in one alone (with another id, submission or size).
    jobs: int
    only_first: int
    only_second: int
    start: Shift
    end: Shift
    #: Jobs with other nodes, and with another state at the end.
    nodes: int
    states: int
    #: Those whose start moved most, the largest first.
    most: list[Moved]
    #: Each of :data:`FIGURES` of both; None: it has no value.
    figures: dict[str, tuple[float | None, float | None]]
    #: None: all decisions are the same, or a run has none.
    decided: FirstDifference | None


def difference(first: Path, second: Path) -> RunDifference:
    """How the run in the folder ``second`` differs from the run in ``first`` (``headway dry-run --out``).

    Raises :class:`UserError` if a folder holds no run, or if no job is in both: the runs are not of the same
    workload.
    """
    metrics = [read_metrics(folder) for folder in (first, second)]
    tables = [read_jobs(folder) for folder in (first, second)]
    here, there = _common(*tables)
    if not len(here):
        one, other = (str(found["run"]["about"].get("workload", "unknown")) for found in metrics)
        raise UserError(
            f"{second}: expected a run of the same workload as {first} ({one}), found one of {other}, in "
            "which no job has the same id, submission and size"
        )
    ours, theirs = tables[0][here], tables[1][there]
    decided = _first_difference(
        [read_decisions(folder) for folder in (first, second)], tables, _processors(metrics[0])
    )
    start, end = _shift(ours, theirs, "start_time"), _shift(ours, theirs, "end_time")
    nodes, states = (int((ours[name] != theirs[name]).sum()) for name in ("nodes", "state"))
    alone = len(tables[0]) - len(here), len(tables[1]) - len(there)
    changed = (start.differing, start.only_one, end.differing, end.only_one, nodes, states, *alone)
    return RunDifference(
        same=not any(changed) and decided is None,
        labels=(str(metrics[0]["run"]["label"]), str(metrics[1]["run"]["label"])),
        made_of=_made_of(*metrics),
        jobs=len(here),
        only_first=alone[0],
        only_second=alone[1],
        start=start,
        end=end,
        nodes=nodes,
        states=states,
        most=_most(ours, theirs),
        figures={name: (_at(metrics[0], keys), _at(metrics[1], keys)) for name, keys in FIGURES.items()},
        decided=decided,
    )


def _common(one: NDArray[Any], other: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The places of the jobs that are in both tables."""
    keys = [
        list(zip(table["job_id"], table["submit_time"].tolist(), table["processors"].tolist(), strict=True))
        for table in (one, other)
    ]
    where = {key: at for at, key in enumerate(keys[1])}
    pairs = [(at, where[key]) for at, key in enumerate(keys[0]) if key in where]
    found = np.array(pairs, np.int64).reshape(len(pairs), 2)
    return found[:, 0], found[:, 1]


def _shift(ours: NDArray[Any], theirs: NDArray[Any], name: str) -> Shift:
    moved = theirs[name] - ours[name]
    once = int((np.isnan(ours[name]) != np.isnan(theirs[name])).sum())
    other = moved[~np.isnan(moved) & (moved != 0)]
    if not len(other):
        return Shift(0, once, None, None, None)
    largest = float(other[np.abs(other).argmax()])
    return Shift(len(other), once, float(other.mean()), float(np.abs(other).mean()), largest)


def _most(ours: NDArray[Any], theirs: NDArray[Any]) -> list[Moved]:
    """The jobs whose start moved most; a start that is in one run alone moved more than any other."""
    apart = np.abs(theirs["start_time"] - ours["start_time"])
    apart[np.isnan(ours["start_time"]) != np.isnan(theirs["start_time"])] = np.inf
    apart[np.isnan(apart)] = 0.0
    order = np.argsort(-apart, kind="stable")[:NAMED]
    return [
        Moved(
            ours["job_id"][at], int(ours["processors"][at]), _time(ours["start_time"][at]),
            _time(theirs["start_time"][at]),
        )
        for at in order.tolist()
        if apart[at]
    ]  # fmt: skip


def _time(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _made_of(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """What the runs say they were made of, where it differs."""
    said = [
        {"policy": run["label"], "seed": run["seed"], "version": run["headway_version"], **run["about"]}
        for run in (one["run"], other["run"])
    ]
    names = dict.fromkeys((*said[0], *said[1]))
    return {
        name: (said[0].get(name), said[1].get(name))
        for name in names
        if said[0].get(name) != said[1].get(name)
    }


def _at(metrics: Mapping[str, Any], keys: Sequence[str]) -> float | None:
    found: Any = metrics
    for key in keys:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found if isinstance(found, int | float) else None


def _processors(metrics: Mapping[str, Any]) -> int | None:
    found = _at(metrics, ("system", "processors"))
    return None if found is None else int(found)


# ---------------------------------------------------------------------- the first difference


def _first_difference(
    decisions: Sequence[NDArray[Any]], tables: Sequence[NDArray[Any]], processors: int | None
) -> FirstDifference | None:
    """The first moment whose decisions are not the same in both, reasons aside."""
    if not all(map(len, decisions)):
        return None
    for time, first, second in _moments(*decisions):
        alone = _without(first, second), _without(second, first)
        if alone[0] or alone[1]:
            return _seen(time, alone, tables, processors)
    return None


def _moments(one: NDArray[Any], other: NDArray[Any]) -> Iterator[tuple[float, list[Taken], list[Taken]]]:
    """Each moment at which a run decides something, with the decisions of both."""
    runs = [groupby(table.tolist(), key=lambda row: row[0]) for table in (one, other)]
    nexts = [next(run, None) for run in runs]
    while nexts[0] is not None or nexts[1] is not None:
        time = min(found[0] for found in nexts if found is not None)
        taken: list[list[Taken]] = [[], []]
        for at, found in enumerate(nexts):
            if found is not None and found[0] == time:
                taken[at] = [_taken(row) for row in found[1]]
                nexts[at] = next(runs[at], None)
        yield time, taken[0], taken[1]


def _taken(row: tuple[Any, ...]) -> Taken:
    return Taken(*row[1:])


def _key(one: Taken) -> tuple[str, str, str, bool, str]:
    return one.decision, one.job_id, one.nodes, one.accepted, one.details


def _without(ours: Sequence[Taken], theirs: Sequence[Taken]) -> list[Taken]:
    """Our decisions less theirs."""
    left = Counter(map(_key, theirs))
    found = []
    for one in ours:
        if left[_key(one)]:
            left[_key(one)] -= 1
        else:
            found.append(one)
    return found


def _seen(
    time: float,
    alone: tuple[list[Taken], list[Taken]],
    tables: Sequence[NDArray[Any]],
    processors: int | None,
) -> FirstDifference:
    """What both runs knew at that moment: all that was decided before is the same."""
    jobs = tables[0]
    submitted = jobs["submit_time"] <= time
    unstarted = np.isnan(jobs["start_time"]) | (jobs["start_time"] >= time)
    waits = np.flatnonzero(submitted & unstarted & (jobs["state"] != "refused"))
    runs = (jobs["start_time"] < time) & ~(jobs["end_time"] <= time)
    about = dict.fromkeys(one.job_id for side in alone for one in side if one.job_id)
    starts = [
        Moved(job, size, *(_start(table, job) for table in tables))
        for job in about
        for size in [_of(jobs, job, "processors")]
    ]
    return FirstDifference(
        time=time,
        first=alone[0],
        second=alone[1],
        starts=starts,
        waiting=len(waits),
        heads=[
            Waiting(
                jobs["job_id"][at], int(jobs["processors"][at]), float(jobs["estimate"][at]),
                float(jobs["submit_time"][at]),
            )
            for at in waits[:NAMED].tolist()
        ],
        held=int(np.nansum(jobs["allocated"][runs])),
        processors=processors,
    )  # fmt: skip


def _of(table: NDArray[Any], job: str, column: str) -> int:
    at = np.flatnonzero(table["job_id"] == job)
    return int(table[column][at[0]]) if len(at) else 0


def _start(table: NDArray[Any], job: str) -> float | None:
    at = np.flatnonzero(table["job_id"] == job)
    return _time(table["start_time"][at[0]]) if len(at) else None
