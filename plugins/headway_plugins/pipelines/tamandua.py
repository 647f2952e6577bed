"""The workload of the Tamandua data mining service: decision trees whose minimum node size is heavy-tailed.

L. F. Goes and others: AnthillSched. JSSPP 2005, section 4. Arrivals are exponential, the minimum node size of
a job is Pareto (shape 0.61815, scale 0.00075019); the larger it is, the shorter the job. Decisions:

- Pareto of the first kind: P(X > x) = (scale / x)^shape from the scale on; cut at ``largest``, since the
  mean is infinite.
- ``arrivals``: "published" has the printed mean of 6,513.8 s between arrivals; with "light" and "medium" a
  queue gives the waits of the paper's Tables 1 and 2 (:mod:`.published`), which it does not with the printed
  one; "heavy": all at once.
- The paper prints no run times. ``times: classes`` has two kinds of jobs with which all published means come
  out: the 45 % of the largest minimum node size take 2 s sequentially and more on any number of copies; the
  others profit (:data:`CLASSES`). One of many solutions, for eight processors.
- ``times: model`` has the sequential time fall inversely to the minimum node size, from ``longest`` on, of
  which reading the data takes the largest part; what copies make of it is up to the execution model
  (:mod:`.execution`).
- A job carries what its controlled run would have measured, in its attribute ``pipeline``."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from headway.hookspecs import Plugin, hookimpl
from headway.model import JobDescription, Request
from headway.workload import TraceJob, Workload, WorkloadModel
from headway_plugins.pipelines.pipeline import Filter, Pipeline
from headway_plugins.pipelines.published import ARRIVALS

Floats = NDArray[np.float64]

SHAPE, SCALE = 0.61815, 0.00075019
PARAMETER = "minimum_node_size"
#: The attribute of a job that is a pipeline.
PIPELINE = "pipeline"
#: Decision trees: read, count by attribute, decide; what is decided goes to all readers.
ID3 = Pipeline(
    "id3", (Filter("read", data_nodes=4), Filter("count"), Filter("decide", broadcast=True)), {PARAMETER: ()}
)
#: Share of the jobs that are short; seconds of both kinds, in parallel by strategy.
SHORT_SHARE = 0.45
CLASSES: dict[str, dict[str, float]] = {
    "short": {"sequential": 2.0, "AS": 142.6, "BS": 110.64, "NOAS": 129.04},
    "long": {"sequential": 1000.0, "AS": 210.0, "BS": 190.0, "NOAS": 185.6},
}
#: Of all bytes and of all time: what each filter has in a controlled run.
BYTES, SECONDS = (0.6, 0.3, 0.1), (0.6, 0.25, 0.15)
#: Bytes received in a second of the sequential run.
RATE = 5e6


class TamanduaOptions(BaseModel):
    """The options of :class:`TamanduaModel`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    jobs: int = Field(1000, ge=1, le=5_000_000, description="number of jobs")
    processors: int = Field(
        8, ge=1, le=100_000, description="size of the machine; each job has the whole machine"
    )
    arrivals: Literal["published", "light", "medium", "heavy"] = Field(
        "published", description="mean time between arrivals: 6513.8, 2065.5, 66.1 or 0 s"
    )
    interarrival_mean: float | None = Field(
        None, ge=0, description="mean seconds between arrivals, instead of `arrivals`"
    )
    largest: float = Field(
        100.0, gt=SCALE, description="largest minimum node size; larger draws are cut to it"
    )
    times: Literal["classes", "model"] = Field(
        "classes", description="runtimes: two kinds of jobs, or from the execution model"
    )
    longest: float = Field(1000.0, gt=0, description="seconds of the longest sequential run (times: model)")
    pool: str = Field("pool", min_length=1, description="pool to which the jobs are sent")


def node_sizes(rng: np.random.Generator, count: int, largest: float = 100.0) -> Floats:
    """Minimum node sizes of so many jobs."""
    found: Floats = np.minimum(SCALE * (1.0 - rng.random(count)) ** (-1.0 / SHAPE), largest)
    return found


def arrival_times(rng: np.random.Generator, count: int, mean: float) -> Floats:
    """Seconds; the first is 0. Exponential with this mean between them."""
    gaps = rng.exponential(1.0, count) * mean
    gaps[0] = 0.0
    found: Floats = np.cumsum(gaps)
    return found


def is_short(size: Floats) -> NDArray[np.bool_]:
    """Which of these are among the largest minimum node sizes, whose jobs are short."""
    found: NDArray[np.bool_] = size > SCALE * SHORT_SHARE ** (-1.0 / SHAPE)
    return found


class TamanduaModel:
    """The workload as :class:`headway.workload.WorkloadModel`."""

    Options = TamanduaOptions

    def generate(self, rng: np.random.Generator, options: TamanduaOptions) -> Workload:
        """Jobs with ids "1", "2", ..., each of the whole machine; a runtime is that of the sequential run."""
        mean = options.interarrival_mean
        if mean is None:
            mean = ARRIVALS[options.arrivals]
        submit = arrival_times(rng, options.jobs, mean)
        size = node_sizes(rng, options.jobs, options.largest)
        short = is_short(size)
        jobs = []
        for number, (at, value, brief) in enumerate(
            zip(submit.tolist(), size.tolist(), short.tolist(), strict=True), start=1
        ):
            said: dict[str, Any] = {"program": ID3.program, "parameters": {PARAMETER: value}}
            if options.times == "classes":
                times = CLASSES["short" if brief else "long"]
                wall, slowest = times["sequential"], max(times.values())
                said["times"] = times
            else:
                wall = options.longest * SCALE / value
                slowest = 2 * wall + 3600.0
            said["profile"] = {
                "wall": wall,
                "filters": {
                    name: {"bytes": b * wall * RATE, "seconds": s * wall}
                    for name, b, s in zip(ID3.names, BYTES, SECONDS, strict=True)
                },
            }
            request = Request(options.processors, 2 * slowest)
            job = JobDescription(
                str(number), at, request, pool=options.pool, name=ID3.program, attributes={PIPELINE: said}
            )
            jobs.append(TraceJob(job, wall))
        note = f"mean time between arrivals: {mean:g} s; {int(short.sum())} of {len(jobs)} jobs are short"
        return Workload(jobs, processors=options.processors, notes=(note,))


class Tamandua(Plugin):
    """The workload model "tamandua": decision trees of a data mining service, as pipelines."""

    @hookimpl
    def register_workloads(self) -> dict[str, WorkloadModel]:
        return {"tamandua": TamanduaModel()}
