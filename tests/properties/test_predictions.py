"""Whatever is predicted: nothing is given twice or starts twice, and each job runs as long as it may."""

from __future__ import annotations

import pytest
from audit import audit
from building import emulate, traced
from hypothesis import given, settings
from hypothesis import strategies as st
from restless import Restless

from headway.decisions import Start
from headway.hookspecs import hookimpl
from headway.model import ClusterDescription
from headway_plugins.policies.conservative import Conservative
from headway_plugins.policies.easy import Easy, EasyOptions
from headway_plugins.prediction.recent import Recent, RecentOptions

POLICIES = {
    "easy": Easy,
    "easy-sjbf": lambda: Easy(EasyOptions(backfill="shortest-first")),
    "conservative": lambda: Conservative(Conservative.Options()),
}


class Arbitrary:
    """Predicts whatever, also for jobs that run."""

    def __init__(self, answers) -> None:
        self.answers, self.asked = answers, 0

    @hookimpl
    def predict_runtime(self, job):
        self.asked += 1
        return self.answers[self.asked % len(self.answers)]


@st.composite
def workloads(draw):
    jobs, submit = [], 0
    for at in range(draw(st.integers(1, 16))):
        submit += draw(st.sampled_from([0, 0, 1, 3, 40]))
        jobs.append(
            traced(
                f"j{at}",
                draw(st.integers(1, 8)),
                draw(st.integers(1, 400)),
                submit,
                runtime=draw(st.integers(0, 500)),
                user=draw(st.sampled_from("ab")),
            )
        )
    return jobs


@settings(max_examples=60)
@given(
    workloads(),
    st.sampled_from(sorted(POLICIES)),
    st.none() | st.lists(st.none() | st.floats(0, 600), min_size=1, max_size=5),
)
def test_predictions_change_plans_alone(jobs, policy, answers):
    predictor = Recent(RecentOptions(jobs=1)) if answers is None else Arbitrary(answers)
    cluster = ClusterDescription.flat(8)
    run = emulate(cluster, jobs, POLICIES[policy](), predictor, max_rounds=3000)
    audit(run, cluster)
    assert run.problems == []
    started = [decision.job_id for _, decision in run.decisions if isinstance(decision, Start)]
    assert sorted(started) == sorted(job.job.id for job in jobs)
    for job in jobs:
        result = run.results[job.job.id]
        assert result.runtime == pytest.approx(min(job.runtime, job.job.request.walltime), abs=1e-6)


@settings(max_examples=60)
@given(workloads(), st.sampled_from(sorted(POLICIES)))
def test_no_look_that_is_left_out_would_have_started_anything(jobs, policy):
    """Predicted ends that cost no look, because the job ended or nothing was free, cost no start either."""
    runs = [
        emulate(ClusterDescription.flat(8), jobs, POLICIES[policy](), Recent(RecentOptions(jobs=1)), *more)
        for more in ([], [Restless()])
    ]
    assert runs[0].starts == runs[1].starts
