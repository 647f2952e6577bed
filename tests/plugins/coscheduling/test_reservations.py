"""Users' reservations: room, limits per account, and keeping what was promised."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from building import alike, described, node_cluster, plugged

from headway.decisions import Answer, Decision, Reserve, Start, Unreserve
from headway.events import (
    DecisionFailed,
    Event,
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
from headway.model import ClusterDescription, NodeDescription, PoolDescription, Reservation
from headway.scheduler import Scheduler
from headway_plugins.coscheduling.reservations import ReservationOptions, Reservations
from headway_plugins.placement.first_fit import FirstFit
from headway_plugins.policies.easy import Easy

HOUR, DAY = 3600.0, 86400.0
FLAT = ClusterDescription.flat(10)
NODES = node_cluster(*alike(8, 4))
CAPABILITIES = frozenset({Start, Reserve, Unreserve})


class Site:
    """A scheduler with the plugin, whose cluster confirms reservations unless ``refusing``."""

    def __init__(
        self, cluster: ClusterDescription = NODES, saved: Any = None, more: Sequence[Any] = (), **options: Any
    ) -> None:
        self.plugin = Reservations(ReservationOptions(**options))
        self.scheduler = Scheduler(
            cluster, plugged(self.plugin, *more, Easy(), FirstFit()), capabilities=CAPABILITIES,
            saved={"reservations": saved} if saved else None,
        )  # fmt: skip
        self.refusing = ""
        self.news: list[Event] = []
        self.number = 0

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

    def reserve(
        self, now: float, start: float, duration: float = HOUR, user: str = "alice", **more: Any
    ) -> Answer:
        self.number += 1
        name = f"q{self.number}"
        self.step(now, ReservationRequested(now, name, start, duration, user=user, **more))
        answer = self.scheduler.answer(name)
        assert answer is not None
        return answer

    def give_back(self, now: float, reservation: str, user: str = "alice", operator: bool = False) -> Answer:
        self.number += 1
        name = f"q{self.number}"
        self.step(now, ReservationReturned(now, name, reservation, user, operator))
        answer = self.scheduler.answer(name)
        assert answer is not None
        return answer

    @property
    def problems(self) -> list[str]:
        return [problem.message for problem in self.scheduler.problems]


def made(answer: Answer) -> Reservation:
    assert answer.outcome == "accepted", answer.reason
    (decision,) = answer.decisions
    assert isinstance(decision, Reserve)
    return decision.reservation


# ---------------------------------------------------------------------- room


def test_a_reservation_takes_whole_nodes_that_are_free_then() -> None:
    site = Site()
    site.step(0, JobSubmitted(0, described("long", 16, 2 * HOUR)), JobSubmitted(0, described("short", 4, 60)))
    site.step(1)
    found = made(site.reserve(2, HOUR, nodes=2))
    # n0-n3 run the long job until after the start; n4's ends before.
    assert (found.nodes, found.start, found.end) == (("n4", "n5"), HOUR, 2 * HOUR)
    assert (found.users, found.ours) == (("alice",), True)


def test_the_pool_need_not_be_named_where_only_one_is_open() -> None:
    def site(*names: str, closed: tuple[str, ...] = ()) -> Site:
        pools = tuple(PoolDescription(name, open=name not in closed) for name in names)
        nodes = tuple(msgspec.structs.replace(node, pools=names) for node in NODES.nodes)
        return Site(ClusterDescription("c", pools, nodes))

    assert made(site("batch", "others", closed=("others",)).reserve(0, HOUR, nodes=2)).pool == "batch"
    refused = site("batch", "others", "more", closed=("others",)).reserve(0, HOUR, nodes=2)
    assert refused.reason == "the request names no pool, and there are several; expected one of batch, more"


def test_processors_on_nodes_become_as_few_whole_nodes_as_hold_them() -> None:
    bigger = (node for node in alike(5, 8) if node.name > "n2")
    site = Site(node_cluster(*alike(3, 2), *bigger), limits={"max_nodes": 4})
    assert made(site.reserve(0, HOUR, processors=9)).nodes == ("n3", "n4")


def test_on_a_flat_pool_processors_are_taken() -> None:
    site = Site(FLAT, limits={"max_nodes": 10})
    assert made(site.reserve(0, HOUR, processors=6)).processors == 6
    reason = site.reserve(1, HOUR + 10, processors=6).reason
    assert reason == "6 processors asked for, 4 are free for the whole time"
    assert made(site.reserve(2, 2 * HOUR, processors=6)).processors == 6


def test_two_reservations_never_share_a_node_even_in_one_step() -> None:
    site = Site()
    requests = [
        ReservationRequested(0, name, HOUR, HOUR, nodes=4, user=name, operator=True) for name in "abc"
    ]
    decisions = site.step(0, *requests)
    answers = [site.scheduler.answer(name) for name in "abc"]
    assert [a.outcome for a in answers if a] == ["accepted", "accepted", "refused"]
    first, second = (d.reservation for d in decisions if isinstance(d, Reserve))
    assert not set(first.nodes) & set(second.nodes)


def test_running_jobs_count_until_their_limits_and_jobs_that_start_now_respect_it() -> None:
    site = Site()
    site.step(0, JobSubmitted(0, described("all", 32, 100)))
    site.step(1)
    assert "are free for the whole time" in site.reserve(2, 99, nodes=1).reason
    assert made(site.reserve(3, 101, nodes=1, duration=100)).nodes == ("n0",)
    # In the very step in which it is granted, what would run into it is not started.
    site = Site()
    wish = ReservationRequested(0, "q", 50, 100, nodes=8, user="root", operator=True)
    jobs = [JobSubmitted(0, described("a", 4, 51)), JobSubmitted(0, described("b", 4, 50))]
    decisions = site.step(0, wish, *jobs)
    assert [d.job_id for d in decisions if isinstance(d, Start)] == ["b"]


def test_dedicated_jobs_keep_their_processors() -> None:
    site = Site()
    job = described("d", 24, 100, begin_time=HOUR, attributes={"requested_start": HOUR})
    site.step(0, JobSubmitted(0, job))
    assert "dedicated jobs" in site.reserve(1, HOUR - 10, nodes=3, user="root", operator=True).reason
    assert len(made(site.reserve(2, HOUR - 10, nodes=2)).nodes) == 2
    assert len(made(site.reserve(3, HOUR + 100, nodes=3, user="root", operator=True)).nodes) == 3


def test_a_node_that_is_down_is_not_reserved() -> None:
    site = Site()
    site.step(0, NodeDown(0, "n0"))
    assert made(site.reserve(1, HOUR, nodes=1)).nodes == ("n1",)


# ---------------------------------------------------------------------- limits


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"nodes": 3}, "3 nodes asked for, account alice may have 2 in a reservation"),
        ({"nodes": 1, "duration": 43201.0}, "43201 s asked for, account alice may have 43200 s"),
        ({"nodes": 1, "start": 7 * DAY - 10}, "ends more than 604800 s from now"),
        ({"nodes": 1, "start": -100.0}, "100 s in the past"),
        ({"nodes": 1, "beneficiary": "bob"}, "only an operator may reserve for bob"),
        ({"nodes": 1, "account": "physics"}, "alice does not belong to an account 'physics'"),
        ({"nodes": 1, "pool": "other"}, "there is no pool 'other'; expected one of pool"),
        ({}, "expected either nodes or processors"),
        ({"nodes": 1, "processors": 1}, "expected either nodes or processors"),
    ],
)
def test_what_is_beyond_a_limit_is_refused_with_that_reason(more: dict[str, Any], reason: str) -> None:
    site = Site()
    answer = site.reserve(0, more.pop("start", HOUR), more.pop("duration", HOUR), **more)
    assert answer.outcome == "refused" and reason in answer.reason
    assert not site.news and not site.scheduler.state.reservations


def test_the_number_of_reservations_of_an_account_is_limited_until_one_is_over() -> None:
    site = Site(limits={"max_reservations": 2})
    made(site.reserve(0, HOUR, nodes=1))
    second = made(site.reserve(1, HOUR, nodes=1))
    assert site.reserve(2, HOUR, nodes=1).reason == "account alice has 2 reservations, 2 are allowed"
    made(site.reserve(3, HOUR, nodes=1, user="bob"))
    assert site.give_back(4, second.id).outcome == "accepted"
    made(site.reserve(5, HOUR, nodes=1))
    site.step(2 * HOUR, ReservationEnded(2 * HOUR, "r1"))
    made(site.reserve(2 * HOUR + 1, 3 * HOUR, nodes=1))
    assert not site.problems


def test_node_seconds_within_the_window_are_limited() -> None:
    site = Site(limits={"max_node_seconds": 10_000, "max_nodes": 8})
    made(site.reserve(0, HOUR, 3000, nodes=2))
    reason = site.reserve(1, 2 * HOUR, 4001, nodes=1).reason
    assert reason == (
        "4001 node-seconds asked for, account alice has 4000 of 10000 left in the next 604800 s"
    )
    made(site.reserve(2, 2 * HOUR, 4000, nodes=1))


def test_accounts_have_limits_of_their_own_and_operators_none() -> None:
    site = Site(accounts={"physics": {"users": ["alice"], "max_nodes": 4, "max_reservations": 1}})
    made(site.reserve(0, HOUR, nodes=4))
    assert "account physics has 1" in site.reserve(1, HOUR, nodes=1).reason
    assert "account bob may have 2" in site.reserve(2, HOUR, nodes=4, user="bob").reason
    assert made(
        site.reserve(3, HOUR, 13 * HOUR, nodes=4, user="root", operator=True, beneficiary="bob")
    ).users == ("bob",)


# ---------------------------------------------------------------------- keeping and giving back


def test_only_its_user_or_an_operator_gives_a_reservation_back() -> None:
    site = Site()
    name = made(site.reserve(0, HOUR, nodes=1)).id
    assert site.give_back(1, name, "bob").reason == f"reservation {name} belongs to another user"
    assert "no reservation 'r9'" in site.give_back(2, "r9").reason
    assert site.give_back(3, name, "root", operator=True).outcome == "accepted"
    site.step(4)
    assert not site.scheduler.state.reservations
    assert "no reservation" in site.give_back(5, name).reason


def test_what_the_cluster_refuses_is_not_kept() -> None:
    site = Site(limits={"max_reservations": 1})
    site.refusing = "Requested nodes are busy"
    site.reserve(0, HOUR, nodes=1)
    assert set(site.scheduler.state.reservations) == {"r1"}
    site.step(1)
    site.refusing = ""
    assert not site.scheduler.state.reservations
    assert made(site.reserve(2, HOUR, nodes=1)).id == "r2"


def test_a_reservation_that_cannot_be_given_back_stays_its_users() -> None:
    site = Site()
    name = made(site.reserve(0, HOUR, nodes=1)).id
    site.step(1)
    site.refusing = "in use"
    site.give_back(2, name)
    site.step(3)
    site.refusing = ""
    assert site.give_back(4, name).outcome == "accepted"


def test_a_lost_reservation_is_made_again_on_its_nodes() -> None:
    site = Site()
    lost = made(site.reserve(0, HOUR, nodes=2))
    site.step(1)
    (again,) = site.step(2, ReservationEnded(2, lost.id))
    assert isinstance(again, Reserve) and "lost" in again.reason
    assert (again.reservation.id, again.reservation.nodes, again.reservation.end) == (
        lost.id, lost.nodes, lost.end,
    )  # fmt: skip
    assert site.step(3) == [] and not site.problems


def test_one_that_is_lost_in_its_time_is_made_again_for_the_rest_elsewhere_if_need_be() -> None:
    site = Site()
    lost = made(site.reserve(0, HOUR, nodes=1))
    site.step(1)
    gone = ReservationEnded(HOUR + 20, lost.id)
    (again,) = site.step(HOUR + 20, NodeDown(HOUR + 20, "n0"), gone)
    assert isinstance(again, Reserve)
    assert (again.reservation.nodes, again.reservation.start) == (("n1",), HOUR + 20)


def test_one_that_cannot_be_made_again_is_reported_and_tried_later() -> None:
    site = Site(node_cluster(*alike(2, 4)))
    lost = made(site.reserve(0, HOUR, nodes=1))
    site.step(1)
    down = [NodeDown(3, "n0"), NodeDown(3, "n1")]
    assert site.step(3, *down, ReservationEnded(3, lost.id)) == []
    assert ["cannot be made again" in text for text in site.problems] == [True]
    assert site.step(4) == [] and len(site.problems) == 1
    assert site.scheduler.next_wakeup() == 303
    site.step(303)
    assert len(site.problems) == 2


def test_a_refused_remaking_is_reported_too() -> None:
    site = Site()
    lost = made(site.reserve(0, HOUR, nodes=1))
    site.step(1)
    site.refusing = "busy"
    assert len(site.step(2, ReservationEnded(2, lost.id))) == 1
    site.refusing = ""
    assert site.step(3) == []
    assert ["busy" in text for text in site.problems] == [True]
    assert isinstance(site.step(400)[0], Reserve)


def test_after_a_restart_they_are_known_and_what_is_missing_is_made_again() -> None:
    site = Site()
    first, second = made(site.reserve(0, HOUR, nodes=1)), made(site.reserve(1, HOUR, nodes=1))
    site.step(2)
    cluster = node_cluster(*alike(8, 4), reservations=(first,))
    later = Site(cluster, saved=site.scheduler.checkpoint()["reservations"])
    (again,) = later.step(10)
    assert isinstance(again, Reserve) and again.reservation.id == second.id
    assert later.give_back(11, first.id).outcome == "accepted"
    assert made(later.reserve(12, HOUR, nodes=1)).id == "r3"


def test_what_was_decided_just_before_a_crash_and_not_made_is_forgotten() -> None:
    site = Site()
    made(site.reserve(0, HOUR, nodes=1))
    # Before the cluster said so.
    later = Site(saved=site.scheduler.checkpoint()["reservations"])
    assert later.step(10) == []
    assert later.scheduler.checkpoint()["reservations"]["kept"] == []


def test_what_was_made_just_before_a_crash_is_kept() -> None:
    site = Site()
    first = made(site.reserve(0, HOUR, nodes=1))
    cluster = node_cluster(*alike(8, 4), reservations=(first,))
    later = Site(cluster, saved=site.scheduler.checkpoint()["reservations"])
    assert later.step(10) == []
    (again,) = later.step(11, ReservationEnded(11, first.id))
    assert isinstance(again, Reserve)


def test_what_a_plugin_forbids_is_not_kept() -> None:
    class Closed:
        @hookimpl
        def veto(self, decision: Decision) -> str | None:
            return "closed" if isinstance(decision, Reserve) else None

    site = Site(more=[Closed()])
    site.step(0, ReservationRequested(0, "q", HOUR, HOUR, nodes=1, user="alice"))
    assert not site.scheduler.state.reservations
    assert site.step(1) == [] and site.scheduler.checkpoint()["reservations"]["kept"] == []


def test_what_is_over_is_forgotten_and_not_made_again() -> None:
    site = Site()
    name = made(site.reserve(0, HOUR, nodes=1)).id
    site.step(1)
    assert site.step(2 * HOUR, ReservationEnded(2 * HOUR, name)) == []
    assert site.scheduler.checkpoint()["reservations"]["kept"] == []


def test_what_the_cluster_changed_is_taken_as_changed() -> None:
    site = Site()
    ours = made(site.reserve(0, HOUR, nodes=1))
    site.step(1)
    moved = Reservation(ours.id, 2 * HOUR, 3 * HOUR, nodes=("n7",), users=("alice",), ours=True)
    site.step(2, ReservationMade(2, moved))
    (again,) = site.step(3, ReservationEnded(3, ours.id))
    assert isinstance(again, Reserve)
    assert (again.reservation.nodes, again.reservation.start) == (("n7",), 2 * HOUR)


def test_nodes_that_go_down_are_replaced() -> None:
    site = Site()
    made(site.reserve(0, HOUR, nodes=2))
    site.step(1)
    (changed,) = site.step(2, NodeDown(2, "n0"))
    assert isinstance(changed, Reserve)
    assert (changed.reservation.id, changed.reservation.nodes) == ("r1", ("n1", "n2"))
    assert site.step(3) == [] and site.step(1000) == [] and not site.problems


def test_nodes_that_cannot_be_replaced_are_reported() -> None:
    site = Site(node_cluster(*alike(2, 4)), limits={"max_nodes": 2})
    first = made(site.reserve(0, HOUR, nodes=2))
    site.step(1)
    assert site.step(2, NodeDown(2, "n0")) == []
    assert ["has unusable nodes" in text for text in site.problems] == [True]
    assert site.scheduler.state.reservations["r1"].nodes == first.nodes


def test_a_refused_replacement_leaves_the_reservation_as_it_was() -> None:
    site = Site()
    made(site.reserve(0, HOUR, nodes=1))
    site.step(1)
    site.refusing = "in use"
    assert len(site.step(2, NodeDown(2, "n0"))) == 1
    site.refusing = ""
    assert site.step(3) == []
    assert ["in use" in text for text in site.problems] == [True]
    assert site.scheduler.state.reservations["r1"].nodes == ("n0",)
    (again,) = site.step(400)
    assert isinstance(again, Reserve) and again.reservation.nodes == ("n1",)


def test_a_loss_is_mended_at_once_even_after_a_failed_replacement() -> None:
    site = Site(node_cluster(*alike(2, 4)), limits={"max_nodes": 2})
    lost = made(site.reserve(0, HOUR, nodes=2))
    site.step(1)
    site.step(2, NodeDown(2, "n0"))
    site.step(3, NodeUp(3, alike(1, 4, pools=("pool",))[0]))
    (again,) = site.step(4, ReservationEnded(4, lost.id))
    assert isinstance(again, Reserve) and again.reservation.nodes == ("n0", "n1")


# ---------------------------------------------------------------------- pools that share nodes


def shared(*requested: tuple[str, int]) -> Site:
    """Pool a has n0 and n1, pool b all four nodes; jobs of these pools and sizes start after an hour."""
    names = [("a", "b"), ("a", "b"), ("b",), ("b",)]
    nodes = (NodeDescription(f"n{at}", 4, pools=pools) for at, pools in enumerate(names))
    site = Site(node_cluster(*nodes, pools=("a", "b")), limits={"max_nodes": 4})
    attributes = {"requested_start": HOUR}
    for at, (pool, size) in enumerate(requested):
        job = described(f"d{at}", size, 100, pool=pool, begin_time=HOUR, attributes=attributes)
        site.step(0, JobSubmitted(0, job))
    return site


@pytest.mark.parametrize(
    ("requested", "pool", "nodes"),
    [
        # What the other pool has beside it is of no use to a dedicated job of pool a.
        ([("a", 8)], "a", None),
        ([("a", 8)], "b", ("n2", "n3")),
        ([("a", 4)], "b", ("n0", "n2")),
        # One of pool b may come to be on pool a's nodes.
        ([("b", 8)], "a", None),
        ([("b", 4)], "a", ("n0",)),
        ([], "a", ("n0", "n1")),
    ],
)
def test_a_reservation_leaves_each_pool_what_its_dedicated_jobs_need(
    requested: list[tuple[str, int]], pool: str, nodes: tuple[str, ...] | None
) -> None:
    answer = shared(*requested).reserve(1, HOUR, pool=pool, nodes=len(nodes) if nodes else 1)
    if nodes is None:
        assert answer.reason == "the reservation would take processors that dedicated jobs need at that time"
    else:
        assert made(answer).nodes == nodes
