"""The experiments of the paper on GUR in small: each claim is there, and rows are taken up again."""

from pathlib import Path

import pytest

from headway.errors import UserError
from headway.experiment.campaign import read_rows
from headway.experiment.reproduction import Context
from headway_plugins.reproductions import gur
from headway_plugins.reproductions.gur import GurReproduction, measures
from headway_plugins.reproductions.gur_runs import ORDERS, run_demonstration, run_queues

PAPERS = Path(__file__).parents[3] / "docs" / "papers"


def context(out, keep=False, traces=None):
    return Context(
        out=out, seeds=(1, 2), workers=1, traces=traces, on_plan=lambda name, count: None,
        on_done=lambda count: None, rows=[], keep=keep,
    )  # fmt: skip


@pytest.mark.long
def test_every_claim_is_judged_and_rows_are_kept(tmp_path, monkeypatch):
    paper = GurReproduction(jobs=60, metajobs=8, slacks=(0, 6), queues=20)
    claims = paper.run(context(tmp_path))
    assert [claim.where for claim in claims] == ["E1", "E1", "E2", "E3", "E3", "E3", "E3", "E4", "E5"]
    holds = [claim.holds for claim in claims]
    assert (holds[0], holds[2:4], holds[6:]) == ("yes", ["yes", "yes"], ["yes", "yes", "not run"])
    assert (tmp_path / "metajobs.png").is_file()
    assert "| requests to sites |" in (tmp_path / "measures.md").read_text()
    monkeypatch.setattr(gur, "run_background", None)
    monkeypatch.setattr(gur, "run_queues", None)
    assert paper.run(context(tmp_path, keep=True)) == claims


def test_the_published_division():
    (row,) = run_demonstration()
    assert row.values == {"DataStar": 10, "Linux": 1, "Purdue": 1, "start": 1100012400}


@pytest.mark.parametrize("order", ORDERS)
def test_reservations_delay_no_job_as_long_as_the_order_stays(order):
    (row,) = run_queues(order, 1, 60)
    assert row.values["accepted"] > 40
    assert (row.values["delayed jobs"] == 0) == (order == "fixed order")


@pytest.mark.parametrize("settings", [{"jobs": 1}, {"metajobs": 1}, {"queues": 1}])
def test_settings_that_cannot_be(settings):
    with pytest.raises(UserError, match="expected at least 2, found 1"):
        GurReproduction(**settings)


def test_a_trace_that_is_not_there_is_said(tmp_path):
    with pytest.raises(UserError, match="there is no trace 'KTH' in the directory of --traces"):
        GurReproduction(trace="KTH").run(context(tmp_path, traces=tmp_path))


def test_the_measures_of_the_page_are_those_of_the_rows():
    table = measures(read_rows(PAPERS / "gur" / "metajobs.csv"))
    assert (PAPERS / "gur" / "measures.md").read_text() == table
