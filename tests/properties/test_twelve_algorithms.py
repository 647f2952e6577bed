"""The twelve algorithms of Kumar, Shae and Jamjoom (2012, Table III): sound on every workload; replayed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from building import traced
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.daemon.replay import replay
from headway.emulation import emulate
from headway.journal import Journal
from headway.model import ClusterDescription, JobDescription
from headway.plugins import Catalogue, PluginConfig
from headway.results import RunResult
from headway.workload import TraceCommand, TraceJob, read_swf, trace_jobs
from headway.workload.jobs import dedicated

TWELVE = (
    "easy", "easy-d", "easy-e", "easy-de",
    "los", "los-d", "los-e", "los-de",
    "delayed-los", "hybrid-los", "delayed-los-e", "hybrid-los-e",
)  # fmt: skip
CATALOGUE = Catalogue()


def run(name: str, jobs: list[TraceJob], commands: list[TraceCommand], processors: int, **more) -> RunResult:
    return emulate(
        ClusterDescription.flat(processors), jobs, [PluginConfig(name)], CATALOGUE, label=name,
        commands=commands, **more,
    )  # fmt: skip


def sound(result: RunResult, processors: int) -> None:
    """Every job ended once, and what ran together fitted; sizes as they were at the end."""
    assert {job.state for job in result.jobs} <= {"completed", "timed out"}
    assert all(job.starts == 1 for job in result.jobs)
    change: Counter[float] = Counter()
    for job in result.jobs:
        if job.start_time < job.end_time:
            change[job.start_time] += job.job.request.processors
            change[job.end_time] -= job.job.request.processors
    level = 0
    for time in sorted(change):
        level += change[time]
        assert 0 <= level <= processors


def on_time(result: RunResult) -> bool:
    """No dedicated job before its time."""
    return all(
        job.start_time >= wanted
        for job in result.jobs
        if (wanted := (job.job.attributes or {}).get("requested_start")) is not None
    )


@st.composite
def heterogeneous(draw):
    """A small workload with dedicated jobs and commands about times."""
    jobs, submit = [], 0
    for at in range(draw(st.integers(1, 12))):
        submit += draw(st.sampled_from([0, 0, 1, 5, 20]))
        estimate = draw(st.integers(1, 60))
        job = traced(str(at), draw(st.integers(1, 10)), estimate, submit, runtime=draw(st.integers(0, 70)))
        if draw(st.integers(0, 2)) == 0:
            start = float(submit + draw(st.integers(0, 60)))
            job = TraceJob(dedicated(job.job, start), job.runtime)
        jobs.append(job)
    times = sorted(draw(st.lists(st.integers(0, 120), max_size=10)))
    commands = [
        TraceCommand(
            float(time), str(draw(st.integers(0, len(jobs)))), draw(st.sampled_from(["ET", "RT"])),
            float(draw(st.integers(1, 40))),
        )
        for time in times
    ]  # fmt: skip
    return jobs, commands


@pytest.mark.parametrize("name", TWELVE)
@settings(max_examples=25, deadline=None)
@given(workload=heterogeneous())
def test_small_heterogeneous_elastic_workloads(name, workload):
    result = run(name, *workload, processors=10)
    sound(result, 10)
    assert on_time(result)


def generated(count: int = 120) -> tuple[list[TraceJob], list[TraceCommand]]:
    """A workload of the paper's generator on its machine of 320 processors."""
    model = CATALOGUE.get("lublin-cwf")().register_workloads()["lublin-cwf"]
    options = model.Options(jobs=count, p_dedicated=0.5, p_extend=0.2, p_reduce=0.1, load=0.9)
    workload = model.generate(np.random.default_rng(1), options)
    return workload.jobs, workload.commands


@pytest.mark.parametrize("name", TWELVE)
def test_the_papers_generator_with_dedicated_jobs_and_commands(name):
    jobs, commands = generated()
    result = run(name, jobs, commands, 320)
    sound(result, 320)
    assert on_time(result)
    elastic = name.endswith("e")
    assert ("elastic commands" in result.contributed) == elastic
    changed = [a for a, b in zip(result.jobs, jobs, strict=True) if a.job.request != b.job.request]
    assert bool(changed) == elastic


@pytest.mark.traces
@pytest.mark.parametrize("name", TWELVE)
def test_two_thousand_jobs_of_kth(name, trace_dir):
    trace = read_swf(next(trace_dir.glob("KTH-SP2*")))
    jobs, _ = trace_jobs(trace, trace.max_processors, limit=2000)
    rng = np.random.default_rng(2)
    marked: list[TraceJob] = []
    for job in jobs:
        if rng.random() < 0.1:
            described: JobDescription = dedicated(job.job, job.job.submit_time + float(rng.integers(0, 7200)))
            job = TraceJob(described, job.runtime, row=job.row)
        marked.append(job)
    commands = [
        TraceCommand(jobs[at].job.submit_time + 60.0, jobs[at].job.id, "ET" if at % 2 else "RT", 600.0)
        for at in range(0, 2000, 7)
    ]
    result = run(name, marked, commands, trace.max_processors)
    sound(result, trace.max_processors)
    assert on_time(result)


@pytest.mark.parametrize("name", ["easy-de", "delayed-los-e", "hybrid-los-e"])
def test_a_recorded_run_with_commands_repeats_decision_by_decision(name, tmp_path: Path):
    jobs, commands = generated(60)
    path = tmp_path / "run.db"
    journal = Journal.open(str(path))
    run(name, jobs, commands, 320, journal=journal, config_text=f"mode: dry-run\nplugins: [{name}]\n")
    journal.close()
    again = replay(Journal.open(str(path)), CATALOGUE)
    assert again.decisions > 60
    assert again.differences == []
