"""Tables 5 and 6, Figures 10 and 11 and section 6.4 of the paper on elastic job bundling: a trace under EASY,
and under EASY with all jobs of 8 processors or more elastic.

F. Liu, J. B. Weissman: Elastic Job Bundling: An Adaptive Resource Request Strategy for Large-Scale Parallel
Applications. SC 2015, section 6.

Rows hold what the claims are judged by, so that they can be judged again without a run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from headway.experiment.campaign import Key, Row, Task
from headway.experiment.judging import size_verdict, verdict
from headway.experiment.reproduction import Claim
from headway.experiment.statistics import Interval
from headway.metrics.jobs import BOUND
from headway.workload import TraceJob
from headway_plugins.reproductions.ejb_measures import (
    LEAST,
    Course,
    Floats,
    change,
    change_by_weeks,
    counted,
    inversions,
    load,
    mean,
    opposite,
    percent,
    run_all,
)

#: By how many percent the paper's Table 5 has turnaround, wait and run time change.
TABLE_5 = {
    "CTC": {"elastic": (-11.8, -18.4, 12.4), "others": (-7.2, -19.9, 0.0), "all": (-9.3, -18.9, 2.6)},
    "SDSC": {"elastic": (-29.8, -40.2, 21.7), "others": (-18.1, -35.3, 0.0), "all": (-26.5, -39.2, 10.2)},
    "BLUE": {"elastic": (-11.8, -19.9, 8.4), "others": (-22.2, -82.0, 0.0), "all": (-13.4, -24.1, 5.7)},
    "KTH": {"elastic": (-21.0, -38.2, 15.9), "others": (0.4, 1.4, 0.0), "all": (-8.7, -24.7, 3.8)},
}
#: Kinds of jobs, as rows and as claims have them.
KINDS = {"elastic": "elastic jobs", "others": "other jobs", "all": "all jobs"}
#: Of these the paper says that the change is not significant.
INSIGNIFICANT = {("KTH", "others")}
#: Table 6: fragmentation, percent.
TABLE_6 = {"CTC": -34.0, "SDSC": -57.4, "BLUE": -58.0, "KTH": -58.8}
MEASURES = ("turnaround", "wait", "run time")
SLOWDOWN = "slowdown"
#: How many jobs may be the single elastic job; the same in every row.
ELIGIBLE = "eligible"


def all_elastic(name: str, path: Path, limit: int | None, workers: int) -> Task:
    """The two runs of a trace, a row a kind of jobs; two processes if there may be as many."""
    keys: tuple[Key, ...] = tuple((name, 0.0, kind, 1) for kind in KINDS)
    return Task(keys, run_all_elastic, (name, path, limit, workers))


def run_all_elastic(name: str, path: Path, limit: int | None, workers: int) -> list[Row]:
    """See :func:`all_elastic`."""
    jobs, size = load(path, limit)
    before, after = both(jobs, size, workers)
    among = counted(before, after)
    classes = {"elastic": among & after.elastic, "others": among & ~after.elastic, "all": among}
    # Bounded by the run time without bundling.
    least = np.maximum(before.end - before.start, BOUND)
    old = {**before.measures, SLOWDOWN: (before.end - before.submit) / least}
    new = {**after.measures, SLOWDOWN: (after.end - after.submit) / least}
    whole = {ELIGIBLE: float(len(eligible(before)))}
    for label, course in (("before", before), ("after", after)):
        waits = (course.start - course.submit)[among]
        whole |= {
            f"fragmentation {label}": course.fragmentation,
            f"wait a processor {label}": float(np.polyfit(course.processors[among], waits, 1)[0]),
            f"inversions {label}": float(inversions(course.start[among])),
        }
    rows = []
    for kind, mine in classes.items():
        values = {"jobs": float(mine.sum())}
        for measure in (*MEASURES, SLOWDOWN):
            values |= _changes(measure, old[measure][mine], new[measure][mine], before.submit[mine])
        rows.append(Row(name, 0.0, kind, 1, values | whole))
    return rows


def both(jobs: Sequence[TraceJob], size: int, workers: int) -> list[Course]:
    """A trace under EASY, and under EASY with bundling."""
    with ProcessPoolExecutor(min(2, workers)) as pool:
        return list(pool.map(run_all, [jobs, jobs], [size, size], ["easy", "ejb"]))


def eligible(before: Course) -> NDArray[np.int64]:
    """The jobs of which each may be the single elastic job: jobs that wait and are wide enough."""
    waited = (before.start > before.submit) & (before.processors >= LEAST) & counted(before)
    return np.flatnonzero(waited)


def claims_of(name: str, rows: Sequence[Row]) -> list[Claim]:
    """What the paper says of a trace, beside its rows."""
    claims = []
    for row in rows:
        for measure, published in zip(MEASURES, TABLE_5[name][row.variant], strict=True):
            if published:
                claims.append(_changed(row, measure, published))
        claims.append(_slowdown(row))
    whole = rows[0].values
    idle, slope, pairs = (
        (whole[f"{what} before"], whole[f"{what} after"])
        for what in ("fragmentation", "wait a processor", "inversions")
    )
    falls, fewer = (100 * (after / old - 1) if old else 0.0 for old, after in (idle, pairs))
    return [
        *claims,
        Claim(f"Table 6, {name}", f"fragmentation {TABLE_6[name]:+.1f} %",
              f"{falls:+.1f} % ({idle[0]:.1f} to {idle[1]:.1f} processors)", "yes" if falls < 0 else "no",
              f"{falls / TABLE_6[name]:.2f} of it"),
        Claim(f"Figure 11, {name}", "the wait grows less with the size of a job",
              f"{slope[0]:.0f} to {slope[1]:.0f} s a processor", "yes" if slope[1] < slope[0] else "no"),
        Claim(f"Section 6.4, {name}", "priority inversions fall by about 20 %", f"{fewer:+.1f} %",
              "yes" if fewer < 0 else "no", f"{-fewer / 20:.2f} of it"),
    ]  # fmt: skip


def _changes(measure: str, old: Floats, new: Floats, submit: Floats) -> dict[str, float]:
    """How a measure changes, as columns."""
    by_job, by_week = Interval(0.0, 0.0, 0), Interval(0.0, float("nan"), 0)
    if len(old):
        by_job, by_week = change(old, new), change_by_weeks(old, new, submit)
    return {
        f"{measure} before": mean(old), f"{measure} after": mean(new),
        f"{measure} most before": float(old.max(initial=0.0)),
        f"{measure} most after": float(new.max(initial=0.0)),
        f"{measure} change": by_job.mean, f"{measure} by jobs": by_job.half,
        f"{measure} by weeks": by_week.half, f"{measure} weeks": float(by_week.count),
    }  # fmt: skip


def _found(values: Mapping[str, float], measure: str) -> tuple[Interval, Interval]:
    """The change with the paper's interval, and with that over weeks."""
    gain = values[f"{measure} change"]
    return (
        Interval(gain, values[f"{measure} by jobs"], int(values["jobs"])),
        Interval(gain, values[f"{measure} by weeks"], int(values[f"{measure} weeks"])),
    )


