"""Metajobs through the real scheduler, on emulated sites with one clock."""

from __future__ import annotations

import msgspec
import pytest
from building import traced
from hypothesis import given, settings
from hypothesis import strategies as st
from metajob_world import World, multiple, sites

from headway import decisions as d
from headway import events as ev
from headway.errors import UserError
from headway.model import ClusterDescription, NodeDescription, PoolDescription, Reservation, Site, Sites
from headway_adapters.emulated import Faults
from headway_plugins.coscheduling.metajob_options import MetajobOptions
from headway_plugins.coscheduling.reservations import ReservationOptions, Reservations
from headway_plugins.placement.first_fit import FirstFit


def job(name: str, processors: int = 1, seconds: float = 100, submit: float = 0, user: str = "ann", **more):
    return traced(name, processors, seconds, submit, pool=f"{name.partition(':')[0]}:q", user=user, **more)


#: Site a is busy until 50, and both have a job of the metajob.
TWO = [job("a:1", 8, 50, user="x"), job("a:2", 6, 100), job("b:1", 2, 100)]
PAIR = multiple(8, A=(6, 6), B=(2, 2))
BOTH = {"A": "a:2", "B": "b:1"}


def phases(world: World) -> list[str]:
    return [live.kept.phase for live in world.plugin._lives.values()]


# ---------------------------------------------------------------------- the three usages


def test_all_parts_start_at_one_instant_and_nothing_is_left():
    world = World(sites(a=8, b=8), TWO)
    request = world.submit(PAIR, BOTH)
    world.run()
    assert world.replies[request].outcome == "accepted" and world.problems == []
    assert world.starts == {"a:1": 0.0, "a:2": 50.0, "b:1": 50.0}
    assert world.status()["phase"] == "over" and world.kept == {}


def test_a_short_name_of_a_job_is_enough_in_a_federation():
    world = World(sites(a=8, b=8), TWO)
    world.submit(PAIR, {"A": "2", "B": "1"})
    world.run()
    assert world.starts["a:2"] == world.starts["b:1"] == 50.0


def test_single_takes_the_earliest_site_and_gives_the_other_back():
    world = World(sites(a=8, b=8), [job("a:1", 8, 50, user="x"), job("b:1", 8, 30, user="x")])
    machines = {name: {"min": 1, "max": 8} for name in "AB"}
    world.submit({
        "usage": "single", "earliest": 0, "latest": 1000, "total": 6, "duration": 20, "machines": machines,
    })  # fmt: skip
    world.run(until=5)
    (kept,) = world.kept.values()
    assert (kept.pool, kept.start, kept.processors) == ("b:q", 30.0, 6)


def test_no_part_starts_before_its_job_may_begin():
    jobs = [job("a:2", 6, 100, begin_time=300.0), job("b:1", 2, 100)]
    world = World(sites(a=8, b=8), jobs)
    world.submit(PAIR, BOTH)
    world.run()
    assert world.starts == {"a:2": 300.0, "b:1": 300.0}
    stages = [{"machine": name, "nodes": 1, "duration": 100} for name in "AB"]
    late = [job("a:2", 1, 100, begin_time=50.0), job("b:1", 1, 100, begin_time=300.0)]
    world = World(sites(a=8, b=8), late)
    world.submit(
        {"usage": "pipeline", "earliest": 0, "latest": 1000, "stages": stages}, {"A.1": "a:2", "B.2": "b:1"}
    )
    world.run()
    assert world.starts == {"a:2": 200.0, "b:1": 300.0}


def test_a_job_that_may_begin_too_late_is_refused_with_its_reason():
    jobs = [job("a:2", 6, 100, begin_time=300.0), job("b:1", 2, 100, begin_time=5.0)]
    world = World(sites(a=8, b=8), jobs)
    reply = asked({**PAIR, "latest": 350.0}, BOTH, world=world)
    assert reply.outcome == "refused"
    assert "jobs: A: job a:2 begins 299 s from now at the earliest" in reply.reason


def test_a_pipeline_runs_its_stages_one_after_another():
    jobs = [job("a:1", 8, 30, user="x"), job("a:2", 8, 60), job("b:2", 4, 40)]
    world = World(sites(a=8, b=4), jobs)
    stages = [
        {"machine": "A", "nodes": 8, "duration": 60},
        {"machine": "B", "nodes": 4, "duration": 40, "offset": 70},
    ]
    request = world.submit(
        {"usage": "pipeline", "earliest": 0, "latest": 1000, "stages": stages},
        {"A.1": "a:2", "B.2": "b:2"},
    )
    world.run()
    assert world.replies[request].outcome == "accepted", world.replies[request]
    assert (world.starts["a:2"], world.starts["b:2"]) == (30.0, 100.0)
    assert phases(world) == ["over"] and world.kept == {}


