"""The thirteen policies by their names, and batch mode, from the command line."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from commandline import Headway

THIRTEEN = (
    "fcfs", "sjf", "ljf", "minet", "maxet", "fcfs-ff", "sjf-ff", "ljf-ff", "minet-ff", "maxet-ff",
    "window-k", "easy", "k-reserved",
)  # fmt: skip


def starts(directory: Path) -> list[float]:
    with open(directory / "jobs.csv", encoding="utf-8") as stream:
        return [float(row["start_time"]) for row in csv.DictReader(stream)]


@pytest.mark.parametrize("name", THIRTEEN)
def test_each_runs_by_its_name_on_a_count_and_on_nodes(
    headway: Headway, trace: Path, tmp_path: Path, name: str
) -> None:
    ran = headway("dry-run", "--trace", trace, "--policy", name)
    assert ran.code == 0 and name in ran.out
    site = tmp_path / "site.yaml"
    site.write_text("mode: dry-run\nemulation: {nodes: [{count: 4, processors: 4}]}\n")
    ran = headway("dry-run", "-c", site, "--trace", trace, "--policy", name, "--cycle", "1m")
    assert ran.code == 0 and name in ran.out


def test_a_configured_one_gives_the_run_its_name(headway: Headway, trace: Path, tmp_path: Path) -> None:
    site = tmp_path / "site.yaml"
    site.write_text("mode: dry-run\nplugins: [elastic, ljf-ff]\n")
    assert headway("dry-run", "-c", site, "--trace", trace).out.startswith("ljf-ff: ")
    site.write_text("mode: dry-run\nplugins: [largest-first, k-reserved]\n")
    assert headway("dry-run", "-c", site, "--trace", trace).out.startswith("k-reserved: ")


def test_all_of_them_are_listed(headway: Headway) -> None:
    listed = headway("plugins").out.split()
    assert set(THIRTEEN) <= set(listed)
    told = headway("plugins", "sjf-ff").out
    assert "- greedy" in told and "- smallest-first" in told and "Chandio" in told


def test_with_a_cycle_jobs_start_on_its_multiples(headway: Headway, trace: Path, tmp_path: Path) -> None:
    ran = headway("dry-run", "--trace", trace, "--cycle", "30s", "--out", tmp_path / "out")
    assert ran.code == 0
    assert all(start % 30 == 0 for start in starts(tmp_path / "out"))
    assert headway("dry-run", "--trace", trace, "--out", tmp_path / "events").code == 0
    assert any(start % 30 for start in starts(tmp_path / "events"))


def test_the_option_wins_over_the_configuration(headway: Headway, trace: Path, tmp_path: Path) -> None:
    site = tmp_path / "site.yaml"
    site.write_text("mode: dry-run\ncycle: 1h\n")
    assert headway("dry-run", "-c", site, "--trace", trace, "--out", tmp_path / "hours").code == 0
    assert all(start % 3600 == 0 for start in starts(tmp_path / "hours"))
    ran = headway("dry-run", "-c", site, "--trace", trace, "--cycle", "10", "--out", tmp_path / "tens")
    assert ran.code == 0
    found = starts(tmp_path / "tens")
    assert all(start % 10 == 0 for start in found) and any(start % 3600 for start in found)


@pytest.mark.parametrize(
    "options", [[], ["--policy", "maxet-ff"], ["-c"], ["-c", "--policy", "k-reserved"]], ids=" ".join
)
def test_the_journal_keeps_the_cycle(
    headway: Headway, trace: Path, tmp_path: Path, options: list[str]
) -> None:
    journal = tmp_path / "run.db"
    if "-c" in options:
        site = tmp_path / "site.yaml"
        site.write_text("mode: dry-run\nplugins: [easy, first-fit]\ncycle: 40s\n")
        options = ["-c", str(site), *options[1:]]
    else:
        options = [*options, "--cycle", "40s"]
    ran = headway("dry-run", "--trace", trace, *options, "--journal", journal)
    assert ran.code == 0
    again = headway("replay", journal)
    assert again.code == 0 and "all decisions are the same" in again.out


def test_what_is_no_time_is_refused(headway: Headway, trace: Path) -> None:
    ran = headway("dry-run", "--trace", trace, "--cycle", "25h")
    assert ran.code == 2
    assert "expected a time above 0 and at most a day, found '25h'" in ran.err
    ran = headway("dry-run", "--trace", trace, "--cycle", "often")
    assert ran.code != 0
    assert "expected a time such as 30m" in ran.err and "found 'often'" in ran.err


def test_the_results_say_the_cycle(headway: Headway, trace: Path, tmp_path: Path) -> None:
    headway("dry-run", "--trace", trace, "--cycle", "30s", "--out", tmp_path / "out")
    assert '"cycle": "30 s"' in (tmp_path / "out" / "metrics.json").read_text()
