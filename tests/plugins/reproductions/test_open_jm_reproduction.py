"""The experiments of the paper on open job management: Table 1 and what follows from it (acceptance 3, E1 to
E5), and each further claim in small."""

import pytest

from headway.errors import UserError
from headway.experiment.reproduction import Context
from headway_plugins.reproductions import open_jm
from headway_plugins.reproductions.open_jm import (
    ANY,
    POWERS,
    SHARE,
    STAGES,
    TABLE_1,
    TOTAL,
    OpenJobManagementReproduction,
    run_at_once,
    run_table,
    workload,
)


def context(out, keep=False):
    return Context(
        out=out, seeds=(1, 2), workers=1, traces=None, on_plan=lambda name, count: None,
        on_done=lambda count: None, rows=[], keep=keep,
    )  # fmt: skip


def table(runtime):
    """The rows of Table 1 by size, for jobs that run so long."""
    return {nodes: run_table(nodes, (runtime,))[0].values for nodes in TABLE_1}


@pytest.fixture(scope="module")
def empty():
    return table(0.0)


def test_3_e1_each_row_sums_to_its_total(empty):
    for nodes, seconds in TABLE_1.items():
        assert tuple(empty[nodes][name] for name in STAGES) == seconds
        assert empty[nodes][TOTAL] == sum(seconds)


def test_3_e2_times_depend_weakly_on_the_size(empty):
    grown = [empty[2048][name] / empty[512][name] - 1 for name in (TOTAL, "boot")]
    assert grown == pytest.approx([0.37, 0.46], abs=0.005)


def test_3_e3_booting_is_the_largest_part(empty):
    shares = [row["boot"] / row[TOTAL] for row in empty.values()]
    assert shares == pytest.approx([0.510, 0.571, 0.543], abs=0.0005)


def test_3_e4_managing_resources_takes_less_than_booting(empty):
    managing = [row["prepare"] + row["halt"] for row in empty.values()]
    assert managing == [11, 12, 13]
    assert all(m < row["boot"] for m, row in zip(managing, empty.values(), strict=True))


@pytest.mark.parametrize(
    ("runtime", "shares"),
    [(300, (0.145, 0.174, 0.189)), (600, (0.078, 0.095, 0.104)), (3600, (0.014, 0.017, 0.019))],
)
def test_3_e5_the_overhead_is_small_for_long_jobs(runtime, shares):
    assert [row[SHARE] for row in table(runtime).values()] == pytest.approx(shares, abs=0.0005)


@pytest.mark.parametrize(("nodes", "runtime"), [(512, 969), (1024, 1197), (2048, 1330)])
def test_3_e5_from_when_on_it_is_below_5_percent(nodes, runtime):
    before, after = (run_table(nodes, (seconds,))[0].values[SHARE] for seconds in (runtime - 1, runtime))
    assert before > 0.05 >= after


def test_4_who_waits_for_boots_holds_the_others_up():
    ends = {stages: run_at_once(stages)[0].values[open_jm.FREE] for stages in ("loadleveler", "slurm")}
    assert ends == {"loadleveler": 284, "slurm": 310}


def test_every_claim_is_judged_and_rows_are_kept(tmp_path, monkeypatch):
    paper = OpenJobManagementReproduction(jobs=40, means=(10, 600))
    claims = paper.run(context(tmp_path))
    assert [claim.where.split(",")[0] for claim in claims] == [
        "E1", "E2", "E3", "E4", "E5", "E6", "E7", "E8", "E9", "E9",
    ]  # fmt: skip
    assert {claim.holds for claim in claims} <= {"yes", "in part", "no", "not claimed"}
    assert (tmp_path / "powers-of-two.png").is_file()
    for name in ("run_table", "run_at_once", "run_cycles"):
        monkeypatch.setattr(open_jm, name, None)
    assert paper.run(context(tmp_path, keep=True)) == claims


def test_workloads_are_the_same_for_the_same_seed_and_fit_the_machine():
    for sizes in (POWERS, ANY):
        jobs = workload(60, sizes, 50, 1)
        assert jobs == workload(60, sizes, 50, 1) != workload(60, sizes, 50, 2)
        assert all(1 <= each.job.request.processors <= 4096 for each in jobs)
        if sizes == POWERS:
            assert {each.job.request.processors for each in jobs} <= {512, 1024, 2048, 4096}


@pytest.mark.parametrize(
    ("settings", "said"),
    [({"jobs": 5}, "--set jobs: expected at least 10, found 5"),
     ({"means": ()}, "--set means: expected run times above 0 s"),
     ({"means": (0,)}, "--set means: expected run times above 0 s")],
)  # fmt: skip
def test_settings_that_cannot_be(settings, said):
    with pytest.raises(UserError, match=said):
        OpenJobManagementReproduction(**settings)