def test_three_sites_start_together():
    jobs = [job("a:1", 4, 40, user="x"), job("c:1", 2, 70, user="x")]
    jobs += [job("a:2", 2), job("b:2", 3), job("c:2", 1)]
    world = World(sites(a=4, b=4, c=2), jobs)
    world.submit(multiple(6, A=(2, 2), B=(3, 3), C=(1, 1)), {"A": "a:2", "B": "b:2", "C": "c:2"})
    world.run()
    assert {world.starts[name] for name in ("a:2", "b:2", "c:2")} == {70.0}


def test_starts_are_at_a_mark_that_all_sites_have():
    machines = {
        "A": {"pool": "a:q", "grain": 60, "min_duration": 60, "slack": 0},
        "B": {"pool": "b:q", "grain": 600, "min_duration": 600, "slack": 0},
    }
    world = World(sites(a=8, b=8), [job("a:1", 8, 4930, user="x")], machines=machines)
    world.submit(multiple(8, A=(6, 6), B=(2, 2), duration=10920))
    world.run(until=10)
    starts = {one.id.rpartition("-")[2]: (one.start, one.end) for one in world.kept.values()}
    assert starts == {"A": (5400.0, 16320.0), "B": (5400.0, 16800.0)}
    late = World(
        sites(a=8, b=8), [job("a:1", 8, 4930, user="x")], machines={**machines, "A": {"pool": "a:q"}}
    )
    late.submit(multiple(8, A=(6, 6), B=(2, 2), duration=10920))
    late.run(until=10)
    ends = {one.end for one in late.kept.values() if one.id.endswith("-A")}
    # A minute longer, for jobs that start a moment late.
    assert ends == {16380.0}
    short = world.submit(multiple(8, A=(6, 6), B=(2, 2), duration=540), time=20)
    world.run(until=200)
    assert world.replies[short].outcome == "accepted" and world.status("m2")["phase"] == "refused"
    assert "B: request (fewer nodes or seconds" in world.status("m2")["why"]


# ---------------------------------------------------------------------- the queue comes first


def test_a_reservation_takes_its_place_behind_the_queue_and_its_jobs_start_nowhere_else():
    jobs = [job("a:1", 8, 50, user="x"), job("a:3", 8, 70, user="x"), job("a:2", 6, 100), job("b:1", 2)]
    world = World(sites(a=8, b=8), jobs)
    world.submit(PAIR, BOTH)
    world.run()
    assert world.starts == {"a:1": 0.0, "a:3": 50.0, "a:2": 120.0, "b:1": 120.0}


@given(
    rows=st.lists(
        st.tuples(st.integers(1, 8), st.integers(1, 60), st.integers(0, 3)), min_size=1, max_size=12
    ),
    nodes=st.integers(1, 8),
    duration=st.integers(1, 60),
)
@settings(max_examples=60, deadline=None)
def test_no_job_that_was_queued_before_is_delayed(rows, nodes, duration):
    """Run times are the limits, and the order of the queue stays: E3 of the dossier, by the real policy."""
    from headway_plugins.policies.conservative import Conservative

    jobs = [job(f"a:{at}", size, seconds, late, user="x") for at, (size, seconds, late) in enumerate(rows)]
    alone = World(sites(a=8), jobs, policy=Conservative())
    alone.run()
    beside = World(sites(a=8), jobs, policy=Conservative())
    beside.submit(multiple(nodes, duration=duration, A=(nodes, nodes)), time=3.0)
    beside.run()
    assert phases(beside) == ["over"] and beside.starts == alone.starts


def test_what_is_refused_leaves_nothing_and_its_jobs_wait_until_it_is_cancelled():
    world = World(sites(a=8, b=8), TWO)
    world.submit({**PAIR, "latest": 149.0}, BOTH)
    world.run(until=200)
    assert world.status()["phase"] == "refused" and world.kept == {}
    assert world.status()["why"].startswith("not possible at A")
    waiting = world.scheduler.state
    assert "headway metajob cancel m1" in waiting.why_waiting(waiting.jobs["b:1"])
    world.ask(210.0, "cancel", "m1")
    world.run()
    assert world.starts["a:2"] == world.starts["b:1"] == 210.0


# ---------------------------------------------------------------------- sites that refuse, competitors


