"""Whatever happens, no processor is given twice, and every accepted job ends exactly once."""

from __future__ import annotations

from audit import audit
from building import PLACES, POLICIES, emulate, node_cluster, traced
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.decisions import Requeue, Resume, Suspend
from headway.hookspecs import hookimpl
from headway.model import ClusterDescription, NodeDescription, Reservation
from headway.state import Status
from headway_adapters.emulated import Faults

GIGABYTE = 1 << 30


class Meddler:
    """Suspends, resumes and requeues running jobs at random, a few times."""

    def __init__(self, seed: int, times: int) -> None:
        import numpy as np

        self.rng = np.random.default_rng(seed)
        self.left = times

    @hookimpl
    def control(self, state):
        decisions = []
        for job in list(state.running_jobs()):
            if job.status is Status.SUSPENDED:
                decisions.append(Resume(job.id))
            elif job.status is Status.RUNNING and self.left > 0 and self.rng.random() < 0.3:
                self.left -= 1
                decisions.append(Suspend(job.id) if self.rng.random() < 0.6 else Requeue(job.id))
        return decisions


@st.composite
def flat_workloads(draw):
    jobs, submit = [], 0
    for at in range(draw(st.integers(1, 15))):
        submit += draw(st.sampled_from([0, 0, 1, 3, 8]))
        jobs.append(
            traced(
                f"j{at}",
                draw(st.integers(1, 8)),
                draw(st.integers(1, 20)),
                submit,
                runtime=draw(st.integers(0, 25)),
                begin_time=draw(st.sampled_from([None, None, None, submit + 5])),
            )
        )
    return jobs


@st.composite
def reservations(draw, nodes=()):
    made = []
    for at in range(draw(st.integers(0, 3))):
        start = draw(st.integers(0, 40))
        end = start + draw(st.integers(1, 20))
        if nodes:
            names = tuple(draw(st.sets(st.sampled_from(nodes), min_size=1, max_size=2)))
            made.append(Reservation(f"r{at}", start, end, nodes=tuple(sorted(names))))
        else:
            made.append(Reservation(f"r{at}", start, end, pool="pool", processors=draw(st.integers(1, 4))))
    return tuple(made)


@settings(max_examples=120, deadline=None)
@given(
    flat_workloads(),
    st.sampled_from(sorted(POLICIES)),
    reservations(),
    st.integers(0, 5),
    st.sampled_from([0, 3]),
)
def test_a_flat_pool_is_never_oversubscribed(jobs, policy, kept, meddling, latency):
    flat = ClusterDescription.flat(8)
    cluster = ClusterDescription(flat.name, flat.pools, (), kept)
    run = emulate(
        cluster,
        jobs,
        POLICIES[policy](),
        Meddler(meddling, meddling),
        faults=Faults(latency=latency, failure_rate=0.2 if latency else 0),
        max_rounds=3000,
    )
    audit(run, cluster)
    assert run.problems == []
    assert "pending" not in run.states.values()


NODES = (
    NodeDescription("a1", 4, memory=8 * GIGABYTE, pools=("wide", "all"), features=("fast",)),
    NodeDescription("a2", 4, memory=8 * GIGABYTE, pools=("wide", "all")),
    NodeDescription("b1", 8, memory=4 * GIGABYTE, pools=("all",), gres=(("gpu", 2),)),
    NodeDescription("b2", 8, pools=("all",), gres=(("gpu", 4),), features=("fast",)),
    NodeDescription("c1", 2, pools=("wide",), features=("fast",)),
)
NAMES = tuple(node.name for node in NODES)


@st.composite
def node_workloads(draw):
    jobs, submit = [], 0
    for at in range(draw(st.integers(1, 12))):
        submit += draw(st.sampled_from([0, 0, 1, 3, 8]))
        shape = {}
        processors = draw(st.integers(1, 12))
        match draw(st.integers(0, 5)):
            case 0:
                shape["nodes"] = draw(st.integers(1, 3))
            case 1:
                shape["processors_per_node"] = draw(st.sampled_from([1, 2, 4]))
                shape["nodes"] = draw(st.integers(1, 3))
                processors = shape["nodes"] * shape["processors_per_node"]
            case 2:
                shape["exclusive"] = True
        if draw(st.booleans()):
            shape["memory_per_processor"] = GIGABYTE
        elif draw(st.booleans()):
            shape["memory_per_node"] = 3 * GIGABYTE
        if draw(st.integers(0, 3)) == 0:
            shape["gres_per_node"] = (("gpu", draw(st.integers(1, 2))),)
        if draw(st.integers(0, 3)) == 0:
            shape["features"] = ("fast",)
        if draw(st.integers(0, 5)) == 0:
            shape["excluded_nodes"] = ("a1", "b1")
        if draw(st.integers(0, 5)) == 0:
            shape["required_nodes"] = draw(st.sampled_from([("a1",), ("a2", "a1"), ("b2",)]))
        jobs.append(
            traced(
                f"j{at}",
                processors,
                draw(st.integers(1, 20)),
                submit,
                runtime=draw(st.integers(0, 25)),
                pool=draw(st.sampled_from(["wide", "all"])),
                **shape,
            )
        )
    return jobs


@settings(max_examples=200, deadline=None)
@given(
    node_workloads(),
    st.sampled_from(sorted(POLICIES)),
    st.sampled_from(sorted(PLACES)),
    reservations(NAMES),
    st.integers(0, 5),
    st.sampled_from([0, 0, 40]),
    st.booleans(),
)
def test_nodes_are_never_oversubscribed_and_suit_their_jobs(
    jobs, policy, place, kept, meddling, mtbf, requeue
):
    cluster = node_cluster(*NODES, pools=("wide", "all"), reservations=kept)
    run = emulate(
        cluster,
        jobs,
        POLICIES[policy](),
        PLACES[place](),
        Meddler(meddling, meddling),
        faults=Faults(node_mtbf=mtbf, node_repair=10, requeue=requeue),
        seed=meddling,
        max_rounds=5000,
    )
    audit(run, cluster)
    assert run.problems == []


@settings(max_examples=60, deadline=None)
@given(node_workloads(), st.sampled_from(sorted(POLICIES)))
def test_every_job_that_fits_somewhere_ends(jobs, policy):
    cluster = node_cluster(*NODES, pools=("wide", "all"))
    run = emulate(cluster, jobs, POLICIES[policy](), PLACES["first-fit"](), max_rounds=3000)
    alone = {
        job.job.id
        for job in jobs
        if emulate(cluster, [job], POLICIES["fcfs"](), PLACES["first-fit"]()).states[job.job.id] != "pending"
    }
    waiting = {job_id for job_id, state in run.states.items() if state == "pending"}
    if policy == "fcfs":
        # One job that never fits is the head of its queue for ever.
        return
    assert waiting == {job.job.id for job in jobs} - alone


@settings(max_examples=60, deadline=None)
@given(node_workloads(), st.sampled_from(sorted(POLICIES)), st.integers(0, 3))
def test_a_run_is_repeated_exactly_from_its_seed(jobs, policy, seed):
    cluster = node_cluster(*NODES, pools=("wide", "all"))

    def told():
        run = emulate(
            cluster,
            jobs,
            POLICIES[policy](),
            PLACES["best-fit"](),
            faults=Faults(node_mtbf=30, node_repair=10, requeue=False, latency=1, failure_rate=0.2),
            seed=seed,
            max_rounds=5000,
        )
        return run.adapter.told, run.decisions

    assert told() == told()
