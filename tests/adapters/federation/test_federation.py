"""Several clusters as one: merged, routed, and none held up by another."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from building import alike, described, plugged
from directory_stores import DATA, Stores
from hypothesis import given, settings
from hypothesis import strategies as st
from waiting import HANG, bound, until

from headway import decisions as d
from headway import events as ev
from headway.adapter import Check, ClusterAdapter, KnownReplica, Outage, Outcome
from headway.engine import Engine
from headway.errors import Failure, StateError, UserError
from headway.model import (
    ClusterDescription,
    JobDescription,
    NodeDescription,
    PoolDescription,
    Request,
    Reservation,
    Site,
    Sites,
)
from headway.model.modes import Mode
from headway.scheduler import Scheduler
from headway.state import State
from headway_adapters.federation import Federation
from headway_plugins.placement.first_fit import FirstFit
from headway_plugins.policies.easy import Easy

ABLE = frozenset({d.Start, d.Kill, d.Hold, d.SwapTiers, d.PowerDown, d.Reserve, d.Unreserve, d.Migrate})
CLUSTER = ClusterDescription(
    "local", (PoolDescription("batch"), PoolDescription("gpu")), alike(2, 4, pools=("batch",))
)


class Pretended(ClusterAdapter):
    """A cluster that tells what a test lets it tell, and remembers what it was asked."""

    def __init__(
        self, able: frozenset[type[d.Decision]] = ABLE, *, description: ClusterDescription = CLUSTER
    ):
        self.capabilities = able
        self.description = description
        #: Raised by describe as long as it is there.
        self.silent: Exception | None = None
        self.applied: list[d.Decision] = []
        self.threads: set[int] = set()
        self.hang = threading.Event()
        self.hang.set()
        self.answer: Callable[[d.Decision], Outcome] = lambda decision: Outcome(True)
        self.starts_run = False
        self.closed = False
        self.tiers: dict[str, str] = {}
        self.woken = 0
        self._batches: list[tuple[float, list[ev.Event]] | Exception | None] = []
        self._changed = threading.Condition()

    def tell(self, now: float, *events: ev.Event) -> None:
        self._put((now, list(events)))

    def end(self) -> None:
        self._put(None)

    def fail(self, error: Exception) -> None:
        self._put(error)

    def _put(self, what: Any) -> None:
        with self._changed:
            self._batches.append(what)
            self._changed.notify_all()

    def describe(self) -> ClusterDescription:
        self.threads.add(threading.get_ident())
        self.hang.wait(HANG)
        if self.silent is not None:
            raise self.silent
        return self.description

    def wait(self, deadline: float | None) -> tuple[float, Sequence[ev.Event]] | None:
        self.threads.add(threading.get_ident())
        with self._changed:
            while not self._batches and not self.woken:
                self._changed.wait()
            if self._batches:
                batch = self._batches.pop(0)
                if isinstance(batch, Exception):
                    raise batch
                return batch
            self.woken = 0
            return 0.0, []

    def apply(self, now: float, decisions: Sequence[d.Decision]) -> Sequence[Outcome]:
        self.threads.add(threading.get_ident())
        self.hang.wait(HANG)
        self.applied += decisions
        if self.starts_run:
            self.tell(
                now, *(ev.JobStarted(now, x.job_id, x.placement) for x in decisions if isinstance(x, d.Start))
            )
        return [self.answer(decision) for decision in decisions]

    def tiers_before(self, tiers: Mapping[str, str]) -> None:
        self.tiers = dict(tiers)

    def check(self) -> list[Check]:
        return [Check("connection", True, "fine")]

    def wake(self) -> None:
        with self._changed:
            self.woken += 1
            self._changed.notify_all()

    def close(self) -> None:
        self.closed = True
        self.hang.set()


def job(name: str, submit: float = 0, processors: int = 1, pool: str = "batch") -> ev.JobSubmitted:
    return ev.JobSubmitted(submit, JobDescription(name, submit, Request(processors, 60), pool=pool))


Made = Callable[..., Federation]


@pytest.fixture
def federation() -> Iterator[Made]:
    made: list[Federation] = []

    def make(members: dict[str, ClusterAdapter], *, patience: float = 5.0, clock: Any = None) -> Federation:
        made.append(Federation(members, patience=patience, clock=clock or (lambda: 0.0)))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def a() -> Pretended:
    return Pretended()


@pytest.fixture
def b() -> Pretended:
    return Pretended()


def drain(one: Federation, seconds: float = 0.3) -> list[ev.Event]:
    """All that is told until it has been quiet for a while."""
    found: list[ev.Event] = []
    over = threading.Event()

    def wake() -> None:
        over.set()
        one.wake()

    threading.Timer(seconds, wake).start()
    while True:
        moment = one.wait(None)
        assert moment is not None
        found += moment[1]
        if over.is_set():
            return found


# ---------------------------------------------------------------------- what is told


def test_a_calendar_opens_and_closes_the_pools_of_its_site(a: Pretended, b: Pretended) -> None:
    now = [4 * 86400.0 + 3590.0]
    sites = Sites(
        (Site("a", ("a:batch", "a:gpu"), calendar=((3600, 7200),)), Site("b", ("b:batch", "b:gpu")))
    )
    with Federation({"a": a, "b": b}, clock=lambda: now[0], sites=lambda pools: sites) as one:
        described = one.describe()
        assert {pool.name: pool.open for pool in described.pools} == {
            "a:batch": False, "a:gpu": False, "b:batch": True, "b:gpu": True,
        }  # fmt: skip
        assert described.sites is sites
        for pretended in (a, b):
            pretended.tell(now[0])
        assert one.wait(None) == (now[0], [])
        # What the cluster says of a pool meanwhile does not open it.
        a.tell(now[0], ev.PoolChanged(now[0], PoolDescription("gpu", open=True)))
        moment = one.wait(None)
        assert moment is not None and [event.pool.open for event in moment[1]] == [False]
        now[0] += 10.0
        moment = one.wait(None)
        assert moment is not None
        assert {(event.pool.name, event.pool.open) for event in moment[1]} == {
            ("a:batch", True),
            ("a:gpu", True),
        }


def test_datasets_are_copied_beside_the_clusters(a: Pretended, b: Pretended, tmp_path: Path) -> None:
    stores = Stores(tmp_path)
    with Federation(
        {"a": a, "b": b}, clock=lambda: 1.0, sites=lambda pools: stores.sites(), transfers=stores.transfers()
    ) as one:
        assert {d.Copy, d.Drop, d.Start} <= one.capabilities
        stores.path("c").write_bytes(DATA)
        one.replicas_before([KnownReplica("era5", "c", "there")])
        one.describe()
        a.tell(1.0)
        b.tell(1.0)
        # The first events have what is there already.
        assert one.wait(None) == (1.0, [ev.DatasetCopied(1.0, "era5", "c")])
        copy, unknown = d.Copy("era5", "b", "a"), d.Copy("other", "b", "a")
        outcomes = one.apply(1.0, [copy, unknown])
        assert [outcome.accepted for outcome in outcomes] == [True, False]
        assert a.applied == b.applied == []
        found: list[ev.Event] = []
        while not any(isinstance(event, ev.DatasetCopied) for event in found):
            found += (one.wait(None) or (0, []))[1]
        assert ev.DecisionFailed(1.0, unknown, "there is no dataset 'other'") in found
        assert ev.DatasetCopying(1.0, "era5", "b", "a") in found


def test_a_cluster_that_leaves_does_not_end_the_copies_of_its_site(
    a: Pretended, b: Pretended, tmp_path: Path
) -> None:
    stores = Stores(tmp_path)
    stores.breaks("copy", "half")
    with Federation(
        {"a": a, "b": b}, clock=lambda: 1.0, sites=lambda pools: stores.sites(), transfers=stores.transfers()
    ) as one:
        one.describe()
        a.tell(1.0)
        b.tell(1.0)
        one.wait(None)
        one.apply(1.0, [d.Copy("era5", "b", "a")])
        stores.reached("copy-half")
        b.end()
        stores.go_on()
        found: list[ev.Event] = []
        while not any(isinstance(event, ev.DatasetCopied) for event in found):
            found += (one.wait(None) or (0, []))[1]


def test_without_commands_a_federation_copies_nothing(a: Pretended, b: Pretended, tmp_path: Path) -> None:
    stores = Stores(tmp_path)
    with Federation({"a": a, "b": b}, clock=lambda: 1.0, sites=lambda pools: stores.sites()) as one:
        assert not {d.Copy, d.Drop} & one.capabilities
        one.describe()
        assert "expected transfers.copy" in one.apply(1.0, [d.Copy("era5", "b", "a")])[0].message


def test_each_cluster_is_told_the_tiers_of_its_own_jobs(federation: Made, a: Pretended, b: Pretended) -> None:
    federation({"a": a, "b": b}).tiers_before({"a:1": "background", "b:1": "foreground", "b:2": "background"})
    assert a.tiers == {"1": "background"}
    assert b.tiers == {"1": "foreground", "2": "background"}


def test_each_cluster_that_shows_planned_starts_is_told_its_own(
    federation: Made, a: Pretended, b: Pretended, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not federation({"a": a, "b": b}).shows_starts
    shown: list[tuple[str, list[tuple[str, float]]]] = []
    for name, one in (("a", a), ("b", b)):
        monkeypatch.setattr(
            one, "show_starts", lambda planned, name=name: shown.append((name, list(planned)))
        )
    a.shows_starts = True
    both = federation({"a": a, "b": b})
    assert both.shows_starts
    both.show_starts([("a:1", 50.0), ("b:1", 60.0), ("a:2", 70.0)])
    assert shown == [("a", [("1", 50.0), ("2", 70.0)])]


def test_the_clusters_are_described_as_one(federation: Made, a: Pretended, b: Pretended) -> None:
    b.description = ClusterDescription(
        "other",
        (PoolDescription("batch", 8),),
        (),
        (Reservation("maint", 0, 10, pool="batch", processors=2),),
    )
    whole = federation({"siteA": a, "siteB": b}).describe()
    assert whole.name == "siteA+siteB"
    assert [pool.name for pool in whole.pools] == ["siteA:batch", "siteA:gpu", "siteB:batch"]
    assert [(n.name, n.pools) for n in whole.nodes] == [
        ("siteA:n0", ("siteA:batch",)),
        ("siteA:n1", ("siteA:batch",)),
    ]
    assert [(r.id, r.pool) for r in whole.reservations] == [("siteB:maint", "siteB:batch")]


def test_a_pool_says_what_other_clusters_can_carry_out_and_its_own_cannot(
    federation: Made, a: Pretended, b: Pretended
) -> None:
    b.capabilities = ABLE - {d.Reserve, d.Unreserve}
    b.description = msgspec.structs.replace(CLUSTER, pools=CLUSTER.pools[:1])
    b.silent = Failure("no")
    one = federation({"siteA": a, "siteB": b})
    assert [pool.lacks for pool in one.describe().pools] == [(), ()]
    b.silent = None
    (joined,) = (event.pool for event in drain(one, 4.0) if isinstance(event, ev.PoolChanged))
    assert (joined.name, joined.lacks) == ("siteB:batch", ("Reserve", "Unreserve"))
    b.tell(1.0, ev.PoolChanged(1.0, PoolDescription("batch", open=False)))
    (changed,) = (event.pool for event in drain(one) if isinstance(event, ev.PoolChanged))
    assert (changed.open, changed.lacks) == (False, ("Reserve", "Unreserve"))


@pytest.mark.parametrize("flag", ["shares_out", "moves_take_time"])
@pytest.mark.parametrize("of", ["a", "b", "neither"])
def test_what_one_cluster_says_of_layouts_and_moves_holds_for_the_whole(
    federation: Made, a: Pretended, b: Pretended, flag: str, of: str
) -> None:
    for name, one in (("a", a), ("b", b)):
        one.description = msgspec.structs.replace(CLUSTER, **{flag: name == of})
    whole = federation({"a": a, "b": b}).describe()
    other = {"shares_out": "moves_take_time", "moves_take_time": "shares_out"}[flag]
    assert (getattr(whole, flag), getattr(whole, other)) == (of != "neither", False)


def test_nobody_takes_a_place_in_a_federation_that_a_move_has_not_left(
    federation: Made, a: Pretended, b: Pretended
) -> None:
    b.description = msgspec.structs.replace(CLUSTER, moves_take_time=True)
    made = State(federation({"a": a, "b": b}).describe())
    made.now = 0.0
    there, elsewhere = (("b:n0", 4),), (("b:n1", 4),)
    made.apply([job("b:1", processors=4, pool="b:batch"), job("b:2", processors=4, pool="b:batch")])
    made.apply([ev.JobStarted(0, "b:1", there)])
    made.carry(d.Migrate("b:1", elsewhere))
    with pytest.raises(StateError, match="job b:1 is still there"):
        made.begin(made.jobs["b:2"], there, "foreground", None)
    made.apply([ev.JobMigrated(1, "b:1", elsewhere, "foreground")])
    made.begin(made.jobs["b:2"], there, "foreground", None)


def test_the_first_wait_tells_every_clusters_jobs_in_the_order_of_time(
    federation: Made, a: Pretended, b: Pretended
) -> None:
    one = federation({"siteA": a, "siteB": b})
    one.describe()
    a.tell(100, job("1", 10), job("2", 30))
    threading.Timer(0.3, lambda: b.tell(101, job("1", 20), job("2", 5))).start()
    now, events = one.wait(0.0) or (0, [])
    assert now == 101
    assert [(e.time, e.job.id) for e in events if isinstance(e, ev.JobSubmitted)] == [
        (5, "siteB:2"), (10, "siteA:1"), (20, "siteB:1"), (30, "siteA:2"),
    ]  # fmt: skip


def test_time_does_not_go_back_when_clocks_differ(federation: Made, a: Pretended, b: Pretended) -> None:
    one = federation({"siteA": a, "siteB": b})
    one.describe()
    a.tell(100)
    b.tell(90)
    times = [one.wait(None)[0]]  # type: ignore[index]
    b.tell(95, job("1"))
    times.append(one.wait(None)[0])  # type: ignore[index]
    assert times == [100, 100]


def test_a_deadline_and_a_wake_end_the_wait(federation: Made, a: Pretended) -> None:
    one = federation({"siteA": a}, clock=time.time)
    one.describe()
    a.tell(0)
    one.wait(None)
    began = time.time()
    now, events = one.wait(began + 0.3) or (0, [1])
    assert not events and 0.3 <= now - began < 3
    threading.Timer(0.2, one.wake).start()
    assert not one.wait(None)[1]  # type: ignore[index]


def test_it_ends_when_all_have_ended(federation: Made, a: Pretended, b: Pretended) -> None:
    one = federation({"siteA": a, "siteB": b})
    one.describe()
    a.tell(1, job("1"))
    a.end()
    b.tell(2)
    b.end()
    told = []
    while (moment := one.wait(None)) is not None:
        told += moment[1]
    assert len(told) == 1
    assert not one.apply(3, [d.Kill("siteA:1")])[0].accepted


def test_each_adapter_lives_on_one_thread(federation: Made, a: Pretended, b: Pretended) -> None:
    one = federation({"siteA": a, "siteB": b})
    one.describe()
    a.tell(1, job("1"))
    b.tell(1)
    one.wait(None)
    one.apply(2, [d.Kill("siteA:1"), d.Kill("siteB:1")])
    one.close()
    assert len(a.threads) == len(b.threads) == 1 and a.threads != b.threads
    assert a.closed and b.closed


BATCHES = st.lists(
    st.tuples(st.sampled_from("AB"), st.lists(st.integers(0, 50), max_size=4)), min_size=1, max_size=8
)


@given(BATCHES)
@settings(max_examples=25, deadline=None)
def test_no_event_is_lost_or_told_twice(batches: list[tuple[str, list[int]]]) -> None:
    members = {"A": Pretended(), "B": Pretended()}
    with Federation(members, clock=lambda: 0.0) as one:
        one.describe()
        expected: list[str] = []
        for number, (name, times) in enumerate(batches):
            jobs = [job(f"{number}.{at}", time) for at, time in enumerate(times)]
            members[name].tell(100 + number, *jobs)
            expected += [f"{name}:{e.job.id}" for e in jobs]
        for member in members.values():
            member.end()
        told: list[str] = []
        last = 0.0
        while (moment := one.wait(None)) is not None:
            now, events = moment
            assert now >= last and [e.time for e in events] == sorted(e.time for e in events)
            last = now
            told += [e.job.id for e in events if isinstance(e, ev.JobSubmitted)]
    assert sorted(told) == sorted(expected)


# ---------------------------------------------------------------------- what is ordered


def begun(one: Federation, *members: Pretended) -> Federation:
    one.describe()
    for member in members:
        member.tell(1)
    one.wait(None)
    return one


def test_decisions_go_to_the_cluster_that_they_are_about(
    federation: Made, a: Pretended, b: Pretended
) -> None:
    one = begun(federation({"siteA": a, "siteB": b}), a, b)
    b.answer = lambda decision: Outcome(False, "busy")
    outcomes = one.apply(
        2,
        [
            d.Start("siteA:1", (("siteA:n0", 4),), "first"), d.Kill("siteB:1"), d.Hold("siteA:2"),
            d.Reserve(Reservation("r1", 5, 9, pool="siteA:batch", nodes=("siteA:n1",), ours=True)),
            d.Unreserve("r1"), d.Unreserve("siteB:maint"), d.SwapTiers("siteA:1", ""),
        ],
    )  # fmt: skip
    assert a.applied == [
        d.Start("1", (("n0", 4),), "first"), d.Hold("2"),
        d.Reserve(Reservation("r1", 5, 9, pool="batch", nodes=("n1",), ours=True)), d.Unreserve("r1"),
        d.SwapTiers("1", ""),
    ]  # fmt: skip
    assert b.applied == [d.Kill("1"), d.Unreserve("maint")]
    assert [outcome.accepted for outcome in outcomes] == [True, False, True, True, True, False, True]
    assert outcomes[1].message == "busy"


def test_nodes_of_several_clusters_are_shared_out(federation: Made, a: Pretended, b: Pretended) -> None:
    one = begun(federation({"siteA": a, "siteB": b}), a, b)
    b.answer = lambda decision: Outcome(False, "no such node")
    (outcome,) = one.apply(2, [d.PowerDown(("siteA:n0", "siteB:n9", "siteA:n1"), "idle")])
    assert a.applied == [d.PowerDown(("n0", "n1"), "idle")]
    assert b.applied == [d.PowerDown(("n9",), "idle")]
    assert outcome == Outcome(False, "no such node")


@pytest.mark.parametrize(
    ("decision", "said"),
    [
        (d.Checkpoint("siteA:1"), "cluster siteA cannot carry out Checkpoint"),
        (d.Start("1"), "expected a name that begins with a cluster's (siteA, siteB), found ''"),
        (d.Start("siteC:1"), "found 'siteC'"),
        (d.Migrate("siteA:1", (("siteB:n0", 1),)), "jobs and nodes stay in their cluster"),
        (d.SwapTiers("siteA:1", "siteB:1"), "jobs and nodes stay in their cluster"),
        (d.Unreserve("r77"), "found ''"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, d.Decision) else "",
)
def test_what_no_cluster_can_do_is_refused_and_told(
    federation: Made, a: Pretended, b: Pretended, decision: Any, said: str
) -> None:
    b.capabilities = ABLE | {d.Checkpoint}
    one = begun(federation({"siteA": a, "siteB": b}), a, b)
    assert d.Checkpoint in one.capabilities
    outcomes = one.apply(2, [decision, d.Kill("siteB:1")])
    assert not outcomes[0].accepted and said in outcomes[0].message
    assert outcomes[1].accepted and b.applied == [d.Kill("1")] and not a.applied
    now, events = one.wait(None) or (0, [])
    (event,) = events
    assert isinstance(event, ev.DecisionFailed)
    assert (event.decision, event.message, event.time <= now) == (decision, outcomes[0].message, True)


def test_a_refusal_of_a_cluster_comes_back_in_everybodys_names(federation: Made, a: Pretended) -> None:
    one = begun(federation({"siteA": a}), a)
    start = d.Start("siteA:1", (("siteA:n0", 1),))
    one.apply(2, [start])
    a.tell(3, ev.DecisionFailed(3, a.applied[0], "no"))
    assert (one.wait(None) or (0, []))[1] == [ev.DecisionFailed(3, start, "no")]


def a_decision(cluster: str, number: int, kind: int) -> d.Decision:
    name = f"{cluster}:{number}"
    return [
        d.Start(name, ((f"{cluster}:n{number}", 1),)), d.Kill(name), d.Hold(name, "why"),
        d.PowerDown((f"{cluster}:n{number}",)), d.Unreserve(f"{cluster}:r{number}"),
    ][kind]  # fmt: skip


@given(st.lists(st.tuples(st.sampled_from("ABX"), st.integers(0, 9), st.integers(0, 4)), max_size=20))
@settings(max_examples=40, deadline=None)
def test_routing_loses_nothing(wanted: list[tuple[str, int, int]]) -> None:
    """Every decision reaches its cluster once, in order, or is refused; outcomes stand in their places."""
    members = {"A": Pretended(), "B": Pretended()}
    for name, member in members.items():
        member.answer = lambda decision, name=name: Outcome(True, f"{name} {decision}")
    with Federation(members, clock=lambda: 0.0) as one:
        begun(one, *members.values())
        decisions = [a_decision(*each) for each in wanted]
        outcomes = one.apply(2, decisions)
        assert len(outcomes) == len(decisions)
        for name, member in members.items():
            mine = [x for (cluster, _, _), x in zip(wanted, decisions, strict=True) if cluster == name]
            assert [one._names.outward(name).renamed(x) for x in member.applied] == mine
            places = [at for at, (cluster, _, _) in enumerate(wanted) if cluster == name]
            assert [outcomes[at].message for at in places] == [f"{name} {x}" for x in member.applied]
        strangers = [at for at, (cluster, _, _) in enumerate(wanted) if cluster == "X"]
        assert not any(outcomes[at].accepted for at in strangers)
        if strangers:
            events = (one.wait(None) or (0, []))[1]
            assert [e.decision for e in events if isinstance(e, ev.DecisionFailed)] == [
                decisions[at] for at in strangers
            ]


# ---------------------------------------------------------------------- outages


def test_a_cluster_that_hangs_holds_up_nobody(federation: Made, a: Pretended, b: Pretended) -> None:
    one = begun(federation({"siteA": a, "siteB": b}, patience=0.5), a, b)
    b.hang.clear()
    began = time.monotonic()
    outcomes = one.apply(2, [d.Kill("siteB:1"), d.Kill("siteA:1")])
    assert time.monotonic() - began < bound(3)
    assert a.applied == [d.Kill("1")] and not b.applied
    assert outcomes[1] == Outcome(True)
    # Not refused: it may happen yet, and the cluster's events tell.
    assert outcomes[0].accepted and "siteB has not answered" in outcomes[0].message
    a.tell(3, job("2"))
    assert [e.job.id for e in drain(one) if isinstance(e, ev.JobSubmitted)] == ["siteA:2"]
    b.hang.set()
    until(lambda: b.applied == [d.Kill("1")])
    b.tell(4, job("3"))
    assert [e.job.id for e in drain(one) if isinstance(e, ev.JobSubmitted)] == ["siteB:3"]


def test_one_that_is_silent_at_the_start_joins_when_it_answers(
    federation: Made, a: Pretended, b: Pretended, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headway_adapters.federation.member._FIRST_PAUSE", 0.1)
    b.silent = Failure("connection refused")
    b.description = ClusterDescription(
        "b",
        (PoolDescription("batch"),),
        alike(1, 8, pools=("batch",)),
        (Reservation("maint", 5, 9, nodes=("n0",)),),
    )
    one = federation({"siteA": a, "siteB": b})
    assert [pool.name for pool in one.describe().pools] == ["siteA:batch", "siteA:gpu"]
    (outage,) = one.outages()
    assert (outage.cluster, outage.message) == ("siteB", "connection refused")
    a.tell(1, job("1"))
    _, events = one.wait(None) or (0, [])
    assert [event for event in events if not isinstance(event, ev.JobSubmitted)] == [
        ev.ClusterSilent(outage.since, "siteB", "connection refused")
    ]
    assert "has not answered yet" in one.apply(2, [d.Kill("siteB:1")])[0].message
    one.wait(None)
    b.tell(7, job("7", 3))
    b.silent = None
    _, events = one.wait(None) or (0, [])
    assert [type(event) for event in events] == [ev.PoolChanged, ev.NodeUp, ev.ReservationMade]
    assert events[0].pool.name == "siteB:batch" and events[1].node.name == "siteB:n0"  # type: ignore[attr-defined]
    # Its jobs come when their pool is there, and only then it is not silent any more.
    _, events = one.wait(None) or (0, [])
    assert [event for event in events if isinstance(event, ev.ClusterAnswers)] == [
        ev.ClusterAnswers(7, "siteB")
    ]
    assert [e.job.id for e in events if isinstance(e, ev.JobSubmitted)] == ["siteB:7"]
    assert not one.outages()
    assert one.apply(8, [d.Kill("siteB:7")])[0].accepted


def test_one_that_hangs_at_the_start_joins_later(federation: Made, a: Pretended, b: Pretended) -> None:
    b.hang.clear()
    one = federation({"siteA": a, "siteB": b}, patience=0.3)
    assert len(one.describe().pools) == 2
    assert [(outage.cluster, outage.message) for outage in one.outages()] == [("siteB", "no answer yet")]
    b.hang.set()
    a.tell(1)
    assert any(isinstance(event, ev.PoolChanged) for event in drain(one))


def test_that_all_are_silent_is_a_failure_and_may_be_tried_again(
    federation: Made, a: Pretended, b: Pretended, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headway_adapters.federation.member._FIRST_PAUSE", 0.1)
    a.silent, b.silent = Failure("refused"), Failure("no route")
    one = federation({"siteA": a, "siteB": b})
    with pytest.raises(Failure, match="no cluster answers: siteA: refused; siteB: no route"):
        one.describe()
    b.silent = None

    def answers() -> bool:
        try:
            return [pool.name for pool in one.describe().pools] == ["siteB:batch", "siteB:gpu"]
        except Failure:
            return False

    until(answers)
    b.tell(1, job("1"))
    assert {type(event) for event in drain(one)} == {ev.JobSubmitted, ev.ClusterSilent}


def test_a_users_mistake_is_named_with_its_cluster(federation: Made, a: Pretended, b: Pretended) -> None:
    b.silent = UserError("no partition 'btach'")
    with pytest.raises(UserError, match=r"clusters\.siteB: no partition 'btach'"):
        federation({"siteA": a, "siteB": b}).describe()


def test_outages_of_the_adapters_are_told_by_cluster(
    federation: Made, a: Pretended, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = begun(federation({"siteA": a}), a)
    monkeypatch.setattr(a, "outages", lambda: [Outage("slurm", 5.0, "no route")])
    assert one.outages() == [Outage("siteA", 5.0, "no route")]


def test_an_adapter_that_gives_up_is_asked_again(
    federation: Made, a: Pretended, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headway_adapters.federation.member._FIRST_PAUSE", 0.05)
    one = begun(federation({"siteA": a}), a)
    a.fail(Failure("gone"))
    a.fail(Failure("gone"))
    a.tell(5, job("1"))
    told = {type(event): event for event in drain(one)}
    assert set(told) == {ev.ClusterSilent, ev.ClusterAnswers, ev.JobSubmitted}
    silent = told[ev.ClusterSilent]
    assert isinstance(silent, ev.ClusterSilent) and (silent.cluster, silent.reason) == ("siteA", "gone")
    assert told[ev.ClusterAnswers] == ev.ClusterAnswers(5, "siteA")


def test_an_outage_of_a_cluster_is_told_under_its_name(federation: Made, a: Pretended, b: Pretended) -> None:
    one = begun(federation({"siteA": a, "siteB": b}), a, b)
    b.tell(5, ev.ClusterSilent(4, reason="no route"))
    assert drain(one) == [ev.ClusterSilent(4, "siteB", "no route")]
    b.tell(9, ev.ClusterAnswers(9))
    assert drain(one) == [ev.ClusterAnswers(9, "siteB")]


def test_a_mistake_in_an_adapter_is_not_hidden(federation: Made, a: Pretended, b: Pretended) -> None:
    one = begun(federation({"siteA": a, "siteB": b}), a, b)
    b.fail(ZeroDivisionError("oops"))
    with pytest.raises(ZeroDivisionError):
        one.wait(None)


def test_closing_does_not_wait_for_a_cluster_that_hangs(
    a: Pretended, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headway_adapters.federation.adapter._LEAVE", 0.3)
    a.hang.clear()
    one = Federation({"siteA": a}, patience=0.1)
    with pytest.raises(Failure):
        one.describe()
    began = time.monotonic()
    one.close()
    assert time.monotonic() - began < bound(3)
    a.hang.set()
    until(lambda: a.closed)


def test_without_a_description_it_is_checked_and_closed(a: Pretended, b: Pretended) -> None:
    with Federation({"siteA": a, "siteB": b}) as one:
        assert [check.subject for check in one.check()] == ["siteA: connection", "siteB: connection"]
    assert a.closed and b.closed


# ---------------------------------------------------------------------- with a scheduler


def test_one_daemon_schedules_all_and_goes_on_when_one_joins_late(
    federation: Made, a: Pretended, b: Pretended, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headway_adapters.federation.member._FIRST_PAUSE", 0.1)
    a.starts_run = b.starts_run = True
    b.silent = Failure("refused")
    b.description = ClusterDescription(
        "b", (PoolDescription("batch"),), (NodeDescription("n0", 8, pools=("batch",)),)
    )
    one = federation({"siteA": a, "siteB": b}, clock=time.time)
    scheduler = Scheduler(one.describe(), plugged(Easy(), FirstFit()), capabilities=one.capabilities)
    engine = Engine(one, scheduler, mode=Mode.DRIVE)
    now = time.time()
    a.tell(now, *(ev.JobSubmitted(now, described(str(n), 4, 50, now, pool="batch")) for n in range(3)))
    runner = threading.Thread(target=engine.run)
    runner.start()
    try:
        until(lambda: len(a.applied) == 2)
        b.tell(now, ev.JobSubmitted(now, described("1", 8, 50, now, pool="batch")))
        b.silent = None
        until(lambda: b.applied == [d.Start("1", (("n0", 8),), "first in the queue")])
        a.tell(time.time(), ev.JobEnded(time.time(), "0"))
        until(lambda: len(a.applied) == 3)
        assert {x.job_id for x in a.applied if isinstance(x, d.Start)} == {"0", "1", "2"}
    finally:
        engine.stop()
        runner.join(HANG)
    assert not runner.is_alive() and not scheduler.problems
