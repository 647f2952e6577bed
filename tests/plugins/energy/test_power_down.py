"""power-down: idle nodes sleep, and are awake when they are needed."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pydantic
import pytest
from building import alike, described, emulate, node_cluster, plugged, traced
from energy_building import PAPER, PRESENT, run_result
from hypothesis import given, settings
from hypothesis import strategies as st

from headway import events as ev
from headway.decisions import PowerDown, PowerUp
from headway.energy.profiles import with_energy
from headway.errors import UserError
from headway.metrics.energy import energy_use
from headway.model import ClusterDescription, NodeDescription, Reservation
from headway.plugins import Catalogue, PluginConfig, Plugins
from headway.scheduler import Scheduler
from headway_adapters.emulated import EmulatedAdapter, Faults
from headway_plugins.energy.power_down import PowerDownIdle
from headway_plugins.policies.dedicated import Dedicated
from headway_plugins.policies.easy import Easy
from headway_plugins.policies.fcfs import Fcfs

WAKE = 30


def power_down(**options) -> PowerDownIdle:
    return PowerDownIdle(PowerDownIdle.Options(**{"idle": 100, "stay": 0, "margin": 0, **options}))


def machine(nodes: int = 2, processors: int = 4, *, reservations=(), **more) -> ClusterDescription:
    cluster = node_cluster(*alike(nodes, processors, **more), reservations=tuple(reservations))
    return with_energy(cluster, PRESENT)


def commands(run) -> list[tuple[float, str, tuple[str, ...]]]:
    return [
        (time, type(d).__name__, d.nodes) for time, d in run.decisions if isinstance(d, PowerDown | PowerUp)
    ]


def told(run, node: str) -> list[tuple[float, str]]:
    return [
        (e.time, e.power)
        for e in run.adapter.told
        if type(e).__name__ == "NodePowerChanged" and e.node == node
    ]


def test_an_idle_node_sleeps_after_its_time() -> None:
    run = emulate(machine(), [traced("1", 4, 1000)], Fcfs(), power_down())
    assert commands(run) == [(100, "PowerDown", ("n1",))]


def test_a_node_that_a_job_left_is_idle_from_then_on() -> None:
    jobs = [traced("1", 4, 1000), traced("2", 4, 150)]
    run = emulate(machine(), jobs, Fcfs(), power_down())
    assert commands(run) == [(250, "PowerDown", ("n1",))]


def test_the_reserve_stays_on() -> None:
    run = emulate(machine(4), [traced("1", 4, 1000)], Fcfs(), power_down(reserve=2))
    assert commands(run)[0] == (100, "PowerDown", ("n3",))
    assert all(time in (100, 1000) for time, _, _ in commands(run))


def test_beside_a_job_that_can_never_run_the_run_ends_once_the_nodes_sleep() -> None:
    run = emulate(machine(), [traced("1", 9, 50)], Fcfs(), power_down(), max_rounds=20)
    assert commands(run) == [(100, "PowerDown", ("n1", "n0"))]
    assert run.states == {"1": "pending"}


def test_a_node_is_woken_for_a_job_in_the_queue_which_then_starts() -> None:
    jobs = [traced("1", 4, 1000), traced("2", 4, 50, submit=400)]
    run = emulate(machine(), jobs, Fcfs(), power_down())
    assert (400, "PowerUp", ("n1",)) in commands(run)
    assert run.starts["2"] == 400 + WAKE
    assert run.results["2"].placement == (("n1", 4),)


def test_no_more_nodes_are_woken_than_the_queue_needs() -> None:
    jobs = [traced("1", 4, 1000), traced("2", 6, 50, submit=400)]
    run = emulate(machine(5), jobs, Fcfs(), power_down())
    (woken,) = [nodes for _, kind, nodes in commands(run) if kind == "PowerUp"]
    assert len(woken) == 2


def test_a_job_that_is_larger_than_the_machine_wakes_nobody() -> None:
    jobs = [traced("1", 4, 1000), traced("2", 40, 50, submit=400)]
    run = emulate(machine(), jobs, Fcfs(), power_down())
    assert all(kind == "PowerDown" for _, kind, _ in commands(run))


def test_nodes_are_woken_in_time_for_what_is_booked() -> None:
    # The head needs both nodes; n0 is busy until 1000, so n1 sleeps until shortly before.
    jobs = [traced("1", 4, 1000), traced("head", 8, 50, submit=300)]
    run = emulate(machine(), jobs, Easy(), power_down())
    assert (1000 - WAKE, "PowerUp", ("n1",)) in commands(run)
    assert run.starts["head"] == 1000


def test_a_job_that_comes_is_booked_before_it_is_decided_who_is_the_first_to_sleep() -> None:
    # "head" comes to another pool when n1 is tired, and needs it only at 1000.
    jobs = [traced("1", 4, 1000, pool="b"), traced("head", 8, 50, submit=100, pool="b")]
    nodes = node_cluster(*alike(2, 4, pools=("a", "b")), pools=("a", "b"))
    run = emulate(with_energy(nodes, PRESENT), jobs, Easy(), power_down())
    assert commands(run)[:2] == [(100, "PowerDown", ("n1",)), (1000 - WAKE, "PowerUp", ("n1",))]
    assert run.starts["head"] == 1000


def test_nodes_are_woken_in_time_for_a_reservation_and_stay_on_in_it() -> None:
    kept = Reservation("r", 600, 900, nodes=("n1",), users=("u",))
    run = emulate(machine(reservations=[kept]), [traced("1", 4, 1500)], Fcfs(), power_down())
    assert commands(run)[:2] == [(100, "PowerDown", ("n1",)), (600 - WAKE, "PowerUp", ("n1",))]
    assert told(run, "n1")[-1][0] >= 900 or told(run, "n1")[-1] == (600, "on")


def test_nodes_are_awake_for_a_begin_time() -> None:
    jobs = [traced("1", 4, 1000), traced("later", 4, 50, begin_time=500.0)]
    run = emulate(machine(), jobs, Fcfs(), power_down())
    assert run.starts["later"] == 500


def test_nodes_are_awake_for_a_dedicated_job() -> None:
    jobs = [
        traced("1", 4, 1000),
        traced("d", 4, 50, begin_time=500.0, attributes={"requested_start": 500.0}),
    ]
    run = emulate(machine(), jobs, Easy(), Dedicated(Dedicated.Options()), power_down())
    assert run.starts["d"] == 500


def test_a_woken_node_stays_on_for_a_while() -> None:
    jobs = [traced("1", 4, 2000), traced("2", 4, 10, submit=400)]
    run = emulate(machine(), jobs, Fcfs(), power_down(idle=50, stay=300))
    downs = [time for time, kind, _ in commands(run) if kind == "PowerDown"]
    assert downs == [50, 430 + 300]


def test_a_node_that_is_needed_soon_does_not_sleep() -> None:
    kept = Reservation("r", 140, 900, nodes=("n1",), users=("u",))
    run = emulate(machine(reservations=[kept]), [traced("1", 4, 800)], Fcfs(), power_down())
    assert commands(run) == []


def test_only_nodes_that_the_waiting_job_may_use_are_woken() -> None:
    nodes = (*alike(2, 4), NodeDescription("g", 4, features=("gpu",)))
    cluster = with_energy(node_cluster(*nodes), PRESENT)
    jobs = [traced("1", 4, 1000), traced("2", 4, 50, submit=400, features=("gpu",))]
    run = emulate(cluster, jobs, Fcfs(), power_down())
    assert [c for c in commands(run) if c[1] == "PowerUp"] == [(400, "PowerUp", ("g",))]


def test_a_node_that_does_not_wake_is_not_waited_for() -> None:
    jobs = [traced("1", 4, 1000), traced("2", 4, 50, submit=400)]
    run = emulate(machine(3), jobs, Fcfs(), power_down(), faults=Faults(wake_failure_rate=0.99))
    assert run.states == {"1": "completed", "2": "completed"}
    assert any(type(e).__name__ == "NodeDown" for e in run.adapter.told)
    assert not run.problems


def test_a_refused_command_is_not_repeated_at_once() -> None:
    run = emulate(
        machine(),
        [traced("1", 4, 5000)],
        Fcfs(),
        power_down(retry=1000),
        faults=Faults(failure_rate=0.9),
        seed=3,
    )
    for node in ("n0", "n1"):
        times = [time for time, _, nodes in commands(run) if node in nodes]
        assert len(times) > 1
        assert all(later - earlier >= 1000 for earlier, later in pairwise(times))


def test_without_the_levers_it_is_refused_at_the_start() -> None:
    configs = [PluginConfig("easy", {}, "x"), PluginConfig("power-down", {}, "site.yaml: plugins[1]")]
    with pytest.raises(UserError, match=r"power-down.*PowerDown"):
        Plugins.load(configs, Catalogue(()), EmulatedAdapter.capabilities)


@pytest.mark.parametrize("options", [{"idle": -1}, {"depth": 0}, {"retry": 0}, {"reserve": -1}, {"x": 1}])
def test_wrong_options_are_refused_by_name(options) -> None:
    with pytest.raises(pydantic.ValidationError):
        PowerDownIdle.Options(**options)


def test_it_saves_energy_and_says_how_often_it_acted() -> None:
    jobs = [traced(str(at), 4, 100, submit=2000 * at) for at in range(6)]
    plugin = power_down()
    saved = emulate(machine(8), jobs, Fcfs(), plugin)
    plain = emulate(machine(8), jobs, Fcfs())
    less, more = (energy_use(run_result(run, machine(8))) for run in (saved, plain))
    assert less is not None and more is not None
    assert less.total < 0.3 * more.total
    figures = plugin.register_metrics()["power-down"](None)
    assert figures["put_to_sleep"] >= 8 and figures["woken"] >= 4


def test_the_reserve_holds_while_commands_are_on_their_way() -> None:
    scheduler = Scheduler(machine(4), plugged(Fcfs(), power_down(reserve=2)))
    scheduler.step(0, [])
    (down,) = scheduler.step(100, [])
    assert down.nodes == ("n3", "n2")
    assert scheduler.step(103, []) == []


def test_a_node_that_a_job_reached_first_is_told_again_later() -> None:
    cluster = machine(1)
    scheduler = Scheduler(cluster, plugged(Fcfs(), power_down(idle=100)))
    scheduler.step(0, [])
    (down,) = scheduler.step(100, [])
    assert isinstance(down, PowerDown)
    # Nothing came of the command, as in monitor mode.
    scheduler.step(110, [ev.JobSubmitted(110, described("1", 4, 50, 110))])
    scheduler.step(111, [ev.JobStarted(111, "1", (("n0", 4),))])
    scheduler.step(150, [ev.JobEnded(150, "1", "completed")])
    assert scheduler.step(200, []) == []
    (again,) = scheduler.step(250, [])
    assert again == down


def test_a_node_that_did_not_wake_is_woken_once_it_is_mended() -> None:
    cluster = machine(1)
    scheduler = Scheduler(cluster, plugged(Fcfs(), power_down()))
    scheduler.step(0, [ev.NodePowerChanged(0, "n0", "asleep")])
    (up,) = scheduler.step(10, [ev.JobSubmitted(10, described("1", 4, 50, 10))])
    assert isinstance(up, PowerUp)
    assert scheduler.step(600, [ev.NodeDown(600, "n0", "did not wake")]) == []
    assert scheduler.step(900, [ev.NodeUp(900, cluster.nodes[0])]) == [up]


def test_pools_without_nodes_are_refused() -> None:
    cluster = with_energy(ClusterDescription.flat(8), PRESENT)
    with pytest.raises(UserError, match="only nodes can sleep, found no pool of nodes but 'pool'"):
        emulate(cluster, [traced("1")], Fcfs(), power_down())


def test_a_profile_without_sleep_is_refused() -> None:
    cluster = with_energy(node_cluster(*alike(2, 4)), PAPER)
    with pytest.raises(UserError, match=r"no class of the energy profile 'chandio2014' has a sleep state"):
        emulate(cluster, [traced("1")], Fcfs(), power_down())


def test_nodes_of_a_class_without_sleep_stay_on_and_the_others_sleep() -> None:
    awake = msgspec.structs.replace(PRESENT.classes[0], name="awake", sleep=None)
    profile = msgspec.structs.replace(PRESENT, classes=(*PRESENT.classes, awake))
    cluster = with_energy(node_cluster(*alike(3, 4)), profile, {"n2": "awake"})
    run = emulate(cluster, [traced("1", 4, 1000)], Fcfs(), power_down())
    assert commands(run) == [(100, "PowerDown", ("n1",))]


def test_what_it_did_counts_when_it_was_done() -> None:
    plugin = power_down()
    emulate(machine(), [traced("1", 4, 5000)], Fcfs(), plugin, faults=Faults(failure_rate=0.9), seed=3)
    figures = plugin.register_metrics()["power-down"](None)
    assert figures["refused"] > 2 and figures["put_to_sleep"] <= 2


def test_a_node_of_two_pools_counts_for_both_reserves() -> None:
    nodes = (
        NodeDescription("a", 4, pools=("left",)),
        NodeDescription("both", 4, pools=("left", "right")),
        NodeDescription("b", 4, pools=("right",)),
    )
    cluster = with_energy(node_cluster(*nodes, pools=("left", "right")), PRESENT)
    run = emulate(cluster, [traced("1", 1, 1000, pool="left")], Fcfs(), power_down(reserve=1))
    # The last idle node of each pool stays on: "b" may sleep, "both" must not.
    assert commands(run) == [(100, "PowerDown", ("b",))]


@st.composite
def workloads(draw):
    jobs, submit = [], 0
    for at in range(draw(st.integers(1, 12))):
        submit += draw(st.sampled_from([0, 10, 200, 900]))
        begin = draw(st.sampled_from([None, None, float(submit + 300)]))
        jobs.append(
            traced(f"j{at}", draw(st.integers(1, 12)), draw(st.integers(1, 400)), submit, begin_time=begin)
        )
    return jobs


@settings(max_examples=60, deadline=None)
@given(workloads(), st.sampled_from([Fcfs, Easy]), st.integers(0, 2), st.sampled_from([0, 60, 500]))
def test_every_job_runs_on_nodes_that_are_on(jobs, policy, reserve, idle) -> None:
    cluster = machine(3)
    run = emulate(cluster, jobs, policy(), power_down(idle=idle, reserve=reserve))
    assert not run.problems
    assert set(run.states.values()) == {"completed"}
    on: dict[str, str] = {}
    for event in run.adapter.told:
        if type(event).__name__ == "NodePowerChanged":
            on[event.node] = event.power
        elif type(event).__name__ == "JobStarted":
            assert all(on.get(name, "on") == "on" for name, _ in event.placement)


def test_a_node_of_a_suspended_job_does_not_sleep() -> None:
    """Its memory is there, though nobody has its processors."""
    cluster = msgspec.structs.replace(machine(), suspended_lend=True)
    scheduler = Scheduler(cluster, plugged(Fcfs(), power_down(idle=100)))
    state = scheduler.state
    both = (("n0", 4), ("n1", 4))
    scheduler.step(0, [ev.JobSubmitted(0, described("a", 8, 5000)), ev.JobStarted(0, "a", both)])
    scheduler.step(10, [ev.JobSuspended(10, "a")])
    assert state.lend(state.jobs["a"])
    scheduler.step(20, [])
    assert scheduler.step(500, []) == []
    scheduler.step(600, [ev.JobEnded(600, "a", "cancelled")])
    assert [decision.nodes for decision in scheduler.step(700, [])] == [("n1", "n0")]


@pytest.mark.parametrize(
    "pools", [("a", "b"), ("a", "a b", "b")], ids=["pools of their own", "pools that share a node"]
)
def test_a_job_of_several_pools_wakes_nodes_where_they_sleep(pools: tuple[str, ...]) -> None:
    """Its first pool is busy, and its second asleep; fcfs books nothing for it."""
    nodes = (
        NodeDescription(f"n{at}", 4, pools=tuple(names.split()), wake_time=WAKE)
        for at, names in enumerate(pools)
    )
    cluster = with_energy(node_cluster(*nodes, pools=("a", "b")), PRESENT)
    busy = 4 * sum("a" in names.split() for names in pools)
    jobs = [traced("1", busy, 5000, pool="a"), traced("2", 4, 10, 500, pool="a", further_pools=("b",))]
    run = emulate(cluster, jobs, Fcfs(), power_down())
    assert run.problems == []
    last = f"n{len(pools) - 1}"
    assert commands(run)[:2] == [(100, "PowerDown", (last,)), (500, "PowerUp", (last,))]
    assert run.starts["2"] is not None and run.starts["2"] <= 500 + 2 * WAKE
