"""Campaigns in which starts take time: so many seconds, or as long as they took on a real cluster."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from headway.errors import UserError
from headway.experiment.campaign import select, tasks_of
from headway.experiment.definition import load_campaign
from headway.experiment.planned_starts import RealCluster, encoded
from headway.experiment.record import files_of
from headway.journal.latencies import Latencies
from headway.plugins import Catalogue

MEASURED = Latencies((40.0, 60.0), (1.0,))


def written(folder: Path, latencies: list[object], real: RealCluster | None = None) -> Path:
    plan = {
        "processors": 64,
        "policies": ["easy"],
        "workloads": [{"label": "m", "model": "month", "options": {"days": 1}, "latencies": latencies}],
        "seeds": 1,
    }
    if real is not None:
        (folder / "cluster.json").write_text(encoded(real))
        plan["method"] = {"measured": "cluster.json"}
    file = folder / "campaign.yaml"
    file.write_text(yaml.safe_dump(plan))
    return file


def test_each_workload_is_there_once_with_each(tmp_path):
    plan = load_campaign(written(tmp_path, [0, 5, "measured"], RealCluster("site", 1.0, MEASURED)))
    found = {one.label: one.latencies for one in plan.scenarios}
    assert found == {"m": None, "m, starts of 5 s": Latencies((5.0,)), "m, measured latencies": MEASURED}
    assert (tmp_path / "cluster.json").resolve() in files_of(plan, Catalogue()).others


def test_starts_that_take_time_are_waited_for(tmp_path):
    plan = load_campaign(written(tmp_path, [0, 5, "measured"], RealCluster("site", 1.0, MEASURED)))
    rows = [row for task in tasks_of(plan) for row in task.run(*task.arguments)]
    none, five, real = (select(rows, "mean wait", scenario=one.label)[0] for one in plan.scenarios)
    assert five >= none + 5
    assert real >= none + 40


@pytest.mark.parametrize(
    ("latencies", "real", "says"),
    [
        ([-1], None, r"workloads\[0\].latencies"),
        (["often"], None, r"workloads\[0\].latencies"),
        ([601], None, r"workloads\[0\].latencies"),
        (["measured"], None, r"latencies: expected a file with latencies under method.measured .*found none"),
        (["measured"], RealCluster("site"), r"found one without any \(site\)"),
    ],
)
def test_others_are_refused(tmp_path, latencies, real, says):
    with pytest.raises(UserError, match=says):
        load_campaign(written(tmp_path, latencies, real))


def test_a_file_that_is_gone_is_named(tmp_path):
    file = written(tmp_path, [0], RealCluster("site"))
    (tmp_path / "cluster.json").unlink()
    with pytest.raises(UserError, match=r"campaign.yaml: method.measured: .*cluster.json: expected a file"):
        load_campaign(file)
