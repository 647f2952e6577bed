"""Jobs that go from one cluster to another: kills, races and silence at every step leave one job one."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
import structlog
from building import described
from hypothesis import given, settings
from hypothesis import strategies as st

from headway import decisions as d
from headway.adapter import Outcome
from headway.model.sites import Intake
from headway_adapters.federation.live_routes import LiveRoutes, Settled, Stays
from headway_adapters.polling.resubmission import (
    COPY,
    LEAVING,
    SEALED,
    Label,
    Mark,
    Parcel,
    Standing,
)
from headway_adapters.polling.words import Unfit

ROUTE = d.Route("north:17", "south:batch", "it is empty there")


class Killed(BaseException):
    """The daemon was killed."""


@dataclass
class Job:
    """A job of a pretended batch system."""

    id: str
    user: str = "ann"
    state: str = "pending"
    ran: bool = False
    cancelled: bool = False
    mark: Mark | None = None
    label: Label | None = None
    came: str = ""

    def start(self) -> None:
        if self.state == "pending":
            self.state, self.ran, self.label = "running", True, None

    def end(self) -> None:
        if self.state == "running":
            self.state = "ended"

    def cancel(self) -> None:
        if self.state != "ended":
            self.state, self.cancelled, self.label = "ended", True, None

    @property
    def counts(self) -> bool:
        """It is a job: it ran, or can be started."""
        return self.ran or (self.state == "pending" and self.mark is None and self.label is None)


@dataclass
class Cluster:
    """A pretended batch system, and what it offers for routes."""

    name: str
    jobs: dict[str, Job] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(99))
    silent: bool = False
    unfit: str = ""
    refuses: str = ""
    restarts: int = 0
    #: What is called around each operation: its name, and whether it is done.
    hook: Callable[[str, bool], None] = lambda what, done: None

    def _around(self, what: str, work: Callable[[], Any]) -> Any:
        self.hook(f"{self.name} {what}", False)
        if self.refuses == what:
            return Outcome(False, "no")
        found = work()
        self.hook(f"{self.name} {what}", True)
        return found

    def standing(self, job_ids: Collection[str]) -> Mapping[str, Standing]:
        return self._around("standing", lambda: {
            job.id: Standing(
                job.id, job.user, job.state, job.ran, job.cancelled, job.mark, job.label, job.came
            )
            for job in self.jobs.values() if job.id in job_ids or job.mark or job.label or job.came
        })  # fmt: skip

    def parcel(self, job_id: str) -> Parcel:
        if self.unfit:
            raise Unfit(self.unfit)
        assert self.jobs[job_id].state == "pending"
        job = described(job_id, 1)
        return Parcel(job, b"#!/bin/sh\n", "headway:movable=yes", restarts=self.restarts)

    def submit(self, parcel: Parcel, pool: str, label: Label, intake: Intake) -> Outcome:
        def work() -> Outcome:
            number = str(next(self.numbers))
            self.jobs[number] = Job(number, label=label)
            return Outcome(True)

        return self._around("submit", work)

    def _change(self, what: str, job_id: str, **fields: Any) -> Outcome:
        def work() -> Outcome:
            job = self.jobs.get(job_id)
            if job is None or job.state == "ended":
                return Outcome(False, "it has ended")
            for name, value in fields.items():
                setattr(job, name, value)
            return Outcome(True)

        return self._around(what, work)

    def mark(self, job_id: str, mark: Mark) -> Outcome:
        return self._change(f"mark {mark.kind}", job_id, mark=mark, label=None)

    def settle(self, job_id: str) -> Outcome:
        mark = self.jobs[job_id].mark
        return self._change("settle", job_id, mark=None, came=mark.name if mark else "")

    def unmark(self, job_id: str) -> Outcome:
        return self._change("unmark", job_id, mark=None)

    def cancel(self, job_id: str) -> Outcome:
        def work() -> Outcome:
            if self.jobs[job_id].state == "pending":
                self.jobs[job_id].cancel()
            return Outcome(True)

        return self._around("cancel", work)


class Member:
    """Its place in the federation: what is asked is done at once, or never."""

    ended = False

    def __init__(self, cluster: Cluster) -> None:
        self.name = cluster.name
        self.joined = True
        self.resubmission: Any = cluster
        self.adapter = SimpleNamespace(capabilities={d.Route}, drives=lambda pool: pool == "batch")

    def run(self, work: Callable[[], Any]) -> Future[Any]:
        answer: Future[Any] = Future()
        if not self.resubmission.silent:
            try:
                answer.set_result(work())
            except Killed:
                raise
            except Exception as error:
                answer.set_exception(error)
        return answer


class World:
    """Two clusters, a job that is to go, and daemons one after the other."""

    def __init__(self) -> None:
        self.north, self.south = Cluster("north"), Cluster("south")
        self.job = self.north.jobs["17"] = Job("17")
        self.made: list[LiveRoutes] = []

    #: What takes along what is kept of a job.
    carry: Any = None

    def daemon(self) -> LiveRoutes:
        members = {one.name: Member(one) for one in (self.north, self.south)}
        routes = LiveRoutes(
            members, {}, poke=lambda: None, log=structlog.testing.CapturingLogger(), clock=lambda: 5.0,
            patience=0.01, carry=self.carry,
        )  # type: ignore[arg-type]  # fmt: skip
        # Rounds are made by the tests.
        routes.look = lambda: None  # type: ignore[method-assign]
        self.made.append(routes)
        return routes

    def ordered(self) -> LiveRoutes:
        routes = self.daemon()
        assert routes.order(ROUTE, ("north", "17"), "south", "batch").accepted
        return routes

    def hook(self, hook: Callable[[str, bool], None]) -> None:
        self.north.hook = self.south.hook = hook

    def finish(self) -> bool:
        """A new daemon makes rounds until nothing is open; whether something stays."""
        self.hook(lambda what, done: None)
        self.north.silent = self.south.silent = False
        routes = self.daemon()
        return any([routes.round() for _ in range(4)][-1:])

    def counting(self) -> list[Job]:
        return [job for one in (self.north, self.south) for job in one.jobs.values() if job.counts]

    def assert_whole(self) -> None:
        """Nothing is on its way."""
        for cluster in (self.north, self.south):
            for job in cluster.jobs.values():
                assert job.state == "ended" or (job.mark is None and job.label is None) or job.ran, job

    @property
    def copy(self) -> Job:
        (copy,) = self.south.jobs.values()
        return copy


# ---------------------------------------------------------------------- it goes well, or is refused


def test_a_job_goes() -> None:
    world = World()
    did: list[str] = []
    world.hook(lambda what, done: did.append(what) if done and "standing" not in what else None)
    routes = world.ordered()
    assert routes.open("north", "17")
    assert not routes.round()
    assert did == [
        "south submit", "south mark copy", "north mark leaving", "south mark sealed", "north cancel",
        "south settle",
    ]  # fmt: skip
    assert world.counting() == [world.copy] and world.copy.came == "north:17"
    assert routes.news() == [Settled("north:17", ("north", "17"), ("south", "99"))]
    assert routes.news() == [] and not routes.open("north", "17")


# ---------------------------------------------------------------------- a job that ran, and what it has saved


class Carrier:
    """Takes along what a job has saved, when a test lets it."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self.future: Future[str] = Future()

    def __call__(self, source: Any, target: Any, user: str, done: Any) -> Future[str]:
        self.asked.append((source, target, user))
        return self.future


