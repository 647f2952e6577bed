"""A seeded month of a mid-sized machine: a workload for demonstrations and tests.

It has the traits that the literature finds in every production trace (D. G. Feitelson, "Workload
Modeling for Computer Systems Performance Evaluation", 2015, chapters 6 and 9; U. Lublin and
D. G. Feitelson, "The workload on parallel supercomputers: modeling the characteristics of rigid jobs",
JPDC 63, 2003; D. Tsafrir, Y. Etsion and D. G. Feitelson, "Modeling user runtime estimates", JSSPP 2005),
with round parameters of our own instead of fitted ones:

- arrivals follow the hours of the day and the days of the week;
- sizes lean to powers of two and to small jobs;
- runtimes are a mixture of short failures and a lognormal body that reaches from seconds to the limit,
  and grow slightly with size;
- few users submit most jobs, and a user's jobs resemble one another;
- users' estimates are a few round values, mostly far above the runtime; a few are too short.

The jobs are drawn until they hold the wanted load; then all runtimes are shortened by the small common
factor that meets it exactly but for the rounding to whole seconds.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from headway.hookspecs import Plugin, hookimpl
from headway.model import JobDescription, Request
from headway.workload import TraceJob, Workload, WorkloadModel

Floats = NDArray[np.float64]

MINUTE = 60.0
HOUR = 3600.0
DAY = 86400.0

#: Relative rate of submissions in each hour of a day, from midnight.
BY_HOUR = np.array(
    [4, 3, 2, 2, 2, 2, 3, 5, 9, 13, 15, 15, 13, 14, 16, 16, 15, 13, 10, 8, 7, 7, 6, 5], dtype=np.float64
)
#: The same for the days of a week, from Monday, on which the month begins.
BY_WEEKDAY = np.array([1.0, 1.1, 1.1, 1.1, 1.0, 0.45, 0.4])

#: The estimates that people type, seconds, and how popular each is as a user's habit.
ROUND_ESTIMATES: dict[float, float] = {
    5 * MINUTE: 3,
    10 * MINUTE: 4,
    15 * MINUTE: 6,
    30 * MINUTE: 7,
    1 * HOUR: 12,
    2 * HOUR: 10,
    4 * HOUR: 16,
    6 * HOUR: 5,
    8 * HOUR: 6,
    12 * HOUR: 10,
    18 * HOUR: 4,
    24 * HOUR: 9,
    36 * HOUR: 5,
    48 * HOUR: 3,
}

#: Jobs are drawn by so many at a time, so that the draw does not depend on the load.
BATCH = 512


class MonthOptions(BaseModel):
    """The options of :func:`generate_month`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    processors: int = Field(320, ge=1, le=10_000_000, description="size of the machine")
    days: float = Field(30.0, gt=0, le=3660, description="days over which jobs are submitted")
    load: float = Field(
        0.85, gt=0, le=3, description="offered load: submitted work over the machine's capacity"
    )
    users: int = Field(60, ge=1, le=100_000, description="number of users")
    accounts: int = Field(
        0,
        ge=0,
        le=100_000,
        description="number of accounts, over which users are distributed in turn; 0: none",
    )
    max_runtime: float = Field(
        36 * HOUR, ge=5 * MINUTE, le=90 * DAY, description="the site's limit on estimates, in seconds"
    )
    too_short: float = Field(0.03, ge=0, le=0.5, description="share of jobs that run longer than estimated")
    pool: str = Field("pool", min_length=1, description="pool to which the jobs are sent")


class MonthModel:
    """The model as :class:`headway.workload.WorkloadModel`."""

    Options = MonthOptions

    def generate(self, rng: np.random.Generator, options: MonthOptions) -> Workload:
        """See :func:`generate_month`."""
        return Workload(generate_month(rng, **options.model_dump()), processors=options.processors)


class Month(Plugin):
    """The workload model "month": a seeded month of a mid-sized machine."""

    @hookimpl
    def register_workloads(self) -> dict[str, WorkloadModel]:
        return {"month": MonthModel()}


def generate_month(
    rng: np.random.Generator,
    *,
    processors: int = 320,
    days: float = 30.0,
    load: float = 0.85,
    users: int = 60,
    max_runtime: float = 36 * HOUR,
    too_short: float = 0.03,
    pool: str = "pool",
    accounts: int = 0,
) -> list[TraceJob]:
    """Jobs in order of submission; ids "1", "2", ...; times in seconds from 0, a Monday's midnight.

    ``load`` is the sum of processors x runtime over ``processors`` x ``days``, met within 2 %.
    ``too_short`` is the share of jobs whose runtime is above their estimate (by up to a third); fewer if
    there are not so many whose runtime is just above a round value. The other arguments are as in
    :class:`MonthOptions`. Equal arguments and equal generators give equal jobs.

    Raises :class:`pydantic.ValidationError`, a :class:`ValueError`, for an argument out of range.
    """
    options = MonthOptions(
        processors=processors,
        days=days,
        load=load,
        users=users,
        max_runtime=max_runtime,
        too_short=too_short,
        pool=pool,
        accounts=accounts,
    )
    who, size, runtime, failed = _work(rng, options)
    submit = _submissions(rng, len(size), options.days)
    estimate = _estimates(rng, who, runtime, options)

    requests: dict[tuple[int, float], Request] = {}
    jobs = []
    for number, (at, width, seconds, asked, user, broke) in enumerate(
        zip(
            submit.tolist(),
            size.tolist(),
            runtime.tolist(),
            estimate.tolist(),
            who.tolist(),
            failed.tolist(),
            strict=True,
        ),
        start=1,
    ):
        key = (width, asked)
        if key not in requests:
            requests[key] = Request(processors=width, walltime=asked)
        job = JobDescription(
            id=str(number), submit_time=at, request=requests[key], pool=options.pool, user=str(user + 1),
            account=f"account{user % options.accounts + 1}" if options.accounts else "",
        )  # fmt: skip
        jobs.append(TraceJob(job=job, runtime=seconds, outcome="failed" if broke else "completed"))
    return jobs


