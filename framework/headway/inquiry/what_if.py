"""Two courses beside each other: the one that is planned, and the one under another policy."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import inf

import msgspec

from headway.inquiry.course import Course
from headway.inquiry.reports import CourseReport, ForeseenJob, UseOverTime, WhatIfReport

#: Starts within so many seconds are the same.
_SAME = 1.0
#: Spans of the use over time.
_SPANS = 120
#: Bytes of the reports of jobs in one answer, at most.
_BYTES = 3 * 1024 * 1024


def compared(
    policy: str, now: float, jobs: Sequence[ForeseenJob], present: Course, other: Course, most: int
) -> WhatIfReport:
    """The report. ``jobs``: all that wait, without their starts; ``most``: of these, so many are told."""
    both: list[tuple[float, float]] = []
    counts = dict.fromkeys(("earlier", "later", "same", "unknown"), 0)
    told: list[ForeseenJob] = []
    size = 0
    full = False
    for job in jobs:
        here, there = present.starts.get(job.id), other.starts.get(job.id)
        counts[_change(here, there, present, other)] += 1
        if here is not None and there is not None:
            both.append((here - job.submitted, there - job.submitted))
        if not full and len(told) < most:
            made = msgspec.structs.replace(job, present=here, other=there)
            size += len(msgspec.json.encode(made)) + 1
            full = size > _BYTES
            if not full:
                told.append(made)
    until = _until(now, present, other)
    return WhatIfReport(
        policy, now, _report(present, now, until, [one for one, _ in both]),
        _report(other, now, until, [one for _, one in both]), len(jobs), **counts, until=until,
        use=_use(now, until, present, other), jobs=tuple(told), left_out=len(jobs) - len(told),
    )  # fmt: skip


def _change(here: float | None, there: float | None, present: Course, other: Course) -> str:
    """What becomes of a job's start. One that is not known comes after all that is known."""
    if here is None and there is None:
        return "unknown"
    if here is None:
        return "earlier" if there is not None and there < _known_until(present) else "unknown"
    if there is None:
        return "later" if here < _known_until(other) else "unknown"
    if abs(there - here) < _SAME:
        return "same"
    return "earlier" if there < here else "later"


def _known_until(course: Course) -> float:
    return inf if course.complete else course.reached


def _until(now: float, *courses: Course) -> float | None:
    """Up to when both courses are known, or all jobs have started; None: that is no time."""
    known = min(map(_known_until, courses))
    if known == inf:
        known = max((start for course in courses for start in course.starts.values()), default=now)
    return known if known > now else None


def _report(course: Course, now: float, until: float | None, waits: Sequence[float]) -> CourseReport:
    use = None
    if until is not None and course.processors:
        use = round(_busy_seconds(course.busy, now, until) / (course.processors * (until - now)), 4)
    return CourseReport(
        course.plugins, len(course.starts), None if course.complete else course.reached, course.ended,
        statistics.fmean(waits) if waits else None, statistics.median(waits) if waits else None, use,
    )  # fmt: skip


def _use(now: float, until: float | None, *courses: Course) -> UseOverTime:
    if until is None or not all(course.processors for course in courses):
        return UseOverTime()
    length = (until - now) / _SPANS
    borders = [now + length * at for at in range(_SPANS)] + [until]
    shares = [
        tuple([
            round(seconds / (course.processors * length), 4)
            for seconds in _in_spans(course.busy, borders)
        ])
        for course in courses
    ]  # fmt: skip
    return UseOverTime(tuple([start + length / 2 for start in borders[:-1]]), *shares)


def _busy_seconds(busy: Sequence[tuple[float, int]], start: float, end: float) -> float:
    return next(iter(_in_spans(busy, [start, end])))


def _in_spans(busy: Sequence[tuple[float, int]], borders: Sequence[float]) -> Iterable[float]:
    """Processor seconds between each border and the next, of a curve that begins at or before the first."""
    at = 0
    for start, end in pairwise(borders):
        seconds = 0.0
        while at < len(busy) and busy[at][0] < end:
            since = max(busy[at][0], start)
            until = min(busy[at + 1][0], end) if at + 1 < len(busy) else end
            seconds += max(0.0, until - since) * busy[at][1]
            if until >= end:
                break
            at += 1
        yield seconds