def ran_before() -> tuple[World, Carrier]:
    world, carrier = World(), Carrier()
    world.north.restarts, world.carry = 2, carrier
    return world, carrier


def test_what_a_job_has_saved_is_there_before_the_job_may_go() -> None:
    world, carrier = ran_before()
    routes = world.ordered()
    assert routes.round() and routes.round()
    assert carrier.asked == [(("north", "17"), ("south", "99"), "")]
    assert world.job.mark is None and world.copy.mark is not None and world.copy.mark.kind == COPY
    carrier.future.set_result("2 files")
    assert not routes.round()
    assert world.counting() == [world.copy]


def test_a_job_whose_image_cannot_go_stays() -> None:
    world, carrier = ran_before()
    carrier.future.set_exception(OSError("no space left"))
    routes = world.ordered()
    routes.round()
    routes.round()
    assert world.counting() == [world.job]
    (stays,) = routes.news()
    assert isinstance(stays, Stays)
    assert stays.why == "what it has saved was not copied to south: no space left"
    assert world.copy.cancelled


def test_a_daemon_that_is_killed_while_an_image_is_copied_leaves_the_job_where_it_was() -> None:
    world, _ = ran_before()
    world.ordered().round()
    assert not world.finish()
    assert world.counting() == [world.job] and world.copy.cancelled


