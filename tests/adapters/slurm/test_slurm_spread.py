"""On how many nodes a job lies whose GPUs are stated for all of it: only nodes that it can have count."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headway.model import NodeDescription
from headway_adapters.slurm import reader

FIXTURES = Path(__file__).parent / "fixtures" / "slurm-22.05"
RECORDS = {record["job_id"]: record for record in json.loads((FIXTURES / "squeue.json").read_text())["jobs"]}
SITE = reader.Site(managed=("batch",))


def node(name: str, gpus: int, *features: str, processors: int = 32, **fields: Any) -> NodeDescription:
    gres = (("gpu", gpus),) if gpus else ()
    return NodeDescription(
        name=name, processors=processors, gres=gres, features=features, pools=("batch",), **fields
    )


#: One node with eight GPUs, four with four, one with none.
H100 = node("h1", 8, "h100")
A100 = tuple(node(f"a{number}", 4, "a100") for number in range(1, 5))
ALL = (H100, *A100, node("c1", 0, "a100", processors=64))


class Counted(dict[str, NodeDescription]):
    """Nodes that count how often somebody goes over them."""

    looks = 0

    def items(self) -> Any:
        self.looks += 1
        return super().items()

    def values(self) -> Any:
        self.looks += 1
        return super().values()


def listing(nodes: tuple[NodeDescription, ...]) -> reader.Nodes:
    return reader.Nodes(Counted({each.name: each for each in nodes}), {}, {})


def record(gpus: int, **fields: Any) -> dict[str, Any]:
    plain = {
        "state_reason": "JobHeldAdmin", "tres_per_job": f"gres:gpu:{gpus}", "cpus": 24, "tasks": 24,
        "node_count": 1, "max_nodes": 0, "tasks_per_node": None, "tres_req_str": "", "features": "",
        "memory_per_cpu": None,
    }  # fmt: skip
    return {**RECORDS[15], **plain, **fields}


def requests(nodes: reader.Nodes, *records: dict[str, Any]) -> reader.Jobs:
    data = json.dumps({"meta": {}, "errors": [], "jobs": list(records)}).encode()
    return reader.read_jobs(data, 1795244660.0, SITE, {}, nodes, set())


def spread(nodes: tuple[NodeDescription, ...], gpus: int, **fields: Any) -> tuple[int, int]:
    """Number of nodes (0: any) and GPUs on each."""
    (job,) = requests(listing(nodes), record(gpus, **fields)).jobs.values()
    return job.job.request.nodes, dict(job.job.request.gres_per_node)["gpu"]


@pytest.mark.parametrize(
    ("gpus", "fields", "expected"),
    [
        (8, {}, (0, 8)),
        (8, {"features": "a100"}, (2, 4)),
        (8, {"features": "a100|v100"}, (2, 4)),
        (8, {"features": "h100|a100"}, (0, 8)),
        (8, {"excluded_nodes": "h1"}, (2, 4)),
        (8, {"required_nodes": "a2"}, (2, 4)),
        (8, {"required_nodes": "h1"}, (0, 8)),
        # Each of the nodes that were named has a share.
        (8, {"required_nodes": "h1,a1"}, (2, 4)),
        (4, {"required_nodes": "a1,a2"}, (2, 2)),
        # One node has six, the others do not.
        (12, {}, (3, 4)),
        (12, {"required_nodes": "h1"}, (3, 4)),
        (20, {}, (5, 4)),
        # Nobody has so many, or not in even shares.
        (24, {}, (0, 24)),
        (12, {"features": "a100", "excluded_nodes": "a[1-2]"}, (0, 12)),
        (8, {"required_nodes": "c1"}, (0, 8)),
    ],
)
def test_the_fewest_of_the_nodes_that_a_job_can_have(
    gpus: int, fields: dict[str, Any], expected: tuple[int, int]
) -> None:
    assert spread(ALL, gpus, **fields) == expected


def test_a_node_that_is_down_is_not_waited_for() -> None:
    down = node("h1", 8, "h100", available=False, reason="down")
    assert spread((down, *A100), 8) == (2, 4)
    # Where the others are too few, it is.
    assert spread((down, *A100[:1]), 8) == (0, 8)
    assert spread((down, *A100), 8, required_nodes="h1") == (0, 8)


def test_processors_of_nodes_that_a_job_can_have() -> None:
    """A larger node without GPUs, or with other features, is none of them."""
    assert spread(ALL, 4, cpus=64, tasks=64) == (2, 2)
    large = node("l1", 4, "v100", processors=128)
    assert spread((*ALL, large), 4, cpus=64, tasks=64) == (0, 4)
    assert spread((*ALL, large), 4, cpus=64, tasks=64, features="a100") == (2, 2)
    # Uneven numbers of processors lie unevenly.
    assert spread((*A100[:1], node("s1", 4, processors=16)), 8, cpus=47, tasks=47) == (2, 4)


def test_nodes_are_looked_at_once_for_all_jobs_that_may_have_the_same() -> None:
    def looks(count: int) -> int:
        nodes = listing(ALL)
        jobs = [record(1 + number % 8, job_id=100 + number, features="a100") for number in range(count)]
        assert len(requests(nodes, *jobs).jobs) == count
        return nodes.nodes.looks  # type: ignore[attr-defined]

    assert looks(40) == looks(9)
