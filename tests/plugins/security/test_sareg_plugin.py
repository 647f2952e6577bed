"""SAREG as a policy: the emulated cluster runs what the algorithm plans, and promises are kept."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import numpy as np
import pytest
from building import alike, node_cluster
from hypothesis import given, settings
from hypothesis import strategies as st
from security_grids import ROWS, asked

from headway.decisions import Annotate, SetTimeLimit, Start
from headway.emulation import emulate
from headway.errors import UserError
from headway.events import (
    JobChanged,
    JobEnded,
    JobReleased,
    JobStarted,
    JobSubmitted,
    NodeDown,
    NodeUp,
    PoolChanged,
)
from headway.model import (
    ClusterDescription,
    Dependency,
    JobDescription,
    NodeDescription,
    Placement,
    PoolDescription,
    Request,
)
from headway.plugins import Catalogue, PluginConfig, Plugins
from headway.scheduler import Scheduler
from headway.workload import TraceJob
from headway_plugins.security.grid import Grid, GridJob, Placed, Shortfall, sareg
from headway_plugins.security.levels import need_of, profile_2005, raise_exactly, raise_in_turn
from headway_plugins.security.protection.label import TOOK
from headway_plugins.security.sareg import drawn_steps

CATALOGUE = Catalogue()
SEED = 3


def job(name, submit, processors, estimate, deadline=None, security=None, runtime=None, **more):
    attributes = {}
    if deadline is not None:
        attributes["deadline"] = deadline
    if security is not None:
        attributes["security"] = security
    request = Request(processors, estimate)
    described = JobDescription(
        name, submit, request, "pool", account=more.pop("account", ""), attributes=attributes or None, **more
    )
    return TraceJob(described, estimate if runtime is None else runtime)


def run(jobs, plugin="sareg", processors=4, **options):
    return emulate(
        ClusterDescription.flat(processors), jobs, [PluginConfig(plugin, options)], CATALOGUE, label=plugin,
        seed=SEED, keep_decisions=True,
    )  # fmt: skip


def figures(result):
    return result.contributed["security"](result)


def planned(jobs, plugin="sareg", processors=4, raising=raise_in_turn):
    """The same jobs under the algorithm alone, on one site."""
    found = []
    for traced in jobs:
        described = traced.job
        need = need_of(described.attributes["security"], profile_2005(), "job")
        found.append(
            GridJob(
                described.id, described.submit_time, described.request.processors,
                described.request.walltime, described.attributes["deadline"], 0, 0.0, need,
                drawn_steps(need, SEED, described.id),
            )
        )  # fmt: skip
    return sareg(Grid((processors,), ((1.0,),)), found, drawn=plugin == "ns-edf", raising=raising)


def compare(jobs, plugin, course, result):
    for placed, record in zip(course.placed, result.jobs, strict=True):
        if isinstance(placed, Placed):
            assert record.start_time == pytest.approx(placed.start, abs=1e-5)
            assert record.end_time == pytest.approx(placed.end, abs=1e-5)
            assert record.state == "completed"
        else:
            assert isinstance(placed, Shortfall) and record.state == "refused"
    told = figures(result)
    assert told["guarantee_ratio"] == pytest.approx(course.guarantee_ratio)
    assert told["security_value"] == pytest.approx(course.security_value)
    assert told["overall"] == pytest.approx(course.overall)


def site_jobs():
    return [job(row[0], row[1], row[2], row[3], row[5], asked(row)) for row in ROWS if row[2] <= 4]


@pytest.mark.parametrize("plugin", ["sareg", "ns-edf"])
def test_a_site_runs_what_was_planned(plugin):
    jobs = site_jobs()
    course = planned(jobs, plugin)
    assert 0 < course.guarantee_ratio < 1
    compare(jobs, plugin, course, run(jobs, plugin))


@st.composite
def workloads(draw):
    jobs, now = [], 0.0
    for number in range(draw(st.integers(1, 10))):
        now += draw(st.sampled_from([0.0, 1.0, 7.5, 30.0]))
        low = draw(st.sampled_from([0.1, 0.3, 0.5]))
        security = {"bytes": draw(st.sampled_from([1e6, 2e7, 8e7])), "encryption": [low, 0.9]}
        seconds = draw(st.integers(1, 50))
        jobs.append(
            job(
                f"j{number}",
                now,
                draw(st.integers(1, 4)),
                float(seconds),
                now + seconds + draw(st.integers(0, 300)),
                security,
            )
        )
    return jobs


@settings(max_examples=25, deadline=None)
@given(workloads(), st.sampled_from(["sareg", "ns-edf"]))
def test_any_workload_runs_as_planned(jobs, plugin):
    compare(jobs, plugin, planned(jobs, plugin), run(jobs, plugin))


@settings(max_examples=25, deadline=None)
@given(workloads(), st.lists(st.floats(0.1, 1.0), min_size=10, max_size=10))
def test_who_was_accepted_is_in_time_also_when_others_end_early(jobs, shares):
    early = [
        TraceJob(traced.job, traced.runtime * share) for traced, share in zip(jobs, shares, strict=False)
    ]
    result = run(early)
    told = figures(result)
    assert told["missed"] == 0
    assert told["met"] + told["refused"] == told["submitted"] == len(jobs)


def test_exact_levels():
    security = {"bytes": 1e8}
    jobs = [job("1", 0, 1, 100.0, 130.0, security)]
    found = run(jobs, levels="exact")
    assert figures(found)["mean_level"] == pytest.approx(0.76)
    compare(jobs, "sareg", planned(jobs, raising=raise_exactly), found)
    assert figures(run(jobs))["mean_level"] == pytest.approx(0.75)


def test_what_waits_moves_to_an_earlier_time_and_keeps_its_levels():
    jobs = [
        job("1", 0, 4, 100.0, 1000.0, {"bytes": 1e6}, runtime=10.0),
        job("2", 1, 4, 50.0, 1000.0, {"bytes": 1e6}),
    ]
    first, second = run(jobs).jobs
    assert first.end_time == pytest.approx(10 + 2.323)
    assert second.start_time == pytest.approx(12.323)
    assert second.end_time == pytest.approx(12.323 + 50 + 2.323)


def test_the_limit_grows_by_the_protection_and_the_reason_names_it():
    result = run([job("1", 0, 1, 60.0, 1000.0, {"bytes": 1e6}, runtime=90.0)])
    (record,) = result.jobs
    assert record.state == "timed out" and record.end_time == pytest.approx(62.323)
    said = [kept.decision.reason for kept in result.decisions]
    assert "encryption 3DES (0.9), integrity Snefru-256 (1), authentication CBC-MAC-AES (0.9)" in said[0]
    assert said[1] == "2.323 s for its protection"


def test_jobs_without_deadline_or_security_are_promised_a_time_too():
    result = run([job("1", 0, 4, 100.0), job("2", 0, 4, 10.0, 50.0), job("3", 0, 4, 10.0)])
    assert [record.start_time for record in result.jobs] == [0, None, 100]
    assert figures(result)["accounts"][""]["submitted"] == 3


def test_figures_by_account():
    jobs = [
        job("1", 0, 1, 10.0, 100.0, {"bytes": 1e6}, account="physics"),
        job("2", 0, 1, 10.0, 5.0, account="art"),
    ]
    told = figures(run(jobs))["accounts"]
    assert told["physics"]["met"] == 1 and told["physics"]["at_upper_ends"] == 1.0
    assert told["art"]["guarantee_ratio"] == 0


def test_a_job_that_waits_for_another_is_promised_a_time_when_it_can_start():
    jobs = [
        job("1", 0, 1, 50.0, 100.0),
        job("2", 0, 1, 20.0, 90.0, {"bytes": 1e6}, dependencies=(Dependency("ended", "1"),)),
        job("3", 0, 1, 20.0, 60.0, {"bytes": 1e6}, dependencies=(Dependency("ended", "1"),)),
    ]
    result = run(jobs)
    assert [record.start_time for record in result.jobs] == [0, 50, 50]
    told = figures(result)
    assert (told["met"], told["missed"]) == (2, 1)


@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        (
            {"deadline": 5.0},
            "its deadline cannot be met: at the lowest security levels it would end 5 s after it",
        ),
        ({"deadline": "soon"}, "deadline: expected absolute seconds, found 'soon'"),
        ({"deadline": -86400.0}, "its deadline cannot be met: it was 24 h 00 min in the past already"),
        ({"deadline": float("-inf")}, "deadline: expected absolute seconds, found -inf"),
        ({"security": {"bytes": 1e17}}, "protection would take"),
        (
            {"unread": ["dedline=5"]},
            "among the words for headway expected such as deadline=, bytes=, encryption=, integrity=, "
            "authentication=; found 'dedline=5'",
        ),
        ({"security": {"encryption": [0.9, 0.1]}}, "found 0.9 to 0.1"),
        ({"security": [1]}, "expected a mapping"),
    ],
)
def test_why_a_job_is_refused(attributes, said):
    plugins = Plugins.load([PluginConfig("sareg", {})], CATALOGUE, frozenset({Start, SetTimeLimit}))
    scheduler = Scheduler(ClusterDescription.flat(4), plugins)
    described = JobDescription("1", 0.0, Request(1, 10.0), "pool", attributes=attributes)
    assert scheduler.step(0.0, [JobSubmitted(0.0, described)]) == []
    assert said in scheduler.state.jobs["1"].refusal


def test_protection_does_not_lengthen_a_run_beyond_what_a_site_allows():
    # At the lowest levels 10 s, at the highest ones 360 s.
    security = {"bytes": 1e8, "encryption": [0.1, 0.9], "integrity": [0.1, 0.9], "authentication": [0.3, 0.9]}
    wide = run([job("1", 0, 1, 10.0, security=security)], longest=50.0).jobs[0]
    assert wide.state == "completed" and 10.0 < wide.end_time - wide.start_time - 10.0 <= 50.0
    assert run([job("1", 0, 1, 10.0, security=security)], longest=4.0).jobs[0].state == "refused"


def test_the_pools_limit_holds_for_run_and_protection_together():
    pool = PoolDescription("pool", 4, max_walltime=25.0)
    plugins = Plugins.load([PluginConfig("sareg", {})], CATALOGUE, None)
    scheduler = Scheduler(
        ClusterDescription("one", (pool,)), plugins, capabilities=frozenset({Start, SetTimeLimit})
    )
    asked = {"bytes": 1e8, "integrity": [0.1, 0.9]}
    described = JobDescription("1", 0.0, Request(1, 10.0), "pool", attributes={"security": asked})
    start, limit = scheduler.step(0.0, [JobSubmitted(0.0, described)])
    assert isinstance(start, Start) and isinstance(limit, SetTimeLimit)
    assert 10.0 < limit.walltime <= 25.0


def test_who_was_held_and_can_be_promised_nothing_stops_nobody():
    plugins = Plugins.load([PluginConfig("sareg", {})], CATALOGUE, frozenset({Start, SetTimeLimit}))
    scheduler = Scheduler(ClusterDescription.flat(4), plugins)
    held = JobDescription("1", 0.0, Request(1, 10.0), "pool", held=True,
                          attributes={"security": {"bytes": 1e17}})  # fmt: skip
    other = JobDescription("2", 1.0, Request(1, 10.0), "pool")
    assert scheduler.step(0.0, [JobSubmitted(0.0, held)]) == []
    made = scheduler.step(1.0, [JobReleased(1.0, "1"), JobSubmitted(1.0, other)])
    assert [d.job_id for d in made] == ["2"]
    assert "protection would take" in scheduler.state.jobs["1"].refusal


def test_who_asks_for_more_than_a_pool_has_now_is_promised_a_time_when_it_has_so_many():
    scheduler = scheduler_of_four()
    scheduler.step(0.0, [PoolChanged(0.0, PoolDescription("pool", 2))])
    wide = JobDescription("1", 1.0, Request(4, 10.0), "pool", attributes={"deadline": 100.0})
    assert scheduler.step(1.0, [JobSubmitted(1.0, wide)]) == []
    assert not scheduler.state.jobs["1"].refusal
    (start,) = scheduler.step(2.0, [PoolChanged(2.0, PoolDescription("pool", 4))])
    assert (type(start), start.job_id) == (Start, "1")


def scheduler_of_four(saved=None, **options):
    plugins = Plugins.load([PluginConfig("sareg", options)], CATALOGUE, frozenset({Start, SetTimeLimit}))
    return Scheduler(ClusterDescription.flat(4), plugins, saved=saved)


#: It occupies all of four processors until 50 at most; the other could begin at 20 at the latest.
FIRST = JobDescription("1", 0.0, Request(4, 50.0), "pool")
SECOND = JobDescription("2", 0.0, Request(4, 10.0), "pool", attributes={"deadline": 30.0})


def after_an_early_end(scheduler, *, told_again=()):
    scheduler.step(0.0, [*told_again, JobStarted(0.0, "1", Placement(()))])
    return [d.job_id for d in scheduler.step(5.0, [JobEnded(5.0, "1", "completed")])]


@pytest.mark.parametrize("best_effort", [False, True])
def test_each_change_of_what_it_promised_is_counted_and_nothing_else(monkeypatch, best_effort):
    rng, seen = np.random.default_rng(SEED), []
    step = Scheduler.step

    def watched(self, now, events):
        decisions = step(self, now, events)
        (plugin,) = self.plugins.by_name.values()
        seen.append((msgspec.json.encode(plugin.checkpoint()), plugin.promised()))
        return decisions

    monkeypatch.setattr(Scheduler, "step", watched)
    jobs = [
        job(str(at), at * 6.0, int(rng.integers(1, 5)), 30.0, at * 6.0 + float(rng.integers(35, 200)),
            asked(ROWS[at % len(ROWS)]), float(rng.integers(1, 40)))
        for at in range(80)
    ]  # fmt: skip
    run(jobs, best_effort=best_effort)
    pairs = list(pairwise([(b'{"promises":{},"speeds":{},"refused":{}}', 0), *seen]))
    assert all(before[1] != after[1] for before, after in pairs if before[0] != after[0])
    assert any(before == after for before, after in pairs)


def test_a_start_and_what_a_job_told_are_counted_once():
    scheduler = scheduler_of_four()
    scheduler.step(0.0, [JobSubmitted(0.0, FIRST)])
    (plugin,) = scheduler.plugins.by_name.values()
    counts = [plugin.promised()]
    took = msgspec.structs.replace(FIRST, attributes={"notes": {TOOK: "AES-256-GCM:10000000:1.0"}})
    for event in (JobStarted(0.0, "1", Placement(())), *[JobChanged(1.0, took)] * 2):
        scheduler.step(event.time, [event])
        counts.append(plugin.promised())
    assert [after - before for before, after in pairwise(counts)] == [1, 1, 0]


def test_who_was_refused_stays_so_also_over_a_restart():
    scheduler = scheduler_of_four()
    scheduler.step(0.0, [JobSubmitted(0.0, FIRST), JobSubmitted(0.0, SECOND)])
    why = scheduler.state.jobs["2"].refusal
    assert "would end 30 s after it" in why
    again = scheduler_of_four(msgspec.json.decode(msgspec.json.encode(scheduler.checkpoint())))
    again.step(1.0, [JobSubmitted(1.0, SECOND)])
    assert again.state.jobs["2"].refusal == why
    assert after_an_early_end(scheduler) == []
    # Changed, it is judged anew.
    changed = msgspec.structs.replace(SECOND, attributes={"deadline": 31.0})
    assert [d.job_id for d in scheduler.step(6.0, [JobChanged(6.0, changed)])] == ["2"]


def test_figures_count_a_job_that_ended_while_no_daemon_ran():
    before = scheduler_of_four()
    secure = msgspec.structs.replace(FIRST, attributes={"security": {"bytes": 1e6}})
    before.step(0.0, [JobSubmitted(0.0, secure)])
    before.step(0.0, [JobStarted(0.0, "1", Placement(()))])
    again = scheduler_of_four(before.checkpoint())
    again.step(9.0, [JobSubmitted(9.0, secure), JobEnded(9.0, "1", "completed")])
    assert not again.problems


def test_a_waiting_job_is_told_what_it_was_promised():
    scheduler = scheduler_of_four()
    waits = msgspec.structs.replace(SECOND, attributes={"deadline": 90.0, "security": {"bytes": 1e6}})
    scheduler.step(0.0, [JobSubmitted(0.0, FIRST), JobSubmitted(0.0, waits)])
    (plugin,) = scheduler.plugins.by_name.values()
    said = plugin.explain(scheduler.state.jobs["2"], "waiting", scheduler.views["pool"])
    assert said == (
        "it was promised a start in 50 s with encryption=3DES, integrity=Snefru-256, "
        "authentication=CBC-MAC-AES"
    )


def test_who_was_held_until_it_was_too_late_is_told_so():
    scheduler = scheduler_of_four()
    held = msgspec.structs.replace(SECOND, attributes={"deadline": 55.0}, held=True)
    scheduler.step(0.0, [JobSubmitted(0.0, FIRST), JobSubmitted(0.0, held)])
    scheduler.step(1.0, [JobReleased(1.0, "2")])
    (plugin,) = scheduler.plugins.by_name.values()
    said = plugin.explain(scheduler.state.jobs["2"], "waiting", scheduler.views["pool"])
    assert said.startswith("it was promised a start in 49 s") and said.endswith(", too late for its deadline")


def test_with_best_effort_who_cannot_be_in_time_starts_when_nobody_is_in_the_way():
    scheduler = scheduler_of_four(best_effort=True)
    secure = msgspec.structs.replace(SECOND, attributes={"deadline": 30.0, "security": {"bytes": 1e6}})
    scheduler.step(0.0, [JobSubmitted(0.0, FIRST), JobSubmitted(0.0, secure)])
    assert not scheduler.state.jobs["2"].refusal
    assert after_an_early_end(scheduler) == ["2"]


def test_best_effort_delays_nobody_who_was_promised_something():
    jobs = [
        job("first", 0, 4, 50.0),
        job("late", 0, 4, 10.0, deadline=30.0),
        job("in time", 1, 4, 10.0, deadline=61.0),
    ]
    records = {record.job.id: record for record in run(jobs, best_effort=True).jobs}
    assert records["in time"].end_time <= 61.0
    assert records["late"].state == "completed" and records["late"].start_time >= 60.0


def test_pools_of_nodes_are_refused():
    with pytest.raises(UserError, match="found nodes in pool 'pool'"):
        emulate(node_cluster(*alike(1, 4)), [], [PluginConfig("sareg", {})], CATALOGUE, label="x")


def test_a_profile_that_is_not_there_is_named(tmp_path):
    with pytest.raises(UserError, match=r"speeds\.yaml cannot be read"):
        run([], profile=str(tmp_path / "speeds.yaml"))


# ---------------------------------------------------------------------- where jobs are told their levels

MEASURED = """
name: measured
encryption: [{level: 0.7, option: AES-128-GCM, speed: 2000}, {level: 1.0, option: AES-256-GCM, speed: 1000}]
integrity: [{level: 0.7, option: SHA-256, speed: 400}, {level: 0.9, option: SHA-512, speed: 200}]
authentication: [{level: 0.8, option: Ed25519, seconds: 0.001}]
"""
ABLE = frozenset({Start, SetTimeLimit, Annotate})


def live(tmp_path, processors=4, nodes=2, saved=None, able=ABLE, of=None, **options):
    """A scheduler of a cluster of nodes that can tell jobs something."""
    (tmp_path / "speeds.yaml").write_text(MEASURED)
    options = {"profile": str(tmp_path / "speeds.yaml"), **options}
    plugins = Plugins.load([PluginConfig("sareg", options), PluginConfig("first-fit")], CATALOGUE, None)
    cluster = node_cluster(*(of or alike(nodes, processors)))
    return Scheduler(cluster, plugins, capabilities=able, saved=saved)


def told(scheduler, now, *events):
    return list(scheduler.step(now, list(events)))


def wanted(name, processors=1, deadline=1000.0, estimate=100.0, submit=0.0, notes=None, **request):
    security = {"bytes": 1e9, "encryption": [0.7, 1.0]}
    attributes = {"deadline": deadline, "security": security, **({"notes": notes} if notes else {})}
    described = Request(processors, estimate, **request)
    return JobDescription(name, submit, described, "pool", attributes=attributes)


def test_a_job_is_told_its_levels_before_it_starts(tmp_path):
    scheduler = live(tmp_path)
    note, start, limit = told(scheduler, 0.0, JobSubmitted(0.0, wanted("1")))
    label = "encryption=AES-256-GCM,integrity=SHA-512,authentication=Ed25519"
    assert note == Annotate("1", "protect", label, "its security levels")
    assert isinstance(start, Start) and limit.walltime == pytest.approx(100 + 1 + 5 + 0.001)
    # Nobody is told again what it knows already.
    start, _ = told(scheduler, 1.0, JobSubmitted(1.0, wanted("2", submit=1.0, notes={"protect": label})))
    assert isinstance(start, Start)


def test_a_job_that_cannot_be_told_is_refused_and_says_why(tmp_path):
    scheduler = live(tmp_path)
    described = wanted("1")
    why = "its comment has '\\n' in it, with which it cannot be written again"
    attributes = {**described.attributes, "cannot_be_told": why}
    odd = msgspec.structs.replace(described, attributes=attributes)
    assert told(scheduler, 0.0, JobSubmitted(0.0, odd)) == []
    assert scheduler.state.jobs["1"].refusal == f"its security levels cannot be set: {why}"
    # One without protection needs no note.
    plain = msgspec.structs.replace(described, id="2", attributes={"cannot_be_told": why})
    (start,) = told(scheduler, 1.0, JobSubmitted(1.0, plain))
    assert isinstance(start, Start)


def test_where_limits_cannot_be_changed_they_stay(tmp_path):
    scheduler = live(tmp_path, able=ABLE - {SetTimeLimit})
    note, start = told(scheduler, 0.0, JobSubmitted(0.0, wanted("1")))
    assert isinstance(note, Annotate) and isinstance(start, Start)


def test_a_job_that_lies_on_nodes_is_promised_whole_ones(tmp_path):
    scheduler = live(tmp_path, margin=10)
    first = told(scheduler, 0.0, JobSubmitted(0.0, wanted("1", nodes=1)))
    second = told(scheduler, 0.0, JobSubmitted(0.0, wanted("2", nodes=1)))
    assert {d.job_id for d in [*first, *second] if isinstance(d, Start)} == {"1", "2"}
    # Both nodes are promised until 116.001: not even one processor is free before that.
    assert told(scheduler, 1.0, JobSubmitted(1.0, wanted("3", submit=1.0, deadline=215.0))) == []
    assert "would end" in scheduler.state.jobs["3"].refusal
    assert told(scheduler, 1.0, JobSubmitted(1.0, wanted("4", submit=1.0, deadline=300.0))) == []
    assert not scheduler.state.jobs["4"].refusal
    early = told(scheduler, 50.0, JobEnded(50.0, "1", "completed"))
    assert [d.job_id for d in early if isinstance(d, Start)] == ["4"]


def test_while_a_node_is_down_nobody_is_promised_its_place(tmp_path):
    """What needs all three nodes waits unpromised, and takes nobody else's time."""
    scheduler = live(tmp_path, nodes=3)
    node = scheduler.state.nodes.descriptions["n2"]
    told(scheduler, 0.0, NodeDown(0.0, "n2"))
    assert told(scheduler, 0.0, JobSubmitted(0.0, wanted("1", 3, nodes=3))) == []
    begun = told(scheduler, 1.0, JobSubmitted(1.0, wanted("2", submit=1.0, deadline=110.0, nodes=1)))
    assert [d.job_id for d in begun if isinstance(d, Start)] == ["2"]
    told(scheduler, 50.0, JobEnded(50.0, "2", "completed"))
    back = told(scheduler, 60.0, NodeUp(60.0, node))
    assert [d.job_id for d in back if isinstance(d, Start)] == ["1"]
    (label,) = (d.value for d in back if isinstance(d, Annotate))
    assert label.startswith("encryption=AES-256-GCM,integrity=SHA-512"), "waiting cost it no level"


