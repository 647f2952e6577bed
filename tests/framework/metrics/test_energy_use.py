"""What a run used: by hand on small cases, and by invariants on random ones."""

from __future__ import annotations

import pytest
from building import Run, alike, emulate, node_cluster, traced
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.decisions import PowerDown, PowerUp, Requeue, Resume, SetFrequency, Suspend
from headway.energy import EnergyModel
from headway.energy.profiles import load_profile, with_energy
from headway.hookspecs import hookimpl
from headway.metrics.energy import EnergyUse, energy_use, node_energy
from headway.model import ClusterDescription, NodeDescription
from headway.results import RunResult
from headway.state import Status
from headway_plugins.energy.meter import PowerMeter
from headway_plugins.policies.fcfs import Fcfs

PRESENT = load_profile("present-day")
PAPER = load_profile("chandio2014")


def machine(nodes: int = 2, processors: int = 4, profile=PRESENT) -> ClusterDescription:
    return with_energy(node_cluster(*alike(nodes, processors)), profile)


def flat(processors: int = 4, profile=PRESENT) -> ClusterDescription:
    return with_energy(ClusterDescription.flat(processors), profile)


def result(run: Run, cluster: ClusterDescription) -> RunResult:
    adapter = run.adapter
    return RunResult(
        "test",
        cluster,
        adapter.results(),
        capacity=adapter.capacity,
        activities=adapter.activities,
        power=adapter.power,
    )


def used(run: Run, cluster: ClusterDescription) -> EnergyUse:
    use = energy_use(result(run, cluster))
    assert use is not None
    return use


class Scripted:
    """Takes decisions at given times."""

    def __init__(self, *script) -> None:
        self.script = sorted(script, key=lambda entry: entry[0])

    @hookimpl
    def startup(self, state):
        for time, _ in self.script:
            for pool in state.pools.values():
                state.wake_at(time, pool)

    @hookimpl
    def control(self, state):
        due = [decision for time, decision in self.script if time <= state.now]
        self.script = [entry for entry in self.script if entry[0] > state.now]
        return due


BUSY = 4.8  # watts of a busy processor of the present-day profile: 4.0 dynamic and 0.8 static
IDLE = 0.8


def test_without_a_profile_nothing_is_said() -> None:
    cluster = ClusterDescription.flat(4)
    assert energy_use(result(emulate(cluster, [traced("1")], Fcfs()), cluster)) is None


def test_a_flat_pool_by_hand() -> None:
    cluster = flat()
    use = used(emulate(cluster, [traced("1", 3, 100), traced("2", 4, 50, submit=10)], Fcfs()), cluster)
    assert use.jobs.tolist() == pytest.approx([3 * 100 * BUSY, 4 * 50 * BUSY])
    assert use.busy == pytest.approx(500 * BUSY)
    assert use.idle == pytest.approx(100 * IDLE)
    assert use.total == pytest.approx(use.busy + use.idle)
    assert use.peak_power == pytest.approx(4 * BUSY)
    assert use.power.values.tolist() == pytest.approx([3 * BUSY + IDLE, 4 * BUSY])


def test_nodes_draw_power_of_their_own() -> None:
    cluster = machine()
    use = used(emulate(cluster, [traced("1", 4, 100)], Fcfs()), cluster)
    assert use.total == pytest.approx(100 * (2 * 119.6 + 4 * BUSY + 4 * IDLE))
    assert use.by_pool == {"pool": pytest.approx(use.total)}
    assert use.by_class == {"node": pytest.approx(400 * BUSY)}


def test_a_pool_draws_what_runs_on_its_nodes_whoever_sent_it_there() -> None:
    nodes = (
        NodeDescription("a", 4, pools=("left",)),
        NodeDescription("both", 4, pools=("left", "right")),
    )
    cluster = with_energy(node_cluster(*nodes, pools=("left", "right")), PRESENT)
    use = used(emulate(cluster, [traced("1", 4, 100, pool="right")], Fcfs()), cluster)
    idle, busy = 119.6 + 4 * IDLE, 119.6 + 4 * BUSY
    assert use.by_pool == {
        "left": pytest.approx(100 * (idle + busy)),
        "right": pytest.approx(100 * busy),
    }