def test_a_site_that_answers_the_probe_and_refuses_the_rest():
    world = World(sites(a=8, b=8))
    world.meddler.forbids = lambda one: (
        isinstance(one, d.Reserve) and one.reservation.pool == "b:q" and "-0-" not in one.reservation.id
    )
    world.submit(multiple(8, A=(2, 6), B=(2, 6)))
    world.run()
    assert phases(world) == ["refused"] and world.kept == {}
    tried = [row[2] for row in world.status()["rows"] if row[:2] == ["D", "B"]]
    assert tried[:5] == [2, 3, 4, 5, 6]
    assert "B: forbidden by a plugin" in world.status()["why"]


def test_two_metajobs_in_competition_both_end_and_no_node_is_given_twice():
    world = World(sites(a=8, b=8))
    world.submit(multiple(12, A=(4, 8), B=(4, 8)))
    world.submit(multiple(12, A=(4, 8), B=(4, 8)), user="bob")
    world.run(until=50)
    assert phases(world) == ["reserved", "reserved"]
    spans = {}
    for one in world.kept.values():
        spans.setdefault(one.pool, []).append((one.start, one.end, one.processors))
    for several in spans.values():
        for start, _, _ in several:
            assert sum(size for begin, over, size in several if begin <= start < over) <= 8


@given(
    seed=st.integers(0, 1000),
    rate=st.sampled_from([0.0, 0.2, 0.5]),
    latency=st.sampled_from([0.0, 3.0, 40.0]),
    rivals=st.integers(1, 3),
)
@settings(max_examples=40, deadline=None)
def test_whatever_the_sites_refuse_and_however_late_parts_start_together_or_nothing_stays(
    seed, rate, latency, rivals
):
    jobs = [job("a:1", 8, 50, user="x"), job("b:1", 3, 90, user="x")]
    jobs += [job(f"{site}:{10 + at}", 2, 50) for at in range(rivals) for site in "ab"]
    faults = Faults(latency=latency, failure_rate=rate)
    world = World(sites(a=8, b=8), jobs, faults=faults, seed=seed, lead=300, answer_timeout=100)
    for at in range(rivals):
        world.submit(
            multiple(4, A=(2, 2), B=(2, 2), duration=60, latest=3000),
            {"A": f"a:{10 + at}", "B": f"b:{10 + at}"},
        )
    world.run(until=4000)
    assert set(phases(world)) <= {"over", "refused", "lost"}
    assert world.kept == {}
    for live in world.plugin._lives.values():
        if live.kept.phase == "over" and len(live.kept.bound) == 2:
            begun = {world.starts[job_id] for job_id in live.kept.jobs.values()}
            assert len(begun) == 1 or rate > 0 or latency > 0


# ---------------------------------------------------------------------- crashes


@pytest.mark.parametrize("sent", [True, False], ids=["carried out", "not sent"])
@pytest.mark.parametrize("after", range(1, 13))
def test_a_crash_at_any_call_leaves_no_reservation_but_a_success(after, sent):
    jobs = [job("a:1", 8, 50, user="x"), job("a:2", 6, 100), job("b:1", 2, 100)]
    world = World(sites(a=8, b=8), jobs, lead=10)
    world.submit(PAIR, BOTH)
    if world.run(decisions=after, sent=sent):
        pytest.skip("the search is over before")
    before = world.status()["phase"]
    world.begin()
    world.run(until=40)
    assert world.status()["phase"] == "reserved" and world.problems == []
    # What was reserved with success is still there; else all of it is of the second search.
    names = {name.partition("-")[0] for name in world.kept}
    assert len(world.kept) == 2 and names == {"m1" if before == "reserved" else "m1r1"}
    world.run()
    assert world.starts["a:2"] == world.starts["b:1"] and world.kept == {}


def test_a_reservation_that_comes_late_is_removed():
    world = World(sites(a=8, b=8))
    world.submit({**PAIR, "latest": 149.0})
    world.run(until=10)
    (live,) = world.plugin._lives.values()
    live.rest("refused", 10.0)
    world.adapter.apply(
        10.0, [d.Reserve(Reservation("m1-7-A", 500, 600, "a:q", 2, users=("ann",), ours=True))]
    )
    world.run(until=400)
    assert "m1-7-A" not in world.kept


def test_a_reservation_of_another_maker_with_such_a_name_is_left_alone():
    world = World(sites(a=8, b=8))
    theirs = Reservation("m1-0-A", 500, 600, "a:q", 2, users=("root",))
    world.adapter.apply(0.0, [d.Reserve(theirs)])
    world.submit(PAIR, time=1.0)
    world.run(until=100)
    assert world.kept["m1-0-A"] == theirs
    assert not any(
        isinstance(one, d.Unreserve) and one.reservation_id == "m1-0-A" for _, one in world.decisions
    )


# ---------------------------------------------------------------------- losses


