"""Whole runs on emulated machines of partitions: the dossier's scenarios, properties and faults."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.decisions import PowerDown, Start
from headway.emulation import emulate
from headway.errors import UserError
from headway.hookspecs import hookimpl
from headway.model import ClusterDescription, JobDescription, Request
from headway.partitions.description import TorusConfig
from headway.partitions.torus import Box, Geometry, bits_of
from headway.plugins import Catalogue, PluginConfig, Plugins
from headway.scheduler import Scheduler
from headway.workload.jobs import TraceJob
from headway_adapters.emulated.partitions import Partitions
from headway_plugins.partitions.plugin import Partitions as PartitionsPlugin


def job(number, submit, nodes, runtime, limit=None, **attributes):
    request = Request(processors=nodes, walltime=limit or runtime)
    described = JobDescription(
        id=f"J{number}", submit_time=float(submit), request=request, attributes=attributes or None
    )
    return TraceJob(described, float(runtime))


def run(jobs, shape=(2, 2, 2), *, policy="fcfs", faults=None, seed=0, torus=None, **options):
    cluster = TorusConfig(shape=shape, **(torus or {})).description()
    plugins = [PluginConfig(policy, {}, "test"), PluginConfig("partitions", options, "test")]
    return emulate(
        cluster, jobs, plugins, Catalogue(), label=policy, faults=faults, seed=seed, keep_decisions=True
    )


def spans(result):
    return [(one.start_time, one.end_time) for one in result.jobs]


def figures(result):
    return result.contributed["partitions"](result)


def plugin_on(shape, **options):
    """The plugin as it is once a run has begun."""
    plugin = PartitionsPlugin(PartitionsPlugin.Options(**options))
    plugin.startup(Scheduler(TorusConfig(shape=shape).description(), Plugins()).state)
    return plugin


def as_seen(trace):
    """A job as plugins see it."""
    return SimpleNamespace(description=trace.job, processors=trace.job.request.processors)


SCENARIO = [job(1, 0, 512, 100), job(2, 0, 1024, 100), job(3, 0, 2048, 100), job(4, 0, 2048, 50)]


@pytest.mark.parametrize(
    ("stages", "expected"),
    [
        ("loadleveler", [(41, 141), (53, 153), (61, 161), (223, 273)]),
        ("slurm", [(41, 141), (79, 179), (123, 223), (249, 299)]),
    ],
)
def test_4_scenario_s_to_the_second(stages, expected):
    result = run(SCENARIO, torus={"proxy_stages": stages})
    assert spans(result) == expected
    assert [(one.placement[0][0], len(one.placement)) for one in result.jobs] == [
        ("m0-0-0", 1), ("m0-1-0", 2), ("m1-0-0", 4), ("m0-0-0", 4),
    ]  # fmt: skip


def test_4_one_job_after_another_in_both_cycles():
    jobs = [job(1, 0, 512, 100), job(2, 200, 512, 100)]
    assert spans(run(jobs, blocks="prepared")) == [(40, 140), (214, 314)]
    assert spans(run(jobs)) == [(41, 141), (241, 341)]


@pytest.mark.parametrize(("blocks", "boots", "mean"), [("on-demand", 1000, 101.0), ("prepared", 5, 74.13)])
def test_7_a_thousand_short_jobs(blocks, boots, mean):
    result = run([job(n, 20 * n, 512, 60) for n in range(1000)], blocks=blocks)
    assert figures(result)["boots"] == boots
    response = sum(one.end_time - one.job.submit_time for one in result.jobs) / 1000
    assert response == pytest.approx(mean, abs=1e-9)


# ---------------------------------------------------------------------- properties


@st.composite
def workloads(draw):
    submit, jobs = 0, []
    for number in range(draw(st.integers(1, 14))):
        submit += draw(st.integers(0, 60))
        attributes = draw(
            st.sampled_from([{}, {"connection": "torus"}, {"shape": [1, 2, 1], "rotate": True}])
        )
        runtime = draw(st.integers(1, 300))
        jobs.append(job(number, submit, draw(st.integers(1, 8 * 512)), runtime, 2 * runtime, **attributes))
    return jobs


class Watch:
    """Sees every partition's hardware while a run goes on."""

    def __init__(self, monkeypatch):
        self.active: dict[str, tuple[int, int]] = {}
        self.geometry: Geometry | None = None
        self.log: list[tuple[float, str, str]] = []
        original = Partitions._watch

        def watched(partitions, partition):
            self.geometry = partitions.geometry
            box = self.geometry.box_of(partition.spec.nodes, partition.spec.connection)
            assert isinstance(box, Box)
            if partition.state in ("free", "error"):
                self.active.pop(partition.spec.id, None)
            elif partition.state == "configuring":
                self.active[partition.spec.id] = self.geometry.masks(box)
                self.check()
            self.log.append((partitions._machine.now, partition.spec.id, str(partition.state)))
            original(partitions, partition)

        monkeypatch.setattr(Partitions, "_watch", watched)

    def check(self):
        nodes, links = Counter(), Counter()
        for mine, wires in self.active.values():
            nodes.update(bits_of(mine))
            links.update(bits_of(wires))
        assert max(nodes.values()) == 1
        assert all(n <= self.geometry.capacity[link] for link, n in links.items())


