"""The experiments on elastic job bundling in small: forked runs are whole runs, each table has claims."""

import numpy as np
import pytest

from headway.emulation import emulate
from headway.experiment.reproduction import Context
from headway.experiment.statistics import Interval
from headway.model import ClusterDescription
from headway.plugins import Catalogue, PluginConfig
from headway_plugins.reproductions.ejb import EjbReproduction, change, inversions, load
from headway_plugins.reproductions.ejb_single import run_singles


def test_the_interval_of_a_mean_difference():
    before = np.full(6, 100.0)
    found = change(before, before + np.array([-10, -20, -5, -40, 0, -15]))
    assert (found.mean, found.low, found.high) == pytest.approx((-15, -26.316, -3.684), abs=1e-3)
    assert change(np.zeros(3), np.ones(3)) == Interval(0.0, 0.0, 3)


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
    context = Context(
        out=tmp_path, seeds=(1, 2), workers=1, traces=trace_dir, on_plan=lambda name, count: None,
        on_done=lambda count: None, rows=[],
    )  # fmt: skip
    claims = EjbReproduction(names=["KTH"], targets=5, limit=600).run(context)
    where = {claim.where for claim in claims if claim.holds != "not run"}
    assert where == {
        "Table 3, KTH", "Table 4, KTH", "Table 5, KTH", "Table 6, KTH", "Figure 7, KTH", "Figure 8, KTH",
        "Figure 10, KTH", "Figure 11, KTH", "Section 4, KTH",
    }  # fmt: skip
    assert {claim.where for claim in claims if claim.holds == "not run"} == {
        "Tables 3 to 6, CTC", "Tables 3 to 6, SDSC", "Tables 3 to 6, BLUE", "Figure 12",
    }  # fmt: skip
    assert [name for name, _ in context.rows] == ["all-elastic-KTH"]
