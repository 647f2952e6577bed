"""LOS and Delayed-LOS: the specification's vectors, skip counts, options, node pools."""

from __future__ import annotations

import pydantic
import pytest
from building import alike, described, emulate, node_cluster, plugged, traced
from hypothesis import given, settings
from hypothesis import strategies as st

from headway import events as ev
from headway.decisions import Start
from headway.model import ClusterDescription, NodeDescription, Reservation
from headway.plugins import Catalogue, PluginConfig, Plugins
from headway.scheduler import Scheduler
from headway_plugins.placement.first_fit import FirstFit
from headway_plugins.policies.hybrid_los import HybridLos, HybridLosOptions
from headway_plugins.policies.los import DelayedLos, DelayedLosOptions, Los, PackingOptions

FLAT = ClusterDescription.flat(10)


def los(**options):
    return Los(PackingOptions(**options))


def delayed(**options):
    return DelayedLos(DelayedLosOptions(**options))


def begun(scheduler, now, *events):
    """Names of the jobs that a step starts."""
    return [d.job_id for d in scheduler.step(now, events) if isinstance(d, Start)]


def queue_behind(policy, running, queue, total=10, reservations=()):
    """Who starts at time 0 while ``running`` (processors, expected end) run and ``queue`` waits.

    A job is (processors, estimate), or (processors, estimate, name) where several have one size.
    """
    flat = ClusterDescription.flat(total)
    scheduler = Scheduler(ClusterDescription(flat.name, flat.pools, (), reservations), plugged(policy))
    before = []
    for at, (processors, end) in enumerate(running):
        before += [
            ev.JobSubmitted(-1.0, described(f"r{at}", processors, end + 1, -1)),
            ev.JobStarted(-1.0, f"r{at}"),
        ]
    arrivals = [
        ev.JobSubmitted(0.0, described("".join(name) or f"{processors}", processors, estimate, 0))
        for processors, estimate, *name in queue
    ]
    return begun(scheduler, 0.0, *before, *arrivals)


# ---------------------------------------------------------------------- vectors of the specification


def test_los_starts_the_head_and_delayed_los_fills_the_machine():
    jobs = [traced(name, processors) for name, processors in (("7", 7), ("4", 4), ("6", 6))]
    assert emulate(FLAT, jobs, los()).starts == {"7": 0, "4": 100, "6": 100}
    for skips in (1, 7):
        assert emulate(FLAT, jobs, delayed(max_skips=skips)).starts == {"7": 100, "4": 0, "6": 0}
    assert emulate(FLAT, jobs, delayed(max_skips=0)).starts == emulate(FLAT, jobs, los()).starts


def test_what_is_skipped_is_counted():
    policy = delayed()
    scheduler = Scheduler(FLAT, plugged(policy))
    arrivals = [ev.JobSubmitted(0.0, described(str(size), size)) for size in (7, 4, 6)]
    assert begun(scheduler, 0.0, *arrivals) == ["4", "6"]
    assert policy.checkpoint() == {"7": 1}


@pytest.mark.parametrize("policy", [los, delayed])
def test_the_set_behind_a_head_that_does_not_fit_keeps_the_extra_processors(policy):
    queue = [(8, 100), (4, 60), (3, 50), (1, 200), (2, 40)]
    assert queue_behind(policy(), [(6, 50)], queue) == ["3", "1"]


@pytest.mark.parametrize("policy", [los, delayed])
def test_without_extra_processors_nothing_runs_past_the_heads_start(policy):
    queue = [(10, 100), (4, 60), (3, 50), (1, 200), (2, 40)]
    assert queue_behind(policy(), [(6, 50)], queue) == ["3"]


@pytest.mark.parametrize("policy", [los, delayed])
def test_a_second_packing_knows_what_the_first_took_of_the_extra_processors(policy):
    # Four jobs leave one of five extra processors; of those that the lookahead shows then, b and f fill the
    # machine, c would delay the head.
    queue = [(9, 100, "head"), *((1, 200, f"a{n}") for n in range(4))]
    queue += [(2, 200, "c"), (2, 50, "d"), (1, 200, "b"), (3, 50, "f")]
    expected = ["a0", "a1", "a2", "a3", "b", "f"]
    assert queue_behind(policy(lookahead=4), [(6, 50)], queue, 14) == expected
    later = Reservation("later", 1000.0, 1100.0, pool=FLAT.pools[0].name, processors=1)
    assert queue_behind(policy(lookahead=4), [(6, 50)], queue, 14, (later,)) == expected


# ---------------------------------------------------------------------- options


def test_strict_takes_a_job_that_ends_at_the_freeze_as_one_that_runs_past_it():
    queue = [(10, 100), (3, 50), (2, 49)]
    assert queue_behind(los(), [(6, 50)], queue) == ["3"]
    assert queue_behind(los(strict=True), [(6, 50)], queue) == ["2"]


