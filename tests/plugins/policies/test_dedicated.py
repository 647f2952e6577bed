"""Dedicated jobs under any policy: on time, late, in groups, beside batch jobs."""

from __future__ import annotations

import pytest
from building import alike, described, emulate, node_cluster, plugged, traced

from headway import events as ev
from headway.decisions import Start
from headway.model import ClusterDescription
from headway.scheduler import Scheduler
from headway.workload.jobs import TraceJob, dedicated
from headway_plugins.placement.first_fit import FirstFit
from headway_plugins.policies.conservative import Conservative
from headway_plugins.policies.dedicated import Dedicated, DedicatedOptions
from headway_plugins.policies.easy import Easy
from headway_plugins.policies.fcfs import Fcfs
from headway_plugins.policies.hybrid_los import HybridLos, HybridLosOptions
from headway_plugins.policies.k_reserved import KReserved, KReservedOptions
from headway_plugins.policies.los import DelayedLos, DelayedLosOptions, Los, PackingOptions

FLAT = ClusterDescription.flat(10)


def wanted(name, processors, estimate, start, submit=0, **more):
    job = traced(name, processors, estimate, submit, **more)
    return TraceJob(dedicated(job.job, float(start)), job.runtime)


def queue(freeze="all", **options):
    return Dedicated(DedicatedOptions(freeze=freeze, **options))


#: Each policy that is made for dedicated jobs or takes them from the plugin.
KINDS = {
    "fcfs-d": lambda freeze: (Fcfs(), queue(freeze)),
    "easy-d": lambda freeze: (Easy(), queue(freeze)),
    "conservative-d": lambda freeze: (Conservative(), queue(freeze)),
    "los-d": lambda freeze: (Los(PackingOptions()), queue(freeze)),
    "delayed-los-d": lambda freeze: (DelayedLos(DelayedLosOptions()), queue(freeze)),
    "hybrid-los": lambda freeze: (HybridLos(HybridLosOptions(freeze=freeze)),),
}


@pytest.fixture(params=sorted(KINDS))
def kind(request):
    return KINDS[request.param]


@pytest.fixture(params=["first", "all"])
def freeze(request):
    return request.param


def test_a_dedicated_job_starts_at_its_second_and_batch_jobs_fill_what_it_leaves(kind, freeze):
    jobs = [
        wanted("d", 8, 30, 60),
        traced("long", 4, 100),
        traced("short", 6, 60),
        traced("small", 2, 200),
    ]
    run = emulate(FLAT, jobs, *kind(freeze))
    assert run.problems == []
    assert run.starts["d"] == 60
    assert run.starts["long"] >= 90
    assert run.starts["short"] in (0, 90)


def test_a_batch_job_may_end_exactly_when_the_dedicated_job_starts(kind, freeze):
    run = emulate(FLAT, [wanted("d", 10, 30, 60), traced("b", 10, 60)], *kind(freeze))
    assert run.starts == {"d": 60, "b": 0}


def test_it_is_not_started_early_even_if_nothing_runs(kind, freeze):
    run = emulate(FLAT, [wanted("d", 1, 30, 60)], *kind(freeze))
    assert run.starts == {"d": 60}


def test_a_start_in_the_past_is_due_at_once(kind, freeze):
    jobs = [traced("b", 10, 100), traced("c", 10, 100, 1), wanted("d", 10, 10, 0, submit=5)]
    run = emulate(FLAT, jobs, *kind(freeze))
    assert run.starts == {"b": 0, "c": 110, "d": 100}


def test_one_that_cannot_be_on_time_starts_as_soon_as_it_can(kind, freeze):
    jobs = [traced("r", 4, 100), wanted("d", 8, 50, 60, submit=1), traced("b", 6, 110, 1)]
    run = emulate(FLAT, jobs, *kind(freeze))
    assert run.starts["d"] == 100
    assert run.starts["b"] >= 150


def test_a_group_of_one_start_is_kept_for_together(kind, freeze):
    jobs = [wanted("d", 5, 30, 60), wanted("e", 4, 30, 60), traced("b", 2, 100), traced("c", 1, 100)]
    run = emulate(FLAT, jobs, *kind(freeze))
    assert run.starts == {"d": 60, "e": 60, "b": 90, "c": 0 if kind is not KINDS["fcfs-d"] else 90}


