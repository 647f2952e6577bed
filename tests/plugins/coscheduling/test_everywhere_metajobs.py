"""A job that waits at every site, through the real scheduler on emulated sites with one clock."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from building import traced
from hypothesis import given, settings
from hypothesis import strategies as st
from metajob_world import World, sites

from headway import decisions as d
from headway import events as ev
from headway_adapters.emulated import Faults
from headway_plugins.coscheduling.metajob_status import in_words


def job(name: str, processors: int = 1, seconds: float = 100, submit: float = 0, user: str = "ann", **more):
    return traced(name, processors, seconds, submit, pool=f"{name.partition(':')[0]}:q", user=user, **more)


def busy(site: str, seconds: float) -> Any:
    """A job that fills a site of eight processors."""
    return job(f"{site}:1", 8, seconds, user="x")


def copies(*names: str, seconds: float = 100, **more: Any) -> list[Any]:
    return [job(f"{name}:2", 6, seconds, **more) for name in names]


def single(*machines: str, latest: float = 1e6, earliest: float = 0.0, duration: float = 100.0, **more: Any):
    return {
        "usage": "single", "earliest": earliest, "latest": latest, "total": 6, "duration": duration,
        "machines": {name: {"min": 1, "max": 8} for name in machines}, "preference": list(machines), **more,
    }  # fmt: skip


def race(*machines: str, jobs: list[Any] = (), time: float = 0.0, **more: Any) -> World:  # type: ignore[assignment]
    """A world in which ann's job has a copy at each machine."""
    known = {name: more.pop(name) for name in ("latest", "earliest", "duration") if name in more}
    seconds = more.pop("seconds", 100)
    names = [name.lower() for name in machines]
    world = World(sites(**dict.fromkeys(sorted(names), 8)), [*jobs, *copies(*names, seconds=seconds)], **more)
    submit(world, *machines, time=time, **known)
    return world


def submit(world: World, *machines: str, time: float = 0.0, **more: Any) -> str:
    text = {
        "metajob": single(*machines, **more),
        "jobs": {name: f"{name.lower()}:2" for name in machines},
        "everywhere": True,
    }
    return world.ask(time, "submit", msgspec.json.encode(text).decode())


def ours(world: World) -> dict[str, str]:
    """How the copies ended."""
    return {name: outcome for name, outcome in world.outcomes.items() if name.endswith(":2")}


def phase(world: World) -> str:
    return world.status()["phase"]


# ---------------------------------------------------------------------- the first start


def test_the_first_copy_that_starts_is_the_job_and_the_others_are_removed():
    world = race("A", "B", "C", jobs=[busy("a", 50), busy("b", 30), busy("c", 90)])
    world.run()
    assert ours(world) == {"a:2": "cancelled", "b:2": "completed", "c:2": "cancelled"}
    assert world.starts["b:2"] == 30.0 and world.starts["a:2"] is None
    assert phase(world) == "over" and world.problems == []
    gone = [one for time, one in world.decisions if isinstance(one, d.Cancel) and time == 31.0]
    assert {one.job_id for one in gone} == {"a:2", "c:2"}


@pytest.mark.parametrize("order", [("A", "B", "C"), ("C", "A", "B"), ("B", "C", "A")])
def test_of_sites_with_room_at_one_time_the_first_gets_the_job_and_no_other_begins(order):
    world = race(*order)
    world.run()
    first = f"{order[0].lower()}:2"
    assert [name for name, outcome in ours(world).items() if outcome == "completed"] == [first]
    assert [one.job_id for _, one in world.decisions if isinstance(one, d.Start)][:1] == [first]
    assert {name: time for name, time in world.starts.items() if time is not None} == {first: 0.0}


def test_the_place_of_a_copy_that_does_not_start_goes_to_another_job():
    world = race("A", "B", jobs=[job("b:3", 8, 10, user="x", submit=0.5)])
    world.run()
    assert world.starts["a:2"] == 0.0 and world.starts["b:3"] == 0.5


