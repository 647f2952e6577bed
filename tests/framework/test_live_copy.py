"""A copy of a live cluster holds what is true at the end of the first look, whatever its events were."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from building import alike, described, node_cluster

from headway import events as ev
from headway.emulation import emulate
from headway.emulation.live_copy import Copy
from headway.model import Dependency, JobDescription, PoolDescription, Reservation
from headway.plugins import Catalogue, PluginConfig

NOW = 10_000.0
ON_0, ON_1 = (("n0", 4),), (("n1", 4),)


class Live:
    """A cluster of three nodes of four processors, with one look to tell."""

    def __init__(self, *events: ev.Event, numbered: bool = True) -> None:
        self.events = list(events)
        self.cluster = msgspec.structs.replace(node_cluster(*alike(3, 4)), numbered=numbered)

    def describe(self) -> Any:
        return self.cluster

    def wait(self, deadline: float | None) -> tuple[float, list[ev.Event]]:
        return NOW, self.events


def copied(*events: ev.Event) -> Copy:
    return Copy(Live(*events))  # type: ignore[arg-type]


def job(name: str, submit: float = 100.0, walltime: float = 1000.0, **fields: Any) -> JobDescription:
    return msgspec.structs.replace(described(name, 4, walltime, submit), **fields)


def submitted(name: str, submit: float = 100.0, walltime: float = 1000.0, **fields: Any) -> ev.JobSubmitted:
    return ev.JobSubmitted(submit, job(name, submit, walltime, **fields))


def ids(copy: Copy) -> list[str]:
    return [one.job.id for one in copy.jobs]


def forward(copy: Copy) -> dict[str, float | None]:
    result = emulate(
        copy.cluster, copy.jobs, [PluginConfig("easy"), PluginConfig("first-fit")], Catalogue(), label="copy",
        start=copy.now, running=copy.running, power=copy.power,
    )  # fmt: skip
    return {one.job.id: one.start_time for one in result.jobs}


@pytest.mark.parametrize("outcome", ["completed", "cancelled", "failed", "timed out", "node failure"])
def test_a_job_that_is_over_is_not_there(outcome: str) -> None:
    began = [] if outcome == "cancelled" else [ev.JobStarted(200, "1", ON_0)]
    copy = copied(submitted("1"), *began, ev.JobEnded(300, "1", outcome), submitted("2", walltime=50))
    assert ids(copy) == ["2"] and not copy.running
    assert forward(copy) == {"2": NOW}


def test_a_job_waits_for_what_runs_and_not_for_what_ran() -> None:
    """Three jobs of days took the cluster; two are over after a second."""
    long = 86_400.0
    copy = copied(
        *(submitted(str(one), walltime=long) for one in (1, 2)), submitted("3", walltime=10_000),
        *(ev.JobStarted(9000, str(one), ((f"n{one - 1}", 4),)) for one in (1, 2, 3)),
        ev.JobEnded(9001, "1"), ev.JobEnded(9001, "2"),
        ev.JobSubmitted(9500, described("4", 12, 60, 9500)),
    )  # fmt: skip
    assert [one.job_id for one in copy.running] == ["3"]
    assert forward(copy)["4"] == 9000 + 10_000


def test_a_job_that_was_requeued_waits_again() -> None:
    copy = copied(submitted("1"), ev.JobStarted(200, "1", ON_0), ev.JobRequeued(300, "1"))
    assert ids(copy) == ["1"] and not copy.running


def test_a_job_that_runs_again_has_done_nothing_before() -> None:
    copy = copied(
        submitted("1"), ev.JobStarted(200, "1", ON_0), ev.JobRequeued(300, "1"),
        ev.JobStarted(NOW - 5, "1", ON_1),
    )  # fmt: skip
    assert [(one.elapsed, one.placement) for one in copy.running] == [(5, ON_1)]


def test_a_suspended_job_goes_on_with_what_it_had_done() -> None:
    copy = copied(submitted("1"), ev.JobStarted(NOW - 500, "1", ON_0), ev.JobSuspended(NOW - 300, "1"))
    (one,) = copy.running
    assert (one.elapsed, one.done) == (500, 200)
    result = emulate(
        copy.cluster, copy.jobs, [PluginConfig("easy")], Catalogue(), label="copy", start=NOW,
        running=copy.running,
    )  # fmt: skip
    assert (result.jobs[0].start_time, result.jobs[0].end_time) == (NOW - 500, NOW + 800)


def test_a_job_that_was_suspended_has_its_pause_left() -> None:
    copy = copied(
        submitted("1"), ev.JobStarted(NOW - 500, "1", ON_0), ev.JobSuspended(NOW - 400, "1"),
        ev.JobResumed(NOW - 100, "1"), ev.JobSubmitted(NOW, described("2", 12, 60, NOW)),
    )  # fmt: skip
    assert forward(copy)["2"] == NOW + 800


def test_a_job_that_leaves_its_nodes_is_as_good_as_gone() -> None:
    copy = copied(
        submitted("1"), ev.JobStarted(NOW - 50, "1", ON_0), ev.JobLeaving(NOW, "1"),
        ev.JobSubmitted(NOW, described("2", 12, 60, NOW)),
    )  # fmt: skip
    assert forward(copy)["2"] == NOW


def test_holds_and_releases_are_those_of_the_end() -> None:
    copy = copied(
        submitted("1"), submitted("2", held=True), ev.JobHeld(300, "1"), ev.JobReleased(300, "2"),
        submitted("3", held=True),
    )  # fmt: skip
    assert {one.job.id: one.job.held for one in copy.jobs} == {"1": True, "2": False, "3": True}
    assert forward(copy) == {"1": None, "2": NOW, "3": None}


def test_a_job_is_what_it_was_changed_to() -> None:
    copy = copied(
        submitted("1"), ev.JobStarted(NOW - 100, "1", ON_0), ev.JobChanged(NOW - 50, job("1", walltime=400)),
        ev.JobSubmitted(NOW, described("2", 12, 60, NOW)),
    )  # fmt: skip
    assert forward(copy)["2"] == NOW + 300


def test_a_job_is_where_it_was_moved_to_in_the_tier_that_it_has() -> None:
    copy = copied(
        submitted("1"), submitted("2"),
        ev.JobStarted(200, "1", ON_0), ev.JobStarted(200, "2", ON_0, tier="background"),
        ev.JobMigrated(300, "1", ON_1), ev.JobTierChanged(400, "2", "foreground"),
        ev.JobFrequencyChanged(500, "1", 2e9),
    )  # fmt: skip
    assert [(one.job_id, one.placement, one.tier, one.frequency) for one in copy.running] == [
        ("1", ON_1, "foreground", 2e9), ("2", ON_0, "foreground", None),
    ]  # fmt: skip


def test_a_start_that_is_on_its_way_has_its_nodes() -> None:
    copy = copied(submitted("1"), ev.JobReleasing(NOW, "1", ON_1), submitted("2"))
    assert [(one.job_id, one.elapsed, one.placement) for one in copy.running] == [("1", 0, ON_1)]


def test_a_job_in_the_background_leaves_the_front_to_others() -> None:
    copy = copied(
        submitted("1"), ev.JobStarted(NOW - 5, "1", ON_0, tier="background"),
        ev.JobSubmitted(NOW, described("2", 12, 60, NOW)),
    )  # fmt: skip
    assert forward(copy)["2"] == NOW


@pytest.mark.parametrize(
    ("kind", "outcome", "starts"),
    [("completed", "completed", NOW), ("completed", "failed", None), ("failed", "failed", NOW),
     ("ended", "failed", NOW)],
)  # fmt: skip
def test_what_became_of_a_job_is_known_to_those_that_depend_on_it(
    kind: str, outcome: str, starts: float | None
) -> None:
    waits = submitted("2", 150, dependencies=(Dependency(kind, "1"),))
    copy = copied(submitted("1"), ev.JobStarted(200, "1", ON_0), waits, ev.JobEnded(300, "1", outcome))
    assert forward(copy) == {"2": starts}


def test_a_dependency_on_a_job_that_runs_is_kept() -> None:
    either = (Dependency("ended", "1"), Dependency("ended", "0"))
    copy = copied(
        submitted("1"), ev.JobStarted(NOW - 100, "1", ON_0),
        submitted("2", 150, dependencies=(Dependency("ended", "1"),)),
        submitted("3", 150, dependencies=either, any_dependency=True),
    )  # fmt: skip
    assert [len(one.job.dependencies) for one in copy.jobs] == [0, 1, 0]
    assert forward(copy)["2"] == NOW + 900


def test_nodes_pools_and_reservations_are_those_of_the_end() -> None:
    kept = Reservation("r", NOW + 10, NOW + 20, nodes=("n1",))
    copy = copied(
        ev.NodeDown(NOW, "n0", "gone"), ev.PoolChanged(NOW, PoolDescription("other")),
        ev.ReservationMade(NOW, kept), ev.NodePowerChanged(NOW, "n2", "asleep"),
        ev.NodePowerChanged(NOW, "n1", "asleep"),
        ev.NodePowerChanged(NOW, "n1", "on"),
    )  # fmt: skip
    assert [node.available for node in copy.cluster.nodes] == [False, True, True]
    assert [pool.name for pool in copy.cluster.pools][-1] == "other"
    assert [one.id for one in copy.cluster.reservations] == ["r"]
    assert copy.power == {"n2": "asleep"}


def test_jobs_of_one_moment_are_in_the_order_of_their_numbers() -> None:
    names = ["26_1", "25_10", "26_2", "25_3", "25_2"]
    copy = copied(*(submitted(name) for name in names))
    assert ids(copy) == ["25_2", "25_3", "25_10", "26_1", "26_2"]


def test_more_than_a_node_has_may_run_there() -> None:
    """Others have the processors of a suspended job."""
    copy = copied(
        submitted("1"), ev.JobStarted(NOW - 500, "1", ON_0), ev.JobSuspended(NOW - 300, "1"),
        submitted("2"), ev.JobStarted(NOW - 200, "2", ON_0),
        ev.JobSubmitted(NOW, described("3", 12, 60, NOW)),
    )  # fmt: skip
    assert forward(copy)["3"] == NOW + 800