@pytest.mark.parametrize(
    ("policy", "options"),
    [("fcfs", {}), ("easy", {"fit": "best"}), ("conservative", {}), ("easy", {"blocks": "prepared"})],
    ids=str,
)
def test_5_6_no_hardware_is_used_twice_and_nothing_is_told_too_early(policy, options, monkeypatch):
    watch = Watch(monkeypatch)

    @given(workloads(), st.sampled_from([(1, 1, 1), (2, 1, 1)]))
    @settings(max_examples=5)
    def check(jobs, capacity):
        watch.active.clear()
        watch.log.clear()
        if options.get("blocks") == "prepared":
            jobs = [
                job(n, j.job.submit_time, j.job.request.processors, j.runtime) for n, j in enumerate(jobs)
            ]
        result = run(jobs, policy=policy, torus={"capacity": (*capacity,)}, **options)
        assert {one.state for one in result.jobs} <= {"completed", "refused"}
        last = {name: state for _, name, state in watch.log}
        # A block that stays is ready, or was given back for another one.
        kept = {"ready", "free"} if options.get("blocks") == "prepared" else {"free"}
        assert set(last.values()) <= kept
        assert all(record.accepted for record in result.decisions)
        taken: dict[str, list[tuple[float, float]]] = {}
        for one in result.jobs:
            for name, _ in one.placement:
                taken.setdefault(name, []).append((one.start_time, one.end_time))
        for uses in taken.values():
            assert all(first[1] <= second[0] for first, second in pairwise(sorted(uses)))

    check()


def test_6_on_demand_hardware_is_taken_with_the_decision_and_free_after_stage_10():
    result = run([job(n, 11 * n, 512 << n % 3, 90, 120) for n in range(30)], policy="easy")
    decided = {one.decision.job_id: one.time for one in result.decisions if isinstance(one.decision, Start)}
    freed: dict[str, float] = {}
    for step in result.partitions:
        if step.state == "promised":
            assert step.time == decided[step.job_id]
            assert all(freed.get(node, 0.0) <= step.time for node in step.nodes)
            freed.update(dict.fromkeys(step.nodes, float("inf")))
        elif step.state == "free":
            freed.update(dict.fromkeys(step.nodes, step.time))
    assert set(freed.values()) < {step.time for step in result.partitions}


def test_6_a_prepared_block_is_taken_by_the_start_of_a_job_and_by_nothing_else():
    result = run([job(n, 11 * n, 512 << n % 3, 90, 120) for n in range(30)], policy="easy", blocks="prepared")
    decided = {one.decision.job_id: one.time for one in result.decisions if isinstance(one.decision, Start)}
    loading = [step for step in result.partitions if step.state == "loading"]
    assert {step.job_id for step in loading} == set(decided)
    assert all(step.time >= decided[step.job_id] for step in loading)
    # Blocks overlap, and stay booted without a job: others get what they have.
    ready = {step.nodes for step in result.partitions if step.state == "ready" and not step.job_id}
    given = [one.decision for one in result.decisions if isinstance(one.decision, PowerDown)]
    assert given and {decision.nodes for decision in given} <= ready


@pytest.mark.parametrize("blocks", ["on-demand", "prepared"])
@pytest.mark.parametrize("requeue", [False, True])
def test_9_with_faults_no_job_is_lost_and_no_partition_leaks(blocks, requeue, monkeypatch):
    watch = Watch(monkeypatch)
    jobs = [job(n, 40 * n, 512 << n % 3, 50 + 7 * n % 100, 400) for n in range(60)]
    faults = {
        "boot_failure_rate": 0.2, "proxy_mtbf": 600.0, "node_mtbf": 3000.0, "node_repair": 300.0,
        "requeue": requeue,
    }  # fmt: skip
    seen = Counter()
    for seed in range(2):
        watch.active.clear()
        watch.log.clear()
        result = run(jobs, policy="easy", faults=faults, seed=seed, blocks=blocks)
        states = Counter(one.state for one in result.jobs)
        seen += states
        allowed = {"completed"} if requeue else {"completed", "failed", "node failure"}
        assert states.total() == len(jobs) and set(states) <= allowed
        # What is left is free, or a block that stays.
        last = {name: state for _, name, state in watch.log}
        kept = {"ready", "free"} if blocks == "prepared" else {"free"}
        assert {last[name] for name in last} <= kept
    assert requeue or seen["failed"]


def test_a_partition_that_never_boots_is_a_counted_fault_and_the_job_ends():
    result = run(SCENARIO[:1], faults={"boot_failure_rate": 0.999999999, "node_repair": 1e6})
    assert [(one.state, one.start_time) for one in result.jobs] == [("failed", None)]
    assert figures(result)["failed_boots"] == 4


