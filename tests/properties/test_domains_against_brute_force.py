"""Random pools over shared nodes against schedules that are worked out by trying everything."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pools_reference import CROWDED, LIMITED, SOME, Asked, Case, Packing, Placed, Reference, placed

from headway.hookspecs import hookimpl
from headway.state import State
from headway_plugins.policies.conservative import Conservative
from headway_plugins.policies.easy import Easy, EasyOptions
from headway_plugins.policies.fcfs import Fcfs
from headway_plugins.policies.k_reserved import KReserved, KReservedOptions
from headway_plugins.policies.los import Los, PackingOptions


def k_reserved(limit: int) -> KReserved:
    return KReserved(KReservedOptions(limit=limit))


#: Of each policy the plugin, and the reference's method with what it is given.
POLICIES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "fcfs": (Fcfs, ("fcfs",)),
    "easy": (Easy, ("easy",)),
    "easy_of_two": (lambda: Easy(EasyOptions(bookings=2)), ("easy", 2)),
    "easy_per_pool": (lambda: Easy(EasyOptions(bookings_per_pool=True)), ("easy_per_pool",)),
    "conservative": (Conservative, ("conservative",)),
    "k_reserved_once": (lambda: k_reserved(1), ("k_reserved", 1)),
    "k_reserved_twice": (lambda: k_reserved(2), ("k_reserved", 2)),
    "los": (lambda: Los(PackingOptions()), ("los",)),
}


def expected(case: Case, policy: str) -> dict[int, Placed]:
    return Reference(case, *POLICIES[policy][1]).run()


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("cases", [SOME, CROWDED, LIMITED], ids=["some", "crowded", "limited"])
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_each_start_is_that_of_the_reference(cases, policy, data):
    case = data.draw(cases)
    assert placed(case, POLICIES[policy][0]()) == expected(case, policy)


def drawn(cases: st.SearchStrategy[Case], count: int) -> list[Case]:
    """So many cases, the same ones in each run."""
    found: list[Case] = []

    @given(case=cases)
    @settings(max_examples=count, derandomize=True, database=None, phases=[Phase.generate])
    def draw(case: Case) -> None:
        found.append(case)

    draw()
    assert len(found) == count
    return found


@pytest.mark.parametrize("cases", [CROWDED, LIMITED], ids=["crowded", "limited"])
def test_the_cases_tell_each_policy_from_each_other(cases):
    """Else the test above would not show which of them is compared."""
    differ: Counter[tuple[str, str]] = Counter()
    for case in drawn(cases, 60):
        starts = {
            policy: {at: job.start for at, job in expected(case, policy).items()} for policy in POLICIES
        }
        differ.update(pair for pair in combinations(POLICIES, 2) if starts[pair[0]] != starts[pair[1]])
    assert {pair for pair in combinations(POLICIES, 2) if differ[pair] < 5} == set()
    assert differ["fcfs", "easy"] >= 45
    assert differ["easy", "conservative"] >= 15


@pytest.mark.parametrize("cases", [CROWDED, LIMITED], ids=["crowded", "limited"])
def test_los_fills_nodes_as_no_other_set_would_where_each_chosen_job_finds_some(cases):
    """What headway starts is what the reference starts: see above."""
    packings: list[Packing] = []
    for case in drawn(cases, 40):
        reference = Reference(case, "los")
        reference.run()
        packings += reference.packings
    assert [packing for packing in packings if packing.idle] == []
    assert [p for p in packings if p.filled < p.most and not p.left_out] == []
    assert sum(packing.filled > 0 for packing in packings) >= 80
    assert sum(packing.filled == packing.most > 0 for packing in packings if packing.left_out) >= 10


@pytest.mark.parametrize("later", [0, 1])
def test_a_booking_counts_for_the_first_of_a_jobs_pools_when_only_others_came_since(later):
    """Job 2 is booked in pool 0, and counts for pool 2, so job 3 is not booked in either case."""
    nodes = tuple(map(frozenset, ({0}, {0, 1, 2}, {1}, {0}, {2}, {0, 2})))
    jobs = (
        Asked(1, 12, 12, 0, (0, 2)), Asked(1, 30, 30, 1, (1, 2)), Asked(3, 12, 12, 2, (2, 0, 1)),
        Asked(3, 12, 12, 2 + later, (2,)), Asked(1, 30, 30, 5, (2, 1, 0)),
    )  # fmt: skip
    case = Case(nodes, (0, 0, 0), jobs)
    found = placed(case, POLICIES["easy_per_pool"][0]())
    assert found == expected(case, "easy_per_pool")
    assert found[4] == Placed(5, 2, [4])


class FirstBookings:
    """Notes the start of the first booking of each job."""

    def __init__(self) -> None:
        self.starts: dict[str, float] = {}

    @hookimpl
    def control(self, state: State) -> None:
        for domain in state.domains.values():
            for booking in domain.view.bookings if domain.view is not None else ():
                self.starts.setdefault(booking.job.id, booking.start)


#: With a booking for each pool, a job before it in the queue may still put off the first of another pool; and
#: delayed-los lets a head be skipped.
PROMISING = {
    "easy": Easy,
    "conservative": Conservative,
    "k-reserved": lambda: k_reserved(5),
    "los": lambda: Los(PackingOptions()),
}


@pytest.mark.parametrize("policy", PROMISING)
@given(case=st.one_of(SOME, CROWDED, LIMITED))
@settings(max_examples=60, deadline=None)
def test_where_estimates_hold_no_later_job_of_any_pool_breaks_a_promise(policy, case):
    exact = case._replace(
        tiers=(0,) * len(case.tiers), jobs=tuple(job._replace(runtime=job.limit) for job in case.jobs)
    )
    first_bookings = FirstBookings()
    started = placed(exact, PROMISING[policy](), first_bookings)
    late = {
        name: (first, started[int(name)].start)
        for name, first in first_bookings.starts.items()
        if started[int(name)].start > first
    }
    assert first_bookings.starts.keys() <= {str(at) for at in started}
    assert late == {}
