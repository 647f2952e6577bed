"""The generator of Kumar, Shae and Jamjoom: batch and dedicated jobs with elastic commands.

D. Kumar, Z. Shae and H. Jamjoom, "Scheduling Batch and Heterogeneous Jobs with Runtime Elasticity in a
Parallel Processing Environment", 2012, section IV-D and tables I and II: the model of Lublin and Feitelson
(:mod:`headway_plugins.workloads.lublin`, whole sample) with other sizes and arrivals, for a machine of 320
processors that are given out by 32, with requested starts and elastic commands. What was decided here:

*Sizes* are 32 x round(U[1, 3]) with probability P_S, else 32 x round(U[4, 10]), as the text says; so the
end values have half the weight of the others. The means are 144 processors at P_S = 0.5 and 96 at 0.8. The
paper measured 139.35 and 89.72, which for 500 jobs is 1.2 and 2.0 standard errors below. At P_S = 0.2 its
177.7 is 3.9 below our 192, and all three are within one standard error if the large sizes are drawn from
[3, 10] (means 179, 136 and 93): what Lublin's two-stage function gives, in which the second stage begins
where the first ends. That is ``large: [3, 10]``; the default is the text.

*Runtimes*: p = -0.0054 s + 0.78, kept within 0 and 1, is the probability of the short kind. Two readings of
the size s were examined. In processors, as in Lublin's model and as the paper counts sizes, mean runtimes
are 12,200, 10,600 and 9,000 s at P_S = 0.2, 0.5 and 0.8, and the loads of the paper's figures, 0.5 to 1.0,
take beta_arr from 0.465 to 0.58: inside the range of its table II, and around its middle. In units of 32,
they are 3,900, 3,800 and 3,700 s, and those loads take 0.41 to 0.49: the lower end of the range, which one
sample in five at P_S = 0.8 and load 1 would have to leave. The ratio of wait to runtime that follows from
the paper's tables IV and V (its gains in slowdown against those in wait: 17 to 24) is met at P_S = 0.2 and
loads of 0.7 to 0.9 by either. So the default is processors; ``size_in: units`` is the other. In processors,
jobs of 160 and more have p = 0.

*Arrivals*: the jobs "that arrive in each interval" are Gamma(15.1737, 0.9631), and the interval is an hour
in the paper (half an hour in Lublin's model, where these values would put the busiest time at 7:00). So
there are 24 buckets, the busiest at 13:00 to 14:00, and the day begins at 5:00 as in Lublin's model; there
are hardly any arrivals from 1:00 to 6:00.

*Load* is the sum of size x runtime over the machine's size x the time from the first to the last
submission. With ``load``, beta_arr is found by bisection in the paper's range for the jobs that were drawn;
where the range ends before the load is met, or the gap of a night lets it jump, the times between
submissions are multiplied by one factor. A note in the workload says which. The same seed gives the same
jobs at every load. Commands count nothing.

*Dedicated jobs* are so with probability P_D; the time from submission to requested start is exponential
with a mean of an hour. *Commands*: a job has an extension with probability P_E and, independently, a
reduction with probability P_R; the amount is exponential with a mean of a quarter of the job's runtime, at
least 1 s. The paper does not say when they are given: here at a random second of what would be the job's
course without waiting (from submission, for a dedicated job from there to the requested start and on),
after its beginning and before its end, so that no command comes too late unless an earlier one cut the job
short.

Estimates are runtimes, as in the paper, and seconds are whole.
"""

from __future__ import annotations

import dataclasses
from typing import Annotated, Literal

import msgspec
import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from headway.hookspecs import Plugin, hookimpl
from headway.plugins import Traits
from headway.workload import TraceCommand, Workload, WorkloadModel
from headway.workload.jobs import dedicated as as_dedicated
from headway_plugins.workloads.lublin import (
    WHOLE_SAMPLE,
    Arrivals,
    Floats,
    offered,
    rigid_job,
    scaled_to_load,
)

#: Table II, but for beta_arr. The buckets are hours; the day begins with the sixth.
PAPER_ARRIVALS = Arrivals(13.2303, 0.5101, 1.0225, 15.1737, 0.9631, buckets=24, first_bucket=6)
#: The range of beta_arr in table II.
LEAST_BETA, MOST_BETA = 0.4101, 0.6101

#: Relative error of the load that is left to the bisection before arrivals are scaled.
_TOLERANCE = 0.005

Probability = Annotated[float, Field(ge=0, le=1)]


