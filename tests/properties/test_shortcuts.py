"""With reservations and on nodes, too, the shortcuts change nothing: not who starts, when or where."""

from __future__ import annotations

from building import PLACES, POLICIES, emulate, node_cluster
from hypothesis import given, settings
from hypothesis import strategies as st
from test_no_oversubscription import NAMES, NODES, flat_workloads, node_workloads, reservations
from test_policies_against_reference import without_shortcuts

from headway.model import ClusterDescription


@settings(max_examples=120, deadline=None)
@given(
    node_workloads(), st.sampled_from(sorted(POLICIES)), st.sampled_from(sorted(PLACES)), reservations(NAMES)
)
def test_looking_at_new_jobs_only_changes_nothing_on_nodes(jobs, name, place, kept):
    cluster = node_cluster(*NODES, pools=("wide", "all"), reservations=kept)

    def starts(policy):
        run = emulate(cluster, jobs, policy(), PLACES[place]())
        assert run.problems == []
        return {result.job.id: (result.start_time, result.placement) for result in run.results.values()}

    assert starts(POLICIES[name]) == starts(without_shortcuts(POLICIES[name]))


@settings(max_examples=150, deadline=None)
@given(flat_workloads(), st.sampled_from(sorted(POLICIES)), reservations())
def test_looking_at_new_jobs_only_changes_nothing_beside_reservations(jobs, name, kept):
    flat = ClusterDescription.flat(8)
    cluster = ClusterDescription(flat.name, flat.pools, (), kept)

    def starts(policy):
        run = emulate(cluster, jobs, policy())
        assert run.problems == []
        return run.starts

    assert starts(POLICIES[name]) == starts(without_shortcuts(POLICIES[name]))
