"""Reservations of dedicated jobs: made, kept, moved, removed; and who may use them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from building import alike, described, node_cluster, plugged

from headway.decisions import Decision, Reserve, Start, Unreserve
from headway.events import (
    DecisionFailed,
    ElasticCommandReceived,
    Event,
    JobChanged,
    JobEnded,
    JobHeld,
    JobLeaving,
    JobMigrated,
    JobReleased,
    JobRequeued,
    JobStarted,
    JobSubmitted,
    NodeDown,
    NodeUp,
    ReservationEnded,
    ReservationMade,
    ReservationRequested,
    ReservationReturned,
)
from headway.hookspecs import hookimpl
from headway.model import ClusterDescription, Reservation
from headway.scheduler import Scheduler
from headway.workload.jobs import dedicated
from headway_plugins.coscheduling.reservations import ReservationOptions, Reservations
from headway_plugins.elasticity.commands import Elastic, ElasticOptions
from headway_plugins.placement.first_fit import FirstFit
from headway_plugins.policies.conservative import Conservative
from headway_plugins.policies.dedicated import Dedicated, DedicatedOptions
from headway_plugins.policies.easy import Easy
from headway_plugins.policies.hybrid_los import HybridLos, HybridLosOptions

NODES = node_cluster(*alike(4, 4))
CAPABILITIES = frozenset({Start, Reserve, Unreserve})


def wanted(
    name: str, processors: int, estimate: float, start: float, submit: float = 0, **more: Any
) -> Event:
    return JobSubmitted(submit, dedicated(described(name, processors, estimate, submit, **more), start))


def batch(name: str, processors: int, estimate: float, submit: float = 0, **more: Any) -> Event:
    return JobSubmitted(submit, described(name, processors, estimate, submit, **more))


class Site:
    """A scheduler whose cluster does what it is told at the next step, unless it is ``refusing``."""

    def __init__(
        self, cluster: ClusterDescription = NODES, more: Sequence[Any] = (), policy: Any = None,
        capabilities: frozenset[type] = CAPABILITIES, **options: Any,
    ) -> None:  # fmt: skip
        options.setdefault("margin", 0)
        self.plugin = HybridLos(HybridLosOptions(**options)) if policy == "hybrid-los" else None
        chosen = [self.plugin] if self.plugin else [Dedicated(DedicatedOptions(**options)), policy or Easy()]
        self.scheduler = Scheduler(cluster, plugged(*more, *chosen, FirstFit()), capabilities=capabilities)
        self.state = self.scheduler.state
        self.refusing = ""
        self.news: list[Event] = []

    def step(self, now: float, *events: Event) -> list[Decision]:
        news, self.news = self.news, []
        decisions = self.scheduler.step(now, [*news, *events])
        for decision in decisions:
            if isinstance(decision, Reserve | Unreserve) and self.refusing:
                self.news.append(DecisionFailed(now, decision, self.refusing))
            elif isinstance(decision, Reserve):
                self.news.append(ReservationMade(now, decision.reservation))
            elif isinstance(decision, Unreserve):
                self.news.append(ReservationEnded(now, decision.reservation_id))
            elif isinstance(decision, Start):
                self.news.append(JobStarted(now, decision.job_id, decision.placement))
        return decisions

    def until(self, now: float) -> list[Decision]:
        """Steps at every moment that the scheduler asks for, up to ``now``."""
        made: list[Decision] = []
        while (due := self.state.next_wakeup()) is not None and due <= now:
            made += self.step(max(due, self.state.now))
        return made + self.step(now)

    @property
    def problems(self) -> list[str]:
        return [problem.message for problem in self.scheduler.problems]


def reserved(decisions: Sequence[Decision]) -> list[tuple[str, float, float, tuple[str, ...]]]:
    found = [d.reservation for d in decisions if isinstance(d, Reserve)]
    return [(r.id, r.start, r.end, r.nodes) for r in found]


def removed(decisions: Sequence[Decision]) -> list[str]:
    return [d.reservation_id for d in decisions if isinstance(d, Unreserve)]


def started(decisions: Sequence[Decision]) -> dict[str, Any]:
    return {d.job_id: tuple(name for name, _ in d.placement) for d in decisions if isinstance(d, Start)}


def why(decisions: Sequence[Decision]) -> str:
    (reason,) = [d.reason for d in decisions if isinstance(d, Reserve | Unreserve)]
    return reason


# ---------------------------------------------------------------------- made


@pytest.mark.parametrize("policy", [None, Conservative(), "hybrid-los"])
def test_its_nodes_are_reserved_from_its_second_for_its_time_and_its_user(policy: Any) -> None:
    site = Site(policy=policy)
    decisions = site.step(0, wanted("d", 8, 50, 100, user="ann"))
    (reserve,) = [d for d in decisions if isinstance(d, Reserve)]
    assert reserve.reservation == Reservation(
        "job_d", 100, 150, nodes=("n0", "n1"), users=("ann",), ours=True, reason="for dedicated job d"
    )
    assert reserve.reason == "dedicated job d starts then"
    assert site.step(1) == site.step(2) == []
    decisions = site.until(100)
    assert started(decisions) == {"d": ("n0", "n1")}
    assert not reserved(decisions) and not removed(decisions)
    # Confirmed, and in nobody's way while it runs.
    assert site.step(101) == []
    decisions = site.step(140, JobEnded(140, "d"))
    assert removed(decisions) == ["job_d"] and why(decisions) == "job d is over"
    assert site.step(141) == [] and not site.state.reservations
    assert site.problems == []


def test_it_begins_a_margin_after_its_job_so_that_what_ends_at_that_second_may_end_a_moment_later() -> None:
    site = Site(margin=10)
    decisions = site.step(0, wanted("d", 16, 50, 100), batch("b", 16, 100))
    assert reserved(decisions) == [("job_d", 110, 150, ("n0", "n1", "n2", "n3"))]
    assert started(decisions) == {"b": ("n0", "n1", "n2", "n3")}
    # What Slurm would refuse to start if it met the reservation. It began a second late, so d will, too.
    assert not reserved(site.step(1, JobStarted(1, "b", tuple((f"n{at}", 4) for at in range(4)))))
    site.until(100)
    assert started(site.step(101, JobEnded(101, "b"))) == {"d": ("n0", "n1", "n2", "n3")}
    # Jobs shorter than that have one all the same.
    assert [r[1:3] for r in reserved(Site(margin=10).step(0, wanted("e", 16, 8, 100)))] == [(104, 108)]


def test_an_earlier_jobs_booking_moves_a_later_ones_reservation() -> None:
    site = Site()
    site.step(0, wanted("later", 16, 50, 100))
    site.step(1)
    decisions = site.step(2, wanted("earlier", 16, 60, 60, 2))
    assert [r[:3] for r in reserved(decisions)] == [("job_later", 120, 170)]
    assert [r[:3] for r in reserved(site.step(3))] == [("job_earlier", 60, 120)]
    site.step(4)
    decisions = site.until(60)
    assert list(started(decisions)) == ["earlier"]
    assert list(started(site.step(120, JobEnded(120, "earlier")))) == ["later"]
    assert site.problems == []


def test_of_two_that_follow_each_other_the_first_may_be_late_by_a_moment() -> None:
    site = Site(margin=10)
    site.step(0, wanted("one", 16, 60, 100), wanted("two", 16, 60, 160), batch("b", 16, 90))
    site.step(1)
    assert (site.state.reservations["job_two"].start, site.problems) == (170, [])
    site.until(100)
    # b ends late, by more than the margin: the second one's reservation gives way, and the first starts.
    decisions = site.step(115, JobEnded(115, "b"))
    assert [r[0] for r in reserved(decisions)] == ["job_two"] and not started(decisions)
    assert list(started(site.step(116))) == ["one"]
    assert site.problems == []


def test_each_job_of_a_group_has_its_own() -> None:
    site = Site()
    decisions = site.step(0, wanted("d", 8, 50, 100), wanted("e", 8, 60, 100), wanted("f", 16, 9, 400))
    assert reserved(decisions) == [
        ("job_d", 100, 150, ("n0", "n1")),
        ("job_e", 100, 160, ("n2", "n3")),
        ("job_f", 400, 409, ("n0", "n1", "n2", "n3")),
    ]
    site.step(1)
    assert started(site.until(100)) == {"d": ("n0", "n1"), "e": ("n2", "n3")}


def test_it_is_made_when_the_lead_begins() -> None:
    site = Site(lead=300)
    assert site.step(0, wanted("d", 8, 50, 1000)) == []
    assert site.step(10, batch("b", 1, 5, 10)) != []
    assert site.until(699) == []
    assert reserved(site.until(700)) == [("job_d", 1000, 1050, ("n0", "n1"))]


def test_batch_jobs_before_it_and_beside_it_run_as_if_there_were_only_its_booking() -> None:
    plans = []
    for reserve in ("auto", "no"):
        site = Site(reserve=reserve)
        site.step(0, wanted("d", 8, 50, 100))
        starts = started(site.step(1, batch("short", 16, 99, 1)))
        starts |= started(
            site.step(2, JobEnded(2, "short"), batch("long", 8, 500, 2), batch("late", 8, 99, 2))
        )
        starts |= started(site.until(100))
        starts |= started(site.until(150) + site.step(151, JobEnded(151, "d")) + site.until(152))
        plans.append(starts)
    assert plans[0] == plans[1]
    assert plans[0]["long"] == ("n2", "n3") and plans[0]["d"] == ("n0", "n1")


@pytest.mark.parametrize(
    ("processors", "more", "nodes"),
    [
        (3, {}, None),
        (6, {}, None),
        (8, {}, ("n0", "n1")),
        (2, {"exclusive": True, "nodes": 2}, ("n0", "n1")),
        (2, {"exclusive": True}, ("n0",)),
    ],
)
def test_by_default_only_jobs_that_fill_their_nodes_have_one(processors: int, more: Any, nodes: Any) -> None:
    site = Site()
    found = reserved(site.step(0, wanted("d", processors, 50, 100, **more)))
    assert [one[3] for one in found] == ([nodes] if nodes else [])
    site.step(1)
    assert "d" in started(site.until(100))


def test_yes_reserves_whole_nodes_for_smaller_jobs_too_and_processors_on_a_flat_pool() -> None:
    site = Site(reserve="yes")
    assert reserved(site.step(0, wanted("d", 3, 50, 100))) == [("job_d", 100, 150, ("n0",))]
    flat = Site(ClusterDescription.flat(10), reserve="yes")
    (reserve,) = flat.step(0, wanted("d", 8, 50, 100))
    assert isinstance(reserve, Reserve)
    assert (reserve.reservation.processors, reserve.reservation.pool) == (8, "pool")
    # Two are left beside it, not ten less twice eight.
    assert started(flat.step(1, batch("b", 2, 500, 1), batch("c", 1, 500, 1))) == {"b": ()}
    assert started(flat.until(100)) == {"d": ()}
    assert removed(flat.step(120, JobEnded(120, "d"))) == ["job_d"]
    assert Site(ClusterDescription.flat(10)).step(0, wanted("d", 8, 50, 100)) == []


@pytest.mark.parametrize(("written", "meant"), [(True, "yes"), (False, "no"), ("auto", "auto")])
def test_yes_and_no_may_be_written_as_yaml_has_them(written: Any, meant: str) -> None:
    assert DedicatedOptions(reserve=written).reserve == HybridLosOptions(reserve=written).reserve == meant


ALONE = node_cluster(*alike(4, 4), enters_reservations=False)


@pytest.mark.parametrize(
    "more", [{"reserve": "no"}, {"capabilities": frozenset({Start})}, {"cluster": ALONE, "reserve": "yes"}]
)
def test_there_is_none_if_nobody_wants_or_can(more: Any) -> None:
    site = Site(**more)
    assert site.step(0, wanted("d", 8, 50, 100)) == []
    assert started(site.until(100)) == {"d": ("n0", "n1")}


def test_one_that_names_a_users_reservation_starts_in_that() -> None:
    cluster = node_cluster(*alike(4, 4), reservations=(Reservation("r1", 50, 500, nodes=("n3",)),))
    site = Site(cluster)
    assert site.step(0, wanted("d", 4, 50, 100, reservation="r1")) == []
    assert started(site.until(100)) == {"d": ("n3",)}


# ---------------------------------------------------------------------- kept


def test_one_that_was_lost_is_made_again() -> None:
    site = Site()
    site.step(0, wanted("d", 8, 50, 100))
    site.step(1)
    decisions = site.step(20, ReservationEnded(20, "job_d"))
    assert reserved(decisions) == [("job_d", 100, 150, ("n0", "n1"))]
    assert why(decisions) == "the batch system lost the reservation of dedicated job d: made again"


@pytest.mark.parametrize(
    "changed",
    [
        Reservation("job_d", 120, 150, nodes=("n0", "n1"), ours=True),
        Reservation("job_d", 80, 150, nodes=("n0", "n1"), ours=True),
        Reservation("job_d", 100, 110, nodes=("n0", "n1"), ours=True),
        Reservation("job_d", 100, 150, nodes=("n0",), ours=True),
        Reservation("job_d", 100, 150, nodes=("n0", "n1"), users=("eve",), ours=True),
    ],
)
def test_one_that_somebody_changed_is_made_as_it_was(changed: Reservation) -> None:
    site = Site()
    site.step(0, wanted("d", 8, 50, 100))
    site.step(1)
    decisions = site.step(20, ReservationMade(20, changed))
    assert [r[:3] for r in reserved(decisions)] == [("job_d", 100, 150)]
    assert "another program or user changed" in why(decisions)
    site.step(21)
    assert site.step(22) == []


def test_a_refused_one_is_reported_and_tried_again_with_growing_pauses() -> None:
    site = Site()
    site.refusing = "nodes busy"
    asked = [
        now
        for now in range(0, 200)
        if reserved(site.step(now, *([wanted("d", 8, 50, 900)] if not now else ())))
    ]
    assert asked == [0, 15, 45, 105]
    assert site.problems[0] == (
        "reservation job_d could not be made: nodes busy; it is tried again in 15 s, headway's own booking "
        "stays"
    )
    assert len(site.problems) == 4
    # Without it, the booking protects the job.
    assert started(site.step(200, batch("b", 16, 800, 200))) == {}
    site.refusing = ""
    assert reserved(site.until(300))
    site.step(301)
    assert "job_d" in site.state.reservations
    # The pauses begin anew.
    site.refusing = "nodes busy"
    assert reserved(site.step(310, ReservationEnded(310, "job_d")))
    site.step(311)
    assert "in 15 s" in site.problems[-1]


def test_what_a_batch_system_would_refuse_is_not_asked_for_but_reported_once() -> None:
    class Short:
        @hookimpl
        def predict_runtime(self, job: Any) -> float:
            return 50.0

    site = Site(more=(Short(),))
    site.step(0, batch("b", 16, 500))
    site.step(1)
    # b is expected to end at 50, but may run until 500.
    assert not reserved(site.step(2, wanted("d", 8, 60, 100, 2)))
    assert not reserved(site.step(3)) and not reserved(site.step(4))
    assert site.problems == [
        "dedicated job d cannot have its reservation yet: job b may run on n0 until 500; headway's own "
        "booking stays"
    ]
    assert reserved(site.step(40, JobEnded(40, "b"))) == [("job_d", 100, 160, ("n0", "n1"))]


def test_a_job_of_another_pool_on_its_nodes_waits_for_it() -> None:
    site = Site(node_cluster(*alike(4, 4, pools=("first", "second")), pools=("first", "second")))
    there = batch("b", 16, 500, pool="second")
    made = site.step(0, wanted("d", 8, 60, 100, pool="first"), there)
    assert reserved(made) == [("job_d", 100, 160, ("n0", "n1"))] and started(made) == {}
    assert site.problems == []


def test_that_of_a_running_job_stays_as_it_is_where_others_are_in_the_way() -> None:
    site = Site(reserve="yes")
    site.step(0, wanted("d", 2, 1000, 100))
    site.step(1)
    site.until(100)
    # The job fills half of its node; somebody else has sent one to the other half.
    site.step(101, batch("b", 2, 5000, 101), JobStarted(101, "b", (("n0", 2),)))
    longer = dedicated(described("d", 2, 3000), 100.0)
    assert not reserved(site.step(200, JobChanged(200, longer)))
    assert site.problems == []
    later = site.step(300, JobEnded(300, "b"))
    assert reserved(later) == [("job_d", 100, 3100, ("n0",))]


def test_after_a_restart_it_is_recognised_by_its_name() -> None:
    there = Reservation("job_d", 100, 150, nodes=("n2", "n3"), ours=True)
    orphan = Reservation("job_x", 100, 150, nodes=("n0",), ours=True)
    foreign = Reservation("job_y", 100, 150, nodes=("n1",))
    site = Site(node_cluster(*alike(4, 4), reservations=(there, orphan, foreign)))
    decisions = site.step(0, wanted("d", 8, 50, 100))
    assert not reserved(decisions) and removed(decisions) == ["job_x"]
    assert started(site.until(100)) == {"d": ("n2", "n3")}


def test_after_a_restart_that_of_a_running_job_stays_until_it_ends() -> None:
    there = Reservation("job_d", 100, 150, nodes=("n2", "n3"), ours=True)
    site = Site(node_cluster(*alike(4, 4), reservations=(there,)))
    placement = (("n2", 4), ("n3", 4))
    job = wanted("d", 8, 50, 100)
    assert site.step(110, job, JobStarted(100, "d", placement)) == []
    assert site.state.profile(site.state.domains["pool"]).free[0] == 8
    assert removed(site.step(120, JobEnded(120, "d"))) == ["job_d"]


# ---------------------------------------------------------------------- moved


def test_it_moves_when_a_node_goes_down_and_back_is_no_reason_to_move() -> None:
    site = Site()
    site.step(0, wanted("d", 8, 50, 100))
    site.step(1)
    decisions = site.step(20, NodeDown(20, "n0"))
    assert [(r[0], set(r[3])) for r in reserved(decisions)] == [("job_d", {"n1", "n2"})]
    site.step(21)
    assert not reserved(site.step(30, NodeUp(30, NODES.nodes[0])))
    assert started(site.until(100)) == {"d": ("n1", "n2")}


def test_it_moves_to_other_nodes_when_a_running_job_may_run_longer() -> None:
    site = Site()
    site.step(0, batch("b", 4, 90))
    site.step(1, wanted("d", 8, 50, 100, 1))
    site.step(2)
    assert set(site.state.reservations["job_d"].nodes) == {"n0", "n1"}
    longer = described("b", 4, 900)
    assert [set(r[3]) for r in reserved(site.step(10, JobChanged(10, longer)))] == [{"n1", "n2"}]


def test_it_moves_in_time_when_no_other_nodes_can_do_it_and_is_made_anew_once_it_has_begun() -> None:
    site = Site()
    site.step(0, batch("b", 16, 90))
    site.step(1, wanted("d", 8, 50, 100, 1))
    site.step(2)
    decisions = site.step(10, JobChanged(10, described("b", 16, 300)))
    assert [r[1:3] for r in reserved(decisions)] == [(300, 350)]
    site.step(11)
    site.until(300)
    # It should have ended, and has not: the moment that it does is near, so nothing moves.
    assert not removed(site.step(310)) and not reserved(site.step(311))
    assert removed(site.step(320, JobChanged(320, described("b", 16, 900)))) == ["job_d"]
    decisions = site.step(321)
    assert [r[1:3] for r in reserved(decisions)] == [(900, 950)]


def test_it_follows_the_requested_start_and_the_limit_that_its_user_changes() -> None:
    site = Site()
    site.step(0, wanted("d", 8, 50, 100))
    site.step(1)
    later = dedicated(described("d", 8, 50), 130.0)
    assert [r[1:3] for r in reserved(site.step(10, JobChanged(10, later)))] == [(130, 180)]
    longer = dedicated(described("d", 8, 80), 130.0)
    assert [r[1:3] for r in reserved(site.step(20, JobChanged(20, longer)))] == [(130, 210)]
    wider = dedicated(described("d", 16, 80), 130.0)
    assert [len(r[3]) for r in reserved(site.step(30, JobChanged(30, wider)))] == [4]


@pytest.mark.parametrize(("estimate", "end"), [(500.0, 600), (1200.0, 1300), (1030.0, None)])
def test_while_the_job_runs_the_end_follows_its_limit_but_not_every_second(estimate: float, end: Any) -> None:
    site = Site()
    site.step(0, wanted("d", 8, 1000, 100))
    site.step(1)
    site.until(100)
    site.step(101)
    changed = dedicated(described("d", 8, estimate), 100.0)
    found = reserved(site.step(200, JobChanged(200, changed)))
    assert [r[2] for r in found] == ([end] if end else [])


def test_a_job_that_was_moved_takes_its_reservation_along() -> None:
    site = Site()
    site.step(0, wanted("d", 8, 500, 100))
    site.step(1)
    # Slurm started it elsewhere.
    decisions = site.step(101, JobStarted(101, "d", (("n2", 4), ("n3", 4))))
    assert [(r[0], r[3]) for r in reserved(decisions)] == [("job_d", ("n2", "n3"))]


# ---------------------------------------------------------------------- removed


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (JobEnded(20, "d", "cancelled"), "is over"),
        (JobHeld(20, "d", "by its user"), "may not start: held (by its user)"),
        (JobChanged(20, described("d", 8, 50, begin_time=100)), "is not dedicated any more"),
        (JobChanged(20, dedicated(described("d", 8, 50), 100_000.0)), "does not start before"),
        (JobChanged(20, dedicated(described("d", 6, 50), 100.0)), "does not fill its nodes"),
        (
            JobChanged(20, dedicated(described("d", 8, 50), 100_000_000.0)),
            "no processors are reserved for job d now",
        ),
    ],
)
def test_it_is_removed_when_the_job_is_not_to_start_then(event: Event, reason: str) -> None:
    site = Site()
    site.step(0, wanted("d", 8, 50, 100))
    site.step(1)
    decisions = site.step(20, event)
    assert removed(decisions) == ["job_d"] and reason in why(decisions)
    assert not site.step(21)


def test_one_that_is_released_has_it_again() -> None:
    site = Site()
    site.step(0, wanted("d", 8, 50, 100))
    site.step(1, JobHeld(1, "d"))
    site.step(2)
    assert not site.state.reservations
    assert reserved(site.step(3, JobReleased(3, "d")))


def test_a_removal_that_fails_is_reported_and_tried_again() -> None:
    site = Site()
    site.step(0, wanted("d", 8, 50, 100))
    site.step(1)
    site.refusing = "in use"
    assert removed(site.step(10, JobEnded(10, "d")))
    assert not site.step(11)
    assert site.problems == [
        "reservation job_d could not be removed: in use; it is tried again in 15 s, headway's own booking "
        "stays"
    ]
    site.refusing = ""
    assert removed(site.until(26)) == ["job_d"]


def test_a_refused_making_does_not_hold_the_removal_up() -> None:
    site = Site()
    site.step(0, wanted("d", 16, 100, 1000))
    site.until(1)
    site.refusing = "nodes busy"
    site.step(2, JobChanged(2, dedicated(described("d", 16, 300), 1000)))
    site.refusing = ""
    assert reserved(site.step(3)) == []
    assert "could not be made: nodes busy; it is tried again in 15 s" in "".join(site.problems)
    assert removed(site.step(4, JobEnded(4, "d", "cancelled"))) == ["job_d"]


def test_a_job_that_will_be_over_before_its_reservation_begins_has_it_brought_forward() -> None:
    site = Site(margin=10)
    later = Reservation("job_d", 5010, 5040, nodes=("n0",), ours=True)
    site.step(1000, JobSubmitted(1000, dedicated(described("d", 4, 30, 1000), 1000)))
    site.step(1001, ReservationMade(1001, later))
    assert reserved(site.step(1002, ReservationMade(1002, later))) == [("job_d", 1010, 1030, ("n0",))]
    assert removed(site.step(1003, JobEnded(1003, "d", "completed"))) == ["job_d"]


def test_switched_off_it_removes_what_an_earlier_run_made() -> None:
    there = Reservation("job_d", 100, 150, nodes=("n2", "n3"), ours=True)
    site = Site(node_cluster(*alike(4, 4), reservations=(there,)), reserve="no")
    assert removed(site.step(0, wanted("d", 8, 50, 100))) == ["job_d"]


def test_it_keeps_all_its_nodes_while_they_come_free_of_the_job_one_by_one() -> None:
    """The job may go back to the queue, and another job may not have a node meanwhile."""
    site = Site()
    site.step(0, wanted("d", 8, 100, 50))
    site.until(50)
    site.step(51)
    assert site.state.jobs["d"].start_time == 50
    left = site.state.jobs["d"].placement[:1]
    assert reserved(site.step(60, JobMigrated(60, "d", left), JobLeaving(60, "d"))) == []
    assert [r.nodes for r in site.state.reservations.values()] == [("n0", "n1")]


def test_one_that_goes_back_to_the_queue_is_reserved_for_again() -> None:
    site = Site()
    site.step(0, wanted("d", 8, 50, 100))
    site.step(1)
    assert started(site.until(100))
    site.step(101)
    decisions = site.step(120, JobRequeued(120, "d"))
    assert started(decisions) == {"d": ("n0", "n1")}


# ---------------------------------------------------------------------- who may use it


def test_nobody_else_may_name_it() -> None:
    site = Site()
    site.step(0, wanted("d", 8, 50, 100, user="ann"))
    site.step(1, batch("b", 4, 10, 1, user="ann", reservation="job_d"))
    site.until(100)
    site.step(101, JobEnded(101, "d"))
    job = site.state.jobs["b"]
    assert site.state.why_waiting(job) == "reservation 'job_d' is kept for job d alone"


def test_a_user_cannot_give_it_back_and_another_reservation_leaves_it_room() -> None:
    users = Reservations(ReservationOptions())
    site = Site(more=(users,))
    site.step(0, wanted("d", 8, 50, 100))
    site.step(1)
    site.step(2, ReservationReturned(2, "q1", "job_d", "root", True))
    answer = site.scheduler.answer("q1")
    assert answer is not None and "is kept for dedicated job d" in answer.reason
    for request, nodes, outcome in (("q2", 3, "refused"), ("q3", 2, "accepted")):
        asked = ReservationRequested(3, request, 90, 100, nodes=nodes, user="root", operator=True)
        site.step(3, asked)
        answer = site.scheduler.answer(request)
        assert answer is not None and answer.outcome == outcome, answer


def test_an_extension_into_it_is_refused_with_the_jobs_name() -> None:
    elastic = Elastic(ElasticOptions())
    site = Site(more=(elastic,))
    site.step(0, wanted("d", 16, 50, 100), batch("b", 4, 60))
    site.step(1)

    def extend(now: float, job: str, seconds: float) -> str:
        command = ElasticCommandReceived(now, job, "ET", seconds, operator=True, request=f"q{now}")
        site.step(now, command)
        answer = site.scheduler.answer(f"q{now}")
        assert answer is not None
        return f"{answer.outcome}: {answer.reason}"

    assert extend(2, "b", 100) == "refused: it would delay dedicated job d, which must start at 100"
    assert extend(3, "b", 30).startswith("accepted")
    site.step(60, JobEnded(60, "b"))
    # Its own reservation is in nobody's way, least of all its own.
    site.until(100)
    site.step(101)
    assert extend(102, "d", 200).startswith("accepted")
    assert site.problems == []


def test_description_of_a_reservation_for_a_job() -> None:
    assert Reservation("job_12_3", 0, 1, ours=True).job_id == "12_3"
    assert Reservation("job_12", 0, 1).job_id == ""
    assert Reservation("r1", 0, 1, ours=True).job_id == ""