def test_a_late_group_moves_its_freeze_to_when_all_of_it_fits():
    # Both fit at 100. Until then the six free processors are nobody's, so b may run to 100.
    jobs = [
        traced("r", 4, 100),
        wanted("d", 6, 50, 60, submit=1),
        wanted("e", 4, 50, 60, submit=1),
        traced("b", 6, 99, 1),
    ]
    for name in ("easy-d", "los-d", "delayed-los-d", "hybrid-los"):
        run = emulate(FLAT, jobs, *KINDS[name]("first"))
        assert run.starts == {"r": 0, "d": 100, "e": 100, "b": 1}


def test_a_group_larger_than_the_machine_is_served_one_by_one(kind, freeze):
    jobs = [wanted("d", 8, 30, 60), wanted("e", 8, 30, 60), traced("b", 10, 50)]
    run = emulate(FLAT, jobs, *kind(freeze))
    assert run.starts == {"d": 60, "e": 90, "b": 0}


def test_the_paper_keeps_for_the_first_group_only_and_all_keeps_for_each(kind):
    # b runs over both starts; it leaves room for the first, not for the second.
    jobs = [wanted("d", 2, 10, 60), wanted("e", 8, 10, 100), traced("b", 6, 200)]
    assert emulate(FLAT, jobs, *kind("first")).starts == {"d": 60, "e": 200, "b": 0}
    assert emulate(FLAT, jobs, *kind("all")).starts == {"d": 60, "e": 100, "b": 110}


def test_a_later_group_is_kept_for_although_the_earlier_one_would_not_fit_beside_it(kind):
    jobs = [wanted("d", 8, 10, 60), wanted("e", 8, 10, 100), traced("b", 2, 300), traced("c", 4, 50)]
    run = emulate(FLAT, jobs, *kind("all"))
    assert run.starts["d"] == 60
    assert run.starts["e"] == 100


def test_due_jobs_are_served_by_requested_start_and_before_batch_jobs(kind, freeze):
    jobs = [
        traced("r", 10, 100),
        traced("b", 10, 10, 1),
        wanted("late", 10, 10, 50, submit=2),
        wanted("early", 10, 10, 20, submit=3),
    ]
    run = emulate(FLAT, jobs, *kind(freeze))
    assert run.starts == {"r": 0, "early": 100, "late": 110, "b": 120}


def test_beyond_the_horizon_nothing_is_kept():
    jobs = [wanted("d", 10, 10, 100), traced("b", 10, 200)]
    assert emulate(FLAT, jobs, Easy(), queue(horizon=50)).starts == {"b": 0, "d": 200}
    assert emulate(FLAT, jobs, Easy(), queue(horizon=100)).starts == {"d": 100, "b": 110}


def test_one_larger_than_the_machine_never_starts_and_holds_nobody_up(kind, freeze):
    jobs = [wanted("d", 11, 10, 60), traced("b", 10, 100), wanted("e", 5, 10, 150)]
    run = emulate(FLAT, jobs, *kind(freeze))
    assert run.problems == []
    assert run.starts["d"] is None
    assert run.starts["b"] == 0
    assert run.starts["e"] == 150


def test_a_held_dedicated_job_keeps_nothing(kind, freeze):
    jobs = [wanted("d", 10, 10, 60, held=True), traced("b", 10, 100)]
    run = emulate(FLAT, jobs, *kind(freeze))
    assert run.starts == {"d": None, "b": 0}


def test_an_arrival_at_an_empty_queue_finds_what_is_kept(kind, freeze):
    jobs = [wanted("d", 8, 30, 60), traced("a", 1, 5), traced("b", 4, 100, 10)]
    run = emulate(FLAT, jobs, *kind(freeze))
    assert run.starts == {"d": 60, "a": 0, "b": 90}


def test_what_is_kept_stands_while_nothing_but_arrivals_happens(kind, freeze):
    # After d's booking, jobs come one by one; two of them may run beside d, the third may not.
    jobs = [wanted("d", 7, 30, 60), *(traced(f"b{at}", 1, 200, 1 + at) for at in range(5))]
    run = emulate(FLAT, jobs, *kind(freeze))
    assert run.starts["d"] == 60
    assert [run.starts[f"b{at}"] for at in range(5)] == [1, 2, 3, 90, 90]


def test_a_job_becomes_dedicated_when_its_description_says_so():
    scheduler = Scheduler(FLAT, plugged(Easy(), queue()))
    plain = described("d", 8, 30, begin_time=500.0)
    scheduler.step(0.0, [ev.JobSubmitted(0.0, plain)])
    scheduler.step(1.0, [ev.JobChanged(1.0, dedicated(plain, 60.0))])
    decisions = scheduler.step(2.0, [ev.JobSubmitted(2.0, described("b", 4, 100, 2))])
    assert not [d for d in decisions if isinstance(d, Start)]