def test_of_a_job_that_never_ran_nothing_is_copied() -> None:
    world, carrier = ran_before()
    world.north.restarts = 0
    assert not world.ordered().round()
    assert carrier.asked == [] and world.counting() == [world.copy]


def test_the_mark_says_how_often_a_job_had_run() -> None:
    world, carrier = ran_before()
    carrier.future.set_result("")
    marks: list[Mark | None] = []
    leaving = ("north mark leaving", True)
    world.hook(lambda *what: marks.append(world.job.mark) if what == leaving else None)
    world.ordered().round()
    assert marks == [Mark(LEAVING, "south:99", restarts=2)]


def test_a_job_that_came_goes_on_under_its_first_name() -> None:
    world = World()
    world.job.came = "west:3"
    routes = world.daemon()
    routes.order(d.Route("west:3", "south:batch"), ("north", "17"), "south", "batch")
    routes.round()
    assert world.copy.came == "west:3"
    assert routes.news() == [Settled("west:3", ("north", "17"), ("south", "99"))]


@pytest.mark.parametrize("where", ["submit", "mark copy"])
def test_what_the_target_refuses_ends_the_route(where: str) -> None:
    world = World()
    world.south.refuses = where
    routes = world.ordered()
    # A mark is tried some more times.
    assert [routes.round() for _ in range(4)][-1:] == [False]
    (stays,) = routes.news()
    assert isinstance(stays, Stays) and stays.decision == ROUTE and stays.why.endswith(": no")
    assert world.counting() == [world.job] and not routes.open("north", "17")
    world.assert_whole()


def test_a_job_that_is_unfit_stays() -> None:
    world = World()
    world.north.unfit = "job 17: it is an element of an array"
    routes = world.ordered()
    routes.round()
    (stays,) = routes.news()
    assert isinstance(stays, Stays) and stays.why == "submit: job 17: it is an element of an array"
    assert world.south.jobs == {} and world.counting() == [world.job]


def test_an_original_that_cannot_be_marked_stays() -> None:
    world = World()
    world.north.refuses = "mark leaving"
    routes = world.ordered()
    assert [routes.round() for _ in range(4)] == [True, True, True, False]
    (stays,) = routes.news()
    assert isinstance(stays, Stays) and stays.decision == ROUTE
    assert world.counting() == [world.job] and world.copy.cancelled


@pytest.mark.parametrize(
    ("break_it", "why"),
    [
        (lambda member: setattr(member, "joined", False), "has not answered yet"),
        (lambda member: setattr(member, "resubmission", None), "between Slurm clusters only"),
        (lambda member: setattr(member.adapter, "drives", lambda pool: False), "not a pool that headway"),
    ],
)
def test_where_no_job_can_go(break_it: Callable[[Any], None], why: str) -> None:
    routes = World().daemon()
    break_it(routes._members["south"])
    outcome = routes.order(ROUTE, ("north", "17"), "south", "batch")
    assert not outcome.accepted and why in outcome.message


# ---------------------------------------------------------------------- kills

OPERATIONS = (
    "south submit", "south mark copy", "north mark leaving", "south mark sealed", "north cancel",
    "south settle",
)  # fmt: skip
COMMITTED = OPERATIONS[2:]


@pytest.mark.parametrize("done", [False, True])
@pytest.mark.parametrize("where", OPERATIONS)
def test_a_daemon_that_is_killed_leaves_one_job(where: str, done: bool) -> None:
    world = World()

    def kill(what: str, now: bool) -> None:
        if (what, now) == (where, done):
            raise Killed

    world.hook(kill)
    with pytest.raises(Killed):
        world.ordered().round()
    assert sum(job.counts for job in world.south.jobs.values()) == (where == "south settle" and done)
    assert not world.finish()
    world.assert_whole()
    (job,) = world.counting()
    # Behind the mark of the original it goes on; before, the copy goes.
    assert bool(job.came) == (where in COMMITTED[1:] or (where == COMMITTED[0] and done))


