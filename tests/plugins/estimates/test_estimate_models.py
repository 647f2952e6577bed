"""The estimate models, each by its definition, and what is done around them."""

from __future__ import annotations

import numpy as np
import pytest

from headway.errors import UserError
from headway.experiment.campaign import Scenario, seeds_of, workload_of
from headway.experiment.estimates import chosen_model, estimate_models
from headway.model import JobDescription, Request
from headway.plugins import Catalogue
from headway.workload import RunJobs, TraceCommand, TraceJob, Workload, estimated_workload

CATALOGUE = Catalogue()


def jobs(runtime, estimate=None):
    runtime = np.array(runtime, np.float64)
    estimate = np.full(len(runtime), np.nan) if estimate is None else np.array(estimate, np.float64)
    return RunJobs(runtime, estimate, np.arange(len(runtime), dtype=np.float64), np.full(len(runtime), -1))


def asked(name, of, seed=1, **options):
    chosen = chosen_model(CATALOGUE, name, options, "test")
    return chosen.model.estimates(np.random.default_rng(seed), of, chosen.options)


class Half(np.random.Generator):
    """Uniform draws that are all the same."""

    def __init__(self, value):
        super().__init__(np.random.PCG64(1))
        self.value = value

    def uniform(self, low=0.0, high=1.0, size=None):
        return np.full(size, low + self.value * (high - low))

    def random(self, size=None):
        return np.full(size, 1 - self.value)


def test_v38_the_f_model_and_the_phi_model():
    models = estimate_models(CATALOGUE)
    f = models["f-model"]
    assert f.estimates(Half(0.5), jobs([100]), f.Options(f=4)).seconds.tolist() == [300]
    feit = models["feit"]
    found = feit.estimates(Half(0.25), jobs([100]), feit.Options(phi=0))
    assert found.seconds.tolist() == [400]


def test_exact_estimates_are_whole_seconds_of_at_least_one():
    assert asked("exact", jobs([0, 10, 10.5])).seconds.tolist() == [1, 10, 11]


def test_rounding_is_to_5_minutes_and_to_hours_but_never_below_the_runtime():
    of = jobs([10, 290, 460, 3300, 5000, 6000, 20_001])
    found = asked("exact", of, rounding=True).seconds
    assert found.tolist() == [300, 300, 600, 3300, 7200, 7200, 20_001]


def test_the_phi_model_has_its_share_of_exact_estimates_and_its_maximum():
    runtime = np.full(4_000, 7_200.0)
    found = asked("feit", jobs(runtime), phi=0.4).seconds
    assert (found == 7_200).mean() == pytest.approx(0.4, abs=0.04)
    assert found.max() == 86_400
    assert (found >= 7_200).all()
    # The share that the jobs' own estimates have.
    own = np.where(np.arange(4_000) < 1_000, 7_200, 86_400)
    found = asked("feit", jobs(runtime, own))
    assert found.notes == ("phi 0.2500: the share of the jobs' own estimates that are exact",)


def test_the_hump_makes_short_jobs_inaccurate():
    runtime = np.full(2_000, 60.0)
    plain = asked("feit", jobs(runtime), phi=0.0).seconds
    humped = asked("feit", jobs(runtime), phi=0.0, hump=0.5).seconds
    assert (plain >= 600).mean() == pytest.approx(0.1, abs=0.03)
    assert (humped >= 600).mean() == pytest.approx(0.55, abs=0.05)


def test_cirne_and_berman_draw_runtimes_from_estimates():
    found = asked("cirne-berman", jobs(np.zeros(3_000)), shape=2, scale=0.2, shortest="5m", longest="18h")
    assert found.runtime is not None
    assert (found.seconds >= 300).all() and (found.seconds <= 18 * 3600).all()
    assert (found.runtime <= found.seconds).all()
    # Log-uniform: half of them below the geometric mean.
    assert (found.seconds < np.sqrt(300 * 18 * 3600)).mean() == pytest.approx(0.5, abs=0.04)
    with pytest.raises(UserError, match="nearly no accuracy is"):
        asked("cirne-berman", jobs(np.zeros(50)), shape=900, scale=900, shortest="5m", longest="18h")


