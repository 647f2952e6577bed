"""The file that evalys reads."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from building import node_cluster, traced

from headway.emulation import emulate
from headway.metrics import Figures
from headway.model import ClusterDescription, NodeDescription
from headway.plugins import Catalogue, PluginConfig
from headway.report.evalys import COLUMNS, write_evalys_csv
from headway.results import RunResult

NODES = node_cluster(NodeDescription("a", 2), NodeDescription("b", 2))


def run(cluster: ClusterDescription, policy: str = "easy") -> RunResult:
    jobs = [
        traced(str(n), size, 100, 10 * n, runtime=runtime)
        for n, (size, runtime) in enumerate([(2, 50), (3, 20), (1, 30), (4, 40), (1, 0)])
    ]
    plugins = [PluginConfig(policy), PluginConfig("first-fit")]
    return emulate(cluster, jobs, plugins, Catalogue(), label=policy, about={"workload": "a, b"})


def lines_of(result: RunResult, path: Path) -> list[dict[str, str]]:
    write_evalys_csv(path, Figures(result))
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def intervals(text: str) -> set[int]:
    """The processors of an interval set, as evalys's library reads it."""
    found: set[int] = set()
    for part in text.split():
        low, _, high = part.partition("-")
        found |= set(range(int(low), int(high or low) + 1))
    return found


@pytest.mark.parametrize("cluster", [ClusterDescription.flat(4), NODES])
def test_a_line_a_job_with_the_processors_that_it_had(tmp_path: Path, cluster: ClusterDescription) -> None:
    result = run(cluster)
    lines = lines_of(result, tmp_path / "evalys.csv")
    assert [line["job_id"] for line in lines] == ["0", "1", "2", "3", "4"]
    assert tuple(lines[0]) == COLUMNS
    for line, job in zip(lines, result.jobs, strict=True):
        start, end = float(line["starting_time"]), float(line["finish_time"])
        assert (start, end) == (job.start_time, job.end_time)
        assert float(line["execution_time"]) == end - start
        assert float(line["waiting_time"]) == start - float(line["submission_time"])
        assert float(line["turnaround_time"]) == end - float(line["submission_time"])
        assert line["success"] == "1" and line["workload_name"] == "a, b"
        if end > start:
            assert len(intervals(line["allocated_resources"])) >= job.job.request.processors
            assert float(line["stretch"]) == pytest.approx(float(line["turnaround_time"]) / (end - start))
        else:
            assert line["stretch"] == ""


def test_no_processor_is_had_twice(tmp_path: Path) -> None:
    lines = lines_of(run(ClusterDescription.flat(4)), tmp_path / "evalys.csv")
    for at, one in enumerate(lines):
        for other in lines[at + 1 :]:
            apart = float(one["finish_time"]) <= float(other["starting_time"]) or float(
                other["finish_time"]
            ) <= float(one["starting_time"])
            shared = intervals(one["allocated_resources"]) & intervals(other["allocated_resources"])
            assert apart or not shared


def test_a_job_that_did_not_end_is_left_out(tmp_path: Path) -> None:
    result = run(ClusterDescription.flat(4))
    result.jobs[3].start_time = result.jobs[3].end_time = None
    result.jobs[0].state = "timed out"
    lines = lines_of(result, tmp_path / "evalys.csv")
    assert [line["job_id"] for line in lines] == ["0", "1", "2", "4"]
    assert [line["success"] for line in lines] == ["0", "1", "1", "1"]


def test_evalys_reads_it(tmp_path: Path) -> None:
    jobset = pytest.importorskip("evalys.jobset", reason="evalys is not installed (pip install evalys)")
    result = run(ClusterDescription.flat(4))
    write_evalys_csv(tmp_path / "evalys.csv", Figures(result))
    read = jobset.JobSet.from_csv(str(tmp_path / "evalys.csv"), resource_bounds=(0, 3))
    assert list(read.df["jobID"]) == ["0", "1", "2", "3", "4"]
    busy = sum(job.runtime * job.job.request.processors for job in result.jobs)
    assert read.utilisation["area"].sum() == pytest.approx(busy)
