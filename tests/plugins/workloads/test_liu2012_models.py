"""The models of Feitelson 1996 and Jann and others 1997: the shares and means that are published of them."""

from __future__ import annotations

import numpy as np
import pytest

from headway_plugins.estimates.f_model import estimates
from headway_plugins.workloads import feitelson96, jann97
from headway_plugins.workloads.feitelson96 import Feitelson96Model, Feitelson96Options
from headway_plugins.workloads.jann97 import GAP, RUNTIME, Jann97Model, Jann97Options, hyper_erlang
from headway_plugins.workloads.size_classes import class_of

MODELS = {
    "feitelson96": (Feitelson96Model(), Feitelson96Options, feitelson96.SIZES, 2606.6),
    "jann97": (Jann97Model(), Jann97Options, jann97.SIZES, 11_267.0),
}


def drawn(name, seed=1, **options):
    model, kind, _, _ = MODELS[name]
    return model.generate(np.random.default_rng(seed), kind(**options))


@pytest.mark.parametrize("name", MODELS)
def test_sizes_have_the_published_shares_and_mean(name):
    sizes = MODELS[name][2]
    probability = sizes.probabilities(320)
    size = np.arange(1, 321.0)
    assert probability.sum() == pytest.approx(1)
    assert size @ probability == pytest.approx(sizes.mean)
    shares = np.bincount(class_of(size), probability)
    assert shares * sum(sizes.shares) == pytest.approx(sizes.shares)
    # Powers of two are emphasised.
    assert probability[15] > 5 * probability[14]


@pytest.mark.parametrize("name", MODELS)
def test_what_is_drawn_has_the_published_means_and_the_load(name):
    workload = drawn(name, jobs=60_000, load=0.8)
    assert len(workload.jobs) == 60_000 and workload.processors == 320
    size = np.array([job.job.request.processors for job in workload.jobs])
    runtime = np.array([job.runtime for job in workload.jobs])
    submit = np.array([job.job.submit_time for job in workload.jobs])
    estimate = np.array([job.job.request.walltime for job in workload.jobs])
    assert (np.diff(submit) >= 0).all() and size.max() <= 320 and runtime.min() >= 1
    _, _, sizes, mean = MODELS[name]
    assert size.mean() == pytest.approx(sizes.mean, rel=0.1)
    assert runtime.mean() == pytest.approx(mean, rel=0.1)
    assert size @ runtime / (320 * (submit[-1] - submit[0])) == pytest.approx(0.8, rel=1e-3)
    assert (estimate >= runtime).all()
    assert (estimate / runtime).mean() == pytest.approx(3, rel=0.03)


@pytest.mark.parametrize("name", MODELS)
def test_is_the_same_for_the_same_seed_only(name):
    assert drawn(name, 3, jobs=200) == drawn(name, 3, jobs=200)
    assert drawn(name, 3, jobs=200) != drawn(name, 4, jobs=200)


@pytest.mark.parametrize("name", MODELS)
def test_a_smaller_machine_has_no_larger_jobs(name):
    workload = drawn(name, jobs=500, processors=20)
    assert max(job.job.request.processors for job in workload.jobs) <= 20


def test_jobs_of_feitelson_are_run_again_when_they_ended():
    jobs = drawn("feitelson96", jobs=20_000).jobs
    kinds = {(job.job.request.processors, job.runtime) for job in jobs}
    # A harmonic law of order 2.5 has a mean of nearly two runs.
    assert 0.4 < len(kinds) / len(jobs) < 0.65


def test_large_jobs_of_feitelson_run_longer():
    rng = np.random.default_rng(1)
    small = feitelson96.runtimes(rng, np.full(50_000, 1.0), 320)
    large = feitelson96.runtimes(rng, np.full(50_000, 320.0), 320)
    assert large.mean() / small.mean() == pytest.approx((0.75 + 2.5) / (0.95 + 0.5), rel=0.05)


@pytest.mark.parametrize(("shape", "variation"), [(RUNTIME, 2.08), (GAP, 1.49)])
def test_hyper_erlang_times_have_the_mean_and_the_variation_that_are_said(shape, variation):
    values = hyper_erlang(np.random.default_rng(1), 400_000, shape)
    assert values.mean() == pytest.approx(1, rel=0.01)
    assert values.std() == pytest.approx(variation, rel=0.02)


def test_estimates_of_the_f_model_are_between_the_runtime_and_so_many_times_more():
    runtime = np.array([1.0, 10.0, 1000.0] * 1000)
    found = estimates(np.random.default_rng(1), runtime, 9.0)
    assert (found >= runtime).all() and (found <= 10 * runtime).all()
    assert (found == np.rint(found)).all()
    assert estimates(np.random.default_rng(1), runtime, 0.0) is runtime
