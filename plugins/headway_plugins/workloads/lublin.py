"""The workload model of Lublin and Feitelson: sizes, runtimes and arrivals of rigid jobs.

U. Lublin and D. G. Feitelson, "The workload on parallel supercomputers: modeling the characteristics of
rigid jobs", JPDC 63(11), 2003, 1105-1122, fitted to four machines of the 1990s.

- *Size*: one processor with a serial probability; else log2 of the size is two-stage uniform (from ``low``
  to ``middle`` with a probability, else from ``middle`` to the machine's log2), rounded to a power of two
  with a further probability.
- *Runtime*: its natural logarithm is hyper-gamma; the probability of the first gamma (the short jobs)
  falls linearly with the size. Above e^12 s (45 hours) it is drawn again.
- *Arrivals*: the logarithm of the time between arrivals at the busiest hours is gamma, its shape multiplied
  by the ratio of all to rush-hour arrivals; above e^13 s (5 days) it is drawn again. The time passes faster
  or slower in each bucket of the day (half an hour), in proportion to the jobs that arrive in it: a gamma
  density over the day that begins with the eleventh bucket, at 5:00. Time 0 is midnight.

*Constants.* All constants and both limits were checked against the authors' own program, ``m_lublin99.c`` of
the Parallel Workloads Archive: those of the whole sample, of batch and of interactive jobs, and that the
serial and the power-of-two probability are shares of all jobs. The program is for 128 nodes. Its comments
say how to fit another machine: the upper limit is its log2, and the middle 1.5 to 3.5 below; here the
distances of the published values are kept (2.5 below; 2 for batch jobs; for interactive jobs the upper
limit is 1.5 below the machine's).

*Ours*: arrivals are the inverse of the day's cumulative curve, and truncated values are drawn by inverting
the distribution function; the distributions are the same, the random numbers are not. The model has no
estimates, so they are the runtimes; seconds are rounded. A ``load`` is reached by stretching the times
between submissions by one factor. The queue is 0 for interactive and 1 for batch jobs, as in that program.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log2
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from headway.hookspecs import Plugin, hookimpl
from headway.model import JobDescription, Request
from headway.workload import TraceJob, Workload, WorkloadModel

Floats = NDArray[np.float64]

DAY = 86400.0
#: Largest logarithm of a runtime, and of a time between arrivals (seconds).
LONGEST_RUNTIME = 12.0
LONGEST_GAP = 13.0


@dataclass(frozen=True)
class Sizes:
    """Parameters of the sizes; the logarithms are of base 2."""

    serial: float
    power_of_two: float
    low: float
    #: Distances below the machine's logarithm.
    middle_below: float
    high_below: float
    #: Probability of the first stage.
    first: float

    def draw(self, rng: np.random.Generator, count: int, processors: int) -> Floats:
        """Processors of so many jobs on a machine of ``processors``."""
        high = max(log2(processors) - self.high_below, 0.0)
        low = min(self.low, high)
        middle = min(max(log2(processors) - self.middle_below, low), high)
        kind = rng.random(count)
        first = rng.random(count) < self.first
        exponent = np.where(first, rng.uniform(low, middle, count), rng.uniform(middle, high, count))
        power = kind < self.serial + self.power_of_two
        size = np.floor(2.0 ** np.where(power, np.floor(exponent + 0.5), exponent) + 0.5)
        return np.clip(np.where(kind < self.serial, 1.0, size), 1, processors)


@dataclass(frozen=True)
class Runtimes:
    """Parameters of the logarithm of the runtime: two gammas, and the first one's probability."""

    shape1: float
    scale1: float
    shape2: float
    scale2: float
    slope: float
    intercept: float

    def draw(self, rng: np.random.Generator, size: Floats) -> Floats:
        """Whole seconds, at least 1, of jobs of these sizes."""
        probability = np.clip(self.slope * size + self.intercept, 0, 1)
        logarithm = np.full(len(size), np.inf)
        while (again := np.flatnonzero(logarithm > LONGEST_RUNTIME)).size:
            short = rng.random(again.size) < probability[again]
            logarithm[again] = np.where(
                short,
                rng.gamma(self.shape1, self.scale1, again.size),
                rng.gamma(self.shape2, self.scale2, again.size),
            )
        return np.maximum(np.rint(np.exp(logarithm)), 1.0)


@dataclass(frozen=True)
class Arrivals:
    """Parameters of the arrivals; the day's gamma is in buckets, counted from 1 at midnight."""

    shape: float
    scale: float
    #: Of all arrivals to the arrivals at the busiest hours; multiplies the shape.
    ratio: float
    day_shape: float
    day_scale: float
    buckets: int = 48
    #: The bucket with which the day begins.
    first_bucket: int = 11

    def day(self) -> Floats:
        """The relative rate of arrivals in each bucket from midnight; 1 on average."""
        bucket = np.arange(self.first_bucket, self.first_bucket + self.buckets)
        # Simpson's rule, from half a bucket before to half a bucket after.
        offset, steps = np.linspace(-0.5, 0.5, 33), np.ones(33)
        steps[1:-1:2], steps[2:-1:2] = 4, 2
        weight = _gamma_density(bucket[:, None] + offset, self.day_shape, self.day_scale) @ steps
        rate = np.empty(self.buckets)
        rate[(bucket - 1) % self.buckets] = weight
        return rate / rate.mean()

    def times(self, uniform: Floats) -> Floats:
        """Seconds from midnight, one arrival for each of these numbers from 0 to 1."""
        grid = np.linspace(0.0, LONGEST_GAP, 20_001)
        density = _gamma_density(grid, self.shape * self.ratio, self.scale)
        distribution = np.concatenate(([0.0], np.cumsum(density[1:] + density[:-1])))
        gap = np.exp(np.interp(uniform * distribution[-1], distribution, grid))
        passed = np.concatenate(([0.0], np.cumsum(self.day()))) / self.buckets
        days, part = np.divmod(np.cumsum(gap) / DAY, 1.0)
        return DAY * (days + np.interp(part, passed, np.linspace(0.0, 1.0, self.buckets + 1)))


