"""The leader's side of a lease."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from headway.adapter import Seen
from headway.adapter.leadership import Led
from headway.daemon.made import _epoch
from headway.errors import Failure
from headway.journal import Journal
from headway.standby.keeper import Keeper
from headway.standby.leadership import Deposed, Role, Word
from headway.standby.lease import Lease

ONE, TWO = Word(7, "process 1 on host a"), Word(8, "process 2 on host b")


class Kept(Lease):
    """A lease in memory."""

    shared, name = True, "memory"

    def __init__(self) -> None:
        self.word: Word | None = ONE
        self.fails = False
        #: Written, but the writer does not hear of it.
        self.unheard = False

    def read(self) -> Word | None:
        if self.fails:
            raise Failure("the server is away")
        return self.word

    def replace(self, seen: Word | None, by: Word) -> bool:
        if self.fails:
            raise Failure("the server is away")
        if seen != self.word:
            return False
        self.word = by
        if self.unheard:
            raise Failure("the connection broke")
        return True

    def close(self) -> None:
        pass


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def keeper(lease: Lease, clock: Clock, on_lost: Callable[[], None] = lambda: None) -> Keeper:
    return Keeper(lease, ONE, 5.0, asked=0.0, on_lost=on_lost, clock=clock)


def test_while_the_lease_is_young_nothing_is_asked() -> None:
    lease, clock = Kept(), Clock()
    held = keeper(lease, clock)
    clock.now = 3.9
    held.check()
    assert lease.word == ONE


def test_an_old_lease_is_renewed_before_anything_is_done() -> None:
    lease, clock = Kept(), Clock()
    held = keeper(lease, clock)
    # As after a process that was stopped: no stand-by took over meanwhile.
    clock.now = 60.0
    held.check()
    assert lease.word == Word(7, "process 1 on host a", 1) and held.tenure.role is Role.LEADER


def test_a_leader_that_another_replaced_meanwhile_does_nothing_more() -> None:
    lease, clock, lost = Kept(), Clock(), []
    held = keeper(lease, clock, lambda: lost.append(1))
    lease.word, clock.now = TWO, 60.0
    for _ in range(2):
        with pytest.raises(Deposed, match="process 2 on host b leads with epoch 8; nothing more is done"):
            held.check()
    assert lost == [1] and held.leadership().role == "gave up"
    held.release()
    assert lease.word == TWO


def test_a_lease_that_cannot_be_renewed_in_time_is_given_up() -> None:
    lease, clock = Kept(), Clock()
    held = keeper(lease, clock)
    lease.fails, clock.now = True, 3.0
    held.check()
    clock.now = 4.5
    with pytest.raises(Deposed, match=r"memory was not renewed for 4\.5 s \(the server is away"):
        held.check()


def test_a_renewal_of_which_was_not_heard_is_found() -> None:
    lease, clock = Kept(), Clock()
    held = keeper(lease, clock)
    lease.unheard, clock.now = True, 4.1
    with pytest.raises(Deposed):
        held.check()
    held = keeper(Kept(), clock)
    held._lease.word = Word(7, "process 1 on host a", 5)  # type: ignore[attr-defined]
    held.check()
    assert held.tenure.word.beats == 5


def test_the_stand_by_need_not_wait_for_a_leader_that_ends_in_good_order() -> None:
    lease, clock = Kept(), Clock()
    held = keeper(lease, clock)
    held.begin()
    held.release()
    assert lease.word is not None and lease.word.released
    said = lease.word
    held.release()
    assert lease.word == said


def test_it_is_renewed_while_nothing_is_done() -> None:
    lease = Kept()
    held = Keeper(lease, ONE, 1.0, asked=0.0, on_lost=lambda: None, clock=Clock())
    held.begin()
    while lease.word is None or lease.word.beats < 3:
        time.sleep(0.01)
    held.release()


def test_a_lease_that_is_lost_while_nothing_is_done_is_told_at_once() -> None:
    lease, lost = Kept(), []
    held = Keeper(lease, ONE, 1.0, asked=0.0, on_lost=lambda: lost.append(1), clock=Clock())
    lease.word = TWO
    held.begin()
    while not lost:
        time.sleep(0.01)
    held.release()


class Cluster(Led):
    """It has heard of an epoch, and its daemon seems to be alive."""

    def __init__(self, heard: int) -> None:
        self.heard = heard

    def highest_epoch(self, *, above: int | None) -> Seen:
        return Seen(self.heard, "its heartbeat is 1 s old" if above is None or self.heard > above else "")


@pytest.mark.parametrize(("heard", "epoch"), [(3, 7), (6, 7), (7, 8), (40, 41)])
def test_a_leader_drives_with_a_number_that_is_higher_than_all_that_the_cluster_heard(
    heard: int, epoch: int, tmp_path: Path
) -> None:
    held = keeper(Kept(), Clock())
    with Journal.open(tmp_path / "journal.db") as journal:
        found = _epoch(Cluster(heard), journal, None, held, monitor=False)  # type: ignore[arg-type]
    assert found == held.leadership().epoch == epoch
