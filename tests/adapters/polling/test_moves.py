"""Moves on a batch system: what is told of them, and what is left when a daemon is killed at each step.

``System`` is a batch system of one job, whose application saves itself when it is signalled.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from building import described
from waiting import until

from headway import decisions as d
from headway import events as ev
from headway.adapter import Outcome
from headway.errors import UserError
from headway.model import NodeDescription, Placement, PoolDescription
from headway_adapters.polling import Launch, Look, PollingAdapter
from headway_adapters.polling.snapshot import Snapshot, SnapshotJob
from headway_adapters.transport import Result
from headway_plugins.migration.checkpoint_signal import CheckpointSignal, SignalOptions
from headway_plugins.migration.requeue import RequeueMove
from headway_plugins.migration.suspend_resume import SuspendResume

SOURCE, TARGET = (("n1", 2),), (("n2", 2),)
MOVE = d.Migrate("7", TARGET, "to try it")


class Quiet:
    def info(self, *args: Any, **more: Any) -> None: ...

    debug = warning = error = info


@dataclass
class System:
    """The batch system, which outlives every daemon."""

    images: Path
    state: str = "running"
    placement: Placement = SOURCE
    restarts: int = 0
    begun: int = 1
    #: When the present execution was first seen, and which that is.
    since: float = 0.0
    seen: int = 0
    saves: bool = True
    #: Orders that are refused, by their name.
    refuses: set[str] = field(default_factory=set)
    #: Starts on these nodes are accepted and never happen.
    dead: set[str] = field(default_factory=set)
    #: Whether it counts how often a job was requeued.
    counts: bool = True
    #: What a start leads to.
    begins: str = "running"
    #: All that was asked for, in order.
    orders: list[str] = field(default_factory=list)

    def start(self, placement: Placement) -> str:
        nodes = {node for node, _ in placement}
        self.orders.append(f"start {' '.join(sorted(nodes))}")
        if self.state != "pending":
            return f"job is {self.state}"
        if "start" in self.refuses:
            return "refused"
        if not nodes & self.dead:
            self.state, self.placement = self.begins, placement
            self.begun += 1
        return ""

    def order(self, decision: d.Decision) -> str:
        name = type(decision).__name__.lower()
        self.orders.append(name)
        if name in self.refuses:
            return "refused"
        if name == "requeue" and self.state in ("running", "suspended"):
            self.state = "pending"
            self.restarts += self.counts
        elif name == "suspend":
            self.state = "suspended"
        elif name == "resume":
            self.state = "running"
        return ""

    def signal(self) -> None:
        self.orders.append("signal")
        if self.saves:
            (self.images / "7" / "state").write_text("half of it")
            (self.images / "7" / "complete").write_text("")


class Toy(PollingAdapter[None, None]):
    """An adapter of that system."""

    system, title, Options = "toy", "Toy", UserError  # type: ignore[assignment]
    capabilities = frozenset({d.Start, d.Requeue, d.Suspend, d.Resume})

    def __init__(self, system: System) -> None:
        self.there = system
        pace = SimpleNamespace(poll_interval=0.01, confirm_interval=0.01, start_timeout=0.3)
        client = SimpleNamespace(close=lambda: None, change_all=self._change_all)
        super().__init__(client, pace, log=Quiet(), clock=time.time)  # type: ignore[arg-type]

    def _change_all(self, argvs: Any) -> list[Result]:
        self.there.signal()
        return [Result(tuple(argv), 0, b"", b"", 0.0) for argv in argvs]

    def signalling(self, job_id: str, name: str) -> tuple[str, ...]:
        return ("signal", job_id, name)

    def learn(self) -> str:
        return "toy"

    def look(self, before: Snapshot | None) -> Look[None]:
        here = self.there
        now = time.time()
        here.since = here.since if here.seen == here.begun else now
        here.seen = here.begun
        nodes = {f"n{at}": NodeDescription(f"n{at}", 2, pools=("p",)) for at in (1, 2, 3)}
        pools = {"p": PoolDescription("p", 0)}
        runs = here.state in ("starting", "running", "suspended")
        job = SnapshotJob(
            described("7", 2, submit=0.0, pool="p"), here.state, here.placement if runs else (),
            start_time=here.since if runs else None, restarts=here.restarts,
            end_time=now if here.state == "ended" else None,
            outcome="completed" if here.state == "ended" else "",
        )  # fmt: skip
        return Look(Snapshot(now, {"7": job}, nodes, pools))

    def start_all(self, starts: Any) -> Any:
        said = [self.there.start(start.placement) for start in starts]
        return [Launch(Outcome(not one, one)) for one in said]

    def carry_out(self, decision: d.Decision, now: float) -> Outcome:
        said = self.there.order(decision)
        return Outcome(not said, said)


@pytest.fixture
def system(tmp_path: Path) -> System:
    return System(tmp_path)


def adapter(system: System, *handlers: Any) -> Toy:
    """A daemon's adapter, which has seen the job once."""
    toy = Toy(system)
    toy.use_handlers(handlers, frozenset({d.Migrate, d.Checkpoint}))
    toy.describe()
    return toy


