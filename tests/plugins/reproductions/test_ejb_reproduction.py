"""The experiments on elastic job bundling in small: forked runs are whole runs, each table has claims."""

import numpy as np
import pytest

from headway.emulation import emulate
from headway.errors import UserError
from headway.experiment.reproduction import Context
from headway.experiment.statistics import Interval
from headway.model import ClusterDescription
from headway.plugins import Catalogue, PluginConfig
from headway_plugins.reproductions.ejb import EjbReproduction
from headway_plugins.reproductions.ejb_measures import WEEK, change, change_by_weeks, inversions, load
from headway_plugins.reproductions.ejb_single import run_singles


def test_the_interval_of_a_mean_difference():
    before = np.full(6, 100.0)
    found = change(before, before + np.array([-10, -20, -5, -40, 0, -15]))
    assert (found.mean, found.low, found.high) == pytest.approx((-15, -26.316, -3.684), abs=1e-3)
    assert change(np.zeros(3), np.ones(3)) == Interval(0.0, 0.0, 3)


def test_the_interval_over_weeks():
    """Ten jobs a week that gain or lose together count as one."""
    weeks = np.repeat([-30.0, 10.0, -20.0, 0.0], 10)
    before, submit = np.full(40, 100.0), np.repeat(np.arange(4) * WEEK, 10)
    by_job, by_week = change(before, before + weeks), change_by_weeks(before, before + weeks, submit)
    assert by_week.mean == by_job.mean == pytest.approx(-10)
    # As the mean of four values: standard deviation 18.257, Student's t 3.182.
    assert by_week.half == pytest.approx(29.05, abs=0.01)
    assert by_week.count == 4
    assert by_job.half < 6
    assert np.isnan(change_by_weeks(before, before + weeks, np.zeros(40)).half)


def test_inversions_are_pairs_of_which_the_later_starts_first():
    assert inversions(np.array([1.0, 2, 3, 3])) == 0
    assert inversions(np.array([4.0, 3, 2, 1])) == 6
    assert inversions(np.array([2.0, 1, 3, 2])) == 2


@pytest.mark.traces
def test_a_forked_run_is_the_whole_run_with_one_elastic_job(trace_dir):
    jobs, size = load(next(trace_dir.glob("KTH*")), 400)
    settings = {"defaults": {}, "omax 2": {"omax": 2}, "slow": {"penalty": 2.0, "migration": 600.0}}
    catalogue = Catalogue()

    def whole(options):
        configs = catalogue.enabled([PluginConfig("ejb", options)])
        return emulate(ClusterDescription.flat(size), jobs, configs, catalogue, label="ejb").jobs

    waiting = [job.job.id for job in whole({}) if len(job.members) > 1][:3]
    assert len(waiting) == 3
    found = {(each.job_id, each.setting): each for each in run_singles(size, jobs, waiting, settings, 2)}
    assert len(found) == 9
    for (job_id, setting), single in found.items():
        job = next(each for each in whole({"only": [job_id], **settings[setting]}) if each.job.id == job_id)
        assert (single.start, single.end) == (job.start_time, job.end_time)
        assert single.subjobs == max(1, len(job.members))
        assert single.migrations == job.migrations
        if job.members:
            area = sum((m.end - m.start) * m.processors for m in job.members)
            assert single.area == pytest.approx(area)


@pytest.mark.traces
def test_every_table_has_its_claims(trace_dir, tmp_path):
    planned, done = [], []
    context = Context(
        out=tmp_path, seeds=(1, 2), workers=1, traces=trace_dir,
        on_plan=lambda name, count: planned.append((name, count)), on_done=done.append, rows=[],
    )  # fmt: skip
    claims = EjbReproduction(names=["KTH"], targets=5, loads=[0.5, 2], limit=600).run(context)
    where = {claim.where for claim in claims if claim.holds != "not run"}
    assert where == {
        "Table 3, KTH", "Table 4, KTH", "Table 5, KTH", "Table 6, KTH", "Figure 7, KTH", "Figure 8, KTH",
        "Figure 10, KTH", "Figure 11, KTH", "Figure 12, KTH", "Section 6.3, KTH", "Section 6.4, KTH",
    }  # fmt: skip
    assert {claim.where for claim in claims if claim.holds == "not run"} == {
        "Tables 3 to 6, CTC", "Tables 3 to 6, SDSC", "Tables 3 to 6, BLUE",
    }  # fmt: skip
    assert [(name, len(rows)) for name, rows in context.rows] == [
        ("all-elastic-KTH", 3), ("single-KTH", 50), ("load-KTH", 4)
    ]  # fmt: skip
    assert (tmp_path / "figure12.png").is_file()
    assert dict(planned)["KTH: single elastic jobs"] == 50
    assert sum(done) == sum(count for _, count in planned)

    # Again from what is kept, but for one target: the same.
    rows = tmp_path / "single-KTH.csv"
    lines = rows.read_text().splitlines(keepends=True)
    assert len(lines) == 51
    rows.write_text("".join(lines[:-1]))
    context.keep, context.rows, context.may_run = True, [], False
    with pytest.raises(UserError, match=r"single-KTH\.csv: expected 50 rows, of which 1 are missing"):
        EjbReproduction(names=["KTH"], targets=5, loads=[0.5, 2], limit=600).run(context)
    context.rows, context.may_run = [], True
    again = EjbReproduction(names=["KTH"], targets=5, loads=[0.5, 2], limit=600).run(context)
    assert again == claims
    # And then nothing is run any more.
    context.may_run = False
    assert EjbReproduction(names=["KTH"], targets=5, loads=[0.5, 2], limit=600).run(context) == claims
    assert rows.read_text() == "".join(lines)


@pytest.mark.traces
def test_what_is_left_out_says_so(trace_dir, tmp_path):
    context = Context(
        out=tmp_path, seeds=(1, 2), workers=1, traces=trace_dir, on_plan=lambda name, count: None,
        on_done=lambda count: None, rows=[],
    )  # fmt: skip
    claims = EjbReproduction(names="KTH", targets=0, loads=[], limit=300).run(context)
    assert {(claim.where, claim.measured) for claim in claims if claim.holds == "not run"} >= {
        ("Tables 3 and 4, KTH", "left out (--set targets)"), ("Figure 12", "left out (--set loads)"),
        ("Tables 3 to 6, CTC", "left out (--set names)"),
    }  # fmt: skip
    assert [name for name, _ in context.rows] == ["all-elastic-KTH"]