def _changed(row: Row, measure: str, published: float) -> Claim:
    values = row.values
    by_job, by_week = _found(values, measure)
    means = f"{values[f'{measure} before']:,.0f} to {values[f'{measure} after']:,.0f} s"
    direction = by_week if published > 0 else opposite(by_week)
    said, holds = f"{measure} of {KINDS[row.variant]} {published:+.1f} %", verdict([direction])
    if (row.scenario, row.variant) in INSIGNIFICANT:
        said += ", not significant"
        holds = "yes" if by_week.low <= 0 <= by_week.high else "no"
    return Claim(
        f"Table 5, {row.scenario}", said,
        f"{percent(by_job, by_week)} ({means}, {values['jobs']:,.0f} jobs)", holds,
        size_verdict(abs(published), direction),
    )  # fmt: skip


def _slowdown(row: Row) -> Claim:
    values = row.values
    by_job, by_week = _found(values, SLOWDOWN)
    means = f"{values[f'{SLOWDOWN} before']:.1f} to {values[f'{SLOWDOWN} after']:.1f}"
    return Claim(
        f"Figure 10, {row.scenario}", f"the mean bounded slowdown of {KINDS[row.variant]} falls",
        f"{percent(by_job, by_week)} ({means}); largest {values[f'{SLOWDOWN} most before']:.0f} to "
        f"{values[f'{SLOWDOWN} most after']:.0f}", verdict([opposite(by_week)]),
    )  # fmt: skip