def test_jobs_over_nodes_of_several_classes() -> None:
    nodes = (NodeDescription("n0", 2, node_class="I"), NodeDescription("n1", 2, node_class="III"))
    cluster = with_energy(node_cluster(*nodes), PAPER)
    use = used(emulate(cluster, [traced("1", 4, 100), traced("2", 1, 100)], Fcfs()), cluster)
    model = EnergyModel(cluster)
    one, three = (model.busy_power(model.classes[name]) for name in ("I", "III"))
    # In step with the slower class, which is the one that all times are for.
    assert use.jobs.tolist() == pytest.approx([100 * 2 * (one + three), 100 * one])
    assert use.by_class == {
        "I": pytest.approx(300 * one), "II": 0, "III": pytest.approx(200 * three)
    }  # fmt: skip


def test_a_lower_frequency_takes_longer_and_less() -> None:
    cluster = flat(profile=PAPER)
    slow = 2.1e9
    job = traced("1", 1, 1000, runtime=70)
    run = emulate(cluster, [job], Fcfs(), Scripted((0, SetFrequency("1", slow))))
    use = used(run, cluster)
    assert run.results["1"].end_time == pytest.approx(100)
    assert use.total == pytest.approx(40 * 70 * (1 / 1.3) ** 2)


def test_a_frequency_that_changes_on_the_way() -> None:
    cluster = flat(profile=PAPER)
    # 35 s at full speed, and the other half of the work at 0.7 of it.
    run = emulate(
        cluster, [traced("1", 1, 1000, runtime=70)], Fcfs(), Scripted((35, SetFrequency("1", 2.1e9)))
    )
    use = used(run, cluster)
    assert run.results["1"].end_time == pytest.approx(85)
    assert run.results["1"].frequency == 2.1e9
    assert use.total == pytest.approx(40 * 35 + 40 * 35 * (1 / 1.3) ** 2)


def test_a_suspended_job_is_idle() -> None:
    cluster = flat(1)
    run = emulate(cluster, [traced("1", 1, 100)], Fcfs(), Scripted((40, Suspend("1")), (60, Resume("1"))))
    use = used(run, cluster)
    assert run.results["1"].end_time == 120
    assert use.busy == pytest.approx(100 * BUSY)
    assert use.idle == pytest.approx(20 * IDLE)


def test_work_that_is_repeated_is_paid_twice() -> None:
    cluster = flat(1)
    run = emulate(cluster, [traced("1", 1, 100)], Fcfs(), Scripted((30, Requeue("1"))))
    use = used(run, cluster)
    assert use.jobs.tolist() == pytest.approx([130 * BUSY])


def test_sleep_by_hand() -> None:
    cluster = machine(processors=128)
    jobs = [traced("1", 128, 1000)]
    run = emulate(cluster, jobs, Fcfs(), Scripted((100, PowerDown(("n1",))), (500, PowerUp(("n1",)))))
    use = used(run, cluster)
    told = [(e.time, e.power) for e in run.adapter.told if type(e).__name__ == "NodePowerChanged"]
    assert told == [(100, "falling asleep"), (110, "asleep"), (500, "waking"), (530, "on")]
    awake = 100 + (1000 - 530)
    assert use.asleep == pytest.approx(2220 + 390 * 15 + 12000)
    assert use.node_seconds_asleep == 430
    assert use.total == pytest.approx(1000 * 734 + awake * 222 + use.asleep)


def test_a_busy_or_unknown_node_is_not_put_to_sleep() -> None:
    cluster = machine()
    run = emulate(
        cluster,
        [traced("1", 4, 100)],
        Fcfs(),
        Scripted((10, PowerDown(("n0",))), (10, PowerDown(("n9",))), (10, SetFrequency("7", 1e9))),
    )
    said = [e.message for e in run.adapter.told if type(e).__name__ == "DecisionFailed"]
    assert said == ["node n0 is not idle", "node n9 is not known", "job 7 is not running"]


def test_a_node_that_is_called_back_falls_asleep_first() -> None:
    cluster = machine()
    run = emulate(
        cluster,
        [traced("1", 1, 100)],
        Fcfs(),
        Scripted((10, PowerDown(("n1",))), (15, PowerUp(("n1",)))),
    )
    told = [(e.time, e.power) for e in run.adapter.told if type(e).__name__ == "NodePowerChanged"]
    assert told == [(10, "falling asleep"), (20, "asleep"), (20, "waking"), (50, "on")]


