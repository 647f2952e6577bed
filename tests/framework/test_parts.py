"""A job of several parts starts on nodes for all of them, or not at all."""

from __future__ import annotations

import pytest
from building import described, plugged
from hypothesis import given, settings
from hypothesis import strategies as st

from headway import events as ev
from headway.errors import StateError
from headway.inquiry import explain
from headway.model import (
    ClusterDescription,
    JobDescription,
    NodeDescription,
    PoolDescription,
    Request,
    Reservation,
)
from headway.model.parts import placements_of, together
from headway.resources import layout_is_open
from headway.scheduler import Scheduler, plain_clock
from headway_plugins.placement.first_fit import FirstFit
from headway_plugins.policies.conservative import Conservative
from headway_plugins.policies.easy import Easy
from headway_plugins.policies.fcfs import Fcfs

MIB = 1 << 20


def cluster(*nodes: NodeDescription) -> ClusterDescription:
    return ClusterDescription("c", (PoolDescription("batch"),), nodes)


def node(name: str, processors: int = 4, **more) -> NodeDescription:
    return NodeDescription(name, processors, pools=("batch",), **more)


def four(**more) -> ClusterDescription:
    return cluster(*(node(f"n{i}", **more) for i in range(1, 5)))


def het(name: str, *parts: Request, **more) -> JobDescription:
    return JobDescription(name, 0.0, together(parts), pool="batch", **more)


def part(processors: int, walltime: float = 100.0, **more) -> Request:
    return Request(processors, walltime, **more)


def driven(cluster: ClusterDescription, policy=None) -> Scheduler:
    return Scheduler(cluster, plugged(policy or Easy(), FirstFit()))


def starts(decisions) -> dict[str, tuple]:
    return {start.job_id: start.placement for start in decisions}


def test_each_part_has_nodes_of_its_own():
    s = driven(four())
    found = starts(s.step(0, [ev.JobSubmitted(0, het("h", part(1), part(2), part(6)))]))
    assert found == {"h": (("n1", 1), ("n2", 2), ("n3", 4), ("n4", 2))}
    state = s.state
    assert placements_of(state.jobs["h"].request, found["h"]) == [
        (("n1", 1),), (("n2", 2),), (("n3", 4), ("n4", 2)),
    ]  # fmt: skip
    assert state.domains["batch"].free == 16 - 9
    assert s.step(1, [ev.JobStarted(1, "h", found["h"]), ev.JobEnded(2, "h", "completed")]) == []
    assert state.domains["batch"].free == 16
    assert state.nodes.free.processors[:4].tolist() == [4] * 4


def test_it_starts_whole_or_not_at_all():
    s = driven(four(), Fcfs())
    s.step(0, [ev.JobSubmitted(0, described("a", 4, pool="batch", nodes=1))])
    # Twelve processors are free, on three nodes; its parts need four nodes.
    jobs = [het("h", part(1), part(1), part(1), part(1)), described("behind", 1, pool="batch")]
    assert starts(s.step(1, [ev.JobSubmitted(1, job) for job in jobs])) == {}
    assert s.state.domains["batch"].free == 12
    found = starts(s.step(2, [ev.JobStarted(0, "a", (("n1", 4),)), ev.JobEnded(2, "a", "completed")]))
    assert set(found) == {"h", "behind"}


@pytest.mark.parametrize("policy", [Easy, Conservative])
def test_it_is_booked_and_not_starved(policy):
    s = driven(four(), policy())
    s.step(0, [ev.JobSubmitted(0, described("long", 4, 100, pool="batch", nodes=1))])
    s.step(0, [ev.JobStarted(0, "long", (("n1", 4),))])
    wide = het("h", part(4), part(4), part(4), part(4))
    small = [described(f"s{i}", 4, 60 + 60 * (i % 2), pool="batch") for i in range(6)]
    found = starts(s.step(1, [ev.JobSubmitted(1, job) for job in (wide, *small)]))
    assert set(found) == {"s0", "s2", "s4"}, "who ends before the booking at 100 may start, nobody else"
    lines = " ".join(explain(s, "h", plain_clock))
    assert "16 processors (4 and 4 and 4 and 4, together and each on nodes of its own)" in lines
    assert "kept for it from 100 on" in lines
    ends = [ev.JobStarted(1, name, where) for name, where in found.items()]
    assert starts(s.step(2, ends)) == {}
    assert starts(s.step(61, [ev.JobEnded(61, name, "completed") for name in found])) == {}
    assert "h" in starts(s.step(100, [ev.JobEnded(100, "long", "completed")]))


def test_what_only_one_part_may_have_is_left_to_it():
    s = driven(cluster(node("n1", gres=(("gpu", 1),)), node("n2"), node("n3", features=("big",))))
    job = het("h", part(1), part(1, gres_per_node=(("gpu", 1),)), part(1, features=("big",)))
    assert starts(s.step(0, [ev.JobSubmitted(0, job)])) == {"h": (("n2", 1), ("n1", 1), ("n3", 1))}
    assert s.state.nodes.free.gres["gpu"][:3].tolist() == [0, 0, 0]
    named = het("named", part(1), part(1, required_nodes=("n1",)))
    assert starts(s.step(1, [ev.JobSubmitted(1, named)])) == {"named": (("n2", 1), ("n1", 1))}


