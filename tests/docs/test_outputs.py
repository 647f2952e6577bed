"""docs/outputs names every column and key that a run writes, and no other."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest
from building import alike, node_cluster, traced

from headway.emulation import emulate
from headway.energy.profiles import load_profile, with_energy
from headway.experiment.measured import measure
from headway.model import ClusterDescription
from headway.plugins import Catalogue, PluginConfig
from headway.report import write_outputs
from headway.report.study import write_study
from headway.results import RunResult
from headway.workload import Trace, to_records
from headway.workload.analysis import study

DIRECTORY = Path(__file__).parents[2] / "docs" / "outputs"
RUN, METRICS, STUDY, CAMPAIGNS = (
    (DIRECTORY / f"{name}.md").read_text(encoding="utf-8")
    for name in ("run", "metrics", "study", "campaigns")
)


def section(page: str, title: str) -> str:
    return re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)[1]


def first_column(text: str) -> list[str]:
    return re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)


@pytest.fixture(scope="module")
def run() -> RunResult:
    jobs = [traced(str(n), 3, 20, n, runtime=10 + 20 * (n % 2)) for n in range(6)]
    return emulate(
        ClusterDescription.flat(8),
        jobs,
        [PluginConfig("easy")],
        Catalogue(),
        label="easy",
        keep_decisions=True,
    )


@pytest.fixture(scope="module")
def directory(run: RunResult, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("out")
    write_outputs(run, out)
    return out


@pytest.mark.parametrize("name", ["jobs.csv", "decisions.csv", "metrics_by_class.csv"])
def test_every_column_is_documented(directory: Path, name: str) -> None:
    with open(directory / name, newline="") as stream:
        assert next(csv.reader(stream)) == first_column(section(RUN, name))


@pytest.fixture(scope="module")
def with_energy_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    cluster = with_energy(node_cluster(*alike(2, 4)), load_profile("present-day"))
    jobs = [traced("1", 3, 20), traced("2", 8, 20)]
    run = emulate(cluster, jobs, [PluginConfig("easy")], Catalogue(), label="easy")
    out = tmp_path_factory.mktemp("energy")
    write_outputs(run, out)
    return out


@pytest.mark.parametrize("name", ["jobs.csv", "power.csv", "nodes.csv"])
def test_every_column_of_energy_is_documented(with_energy_directory: Path, name: str) -> None:
    with open(with_energy_directory / name, newline="") as stream:
        assert next(csv.reader(stream)) == first_column(section(RUN, name))


def test_every_figure_of_energy_is_documented(with_energy_directory: Path) -> None:
    metrics = json.loads((with_energy_directory / "metrics.json").read_text())
    text = section(METRICS, "metrics.json")
    assert list(metrics["energy"]) == first_column(text[text.index("`energy`:") : text.index("`extra`:")])


def test_the_nodes_energy_is_that_of_the_run(with_energy_directory: Path) -> None:
    total = json.loads((with_energy_directory / "metrics.json").read_text())["energy"]["total"]
    with open(with_energy_directory / "nodes.csv", newline="") as stream:
        assert sum(float(row["energy"]) for row in csv.DictReader(stream)) == pytest.approx(total)


def test_every_system_metric_is_documented(directory: Path) -> None:
    metrics = json.loads((directory / "metrics.json").read_text())
    text = section(METRICS, "metrics.json")
    assert list(metrics["system"]) == first_column(text[text.index("`system`:") : text.index("`energy`:")])


@pytest.mark.parametrize("key", ["run", "counts", "jobs", "class_bounds"])
def test_every_other_metric_is_named(directory: Path, key: str) -> None:
    metrics = json.loads((directory / "metrics.json").read_text())
    paragraph = re.search(rf"^`{key}`:(.*?)\n\n", section(METRICS, "metrics.json"), re.MULTILINE | re.DOTALL)[
        1
    ]
    named = set(re.findall(r"`(\w+)`", paragraph))
    statistics = set(metrics["jobs"]["wait"]) if key == "jobs" else set()
    assert named == set(metrics[key]) | statistics


def test_the_metrics_of_classes_are_named(directory: Path) -> None:
    classes = json.loads((directory / "metrics.json").read_text())["classes"]
    paragraph = re.search(
        r"^`classes`:(.*?)\n\n", section(METRICS, "metrics.json"), re.MULTILINE | re.DOTALL
    )[1]
    # The second "jobs" is the section of metrics.json.
    assert set(re.findall(r"`(\w+)`", paragraph)) == set(classes) | set(classes["SW"])


def test_every_file_is_documented(directory: Path) -> None:
    titles = re.findall(r"^## (.*)$", RUN + METRICS, re.MULTILINE)
    for path in directory.iterdir():
        assert path.name in titles


def test_every_column_of_a_workloads_study_is_documented(tmp_path: Path) -> None:
    records = to_records([traced("1", 3, 20, 5, runtime=10)])
    found = study(Trace("x", fields={"MaxProcs": "8"}, records=records))
    for name, columns in found.columns.items():
        assert first_column(section(STUDY, f"{name}.csv")) == list(columns)
    assert first_column(section(STUDY, "summary.csv")) == list(found.summary)
    for path in write_study(found, tmp_path):
        assert f"`{path.name}`" in STUDY or f"## {path.name}\n" in STUDY


def test_every_metric_of_rows_is_named(run: RunResult) -> None:
    text = " ".join(section(CAMPAIGNS, "rows.csv and claims.md").split())
    for name in measure(run):
        assert f"`{name}`" in text
