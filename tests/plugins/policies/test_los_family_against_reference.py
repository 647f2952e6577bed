"""Job by job, LOS, Delayed-LOS and Hybrid-LOS give the starts of the brute-force reference."""

from __future__ import annotations

import los_reference as reference
from building import emulate, traced
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headway.model import ClusterDescription
from headway.workload.jobs import TraceJob, dedicated
from headway_plugins.policies.hybrid_los import HybridLos, HybridLosOptions
from headway_plugins.policies.los import DelayedLos, DelayedLosOptions, Los, PackingOptions

TOTAL = 8


@st.composite
def workloads(draw, dedicated_share: bool = False):
    """Jobs in order of submission; many instants coincide on purpose."""
    jobs = []
    submit = 0
    for _ in range(draw(st.integers(1, 10))):
        submit += draw(st.sampled_from([0, 0, 1, 2, 5]))
        estimate = draw(st.integers(1, 10))
        runtime = draw(st.one_of(st.just(estimate), st.integers(0, 12)))
        start = None
        if dedicated_share and draw(st.booleans()):
            start = submit + draw(st.sampled_from([0, 1, 3, 3, 6, 10]))
        jobs.append(reference.Job(submit, draw(st.integers(1, TOTAL)), estimate, runtime, start))
    return jobs


def as_traced(jobs: list[reference.Job]) -> list[TraceJob]:
    found = []
    for at, job in enumerate(jobs):
        one = traced(str(at), job.processors, job.estimate, job.submit, runtime=job.runtime)
        if job.start is not None:
            one = TraceJob(dedicated(one.job, float(job.start)), one.runtime)
        found.append(one)
    return found


def starts_by_headway(jobs, policy, *more):
    run = emulate(ClusterDescription.flat(TOTAL), as_traced(jobs), policy, *more)
    assert run.problems == []
    return [run.starts[str(at)] for at in range(len(jobs))]


@settings(max_examples=300, deadline=None)
@given(workloads(), st.sampled_from([1, 2, 50]))
def test_los_is_the_reference(jobs, lookahead):
    expected = reference.Hybrid(jobs, TOTAL, 0, lookahead).run()
    assert starts_by_headway(jobs, Los(PackingOptions(lookahead=lookahead))) == expected


@settings(max_examples=400, deadline=None)
@given(workloads(), st.integers(0, 3), st.sampled_from([2, 50]))
def test_delayed_los_is_the_reference(jobs, skips, lookahead):
    expected = reference.Hybrid(jobs, TOTAL, skips, lookahead).run()
    policy = DelayedLos(DelayedLosOptions(max_skips=skips, lookahead=lookahead))
    assert starts_by_headway(jobs, policy) == expected


def a_group_that_fits_by_count_only() -> list[reference.Job]:
    """At 5 one job of the group of 8 can have its second, the other not: no batch job may take its place."""
    rows = [
        (0, 4, 6, 3), (2, 3, 2, 8), (2, 5, 1, 3), (3, 1, 1, None), (5, 1, 4, None), (5, 1, 2, 8),
        (5, 1, 4, None),
    ]  # fmt: skip
    return [reference.Job(submit, size, time, time, start) for submit, size, time, start in rows]


@settings(max_examples=600, deadline=None)
@example(a_group_that_fits_by_count_only(), 0, "first")
@given(workloads(dedicated_share=True), st.integers(0, 3), st.sampled_from(["first", "all"]))
def test_hybrid_los_is_the_reference(jobs, skips, freeze):
    expected = reference.Hybrid(jobs, TOTAL, skips, all_groups=freeze == "all").run()
    policy = HybridLos(HybridLosOptions(max_skips=skips, freeze=freeze))
    assert starts_by_headway(jobs, policy) == expected


@settings(max_examples=200, deadline=None)
@given(workloads())
def test_delayed_los_that_never_skips_is_los(jobs):
    delayed = DelayedLos(DelayedLosOptions(max_skips=0))
    assert starts_by_headway(jobs, delayed) == starts_by_headway(jobs, Los(PackingOptions()))


@settings(max_examples=200, deadline=None)
@given(workloads(), st.integers(0, 3))
def test_hybrid_los_without_dedicated_jobs_is_delayed_los(jobs, skips):
    hybrid = HybridLos(HybridLosOptions(max_skips=skips))
    delayed = DelayedLos(DelayedLosOptions(max_skips=skips))
    assert starts_by_headway(jobs, hybrid) == starts_by_headway(jobs, delayed)
