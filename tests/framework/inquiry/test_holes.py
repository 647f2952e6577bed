"""Holes: what is free now and for how long, so that a job of that size and length starts at once and a larger
or longer one does not."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import pytest
from building import alike, described, node_cluster, plugged
from hypothesis import example, given
from hypothesis import strategies as st

from headway.decisions import Start
from headway.events import Event, JobEnded, JobStarted, JobSubmitted, ReservationMade
from headway.inquiry import Inquiry
from headway.inquiry.holes import HolesWanted, hole_list
from headway.inquiry.reports import HoleReport, PoolHoles
from headway.model import ClusterDescription, NodeDescription, Request, Reservation
from headway.scheduler import Scheduler
from headway.view.owed import Check, Enough, all_of_them
from headway_plugins.placement.first_fit import FirstFit
from headway_plugins.policies.conservative import Conservative, ConservativeOptions
from headway_plugins.policies.easy import Easy, EasyOptions
from headway_plugins.policies.fcfs import Fcfs

POLICIES: dict[str, Callable[[], Any]] = {
    "easy": Easy,
    "three bookings": lambda: Easy(EasyOptions(bookings=3)),
    "conservative": Conservative,
    "coarse": lambda: Conservative(ConservativeOptions(resolution=50)),
    "deep": lambda: Conservative(ConservativeOptions(depth=4)),
}
FLAT = ClusterDescription.flat(32)
NODES = node_cluster(*alike(8, 4, memory=16, gres=(("gpu", 2),)))
ANY = HolesWanted(Request(1, 0.0))


def here(scheduler: Scheduler, wanted: HolesWanted = ANY, check: Check = all_of_them) -> PoolHoles:
    [found] = hole_list(Inquiry(scheduler, check=check), wanted).pools
    return found


def no_time() -> None:
    raise Enough


class Site:
    """A scheduler, and a cluster that does what it decides."""

    def __init__(self, cluster: ClusterDescription, *plugins: Any) -> None:
        self.scheduler = Scheduler(cluster, plugged(*plugins, FirstFit()))
        self.now = 0.0
        self.started: dict[str, float] = {}

    def step(self, now: float, *events: Event) -> list[str]:
        """The ids of the jobs that start."""
        self.now = now
        made = [one for one in self.scheduler.step(now, list(events)) if isinstance(one, Start)]
        if made:
            self.scheduler.step(now, [JobStarted(now, one.job_id, one.placement) for one in made])
        return [one.job_id for one in made]

    def submit(self, name: str, processors: int, seconds: float, **more: Any) -> bool:
        """Whether the job starts at once."""
        job = described(name, processors, seconds, self.now, **more)
        return name in self.step(self.now, JobSubmitted(self.now, job))


def busy(site: Site, seed: int, jobs: int = 30) -> Site:
    """Jobs came, and some of them ended early."""
    draw = random.Random(seed)
    flat = site.scheduler.state.cluster.pools[0].flat
    for number in range(jobs):
        now = site.now + draw.choice([0, 0, 5, 20])
        events: list[Event] = []
        running = sorted(job.id for job in site.scheduler.state.running_jobs())
        if running and draw.random() < 0.3:
            events.append(JobEnded(now, draw.choice(running)))
        sizes = [1, 2, 4, 8, 16, 32] if flat else [1, 2, 4, 8, 16]
        more = {} if flat or draw.random() < 0.5 else {"memory_per_processor": draw.choice([1, 4])}
        job = described(f"j{number}", draw.choice(sizes), draw.choice([30, 100, 101, 250, 600]), now, **more)
        site.step(now, *events, JobSubmitted(now, job))
    for number in range(draw.choice([0, 0, 1, 3])):
        # Jobs that are too large now, of which the policy is not told.
        site.submit(f"late{number}", draw.choice([8, 16, 32]), draw.choice([30, 100]))
    return site


@pytest.mark.parametrize("policy", POLICIES)
@given(seed=st.integers(0, 10**6))
# The last of the waiting jobs came after the policy was asked, and is in the way of no other.
@example(seed=140)
def test_a_job_as_large_and_as_long_as_a_hole_starts_and_no_larger_one(policy: str, seed: int) -> None:
    def site() -> Site:
        return busy(Site(FLAT, POLICIES[policy]()), seed)

    all_found = here(site().scheduler)
    found, known = all_found.holes, all_found.known_until or math.inf
    coarse = 50 if policy == "coarse" else 0
    for at, hole in enumerate(found):
        longest = hole.seconds if hole.seconds is not None else 10**7
        assert site().submit("x", hole.processors, longest)
        larger = found[at - 1].processors if at else 32
        if hole.processors < larger:
            since = found[at - 1].seconds if at else 0.0
            assert since is not None
            assert not site().submit("x", hole.processors + 1, since + coarse + 0.5)
    if not found:
        assert not site().submit("x", 1, 0.5 + coarse)
    # What is not known was not short of time.
    assert known > site().now


@pytest.mark.parametrize("policy", POLICIES)
@given(seed=st.integers(0, 10**6))
def test_the_same_of_whole_nodes(policy: str, seed: int) -> None:
    def site() -> Site:
        return busy(Site(NODES, POLICIES[policy]()), seed)

    found = [hole for hole in here(site().scheduler).holes if hole.nodes]
    coarse = 50 if policy == "coarse" else 0
    for at, hole in enumerate(found):
        longest = hole.seconds if hole.seconds is not None else 10**7
        asked = {"nodes": hole.nodes, "exclusive": True}
        assert site().submit("x", 4 * hole.nodes, longest, **asked)
        since = found[at - 1].seconds if at else 0.0
        assert since is not None
        if hole.nodes < (found[at - 1].nodes if at else 8):
            more = {"nodes": hole.nodes + 1, "exclusive": True}
            assert not site().submit("x", 4 * hole.nodes + 4, since + coarse + 0.5, **more)


@pytest.mark.parametrize("cluster", [FLAT, NODES])
@given(seed=st.integers(0, 10**6))
def test_to_ask_changes_no_decision(cluster: ClusterDescription, seed: int) -> None:
    asked, other = busy(Site(cluster, Conservative()), seed), busy(Site(cluster, Conservative()), seed)
    here(asked.scheduler)
    for number in range(8):
        now = asked.now + 10
        job = described(f"k{number}", 4, 60 + 40 * number, now)
        running = sorted(job.id for job in asked.scheduler.state.running_jobs())
        ended = [JobEnded(now, running[0])] if running and number % 3 == 2 else []
        here(asked.scheduler)
        assert asked.step(now, *ended, JobSubmitted(now, job)) == other.step(
            now, *ended, JobSubmitted(now, job)
        )


def test_holes_of_nodes_with_what_is_asked_for() -> None:
    nodes = (
        NodeDescription("a", 4, memory=8, gres=(("gpu", 2),), pools=("p",), features=("new",)),
        NodeDescription("b", 4, memory=8, pools=("p",)),
    )
    site = Site(node_cluster(*nodes, pools=("p",)), Easy())
    site.submit("j", 2, 100.0, gres_per_node=(("gpu", 1),))
    site.submit("head", 8, 50.0)

    assert here(site.scheduler).holes == (HoleReport(6, 1, 100.0, 100.0),)
    gpu = HolesWanted(Request(1, 0.0, gres_per_node=(("gpu", 1),)))
    assert here(site.scheduler, gpu).holes == (HoleReport(2, 1, 100.0, 100.0),)
    for none in ({"gres_per_node": (("gpu", 2),)}, {"memory_per_node": 9}, {"features": ("old",)}):
        wanted = HolesWanted(Request(1, 0.0, **none))  # type: ignore[arg-type]
        assert here(site.scheduler, wanted).holes == ()
        assert here(site.scheduler, wanted).why == "nothing that is asked for is free now"
    assert here(site.scheduler, HolesWanted(Request(1, 0.0), nodes=1, seconds=100)).fits
    assert here(site.scheduler, HolesWanted(Request(1, 0.0), nodes=1, seconds=101)).fits is False


def test_a_reservation_ends_a_hole() -> None:
    site = Site(NODES, Easy())
    kept = Reservation("r", 500.0, 600.0, nodes=("n0", "n1"))
    site.step(0.0, ReservationMade(0.0, kept))
    assert here(site.scheduler).holes == (HoleReport(32, 8, 500.0, 500.0), HoleReport(24, 6, None, None))


def test_where_no_job_may_overtake_there_is_no_hole_beside_jobs_that_wait() -> None:
    site = Site(FLAT, Fcfs())
    assert here(site.scheduler).holes == (HoleReport(32, 0, None, None),)
    site.submit("a", 20, 100.0)
    site.submit("b", 20, 100.0)
    found = here(site.scheduler)
    assert found.holes == ()
    assert found.why == "a job waits, and the policy lets no job overtake"


@pytest.mark.parametrize("cluster", [FLAT, NODES])
def test_where_time_is_short_holes_are_told_as_far_as_they_are_known(
    cluster: ClusterDescription,
) -> None:
    known = []
    for seed in range(40):
        site = busy(Site(cluster, Conservative()), seed)
        found = here(site.scheduler, check=no_time)
        if found.known_until is not None and found.holes:
            last = found.holes[-1]
            assert last.until is not None
            assert last.until <= found.known_until < math.inf
            assert last.seconds is not None
            asked = {"processors": last.processors} if cluster is FLAT else {"processors": 4 * last.nodes}
            more = {} if cluster is FLAT else {"nodes": last.nodes, "exclusive": True}
            if asked["processors"]:
                assert site.submit("x", asked["processors"], last.seconds, **more)
            known.append(last)
    assert known
