"""Jobs that are submitted once others have ended."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.emulation import emulate
from headway.model import ClusterDescription, JobDescription, Request
from headway.plugins import Catalogue, PluginConfig
from headway.results import RunResult
from headway.workload import TraceJob
from headway.workload.jobs import Follows

CATALOGUE = Catalogue()


def job(name: str, submit: float, runtime: float, processors: int = 1, estimate: float = 100.0) -> TraceJob:
    request = Request(processors=processors, walltime=estimate)
    return TraceJob(JobDescription(id=name, submit_time=submit, request=request, user="u"), runtime)


def run(jobs, chains=None, processors=4, policy="easy", **more) -> RunResult:
    return emulate(
        ClusterDescription.flat(processors), jobs, [PluginConfig(policy)], CATALOGUE, label=policy,
        chains=chains, **more,
    )  # fmt: skip


def times(result: RunResult) -> dict[str, tuple[float, float | None, float | None]]:
    return {r.job.id: (r.job.submit_time, r.start_time, r.end_time) for r in result.jobs}


def test_a_job_comes_its_think_time_after_its_predecessor_ended():
    jobs = [job("a", 0, 10, 4), job("b", 1, 10, 4), job("c", 5, 10, 4), job("d", 25, 1, 4)]
    found = run(jobs, {"c": Follows("b", 7.0)})
    # By the log c came at 5; b ends at 20, so it comes at 27, after d.
    assert times(found) == {"a": (0, 0, 10), "b": (1, 10, 20), "d": (25, 25, 26), "c": (27, 27, 37)}
    assert [r.job.id for r in found.jobs] == ["a", "b", "d", "c"]


def test_a_chain_goes_on_at_once_and_whatever_way_its_jobs_end():
    jobs = [job("a", 0, 50, estimate=10), job("b", 0, 5), job("c", 0, 5)]
    found = run(jobs, {"b": Follows("a", 0.0), "c": Follows("b", 2.5)})
    # The first is ended at its estimate.
    assert times(found) == {"a": (0, 0, 10), "b": (10, 10, 15), "c": (17.5, 17.5, 22.5)}


def test_who_follows_a_job_that_never_ends_is_named():
    jobs = [job("a", 0, 5, 9), job("b", 1, 5), job("c", 2, 5), job("d", 3, 5)]
    found = run(jobs, {"b": Follows("a", 1.0), "c": Follows("b", 1.0)})
    assert [r.job.id for r in found.jobs] == ["a", "d"]
    assert [(r.job_id, r.reason) for r in found.refused] == [
        ("b", "follows a job that never ended (job a)"), ("c", "follows a job that never ended (job b)"),
        ("a", "it needs 9 processors, and pool 'pool' has 4"),
    ]  # fmt: skip


def test_a_predecessor_must_be_before_its_follower():
    with pytest.raises(ValueError, match="job a follows b, which is not before it"):
        run([job("a", 0, 1), job("b", 1, 1)], {"a": Follows("b", 0.0)})


def test_the_given_jobs_stay_as_they_are():
    jobs = [job("a", 0, 10, 4), job("b", 1, 10, 4)]
    before = list(jobs)
    run(jobs, {"b": Follows("a", 3.0)})
    assert jobs == before


def fixed_point(jobs, chains, policy):
    """Open runs, each with the submissions that follow from the ends of the one before, until they stay."""
    submit = {one.job.id: one.job.submit_time for one in jobs}
    position = {one.job.id: at for at, one in enumerate(jobs)}
    for _ in range(len(jobs) + 2):
        moved = [
            msgspec.structs.replace(one, job=msgspec.structs.replace(one.job, submit_time=submit[one.job.id]))
            for one in jobs
        ]
        moved.sort(key=lambda one: (one.job.submit_time, position[one.job.id]))
        result = run(moved, policy=policy)
        end = {r.job.id: r.end_time for r in result.jobs}
        further = {name: end[chains[name].job_id] + chains[name].think if name in chains else t
                   for name, t in submit.items()}  # fmt: skip
        if further == submit:
            return times(result)
        submit = further
    raise AssertionError("no fixed point")


_JOBS = st.lists(
    st.tuples(
        st.integers(0, 8), st.integers(1, 20), st.integers(1, 4), st.integers(1, 25), st.integers(0, 12),
        st.integers(-3, 8),
    ),
    min_size=1, max_size=14,
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(_JOBS, st.sampled_from(["fcfs", "easy", "conservative"]))
def test_a_run_with_chains_is_the_fixed_point_of_open_runs(drawn, policy):
    jobs, chains, time = [], {}, 0
    for at, (gap, runtime, processors, estimate, think, back) in enumerate(drawn):
        time += gap
        jobs.append(job(str(at), time, runtime, processors, estimate))
        if 0 < back <= at:
            chains[str(at)] = Follows(str(at - back), float(think))
    assert times(run(jobs, chains, policy=policy)) == fixed_point(jobs, chains, policy)
    assert times(run(jobs, chains, policy=policy)) == times(run(jobs, chains, policy=policy))
