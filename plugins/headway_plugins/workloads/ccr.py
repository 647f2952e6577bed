"""The workload of the Center for Computational Research, Buffalo, after its published marginals.

A. A. Chandio, K. Bilal, N. Tziritas, Z. Yu, Q. Jiang, S. U. Khan, C.-Z. Xu, "A comparative study on resource
allocation and energy efficient job scheduling strategies in large-scale parallel computing systems", 2014,
section 4: 22,385 jobs in the 30 days from 2009-02-20 on 1,045 nodes of two processors. The trace is not
public; what the paper prints of it is its tables 2 to 5 and two shares in its text. :func:`fit` compares a
workload with all of them. What was decided here:

*Cells.* Table 4 (width x length) rules. Its percentages do not say the counts to the job, but there are
whole numbers whose percentages, rounded, are those of tables 3, 4 and 5, all totals included (the paper's
totals of rows and columns are not the sums of its rounded cells): :data:`CELLS`, found by integer
programming as those nearest to the percentages. Other numbers of jobs share them out by largest remainders.
The bins' gaps are closed by upper bounds (see :mod:`headway.workload.analysis`).

*Lengths* are log-uniform inside a cell, in whole seconds, from 1 s to ``longest`` (72 h; the paper has no
maximum). By that alone 80 % of the short jobs would end within 18 minutes and 69 % of the long ones within
12 hours, where the paper's text says 86 and 66.6; so these two rows are log-uniform in two pieces, before
and after 18 minutes and 12 hours, with as many jobs in each as the text asks for (``pieces: false``: one).

*Widths* are one processor, or even as the paper says: log-uniform over 2 to 24, and over 34 to ``widest``.
The paper has no largest size. Over 30 days on 2,090 processors the workload's load is 0.9 to 1.05 with 256,
and above 3 with the whole machine; its figure 2 exceeds 100 % "in many days" and not in all, so it is 256.

*Arrivals* follow the hours of the day, with round rates of our own (as in the model "month"), because
the values of figure 3 are not printed. Widths and lengths come in random order, which makes the load of days
differ. Time 0 is a midnight; the first job comes then, the last at the end. A ``load`` is met by the time
over which they are spread, the days' cycle staying as it is: the same seed gives the same jobs, in the same
order, at every load.

*Estimates* are the runtimes; with ``overestimate`` f they are uniform between the runtime and 1 + f times
the runtime (in whole seconds, not shorter).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, model_validator

from headway.hookspecs import Plugin, hookimpl
from headway.model import JobDescription, Request
from headway.model.classes import ClassBounds
from headway.plugins import Traits
from headway.workload import Trace, TraceJob, Workload, WorkloadModel, to_records
from headway.workload.analysis import LENGTH_BOUNDS, WIDTH_BOUNDS, Jobs, cell_rows, class_rows
from headway_plugins.workloads.month import BY_HOUR

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0

JOBS, DAYS, PROCESSORS = 22_385, 30.0, 2_090

#: Table 4, percent of jobs; rows are lengths, columns 1, 2-24 and more than 32 processors.
TABLE_4 = (
    (4.83, 0.58, 0.13),
    (7.60, 0.90, 0.38),
    (20.72, 3.40, 2.97),
    (3.73, 1.07, 0.27),
    (13.23, 0.67, 0.68),
    (18.43, 0.15, 0.16),
    (10.73, 8.27, 1.10),
)
TABLE_4_ROWS = (5.55, 8.88, 27.09, 5.07, 14.57, 18.74, 20.11)
TABLE_4_COLUMNS = (79.27, 15.03, 5.70)
LENGTHS = ("< 1 min", "2-10 min", "11-20 min", "21-60 min", "2-4 h", "5-8 h", "> 9 h")
WIDTHS = ("1", "2-24", "> 32")
#: Table 3, number of jobs.
TABLE_3 = {"short": 10_428, "long": 11_957}
TABLE_3_PERCENT = {"short": 46.58, "long": 53.42}
#: Table 5, percent of jobs.
TABLE_5 = {"SN": 36.88, "LN": 42.39, "SW": 9.70, "LW": 11.03}
#: Section 4.2: percent of the short jobs that end within 18 minutes, of the long ones within 12 hours.
WITHIN_18_MINUTES, WITHIN_12_HOURS = 86.0, 66.6

#: The whole numbers behind the tables' percentages; sum: 22,385.
CELLS = (
    (1082, 130, 30),
    (1701, 201, 85),
    (4638, 761, 665),
    (835, 239, 61),
    (2961, 149, 152),
    (4125, 33, 36),
    (2402, 1852, 247),
)

#: Sizes of the wide columns, both ends included; the last one ends with the option ``widest``.
_MIDDLE, _WIDE_FROM = (2, 24), 34
#: Rows that have two pieces, and where the second begins, seconds; the rows before are short, or long, too.
_SPLIT = {2: 18 * MINUTE, 6: 12 * HOUR}


class CcrOptions(BaseModel):
    """The options of :class:`CcrModel`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    jobs: int = Field(JOBS, ge=2, le=5_000_000, description="number of jobs")
    days: float | None = Field(
        None,
        gt=0,
        le=3660,
        description="days over which jobs are submitted; default: 30 where no load is given",
    )
    processors: int = Field(PROCESSORS, ge=_WIDE_FROM, le=10_000_000, description="size of the machine")
    load: float | None = Field(
        None, ge=0.001, le=100, description="offered load: submitted work over the machine's capacity"
    )
    widest: int | None = Field(
        None,
        ge=_WIDE_FROM,
        multiple_of=2,
        description="largest size; default: 256, or the machine's size if that is smaller",
    )
    longest: float = Field(72 * HOUR, gt=12 * HOUR, le=366 * DAY, description="longest runtime, seconds")
    pieces: bool = Field(True, description="draw lengths that meet the two shares of the paper's text")
    overestimate: float = Field(
        0.0, ge=0, le=10_000, description="largest excess of an estimate, in runtimes; 0: exact estimates"
    )
    pool: str = Field("pool", min_length=1, description="pool to which the jobs are sent")

    @model_validator(mode="after")
    def _possible(self) -> CcrOptions:
        # These follow the word "expected".
        if self.days is not None and self.load is not None:
            raise ValueError("either days or load: each follows from the other")
        if self.widest is not None and self.widest > self.processors:
            raise ValueError(f"widest within the machine's {self.processors} processors")
        return self

    @property
    def largest(self) -> int:
        """The largest size, an even one."""
        return self.widest if self.widest is not None else min(256, self.processors // 2 * 2)


class CcrModel:
    """The model as :class:`headway.workload.WorkloadModel`."""

    Options = CcrOptions

    def generate(self, rng: np.random.Generator, options: CcrOptions) -> Workload:
        """Jobs with ids "1", "2", ...; times in seconds from a midnight."""
        length, width = _cells(rng, options.jobs)
        runtime = _runtimes(rng, length, options)
        size = _sizes(rng, width, options.largest)
        uniform = np.sort(rng.random(options.jobs))
        slack = rng.random(options.jobs)
        estimate = np.maximum(np.floor(runtime * (1 + options.overestimate * slack)), runtime)

        work = float(size @ runtime)
        if options.load is None:
            days = options.days if options.days is not None else DAYS
            # The last second of the last day.
            span = max(np.floor(days * DAY) - 1, 1.0)
            note = f"{days:g} days: load {work / (options.processors * span):.4g}"
        else:
            span = max(work / (options.processors * options.load), 1.0)
            note = f"load {options.load:g}: submissions over {span / DAY:.4g} days"
        submit = _submissions(uniform, span)
        requests: dict[tuple[int, float], Request] = {}
        jobs = []
        for number, (at, wide, seconds, asked) in enumerate(
            zip(submit.tolist(), size.tolist(), runtime.tolist(), estimate.tolist(), strict=True), start=1
        ):
            request = requests.setdefault((wide, asked), Request(processors=wide, walltime=asked))
            job = JobDescription(id=str(number), submit_time=at, request=request, pool=options.pool)
            jobs.append(TraceJob(job=job, runtime=seconds))
        worst = max(abs(row.difference) for row in fit(Trace("ccr", records=to_records(jobs))) if row.percent)
        told = f"the paper's tables 3 to 5 and its text: largest difference {worst:.2f} percentage points"
        return Workload(jobs, processors=options.processors, notes=(note, told))


def _cells(rng: np.random.Generator, jobs: int) -> tuple[Integers, Integers]:
    """Row and column of table 4 of each job, in random order."""
    exact = np.ravel(CELLS) * (jobs / JOBS)
    counts = np.floor(exact).astype(np.int64)
    left = jobs - int(counts.sum())
    counts[np.argsort(counts - exact, kind="stable")[:left]] += 1
    cell = rng.permutation(np.repeat(np.arange(len(counts)), counts))
    return cell // len(WIDTHS), cell % len(WIDTHS)


def _runtimes(rng: np.random.Generator, length: Integers, options: CcrOptions) -> Floats:
    """Whole seconds, log-uniform between the bounds of each job's row."""
    bounds = np.array([0.0, *LENGTH_BOUNDS, options.longest])
    low, high = bounds[length] + 1, bounds[length + 1]
    if options.pieces:
        for row, border in _SPLIT.items():
            here = np.flatnonzero(length == row)
            alike = (length < 4) == (row < 4)
            share = WITHIN_18_MINUTES if row < 4 else WITHIN_12_HOURS
            wanted = round(share / 100 * int(alike.sum())) - int((alike & (length < row)).sum())
            count = min(max(wanted, 0), len(here))
            first, second = np.split(rng.permutation(here), [count])
            high[first] = border
            low[second] = border + 1
    return np.clip(np.rint(np.exp(rng.uniform(np.log(low), np.log(high)))), low, high)


def _sizes(rng: np.random.Generator, width: Integers, largest: int) -> Integers:
    """Processors: one, or even ones, log-uniform between the ends of each job's column."""
    low = np.array([1, _MIDDLE[0], _WIDE_FROM])[width]
    high = np.array([1, _MIDDLE[1], largest])[width]
    # An even size stands for itself and the odd one above it.
    drawn = np.exp(rng.uniform(np.log(low), np.log(high + 2)))
    even = np.clip(2 * np.floor(drawn / 2), low, high).astype(np.int64)
    return np.where(width == 0, 1, even)


def _submissions(uniform: Floats, span: float) -> Floats:
    """Whole seconds from 0 to ``span``, one for each of these sorted numbers, by the hours' rates."""
    spread = uniform - uniform[0]
    spread = spread / spread[-1] if spread[-1] > 0 else np.linspace(0.0, 1.0, len(spread))
    passed = np.concatenate(([0.0], np.cumsum(BY_HOUR / BY_HOUR.sum())))
    hours = np.linspace(0.0, 1.0, len(passed))
    days, part = np.divmod(span / DAY, 1.0)
    until = float(days) + float(np.interp(part, hours, passed))
    whole, rest = np.divmod(spread * until, 1.0)
    return np.rint(np.minimum(DAY * (whole + np.interp(rest, passed, hours)), span))


@dataclass(frozen=True)
class FitRow:
    """One figure of the paper beside that of a workload."""

    #: Where the paper has it: "table 4".
    where: str
    what: str
    paper: float
    generated: float
    #: True: both are per cent. False: counts.
    percent: bool = True

    @property
    def difference(self) -> float:
        """Generated - paper; percentage points, or a count."""
        return self.generated - self.paper


def fit(trace: Trace) -> list[FitRow]:
    """Every figure that the paper prints of the workload, beside that of ``trace``; percentages as it does.

    ``trace`` must have jobs of known runtime and size; others do not count.
    """
    jobs = Jobs.of(trace)
    here = jobs.measured
    total = int(here.sum())
    classes = {row["class"]: row["jobs"] for row in class_rows(jobs, ClassBounds())}
    counts = np.array([row["jobs"] for row in cell_rows(jobs, LENGTH_BOUNDS, WIDTH_BOUNDS)])
    table = counts.reshape(len(LENGTHS), len(WIDTHS))

    def share(count: float, whole: int = total) -> float:
        return round(100 * float(count) / max(whole, 1), 2)

    short, size = here & (jobs.runtime <= HOUR), jobs.size
    rows = [FitRow("table 2", "jobs", JOBS, total, percent=False)]
    for name, number in TABLE_3.items():
        rows.append(FitRow("table 3", f"{name} jobs", number, classes[name], percent=False))
        rows.append(FitRow("table 3", f"{name}, %", TABLE_3_PERCENT[name], share(classes[name])))
    for at, length in enumerate(LENGTHS):
        for column, width in enumerate(WIDTHS):
            what = f"{length}, {width} CPU{'' if width == '1' else 's'}, %"
            rows.append(FitRow("table 4", what, TABLE_4[at][column], share(table[at, column])))
        rows.append(FitRow("table 4", f"{length}, all, %", TABLE_4_ROWS[at], share(table[at].sum())))
    for column, width in enumerate(WIDTHS):
        what = f"all, {width} CPU{'' if width == '1' else 's'}, %"
        rows.append(FitRow("table 4", what, TABLE_4_COLUMNS[column], share(table[:, column].sum())))
    rows += [FitRow("table 5", f"{name}, %", value, share(classes[name])) for name, value in TABLE_5.items()]
    soon = int((short & (jobs.runtime <= 18 * MINUTE)).sum())
    within = int((here & ~short & (jobs.runtime <= 12 * HOUR)).sum())
    even = int((here & (size > 1) & (size % 2 == 0)).sum())
    rows += [
        FitRow("section 4.2", what, paper, share(count, classes[whole]))
        for what, paper, count, whole in (
            ("short jobs within 18 min, %", WITHIN_18_MINUTES, soon, "short"),
            ("long jobs within 12 h, %", WITHIN_12_HOURS, within, "long"),
            ("wide jobs of even size, %", 100.0, even, "wide"),
        )
    ]
    return rows


class Ccr(Plugin):
    """The workload model "ccr": a month of a data centre after its published marginals."""

    traits = Traits(
        paper=(
            "A. A. Chandio et al.: A comparative study on resource allocation and energy efficient job "
            "scheduling strategies in large-scale parallel computing systems, 2014"
        )
    )

    @hookimpl
    def register_workloads(self) -> dict[str, WorkloadModel]:
        return {"ccr": CcrModel()}