def test_on_nodes_its_very_nodes_are_kept(kind, freeze):
    cluster = node_cluster(*alike(2, 4))
    jobs = [
        wanted("d", 4, 30, 60, required_nodes=("n0",)),
        traced("b", 4, 100, 1),
        traced("c", 4, 59, 1),
    ]
    run = emulate(cluster, jobs, *kind(freeze), FirstFit())
    assert run.problems == []
    assert run.starts == {"d": 60, "b": 1, "c": 1}
    assert run.results["b"].placement == (("n1", 4),)


def test_on_nodes_a_group_starts_together(kind, freeze):
    cluster = node_cluster(*alike(4, 4))
    jobs = [wanted("d", 8, 30, 60), wanted("e", 4, 40, 60), wanted("f", 4, 50, 60), traced("b", 4, 100)]
    run = emulate(cluster, jobs, *kind(freeze), FirstFit())
    assert run.problems == []
    assert [run.starts[name] for name in "def"] == [60, 60, 60]


def test_one_that_was_held_is_kept_for_as_soon_as_it_is_released():
    scheduler = Scheduler(FLAT, plugged(Easy(), queue()))
    scheduler.step(0.0, [ev.JobSubmitted(0.0, dedicated(described("d", 8, 30), 60.0)), ev.JobHeld(0.0, "d")])
    scheduler.step(1.0, [ev.JobSubmitted(1.0, described("b", 2, 100, 1))])
    scheduler.step(2.0, [ev.JobReleased(2.0, "d")])
    decisions = scheduler.step(3.0, [ev.JobSubmitted(3.0, described("c", 4, 100, 3))])
    assert not [d for d in decisions if isinstance(d, Start)]


def test_the_delay_is_a_metric():
    policy = queue()
    jobs = [traced("r", 4, 100), wanted("d", 8, 50, 60, submit=1), wanted("e", 1, 1, 30, submit=1)]
    run = emulate(FLAT, jobs, Easy(), policy)
    (name, metric), *_ = policy.register_metrics().items()

    class Result:
        jobs = list(run.results.values())

    assert name == "dedicated jobs"
    found = metric(Result)
    assert found == {"jobs": 2, "not started": 0, "on time": 1, "mean delay": 20, "longest delay": 40}


def test_one_that_is_due_as_it_arrives_comes_before_batch_jobs_of_that_instant(kind, freeze):
    jobs = [traced("r", 1, 2), wanted("d", 1, 1, 1, submit=1), traced("a", 1, 1, 1), traced("b", 9, 1, 1)]
    run = emulate(FLAT, jobs, *kind(freeze))
    assert run.starts["d"] == 1


def test_a_group_that_was_late_as_a_whole_is_served_one_by_one_when_it_is_due(kind, freeze):
    # At 60 there is room for d alone: the group was kept for at 100, but d need not wait.
    jobs = [
        traced("r", 6, 100),
        wanted("d", 4, 10, 60, submit=1),
        wanted("e", 1, 10, 60, submit=1),
    ]
    run = emulate(FLAT, jobs, *kind(freeze))
    assert run.starts == {"r": 0, "d": 60, "e": 70}


def test_a_job_that_comes_into_the_horizon_is_kept_for_from_then_on():
    """Nothing else happens then, and the bookings of before do not reckon with it."""
    jobs = [
        traced("a", 4, 95),
        TraceJob(dedicated(described("d", 8, 10), 100), 10),
        traced("head", 6, 4, 1),
        traced("late", 2, 50, 92),
    ]
    run = emulate(
        ClusterDescription.flat(8), jobs, Dedicated(DedicatedOptions(horizon=10)), Easy(), faults=None
    )
    assert run.problems == []
    assert run.starts == {"a": 0, "head": 95, "d": 100, "late": 110}


def test_a_dedicated_job_starts_at_its_second_behind_a_job_that_no_other_may_overtake():
    jobs = [traced("r", 6, 20), wanted("late", 6, 5, 5, submit=1), wanted("d", 2, 5, 10, submit=1)]
    run = emulate(FLAT, jobs, KReserved(KReservedOptions(limit=0)), queue())
    assert (run.problems, run.starts) == ([], {"r": 0, "late": 20, "d": 10})
