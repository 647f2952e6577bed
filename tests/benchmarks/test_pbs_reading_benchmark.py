"""How long it takes to understand a large PBS. Target: 10,000 jobs and 2,000 vnodes in under 1.5 s."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from headway_adapters.commands import pbs_dsv
from headway_adapters.pbs import cluster, documents, dsv, reader
from headway_adapters.polling import differ
from headway_adapters.polling.snapshot import Snapshot

FIXTURES = Path(__file__).parents[1] / "adapters" / "pbs" / "fixtures"
SITE = cluster.Site(managed=("workq",))
BETWEEN = "|abcdefghijklmnop"
NOW = 1795242861.0


def recorded(name: str) -> dict[str, Any]:
    return json.loads(json.loads((FIXTURES / f"{name}.json").read_text())["stdout"])


def jobs(count: int) -> bytes:
    """``qstat -t -f -F dsv`` with ``count`` jobs, a tenth of them running."""
    listing = recorded("qstat_full_json")
    kinds = [listing["Jobs"][f"{number}.pbshost"] for number in (2, 9, 10)]
    running = listing["Jobs"]["13.pbshost"]
    found = {}
    for at in range(count):
        record = kinds[at % 3]
        if at % 10 == 0:
            vnode = at // 10
            record = {**running, "exec_vnode": f"(n{vnode}[0]:ncpus=2)+(n{vnode}[1]:ncpus=2)"}
        found[f"{1000 + at}.pbshost"] = {**record, "Job_Name": f"job {at}"}
    return pbs_dsv.listing(found, BETWEEN).encode()


def vnodes(count: int) -> bytes:
    """``pbsnodes -av -F json`` with ``count`` vnodes, two on each host."""
    listing = recorded("pbsnodes_json")
    kind = listing["nodes"]["pbshost[0]"]
    found = {}
    for at in range(count):
        host, name = f"n{at // 2}", f"n{at // 2}[{at % 2}]"
        available = {**kind["resources_available"], "host": host, "vnode": name}
        found[name] = {**kind, "Mom": host, "resources_available": available}
    return json.dumps({**listing, "nodes": found}, indent="\t").encode()


def look(
    job_data: bytes, node_data: bytes, queue_data: bytes, parsed: dsv.Parsed | None = None,
    remembered: reader.Remembered | None = None,
) -> Snapshot:  # fmt: skip
    """What the adapter does with the listings of one look; the rest is what it knows of the look before."""
    notes: set[str] = set()
    queues = cluster.read_queues(documents.objects_json(queue_data, "Queue"))
    nodes = cluster.read_nodes(documents.nodes_json(node_data), queues, notes)
    records = dsv.jobs(job_data, BETWEEN, parsed)
    found = reader.read_jobs(records, NOW, SITE, queues, nodes, notes, remembered)
    pools = cluster.pools(queues, nodes, SITE)
    assert not notes
    return Snapshot(time=NOW, jobs=found.jobs, nodes=nodes.nodes, pools=pools)


@pytest.mark.benchmark(group="pbs")
def test_reading_ten_thousand_jobs_and_two_thousand_vnodes(benchmark: Any) -> None:
    data = jobs(10_000), vnodes(2_000), json.dumps(recorded("qstat_queue_json")).encode()
    found = benchmark.pedantic(lambda: look(*data), rounds=3, warmup_rounds=1)
    assert (len(found.jobs), len(found.nodes)) == (10_000, 2_000)
    assert benchmark.stats.stats.min < 1.5


@pytest.mark.benchmark(group="pbs")
def test_comparing_two_looks_at_ten_thousand_pbs_jobs(benchmark: Any) -> None:
    data = jobs(10_000), vnodes(2_000), json.dumps(recorded("qstat_queue_json")).encode()
    old, new = look(*data), look(*data)
    assert not benchmark.pedantic(lambda: differ.diff(old, new), rounds=3, warmup_rounds=1)


@pytest.mark.benchmark(group="pbs")
def test_a_later_look_at_fifty_thousand_jobs_of_pbs(capsys: Any) -> None:
    """With 10,000 vnodes; 111 of the jobs changed since the look before."""
    first, *rest = jobs(50_000), vnodes(10_000), json.dumps(recorded("qstat_queue_json")).encode()
    second = first.replace(b"Job_Name=job 77", b"Job_Name=job x77")
    parsed, remembered = dsv.Parsed(), reader.Remembered()
    known = None
    seconds = []
    for data in (first, second, first, second):
        began = time.process_time()
        snapshot = look(data, *rest, parsed, remembered)
        events = differ.diff(known, snapshot)
        seconds.append(time.process_time() - began)
        assert known is None or len(events) == 111
        known = snapshot
    with capsys.disabled():
        print(f"\n50,000 jobs of PBS read and compared: {seconds[0]:.2f} s, then {min(seconds[1:]):.2f} s")