class Meddler:
    """Frequencies, suspensions, requeues and sleep at random; checks the meter on the way."""

    def __init__(self, seed: int) -> None:
        import numpy as np

        self.rng = np.random.default_rng(seed)
        self.left = 25
        self.meter: PowerMeter | None = None

    @hookimpl
    def startup(self, state):
        self.state = state
        self.meter = PowerMeter(state.energy, state)

    @hookimpl
    def observe(self, event, state):
        self.meter.observe(event)

    @hookimpl
    def control(self, state):
        self.check(state)
        decisions = []
        if self.left <= 0 or not any(True for _ in state.running_jobs()):
            # Nothing would call again, so whoever sleeps is woken now.
            asleep = [name for name, power in state.nodes.power.items() if power == "asleep"]
            waiting = [job for job in state.running_jobs() if job.status is Status.SUSPENDED]
            return [Resume(job.id) for job in waiting] + ([PowerUp(tuple(asleep))] if asleep else [])
        for job in list(state.running_jobs()):
            draw = self.rng.random()
            self.left -= 1
            if job.status is Status.SUSPENDED:
                decisions.append(Resume(job.id))
            elif job.status is Status.RUNNING and draw < 0.3:
                decisions.append(SetFrequency(job.id, self.rng.choice([1.5e9, 2.0e9, 2.4e9])))
            elif job.status is Status.RUNNING and draw < 0.4:
                decisions.append(Suspend(job.id))
            elif job.status is Status.RUNNING and draw < 0.5:
                decisions.append(Requeue(job.id))
        for name in state.nodes.names:
            if self.rng.random() < 0.2:
                self.left -= 1
                decisions.append(PowerUp((name,)) if name in state.nodes.power else PowerDown((name,)))
        return decisions

    def check(self, state) -> None:
        """The meter's figure is what counting everything anew gives."""
        model: EnergyModel = state.energy
        watts = 0.0
        for node in state.nodes.descriptions.values():
            watts += model.node_power(node, state.nodes.power.get(node.name, "on"))
        for pool in state.pools.values():
            if pool.flat:
                watts += pool.total * model.class_of_pool(pool.name).idle_power
        for job in state.running_jobs():
            if job.status is Status.RUNNING:
                watts += model.added_power(job.placement, job.pool.name, job.processors, job.frequency)
        assert self.meter is not None
        assert self.meter.watts["pool"] == pytest.approx(watts)


@st.composite
def workloads(draw):
    jobs, submit = [], 0
    for at in range(draw(st.integers(1, 8))):
        submit += draw(st.sampled_from([0, 5, 40]))
        runtime = draw(st.integers(0, 80))
        jobs.append(traced(f"j{at}", draw(st.integers(1, 4)), 10_000, submit, runtime=runtime))
    return jobs


@settings(max_examples=60, deadline=None)
@given(workloads(), st.integers(0, 1000), st.booleans())
def test_whatever_happens_energy_is_conserved(jobs, seed, on_nodes) -> None:
    cluster = machine() if on_nodes else flat()
    run = emulate(cluster, jobs, Fcfs(), Meddler(seed))
    assert not run.problems
    assert all(state == "completed" for state in run.states.values())
    outcome = result(run, cluster)
    use = energy_use(outcome)
    assert use is not None
    assert use.total == pytest.approx(use.busy + use.idle + use.asleep)
    assert use.total == pytest.approx(use.by_pool["pool"])
    assert sum(use.by_class.values()) == pytest.approx(use.busy)
    assert use.busy_power.integral() == pytest.approx(use.busy)
    if on_nodes:
        assert sum(node_energy(outcome).values()) == pytest.approx(use.total)
    # Each job did its work, at whatever frequency.
    model = EnergyModel(cluster)
    for record in outcome.jobs:
        spans = [(a.start, a.end, a.frequency) for a in outcome.activities if a.job_id == record.job.id]
        since = record.active_since if record.active_since is not None else record.start_time
        spans.append((since, record.end_time, record.frequency))
        done = sum(
            (end - start) * model.rate(model.classes["node"], hertz, 0.67) for start, end, hertz in spans
        )
        work = next(job.runtime for job in jobs if job.job.id == record.job.id)
        if record.starts == 1:
            assert done == pytest.approx(work, abs=1e-6)
