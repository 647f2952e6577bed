"""What a job costs under EASY, by layer: calls and bytecodes of Python, and each half of the loop alone.

`make bench ARGS="-s -k job_budget"`; the figures are in docs/performance.md. Calls and bytecodes do not
depend on the machine or its load, only on Python's version.
"""

from __future__ import annotations

import gc
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from time import process_time
from types import CodeType, FrameType
from typing import Any

import pytest
from bare_easy import plain_easy
from test_easy_benchmark import workload
from test_limits_benchmark import POLICY

from headway.config import INSTALLED
from headway.emulation import emulate
from headway.model import ClusterDescription
from headway.plugins import Catalogue, PluginConfig, Plugins
from headway.scheduler import Scheduler
from headway.workload import TraceJob

pytestmark = [pytest.mark.benchmark, pytest.mark.traces]

#: Jobs that are counted, and jobs whose time is taken.
COUNTED, TIMED = 4_000, 28_000
ROUNDS = 5

#: Where the code of each layer stands; the first that is part of a path.
LAYERS = {
    "engine": "headway/engine.py",
    "one account": "headway/emulation/",
    "emulated cluster": "headway_adapters/emulated/",
    "step of the scheduler": "headway/scheduler/",
    "order of events": "headway/events.py",
    "state": "headway/state/",
    "view": "headway/view/",
    "policy": "headway_plugins/policies/",
}


def counted(run: Callable[[], object]) -> tuple[Counter[CodeType], Counter[CodeType]]:
    """The Python calls and bytecodes of a run, by function."""
    calls: Counter[CodeType] = Counter()
    bytecodes: Counter[CodeType] = Counter()

    def inside(frame: FrameType, event: str, argument: Any) -> Any:
        if event == "opcode":
            bytecodes[frame.f_code] += 1
        return inside

    def enter(frame: FrameType, event: str, argument: Any) -> Any:
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        calls[frame.f_code] += 1
        return inside

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        run()
    finally:
        sys.settrace(before)
    return calls, bytecodes


def layer_of(code: CodeType) -> str:
    return next((name for name, part in LAYERS.items() if part in code.co_filename), "once a run")


@pytest.mark.parametrize("pattern", ["SDSC-BLUE*", "KTH-SP2*", "HPC2N*"])
def test_calls_and_bytecodes_of_each_layer(trace_dir: Path, pattern: str) -> None:
    jobs, processors = workload(trace_dir, pattern)
    jobs = jobs[:COUNTED]
    schedules: list[Sequence[Any]] = []
    _, plain = counted(lambda: schedules.append(plain_easy(jobs, processors)))
    print(f"\n{pattern}: plain loop {sum(plain.values()) / COUNTED:.0f} bytecodes a job", file=sys.__stderr__)
    for accounts, direct in (("one account", True), ("two accounts", False)):
        calls, ours = counted(partial(_emulate, jobs, processors, schedules, direct))
        assert [r.start_time for r in schedules[0]] == [r.start_time for r in schedules[-1]]
        print(f" {accounts}: {sum(ours.values()) / COUNTED:.0f} bytecodes a job", file=sys.__stderr__)
        for name in [*LAYERS, "once a run"]:
            made = sum(count for code, count in calls.items() if layer_of(code) == name)
            done = sum(count for code, count in ours.items() if layer_of(code) == name)
            print(
                f"  {name:24s}{made / COUNTED:6.1f} calls{done / COUNTED:8.0f} bytecodes", file=sys.__stderr__
            )


def _emulate(jobs: Sequence[TraceJob], processors: int, schedules: list[Sequence[Any]], direct: bool) -> None:
    """Add the schedule of a run of EASY; ``direct``: with one account where that is enough."""
    cluster = ClusterDescription.flat(processors)
    result = emulate(cluster, jobs, [PluginConfig("easy")], Catalogue(), label="easy", direct=direct)
    schedules.append(result.jobs)


def test_calls_and_bytecodes_of_a_whole_policy(trace_dir: Path) -> None:
    jobs, processors = workload(trace_dir, "SDSC-BLUE*")
    jobs = jobs[:COUNTED]
    cluster = ClusterDescription.flat(processors)
    for label, plugins in {**POLICY, "both": POLICY["limits"] + POLICY["priorities"]}.items():
        configured = [*plugins, PluginConfig("easy")]
        run = partial(emulate, cluster, jobs, configured, Catalogue(), label=label)
        calls, ours = counted(run)
        made, done = sum(calls.values()) / COUNTED, sum(ours.values()) / COUNTED
        print(f"  {label:12s}{made:6.1f} calls{done:8.0f} bytecodes a job", file=sys.__stderr__)


@pytest.mark.parametrize("pattern", ["SDSC-BLUE*", "KTH-SP2*", "HPC2N*"])
def test_each_half_of_the_loop_alone(trace_dir: Path, pattern: str) -> None:
    jobs, processors = workload(trace_dir, pattern)
    jobs = jobs[:TIMED]
    cluster, kind = ClusterDescription.flat(processors), INSTALLED.get("emulated")

    def halves() -> tuple[Any, Scheduler]:
        adapter = kind(cluster, jobs)
        plugins = Plugins.load([PluginConfig("easy")], Catalogue(), adapter.capabilities)
        return adapter, Scheduler(adapter.describe(), plugins, capabilities=adapter.capabilities)

    adapter, scheduler = halves()
    course = []
    while (moment := adapter.wait(scheduler.next_wakeup())) is not None:
        decisions = scheduler.step(*moment)
        course.append((*moment, decisions))
        if decisions:
            adapter.apply(moment[0], decisions)

    parts = ("scheduler", "emulated cluster", "both", "one account", "plain loop")
    seconds: dict[str, list[float]] = {part: [] for part in parts}
    for _ in range(ROUNDS):
        _, scheduler = halves()
        gc.collect()
        began = process_time()
        again: list[Any] = [scheduler.step(now, events) for now, events, _ in course]
        seconds["scheduler"].append(process_time() - began)
        assert again == [decisions for _, _, decisions in course]

        adapter, _ = halves()
        gc.collect()
        again.clear()
        began = process_time()
        for now, _, decisions in course:
            again.append(adapter.wait(None))
            if decisions:
                adapter.apply(now, decisions)
        seconds["emulated cluster"].append(process_time() - began)
        assert again == [(now, events) for now, events, _ in course]

        for part, direct in (("both", False), ("one account", True)):
            gc.collect()
            began = process_time()
            _emulate(jobs, processors, [], direct)
            seconds[part].append(process_time() - began)

        gc.collect()
        began = process_time()
        plain_easy(jobs, processors)
        seconds["plain loop"].append(process_time() - began)
    figures = ", ".join(f"{name} {1e6 * min(taken) / len(jobs):.1f}" for name, taken in seconds.items())
    print(f"\n{pattern}, microseconds a job: {figures}", file=sys.__stderr__)
