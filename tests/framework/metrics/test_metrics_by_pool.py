"""The figures of each pool's jobs, counted by hand on pools that share nodes."""

from __future__ import annotations

import csv

import pytest

from headway.metrics import summarise
from headway.model import ClusterDescription, JobDescription, NodeDescription, PoolDescription, Request
from headway.report import write_outputs
from headway.results import JobResult, Occupation, RunResult

#: Eight processors, four of which are those of "short" as well.
SHARED = ClusterDescription(
    "c",
    (PoolDescription("long"), PoolDescription("short")),
    (NodeDescription("n1", 4, pools=("long", "short")), NodeDescription("n2", 4, pools=("long",))),
)


def ran(name: str, pool: str, node: str, start: float | None, end: float | None, processors: int = 4):
    described = JobDescription(name, 0.0, Request(processors, 100.0), pool=pool)
    placement = ((node, processors),) if start is not None else ()
    state = "completed" if end is not None else "running" if start is not None else "pending"
    seconds = end - start if start is not None and end is not None else 0.0
    where = pool if start is not None else ""
    return JobResult(described, start, end, state, seconds, placement, where)


def result(cluster: ClusterDescription = SHARED) -> RunResult:
    jobs = [
        ran("a", "short", "n1", 0.0, 10.0),
        ran("b", "long", "n1", 10.0, 40.0),
        ran("c", "long", "n2", 0.0, 20.0, 2),
        ran("d", "short", "n1", None, None),
    ]
    return RunResult("run", cluster, jobs, begin=0.0)


def test_jobs_count_once_and_shared_nodes_in_each_pool():
    pools = summarise(result())["pools"]
    assert list(pools) == ["long", "short"]
    long, short = pools["long"], pools["short"]
    assert (long["jobs"], long["finished"], long["processors"]) == (2, 2, 8)
    assert (short["jobs"], short["finished"], short["processors"]) == (2, 1, 4)
    assert (long["processor_seconds"], short["processor_seconds"]) == (4 * 30 + 2 * 20, 4 * 10)
    assert long["utilisation"] == pytest.approx(160 / (8 * 40))
    assert short["utilisation"] == pytest.approx(40 / (4 * 40))
    assert (long["wait"]["mean"], short["wait"]["mean"]) == (5.0, 0.0)
    assert (long["wait"]["count"], short["wait"]["count"]) == (2, 1)


def test_pools_add_up_to_the_work_of_the_run():
    paused = ran("a", "short", "n1", 0.0, 10.0)
    paused.runtime = 4.0
    lent = ran("b", "long", "n2", 0.0, 20.0)
    lent.spans, lent.runtime = (Occupation(0.0, 5.0, 4), Occupation(15.0, 20.0, 4)), 9.0
    before = ran("c", "long", "n1", -50.0, 20.0, 2)
    found = summarise(RunResult("run", SHARED, [paused, lent, before], begin=0.0))
    seconds = {name: pool["processor_seconds"] for name, pool in found["pools"].items()}
    assert seconds == {"short": 4 * 4, "long": 4 * 9 + 2 * 20}
    assert sum(seconds.values()) == found["system"]["work"]


def test_one_pool_has_no_figures_of_its_own(tmp_path):
    one = ClusterDescription("c", (PoolDescription("long"),), SHARED.nodes)
    assert summarise(result(one))["pools"] == {}
    assert "metrics_by_pool.csv" not in [path.name for path in write_outputs(result(one), tmp_path)]


def test_the_table_has_a_line_a_pool_and_metric(tmp_path):
    write_outputs(result(), tmp_path, formats=("csv", "html"))
    with open(tmp_path / "metrics_by_pool.csv", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [(row["pool"], row["metric"]) for row in rows][:2] == [("long", "wait"), ("long", "turnaround")]
    assert {row["pool"]: row["processor_seconds"] for row in rows} == {"long": "160", "short": "40"}
    page = (tmp_path / "report.html").read_text()
    assert "<th>by pool</th>" in page and "<th>short</th>" in page