@pytest.mark.parametrize(
    ("on_loss", "phase", "left", "then"),
    [
        ("keep", "reserved", 1, "other parts stay reserved"),
        ("cancel_all", "lost", 0, "other parts are given back"),
        ("replan", "reserved", 2, "a new place is searched for"),
    ],
)
def test_a_site_that_loses_a_reservation(on_loss, phase, left, then):
    world = World(sites(a=8, b=8), TWO)
    world.submit(PAIR, BOTH, on_loss=on_loss)
    world.run(until=5)
    (lost,) = [name for name in world.kept if name.endswith("-B")]
    world.adapter.apply(world.now, [d.Unreserve(lost)])
    world.run(until=20)
    assert world.status()["phase"] == phase and len(world.kept) == left
    assert world.status()["losses"] == [f"{lost}: the reservation is gone"]
    assert any(f"{lost}: the reservation is gone" in problem for problem in world.problems)
    (letter,) = world.letters
    assert (letter.user, letter.subject) == ("ann", "metajob m1 has lost a part")
    assert f"  B: {lost}: the reservation is gone (job b:1)\n" in letter.text and then in letter.text
    assert ("headway metajob cancel m1" in letter.text) == (on_loss != "replan")
    world.run()
    assert len(world.letters) == 1, "it is told once"
    if on_loss == "replan":
        assert world.starts["a:2"] == world.starts["b:1"] and phases(world) == ["over"]


@pytest.mark.parametrize(("sent", "letters"), [(True, 1), (False, 0)])
def test_a_loss_that_was_written_down_before_a_crash_is_told_no_second_time(sent, letters):
    world = World(sites(a=8, b=8), TWO)
    world.submit(PAIR, BOTH, on_loss="cancel_all")
    world.run(until=5)
    (lost,) = [name for name in world.kept if name.endswith("-B")]
    world.adapter.apply(world.now, [d.Unreserve(lost)])
    # The loss, and a decision that follows from it, are made in one step; the crash comes right after it.
    assert not world.run(decisions=1, sent=sent)
    world.begin()
    world.run(until=100)
    assert len(world.letters) == letters and world.status()["phase"] == "lost" and world.kept == {}


def subjects(world: World) -> list[str]:
    return [letter.subject for letter in world.letters]


def refused(world: World) -> list[ev.DecisionFailed]:
    return [one for one in world.events if isinstance(one, ev.DecisionFailed)]


def silent_after_success(on_loss: str, until: float, **more) -> tuple[World, str]:
    """Site b is silent from 5 on, when the metajob has all it wants; the name of its part there."""
    world = World(sites(a=8, b=8), TWO, patience=20, **more)
    world.submit(PAIR, BOTH, on_loss=on_loss)
    world.run(until=5)
    world.silence("b", until)
    world.run(until=6)
    assert world.status()["phase"] == "reserved"
    (part,) = [name for name in world.kept if name.endswith("-B")]
    return world, part


def test_a_short_outage_after_success_is_no_loss():
    world, _ = silent_after_success("cancel_all", 24)
    world.run()
    assert world.letters == [] and world.problems == []
    assert world.starts["a:2"] == world.starts["b:1"] == 50.0


def test_a_site_that_is_silent_for_long_is_a_loss_and_with_keep_its_part_is_there_when_it_answers():
    world, part = silent_after_success("keep", 40)
    world.run(until=30)
    assert world.status()["phase"] == "reserved" and len(world.kept) == 2
    assert world.status()["losses"] == [f"{part}: the site does not answer"]
    (letter,) = world.letters
    assert [one.time for one in world.events if isinstance(one, ev.ClusterSilent)] == [5.0]
    assert next(time for time, one in world.decisions if one is letter) == 25.0
    assert f"  B: {part}: the site does not answer (job b:1)\n" in letter.text
    assert "may still be there" in letter.text
    world.run(until=45)
    assert subjects(world)[1:] == ["metajob m1 has a part again"] and part in world.letters[1].text
    assert world.status()["losses"] == world.status()["unheard"] == []
    world.run()
    assert len(world.letters) == 2 and world.starts["a:2"] == world.starts["b:1"] == 50.0
    assert phases(world) == ["over"] and world.kept == {}


def test_a_part_that_a_silent_site_has_lost_is_told_when_it_answers():
    world, part = silent_after_success("keep", 40)
    world.run(until=30)
    world.adapter.apply(world.now, [d.Unreserve(part)])
    world.run(until=45)
    assert subjects(world) == ["metajob m1 has lost a part"] * 2
    assert world.status()["losses"] == [f"{part}: the reservation is gone"]
    world.run(until=200)
    assert len(world.letters) == 2


