"""No foreign job is ever on what a reservation keeps, and the jobs it is for get it."""

from __future__ import annotations

from building import PLACES, POLICIES, emulate, node_cluster, traced
from hypothesis import given, settings
from hypothesis import strategies as st
from test_no_oversubscription import NAMES, NODES, flat_workloads, node_workloads, reservations

from headway.model import ClusterDescription


@settings(max_examples=150, deadline=None)
@given(
    flat_workloads(),
    st.sampled_from(sorted(POLICIES)),
    reservations(),
    st.lists(
        st.tuples(st.integers(1, 4), st.integers(1, 30), st.integers(0, 30), st.integers(0, 2)), max_size=4
    ),
)
def test_a_flat_pool_keeps_what_is_reserved(jobs, policy, kept, inside):
    kept = kept[:2]  # together at most the whole pool
    flat = ClusterDescription.flat(8)
    cluster = ClusterDescription(flat.name, flat.pools, (), kept)
    members = [
        traced(f"m{at}", processors, estimate, submit, reservation=kept[which % len(kept)].id)
        for at, (processors, estimate, submit, which) in enumerate(inside)
        if kept
    ]
    jobs = sorted(jobs + members, key=lambda job: job.job.submit_time)
    run = emulate(cluster, jobs, POLICIES[policy]())
    assert run.problems == []
    results = list(run.results.values())
    for time in range(80):
        on = [r for r in results if r.start_time is not None and r.start_time <= time < r.end_time]
        current = {r.id: r for r in kept if r.start <= time < r.end}
        reserved = sum(r.processors for r in current.values())
        outside = sum(r.job.request.processors for r in on if r.job.reservation not in current)
        assert outside <= 8 - reserved, (
            f"at {time} {outside} processors are used beside {reserved} reserved ones"
        )
        for name, reservation in current.items():
            users = sum(r.job.request.processors for r in on if r.job.reservation == name)
            assert users <= reservation.processors


@settings(max_examples=150, deadline=None)
@given(
    node_workloads(),
    st.sampled_from(sorted(POLICIES)),
    st.sampled_from(sorted(PLACES)),
    reservations(NAMES),
)
def test_nodes_are_kept_free_while_they_are_reserved(jobs, policy, place, kept):
    cluster = node_cluster(*NODES, pools=("wide", "all"), reservations=kept)
    run = emulate(cluster, jobs, POLICIES[policy](), PLACES[place]())
    assert run.problems == []
    for result in run.results.values():
        if result.start_time is None or result.end_time == result.start_time:
            continue
        for reservation in kept:
            if {name for name, _ in result.placement} & set(reservation.nodes):
                assert result.end_time <= reservation.start or result.start_time >= reservation.end
