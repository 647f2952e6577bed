"""Whole runs of the partition manager over emulated nodes that sleep, on a fat tree."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.decisions import PowerDown, PowerUp
from headway.emulation import emulate
from headway.errors import UserError
from headway.events import (
    DecisionFailed,
    JobEnded,
    JobStarted,
    JobSubmitted,
    JobSuspended,
    NodePowerChanged,
    NodeUp,
)
from headway.inquiry import explain
from headway.model import (
    ClusterDescription,
    JobDescription,
    NodeDescription,
    PoolDescription,
    Request,
    SwitchDescription,
)
from headway.model.energy import EnergyProfile, FrequencyLevel, NodeClass, SleepState
from headway.plugins import Catalogue, PluginConfig, Plugins
from headway.scheduler import Scheduler
from headway.workload.jobs import TraceJob

SLEEP = SleepState("off", 5.0, 5.0, 0.0, 30.0, 0.0)
PROFILE = EnergyProfile("test", (NodeClass("node", (FrequencyLevel(1e9, 1.0),), sleep=SLEEP),))
NAMES = tuple(f"n{at}" for at in range(1, 9))
SWITCHES = (
    SwitchDescription("leaf1", NAMES[:4]), SwitchDescription("leaf2", NAMES[4:]),
    SwitchDescription("top", (), ("leaf1", "leaf2")),
)  # fmt: skip
ASLEEP = dict.fromkeys(NAMES, "asleep")
#: When a last job comes: long after all others are over.
FAR = 50_000


def machine(**more: Any) -> ClusterDescription:
    """Eight nodes of two processors on two leaf switches, which need 30 s to wake and 5 s to fall asleep."""
    nodes = tuple(NodeDescription(name, 2, pools=("pool",), wake_time=30.0) for name in NAMES)
    more.setdefault("nodes", nodes)
    more.setdefault("pools", (PoolDescription("pool"),))
    more.setdefault("switches", SWITCHES)
    return ClusterDescription("test", energy=PROFILE, **more)


def job(number: int, submit: float, processors: int, runtime: float, limit: float = 0) -> TraceJob:
    request = Request(processors=processors, walltime=float(limit or runtime))
    return TraceJob(
        JobDescription(id=f"J{number}", submit_time=float(submit), request=request), float(runtime)
    )


def run(jobs: list[TraceJob], blocks: str = "on-demand", policy: str = "easy", **more: Any) -> Any:
    options = {key: more.pop(key) for key in ("keep", "unit", "depth") if key in more}
    plugins = [
        PluginConfig(policy, {}, "test"), PluginConfig("partitions", {"blocks": blocks, **options}, "test"),
    ]  # fmt: skip
    more.setdefault("power", ASLEEP)
    return emulate(machine(), jobs, plugins, Catalogue(), label="x", keep_decisions=True, **more)


def figures(result: Any) -> Any:
    return result.contributed["partitions"](result)


def spans(result: Any) -> list[tuple[float, float]]:
    return [(one.start_time, one.end_time) for one in result.jobs]


def where(result: Any) -> list[list[str]]:
    return [[name for name, _ in one.placement] for one in result.jobs]


def last_power(result: Any) -> dict[str, str]:
    return {change.node: change.power for change in result.power}


def power_at(result: Any, time: float) -> dict[str, str]:
    """Of the nodes whose state has changed by then."""
    return {change.node: change.power for change in result.power if change.time <= time}


def test_on_demand_the_nodes_of_each_job_are_booted_for_it_and_sleep_after_it() -> None:
    result = run([job(1, 0, 4, 100), job(2, 200, 2, 100)])
    assert spans(result) == [(30, 130), (230, 330)]
    assert where(result) == [["n1", "n2"], ["n1"]]
    found = figures(result)
    assert (found["boots"], found["nodes_woken"], found["boot_seconds"]) == (2, 3, 30)
    assert set(last_power(result).values()) <= {"asleep", "falling asleep"}


def test_prepared_blocks_stay_on() -> None:
    result = run([job(1, 0, 4, 100), job(2, 200, 4, 100)], "prepared")
    assert spans(result) == [(30, 130), (200, 300)]
    assert figures(result)["boots"] == 1
    assert not any(isinstance(record.decision, PowerDown) for record in result.decisions)


def test_prepared_blocks_that_nobody_has_are_given_back_after_a_time() -> None:
    result = run([job(1, 0, 4, 100), job(2, 200, 4, 100), job(3, 500, 4, 10)], "prepared", keep=100)
    assert [start for start, _ in spans(result)] == [30, 200, 530]
    assert figures(result)["given_back"] == 1


def test_prepared_a_job_has_the_whole_block() -> None:
    """Three nodes are rounded up to a leaf switch; so the fourth is nobody's."""
    result = run([job(1, 0, 6, 100), job(2, 0, 2, 100), job(3, 0, 8, 50)], "prepared")
    assert where(result)[:2] == [["n1", "n2", "n3"], ["n5"]]
    assert spans(result)[2][0] == 130


