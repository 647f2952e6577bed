"""What Slurm says can never run is not asked for again on nodes like those it was refused on."""

from __future__ import annotations

from headway.model import JobDescription, NodeDescription, Request
from headway_adapters.polling.snapshot import SnapshotJob
from headway_adapters.slurm.refusals import Refusals

NODES = {
    name: NodeDescription(name, 4, sizes=(("sockets", sockets),))
    for name, sockets in (("a1", 1), ("a2", 1), ("b1", 2), ("b2", 2))
}


def pending(request: Request, state: str = "pending") -> dict[str, SnapshotJob]:
    return {"7": SnapshotJob(job=JobDescription("7", 0.0, request), state=state)}


def excluded(refusals: Refusals, request: Request, nodes=NODES, state: str = "pending") -> tuple[str, ...]:
    jobs = pending(request, state)
    refusals.show(jobs, nodes)
    assert jobs["7"].job.request.processors == request.processors
    return jobs["7"].job.request.excluded_nodes


def test_nodes_like_the_one_it_was_refused_on_are_excluded():
    refusals, request = Refusals(), Request(1, 60.0, excluded_nodes=("b2",))
    assert excluded(refusals, request) == ("b2",)
    refusals.learned("7", request, (("a1", 1),), NODES)
    assert excluded(refusals, request) == ("b2", "a1", "a2")
    # As the look shows it now, it is refused on the others as well.
    jobs = pending(request)
    refusals.show(jobs, NODES)
    refusals.learned("7", jobs["7"].job.request, (("b1", 1),), NODES)
    assert set(excluded(refusals, request)) == set(NODES)


def test_another_limit_is_the_same_job_and_another_request_a_new_one():
    refusals = Refusals()
    refusals.learned("7", Request(1, 60.0), (("a1", 1),), NODES)
    assert excluded(refusals, Request(1, 600.0)) == ("a1", "a2")
    assert excluded(refusals, Request(2, 60.0)) == ()
    assert excluded(refusals, Request(1, 60.0)) == (), "it is not remembered"


def test_a_node_that_is_described_anew_is_tried_and_one_that_goes_down_and_up_is_not():
    refusals, request = Refusals(), Request(1, 60.0)
    refusals.learned("7", request, (("a1", 1),), NODES)
    down = {**NODES, "a1": NodeDescription("a1", 4, sizes=(("sockets", 1),), available=False, reason="x")}
    assert excluded(refusals, request, down) == ("a1", "a2")
    anew = {**NODES, "a1": NodeDescription("a1", 8, sizes=(("sockets", 1),))}
    assert excluded(refusals, request, anew) == ("a2",)


def test_a_job_that_runs_or_is_gone_is_forgotten():
    refusals, request = Refusals(), Request(1, 60.0)
    refusals.learned("7", request, (("a1", 1),), NODES)
    assert excluded(refusals, request, state="running") == ()
    assert excluded(refusals, request) == ()
    refusals.learned("7", request, (("a1", 1),), NODES)
    refusals.show({}, NODES)
    assert excluded(refusals, request) == ()


def test_what_was_refused_with_fewer_processors_is_another_request():
    """Slurm raised the processors to the job's tasks, and refused it on nodes that were chosen for fewer."""
    refusals, raised = Refusals(), Request(4, 60.0)
    refusals.learned("7", raised, (("a1", 2),), NODES)
    assert excluded(refusals, raised) == ()
    refusals.learned("7", raised, (("a1", 4),), NODES)
    assert excluded(refusals, raised) == ("a1", "a2")