def test_the_modal_model_without_a_maximum_takes_the_longest_runtime_in_hours():
    runtime = np.append(np.random.default_rng(1).exponential(600, 599), 5_000)
    found = asked("tsafrir05", jobs(runtime))
    assert found.seconds.max() == 7_200
    assert (found.seconds >= runtime).all()
    assert found.notes == ("28 different estimates, the largest 7200 s",)


def test_estimates_are_raised_no_further_than_they_must_be_where_too_few_are_long_enough():
    runtime = np.random.default_rng(2).uniform(3_000, 7_000, 600)
    with pytest.raises(UserError, match=r"jobs run for 3000 s or longer, .* or too_short=raise"):
        asked("tsafrir05", jobs(np.full(600, 3_000.0)))
    found = asked("tsafrir05", jobs(runtime), too_short="raise")
    assert (found.seconds >= runtime).all()
    usual = asked("tsafrir05", jobs(np.append(np.ones(599), runtime.max())))
    # No value that the model does not have, and its longest estimate.
    assert set(found.seconds) <= set(usual.seconds) and found.seconds.max() == usual.seconds.max()
    short = int((usual.seconds < 3_000).sum())
    assert short > 100
    (said,) = [note for note in found.notes if "raised" in note]
    assert said.endswith("of 600 estimates were raised, since too few were long enough")
    assert int(said.split()[0]) >= short
    # Where nobody needs it, nothing is another.
    many = jobs(np.append(np.ones(599), 5_000.0))
    assert (asked("tsafrir05", many, too_short="raise").seconds == asked("tsafrir05", many).seconds).all()


def test_the_modal_model_says_that_it_is_made_for_many_jobs():
    assert "made for 500 jobs or more, these are 40" in asked("tsafrir05", jobs(np.ones(40))).notes[1]


def test_acceptance_11_the_same_seed_gives_the_same_estimates():
    runtime = np.random.default_rng(5).exponential(1_000, 5_000)
    first, again, other = (
        asked("tsafrir05", jobs(runtime), seed=s, maximum="18h").seconds for s in (3, 3, 4)
    )
    assert (first == again).all()
    assert (first != other).any()


def described(number, runtime, walltime):
    return TraceJob(JobDescription(str(number), number, Request(1, walltime)), runtime)


def test_runtimes_beyond_an_estimate_that_is_replaced_are_cut_but_not_those_that_a_command_extends():
    workload = Workload(
        [described(1, 150, 100), described(2, 150, 100), described(3, 50, 100)],
        [TraceCommand(5, "2", "ET", 60)],
    )
    found = estimated_workload(workload, chosen_model(CATALOGUE, "exact", {}, "test"), 1)
    assert [job.runtime for job in found.jobs] == [100, 150, 50]
    assert [job.job.request.walltime for job in found.jobs] == [100, 150, 50]
    assert "1 runtimes were beyond the job's own estimate and were cut to it" in found.notes


def test_runtimes_beyond_the_new_estimate_stay_and_are_told_of():
    workload = Workload([described(n, 5_000, 9_000) for n in range(30)])
    found = estimated_workload(
        workload, chosen_model(CATALOGUE, "tsafrir05", {"maximum": "1h", "pairs": [["1h", 100]]}, "test"), 1
    )
    assert {job.runtime for job in found.jobs} == {5_000}
    assert "30 runtimes are beyond the new estimate: these jobs end at it" in found.notes


def test_a_campaigns_scenario_has_its_estimates_from_a_model_and_by_the_seed():
    options = {"jobs": 600, "processors": 64}
    scenario = Scenario("lublin", 0, 64, model="lublin", options=options, estimates="f-model")
    own = workload_of(Scenario("lublin", 0, 64, model="lublin", options=options), 3, CATALOGUE).jobs
    given, again, other = (workload_of(scenario, seed, CATALOGUE).jobs for seed in (3, 3, 4))
    assert given == again != other
    assert [job.runtime for job in given] == [job.runtime for job in own]
    assert [job.job.request.walltime for job in given] != [job.job.request.walltime for job in own]
    traced = Scenario("log", 1, 64, trace="log.swf")
    assert seeds_of(traced, (1, 2, 3)) == (1,)
    assert seeds_of(Scenario("log", 1, 64, trace="log.swf", estimates="feit"), (1, 2, 3)) == (1, 2, 3)
