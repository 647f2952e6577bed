"""What is foreseen of a queue is what a daemon does that runs that policy from the same state, if all jobs
run as planned; and a scheduler that is told everything anew does what the one does that knew it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest
from building import POLICIES, alike, described, emulate, node_cluster
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from what_if_site import Site

from headway import events as e
from headway.emulation.live_copy import begun_now
from headway.model import ClusterDescription, Dependency, PoolDescription, Reservation
from headway.service.answers import Answers
from headway.service.peer import Peer
from headway.service.protocol import Bookings, Explain
from headway.state import Job
from headway.state.records import ON_NODES, submission
from headway.state.retold import cluster_now, description_now
from headway.workload.jobs import TraceJob
from headway_plugins.placement.first_fit import FirstFit

FLAT = ClusterDescription("flat", (PoolDescription("a", 8),))
NODES = node_cluster(*alike(4, 2, memory=8), pools=("a",))
CLUSTERS = {"flat": FLAT, "nodes": NODES}
HOW = ("held", "after", "later")
SUBMIT = st.tuples(
    st.just("submit"), st.sampled_from(["ann", "ben"]), st.integers(1, 8), st.sampled_from([7, 20, 50, 51]),
    st.sampled_from(["", "", "", *HOW]),
)  # fmt: skip
OTHER = st.tuples(
    st.sampled_from(["end", "hold", "release", "change", "down", "up", "reserve"]), st.integers(0, 30)
)
#: Seconds until something happens, and what.
HAPPENS = st.lists(
    st.tuples(st.sampled_from([0, 0, 3, 10]), st.lists(SUBMIT | OTHER, max_size=4)), min_size=1, max_size=10
)


def happened(site: Site, rounds: Any, *, plain: bool = False, waits: Collection[str] = HOW) -> Site:
    """``plain``: jobs end as planned, or by themselves, and nothing happens to nodes. ``waits``: for what
    jobs may wait before they are queued."""
    number = 0
    for pause, several in rounds:
        if plain:
            site.pass_until(site.now + pause)
        else:
            site.step(site.now + pause)
        for what in several:
            if what[0] == "submit":
                number += 1
                submit(site, number, *what[1:4], what[4] if what[4] in waits else "")
            elif (event := EVENTS[what[0]](site, what[1])) is not None and (not plain or what[0] == "end"):
                site.step(site.now, event)
    return site


def submit(site: Site, number: int, user: str, size: int, seconds: int, how: str) -> None:
    more: dict[str, Any] = {"held": True} if how == "held" else {}
    if how == "after" and number > 1:
        more["dependencies"] = (Dependency("afterany", str(number - 1)),)
    if how == "later":
        more["begin_time"] = site.now + 30
    job = described(str(number), size, seconds, site.now, user=user, **more)
    site.step(site.now, e.JobSubmitted(site.now, job))


def one(site: Site, at: int, *, running: bool = False) -> Job | None:
    """One of the jobs that wait, or run."""
    jobs = sorted(site.scheduler.state.jobs.values(), key=submission)
    jobs = [job for job in jobs if (job.status in ON_NODES) is running]
    return jobs[at % len(jobs)] if jobs else None


def ends(site: Site, at: int) -> e.Event | None:
    job = one(site, at, running=True)
    return e.JobEnded(site.now, job.id) if job is not None else None


def hold(site: Site, at: int) -> e.Event | None:
    job = one(site, at)
    return e.JobHeld(site.now, job.id) if job is not None else None


def release(site: Site, at: int) -> e.Event | None:
    job = one(site, at)
    return e.JobReleased(site.now, job.id) if job is not None else None


def change(site: Site, at: int) -> e.Event | None:
    job = one(site, at)
    if job is None:
        return None
    return e.JobChanged(site.now, replace(job.description, request=replace(job.request, walltime=33.0)))


def down(site: Site, at: int) -> e.Event | None:
    return e.NodeDown(site.now, f"n{at % 4}") if site.scheduler.state.nodes.descriptions else None


def up(site: Site, at: int) -> e.Event | None:
    node = site.scheduler.state.nodes.descriptions.get(f"n{at % 4}")
    return e.NodeUp(site.now, replace(node, available=True)) if node is not None else None


def reserve(site: Site, at: int) -> e.Event:
    flat, now = site.scheduler.state.pools["a"].flat, site.now
    what: dict[str, Any] = {"processors": 3} if flat else {"nodes": (f"n{at % 4}",)}
    return e.ReservationMade(now, Reservation(f"r{at}", now + 25, now + 60, pool="a", users=("ben",), **what))


EVENTS = {
    "end": ends, "hold": hold, "release": release, "change": change, "down": down, "up": up,
    "reserve": reserve,
}  # fmt: skip


@pytest.mark.parametrize("cluster", CLUSTERS)
@pytest.mark.parametrize("policy", sorted(POLICIES))
@given(rounds=HAPPENS)
@settings(deadline=None, max_examples=40)
def test_told_anew_the_same_policy_does_the_same(cluster: str, policy: str, rounds: Any) -> None:
    def made() -> Site:
        return happened(Site(CLUSTERS[cluster], f"[{policy}, first-fit]"), rounds)

    here, there = made().course(), made().course(policy)
    assert (here.ended, there.ended) == ("", "")
    assert there.starts == here.starts
    assert made().run_until_they_start(here.starts) == here.starts


@pytest.mark.parametrize("cluster", CLUSTERS)
@pytest.mark.parametrize("policy", sorted(POLICIES))
@given(rounds=HAPPENS, before=st.sampled_from(sorted(POLICIES)))
@settings(deadline=None, max_examples=25)
def test_another_policy_does_what_was_foreseen(cluster: str, policy: str, before: str, rounds: Any) -> None:
    """In the emulated cluster, from the same state on."""
    site = happened(Site(CLUSTERS[cluster], f"[{before}, first-fit]"), rounds, plain=True, waits=["later"])
    state = site.scheduler.state
    jobs = sorted(state.jobs.values(), key=submission)
    emulation = emulate(
        cluster_now(state.cluster, state),
        [TraceJob(description_now(state, job), job.request.walltime) for job in jobs],
        POLICIES[policy](),
        FirstFit(),
        start=site.now,
        running=[begun_now(state, job) for job in jobs if job.status in ON_NODES],
    )
    foreseen = site.course(policy)
    assert foreseen.complete
    assert foreseen.starts == {job: emulation.starts[job] for job in foreseen.starts}
    assert not [job for job in jobs if job.status not in ON_NODES and job.id not in foreseen.starts]


@pytest.mark.parametrize("cluster", CLUSTERS)
@pytest.mark.parametrize("policy", sorted(POLICIES))
@given(rounds=HAPPENS)
@settings(deadline=None, max_examples=25)
def test_the_present_course_is_what_explain_and_bookings_tell(cluster: str, policy: str, rounds: Any) -> None:
    """As long as no job comes to the queue: a job that becomes due goes before others that are planned."""
    site = happened(Site(CLUSTERS[cluster], f"[{policy}, first-fit]"), rounds, plain=True, waits=[])
    answers, root = Answers(), Peer("root", operator=True)
    jobs = [job.id for job in site.scheduler.state.jobs.values() if job.status not in ON_NODES]
    explained = {job: answers.reply(Explain(job), root, site.scheduler).found for job in jobs}
    booked = answers.reply(Bookings(), root, site.scheduler).found
    foreseen = site.course()
    for booking in booked.bookings:
        assert foreseen.starts[booking.job] == pytest.approx(booking.start, abs=0.01)
    for job, told in explained.items():
        if told.job.planned_start is not None:
            assert foreseen.starts[job] == pytest.approx(told.job.planned_start, abs=0.01)
