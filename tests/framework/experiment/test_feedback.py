"""Campaigns in which submissions react, beside the open replay."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from headway.emulation import emulate
from headway.errors import UserError
from headway.experiment.campaign import drawn, select, workload_facts
from headway.experiment.definition import load_campaign
from headway.experiment.execution import run_campaign
from headway.experiment.measured import aligned, observed
from headway.model import ClusterDescription
from headway.plugins import Catalogue, PluginConfig
from headway.workload.jobs import Follows

#: User 1: a job of all processors, then a small one 60 s after its end, which had waited 10 s; user 2: a wide
#: one; user 3: a small one while that waits.
TRACE = """\
; MaxProcs: 4
; UnixStartTime: 1025481600
; TimeZoneString: Europe/Stockholm
1 0 10 100 4 -1 -1 4 200 -1 1 1 1 -1 -1 -1 -1 -1
2 20 200 300 4 -1 -1 4 400 -1 1 2 1 -1 -1 -1 -1 -1
3 30 10 50 1 -1 -1 1 60 -1 1 3 1 -1 -1 -1 -1 -1
4 170 10 40 1 -1 -1 1 60 -1 1 1 1 -1 -1 -1 -1 -1
"""


@pytest.fixture
def plan(tmp_path: Path):
    (tmp_path / "four.swf").write_text(TRACE)
    file = tmp_path / "campaign.yaml"
    file.write_text(
        "processors: 4\npolicies: [fcfs, easy]\nseeds: 1\nmethod: {warmup: none, cooldown: none}\n"
        "workloads: [{label: four, trace: four.swf, feedback: chains, arrival_factors: [1, 2]}]\n"
    )
    return load_campaign(file)


def test_chains_are_run_beside_the_open_replay(plan):
    assert [(s.label, s.feedback, s.x) for s in plan.scenarios] == [
        ("four", "", 1), ("four", "", 2), ("four, chains", "chains", 1), ("four, chains", "chains", 2),
    ]  # fmt: skip
    rows = run_campaign(plan)
    # FCFS, open: starts at 0, 100, 400, 400. In chains job 4 comes at 100 + 60: the same order.
    assert select(rows, "mean wait", scenario="four", variant="fcfs", x=1) == [(0 + 80 + 370 + 230) / 4]
    assert select(rows, "mean wait", scenario="four, chains", variant="fcfs", x=1) == [
        (0 + 80 + 370 + 240) / 4
    ]
    # Only those that follow nobody come later: 2 at 40, 3 at 60, 4 still 60 s after the end of the first.
    assert select(rows, "mean wait", scenario="four, chains", variant="fcfs", x=2) == [
        (0 + 60 + 340 + 240) / 4
    ]
    assert select(rows, "mean wait", scenario="four", variant="fcfs", x=2) == [(0 + 60 + 340 + 60) / 4]


def test_the_facts_say_how_many_jobs_follow_others(plan):
    catalogue = Catalogue()
    facts = [workload_facts(one, 1, drawn(one, 1, catalogue)) for one in plan.scenarios]
    assert [(one.following, one.inferred) for one in facts[::2]] == [(0.0, False), (0.25, True)]


def test_waits_in_prime_time_are_those_of_the_logs_own_clock(plan):
    # The trace begins on a Monday at 2 h.
    rows = run_campaign(plan)
    assert np.isnan(rows[0].values["mean wait prime time"])
    assert rows[0].values["mean wait other time"] == rows[0].values["mean wait"]


def test_runs_are_measured_on_the_same_jobs_in_the_order_of_the_workload(plan):
    jobs = drawn(plan.scenarios[0], 1, Catalogue()).workload.jobs

    def course(chains):
        result = emulate(
            ClusterDescription.flat(4), jobs, [PluginConfig("fcfs")], Catalogue(), label="fcfs", chains=chains
        )
        return observed(result), [job.row for job in result.jobs]

    # Job 2 comes 500 s after the first has ended.
    courses, rows = zip(course({"2": Follows("1", 500.0)}), course({}), strict=True)
    assert rows[0] == [0, 2, 3, 1]
    found = aligned(courses, rows)
    assert [one.columns.submit.tolist() for one in found] == [[0, 600, 30, 170], [0, 20, 30, 170]]
    found = aligned(courses, [rows[0], [0, 1, 3, 9]])
    assert [one.columns.submit.tolist() for one in found] == [[0, 600, 170], [0, 20, 30]]


def test_a_model_has_no_users_who_react(tmp_path: Path):
    file = tmp_path / "campaign.yaml"
    file.write_text("processors: 4\npolicies: [fcfs]\nworkloads: [{model: month, feedback: chains}]\n")
    with pytest.raises(UserError, match="feedback: a trace, which says when jobs ended; found a model"):
        load_campaign(file)
