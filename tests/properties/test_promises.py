"""What a booking promises is kept when estimates are exact."""

from __future__ import annotations

from building import PLACES, POLICIES, emulate, node_cluster, traced
from hypothesis import given, settings
from hypothesis import strategies as st
from test_no_oversubscription import NODES, node_workloads
from test_policies_against_reference import TOTAL, workloads

from headway.hookspecs import hookimpl
from headway.model import ClusterDescription
from headway.workload.jobs import TraceJob


def remembering(policy: type, head_only: bool) -> type:
    """The policy; keeps the first start that each booked job was promised."""

    class Remembering(policy):
        def __init__(self):
            super().__init__()
            self.promised: dict[str, float] = {}

        @hookimpl
        def schedule(self, view):
            starts = policy.schedule(self, view)
            for booking in view.bookings[:1] if head_only else view.bookings:
                self.promised.setdefault(booking.job.id, booking.start)
            return starts

    return Remembering


def exact(job: TraceJob) -> TraceJob:
    return TraceJob(job.job, job.job.request.walltime)


def kept(run, policy) -> None:
    for job_id, promised in policy.promised.items():
        start = run.starts[job_id]
        if start is not None:
            assert start <= promised, f"job {job_id} was promised {promised}, started at {start}"
        else:
            assert promised == float("inf")


@settings(max_examples=150, deadline=None)
@given(workloads(exact=True), st.sampled_from(["easy", "conservative"]))
def test_no_job_starts_later_than_first_promised_on_a_flat_pool(jobs, name):
    policy = remembering(POLICIES[name], name == "easy")()
    run = emulate(
        ClusterDescription.flat(TOTAL),
        [traced(str(at), j.processors, j.estimate, j.submit) for at, j in enumerate(jobs)],
        policy,
    )
    kept(run, policy)


@settings(max_examples=150, deadline=None)
@given(node_workloads(), st.sampled_from(["easy", "conservative"]), st.sampled_from(sorted(PLACES)))
def test_no_job_starts_later_than_first_promised_on_nodes(jobs, name, place):
    cluster = node_cluster(*(n for n in NODES if "all" in n.pools), pools=("all",))
    jobs = [exact(job) for job in jobs if job.job.pool == "all"]
    policy = remembering(POLICIES[name], name == "easy")()
    kept(emulate(cluster, jobs, policy, PLACES[place]()), policy)
