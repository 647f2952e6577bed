"""How long it takes to understand a long queue. Target: 10,000 pending jobs in under a second."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from headway_adapters.polling import differ
from headway_adapters.polling.snapshot import Snapshot
from headway_adapters.slurm import reader

FIXTURES = Path(__file__).parents[1] / "adapters" / "slurm" / "fixtures" / "slurm-22.05"
SITE = reader.Site(managed=("batch",))
NOW = 1795244660.0


def listing(count: int) -> bytes:
    """``squeue --json`` with ``count`` pending jobs."""
    records = json.loads((FIXTURES / "squeue.json").read_text())["jobs"]
    kinds = [record for record in records if record["job_id"] in (15, 16, 24, 37)]
    jobs: list[dict[str, Any]] = [
        {**kinds[at % len(kinds)], "job_id": 1000 + at, "state_reason": "JobHeldAdmin", "priority": 0}
        for at in range(count)
    ]
    return json.dumps({"meta": {}, "errors": [], "jobs": jobs}, indent=2).encode()


@pytest.mark.benchmark(group="slurm")
def test_parsing_ten_thousand_pending_jobs(benchmark: Any) -> None:
    data = listing(10_000)
    partitions = reader.read_partitions((FIXTURES / "show-partitions-oneline.txt").read_text())
    nodes = reader.read_nodes((FIXTURES / "sinfo.json").read_bytes(), SITE, set())
    found = benchmark.pedantic(
        lambda: reader.read_jobs(data, NOW, SITE, partitions, nodes, set()), rounds=3, warmup_rounds=1
    )
    assert len(found.jobs) == 10_000


@pytest.mark.benchmark(group="slurm")
def test_a_later_look_at_fifty_thousand_jobs_of_slurm(capsys: Any) -> None:
    """100 of the jobs changed since the look before."""
    first = listing(50_000)
    jobs = json.loads(first)["jobs"]
    for job in jobs[::500]:
        job["time_limit"] = 77
    second = json.dumps({"meta": {}, "errors": [], "jobs": jobs}, indent=2).encode()
    partitions = reader.read_partitions((FIXTURES / "show-partitions-oneline.txt").read_text())
    nodes = reader.read_nodes((FIXTURES / "sinfo.json").read_bytes(), SITE, set())
    remembered = reader.Remembered()
    known = None
    seconds = []
    for data in (first, second, first, second):
        began = time.process_time()
        found = reader.read_jobs(data, NOW, SITE, partitions, nodes, set(), None, remembered)
        snapshot = Snapshot(NOW, found.jobs)
        events = differ.diff(known, snapshot)
        seconds.append(time.process_time() - began)
        assert len(events) == (50_000 if known is None else 100)
        known = snapshot
    with capsys.disabled():
        print(f"\n50,000 jobs of Slurm read and compared: {seconds[0]:.2f} s, then {min(seconds[1:]):.2f} s")


@pytest.mark.benchmark(group="slurm")
def test_comparing_two_looks_at_ten_thousand_jobs(benchmark: Any) -> None:
    data = listing(10_000)
    first = reader.read_jobs(data, NOW, SITE, {}, reader.Nodes(), set())
    second = reader.read_jobs(data, NOW, SITE, {}, reader.Nodes(), set())
    old, new = Snapshot(NOW, first.jobs), Snapshot(NOW + 2, second.jobs)
    assert not benchmark.pedantic(lambda: differ.diff(old, new), rounds=3, warmup_rounds=1)
