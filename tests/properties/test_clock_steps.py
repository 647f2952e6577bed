"""Whatever the system's clock does, a live run goes on, loses no job, and its journal replays.

A toy batch system behind the adapters' common loop, in virtual time: sleeping advances the monotonic
clock, looks happen at once. Between two looks the wall clock, which headway and the toy share, may be
stepped by anything. The toy starts no job before its begin time and counts how often each job runs.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import wait
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
import yaml
from building import alike, described
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from waiting import HANG

from headway import decisions as d
from headway.adapter import Outcome
from headway.config import parse_config
from headway.daemon.clock import RunClock
from headway.daemon.replay import replay
from headway.engine import Engine, Stopped
from headway.errors import UserError
from headway.journal import Journal, RunInfo
from headway.model import JobDescription, PoolDescription
from headway.model.modes import Mode
from headway.plugins import Catalogue, Plugins
from headway.scheduler import Scheduler
from headway_adapters.federation import Federation
from headway_adapters.polling import Launch, Look, PollingAdapter, flights, looker, loop
from headway_adapters.polling.snapshot import Snapshot, SnapshotJob

POLL = 5.0
CATALOGUE = Catalogue()
NODES = {node.name: node for node in alike(2, 2, pools=("p",))}
#: Far more virtual time than all the work needs, with every retry.
LONG = 40_000.0
#: No real sleep is as short as the last digit of the time.
SHORTEST = 0.001
CONFIG = yaml.safe_dump({"mode": "drive", "cluster": {"adapter": "slurm"}, "plugins": ["easy", "first-fit"]})


class Machine:
    """The clocks, and how the wall clock is stepped from look to look."""

    def __init__(self, steps: Sequence[float]) -> None:
        self.monotonic, self.wall = 1000.0, 1_800_000_000.0
        self.steps = list(steps)

    def step(self) -> None:
        if self.steps:
            self.wall += self.steps.pop(0)

    def sleep(self, seconds: float) -> None:
        self.monotonic += seconds
        self.wall += seconds


class Toy:
    """The batch system: its jobs run for so much real, that is monotonic, time."""

    def __init__(self, machine: Machine, jobs: Sequence[tuple[JobDescription, float]], refuse: int) -> None:
        self.machine = machine
        self.length = {job.id: seconds for job, seconds in jobs}
        self.jobs = {job.id: SnapshotJob(job, "pending") for job, _ in jobs}
        self.until: dict[str, float] = {}
        self.ran: Counter[str] = Counter()
        self.refuse = refuse

    def look(self) -> Snapshot:
        for key, until in list(self.until.items()):
            if until <= self.machine.monotonic:
                del self.until[key]
                job = self.jobs[key]
                self.jobs[key] = SnapshotJob(
                    job.job, "ended", job.placement, start_time=job.start_time,
                    end_time=self.machine.wall, outcome="completed",
                )  # fmt: skip
        return Snapshot(self.machine.wall, dict(self.jobs), NODES, {"p": PoolDescription("p")})

    def start(self, start: d.Start) -> Outcome:
        job = self.jobs[start.job_id]
        begin = job.job.begin_time
        if begin is not None and begin > self.machine.wall:
            return Outcome(False, "its begin time is not there")
        if self.refuse:
            self.refuse -= 1
            return Outcome(False, "not today")
        taken = Counter[str]()
        for key in self.until:
            taken.update(dict(self.jobs[key].placement))
        assert all(taken[node] + count <= NODES[node].processors for node, count in start.placement)
        self.ran[start.job_id] += 1
        self.until[start.job_id] = self.machine.monotonic + self.length[start.job_id]
        self.jobs[start.job_id] = SnapshotJob(
            job.job, "running", start.placement, start_time=self.machine.wall
        )
        return Outcome(True)

    @property
    def done(self) -> bool:
        return all(job.state == "ended" for job in self.jobs.values())


class Adapter(PollingAdapter[None, None]):
    system, title, Options = "toy", "Toy", UserError  # type: ignore[assignment]
    capabilities = frozenset({d.Start})

    def __init__(self, toy: Toy, clock: RunClock) -> None:
        pace = SimpleNamespace(poll_interval=POLL, confirm_interval=1.0, start_timeout=15.0)
        client = SimpleNamespace(close=lambda: None)
        super().__init__(client, pace, log=Quiet(), clock=clock)  # type: ignore[arg-type]
        self.toy = toy
        self.looked: list[float] = []
        self._bell.sleep = self.sleep  # type: ignore[method-assign]

    def sleep(self, seconds: float) -> None:
        if self._looker._looking is not None:
            wait([self._looker._looking])
        else:
            self.toy.machine.sleep(max(SHORTEST, min(seconds, 86400.0)))
        assert self.toy.machine.monotonic < LONG, f"stalled: {self.toy.jobs}"

    def learn(self) -> str:
        return "toy"

    def look(self, before: Snapshot | None) -> Look[None]:
        self.looked.append(self.toy.machine.monotonic)
        self.toy.machine.step()
        snapshot = self.toy.look()
        return Look(Snapshot(self._clock(), snapshot.jobs, snapshot.nodes, snapshot.pools))

    def start_all(self, starts: Sequence[d.Start]) -> Sequence[Launch[None]]:
        return [Launch(self.toy.start(start)) for start in starts]

    def carry_out(self, decision: d.Decision, now: float) -> Outcome:
        raise NotImplementedError


class Quiet:
    def info(self, *args: Any, **more: Any) -> None: ...

    debug = warning = error = info


def one_run(toy: Toy, journal: Journal) -> tuple[Stopped, list[float]]:
    """A run as the daemon makes it; ends when all jobs are done. Why it ended, and when it looked."""
    machine = toy.machine
    clock = RunClock(wall=lambda: machine.wall, monotonic=lambda: machine.monotonic, log=Quiet())
    adapter = Adapter(toy, clock)
    config = parse_config(CONFIG)
    try:
        cluster = adapter.describe()
        last = journal.last_run()
        checkpoint = None if last is None else journal.last_checkpoint(last.id)
        saved = {} if checkpoint is None else checkpoint.states
        journal.begin_run(RunInfo("drive", clock(), "test", CONFIG, 0, cluster, saved))
        plugins = Plugins.load(CATALOGUE.enabled(config.plugin_configs()), CATALOGUE, None)
        scheduler = Scheduler(cluster, plugins, capabilities=adapter.capabilities, saved=saved)
        nows: list[float] = []

        def on_cycle(now: float) -> None:
            assert not nows or now >= nows[-1]
            nows.append(now)
            if toy.done and not scheduler.state.jobs:
                engine.stop()

        engine = Engine(adapter, scheduler, journal, mode=Mode.DRIVE, on_cycle=on_cycle, log=Quiet())
        clock.when_lost(engine.begin_anew)
        reason = engine.run()
        journal.end_run(str(reason), ended_at=clock())
        return reason, adapter.looked
    finally:
        adapter.close()


@st.composite
def workloads(draw: Any) -> list[tuple[JobDescription, float]]:
    jobs = []
    for number in range(draw(st.integers(1, 6))):
        seconds = draw(st.integers(1, 300))
        begin = draw(st.sampled_from([None, None, -100.0, 30.0, 400.0]))
        job = described(
            str(number), draw(st.integers(1, 4)), draw(st.sampled_from([60, 300, 3600])),
            1_800_000_000.0 - number, pool="p", begin_time=None if begin is None else 1_800_000_000.0 + begin,
        )  # fmt: skip
        jobs.append((job, float(seconds)))
    return jobs


ONE = [(described("1", 4, 60, 1_799_999_999.0, pool="p"), 20.0)]
#: By a clock that was set back by 14 s the second one's begin time comes half a millisecond before a look.
TWO = [
    (described("0", 1, 60, 1_800_000_000.0, pool="p"), 1.0),
    (described("1", 1, 60, 1_799_999_999.0, pool="p", begin_time=1_800_000_400.0), 1.0),
]
#: What clocks are stepped by: corrections, hours of a wrong zone, years of a dead battery.
steps = st.one_of(
    st.just(0.0), st.floats(-90, 90), st.sampled_from([45.0, -45.0, 3600.0, -3600.0, 3e7, -3e7])
)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(jobs=ONE, steps=[0.0, 0.0, -3e6], refuse=1, righted=False)
@example(jobs=ONE, steps=[0.0, 0.0, -45.0], refuse=1, righted=False)
@example(jobs=TWO, steps=[0.0, 14.0], refuse=1, righted=True)
@given(jobs=workloads(), steps=st.lists(steps, max_size=25), refuse=st.integers(0, 3), righted=st.booleans())
def test_random_steps_of_the_clock_neither_stall_nor_lose_anything(
    tmp_path_factory: pytest.TempPathFactory,
    jobs: list[tuple[JobDescription, float]],
    steps: list[float],
    refuse: int,
    righted: bool,
) -> None:
    path: Path = tmp_path_factory.mktemp("clock") / "run.db"
    if righted:
        machine = Machine([*steps, -sum(steps)])
    else:
        # By a clock that stays wrong, a begin time may never come.
        machine = Machine(steps)
        jobs = [(msgspec.structs.replace(job, begin_time=None), seconds) for job, seconds in jobs]
    toy = Toy(machine, jobs, refuse)
    with pytest.MonkeyPatch.context() as patch:
        fake = SimpleNamespace(monotonic=lambda: machine.monotonic, time=lambda: machine.wall)
        for module in (flights, looker, loop):
            patch.setattr(module, "time", fake)
        with Journal.open(path) as journal:
            runs = 0
            reason = Stopped.CLOCK
            while reason is Stopped.CLOCK:
                reason, looked = one_run(toy, journal)
                runs += 1
                pauses = [after - before for before, after in pairwise(looked)]
                # The sleep before a look may be rounded up to the shortest there is; only that one: a look
                # follows it at once, and takes no time.
                assert all(pause <= POLL + SHORTEST + 1e-6 for pause in pauses), "a look is overdue"
    assert runs <= len(steps) + 2
    assert toy.done, {key: job.state for key, job in toy.jobs.items()}
    assert dict(toy.ran) == {job.id: 1 for job, _ in jobs}
    with Journal.open(path, create=False, read_only=True) as journal:
        for run in journal.runs():
            assert replay(journal, CATALOGUE, run.id).differences == []


def test_a_federation_notices_a_step_forward_while_it_sleeps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its clusters are silent when nothing happens, so it must look at the clock itself."""
    from headway_adapters.federation import adapter as federation

    monkeypatch.setattr(federation, "_LONGEST_SLEEP", 0.02)
    machine = Machine([])
    toy = Toy(machine, [], 0)
    clock = RunClock(wall=lambda: machine.wall, monotonic=lambda: machine.monotonic, log=Quiet())
    with Federation({"a": Adapter(toy, clock)}, clock=lambda: machine.wall, log=Quiet()) as one:
        one.describe()
        one.wait(None)
        due = machine.wall + 1e9
        machine.step = lambda: None  # type: ignore[method-assign]
        began = time.monotonic()
        machine.wall = due + 1
        moment = one.wait(due)
        assert moment is not None and moment[0] >= due
        assert time.monotonic() - began < HANG