def _work(
    rng: np.random.Generator, options: MonthOptions
) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats, NDArray[np.bool_]]:
    """User, size, runtime (seconds) and failure of each job, holding the wanted load."""
    popularity = np.arange(1, options.users + 1, dtype=np.float64) ** -1.0
    popularity /= popularity.sum()
    habit = rng.normal(0.0, 0.7, options.users)
    target = options.load * options.processors * options.days * DAY
    parts: list[tuple[NDArray[np.int64], NDArray[np.int64], Floats, NDArray[np.bool_]]] = []
    work = 0.0
    while work < target:
        who = rng.choice(options.users, BATCH, p=popularity)
        size = _sizes(rng, options.processors)
        failed = rng.random(BATCH) < 0.12
        # The body's median, for a user of median habit, is 25 minutes at one processor.
        spread = habit[who] + rng.normal(0.0, 1.5, BATCH) + 0.12 * np.log2(size)
        body = 25 * MINUTE * np.exp(spread)
        runtime = np.clip(np.where(failed, rng.exponential(90.0, BATCH), body), 1.0, options.max_runtime)
        parts.append((who, size, runtime, failed))
        work += float(size @ runtime)
    who, size, runtime, failed = (np.concatenate(column) for column in zip(*parts, strict=True))
    needed = int(np.searchsorted(np.cumsum(size * runtime), target)) + 1
    who, size, runtime, failed = who[:needed], size[:needed], runtime[:needed], failed[:needed]
    runtime = np.maximum(np.rint(runtime * (target / float(size @ runtime))), 1.0)
    return who, size, runtime, failed


def _sizes(rng: np.random.Generator, processors: int) -> NDArray[np.int64]:
    """Processors of a batch of jobs: a quarter serial, the others log-uniform, most of them powers of two."""
    # Triangular: small sizes are more frequent than large ones, also on the logarithmic scale.
    exponent = np.log2(processors) * rng.triangular(0.0, 0.35, 1.0, BATCH)
    power = rng.random(BATCH) < 0.75
    size = np.rint(2.0 ** np.where(power, np.rint(exponent), exponent))
    size[rng.random(BATCH) < 0.25] = 1
    return np.clip(size, 1, processors).astype(np.int64)


def _submissions(rng: np.random.Generator, count: int, days: float) -> Floats:
    """Sorted submit times, whole seconds in [0, days)."""
    hours = np.arange(int(np.ceil(days * 24)))
    rate = BY_HOUR[hours % 24] * BY_WEEKDAY[hours // 24 % 7]
    borders = np.minimum(np.append(hours, len(hours)) * HOUR, days * DAY)
    cumulative = np.concatenate(([0.0], np.cumsum(rate * np.diff(borders))))
    # Of a Poisson process, given their number, arrivals are independent draws from its rate.
    drawn = np.sort(rng.random(count)) * cumulative[-1]
    return np.floor(np.interp(drawn, cumulative, borders))


def _estimates(
    rng: np.random.Generator, who: NDArray[np.int64], runtime: Floats, options: MonthOptions
) -> Floats:
    """Round values of at most ``max_runtime``, at or above the runtime but for the wanted share."""
    allowed = np.array([value for value in ROUND_ESTIMATES if value < options.max_runtime])
    menu = np.append(allowed, options.max_runtime)
    weights = np.append([ROUND_ESTIMATES[value] for value in allowed], ROUND_ESTIMATES[36 * HOUR])
    # A user has one favourite that serves for most jobs; where it is too short for a job, or the user
    # takes more care, it is the next round value above the runtime and some slack.
    favourite = rng.choice(menu, options.users, p=weights / weights.sum())[who]
    careful = np.minimum(runtime * (1 + rng.exponential(1.0, len(runtime))), options.max_runtime)
    lazy = (rng.random(len(runtime)) < 0.55) & (favourite >= runtime)
    estimate = np.where(lazy, favourite, menu[np.searchsorted(menu, careful)])

    below = np.searchsorted(menu, runtime) - 1
    shorter = menu[np.maximum(below, 0)]
    candidates = np.flatnonzero((below >= 0) & (runtime <= shorter * 4 / 3))
    count = min(round(options.too_short * len(runtime)), len(candidates))
    chosen = rng.choice(candidates, count, replace=False)
    estimate[chosen] = shorter[chosen]
    return estimate