def saving(system: System, **options: Any) -> CheckpointSignal:
    options.setdefault("ready", "")
    return CheckpointSignal(SignalOptions(directory=system.images, spare=0, ask=0.01, **options))


def test_a_job_that_moves_out_of_the_background_is_shown_in_it_until_then(system: System) -> None:
    """The batch system knows nothing of tiers: nobody may take it for a promotion on the spot."""
    system.saves = False
    moving = adapter(system, saving(system, timeout=0.5))
    moving.tiers_before({"7": "background"})
    first = moving.wait(None)
    assert first is not None
    told = list(first[1])
    decision = d.Migrate("7", TARGET, "to try it", "foreground")
    assert moving.apply(time.time(), [decision])[0].accepted

    def failed() -> bool:
        news = moving.wait(time.time() + 0.02)
        told.extend(news[1] if news is not None else ())
        return any(isinstance(event, ev.DecisionFailed) for event in told)

    until(failed, "it stays where it is")
    moving.close()
    assert not [event for event in told if isinstance(event, ev.JobTierChanged | ev.JobMigrated)]


def test_a_job_that_is_not_ready_is_not_signalled(system: System) -> None:
    """A signal that a job does not catch yet ends it: so each execution says when it may come."""
    (event,) = moved(system, saving(system, ready="ready"))
    assert isinstance(event, ev.DecisionFailed) and "has not said that it can be signalled" in event.message
    assert system.orders == []
    place = system.images / "7"
    (place / "ready").write_text("")
    os.utime(place / "ready", (1.0, 1.0))
    (event,) = moved(system, saving(system, ready="ready"))
    assert isinstance(event, ev.DecisionFailed) and "is not of this execution" in event.message
    os.utime(place / "ready")
    (event,) = moved(system, saving(system, ready="ready"))
    assert isinstance(event, ev.JobMigrated) and system.orders == ["signal", "requeue", "start n2"]
    # The next execution must say it again.
    assert not (place / "ready").exists()


def test_a_word_of_the_execution_before_does_not_count_for_a_daemon_that_was_killed(system: System) -> None:
    """The batch system restarts it at once: the file is as old as a start may be told wrongly."""
    place = system.images / "7"
    place.mkdir()
    (place / "ready").write_text("")
    system.saves = False
    killed = adapter(system, saving(system, ready="ready"))
    killed.wait(None)
    assert killed.apply(time.time(), [MOVE])[0].accepted

    def signalled() -> bool:
        killed.wait(time.time() + 0.02)
        return "signal" in system.orders

    until(signalled, "it is signalled")
    killed.close()
    system.order(d.Requeue("7", "by hand"))
    system.start(SOURCE)
    known = list(system.orders)
    (event,) = moved(system, saving(system, ready="ready"))
    assert isinstance(event, ev.DecisionFailed) and "is not of this execution" in event.message
    assert system.orders == known


def told_until(toy: Toy, kinds: Any) -> list[ev.Event]:
    """All events until one of ``kinds`` was told."""
    found: list[ev.Event] = []

    def there() -> bool:
        moment = toy.wait(time.time() + 0.05)
        assert moment is not None
        found.extend(moment[1])
        return any(isinstance(event, kinds) for event in found)

    until(there, "the move is over")
    return found


def moved(system: System, *handlers: Any, decision: d.Decision = MOVE) -> list[ev.Event]:
    """What is told of a move from its decision to its end, and in the look after that."""
    with adapter(system, *handlers) as toy:
        toy.wait(None)
        assert toy.apply(time.time(), [decision])[0].accepted
        found = told_until(toy, (ev.JobMigrated, ev.DecisionFailed, ev.JobCheckpointed, ev.JobEnded))
        for _ in range(5):
            moment = toy.wait(time.time() + 0.05)
            assert moment is not None
            found += moment[1]
        return found


def test_a_job_that_moves_is_told_once_where_it_is(system: System) -> None:
    (event,) = moved(system, saving(system))
    assert isinstance(event, ev.JobMigrated)
    assert (event.placement, event.restarted) == (TARGET, False)
    assert event.seconds is not None and event.seconds > 0
    assert system.orders == ["signal", "requeue", "start n2"]
    assert (system.state, system.placement, system.begun) == ("running", TARGET, 2)


def test_one_that_is_seen_on_its_way_only_has_stood_still_too(system: System) -> None:
    system.begins = "starting"
    event = next(one for one in moved(system, saving(system)) if isinstance(one, ev.JobMigrated))
    assert event.seconds is not None and event.seconds > 0


def test_where_nobody_counts_executions_a_move_ends_all_the_same(system: System) -> None:
    system.counts = False
    (event,) = moved(system, saving(system))
    assert isinstance(event, ev.JobMigrated) and event.placement == TARGET