def test_nodes_that_are_on_when_the_run_begins_and_that_nobody_needs_sleep() -> None:
    result = run([job(1, 100, 2, 10)], power={})
    [first, *_] = [record for record in result.decisions if isinstance(record.decision, PowerDown)]
    assert (first.time, len(first.decision.nodes)) == (100, 7), "all but the one that the first job has"
    assert spans(result) == [(100, 110)]


def test_a_job_lies_below_one_switch_if_it_can() -> None:
    result = run([job(1, 0, 4, 500), job(2, 0, 8, 100), job(3, 40, 4, 100)])
    assert where(result) == [["n1", "n2"], ["n5", "n6", "n7", "n8"], ["n3", "n4"]]


def test_nodes_are_woken_in_time_for_a_booking() -> None:
    """The second job has to wait for the first; what it needs beside that is woken shortly before."""
    result = run([job(1, 0, 12, 300), job(2, 10, 16, 50)])
    assert spans(result)[1][0] == 330
    wakes = [record.time for record in result.decisions if isinstance(record.decision, PowerUp)]
    assert wakes[0] == 0 and 290 <= wakes[-1] <= 300


def test_a_job_too_large_for_what_is_connected_is_refused() -> None:
    cluster = ClusterDescription(
        "test", (PoolDescription("pool"),),
        tuple(NodeDescription(name, 2, pools=("pool",)) for name in NAMES),
        switches=SWITCHES[:2], energy=PROFILE,
    )  # fmt: skip
    plugins = [PluginConfig("easy", {}, "test"), PluginConfig("partitions", {}, "test")]
    result = emulate(cluster, [job(1, 0, 10, 5), job(2, 0, 8, 5)], plugins, Catalogue(), label="x")
    assert [one.state for one in result.jobs] == ["refused", "completed"]


def test_a_partition_booted_for_a_job_that_starts_elsewhere_is_given_back() -> None:
    """The first job ends long before its limit, so the second one starts where it was."""
    result = run([job(1, 0, 8, 100, 1000), job(2, 115, 4, 200, 300), job(3, 50_000, 16, 10)])
    assert where(result)[1] == ["n1", "n2"]
    resting = power_at(result, 49_999)
    assert {"n5", "n6"} <= {change.node for change in result.power if change.time < 49_999}
    assert set(resting.values()) == {"asleep"}


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative"])
@pytest.mark.parametrize("blocks", ["on-demand", "prepared"])
def test_nodes_are_woken_for_a_job_of_several_parts(blocks: str, policy: str) -> None:
    parts = (Request(processors=4, walltime=100.0), Request(processors=2, walltime=100.0))
    request = Request(processors=6, walltime=100.0, parts=parts)
    parted = TraceJob(JobDescription(id="J1", submit_time=0.0, request=request), 100.0)
    result = run([parted, job(2, 10, 2, 50)], blocks, policy)
    assert [one.state for one in result.jobs] == ["completed", "completed"]
    assert spans(result)[0] == (30, 130)


def parted(number: int, submit: float, runtime: float, *processors: int) -> TraceJob:
    parts = tuple(Request(processors=count, walltime=runtime) for count in processors)
    request = Request(processors=sum(processors), walltime=runtime, parts=parts)
    return TraceJob(JobDescription(id=f"J{number}", submit_time=submit, request=request), runtime)


