"""Two snapshots and the events between them."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway import events as ev
from headway.model import JobDescription, NodeDescription, PoolDescription, Request, Reservation
from headway_adapters.polling.differ import diff
from headway_adapters.polling.snapshot import Snapshot, SnapshotJob

JOB = JobDescription(id="1", submit_time=50.0, request=Request(processors=2, walltime=600.0), pool="batch")
ON_A = (("a", 2),)


def pending(**fields: Any) -> SnapshotJob:
    return SnapshotJob(**{"job": JOB, "state": "pending", **fields})


def running(start: float = 110.0, **fields: Any) -> SnapshotJob:
    return SnapshotJob(**{"job": JOB, "state": "running", "placement": ON_A, "start_time": start, **fields})


def ended(end: float = 115.0, **fields: Any) -> SnapshotJob:
    given = {"placement": ON_A, "start_time": 110.0, "outcome": "completed", "exit_code": 0, **fields}
    return SnapshotJob(job=JOB, state="ended", end_time=end, **given)


def at(time: float, job: SnapshotJob | None = None, **fields: Any) -> Snapshot:
    return Snapshot(time=time, jobs={} if job is None else {job.job.id: job}, **fields)


def changed(job: SnapshotJob, **fields: Any) -> SnapshotJob:
    return msgspec.structs.replace(job, job=msgspec.structs.replace(job.job, **fields))


LEAVES = ev.JobLeaving(time=120.0, job_id="1")
LEAVING = SnapshotJob(job=JOB, state="running", placement=ON_A, restarts=1, leaving=True)
TELLS = {"notes": {"took": "SHA-512:1:0.5"}}
TOLD = msgspec.structs.replace(JOB, attributes=TELLS)
SAID = ev.JobChanged(time=math.nextafter(115.0, 0.0), job=TOLD)
SUBMITTED = ev.JobSubmitted(time=50.0, job=JOB)
STARTED = ev.JobStarted(time=110.0, job_id="1", placement=ON_A)
COMPLETED = ev.JobEnded(time=115.0, job_id="1", outcome="completed", exit_code=0)


@pytest.mark.parametrize(
    ("old", "new", "events"),
    [
        (None, pending(), [SUBMITTED]),
        (None, running(), [SUBMITTED, STARTED]),
        (None, ended(), [SUBMITTED, STARTED, COMPLETED]),
        # For so long it stood still before anybody looked.
        (None, running(paused=3.0),
         [SUBMITTED, STARTED, ev.JobSuspended(110.0, "1"), ev.JobResumed(113.0, "1")]),
        (None, running(paused=3.0, state="suspended", suspended_since=118.0),
         [SUBMITTED, STARTED, ev.JobSuspended(110.0, "1"), ev.JobResumed(113.0, "1"),
          ev.JobSuspended(118.0, "1")]),
        (None, ended(paused=3.0), [SUBMITTED, STARTED, COMPLETED]),
        # It is over, and its nodes are not free of it.
        (None, running(leaving=True), [SUBMITTED, STARTED, LEAVES]),
        (running(), running(leaving=True), [LEAVES]),
        (pending(), running(leaving=True), [STARTED, LEAVES]),
        (running(leaving=True), ended(), [COMPLETED]),
        (pending(), pending(), []),
        (pending(), running(), [STARTED]),
        (pending(), running(state="starting"), [STARTED]),
        (running(state="starting"), running(112.0), []),
        (pending(), ended(), [STARTED, COMPLETED]),
        (pending(), ended(placement=(), start_time=None, outcome="cancelled", exit_code=None),
         [ev.JobEnded(time=115.0, job_id="1", outcome="cancelled")]),
        (running(), ended(), [COMPLETED]),
        # What a job said is told before its end, and also if it said it before it was first seen to run.
        (running(), changed(ended(), attributes=TELLS), [SAID, COMPLETED]),
        (pending(), changed(ended(), attributes=TELLS),
         [STARTED, SAID, COMPLETED]),
        (pending(), changed(running(), attributes=TELLS), [STARTED, ev.JobChanged(time=120.0, job=TOLD)]),
        (changed(running(), attributes=TELLS), changed(ended(), attributes=TELLS), [COMPLETED]),
        (ended(), ended(), []),
        (running(), pending(reason="Requeued"), [ev.JobRequeued(time=120.0, job_id="1", reason="Requeued")]),
        # Its nodes come free of it one by one, and what it asked for is as it was.
        (running(placement=(*ON_A, ("b", 4))),
         changed(running(leaving=True), request=Request(processors=4, walltime=600.0, nodes=1)),
         [ev.JobMigrated(time=120.0, job_id="1", placement=ON_A), LEAVES]),
        # Sent back, it is where it was until its nodes are free of it.
        (running(), LEAVING, [LEAVES]), (LEAVING, LEAVING, []), (LEAVING, ended(restarts=1), [COMPLETED]),
        (LEAVING, pending(restarts=1), [ev.JobRequeued(time=120.0, job_id="1")]),
        (LEAVING, running(restarts=1), [ev.JobRequeued(time=110.0, job_id="1"), STARTED]),
        (running(90.0), running(), [ev.JobRequeued(time=110.0, job_id="1"), STARTED]),
        (running(90.0), ended(restarts=1), [ev.JobRequeued(time=110.0, job_id="1"), STARTED, COMPLETED]),
        (running(), running(state="suspended"), [ev.JobSuspended(time=120.0, job_id="1")]),
        (running(), running(state="suspended", suspended_since=115.0),
         [ev.JobSuspended(time=115.0, job_id="1")]),
        (
            running(state="suspended", suspended_since=105.0),
            running(state="suspended", suspended_since=115.0),
            [ev.JobResumed(time=115.0, job_id="1"), ev.JobSuspended(time=115.0, job_id="1")],
        ),
        (running(state="suspended"), running(), [ev.JobResumed(time=120.0, job_id="1")]),
        (running(), running(placement=(("b", 2),)),
         [ev.JobMigrated(time=120.0, job_id="1", placement=(("b", 2),))]),
        (pending(), changed(pending(reason="by Ann"), held=True),
         [ev.JobHeld(time=120.0, job_id="1", reason="by Ann")]),
        (changed(pending(), held=True), pending(), [ev.JobReleased(time=120.0, job_id="1")]),
        (pending(), changed(pending(), priority=5.0),
         [ev.JobChanged(time=120.0, job=msgspec.structs.replace(JOB, priority=5.0))]),
        (changed(pending(), begin_time=111.0), pending(), []),
        (pending(), changed(pending(), submit_time=118.0), []),
        (pending(), changed(running(), request=Request(processors=2, walltime=600.0, nodes=1)), [STARTED]),
    ],
)  # fmt: skip
def test_a_jobs_course(old: SnapshotJob | None, new: SnapshotJob, events: list[ev.Event]) -> None:
    assert list(diff(at(100.0, old), at(120.0, new))) == events


def test_at_first_every_job_is_told() -> None:
    assert list(diff(None, at(120.0, running()))) == [SUBMITTED, STARTED]


#: What batch systems call their jobs, in the order of their numbers.
NAMES = {
    "slurm": ["9", "12_3", "12_10", "13", "14+0", "14+1", "100_1"],
    "pbs": ["9.server", "12[3].server", "12[10].server", "13.server", "100[1].server"],
    "lsf": ["9", "12[3]", "12[10]", "13", "100[1]"],
    "federation": ["a:9", "a:12_3", "a:12_10", "b:12_3", "b:100_1"],
}


@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES)
@pytest.mark.parametrize("seed", range(5))
def test_what_happens_at_one_moment_is_told_in_the_order_of_numbers(names: list[str], seed: int) -> None:
    """However the jobs are listed: at a first look, such as after a restart, and between two looks."""

    def named(job: SnapshotJob) -> dict[str, SnapshotJob]:
        return {name: changed(job, id=name) for name in names}

    def shuffled(jobs: Mapping[str, SnapshotJob]) -> dict[str, SnapshotJob]:
        return dict(random.Random(seed).sample(list(jobs.items()), len(jobs)))

    course = [
        Snapshot(time, named(job)) for time, job in ((100.0, pending()), (112.0, running()), (120.0, ended()))
    ]
    course.append(Snapshot(130.0))
    looks: list[tuple[Snapshot | None, Snapshot]] = [(None, one) for one in course]
    looks += [(before, after) for at, before in enumerate(course) for after in course[at + 1 :]]
    for before, after in looks:
        told = diff(
            None if before is None else replace(before, jobs=shuffled(before.jobs)),
            replace(after, jobs=shuffled(after.jobs)),
        )
        assert list(told) == list(diff(before, after))
        for kind in (ev.JobSubmitted, ev.JobStarted, ev.JobEnded):
            of_kind = [_id(event) for event in told if type(event) is kind]
            assert of_kind in ([], names)


def _id(event: Any) -> str:
    return str(event.job.id if isinstance(event, ev.JobSubmitted) else event.job_id)


def test_at_first_the_nodes_that_are_not_on_are_told() -> None:
    nodes = {"a": A, "b": msgspec.structs.replace(A, name="b")}
    seen = at(120.0, nodes=nodes, power={"a": "on", "b": "asleep"})
    assert list(diff(None, seen)) == [ev.NodePowerChanged(time=120.0, node="b", power="asleep")]


def test_a_start_on_its_way_is_told_when_it_is_first_seen() -> None:
    job = pending(pinned=ON_A, releasing=True)
    assert list(diff(None, at(120.0, job))) == [
        SUBMITTED, ev.JobReleasing(time=120.0, job_id="1", placement=ON_A),
    ]  # fmt: skip


@pytest.mark.parametrize("job", [pending(), running()])
def test_a_job_that_is_gone_without_a_word_has_vanished(job: SnapshotJob) -> None:
    (event,) = diff(at(100.0, job), at(120.0))
    assert isinstance(event, ev.JobEnded) and (event.outcome, event.time) == ("vanished", 120.0)


def test_an_ended_job_may_be_forgotten() -> None:
    assert list(diff(at(100.0, ended()), at(120.0))) == []


def test_a_longer_limit_of_a_job_that_just_started_is_a_change() -> None:
    longer = Request(processors=4, walltime=900.0, nodes=1)
    events = diff(at(100.0, pending()), at(120.0, changed(running(), request=longer)))
    (change,) = [event for event in events if isinstance(event, ev.JobChanged)]
    assert (change.job.request.processors, change.job.request.walltime) == (2, 900.0)


def test_times_never_lie_ahead_of_the_snapshot() -> None:
    assert [e.time for e in diff(None, at(105.0, ended()))] == [50.0, 105.0, 105.0]


A = NodeDescription(name="a", processors=4, pools=("batch",))
DRAINED = msgspec.structs.replace(A, available=False, reason="drained: fan")
BIGGER = msgspec.structs.replace(A, processors=8)


@pytest.mark.parametrize(
    ("old", "new", "events"),
    [
        ({}, {"a": A}, [ev.NodeUp(time=120.0, node=A)]),
        ({"a": A}, {"a": A}, []),
        ({"a": A}, {"a": DRAINED}, [ev.NodeDown(time=120.0, node="a", reason="drained: fan")]),
        ({"a": DRAINED}, {"a": A}, [ev.NodeUp(time=120.0, node=A)]),
        ({"a": DRAINED}, {"a": msgspec.structs.replace(DRAINED, reason="down")}, []),
        ({"a": A}, {"a": BIGGER}, [ev.NodeUp(time=120.0, node=BIGGER)]),
        ({"a": A}, {}, [ev.NodeDown(time=120.0, node="a", reason="no longer listed")]),
    ],
)
def test_nodes(old: Any, new: Any, events: list[ev.Event]) -> None:
    assert list(diff(at(100.0, nodes=old), at(120.0, nodes=new))) == events


def test_power() -> None:
    asleep = at(100.0, nodes={"a": A}, power={"a": "asleep"})
    awake = at(120.0, nodes={"a": A})
    assert list(diff(asleep, awake)) == [ev.NodePowerChanged(time=120.0, node="a", power="on")]
    (event,) = diff(awake, at(130.0, nodes={"a": A}, power={"a": "waking"}))
    assert event == ev.NodePowerChanged(time=130.0, node="a", power="waking")


LATER = Reservation(id="r", start=110.0, end=115.0, nodes=("a",))


@pytest.mark.parametrize(
    ("old", "new", "kinds"),
    [
        ({}, {"r": LATER}, [ev.ReservationMade, ev.ReservationStarted]),
        ({"r": LATER}, {"r": LATER}, [ev.ReservationStarted]),
        ({"r": LATER}, {}, [ev.ReservationEnded]),
        ({"r": LATER}, {"r": msgspec.structs.replace(LATER, start=130.0, end=140.0)}, [ev.ReservationMade]),
    ],
)
def test_reservations(old: Any, new: Any, kinds: list[type[ev.Event]]) -> None:
    events = diff(at(100.0, reservations=old), at(120.0, reservations=new))
    assert [type(event) for event in events] == kinds


STATES = st.sampled_from([None, pending(), running(), running(90.0), running(state="suspended"), ended()])


@given(st.lists(STATES, min_size=1, max_size=12))
def test_whatever_is_seen_the_story_is_consistent(course: list[SnapshotJob | None]) -> None:
    """No job starts twice without a requeue, ends twice, or does anything before it was submitted."""
    old: Snapshot | None = None
    known = on_nodes = False
    for step, job in enumerate(course):
        new = at(120.0 + step, job)
        for event in diff(old, new):
            assert event.time <= new.time
            if isinstance(event, ev.JobSubmitted):
                assert not known
                known = True
                continue
            assert known
            if isinstance(event, ev.JobStarted):
                assert not on_nodes
                on_nodes = True
            elif isinstance(event, ev.JobRequeued):
                assert on_nodes
                on_nodes = False
            elif isinstance(event, ev.JobEnded):
                known = on_nodes = False
        old = new


OPEN, CLOSED = PoolDescription("late"), PoolDescription("late", open=False)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ({}, {"late": OPEN}, [OPEN]),
        ({"late": OPEN}, {"late": OPEN}, []),
        ({"late": OPEN}, {"late": CLOSED}, [CLOSED]),
        # One that is gone starts nothing any more, and may come back.
        ({"late": OPEN}, {}, [CLOSED]),
        ({"late": CLOSED}, {}, []),
    ],
)
def test_pools_that_come_change_and_go(
    old: dict[str, PoolDescription], new: dict[str, PoolDescription], told: list[PoolDescription]
) -> None:
    assert list(diff(at(100.0, pools=old), at(120.0, pools=new))) == [ev.PoolChanged(120.0, p) for p in told]


def test_a_pool_comes_before_the_jobs_that_were_in_it_before_it_was_seen() -> None:
    new = at(120.0, changed(running(), pool="late"), pools={"late": OPEN})
    assert isinstance(diff(at(100.0), new)[0], ev.PoolChanged)
