"""Dedicated jobs and their reservations under random loads and faults."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from audit import audit
from building import Run, emulate, node_cluster, traced
from hypothesis import given, settings
from hypothesis import strategies as st
from test_no_oversubscription import NODES, node_workloads

from headway import events as ev
from headway.decisions import Reserve, Unreserve
from headway.workload.jobs import TraceJob, dedicated
from headway_adapters.emulated import Faults
from headway_plugins.placement.first_fit import FirstFit
from headway_plugins.policies.conservative import Conservative
from headway_plugins.policies.dedicated import Dedicated, DedicatedOptions
from headway_plugins.policies.easy import Easy
from headway_plugins.policies.hybrid_los import HybridLos, HybridLosOptions

KINDS = {
    "easy": lambda reserve: (Dedicated(DedicatedOptions(reserve=reserve)), Easy()),
    "conservative": lambda reserve: (Dedicated(DedicatedOptions(reserve=reserve)), Conservative()),
    "hybrid-los": lambda reserve: (HybridLos(HybridLosOptions(freeze="all", reserve=reserve)),),
}


@st.composite
def dedicated_jobs(draw) -> list[TraceJob]:
    """Jobs of whole nodes or of parts of them, with a requested start soon after their submission."""
    jobs = []
    for at in range(draw(st.integers(1, 4))):
        submit = draw(st.integers(0, 20))
        shape = draw(st.sampled_from([{}, {"exclusive": True, "nodes": 1}, {"exclusive": True, "nodes": 2}]))
        processors = shape.get("nodes") or draw(st.integers(1, 4))
        runtime = draw(st.integers(1, 25))
        job = traced(
            f"d{at}", processors, draw(st.integers(1, 20)), submit, runtime=runtime, pool="all", **shape
        )
        wish = float(submit + draw(st.integers(-5, 40)))
        jobs.append(TraceJob(dedicated(job.job, wish), job.runtime))
    return jobs


def check(run: Run, jobs: Sequence[TraceJob]) -> None:
    """Each reservation is for a job that is not over, keeps everybody else out, and goes with it."""
    over: dict[str, float] = {}
    there: dict[str, ev.ReservationMade] = {}
    placed: dict[str, set[str]] = {}
    for event in run.adapter.told:
        match event:
            case ev.JobEnded(job_id=job_id, time=time):
                over[job_id] = time
                placed.pop(job_id, None)
            case ev.JobRequeued(job_id=job_id):
                placed.pop(job_id, None)
            case ev.JobStarted(job_id=job_id, placement=placement, time=time):
                placed[job_id] = {name for name, _ in placement}
                for made in there.values():
                    kept = made.reservation
                    if kept.start <= time < kept.end and kept.job_id != job_id:
                        assert not placed[job_id] & set(kept.nodes), f"{job_id} runs on what {kept.id} keeps"
            case ev.ReservationMade(reservation=reservation):
                assert reservation.job_id not in over, f"{reservation.id} is made for a job that is over"
                there[reservation.id] = event
            case ev.ReservationEnded(reservation_id=name, time=time):
                del there[name]
                assert time <= over.get(name.removeprefix("job_"), time)
    assert not there, "reservations outlive their jobs"


@pytest.mark.parametrize("kind", sorted(KINDS))
@settings(max_examples=80, deadline=None)
@given(node_workloads(), dedicated_jobs(), st.sampled_from(["auto", "yes"]))
def test_reservations_are_kept_and_end_with_their_jobs(kind, jobs, wanted, reserve):
    cluster = node_cluster(*NODES, pools=("wide", "all"))
    jobs = sorted([*jobs, *wanted], key=lambda job: job.job.submit_time)
    run = emulate(cluster, jobs, *KINDS[kind](reserve), FirstFit())
    audit(run, cluster)
    check(run, jobs)
    assert all("cannot have its reservation" in text for text in run.problems)


@pytest.mark.parametrize("kind", sorted(KINDS))
@settings(max_examples=60, deadline=None)
@given(node_workloads(), dedicated_jobs(), st.integers(0, 5))
def test_faults_of_nodes_and_commands_break_nothing(kind, jobs, wanted, seed):
    cluster = node_cluster(*NODES, pools=("wide", "all"))
    jobs = sorted([*jobs, *wanted], key=lambda job: job.job.submit_time)
    faults = Faults(node_mtbf=60, node_repair=20, requeue=True, failure_rate=0.2, latency=1)
    run = emulate(cluster, jobs, *KINDS[kind]("auto"), FirstFit(), faults=faults, seed=seed, max_rounds=6000)
    audit(run, cluster)
    assert {run.states[job.job.id] for job in wanted} <= {"completed", "timed out"}
    made = [d.reservation.job_id for _, d in run.decisions if isinstance(d, Reserve)]
    assert set(made) <= {job.job.id for job in wanted}


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_cluster_of_dedicated_and_batch_jobs_starts_every_dedicated_job_at_its_second(kind):
    cluster = node_cluster(*NODES, pools=("wide", "all"))
    batch = [traced(f"b{at}", 2 + at % 7, 5 + at % 11, at // 2, pool="all") for at in range(60)]
    wanted = [
        TraceJob(
            dedicated(traced(f"d{at}", 1, 6, 0, pool="all", exclusive=True, nodes=1).job, 20.0 + 15 * at), 4
        )
        for at in range(6)
    ]
    run = emulate(cluster, [*wanted, *batch], *KINDS[kind]("auto"), FirstFit())
    audit(run, cluster)
    assert run.problems == []
    assert {name: run.starts[name] for name in ("d0", "d3", "d5")} == {"d0": 20, "d3": 65, "d5": 95}
    assert len([d for _, d in run.decisions if isinstance(d, Reserve)]) == 6
    assert [now for now, d in run.decisions if isinstance(d, Unreserve)] == [24 + 15 * at for at in range(6)]
    check(run, [*wanted, *batch])