@pytest.mark.parametrize("where", OPERATIONS)
def test_a_cluster_that_falls_silent_is_waited_for(where: str) -> None:
    world = World()

    def fall_silent(what: str, done: bool) -> None:
        if what == where and done:
            world.south.silent = True

    world.hook(fall_silent)
    routes = world.ordered()
    if routes.round():
        (odd,) = routes.oddities()
        assert odd.what == "jobs between clusters that do not go on" and "south" in odd.detail
    assert len(world.counting()) <= 1
    world.hook(lambda what, done: None)
    world.south.silent = False
    routes._busy.clear()
    assert not routes.round() and routes.oddities() == []
    assert world.counting() == [world.copy] and world.copy.came


def test_nothing_is_asked_of_a_cluster_while_an_earlier_order_may_still_be_carried_out() -> None:
    world = World()
    routes = world.ordered()
    world.south.silent = True
    assert routes.round()
    world.south.silent = False
    routes.round()
    assert world.south.jobs == {}
    (odd,) = routes.oddities()
    assert odd.detail == "north:17: cluster south has not answered yet"


def test_a_route_that_is_ordered_while_an_earlier_one_is_undone_is_not_forgotten() -> None:
    world = World()
    world.south.jobs["98"] = Job("98", mark=Mark(COPY, "north:17", "north:17", 1))
    routes = world.daemon()

    def at(what: str, done: bool) -> None:
        if what == "south cancel" and done:
            routes.order(ROUTE, ("north", "17"), "south", "batch")

    world.hook(at)
    assert not routes.round()
    (job,) = world.counting()
    assert (job.id, job.came) == ("99", "north:17")
    assert not any(isinstance(one, Stays) and one.decision for one in routes.news())


# ---------------------------------------------------------------------- races

Event = Callable[[World], None]


def _cancel_copies(world: World) -> None:
    for job in world.south.jobs.values():
        job.cancel()


RACES: dict[str, Event] = {
    "the user cancels the original": lambda world: world.job.cancel(),
    "the original starts": lambda world: world.job.start(),
    "the original starts and ends": lambda world: (world.job.start(), world.job.end()),
    "the copy is cancelled": _cancel_copies,
}  # type: ignore[dict-item]


@pytest.mark.parametrize("where", OPERATIONS)
@pytest.mark.parametrize("done", [False, True])
@pytest.mark.parametrize("race", RACES)
def test_what_happens_meanwhile_is_seen(race: str, where: str, done: bool) -> None:
    world = World()
    happened: list[str] = []

    def at(what: str, now: bool) -> None:
        if (what, now) == (where, done) and not happened:
            happened.append(race)
            RACES[race](world)

    world.hook(at)
    world.ordered().round()
    assert happened
    world.finish()
    assert len(world.counting()) <= 1, (world.north.jobs, world.south.jobs)
    world.assert_whole()
    gone = {
        # Once the copy is sealed, nothing tells this cancellation from headway's own.
        "the user cancels the original": where in OPERATIONS[:3],
        # The original may be gone already, or goes at the same moment.
        "the copy is cancelled": where in OPERATIONS[4:],
    }
    if not gone.get(race, False):
        assert len(world.counting()) == 1, (world.north.jobs, world.south.jobs)
    if race == "the user cancels the original" and gone[race]:
        assert world.counting() == []


def test_a_copy_that_an_administrator_starts_is_the_job() -> None:
    world = World()

    def at(what: str, done: bool) -> None:
        if what == "north mark leaving" and done:
            world.copy.start()

    world.hook(at)
    world.ordered().round()
    assert world.job.cancelled and not world.job.ran
    assert world.counting() == [world.copy] and world.copy.came == "north:17"


def test_what_nobody_can_have_ordered_stays_as_it_is_and_is_told() -> None:
    world = World()

    def at(what: str, done: bool) -> None:
        if what == "north cancel" and not done:
            world.job.start()
            world.job.cancel()

    world.hook(at)
    routes = world.ordered()
    assert routes.round()
    (odd,) = routes.oddities()
    assert odd.detail == "south:99: the original was cancelled after it had started, or ended without running"
    assert world.copy.mark is not None and world.copy.mark.kind == SEALED and world.copy.state == "pending"