def test_with_cancel_all_a_silent_site_gives_its_part_back_when_it_answers():
    world, part = silent_after_success("cancel_all", 45)
    world.run(until=40)
    # Nothing waits for the silent site: the other part is free, and no cancel was tried there.
    assert world.status()["phase"] == "lost" and list(world.kept) == [part]
    assert subjects(world) == ["metajob m1 has lost a part"]
    assert "given back when the site answers" in world.letters[0].text
    assert not refused(world) and world.status()["leaks"] == []
    world.run(until=49)
    assert world.kept == {}
    bound = [
        one.reservation_id for _, one in world.decisions if isinstance(one, d.Bind) and one.job_id == "b:1"
    ]
    assert bound == [part, ""], "its job was taken out of it first"
    world.ask(60, "cancel", "m1")
    world.run()
    assert len(world.letters) == 1 and world.starts["b:1"] == 60.0


def test_a_replan_does_not_wait_for_a_site_that_does_not_answer():
    world = World(sites(a=8, b=8), [job("a:1", 8, 50, user="x")], patience=20, answer_timeout=10)
    machines = {name: {"min": 1, "max": 8} for name in "AB"}
    wanted = {
        "usage": "single",
        "earliest": 10,
        "latest": 1000,
        "total": 6,
        "duration": 100,
        "machines": machines,
    }
    world.submit(wanted, on_loss="replan")
    world.run(until=5)
    world.silence("b", 40)
    world.run(until=30)
    assert sorted(world.kept) == ["m1-1-B", "m1r1-1-A"] and world.status()["phase"] == "reserved"
    world.run(until=45)
    assert list(world.kept) == ["m1r1-1-A"], "the silent site has given its part back"


def test_a_job_is_bound_when_its_site_answers_again():
    world = World(sites(a=8, b=8), [job("a:1", 8, 200, user="x"), *TWO[1:]], patience=1000)
    world.meddler.forbids = lambda one: isinstance(one, d.Bind)
    world.submit(PAIR, BOTH)
    world.run(until=0.5)
    world.silence("b", 40)
    world.meddler.forbids = lambda one: False
    world.run()
    assert not refused(world), "b is not asked meanwhile"
    assert world.starts["a:2"] == world.starts["b:1"] == 200.0


def test_a_site_that_is_away_when_the_daemon_begins_anew_has_its_part_when_it_joins():
    world, part = silent_after_success("keep", 42)
    made, bound = world.kept[part], [one for one in world.events if isinstance(one, ev.JobChanged)]
    world.begin(without="b")
    world.first.append(ev.ClusterSilent(6, "b", "no route"))
    world.run(until=40)
    assert subjects(world) == ["metajob m1 has lost a part"] and world.status()["phase"] == "reserved"
    # Its pools come first, and its jobs a cycle later: until then nobody knows that its job is there.
    world.first = [ev.PoolChanged(40, PoolDescription("b:q", 8)), ev.ReservationMade(40, made)]
    world.run(until=41)
    world.first = [ev.JobSubmitted(41, one.job) for one in bound if one.job.id == "b:1"]
    world.run(until=43)
    assert subjects(world)[1:] == ["metajob m1 has a part again"]
    world.run()
    assert world.starts["a:2"] == world.starts["b:1"] == 50.0 and world.kept == {}


def test_all_that_is_lost_at_once_is_one_letter_and_nothing_else_is_written():
    world = World(sites(a=8, b=8), TWO)
    world.submit(PAIR, BOTH)
    world.run(until=5)
    world.adapter.apply(world.now, [d.Unreserve(name) for name in world.kept])
    world.run(until=20)
    (letter,) = world.letters
    assert (
        letter.subject == "metajob m1 has lost 2 parts" and letter.text.count("the reservation is gone") == 2
    )
    quiet = World(sites(a=8, b=8), TWO)
    quiet.submit(PAIR, BOTH)
    quiet.ask(5, "cancel", "m1")
    quiet.run()
    assert quiet.letters == []


def test_a_reservation_that_is_deleted_with_its_job_is_a_loss():
    # As an operator of PBS does it: the jobs in a reservation's queue go with it.
    world = World(sites(a=8, b=8), TWO)
    world.submit(PAIR, BOTH)
    world.run(until=5)
    (lost,) = [name for name in world.kept if name.endswith("-B")]
    world.adapter.apply(world.now, [d.Cancel("b:1"), d.Unreserve(lost)])
    world.run(until=20)
    assert world.status()["losses"] == [f"{lost}: the reservation is gone"]
    assert world.status()["phase"] == "reserved" and len(world.kept) == 1


