"""Min-Min and Sufferage as policies of a cluster whose nodes differ in speed."""

from __future__ import annotations

import math

import pytest
from building import node_cluster
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.emulation import emulate
from headway.errors import UserError
from headway.model import ClusterDescription, JobDescription, NodeDescription, Request
from headway.plugins import Catalogue, PluginConfig
from headway.workload import TraceJob

RULES = ["minmin", "sufferage"]
#: Node -> processors; kind -> speed.
NODES = (("fast1", 2), ("fast2", 2), ("mid", 3), ("old1", 2), ("old2", 2))
SPEEDS = {"fast*": 4.0, "mid": 2.0}
KINDS = (("fast*", 4, 4.0), ("mid", 3, 2.0), ("", 4, 1.0))


def job(name, submit, processors, estimate, runtime=None, **attributes):
    request = Request(processors, estimate)
    described = JobDescription(name, submit, request, "pool", attributes=attributes or None)
    return TraceJob(described, estimate if runtime is None else runtime)


def run(jobs, rule, nodes=NODES, speeds=SPEEDS, **options):
    cluster = node_cluster(*(NodeDescription(*node) for node in nodes))
    policy = PluginConfig(rule, {"speeds": speeds, **options})
    return emulate(cluster, jobs, [policy, PluginConfig("first-fit")], Catalogue(), label=rule)


def times(result):
    return {record.job.id: (record.start_time, record.end_time) for record in result.jobs}


def kinds_of(result):
    """Of each job the kinds of its nodes."""
    found = {}
    for record in result.jobs:
        found[record.job.id] = {name.rstrip("0123456789") for name, _ in record.placement}
    return found


@pytest.mark.parametrize(
    ("rule", "wanted"),
    [
        ("minmin", {"J1": (0, 5, "one"), "J3": (0, 9.5, "two"), "J2": (5, 12, "one")}),
        ("sufferage", {"J2": (0, 7, "one"), "J3": (0, 9.5, "two"), "J1": (7, 12, "one")}),
    ],
)
def test_t7_three_jobs_on_two_nodes(rule, wanted):
    """Run times on two nodes of one processor: (5, 6), (7, 15), (9, 9.5)."""
    table = {"J1": (5.0, 6.0), "J2": (7.0, 15.0), "J3": (9.0, 9.5)}
    jobs = [
        job(name, 0.0, 1, max(seconds), seconds_on=dict(zip(("one", "two"), seconds, strict=True)))
        for name, seconds in table.items()
    ]
    result = run(jobs, rule, (("one", 1), ("two", 1)), {"one": 1.0, "two": 1.0})
    where = kinds_of(result)
    assert {n: (*map(pytest.approx, span), *where[n]) for n, span in times(result).items()} == wanted


# ---------------------------------------------------------------------- by brute force


def choice(rule, ends):
    """Of jobs, in their order, with their ends on each kind: (job, kind); None: none can run."""
    best = None
    for name, row in ends.items():
        kind = min(range(len(row)), key=lambda at: row[at])
        if row[kind] == math.inf:
            continue
        others = sorted(row)
        worth = -row[kind] if rule == "minmin" else (others[1] if len(row) > 1 else others[0]) - others[0]
        if best is None or worth > best[0]:
            best = worth, name, kind
    return best and best[1:]


def expected(jobs, rule, kinds):
    """Start and kind of each job: all is computed anew for each choice, and everybody is assigned."""
    free = [[0.0] * processors for _, processors, _ in kinds]
    left, done = list(jobs), {}
    moments = sorted({one.job.submit_time for one in jobs})
    while moments:
        now = moments.pop(0)
        planned = [sorted(max(t, now) for t in each) for each in free]
        waiting = {one.job.id: one.job for one in left if one.job.submit_time <= now}
        while waiting:
            ends = {
                name: [
                    (row[one.request.processors - 1] if one.request.processors <= len(row) else math.inf)
                    + one.request.walltime / speed
                    for row, (_, _, speed) in zip(planned, kinds, strict=True)
                ]
                for name, one in waiting.items()
            }
            chosen = choice(rule, ends)
            if chosen is None:
                break
            name, kind = chosen
            width = waiting.pop(name).request.processors
            start, end = planned[kind][width - 1], ends[name][kind]
            planned[kind] = sorted(planned[kind][width:] + [end] * width)
            if start <= now:
                done[name] = (start, kinds[kind][0])
                free[kind] = sorted(free[kind])[width:] + [end] * width
                moments.append(end)
        moments = sorted(set(moments))
        left = [one for one in left if one.job.id not in done]
    return done