def test_a_start_that_fails_leaves_the_job_to_the_other_sites():
    world = race("A", "B")
    refused: list[d.Decision] = []
    world.refuses = lambda one: (
        isinstance(one, d.Start) and one.job_id == "a:2" and not refused and not refused.append(one)
    )
    world.run()
    assert refused and ours(world) == {"a:2": "cancelled", "b:2": "completed"} and world.starts["b:2"] < 60


def test_no_other_copy_starts_while_a_start_is_on_its_way():
    world = race("A", "B", jobs=[busy("a", 50), busy("b", 55)], faults=Faults(latency=20.0))
    world.run()
    started = [one.job_id for _, one in world.decisions if isinstance(one, d.Start) and ":2" in one.job_id]
    assert started == ["a:2"] and ours(world) == {"a:2": "completed", "b:2": "cancelled"}


def test_nothing_starts_before_the_earliest_start():
    world = race("A", "B", earliest=70.0)
    world.run()
    assert world.starts == {"a:2": 70.0, "b:2": None} and phase(world) == "over"


def test_copies_that_do_not_start_in_time_are_removed():
    world = race("A", "B", jobs=[busy("a", 500), busy("b", 400)], latest=450.0)
    world.run()
    assert phase(world) == "refused" and set(ours(world).values()) == {"cancelled"}
    assert "no copy had started" in world.status()["why"]


def test_a_copy_that_runs_already_is_the_job():
    world = race("A", "B", jobs=[busy("b", 50)], time=20.0)
    world.run()
    assert ours(world) == {"a:2": "completed", "b:2": "cancelled"} and world.starts["a:2"] == 0.0


# ---------------------------------------------------------------------- two starts


@pytest.mark.parametrize(("first", "kept"), [(("b", "a"), "b:2"), (("a", "b"), "a:2")])
def test_of_two_that_run_the_lower_start_is_kept(first, kept):
    world = race("A", "B", jobs=[busy("a", 50), busy("b", 50)])
    world.run(until=40)
    for name in "ab":
        world.adapter.apply(40.0, [d.Kill(f"{name}:1")])
    world.by_hand(*((40.0 + at, f"{name}:2") for at, name in enumerate(first)))
    world.run()
    assert [name for name, outcome in ours(world).items() if outcome == "completed"] == [kept]
    assert set(ours(world).values()) == {"completed", "cancelled"}


def test_a_lower_start_that_is_seen_late_is_kept_and_the_other_is_killed():
    world = race("A", "B", jobs=[busy("a", 50), busy("b", 30)], seconds=500, duration=500.0)
    world.run(until=5)
    world.silence("b", 200.0)
    world.run(until=31)
    world.by_hand((35.0, "b:2"))
    world.run()
    assert world.starts["a:2"] == 50.0 and world.starts["b:2"] == 35.0
    assert ours(world) == {"a:2": "cancelled", "b:2": "completed"} and phase(world) == "over"


def test_a_copy_that_has_ended_is_the_job_even_if_one_that_runs_began_before():
    world = race("A", "B", jobs=[busy("a", 10), busy("b", 30)], seconds=500, duration=500.0)
    world.run(until=5)
    world.silence("b", 100.0)
    world.run(until=31)
    world.adapter.apply(35.0, [d.Start("b:2", (), "by hand"), d.SetTimeLimit("b:2", 20.0, asked=True)])
    world.run()
    assert world.starts["a:2"] == 10.0 and ours(world)["a:2"] == "cancelled"
    assert phase(world) == "over" and world.status()["chosen"] == "b:2"


def test_two_short_copies_that_have_both_ended_are_told():
    world = race("A", "B", jobs=[busy("a", 50), busy("b", 30)], seconds=20)
    world.run(until=5)
    world.silence("b", 200.0)
    world.run(until=31)
    world.by_hand((35.0, "b:2"))
    world.run()
    assert set(ours(world).values()) == {"completed"}
    assert world.status()["chosen"] == "b:2" and phase(world) == "over"
    said = "job a:2 of A came to its end as well, before it was seen"
    assert world.status()["why"] == said and any(said in problem for problem in world.problems)


