"""After any cycles the picture of ``headway serve`` says what the daemon says on its socket, to each user."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from building import described, plugged
from followed import OPERATOR, Followed, Sparing
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from headway import events as e
from headway.hookspecs import hookimpl
from headway.inquiry.reports import JobPage, JobReport
from headway.model import (
    ClusterDescription,
    Dependency,
    JobDescription,
    NodeDescription,
    PoolDescription,
    Reservation,
)
from headway.model.reservations import FOR_JOB
from headway.scheduler import Scheduler
from headway.serve.reading import MADE_FROM, Readable
from headway.serve.sorting import KEYS, JobsInOrder
from headway.serve.stream import seen
from headway.service import protocol as p
from headway.state import Job
from headway_plugins.placement.first_fit import FirstFit
from headway_plugins.policies.conservative import Conservative
from headway_plugins.policies.easy import Easy
from headway_plugins.policies.fcfs import Fcfs

USERS = ("ann", "ben", "eve")
POOLS = {"a": ("a",), "b": ("b",), "ab": ("a", "b"), "ba": ("b", "a")}
FLAT = ClusterDescription("flat", (PoolDescription("a", 6), PoolDescription("b", 4)))
NODES = ClusterDescription(
    "nodes",
    tuple(PoolDescription(name) for name in "abc"),
    tuple(
        NodeDescription(f"n{at}", 2, pools=pools, memory=8)
        for at, pools in enumerate([("a",), ("a",), ("b",), ("b", "c"), ("c",)])
    ),
)
SUBMIT = st.tuples(
    st.just("submit"), st.sampled_from(USERS), st.integers(1, 5), st.integers(1, 9),
    st.sampled_from(sorted(POOLS)), st.sampled_from(["", "held", "after"]),
)  # fmt: skip
OTHER = st.tuples(
    st.sampled_from(
        ["end", "requeue", "hold", "release", "suspend", "resume", "change", "down", "up", "reserve", "power"]
    ),
    st.integers(0, 30),
)
#: What happens in each cycle, and for how many pieces of work there is time after it; None: for all.
CYCLES = st.lists(
    st.tuples(st.lists(SUBMIT | OTHER, max_size=5), st.none() | st.integers(0, 12)), min_size=1, max_size=8
)
REQUESTS: list[Readable] = [
    p.Status(), p.Jobs(), p.Jobs(count=2, first=1), p.Jobs(mine=True), p.Jobs(pool="a"), p.Jobs(pool="b"),
    p.Jobs(user="ben"), p.Jobs(status="pending"), p.Jobs(status="waiting"), p.Jobs(status="running"),
    p.Jobs(account="x"), p.Jobs(pool="none"), p.Nodes(), p.Nodes(pool="b", first=1), p.Pools(), p.Bookings(),
    p.Bookings(pool="a"), p.Cycle(),
]  # fmt: skip


SORTED = [
    *(JobsInOrder(sort=sign + key) for key in KEYS for sign in ("", "-")),
    JobsInOrder(sort="start", first=1, count=2), JobsInOrder(sort="-waited", first=2, count=3, pool="a"),
    JobsInOrder(sort="user", status="pending"), JobsInOrder(sort="-submitted", mine=True), JobsInOrder(),
]  # fmt: skip


class Backwards:
    """Serves the last that came first."""

    @hookimpl
    def order_queue(self, jobs: list[Job]) -> list[Job]:
        return list(reversed(jobs))


class Site:
    """Lets things happen that can happen to the jobs and nodes that are there."""

    def __init__(self, followed: Followed) -> None:
        self.followed = followed
        self.count = 0

    def events(self, drawn: list[tuple[Any, ...]]) -> list[e.Event]:
        found: list[e.Event] = []
        for what, *more in drawn:
            found += self._submitted(*more) if what == "submit" else self._happens(what, *more)
        return found

    def _submitted(self, user: str, size: int, length: int, pool: str, how: str) -> list[e.Event]:
        self.count += 1
        pool, *further = POOLS[pool]
        after = (Dependency("ended", str(self.count - 1)),) if how == "after" and self.count > 1 else ()
        job = described(
            str(self.count), size, 10.0 * length, self.followed.now, pool=pool, further_pools=tuple(further),
            user=user, account="x" if size > 2 else "", dependencies=after, held=how == "held",
        )  # fmt: skip
        return [e.JobSubmitted(self.followed.now, job)]

    def _happens(self, what: str, which: int) -> list[e.Event]:
        state, now = self.followed.scheduler.state, self.followed.now
        if what in ("down", "up", "reserve", "power"):
            nodes = list(state.nodes.descriptions.values())
            if not nodes:
                return []
            node = nodes[which % len(nodes)]
            # One in three is kept for a job, by its name.
            name = f"{FOR_JOB}{which}" if which % 3 == 0 else f"r{which}"
            kept = Reservation(name, now + which, now + which + 50, nodes=(node.name,), ours=which % 3 == 0)
            told: dict[str, e.Event] = {
                "down": e.NodeDown(now, node.name, "broken"),
                "up": e.NodeUp(now, node),
                "reserve": e.ReservationMade(now, kept),
                "power": e.NodePowerChanged(now, node.name, "asleep"),
            }
            return [told[what]]
        jobs = list(state.jobs.values())
        if not jobs:
            return []
        job = jobs[which % len(jobs)]
        status = job.status.value
        waits = status in ("pending", "waiting")
        named: dict[str, tuple[bool, e.Event]] = {
            "end": (True, e.JobEnded(now, job.id)),
            "requeue": (status in ("running", "suspended"), e.JobRequeued(now, job.id)),
            "hold": (waits, e.JobHeld(now, job.id)),
            "release": (True, e.JobReleased(now, job.id)),
            "suspend": (status == "running", e.JobSuspended(now, job.id)),
            "resume": (status == "suspended", e.JobResumed(now, job.id)),
            "change": (waits, e.JobChanged(now, changed(job, USERS[which % 3]))),
        }
        can, event = named[what]
        return [event] if can else []


def changed(job: Job, user: str) -> JobDescription:
    """The job with another user and a longer limit."""
    request = job.description.request
    longer = replace(request, walltime=request.walltime + 10.0)
    return replace(job.description, request=longer, user=user)


def nobody_is_told_of_others(followed: Followed, owners: dict[str, set[str]]) -> None:
    """Of each job only the stream of a user speaks to whom it has belonged."""
    for user in USERS:
        for item in seen(followed.stream, user, False):
            data = msgspec.json.decode(item.data)
            if item.kind in ("event", "decision"):
                assert user in owners.get(data.get("job", ""), {user}), item
            elif item.kind == "jobs":
                assert all(user in owners[job] for job in [*data.get("ids", ()), *data.get("gone", ())])


#: User and request -> how often what the answer is made from had changed, and the answer.
Kept = dict[tuple[str, Readable], tuple[list[int], p.Reply]]


def agree(followed: Followed, kept: Kept) -> None:
    for user in (*USERS, OPERATOR):
        for request in REQUESTS:
            told, pictured = followed.both(request, user)
            assert pictured == told, (user, request)
            if not followed.sees_all(user):
                assert FOR_JOB.encode() not in msgspec.json.encode(pictured)
            counts = [followed.picture.changes[kind] for kind in MADE_FROM[type(request)]]
            if (user, request) in kept and kept[user, request][0] == counts:
                assert kept[user, request][1] == pictured
            kept[user, request] = counts, pictured
        for request in SORTED:
            sorted_as_the_daemon_would(followed, request, user)


def sorted_as_the_daemon_would(followed: Followed, request: JobsInOrder, user: str) -> None:
    """The daemon's answers, sorted here, are the picture's, also page by page."""
    told, _ = followed.both(replace(request.unsorted(), first=0, count=500), user)
    assert isinstance(told.found, JobPage)
    found = list(told.found.jobs)
    if request.sort:
        keyed = [(value_of(job, request.sort.lstrip("-"), followed.now), job) for job in found]
        there = [one for one in keyed if one[0] not in (None, "")]
        # Also in reverse, Python's sort leaves alike jobs in their order.
        there.sort(key=lambda one: one[0], reverse=request.sort.startswith("-"))
        found = [job for _, job in there] + [job for value, job in keyed if value in (None, "")]
    _, pictured = followed.both(request, user)
    assert isinstance(pictured.found, JobPage)
    assert list(pictured.found.jobs) == found[request.first : request.first + request.count], request


def value_of(job: JobReport, name: str, now: float) -> Any:
    if name == "start":
        return job.started if job.started is not None else job.planned_start
    if name == "waited":
        return (job.started if job.started is not None else now) - job.submitted
    return getattr(job, name)


@pytest.mark.parametrize("private", [True, False], ids=["private", "open"])
@pytest.mark.parametrize("cluster", [FLAT, NODES], ids=["flat", "nodes"])
@pytest.mark.parametrize("policy", [Fcfs, Easy, Conservative])
@settings(max_examples=10)
@given(cycles=CYCLES, backwards=st.booleans())
def test_the_picture_says_what_the_daemon_says(
    policy: type, cluster: ClusterDescription, private: bool, cycles: list[Any], backwards: bool
) -> None:
    plugins = [*([Backwards()] if backwards else []), policy(), FirstFit()]
    spare = Sparing()
    followed = Followed(Scheduler(cluster, plugged(*plugins)), private=private, spare=spare)
    site, news, owners = Site(followed), list[e.Event](), dict[str, set[str]]()
    kept: Kept = {}
    for drawn, spare.pieces in cycles:
        coming = site.events(drawn)
        for event in coming:
            if isinstance(event, e.JobSubmitted | e.JobChanged):
                owners.setdefault(event.job.id, set()).add(event.job.user)
        news = followed.started(followed.cycle(*news, *coming))
        if spare.pieces is None:
            followed.settle()
            agree(followed, kept)
        else:
            followed.tell()
    followed.cycle(*news)
    spare.pieces = None
    followed.settle()
    agree(followed, kept)
    if private:
        nobody_is_told_of_others(followed, owners)
