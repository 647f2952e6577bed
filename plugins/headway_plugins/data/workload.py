"""The workload model "cms-synthetic": a batch of jobs that read large files, after :mod:`.generate`.

All jobs are submitted at once, have one processor, and run as long as they compute on any node; what fetching
their files takes belongs to the machine. Each job names its files with the attribute ``data``. The same seed
gives the batch of ``generate(Draws(rng), recipe)``, sizes and rates included.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from headway.hookspecs import Plugin, hookimpl
from headway.model import JobDescription, Request
from headway.model.sites import DATA
from headway.plugins import Traits
from headway.workload import TraceJob, Workload, WorkloadModel
from headway_plugins.data.generate import Recipe, generate
from headway_plugins.data.model import Batch, K
from headway_plugins.draws import Draws


class CmsOptions(BaseModel):
    """The options of :class:`CmsModel`; defaults are those of the paper's table 2."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    jobs: int = Field(100, ge=1, le=1_000_000, description="number of jobs")
    nodes: int = Field(20, ge=1, le=100_000, description="compute nodes, of one processor each")
    stores: int = Field(20, ge=1, le=10_000, description="local stores")
    remotes: int = Field(20, ge=1, le=10_000, description="remote stores")
    objects: int = Field(50, ge=1, le=100_000, description="files")
    k: float = Field(K, gt=0, le=1e6, description="seconds of computing for each GB of a job's files")
    low: int = Field(1, ge=1, le=1000, description="fewest files of a job")
    high: int = Field(5, ge=1, le=1000, description="most files of a job")
    zipf: float = Field(1.0, ge=0, le=10, description="exponent of Zipf's law for the choice of files")
    pool: str = Field("pool", min_length=1, description="pool to which the jobs are sent")

    @model_validator(mode="after")
    def _possible(self) -> CmsOptions:
        if self.low > self.high:
            # This follows the word "expected".
            raise ValueError(f"low at most high, which is {self.high}")
        return self

    @property
    def recipe(self) -> Recipe:
        return Recipe(**self.model_dump(exclude={"pool"}))


class CmsModel:
    """The model as :class:`headway.workload.WorkloadModel`."""

    Options = CmsOptions

    def generate(self, rng: np.random.Generator, options: CmsOptions) -> Workload:
        """Jobs with ids "1", "2", ..., and files with names such as "d1"."""
        batch = generate(Draws(rng), options.recipe)
        compute = batch.tables().compute
        jobs = [
            _job(number, objects, row[0], options.pool)
            for number, (objects, row) in enumerate(zip(batch.jobs, compute, strict=True), start=1)
        ]
        return Workload(jobs, processors=options.nodes, notes=(_note(batch),))


def _job(number: int, objects: Sequence[int], seconds: float, pool: str) -> TraceJob:
    names = [f"d{at + 1}" for at in objects]
    job = JobDescription(
        id=str(number), submit_time=0.0, request=Request(processors=1, walltime=seconds), pool=pool,
        attributes={DATA: names},
    )  # fmt: skip
    return TraceJob(job=job, runtime=seconds)


def _note(batch: Batch) -> str:
    there = sum(batch.sizes) / 1000
    read = sum(batch.sizes[at] for objects in batch.jobs for at in objects) / 1000
    return f"{len(batch.sizes)} files of {there:.4g} GB; the jobs read {read:.4g} GB"


class CmsSynthetic(Plugin):
    """The workload model "cms-synthetic": jobs that read large files."""

    traits = Traits(
        paper=(
            "T. Phan, K. Ranganathan, R. Sion: Evolving Toward the Perfect Schedule: Co-scheduling Job "
            "Assignments and Data Replication in Wide-Area Systems Using a Genetic Algorithm, JSSPP 2005"
        )
    )

    @hookimpl
    def register_workloads(self) -> dict[str, WorkloadModel]:
        return {"cms-synthetic": CmsModel()}
