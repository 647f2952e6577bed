"""What holds for any sites, any metajob, and any failure: acceptance 5, 6 and 9."""

from __future__ import annotations

import random

import pytest
from gur_sites import Faulty, best_start, free_nodes, metajob, names, random_sites, search, site

from headway_plugins.coscheduling.calls import Call
from headway_plugins.coscheduling.emulated_sites import EmulatedSites, run_in_turn
from headway_plugins.coscheduling.metajob import Machine, Metajob, Stage
from headway_plugins.coscheduling.recovery import calls, missing, promised
from headway_plugins.coscheduling.search import Done, Search

CASES = pytest.mark.parametrize("count", [300, pytest.param(3000, marks=pytest.mark.slow)])


def divided(wanted, done):
    """The metajob that is content with the division that was found alone."""
    nodes = {name: 0 for name in wanted.machines} | {part.site: part.nodes for part in done.parts}
    machines = {name: Machine(count, count) for name, count in nodes.items()}
    return type(wanted)(**{**{f: getattr(wanted, f) for f in wanted.__struct_fields__}, "machines": machines})


@CASES
@pytest.mark.parametrize("least", [1, 0])
def test_success_if_and_only_if_a_place_exists(count, least):
    for seed in range(count):
        sites, wanted = random_sites(random.Random(seed), least)
        best = best_start(sites, wanted)
        done = sites.run(search(wanted, sites, max_distributions=10_000))
        assert (done.outcome == "SUCCESS") == (best is not None), seed
        if done.outcome == "REFUSED":
            assert names(sites) == set(), seed
            continue
        assert {part.start for part in done.parts} == {done.start}, seed
        assert sum(part.nodes for part in done.parts) == wanted.total, seed
        assert names(sites) == {part.name for part in done.parts}, seed
        empty, _ = random_sites(random.Random(seed), least)
        assert best_start(empty, divided(wanted, done)) == done.start, seed


@CASES
@pytest.mark.parametrize("option", ["window_first", "grant_up_to"])
def test_two_options_find_the_earliest_start_of_all_divisions(count, option):
    for seed in range(count):
        sites, wanted = random_sites(random.Random(seed), seed % 2)
        best = best_start(sites, wanted)
        done = sites.run(search(wanted, sites, max_distributions=10_000, **{option: True}))
        assert done.start == best, seed


@CASES
def test_a_pipeline_starts_as_early_as_it_can(count):
    for seed in range(count):
        rng = random.Random(seed)
        sites, _ = random_sites(rng, 1)
        machines = [rng.choice(list(sites.books)) for _ in range(rng.randint(1, 3))]
        stages = tuple(
            Stage(name, rng.randint(1, sites.books[name].nodes), rng.randint(1, 20), None, rng.randint(0, 9))
            for name in machines
        )
        wanted = Metajob("m", "pipeline", 3, 3 + rng.randint(90, 150), stages=stages)
        offsets = wanted.offsets()
        starts = range(3, int(wanted.latest - wanted.span) + 1)
        best = next((start for start in starts if _fits(sites, stages, offsets, start)), None)
        done = sites.run(search(wanted, sites))
        assert done.start == best, seed
        assert [part.start - (best or 0) for part in done.parts] == (offsets if best is not None else []), (
            seed
        )


def _fits(sites, stages, offsets, start):
    """Stages follow each other, so no stage is in the way of another."""
    return all(
        free_nodes(sites.books[stage.machine], start + int(offset), stage.duration) >= stage.nodes
        for stage, offset in zip(stages, offsets, strict=True)
    )