@given(
    hands=st.lists(
        st.tuples(st.sampled_from("abcd"), st.integers(0, 3)),
        min_size=2,
        max_size=4,
        unique_by=lambda one: one[0],
    ),
    order=st.permutations("ABCD"),
)
@settings(max_examples=100, deadline=None)
def test_of_copies_that_were_started_by_hand_the_lowest_start_and_then_the_first_site_is_kept(hands, order):
    world = race(*order, jobs=[busy(name, 50) for name in "abcd"])
    world.run(until=40)
    world.adapter.apply(40.0, [d.Kill(f"{name}:1") for name in "abcd"])
    hands = sorted(hands, key=lambda one: one[1])
    world.by_hand(*((40.0 + late, f"{name}:2") for name, late in hands))
    world.run()
    first, _ = min(hands, key=lambda one: (one[1], order.index(one[0].upper())))
    assert [name for name, outcome in ours(world).items() if outcome == "completed"] == [f"{first}:2"]
    assert phase(world) == "over" and world.status()["chosen"] == f"{first}:2"


# ---------------------------------------------------------------------- users


def test_a_user_cancels_a_copy_that_waits_and_the_others_stay():
    world = race("A", "B", jobs=[busy("a", 50), busy("b", 30)])
    world.run(until=10)
    world.adapter.apply(10.0, [d.Cancel("b:2")])
    world.run()
    assert ours(world) == {"a:2": "completed", "b:2": "cancelled"} and world.starts["a:2"] == 50.0


def test_a_user_cancels_the_copy_that_runs_and_no_other_starts():
    world = race("A", "B", jobs=[busy("a", 50), busy("b", 30)])
    world.run(until=5)
    world.silence("a", 100.0)
    world.run(until=40)
    world.adapter.apply(40.0, [d.Kill("b:2")])
    world.run()
    assert set(ours(world).values()) == {"cancelled"} and world.starts["a:2"] is None
    assert phase(world) == "over"


def test_a_user_cancels_all_copies():
    world = race("A", "B", jobs=[busy("a", 50), busy("b", 50)])
    world.run(until=10)
    world.adapter.apply(10.0, [d.Cancel("a:2"), d.Cancel("b:2")])
    world.run()
    assert phase(world) == "over" and "no copy is left" in world.status()["why"]


@pytest.mark.parametrize(("when", "ends"), [(10, "cancelled"), (40, "completed")])
def test_a_user_cancels_the_metajob_and_what_runs_runs_on(when, ends):
    world = race("A", "B", jobs=[busy("a", 50), busy("b", 30)])
    reply = world.ask(when, "cancel", "m1")
    world.run()
    assert ours(world) == {"a:2": "cancelled", "b:2": ends} and phase(world) == "cancelled"
    assert ("job b:2 runs" in world.replies[reply].reason) == (ends == "completed")


def test_a_start_that_passes_the_cancellation_of_the_metajob_is_undone():
    world = race("A", "B", jobs=[busy("a", 50), busy("b", 30)], faults=Faults(latency=20.0))
    world.ask(60.0, "cancel", "m1")
    world.run()
    assert set(ours(world).values()) == {"cancelled"} and phase(world) == "cancelled"


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        ({"metajob": single("A", "B", usage="multiple", total=9)}, "need usage single, found multiple"),
        ({"jobs": {}}, "expected a copy of the job at each machine"),
        ({"metajob": single("A", "B", total=9)}, "no machine takes 9 nodes"),
        ({"metajob": single("A", "B", duration=50.0)}, "may run for 100 s"),
        ({"jobs": {"A": "a:9"}}, "there is no job 'a:9' of yours"),
        ({"jobs": {"C": "a:2"}}, "expected one of A, B"),
    ],
)  # fmt: skip
def test_what_cannot_wait_everywhere_is_refused(request_, says):
    world = World(sites(a=8, b=8), [busy("a", 50), busy("b", 50), *copies("a", "b")])
    asked = {
        "metajob": single("A", "B"), "jobs": {"A": "a:2", "B": "b:2"}, "everywhere": True, **request_,
    }  # fmt: skip
    reply = world.ask(1.0, "submit", msgspec.json.encode(asked).decode())
    world.run(until=2)
    assert world.replies[reply].outcome == "refused" and says in world.replies[reply].reason


