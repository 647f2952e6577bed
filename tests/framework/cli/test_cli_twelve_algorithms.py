"""The Cloud Workload Format and presets from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headway.plugins import Catalogue, PluginConfig

TWELVE = (
    "easy", "easy-d", "easy-e", "easy-de",
    "los", "los-d", "los-e", "los-de",
    "delayed-los", "hybrid-los", "delayed-los-e", "hybrid-los-e",
)  # fmt: skip


def row(number, submit, runtime=-1, processors=-1, estimate=-1, start=-1, kind="S", amount=-1):
    fields = [-1] * 18
    fields[0], fields[1], fields[3], fields[7], fields[8] = number, submit, runtime, processors, estimate
    fields[4] = processors
    fields[10] = 1 if kind == "S" else -1
    return " ".join(map(str, [*fields, start, kind, amount]))


@pytest.fixture
def cloud(tmp_path: Path) -> Path:
    """r runs 100 s, is extended by 50 at 10; d wants 8 of 10 at 160; b of 4 runs 200 s."""
    path = tmp_path / "small.cwf"
    lines = [
        "; MaxProcs: 10",
        row(1, 0, 100, 6, 100),
        row(2, 0, 10, 8, 10, start=160),
        row(3, 1, 200, 4, 200),
        row(1, 10, kind="ET", amount=50),
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("name", TWELVE)
def test_each_of_the_twelve_runs_a_cloud_trace(headway, cloud, tmp_path, name):
    ran = headway("dry-run", "--trace", cloud, "--policy", name, "--out", tmp_path / "out")
    assert (ran.code, ran.err) == (0, "")
    rows = (tmp_path / "out" / "jobs.csv").read_text().splitlines()
    at = {key: column for column, key in enumerate(rows[0].split(","))}
    ended = {line.split(",")[0]: line.split(",") for line in rows[1:]}
    runtime = float(ended["1"][at["end_time"]]) - float(ended["1"][at["start_time"]])
    assert runtime == (150 if name.endswith("e") else 100)
    if "-d" in name or name.startswith("hybrid"):
        assert float(ended["2"][at["start_time"]]) == 160
    metrics = json.loads((tmp_path / "out" / "metrics.json").read_text())
    assert ("elastic commands" in json.dumps(metrics)) == name.endswith("e")


def test_a_run_of_a_preset_is_replayed_from_its_journal(headway, cloud):
    assert headway("dry-run", "--trace", cloud, "--policy", "hybrid-los-e", "--journal", "run.db").code == 0
    ran = headway("replay", "run.db")
    assert ran.code == 0, ran.err


def test_a_configuration_names_a_preset_like_a_plugin(headway, cloud, tmp_path):
    config = tmp_path / "site.yaml"
    config.write_text("mode: dry-run\nplugins:\n  - delayed-los-e: {max_skips: 0}\n  - first-fit\n")
    assert headway("dry-run", "-c", config, "--trace", cloud).code == 0
    config.write_text("mode: dry-run\nplugins:\n  - delayed-los-e: {max_skip: 0}\n")
    ran = headway("dry-run", "-c", config, "--trace", cloud)
    assert ran.code == 2
    assert "plugins[0]: delayed-los-e: delayed-los: max_skip: unknown key" in " ".join(ran.err.split())


def test_options_of_a_preset_go_to_its_first_plugin_and_its_own_stand():
    found = Catalogue().expanded([PluginConfig("los-de", {"lookahead": 9}, "site.yaml: plugins[0]")])
    assert [(c.name, dict(c.options)) for c in found] == [
        ("los", {"lookahead": 9}),
        ("dedicated", {"freeze": "first"}),
        ("elastic", {}),
    ]
    assert found[0].where == "site.yaml: plugins[0]: los-de"


def test_a_preset_on_the_command_line_keeps_what_the_configuration_says_of_its_plugins(
    headway, cloud, tmp_path
):
    config = tmp_path / "site.yaml"
    config.write_text("mode: dry-run\nplugins:\n  - fcfs\n  - elastic: {max_per_job: 1}\n  - first-fit\n")
    ran = headway("dry-run", "-c", config, "--trace", cloud, "--policy", "los-e", "--journal", "run.db")
    assert ran.code == 0, ran.err
    from headway.journal import Journal

    (run,) = Journal.open("run.db").runs()
    assert "max_per_job: 1" in run.info.config_text
    assert "fcfs" not in run.info.config_text


def test_presets_are_listed_and_tell_what_they_stand_for(headway):
    listed = headway("plugins")
    assert "Presets: several plugins under one name" in listed.out
    assert "EASY with a dedicated queue and elastic commands." in " ".join(listed.out.split())
    told = headway("plugins", "easy-de")
    assert "- easy\n- dedicated: {freeze: first}\n- elastic\n" in told.out
    assert "enable: plugins: [easy-de]" in told.out


def test_a_misspelt_preset_is_refused_with_its_name(headway, cloud):
    ran = headway("dry-run", "--trace", cloud, "--policy", "hybrid-loss-e")
    assert ran.code == 2
    assert "hybrid-los-e" in ran.err