def test_the_lookahead_limits_the_packing_but_not_the_order():
    # The head and three more fill 8, 9 and 10 of 10 processors.
    queue = [(8, 100), (1, 100), (9, 100), (2, 100)]
    assert queue_behind(delayed(lookahead=1), [], queue) == ["8", "1"]
    assert queue_behind(delayed(lookahead=2), [], queue) == ["8", "1"]
    assert queue_behind(delayed(lookahead=3), [], queue) == ["1", "9"]
    assert queue_behind(delayed(lookahead=4), [], queue) == ["8", "2"]


def test_the_lookahead_of_a_head_that_does_not_fit_begins_behind_it():
    queue = [(10, 100), (3, 40), (4, 40)]
    assert queue_behind(los(lookahead=1), [(6, 50)], queue) == ["3"]
    assert queue_behind(los(lookahead=2), [(6, 50)], queue) == ["4"]


def test_sizes_are_rounded_up_to_the_granularity_and_the_machine_down():
    queue = [(33, 100), (64, 100), (96, 100)]
    assert queue_behind(los(granularity=32), [], queue, total=127) == ["33"]
    assert queue_behind(los(granularity=1), [], queue, total=127) == ["33", "64"]
    assert queue_behind(delayed(granularity=32), [], queue, total=127) == ["96"]


@pytest.mark.parametrize(
    ("policy", "options"),
    [
        ("los", {"lookahead": 0}),
        ("los", {"granularity": 0}),
        ("los", {"max_skips": 3}),
        ("delayed-los", {"max_skips": -1}),
        ("delayed-los", {"max_skips": 1.5}),
        ("hybrid-los", {"freeze": "some"}),
        ("dedicated", {"horizon": 0}),
    ],
)
def test_an_option_out_of_range_names_the_option_and_what_was_found(policy, options):
    (key, value), *_ = options.items()
    with pytest.raises(Exception, match=f"site.yaml: {policy}: {key}") as error:
        Plugins.load([PluginConfig(policy, options, "site.yaml")], Catalogue(), None)
    assert not isinstance(error.value, pydantic.ValidationError)
    assert (key == "max_skips" and policy == "los") or str(value) in str(error.value)


# ---------------------------------------------------------------------- skip counts


def test_a_head_is_skipped_at_most_so_often_and_then_starts_first():
    # Pairs of 4 and 6 fill the machine better than the head of 7; they come for ever.
    jobs = [traced("7", 7)]
    for pair in range(8):
        jobs += [traced(f"4-{pair}", 4, submit=100 * pair), traced(f"6-{pair}", 6, submit=100 * pair)]
    for skips in (0, 1, 3):
        assert emulate(FLAT, jobs, delayed(max_skips=skips)).starts["7"] == 100 * skips


def test_one_instant_counts_once_however_many_rounds_and_steps_it_has():
    policy = delayed(max_skips=7)
    scheduler = Scheduler(FLAT, plugged(policy))
    assert begun(scheduler, 0.0, *(ev.JobSubmitted(0.0, described(str(s), s)) for s in (7, 4, 6))) == [
        "4",
        "6",
    ]
    ended = [ev.JobStarted(0.0, "4"), ev.JobStarted(0.0, "6"), ev.JobEnded(0.0, "4"), ev.JobEnded(0.0, "6")]
    again = [ev.JobSubmitted(0.0, described(name, size)) for name, size in (("d", 4), ("f", 6))]
    assert begun(scheduler, 0.0, *ended, *again) == ["d", "f"]
    assert policy.checkpoint() == {"7": 1}
    ended = [ev.JobStarted(0.0, "d"), ev.JobStarted(0.0, "f"), ev.JobEnded(5.0, "d"), ev.JobEnded(5.0, "f")]
    again = [ev.JobSubmitted(5.0, described(name, size)) for name, size in (("h", 4), ("j", 6))]
    assert begun(scheduler, 5.0, *ended, *again) == ["h", "j"]
    assert policy.checkpoint() == {"7": 2}


def test_the_count_belongs_to_the_job_and_a_new_head_begins_with_its_own():
    policy = delayed(max_skips=1)
    scheduler = Scheduler(FLAT, plugged(policy))
    arrivals = [ev.JobSubmitted(0.0, described(n, s)) for n, s in (("a", 7), ("b", 7), ("c", 4), ("d", 6))]
    assert begun(scheduler, 0.0, *arrivals) == ["c", "d"]
    ended = [ev.JobStarted(0.0, n) for n in "cd"] + [ev.JobEnded(9.0, n) for n in "cd"]
    more = [ev.JobSubmitted(9.0, described(n, s)) for n, s in (("e", 4), ("f", 6))]
    assert begun(scheduler, 9.0, *ended, *more) == ["a"]
    assert begun(scheduler, 20.0, ev.JobStarted(9.0, "a"), ev.JobEnded(20.0, "a")) == ["e", "f"]
    assert policy.checkpoint()["b"] == 1


