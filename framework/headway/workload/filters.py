"""Pure functions from a trace to a part or a variant of it.

Each leaves the trace it is given as it is, keeps line numbers and issues, and adds a note to the header
that says what was done, as the cleaned traces of the Parallel Workloads Archive do.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from numpy.typing import NDArray

from headway.errors import UserError
from headway.workload.bounds import LONGEST_TIME
from headway.workload.emulation import sizes
from headway.workload.swf import with_notes
from headway.workload.trace import Column, Records, Trace


def first(trace: Trace, n: int) -> Trace:
    """The first ``n`` jobs, or all if there are fewer. Raises :class:`UserError` if ``n`` < 1."""
    _at_least_one("first", n)
    return _part(trace, slice(0, n), f"only the first {n} jobs")


def last(trace: Trace, n: int) -> Trace:
    """The last ``n`` jobs, or all if there are fewer. Raises :class:`UserError` if ``n`` < 1."""
    _at_least_one("last", n)
    return _part(trace, slice(max(len(trace) - n, 0), None), f"only the last {n} jobs")


def window(trace: Trace, start: float, end: float) -> Trace:
    """The jobs submitted from ``start`` (inclusive) to ``end`` (exclusive).

    Both are seconds after the trace's first submission; submit times stay as they are. Raises
    :class:`UserError` if the window is empty or holds no job.
    """
    if not (math.isfinite(start) and start < end):
        raise UserError(f"window: expected a start before its end, found {start:g} to {end:g} s")
    submit = trace.records[:, Column.SUBMIT]
    since = submit - submit[0] if len(submit) else submit
    inside = (since >= start) & (since < end)
    if not inside.any():
        reach = f"the last is submitted {since[-1]:g} s after the first" if len(since) else "there are none"
        raise UserError(f"{trace.path}: window: expected jobs from {start:g} to {end:g} s, but {reach}")
    return _part(trace, inside, f"only jobs submitted {start:g} to {end:g} s after the first")


def queue(trace: Trace, which: str) -> Trace:
    """The jobs of the queue of this name, or of this number.

    Raises :class:`UserError` if the trace has no such queue.
    """
    column = trace.records[:, Column.QUEUE]
    names = {number: trace.queue_names.get(number, str(number)) for number in np.unique(column).astype(int)}
    names.pop(-1, None)
    inside = np.isin(column, [number for number, name in names.items() if which in (name, str(number))])
    if not inside.any():
        known = ", ".join(sorted(names.values())) or "none"
        raise UserError(f"{trace.path}: expected one of the queues {known}; found {which!r}")
    return _part(trace, inside, f"only jobs of the queue {which}")


def scale_arrivals(trace: Trace, factor: float) -> Trace:
    """The times between submissions multiplied by ``factor``: 0.5 doubles the load.

    The first submission stays; times are rounded to whole seconds. Raises :class:`UserError` if the factor
    is not a positive number.
    """
    _positive("scale_arrivals", factor)
    submit = trace.records[:, Column.SUBMIT]
    if len(submit):
        with np.errstate(over="ignore"):
            submit = submit[0] + np.rint((submit - submit[0]) * factor)
    _within("scale_arrivals", factor, submit)
    return _noted(trace.at_times(submit), f"times between submissions multiplied by {factor:g}")


def scale_runtimes(trace: Trace, factor: float) -> Trace:
    """Runtimes and estimates multiplied by ``factor``: 2 doubles the load.

    Rounded to whole seconds; what was positive stays at least 1 s, because 0 would mean "not known".
    Raises :class:`UserError` if the factor is not a positive number.
    """
    _positive("scale_runtimes", factor)
    with np.errstate(over="ignore"):
        _within("scale_runtimes", factor, trace.records[:, [Column.RUNTIME, Column.ESTIMATE]] * factor)
    return _noted(trace.stretched(factor), f"runtimes and estimates multiplied by {factor:g}")


def scale_sizes(trace: Trace, factor: float, most: int) -> Trace:
    """Requested and allocated processors multiplied by ``factor``, in whole processors from 1 to ``most``.

    Sizes above ``most`` before stay as they are. Raises :class:`UserError` if the factor is not a positive
    number.
    """
    _positive("scale_sizes", factor)
    return _noted(trace.resized(factor, most), f"sizes multiplied by {factor:g}, at most {most}")


def drop_larger_than(trace: Trace, processors: int) -> Trace:
    """Without the jobs of more than ``processors``. Raises :class:`UserError` if ``processors`` < 1."""
    _at_least_one("drop_larger_than", processors)
    fitting = sizes(trace.records) <= processors
    return _part(trace, fitting, f"without jobs of more than {processors} processors")


def offered_load(trace: Trace, processors: int) -> float:
    """The work that is submitted as a share of what the machine can do meanwhile.

    That is the sum of size x runtime over ``processors`` x (last - first submission). Jobs of unknown
    runtime or size count nothing. Raises :class:`UserError` if ``processors`` < 1 or all jobs are
    submitted at one instant, which makes a load meaningless.
    """
    _at_least_one("offered_load", processors)
    submit = trace.records[:, Column.SUBMIT]
    span = float(submit[-1] - submit[0]) if len(submit) else 0.0
    if span <= 0:
        raise UserError(f"{trace.path}: offered load: expected submissions over some time, found one instant")
    work = np.maximum(sizes(trace.records), 0) * np.maximum(trace.records[:, Column.RUNTIME], 0)
    return float(work.sum()) / (processors * span)


def _part(trace: Trace, rows: slice | NDArray[np.bool_], note: str) -> Trace:
    return _noted(trace.part(rows), note)


def _noted(trace: Trace, note: str) -> Trace:
    return dataclasses.replace(trace, header=with_notes(trace.header, [note]))


def _at_least_one(what: str, n: int) -> None:
    if n < 1:
        raise UserError(f"{what}: expected at least 1, found {n}")


def _positive(what: str, factor: float) -> None:
    if not (math.isfinite(factor) and factor > 0):
        raise UserError(f"{what}: expected a factor greater than 0, found {factor:g}")


def _within(what: str, factor: float, times: Records) -> None:
    """Refuse times that are no seconds of any machine's life."""
    if times.size and not (np.abs(times) <= LONGEST_TIME).all():
        raise UserError(
            f"{what}: expected a factor that leaves times below {LONGEST_TIME:g} s, found {factor:g}"
        )
