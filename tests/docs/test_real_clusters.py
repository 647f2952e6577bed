"""docs/real_clusters.md: its campaign is one, its commands exist, and it tells of all that is counted."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click

from headway.cli import cli
from headway.experiment.definition import load_campaign
from headway.experiment.planned_starts import PlannedStarts, RealCluster, encoded
from headway.journal.latencies import Latencies

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "real_clusters.md").read_text(encoding="utf-8")


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_the_campaign_is_one(tmp_path: Path):
    (text,) = blocks("yaml")
    (tmp_path / "cluster.json").write_text(encoded(RealCluster("site", 1.0, Latencies((1.0,)))))
    (tmp_path / "beside.yaml").write_text(text)
    plan = load_campaign(tmp_path / "beside.yaml")
    # Two loads with each of the latencies.
    assert len(plan.scenarios) == 2 * 4 and plan.method.real is not None


def test_the_commands_exist():
    lines = [shlex.split(line) for block in blocks("sh") for line in block.splitlines()]
    assert lines
    for _, name, *words in lines:
        context = click.Context(cli)
        command = cli.get_command(context, name)
        assert command is not None
        command.make_context(name, list(words), parent=context)


def test_every_figure_of_the_file_is_told():
    section = (
        (DOCS / "outputs" / "campaigns.md").read_text("utf-8").split("## cluster.json")[1].split("\n## ")[0]
    )
    for kind in (RealCluster, PlannedStarts, Latencies):
        for name in kind.__struct_fields__:
            assert f"`{name}`" in section, name


def test_every_count_that_is_printed_is_told():
    said = str(PlannedStarts(9, 1, (1.0, 1.0, 1.0), 1.0, 1, 1, 1, 1, 1))
    for count in said.split(", ")[4:]:
        words = count.split(" ", 1)[1].removeprefix("jobs ")
        assert words in PAGE, words