def test_one_that_begins_anew_says_so(system: System) -> None:
    (event,) = moved(system, RequeueMove())
    assert isinstance(event, ev.JobMigrated) and event.restarted
    assert system.orders == ["requeue", "start n2"]


def test_a_job_whose_nodes_stay_stands_still_for_a_moment(system: System) -> None:
    decision = d.Migrate("7", (("n1", 2),), tier="background")
    (event,) = moved(system, RequeueMove(), SuspendResume(), decision=decision)
    assert isinstance(event, ev.JobMigrated) and event.tier == "background"
    assert system.orders == ["suspend", "resume"]


def test_saving_alone(system: System) -> None:
    (event,) = moved(system, saving(system), decision=d.Checkpoint("7"))
    assert isinstance(event, ev.JobCheckpointed)
    assert system.orders == ["signal"] and system.begun == 1


def test_the_first_handler_that_suits_is_taken(system: System) -> None:
    moved(system, saving(system, attribute="saves"), RequeueMove())
    assert system.orders == ["requeue", "start n2"]


def test_a_job_that_does_not_save_itself_runs_on(system: System) -> None:
    system.saves = False
    (event,) = moved(system, saving(system, timeout=0.1))
    assert isinstance(event, ev.DecisionFailed) and "not complete within 0.1 s" in event.message
    assert (system.state, system.begun) == ("running", 1)


def test_a_target_that_does_not_start_it_sends_it_back(system: System) -> None:
    system.dead = {"n2"}
    events = moved(system, RequeueMove())
    # It is another execution where it was: that is told as it is.
    assert [type(event) for event in events] == [ev.DecisionFailed, ev.JobRequeued, ev.JobStarted]
    assert isinstance(events[0], ev.DecisionFailed) and events[0].decision == MOVE
    assert "it did not start within 0.3 s" in events[0].message
    assert (system.state, system.placement, system.begun) == ("running", SOURCE, 2)


def test_one_that_nobody_starts_is_queued(system: System) -> None:
    system.dead = {"n1", "n2"}
    events = moved(system, RequeueMove())
    assert {type(event) for event in events} == {ev.DecisionFailed, ev.JobRequeued}
    assert system.state == "pending"


def test_an_end_during_a_move_is_told(system: System) -> None:
    system.saves = False
    with adapter(system, saving(system)) as toy:
        toy.wait(None)
        toy.apply(time.time(), [MOVE])
        system.state = "ended"
        found = told_until(toy, ev.JobEnded)
        assert {type(event) for event in found} == {ev.JobEnded, ev.DecisionFailed}


def test_who_moves_is_left_alone(system: System) -> None:
    system.saves = False
    with adapter(system, saving(system)) as toy:
        toy.wait(None)
        assert toy.apply(time.time(), [MOVE, MOVE])[1].accepted
        for other in (d.Migrate("7", (("n3", 2),)), d.Suspend("7")):
            (outcome,) = toy.apply(time.time(), [other])
            assert not outcome.accepted and "is being moved" in outcome.message


def test_what_no_handler_can_move_is_refused_with_reasons(system: System) -> None:
    with adapter(system, SuspendResume()) as toy:
        toy.wait(None)
        (outcome,) = toy.apply(time.time(), [MOVE])
        assert outcome.message == (
            "job 7 cannot be moved: suspend-resume: the job's memory does not leave its nodes"
        )


@pytest.mark.parametrize("orders", range(4))
@pytest.mark.parametrize("way", ["signal", "requeue", "pause"])
def test_a_daemon_that_is_killed_leaves_it_running_or_queued(system: System, way: str, orders: int) -> None:
    """Killed once so many orders were given. Its successor moves nothing, and resumes what stands still."""
    handler = {"signal": saving(system), "requeue": RequeueMove(), "pause": SuspendResume()}[way]
    decision = d.Migrate("7", SOURCE) if way == "pause" else MOVE
    killed = adapter(system, handler)
    killed.wait(None)
    killed.apply(time.time(), [decision])

    def given() -> bool:
        killed.wait(time.time() + 0.02)
        return len(system.orders) >= orders or "7" not in killed.moving

    until(given, "the orders are given")
    killed.close()
    before = list(system.orders)
    with adapter(system, handler) as toy:
        toy.moving_before({"7": decision})
        moment = toy.wait(None)
        assert moment is not None
        kinds = [type(event) for event in moment[1]]
        for _ in range(5):
            toy.wait(time.time() + 0.02)
        assert system.orders in (before, [*before, "resume"])
        assert system.state in ("running", "pending")
        assert system.begun <= 2
        assert kinds[0] is ev.JobSubmitted
        # Whoever is queued can be started as any other.
        if system.state == "pending":
            assert toy.apply(time.time(), [d.Start("7", TARGET)])[0].accepted
            told_until(toy, ev.JobStarted)
            assert system.begun == 2
