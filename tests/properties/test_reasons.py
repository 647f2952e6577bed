"""Why jobs wait, in random histories: the table, the state and ``explain`` never say different things."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from building import described, plugged
from hypothesis import event, given, settings
from hypothesis import strategies as st

from headway import events as ev
from headway.decisions import Route, Start
from headway.hookspecs import hookimpl
from headway.inquiry import explain, why_not_started
from headway.model import (
    ClusterDescription,
    Dependency,
    JobDescription,
    NodeDescription,
    PoolBounds,
    PoolDescription,
    Reservation,
)
from headway.model.reservations import FOR_JOB
from headway.scheduler import Scheduler
from headway.scheduler.gate import take_effect
from headway.state import Barrier, Job, State, Status
from headway.state.choices import domains_of
from headway.state.reasons import REASONS, find_out, is_plain, reason_of
from headway.state.records import ON_NODES
from headway_plugins.placement.first_fit import FirstFit
from headway_plugins.policies.easy import Easy

#: b gives no job more than this.
LONGEST = 60.0
FLAT = ClusterDescription(
    "flat",
    (PoolDescription("a", 4), PoolDescription("b", 6, bounds=PoolBounds(max_walltime=LONGEST))),
    licences=(("l", 1),),
)
NODES = ClusterDescription(
    "nodes",
    (PoolDescription("a"), PoolDescription("b", bounds=PoolBounds(max_walltime=LONGEST))),
    tuple(NodeDescription(f"n{at}", 2, pools=pools) for at, pools in enumerate([("a",), ("a", "b"), ("b",)])),
    licences=(("l", 1),),
)
#: Its waiting jobs are in a domain for each pool, or in one for both.
CLUSTERS = [FLAT, NODES]

SHAPES = st.fixed_dictionaries(
    {
        "processors": st.integers(1, 7),
        "estimate": st.sampled_from([10.0, 20.0, 50.0, 90.0]),
        "pools": st.sampled_from([("a",), ("a",), ("b",), ("a", "b"), ("b", "a")]),
        "user": st.sampled_from("uuubbr"),
        "name": st.sampled_from("xy"),
        "held": st.sampled_from([False, False, False, True]),
        "begins_in": st.sampled_from([None, None, 3.0, 7.0]),
        "reservation": st.sampled_from(["", "", "", "res", f"{FOR_JOB}0"]),
        "dependency": st.none()
        | st.builds(
            Dependency,
            st.sampled_from(["ended", "completed", "failed", "started"]),
            st.integers(0, 9).map(str),
            st.sampled_from([0.0, 2.0]),
        )
        | st.just(Dependency("singleton", "")),
        "licences": st.sampled_from([(), (), (("l", 1),), (("l", 2),)]),
    }
)
#: What most jobs are like: they fill the pools, and depend on one another.
PLAIN = st.builds(
    lambda **more: {**_PLAIN, **more},
    processors=st.integers(1, 4),
    pools=st.sampled_from([("a",), ("b",), ("a", "b")]),
    user=st.sampled_from("uub"),
    dependency=st.none() | st.builds(Dependency, st.just("ended"), st.integers(0, 5).map(str)),
)
_PLAIN = {"estimate": 50.0, "name": "x", "held": False, "begins_in": None, "reservation": "", "licences": ()}
WHICH = st.integers(0, 30)
STEPS = (
    st.tuples(st.just("submit"), SHAPES)
    | st.tuples(st.just("submit"), PLAIN)
    | st.tuples(st.just("submit"), PLAIN)
    | st.tuples(st.just("change"), WHICH, SHAPES)
    | st.tuples(st.sampled_from(["end", "requeue", "hold", "release", "set aside", "started"]), WHICH)
    | st.tuples(st.sampled_from(["route", "arrive", "stay"]), WHICH, st.sampled_from("ab"))
    | st.tuples(st.just("pool"), st.sampled_from("ab"), st.booleans(), st.integers(1, 7))
    | st.tuples(st.just("node"), st.integers(0, 2), st.booleans())
    | st.tuples(st.just("licences"), st.integers(0, 2))
    | st.tuples(st.just("reserve"), st.sampled_from(["res", f"{FOR_JOB}0"]), st.integers(0, 9), WHICH)
    | st.tuples(st.just("unreserve"), st.sampled_from(["res", f"{FOR_JOB}0"]))
    | st.tuples(st.just("bar"), st.booleans())
    | st.tuples(st.just("wait"), st.integers(1, 5))
)
HISTORIES = st.lists(st.tuples(st.integers(0, 2), STEPS, st.booleans()), min_size=10, max_size=30)


class Door:
    """Refuses the jobs of user r in pool a, and bars those of user b while it is shut."""

    def __init__(self) -> None:
        self.shut = True

    @hookimpl
    def admit_job(self, job: Job, state: State) -> str | None:
        return "no job of r comes in" if job.user == "r" and job.pool.name == "a" else None

    @hookimpl
    def bar_job(self, job: Job, state: State) -> Barrier | None:
        return Barrier("the door is shut", "door") if self.shut and job.user == "b" else None

    @hookimpl
    def react(self, state: State) -> None:
        if not self.shut:
            state.lifted("door")
        for domain in state.domains.values():
            state.bar_queued(domain)


def pools_named(job: Job) -> set[str]:
    return {job.pool.name, *job.description.pools}


class World:
    """A scheduler, and what happens to it."""

    def __init__(self, cluster: ClusterDescription) -> None:
        self.cluster, self.door, self.now = cluster, Door(), 0.0
        self.scheduler = Scheduler(cluster, plugged(self.door, Easy(), FirstFit()))
        self.submitted = 0

    def happens(self, later: int, step: tuple[Any, ...], starts: bool) -> None:
        self.now += later
        if step[0] == "wait":
            self.now += step[1]
        made = self.scheduler.step(self.now, self._events(step))
        self.check()
        answers: list[ev.Event] = [
            ev.JobStarted(self.now, each.job_id, each.placement, pool=each.pool)
            if starts
            else ev.DecisionFailed(self.now, each, "no")
            for each in made
            if isinstance(each, Start)
        ]
        if answers:
            self.scheduler.step(self.now, answers)
            self.check()

    def _events(self, step: tuple[Any, ...]) -> list[ev.Event]:
        now, what = self.now, step[0]
        if what == "submit":
            self.submitted += 1
            return [ev.JobSubmitted(now, self._job(str(self.submitted - 1), step[1], now))]
        if what == "pool":
            _, name, is_open, processors = step
            size = processors if self.cluster is FLAT else 0
            bounds = next(pool.bounds for pool in self.cluster.pools if pool.name == name)
            return [ev.PoolChanged(now, PoolDescription(name, size, open=is_open, bounds=bounds))]
        if what == "node":
            if self.cluster is FLAT:
                return []
            node = self.cluster.nodes[step[1]]
            return [ev.NodeUp(now, node) if step[2] else ev.NodeDown(now, node.name)]
        if what == "licences":
            return [ev.LicencesChanged(now, "l", step[1])]
        if what == "reserve":
            _, name, later, which = step
            of = {"processors": 1 + which % 4} if self.cluster is FLAT else {"nodes": (f"n{which % 3}",)}
            ours = name.startswith(FOR_JOB)
            kept = Reservation(name, now + later, now + later + 20, "ab"[which % 2], ours=ours, **of)
            return [ev.ReservationMade(now, kept)]
        if what == "unreserve":
            return [ev.ReservationEnded(now, step[1])] if step[1] in self.scheduler.state.reservations else []
        if what == "bar":
            self.door.shut = step[1]
        return self._of_a_job(step) if what not in ("bar", "wait") and self.scheduler.state.jobs else []

    def _job(self, name: str, shape: dict[str, Any], submit: float) -> JobDescription:
        pools, begin, dependency = shape["pools"], shape["begins_in"], shape["dependency"]
        if dependency is not None and dependency.job_id and int(dependency.job_id) >= self.submitted - 1:
            # A batch system knows no job that comes later.
            dependency = None
        return described(
            name,
            shape["processors"],
            shape["estimate"],
            submit,
            pool=pools[0],
            further_pools=pools[1:],
            user=shape["user"],
            name=shape["name"],
            held=shape["held"],
            begin_time=None if begin is None else self.now + begin,
            reservation=shape["reservation"],
            dependencies=() if dependency is None else (dependency,),
            licences=shape["licences"],
        )

    def _of_a_job(self, step: tuple[Any, ...]) -> list[ev.Event]:
        now, state, what = self.now, self.scheduler.state, step[0]
        jobs = list(state.jobs.values())
        job = jobs[step[1] % len(jobs)]
        runs = job.status in ON_NODES
        if what == "end":
            return [ev.JobEnded(now, job.id)]
        if what == "requeue" and runs:
            return [ev.JobRequeued(now, job.id)]
        if runs:
            return []
        if what == "change":
            return [ev.JobChanged(now, self._job(job.id, step[2], job.submit_time))]
        if what == "hold":
            return [ev.JobHeld(now, job.id, "for a while")]
        if what == "release":
            return [ev.JobReleased(now, job.id)]
        if what == "route" and not job.bound_for and step[2] not in pools_named(job):
            take_effect(state, Route(job.id, step[2]))
        if what == "arrive":
            return [ev.JobRouted(now, job.id, step[2])]
        if what == "stay":
            return [ev.DecisionFailed(now, Route(job.id, step[2]), "no")]
        if what == "set aside":
            state.set_aside(job, now + 4.0, "it is set aside")
        return []

    def check(self) -> None:
        """The table says where each job is, and so does everything that asks the table."""
        scheduler, state = self.scheduler, self.scheduler.state
        assert scheduler.problems == []
        for job in state.jobs.values():
            if job.status in ON_NODES:
                continue
            reason = reason_of(state, job)
            event(reason.name if reason is not None else "in the queue")
            # Where it is.
            assert job.status is (Status.PENDING if reason is None else Status.WAITING)
            queued = [domain for domain in state.domains.values() if job in domain.queue]
            assert bool(queued) == (reason is None) and set(queued) <= set(domains_of(job))
            # What is told.
            why = state.why_waiting(job)
            told = explain(scheduler, job.id, "{:.0f}".format)
            if reason is None:
                assert why == "" and any(f"of {len(queued[0].queue)} in the queue" in line for line in told)
            else:
                assert why and told[-1] == why_not_started(scheduler, job, "{:.0f}".format)
                assert told[-1] == f"It cannot start: {why}."
            # The fast path.
            if is_plain(job, state.now):
                assert reason is None or reason.name == "barrier"
            # What wakes it.
            self._is_noted(job, reason.name if reason is not None else "")
            # What a fresh look finds; a dependency that was met stays so.
            if not job.choices:
                before = job.obstacle, job.barrier
                assert find_out(state, job) is reason
                job.obstacle, job.barrier = before

    def _is_noted(self, job: Job, name: str) -> None:
        state = self.scheduler.state
        barred = list(state.barred.get("door", ()))
        several = bool(job.choices) and any(choice.barrier is not None for choice in job.choices)
        assert (job in barred) == (job.barrier is not None or several)
        if name in ("begin time", "failed start or set aside", "reservation"):
            assert any(what is job and time > state.now for time, _, what in state.wakeups)
        if name == "dependency":
            (dependency,) = job.description.dependencies
            key = "" if dependency.kind == "singleton" else dependency.job_id
            assert job in state.dependants.get(key, ())


@pytest.mark.parametrize("cluster", CLUSTERS, ids=lambda cluster: cluster.name)
@given(history=HISTORIES)
@settings(max_examples=90, deadline=None)
def test_the_table_says_where_each_job_is(cluster, history):
    world = World(cluster)
    for later, step, starts in history:
        world.happens(later, step, starts)


def test_the_page_lists_the_reasons_in_their_order():
    page = (Path(__file__).parents[2] / "docs" / "architecture" / "state.md").read_text(encoding="utf-8")
    rows = "".join(f"| {reason.name} | {reason.wakes} |\n" for reason in REASONS)
    assert f"|---|---|\n{rows}\n" in page