class LublinCwfOptions(BaseModel):
    """The options of :class:`LublinCwfModel`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    jobs: int = Field(500, ge=2, le=5_000_000, description="number of jobs")
    processors: int = Field(320, ge=1, le=10_000_000, description="size of the machine")
    p_small: Probability = Field(0.5, description="P_S: share of small jobs")
    p_dedicated: Probability = Field(0.0, description="P_D: share of jobs with a requested start")
    p_extend: Probability = Field(0.2, description="P_E: share of jobs whose time is extended (ET)")
    p_reduce: Probability = Field(0.1, description="P_R: share of jobs whose time is reduced (RT)")
    load: float | None = Field(
        None, gt=0, le=3, description="offered load: submitted work over the machine's capacity"
    )
    beta_arr: float = Field(
        0.5101, gt=0, lt=1, description="scale of the times between arrivals, where no load is given"
    )
    unit: int = Field(32, ge=1, description="processors of a unit, which are allocated together")
    small: tuple[float, float] = Field((1, 3), description="sizes of small jobs, units")
    large: tuple[float, float] = Field((4, 10), description="sizes of large jobs, units")
    size_in: Literal["units", "processors"] = Field(
        "processors", description="unit of size in which the share of short jobs falls"
    )
    lead_time: float = Field(3600.0, gt=0, description="mean seconds from submission to requested start")
    amount: float = Field(0.25, gt=0, description="mean amount of a command, as a share of the runtime")
    pool: str = Field("pool", min_length=1, description="pool to which the jobs are sent")

    @model_validator(mode="after")
    def _fits(self) -> LublinCwfOptions:
        for name, (low, high) in (("small", self.small), ("large", self.large)):
            # These follow the word "expected".
            if not 1 <= low <= high:
                raise ValueError(f"{name} to hold two sizes from 1 on, the smaller first")
            if round(high) * self.unit > self.processors:
                raise ValueError(
                    f"{name} jobs of up to {high:g} units of {self.unit} within the machine's "
                    f"{self.processors} processors"
                )
        return self


class LublinCwfModel:
    """The model as :class:`headway.workload.WorkloadModel`."""

    Options = LublinCwfOptions

    def generate(self, rng: np.random.Generator, options: LublinCwfOptions) -> Workload:
        """Jobs with ids "1", "2", ...; times in seconds from a midnight."""
        count = options.jobs
        units = _sizes(rng, options)
        size = units * options.unit
        runtime = WHOLE_SAMPLE.runtimes.draw(rng, units if options.size_in == "units" else size)
        submit, note = _arrivals(rng, options, float(size @ runtime))

        dedicated = rng.random(count) < options.p_dedicated
        lead = np.rint(rng.exponential(options.lead_time, count))
        jobs = [
            rigid_job(number, at, int(width), seconds, pool=options.pool)
            for number, (at, width, seconds) in enumerate(
                zip(submit.tolist(), size.tolist(), runtime.tolist(), strict=True), start=1
            )
        ]
        for at in np.flatnonzero(dedicated).tolist():
            described = as_dedicated(jobs[at].job, float(submit[at] + lead[at]))
            jobs[at] = msgspec.structs.replace(jobs[at], job=described)

        course = runtime + np.where(dedicated, lead, 0)
        commands = []
        for command, probability in (("ET", options.p_extend), ("RT", options.p_reduce)):
            given = rng.random(count) < probability
            time = submit + 1 + np.floor(rng.random(count) * np.maximum(course - 1, 0))
            amount = np.maximum(np.rint(rng.exponential(1.0, count) * options.amount * runtime), 1)
            commands += [
                TraceCommand(float(time[at]), jobs[at].job.id, command, float(amount[at]))
                for at in np.flatnonzero(given).tolist()
            ]
        commands.sort(key=lambda one: one.time)
        return Workload(jobs, commands, processors=options.processors, notes=(note,))


def _sizes(rng: np.random.Generator, options: LublinCwfOptions) -> Floats:
    """Units of each job."""
    small = rng.random(options.jobs) < options.p_small
    where = rng.random(options.jobs)
    low = np.where(small, options.small[0], options.large[0])
    high = np.where(small, options.small[1], options.large[1])
    return np.rint(low + where * (high - low))


def _arrivals(rng: np.random.Generator, options: LublinCwfOptions, work: float) -> tuple[Floats, str]:
    """Whole-second submit times, and how they came about."""
    uniform = rng.random(options.jobs)

    def times(beta: float) -> Floats:
        return dataclasses.replace(PAPER_ARRIVALS, scale=beta).times(uniform)

    if options.load is None:
        submit = np.rint(times(options.beta_arr))
        found = offered(submit, work, options.processors)
        return submit, f"beta_arr {options.beta_arr:g}: load {found:.4g}"
    # Larger beta: longer times between arrivals, less load.
    low, high = LEAST_BETA, MOST_BETA
    for end in (low, high):
        load = offered(times(end), work, options.processors)
        if (load < options.load) if end == low else (load > options.load):
            low = high = end
            break
    while high - low > 1e-9:
        beta = (low + high) / 2
        if offered(times(beta), work, options.processors) > options.load:
            low = beta
        else:
            high = beta
    submit = np.rint(times(high))
    reached = offered(submit, work, options.processors)
    if abs(reached / options.load - 1) <= _TOLERANCE:
        return submit, f"load {options.load:g}: beta_arr {high:.6f}"
    submit, factor = scaled_to_load(times(high), work, options.processors, options.load)
    return submit, (
        f"load {options.load:g}: beta_arr {high:.6f} gives {reached:.4g}; times between submissions "
        f"multiplied by {factor:.4g}"
    )


class LublinCwf(Plugin):
    """The workload model "lublin-cwf": batch and dedicated jobs with elastic commands, Kumar et al. 2012."""

    traits = Traits(
        paper=(
            "D. Kumar, Z. Shae, H. Jamjoom: Scheduling Batch and Heterogeneous Jobs with Runtime Elasticity "
            "in a Parallel Processing Environment, 2012"
        )
    )

    @hookimpl
    def register_workloads(self) -> dict[str, WorkloadModel]:
        return {"lublin-cwf": LublinCwfModel()}
