"""What running jobs give back, and the first moment at which a job finds nodes: as one counts by hand."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Sequence
from dataclasses import replace
from types import SimpleNamespace

import msgspec
import numpy as np
from building import described, node_cluster, plugged
from hypothesis import given
from hypothesis import strategies as st

from headway import events as ev
from headway.hookspecs import hookimpl
from headway.model import NodeDescription, Request, Reservation
from headway.resources import Free, Located, NodeTable, memory_on_node, node_facts
from headway.resources.profile import next_after
from headway.scheduler import Scheduler
from headway.view.releases import Releases
from headway_plugins.placement.first_fit import FirstFit

INF = float("inf")
NODES = 9


def table_of(count: int = NODES, processors: int = 4) -> NodeTable:
    table = NodeTable()
    for at in range(count):
        table.put(NodeDescription(f"n{at}", processors, memory=100, gres=(("gpu", 2),), pools=("p",)))
    return table


def one_request(processors: int, memory: int, gpus: int) -> Request:
    return Request(
        processors, 10, memory_per_processor=memory, gres_per_node=(("gpu", gpus),) if gpus else ()
    )


#: Some of the nodes (the last is one that nobody knows), and how many processors of each.
PLACES = st.dictionaries(st.integers(0, NODES), st.integers(1, 4), min_size=1, max_size=NODES).map(
    lambda found: tuple((f"n{at}", count) for at, count in found.items())
)


@st.composite
def requests_and_places(draw, parts: bool = True):
    """What a job has, and where; of one part or of two."""
    places = [draw(PLACES) for _ in range(draw(st.integers(1, 2)) if parts else 1)]
    asked = [
        one_request(sum(count for _, count in place), draw(st.integers(0, 3)), draw(st.integers(0, 1)))
        for place in places
    ]
    if len(asked) == 1:
        return asked[0], places[0], list(zip(asked, places, strict=True))
    whole = Request(sum(part.processors for part in asked), 10, parts=tuple(asked))
    return whole, places[0] + places[1], list(zip(asked, places, strict=True))


def by_hand(free: Free, table: NodeTable, shares, sign: int) -> Free:
    """What is left once so much more is taken (``sign`` 1) or given back (-1)."""
    left = free.copy()
    for request, place in shares:
        for name, count in place:
            if name in table.index:
                node = table.index[name]
                left.processors[node] -= sign * count
                left.memory[node] -= sign * memory_on_node(request, count)
                for resource, amount in request.gres_per_node:
                    left.gres[resource][node] -= sign * amount
    return left


def same(one: Free, other: Free) -> bool:
    return (
        np.array_equal(one.processors, other.processors)
        and np.array_equal(one.memory, other.memory)
        and np.array_equal(one.gres["gpu"], other.gres["gpu"])
    )


@given(requests_and_places(parts=False), st.sampled_from((1, -1)))
def test_what_is_taken_at_a_located_place_is_what_is_taken_node_by_node(has, sign):
    request, place, shares = has
    table = table_of()
    free = table.free.copy()
    free.take_at(request, Located(place, table.index), sign)
    assert same(free, by_hand(table.free, table, shares, sign))
    assert free.changes


@given(PLACES, st.booleans())
def test_a_placement_that_is_passing_is_located_and_not_kept(place, known):
    table = table_of()
    if known:
        table.locate(place)
    before = dict(table._located)
    found = table.locate(place, passing=True)
    assert [(table.names[node], count) for node, count in zip(found.nodes, found.counts, strict=True)] == [
        (name, count) for name, count in place if name in table.index
    ]
    assert table._located == before
    assert (found is before.get(id(place))) == known


@given(
    st.lists(st.tuples(st.integers(1, 6), requests_and_places()), max_size=6),
    st.sampled_from((0.0, 2.0)),
    st.integers(0, 60),
)
def test_what_is_given_back_is_what_one_counts_by_hand(jobs, grid, processors):
    table = table_of()
    running, ends = [], []
    for end, (request, place, shares) in sorted(jobs, key=lambda job: job[0]):
        running.append((float(end), 0, 0, SimpleNamespace(taken=request, request=request, placement=place)))
        ends.append((-(-end // grid) * grid if grid else float(end), shares))
    now = table.free.copy()
    for _, shares in ends:
        now = by_hand(now, table, shares, 1)
    found = Releases(running, table, 0.0, grid)
    assert found.times == sorted({end for end, _ in ends})
    levels = [now]
    for time in found.times:
        gone = [share for end, shares in ends if end == time for share in shares]
        levels.append(by_hand(levels[-1], table, gone, -1))
    assert all(same(one.copy(), other) for one, other in zip(found.levels(now), levels, strict=True))
    assert all(same(found.free_at(step, now), level) for step, level in enumerate(levels))

    first = found.first_with(processors, now)
    together = [int(np.maximum(level.processors, 0).sum()) for level in levels]
    assert all(total < processors for total in together[:first])
    whole = all(name in table.index for _, shares in ends for _, place in shares for name, _ in place)
    if whole and (now.processors >= 0).all():
        assert first == next(
            (step for step, total in enumerate(together) if total >= processors), len(levels)
        )


def test_places_of_very_many_running_jobs_are_located_once(monkeypatch):
    table, made = table_of(1), []
    request = one_request(1, 0, 0)
    places = [tuple([("n0", count)]) for count in range(3000)]
    running = [(1.0, 0, 0, SimpleNamespace(taken=request, request=request, placement=one)) for one in places]
    monkeypatch.setattr(node_facts, "Located", lambda *about: made.append(about) or Located(*about))
    Releases(running, table, 0.0)
    assert len(made) == 3000
    Releases(running, table, 0.0)
    assert len(made) == 3000


def test_no_more_nodes_of_placements_are_kept_than_may_be(monkeypatch):
    monkeypatch.setattr(node_facts, "_KEPT", 50)
    table = table_of()
    for at in range(100):
        place = table.ones(0b111_111_111) if at % 2 else tuple([(f"n{node}", 2) for node in range(9)])
        found = table.locate(place)
        assert table.locate(place) is found and found.nodes == list(range(9))
        assert len(table._located) <= 5


# ---------------------------------------------------------------- the first opening


class Asking:
    """A policy that books one job, and looks for its place itself as well, moment by moment."""

    def __init__(self, changes: Collection[float] = ()) -> None:
        self.times = 0
        self.changes = changes

    @hookimpl
    def schedule(self, view):
        job = next((job for job in view.queue if job.id == "asked"), None)
        if job is None:
            return []
        self.times += 1
        table, now = view.nodes, view.now
        running = [(max(entry[0], next_after(now)), entry[3]) for entry in view.domain.running]
        moments = {now, *(end for end, _ in running), *table.on_times(now)}
        moments |= {kept.end for kept in view.domain.reservations if kept.end > now}
        moments |= {change for change in self.changes if change > now}
        expected, room = (INF, ()), None
        for moment in sorted(moments):
            gone = [(other.taken, other.placement) for end, other in running if end <= moment]
            room = by_hand(table.free, table, gone, -1)
            place = view._try(job, room, moment, moment + job.expected_runtime)
            if place is not None:
                expected, room = (moment, place), by_hand(room, table, [(job.request, place)], 1)
                break
        booking = view.book(job)
        assert (booking.start, booking.placement) == expected
        if booking.room is not None and room is not None:
            usable = table.eligible(Request(1, 1), "p")
            assert all(usable[table.index[name]] for name, _ in booking.placement)
            assert np.array_equal(booking.room.processors, room.processors)
            whole = table.pool_mask(*[pool.name for pool in view.domain.pools]) & table.available
            assert booking.extra == room.processors[whole].sum()
        return []


class Shut(FirstFit):
    """No place is open at first, nor after every second of these moments."""

    def __init__(self, changes: Sequence[float]) -> None:
        self.changes = changes
        self.traits = replace(self.traits, changes_at=lambda job: changes)

    @hookimpl
    def place(self, offer):
        opened = bisect_right(self.changes, offer.time) % 2
        return super().place(offer) if opened else ()


@st.composite
def situations(draw):
    """Nodes in two pools that share some, drained, asleep or reserved; jobs that run; and one that asks."""
    pools = st.sampled_from((("p",), ("p",), ("p", "q"), ("q",)))
    hosts = [
        NodeDescription(
            f"n{at}", draw(st.integers(1, 3)), memory=6, pools=draw(pools), wake_time=draw(st.integers(1, 40))
        )
        for at in range(draw(st.integers(1, 7)))
    ]
    running = []
    left = {node.name: [node.processors, 6] for node in hosts}
    for at in range(draw(st.integers(0, 6))):
        pool = draw(st.sampled_from("pq"))
        memory = draw(st.integers(0, 2))
        place = []
        for node in hosts:
            room = left[node.name]
            if pool in node.pools and room[0] and room[1] >= memory and draw(st.booleans()):
                count = draw(st.integers(1, room[0]))
                if memory * count <= room[1]:
                    place.append((node.name, count))
                    left[node.name] = [room[0] - count, room[1] - memory * count]
        if place:
            size = sum(count for _, count in place)
            job = described(f"r{at}", size, draw(st.integers(1, 60)), pool=pool, memory_per_processor=memory)
            running.append((job, tuple(place)))
    names = [node.name for node in hosts]
    drained = draw(st.sets(st.sampled_from(names), max_size=2))
    asleep = draw(st.sets(st.sampled_from(names), max_size=2)) - {name for _, p in running for name, _ in p}
    begin = draw(st.integers(0, 50))
    reserved = draw(st.sets(st.sampled_from(names), max_size=3))
    kept = (Reservation("kept", begin, begin + draw(st.integers(1, 40)), nodes=tuple(sorted(reserved))),)
    more = draw(
        st.sampled_from(
            ({}, {}, {"nodes": 2}, {"exclusive": True}, {"memory_per_node": 3}, {"processors_per_node": 2})
        )
    )
    size = draw(st.integers(1, 8))
    if "processors_per_node" in more:
        size += size % 2
    if "nodes" in more:
        size = max(size, 2)
    asked = described("asked", size, draw(st.integers(1, 60)), pool="p", **more)
    return hosts, running, drained, asleep, kept if reserved else (), asked, draw(st.integers(0, 70))


@given(situations())
def test_the_first_opening_is_the_one_that_is_found_moment_by_moment(situation):
    look_for(situation, Asking(), FirstFit())


@given(situations(), st.lists(st.integers(1, 90), min_size=1, max_size=12, unique=True).map(sorted))
def test_so_it_is_where_places_open_and_shut_by_the_clock(situation, changes):
    look_for(situation, Asking(changes), Shut(changes))


def look_for(situation, asking, placing):
    hosts, running, drained, asleep, reservations, asked, now = situation
    cluster = node_cluster(*hosts, pools=("p", "q"), reservations=reservations)
    one = Scheduler(cluster, plugged(asking, placing))
    told = [ev.JobSubmitted(0, job) for job, _ in running]
    told += [ev.JobStarted(0, job.id, place) for job, place in running]
    one.step(0, told)
    one.step(now, [ev.JobSubmitted(now, msgspec.structs.replace(asked, submit_time=now))])
    later = [ev.NodeDown(now, name) for name in sorted(drained)]
    later += [ev.NodePowerChanged(now, name, "asleep") for name in sorted(asleep)]
    one.step(now + 1, later)
    back = [node for node in hosts if node.name in drained]
    one.step(now + 2, [ev.NodeUp(now + 2, node) for node in back])
    assert one.problems == []
    assert asking.times or asked.id not in one.state.jobs or one.state.why_waiting(one.state.jobs["asked"])
