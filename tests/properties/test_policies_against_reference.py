"""Job by job, headway's policies on a flat pool give the starts of the brute-force reference."""

from __future__ import annotations

from dataclasses import replace

import reference
from building import POLICIES, emulate, traced
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.hookspecs import hookimpl
from headway.model import ClusterDescription
from headway.plugins import Again

TOTAL = 8


@st.composite
def workloads(draw, exact: bool = False, least: int = 1):
    """Jobs in order of submission; many instants coincide on purpose."""
    jobs = []
    submit = 0
    for _ in range(draw(st.integers(1, 14))):
        submit += draw(st.sampled_from([0, 0, 1, 2, 5, 9]))
        estimate = draw(st.integers(least, 12))
        runtime = estimate if exact else draw(st.one_of(st.just(0), st.integers(0, 15)))
        jobs.append(reference.Job(submit, draw(st.integers(1, TOTAL)), estimate, runtime))
    return jobs


def starts_by_headway(jobs, policy):
    run = emulate(
        ClusterDescription.flat(TOTAL),
        [traced(str(at), j.processors, j.estimate, j.submit, runtime=j.runtime) for at, j in enumerate(jobs)],
        policy,
    )
    assert run.problems == []
    return [run.starts[str(at)] for at in range(len(jobs))]


@settings(max_examples=250, deadline=None)
@given(workloads(least=0))
def test_fcfs_is_the_reference(jobs):
    assert starts_by_headway(jobs, POLICIES["fcfs"]()) == reference.schedule(jobs, TOTAL, reference.fcfs)


@settings(max_examples=400, deadline=None)
@given(workloads(least=0))
def test_easy_is_the_reference(jobs):
    assert starts_by_headway(jobs, POLICIES["easy"]()) == reference.schedule(jobs, TOTAL, reference.easy)


@settings(max_examples=300, deadline=None)
@given(workloads())
def test_conservative_is_the_reference(jobs):
    expected = reference.schedule(jobs, TOTAL, reference.conservative)
    assert starts_by_headway(jobs, POLICIES["conservative"]()) == expected


def without_shortcuts(policy: type) -> type:
    """The policy, asked at every arrival and never told that only arrivals happened."""

    class Forgetful(policy):
        traits = replace(policy.traits, ask_again=Again.ANY_EVENT)

        @hookimpl
        def schedule(self, view):
            view.forget()
            view.fresh = -1
            return policy.schedule(self, view)

    return Forgetful


@settings(max_examples=150, deadline=None)
@given(workloads(), st.sampled_from(sorted(POLICIES)))
def test_looking_at_new_jobs_only_changes_nothing(jobs, name):
    policy = POLICIES[name]
    assert starts_by_headway(jobs, policy()) == starts_by_headway(jobs, without_shortcuts(policy)())
