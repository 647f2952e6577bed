"""The workload model "cms-synthetic"."""

import numpy as np
import pytest
from pydantic import ValidationError

from headway.model.sites import datasets_of
from headway_plugins.data.generate import Recipe, generate
from headway_plugins.data.workload import CmsOptions, CmsSynthetic
from headway_plugins.draws import Draws

MODEL = CmsSynthetic().register_workloads()["cms-synthetic"]


def test_jobs_are_those_of_the_batch():
    batch = generate(Draws(np.random.default_rng(7)), Recipe(jobs=30, k=100))
    workload = MODEL.generate(np.random.default_rng(7), CmsOptions(jobs=30, k=100))
    assert [datasets_of(trace.job.attributes) for trace in workload.jobs] == [
        tuple(f"d{at + 1}" for at in objects) for objects in batch.jobs
    ]
    assert [trace.runtime for trace in workload.jobs] == [
        100 * sum(batch.sizes[at] for at in objects) / 1000 for objects in batch.jobs
    ]
    assert {(trace.job.submit_time, trace.job.request.processors) for trace in workload.jobs} == {(0, 1)}
    assert workload.processors == 20 and "50 files of" in workload.notes[0]


def test_the_defaults_are_those_of_the_recipe():
    assert CmsOptions().recipe == Recipe()


def test_the_fewest_files_are_not_more_than_the_most():
    with pytest.raises(ValidationError, match="low at most high, which is 5"):
        CmsOptions(low=6)
