"""`emulation.whole_nodes`: no two jobs of a dry run share a node."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from commandline import Headway

TRACE = """; MaxProcs: 64
1 0 -1 100 4 -1 -1 4 100 -1 1 1 1 1 1 1 -1 -1
2 1 -1 100 4 -1 -1 4 100 -1 1 1 1 1 1 1 -1 -1
3 2 -1 100 4 -1 -1 4 100 -1 1 1 1 1 1 1 -1 -1
4 3 -1 100 40 -1 -1 40 100 -1 1 1 1 1 1 1 -1 -1
"""
SITE = "plugins: [easy]\nemulation: {nodes: [{count: 2, processors: 32}], whole_nodes: %s}\n"


@pytest.mark.parametrize(
    ("whole", "starts"), [("true", ["0", "1", "100", "200"]), ("false", ["0", "1", "2", "3"])]
)
def test_a_job_of_few_processors_has_its_node_alone(
    headway: Headway, tmp_path: Path, whole: str, starts: list[str]
) -> None:
    (tmp_path / "site.yaml").write_text(SITE % whole)
    (tmp_path / "trace.swf").write_text(TRACE)
    site, trace, out = tmp_path / "site.yaml", tmp_path / "trace.swf", tmp_path / "out"
    run = headway("dry-run", "-c", site, "--trace", trace, "--out", out)
    assert run.code == 0, run.err
    with open(out / "jobs.csv", newline="") as stream:
        assert [row["start_time"] for row in csv.DictReader(stream)] == starts


def test_without_nodes_there_are_no_whole_ones(headway: Headway, tmp_path: Path) -> None:
    (tmp_path / "site.yaml").write_text("plugins: [easy]\nemulation: {processors: 8, whole_nodes: true}\n")
    (tmp_path / "trace.swf").write_text(TRACE)
    run = headway("dry-run", "-c", tmp_path / "site.yaml", "--trace", tmp_path / "trace.swf")
    assert run.code == 2
    assert "emulation: expected whole_nodes only beside nodes, found no nodes" in run.err
