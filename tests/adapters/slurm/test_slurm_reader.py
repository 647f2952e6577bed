"""Slurm's recorded output, and what we understand of it."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headway.errors import Failure
from headway.model import PoolBounds
from headway_adapters.polling.differ import diff
from headway_adapters.polling.snapshot import Snapshot, SnapshotJob
from headway_adapters.slurm import marker, reader

FIXTURES = Path(__file__).parent / "fixtures" / "slurm-22.05"
NOW = 1795244660.0
MIB = 1 << 20
PARTITIONS = reader.read_partitions((FIXTURES / "show-partitions-oneline.txt").read_text())
SITE = reader.Site(managed=("batch", "fg"))
NODES = reader.read_nodes((FIXTURES / "sinfo.json").read_bytes(), SITE, set())
RECORDS = {record["job_id"]: record for record in json.loads((FIXTURES / "squeue.json").read_text())["jobs"]}


def read(*records: dict[str, Any], site: reader.Site = SITE, notes: set[str] | None = None) -> reader.Jobs:
    data = json.dumps({"meta": {}, "errors": [], "jobs": list(records)}).encode()
    return reader.read_jobs(data, NOW, site, PARTITIONS, NODES, set() if notes is None else notes)


def pending(**fields: Any) -> dict[str, Any]:
    """A job held for headway, with some fields different."""
    return {**RECORDS[15], "state_reason": "JobHeldAdmin", **fields}


def only(jobs: reader.Jobs) -> SnapshotJob:
    (job,) = jobs.jobs.values()
    return job


@pytest.fixture(scope="module")
def jobs() -> reader.Jobs:
    notes: set[str] = set()
    return reader.read_jobs((FIXTURES / "squeue.json").read_bytes(), NOW, SITE, PARTITIONS, NODES, notes)


@pytest.mark.parametrize(
    ("job_id", "state", "outcome", "exit_code"),
    [
        ("1", "ended", "timed out", 143), ("2", "ended", "failed", 3), ("3", "ended", "completed", 0),
        ("4", "ended", "failed", 137), ("5", "ended", "cancelled", 143), ("6", "ended", "cancelled", 0),
        ("7", "running", "", None), ("9_1", "running", "", None), ("27", "suspended", "", None),
        ("32", "running", "", None), ("33", "ended", "node failure", 0), ("36", "running", "", None),
        ("15", "pending", "", None),
    ],
)  # fmt: skip
def test_states_and_outcomes(
    jobs: reader.Jobs, job_id: str, state: str, outcome: str, exit_code: int | None
) -> None:
    job = jobs.jobs[job_id]
    assert (job.state, job.outcome, job.exit_code) == (state, outcome, exit_code)


def test_since_when_a_job_is_suspended(jobs: reader.Jobs) -> None:
    assert (jobs.jobs["27"].suspended_since, jobs.jobs["7"].suspended_since) == (1795244602.0, None)


def test_a_job_cancelled_in_the_queue_never_started(jobs: reader.Jobs) -> None:
    assert jobs.jobs["6"].placement == () and jobs.jobs["6"].start_time is None
    assert jobs.jobs["5"].placement == (("node1", 1),)


@pytest.mark.parametrize(
    ("job_id", "placement"),
    [
        ("7", (("node1", 4), ("node2", 4))),
        ("28", (("node9", 4),)),
        ("8", (("node3", 1),)),
        # A heterogeneous job: of its leader, then of the other component.
        ("13", (("node5", 1), ("node6", 2))),
    ],
)
def test_the_allocated_cores_say_what_a_job_has_where(
    jobs: reader.Jobs, job_id: str, placement: tuple[tuple[str, int], ...]
) -> None:
    assert jobs.jobs[job_id].placement == placement


@pytest.mark.parametrize(
    ("tasks", "each", "nodes", "per_node", "together"),
    [
        (1, 3, 0, 0, 3), (4, 3, 0, 0, 3), (4, 1, 0, 0, 0),
        (1, 3, 1, 3, 0), (2, 3, 2, 3, 0),
        # Two nodes, whose shares may differ, but no task is divided.
        (4, 2, 2, 0, 2), (3, 3, 2, 0, 3), (1, 4, 2, 0, 0),
    ],
)  # fmt: skip
def test_the_processors_of_a_task_lie_on_one_node(
    tasks: int, each: int, nodes: int, per_node: int, together: int
) -> None:
    """``sbatch -n TASKS -c EACH``, with ``-N NODES`` where they are stated."""
    record = pending(
        cpus=tasks * each, tasks=tasks, cpus_per_task=each, tasks_per_node=0,
        node_count=nodes or tasks, max_nodes=nodes,
    )  # fmt: skip
    request = only(read(record)).job.request
    assert (request.processors, request.nodes) == (tasks * each, nodes)
    assert (request.processors_per_node, request.processors_per_chunk) == (per_node, together)


@pytest.mark.parametrize(
    ("cpus", "tasks", "least", "together"),
    [(3, 1, 3, 3), (12, 4, 3, 3), (4, 4, 1, 0), (16, 1, 1, 0), (10, 4, 3, 0)],
)
def test_processors_of_a_task_that_22_05_leaves_out_of_its_json(
    cpus: int, tasks: int, least: int, together: int
) -> None:
    record = pending(
        cpus=cpus, tasks=tasks, cpus_per_task=None, minimum_cpus_per_node=least, tasks_per_node=0,
        node_count=1, max_nodes=0,
    )  # fmt: skip
    assert only(read(record)).job.request.processors_per_chunk == together


def test_tasks_of_several_processors_so_many_on_a_node() -> None:
    """``sbatch -N 2 -n 4 -c 2 --ntasks-per-node=2``."""
    record = pending(
        cpus=8, tasks=4, cpus_per_task=None, minimum_cpus_per_node=4, tasks_per_node=2,
        node_count=2, max_nodes=2,
    )  # fmt: skip
    request = only(read(record)).job.request
    assert (request.nodes, request.processors_per_node, request.processors_per_chunk) == (2, 4, 0)


@pytest.mark.parametrize(
    ("tasks", "each", "processors", "together"), [(1, 3, 4, 4), (2, 4, 8, 4), (2, 3, 6, 0)]
)
def test_a_task_on_whole_cores_takes_them_together(
    tasks: int, each: int, processors: int, together: int
) -> None:
    nodes = reader.Nodes(nodes=NODES.nodes, power={}, threads=dict.fromkeys(NODES.nodes, 2))
    record = pending(
        cpus=tasks * each, tasks=tasks, cpus_per_task=each, tasks_per_node=0, node_count=1, max_nodes=0
    )
    data = json.dumps({"meta": {}, "errors": [], "jobs": [record]}).encode()
    request = only(reader.read_jobs(data, NOW, SITE, PARTITIONS, nodes, set())).job.request
    assert (request.processors, request.processors_per_chunk) == (processors, together)


def test_a_core_counts_as_its_hardware_threads() -> None:
    """As seen with two threads a core: a job of 5 processors has 3 cores, 6 CPUs."""
    cores = {"0": "allocated"}
    record = {
        **RECORDS[7], "nodes": "node[1-2]", "cpus": 6,
        "job_resources": {"allocated_nodes": [
            {"nodename": "node1", "cpus_used": 0, "sockets": {"0": {"cores": cores}, "1": {"cores": cores}}},
            {"nodename": "node2", "cpus_used": 0, "sockets": {"0": {"cores": cores}}},
        ]},
    }  # fmt: skip
    nodes = reader.Nodes(NODES.nodes, {}, dict.fromkeys(NODES.nodes, 2))
    data = json.dumps({"jobs": [record]}).encode()
    job = only(reader.read_jobs(data, NOW, SITE, PARTITIONS, nodes, set()))
    assert job.placement == (("node1", 4), ("node2", 2))


def test_later_versions_state_the_cpus_of_each_node() -> None:
    def n(value: int) -> dict[str, Any]:
        return {"set": True, "infinite": False, "number": value}

    record = {
        "job_id": 333, "job_state": ["RUNNING"], "nodes": "node[1-2]", "cpus": n(5), "partition": "batch",
        "array_job_id": n(0), "array_task_id": {"set": False, "infinite": False, "number": 0},
        "time_limit": {"set": False, "infinite": True, "number": 0}, "start_time": n(1795244000),
        "submit_time": n(1795243000), "end_time": n(0), "restart_cnt": 0, "shared": [], "exclusive": [],
        "job_resources": {"nodes": {"count": 2, "list": "node[1-2]", "allocation": [
            {"index": 0, "name": "node1", "cpus": {"count": 4, "used": 0},
             "sockets": [{"index": 0, "cores": [{"index": 0, "status": ["ALLOCATED"]}]}]},
            {"index": 1, "name": "node2", "cpus": {"count": 1, "used": 0}, "sockets": []},
        ]}, "cpus": 5},
    }  # fmt: skip
    job = only(read(record))
    assert (job.state, job.start_time) == ("running", 1795244000)
    assert job.placement == (("node1", 4), ("node2", 1))
    assert job.job.request.walltime == 365 * 86400


def test_completing_jobs_still_have_their_nodes() -> None:
    job = only(read({**RECORDS[36], "job_state": ["CANCELLED", "COMPLETING"]}))
    assert (job.state, job.end_time) == ("running", None)


def test_one_that_was_requeued_has_no_start_while_it_completes() -> None:
    """While a dead node keeps it Slurm shows it a start that goes on with the clock."""
    record = {**RECORDS[36], "job_state": "COMPLETING", "restart_cnt": 1}
    looks = [only(read({**record, "start_time": 1795244000 + second})) for second in (0, 5)]
    assert [(job.state, job.start_time) for job in looks] == [("running", None)] * 2
    assert looks[0].placement and looks[0].leaving
    first = only(read({**record, "restart_cnt": 0}))
    assert first.start_time is not None and first.leaving


@pytest.mark.parametrize(
    ("state", "suspend_time", "ran", "paused"),
    [
        ("RUNNING", 0, 0, 0), ("SUSPENDED", 40, 40, 0), ("RUNNING", 69, 40, 29), ("SUSPENDED", 90, 61, 29),
        # It says the same of an execution before this one.
        ("RUNNING", -100, 0, 0),
    ],
)  # fmt: skip
def test_a_job_was_suspended_for_what_it_has_not_run(
    state: str, suspend_time: int, ran: int, paused: int
) -> None:
    start = RECORDS[36]["start_time"]
    at = start + suspend_time if suspend_time else 0
    for number in (ran, {"set": True, "infinite": False, "number": ran}):
        record = {**RECORDS[36], "job_state": state, "suspend_time": at, "pre_sus_time": number}
        assert only(read(record)).paused == paused


def test_a_request() -> None:
    request = only(read(pending())).job.request
    assert (request.processors, request.nodes, request.walltime) == (8, 2, 7200)
    assert request.memory_per_processor == 500 * MIB


def test_a_limit_of_nothing_counts_as_a_minute() -> None:
    """``scontrol update TimeLimit=0``, which any user may say: Slurm looks at limits now and then."""
    assert only(read(pending(time_limit=0))).job.request.walltime == 60


def test_a_request_for_gpus_on_other_nodes(jobs: reader.Jobs) -> None:
    request = jobs.jobs["24"].job.request
    assert (request.nodes, request.gres_per_node, request.excluded_nodes) == (3, (("gpu", 1),), ("node8",))
    assert jobs.jobs["24"].job.attributes == {"most_nodes": 6, "nice": 50}


#: As Slurm 22.05 lists them where it does not account for GPUs; the nodes have two each, and four processors.
@pytest.mark.parametrize(
    ("asked", "nodes", "per_node", "gpus"),
    [
        ({"tres_per_job": "gres:gpu:2", "cpus": 4, "tasks": 4}, 0, 0, 2),
        ({"tres_per_job": "gres:gpu:4", "cpus": 4, "tasks": 4}, 2, 2, 2),
        ({"tres_per_job": "gres:gpu:3", "cpus": 5, "tasks": 5}, 2, 0, 2),
        ({"tres_per_job": "gres:gpu:4", "cpus": 4, "tasks": 4, "node_count": 4, "max_nodes": 4}, 4, 0, 1),
        ({"tres_per_job": "gres:gpu:2", "cpus": 8, "tasks": 8}, 2, 4, 1),
        # More than one node has, for one task: a processor a node.
        ({"tres_per_job": "gres:gpu:3", "cpus": 1, "tasks": 1}, 2, 1, 2),
        ({"tres_per_job": "gres:gpu:4", "cpus": 1, "tasks": 1}, 2, 1, 2),
        ({"tres_per_job": "gres:gpu:6", "cpus": 1, "tasks": 1}, 3, 1, 2),
        ({"tres_per_job": "gres:gpu:3", "cpus": 1, "tasks": 1, "max_nodes": 2}, 2, 1, 2),
        ({"tres_per_job": "gres:gpu:5", "cpus": 1, "tasks": 2, "node_count": 2, "max_nodes": 3}, 3, 1, 2),
        ({"tres_per_job": "gres:gpu:4", "cpus": 2, "tasks": 2, "tasks_per_node": 2}, 2, 2, 2),
        # Too few nodes are allowed, or a task is not divided: never.
        ({"tres_per_job": "gres:gpu:3", "cpus": 1, "tasks": 1, "max_nodes": 1}, 1, 0, 3),
        ({"tres_per_job": "gres:gpu:5", "cpus": 1, "tasks": 1, "max_nodes": 2}, 1, 0, 5),
        ({"tres_per_job": "gres:gpu:4", "cpus": 2, "tasks": 1, "cpus_per_task": 2}, 0, 0, 4),
        ({"tres_per_task": "gres:gpu:3", "cpus": 1, "tasks": 1}, 0, 0, 3),
        ({"tres_per_task": "gres:gpu:2", "cpus": 3, "tasks": 3}, 3, 1, 2),
        # 24.11 shows one node as the most of a job that enters held; its mark says that none was stated.
        ({"tres_per_job": "gres/gpu:3", "cpus": 1, "tasks": 1, "max_nodes": 1,
          "admin_comment": "headway:held;nodes=any"}, 2, 1, 2),
        ({"tres_per_task": "gres:gpu:1", "cpus": 2, "tasks": 2}, 0, 0, 2),
        ({"tres_per_task": "gres:gpu:1", "cpus": 4, "tasks": 4}, 2, 2, 2),
        ({"tres_per_socket": "gres:gpu:1", "cpus": 2, "tasks": 2, "sockets_per_node": 2}, 0, 0, 2),
        ({"tres_per_node": "gres:gpu:1", "tres_per_job": "gres:gpu:2", "cpus": 2, "tasks": 2}, 0, 0, 1),
        # From 23.11 on the processors of a task stand there, too.
        ({"tres_per_task": "cpu=2,gres/gpu=1", "cpus": 4, "tasks": 2, "cpus_per_task": 2}, 0, 0, 2),
        ({"tres_per_task": "cpu=1,gres/gpu:1", "cpus": 4, "tasks": 4}, 2, 2, 2),
        ({"tres_per_job": "cpu=4", "tres_req_str": "cpu=4,gres/gpu=4", "cpus": 4, "tasks": 4}, 2, 2, 2),
        ({"tres_per_node": "none", "tres_per_job": "gres:gpu:4", "cpus": 4, "tasks": 4}, 2, 2, 2),
        # At most so many tasks on a node; three tasks on two nodes, of which none is divided.
        ({"tres_per_job": "gres:gpu:4", "cpus": 4, "tasks": 4, "tasks_per_node": 1}, 4, 1, 1),
        ({"tres_per_task": "gres:gpu:1", "cpus": 6, "tasks": 3, "cpus_per_task": 2}, 2, 0, 2),
    ],
)  # fmt: skip
def test_gpus_of_a_job_a_task_or_a_socket(
    asked: dict[str, Any], nodes: int, per_node: int, gpus: int
) -> None:
    plain = {
        "node_count": 1,
        "max_nodes": 0,
        "tres_req_str": "cpu=4,node=1,billing=4",
        "tasks_per_node": None,
    }
    request = only(read(pending(**{**plain, **asked}))).job.request
    assert (request.nodes, request.processors_per_node, request.gres_per_node) == (
        nodes, per_node, (("gpu", gpus),),
    )  # fmt: skip


@pytest.mark.parametrize("text", ["cpu=8", "cpu:24", "cpu=8,mem=4G", "node=1", "none", "license/matlab=1"])
@pytest.mark.parametrize("field", ["tres_per_task", "tres_per_job", "tres_per_node", "tres_per_socket"])
def test_processors_are_no_generic_resource(field: str, text: str) -> None:
    """``sbatch -c 8`` from Slurm 23.11 on."""
    assert only(read(pending(**{field: text}))).job.request.gres_per_node == ()
    assert only(read({**RECORDS[7], field: text})).job.request.gres_per_node == ()


def test_a_running_job_has_the_gpus_that_slurm_gave_it() -> None:
    given = {"tres_per_job": "gres:gpu:3", "gres_detail": ["gpu:2(IDX:0-1)", "gpu:a100:1(IDX:0)"]}
    request = only(read({**RECORDS[7], **given})).job.request
    assert dict(request.gres_per_node) == {"gpu": 2, "gpu:a100": 1}


def test_memory_that_was_not_stated_is_the_whole_nodes() -> None:
    record = pending(memory_per_cpu=None, memory_per_node=None, tres_req_str="cpu=8,mem=8000M,node=2")
    assert only(read(record)).job.request.memory_per_node == 4000 * MIB
    unmanaged = reader.Site(managed=("batch",), memory_managed=False)
    assert only(read(record, site=unmanaged)).job.request.memory_per_node == 0


def test_features() -> None:
    assert only(read(pending(features="fast&ib"))).job.request.features == ("fast", "ib")
    without = only(read(pending(features="ib|slow"))).job.request.excluded_nodes
    assert "node1" not in without and "node3" not in without and "node2" in without
    job = only(read(pending(features="[rack1|rack2]*2")))
    assert job.job.held and "constraint" in job.reason


def test_begin_times_count_while_they_lie_ahead(jobs: reader.Jobs) -> None:
    assert jobs.jobs["17"].job.begin_time == 1795417400
    assert only(read(pending(eligible_time=int(NOW) - 5))).job.begin_time is None
    # ``--begin=2106-02-07T06:28:15`` is the number that elsewhere means infinite.
    assert only(read(pending(eligible_time=0xFFFFFFFF))).job.begin_time == 0xFFFFFFFF
    assert only(read(pending(eligible_time={"set": False, "number": 0}))).job.begin_time is None


UNLAUNCHED = {"state_description": "launch failed requeued held"}


@pytest.mark.parametrize(
    ("fields", "held_by", "startable"),
    [
        ({"state_reason": "JobHeldAdmin"}, "headway", True),
        ({"state_reason": "JobHeldAdmin", "admin_comment": "headway:held"}, "headway", True),
        ({"state_reason": "JobHeldAdmin", "admin_comment": "hold: ask Ann"}, "administrator", False),
        ({"state_reason": "JobHeldAdmin", "admin_comment": "hold"}, "administrator", False),
        ({"state_reason": "JobHeldAdmin", "admin_comment": "holdings of 2026"}, "headway", True),
        ({"state_reason": "JobHeldUser"}, "user", False),
        ({"state_reason": "JobHeldUser", "admin_comment": "headway:held"}, "user", False),
        ({"state_reason": "JobHeldUser", "admin_comment": "headway:new"}, "headway", True),
        # Slurm takes no note of a user's hold of what is held already; the submit filter does.
        ({"state_reason": "JobHeldAdmin", "comment": "x headway:user-hold"}, "user", False),
        (
            {"state_reason": "JobHeldUser", "admin_comment": "headway:new", "comment": "headway:user-hold"},
            "user",
            False,
        ),
        (
            {"state_reason": "JobHeldAdmin", "comment": "headway:user-hold", "admin_comment": "hold"},
            "administrator",
            False,
        ),
        ({"state_reason": "Resources", "priority": 4294901750}, "", True),
        ({"state_reason": "JobHeldUser", **UNLAUNCHED}, "system", False),
        # The user's release before the launch is not one after it, and the mark of a start not the filter's.
        ({"state_reason": "JobHeldUser", "comment": "headway:released", **UNLAUNCHED}, "system", False),
        ({"state_reason": "JobHeldUser", "admin_comment": "headway:new", **UNLAUNCHED}, "system", False),
        # Given back by an administrator's "scontrol hold".
        ({"state_reason": "JobHeldAdmin", "admin_comment": "headway:held", **UNLAUNCHED}, "headway", True),
        ({"state_reason": "JobHeldAdmin", "admin_comment": "hold: it", **UNLAUNCHED}, "administrator", False),
    ],
)
def test_who_holds_a_job(fields: dict[str, Any], held_by: str, startable: bool) -> None:
    job = only(read(pending(**fields)))
    assert (job.held_by, job.job.held) == (held_by, not startable)


def test_jobs_of_other_partitions_are_seen_and_not_startable(jobs: reader.Jobs) -> None:
    job = jobs.jobs["22"]
    assert job.job.held and "not managed" in job.reason and not jobs.details["22"].managed


@pytest.mark.parametrize(
    ("partition", "comment", "pools", "listed"),
    [
        ("batch", "headway:held", ("batch",), ()),
        ("batch,fg", "headway:held", ("batch", "fg"), ("batch", "fg")),
        ("fg,batch", "", ("fg", "batch"), ("fg", "batch")),
        ("fg,fg", "", ("fg",), ()),
        ("other,fg", "", ("fg",), ("other", "fg")),
        ("other,more", "", ("other",), ("other", "more")),
        # Pinned for a start in fg, or requeued after it.
        ("fg", "headway:pin=node1;nodes=0-0;run=0;list=batch,fg", ("batch", "fg"), ("batch", "fg")),
        # Moved by somebody since.
        ("other", "headway:pin=node1;nodes=0-0;run=0;list=batch,fg", ("other",), ()),
        ("batch,x,fg", "headway:pin=node1;run=0;list=batch,fg", ("batch", "fg"), ("batch", "x", "fg")),
    ],
)  # fmt: skip
def test_a_list_of_partitions_is_kept_in_its_order(
    partition: str, comment: str, pools: tuple[str, ...], listed: tuple[str, ...]
) -> None:
    found = read(pending(partition=partition, admin_comment=comment))
    assert only(found).job.pools == pools
    (detail,) = found.details.values()
    assert (detail.listed, detail.managed) == (listed, pools[0] in SITE.managed)


def test_a_recorded_list_of_partitions(jobs: reader.Jobs) -> None:
    assert jobs.jobs["23"].job.pools == ("fg",) and jobs.details["23"].listed == ("parked", "fg")


def test_a_start_of_a_listed_job_on_its_way_says_its_partition() -> None:
    comment = "headway:pin=node1;asked=;nodes=0-0;cpus=node1:4;run=0;list=batch,fg"
    job = only(read(pending(
        partition="fg", admin_comment=comment, required_nodes="node1", priority=10, state_reason="None",
    )))  # fmt: skip
    assert (job.releasing, job.pool, job.job.pools) == (True, "fg", ("batch", "fg"))


def test_a_list_is_closed_where_all_of_its_partitions_are() -> None:
    closed = {name: replace(partition, open=False) for name, partition in PARTITIONS.items()}
    one = {**PARTITIONS, "batch": closed["batch"]}
    for partitions, held in ((PARTITIONS, False), (one, False), (closed, True)):
        data = json.dumps({"jobs": [pending(partition="batch,fg")]}).encode()
        job = only(reader.read_jobs(data, NOW, SITE, partitions, NODES, set()))
        assert (job.job.held, "closed" in job.reason) == (held, held)


@pytest.mark.parametrize("state", ["PENDING", "RUNNING"])
@pytest.mark.parametrize(
    ("limit", "seconds"),
    [(None, 365 * 86400), ({"set": True, "infinite": True, "number": 0}, 365 * 86400), (7, 420)],
)
def test_a_job_without_end_is_unlimited_whatever_its_partition_s_default(
    limit: Any, seconds: float, state: str
) -> None:
    """``-t UNLIMITED``; Slurm 22.05 writes null for that, and a job without ``-t`` has the default."""
    short = {"batch": replace(PARTITIONS["batch"], default_walltime=300.0)}
    record = pending(time_limit=limit) if state == "PENDING" else {**RECORDS[7], "time_limit": limit}
    data = json.dumps({"jobs": [record]}).encode()
    job = only(reader.read_jobs(data, NOW, SITE, short, NODES, set()))
    assert (job.state, job.job.request.walltime) == (state.lower(), seconds)


@pytest.mark.parametrize(
    ("partition", "bounds", "fields", "shape"),
    [
        ("batch", {}, {"cpus": 4}, (4, 0, 0)),
        ("batch", {"batch": {"least_nodes": 2}}, {"cpus": 1}, (2, 2, 1)),
        ("batch", {"batch": {"least_nodes": 2}}, {"cpus": 8}, (8, 2, 4)),
        ("batch", {"batch": {"least_nodes": 2}}, {"cpus": 1, "node_count": 1, "max_nodes": 1}, (1, 1, 0)),
        ("batch", {"batch": {"least_nodes": 2}}, {"cpus": 4, "node_count": 1, "max_nodes": 3}, (4, 2, 2)),
        ("batch", {"batch": {"most": {"MaxCPUsPerNode": 2}}}, {"cpus": 2}, (2, 0, 0)),
        ("batch", {"batch": {"most": {"MaxCPUsPerNode": 2}}}, {"cpus": 4}, (4, 2, 2)),
        ("batch", {"batch": {"most": {"MaxCPUsPerNode": 2}}}, {"cpus": 5}, (5, 3, 0)),
        # As Slurm 24.11 shows one that states none.
        ("batch", {"batch": {"most": {"MaxCPUsPerNode": 2}}},
         {"cpus": 4, "node_count": 1, "max_nodes": 1}, (4, 2, 2)),
        # fg asks for nothing, so that the job may lie on one node there; in batch it is kept out.
        ("batch,fg", {"batch": {"least_nodes": 2}}, {"cpus": 4}, (4, 0, 0)),
    ],
)  # fmt: skip
def test_what_partitions_ask_of_a_job_that_states_no_number_of_nodes(
    partition: str, bounds: Any, fields: Any, shape: tuple[int, int, int]
) -> None:
    partitions = {**PARTITIONS, **{name: replace(PARTITIONS[name], **each) for name, each in bounds.items()}}
    record = {**pending(partition=partition), "node_count": 0, "max_nodes": 0, "tasks_per_node": 0, **fields}
    record |= {"tasks": fields["cpus"], "cpus_per_task": 1}
    data = json.dumps({"jobs": [record]}).encode()
    request = only(reader.read_jobs(data, NOW, SITE, partitions, NODES, set())).job.request
    assert (request.processors, request.nodes, request.processors_per_node) == shape


def test_which_qos_lift_what_partitions_bound() -> None:
    text = "normal|\nlong|PartitionTimeLimit,DenyOnLimit\nwide|PartitionMinNodes,PartitionMaxNodes\nodd\n"
    lifted = reader.read_lifted(text)
    assert lifted == (("max_walltime", "long"), ("min_nodes", "wide"), ("max_nodes", "wide"))
    bounded = reader.Partition("p", max_walltime=60.0).pool(lifted).bounds
    assert bounded is not None and bounded.of("long").max_walltime == 0 and bounded.of("").max_walltime == 60
    assert reader.Partition("p").pool(lifted).bounds is None


def test_what_a_partition_bounds() -> None:
    (found,) = reader.read_partitions(
        "PartitionName=p Nodes=n[1-4] MaxTime=01:00:00 MinNodes=2 MaxNodes=3 MaxCPUsPerNode=8 "
        "MaxMemPerNode=1000 State=UP"
    ).values()
    assert found.pool().bounds == PoolBounds(3600.0, 2, 3, 8, 1000 * MIB)
    (free,) = reader.read_partitions(
        "PartitionName=p Nodes=n[1-4] MaxTime=UNLIMITED MinNodes=0 MaxNodes=UNLIMITED "
        "MaxCPUsPerNode=UNLIMITED MaxMemPerNode=UNLIMITED State=UP"
    ).values()
    assert free.pool().bounds is None


def components(**leader: Any) -> list[dict[str, Any]]:
    """A heterogeneous job of three components that is held for headway."""
    common = {
        "state_reason": "JobHeldAdmin", "priority": 0, "het_job_id": 7, "het_job_id_set": "7-9",
        "admin_comment": "headway:held", "job_state": "PENDING", "partition": "batch",
    }  # fmt: skip
    own = [
        {"job_id": 7, "het_job_offset": 0, "cpus": 1, "tasks": 1, **leader},
        {"job_id": 8, "het_job_offset": 1, "cpus": 2, "tasks": 2, "excluded_nodes": "node4"},
        {"job_id": 9, "het_job_offset": 2, "cpus": 4, "tasks": 4},
    ]
    return [pending(**{**common, **each}) for each in own]


def test_a_heterogeneous_job_is_one_job_of_several_parts() -> None:
    found = read(*reversed(components()))
    job = only(found)
    assert (job.job.id, job.job.held, job.job.request.processors) == ("7", False, 7)
    assert [part.processors for part in job.job.request.parts] == [1, 2, 4]
    detail = found.details["7"]
    assert detail.managed and detail.held and detail.record == "7"
    assert [(record, part.excluded) for record, part in detail.parts] == [
        ("7", ()), ("8", ("node4",)), ("9", ()),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"partition": "fg"}, "in several partitions (batch, fg)"),
        ({"resv_name": "r"}, "name different reservations"),
        ({"job_state": "CANCELLED"}, "lists only some components"),
        ({"features": "a*2"}, "its component 1: its constraint"),
        ({"state_reason": "JobHeldUser"}, "its component 1: held by its user"),
    ],
)
def test_a_heterogeneous_job_that_cannot_start_together(change: dict[str, Any], why: str) -> None:
    first, second, third = components()
    site = reader.Site(managed=("batch", "fg"))
    job = only(read(first, {**second, **change}, third, site=site))
    assert job.job.held and why in job.reason
    if "job_state" in change:
        assert only(read(first, third)).reason == job.reason


@pytest.mark.parametrize("qos", ["", "(null)", None])
def test_where_slurm_starts_no_job_without_a_qos_nobody_does(qos: str | None) -> None:
    site = reader.Site(managed=("batch",), needs_qos=True)
    job = only(read(pending(qos=qos), site=site))
    assert job.job.held and "no QOS" in job.reason
    assert not only(read(pending(qos="normal"), site=site)).job.held
    assert not only(read(pending(qos=qos))).job.held


def test_without_the_backfill_scheduler_nobody_starts_heterogeneous_jobs() -> None:
    job = only(read(*components(), site=reader.Site(managed=("batch",), backfills=False)))
    assert job.job.held and "with sched/backfill and bf_interval=1" in job.reason


def test_a_component_that_is_not_held_is_held_with_the_others() -> None:
    first, second, third = components()
    found = read(first, {**second, "priority": 5, "state_reason": "None"}, third)
    assert not found.details["7"].held and only(found).job.id == "7"


def test_components_that_run_are_one_job_that_runs() -> None:
    ran = {**RECORDS[7], "het_job_id": 7, "het_job_id_set": "7-8", "array_job_id": 0}
    first, second = {**ran, "job_id": 7, "het_job_offset": 0}, {**ran, "job_id": 8, "het_job_offset": 1}
    job = only(read(second, first))
    one = only(read({**RECORDS[7], "array_job_id": 0}))
    assert (job.state, job.job.id, len(job.job.request.parts)) == (one.state, "7", 2)
    assert job.placement == (*one.placement, *one.placement)


def test_where_a_leader_was_sent_is_not_what_its_user_excluded() -> None:
    own = marker.Pin(nodes=("node2",), placement=(("node2", 2),))
    pin = marker.Pin(nodes=("node4",), placement=(("node4", 1),), excluded=(("node3",), ("node4",), ()))
    assert marker.parse(pin.text()) == pin
    released = {"priority": 9, "state_reason": "None"}
    leader = {"admin_comment": pin.text(), "excluded_nodes": "node[1-3]"}
    first, second, third = components(**leader, **released)
    second |= {"admin_comment": own.text(), "required_nodes": "node2", "priority": 9, "state_reason": "None"}
    third |= {"admin_comment": marker.Pin(nodes=("node1",), placement=(("node1", 4),)).text()}
    third |= {"required_nodes": "node1", "priority": 9, "state_reason": "None"}
    job = only(read(first, second, third))
    assert job.releasing and job.pinned == (("node4", 1), ("node2", 2), ("node1", 4))
    assert [part.excluded_nodes for part in job.job.request.parts] == [("node3",), ("node4",), ()]
    # What is asked of the leader is asked of all: headway died before it gave the others theirs back.
    second |= {"admin_comment": pin.text(), "excluded_nodes": "node[1-3]", "required_nodes": ""}
    found = read({**first, "priority": 0}, second, third)
    assert found.details["7"].parts[1][1].excluded == ("node4",)
    assert found.details["7"].pin is not None
    # Somebody has changed the list since.
    first["excluded_nodes"] = "node4"
    assert found.details["7"].parts[0][1].excluded == ("node3",)
    assert read(first, second, third).details["7"].parts[0][1].excluded == ("node4",)


def test_the_elements_of_an_array() -> None:
    found = read(pending(job_id=10, array_job_id=10, array_task_string="0-9:3,20%3", array_max_tasks=3))
    assert list(found.jobs) == ["10_0", "10_3", "10_6", "10_9", "10_20"]
    assert [job.job.held for job in found.jobs.values()] == [False] * 3 + [True] * 2
    assert found.jobs["10_3"].job.array_id == "10" and found.jobs["10_3"].job.array_index == 3
    assert found.details["10_3"].record == "10"


def test_only_so_many_elements_of_an_array() -> None:
    notes: set[str] = set()
    site = reader.Site(managed=("batch",), array_limit=5)
    found = read(pending(job_id=10, array_job_id=10, array_task_string="0-40000"), site=site, notes=notes)
    assert len(found.jobs) == 5
    assert any("more than 5" in note for note in notes)


def test_a_pin_of_ours_is_not_the_users_wish() -> None:
    pin = marker.Pin(
        nodes=("node1", "node2"), asked=("node1",), least=0, most=0, placement=(("node1", 4), ("node2", 4))
    )
    record = pending(required_nodes="node[1-2]", admin_comment=pin.text(), max_nodes=2, restart_cnt=0)
    job = only(read(record))
    assert not job.releasing and job.pinned == pin.placement
    assert (job.job.request.required_nodes, job.job.request.nodes) == (("node1",), 0)
    assert only(read({**record, "priority": 7, "state_reason": "None"})).releasing
    assert not only(read({**record, "priority": 7, "restart_cnt": 1})).releasing
    assert only(read({**record, "required_nodes": "node3"})).job.request.required_nodes == ("node3",)


def test_a_marker_says_what_it_was_given() -> None:
    pin = marker.Pin(("b2", "a1"), ("a1",), 1, 4, (("b2", 3), ("a1", 1)), 2)
    assert marker.parse(pin.text()) == marker.Pin(("a1", "b2"), ("a1",), 1, 4, (("a1", 1), ("b2", 3)), 2)
    own = marker.Pin(("a1",), reserved=True)
    assert marker.parse(own.text()) == own
    for text in ("", "headway:held", "headway:pin=n[;asked=", "headway:pin=n1;nodes=x-y", "ours"):
        assert marker.parse(text) is None


def test_nodes_and_why_they_take_no_jobs() -> None:
    node = NODES.nodes["node1"]
    assert (node.processors, node.memory, node.gres) == (4, 4000 * MIB, (("gpu", 2),))
    assert (node.features, node.pools) == (("fast", "ib"), ("batch", "parked", "closed"))
    assert {name: n.reason for name, n in NODES.nodes.items() if not n.available} == {
        "node6": "drained: disk errors",
        "node8": "down: power supply",
    }


def test_nodes_from_text_are_the_same() -> None:
    text = (FIXTURES / "show-nodes-oneline.txt").read_text()
    assert reader.read_nodes_text(text, SITE, set()).nodes == NODES.nodes


def test_unknown_states_are_tolerated_and_noted() -> None:
    notes: set[str] = set()
    document = {"nodes": [
        {"name": "n1", "state": ["IDLE", "SPARKLING"], "cpus": 4, "real_memory": 100},
        {"name": "n2", "state": ["MELTED"], "cpus": 4},
    ]}  # fmt: skip
    nodes = reader.read_nodes(json.dumps(document).encode(), SITE, notes).nodes
    assert nodes["n1"].available and not nodes["n2"].available
    assert any("SPARKLING" in note for note in notes)
    job = only(read({**RECORDS[7], "job_state": "LEVITATING"}, notes=notes))
    assert job.state == "running"
    assert any("LEVITATING" in note for note in notes)


@pytest.mark.parametrize(
    ("flag", "power"),
    [("POWERED_DOWN", "asleep"), ("POWERING_UP", "waking"), ("POWERING_DOWN", "falling asleep")],
)
def test_power_states(flag: str, power: str) -> None:
    document = {"nodes": [{"name": "n1", "state": "idle", "state_flags": [flag], "cpus": 4}]}
    found = reader.read_nodes(json.dumps(document).encode(), SITE, set())
    assert found.power == {"n1": power} and not found.nodes["n1"].available


def test_partitions() -> None:
    assert (PARTITIONS["batch"].max_walltime, PARTITIONS["batch"].default_walltime) == (86400, 3600)
    assert PARTITIONS["batch"].nodes == tuple(f"node{n}" for n in range(1, 9))
    assert [name for name, p in PARTITIONS.items() if not p.open] == ["parked", "closed"]


def test_reservations() -> None:
    notes: set[str] = set()
    text = (FIXTURES / "show-reservations-oneline.txt").read_text()
    text += text.splitlines()[0].replace("ded1", "headway_exam") + "\n"
    found = reader.read_reservations(text, notes)
    assert list(found) == ["ded1", "act1", "maint", "lic1", "core1", "exam"]
    assert (found["ded1"].start, found["ded1"].end) == (1795331000, 1795345400)
    assert (found["ded1"].users, found["core1"].accounts) == (("alice", "carol"), ("test",))
    assert found["exam"].ours and not found["ded1"].ours
    assert found["exam"].job_id == ""
    assert found["lic1"].licences == (("matlab", 2),) and not found["lic1"].nodes
    assert notes == set()


@pytest.mark.parametrize("name", ["ctld-down-squeue-json"])
def test_an_outage_with_status_0_is_an_outage(name: str) -> None:
    answer = json.loads((FIXTURES / "errors" / f"{name}.json").read_text())
    assert answer["rc"] == 0
    with pytest.raises(Failure, match="Failed while looking for jobs"):
        reader.decode(answer["stdout"].encode(), "the listing of jobs", set())


@pytest.mark.parametrize("data", [b"", b"{", b"slurm_load_jobs error", b'{"jobs": 3}', b"[]", b"\xff\xfe"])
def test_nonsense_is_a_failure(data: bytes) -> None:
    with pytest.raises(Failure, match="not the expected JSON"):
        reader.decode(data, "the listing of jobs", set())


def test_bytes_that_a_user_gave_and_that_are_no_text_are_replaced() -> None:
    data = b'{"jobs": [{"job_id": 1, "name": "caf\xe9", "comment": "x\xff"}, {"job_id": 2}]}'
    jobs = reader.decode(data, "the listing of jobs", set()).jobs
    assert jobs is not None and next(job.name for job in jobs) == "caf\ufffd"
    assert len(jobs) == 2


def test_gres_texts() -> None:
    assert reader.gres("gpu:a100:4(S:0-1),shard:8") == (("gpu", 4), ("gpu:a100", 4), ("shard", 8))
    assert reader.gres("gres:gpu:1") == reader.gres("gres/gpu=1") == (("gpu", 1),)
    assert reader.gres("craynetwork:4K") == (("craynetwork", 4096),)


def test_how_jobs_ended_from_accounting() -> None:
    lines = (FIXTURES / "sacct-long.txt").read_text().splitlines()
    head = lines[0].split("|")
    at = [head.index(key) for key in ("JobID", "State", "ExitCode", "Start", "End", "NodeList")]
    text = "\n".join("|".join(line.split("|")[i] for i in at) for line in lines[1:])
    endings = reader.read_sacct(text)
    assert endings["5"].outcome == "cancelled" and endings["2"].exit_code == 3
    assert endings["33"].outcome == "node failure" and endings["9_1"].state == "running"
    assert endings["3"].end_time == 1795244558


def test_how_jobs_ended_from_scontrol() -> None:
    endings = reader.read_job_text((FIXTURES / "show-jobs-oneline.txt").read_text())
    assert endings["1"].outcome == "timed out" and endings["9_2"].state == "running"


@pytest.mark.parametrize(
    ("comment", "attributes"),
    [
        ("headway:dedicated", {"requested_start": NOW + 500}),
        ("headway:malleable", {"malleable": True}),
        ("headway:moldable", {"moldable": True}),
        ("headway:moldable=2,malleable", {"moldable": 2, "malleable": True}),
        (
            "headway:job=film7,stage=2,reward=10,length=5400",
            {"window": {"job": "film7", "stage": 2, "reward": 10.0, "length": 5400.0}},
        ),
        # What is damaged is kept, for whoever says what is wrong with it.
        ("headway:job=x,stage=two", {"window": {"job": "x", "stage": "two"}}),
        ("headway:dedicated,malleable", {"requested_start": NOW + 500, "malleable": True}),
        ("headway:unknown", {"unread": ["unknown"]}), ("dedicated", {"comment": "dedicated"}), ("", None),
        ("headway:malleable scopred:app=ft;N=3", {"malleable": True, "comment": "scopred:app=ft;N=3"}),
    ],
)  # fmt: skip
def test_a_users_comment_marks_dedicated_and_malleable_jobs_and_the_rest_is_handed_on(
    comment: str, attributes: dict[str, Any] | None
) -> None:
    job = only(read(pending(comment=comment, eligible_time=int(NOW) + 500))).job
    assert job.attributes == attributes
    assert job.begin_time == NOW + 500


@pytest.mark.parametrize(
    ("nice", "attributes"),
    [
        (5, {"nice": 5}),
        (-3, {"nice": -3}),
        (0, None),
        (None, None),
        # As Slurm 22.05 writes -500, -1 and -2.
        (4294966796, {"nice": -500}),
        (4294967295, {"nice": -1}),
        (4294967294, {"nice": -2}),
        # No number of 32 bits: Slurm's word for "not set" in a wider field.
        (0xFFFFFFFFFFFFFFFE, None),
    ],
)
def test_how_nice_a_job_is_is_an_attribute(nice: int | None, attributes: dict[str, Any] | None) -> None:
    assert only(read(pending(nice=nice))).job.attributes == attributes


@pytest.mark.parametrize(
    ("name", "reservation"),
    [("headway_job_15", ""), ("headway_job_16", "job_16"), ("headway_r1", "r1"), ("exam", "exam"), ("", "")],
)
def test_the_reservation_that_headway_put_a_job_into_is_not_its_users(name: str, reservation: str) -> None:
    assert only(read(pending(resv_name=name))).job.reservation == reservation


def test_a_dedicated_job_whose_begin_time_slurm_forgot_is_due() -> None:
    job = only(read(pending(comment="headway:dedicated", eligible_time=0))).job
    assert job.attributes == {"requested_start": RECORDS[15]["submit_time"]}


@pytest.mark.parametrize("seed", range(3))
def test_the_place_of_a_job_in_the_listing_counts_for_nothing(jobs: reader.Jobs, seed: int) -> None:
    """At a first look, such as after a restart, elements of begun arrays stand elsewhere than before."""
    mixed = read(*random.Random(seed).sample(list(RECORDS.values()), len(RECORDS)))
    assert mixed == jobs
    assert list(diff(None, Snapshot(NOW, mixed.jobs))) == list(diff(None, Snapshot(NOW, jobs.jobs)))
