"""``headway reproduce grid-workload``: what the printed tables say, and a small run."""

from __future__ import annotations

from io import BytesIO

import pytest

from headway.errors import UserError
from headway.experiment.reproduction import Context
from headway.workload import read_swf, read_trace
from headway_plugins.grid.lpc import GROUPS
from headway_plugins.reproductions.grid_workload import (
    LOG,
    GridWorkloadReproduction,
    printed_claims,
    site_claims,
)


def test_w27_the_printed_tables_say_how_many_processors_each_group_keeps_busy():
    flows = {group.name: group.jobs * group.mean_run / (280 * 86400) for group in GROUPS.values()}
    assert flows == pytest.approx(
        {"Biomed": 24.2, "Dteam": 0.867, "LHCb": 0.832, "Atlas": 4.31, "Dzero": 0.0117}, rel=3e-3
    )
    (claim,) = [claim for claim in printed_claims() if claim.where == "offered flow"]
    assert "21.6 % of 140" in claim.measured


def test_what_the_printed_tables_say_of_each_other():
    holds = {claim.where: claim for claim in printed_claims()}
    assert [holds[name].holds for name in ("G1", "G3", "G4", "G5", "G9")] == ["yes"] * 5
    wt = holds["WT, groups and queues"]
    assert wt.holds == "in part" and "lpc-biomed does not: 1.33e-06" in wt.measured
    assert holds["WT"].holds == "no"
    assert "Test 373.6 s above 164.1 s; Short 1230.5 s above 886.0 s" in holds["Table 1"].measured
    assert "Dzero 77 d" in holds["280 days"].measured
    assert holds["flow shares"].measured == "of 140 processors nobody is cut"
    assert holds["flow shares, 20 processors"].measured.startswith("Biomed 14, Dteam 0.867")


def test_acceptance_9_the_sites_own_log_is_recomputed(trace_dir):
    log = next(iter(sorted(trace_dir.glob(f"{LOG}*.swf*"))), None)
    if log is None:
        pytest.skip(f"needs the log {LOG} of the Parallel Workloads Archive in {trace_dir}")
    claims = {claim.where: claim.measured for claim in site_claims(read_trace(log))}
    assert len(claims) == 10 and all(": mean_runtime" in said for said in claims.values())


def test_acceptance_9_in_small_each_group_and_queue_of_a_log_is_a_line():
    text = "\n".join(
        f"{at + 1} {60 * at} {at} {10 + at} 1 -1 -1 1 100 -1 1 1 {1 + at % 2} -1 {at % 3} -1 -1 -1"
        for at in range(10)
    )
    claims = {claim.where: claim.measured for claim in site_claims(read_swf(BytesIO(text.encode())))}
    assert set(claims) == {"group 1", "group 2", "queue 0", "queue 1", "queue 2"}
    assert claims["group 1"].startswith("5 jobs: mean_runtime 14, ")


def test_a_small_run_has_a_verdict_for_each_claim(tmp_path):
    context = Context(tmp_path, (1, 2), 1, None, lambda name, count: None, lambda count: None, [])
    claims = GridWorkloadReproduction(jobs="300").run(context)
    assert {claim.holds for claim in claims} <= {"yes", "no", "in part", "not run", "-"}
    assert [name for name, _ in context.rows] == ["dry-runs"]
    assert len(context.rows[0][1]) == 2 * (3 * 2 + 1)
    assert "LPC-EGEE-2004" in next(claim.measured for claim in claims if claim.where == "section 3")


@pytest.mark.parametrize("jobs", ["none", "5", "10000000"])
def test_refuses_another_number_of_jobs(jobs):
    with pytest.raises(UserError, match="--set jobs"):
        GridWorkloadReproduction(jobs=jobs)
