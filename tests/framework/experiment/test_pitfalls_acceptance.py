"""Vectors of the rule book that go through more than one of its parts; the others stand in test_steady.py."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from headway.emulation import emulate
from headway.experiment.campaign import Campaign, Scenario, Variant, drawn, workload_facts
from headway.experiment.rulebook import Outcome, evidence_of, judge
from headway.experiment.statistics import interval, paired
from headway.model import ClusterDescription, JobDescription, Request
from headway.plugins import Catalogue, PluginConfig
from headway.workload import TraceJob

CATALOGUE = Catalogue()
EASY = Variant("easy", (PluginConfig("easy"),))


def judged(name: str, trace: str, processors: int, tmp_path: Path, **changes: float):
    """What a rule says of a trace's lines of (submission, runtime, processors, estimate)."""
    file = tmp_path / "t.swf"
    file.write_text(trace)
    scenario = Scenario("t", 1.0, processors, trace=str(file), **changes)
    facts = workload_facts(scenario, 1, drawn(scenario, 1, CATALOGUE))
    evidence = evidence_of(Campaign((EASY,), (scenario,), (1,)), CATALOGUE, workloads=[facts])
    return next(one for one in judge(evidence) if one.rule.name == name)


def lines(jobs: list[tuple[int, int, int, int]], processors: int) -> str:
    return f"; MaxProcs: {processors}\n" + "".join(
        f"{at} {submit} -1 {runtime} {size} -1 -1 {size} {estimate} -1 1 1 1 1 -1 -1 -1 -1\n"
        for at, (submit, runtime, size, estimate) in enumerate(jobs, start=1)
    )


@pytest.mark.parametrize(("runtime", "waiting"), [(9, 0), (11, 9), (12, 17)])
def test_4_4_how_many_wait_when_the_last_comes(runtime, waiting):
    jobs = [TraceJob(JobDescription(str(i), 10.0 * i, Request(1, runtime)), runtime) for i in range(100)]
    result = emulate(ClusterDescription.flat(1), jobs, list(EASY.plugins), CATALOGUE, label="easy")
    assert sum(job.start_time > 990 for job in result.jobs) == waiting


def test_4_7_apart_the_means_are_not_told_from_each_other():
    ours, theirs = [100, 200, 300, 400], [110, 212, 330, 436]
    assert paired(ours, theirs).high < 0
    apart = [interval(ours), interval(theirs)]
    assert [one.half for one in apart] == pytest.approx([205.43, 225.23], abs=0.01)
    assert apart[0].high > apart[1].low


def test_4_9_a_multiple_of_the_runtime_is_warned_of(tmp_path: Path):
    runtimes = np.random.default_rng(1).integers(1, 5000, 200).tolist()
    jobs = [(5000 * at, runtime, 1, 2 * runtime) for at, runtime in enumerate(runtimes)]
    found = judged("15", lines(jobs, 8), 8, tmp_path)
    assert found.outcome is Outcome.BROKEN and "100% are one multiple of the runtime" in str(found)


def test_4_10_a_machine_on_which_a_third_of_the_jobs_cannot_run_is_refused(tmp_path: Path):
    jobs = [(10_000 * at, 100, size, 100) for at, size in enumerate((4, 8, 16))]
    found = judged("17", lines(jobs, 16), 8, tmp_path)
    assert found.outcome is Outcome.REFUSED
    assert "33% of jobs" in str(found) and "run it on its own 16" in str(found)


@pytest.mark.parametrize(
    ("changes", "load", "how"),
    [
        # 100 jobs of 8 s, one every 10 s: the log's own load is 800 / 990.
        ({"target_load": 0.9}, 0.9, "times between submissions x 0.898"),
        ({"runtime_factor": 1.25}, 1000 / 990, "runtimes x 1.25"),
    ],
)
def test_18_says_the_offered_load_that_a_factor_reaches(changes, load, how, tmp_path: Path):
    trace = lines([(10 * at, 8, 1, 20) for at in range(100)], 1)
    found = judged("18", trace, 1, tmp_path, **changes)
    assert f"offered load {load:.3f} by {how}" in str(found)