def test_a_cluster_that_removes_no_jobs_is_refused():
    world = race("A", "B", time=1.0)
    world.plugin.startup(world.scheduler.state, frozenset({d.Reserve, d.Unreserve, d.Bind}))
    world.run(until=2)
    (reply,) = world.replies.values()
    assert "cannot remove jobs" in reply.reason


def test_the_status_shows_all_copies():
    world = race("A", "B", "C", jobs=[busy("a", 50), busy("b", 30), busy("c", 90)])
    world.run(until=1)
    world.silence("c", 200.0)
    asked = [world.ask(time, "status", "m1") for time in (5.0, 35.0)]
    world.run()
    before, after = (list(in_words(msgspec.json.decode(world.replies[one].reason), str)) for one in asked)
    assert before[0].startswith("metajob m1 of ann (everywhere): queued: its copies wait")
    assert "A: copy a:2, waits" in before
    assert "B: copy b:2, the job, runs since 30" in after
    assert "A: copy a:2, is gone (cancelled)" in after
    assert any(line.startswith("C: copy c:2, waits") for line in after), after


# ---------------------------------------------------------------------- sites that do not answer


def test_a_copy_at_a_site_that_does_not_answer_is_removed_when_it_comes_back():
    world = race("A", "B", jobs=[busy("a", 50), busy("b", 30)])
    world.run(until=20)
    world.silence("a", 5000.0)
    world.run()
    assert ours(world) == {"a:2": "cancelled", "b:2": "completed"} and phase(world) == "over"
    assert world.starts["a:2"] is None


def test_that_a_copy_is_to_go_is_known_after_a_restart():
    world = race("A", "B", jobs=[busy("a", 50), busy("b", 30)])
    world.run(until=20)
    world.silence("a", 5000.0)
    world.run(until=300)
    assert phase(world) == "started" and ours(world)["b:2"] == "completed"
    world.begin()
    world.run()
    assert ours(world) == {"a:2": "cancelled", "b:2": "completed"} and phase(world) == "over"


def test_a_start_that_was_sent_before_a_crash_stops_the_others_while_its_site_is_silent():
    world = race("A", "B", jobs=[busy("a", 50), busy("b", 55)], faults=Faults(latency=20.0))
    world.run(until=72)
    assert phase(world) == "queued" and world.status()["chosen"] == "a:2"
    world.begin()
    world.silence("a", 500.0)
    world.run(until=400)
    assert world.starts["b:2"] is None
    world.run()
    assert ours(world) == {"a:2": "completed", "b:2": "cancelled"}


@pytest.mark.parametrize(("asks", "ends"), [(False, "over"), (True, "cancelled")])
def test_a_copy_that_is_heard_of_again_when_all_is_over_is_removed(asks, ends):
    world = race("A", "B", jobs=[busy("a", 50), busy("b", 200)], answer_timeout=100)
    world.run(until=60)
    world.begin()
    world.silence("b", 1000.0)
    if asks:
        world.ask(100.0, "cancel", "m1")
    world.run(until=900)
    assert phase(world) == ("cancelled" if asks else "over")
    # The daemon is restarted meanwhile, as it may be.
    world.begin()
    world.silence("b", 1000.0)
    world.run()
    assert ours(world) == {"a:2": "completed", "b:2": "cancelled"} and phase(world) == ends


def test_a_copy_that_starts_although_it_was_told_to_go_is_killed_at_once():
    world = race("A", "B", jobs=[busy("a", 50), busy("b", 30)], seconds=500, duration=500.0)
    world.refuses = lambda one: isinstance(one, d.Cancel)
    world.run(until=60)
    world.by_hand((62.0, "a:2"))
    world.run(until=70)
    (kill,) = [(time, one.job_id) for time, one in world.decisions if isinstance(one, d.Kill)]
    assert kill == (70, "a:2")


def test_copies_stay_one_job_when_a_machine_leaves_the_configuration():
    world = race("A", "B", jobs=[busy("a", 50), busy("b", 30)])
    world.run(until=20)
    left = {name: one for name, one in world.options.machines.items() if name != "A"}
    world.options = world.options.model_copy(update={"machines": left})
    world.begin()
    world.run()
    assert ours(world) == {"a:2": "cancelled", "b:2": "completed"}