@pytest.mark.parametrize(("policy", "start"), [("fcfs", 360), ("easy", 330), ("conservative", 330)])
def test_prepared_all_parts_of_a_job_are_in_one_block_that_is_its_own(policy: str, start: float) -> None:
    """The second job's parts would find a block each beside the first job, but no block for both. Nodes are
    woken in time for a booking; `fcfs` makes none."""
    result = run([job(1, 0, 2, 300), parted(2, 10, 100.0, 8, 4)], "prepared", policy)
    assert spans(result) == [(30, 330), (start, start + 100)]
    assert [one.state for one in result.jobs] == ["completed", "completed"]


@pytest.mark.parametrize("blocks", ["on-demand", "prepared"])
def test_parts_that_no_block_can_hold_together(blocks: str) -> None:
    """Two leaf switches that nothing connects: prepared blocks end there."""
    cluster = machine(switches=SWITCHES[:2])
    plugins = [PluginConfig("easy", {}, "test"), PluginConfig("partitions", {"blocks": blocks}, "test")]
    jobs = [parted(1, 0, 100.0, 8, 4)]
    result = emulate(cluster, jobs, plugins, Catalogue(), label="x", power=ASLEEP)
    assert result.jobs[0].state == ("refused" if blocks == "prepared" else "completed")


def test_boots_that_fail_cost_no_job() -> None:
    faults = {"wake_failure_rate": 0.3, "node_repair": 300.0}
    jobs = [job(n, 50 * n, 2 + 2 * (n % 4), 40, 100) for n in range(30)]
    for blocks in ("on-demand", "prepared"):
        result = run(jobs, blocks, faults=faults, seed=3, keep=0)
        assert {one.state for one in result.jobs} == {"completed"}
        assert figures(result)["failed_boots"] > 0


def scheduler_of(cluster: ClusterDescription, **options: Any) -> Scheduler:
    configs = [PluginConfig("easy", {}, "test"), PluginConfig("partitions", options, "test")]
    able = frozenset({PowerUp, PowerDown})
    return Scheduler(cluster, Plugins.load(configs, Catalogue(), able), capabilities=able)


def test_what_a_user_is_told_while_the_nodes_are_booted() -> None:
    scheduler = scheduler_of(machine())
    asleep = [NodePowerChanged(0.0, name, "asleep") for name in NAMES]
    [wake] = scheduler.step(0.0, [*asleep, JobSubmitted(0.0, job(1, 0, 4, 10).job)])
    assert wake.nodes == ("n1", "n2")
    scheduler.step(5.0, [NodePowerChanged(5.0, "n1", "waking"), NodePowerChanged(5.0, "n1", "on")])
    said = "\n".join(explain(scheduler, "J1", "{:.0f}".format))
    assert "It waits for its partition, n1, n2, which is being booted: 1 of 2 nodes are on." in said


def test_a_refused_order_to_sleep_is_given_again_after_a_while() -> None:
    """Whoever had to carry it out did not answer: nobody has to want the nodes first."""
    scheduler = scheduler_of(machine())
    [sleep] = scheduler.step(0.0, [])
    assert sleep.nodes == NAMES
    assert scheduler.step(1.0, [DecisionFailed(1.0, sleep, "no answer")]) == []
    assert scheduler.step(30.0, []) == []
    assert scheduler.next_wakeup() == 61.0
    assert [again.nodes for again in scheduler.step(61.0, [])] == [NAMES]


def in_pool(one: TraceJob) -> JobDescription:
    return msgspec.structs.replace(one.job, pool="pool")


def test_a_node_that_comes_to_another_pool_is_in_its_blocks() -> None:
    [back, *others] = machine().nodes
    before = msgspec.structs.replace(back, pools=("old",))
    cluster = machine(nodes=(before, *others), pools=(PoolDescription("pool"), PoolDescription("old")))
    scheduler = scheduler_of(cluster, keep=1000)
    [start] = scheduler.step(0.0, [JobSubmitted(0.0, in_pool(job(1, 0, 14, 10)))])
    assert len(start.placement) == 7
    scheduler.step(1.0, [JobStarted(1.0, "J1", start.placement), JobEnded(1.0, "J1")])
    news = [NodeUp(2.0, back), JobSubmitted(2.0, in_pool(job(2, 2, 16, 10)))]
    [start] = scheduler.step(2.0, news)
    assert [name for name, _ in start.placement] == list(NAMES)


