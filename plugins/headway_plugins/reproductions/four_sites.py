"""Four logs as four sites: jobs that stay at home, or follow load, data and price. An experiment of ours.

KTH-SP2, CTC-SP2, SDSC-SP2 and SDSC-BLUE of the Parallel Workloads Archive are four clusters of one federation
under EASY, and the plugin ``follow`` moves waiting jobs between them. Decisions:

- Each seed draws each log anew by weeks (:mod:`headway.workload.resampling`). The first ``weeks`` are run,
  and the jobs of the first ``warmup`` days and of the last day do not count.
- All clocks are right: a job is submitted at the second of the week (UTC) at which its log has it, modulo the
  weeks that are run. So the nights of Stockholm are the afternoons of San Diego, as they were.
- Each job reads one of :data:`DATASETS` datasets, a popular one more often (Zipf, exponent 1). Sizes are
  uniform between 1 and 100 GB, each dataset is at one site in the beginning, and a copy takes a link of 50
  MB/s for itself. Stores are large enough for all. A job waits for its data wherever it waits, at home too.
- A processor-hour costs 3 from 8 to 20 h by the site's clock, 1 otherwise. All sites cost the same in the
  mean.
- Runtimes are the log's at each site, although their machines differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import numpy as np

from headway.emulation import emulate
from headway.errors import UserError
from headway.experiment.campaign import Row, Task
from headway.experiment.judging import verdict
from headway.experiment.reproduction import Claim, Context
from headway.experiment.statistics import Interval, interval
from headway.metrics.jobs import job_columns
from headway.model import ClusterDescription, Dataset, Link, PoolDescription, Site, Sites, Store
from headway.model.sites import DATA
from headway.plugins import Catalogue, PluginConfig
from headway.report.atomic import writing
from headway.results import RunResult
from headway.workload import read_trace, resampled, trace_jobs
from headway.workload.filters import window
from headway.workload.jobs import TraceJob

HOUR, DAY, WEEK = 3600.0, 86400.0, 7 * 86400.0
#: A Monday, 0:00 UTC.
MONDAY = 4 * DAY


@dataclass(frozen=True)
class Log:
    """A log that stands for a site."""

    site: str
    #: The trace's file begins with this.
    file: str
    processors: int
    #: Hours of its clock before UTC.
    offset: int


LOGS = (
    Log("kth", "KTH-SP2", 100, 1), Log("ctc", "CTC-SP2", 338, -5), Log("sdsc", "SDSC-SP2", 128, -8),
    Log("blue", "SDSC-BLUE", 1152, -8),
)  # fmt: skip
DATASETS, SMALLEST, LARGEST, BANDWIDTH = 200, 1, 100, 50e6
GIGABYTE = 10**9
#: Copies on their way at a time: all that are wanted.
COPIES = 10_000
#: What a processor-hour costs by day and by night.
DAY_PRICE, NIGHT_PRICE, MORNING, EVENING = 3.0, 1.0, 8, 20

HOME = "kept at home"
#: What jobs follow: label -> options of the plugin ``follow``.
VARIANTS: Mapping[str, Mapping[str, Any]] = {
    HOME: {"by": ["load"], "most_routes": 0},
    "by load": {"by": ["load"]},
    "by data": {"by": ["data"]},
    "by price": {"by": ["price"]},
    "by load, then price": {"by": ["load", "price"]},
}
WAIT, SLOWDOWN, GEOMETRIC, P95 = (
    "mean wait",
    "mean bounded slowdown",
    "geometric mean bounded slowdown",
    "p95 wait",
)
COST, BYTES, ROUTES, MOVED, JOBS = "cost of a processor-hour", "bytes copied", "routes", "moved", "jobs"
METRICS = (WAIT, P95, SLOWDOWN, GEOMETRIC, COST, BYTES, ROUTES, MOVED)
#: By which metric each variant is to be better than home.
AIMS = (
    ("by load", WAIT), ("by load", GEOMETRIC), ("by data", BYTES), ("by price", COST),
    ("by load, then price", WAIT), ("by load, then price", COST),
)  # fmt: skip


def federation(rng: np.random.Generator) -> ClusterDescription:
    """The four sites, with datasets that are drawn."""
    sites = tuple(Site(log.site, (f"{log.site}:pool",), store=Store()) for log in LOGS)
    pools = tuple(PoolDescription(f"{log.site}:pool", log.processors) for log in LOGS)
    names = [log.site for log in LOGS]
    links = tuple(Link(a, b, BANDWIDTH, 0.0) for a in names for b in names if a != b)
    sizes = rng.integers(SMALLEST, LARGEST + 1, DATASETS) * GIGABYTE
    places = rng.integers(0, len(LOGS), DATASETS)
    datasets = tuple(
        Dataset(f"d{at}", int(size), (names[place],))
        for at, (size, place) in enumerate(zip(sizes.tolist(), places.tolist(), strict=True))
    )
    return ClusterDescription("four sites", pools, sites=Sites(sites, links, datasets))


def jobs_of(log: Log, path: Path, weeks: int, rng: np.random.Generator) -> list[TraceJob]:
    """Some weeks of a log, drawn anew, each job with a dataset. Seconds since a Monday, 0:00 UTC."""
    trace = read_trace(path)
    if trace.epoch is None:
        raise UserError(f"{path}: expected UnixStartTime in its header, found none")
    begin = float(trace.records[0, 1])
    phase = (trace.epoch + begin - MONDAY) % WEEK
    drawn = window(resampled(trace, "weeks", rng), 0.0, weeks * WEEK)
    jobs, _ = trace_jobs(drawn, log.processors, pool=f"{log.site}:pool")
    popularity = 1.0 / np.arange(1, DATASETS + 1)
    reads = rng.choice(DATASETS, len(jobs), p=popularity / popularity.sum()).tolist()
    return [
        msgspec.structs.replace(
            one,
            row=-1,
            job=msgspec.structs.replace(
                one.job,
                id=f"{log.site}:{one.job.id}",
                user=f"{log.site}:{one.job.user}",
                submit_time=(one.job.submit_time - begin + phase) % (weeks * WEEK),
                dependencies=(),
                attributes={DATA: f"d{number}"},
            ),
        )
        for one, number in zip(jobs, reads, strict=True)
    ]


def run_point(paths: Mapping[str, Path], weeks: int, warmup: float, seed: int) -> list[Row]:
    """All variants on the logs of one seed; ``paths``: of each site."""
    rng = np.random.default_rng(seed)
    cluster = federation(rng)
    jobs = [one for log in LOGS for one in jobs_of(log, paths[log.site], weeks, rng)]
    jobs.sort(key=lambda one: one.job.submit_time)
    rows = []
    with TemporaryDirectory() as directory:
        prices = written_prices(Path(directory), weeks)
        for label, options in VARIANTS.items():
            all_options = {**options, "movable": "all", "price": prices, "parallel": COPIES}
            follow = PluginConfig("follow", all_options)
            result = emulate(
                cluster, jobs, [follow, PluginConfig("easy")], Catalogue(), label=label, seed=seed,
                start=0.0, epoch=MONDAY,
            )  # fmt: skip
            found = figures(result, warmup * DAY, weeks * WEEK - DAY)
            rows.append(Row("four sites", 0.0, label, seed, found))
    return rows


def written_prices(directory: Path, weeks: int) -> dict[str, str]:
    """A file of prices for each site, by its own clock."""
    found = {}
    for log in LOGS:
        path = directory / f"price-{log.site}.csv"
        lines = ["time,price"]
        for day in range(-1, 7 * weeks + 30):
            midnight = MONDAY + day * DAY - log.offset * HOUR
            lines.append(f"{midnight + MORNING * HOUR:.0f},{DAY_PRICE:g}")
            lines.append(f"{midnight + EVENING * HOUR:.0f},{NIGHT_PRICE:g}")
        path.write_text("\n".join([*lines, ""]), encoding="utf-8")
        found[log.site] = str(path)
    return found


def figures(result: RunResult, begin: float, end: float) -> dict[str, float]:
    """What is kept of a run: waits of the jobs that were submitted in a span, the rest of the whole run."""
    columns = job_columns(result)
    counts = (columns.submit >= begin) & (columns.submit < end) & columns.finished
    wait = (columns.start - columns.submit)[counts]
    slowdown = columns.bounded_slowdown[counts]
    told = result.contributed["follow"](result)
    hours = sum(site["processor_hours"] for site in told["sites"].values())
    moved = [one.pool.partition(":")[0] != one.job.id.partition(":")[0] for one in result.jobs]
    return {
        WAIT: float(wait.mean()),
        P95: float(np.percentile(wait, 95)),
        SLOWDOWN: float(slowdown.mean()),
        GEOMETRIC: float(np.exp(np.log(slowdown).mean())),
        COST: told["cost"] / hours,
        BYTES: float(told["bytes_copied"]),
        ROUTES: float(told["routes"]),
        MOVED: float(np.mean(np.array(moved)[counts])),
        JOBS: float(counts.sum()),
        **{f"work at {log.site}": told["sites"][log.site]["processor_hours"] / hours for log in LOGS},
        **{
            f"mean wait, jobs of {log.site}": float(
                (columns.start - columns.submit)[counts & _of(result, log.site)].mean()
            )
            for log in LOGS
        },
    }


def _of(result: RunResult, site: str) -> np.ndarray[Any, np.dtype[np.bool_]]:
    return np.array([one.job.id.startswith(f"{site}:") for one in result.jobs])


class FourSites:
    """Four logs as four sites."""

    title = "Four logs as four sites: jobs that follow load, data and price (an experiment of ours)"
    published = "The experiment is ours: no paper has published it."

    def __init__(self, weeks: int = 2, warmup: float = 2.0) -> None:
        """``weeks``: that are run of each log; ``warmup``: days whose jobs do not count."""
        if isinstance(weeks, bool) or not isinstance(weeks, int) or not 1 <= weeks <= 20:
            raise UserError(f"--set weeks: expected a whole number from 1 to 20, found {weeks!r}")
        if isinstance(warmup, bool) or not isinstance(warmup, int | float) or not 0 <= warmup < 7 * weeks - 1:
            raise UserError(f"--set warmup: expected days from 0 to {7 * weeks - 1}, found {warmup!r}")
        self._weeks, self._warmup = weeks, float(warmup)

    def run(self, context: Context) -> list[Claim]:
        paths = {log.site: context.trace(log.file) for log in LOGS}
        missing = [log.file for log in LOGS if paths[log.site] is None]
        if missing:
            why = f"needs the traces {', '.join(missing)} (--traces DIR)"
            return [Claim("four sites", "(ours) jobs that follow load, data or price", why, "not run")]
        there = {site: path for site, path in paths.items() if path is not None}
        tasks = [
            Task(tuple(("four sites", 0.0, label, seed) for label in VARIANTS),
                 run_point, (there, self._weeks, self._warmup, seed))
            for seed in context.seeds
        ]  # fmt: skip
        rows = context.collect("four-sites", tasks, (self._weeks, self._warmup, LOGS, VARIANTS))
        with writing(context.out / "table.md") as stream:
            stream.write(table(rows))
        return [claim_of(rows, label, metric) for label, metric in AIMS]


def _values(rows: Sequence[Row], label: str, metric: str) -> list[float]:
    return [row.values[metric] for row in sorted(rows, key=lambda row: row.seed) if row.variant == label]


def less(rows: Sequence[Row], label: str, metric: str) -> Interval:
    """How much less than at home, in percent, seed by seed."""
    pairs = zip(_values(rows, HOME, metric), _values(rows, label, metric), strict=True)
    return interval([100 * (home - ours) / home for home, ours in pairs if home])


def claim_of(rows: Sequence[Row], label: str, metric: str) -> Claim:
    """Whether a variant is better than home by what it follows."""
    found = less(rows, label, metric)
    return Claim(
        f"four sites, {label}", f"(ours) {metric}: less than {HOME}", f"{found} % less", verdict([found])
    )


#: Metric -> its unit in the table and what it is divided by.
_UNITS = {
    WAIT: ("min", 60.0), P95: ("h", 3600.0), BYTES: ("TB", 1e12), MOVED: ("%", 0.01),
    **{f"mean wait, jobs of {log.site}": ("min", 60.0) for log in LOGS},
    **{f"work at {log.site}": ("%", 0.01) for log in LOGS},
}  # fmt: skip


def table(rows: Sequence[Row]) -> str:
    """All variants beside each other, as Markdown; ± is the 95 % interval over the seeds."""
    lines = [f"| | {' | '.join(VARIANTS)} |", "|---" * (len(VARIANTS) + 1) + "|"]
    for metric in dict.fromkeys((*METRICS, *_UNITS)):
        unit, scale = _UNITS.get(metric, ("", 1.0))
        cells = [
            str(interval([value / scale for value in _values(rows, label, metric)])) for label in VARIANTS
        ]
        lines.append(f"| {metric}{', ' + unit if unit else ''} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])
