"""The experiments of the paper on AnthillSched in small: each claim is there, and rows are taken up again."""

import pytest

from headway.errors import UserError
from headway.experiment.reproduction import Context
from headway_plugins.reproductions import anthillsched
from headway_plugins.reproductions.anthillsched import AnthillReproduction


def context(out, keep=False):
    return Context(
        out=out, seeds=(1, 2, 3), workers=1, traces=None, on_plan=lambda name, count: None,
        on_done=lambda count: None, rows=[], keep=keep,
    )  # fmt: skip


@pytest.mark.long
def test_every_claim_is_judged_and_rows_are_kept(tmp_path, monkeypatch):
    paper = AnthillReproduction(jobs=15, queue=3, processors=(8, 16))
    claims = paper.run(context(tmp_path))
    where = list(dict.fromkeys(claim.where.split(",")[0] for claim in claims))
    assert where == [
        "E1", "E2", "E3", "E4", "E5", "E6", "Table 1", "Table 2", "heavy", "Tables 1 and 2",
    ]  # fmt: skip
    assert {claim.holds for claim in claims} <= {"yes", "no", "in part", "fitted", "not run"}
    assert (tmp_path / "processors.png").is_file()
    monkeypatch.setattr(anthillsched, "run_emulation", None)
    monkeypatch.setattr(anthillsched, "run_queue", None)
    assert paper.run(context(tmp_path, keep=True)) == claims


@pytest.mark.parametrize("settings", [{"jobs": 1}, {"queue": 1}, {"processors": (8,)}])
def test_settings_that_cannot_be(settings):
    with pytest.raises(UserError, match="expected at least 2, found 1"):
        AnthillReproduction(**settings)
