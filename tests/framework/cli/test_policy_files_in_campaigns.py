"""A policy in a file runs in campaigns: `headway --plugin FILE` with compare, and others."""

from __future__ import annotations

import csv
import hashlib
import json
from pathlib import Path

import pytest
from commandline import Headway

MINE = '''from pydantic import BaseModel
from headway.hookspecs import hookimpl


class Options(BaseModel):
    """Of the policy."""

    most: int = 5


class SmallestFirst:
    """Smallest first."""

    Options = Options

    def __init__(self, options):
        self.options = options

    @hookimpl
    def queue_key(self, job):
        return (job.processors,)

    @hookimpl
    def schedule(self, view):
        return [start for job in view.queue if (start := view.start(job, "fits now"))]
'''
CAMPAIGN = """processors: 320
policies: [easy, mine, {label: mine 2, plugins: [mine: {most: 2}]}]
workloads: [{model: lublin-cwf, options: {jobs: 60}, loads: [0.7]}]
seeds: 2
"""


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "campaign.yaml").write_text(CAMPAIGN)
    return tmp_path / "mine.py", tmp_path / "campaign.yaml"


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("place", ["before", "after"])
def test_a_campaign_names_the_policy_of_a_file(
    headway: Headway, files: tuple[Path, Path], tmp_path: Path, workers: int, place: str
) -> None:
    mine, campaign = files
    out = tmp_path / "out"
    words = ["compare", campaign, "--out", out, "--workers", workers]
    run = headway(*(["--plugin", mine, *words] if place == "before" else [*words, "--plugin", mine]))
    assert run.code == 0, run.err
    with open(out / "rows.csv", newline="") as stream:
        variants = {row["variant"] for row in csv.DictReader(stream)}
    assert variants == {"easy", "mine", "mine 2"}
    record = json.loads((out / "record.json").read_text())
    assert record["plugins"] == [str(mine)]
    assert record["files"]["mine.py"] == hashlib.sha256(mine.read_bytes()).hexdigest()
    assert "--plugin" in record["command"]


def test_a_campaign_with_a_file_is_repeated_and_not_with_another(
    headway: Headway, files: tuple[Path, Path], tmp_path: Path
) -> None:
    mine, campaign = files
    out = tmp_path / "out"
    assert headway("--plugin", mine, "compare", campaign, "--out", out, "--workers", 1).code == 0
    again = headway("repeat", out, "--workers", 1)
    assert again.code == 0, again.err
    mine.write_text(MINE.replace("(job.processors,)", "(-job.processors,)"))
    other = headway("repeat", out, "--workers", 1)
    assert other.code == 2 and "mine.py: expected the file from which the results were made" in other.err
    more = headway("--plugin", mine, "compare", campaign, "--out", out, "--workers", 1)
    assert more.code == 2 and "mine.py" in more.err


def test_the_policy_is_linted_and_tuned(headway: Headway, files: tuple[Path, Path], tmp_path: Path) -> None:
    mine, campaign = files
    assert headway("--plugin", mine, "lint-experiment", campaign, "--definition-only").code == 0
    run = headway(
        "--plugin", mine, "tune", "mine", "--option", "most", "--values", "1,2", "--workload", "lublin-cwf",
        "--set", "jobs=50", "--processors", 320, "--seeds", 2, "--workers", 2,
    )  # fmt: skip
    assert run.code == 0, run.err
    assert "most=1" in run.out and "most=2" in run.out


def test_without_the_file_the_policy_is_unknown(
    headway: Headway, files: tuple[Path, Path], tmp_path: Path
) -> None:
    _, campaign = files
    run = headway("compare", campaign, "--out", tmp_path / "out")
    assert run.code == 2 and "no plugin is called 'mine'" in run.err
    run = headway("--plugin", tmp_path / "none.py", "compare", campaign, "--out", tmp_path / "out")
    assert run.code == 2 and "none.py: expected a Python file, found no such file" in run.err


def test_a_file_before_a_dry_run_is_that_of_the_dry_run(
    headway: Headway, files: tuple[Path, Path], tmp_path: Path
) -> None:
    trace = tmp_path / "log.swf"
    trace.write_text("; MaxProcs: 4\n1 0 -1 10 2 -1 -1 2 10 -1 1 1 1 1 1 1 -1 -1\n")
    run = headway("--plugin", files[0], "dry-run", "--trace", trace, "--policy", "mine")
    assert run.code == 0, run.err
