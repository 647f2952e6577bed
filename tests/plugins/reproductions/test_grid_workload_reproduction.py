"""``headway reproduce grid-workload``: what the printed tables say, and a small run."""

from __future__ import annotations

import pytest

from headway.errors import UserError
from headway.experiment.reproduction import Context
from headway.workload import read_trace
from headway_plugins.grid.lpc import GROUPS
from headway_plugins.reproductions.grid_workload import (
    LOG,
    PRINTED_GROUPS,
    PRINTED_QUEUES,
    GridWorkloadReproduction,
    compared,
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
    assert wt.holds == "in part" and "Biomed does not: 1.33e-06" in wt.measured
    assert holds["WT"].holds == "no"
    assert "Test 373.6 s above 164.1 s; Short 1230.5 s above 886.0 s" in holds["Table 1"].measured
    assert "Dzero 77 d" in holds["280 days"].measured
    assert holds["flow shares"].measured == "of 140 processors no group is cut"
    assert holds["flow shares, 20 processors"].measured.startswith("Biomed 14, Dteam 0.867")


def test_who_is_treated_best_depends_on_the_measure():
    """The sixth of the specification's errata."""
    (claim,) = [claim for claim in printed_claims() if claim.where == "best treated"]
    assert claim.holds == "in part"
    assert "mean wait Dzero (90.7 s; LHCb 217.7 s)" in claim.measured
    assert "printed WT LHCb, WT by its formula Biomed" in claim.measured


def test_the_tables_do_not_add_up_to_the_jobs_received():
    """The seventh."""
    (claim,) = [claim for claim in printed_claims() if claim.where == "waits"]
    assert "221,691 and 228,937 jobs of the 230,474 received" in claim.measured


def test_acceptance_9_the_sites_own_log_is_recomputed(trace_dir):
    log = next(iter(sorted(trace_dir.glob(f"{LOG}*.swf*"))), None)
    if log is None:
        pytest.skip(f"needs the log {LOG} of the Parallel Workloads Archive in {trace_dir}")
    claims = site_claims(read_trace(log))
    assert len(claims) == 10 and all("mean_runtime" in claim.measured for claim in claims)


def rows_of(printed, **changed):
    """The printed lines as a log would give them, in another order and without their names."""
    rows = [{"group": at, **line} for at, line in enumerate(printed.values(), 1)]
    rows[0].update(changed)
    return rows[::-1]


def test_acceptance_9_in_small_a_log_that_gives_the_printed_tables_is_said_to():
    claims = compared("group", rows_of(PRINTED_GROUPS), PRINTED_GROUPS)
    assert [claim.where for claim in claims] == [
        "group 1, Biomed", "group 2, Dteam", "group 3, LHCb", "group 4, Atlas", "group 5, Dzero",
    ]  # fmt: skip
    assert {claim.holds for claim in claims} == {"yes"}
    assert "108,197" in claims[0].paper and claims[0].measured == "all 10 figures are so"


def test_acceptance_9_in_small_deviations_are_listed():
    changed = rows_of(PRINTED_GROUPS, normalised_wait=1.333e-6, wait_sd=None, wait_cv=20.98)
    (claim, *_) = compared("group", changed, PRINTED_GROUPS)
    assert claim.holds == "in part"
    assert (
        claim.measured
        == "8 of 10 figures are so; wait_sd none for 16,398.8, normalised_wait 1.333e-06 for 1.58e-05"
    )


def test_acceptance_9_in_small_a_line_without_a_counterpart_is_not_run():
    claims = compared("queue", [], PRINTED_QUEUES)
    assert {claim.holds for claim in claims} == {"not run"}
    assert claims[0].where == "queue Short"


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
