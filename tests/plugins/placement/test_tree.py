"""Jobs on few switches, bounds that are given up after a time, and bookings that respect them."""

from __future__ import annotations

import re

import msgspec
import numpy as np
import pytest
from building import alike, emulate, node_cluster, plugged, traced
from pydantic import ValidationError

from headway import events as ev
from headway.inquiry import explain
from headway.model import JobDescription, NodeDescription, Request
from headway.model.parts import together
from headway.scheduler import Scheduler
from headway_plugins.placement.topology.plugin import Tree, TreeOptions
from headway_plugins.policies.conservative import Conservative
from headway_plugins.policies.easy import Easy

#: Four leaf switches with two nodes each, two and two below a switch.
SWITCHES = {
    "l0": "n[0-1]", "l1": "n[2-3]", "l2": "n[4-5]", "l3": "n[6-7]",
    "s0": {"switches": ["l0", "l1"]}, "s1": {"switches": ["l2", "l3"]}, "top": {"switches": ["s0", "s1"]},
}  # fmt: skip


def tree(**more):
    return Tree(TreeOptions(**{"switches": SWITCHES, **more}))


def placed(request, free, switches=SWITCHES, time=0.0, **options):
    """Where a job gets its processors on nodes of four that have so many ``free``; None: nowhere."""
    cluster = node_cluster(*alike(len(free), 4))
    plugin = tree(switches=switches, **options)
    scheduler = Scheduler(cluster, plugged(Easy(), plugin))
    table = scheduler.state.nodes
    for at, left in enumerate(free):
        if left < 4:
            table.take(Request(4 - left, 1), ((f"n{at}", 4 - left),))
    scheduler.state.now = time
    scheduler.step(time, [ev.JobSubmitted(0, JobDescription("j", 0, request))])
    job = scheduler.state.jobs["j"]
    found = job.placement
    return dict(found) if found else None


@pytest.mark.parametrize(
    ("request_", "free", "expected"),
    [
        # One switch, the fullest that will do.
        (Request(4, 1), (4, 4, 4, 0, 4, 4, 2, 3), {"n2": 4}),
        (Request(5, 1), (4, 4, 4, 0, 4, 4, 2, 3), {"n6": 2, "n7": 3}),
        (Request(8, 1), (4, 4, 4, 0, 4, 4, 2, 3), {"n0": 4, "n1": 4}),
        # Two: below the lowest common switch, and there the one with the least room.
        (Request(9, 1), (4, 4, 4, 0, 4, 4, 2, 3), {"n0": 4, "n1": 4, "n2": 1}),
        (Request(13, 1), (4, 4, 4, 0, 4, 4, 2, 3), {"n4": 4, "n5": 4, "n6": 2, "n7": 3}),
        # Few switches before low ones: eight are below s0 on two, and everywhere else on three.
        (Request(16, 1), (4, 4, 4, 0, 4, 4, 2, 3), {"n0": 4, "n1": 4, "n4": 4, "n5": 4}),
        # Nodes count where a job asks for nodes.
        (Request(4, 1, nodes=2), (4, 0, 4, 0, 4, 4, 2, 3), {"n4": 3, "n5": 1}),
        (Request(8, 1, nodes=2, exclusive=True), (4, 0, 4, 0, 4, 4, 2, 3), {"n4": 4, "n5": 4}),
        (Request(6, 1, processors_per_node=2), (4, 2, 4, 0, 4, 4, 2, 1), {"n0": 2, "n1": 2, "n2": 2}),
        # Uneven on one switch rather than even on two.
        (Request(6, 1, nodes=2), (4, 0, 4, 0, 4, 0, 2, 4), {"n6": 2, "n7": 4}),
        # The nodes that its user named come with their switch.
        (Request(6, 1, required_nodes=("n7",)), (4, 4, 4, 4, 4, 4, 2, 4), {"n6": 2, "n7": 4}),
        (Request(2, 1, nodes=2, required_nodes=("n0", "n7")), (4,) * 8, {"n0": 1, "n7": 1}),
        # As few nodes as possible.
        (Request(4, 1), (1, 3, 2, 3, 1, 3, 1, 3), {"n0": 1, "n1": 3}),
        (Request(3, 1), (1, 3, 1, 3, 1, 3, 1, 3), {"n1": 3}),
        # Chunks that stay whole.
        (Request(4, 1, processors_per_chunk=2), (1, 3, 2, 3, 1, 3, 1, 3), {"n2": 2, "n3": 2}),
        (Request(33, 1), (4,) * 8, None),
    ],
)
def test_the_switches_that_a_job_gets(request_, free, expected):
    assert placed(request_, free) == expected