def test_a_part_is_given_back_when_its_job_has_ended():
    jobs = [job("a:2", 6, 30), job("b:1", 2, 100)]
    world = World(sites(a=8, b=8), jobs)
    world.submit(PAIR, BOTH)
    world.run(until=60)
    assert [one.pool for one in world.kept.values()] == ["b:q"]


# ---------------------------------------------------------------------- rules


@pytest.mark.parametrize(
    ("limits", "metajob", "rule"),
    [
        ({"max_reservations": 1}, {}, "count"),
        ({"max_nodes": 5}, {}, "size"),
        ({"max_duration": 99.0}, {}, "duration"),
        ({"max_node_seconds": 599.0}, {}, "budget"),
        ({}, {"earliest": 700000.0}, "horizon"),
        ({}, {"latest": 140.0}, "place"),
    ],
)  # fmt: skip
def test_each_rule_refuses_by_its_name(limits, metajob, rule):
    wide = {"max_reservations": 9, "max_nodes": 8, "max_duration": 1000.0, "max_node_seconds": 600.0}
    for rules in (wide, {**wide, **limits}):
        world = World(sites(a=8, b=8), [job("a:1", 8, 50, user="x")], limits=rules)
        there = Reservation("r1", 900000, 900010, "a:q", 1, users=("ann",), ours=True)
        world.adapter.apply(0.0, [d.Reserve(there)])
        world.submit({**PAIR, **(metajob if rules is not wide or not limits else {})}, time=1.0)
        world.run(until=100)
        if rules is wide and limits:
            assert world.status()["phase"] == "reserved"
        else:
            assert world.status()["phase"] == "refused" and f"A: {rule} (" in world.status()["why"]


def test_what_all_users_reserve_is_bounded_and_operators_are_not():
    for operator in (False, True):
        world = World(sites(a=8, b=8), budget=0.0001)
        for user in ("ann", "bob"):
            world.submit(multiple(4, A=(4, 4), duration=100), time=1.0, user=user, operator=operator)
        world.run(until=90)
        second = "reserved" if operator else "refused"
        assert phases(world) == ["reserved", second]
        assert operator or "A: budget (" in world.status("m2")["why"]


def test_reservations_of_both_plugins_count_in_both():
    limits = {"max_reservations": 1, "max_nodes": 8}
    other = Reservations(ReservationOptions(limits=limits))
    world = World(sites(a=8, b=8), limits=limits, plugins=[other])
    world.submit(multiple(2, A=(2, 2)))
    world.run(until=5)
    assert phases(world) == ["reserved"]
    asked = ev.ReservationRequested(6.0, "w", 6.0, 10.0, 0, 1, "a:q", "ann")
    world.scheduler.step(6.0, [asked])
    answer = world.scheduler.answer("w")
    assert answer is not None and "account ann has 1 reservations, 1 are allowed" in answer.reason


# ---------------------------------------------------------------------- users


def asked(metajob=PAIR, jobs=None, user="ann", world=None, **more):
    world = world or World(sites(a=8, b=8), TWO)
    request = world.submit(metajob, jobs, user=user, time=world.now + 1, **more)
    world.run(until=world.now + 2)
    return world.replies[request]


def with_a(**more):
    """The pair, with more of machine A."""
    return {**PAIR, "machines": {"A": {"min": 6, "max": 6, **more}, "B": {"min": 2, "max": 2}}}


@pytest.mark.parametrize(
    ("metajob", "jobs", "says"),
    [
        (PAIR, {"A": "a:1"}, "there is no job 'a:1' of yours"),
        (PAIR, {"A": "a:99"}, "there is no job 'a:99' of yours"),
        (PAIR, {"B": "a:2"}, "is in pool 'a:q', expected 'b:q'"),
        (PAIR, {"C": "a:2"}, "expected one of A, B, found 'C'"),
        (PAIR, {"A; rm -rf /": "a:2"}, "expected one of A, B, found 'A; rm -rf /'"),
        ({**PAIR, "duration": 99.0}, BOTH, "may run for 100 s, and the reservation lasts 99 s"),
        (multiple(8, A=(6, 6), X=(2, 2)), None, "there is no machine X; expected some of A, B"),
        (multiple(8, **{"A": (6, 6), "$(id)": (2, 2)}), None, "there is no machine $(id)"),
        ({**PAIR, "latest": 1e300}, None, "expected at most 1e+11 s"),
        ({**PAIR, "earliest": -1e300}, None, "expected at most 1e+11 s"),
        (multiple(1 << 40, A=(1, 1 << 40), B=(0, 1)), None, "expected at most 1073741824, found more"),
        ({**PAIR, "total": 9}, None, "total: expected 8 to 8 nodes"),
        ({**PAIR, "latest": 50.0}, None, "latest: expected at least 100 s after earliest"),
        ({**PAIR, "usage": "all"}, None, "Invalid enum value 'all'"),
        ({"usage": "multiple"}, None, "missing required field"),
        (with_a(user="root"), None, "only an operator may reserve for 'root'"),
        (with_a(account="phys"), None, "'ann' does not belong to an account 'phys'"),
        (with_a(email="a\n.b"), None, "printable letters"),
    ],
)  # fmt: skip
def test_what_a_user_may_not_ask_is_refused_with_its_reason(metajob, jobs, says):
    reply = asked(metajob, jobs)
    assert reply.outcome == "refused" and says in reply.reason