def test_counts_survive_a_restart():
    policy = delayed(max_skips=1)
    Scheduler(FLAT, plugged(policy)).step(
        0.0, [ev.JobSubmitted(0.0, described(str(size), size)) for size in (7, 4, 6)]
    )
    fresh = delayed(max_skips=1)
    scheduler = Scheduler(FLAT, plugged(fresh), saved={"delayedlos": policy.checkpoint()})
    assert begun(scheduler, 50.0, *(ev.JobSubmitted(50.0, described(str(s), s)) for s in (7, 4, 6))) == ["7"]


def test_counts_of_jobs_that_are_gone_are_forgotten():
    policy = delayed()
    scheduler = Scheduler(FLAT, plugged(policy))
    for at in range(300):
        events = [
            ev.JobSubmitted(at, described(f"{name}{at}", s)) for name, s in (("a", 7), ("b", 4), ("c", 6))
        ]
        scheduler.step(at, events)
        scheduler.step(at + 0.5, [ev.JobEnded(at + 0.5, f"{name}{at}") for name in "bca"])
    assert len(policy.checkpoint() or {}) < 100


# ---------------------------------------------------------------------- node pools


def test_a_job_that_fits_by_count_but_on_no_node_holds_nobody_up():
    # Four processors are free, two on each node; the job of four on one node cannot start.
    cluster = node_cluster(*alike(2, 4))
    jobs = [
        traced("r0", 2, 100, required_nodes=("n0",)),
        traced("r1", 2, 100, required_nodes=("n1",)),
        traced("wide", 4, 100, submit=1, nodes=1),
        traced("two", 2, 90, submit=1),
        traced("one", 1, 90, submit=1),
    ]
    for policy in (los(), delayed()):
        run = emulate(cluster, jobs, policy, FirstFit())
        assert run.problems == []
        assert run.starts == {"r0": 0, "r1": 0, "wide": 100, "two": 1, "one": 1}


#: a is of the pool left, b of both pools, c and d of the pool right.
SHARED = node_cluster(
    NodeDescription("a", 1), NodeDescription("b", 1, pools=("left", "right")),
    *(NodeDescription(name, 1, pools=("right",)) for name in "cd"), pools=("left", "right"),
)  # fmt: skip


@pytest.mark.parametrize("policy", [los, delayed, lambda: HybridLos(HybridLosOptions())])
def test_a_head_that_fits_by_another_pools_nodes_only_is_booked_before_another_job_starts(policy):
    # Three nodes are free, of which the head's pool has one; the head and the later job would fill them.
    jobs = [
        traced("r", 1, 10, pool="left"), traced("head", 2, 5, 1, pool="left"),
        traced("later", 1, 100, 1, pool="left"),
    ]  # fmt: skip
    run = emulate(SHARED, jobs, policy(), FirstFit())
    assert (run.problems, run.starts) == ([], {"r": 0, "head": 10, "later": 15})


@pytest.mark.parametrize("policy", [delayed(), HybridLos(HybridLosOptions())])
def test_such_a_head_is_not_skipped_before_it_could_start(policy):
    # A later job of three nodes fills the machine better, at 1, when the head is booked, and at 10.
    jobs = [
        traced("r", 1, 10, pool="left"), traced("head", 2, 5, 1, pool="left"),
        traced("later", 3, 100, 1, pool="right"),
    ]  # fmt: skip
    run = emulate(SHARED, jobs, policy, FirstFit())
    assert (run.starts, policy.checkpoint()) == ({"r": 0, "head": 110, "later": 10}, {"head": 1})


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_on_nodes_every_job_ends_once_and_no_processor_is_given_twice(data):
    cluster = node_cluster(*alike(3, 4))
    submit, jobs = 0, []
    for at in range(data.draw(st.integers(1, 15))):
        submit += data.draw(st.sampled_from([0, 0, 1, 5]))
        shape = data.draw(st.sampled_from([{}, {}, {"nodes": 2}, {"exclusive": True}]))
        least = 2 if shape.get("nodes") else 1
        estimate = data.draw(st.integers(1, 20))
        jobs.append(
            traced(
                str(at),
                data.draw(st.integers(least, 8)),
                estimate,
                submit,
                runtime=data.draw(st.integers(0, 20)),
                **shape,
            )
        )
    policy = data.draw(st.sampled_from([los, delayed]))
    run = emulate(cluster, jobs, policy(), FirstFit(), max_rounds=2000)
    assert run.problems == []
    assert set(run.states.values()) <= {"completed", "timed out"}
