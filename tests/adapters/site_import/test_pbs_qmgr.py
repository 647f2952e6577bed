"""`headway import pbs`: what qmgr prints and lists, whatever its form."""

from __future__ import annotations

import pytest
from imports import broken, made, said

CONFIG = 'preemptive_sched: true ALL\npreempt_queue_prio: 150\npreempt_order: "R"\n'
TAKES = {"rules": [{"who": {"pool": ["express"]}, "whom": {"pool": ["batch"]}, "how": "requeue"}]}

PRINTED = """create queue batch
set queue batch queue_type = Execution
set queue batch Priority = 10
create queue express
set queue express queue_type = Execution
set queue express Priority = 200
"""
ON_CREATE = (
    "create queue batch queue_type=Execution, Priority=10\ncreate queue express Priority = 200,enabled=true\n"
)
SEVERAL = """create queue batch,express queue_type=e
set queue batch Priority=10
set queue express@head Priority=200
"""
LISTED = """Queue batch
    queue_type = Execution
    Priority = 10
    total_jobs = 0
    state_count = Transit:0 Queued:0 Held:0 Waiting:0 Running:0 Exiting:0 Begun
\t:0
    enabled = True
    started = True

Queue express
    queue_type = Execution
    Priority = 200

Server head
    server_state = Active
    default_queue = batch
"""
QSTAT = LISTED.replace("Queue ", "Queue: ").replace("Server ", "Server: ")


@pytest.mark.parametrize("qmgr", [PRINTED, ON_CREATE, SEVERAL, LISTED, QSTAT])
def test_queues_and_their_priorities_in_all_forms(qmgr: str) -> None:
    found = made("pbs", qmgr=qmgr, config=CONFIG)
    assert said(found) == []
    assert found.options["queues"] == ["batch", "express"]
    assert found.pools == {"batch": {"tier": 10}, "express": {"tier": 200}}
    assert found.plugins["preemption"] == TAKES


def test_a_queue_whose_name_is_refused_is_in_no_rule() -> None:
    refused = "create queue b/c\nset queue b/c Priority = 999\nset queue b/c max_run = [u:PBS_GENERIC=1]\n"
    qmgr = PRINTED + refused
    found = made("pbs", qmgr=qmgr, config=CONFIG)
    assert found.plugins["preemption"] == TAKES
    assert "limits" not in found.plugins
    assert said(found) == ["qmgr:7: expected a name of a queue (letters, digits, '_', '-', '.'), found 'b/c'"]


def test_a_queue_that_is_deleted_is_gone() -> None:
    found = made("pbs", qmgr=f"{PRINTED}delete queue express\n", config=CONFIG)
    assert found.options["queues"] == ["batch"]
    assert found.pools == {"batch": {"tier": 10}}


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (
            "set queue batch started = False",
            "queue batch: started = False is not carried over: PBS starts no job",
        ),
        ("set queue batch backfill_depth = 4", "queue batch: backfill_depth = 4 is not carried over"),
        (
            "set queue batch max_runn = [u:a=1]",
            "queue batch: max_runn is no attribute that is known here. Did you",
        ),
        (
            "set server job_sort_formula_threshold = 5",
            "server: job_sort_formula_threshold = 5 is not carried over",
        ),
        ("set sched opt_backfill_fuzzy = high", "scheduler: opt_backfill_fuzzy = high is not carried over"),
        ("create node n1 Mom=n1", "node n1: write the nodes of a dry run into emulation.nodes"),
        ("set queue batch resources_available.ncpus = 5", ""),
        ("set server managers = root@*,ann@*", ""),
        (
            "set sched default partition = p1",
            "scheduler: partition = p1 is not carried over: another scheduler",
        ),
        ("set queue batch Priority", "expected ATTRIBUTE = VALUE, found 'Priority'"),
        ("create hook h", ""),
        ("set hook h event = runjob", ""),
    ],
)
def test_an_attribute_is_carried_over_known_to_be_pbs_own_or_named(line: str, why: str) -> None:
    remarks = said(made("pbs", qmgr=PRINTED + line, config=CONFIG))
    assert [text.removeprefix("qmgr:7: ")[: len(why)] for text in remarks] == ([why] if why else [])


def test_one_line_that_cannot_be_read_costs_that_line() -> None:
    found = made("pbs", qmgr=f"{PRINTED}set queue batch Priority 30\nnonsense\n", config=CONFIG)
    assert broken(found) == [
        "qmgr:7: expected ATTRIBUTE = VALUE, found 'Priority 30'",
        "qmgr:8: expected set server, create queue and the like, found 'nonsense'",
    ]
    assert found.pools == {"batch": {"tier": 10}, "express": {"tier": 200}}


def test_priorities_of_queues_without_sched_config_are_remarked() -> None:
    """PBS serves queues by them where sched_config says by_queue; without the file nobody knows."""
    remarks = [text for text in said(made("pbs", qmgr=PRINTED)) if "by_queue" in text]
    assert [text.partition(": whether")[0] for text in remarks] == [
        "qmgr:3: queue batch: Priority = 10", "qmgr:6: queue express: Priority = 200",
    ]  # fmt: skip
    assert said(made("pbs", qmgr=PRINTED, config=CONFIG)) == []


EXPRESS = f"{PRINTED}create queue night queue_type=Execution\nset queue night Priority = 100\n"


@pytest.mark.parametrize(
    ("config", "tiers"),
    [
        ("by_queue: True ALL\n", (10, 200, 100)),
        ("by_queue: False ALL\n", (0, 0, 0)),
        ("by_queue: False ALL\npreemptive_sched: False ALL\n", (0, 0, 0)),
        ("by_queue: False ALL\npreemptive_sched: True ALL\n", (0, 200, 0)),
        ("by_queue: False ALL\npreemptive_sched: True ALL\npreempt_queue_prio: 90\n", (0, 200, 100)),
        ("by_queue: False ALL\nround_robin: True ALL\n", (10, 200, 100)),
    ],
)
def test_tiers_are_the_priorities_by_which_pbs_serves_queues(config: str, tiers: tuple[int, ...]) -> None:
    found = made("pbs", qmgr=EXPRESS, config=config)
    assert tuple(found.pools[name]["tier"] for name in ("batch", "express", "night")) == tiers
    assert f"pools:\n  batch:\n    tier: {tiers[0]}\n" in found.text("qmgr")


def test_queues_that_are_served_in_turn_have_the_order_of_that_name() -> None:
    found = made("pbs", qmgr=PRINTED, config='round_robin: True ALL\njob_sort_key: "ncpus HIGH" ALL\n')
    assert {"round-robin", "largest-first"} <= set(found.plugins)
    assert not [text for text in said(found) if "round_robin" in text]
