"""A move through the queue, step by step: what happens when each step goes wrong.

``Queue`` is a batch system with one job. Whatever fails, the job must be running or queued at the end, once,
never killed before its image was confirmed, and the last word must say what happened.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from building import described
from hypothesis import given, settings
from hypothesis import strategies as st
from migration_words import names

from headway import decisions as d
from headway.adapter.migration import (
    Answered,
    Instruction,
    Move,
    Order,
    Over,
    Passed,
    Reported,
    Seen,
    Signal,
    Work,
)
from headway_plugins.migration.relocation import Relocation, Way

SOURCE, TARGET = (("n1", 2),), (("n2", 2),)
MOVE = Move(described("7", 2), SOURCE, TARGET, restarts=0)
SIGNAL, DUMP = Way(saves="signal"), Way(saves="dump", leaves_stopped=True)
WAYS = {"nothing": Way(), "signal": SIGNAL, "dump": DUMP}
HERE = Seen("running", SOURCE, 0)
QUEUED = Seen("pending", (), 1)
THERE = Seen("running", TARGET, 1)
BACK = Seen("running", SOURCE, 1)
YES, NO = Answered(True), Answered(False, "no")


def done(task: str) -> Reported:
    return Reported(task, True)


def not_done(task: str, why: str = "broken") -> Reported:
    return Reported(task, False, why)


SAVED = [done("prepare"), YES, done("confirm")]

TABLE = {
    "a move by signal": (
        SIGNAL, [*SAVED, YES, QUEUED, done("verify"), YES, QUEUED, THERE],
        ["work prepare", "signal USR1", "work confirm", "requeue", "work verify", "start n2", "over moved"],
    ),
    "a move by dump": (
        DUMP, [done("prepare"), done("dump"), done("confirm"), YES, QUEUED, done("verify"), YES, THERE],
        ["work prepare", "work dump", "work confirm", "requeue", "work verify", "start n2", "over moved"],
    ),
    "it still leaves, and its next execution is counted already": (
        Way(), [YES, BACK, BACK, QUEUED, YES, THERE], ["requeue", "start n2", "over moved"],
    ),
    "a move that saves nothing": (
        Way(), [YES, HERE, QUEUED, YES, THERE], ["requeue", "start n2", "over moved"],
    ),
    "a full image directory": (
        SIGNAL, [not_done("prepare", "quota")], ["work prepare", "over stayed"],
    ),
    "a signal that does not arrive": (
        SIGNAL, [done("prepare"), NO], ["work prepare", "signal USR1", "over stayed"],
    ),
    "a dump that fails half-way: the processes go on": (
        DUMP, [done("prepare"), not_done("dump")],
        ["work prepare", "work dump", "signal CONT", "work discard", "over stayed"],
    ),
    "an image that is damaged before the job leaves": (
        SIGNAL, [done("prepare"), YES, not_done("confirm")],
        ["work prepare", "signal USR1", "work confirm", "over stayed"],
    ),
    "an image that is damaged after it left: it begins anew there": (
        SIGNAL, [*SAVED, YES, QUEUED, not_done("verify"), YES, THERE],
        ["work prepare", "signal USR1", "work confirm", "requeue", "work verify", "start n2", "over moved"],
    ),
    "it ends while it is saved": (
        SIGNAL, [done("prepare"), YES, Seen("ended")],
        ["work prepare", "signal USR1", "work confirm", "over ended"],
    ),
    "somebody requeues it while it is saved": (
        SIGNAL, [done("prepare"), YES, QUEUED],
        ["work prepare", "signal USR1", "work confirm", "over queued"],
    ),
    "the target dies while it is saved": (
        SIGNAL, [done("prepare"), YES, Seen("running", SOURCE, 0, frozenset({"n2"}))],
        ["work prepare", "signal USR1", "work confirm", "over stayed"],
    ),
    "a requeue that is refused: it runs on, and its complete image stays": (
        SIGNAL, [*SAVED, NO, HERE],
        ["work prepare", "signal USR1", "work confirm", "requeue", "over stayed"],
    ),
    "a requeue of which nothing was heard, and which happened": (
        SIGNAL, [*SAVED, NO, QUEUED, done("verify"), YES, THERE],
        ["work prepare", "signal USR1", "work confirm", "requeue", "work verify", "start n2", "over moved"],
    ),
    "a dumped job that cannot be requeued goes on": (
        DUMP, [done("prepare"), done("dump"), done("confirm"), NO, HERE],
        ["work prepare", "work dump", "work confirm", "requeue", "signal CONT", "work discard",
         "over stayed"],
    ),
    "the target refuses: it goes back": (
        SIGNAL, [*SAVED, YES, QUEUED, done("verify"), NO, QUEUED, YES, BACK],
        ["work prepare", "signal USR1", "work confirm", "requeue", "work verify", "start n2", "start n1",
         "over stayed"],
    ),
    "the target dies during the restart: it goes back": (
        SIGNAL, [*SAVED, YES, QUEUED, done("verify"), YES, NO, QUEUED, YES, BACK],
        ["work prepare", "signal USR1", "work confirm", "requeue", "work verify", "start n2", "start n1",
         "over stayed"],
    ),
    "the start was refused and happened": (
        SIGNAL, [*SAVED, YES, QUEUED, done("verify"), NO, THERE],
        ["work prepare", "signal USR1", "work confirm", "requeue", "work verify", "start n2", "over moved"],
    ),
    "both refuse: it stays queued": (
        Way(), [YES, QUEUED, NO, QUEUED, NO, QUEUED], ["requeue", "start n2", "start n1", "over queued"],
    ),
    "the target refuses, and the source is gone": (
        Way(), [YES, QUEUED, NO, Seen("pending", (), 1, frozenset({"n1"}))],
        ["requeue", "start n2", "over queued"],
    ),
    "somebody else starts it elsewhere": (
        Way(), [YES, QUEUED, YES, Seen("running", (("n9", 2),), 1)], ["requeue", "start n2", "over stayed"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", TABLE)
def test_what_is_asked_for(case: str) -> None:
    way, stimuli, expected = TABLE[case]
    machine = Relocation(MOVE, way)
    found = list(machine.begin(0.0))
    for at, stimulus in enumerate(stimuli):
        found += machine.tell(float(at), stimulus)
    assert names(found) == expected
    if "stayed" in expected[-1] or "queued" in expected[-1]:
        assert found[-1].message


def test_it_goes_back_to_the_tier_that_it_had() -> None:
    """In front of its own processors somebody else may be."""
    move = Move(MOVE.job, SOURCE, TARGET, 0, tier="foreground", source_tier="background")
    machine = Relocation(move, Way())
    machine.begin(0.0)
    found = [one for stimulus in (YES, QUEUED, NO, QUEUED) for one in machine.tell(0.0, stimulus)]
    starts = [one.decision for one in found if isinstance(one, Order) and isinstance(one.decision, d.Start)]
    assert [(start.placement, start.tier) for start in starts] == [
        (TARGET, "foreground"), (SOURCE, "background"),
    ]  # fmt: skip


def test_saving_alone_leaves_it_running() -> None:
    machine = Relocation(Move(MOVE.job, SOURCE, (), 0), DUMP)
    found = list(machine.begin(0.0))
    for stimulus in (done("prepare"), done("dump"), done("confirm")):
        found += machine.tell(0.0, stimulus)
    assert names(found) == ["work prepare", "work dump", "work confirm", "signal CONT", "over saved"]


def test_what_began_anew_is_told() -> None:
    for way, stimuli, restarted in (
        (Way(), [YES, QUEUED, YES, THERE], True),
        (SIGNAL, [*SAVED, YES, QUEUED, done("verify"), YES, THERE], False),
        (SIGNAL, [*SAVED, YES, QUEUED, not_done("verify"), YES, THERE], True),
    ):
        machine = Relocation(MOVE, way)
        found = list(machine.begin(0.0))
        for stimulus in stimuli:
            found += machine.tell(0.0, stimulus)
        assert isinstance(found[-1], Over) and found[-1].restarted is restarted


def test_an_image_that_never_comes_is_not_waited_for_for_ever() -> None:
    machine = Relocation(MOVE, Way(saves="signal", save_seconds=10, ask_seconds=1))
    machine.begin(0.0)
    machine.tell(0.0, done("prepare"))
    machine.tell(0.0, YES)
    now, asked = 0.0, 1
    while True:
        found = machine.tell(now, Reported("confirm", False, "not there", again=True))
        if found:
            break
        assert machine.due is not None
        now = machine.due
        assert names(machine.tell(now, Passed())) == ["work confirm"]
        asked += 1
    assert names(found) == ["over stayed"] and "10 s" in found[-1].message
    assert (now, asked) == (10.0, 11)


@dataclass
class Queue:
    """A batch system with one job, which does what it is told, refuses it, or says nothing and does it."""

    state: str = "running"
    placement: tuple[tuple[str, int], ...] = SOURCE
    restarts: int = 0
    confirmed: bool = False
    runs: int = 1
    killed_unconfirmed: bool = False
    stopped: bool = False
    #: What becomes of each order: done, refused, or done and called refused.
    fates: list[str] = field(default_factory=list)
    #: Each piece of work succeeds unless this says otherwise.
    work: list[bool] = field(default_factory=list)
    down: frozenset[str] = frozenset()

    def seen(self) -> Seen:
        return Seen(self.state, self.placement if self.state == "running" else (), self.restarts, self.down)

    def follow(self, one: Instruction, saves: bool) -> Answered | Reported | None:
        if isinstance(one, Over):
            return None
        if isinstance(one, Work):
            ok = self.work.pop() if self.work else True
            if one.task == "confirm":
                self.confirmed = ok
            if one.task == "dump":
                self.stopped = True
            return Reported(one.task, ok, "" if ok else "broken")
        fate = self.fates.pop() if self.fates else "done"
        if isinstance(one, Signal):
            self.stopped = self.stopped and one.name != "CONT"
            return Answered(True)
        if fate != "refused":
            self._carry_out(one.decision, saves)
        return Answered(fate == "done", fate)

    def _carry_out(self, decision: d.Decision, saves: bool) -> None:
        if isinstance(decision, d.Requeue) and self.state == "running":
            self.killed_unconfirmed |= saves and not self.confirmed
            self.state, self.stopped = "pending", False
            self.restarts += 1
        elif isinstance(decision, d.Start):
            assert self.state == "pending", "started twice"
            nodes = {node for node, _ in decision.placement}
            if not nodes & self.down:
                self.state, self.placement = "running", decision.placement
                self.runs += 1


@settings(deadline=None, max_examples=300)
@given(
    way=st.sampled_from(sorted(WAYS)),
    fates=st.lists(st.sampled_from(["done", "refused", "done unheard"]), max_size=6),
    work=st.lists(st.booleans(), max_size=6),
    down=st.frozensets(st.sampled_from(["n1", "n2"])),
    lost_at=st.integers(0, 12),
    ends_at=st.integers(0, 30),
)
def test_never_lost_never_twice(
    way: str, fates: list[str], work: list[bool], down: frozenset[str], lost_at: int, ends_at: int
) -> None:
    queue = Queue(fates=fates, work=work)
    machine = Relocation(MOVE, WAYS[way])
    waiting = list(machine.begin(0.0))
    over: Over | None = None
    now = 0.0
    for at in range(200):
        now += 1.0
        if at == lost_at:
            queue.down = down
        if at == ends_at and queue.state == "running":
            queue.state = "ended"
        if waiting:
            one = waiting.pop(0)
            if isinstance(one, Over):
                over = one
                break
            answer = queue.follow(one, WAYS[way].saves != "")
            if answer is not None:
                waiting += machine.tell(now, answer)
        elif machine.due is not None and now >= machine.due:
            waiting += machine.tell(now, Passed())
        else:
            waiting += machine.tell(now, queue.seen())
            if not waiting and queue.state == "pending" and machine.step in ("starting", "returning"):
                # The adapter tells of a start that does not happen in time.
                waiting += machine.tell(now, Answered(False, "it did not start in time"))
    assert over is not None, f"no end: {machine.step}"
    assert not queue.killed_unconfirmed
    assert queue.state in ("running", "pending", "ended")
    assert not queue.stopped or queue.state != "running"
    if over.outcome == "moved":
        assert (queue.state, queue.placement) in (("running", TARGET), ("ended", TARGET))
    elif over.outcome == "stayed":
        assert queue.state in ("running", "ended") and over.message
    elif over.outcome == "queued":
        assert queue.state == "pending" and over.message
    assert machine.tell(now, THERE) == []