def test_a_mark_that_an_administrator_takes_away_keeps_the_job_here() -> None:
    world = World()
    world.job.mark = None
    world.south.jobs["99"] = Job("99", mark=Mark(SEALED, "north:17", "north:17", 1))
    assert not world.finish()
    assert world.copy.cancelled and world.counting() == [world.job]


def test_a_cluster_that_is_configured_no_more_is_told() -> None:
    world = World()
    world.south.jobs["99"] = Job("99", mark=Mark(COPY, "west:1", "west:1", 1))
    world.job.mark = Mark(LEAVING, "east:1")
    routes = world.daemon()
    assert routes.round()
    assert {odd.detail for odd in routes.oddities()} == {
        "south:99: cluster west is not in the configuration",
        "north:17: cluster east is not in the configuration",
    }
    assert world.copy.state == world.job.state == "pending"


# ---------------------------------------------------------------------- hostile users


def test_a_forged_label_is_not_believed() -> None:
    world = World()
    world.south.jobs["5"] = Job("5", "eve", label=Label("north:17", "00"))
    world.south.jobs["6"] = Job("6", "ann", label=Label("north:17", "01"))
    world.ordered().round()
    assert world.south.jobs["5"].cancelled and world.south.jobs["6"].cancelled
    (job,) = world.counting()
    assert job.id == "99" and job.came == "north:17"


def test_a_label_that_is_copied_in_time_names_the_first_of_them() -> None:
    world = World()

    def at(what: str, done: bool) -> None:
        if what == "south submit" and done:
            label = world.south.jobs["99"].label
            world.south.jobs["100"] = Job("100", "ann", label=label)
            world.south.jobs["101"] = Job("101", "eve", label=label)

    world.hook(at)
    world.ordered().round()
    (job,) = world.counting()
    assert job.id == "99" and job.came == "north:17"


def test_a_label_of_another_users_job_stops_nothing() -> None:
    world = World()
    world.south.jobs["5"] = Job("5", "eve", label=Label("north:17", "00"))
    world.south.refuses = "cancel"
    routes = world.ordered()
    routes.round()
    assert world.south.jobs["99"].came == "north:17"


def test_a_label_makes_headway_ask_about_nothing() -> None:
    world = World()
    world.south.jobs["5"] = Job("5", "eve", label=Label("north:4711", "00"))
    asked: list[Collection[str]] = []
    original = world.north.standing
    world.north.standing = lambda ids: (asked.append(set(ids)), original(ids))[1]  # type: ignore[method-assign]
    world.daemon().round()
    assert not any("4711" in ids for ids in asked)


# ---------------------------------------------------------------------- whatever happens


@st.composite
def disturbances(draw: st.DrawFn) -> list[tuple[int, str]]:
    what = st.sampled_from(["kill", "silence", "speak", *RACES])
    return draw(st.lists(st.tuples(st.integers(0, 40), what), max_size=4))


@settings(max_examples=300, deadline=None)
@given(disturbances())
def test_a_job_never_counts_twice_and_is_never_lost(plan: list[tuple[int, str]]) -> None:
    world = World()
    count = itertools.count()
    done: list[str] = []

    def at(what: str, now: bool) -> None:
        number = next(count)
        for when, event in plan:
            if when != number:
                continue
            done.append(event)
            if event == "kill":
                raise Killed
            if event in ("silence", "speak"):
                world.south.silent = event == "silence"
            else:
                RACES[event](world)
        assert len(world.counting()) <= 1

    world.hook(at)
    for start in (world.ordered, world.daemon, world.daemon):
        try:
            routes = start()
            for _ in range(3):
                routes.round()
                routes._busy.clear()
        except Killed:
            continue
    world.finish()
    assert len(world.counting()) <= 1, (plan, world.north.jobs, world.south.jobs)
    if not {"the user cancels the original", "the copy is cancelled"} & set(done):
        assert len(world.counting()) == 1, (plan, world.north.jobs, world.south.jobs)
        world.assert_whole()
