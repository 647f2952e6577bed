"""With reservations and on nodes, too, the shortcuts change nothing: not who starts, when or where."""

from __future__ import annotations

from typing import Any

import pytest
from building import PLACES, POLICIES, emulate, node_cluster
from hypothesis import given, settings
from hypothesis import strategies as st
from pools_reference import ANY
from test_every_policy_over_shared_nodes import SITES, run, within_reach
from test_no_oversubscription import NAMES, NODES, flat_workloads, node_workloads, reservations
from test_policies_against_reference import without_shortcuts

from headway.hookspecs import hookimpl
from headway.model import ClusterDescription
from headway.state import State

#: They book nothing. What minmin and sufferage choose depends on the time of the events.
BOOKLESS = {"fcfs", "strict", "greedy", "window", "minmin", "sufferage"}
#: The others over pools that share nodes, and what of their options decides what is booked.
BOOKING: dict[str, dict[str, dict[str, Any]]] = {
    **{name: SITES[name] for name in SITES if name not in BOOKLESS},
    "easy-of-two": {"easy": {"bookings": 2}},
    "easy-per-pool": {"easy": {"bookings_per_pool": True}},
    "easy-of-two-per-pool": {"easy": {"bookings": 2, "bookings_per_pool": True}},
    "easy-shortest": {"easy": {"bookings": 2, "backfill": "shortest-first"}},
    "easy-to-depth": {"easy": {"bookings": 2, "queue_depth": 4}},
    "easy-in-window": {"easy": {"bookings": 2, "window": 12}},
    "easy-coarse": {"easy": {"resolution": 4}},
    "conservative-of-three": {"conservative": {"depth": 3}},
    "conservative-to-depth": {"conservative": {"queue_depth": 4}},
    "k-reserved-once": {"k-reserved": {"limit": 1}},
}


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


class Anew:
    """Has each cycle look at everything, as if anything might have happened."""

    @hookimpl
    def react(self, state: State) -> None:
        for domain in state.domains.values():
            domain.touch()


@pytest.mark.parametrize("site", BOOKING)
@settings(max_examples=60, deadline=None)
@given(case=ANY)
def test_looking_at_what_changed_only_changes_nothing_where_pools_share_nodes(site, case):
    possible = within_reach(case, site)

    def starts(*more: object) -> dict[str, Any]:
        found = run(possible, BOOKING[site], 2, *more)
        return {name: (r.start_time, r.pool, r.placement) for name, r in found.results.items()}

    assert starts() == starts(Anew())