def test_without_a_description_the_fewest_nodes_count():
    cluster = node_cluster(*alike(3, 4))
    scheduler = Scheduler(cluster, plugged(Easy(), Tree()))
    assert "no switches are described" in scheduler.notices[0]
    scheduler.state.nodes.take(Request(3, 1), (("n0", 3),))
    scheduler.step(0, [ev.JobSubmitted(0, JobDescription("j", 0, Request(5, 1)))])
    assert scheduler.state.jobs["j"].placement == (("n0", 1), ("n1", 4))


def test_nodes_that_no_switch_has_are_used_and_told():
    switches = {"l0": "n[0-2]", "l9": "x[1-2]"}
    cluster = node_cluster(*alike(5, 4))
    scheduler = Scheduler(cluster, plugged(Easy(), tree(switches=switches)))
    assert scheduler.notices == [
        "topology: switch 'l9': there are no nodes 'x1', 'x2'",
        "topology: switch 'l9' has no node and is left out",
        "topology: nodes 'n3', 'n4' are on no switch",
    ]
    assert placed(Request(20, 1), (4,) * 5, switches) == {f"n{at}": 4 for at in range(5)}
    assert placed(Request(16, 1), (4,) * 5, switches, connected=True) is None


def test_whole_switches_are_kept_for_large_jobs():
    free = (4, 4, 2, 1, 4, 4, 2, 2)
    assert placed(Request(6, 1), free) == {"n0": 4, "n1": 2}
    assert placed(Request(6, 1), free, keep_whole=True) == {"n2": 2, "n6": 2, "n7": 2}
    # What is not there beside them breaks one after all; a large job gets whole ones, and the rest elsewhere.
    assert placed(Request(8, 1), free, keep_whole=True) == {"n0": 4, "n1": 4}
    assert placed(Request(9, 1), free, keep_whole=True) == {"n0": 4, "n1": 4, "n3": 1}
    # A bound comes first.
    assert placed(Request(6, 1, switches=1), free, keep_whole=True) == {"n0": 4, "n1": 2}


POLICIES = [Easy, Conservative]


def node(name):
    return f"n{name}"


@pytest.mark.parametrize("policy", POLICIES)
def test_a_job_waits_for_its_switches_and_others_do_not_wait_for_it(policy):
    # Each switch has a node that is taken: on l0 until 100, on the others until 1000.
    jobs = [traced(f"r{at}", 4, 100 if at == 0 else 1000, required_nodes=(node(2 * at),)) for at in range(4)]
    jobs += [
        traced("few", 8, 50, 1, switches=1, switches_wait=500.0),
        traced("any", 8, 50, 2),
        traced("long", 4, 200, 3),
    ]
    run = emulate(node_cluster(*alike(8, 4)), jobs, policy(), tree(max_wait=None))
    assert not run.problems
    starts = run.starts
    # It is booked for when l0 is free again. What ends before that, or needs another switch, starts at once.
    assert starts["few"] == 100
    assert dict(run.results["few"].placement) == {"n0": 4, "n1": 4}
    assert starts["any"] == 2
    assert starts["long"] == 3
    assert "n1" not in dict(run.results["long"].placement)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    ("wait", "longest", "start"), [(30.0, None, 31), (None, 60.0, 61), (90.0, 60.0, 61), (None, None, 1000)]
)
def test_it_gives_up_after_its_time(policy, wait, longest, start):
    jobs = [traced(f"r{at}", 4, 1000, required_nodes=(node(2 * at),)) for at in range(4)]
    jobs += [traced("few", 8, 50, 1, switches=1, switches_wait=wait)]
    run = emulate(node_cluster(*alike(8, 4)), jobs, policy(), tree(max_wait=longest))
    assert not run.problems
    assert run.starts["few"] == start