def test_a_cluster_whose_nodes_cannot_sleep_and_stand_on_no_switch_is_refused() -> None:
    bare = ClusterDescription(
        "bare", (PoolDescription("pool"),), (NodeDescription("n1", 2, pools=("pool",)),)
    )
    with pytest.raises(UserError, match="expected a machine of wired partitions"):
        emulate(bare, [], [PluginConfig("easy"), PluginConfig("partitions")], Catalogue(), label="x")


# ---------------------------------------------------------------------- properties


@st.composite
def workloads(draw: Any) -> list[TraceJob]:
    submit, jobs = 0, []
    for number in range(draw(st.integers(1, 15))):
        submit += draw(st.integers(0, 120))
        runtime = draw(st.integers(1, 300))
        jobs.append(
            job(
                number,
                submit,
                draw(st.integers(1, 16)),
                runtime,
                runtime + draw(st.sampled_from([0, 50, 1000])),
            )
        )
    return jobs


def blocks_of(result: Any, prepared: bool) -> list[tuple[set[str], float, float]]:
    """What each job had for itself, and when."""
    sizes = [{name} for name in NAMES]
    sizes += [set(NAMES[at : at + 2]) for at in range(0, 8, 2)]
    sizes += [set(NAMES[:4]), set(NAMES[4:]), set(NAMES)]
    found = []
    for one in result.jobs:
        mine = {name for name, _ in one.placement}
        block = next(block for block in sizes if mine <= block) if prepared else mine
        found.append((block, one.start_time, one.end_time))
    return found


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative"])
@pytest.mark.parametrize(
    ("blocks", "keep"), [("on-demand", None), ("on-demand", 60), ("prepared", None), ("prepared", 60)]
)
def test_every_job_runs_alone_on_its_partition_and_all_nodes_come_to_rest(
    policy: str, blocks: str, keep: float | None
) -> None:
    @given(workloads())
    @settings(max_examples=6, deadline=None)
    def check(jobs: list[TraceJob]) -> None:
        late = job(len(jobs), FAR, 2, 10)
        result = run([*jobs, late], blocks, policy, keep=keep)
        assert {one.state for one in result.jobs} == {"completed"}
        assert all(record.accepted for record in result.decisions), "no node with a job is sent to sleep"
        had = blocks_of(result, blocks == "prepared")
        for name in NAMES:
            uses = sorted((begin, end) for block, begin, end in had if name in block)
            assert all(first[1] <= second[0] for first, second in pairwise(uses))
        if blocks == "on-demand" or keep is not None:
            assert set(power_at(result, FAR - 1).values()) <= {"asleep"}, "nobody needs them any more"
            others = {name for name in NAMES if name not in dict(result.jobs[-1].placement)}
            assert {power_at(result, FAR + 35).get(name, "asleep") for name in others} == {"asleep"}

    check()


def test_nodes_of_a_suspended_job_do_not_sleep() -> None:
    """Its memory is there, though nobody has its processors."""
    scheduler = scheduler_of(machine(suspended_lend=True))
    placement = (("n1", 2), ("n2", 2))
    asleep = [NodePowerChanged(0.0, name, "asleep") for name in NAMES[2:]]
    told = [*asleep, JobSubmitted(0.0, job(1, 0, 4, 9000).job), JobStarted(0.0, "J1", placement)]
    assert scheduler.step(0.0, told) == []
    scheduler.step(10.0, [JobSuspended(10.0, "J1")])
    assert scheduler.state.lend(scheduler.state.jobs["J1"])
    assert [scheduler.step(now, []) for now in (20.0, 100.0, 500.0)] == [[], [], []]
    ended = scheduler.step(600.0, [JobEnded(600.0, "J1", "cancelled")])
    assert [decision.nodes for decision in ended] == [("n1", "n2")]


def test_parts_that_are_one_and_the_same_are_placed_in_a_prepared_block() -> None:
    part = Request(processors=2, walltime=100.0, nodes=1, processors_per_node=2)
    request = Request(processors=4, walltime=100.0, parts=(part, part))
    scheduler = scheduler_of(machine(), blocks="prepared")
    [start] = scheduler.step(0.0, [JobSubmitted(0.0, JobDescription("J1", 0.0, request))])
    assert start.placement == (("n1", 2), ("n2", 2))
