"""What it costs to run a campaign's emulations elsewhere, and what is gained by it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from distributed import LocalCluster

from headway.emulation.direct import Direct
from headway.engine import Engine
from headway.experiment import Campaign, Scenario, Variant
from headway.experiment.campaign import Row, Task
from headway.experiment.dask_cluster import DaskCluster, connected
from headway.experiment.execution import Outcome, Runner, here, run_campaign
from headway.experiment.kept_runs import KeptRuns, Wanted, run_missing, wanted
from headway.experiment.record import files_of, program
from headway.plugins import Catalogue, PluginConfig

pytestmark = pytest.mark.benchmark

METRICS = [f"metric {n}" for n in range(70)]
POLICIES = 10


def nothing(number: int) -> list[Row]:
    """As much as a real task of ten policies gives, without the work."""
    batches = {name: [float(n) for n in range(30)] for name in METRICS[:3]}
    return [Row("w", 0.0, f"p{n}", number, dict.fromkeys(METRICS, 1 / 3), batches) for n in range(POLICIES)]


def campaign(count: int) -> list[Wanted]:
    """Tasks that do nothing; each carries ten policies as a real one does."""
    policies = tuple(Variant(f"p{n}", (PluginConfig("easy"),)) for n in range(POLICIES))
    plan = Campaign(policies, (Scenario("w", 0.0, 64),), tuple(range(count)))
    keys = [tuple(("w", 0.0, one.label, seed) for one in plan.variants) for seed in plan.seeds]
    return [Wanted(Task(keys[n], nothing, (n,)), str(n), "") for n in range(count)]


def seconds(runner: Runner, runs: Sequence[Wanted], folder: Path) -> float:
    kept = KeptRuns(folder, runs, {}, {"version": "", "code": ""}, anew=True)
    began = time.perf_counter()
    assert not run_missing(kept, runner, lambda n: None)
    kept.complete()
    return time.perf_counter() - began


@pytest.mark.parametrize("where", ["here", "dask"])
def test_the_overhead_of_a_run(where: str, tmp_path: Path) -> None:
    runs = campaign(200)
    if where == "here":
        took = seconds(here(2), runs, tmp_path)
    else:
        with (
            LocalCluster(
                n_workers=2, threads_per_worker=1, dashboard_address=None, worker_dashboard_address=None
            ) as cluster,
            connected(cluster.scheduler_address, 2, print) as there,
        ):
            took = seconds(there.runner(), runs, tmp_path)
    each = took / len(runs) / POLICIES
    print(f"\n{where}: {1e3 * each:.2f} ms a run, {1e3 * took / len(runs):.2f} ms a workload")


#: A row's metric in which a worker says how many seconds of a processor its workload took.
WORKED = "seconds of a processor"
ORDERS = (
    "fcfs", "sjf", "ljf", "fcfs-ff", "sjf-ff", "ljf-ff", "greedy", "easy", "easy-sjbf", "k-reserved",
)  # fmt: skip


def worked(task: Task) -> list[Row]:
    """A task, with what it took."""
    began = time.process_time()
    rows = task.run(*task.arguments)
    rows[0].values[WORKED] = time.process_time() - began
    return rows


@contextmanager
def local(workers: int) -> Iterator[DaskCluster]:
    """So many workers here, warm: each has imported what it needs."""
    with (
        LocalCluster(
            n_workers=workers, threads_per_worker=1, dashboard_address=None, worker_dashboard_address=None
        ) as cluster,
        connected(cluster.scheduler_address, workers, print) as there,
    ):
        yield there


def elapsed(seconds: Sequence[float], workers: int) -> float:
    """Of tasks that so many workers take one by one in this order."""
    free = [0.0] * workers
    for one in seconds:
        at = free.index(min(free))
        free[at] += one
    return max(free)


@pytest.mark.traces
def test_the_speed_up_of_four_local_workers(tmp_path: Path) -> None:
    """Ten policies on a hundred resamples of KTH-SP2: with one worker and with one a core (at most four) in
    turns; what four would take, by the measured seconds of each workload; and again with a killed worker.

    The calculation lets all that as many empty workloads cost the client and the scheduler go by while no
    worker works: the worst case.
    """
    trace = Path(os.environ.get("HEADWAY_TRACES", "../shared/traces")) / "KTH-SP2-1996-2.1-cln.swf.gz"
    count = int(os.environ.get("HEADWAY_RESAMPLES", "100"))
    policies = tuple(Variant(name, (PluginConfig(name),)) for name in ORDERS)
    kth = Scenario("KTH", 1.0, 100, trace=str(trace), resample="weeks", limit=2000)
    plan = Campaign(policies, (kth,), tuple(range(count)))
    runs = [
        replace(one, task=Task(one.task.keys, worked, (one.task,)))
        for one in wanted(plan, files_of(plan, Catalogue()))
    ]
    cores = min(4, len(os.sched_getaffinity(0)))
    took: dict[int, float] = {}
    for workers in (1, cores):
        with local(workers) as there:
            (tmp_path / "empty").mkdir(exist_ok=True)
            used = time.process_time()
            empty = seconds(there.runner(), campaign(count), tmp_path / "empty")
            serial = time.process_time() - used
            kept = KeptRuns(tmp_path, runs, {}, program(), anew=True)
            began = time.perf_counter()
            assert not run_missing(kept, there.runner(), lambda n: None)
            took[workers] = time.perf_counter() - began
        rows = kept.rows()
        each = [row.values.pop(WORKED) for row in rows if WORKED in row.values]
        print(
            f"\n{plan.size()} runs, {workers} workers: {took[workers]:.1f} s, {sum(each):.1f} s of a "
            f"processor on the workers; {count} empty workloads: {empty:.2f} s, {serial:.2f} s of a "
            "processor in the client and the scheduler"
        )
        if workers == 1:
            first = rows
        assert repr(rows) == repr(first)
    four = elapsed(each, 4) + serial
    gained = (sum(each) + serial) / four
    print(
        f"measured: speed-up {took[1] / took[cores]:.2f} with {cores} workers; calculated for four "
        f"workers on four idle cores: {gained:.2f}, {gained / 4:.2f} of ideal"
    )
    with local(cores) as there:

        def killing(tasks: Sequence[Task]) -> Iterator[tuple[int, Outcome]]:
            for ended, outcome in enumerate(there.runner()(tasks)):
                if ended == count // 2:
                    os.kill(next(iter(there.pids().values())), signal.SIGKILL)
                yield outcome

        kept = KeptRuns(tmp_path, runs, {}, program(), anew=True)
        assert not run_missing(kept, killing, lambda n: None)
    rows = kept.rows()
    for row in rows:
        row.values.pop(WORKED, None)
    assert repr(rows) == repr(first)
    print("a worker was killed in the middle: the same rows")


def test_a_campaign_of_resamples_beside_its_loops(trace_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three policies on ten resamples of KTH-SP2, in one process: all of it against its loops, that of the
    engine and that of :class:`Direct`, which has what is plain in a run."""
    loops: dict[str, list[float]] = {}

    def time_loops(runner: type[Any]) -> None:
        run = runner.run

        def timed(loop: Any) -> Any:
            began = time.process_time()
            try:
                return run(loop)
            finally:
                loops.setdefault(runner.__name__, []).append(time.process_time() - began)

        monkeypatch.setattr(runner, "run", timed)

    time_loops(Engine)
    time_loops(Direct)
    policies = tuple(Variant(name, (PluginConfig(name),)) for name in ("fcfs", "easy", "greedy"))
    trace = str(trace_dir / "KTH-SP2-1996-2.1-cln.swf.gz")
    plan = Campaign(policies, (Scenario("kth", 0.0, 100, trace=trace, resample="weeks"),), tuple(range(10)))
    began = time.process_time()
    rows = run_campaign(plan)
    took = time.process_time() - began
    assert [len(rows), *map(len, loops.values())] == [30, 30, 30]
    print(f"\n{took:.2f} s, {took / sum(map(sum, loops.values())):.2f} times its loops")
