"""What the daemon tells programs that follow it: in slices, bounded, and nothing without them."""

from __future__ import annotations

import random
import selectors
import socket
from typing import Any

import pytest
from building import alike, described, node_cluster, plugged
from followed import OPERATOR, Followed
from hypothesis import given
from hypothesis import strategies as st
from waiting import HANG, until

from headway.events import JobEnded, JobSubmitted
from headway.inquiry.spare_time import SpareTime
from headway.scheduler import Scheduler
from headway.service import following, outbox
from headway.service import protocol as p
from headway.service.changes import FORMAT, Begun
from headway.service.feed import MOST, Feed
from headway.service.following import Following
from headway.service.outbox import Outbox
from headway.service.queue_changes import difference
from headway_plugins.placement.first_fit import FirstFit
from headway_plugins.policies.easy import Easy


class Silent:
    def __init__(self) -> None:
        self.said: list[dict[str, Any]] = []

    def warning(self, what: str, **more: Any) -> None:
        self.said.append({"what": what, **more})


class Thing:
    """Is what it is, and equal to nothing else."""


THINGS = [Thing() for _ in range(60)]
LISTS = st.lists(st.sampled_from(THINGS), unique_by=id)


def applied(old: list[Thing], found: tuple[list[int], list[tuple[int, Thing]]]) -> list[Thing]:
    now = list(old)
    for at in reversed(found[0]):
        del now[at]
    for at, thing in found[1]:
        now.insert(at, thing)
    return now


@given(LISTS, LISTS, st.booleans())
def test_a_queue_is_what_it_was_with_the_changes(old: list[Thing], new: list[Thing], known: bool) -> None:
    found = difference(old, new, lambda one: known and one not in new)
    assert found is not None and applied(old, found) == new


def test_a_queue_that_lost_its_first_and_got_a_last_is_told_in_two_words() -> None:
    old = [Thing() for _ in range(5000)]
    new = [*old[1:], Thing()]
    assert difference(old, new, lambda one: one is old[0]) == ([0], [(4999, new[-1])])
    # One that moved ahead, and one that moved back.
    ahead, back = [old[4000], *old[:4000], *old[4001:]], [*old[1:4000], old[0], *old[4000:]]
    assert difference(old, ahead, lambda one: False) == ([4000], [(0, old[4000])])
    assert difference(old, back, lambda one: False) == ([0], [(3999, old[0])])
    assert difference(old, old[::-1], lambda one: False) is None


def many(jobs: int = 400) -> Scheduler:
    draw, scheduler = random.Random(3), Scheduler(node_cluster(*alike(8, 4)), plugged(Easy(), FirstFit()))
    events = [
        JobSubmitted(0.0, described(f"{n}", draw.choice([1, 4, 16, 32]), 100.0 + n, user=f"u{n % 5}"))
        for n in range(jobs)
    ]
    scheduler.step(0.5, events)
    return scheduler


def test_what_there_is_no_time_for_comes_later_and_in_the_end_all_is_told() -> None:
    clock = [0.0]
    spare = SpareTime(1.0, 0.0005, clock=lambda: clock[0])
    followed = Followed(many(), spare=spare)
    followed.cycle()
    lines = list[int]()
    while followed.feed.is_due:
        clock[0] += 0.0005
        lines.append(followed.tell())
    assert sum(bool(one) for one in lines) > 3
    for request in (p.Jobs(), p.Jobs(first=100), p.Nodes(), p.Bookings(), p.Cycle(), p.Pools()):
        told, pictured = followed.both(request, OPERATOR)
        assert pictured == told


def test_a_job_that_ends_costs_a_few_lines_and_not_a_row_for_each_place_that_changes() -> None:
    followed = Followed(many())
    followed.settle()
    followed.cycle()
    followed.settle()
    last = [job.id for job in next(iter(followed.scheduler.state.domains.values())).queue][-1]
    followed.cycle(JobEnded(2.0, last))
    assert followed.tell() <= 12
    told, pictured = followed.both(p.Jobs(count=500), OPERATOR)
    assert pictured == told


def test_without_followers_nothing_is_done_and_a_gone_one_is_forgotten() -> None:
    followed = Followed(many(20))
    followed.settle()
    followed.outbox.end("it went away")
    followed.cycle()
    assert not followed.feed.tell(followed.scheduler, followed.answers, followed.inbox.whole_status)
    assert not followed.feed._followers and not followed.feed.is_due
    feed = Feed()
    begun = Begun(FORMAT)
    joined = [feed.join(begun) for _ in range(MOST + 1)]
    assert joined[-1] is None and None not in joined[:-1]


def test_no_rows_are_made_for_an_outbox_that_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    followed = Followed(many())
    followed.cycle()
    monkeypatch.setattr(outbox, "FULL", 2000)
    followed.feed.tell(followed.scheduler, followed.answers, followed.inbox.whole_status)
    assert 2000 <= followed.outbox._size < 200_000
    followed.settle()
    told, pictured = followed.both(p.Jobs(count=500), OPERATOR)
    assert pictured == told


# ---------------------------------------------------------------------- slow followers


class Inboxes:
    """Has nothing more to tell."""

    has_more_to_tell = False

    def whole_status(self) -> p.Report:
        return p.Report("drive", "c", 0, 0.0)


def linked(log: Silent) -> tuple[Following, Outbox, socket.socket]:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    box, links = Outbox(), Following(Inboxes(), selectors.DefaultSelector(), log)  # type: ignore[arg-type]
    links.add(ours, box)
    return links, box, theirs


def test_a_follower_that_reads_nothing_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "STUCK", 0.05)
    log = Silent()
    links, box, theirs = linked(log)
    while not box.is_full:
        box.put(b"x" * 100_000)

    def dropped() -> bool:
        links.go_on()
        return bool(box.over)

    until(dropped, "it is dropped")
    assert "read nothing" in box.over and log.said[0]["why"] == box.over
    theirs.settimeout(HANG)
    while theirs.recv(1 << 20):
        pass


def test_a_follower_for_which_too_much_waits_is_dropped_at_once() -> None:
    log = Silent()
    links, box, _ = linked(log)
    while not box.over:
        box.put(b"x" * 1_000_000)
    links.go_on()
    assert not links._links and "reads too slowly" in log.said[0]["why"]


def test_a_follower_hears_that_the_daemon_lives() -> None:
    links, _, theirs = linked(Silent())
    theirs.settimeout(HANG)
    links.go_on()
    assert theirs.recv(65536).startswith(b'["state"')
    links._next_sign = 0.0
    links.go_on()
    assert theirs.recv(65536) == b"\n"
    theirs.close()
    links.go_on()
    links._next_sign = 0.0
    links.go_on()
    assert not links._links