@pytest.mark.parametrize("blocks", ["on-demand", "prepared"])
def test_a_job_takes_its_nodes_once_and_gives_them_back_once(blocks, monkeypatch):
    moves = []
    make = Partitions.__init__

    def made(self, machine, *others):
        moves.append(machine.nodes)
        make(self, machine, *others)

    monkeypatch.setattr(Partitions, "__init__", made)
    run([job(n, 40 * n, 512, 100) for n in range(5)], blocks=blocks)
    (nodes,) = moves
    assert nodes.moves == 2 * 5
    assert (nodes.free.processors == nodes.total).all()


@pytest.mark.parametrize("blocks", ["on-demand", "prepared"])
def test_who_has_what_is_what_runs_at_every_moment(blocks, monkeypatch):
    """What is counted as jobs come and go is what a look at all that run would find, in every cycle."""
    control, looks = PartitionsPlugin.control, []

    def compared(self, state):
        here = self._occupancy
        running = [entry[3] for pool in state.domains.values() for entry in pool.running]
        looks.append(len(running))
        masks = [here.masks_of(job, job.placement) for job in running]
        assert sorted(links for _, links in masks) == sorted(here.held())
        used = 0
        for nodes, _ in masks:
            used |= nodes
        assert here.used == used
        table = state.nodes
        assert here.free_now(table) == here.mask(table.free.processors == table.total)
        control(self, state)

    monkeypatch.setattr(PartitionsPlugin, "control", hookimpl(compared))
    faults = {"boot_failure_rate": 0.2, "proxy_mtbf": 600.0, "node_mtbf": 3000.0, "node_repair": 300.0}
    jobs = [job(n, 40 * n, 512 << n % 3, 50 + 7 * n % 100, 400) for n in range(60)]
    run(jobs, policy="easy", faults=faults, blocks=blocks)
    assert max(looks) > 2


# ---------------------------------------------------------------------- wiring


TORI = [
    job(n, 30 * n, 512 * (1 + n * 5 % 8), 100 + 37 * n % 300, 500) for n in range(80)
]  # fmt: skip


def test_11_with_enough_links_torus_and_mesh_make_the_same_schedule():
    enough = {"capacity": (4, 2, 2)}
    mesh, torus = (
        run(TORI, (4, 2, 2), policy="easy", torus={**enough, "connection": how}) for how in ("mesh", "torus")
    )
    assert spans(mesh) == spans(torus)
    assert [one.placement for one in mesh.jobs] == [one.placement for one in torus.jobs]


def test_11_what_is_lost_to_wiring_is_told_apart_from_what_is_lost_to_shape():
    mesh, torus = (run(TORI, (4, 2, 2), torus={"connection": how}) for how in ("mesh", "torus"))
    assert figures(mesh)["midplane_hours"]["idle_by_wiring"] == 0
    hours = figures(torus)["midplane_hours"]
    assert hours["idle_by_wiring"] > 0 and hours["idle_by_shape"] > 0
    horizon = max(one.end_time for one in torus.jobs)
    total = sum(hours.values())
    assert total == pytest.approx(16 * horizon / 3600, rel=0.02)


def test_12_policy_and_fit_are_configuration():
    ends = {
        (policy, fit): tuple(
            spans(run(TORI, (4, 2, 2), policy=policy, fit=fit, torus={"connection": "torus"}))
        )
        for policy in ("fcfs", "easy")
        for fit in ("first", "best")
    }
    assert len(set(ends.values())) > 1
    assert all(len(found) == len(TORI) for found in ends.values())


# ---------------------------------------------------------------------- jobs that ask for what is not there


@pytest.mark.parametrize(
    ("asked", "options", "said"),
    [
        ({"shape": [3, 1, 1]}, {}, "no partition of shape"),
        ({"shape": [1, 1, 1]}, {"nodes": 513}, "fewer than 513 compute nodes"),
        ({"shape": "wide"}, {}, "expected a shape of three extents"),
        ({"connection": "ring"}, {}, "expected the connection mesh or torus"),
        ({"connection": "torus"}, {"blocks": "prepared"}, "ask for a number of compute nodes alone"),
    ],
)
def test_a_job_that_no_partition_exists_for_is_refused_and_holds_nobody_up(asked, options, said):
    nodes = options.pop("nodes", 512)
    result = run([job(1, 0, nodes, 10, **asked), job(2, 0, 512, 10)], **options)
    assert [one.state for one in result.jobs] == ["refused", "completed"]
    plugin = plugin_on((2, 2, 2), **options)
    assert said in plugin.admit_job(as_seen(job(1, 0, nodes, 10, **asked)))


def test_a_machine_without_wires_is_refused():
    with pytest.raises(UserError, match="expected a machine of wired partitions"):
        emulate(
            ClusterDescription.flat(8), [], [PluginConfig("fcfs"), PluginConfig("partitions")], Catalogue(),
            label="x",
        )  # fmt: skip
