"""What is told of jobs that go to another cluster: one job, under one name, all the time."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from test_federation import Pretended, drain
from test_live_routes import World
from waiting import until

from headway import decisions as d
from headway import events as ev
from headway.model import JobDescription, Request, Reservation
from headway_adapters.federation import Federation
from headway_adapters.federation.live_routes import Settled
from headway_adapters.federation.names import Elsewhere, Names
from headway_adapters.federation.passage import Passage

NORTH = JobDescription("17", 5.0, Request(1, 60.0), pool="batch", user="ann")
SOUTH = msgspec.structs.replace(NORTH, id="99", submit_time=8.0)
SETTLED = Settled("north:17", ("north", "17"), ("south", "99"))


class Told:
    """A passage, and what came through it."""

    def __init__(self) -> None:
        self.names = Names()
        self.open: set[tuple[str, str]] = set()
        self.noticed = 0
        self.passage = Passage(
            self.names, trusted=lambda name: name != "lsf", is_open=lambda *place: place in self.open,
            noticed=self.notice,
        )  # fmt: skip

    def notice(self) -> None:
        self.noticed += 1

    def north(self, *events: ev.Event) -> list[ev.Event]:
        return self.passage.through("north", events)

    def south(self, *events: ev.Event) -> list[ev.Event]:
        return self.passage.through("south", events)


def marked(job: JobDescription, **attributes: Any) -> JobDescription:
    return msgspec.structs.replace(job, attributes=attributes)


COPY = marked(SOUTH, copy_of="north:17")
CAME = marked(msgspec.structs.replace(SOUTH, submit_time=5.0), came_from="north:17")
LEAVES = marked(msgspec.structs.replace(NORTH, held=True), goes_to="south:99")
ENDED = ev.JobEnded(20.0, "17", "cancelled")


def kinds(events: list[ev.Event]) -> list[tuple[str, str]]:
    return [(type(e).__name__, e.job.id if hasattr(e, "job") else e.job_id) for e in events]  # type: ignore[attr-defined]


def test_a_route_as_it_goes_well() -> None:
    told = Told()
    assert kinds(told.north(ev.JobSubmitted(5.0, NORTH))) == [("JobSubmitted", "north:17")]
    told.open.add(("north", "17"))
    assert told.south(ev.JobSubmitted(8.0, COPY)) == []
    assert kinds(told.north(ev.JobHeld(9.0, "17", "it goes"), ev.JobChanged(9.0, LEAVES))) == [
        ("JobHeld", "north:17"), ("JobChanged", "north:17"),
    ]  # fmt: skip
    # Its end waits for the word whether the copy is the job.
    assert told.north(ENDED) == []
    told.open.clear()
    told.passage.settled(SETTLED)
    routed, changed = told.south(ev.JobReleased(21.0, "99"), ev.JobChanged(21.0, CAME))
    assert routed == ev.JobRouted(21.0, "north:17", "south:batch")
    assert isinstance(changed, ev.JobChanged) and changed.job.id == "north:17"
    assert changed.job.pool == "south:batch" and changed.job.submit_time == 5.0
    assert told.passage.stays(("north", "17")) == [] and told.north(ENDED) == []
    assert kinds(told.south(ev.JobStarted(30.0, "99"), ev.JobEnded(40.0, "99", "completed"))) == [
        ("JobStarted", "north:17"), ("JobEnded", "north:17"),
    ]  # fmt: skip
    # And decisions find it.
    assert told.names.cluster_of_job("north:17") == "south"
    assert told.names.inward("south").renamed(d.Kill("north:17")) == d.Kill("99")
    with pytest.raises(Elsewhere):
        told.names.inward("north").renamed(d.Kill("north:17"))


def test_a_route_that_comes_to_nothing_gives_the_end_back() -> None:
    told = Told()
    told.north(ev.JobSubmitted(5.0, NORTH))
    told.open.add(("north", "17"))
    told.south(ev.JobSubmitted(8.0, COPY))
    assert told.north(ENDED) == [] and told.noticed
    told.open.clear()
    assert kinds(list(told.passage.stays(("north", "17")))) == [("JobEnded", "north:17")]
    assert told.south(ev.JobEnded(22.0, "99", "cancelled")) == []
    assert told.names.job_place("north:17") == ("north", "17")


@pytest.mark.parametrize("first", ["north", "south"])
def test_after_a_restart_a_settled_job_is_one_job(first: str) -> None:
    told = Told()
    original = [ev.JobSubmitted(5.0, LEAVES), ENDED]
    settled = [ev.JobSubmitted(5.0, CAME), ev.JobStarted(30.0, "99")]
    if first == "north":
        assert kinds(told.north(*original)) == [("JobSubmitted", "north:17")]
        assert kinds(told.south(*settled)) == [
            ("JobRouted", "north:17"), ("JobChanged", "north:17"), ("JobStarted", "north:17"),
        ]  # fmt: skip
    else:
        assert kinds(told.south(*settled)) == [("JobSubmitted", "north:17"), ("JobStarted", "north:17")]
        assert told.north(*original) == []
    assert told.passage.stays(("north", "17")) == []


def test_after_a_restart_a_copy_without_its_original_is_told_once_it_is_the_job() -> None:
    told = Told()
    assert told.south(ev.JobSubmitted(8.0, COPY)) == [] and told.noticed
    told.passage.settled(SETTLED)
    (submitted,) = told.south(ev.JobChanged(21.0, CAME))
    assert isinstance(submitted, ev.JobSubmitted)
    assert submitted.job.id == "north:17" and submitted.time == 5.0


def test_a_copy_that_ends_before_a_look_shows_that_it_is_the_job() -> None:
    told = Told()
    told.north(ev.JobSubmitted(5.0, NORTH))
    told.south(ev.JobSubmitted(8.0, COPY))
    told.passage.settled(SETTLED)
    assert kinds(told.south(ev.JobEnded(22.0, "99", "cancelled"))) == [("JobEnded", "north:17")]


def test_a_job_that_its_user_took_out_of_hiding_is_a_job_of_its_own() -> None:
    told = Told()
    told.north(ev.JobSubmitted(5.0, NORTH))
    assert told.south(ev.JobSubmitted(8.0, COPY)) == []
    assert kinds(told.south(ev.JobReleased(9.0, "99"), ev.JobChanged(9.0, SOUTH))) == [
        ("JobSubmitted", "south:99")
    ]


def test_a_number_that_is_used_again_is_told_once_the_job_that_went_is_over() -> None:
    told = Told()
    told.north(ev.JobSubmitted(5.0, NORTH))
    told.passage.settled(SETTLED)
    again = msgspec.structs.replace(NORTH, name="another")
    assert told.north(ev.JobSubmitted(50.0, again)) == []
    told.south(ev.JobEnded(60.0, "99", "completed"))
    assert told.north(ev.JobSubmitted(70.0, LEAVES)) == []
    assert kinds(told.north(ev.JobSubmitted(70.0, again))) == [("JobSubmitted", "north:17")]
    assert told.names.job_place("north:17") == ("north", "17")


def test_a_user_cancels_before_the_route_is_ordered() -> None:
    told = Told()
    told.north(ev.JobSubmitted(5.0, NORTH))
    assert kinds(told.north(ENDED)) == [("JobEnded", "north:17")]


def test_attributes_of_other_batch_systems_are_words_of_users() -> None:
    told = Told()
    forged = marked(SOUTH, copy_of="north:17", came_from="north:17", goes_to="south:1")
    assert kinds(told.passage.through("lsf", [ev.JobSubmitted(8.0, forged)])) == [("JobSubmitted", "lsf:99")]
    assert told.names.job_place("north:17") == ("north", "17") and not told.noticed


def test_a_whole_federation_sends_a_job() -> None:
    a, b, world = Pretended(), Pretended(), World()
    a.resubmission, b.resubmission = world.north, world.south  # type: ignore[attr-defined]
    with Federation({"north": a, "south": b}, clock=lambda: 0.0) as one:
        one.describe()
        a.tell(5.0, ev.JobSubmitted(5.0, NORTH))
        b.tell(5.0)
        moment = one.wait(None)
        assert moment is not None and kinds(list(moment[1])) == [("JobSubmitted", "north:17")]
        route = d.Route("north:17", "south:batch")
        assert [outcome.accepted for outcome in one.apply(5.0, [route])] == [True]
        until(lambda: any(job.came for job in world.south.jobs.values()), "the copy is the job")
        assert a.applied == b.applied == []
        a.tell(6.0, ev.JobEnded(6.0, "17", "cancelled"))
        b.tell(6.0, ev.JobSubmitted(6.0, CAME))
        assert kinds(drain(one)) == [("JobRouted", "north:17"), ("JobChanged", "north:17")]
        one.apply(7.0, [d.Kill("north:17")])
        assert b.applied == [d.Kill("99")]


def test_a_cluster_that_offers_nothing_keeps_its_jobs() -> None:
    with Federation({"north": Pretended(), "south": Pretended()}, clock=lambda: 0.0) as one:
        one.describe()
        route = d.Route("north:17", "south:batch")
        (outcome,) = one.apply(5.0, [route])
        assert not outcome.accepted and "between Slurm clusters only" in outcome.message
        told = [event for event in drain(one) if not isinstance(event, ev.ClusterSilent)]
        assert told == [ev.DecisionFailed(5.0, route, outcome.message)]


def test_a_job_that_comes_back_has_its_own_number_or_another() -> None:
    names = Names()
    names.job_is("north:17", "south", "99")
    names.job_is("north:17", "north", "23")
    assert names.job_outward("north", "23") == "north:17" and names.job_outward("south", "99") == "south:99"
    assert names.job_inward("north", "north:17") == "23"
    names.job_is("north:17", "north", "17")
    assert names.job_place("north:17") == ("north", "17") and names.job_outward("north", "23") == "north:23"


def test_the_reservation_of_a_job_goes_by_the_jobs_name() -> None:
    names = Names()
    names.job_is("north:17", "south", "99")
    kept = Reservation("job_99", 0.0, 9.0, nodes=("n1",), ours=True)
    assert names.outward("south").renamed(kept).id == "job_north:17"
    assert names.cluster_of_reservation("job_north:17") == "south"
    fresh = Names()
    fresh.job_is("north:17", "south", "99")
    assert fresh.cluster_of_reservation("job_north:17") == "south"
    assert fresh.inward("south").renamed(d.Unreserve("job_north:17")) == d.Unreserve("job_99")