@pytest.mark.parametrize("policy", POLICIES)
def test_it_is_booked_for_the_moment_at_which_it_gives_up(policy):
    jobs = [traced(f"r{at}", 4, 1000, required_nodes=(node(2 * at),)) for at in range(4)]
    # From 31 on it takes any two nodes of the four that are free. Who would have three of them by then waits.
    jobs += [
        traced("few", 8, 50, 1, switches=1, switches_wait=30.0),
        traced("three", 12, 100, 2),
        traced("two", 8, 60, 3),
    ]
    run = emulate(node_cluster(*alike(8, 4)), jobs, policy(), tree(max_wait=None))
    assert not run.problems
    assert run.starts["few"] == 31
    assert run.starts["two"] == 3
    assert run.starts["three"] >= 81


def test_a_begin_time_is_where_the_wait_begins():
    jobs = [traced(f"r{at}", 4, 1000, required_nodes=(node(2 * at),)) for at in range(4)]
    jobs += [traced("few", 8, 50, 1, switches=1, switches_wait=30.0, begin_time=200.0)]
    run = emulate(node_cluster(*alike(8, 4)), jobs, Easy(), tree())
    assert run.starts["few"] == 230


def test_explain_says_why_it_waits():
    plugin = tree()
    scheduler = Scheduler(node_cluster(*alike(8, 4)), plugged(Easy(), plugin))
    events = []
    for at in range(4):
        name = f"r{at}"
        events.append(ev.JobSubmitted(0, JobDescription(name, 0, Request(4, 1000))))
        events.append(ev.JobStarted(0, name, ((f"n{2 * at}", 4),)))
    scheduler.step(0, events)
    few = JobDescription("few", 0, Request(8, 50, switches=1, switches_wait=60.0))
    assert scheduler.step(1, [ev.JobSubmitted(1, few)]) == []
    said = "\n".join(explain(scheduler, "few", "{:.0f}".format))
    assert "Processors are kept for it from 60 on." in said
    assert (
        "It waits for nodes on at most 1 switch until 60, then it takes any; on the nodes that are free now "
        "it would need 2 switches." in said
    )


def test_random_runs_keep_every_bound_while_it_holds():
    rng = np.random.default_rng(1)
    jobs = []
    for at in range(60):
        size = int(rng.integers(1, 17))
        bound = int(rng.integers(0, 4))
        wait = float(rng.integers(0, 300))
        more = {"switches": bound, "switches_wait": wait} if bound else {}
        if rng.random() < 0.3:
            more["nodes"] = int(rng.integers(1, min(size, 8) + 1))
        jobs.append(traced(f"j{at}", size, int(rng.integers(1, 100)), at * 12.0, **more))
    leaf = {f"n{at}": at // 2 for at in range(8)}
    for policy in POLICIES:
        run = emulate(node_cluster(*alike(8, 4)), jobs, policy(), tree(max_wait=200))
        assert not run.problems
        met = 0
        for result in run.results.values():
            request = result.job.request
            if request.nodes * 4 < request.processors and request.nodes:
                continue
            assert result.state == "completed", result.job.id
            if request.switches and result.start_time < result.job.submit_time + min(
                request.switches_wait, 200
            ):
                met += 1
                assert len({leaf[name] for name, _ in result.placement}) <= request.switches
        assert met > 10


def test_parts_have_bounds_of_their_own():
    parts = together((Request(8, 50, switches=1, switches_wait=30.0), Request(4, 50)))
    jobs = [traced(f"r{at}", 4, 1000, required_nodes=(node(2 * at),)) for at in range(4)]
    run = emulate(node_cluster(*alike(8, 4)), [*jobs, _parted("h", parts)], Easy(), tree())
    assert run.starts["h"] == 31
    free = emulate(node_cluster(*alike(8, 4)), [*jobs[:2], _parted("h", parts)], Easy(), tree())
    assert free.starts["h"] == 1


def _parted(name, request):
    job = traced(name, request.processors, request.walltime, 1)
    return msgspec.structs.replace(job, job=msgspec.structs.replace(job.job, request=request))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"switches": {"a": {"node": "n1"}}}, "switches: a: node: unknown key"),
        ({"switches": {"a": "n[1-"}}, "switches: a: nodes: host list part"),
        ({"file": "nowhere.yaml"}, "a file that can be read, found nowhere.yaml"),
        ({"switches": {}, "file": "x"}, "found both"),
        ({"max_wait": -1}, "greater than or equal to 0"),
    ],
)
def test_wrong_options_name_their_place(options, said):
    with pytest.raises(ValidationError, match=re.escape(said)):
        TreeOptions(**options)