def test_while_a_large_node_is_down_small_jobs_start_on_the_others(tmp_path):
    large, *small = (NodeDescription(f"n{at}", size) for at, size in enumerate((16, 4, 4)))
    scheduler = live(tmp_path, of=(large, *small))
    told(scheduler, 0.0, NodeDown(0.0, "n0"))
    begun = told(scheduler, 1.0, JobSubmitted(1.0, wanted("1", submit=1.0, nodes=1)))
    assert [d.placement for d in begun if isinstance(d, Start)] == [(("n1", 1),)]


def test_jobs_that_somebody_else_started_count_until_their_limits(tmp_path):
    scheduler = live(tmp_path, nodes=1)
    other = JobDescription("9", 0.0, Request(4, 500.0), "pool")
    told(scheduler, 10.0, JobSubmitted(0.0, other), JobStarted(0.0, "9", (("n0", 4),)))
    assert told(scheduler, 10.0, JobSubmitted(10.0, wanted("1", submit=10.0, deadline=590.0))) == []
    assert scheduler.state.jobs["1"].refusal
    assert told(scheduler, 10.0, JobSubmitted(10.0, wanted("2", submit=10.0, deadline=620.0))) == []
    assert not scheduler.state.jobs["2"].refusal
    begun = told(scheduler, 60.0, JobEnded(60.0, "9", "completed"))
    assert [d.job_id for d in begun if isinstance(d, Start)] == ["2"]