@st.composite
def workloads(draw):
    jobs, now = [], 0.0
    for number in range(draw(st.integers(1, 14))):
        now += draw(st.sampled_from([0.0, 0.0, 1.0, 8.0, 32.0]))
        jobs.append(job(f"j{number}", now, draw(st.integers(1, 4)), float(draw(st.integers(1, 64)))))
    return jobs


@settings(max_examples=40, deadline=None)
@given(workloads(), st.sampled_from(RULES))
def test_any_workload_is_mapped_as_by_brute_force(jobs, rule):
    result = run(jobs, rule)
    wanted = expected(jobs, rule, KINDS)
    assert len(wanted) == len(jobs)
    where = kinds_of(result)
    names = {"fast*": "fast", "mid": "mid", "": "old"}
    found = {name: (start, *where[name]) for name, (start, _) in times(result).items()}
    assert found == {name: (start, names[kind]) for name, (start, kind) in wanted.items()}


# ---------------------------------------------------------------------- the rest


@pytest.mark.parametrize("rule", RULES)
def test_mapping_events_are_at_multiples_of_the_interval(rule):
    jobs = [job("a", 3.0, 4, 40.0), job("b", 10.0, 4, 40.0), job("c", 12.0, 4, 40.0)]
    found = times(run(jobs, rule, interval=10.0))
    assert found == {"a": (10.0, 20.0), "b": (20.0, 30.0), "c": (30.0, 40.0)}


@pytest.mark.parametrize("rule", RULES)
def test_who_comes_after_a_quiet_time_waits_for_the_next_mapping_event(rule):
    found = times(run([job("a", 3.0, 4, 40.0), job("late", 25.0, 4, 40.0)], rule, interval=10.0))
    assert found == {"a": (10.0, 20.0), "late": (30.0, 40.0)}


def test_a_job_that_is_wider_than_each_kind_is_refused():
    result = run([job("wide", 0.0, 5, 10.0), job("fits", 0.0, 4, 10.0)], "minmin")
    assert [record.state for record in result.jobs] == ["refused", "completed"]


@pytest.mark.parametrize("rule", RULES)
def test_a_flat_pool_is_one_kind(rule):
    jobs = [job("a", 0.0, 4, 10.0), job("long", 1.0, 4, 50.0), job("short", 2.0, 4, 5.0)]
    cluster = ClusterDescription.flat(4)
    result = emulate(cluster, jobs, [PluginConfig(rule)], Catalogue(), label=rule)
    order = sorted(times(result), key=lambda name: times(result)[name][0])
    assert order == (["a", "short", "long"] if rule == "minmin" else ["a", "long", "short"])


def test_who_runs_longer_than_expected_is_waited_for():
    # Its end is over, and its limit counts.
    late = job("late", 0.0, 4, 40.0, seconds_on={"fast*": 5.0, "mid": 100.0, "": 100.0})
    result = run([late, job("next", 1.0, 4, 8.0)], "minmin", NODES[:2], {"fast*": 4.0})
    assert {record.state for record in result.jobs} == {"completed"}


@pytest.mark.parametrize("speeds", [{"fast*": 0.5}, {"": 2.0}, {"fast*": math.inf}, {"fast*": "quick"}])
def test_speeds_that_are_refused(speeds):
    with pytest.raises(UserError, match="speeds"):
        run([job("a", 0.0, 1, 1.0)], "minmin", speeds=speeds)


@pytest.mark.parametrize("rule", RULES)
def test_a_job_without_a_limit_that_takes_no_time(rule):
    """Nothing relates its limit of 0 s to the speed of its nodes."""
    found = run([job("a", 0.0, 2, 0.0), job("b", 0.0, 2, 0.0, 8.0), job("c", 5.0, 4, 40.0)], rule)
    assert times(found)["a"][1] == 0.0
    assert times(found)["c"] == (5.0, 15.0)