@pytest.mark.parametrize(
    "text", ["", "[]", "{", "null", '{"metajob": []}', '{"metajob": {}, "x": 1}', "\ud800"]
)
@pytest.mark.parametrize("verb", ["submit", "status", "cancel", "eval"])
def test_a_text_that_is_none_of_ours_is_refused(verb, text):
    world = World(sites(a=8, b=8))
    request = world.ask(0.0, verb, text)
    world.run(until=1)
    if (verb, text) != ("status", ""):
        assert world.replies[request].outcome == "refused"
    assert world.problems == []


def test_a_job_belongs_to_one_metajob_and_to_its_user():
    world = World(sites(a=8, b=8), TWO)
    world.submit(PAIR, BOTH)
    again = asked(PAIR, {"B": "b:1"}, world=world)
    assert again.outcome == "refused" and "asks for another reservation" in again.reason
    assert "there is no job" in asked(PAIR, {"B": "b:1"}, user="eve", world=world).reason


def lacking(*kinds: str) -> ClusterDescription:
    """Two sites, of which b lacks something that a has."""
    both = sites(a=8, b=8)
    pools = tuple(
        msgspec.structs.replace(pool, lacks=kinds) if pool.name == "b:q" else pool for pool in both.pools
    )
    return msgspec.structs.replace(both, pools=pools)


def test_a_machine_whose_cluster_makes_no_reservations_is_a_mistake_in_the_configuration():
    with pytest.raises(UserError, match=r"machines\.B\.pool: expected a pool whose cluster makes reserv"):
        World(lacking("Reserve", "Unreserve"))


def test_nothing_is_asked_of_a_cluster_that_joins_and_cannot_carry_it_out():
    for lacks, jobs, says in (
        (("Reserve", "Unreserve"), None, "machines: B: its cluster makes no reservations"),
        (("Bind",), BOTH, "jobs: B: its cluster cannot bind jobs to reservations"),
    ):
        world = World(sites(a=8, b=8), TWO)
        (pool,) = (pool for pool in lacking(*lacks).pools if pool.name == "b:q")
        world.first = [*world.first, ev.PoolChanged(0.0, pool)]
        reply = asked(PAIR, jobs, world=world)
        assert reply.outcome == "refused" and says in reply.reason


def test_a_metajob_is_seen_and_cancelled_by_its_user_and_by_operators_alone():
    world = World(sites(a=8, b=8), TWO)
    world.submit(PAIR, BOTH)
    mine = [world.ask(5.0, verb, "m1", user="eve") for verb in ("status", "cancel")]
    listed = world.ask(5.0, "status", user="eve")
    ours = world.ask(6.0, "status", user="root", operator=True)
    shown = world.ask(7.0, "status", "m1")
    over = world.ask(8.0, "cancel", "m1", user="root", operator=True)
    world.run(until=20)
    unknown = {world.replies[request].reason for request in mine}
    assert unknown == {"there is no metajob of yours with this id"}
    assert world.replies[listed].reason == "[]"
    (row,) = msgspec.json.decode(world.replies[ours].reason)
    assert row["id"] == "m1" and row["phase"] == "reserved"
    told = msgspec.json.decode(world.replies[shown].reason)
    assert [part["bound"] for part in told["parts"]] == [True, True]
    assert world.replies[over].outcome == "accepted" and world.kept == {}
    world.run()
    # The jobs go on as any job.
    assert world.starts["b:1"] == 8.0 and world.starts["a:2"] == 50.0


def test_a_thousand_metajobs_of_one_user_and_of_many():
    world = World(sites(a=8, b=8), max_searches=50)
    for at in range(1000):
        world.submit(multiple(2, A=(1, 1), B=(1, 1), latest=1e5), user=f"u{at % 10}")
    world.run(until=400)
    outcomes = [reply.outcome for reply in world.replies.values()]
    assert outcomes.count("accepted") == 50 and set(phases(world)) <= {"reserved", "over"}
    assert world.problems == []


