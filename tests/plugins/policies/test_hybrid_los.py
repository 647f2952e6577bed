"""Hybrid-LOS: the specification's vector, skips beside the dedicated freeze, a head that may not start."""

from __future__ import annotations

import pytest
from building import emulate, plugged, traced
from hypothesis import given, settings
from hypothesis import strategies as st

from headway import events as ev
from headway.decisions import Start
from headway.model import ClusterDescription
from headway.scheduler import Scheduler
from headway.workload.jobs import TraceJob, dedicated
from headway_plugins.policies.hybrid_los import HybridLos, HybridLosOptions

FLAT = ClusterDescription.flat(10)


def hybrid(**options):
    return HybridLos(HybridLosOptions(**options))


def wanted(name, processors, estimate, start, submit=0):
    job = traced(name, processors, estimate, submit)
    return TraceJob(dedicated(job.job, float(start)), job.runtime)


def test_dedicated_jobs_that_must_be_late_move_the_freeze_to_the_end_at_which_they_fit():
    jobs = [traced("r", 4, 101), wanted("d", 8, 50, 61, submit=1), traced("head", 6, 100, 1)]
    run = emulate(FLAT, jobs, hybrid())
    assert run.starts == {"r": 0, "head": 1, "d": 101}


def test_the_strict_comparison_of_the_paper_takes_an_end_at_the_freeze_as_running_past_it():
    jobs = [traced("r", 4, 100), wanted("d", 8, 50, 60, submit=1), traced("head", 6, 99, 1)]
    assert emulate(FLAT, jobs, hybrid()).starts["head"] == 1
    assert emulate(FLAT, jobs, hybrid(strict=True)).starts["head"] == 150


def test_the_best_set_beside_the_freeze_may_leave_the_head_out():
    # Past 60 only two may run: 7 would break the freeze, 2 and the short 5 and 3 fill the machine.
    jobs = [
        wanted("d", 8, 30, 60),
        traced("7", 7, 100),
        traced("5", 5, 50),
        traced("3", 3, 60),
        traced("2", 2, 90),
    ]
    policy = hybrid()
    run = emulate(FLAT, jobs, policy)
    assert {name for name, start in run.starts.items() if start == 0} == {"5", "3", "2"}
    assert run.starts["d"] == 60


def instants(policy, *steps):
    """Names that start in each of the steps, given as (now, events)."""
    scheduler = Scheduler(FLAT, plugged(policy))
    return [[d.job_id for d in scheduler.step(now, events) if isinstance(d, Start)] for now, events in steps]


def submitted(job):
    return ev.JobSubmitted(job.job.submit_time, job.job)


def test_a_head_that_does_not_fit_is_skipped_too_once_an_instant():
    policy = hybrid(max_skips=3)
    instants(
        policy,
        (0.0, [submitted(wanted("d", 8, 30, 900)), submitted(traced("r", 4, 800))]),
        (1.0, [ev.JobStarted(0.0, "r"), submitted(traced("head", 7, 10, 1))]),
        (2.0, [submitted(traced("x", 9, 10, 2))]),
        (2.0, [submitted(traced("y", 9, 10, 2))]),
    )
    assert policy.checkpoint() == {"head": 2}


def test_a_head_skipped_often_enough_starts_first_if_the_freeze_allows_it():
    jobs = [wanted("d", 8, 30, 60), traced("7", 7, 50), traced("4", 4, 50), traced("6", 6, 50)]
    assert emulate(FLAT, jobs, hybrid(max_skips=1)).starts == {"d": 60, "7": 90, "4": 0, "6": 0}
    assert emulate(FLAT, jobs, hybrid(max_skips=0)).starts["7"] == 0


@pytest.mark.parametrize("freeze", ["first", "all"])
def test_a_head_that_fits_but_would_break_the_freeze_waits_and_is_not_delayed_further(freeze):
    # The head can start at 90. Two processors are free over both times, for one job of those that run on.
    jobs = [
        wanted("d", 8, 30, 60),
        traced("head", 8, 100),
        traced("short", 3, 60),
        traced("long", 2, 300),
        traced("longer", 2, 400),
    ]
    run = emulate(FLAT, jobs, hybrid(max_skips=0, freeze=freeze))
    assert run.starts == {"d": 60, "head": 90, "short": 0, "long": 0, "longer": 190}


def test_a_head_that_does_not_fit_is_booked_beside_the_dedicated_jobs():
    # At 40 the head would fit, but not for its whole time beside d: it is booked at 90.
    jobs = [traced("r", 6, 40), wanted("d", 8, 30, 60), traced("head", 8, 100), traced("b", 4, 60)]
    run = emulate(FLAT, jobs, hybrid(max_skips=0))
    assert run.starts == {"r": 0, "d": 60, "head": 90, "b": 0}


def test_dedicated_jobs_alone_start_at_their_times():
    jobs = [wanted("d", 8, 30, 60), wanted("e", 8, 30, 90), wanted("f", 2, 30, 61)]
    assert emulate(FLAT, jobs, hybrid()).starts == {"d": 60, "e": 90, "f": 61}


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_with_all_frozen_a_dedicated_job_that_no_other_delays_is_on_time(data):
    """Every dedicated job comes in good time and no two overlap: all are on time, whatever else comes."""
    jobs, submit = [], 0
    for at in range(data.draw(st.integers(1, 4))):
        jobs.append(
            wanted(f"d{at}", data.draw(st.integers(1, 10)), data.draw(st.integers(1, 20)), 30 + 20 * at)
        )
    for at in range(data.draw(st.integers(0, 12))):
        submit += data.draw(st.integers(0, 10))
        estimate = data.draw(st.integers(1, 60))
        jobs.append(
            traced(
                f"b{at}",
                data.draw(st.integers(1, 10)),
                estimate,
                submit,
                runtime=data.draw(st.integers(0, estimate)),
            )
        )
    run = emulate(FLAT, jobs, hybrid(freeze="all", max_skips=data.draw(st.integers(0, 2))))
    assert run.problems == []
    for at, job in enumerate(jobs):
        if job.job.id.startswith("d"):
            assert run.starts[job.job.id] == 30 + 20 * at