def test_memory_is_taken_part_by_part():
    s = driven(four(memory=1000 * MIB))
    job = het("h", part(2, memory_per_node=900 * MIB), part(2, memory_per_processor=100 * MIB))
    s.step(0, [ev.JobSubmitted(0, job)])
    assert [left // MIB for left in s.state.nodes.free.memory[:4].tolist()] == [100, 800, 1000, 1000]
    s.step(1, [ev.JobEnded(1, "h", "completed")])
    assert [left // MIB for left in s.state.nodes.free.memory[:4].tolist()] == [1000] * 4


def test_the_guard_looks_at_each_part():
    s = driven(four(), Fcfs())
    job = het("h", part(4, exclusive=True), part(2))
    s.step(0, [ev.JobSubmitted(0, described("a", 1, pool="batch", required_nodes=("n1",)))])
    s.state.nodes.guard(job.request, (("n2", 4), ("n3", 2)), "batch")
    for wrong in ((("n1", 3), ("n2", 3)), (("n2", 4), ("n2", 2)), (("n2", 4), ("n3", 1)), (("n2", 6),)):
        with pytest.raises(StateError):
            s.state.nodes.guard(job.request, wrong, "batch")


def test_what_can_never_run_is_told():
    s = driven(four(), Fcfs())
    jobs = [
        het("many", *[part(1)] * 5),
        het("large", part(1), part(20)),
        het("strange", part(1), part(1, features=("gpu",))),
        described("ordinary", 1, pool="batch"),
    ]
    assert set(starts(s.step(0, [ev.JobSubmitted(0, job) for job in jobs]))) == {"ordinary"}
    why = {name: s.state.why_waiting(s.state.jobs[name]) for name in ("many", "large", "strange")}
    never = "it can never run as it is: "
    assert why["many"] == f"{never}pool 'batch' has no nodes for all of its 5 parts beside each other"
    assert why["large"] == f"{never}it needs 21 processors, and pool 'batch' has 16"
    assert why["strange"] == f"{never}of its part 1: no node of pool 'batch' has gpu"


def test_a_reservation_is_kept_for_all_its_parts():
    s = driven(four(), Fcfs())
    reservation = Reservation("r", 50, 500, "batch", nodes=("n3", "n4"))
    s.step(0, [ev.ReservationMade(0, reservation)])
    assert starts(s.step(1, [ev.JobSubmitted(1, het("h", part(1), part(1), part(1)))])) == {}
    assert "h" in starts(s.step(500, [ev.ReservationEnded(500, "r")]))


def test_how_slurm_shares_several_nodes_of_a_part_out_is_open():
    request = together([part(1), part(2)])
    assert not layout_is_open(request, (("n1", 1), ("n2", 2)))
    assert layout_is_open(request, (("n1", 1), ("n2", 1), ("n3", 1)))


def test_on_a_flat_pool_the_sum_counts():
    s = Scheduler(ClusterDescription.flat(8), plugged(Easy()))
    job = JobDescription("h", 0.0, together([part(5), part(4)]))
    assert starts(s.step(0, [ev.JobSubmitted(0, job)])) == {}
    assert "9 processors" in s.state.why_waiting(s.state.jobs["h"])


parts = st.builds(
    lambda processors, nodes, exclusive: part(max(processors, nodes), nodes=nodes, exclusive=exclusive),
    st.integers(1, 8), st.integers(0, 2), st.booleans(),
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(parts, min_size=1, max_size=4), min_size=1, max_size=6),
    st.sampled_from([Easy, Conservative]),
)
def test_no_processor_is_given_twice_and_every_job_runs(jobs, policy):
    s = driven(four(), policy())
    waiting = [het(f"h{i}", *each) for i, each in enumerate(jobs)]
    possible = set()
    now, running = 0.0, {}
    decisions = s.step(0, [ev.JobSubmitted(0, job) for job in waiting])
    possible = {job.id for job in waiting if s.state.jobs[job.id].obstacle is None}
    while decisions or running:
        for start in decisions:
            request = s.state.jobs[start.job_id].request
            for its_part, placed in zip(request.parts, placements_of(request, start.placement), strict=True):
                assert sum(count for _, count in placed) >= its_part.processors
                assert not its_part.nodes or len(placed) == its_part.nodes
            names = [name for name, _ in start.placement]
            assert len(set(names)) == len(names)
            running[start.job_id] = start.placement
        on = {}
        for where in running.values():
            for name, count in where:
                on[name] = on.get(name, 0) + count
        assert all(count <= 4 for count in on.values())
        now += 10
        done = next(iter(running))
        where = running.pop(done)
        possible.discard(done)
        decisions = s.step(now, [ev.JobStarted(now - 5, done, where), ev.JobEnded(now, done, "completed")])
    assert not possible
    assert s.problems == []
    assert s.state.nodes.free.processors[:4].tolist() == [4] * 4