def test_a_promise_outlives_the_run_and_the_speeds_that_were_learnt(tmp_path):
    scheduler = live(tmp_path, nodes=1)
    told(scheduler, 0.0, JobSubmitted(0.0, wanted("1", processors=4)))
    told(scheduler, 0.0, JobSubmitted(0.0, wanted("2", processors=4)))
    for number in range(3):
        took = {"took": f"AES-256-GCM:100000000:{10 + number}.0"}
        one = wanted(f"t{number}", deadline=1e6, notes=took)
        told(scheduler, 0.0, JobSubmitted(0.0, wanted(f"t{number}", deadline=1e6)), JobChanged(0.0, one))
    saved = scheduler.checkpoint()
    again = live(tmp_path, nodes=1, saved=saved)
    told(again, 5.0, JobSubmitted(0.0, wanted("1", processors=4)), JobStarted(0.0, "1", (("n0", 4),)),
         JobSubmitted(0.0, wanted("2", processors=4)))  # fmt: skip
    begun = told(again, 60.0, JobEnded(60.0, "1", "completed"))
    (limit,) = [d for d in begun if isinstance(d, SetTimeLimit) and d.job_id == "2"]
    assert limit.walltime == pytest.approx(106.001)
    # Who comes now is promised what was learnt: 10 MB/s would be too far from the profile, so 50.
    (new,) = [
        d for d in told(again, 61.0, JobSubmitted(61.0, wanted("5", submit=61.0, deadline=1e6)),
                        JobEnded(61.0, "2", "completed"))
        if isinstance(d, SetTimeLimit) and d.job_id == "5"
    ]  # fmt: skip
    assert new.walltime == pytest.approx(100 + 1e9 / 50e6 + 5 + 0.001)


def test_the_papers_tables_protect_nothing_real():
    plugins = Plugins.load([PluginConfig("sareg"), PluginConfig("first-fit")], CATALOGUE, None)
    with pytest.raises(UserError, match="profile '2005' is for experiments and protects nothing"):
        Scheduler(node_cluster(*alike(1, 4)), plugins, capabilities=ABLE)
