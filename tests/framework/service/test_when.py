"""When a job would start that is not submitted: what is foreseen happens, and nothing else changes."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import pytest
from building import alike, described, node_cluster, plugged
from waiting import HANG, until

from headway.decisions import Decision, Kill, Start
from headway.events import Event, JobEnded, JobStarted, JobSubmitted
from headway.hookspecs import hookimpl
from headway.inquiry.reports import TrialReport
from headway.model import ClusterDescription, PoolDescription
from headway.resources.profile import next_after
from headway.scheduler import Scheduler
from headway.service.peer import Peer
from headway.service.protocol import Reply, When
from headway.service.snapshots import MOST, Snapshots
from headway.state import Barrier, Job, State
from headway_plugins.placement.first_fit import FirstFit
from headway_plugins.policies.conservative import Conservative
from headway_plugins.policies.easy import Easy, EasyOptions
from headway_plugins.policies.fcfs import Fcfs

FLAT = ClusterDescription.flat(32)
NODES = node_cluster(*alike(8, 4, memory=16))
ANN = Peer("ann")
POLICIES: dict[str, Callable[[], Any]] = {
    "fcfs": Fcfs,
    "easy": Easy,
    "three bookings": lambda: Easy(EasyOptions(bookings=3)),
    "conservative": Conservative,
}


class Shortest:
    """The shortest job first."""

    @hookimpl
    def queue_key(self, job: Job, state: State) -> tuple[float]:
        return (job.estimate,)


class OneEach:
    """A user has one job on nodes."""

    @hookimpl
    def bar_job(self, job: Job, state: State) -> Barrier | None:
        if any(other.user == job.user for other in state.running_jobs()):
            return Barrier(f"user {job.user} has a job already", key=job.user)
        return None

    @hookimpl
    def observe(self, event: Event, state: State) -> None:
        if isinstance(event, JobEnded):
            state.lifted(None)


class Cluster:
    """A scheduler, and a cluster that does what it decides; each job runs as long as it says."""

    def __init__(self, cluster: ClusterDescription, *plugins: Any) -> None:
        self.scheduler = Scheduler(cluster, plugged(*plugins, FirstFit()))
        self.now = 0.0
        self.starts: dict[str, float] = {}
        self.places: dict[str, Any] = {}
        self.step(0.0)

    def step(self, now: float, *events: Event) -> None:
        self.now = now
        made = self.scheduler.step(now, list(events))
        starts = [one for one in made if isinstance(one, Start)]
        self.starts.update((one.job_id, now) for one in starts)
        self.places.update((one.job_id, one.placement) for one in starts)
        if starts:
            self.step(now, *(JobStarted(now, one.job_id, one.placement) for one in starts))

    def submit(self, name: str, processors: int, seconds: float, **more: Any) -> None:
        self.step(self.now, JobSubmitted(self.now, described(name, processors, seconds, self.now, **more)))

    def run_until_it_starts(self, name: str) -> float:
        while name not in self.starts:
            running = [entry for domain in self.scheduler.state.domains.values() for entry in domain.running]
            now = max(min(running)[0], next_after(self.now))
            self.step(now, *(JobEnded(now, entry[3].id) for entry in running if entry[0] <= now))
        return self.starts[name]


def busy(cluster: Cluster, seed: int) -> Cluster:
    draw = random.Random(seed)
    flat = cluster.scheduler.state.cluster.pools[0].flat
    for number in range(30):
        now = cluster.now + draw.choice([0, 0, 5, 20])
        running = sorted(job.id for job in cluster.scheduler.state.running_jobs())
        ended = [JobEnded(now, draw.choice(running))] if running and draw.random() < 0.3 else []
        size = draw.choice([1, 2, 4, 8, 16, 32] if flat else [1, 2, 4, 8, 16])
        job = described(
            f"{number + 1}", size, draw.choice([30, 100, 101, 250, 600]), now, user=f"u{number % 5}"
        )
        cluster.step(now, *ended, JobSubmitted(now, job))
    return cluster


@pytest.fixture
def snapshots() -> Iterator[Snapshots]:
    made = Snapshots(seconds=HANG)
    yield made
    made.close()


def asked(snapshots: Snapshots, cluster: Cluster, wanted: When, peer: Peer = ANN) -> Reply:
    future: Future[Reply] = Future()
    snapshots.ask(wanted, peer, cluster.scheduler, future)
    return future.result(2 * HANG)


def found(snapshots: Snapshots, cluster: Cluster, wanted: When, peer: Peer = ANN) -> TrialReport:
    reply = asked(snapshots, cluster, wanted, peer)
    assert isinstance(reply.found, TrialReport), reply
    return reply.found


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("machine", ["flat", "nodes"])
def test_what_is_foreseen_is_what_happens(machine: str, policy: str, seed: int, snapshots: Snapshots) -> None:
    cluster = busy(Cluster(FLAT if machine == "flat" else NODES, POLICIES[policy]()), seed)
    draw = random.Random(seed)
    for processors in (1, 8, 16):
        seconds = float(draw.choice([20, 100, 300]))
        wanted = When(processors=processors, seconds=seconds, smaller=False)
        told = found(snapshots, cluster, wanted)
        name = f"{max(map(int, cluster.scheduler.state.jobs)) + 1}"
        cluster.submit(name, processors, seconds, user="ann")
        planned = cluster.starts.get(name)
        if planned is not None:
            assert (told.outcome, told.start, told.placement) == ("now", planned, cluster.places[name])
            continue
        job = cluster.scheduler.state.jobs[name]
        view, queue = cluster.scheduler.views["pool"], job.domain.queue
        assert told.position == queue.index(job) + 1
        assert told.queue_length == len(queue)
        snapshots._retire()
        if told.outcome == "planned":
            # The policy books it: that is what the next cycle plans.
            booking = view.booked(job)
            if booking is not None:
                assert (told.start, told.placement) == (booking.start, booking.placement)
        last = told
    if not cluster.starts.get(name):
        assert last.start is not None
        if policy in ("fcfs", "easy") or machine == "flat":
            assert cluster.run_until_it_starts(name) <= last.start + 0.01 or policy == "easy"


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("policy", [Fcfs, Easy])
def test_a_start_that_is_foreseen_comes_if_all_runs_as_planned(
    policy: Callable[[], Any], seed: int, snapshots: Snapshots
) -> None:
    cluster = busy(Cluster(NODES, policy()), seed)
    told = found(snapshots, cluster, When(processors=16, seconds=100.0, smaller=False))
    cluster.submit("31", 16, 100.0)
    assert told.start == cluster.run_until_it_starts("31")


@pytest.mark.parametrize("seed", range(4))
def test_an_order_and_a_limit_count_as_they_will(seed: int, snapshots: Snapshots) -> None:
    cluster = busy(Cluster(NODES, Easy(), Shortest(), OneEach()), seed)
    peer = Peer("u1")
    told = found(snapshots, cluster, When(processors=2, seconds=50.0, smaller=False), peer)
    cluster.submit("31", 2, 50.0, user="u1")
    if told.start is not None:
        assert told.start == cluster.run_until_it_starts("31")
    else:
        assert "31" not in cluster.starts


def test_a_trial_changes_nothing(snapshots: Snapshots) -> None:
    cluster, other = (busy(Cluster(NODES, Conservative()), 3) for _ in range(2))
    for number in range(6):
        found(snapshots, cluster, When(processors=2, seconds=60.0))
        for one in (cluster, other):
            one.submit(f"k{number}", 4, 80.0 + number)
            one.step(one.now + 15.0)
    assert cluster.starts == other.starts
    assert set(cluster.scheduler.state.jobs) == set(other.scheduler.state.jobs)


def test_smaller_requests_that_start_earlier_are_told(snapshots: Snapshots) -> None:
    cluster = Cluster(NODES, Easy())
    cluster.submit("1", 16, 1000.0)
    cluster.submit("2", 32, 5000.0)
    told = found(snapshots, cluster, When(nodes=4, processors_per_node=4, seconds=2000.0))
    assert (told.outcome, told.start) == ("foreseen", 6000.0)
    assert {(one.nodes, one.limit, one.start) for one in told.smaller} == {
        (4, 1000.0, 0.0), (2, 1000.0, 0.0), (4, 500.0, 0.0),
    }  # fmt: skip


def test_what_can_never_start_is_said(snapshots: Snapshots) -> None:
    cluster = Cluster(NODES, Easy())
    told = found(snapshots, cluster, When(nodes=9, seconds=60.0))
    assert (told.outcome, told.why) == ("never", "it needs 9 nodes, and pool 'pool' has 8")
    told = found(snapshots, cluster, When(nodes=1, seconds=60.0, gres_per_node=(("gpu", 1),)))
    assert told.outcome == "never"
    snapshots._retire()
    short = Cluster(ClusterDescription("c", (PoolDescription("p", 4, max_walltime=3600.0),)), Easy())
    told = found(snapshots, short, When(processors=1, seconds=7200.0))
    assert told.why == "it asks for 7200 s, and pool 'p' runs jobs for 3600 s"


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        (When(pool="nowhere", processors=1, seconds=60.0),
         "expected one of the pools a, b (-p); found 'nowhere'"),
        (When(processors=1, seconds=60.0), "expected one of the pools a, b (-p); found none"),
        (When(pool="a", nodes=2, seconds=60.0),
         "expected a number of processors (-n), because the pool has no nodes; found none"),
        (When(pool="a", processors=2), "expected a time limit (-t); found none"),
    ],
)  # fmt: skip
def test_words_that_name_no_job_are_said(wanted: When, reason: str, snapshots: Snapshots) -> None:
    cluster = Cluster(ClusterDescription("c", (PoolDescription("a", 4), PoolDescription("b", 4))), Easy())
    reply = asked(snapshots, cluster, wanted)
    assert (reply.outcome, reply.reason) == ("unknown", reason)


def test_account_and_qos_are_those_of_the_latest_job(snapshots: Snapshots) -> None:
    cluster = Cluster(FLAT, Easy())
    cluster.submit("1", 1, 10.0, user="ann", account="old", qos="low")
    cluster.submit("2", 1, 10.0, user="ann", account="new")
    cluster.submit("3", 1, 10.0, user="ben", account="other")
    cluster.submit("4", 32, 10.0, user="ben", account="other")
    told = found(snapshots, cluster, When(processors=32, seconds=10.0))
    assert (told.account, told.qos) == ("new", "")
    told = found(snapshots, cluster, When(processors=32, seconds=10.0, account="mine"))
    assert (told.account, told.qos) == ("mine", "")


class Endless:
    """A plugin that takes its time, and catches what it can, for a job of one user."""

    @hookimpl
    def queue_key(self, job: Job, state: State) -> tuple[float] | None:
        while job.user == "ann":
            try:
                time.sleep(0.01)
            except BaseException:
                if os.environ.get("ENDLESS"):
                    continue
                raise
        return None


def test_a_trial_that_takes_too_long_ends_and_the_next_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    snapshots = Snapshots(seconds=0.2)
    cluster = Cluster(FLAT, Easy(), Endless())
    try:
        reply = asked(snapshots, cluster, When(processors=1, seconds=60.0))
        assert reply.outcome == "failed"
        assert reply.reason.startswith("the trial had no answer in time")
        assert found(snapshots, cluster, When(processors=1, seconds=60.0), Peer("ben")).outcome == "now"
    finally:
        snapshots.close()


class Killer:
    """Ends a job that runs: what follows is not known."""

    @hookimpl
    def react(self, state: State) -> list[Decision]:
        return [Kill("1", reason="away")] if state.now > 10 and "1" in state.jobs else []


def test_what_cannot_be_known_ends_what_is_foreseen(snapshots: Snapshots) -> None:
    cluster = Cluster(FLAT, Fcfs(), Killer())
    cluster.submit("1", 16, 1000.0)
    cluster.submit("2", 16, 20.0)
    cluster.submit("3", 32, 20.0)
    told = found(snapshots, cluster, When(processors=1, seconds=60.0, smaller=False))
    assert (told.outcome, told.start, told.not_before) == ("later", None, 20.0)


def test_trials_that_wait_are_bounded(snapshots: Snapshots) -> None:
    cluster = Cluster(FLAT, Easy())
    futures: list[Future[Reply]] = [Future() for _ in range(3 * MOST)]
    for future in futures:
        snapshots.ask(When(processors=1, seconds=60.0), ANN, cluster.scheduler, future)
    replies = [future.result(HANG) for future in futures]
    assert {reply.outcome for reply in replies} == {"accepted", "failed"}
    failed = next(reply for reply in replies if reply.outcome == "failed")
    assert failed.reason == f"{MOST} trials are waiting; try again later"


def test_no_process_is_left_and_none_is_made_in_each_cycle() -> None:
    snapshots = Snapshots()
    cluster = Cluster(FLAT, Easy())
    asked(snapshots, cluster, When(processors=1, seconds=60.0))
    known = snapshots._snapshot
    assert known is not None
    cluster.step(5.0)
    asked(snapshots, cluster, When(processors=1, seconds=60.0))
    assert snapshots._snapshot is known or time.perf_counter() > known.outdated
    snapshots.close()
    until(lambda: not os.path.exists(f"/proc/{known.pid}"), "the process is gone")