def test_jobs_need_a_cluster_that_binds():
    world = World(sites(a=8, b=8), TWO)
    world.plugin.startup(world.scheduler.state, frozenset({d.Reserve, d.Unreserve}))
    assert "cannot bind jobs" in asked(PAIR, BOTH, world=world).reason


@pytest.mark.parametrize("name", ["A-B", "1A", "", "A;", "a" * 40, "A B"])
def test_a_machine_needs_a_name_that_can_stand_in_a_reservations(name):
    with pytest.raises(ValueError, match="machines"):
        MetajobOptions(machines={name: {"pool": "a:q"}})


# ---------------------------------------------------------------------- pools of nodes


def on_nodes() -> ClusterDescription:
    """Site a with four nodes, of which two are fast, and site b with two."""
    nodes = [NodeDescription(f"a:n{at}", 4, pools=("a:q",), features=("fast",) * (at > 1)) for at in range(4)]
    nodes += [NodeDescription(f"b:n{at}", 4, pools=("b:q",)) for at in range(2)]
    flat = sites()
    pools = (PoolDescription("a:q"), PoolDescription("b:q"), *flat.pools)
    placed = (Site("a", pools=("a:q",)), Site("b", pools=("b:q",)), *flat.sites.sites)
    return ClusterDescription("all", pools, tuple(nodes), sites=Sites(placed))


def whole(name: str, nodes: int, seconds: float = 100, **more):
    return traced(
        name, 4 * nodes, seconds, 0, pool=f"{name[0]}:q", user="ann", nodes=nodes, exclusive=True, **more
    )


FAST = {
    "A": {"pool": "a:q", "nodes_with": ["fast"], "grain": 1, "min_duration": 1, "slack": 0},
    "B": {"pool": "b:q", "grain": 1, "min_duration": 1, "slack": 0},
}


def test_nodes_are_reserved_by_what_they_have_and_jobs_start_on_them():
    jobs = [whole("a:1", 1, 50, required_nodes=("a:n3",)), whole("a:2", 2), whole("b:1", 1)]
    world = World(on_nodes(), jobs, machines=FAST, plugins=[FirstFit()])
    request = world.submit(multiple(3, A=(2, 9), B=(1, 1)), {"A": "a:2", "B": "b:1"})
    world.run(until=20)
    assert world.replies[request].outcome == "accepted" and world.problems == []
    nodes = {one.id.rpartition("-")[2]: one.nodes for one in world.kept.values()}
    assert nodes == {"A": ("a:n2", "a:n3"), "B": ("b:n0",)}
    world.run()
    assert world.starts == {"a:1": 0.0, "a:2": 50.0, "b:1": 50.0} and world.kept == {}


def test_a_node_that_goes_down_is_a_loss():
    world = World(on_nodes(), machines=FAST)
    world.submit(multiple(3, A=(2, 2), B=(1, 1), duration=1000), on_loss="cancel_all")
    world.run(until=5)
    assert phases(world) == ["reserved"]
    world.first = [ev.NodeDown(world.now, "a:n2", "fan")]
    world.run(until=100)
    assert phases(world) == ["lost"] and world.kept == {}
    assert "has lost nodes (DEGRADED)" in world.status()["losses"][0]
    assert ["has lost nodes (DEGRADED)" in letter.text for letter in world.letters] == [True]


@pytest.mark.parametrize(("up", "phase"), [(True, "reserved"), (False, "lost")])
def test_nodes_of_a_site_that_answers_again_have_time_to_report(up, phase):
    world = World(on_nodes(), machines=FAST, patience=20)
    world.submit(multiple(3, A=(2, 2), B=(1, 1), duration=1000), on_loss="cancel_all")
    world.run(until=5)
    world.silence("a", 20)
    world.run(until=20)
    world.first = [ev.NodeDown(20, "a:n2", "Not responding")]
    world.run(until=39)
    assert phases(world) == ["reserved"] and world.letters == []
    if up:
        world.first = [ev.NodeUp(39, next(node for node in on_nodes().nodes if node.name == "a:n2"))]
    world.run(until=100)
    assert phases(world) == [phase] and len(world.letters) == (not up)
    lost = [time for time, one in world.decisions if isinstance(one, d.Tell)]
    assert lost == [] if up else lost == [40.0]


def test_no_machine_is_asked_for_more_nodes_than_it_has():
    world = World(on_nodes(), machines=FAST)
    assert (
        "machines: A: min: expected at most 2 nodes, found 3"
        in asked(multiple(4, A=(3, 3), B=(1, 1)), world=world).reason
    )
    assert "total: expected 2 to 4 nodes" in asked(multiple(9, A=(1, 1 << 29), B=(1, 9)), world=world).reason