def _gamma_density(x: Floats, shape: float, scale: float) -> Floats:
    """The density of a gamma distribution with shape above 1, up to a factor: 1 at its mode."""
    mode = (shape - 1) * scale
    with np.errstate(divide="ignore"):
        return np.exp((shape - 1) * np.log(x / mode) - (x - mode) / scale)


@dataclass(frozen=True)
class Constants:
    """What the model needs for one class of jobs."""

    sizes: Sizes
    runtimes: Runtimes
    arrivals: Arrivals


#: Jobs of both types together.
WHOLE_SAMPLE = Constants(
    Sizes(0.244, 0.576, 0.8, 2.5, 0.0, 0.86),
    Runtimes(4.2, 0.94, 312, 0.03, -0.0054, 0.78),
    Arrivals(10.2303, 0.4871, 1.0225, 8.1737, 3.9631),
)
BATCH = Constants(
    Sizes(0.2927, 0.6686, 1.2, 2.0, 0.0, 0.875),
    Runtimes(6.57, 0.823, 639.1, 0.0156, -0.003, 0.6986),
    Arrivals(6.0415, 0.8531, 1.0519, 6.1271, 5.2740),
)
INTERACTIVE = Constants(
    Sizes(0.1541, 0.625, 1.0, 4.0, 1.5, 0.705),
    Runtimes(3.8351, 0.6605, 7.073, 0.6856, -0.0118, 0.9156),
    Arrivals(6.5510, 0.6621, 0.9797, 8.9186, 3.6680),
)

#: Queue (field 15) -> constants, for each choice of the option.
TYPES: dict[str, dict[str, Constants]] = {
    "all": {"": WHOLE_SAMPLE},
    "batch": {"1": BATCH},
    "interactive": {"0": INTERACTIVE},
    "both": {"0": INTERACTIVE, "1": BATCH},
}


class LublinOptions(BaseModel):
    """The options of :class:`LublinModel`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    jobs: int = Field(1000, ge=2, le=5_000_000, description="number of jobs")
    processors: int = Field(128, ge=1, le=10_000_000, description="size of the machine")
    types: Literal["all", "batch", "interactive", "both"] = Field(
        "all",
        description="constants of the whole sample, of one type of jobs, or of both types with a queue for "
        "each",
    )
    load: float | None = Field(
        None, gt=0, le=3, description="offered load: submitted work over the machine's capacity"
    )
    pool: str = Field("pool", min_length=1, description="pool to which the jobs are sent")


class LublinModel:
    """The model as :class:`headway.workload.WorkloadModel`."""

    Options = LublinOptions

    def generate(self, rng: np.random.Generator, options: LublinOptions) -> Workload:
        """Jobs with ids "1", "2", ...; times in seconds from a midnight."""
        parts = []
        for queue, constants in TYPES[options.types].items():
            size = constants.sizes.draw(rng, options.jobs, options.processors)
            runtime = constants.runtimes.draw(rng, size)
            submit = constants.arrivals.times(rng.random(options.jobs))
            parts.append((submit, size, runtime, np.full(options.jobs, queue)))
        columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
        # The types arrive independently; the sample is the first so many of all.
        order = np.argsort(columns[0], kind="stable")[: options.jobs]
        submit, size, runtime, queues = (column[order] for column in columns)
        submit = np.rint(submit)
        notes: tuple[str, ...] = ()
        if options.load is not None:
            submit, factor = scaled_to_load(submit, float(size @ runtime), options.processors, options.load)
            notes = (f"load {options.load:g}: times between submissions multiplied by {factor:.4g}",)
        jobs = [
            rigid_job(number, at, int(width), seconds, pool=options.pool, queue=str(queue))
            for number, (at, width, seconds, queue) in enumerate(
                zip(submit.tolist(), size.tolist(), runtime.tolist(), queues.tolist(), strict=True), start=1
            )
        ]
        return Workload(jobs, processors=options.processors, notes=notes)


def offered(submit: Floats, work: float, processors: int) -> float:
    """Load of ``work`` (processor-seconds) at these times, as of :func:`headway.workload.offered_load`."""
    return work / (processors * max(float(submit[-1] - submit[0]), 1.0))


def scaled_to_load(submit: Floats, work: float, processors: int, load: float) -> tuple[Floats, float]:
    """Whole-second times with the wanted load, and the factor on the times between them."""
    factor = offered(submit, work, processors) / load
    return np.rint(submit[0]) + np.rint((submit - submit[0]) * factor), factor


def rigid_job(
    number: int, submit: float, processors: int, seconds: float, *, pool: str, queue: str = ""
) -> TraceJob:
    """A job whose estimate is its runtime."""
    request = Request(processors=processors, walltime=seconds)
    job = JobDescription(id=str(number), submit_time=submit, request=request, pool=pool, qos=queue)
    return TraceJob(job=job, runtime=seconds)


class Lublin(Plugin):
    """The workload model "lublin": rigid jobs after Lublin and Feitelson, 2003."""

    @hookimpl
    def register_workloads(self) -> dict[str, WorkloadModel]:
        return {"lublin": LublinModel()}