@CASES
def test_nothing_is_left_after_any_failure(count):
    """Answers are lost, come late or never, cancels fail, and the search dies at any call."""
    ends = set()
    for seed in range(count):
        rng = random.Random(seed)
        sites, wanted = random_sites(rng, seed % 2)
        option = rng.choice(["window_first", "grant_up_to", "repeat", "go_on"])
        searching = search(wanted, sites, max_distributions=50, back_off=0, **{option: True})
        faulty = Faulty(sites, rng, rng.choice([0.0, 0.05, 0.3]))
        faulty.run(searching, rng.choice([None, rng.randint(0, 12)]))
        done = searching.next()
        if isinstance(done, Done):
            kept = {part.name for part in done.parts} | {name for _, name in done.leaks}
            assert names(sites) == kept, seed
            ends.add((done.outcome, bool(done.leaks)))
            continue
        if rng.random() < 0.5:
            # The call reached its site, and the search never hears of the answer.
            faulty.carry_out(done)
        faulty.arrive()
        searching = Search.restore(searching.snapshot())
        sites.recover(searching)
        assert names(sites) == promised(searching.journal), seed
        ends.add(("died", bool(promised(searching.journal))))
    assert ends == {
        ("SUCCESS", False), ("SUCCESS", True), ("REFUSED", False), ("REFUSED", True), ("died", False),
        ("died", True),
    }  # fmt: skip


@CASES
def test_metajobs_in_competition_end_and_book_no_node_twice(count):
    for seed in range(count):
        rng = random.Random(seed)
        books = {name: site(rng.randint(2, 6), (0, rng.randint(1, 30), 1)) for name in ("A", "B")}
        sites = EmulatedSites(books)
        searches = []
        for name in ("m", "n"):
            order = rng.sample(["A", "B"], 2)
            bounds = {one: (rng.randint(0, 2), books[one].nodes) for one in order}
            fewest, most = (sum(ends) for ends in zip(*bounds.values(), strict=True))
            total = rng.randint(max(fewest, 1), most)
            wanted = metajob(total, rng.randint(1, 20), (0, rng.randint(20, 90)), name=name, **bounds)
            option = rng.choice(["window_first", "grant_up_to", "repeat"])
            searches.append(search(wanted, sites, back_off=0, **{option: True}))
        turns = [rng.randint(0, 1) for _ in range(30)]
        for done, name in zip(run_in_turn(sites, searches, turns), "mn", strict=True):
            assert names(sites, name) == {part.name for part in done.parts}, seed
        for name, book in books.items():
            rows = [(one.start, one.end, one.nodes) for one in [*book.busy, *sites.shown()[name]]]
            assert max(sum(n for s, e, n in rows if s <= t < e) for t, _, _ in rows) <= book.nodes, seed


def test_recovery_after_success_binds_again_and_tells_what_is_missing():
    sites = EmulatedSites({"A": site(4), "B": site(4)})
    searching = search(metajob(6, 10, (0, 20), A=(1, 4), B=(1, 4)), sites)
    while not promised(searching.journal):
        searching.answer(call := searching.next(), sites.carry_out(call))
    assert [(call.kind, call.name) for call in sites.recover(searching)] == [
        ("bind", "m-1-A"), ("bind", "m-1-B"),
    ]  # fmt: skip
    assert [one.state for found in sites.shown().values() for one in found] == ["BOUND", "BOUND"]
    assert missing(searching.journal, sites.shown()) == []
    sites.books["B"].cancel("m-1-B")
    assert missing(searching.journal, sites.shown()) == ["m-1-B"]


def test_recovery_after_success_cancels_what_does_not_belong_to_it():
    sites = EmulatedSites({"A": site(4)})
    faulty = Faulty(sites, random.Random(0), 0.0)
    faulty.stuck.add("m-0-A")
    searching = search(metajob(4, 10, (0, 20), A=(1, 4)), sites)
    while not promised(searching.journal):
        faulty.run(searching, 1)
    assert [(call.kind, call.name) for call in sites.recover(searching)] == [
        ("cancel", "m-0-A"), ("bind", "m-2-A"),
    ]  # fmt: skip


def test_recovery_leaves_other_metajobs_alone():
    sites = EmulatedSites({"A": site(8)})
    for name in ("m1", "m12"):
        searching = search(metajob(2, 10, (0, 20), name=name, A=(1, 4)), sites)
        while "HELD" not in {one.state for one in sites.of_metajob(name)}:
            searching.answer(call := searching.next(), sites.carry_out(call))
    assert calls("m1", [], sites.shown()) == [Call("cancel", "A", "m1-0-A")]
