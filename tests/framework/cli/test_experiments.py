"""``headway compare``, ``tune`` and ``reproduce``."""

from __future__ import annotations

from pathlib import Path

import pytest
from commandline import Headway

from headway_plugins.reproductions import los

CAMPAIGN = """
processors: 64
policies: [fcfs, easy]
workloads: [{label: month, model: month, options: {days: 2}, loads: [0.5, 0.8]}]
seeds: 2
"""


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    file = tmp_path / "campaign.yaml"
    file.write_text(CAMPAIGN)
    return file


def test_compare_prints_means_with_intervals_and_writes_rows_and_plots(
    headway: Headway, campaign: Path, tmp_path: Path
) -> None:
    ran = headway("compare", campaign, "--out", tmp_path / "out", "--workers", 1)
    assert ran.code == 0, ran.err
    assert "means over 2 seeds" in ran.out
    assert "±" in ran.out
    assert len((tmp_path / "out" / "rows.csv").read_text().splitlines()) == 1 + 8
    assert (tmp_path / "out" / "month.png").read_bytes().startswith(b"\x89PNG")


def test_compare_with_an_energy_profile_shows_energy_in_kilowatt_hours(
    headway: Headway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    file = tmp_path / "energy.yaml"
    file.write_text(CAMPAIGN + "energy: present-day\n")
    ran = headway("compare", file, "--out", tmp_path / "out", "--workers", 1)
    assert ran.code == 0, ran.err
    assert "energy, kWh" in ran.out and "peak power, kW" in ran.out
    head, *lines = (tmp_path / "out" / "rows.csv").read_text().splitlines()
    joules = [float(line.split(",")[head.split(",").index("energy")]) for line in lines]
    # 64 idle processors draw 51 W, and busy ones 307 W, for two days and more.
    assert all(0.8 * 64 * 86400 < found < 4.8 * 64 * 86400 * 5 for found in joules)


def test_compare_without_its_file_is_the_users_mistake(headway: Headway, tmp_path: Path) -> None:
    ran = headway("compare", tmp_path / "none.yaml")
    assert ran.code == 2
    assert "none.yaml: the campaign cannot be read" in ran.err


def test_tune_finds_the_best_value(headway: Headway, tmp_path: Path) -> None:
    ran = headway(
        "tune", "delayed-los", "--workload", "month", "--set", "days=2", "--processors", 64, "--seeds", 2,
        "--values", "0..2", "--workers", 1, "--out", tmp_path / "out",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    assert "best for mean wait: max_skips: " in ran.out
    assert "← best" in ran.out
    assert (tmp_path / "out" / "tuning.png").is_file()
    assert len((tmp_path / "out" / "rows.csv").read_text().splitlines()) == 1 + 2 * (3 + 1)


def test_tune_for_a_trace_takes_the_machine_from_its_header(headway: Headway, trace: Path) -> None:
    ran = headway("tune", "delayed-los", "--trace", trace, "--values", "0,7", "--workers", 1)
    assert ran.code == 0, ran.err
    assert "max_skips=7" in ran.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["delayed-los"], "either --trace FILE or --workload MODEL"),
        (["delayd-los", "--workload", "month"], "Did you mean 'delayed-los'"),
        (["easy", "--workload", "month"], "names no option to tune"),
        (["delayed-los", "--workload", "month", "--option", "skips"], "has no option 'skips'"),
        (["delayed-los", "--workload", "month", "--values", "1-3"], "expected such as 1..20"),
        (["delayed-los", "--workload", "month", "--set", "days"], "expected KEY=VALUE"),
        (["delayed-los", "--workload", "moth", "--seeds", "1", "--workers", "1"], "month"),
    ],
)
def test_tunes_mistakes(headway: Headway, arguments: list[str], message: str) -> None:
    ran = headway("tune", *arguments)
    assert ran.code == 2
    assert message in " ".join(ran.err.split())


def test_reproduce_lists_what_it_can(headway: Headway) -> None:
    ran = headway("reproduce")
    assert ran.code == 0
    assert "los: Delayed-LOS, Hybrid-LOS and elastic commands" in ran.out


def test_reproduce_names_the_nearest(headway: Headway) -> None:
    ran = headway("reproduce", "loss")
    assert ran.code == 2
    assert "Did you mean 'los'" in ran.err


@pytest.mark.slow
def test_reproduce_gives_every_claim_a_verdict(
    headway: Headway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(los, "JOBS", 40)
    monkeypatch.setattr(los, "MANY_JOBS", 80)
    monkeypatch.delenv("HEADWAY_TRACES", raising=False)
    out = tmp_path / "out"
    ran = headway("reproduce", "los", "--seeds", 2, "--workers", 1, "--out", out)
    assert ran.code == 0, ran.err
    claims = (out / "claims.md").read_text().splitlines()
    assert "`headway reproduce los --seeds 2`" in claims[2]
    cells = [line.split("|") for line in claims if line.startswith("| Fig")]
    assert {cell[-3].strip() for cell in cells} <= {"yes", "no", "in part", "not run"}
    assert {cell[-2].split(":")[0].strip() for cell in cells} <= {"-", "as published", "smaller", "larger"}
    for figure in ("figure-5", "figure-6", "figure-7", "figure-9", "figure-10", "figure-11-batch"):
        assert (out / f"{figure}.png").is_file()
        assert (out / f"{figure}.csv").is_file()
    assert any("no SDSC log at hand" in line for line in claims)