def test_nodes_that_come_later_are_found_on_their_switch():
    plugin = tree()
    cluster = node_cluster(*alike(6, 4))
    scheduler = Scheduler(cluster, plugged(Easy(), plugin))
    more = [ev.NodeUp(1, each) for each in node_cluster(*alike(8, 4)).nodes[6:]]
    scheduler.step(1, more)
    for at in range(0, 6, 2):
        scheduler.state.nodes.take(Request(1, 1), ((f"n{at}", 1),))
    scheduler.step(2, [ev.JobSubmitted(2, JobDescription("j", 2, Request(8, 1)))])
    assert dict(scheduler.state.jobs["j"].placement) == {"n6": 4, "n7": 4}


@pytest.mark.parametrize(
    ("mark", "start"), [("1@30", 31), ("1", 301), ("1@30s", 31), ("2", 1), ("one", 1), ("1@soon", 1)]
)
def test_a_mark_is_a_bound_where_the_batch_system_has_none(mark, start):
    jobs = [traced(f"r{at}", 4, 1000, required_nodes=(node(2 * at),)) for at in range(4)]
    jobs += [traced("few", 8, 50, 1, attributes={"switches": mark})]
    run = emulate(node_cluster(*alike(8, 4)), jobs, Easy(), tree())
    assert not run.problems
    assert run.starts["few"] == start


def test_a_mark_that_cannot_be_read_is_told():
    scheduler = Scheduler(node_cluster(*alike(8, 4)), plugged(Easy(), tree()))
    scheduler.step(
        0, [ev.JobSubmitted(0, JobDescription("j", 0, Request(1, 1), attributes={"switches": "few"}))]
    )
    assert scheduler.notices == [
        "job j: the mark switches=few is ignored: expected a number of switches and optionally a time (2, "
        "or 2@10m)"
    ]


@pytest.mark.parametrize("policy", POLICIES)
def test_typed_gpus_are_counted_and_close_together(policy):
    a100 = {"gres": (("gpu", 4), ("gpu:a100", 4))}
    v100 = {"gres": (("gpu", 4), ("gpu:v100", 4))}
    nodes = [NodeDescription(f"n{at}", 4, **(a100 if at in (1, 2, 3, 6) else v100)) for at in range(8)]

    def wanted(kind, amount):
        return (("gpu", amount), (f"gpu:{kind}", amount))

    jobs = [
        # Both on one switch that has two nodes with the type, the other one elsewhere.
        traced("two", 2, 100, nodes=2, gres_per_node=wanted("a100", 4)),
        traced("one", 1, 50, 1, nodes=1, gres_per_node=wanted("a100", 3)),
        traced("late", 3, 100, 2, nodes=3, gres_per_node=wanted("a100", 2)),
        # It would take what is booked for the one before it.
        traced("long", 1, 500, 3, nodes=1, gres_per_node=wanted("a100", 3)),
        traced("other", 1, 500, 4, nodes=1, gres_per_node=wanted("v100", 4)),
    ]
    run = emulate(node_cluster(*nodes), jobs, policy(), tree())
    assert not run.problems
    assert [name for name, _ in run.results["two"].placement] == ["n2", "n3"]
    assert run.starts == {"two": 0, "one": 1, "late": 100, "long": 3, "other": 4}
    taken = {name for job in ("one", "long") for name, _ in run.results[job].placement}
    assert taken == {"n1", "n6"}