def test_a_copy_that_its_site_has_forgotten_over_a_restart_stops_the_others():
    # B would have room before it is known that A has forgotten its copy.
    world = race("A", "B", jobs=[busy("a", 50), busy("b", 30)], answer_timeout=100)
    world.run(until=20)
    # It may have run while nobody looked.
    world.adapter.apply(20.0, [d.Cancel("a:2")])
    world.adapter.wait(20.0)
    world.events.append(ev.JobEnded(20.0, "a:2", "cancelled"))
    world.begin()
    world.run(until=1000)
    assert phase(world) == "undecided" and world.starts["b:2"] is None
    assert "A has no job a:2 any more, which may have run" in world.status()["why"]
    waiting = world.scheduler.state
    assert "headway metajob cancel m1" in waiting.why_waiting(waiting.jobs["b:2"])
    world.ask(1001.0, "cancel", "m1")
    world.run()
    assert set(ours(world).values()) == {"cancelled"} and phase(world) == "cancelled"


def test_a_job_that_goes_back_to_its_queue_is_still_the_job():
    world = race("A", "B", jobs=[busy("a", 50), busy("b", 30)])
    world.run(until=40)
    world.adapter.apply(40.0, [d.Requeue("b:2")])
    world.run()
    assert ours(world) == {"a:2": "cancelled", "b:2": "completed"} and phase(world) == "over"


# ---------------------------------------------------------------------- crashes


@pytest.mark.parametrize("last", ["carried out", "not sent", "not saved"])
@pytest.mark.parametrize("after", range(1, 8))
def test_a_crash_at_any_step_leaves_one_copy_that_runs_once(after, last):
    world = race("A", "B", "C", jobs=[busy("a", 50), busy("b", 30), busy("c", 90)])
    assert not world.run(steps=after, sent=last == "carried out"), "all is over before"
    if last == "not saved" and world.saved_before:
        world.saved = world.saved_before
    world.begin()
    world.run()
    assert sorted(ours(world).values()) == ["cancelled", "cancelled", "completed"]
    assert phase(world) == "over"
    assert sum(start is not None for name, start in world.starts.items() if name.endswith(":2")) == 1


@given(
    loads=st.lists(st.integers(1, 400), min_size=2, max_size=4),
    seed=st.integers(0, 1000),
    rate=st.sampled_from([0.0, 0.3]),
    latency=st.sampled_from([0.0, 3.0, 40.0]),
    hands=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=3),
    silent=st.none() | st.tuples(st.integers(0, 3), st.integers(1, 500)),
    crash=st.none() | st.integers(1, 300),
    when=st.integers(1, 300),
)
@settings(max_examples=150, deadline=None)
def test_whatever_happens_the_job_runs_to_its_end_once(
    loads, seed, rate, latency, hands, silent, crash, when
):
    """Runs are longer than any site is silent, so no copy can end unseen."""
    names = "ABCD"[: len(loads)]
    jobs = [job(f"{name.lower()}:1", 2, load, user="x") for name, load in zip(names, loads, strict=True)]
    fill = [job(f"{name.lower()}:3", 6, load, user="x") for name, load in zip(names, loads, strict=True)]
    world = race(
        *names, jobs=[*jobs, *fill], faults=Faults(latency=latency, failure_rate=rate), seed=seed,
        seconds=2000, duration=2000.0,
    )  # fmt: skip
    world.run(until=when)
    for at, late in hands:
        if at < len(names):
            # Started twice, or where there is no room: refused by the site.
            world.adapter.apply(world.now + late, [d.Start(f"{names[at].lower()}:2", (), "by hand")])
            world.now += late
    if silent is not None and silent[0] < len(names):
        world.silence(names[silent[0]].lower(), world.now + silent[1])
    if crash is not None:
        world.run(until=when + crash)
        world.begin()
    world.run()
    ran = [name for name, outcome in ours(world).items() if outcome == "completed"]
    assert len(ran) == 1 and len(ours(world)) == len(names)
    assert phase(world) == "over" and world.status()["chosen"] == ran[0]
